"""The values of a store's items: what is kept of them, and how they are read back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from langgraph.store.base import Item, PutOp, SearchItem

from dellm import Draft, InvalidInput
from dellm import Item as Kept

_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
# What redaction writes in the place of a number or of a whole text with its quotation marks.
_BARE = re.compile(r"(?<=[:\[,{])\s*\[redacted\]\s*(?=[,\]}:])")


def draft_of(op: PutOp) -> Draft:
    """Return the record of an item: its value as readable JSON, its name as metadata.

    So what it says and what it is called can both be asked for by value. What has no JSON form, or
    names that are no texts, is refused with InvalidInput, as LangGraph's stores on databases do.
    """
    if not isinstance(op.value, Mapping):
        raise InvalidInput("The value of an item is no mapping.")
    try:
        text = orjson.dumps(dict(op.value)).decode()
    except TypeError:
        text = ""
    if not text:
        raise InvalidInput("The value of an item holds what has no JSON form.")
    named = {"namespace": list(op.namespace), "key": op.key}
    return Draft(text, role="item", kind="state", metadata=named)


def value_of(text: str) -> dict[str, Any] | None:
    """Return the value that a record's text holds; None where redaction has left none."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = _mended(text)
    return found if isinstance(found, dict) else None


def _mended(text: str) -> Any:
    try:
        return orjson.loads(_BARE.sub('"[redacted]"', text))
    except orjson.JSONDecodeError:
        return None


def item_of(kept: Kept) -> Item | None:
    """Return an item as a get gives it."""
    value = value_of(kept.text)
    if value is None:
        return None
    created, updated = _times(kept)
    return Item(
        value=value, key=kept.name, namespace=kept.space, created_at=created, updated_at=updated
    )


def found_of(kept: Sequence[Kept]) -> list[SearchItem]:
    """Return items as a search gives them, with their scores."""
    values = [(one, value_of(one.text)) for one in kept]
    return [
        SearchItem(one.space, one.name, value, *_times(one), one.score)
        for one, value in values
        if value is not None
    ]


def _times(kept: Kept) -> tuple[datetime, datetime]:
    """Return when an item was created and when it was updated: mostly at once."""
    created = _BEGIN + timedelta(microseconds=kept.created_at)
    if kept.updated_at == kept.created_at:
        return created, created
    return created, _BEGIN + timedelta(microseconds=kept.updated_at)
