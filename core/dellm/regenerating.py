"""Regenerating: a reply that was made from what goes is asked again without it, not only erased.

So a conversation stays whole: what the user said stays where it is, and each reply to it is what the
model says of the context that survives, with the earlier replies as they are by then. The old text
is never an input. It works like a rebuild (see rebuilding): the texts are made outside of any
transaction, checked again inside the one that erases, and what fails is erased.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from . import correcting, exposure_rows, reading, redacting
from .arguments import check_callable, check_choice
from .context import estimated_tokens
from .database import Scope, Tx
from .encoding import decode, encode
from .errors import InvalidInput
from .making import model_of, versions_of
from .plan import ON_DEPENDENTS, Asked, Dependent, Plan, in_process
from .records import Draft, Record, Status

REPLY = ""  # what replies ask for in the place of a rebuilder's name, which is never blank
_SPOKEN = "message"
# How the frameworks' stored messages name a call of a tool; a longer word that holds one is another.
_CALL = re.compile(rb"(?<![A-Za-z_])(?:tool_calls?|tool_use|function_call)(?![A-Za-z_])")

Ask = Callable[[Record, Sequence[Record]], "str | None"]


@dataclass(slots=True)
class Asker:
    """What asks the model again, and how often it did: once for every reply, failures included.

    `sent` are, by reply, the model that was asked last and what it was sent, where it is an outside
    one.
    """

    ask: Ask = field(repr=False)
    calls: int = 0
    sent: dict[int, tuple[str, list[int]]] = field(default_factory=dict)

    @property
    def model(self) -> str | None:
        """Which model is asked, "provider/name", where its function says so by a `model`."""
        return model_of(self.ask)

    def __call__(self, record: Record, context: Sequence[Record]) -> str | None:
        """Return the new text; raises whatever the caller's function does."""
        self.calls += 1
        if (model := self.model or record.model) is not None and not in_process(model):
            self.sent[record.id] = model, [one.id for one in context]
        made = self.ask(without_content(record), context)
        return made if isinstance(made, str) else None


def names(known: Mapping[str, object], on_dependents: str, mode: str) -> Mapping[str, int | None]:
    """Return the names by which a plan's records may be made anew, that of the replies if wanted.

    With each the version of the derivation of that name, None where it is none.

    Raises InvalidInput for a choice there is not, and where a suppression is to be undone later.
    """
    check_choice(on_dependents, ON_DEPENDENTS, "on_dependents=")
    named = versions_of(known)
    if on_dependents == "erase":
        return named
    if mode == "suppress":
        raise InvalidInput(
            "What is only suppressed is not asked again: undoing it would leave two replies.",
            remedy='Use mode="erase" or mode="redact".',
        )
    return {**named, REPLY: None}


def asker(ask: Ask | None, wanted: Collection[str]) -> Asker | None:
    """Return what asks again, None where it is not wanted; InvalidInput where there is nothing to ask."""
    if ask is not None:
        check_callable(ask, "regenerate=")
    if REPLY not in wanted:
        return None
    if ask is None:
        raise InvalidInput(
            "There is no model to ask the replies of again.",
            remedy="Pass regenerate=, or register one with memory.regenerator(...).",
        )
    return Asker(ask)


def without_content(record: Record) -> Record:
    """Return the reply that is to be replaced, as a model may know it: where it stands, not what it says."""
    return replace(record, text="", payload=None, metadata={}, subject=None)


def anew(record: Record, text: str) -> Record:
    """Return a reply with its new text, as it stands in the contexts of later ones."""
    return replace(without_content(record), text=text, version=record.version + 1)


def draft_of(record: Record, text: str, holds: Callable[[Any], bool]) -> Draft:
    """Return the new version of a reply: its place, role and governance with the new text.

    The framework's object and its details were made with the old text, so they go; a yes or no
    holds no content, and may say how the record is to be treated.
    """
    draft = redacting.draft_of(record, text, holds)
    kept = {key: value for key, value in (draft.metadata or {}).items() if type(value) is bool}
    return replace(draft, metadata=kept)


