"""Derivations: texts made from records by a registered function, stored with these as parents.

A result names its derivation and version in its metadata, and its sources by a keyed digest in its
framework id, by which the same derivation of the same sources finds it again. It holds what its
sources hold, so it takes over from them whose it is, what for, how sensitive, and until when.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from . import audiences, exposure_rows, provenance, reading, sequences, storing
from .database import Scope, Tx
from .encoding import encode, load_json
from .engine import Engine
from .errors import ContextForgotten, CredentialRefused, DerivationError, InvalidInput
from .making import Derivation, Made, counted, derived_by
from .plan import in_process
from .records import Draft, Record
from .storing import COLUMNS

PREFIX = "derived:"  # of the framework ids of what derivations made


def registered(engine: Engine, name: str) -> Derivation:
    """Return the derivation of a name; InvalidInput where none is registered in this open memory."""
    found = engine.rebuilders.get(name)
    if not isinstance(found, Derivation):
        raise InvalidInput(
            "No derivation of this name is registered.",
            remedy="Register its function with memory.derivation(name).",
        )
    return found


def derive(
    engine: Engine, workspace: str, name: str, ids: Sequence[int], thread: str | None, kind: str
) -> Record:
    """Return what a derivation makes of the sources: the record that is there, else a new one.

    See Memory.derive for the errors.
    """
    at = engine.options.clock()
    with engine.reading(workspace) as (tx, scope):
        maker = registered(engine, name)
        sources = _living(tx, scope, ids, at)
        named = framework_id(scope, maker.name, maker.version, kind, thread, ids)
        found = _existing(tx, scope, named, thread, at)
    if found is not None:
        return found
    text = _made_text(engine, workspace, maker, sources)
    draft = drafted(maker, text, sources, thread=thread, kind=kind)
    try:
        return _stored(engine, workspace, maker, draft, ids, at)
    except (ContextForgotten, CredentialRefused):
        with engine.writing(workspace) as (tx, scope):
            note_lost(tx, scope, maker, sources, at)
        raise


def _stored(
    engine: Engine, workspace: str, maker: Derivation, draft: Draft, ids: Sequence[int], at: int
) -> Record:
    """Return the record that is there by now, else store the draft as one."""
    thread = draft.thread
    with engine.writing(workspace) as (tx, scope):
        storing.lock(tx, scope.ws)
        named = framework_id(scope, maker.name, maker.version, draft.kind, thread, ids)
        if (found := _existing(tx, scope, named, thread, at)) is not None:
            return found
        draft = with_name(tx, scope, draft, named)
        made, numbers = storing.store(tx, scope, [draft], at)
        tip = sequences.attach_context(
            tx, scope, made[0].id, ids, thread or "", numbers.sequence, engine.tips
        )
        audiences.narrow(tx, scope, [made[0].id], numbers.governed)
    if tip is not None:
        engine.tips.note(scope.ws, thread or "", tip)
    return made[0]


def _living(tx: Tx, scope: Scope, ids: Sequence[int], at: int) -> list[Record]:
    """Return the sources in order; ContextForgotten, NotFound where one may not be used."""
    found = reading.several(tx, scope, ids, at)
    if len(found) < len(set(ids)):
        provenance.require_usable(tx, scope.ws, ids)
        raise ContextForgotten("A source is kept no longer than until now.")
    return [found[one] for one in ids]


def _existing(tx: Tx, scope: Scope, fid: str, thread: str | None, at: int) -> Record | None:
    row = tx.one(
        f"select {COLUMNS} from record where ws = :ws and thread = :thread and fid = :fid "
        # One that waits for confirmation is there too.
        "and status in (0, 2) and audience = 0 and (retention_until is null or retention_until > :at) "
        "order by version desc limit 1",
        ws=scope.ws,
        thread=encode(thread or ""),
        fid=encode(fid),
        at=at,
    )
    return None if row is None else Record.from_row(row, scope.name)


def _made_text(engine: Engine, workspace: str, maker: Derivation, sources: Sequence[Record]) -> str:
    made, error = attempted(maker, sources)
    if made.text is not None:
        return made.text
    with engine.writing(workspace) as (tx, scope):
        note_lost(tx, scope, maker, sources, engine.options.clock())
    raise DerivationError(f"The derivation made no text: {error}.")


def note_lost(tx: Tx, scope: Scope, maker: Derivation, sources: Sequence[Record], at: int) -> None:
    """Note that an outside model was sent records, for a text that did not come of it."""
    if maker.model is None or in_process(maker.model):
        return
    storing.lock(tx, scope.ws)
    ids = [one.id for one in sources]
    exposure_rows.note_living(tx, scope.ws, ids, (maker.model, False), at)


def attempted(maker: Derivation, sources: Sequence[Record]) -> tuple[Made, str]:
    """Return what a derivation makes, and why it is no text: a class of errors, "no text" or ""."""
    try:
        made = counted(maker.make(list(sources)))  # it may sort its list, say
    except Exception as failure:  # noqa: BLE001 - the caller's own code, which may ask a model
        return Made(None), type(failure).__name__
    return made, "" if made.text is not None else "no text"


def drafted(
    maker: Derivation, text: str, sources: Sequence[Record], *, thread: str | None, kind: str
) -> Draft:
    """Return what is to be stored of a text: governed as all of its sources are."""
    until = [one.retention_until for one in sources if one.retention_until is not None]
    return Draft(
        text,
        role="assistant",
        thread=thread,
        kind=kind,
        metadata=maker.metadata,
        subject=_shared(sources, lambda one: one.subject),
        purpose=_shared(sources, lambda one: one.purpose),
        sensitivity=_shared(sources, lambda one: one.sensitivity),
        retention_until=min(until, default=None),
        model=maker.model,
    )


def _shared(sources: Iterable[Record], said: Callable[[Record], str | None]) -> str | None:
    """Return what all sources that say something say, None where they differ."""
    found = {one for one in map(said, sources) if one is not None}
    return found.pop() if len(found) == 1 else None


def framework_id(
    scope: Scope, name: str, version: int, kind: str, thread: str | None, ids: Sequence[int]
) -> str:
    """Return the framework id of what a derivation makes of the sources, in their order."""
    said = json.dumps([name, version, kind, thread or "", list(ids)]).encode()
    return PREFIX + hmac.digest(scope.secret, b"derived" + said, hashlib.sha256)[:16].hex()


def with_name(tx: Tx, scope: Scope, draft: Draft, fid: str) -> Draft:
    """Return a draft that is named by its sources, with a version that never was stored."""
    return storing.with_free_version(tx, scope, replace(draft, framework_id=fid, version=1))


def rename(tx: Tx, scope: Scope, ids: Iterable[int]) -> None:
    """Name records that were made anew by the sources they have by now, where they have such names."""
    for id_, record in reading.several(tx, scope, list(ids), None).items():
        by = derived_by(record.metadata)
        if by is None or not (record.framework_id or "").startswith(PREFIX):
            continue
        sources = provenance.context_of(tx, scope.ws, id_)
        named = framework_id(scope, *by, record.kind, record.thread, sources)
        draft = with_name(tx, scope, Draft("", thread=record.thread), named)
        tx.run(
            "update record set fid = :fid, version = :version where ws = :ws and id = :id",
            ws=scope.ws,
            id=id_,
            fid=encode(named),
            version=draft.version,
        )


def of_older_versions(tx: Tx, scope: Scope, maker: Derivation, at: int) -> list[int]:
    """Return the usable records that older versions of a derivation made, ascending."""
    rows = tx.all(
        "select id, metadata from record where ws = :ws and status = 0 "
        "and metadata like :asks order by id",
        ws=scope.ws,
        asks='%"derivation"%',
    )
    by = {row[0]: derived_by(load_json(row[1])) for row in rows}
    older = [
        id_ for id_, one in by.items() if one and one[0] == maker.name and one[1] < maker.version
    ]
    return sorted(reading.several(tx, scope, older, at))
