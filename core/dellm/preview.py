"""A plan as a tree for people: rich does the drawing, here is what stands in it."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.tree import Tree

    from .plan import Entry, Plan

MOST = 60  # lines of one kind; the rest are counted
LINE = 72  # characters of a record that are shown


def tree(plan: Plan) -> str:
    """Return the plan as an indented tree of plain text, a reason on each line."""
    from rich.console import Console

    out = StringIO()
    plain = Console(
        file=out,
        width=120,
        color_system=None,
        force_jupyter=False,  # in a notebook rich would display it, and `out` would stay empty
        markup=False,
        highlight=False,
    )
    plain.print(rich_tree(plan))
    return out.getvalue().rstrip("\n")


def rich_tree(plan: Plan) -> Tree:
    """Return the plan as a rich tree: each match with what was made from it below."""
    from rich.text import Text
    from rich.tree import Tree

    root = Tree(Text(_headline(plan)))
    below: dict[int, list[int]] = {}
    for one in plan.dependents:
        below.setdefault(one.trace[-2] if len(one.trace) > 1 else 0, []).append(one.id)
    traces = {one.id: one for one in plan.dependents}
    after = {one.id: "; then rebuilt from what stays" for one in plan.rebuilds}
    after |= {one.id: "; then asked again" for one in plan.regenerates}
    left = [MOST]

    def add(branch: Tree, id_: int, why: str) -> None:
        pending = [(branch, id_, why)]
        while pending:
            above, node, reason = pending.pop()
            if left[0] == 0:
                continue
            left[0] -= 1
            grown = above.add(Text(_line(plan, node, reason + after.get(node, ""))))
            for child in reversed(below.get(node, ())):
                path = " → ".join(str(step) for step in traces[child].trace)
                word = "copy" if traces[child].copy else "made from it"
                pending.append((grown, child, f"{word}: {path}"))

    for match in plan.matches:
        add(root, match.id, match.reason)
    hidden = len(plan) - (MOST - left[0])
    if hidden > 0:
        root.add(Text(f"and {hidden} more"))
    if plan.regenerates:
        calls, tokens = plan.cost
        asked = f"{len(plan.regenerates)} of these replies to be asked again"
        root.add(Text(f"{asked}: {calls} model call(s), about {tokens} tokens sent"))
    _others(plan, root)
    return root


def _others(plan: Plan, root: Tree) -> None:
    from rich.text import Text

    for title, listed in (
        ("spared by the chosen reach", plan.spared),
        ("held back", plan.held),
        ("on hold, and stays: some of this was made from it", plan.above),
        ("suspects: not taken unless named with include=", plan.suspects),
    ):
        if listed:
            branch = root.add(Text(f"{title} ({len(listed)})"))
            for one in listed[:MOST]:
                branch.add(Text(_line(plan, one.id, one.why)))
    if plan.providers:
        branch = root.add(Text("was sent to others, who may still have it"))
        for sent in plan.providers:
            branch.add(Text(str(sent)))


def _headline(plan: Plan) -> str:
    if not plan:
        return "nothing matches: nothing would be changed"
    made = len(plan) - len(plan.matches)
    relaxed = f", relaxed reach {plan.reach}" if plan.reach.relaxed else ""
    rebuilt = f", {len(plan.rebuilds)} of them to be rebuilt" if plan.rebuilds else ""
    threads = f" in {len(plan.threads)} thread(s)" if plan.threads else ""
    return f"{plan.mode}: {len(plan)} record(s){threads}: {len(plan.matches)} matched, {made} made from them{rebuilt}{relaxed}"


def _line(plan: Plan, id_: int, why: str) -> str:
    entry = plan.entries.get(id_)
    if entry is None:
        return f"{id_}  [{why}]"
    shown = " ".join(entry.excerpt.split())
    cut = shown if len(shown) <= LINE else shown[: LINE - 1] + "…"
    said = f": {_visible(cut)}" if cut else ""  # what is on hold is not shown
    return f"{id_} {entry.role}{said}  [{why}{_kept(entry)}]"


def _kept(entry: Entry) -> str:
    """Return the class of a record and its end, where it has them."""
    known = entry.governed
    if known is None:
        return ""
    until = f"kept until {known.retention_until:%Y-%m-%d}" if known.retention_until else None
    return "".join(f"; {one}" for one in (known.retention, until) if one)


def _visible(text: str) -> str:
    """Return text that any terminal can show: control characters and surrogates escaped."""
    return "".join(
        letter if letter.isprintable() or letter == " " else f"\\x{ord(letter):02x}"
        for letter in text
    )
