"""Whom records are for, in the database: the rows of audiences, and what is made of records.

A transaction sees what its scope's actor may read: every statement that says `audience = 0` is
widened to the ids that `visible` returns. See database.Seen and actor.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, LiteralString

from . import governing
from .actor import EVERYBODY, NOBODY, Actor, Audience, meet
from .database import ASKED, Scope, Tx
from .encoding import decode, encode
from .errors import NotFound
from .governing import AUDIENCES, mark
from .records import Draft

if TYPE_CHECKING:
    from .redacting import Version

GLOBAL, CLOSED = 0, -1  # ids without a row: everybody; nobody but an overseer

_NAMES: LiteralString = "user_name, channel, project, organisation, limits"


def ids_for(tx: Tx, scope: Scope, drafts: Sequence[Draft]) -> list[int] | None:
    """Return the audience of each draft that its scope's actor writes; None where all are global.

    Those of what is made of records are narrowed once it has its parents: see narrow.
    Raises InvalidInput for a word that means nothing for the actor.
    """
    actor = scope.actor or NOBODY
    governed = any(one.retention is not None or one.sensitivity is not None for one in drafts)
    if actor.usual == "global" and not governed and all(one.audience is None for one in drafts):
        return None
    policy = governing.current(tx, scope) if governed else None
    known: dict[tuple[str | int | None, tuple[str, ...]], int] = {}
    found = []
    for one in drafts:
        limits = () if policy is None else policy.limits_of(one)
        said = (one.audience, limits)
        if said not in known:
            known[said] = _chosen(tx, scope, actor, *said)
        found.append(known[said])
    return found if any(found) else None


def _chosen(
    tx: Tx, scope: Scope, actor: Actor, said: str | int | None, limits: tuple[str, ...]
) -> int:
    if isinstance(said, int):  # of the record in whose place it comes, limits and all
        return said
    return id_of(tx, scope, replace(actor.chosen(said), limits=limits))


def id_of(tx: Tx, scope: Scope, audience: Audience | None) -> int:
    """Return the id of an audience, which gets one where it has none; CLOSED for None.

    The caller has locked the workspace.
    """
    if audience is None or audience == EVERYBODY:
        return CLOSED if audience is None else GLOBAL
    words = ("user", "channel", "project", "organisation", "limits")
    names = dict(zip(words, (*_stored(audience), _written(audience)), strict=True))
    row = tx.one(
        "select id from audience where ws = :ws "
        "and coalesce(user_name, '-') = coalesce(cast(:user as text), '-') "
        "and (user_name is null) = (cast(:user as text) is null) "
        "and coalesce(channel, '-') = coalesce(cast(:channel as text), '-') "
        "and (channel is null) = (cast(:channel as text) is null) "
        "and coalesce(project, '-') = coalesce(cast(:project as text), '-') "
        "and (project is null) = (cast(:project as text) is null) "
        "and coalesce(organisation, '-') = coalesce(cast(:organisation as text), '-') "
        "and (organisation is null) = (cast(:organisation as text) is null) "
        "and coalesce(limits, '') = coalesce(cast(:limits as text), '')",
        ws=scope.ws,
        **names,
    )
    if row is not None:
        return int(row[0])
    made = tx.one(
        f"insert into audience(ws, id, {_NAMES}) "
        "select cast(:ws as bigint), coalesce(max(id), 0) + 1, cast(:user as text), "
        "cast(:channel as text), cast(:project as text), cast(:organisation as text), "
        "cast(:limits as text) from audience where ws = :ws returning id",
        ws=scope.ws,
        **names,
    )
    mark(tx, scope.ws, AUDIENCES)
    return CLOSED if made is None else int(made[0])


def _stored(audience: Audience) -> tuple[str | None, ...]:
    return tuple(None if one is None else encode(one) for one in audience.names)


def _written(audience: Audience) -> str | None:
    return json.dumps(audience.limits) if audience.limits else None


def of_ids(tx: Tx, ws: int, ids: Iterable[int]) -> dict[int, Audience | None]:
    """Return audiences by id; None for the one that is for nobody."""
    wanted = set(ids)
    found: dict[int, Audience | None] = {CLOSED: None, GLOBAL: EVERYBODY}
    if left := sorted(wanted - found.keys()):
        rows = tx.all(
            f"select id, {_NAMES} from audience where ws = :ws and id in :ids", ws=ws, ids=left
        )
        for id_, *names, limits in rows:
            user, channel, project, organisation = map(_text, names)
            found[id_] = Audience(user, channel, project, organisation, limits=_read(limits))
    return {one: found.get(one) for one in wanted}


def _text(stored: str | None) -> str | None:
    return None if stored is None else decode(stored)


def _read(limits: str | None) -> tuple[str, ...]:
    return () if limits is None else tuple(json.loads(limits))


def of_records(tx: Tx, ws: int, ids: Sequence[int]) -> dict[int, int]:
    """Return the id of each record's audience."""
    rows = tx.all(
        "select id, audience from record where ws = :ws and id in :ids", ws=ws, ids=list(ids)
    )
    return {row[0]: row[1] for row in rows}


