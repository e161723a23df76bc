"""Writing records: numbers, rows, index terms and copy edges, in the caller's transaction."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count, repeat
from operator import attrgetter

from . import audiences, concerns, governing, guarding, provenance
from .actor import WORDS
from .arguments import check_choice, check_flag, check_mapping, check_text, check_whole
from .database import Scope, Tx
from .encoding import encode
from .errors import ContextForgotten, InvalidInput
from .governance import BASES, CREATORS
from .record_rows import INSERT, record_of, row_of
from .records import HIDDEN, KINDS, Draft, Record, from_micros, to_micros
from .terms import terms

COLUMNS = (
    "id, place, thread, kind, role, fid, version, text, payload, metadata, subject, purpose, "
    "sensitivity, retention_until, status, model, created_at"
)
AT_ONCE = 500  # records whose rows are in memory at a time


@dataclass(frozen=True, slots=True)
class Numbers:
    """Ids handed to one write: the first record id, one sequence id; the number of the guards.

    `policy` is the number of the workspace's own policy, `governed` the bits of governing.
    """

    first: int
    sequence: int
    guards: int
    policy: int = 0
    governed: int = 0


def check(draft: Draft) -> None:
    """Raise InvalidInput for a draft that could not be stored as it is."""
    if not isinstance(draft, Draft):
        raise InvalidInput("What is to be remembered is no Draft.")
    check_text(draft.text, "text=")
    check_choice(draft.kind, KINDS, "kind=")
    if not isinstance(draft.role, str) or not draft.role.strip():
        raise InvalidInput("The role is empty.")
    if draft.payload is not None and not isinstance(draft.payload, bytes):
        raise InvalidInput("The payload is not bytes.")
    check_thread(draft.thread)
    check_whole(draft.version, "version=")
    if _details(draft) != _UNSAID:
        _check_details(draft)


# Most records say nothing but their text; telling that is a third of the time of asking one by one.
_details = attrgetter(
    "framework_id",
    "subject",
    "purpose",
    "sensitivity",
    "model",
    "place",
    "copy_of",
    "metadata",
    "created_at",
    "retention_until",
    "retention",
    "created_by",
    "basis",
    "source",
    "audience",
    "quarantined",
)
_UNSAID = (*(None,) * 15, False)


def _check_details(draft: Draft) -> None:
    for name in (
        "framework_id",
        "subject",
        "purpose",
        "sensitivity",
        "model",
        "retention",
        "source",
    ):
        if (value := getattr(draft, name)) is not None:
            check_text(value, f"{name}=")
    for name, words in (("created_by", CREATORS), ("basis", BASES), ("audience", WORDS)):
        if (word := getattr(draft, name)) is not None:
            check_choice(word, words, f"{name}=")
    for name in ("place", "copy_of"):
        if (number := getattr(draft, name)) is not None:
            check_whole(number, f"{name}=")
    for moment in (draft.created_at, draft.retention_until):
        _check_time(moment)
    if draft.metadata is not None:
        check_mapping(draft.metadata, "metadata=")
    check_flag(draft.quarantined, "quarantined=")


def _check_time(moment: datetime | int | None) -> None:
    if moment is None:
        return
    try:
        from_micros(to_micros(moment))
    except (AttributeError, OverflowError, ValueError):
        problem = InvalidInput("A time is neither a datetime nor microseconds since 1970.")
    else:
        return
    raise problem


def check_thread(thread: str | None) -> None:
    """Raise InvalidInput for a thread name that is blank or no string."""
    if thread is not None and (not isinstance(thread, str) or not thread.strip()):
        raise InvalidInput("The thread's name is empty; pass None for no thread.")


def lock(tx: Tx, ws: int) -> int:
    """Keep other writers out before looking for what is already stored; return the guards' number."""
    row = tx.one("update workspace set version = version where ws = :ws returning guards", ws=ws)
    return 0 if row is None else int(row[0])


def take_numbers(tx: Tx, ws: int, records: int, tokens: int, found: int) -> Numbers:
    """Reserve ids and lock the workspace against other writers until the transaction ends.

    `found` is how many of the records can be found by search: the rest do not count in a ranking.
    """
    row = tx.one(
        "update workspace set last_record = last_record + :records, "
        "last_sequence = last_sequence - 1, version = version + 1, "
        "documents = documents + :found, tokens = tokens + :tokens "
        "where ws = :ws returning last_record, last_sequence, guards, policy, governed",
        ws=ws,
        records=records,
        tokens=tokens,
        found=found,
    )
    if row is None:
        raise InvalidInput("The workspace has no row; it was never created.")
    return Numbers(row[0] - records + 1, row[1], row[2], row[3], row[4])


