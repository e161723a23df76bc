"""The assistant: the paper's Q with its D and G (sections V-B and V-C).

A message is answered by one model call whose prompt holds the records chosen for it and nothing
else; the answer is recorded with exactly those as its context. A deletion request becomes a plan,
is shown, and is executed only after a yes; neither the request nor the yes is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from . import consent, suggesting, wishes
from .arguments import check_choice
from .consent import Answer, Kind
from .errors import (
    ContextForgotten,
    DellmError,
    InvalidInput,
    NotFound,
    NothingMatched,
    PlanChanged,
    SelectorError,
)
from .memory import Memory
from .models import Model
from .plan import ON_DEPENDENTS, Plan
from .records import Context, Record
from .requests import Classifier, Request, RequestKind, recognise
from .systems import Reply, checked, reply_with, seen_by
from .systems import asked as asked_with
from .wishes import Wish

Confirm = Callable[[Plan], bool | Sequence[int]]

HOW = 'Answer yes, no, or with numbers ("only 3 and 5"). Nothing is forgotten yet.'
HOW_ALL = 'Answer "yes" to forget everything, or no. Nothing is forgotten yet.'
DROPPED = "(Nothing was forgotten: you answered neither yes nor no.)"
NOTHING = "I remember nothing that matches, so nothing was forgotten."
UNCLEAR = "Tell me what to forget: quote it, name it, or give the numbers of the messages."


@dataclass(frozen=True, slots=True)
class _Pending:
    """What waits for the user's yes. An offer lapses without a word when it is not taken up."""

    wish: Wish
    plan: Plan
    offer: bool = False


@dataclass(frozen=True, slots=True)
class _Asked:
    """Where a turn goes: its time, and what must not be chosen for its context."""

    at: datetime | int | None = None
    without: tuple[int, ...] = field(default=())


