"""Asking whether a plan is to be carried out, and reading the answer: ids and counts, never text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.errors import GraphInterrupt
from langgraph.types import Interrupt, interrupt

from dellm import Plan
from dellm.adapting import answering

from .questions import Question

FORGET = "forget"  # the "action" of the interrupt


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
        "plan": answering.token_of(plan),
        "count": len(answering.visible(plan)),
        "ids": answering.visible(plan),
        "matches": answering.visible_matches(plan),
        "rebuilt": [one.id for one in plan.rebuilds],
        "suspects": [one.id for one in plan.suspects],
        "held": [one.id for one in plan.held],
        "threads": len(plan.threads),
        "everything": everything,
        "rest": list(rest),
        "others": others,
        "found": answering.found_in(plan),
        "remark": remark,
    }
    return Question(said)


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