def store_after(
    tx: Tx, scope: Scope, drafts: Sequence[Draft], at: int, last: int, policy: int, bits: int
) -> int:
    """Store the drafts as the records that follow `last`, the workspace's newest one.

    `policy` and `bits` are as in Numbers; returns the bits that are new with them. The caller has
    locked the workspace, made sure that no framework's object was erased, and let the drafts be
    screened: see settling, which looks them up in between.
    """
    drafts = governing.governed(tx, scope, drafts, policy, at)
    split = _split(drafts)
    tx.later(
        "update workspace set last_record = :last, documents = documents + :found, "
        "tokens = tokens + :tokens where ws = :ws",
        ws=scope.ws,
        last=last + len(drafts),
        found=_findable(drafts),
        tokens=sum(map(len, split)),
    )
    return _insert(tx, scope, drafts, split, last + 1, at, bits)


def store(
    tx: Tx, scope: Scope, drafts: Sequence[Draft], at: int, *, again: bool = False
) -> tuple[list[Record], Numbers]:
    """Store the drafts in order as records of the workspace, created `at` unless they say else.

    Returns the records, and the ids reserved with the last of them. A few hundred at a time: their
    rows and terms are done with before the next are made. `again`: see Entering.screened.
    Raises InvalidInput, CredentialRefused, ContextForgotten (a copied record or the framework's
    object was erased).
    """
    drafts = scope.entering.screened(drafts, again=again)
    if len(drafts) <= AT_ONCE:
        return _store(tx, scope, drafts, at, again)
    made: list[Record] = []
    for start in range(0, len(drafts), AT_ONCE):
        some, numbers = _store(tx, scope, drafts[start : start + AT_ONCE], at, again)
        made += some
    return made, numbers


def _store(
    tx: Tx, scope: Scope, drafts: Sequence[Draft], at: int, again: bool
) -> tuple[list[Record], Numbers]:
    split = _split(drafts)
    tokens, findable = sum(map(len, split)), _findable(drafts)
    numbers = take_numbers(tx, scope.ws, len(drafts), tokens, findable)
    drafts = governing.governed(tx, scope, drafts, numbers.policy, at, again=again)
    if numbers.guards:
        drafts = guarding.screened(tx, scope, drafts, numbers.guards, at, again=again)
        split = _split(drafts)
    else:  # the text is as it was, and may wait by now
        split = [
            found if _may_be_found(one) else [] for one, found in zip(drafts, split, strict=True)
        ]
    more = (_findable(drafts) - findable, sum(map(len, split)) - tokens)
    if any(more):
        tx.run(
            "update workspace set documents = documents + :found, tokens = tokens + :tokens "
            "where ws = :ws",
            ws=scope.ws,
            found=more[0],
            tokens=more[1],
        )
    _refuse_erased(tx, scope, drafts)
    first, moment = numbers.first, from_micros(at)
    bits = numbers.governed | _insert(tx, scope, drafts, split, first, at, numbers.governed)
    if bits & governing.ENDS and any(one.copy_of is not None for one in drafts):
        governing.together(tx, scope.ws, list(range(first, first + len(drafts))))
    if any(one.copy_of is not None for one in drafts):
        audiences.narrow(tx, scope, list(range(first, first + len(drafts))), numbers.governed)
    made = [record_of(scope.name, id_, draft, moment) for id_, draft in enumerate(drafts, first)]
    return made, numbers


def _split(drafts: Sequence[Draft]) -> list[list[str]]:
    """Return the terms of each draft; what no search may find has none."""
    return [terms(draft.text) if _may_be_found(draft) else [] for draft in drafts]


def _may_be_found(draft: Draft) -> bool:
    return draft.kind not in HIDDEN and not draft.quarantined


def _findable(drafts: Sequence[Draft]) -> int:
    return sum(map(_may_be_found, drafts))


def _insert(
    tx: Tx,
    scope: Scope,
    drafts: Sequence[Draft],
    split: Sequence[Sequence[str]],
    first: int,
    at: int,
    known: int,
) -> int:
    whom = audiences.ids_for(tx, scope, drafts)
    rows = [
        row_of(scope.ws, id_, draft, len(found), at, audience)
        for id_, draft, found, audience in zip(
            count(first), drafts, split, whom or repeat(0), strict=False
        )
    ]
    tx.many(INSERT, rows)
    tx.add_terms(scope.ws, list(enumerate(split, first)))
    for id_, draft in enumerate(drafts, first):
        if draft.copy_of is not None:
            provenance.link_copy(tx, scope.ws, id_, draft.copy_of)
    concerns.note(tx, scope, enumerate(drafts, first))
    said = [one for one in enumerate(drafts, first) if _governance(one[1]) != _NOTHING]
    bits = governing.AUDIENCES if whom else 0
    return bits | governing.keep(tx, scope, said, known) if said else bits


_governance = attrgetter("retention_until", "retention", "created_by", "basis", "source")
_NOTHING = (None,) * 5


