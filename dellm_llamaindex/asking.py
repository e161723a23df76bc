"""From a deletion request to a question, from its answer to an erasure: ids and counts, never text.

What a question keeps while nobody has answered is which records it is about. It is planned anew
when it is answered, and asked again where that is not what was shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from dellm import (
    InvalidInput,
    Memory,
    NothingMatched,
    Plan,
    PlanChanged,
    Receipt,
    Request,
    SelectorError,
)
from dellm.adapting import Kind, Selection, answering, wishes

DROPPED = "(Nothing was forgotten: you answered neither yes nor no.)"
HOW = 'Answer yes, no, or with numbers ("only 3 and 5"). Nothing is forgotten yet.'
HOW_ALL = 'Answer "yes" to forget everything, or no. Nothing is forgotten yet.'
REMARKS = {
    "unclear": "I need a clear answer.",
    "changed": "It is no longer what was listed.",
    "not in the plan": "Not all of these numbers are in the list.",
    "goes with it": "What you want to keep was made from what is to go, and goes with it.",
    "more": "That takes more than was listed.",
    "unsure": "I am not sure what you mean. Is it this?",
    "kept": "Not all of what you want to keep can stay, or was found: please look at the list.",
    "guessed": "Not all of this says it in your words: please look at the list.",
}
_EVERYTHING = Selection(everything=True)
_Found = tuple[int, bool, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked before anything is erased, by ids of records and counts.

    `plan` is a token of what would go: 32 hexadecimal digits, made of ids only. `ids` are all that
    would go, `matches` those that were asked for; `rebuilt` are made anew without it, `suspects` and
    `held` stay. `everything`: only a "yes" in so many words will do. `found` is for planning it
    again: of each match its id, whether it was found by what it says, and at which characters.
    `remark` says why it is asked again or what to look at: a key of REMARKS.
    """

    plan: str
    ids: tuple[int, ...]
    matches: tuple[int, ...]
    rebuilt: tuple[int, ...] = ()
    suspects: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    threads: int = 0
    everything: bool = False
    found: tuple[_Found, ...] = ()
    remark: str | None = None

    @property
    def count(self) -> int:
        """How many records would go."""
        return len(self.ids)

    def to_dict(self) -> dict[str, Any]:
        """Return the question as plain JSON values."""
        return {
            "action": "forget",
            "plan": self.plan,
            "count": self.count,
            "ids": list(self.ids),
            "matches": list(self.matches),
            "rebuilt": list(self.rebuilt),
            "suspects": list(self.suspects),
            "held": list(self.held),
            "threads": self.threads,
            "everything": self.everything,
            "found": [[id_, said, [list(at) for at in spans]] for id_, said, spans in self.found],
            "remark": self.remark,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the question that `to_dict` has written. Raises InvalidInput for anything else."""
        try:
            return cls(
                plan=str(data["plan"]),
                ids=_ids(data["ids"]),
                matches=_ids(data["matches"]),
                rebuilt=_ids(data["rebuilt"]),
                suspects=_ids(data["suspects"]),
                held=_ids(data["held"]),
                threads=int(data["threads"]),
                everything=data["everything"] is True,
                found=tuple(_found(one) for one in data["found"]),
                remark=None if data["remark"] is None else str(data["remark"]),
            )
        except (KeyError, TypeError, ValueError):
            raise InvalidInput("This is no question of DeLLM's.") from None

    def __str__(self) -> str:
        """Return what to tell the user, without a word of what would go."""
        listed = ", ".join(map(str, self.ids[:20])) + (", …" if self.count > 20 else "")
        what = "everything I remember" if self.everything else "this"
        asks = f"Shall I forget {what}: {self.count} record(s) ({listed})?"
        remark = REMARKS.get(self.remark or "")
        lines = [remark, asks, HOW_ALL if self.everything else HOW]
        return "\n".join(one for one in lines if one)


def _ids(listed: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(one) for one in listed)


def _found(one: Sequence[Any]) -> _Found:
    id_, said, spans = one
    return int(id_), said is True, tuple((int(a), int(b)) for a, b in spans)


@dataclass(frozen=True, slots=True)
class Said:
    """What to tell the user: `text` holds no content; with a question, `preview` does.

    `question` is what must be answered now, `receipt` what was done.
    """

    text: str
    question: Question | None = None
    receipt: Receipt | None = None
    preview: str = field(default="", repr=False)


class Asking:
    """Asks about deletion requests of one conversation, and does what is answered."""

    def __init__(self, memory: Memory, thread: str) -> None:
        self._memory, self._thread = memory, thread

    def ask(self, request: Request) -> Said:
        """Return the question for a request, or what is wrong with it. Changes nothing."""
        wish = wishes.wish_of(self._memory, request, self._thread)
        try:
            plan = wishes.plan_of(self._memory, wish)
        except SelectorError:
            return self._put(_EVERYTHING, everything=True)
        if plan is None:
            return Said(_nothing(request, wish))
        if wish.total and not wish.kept:
            return self._put(_EVERYTHING, everything=True)
        return self._put(wishes.matched([plan]), remark=_remark(request, wish, plan))

    def again(self, question: Question, remark: str | None = None) -> Said:
        """Return the question for what the plan is now."""
        selection = selection_of(question)
        said = remark or question.remark
        return self._put(selection, everything=question.everything, remark=said)

    def answer(self, question: Question, value: Any) -> Said:
        """Do what was answered to a question, or ask again.

        What is no answer to it erases nothing. Raises StorageError.
        """
        answer = answering.read(value)
        if answer.kind is Kind.NO:
            return Said(answering.NO)
        vague = question.everything and not answer.explicit
        if answer.kind is Kind.OTHER or (answer.kind is Kind.YES and vague):
            return self.again(question, "unclear")
        plan = self._memory.plan(**selection_of(question))
        if answering.token_of(plan) != question.plan or answer.plan not in {None, question.plan}:
            return self.again(question, "changed")
        return self._taken(question, answer, plan)

    def _taken(self, question: Question, answer: answering.Answer, plan: Plan) -> Said:
        if answer.kind is Kind.YES:
            return self._erased(question, plan)
        if not {*question.ids, *question.suspects}.issuperset(answer.ids):
            return self.again(question, "not in the plan")
        ids = set(answer.ids)
        if answer.kind is Kind.EXCEPT:
            ids = set(question.matches).difference(answer.ids)
        elif answer.kind is Kind.ALSO:
            ids |= set(question.matches)
        selection = wishes.matched([plan], ids)
        part = self._memory.plan(**selection) if ids else None
        if not part:
            return Said(answering.NO)
        if answer.kind is Kind.EXCEPT and set(answer.ids).intersection(part.ids):
            return self._put(selection, remark="goes with it")
        if not {*question.ids, *answer.ids}.issuperset(answering.visible(part)):
            return self._put(selection, remark="more")
        return self._erased(_question(part), part)

    def _erased(self, question: Question, plan: Plan) -> Said:
        try:
            receipt = self._memory.forget(plan, by="human")
        except (PlanChanged, NothingMatched):
            return self.again(question, "changed")
        text = (
            f"Forgotten: {len(answering.visible(plan))} of the things I remembered "
            f"(receipt {receipt.number})."
        )
        return Said(text, receipt=receipt)

    def _put(
        self, selection: Selection, *, everything: bool = False, remark: str | None = None
    ) -> Said:
        """Return the question for what the plan is now; what to say where nothing is left."""
        plan = self._memory.plan(**selection)
        if not answering.visible(plan):
            answering.note_held(self._memory, plan)
            return Said(answering.NOTHING)
        question = _question(plan, everything=everything, remark=remark)
        return Said(str(question), question, preview=str(plan))


def _nothing(request: Request, wish: wishes.Wish) -> str:
    if wish.stretch:
        return answering.STRETCH
    return answering.UNCLEAR if request.needs_question else answering.NOTHING


def _remark(request: Request, wish: wishes.Wish, plan: Plan) -> str | None:
    """Return what the user should know before answering."""
    if wish.unknown_keep or set(wish.kept).intersection(plan.ids):
        return "kept"
    if request.needs_question:
        return "unsure"
    return "guessed" if wish.guessed else None


def _question(plan: Plan, *, everything: bool = False, remark: str | None = None) -> Question:
    return Question(
        plan=answering.token_of(plan),
        ids=tuple(answering.visible(plan)),
        matches=tuple(answering.visible_matches(plan)),
        rebuilt=tuple(one.id for one in plan.rebuilds),
        suspects=tuple(one.id for one in plan.suspects),
        held=tuple(one.id for one in plan.held),
        threads=len(plan.threads),
        everything=everything,
        found=tuple(_found(one) for one in answering.found_in(plan)),
        remark=remark,
    )


def selection_of(question: Question) -> Selection:
    """Return the selector of the matches that a question names."""
    if question.everything:
        return _EVERYTHING
    return answering.again(question.found)