def replies(tx: Tx, scope: Scope, ids: Iterable[int], at: int) -> set[int]:
    """Return which of the records are replies in words that may be used: no calls of tools."""
    rows = tx.all(
        "select id from record where ws = :ws and id in :ids and kind = :kind and role = :role "
        "and not exists (select 1 from edge e join record r on r.ws = :ws and r.id = e.child "
        "where e.ws = :ws and e.parent = record.id and e.pos = 1 and r.kind = 'tool')",
        ws=scope.ws,
        ids=sorted(ids),
        kind=_SPOKEN,
        role=encode("assistant"),
    )
    found = reading.several(tx, scope, [row[0] for row in rows], at)
    return {id_ for id_, one in found.items() if _is_reply(one)}


def _is_reply(record: Record) -> bool:
    calls = record.payload is not None and _CALL.search(record.payload)
    return record.status == Status.ACTIVE and bool(record.text.strip()) and not calls


def questions(tx: Tx, scope: Scope, contexts: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return what each reply answers: the last that a user said of its context, where somebody did.

    What was said in the reply's own thread comes before what was found elsewhere.
    """
    rows = tx.all(
        "select id, thread, role = :user and kind = :kind from record where ws = :ws and id in :ids",
        ws=scope.ws,
        ids=sorted({*contexts, *(one for some in contexts.values() for one in some)}),
        user=encode("user"),
        kind=_SPOKEN,
    )
    thread = {row[0]: row[1] for row in rows}
    said = {row[0] for row in rows if row[2]}
    found: dict[int, int] = {}
    for id_, context in contexts.items():
        users = (one for one in reversed(context) if one in said)
        last = next(users, None)
        if last is not None:
            own = (one for one in chain([last], users) if thread[one] == thread[id_])
            found[id_] = next(own, last)
    return found


def question_of(reply: Record, context: Sequence[Record]) -> Record | None:
    """Return what a reply answers, of the records of its context; see questions."""
    users = [one for one in context if (one.role, one.kind) == ("user", _SPOKEN)]
    own = [one for one in users if one.thread == reply.thread]
    return next(reversed(own or users), None)


def shortened(
    tx: Tx, scope: Scope, plan: Plan, unit: str, region: str
) -> dict[int, redacting.Version]:
    """Return what a plan leaves of its matches: a question without what was said in it can be asked."""
    if plan.selector.corrected:
        matched = [one.id for one in plan.matches]
        texts = plan.selector.corrected
        return correcting.new_versions(tx, scope, matched, plan.ids, texts, region)
    if plan.mode != "redact":
        return {}
    return redacting.new_versions(tx, scope, plan, unit, region)


def named(
    versions: Mapping[int, redacting.Version], plan: Plan, asker: Asker | None
) -> dict[int, redacting.Version]:
    """Return new versions by old id, those of replies with the model that they are now from."""
    model = None if asker is None else asker.model
    replies = {one.id for one in plan.regenerates} if model else ()
    return {
        id_: replace(one, draft=replace(one.draft, model=model)) if id_ in replies else one
        for id_, one in versions.items()
    }


def note_lost(tx: Tx, scope: Scope, asker: Asker | None, made: Collection[int], at: int) -> None:
    """Note what outside models were sent for replies that did not come of it, unlike `made`."""
    for id_, (model, context) in ({} if asker is None else asker.sent).items():
        if id_ not in made:
            exposure_rows.note_living(tx, scope.ws, context, (model, False), at)


def asked(
    tx: Tx,
    scope: Scope,
    found: Iterable[Dependent],
    sources: Mapping[int, Sequence[int]],
    twins: Mapping[int, Collection[int]],
) -> tuple[Asked, ...]:
    """Return the replies that a plan would have asked again, each with what that costs.

    A reply that is kept twice is asked once. The tokens are those of the texts that would be sent,
    with the old length where a text is made anew itself.
    """
    there = list(found)
    sizes = _sizes(tx, scope, {one for reply in there for one in sources[reply.id]})
    made: list[Asked] = []
    done: set[int] = set()
    for reply in there:
        again = not done.isdisjoint(twins[reply.id])
        done.add(reply.id)
        tokens = 0 if again else sum(sizes.get(one, 0) for one in sources[reply.id])
        made.append(Asked(reply.id, reply.trace, 0 if again else 1, tokens))
    return tuple(made)


def _sizes(tx: Tx, scope: Scope, ids: Collection[int]) -> dict[int, int]:
    rows = tx.all(
        "select id, text from record where ws = :ws and id in :ids", ws=scope.ws, ids=sorted(ids)
    )
    return {row[0]: estimated_tokens(decode(row[1])) for row in rows}