def store_once(
    tx: Tx, scope: Scope, drafts: Sequence[Draft], at: int, guards: int = 0
) -> list[Record]:
    """Return a record for each draft: the one that holds its framework object, else a new one.

    `guards` is what `lock` has returned, where a draft has a framework's id.
    Raises InvalidInput when one object comes with two contents; else as `store`.
    """
    if all(draft.framework_id is None for draft in drafts):
        return store(tx, scope, drafts, at)[0]
    drafts = guarding.screened(tx, scope, scope.entering.screened(drafts), guards, at)
    known = [existing(tx, scope, draft) for draft in drafts]
    fresh: dict[object, Draft] = {}
    for index, draft in enumerate(drafts):
        if known[index] is None:
            first = fresh.setdefault(_object(draft, index), draft)
            if first.text != draft.text or first.payload != draft.payload:
                raise InvalidInput("Two of the drafts give one framework object two contents.")
    stored = store(tx, scope, list(fresh.values()), at)[0] if fresh else ()
    made = dict(zip(fresh, stored, strict=True))
    return [
        old or made[_object(draft, index)]
        for index, (old, draft) in enumerate(zip(known, drafts, strict=True))
    ]


def _object(draft: Draft, index: int) -> object:
    """Return what a draft is the same as another by: its framework object, else only itself."""
    named = draft.framework_id is not None
    return (draft.thread or "", draft.framework_id, draft.version) if named else index


def existing(tx: Tx, scope: Scope, draft: Draft) -> Record | None:
    """Return the record that already holds a screened draft's framework object, if there is one.

    Raises InvalidInput when it holds another text under the same framework id and version.
    """
    if draft.framework_id is None:
        return None
    row = tx.one(
        f"select {COLUMNS}, audience = 0 from record "
        "where ws = :ws and thread = :thread and fid = :fid and version = :version",
        ws=scope.ws,
        thread=encode(draft.thread or ""),
        fid=encode(draft.framework_id),
        version=draft.version,
    )
    if row is None:
        return None
    if not row[-1]:
        raise InvalidInput(
            "This framework id is that of a record for another audience.",
            remedy="Use a thread or ids of its own for what is not for everybody.",
        )
    found = Record.from_row(row, scope.name)
    if found.text != draft.text or found.payload != draft.payload:
        raise InvalidInput(
            f"Record {found.id} holds another content under this framework id and version.",
            remedy="Store a changed object with a higher version.",
        )
    return found


def there_already(tx: Tx, scope: Scope, draft: Draft, at: int) -> Record | None:
    """Return the record of a draft's framework object as `existing`; then the workspace is locked."""
    if draft.framework_id is None:
        return None
    guards = lock(tx, scope.ws)
    screened = scope.entering.screened([draft])
    (looked_at,) = guarding.screened(tx, scope, screened, guards, at)
    return existing(tx, scope, looked_at)


def with_free_version(tx: Tx, scope: Scope, draft: Draft) -> Draft:
    """Return the draft with the next version of its framework object that never was stored."""
    if draft.framework_id is None:
        return draft
    thread, version = draft.thread or "", draft.version
    while tx.one(
        "select 1 from record "
        "where ws = :ws and thread = :thread and fid = :fid and version = :version "
        "union all select 1 from tombstone where ws = :ws and fid_digest = :digest",
        ws=scope.ws,
        thread=encode(thread),
        fid=encode(draft.framework_id),
        version=version,
        digest=fid_digest(scope, thread, draft.framework_id, version),
    ):
        version += 1
    return replace(draft, version=version)


def fid_digest(scope: Scope, thread: str, fid: str, version: int) -> bytes:
    """Return the keyed digest by which a tombstone knows an object of a framework."""
    named = f"{len(thread)}:{thread}{version}:{fid}".encode("utf-8", "surrogatepass")
    return hmac.digest(scope.secret, named, hashlib.sha256)[:16]


def call_digest(scope: Scope, thread: str, call: str) -> bytes:
    """Return the keyed digest by which a tombstone knows the call that an erased result answered."""
    named = f"call:{len(thread)}:{thread}{call}".encode("utf-8", "surrogatepass")
    return hmac.digest(scope.secret, named, hashlib.sha256)[:16]


def said(text: str) -> str:
    """Return what stands for an erased document's text in the place of a call: see call_digest.

    By it a copy that another system still has is told from what has taken its place there. Systems
    may keep spaces in another way.
    """
    return "document:" + " ".join(text.replace("\0", " ").split())


def _refuse_erased(tx: Tx, scope: Scope, drafts: Sequence[Draft]) -> None:
    for draft in drafts:
        if draft.framework_id is None:
            continue
        digest = fid_digest(scope, draft.thread or "", draft.framework_id, draft.version)
        erased = tx.one(
            "select id from tombstone where ws = :ws and fid_digest = :digest",
            ws=scope.ws,
            digest=digest,
        )
        if erased is not None:
            raise ContextForgotten(
                f"The object was erased as record {erased[0]}; a late write cannot bring it back.",
                remedy="Drop it, or store it as a new object with an id of its own.",
            )
