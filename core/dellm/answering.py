"""What adapters ask a user before a forget, and how they read the answer: ids and counts, never text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import consent
from .consent import Kind
from .memory import Memory
from .plan import Plan
from .previews import Selection
from .selectors import Match

NOTHING = "I remember nothing that matches, so nothing was forgotten."
UNCLEAR = "Tell me what to forget: quote it or name it. Nothing was forgotten."
STRETCH = "Tell me how many of the last messages to forget. Nothing was forgotten."
NO = "Nothing was forgotten."


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered: `kind` and `ids` as of dellm.consent, `plan` the token it names, if any."""

    kind: Kind
    ids: tuple[int, ...] = ()
    explicit: bool = False
    plan: str | None = None


def read(value: Any) -> Answer:
    """Return what a value answers; OTHER for anything that is not clearly an answer.

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
    return replace(read(inner), plan=plan)


def visible(plan: Plan) -> list[int]:
    """Return the records of a plan that somebody could look at; the others hold an agent's state."""
    return [one for one in plan.ids if plan.entries[one].kind != "state"]


def note_held(memory: Memory, plan: Plan) -> None:
    """Let what a request is of wait for the end of the hold that keeps all of it; nobody is shown it."""
    if plan.held and not plan.ids and not plan.selector.everything:
        memory.forget(plan, by="human")


def visible_matches(plan: Plan) -> list[int]:
    """Return those of a plan's matches that somebody could look at."""
    return [one.id for one in plan.matches if plan.entries[one.id].kind != "state"]


def token_of(plan: Plan) -> str:
    """Return what names a plan by what goes with it: 32 hexadecimal digits, made of ids only."""
    said = json.dumps([plan.workspace, visible(plan)])
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def found_in(plan: Plan) -> list[list[Any]]:
    """Return what a question says of a plan's matches, to be read by `again`.

    Of each its id, whether it was found by what it says, and at which characters; plain JSON values.
    """
    by_content = plan.selector.by_content
    return [[one.id, by_content(one.id), [list(at) for at in one.spans]] for one in plan.matches]


def again(found: Sequence[Sequence[Any]]) -> Selection:
    """Return the selector of the matches that a question names."""
    matches = [Match(id_, "asked for", tuple((a, b) for a, b in at)) for id_, _, at in found]
    return Selection(matched=tuple(matches), named=tuple(one[0] for one in found if not one[1]))
