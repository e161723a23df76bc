"""Receipts: what a forget did, to what level, what it did not reach. No content, no hash of any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from . import ledger
from .database import Tx
from .disclosures import Disclosure
from .errors import NotFound
from .ledger import LedgerEntry
from .records import from_micros

FORGETS = ("erase", "suppress", "redact")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was done, and to what level.

    `level` is the one reached so far: "held" (nothing yet: a hold keeps all of it, out of use, and it
    waits for the hold's end), "suppressed" (not used any more, undoable), "erased" (no read returns it, the rows are gone) or
    "scrubbed" (its bytes were looked for in every file of the database and are in none, and no other
    system is known to have a copy). A receipt that is read again says what holds by then.
    `providers` says who was sent what is gone, and until when they may keep it, by the table then.
    `redacted` and `rebuilt` name the new record by the erased one in whose place it stands;
    `not_rebuilt` counts those that were to be made anew and could not be, `rebuild_calls` the model
    calls that making anew took, failed ones too. `regenerated` and `not_regenerated` are the same for
    replies that were asked for again, in `regenerate_calls` calls of the model. `pending` counts what
    is still to be made anew by Memory.rebuild. `guarded` counts the keyed digests that this forget
    left, the only trace of what it erased, which go at `guarded_until` (None: never).
    """

    number: int
    workspace: str
    at: datetime
    mode: str
    reach: str
    relaxed: bool
    level: str
    ids: tuple[int, ...]
    matched: int
    redacted: Mapping[int, int] = field(default_factory=dict)
    spared: int = 0
    held: tuple[int, ...] = ()
    exposures: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    out_of_reach: tuple[str, ...] = ()
    digest: str = ""
    rebuilt: Mapping[int, int] = field(default_factory=dict)
    not_rebuilt: int = 0
    rebuild_calls: int = 0
    pending: int = 0
    regenerated: Mapping[int, int] = field(default_factory=dict)
    not_regenerated: int = 0
    regenerate_calls: int = 0
    providers: tuple[Disclosure, ...] = ()
    guarded: int = 0
    guarded_until: datetime | None = None

    @property
    def id(self) -> str:
        """The receipt's name: workspace and number in its audit chain."""
        return f"{self.workspace}/{self.number}"

    def __len__(self) -> int:
        return len(self.ids)

    def __str__(self) -> str:
        lines = [f"{self.level}: {len(self.ids)} record(s), {self.matched} of them matched"]
        lines += [f"receipt {self.id}, {self.at:%Y-%m-%d %H:%M:%S} UTC, reach {self.reach}"]
        if self.relaxed:
            lines.append(f"relaxed reach: {self.spared} dependent(s) were left")
        if self.rebuilt or self.not_rebuilt:
            lines.append(f"rebuilt: {len(self.rebuilt)}, could not be rebuilt: {self.not_rebuilt}")
        if self.pending:
            lines.append(f"still to be made anew: {self.pending}")
        if self.rebuild_calls:
            lines.append(f"model calls to rebuild: {self.rebuild_calls}")
        if self.regenerated or self.not_regenerated:
            lines.append(
                f"replies asked again: {len(self.regenerated)}, could not be: "
                f"{self.not_regenerated}, in {self.regenerate_calls} call(s)"
            )
        if self.guarded:
            until = (
                "for ever" if self.guarded_until is None else f"until {self.guarded_until:%Y-%m-%d}"
            )
            lines.append(
                f"guarded {until}: {self.guarded} keyed digest(s), the only trace that is kept"
            )
        if self.held:
            lines.append(f"held back: {len(self.held)} record(s)")
        for model, replies in self.exposures.items():
            lines.append(f"was sent to {model} for {replies} reply(s): not ours to erase there")
        lines += [str(one) for one in self.providers]
        lines += [f"out of reach: {one}" for one in self.out_of_reach]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the receipt as plain JSON values."""
        return {
            "id": self.id,
            "workspace": self.workspace,
            "at": self.at.isoformat(),
            "mode": self.mode,
            "reach": self.reach,
            "relaxed": self.relaxed,
            "level": self.level,
            "ids": list(self.ids),
            "matched": self.matched,
            "redacted": {str(old): new for old, new in self.redacted.items()},
            "rebuilt": {str(old): new for old, new in self.rebuilt.items()},
            "not_rebuilt": self.not_rebuilt,
            "rebuild_calls": self.rebuild_calls,
            "pending": self.pending,
            "regenerated": {str(old): new for old, new in self.regenerated.items()},
            "not_regenerated": self.not_regenerated,
            "regenerate_calls": self.regenerate_calls,
            "spared": self.spared,
            "held": list(self.held),
            "exposures": dict(self.exposures),
            "providers": [one.to_json() for one in self.providers],
            "rows": dict(self.rows),
            "out_of_reach": list(self.out_of_reach),
            "guarded": self.guarded,
            "guarded_until": None if self.guarded_until is None else self.guarded_until.isoformat(),
            "digest": self.digest,
        }


def read(tx: Tx, ws: int, workspace: str, number: int) -> Receipt:
    """Return a receipt by its number; NotFound when the chain has no such forget."""
    entry = ledger.entry(tx, ws, number)
    if entry is None and 0 < number <= ledger.anchor(tx, ws)[0]:
        raise NotFound(f"Receipt {number} was pruned from the audit chain, as it was asked to be.")
    if entry is None or entry.action not in FORGETS:
        raise NotFound(f"There is no receipt {number} in this workspace.")
    return _as_of_now(tx, ws, entry, from_entry(entry, workspace, scrubbed(tx, ws, number)))


def all_of(tx: Tx, ws: int, workspace: str) -> list[Receipt]:
    """Return every receipt of the workspace, oldest first."""
    done = scrubbed(tx, ws)
    return [
        _as_of_now(tx, ws, entry, from_entry(entry, workspace, done))
        for entry in ledger.entries(tx, ws)
        if entry.action in FORGETS
    ]


def _as_of_now(tx: Tx, ws: int, entry: LedgerEntry, receipt: Receipt) -> Receipt:
    """Return a receipt that says what holds by now of copies elsewhere, and of what was put off."""
    if receipt.pending:
        receipt = _with_later(tx, ws, receipt, entry.body["pending"])
    return _with_copies(tx, ws, receipt)


def _with_later(tx: Tx, ws: int, receipt: Receipt, put_off: Sequence[int]) -> Receipt:
    """Return a receipt that says what of what was put off has been made anew since."""
    row = tx.one(
        "select count(*), coalesce(sum(calls), 0) from rebuild_job "
        "where ws = :ws and receipt = :receipt",
        ws=ws,
        receipt=receipt.number,
    )
    pending, calls = (0, 0) if row is None else (int(row[0]), int(row[1]))
    made = dict(receipt.rebuilt)
    for entry in ledger.entries(tx, ws, "rebuild", after=receipt.number):
        if entry.body["receipt"] == receipt.number:
            calls += entry.body["calls"]
            made |= {entry.body["old"]: entry.body["new"]} if entry.body["new"] else {}
    done = len(made) - len(receipt.rebuilt)
    return replace(
        receipt,
        rebuilt=dict(sorted(made.items())),
        not_rebuilt=receipt.not_rebuilt + len(put_off) - pending - done,
        rebuild_calls=receipt.rebuild_calls + calls,
        pending=pending,
    )


def _with_copies(tx: Tx, ws: int, receipt: Receipt) -> Receipt:
    """Return a receipt that says how many copies other systems still have of what was erased."""
    if receipt.mode == "suppress" or not receipt.ids:
        return receipt
    row = tx.one(
        "select coalesce(sum(case when e.name <> '' then 1 else 0 end), 0), "
        "coalesce(sum(case when e.name = '' then 1 else 0 end), 0) from elsewhere e "
        "left join record r on r.ws = :ws and r.id = e.record "
        "where e.ws = :ws and e.record in :ids and r.id is null",
        ws=ws,
        ids=list(receipt.ids),
    )
    pending, kept = (0, 0) if row is None else (int(row[0]), int(row[1]))
    said = [f"{pending} copies in vector stores, still to be deleted there"] if pending else []
    if kept:
        said.append(f"{kept} documents where they were found, which are not returned any more")
    level = "erased" if said else receipt.level
    return replace(receipt, level=level, out_of_reach=(*receipt.out_of_reach, *said))


def scrubbed(tx: Tx, ws: int, after: int = 0) -> set[int]:
    """Return the numbers of the receipts that scrubs have found clean since entry `after`."""
    return {
        number
        for entry in ledger.entries(tx, ws, "scrub", after)
        for number in entry.body["receipts"]
    }


def unproved(tx: Tx, ws: int) -> list[int]:
    """Return the numbers of the receipts of what is erased and no scrub has found clean yet.

    A scrub proves all that there was when it began, so only what came since has to be looked at.
    """
    last = ledger.newest(tx, ws, "scrub")
    proved_to = 0 if last is None else max(last.body["receipts"], default=0)
    done = scrubbed(tx, ws, proved_to)
    since = ledger.entries(tx, ws, after=proved_to)
    return [one.seq for one in since if one.action in {"erase", "redact"} and one.seq not in done]


def from_entry(
    entry: LedgerEntry, workspace: str, scrubbed_ones: Sequence[int] | set[int]
) -> Receipt:
    """Return the receipt that a ledger entry records."""
    body = entry.body
    level = "suppressed" if entry.action == "suppress" else "erased"
    if body["held"] and not body["ids"]:
        level = "held"
    until = body.get("guarded_until")
    return Receipt(
        number=entry.seq,
        workspace=workspace,
        at=from_micros(entry.at),
        mode=entry.action,
        reach=body["reach"],
        relaxed=body["relaxed"],
        level="scrubbed" if entry.seq in scrubbed_ones and level == "erased" else level,
        ids=tuple(body["ids"]),
        matched=body["matched"],
        redacted={int(old): new for old, new in body["redacted"].items()},
        spared=body["spared"],
        held=tuple(body["held"]),
        exposures=body["exposures"],
        rows=body["rows"],
        out_of_reach=tuple(body["out_of_reach"]),
        digest=body["digest"],
        # Entries from before there was any rebuilding say nothing of it.
        rebuilt=dict(sorted((int(old), new) for old, new in body.get("rebuilt", {}).items())),
        not_rebuilt=body.get("not_rebuilt", 0),
        rebuild_calls=body.get("rebuild_calls", 0),
        pending=len(body.get("pending", ())),
        regenerated=dict(
            sorted((int(old), new) for old, new in body.get("regenerated", {}).items())
        ),
        not_regenerated=body.get("not_regenerated", 0),
        regenerate_calls=body.get("regenerate_calls", 0),
        providers=tuple(map(Disclosure.from_json, body.get("providers", ()))),
        guarded=body.get("guarded", 0),
        guarded_until=None if until is None else from_micros(until),
    )