class Assistant:
    """One conversation in a memory, answered by a model; deletion requests become plans.

    `thread` is the conversation's name. `k`, `last`, `by` and `budget` choose the context, see
    Memory.context. `confirm(plan)` is asked instead of the next message, and answers True, False
    or the ids to take. `classifier` gives a second opinion on what is a deletion request. With
    `on_dependents="regenerate"` the model is asked again for the replies that would go. One
    conversation waits for one answer: use it from one thread of execution at a time.
    """

    def __init__(
        self,
        memory: Memory,
        model: Model,
        *,
        thread: str = "main",
        k: int = 5,
        last: int = 0,
        by: str | None = None,
        budget: int | None = None,
        confirm: Confirm | None = None,
        classifier: Classifier | None = None,
        on_dependents: str = "erase",
    ) -> None:
        self.memory = memory
        self.model = model
        self.thread = thread
        self.k, self.last, self.by, self.budget = k, last, by, budget
        check_choice(on_dependents, ON_DEPENDENTS, "on_dependents=")
        self.on_dependents = on_dependents
        self._confirm = confirm
        self._classifier = classifier
        self._pending: _Pending | None = None

    @property
    def pending(self) -> Plan | None:
        """The plan that waits for a yes, or None."""
        return self._pending.plan if self._pending else None

    def send(self, text: str, /, *, at: datetime | int | None = None) -> Reply:
        """Answer one message of the user; `at` is when it was said, if not now.

        Raises ModelError (the message is kept, no answer), EmbedderError, StorageError,
        InvalidInput for a blank message, and ContextForgotten when what the answer was made from
        was forgotten meanwhile, twice, or the message itself was.
        """
        checked(text)
        waiting, self._pending = self._pending, None
        if waiting:
            answer = consent.read(text)
            if answer.kind is not Kind.OTHER:
                return self._settled(waiting, answer)
        reply = self._handle(text, at)
        if waiting and not waiting.offer and reply.receipt is None and not reply.pending:
            return replace(reply, text=f"{reply.text}\n\n{DROPPED}")
        return reply

    def confirm(self, yes: bool, *, only: Iterable[int] | None = None) -> Reply:
        """Answer the pending plan: all of it, the matches with these ids `only`, or none.

        Raises InvalidInput when no plan is pending or an id is not in it.
        """
        if self._pending is None:
            raise InvalidInput("There is no plan to confirm.")
        waiting = self._pending
        ids = None if only is None else tuple(only)
        if ids is not None and (strange := _strange(waiting.plan, ids)):
            raise InvalidInput(f"Not in the plan: {_listed(strange)}.")
        self._pending = None
        if not yes:
            return self._settled(waiting, Answer(Kind.NO))
        if ids is None:
            return self._settled(waiting, Answer(Kind.YES, explicit=True))
        return self._settled(waiting, Answer(Kind.ONLY, ids))

    def _handle(self, text: str, at: datetime | int | None) -> Reply:
        request = recognise(text, model=self._classifier)
        if request.kind is RequestKind.FORGET:
            return self._plan(request, at)
        reply = self._answer(text, _Asked(at))
        return self._offer(request, reply) if request.kind is RequestKind.OFFER else reply

    # answering: section V-B

    def _answer(self, text: str, asked: _Asked) -> Reply:
        context = self._choose(text, asked.without)
        question = self.memory.remember(text, thread=self.thread, created_at=asked.at)
        try:
            return self._complete(text, question, context, asked)
        except ContextForgotten:
            if not self._is_there(question):
                raise
        context = self._choose(text, (*asked.without, question.id))
        return self._complete(text, question, context, asked)

    def _choose(self, text: str, without: Sequence[int]) -> Context:
        return self.memory.context(
            text,
            thread=self.thread,
            k=self.k,
            last=self.last,
            by=self.by,
            budget=self.budget,
            without=without,
        )

    def _complete(self, text: str, question: Record, context: Context, asked: _Asked) -> Reply:
        """Ask the model once, and record its answer with exactly what it was asked with."""
        ids = [*context.ids, question.id]
        try:
            said = self.model.complete(asked_with(text, context.records))
            answer = self.memory.record(
                said,
                context=ids,
                thread=self.thread,
                model=seen_by(self.model),
                created_at=asked.at,
            )
        except BaseException:  # it was sent, or may have been, and no reply will say so
            with suppress(DellmError):
                self.memory.exposures.note(ids, model=seen_by(self.model))
            raise
        return Reply(said, question.id, answer.id, tuple(ids))

    def _is_there(self, record: Record) -> bool:
        try:
            self.memory.get(record.id)
        except NotFound:
            return False
        return True

    # forgetting: section V-C

    def _plan(self, request: Request, at: datetime | int | None) -> Reply:
        """Plan what the request asks, answer what else the turn says, then ask for a yes."""
        wish, plan = self._planned(wishes.wish_of(self.memory, request, self.thread))
        also = () if wish.total else suggesting.suggested(self.memory, request)
        rest = Reply("")
        if request.rest.strip():
            rest = self._answer(request.rest, _Asked(at, plan.ids if plan else ()))
            wish, plan = self._planned(wish.after([rest.question, rest.answer]))
        if plan is None:
            return _joined(rest, Reply(_nothing(request, wish)))
        plan = suggesting.with_suggestions(self.memory, plan, also)
        return _joined(rest, self._show(_Pending(wish, plan), _questions(request, wish, plan)))

    def _planned(self, wish: Wish) -> tuple[Wish, Plan | None]:
        """Return the wish and its plan; the wish for everything where a guess takes all there is."""
        try:
            return wish, wishes.plan_of(self.memory, wish, self.on_dependents)
        except SelectorError:
            total = replace(wishes.everything(), kept=wish.kept)
            return total, wishes.plan_of(self.memory, total, self.on_dependents)

    def _show(self, pending: _Pending, remarks: Sequence[str] = ()) -> Reply:
        if self._confirm is not None:
            return self._decided(pending, self._confirm(pending.plan))
        self._pending = pending
        how = HOW_ALL if pending.wish.total else HOW
        text = "\n".join([*remarks, str(pending.plan), how])
        return Reply(text, plan=pending.plan, pending=True)

    def _decided(self, pending: _Pending, decision: bool | Sequence[int]) -> Reply:
        self._pending = pending
        if isinstance(decision, bool):
            return self.confirm(decision)
        return self.confirm(True, only=decision)

    def _offer(self, request: Request, reply: Reply) -> Reply:
        """Offer to forget what the user said is over; nothing happens unless they say yes."""
        turn = [id_ for id_ in (reply.question, reply.answer) if id_ is not None]
        found = wishes.wish_of(self.memory, request, self.thread, apart=turn)
        wish, plan = self._planned(found)
        if plan is None or wish.total:
            return reply
        return _joined(
            reply, self._show(_Pending(wish, plan, offer=True), ["Shall I forget this?"])
        )

    def _settled(self, waiting: _Pending, answer: Answer) -> Reply:
        try:
            return self._settle(waiting, answer)
        except DellmError:
            self._pending = waiting  # nothing was changed, so the question still stands
            raise

    def _settle(self, waiting: _Pending, answer: Answer) -> Reply:
        if answer.kind is Kind.NO:
            return Reply("Nothing was forgotten.", plan=waiting.plan)
        if answer.kind is Kind.YES:
            if waiting.wish.total and not answer.explicit:
                return self._show_again(waiting, "That is everything I remember.")
            return self._forget(waiting)
        if strange := _strange(waiting.plan, answer.ids):
            return self._show_again(waiting, f"Not in the list: {_listed(strange)}.")
        return self._narrow(waiting, answer)

    def _show_again(self, waiting: _Pending, remark: str) -> Reply:
        self._pending = waiting
        how = HOW_ALL if waiting.wish.total else HOW
        return Reply(f"{remark}\n{how}", plan=waiting.plan, pending=True)

    def _narrow(self, waiting: _Pending, answer: Answer) -> Reply:
        """Forget only what was chosen; ask again where the choice takes what was not shown, or kept."""
        matches = [one.id for one in waiting.plan.matches]
        kept = answer.ids if answer.kind is Kind.EXCEPT else ()
        ids = {
            Kind.ONLY: list(answer.ids),
            Kind.EXCEPT: [id_ for id_ in matches if id_ not in kept],
            Kind.ALSO: sorted({*matches, *answer.ids}),
        }[answer.kind]
        wish = wishes.chosen(ids, waiting.plan)
        plan = wishes.plan_of(self.memory, wish, self.on_dependents) if ids else None
        if plan is None:
            return Reply("Nothing is left of it, so nothing was forgotten.")
        shown = {*waiting.plan.ids, *answer.ids}
        if not shown.issuperset(plan.ids):
            return self._show(_Pending(wish, plan), ["That takes more than was listed:"])
        if tied := sorted(set(kept).intersection(plan.ids)):
            remark = f"{_listed(tied)} was made from what is to go, and goes with it:"
            return self._show(_Pending(wish, plan), [remark])
        return self._forget(_Pending(wish, plan))

    def _forget(self, waiting: _Pending) -> Reply:
        """Execute what was shown; where the memory has moved since, show what it is now."""
        wish, plan = self._planned(waiting.wish)
        if plan is None:
            return Reply(NOTHING)
        if plan.digest != waiting.plan.digest:
            return self._moved(replace(waiting, wish=wish, plan=plan))
        try:
            receipt = self.memory.forget(plan, regenerate=reply_with(self.model), by="human")
        except (PlanChanged, NothingMatched):
            return self._moved(replace(waiting, wish=wish, plan=plan))
        done = "Not yet: a hold keeps it." if receipt.level == "held" else "Forgotten."
        return Reply(f"{done}\n{receipt}", plan=plan, receipt=receipt)

    def _moved(self, waiting: _Pending) -> Reply:
        wish, plan = self._planned(waiting.wish)
        if plan is None:
            return Reply(NOTHING)
        return self._show(_Pending(wish, plan), ["It is no longer what was listed. It is now:"])