def visible(tx: Tx, scope: Scope, actor: Actor) -> list[int]:
    """Return the ids of the audiences that an actor is of, and whose limits its role may read.

    What a limit is to whom is the policy's to say, as it is now, and whether those who act in one
    project are of another's audiences.
    """
    user, channel, project, organisation = _stored(actor.audience)
    rows = tx.all(
        "select id, limits, project from audience where ws = :ws "
        "and (user_name is null or user_name = cast(:user as text)) "
        "and (channel is null or channel = cast(:channel as text)) "
        "and (project is null or cast(:project as text) is not null) "
        "and (organisation is null or organisation = cast(:organisation as text)) order by id",
        ws=scope.ws,
        user=user,
        channel=channel,
        project=project,
        organisation=organisation,
    )
    if not any(row[1] is not None or row[2] not in {None, project} for row in rows):
        return [GLOBAL, *(row[0] for row in rows)]
    policy = governing.current(tx, scope)
    may = policy.open_limits(actor.role)
    return [
        GLOBAL,
        *(
            id_
            for id_, limits, of in rows
            if may.issuperset(_read(limits)) and (policy.cross_project or of in {None, project})
        ),
    ]


def readable(tx: Tx, scope: Scope, ids: Iterable[int]) -> set[int]:
    """Return those of the records that the scope's actor may read, as far as that is the question."""
    wanted = sorted(set(ids))
    if not wanted:
        return set()
    rows = tx.all(
        "select id from record where ws = :ws and id in :ids and audience = 0",
        ws=scope.ws,
        ids=wanted,
    )
    return {row[0] for row in rows}


def asked_for(tx: Tx, scope: Scope, ids: Sequence[int]) -> set[int]:
    """Return those of the records that who asks may read: all of them for the workspace's owner."""
    if scope.asking is None or scope.asking.overseer or not ids:
        return set(ids)
    rows = tx.all(
        f"select id from record where ws = :ws and id in :ids and {ASKED}",
        ws=scope.ws,
        ids=list(ids),
    )
    return {row[0] for row in rows}


def label(actor: Actor | None) -> str:
    """Return what tells what an actor writes from what is for other audiences; "" for everybody."""
    audience = (actor or NOBODY).chosen(None)
    return "" if audience == EVERYBODY else json.dumps(audience.names)


def labels(tx: Tx, scope: Scope) -> list[str]:
    """Return the labels of the audiences that the scope's actor is of; of all for an overseer."""
    actor = scope.actor or NOBODY
    rows = tx.all(f"select {_NAMES} from audience where ws = :ws order by id", ws=scope.ws)
    known = [Audience(*map(_text, names)) for *names, _ in rows]
    return ["", *dict.fromkeys(json.dumps(one.names) for one in known if one.holds(actor))]


def require_readable(tx: Tx, scope: Scope, ids: Iterable[int]) -> None:
    """Raise NotFound where the scope's actor may not read one of the records, as if it were not there."""
    wanted = set(ids)
    if hidden := wanted - readable(tx, scope, wanted):
        raise NotFound(f"The context names {len(hidden)} record(s) that are not there to be read.")


def narrow(tx: Tx, scope: Scope, ids: Sequence[int], bits: int) -> None:
    """Let no record be for more than all that it was made from is for, and its copies.

    `bits` are those of the workspace before it was stored: see governing. The ids are of records
    that were just stored with all their parents, ascending; the parents are right already, or among
    them.
    """
    if not bits & AUDIENCES:
        return
    while ids and _narrowed(tx, scope, ids) and len(ids) > 1:
        continue


def _narrowed(tx: Tx, scope: Scope, ids: Sequence[int]) -> bool:
    rows = tx.all(
        "with recursive up(child, node) as ("
        " select child, parent from edge where ws = :ws and child in :ids"
        " union"
        " select up.child, e.parent from up cross join edge e"
        " where e.ws = :ws and e.child = up.node and up.node < 0) "
        "select distinct up.child, r.audience from up cross join record r"
        " where r.ws = :ws and r.id = up.node and r.audience <> 0",
        ws=scope.ws,
        ids=list(ids),
    )
    if not rows:
        return False
    above: dict[int, set[int]] = {}
    for child, audience in rows:
        above.setdefault(child, set()).add(audience)
    own = of_records(tx, scope.ws, sorted(above))
    known = of_ids(tx, scope.ws, {*own.values(), *(one for some in above.values() for one in some)})
    changed = {}
    for child, found in above.items():
        met = [known[one] for one in {*found, own[child]}]
        whole = [one for one in met if one is not None]
        audience = meet(whole) if len(whole) == len(met) else None
        if audience is None and len(whole) == len(met):
            audience = _across_projects(tx, scope, known[own[child]], whole)
        if (id_ := id_of(tx, scope, audience)) != own[child]:
            changed[child] = id_
    tx.many(
        "update record set audience = :audience where ws = :ws and id = :id",
        [{"ws": scope.ws, "id": one, "audience": audience} for one, audience in changed.items()],
    )
    return bool(changed)


def _across_projects(
    tx: Tx, scope: Scope, own: Audience | None, all_: Sequence[Audience]
) -> Audience | None:
    """Return the audience of what is made in one project from what is another's, None for nobody.

    Where the policy lets projects read each other's records it is for the project it is made in.
    """
    if own is None or not governing.current(tx, scope).cross_project:
        return None
    return meet([own, *(replace(one, project=own.project) for one in all_)])


def inherited(tx: Tx, ws: int, versions: Mapping[int, Version]) -> dict[int, Version]:
    """Return the new versions of records, by old id, for whom the old ones were."""
    known = of_records(tx, ws, list(versions)) if versions else {}
    return {
        old: replace(one, draft=replace(one.draft, audience=known[old])) if known.get(old) else one
        for old, one in versions.items()
    }


def prune(tx: Tx, ws: int) -> int:
    """Delete the audiences that no record has any more, names and all; return how many."""
    return tx.run(
        "delete from audience where ws = :ws and not exists (select 1 from record r "
        "where r.ws = :ws and r.audience <> 0 and r.audience = audience.id)",
        ws=ws,
    )
