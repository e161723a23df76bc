"""Asking whether a plan is to be carried out, and reading the answer: ids and counts, never text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt, interrupt

from dellm import Match, Plan
from dellm.adapting import Kind, Selection, consent

from .questions import Question

FORGET = "forget"  # the "action" of the interrupt


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered: `kind` and `ids` as of dellm.consent, `plan` the token it names, if any."""

    kind: Kind
    ids: tuple[int, ...] = ()
    explicit: bool = False
    plan: str | None = None


def visible(plan: Plan) -> list[int]:
    """Return the records of a plan that somebody could look at; the others hold a graph's state."""
    return [one for one in plan.ids if plan.entries[one].kind != "state"]


def token_of(plan: Plan) -> str:
    """Return what names a plan by what goes with it: 32 hexadecimal digits, made of ids only."""
    said = json.dumps([plan.workspace, visible(plan)])
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def question(
    plan: Plan,
    *,
    everything: bool,
    remark: str | None = None,
    rest: Sequence[int] = (),
    others: bool = False,
) -> Question:
    """Return the value of the interrupt: what would go, by ids of records and counts.

    `plan` is the token, `rest` what else the message said, as records, and `others` whether there
    were other messages; both are answered afterwards. `remark` says why it is asked again:
    "unclear", "changed", "not in the plan", "goes with it" (what is to stay was made from what is
    to go). `rebuilt` are made anew without what goes. `found` is for planning it again: of each
    match its id, whether it was found by what it says, and at which characters.
    """
    said = {
        "action": FORGET,
        "plan": token_of(plan),
        "count": len(visible(plan)),
        "ids": visible(plan),
        "matches": [one.id for one in plan.matches if plan.entries[one.id].kind != "state"],
        "rebuilt": [one.id for one in plan.rebuilds],
        "suspects": [one.id for one in plan.suspects],
        "held": [one.id for one in plan.held],
        "threads": len(plan.threads),
        "everything": everything,
        "rest": list(rest),
        "others": others,
        "found": found_in(plan),
        "remark": remark,
    }
    return Question(said)


def found_in(plan: Plan) -> list[list[Any]]:
    """Return what a question says of a plan's matches, to be read by `again`."""
    by_content = plan.selector.by_content
    return [[one.id, by_content(one.id), [list(at) for at in one.spans]] for one in plan.matches]


def again(found: Sequence[Sequence[Any]]) -> Selection:
    """Return the selector of the matches that a question names."""
    matches = [Match(id_, "asked for", tuple((a, b) for a, b in at)) for id_, _, at in found]
    return Selection(matched=tuple(matches), named=tuple(one[0] for one in found if not one[1]))


def answers(value: Mapping[str, Any]) -> list[Any]:
    """Return all that was answered to a task's interrupts so far, the newest last.

    To be called once, before the task interrupts; it does not pause by itself.
    """
    found: list[Any] = []
    while True:
        try:
            found.append(interrupt(value))
        except GraphInterrupt:
            return found


def shown(writes: Sequence[tuple[str, str, Any]] | None, task: str) -> Mapping[str, Any] | None:
    """Return the question that a task has paused with last, of its stored writes; None if none."""
    for name, channel, value in writes or ():
        if name == task and channel == INTERRUPT:
            listed = value if isinstance(value, (list, tuple)) else [value]
            said = [one.value for one in listed if isinstance(one, Interrupt)]
            ours = (one for one in said if isinstance(one, dict) and one.get("action") == FORGET)
            return next(ours, None)
    return None


def read(value: Any) -> Answer:
    """Return what the value of a resume answers; OTHER for anything that is not clearly an answer.

    Understood are True and False, what dellm.consent reads ("yes", "no", "only 3 and 5"), a list of
    record ids, and a mapping with "ids" or "answer", and "plan" for the token it is meant for.
    """
    if isinstance(value, bool):
        return Answer(Kind.YES if value else Kind.NO, explicit=True)
    if isinstance(value, str):
        said = consent.read(value)
        return Answer(said.kind, said.ids, said.explicit)
    if isinstance(value, Mapping):
        return _mapped(value)
    if isinstance(value, (list, tuple)) and all(type(one) is int for one in value):
        return Answer(Kind.ONLY if value else Kind.NO, tuple(value))
    return Answer(Kind.OTHER)


def _mapped(value: Mapping[str, Any]) -> Answer:
    told = [name for name in ("ids", "answer") if name in value]
    plan = value.get("plan")
    if len(told) != 1 or not (plan is None or isinstance(plan, str)):
        return Answer(Kind.OTHER)
    inner = value[told[0]]
    if isinstance(inner, Mapping) or (told[0] == "ids" and not isinstance(inner, (list, tuple))):
        return Answer(Kind.OTHER)
    found = read(inner)
    return Answer(found.kind, found.ids, found.explicit, plan)