def _questions(request: Request, wish: Wish, plan: Plan) -> list[str]:
    """Return what the user should know before answering: doubts, and what could not be kept."""
    remarks = []
    if wish.total:
        remarks.append("That takes everything I remember:")
    elif request.needs_question:
        remarks.append("I am not sure what you mean. Is it this?")
    elif wish.guessed:
        remarks.append("Not all of this says it in your words: please look at the list.")
    tied = sorted(set(wish.kept).intersection(plan.ids))
    if tied:
        remarks.append(f"You want to keep {_listed(tied)}, but it was made from what is to go.")
    if wish.unknown_keep:
        remarks.append("I could not find all of what you want to keep: please look at the list.")
    return remarks


def _nothing(request: Request, wish: Wish) -> str:
    if wish.stretch:
        return "Tell me how many of the last messages to forget. Nothing was forgotten."
    return f"{UNCLEAR} Nothing was forgotten." if request.needs_question else NOTHING


def _joined(first: Reply, second: Reply) -> Reply:
    """Return one reply: the answer to what else was said, then what is asked."""
    text = "\n\n".join(part for part in (first.text, second.text) if part)
    return replace(
        second, text=text, question=first.question, answer=first.answer, context=first.context
    )


def _strange(plan: Plan, ids: Iterable[int]) -> list[int]:
    """Return the ids that the plan neither takes nor suspects."""
    return sorted(set(ids).difference(plan.ids, (one.id for one in plan.suspects)))


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))
