"""Making texts anew: what a forget has to make, and what came of it. Runs outside of any transaction.

A text comes of the sources that stay alone. What fails, says nothing, or still holds what goes is no
text. What outside models were sent meanwhile is noted, whatever came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from . import contents, exposure_rows, regenerating
from .database import Scope, Tx
from .making import ASKS, Derivation, Made, Rebuilder, counted, model_of
from .plan import Plan, in_process
from .records import Record
from .regenerating import REPLY

Sources = dict[int, tuple[int, ...]]
Sent = list[tuple[str, list[int]]]  # "provider/name" of an outside model, and what it was given


@dataclass(frozen=True, slots=True)
class Rebuilds:
    """The new texts of one forget, by old id, and the sources that each was to be made from.

    `digest` is that of the plan they were made for; `holds` as in Job. `calls` counts the model calls
    of all that was tried. By old id, `versions` are those of the derivations that made a text, and
    `models` what that was asked of, where its function says so.
    """

    digest: str
    sources: Mapping[int, tuple[int, ...]]
    texts: Mapping[int, str] = field(repr=False)
    holds: Callable[[Any], bool] = field(repr=False)
    calls: int = 0
    versions: Mapping[int, int] = field(default_factory=dict)
    models: Mapping[int, str | None] = field(default_factory=dict)

    def is_stale(self, plan: Plan) -> bool:
        """Whether a plan takes something else than the one that the texts were made for."""
        return bool(self.sources or plan.remade) and plan.digest != self.digest


NOTHING = Rebuilds("", MappingProxyType({}), MappingProxyType({}), bool)


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be made: sources by old id, each after what it is made from; all records of it.

    `twins` are records that hold the same content, `replies` those that a model is asked for again.
    `holds` tells whether a value holds, in any spelling, what the forget takes. `sent` is filled as
    texts are made; what replies are asked of is known to their asker.
    """

    digest: str
    sources: Sources
    twins: Mapping[int, Collection[int]]
    records: Mapping[int, Record] = field(repr=False)
    holds: Callable[[Any], bool] = field(repr=False)
    replies: Collection[int] = frozenset()
    sent: Sent = field(default_factory=list)

    def run(self, rebuilders: Mapping[str, Rebuilder]) -> Rebuilds:
        """Make the texts. One that fails, is blank or still holds what goes is left out."""
        texts: dict[int, str] = {}
        anew: dict[int, Record] = {}
        calls = 0
        for id_ in self.sources:
            made = self._made(id_, texts, anew, rebuilders)
            calls += made.calls
            if made.text is not None:
                texts[id_], anew[id_] = made.text, self._with(id_, made.text)
        named = {id_: maker_of(self.records[id_], rebuilders) for id_ in texts}
        makers = {id_: rebuilders.get(name) for id_, name in named.items() if name != REPLY}
        versions = {id_: one.version for id_, one in makers.items() if isinstance(one, Derivation)}
        models = {id_: model_of(one) for id_, one in makers.items() if hasattr(one, "model")}
        return Rebuilds(self.digest, self.sources, texts, self.holds, calls, versions, models)

    def _made(
        self,
        id_: int,
        texts: Mapping[int, str],
        anew: Mapping[int, Record],
        rebuilders: Mapping[str, Rebuilder],
    ) -> Made:
        record = self.records[id_]
        name = maker_of(record, rebuilders)
        if name != REPLY and _carries(record.payload, self.holds):
            return Made(None, 0)
        same = [texts[twin] for twin in self.twins[id_] if twin in texts]
        if same:
            return Made(same[0], 0)
        # A source that is made anew as well comes with its new text, if it has one.
        there = [one for one in self.sources[id_] if one in anew or one not in self.sources]
        sources = [anew.get(one) or self.records[one] for one in there]
        make = rebuilders.get(name)
        if not sources or make is None:
            return Made(None, 0)
        try:
            made = counted(make(record, sources))
        except Exception:  # noqa: BLE001 - the caller's own code, which may ask a model: any failure erases
            made = Made(None)
        model = None if name == REPLY else model_of(make)
        if made.calls and model is not None and not in_process(model):
            self.sent.append((model, there))
        good = made.text is not None and not self.holds(made.text)
        return made if good else Made(None, made.calls)

    def _with(self, id_: int, text: str) -> Record:
        old = self.records[id_]
        if id_ in self.replies:
            return regenerating.anew(old, text)
        return replace(old, text=text, version=old.version + 1)


def _carries(payload: bytes | None, holds: Callable[[Any], bool]) -> bool:
    return payload is not None and any(holds(one) for one in contents.readings(payload))


def maker_of(record: Record, names: Collection[str]) -> str:
    """Return the name of what makes a record anew: its own, where there is such, else a reply's."""
    asks = str(record.metadata.get(ASKS, REPLY))
    return asks if asks in names else REPLY


def note_sent(tx: Tx, scope: Scope, sent: Sent, versions: Mapping[int, int], at: int) -> None:
    """Note what outside models were sent, of what is still there; `versions` is new id by old."""
    given: dict[str, set[int]] = {}
    for model, ids in sent:
        given.setdefault(model, set()).update(versions.get(one, one) for one in ids)
    for model, some in sorted(given.items()):
        exposure_rows.note_living(tx, scope.ws, some, (model, False), at)
