"""Settling what a user wants forgotten: from a request to a plan, from an answer to an erasure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AnyMessage, RemoveMessage
from langgraph.types import interrupt

from dellm import (
    Memory,
    NothingMatched,
    Plan,
    PlanChanged,
    Request,
    SelectorError,
)
from dellm.adapting import Kind, Selection, answering, wishes

from .middleware_channels import stored, update_of
from .middleware_consent import answers, question
from .middleware_run import Run
from .questions import Question

# What a request comes down to. The first two are asked about; the others are said at once.
IDS, EVERYTHING, NOTHING, UNCLEAR, STRETCH = range(5)

SAYS = {
    NOTHING: answering.NOTHING,
    UNCLEAR: answering.UNCLEAR,
    STRETCH: answering.STRETCH,
}
_EVERYTHING = Selection(everything=True)
DONE = "Forgotten: {count} of the things I remembered (receipt {receipt})."


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended: what to tell the user (no content), and what changes in the state.

    `changed` are its messages, `channels` are others, with what is left of them.
    """

    text: str
    changed: tuple[AnyMessage | RemoveMessage, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    channels: Mapping[str, Any] = field(default_factory=dict, repr=False)


def wished(
    run: Run, requests: Sequence[Request], apart: Sequence[int] = ()
) -> tuple[int, Selection]:
    """Return what requests come down to: a code and, for IDS, the records that match.

    Records `apart`, which hold the requests themselves, are no reason to think that one is found.
    """
    codes: set[int] = set()
    plans: list[Plan] = []
    for request in requests:
        wish = wishes.wish_of(run.memory, request, run.thread or "", apart=apart)
        plan = _guessed(run.memory, wish)
        if plan is EVERYTHING or (plan and wish.total and not wish.kept):
            return EVERYTHING, _EVERYTHING
        if isinstance(plan, Plan):
            plans.append(plan)
        elif wish.stretch:
            codes.add(STRETCH)
        else:
            codes.add(UNCLEAR if request.needs_question else NOTHING)
    return (IDS, wishes.matched(plans)) if plans else (max(codes), Selection())


def wished_before(asked: Mapping[str, Any]) -> tuple[int, Selection]:
    """Return what a question asks about, as `wished` did."""
    return (
        (EVERYTHING, _EVERYTHING) if asked["everything"] else (IDS, answering.again(asked["found"]))
    )


def _guessed(memory: Memory, wish: wishes.Wish) -> Plan | int | None:
    """Return the plan of a wish, EVERYTHING where a guess takes all there is."""
    try:
        return wishes.plan_of(memory, wish)
    except SelectorError:
        return EVERYTHING


class Settling:
    """Asks about a plan and does what is answered, within one task that LangGraph may restart.

    `messages` are those of the state, `code` and `selection` as of `wished`, `rest` and
    `others` what the question says is answered afterwards.
    """

    def __init__(
        self,
        run: Run,
        messages: Sequence[AnyMessage],
        code: int,
        selection: Selection,
        *,
        rest: Sequence[int] = (),
        others: bool = False,
    ) -> None:
        self._run = run
        self._messages = messages
        self._code = code
        self._selection = selection
        self._rest, self._others = rest, others
        self._plan: Plan | None = None
        self._question = Question()

    def settled(self, token: str | None) -> Outcome:
        """Return how it ended; the task pauses as long as there is no answer to what it asks now.

        `token` names the plan that the user was shown last. Raises GraphInterrupt.
        """
        if self._code in SAYS:
            return Outcome(SAYS[self._code])
        outcome = self._asks(None)
        said = answers(self._question) if outcome is None else []
        if outcome is None and said:
            outcome = self._decided(said[-1], token)
        while outcome is None:
            outcome = self._decided(interrupt(self._question), token)
        return outcome

    def _decided(self, value: Any, token: str | None) -> Outcome | None:
        """Do what was answered to the plan of a token; None when it must be asked again."""
        answer, plan = answering.read(value), self._plan
        if answer.kind is Kind.NO or plan is None:
            return Outcome(answering.NO)
        vague = self._code == EVERYTHING and not answer.explicit
        if answer.kind is Kind.OTHER or (answer.kind is Kind.YES and vague):
            return self._asks("unclear")
        if token != answering.token_of(plan) or answer.plan not in {None, token}:
            return self._asks("changed")
        return self._taken(answer, plan)

    def _taken(self, answer: answering.Answer, plan: Plan) -> Outcome | None:
        if answer.kind is Kind.YES:
            return self._erased(plan)
        if not set(answering.visible(plan)).issuperset(answer.ids):
            return self._asks("not in the plan")
        if answer.kind is Kind.ALSO:
            return self._erased(plan)
        ids = set(answer.ids)
        if answer.kind is Kind.EXCEPT:
            ids = {one.id for one in plan.matches}.difference(answer.ids)
        part = self._run.memory.plan(**wishes.matched([plan], ids)) if ids else None
        if not part:
            return Outcome(answering.NO)
        if answer.kind is Kind.EXCEPT and set(answer.ids).intersection(part.ids):
            return self._asks("goes with it")
        return self._erased(part)

    def _asks(self, remark: str | None) -> Outcome | None:
        """Put the question for what the plan is now; an outcome where nothing is left to ask about."""
        everything = self._code == EVERYTHING
        plan = self._run.memory.plan(**self._selection)
        if not answering.visible(plan):
            answering.note_held(self._run.memory, plan)
            return Outcome(SAYS[NOTHING])
        self._plan = plan
        self._question = question(
            plan, everything=everything, remark=remark, rest=self._rest, others=self._others
        )
        return None

    def _erased(self, plan: Plan) -> Outcome | None:
        run = self._run
        known, before = run.records_of(self._messages), stored(run)
        try:
            receipt = run.memory.forget(plan, by="human")
        except (PlanChanged, NothingMatched):
            return self._asks("changed")
        changed = tuple(
            self._after(one, receipt.rebuilt.get(record or 0))
            for one, record in zip(self._messages, known, strict=True)
            if record in receipt.ids and one.id is not None
        )
        text = DONE.format(count=len(answering.visible(plan)), receipt=receipt.number)
        channels = update_of(run, before, stored(run))
        return Outcome(text, changed, {"dellm_receipt": receipt.number}, channels)

    def _after(self, message: AnyMessage, rebuilt: int | None) -> AnyMessage | RemoveMessage:
        """Return what the state is told of a message whose record went, `rebuilt` is the new one."""
        anew = None if rebuilt is None else self._run.rebuilt(message, rebuilt)
        return RemoveMessage(id=message.id or "") if anew is None else anew
