"""Previews: what a forget would take, by any selector. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from . import audiences, disclosures, exposure_rows, indexing, planning, regenerating
from .arguments import whole_numbers
from .database import Scope, Tx
from .errors import InvalidInput
from .groups import Groups
from .plan import STRICT, Plan, Reach
from .records import Context
from .selectors import Match, Selector, Where


class Selection(TypedDict, total=False):
    """The selectors of plan and forget; several narrow each other. See Memory.plan."""

    ids: Sequence[int]
    quote: str
    value: str
    keyword: str
    meaning: str
    description: str
    where: Where
    thread: str
    everything: bool
    threshold: float
    aliases: bool
    include: Sequence[int]
    exclude: Sequence[int]
    corrected: Mapping[int, str]  # the new texts of some of ids=: see Memory.correct
    matched: Sequence[Match]  # of a plan made before; instead of all others
    named: Sequence[int]  # those of them that were not found by what they say


def _for_asker(tx: Tx, scope: Scope, plan: Plan) -> Plan:
    """Return the plan without what is said in records that who asks may not read.

    What was made of somebody's words goes with them, whoever made it, and is counted here.
    """
    if scope.asking is None or scope.asking.overseer:
        return plan
    may = audiences.asked_for(tx, scope, sorted(plan.entries))
    entries = {
        id_: one if id_ in may else replace(one, role="", thread=None, excerpt="", governed=None)
        for id_, one in plan.entries.items()
    }
    return replace(plan, entries=entries)


class Previews(Groups):
    """The verb `plan`, and how what was asked for becomes a selector."""

    def plan(
        self,
        what: str | None = None,
        *,
        mode: str = "erase",
        reach: Reach = STRICT,
        suspects: bool = True,
        on_dependents: str = "erase",
        **selection: Unpack[Selection],
    ) -> Plan:
        """Show what a forget would take, and why; nothing is changed.

        `what` is an exact quote or a value in any spelling. `ids`, `quote`, `value`, `keyword`
        (every word), `meaning` (cosine above `threshold`), `description` ("Sam's phone number"),
        `where` (mapping of attributes or metadata, or a predicate), `thread` and `everything=True`
        narrow each other; `include`/`exclude` add and drop ids; `aliases=True` also takes other
        names the records state. `mode`: "erase", "suppress" (undoable) or "redact" (only the
        matched span). `reach`: strict, depth(k), influence(t). `on_dependents`: with "regenerate" the
        replies among what goes are asked again without it; the plan says what that costs.
        Raises SelectorError, InvalidInput, EmbedderError.
        """
        names = regenerating.names(self._engine.rebuilders, on_dependents, mode)
        selector = self._selector(what, selection)
        selector, near = self._with_meaning(selector, wanted=suspects)
        with self._engine.overseeing.reading(self.id) as (tx, scope):
            plan = planning.make(
                tx,
                scope,
                selector,
                self._look(),
                mode=mode,
                reach=reach,
                suspects=suspects,
                threshold=near,
                rebuilders=names,
            )
            seen = exposure_rows.of_records(tx, scope.ws, plan.ids, plan.edges)
            plan = _for_asker(tx, scope, plan)
        return replace(plan, providers=disclosures.disclosed(seen, self._engine.options.providers))

    def _selector(self, what: str | None, selection: Selection) -> Selector:
        chosen: dict[str, Any] = dict(selection)
        for name in ("ids", "include", "exclude", "named"):
            if name in chosen:
                chosen[name] = tuple(self._context_ids(chosen[name]))
        if isinstance(chosen.get("matched"), list):
            chosen["matched"] = tuple(chosen["matched"])
        try:
            selector = Selector(what=what, **chosen)
        except TypeError:
            unknown = InvalidInput("There is no such selector.")
        else:
            selector.check()
            return selector
        raise unknown

    def _with_meaning(self, selector: Selector, *, wanted: bool) -> tuple[Selector, float | None]:
        """Return the selector with its vector, and the threshold for suspects by meaning."""
        if selector.meaning is None and not (wanted and indexing.at_hand(self._engine, self.id)):
            return selector, None
        asked = planning.meaning_of(selector)
        if asked is None:
            indexing.ready(self._engine, self.id)
            return selector, indexing.needed(self._engine).threshold
        query = self._query(asked, vectors=True)
        if query.vector is None:
            return selector, None
        return planning.with_vector(selector, query.vector, query.threshold), query.threshold

    def _context_ids(self, context: Context | Sequence[int]) -> list[int]:
        if isinstance(context, Context):
            if context.workspace != self.id:
                raise InvalidInput("The context is of another workspace.")
            return context.ids
        return whole_numbers(context, "what was given")
