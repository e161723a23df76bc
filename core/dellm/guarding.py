"""The re-entry guard: what was forgotten with `guard=True` is not taken in again unawares.

Of the erased values nothing is kept but keyed digests of their normal forms. What is about to be
stored is cut into words, and the digests of its stretches and of the values that it holds are looked
up; what is found is taken out, or held for confirmation. Everything stored passes `screened`, in the
write transaction, before rows, terms and vectors are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from . import contents, entry, ledger, masking
from .database import Scope, Tx
from .guard_digests import Form, Forms, forms_of
from .records import Draft, to_micros

MARKER = "[removed at the user's request]"


@dataclass(frozen=True, slots=True)
class Known:
    """The digests of a workspace: by digest the receipt, and the time it was made and ends at."""

    digests: dict[bytes, tuple[int, int, int | None]]
    forms: Forms


def screened(
    tx: Tx, scope: Scope, drafts: Sequence[Draft], number: int, at: int, *, again: bool = False
) -> list[Draft]:
    """Return the drafts as they may be stored in a workspace whose guards have this `number`.

    0: there are none. `again` as in Entering.screened. What a user says anew lifts the guard.
    """
    listed = list(drafts)
    if not number:
        return listed
    look = _Look(tx, scope, _guards(tx, scope, number), at)
    return [look.screened(one, again) for one in listed]


def _guards(tx: Tx, scope: Scope, number: int) -> Known:
    """Return the guards of a workspace; read once for each time that they change."""
    kept = scope.entering.kept
    known = kept.get(scope.ws)
    if known is None or known[0] != number:
        rows = tx.all(
            "select digest, receipt, made_at, until, chars, words, kind from guard where ws = :ws",
            ws=scope.ws,
        )
        forms = Forms(scope.secret, scope.entering.region)
        for row in rows:
            forms.expect(row[6], row[4], row[5])
        known = (number, Known({bytes(row[0]): (row[1], row[2], row[3]) for row in rows}, forms))
        kept[scope.ws] = known
    found = known[1]
    assert isinstance(found, Known)  # noqa: S101 - nothing else is put there
    return found


class _Look:
    """Looks drafts over in one transaction."""

    def __init__(self, tx: Tx, scope: Scope, guards: Known, at: int) -> None:
        self._tx, self._scope, self._at = tx, scope, at
        self._forms = guards.forms
        self._digests = {
            digest: (receipt, made)
            for digest, (receipt, made, until) in guards.digests.items()
            if until is None or until > at
        }

    def screened(self, draft: Draft, again: bool) -> Draft:
        """Return a draft as it may be stored."""
        hits = self._hits(draft.text)
        if hits and self._says_anew(draft, hits):
            self._lift({one.digest for one in hits})
            hits = []
        if not hits and not self._holds_beside(draft):
            return draft
        if self._scope.entering.guards == "quarantine" and not again:
            return replace(draft, quarantined=True)
        clean = entry.without(draft, self._without(draft.text, hits), self._holds)
        return replace(clean, payload=self._masked(draft.payload))

    def _hits(self, text: str) -> list[Form]:
        return [one for one in self._forms.of(text, self._digests) if one.digest in self._digests]

    def _without(self, text: str, hits: Sequence[Form]) -> str:
        for start, end in reversed(_joined(hits)):
            text = text[:start] + MARKER + text[end:]
        return MARKER if any(map(self._hits, contents.text_readings(text))) else text

    def _holds(self, value: object) -> bool:
        return any(self._hits(one) for one in contents.inside(value))

    def _holds_beside(self, draft: Draft) -> bool:
        """Whether something is in another place of a draft than its text, or encoded in that."""
        governance = (draft.subject, draft.purpose, draft.sensitivity, draft.source)
        beside = [one for one in governance if one]
        if any(map(self._hits, (*contents.text_readings(draft.text), *beside))):
            return True
        if draft.metadata and self._holds(dict(draft.metadata)):
            return True
        return draft.payload is not None and any(map(self._hits, contents.readings(draft.payload)))

    def _masked(self, payload: bytes | None) -> bytes | None:
        """Return a payload less what is guarded, None where it cannot be taken out of it."""
        if payload is None:
            return None
        text = masking.readable(payload)
        clean = masking.masked(payload, text, _joined(self._hits(text)))
        if clean is None or any(map(self._hits, contents.readings(clean))):
            return None
        return clean

    def _says_anew(self, draft: Draft, hits: Sequence[Form]) -> bool:
        """Whether a user says a guarded value of their own accord, after it was forgotten."""
        if draft.role != "user" or draft.kind != "message":
            return False
        if any(one.kind == "whole" for one in hits):  # the very text: sent again, most likely
            return False
        since = max(self._digests[one.digest][1] for one in hits)
        if draft.created_at is not None and to_micros(draft.created_at) < since:
            return False
        from .restating import restates

        return all(restates(draft.text, one.start, one.end) for one in hits)

    def _lift(self, digests: set[bytes]) -> None:
        receipts = sorted({self._digests.pop(one)[0] for one in digests})
        for one in sorted(digests):
            self._tx.run(
                "delete from guard where ws = :ws and digest = :digest",
                ws=self._scope.ws,
                digest=one,
            )
        changed(self._tx, self._scope.ws)
        ledger.append(self._tx, self._scope.ws, "lift", {"receipts": receipts}, self._at)


def _joined(hits: Iterable[Form]) -> list[tuple[int, int]]:
    """Return the stretches of the hits in order, those that overlap as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted((one.start, one.end) for one in hits):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def changed(tx: Tx, ws: int) -> None:
    """Note that the guards of a workspace are others now; its row is locked."""
    tx.run(
        "update workspace set version = version + 1, generation = generation + 1, "
        "guards = case when exists (select 1 from guard where ws = :ws) "
        "then version + 1 else 0 end where ws = :ws",
        ws=ws,
    )


def keep(
    tx: Tx, scope: Scope, values: Sequence[tuple[str, str]], receipt: int, at: int
) -> tuple[int, int | None]:
    """Guard values from now on, each given with "value" or "whole"; return how many digests, how long.

    Those whose time is over go. The workspace's row is locked.
    """
    tx.run("delete from guard where ws = :ws and until <= :at", ws=scope.ws, at=at)
    lasts = scope.entering.guard_for
    rows = {row["digest"]: row for row in _rows(scope, values)}
    until = None if lasts is None else at + lasts
    said = {"receipt": receipt, "at": at, "until": until}
    tx.many(
        "insert into guard(ws, digest, receipt, made_at, until, kind, chars, words) "
        "values (:ws, :digest, :receipt, :at, :until, :kind, :chars, :words) "
        "on conflict (ws, digest) do update set receipt = excluded.receipt, "
        "made_at = excluded.made_at, until = excluded.until",
        [{**row, **said} for row in rows.values()],
    )
    if rows:
        changed(tx, scope.ws)
    return len(rows), until


def can_keep(scope: Scope, value: str) -> bool:
    """Whether a value has something by which it could be known again."""
    return bool(forms_of(scope.secret, value, "value", scope.entering.region))


def _rows(scope: Scope, values: Sequence[tuple[str, str]]) -> Iterator[dict[str, object]]:
    for kind, value in values:
        for form in forms_of(scope.secret, value, kind, scope.entering.region):
            yield {
                "ws": scope.ws,
                "digest": form.digest,
                "kind": form.kind,
                "chars": form.chars,
                "words": form.words,
            }
