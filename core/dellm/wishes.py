"""From a recognised deletion request to a plan: which selectors to try, and in which order.

Exact selectors first (ids, quote, value), those that guess (keywords, meaning) only where nothing
exact matches. A plan changes nothing; the user decides on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from . import values
from .errors import EmbedderError, SelectorError
from .memory import Memory
from .plan import Plan
from .previews import Selection
from .requests import Request, RequestKind, Target
from .selectors import Match
from .terms import distinct

_EXACT = frozenset({"quote", "value", "description"})
ALIKE = 0.75  # share of the best match's cosine from which a record counts as meant, too
MOST_ALIKE = 100  # records that a guess looks at
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Wish:
    """What a request comes down to: selectors whose matches are to go, ids that are not to be matched.

    `total` says that it takes everything. `kept` are the ids the user wants to stay. `unknown_keep`
    says that a part to be kept was named but not found, `stretch` that a stretch of time was named,
    which is no number of messages. The plan of the same memory for the same wish is the same.
    """

    selections: tuple[Selection, ...] = field(default=(), repr=False)
    kept: tuple[int, ...] = ()
    total: bool = False
    unknown_keep: bool = False
    stretch: bool = False

    @property
    def guessed(self) -> bool:
        """Whether some of it was found by words or meaning, and may not be meant."""
        return any("meaning" in one or "keyword" in one for one in self.selections)

    def after(self, turn: Iterable[int | None]) -> Wish:
        """Return the wish once more was said, in records that only a quote or a value may match."""
        if all(_EXACT.issuperset(one) for one in self.selections):
            return self
        said = {id_ for id_ in turn if id_ is not None}
        return replace(self, kept=tuple(sorted(said.union(self.kept))))


def wish_of(memory: Memory, request: Request, thread: str, *, apart: Sequence[int] = ()) -> Wish:
    """Return the selectors for a request made in a thread; none where nothing matches.

    Records `apart` do not count as a match while the selectors are chosen. For an offer, which
    nobody asked for, nothing is guessed.
    """
    guess = request.kind is not RequestKind.OFFER
    return _Finder(memory, thread, tuple(apart), guess=guess).wish(request)


def named_in(request: Request) -> tuple[str, ...]:
    """Return the values that a request names itself, whether or not a record holds them.

    To be guarded (Guards.add) once the user said yes. What they want to keep is none.
    """
    found: dict[str, None] = {}
    for target in request.targets:
        if target.kind in {"value", "quote"}:
            found[target.text] = None
        elif target.kind == "description":
            name = values.without_pointing(target.text)
            alone = all(word[:1].isupper() or word[:1].isdigit() for word in name.split())
            parts = values.named_parts(target.text)
            found.update(dict.fromkeys([*parts, *([name] if name and alone and not parts else [])]))
    kept = [one.casefold() for one in request.keep]
    return tuple(one for one in found if not any(one.casefold() in text for text in kept))


def everything() -> Wish:
    """Return the wish for all there is in the workspace."""
    return Wish((Selection(everything=True),), total=True)


def chosen(ids: Sequence[int], plan: Plan) -> Wish:
    """Return the wish for records that the user ticked, looking at a plan."""
    return Wish((matched([plan], ids),))


def matched(plans: Iterable[Plan], ids: Iterable[int] | None = None) -> Selection:
    """Return the selector of what plans have matched, without the words they were made by.

    Only the matches with these `ids`, if any are given; others of them count as named by id.
    """
    found: dict[int, Match] = {}
    named: set[int] = set()
    for plan in plans:
        for one in plan.asked:
            found.setdefault(one.id, one)
            if not plan.selector.by_content(one.id):
                named.add(one.id)
    wanted = sorted(found) if ids is None else sorted(set(ids))
    named.update(set(wanted).difference(found))
    matches = tuple(found.get(id_) or Match(id_, "named by id") for id_ in wanted)
    return Selection(matched=matches, named=tuple(sorted(named.intersection(wanted))))


def plan_of(memory: Memory, wish: Wish, on_dependents: str = "erase") -> Plan | None:
    """Return the plan for a wish: the union of its selectors' matches, less what is kept.

    None where nothing matches. `on_dependents` is as in Memory.plan. Raises SelectorError when a guess takes every record there is.
    """
    ways = [_with(one, exclude=wish.kept) if wish.kept else one for one in wish.selections]
    plans = [plan for one in ways if (plan := memory.plan(on_dependents=on_dependents, **one))]
    if len(plans) < 2:
        return plans[0] if plans else None
    return memory.plan(on_dependents=on_dependents, **matched(plans))


def _with(selection: Selection, **more: Any) -> Selection:
    merged: Any = {**selection, **more}
    return cast("Selection", merged)


class _Finder:
    """Tries selectors for what a request names, in one conversation."""

    def __init__(self, memory: Memory, thread: str, apart: tuple[int, ...], *, guess: bool) -> None:
        self._memory = memory
        self._thread = thread
        self._apart = apart
        self._guess = guess

    def wish(self, request: Request) -> Wish:
        """Return the wish of a request."""
        targets = request.targets
        if any(one.kind == "everything" for one in targets):
            return self._but(everything(), request.keep)
        exact = [one for one in targets if one.kind in {"value", "quote"}]
        found = [way for one in exact if (way := self._first(_exactly(one)))]
        certain = [str(way.get("value") or way.get("quote")) for way in found]
        for target in targets:
            if target not in exact:
                guess = self._guess and not any(text in target.text for text in certain)
                found += self._named(target, guess=guess, name=request.scope == "entity")
        wish = Wish(
            tuple(way for place, way in enumerate(found) if way not in found[:place]),
            stretch=any(one.kind == "last" and one.count == 0 for one in targets),
        )
        return self._but(wish, request.keep)

    def _named(self, target: Target, *, guess: bool, name: bool) -> list[Selection]:
        if target.kind == "description":
            return self._described(target.text, guess=guess, name=name)
        if target.kind == "meaning":
            return self._stated(target.text, guess=guess)
        if target.kind == "last":
            ids = self._newest(target)
            return [Selection(ids=tuple(ids))] if ids else []
        if target.kind == "thread":
            way = self._first([Selection(thread=self._thread_named(target.text))])
        else:
            way = self._first([Selection(ids=target.ids)])
        return [way] if way else []

    def _described(self, text: str, *, guess: bool, name: bool) -> list[Selection]:
        """Return the selectors for "my phone number" (a value), "Biscuit" (a name), "my trip" (a topic).

        A topic is rarely said in the words of the request, so what means the same goes along, unless
        the request ends with the very value ("the helper phrase cinder soft").
        """
        if value := self._first([Selection(description=text)]):
            return [value]
        ways = [[Selection(value=one)] for one in values.named_parts(text)]
        if named := [way for one in ways if (way := self._first(one))]:
            return named
        said = self._first(_said(text))
        if said and (name or not guess):
            return [said]
        alike = self._alike(text) if guess else None
        if said and alike and self._takes_everything(alike):
            alike = None
        return [one for one in (said, alike) if one]

    def _stated(self, text: str, *, guess: bool) -> list[Selection]:
        """Return the selector for a statement: its words in a row, else all of them, else its meaning."""
        way = self._first([Selection(quote=text)])
        if way is None and guess:
            way = self._first([Selection(keyword=text)]) or self._alike(text)
        return [way] if way else []

    def _alike(self, text: str) -> Selection | None:
        """Return the selector for what means nearly as much the same as the best statement does.

        The embedder's own threshold says what may help an answer, which is far too much to erase.
        A question is often closer to the request than what it asks about, so it is no measure.
        Without search by meaning, the words decide.
        """
        try:
            hits = self._memory.search(text, by="meaning", limit=MOST_ALIKE)
        except EmbedderError:
            return self._first([Selection(keyword=text)])
        hits = [hit for hit in hits if hit.record.id not in self._apart]
        if not hits:
            return None
        stated = [hit for hit in hits if not hit.record.text.rstrip().endswith(("?", "？"))]
        best = max(hit.score or 0.0 for hit in stated or hits)
        least = min(hit.score or 0.0 for hit in hits if (hit.score or 0.0) >= ALIKE * best)
        return Selection(meaning=text, threshold=least - ROUNDING)

    def _takes_everything(self, way: Selection) -> bool:
        try:
            return not self._matched(way)
        except SelectorError:
            return True

    def _first(self, ways: Iterable[Selection]) -> Selection | None:
        """Return the first selector that matches something.

        One that takes all there is counts as matching: making its plan says so.
        """
        for way in ways:
            try:
                if self._matched(way):
                    return way
            except EmbedderError:
                continue  # no search by meaning here: the next way
            except SelectorError:
                if _takes_all(way):
                    return way
        return None

    def _matched(self, way: Selection) -> set[int]:
        plan = self._memory.plan(suspects=False, **way)
        return {match.id for match in plan.asked}.difference(self._apart)

    def _thread_named(self, text: str) -> str:
        """Return the one thread whose name stands in the text, else the conversation's own."""
        words = set(text.replace('"', " ").split())
        named = [name for name in self._memory.threads() if name in words]
        return named[0] if len(named) == 1 else self._thread

    def _newest(self, target: Target) -> list[int]:
        """Return the ids of the newest `count` exchanges of the thread, about the text if there is one.

        An exchange is what the user said and all that came after it, up to the next thing they said.
        """
        if target.count == 0:
            return []
        exchanges: list[list[int]] = []
        for record in self._memory.history(self._thread):
            if record.role == "user" or not exchanges:
                exchanges.append([])
            exchanges[-1].append(record.id)
        if target.text:
            about = self._about(target.text)
            exchanges = [one for one in exchanges if about.intersection(one)]
        return [id_ for one in exchanges[-target.count :] for id_ in one]

    def _about(self, text: str) -> set[int]:
        ways = [Selection(value=text), Selection(keyword=text), Selection(meaning=text)]
        way = self._first(_with(one, thread=self._thread) for one in ways)
        if way is None:
            return set()
        try:
            return self._matched(way)
        except SelectorError:  # it takes all there is
            return {record.id for record in self._memory.history(self._thread)}

    def _but(self, wish: Wish, keep: Sequence[str]) -> Wish:
        """Return the wish less what the user wants to keep."""
        ids: set[int] = set()
        lost = False
        for text in keep:
            found = self._kept(text)
            ids |= found
            lost |= not found
        return replace(wish, kept=tuple(sorted(ids)), unknown_keep=lost)

    def _kept(self, text: str) -> set[int]:
        way = self._first([Selection(value=text), Selection(keyword=text)])
        try:
            return self._matched(way) if way else set()
        except SelectorError:  # it takes all there is
            return {record.id for record in self._memory.export(by="system")}


def _said(text: str) -> list[Selection]:
    """Return the selectors for the words of a topic, as they stand and without "the old" or "my"."""
    bare = values.without_pointing(text)
    at_length = [Selection(value=bare)] if " " in bare and bare != text else []
    return [Selection(value=text), *at_length]


def _exactly(target: Target) -> list[Selection]:
    """Return the selectors for a quote or a value; of a quoted "name = value" the value may do."""
    if target.kind != "quote":
        return [Selection(value=target.text)]
    _, equals, value = target.text.rpartition("=")
    named = [Selection(value=value.strip())] if equals and value.strip() else []
    return [Selection(quote=target.text), *named]


def _takes_all(way: Selection) -> bool:
    """Whether a selector was refused for taking every record, not for saying nothing."""
    described, words = way.get("description"), way.get("keyword")
    if described is not None:
        return values.described(described) is not None
    return words is None or bool(distinct(words))
