"""`dellm adopt llamaindex`: what stock memories stored, read into a memory that can forget.

The JSON of a SimpleChatStore or of a ChatMemoryBuffer, of any version, and the tables of
SQLAlchemyChatStore; what Memory had archived there stays so. Nobody saw the prompts: how contexts are inferred
is said at dellm.adopt_messages.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.storage.chat_store.base_db import MessageStatus

from dellm import InvalidInput, Memory
from dellm.adapting import adopt_databases, adopt_messages, adopt_tables

from . import exact_json
from .messages import draft_of
from .tags import answered_call, call_ids

GIVERS = frozenset({MessageRole.USER, MessageRole.SYSTEM, MessageRole.DEVELOPER})
LAYOUT = adopt_tables.Layout(
    session="key",
    message="data",
    usual="llama_index_memory",
    order=("timestamp", "id"),
    made_at="timestamp",
    status="status",
)
SQLITE = b"SQLite format 3\0"  # how each of its files begins
# What stands in a table as a time: once seconds, now nanoseconds since 1970, up to the year 9999.
LAST = 253_402_300_799
NANO = 1_000_000_000


def adopt(
    source: str,
    memory: Memory,
    *,
    threads: Collection[str] = (),
    table: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, int | list[str]]:
    """Read a SimpleChatStore, a ChatMemoryBuffer or a table of SQLAlchemyChatStore into a workspace.

    `source` is the path of a JSON file or of a SQLite file, or a database's URL; it is opened
    read-only. `threads`: only these sessions, which are the keys of the store. `table`: where in a
    database the messages are; see open_histories. `progress(done, total)` counts messages. It can be
    broken off and repeated at any time. Messages have no ids: one is known again by what it says and
    by how often that was said before it in its session, wherever it stands by then. So a list that
    was written anew brings nothing back that was forgotten.

    Returns the numbers of threads and messages that were seen, of the messages that were written and
    of those that were refused (they were erased before, or made from what was), and the places of
    these and of what is no message: the ids of rows, or `key:position` in a file, counted from 0.
    Raises InvalidInput, StorageError, UnsupportedHere.
    """
    with _opened(source, table) as histories:
        return adopt_messages.adopt_messages(
            histories, memory, Reading, name=_name, threads=threads, progress=progress
        )


def _opened(source: str, table: str | None) -> AbstractContextManager[adopt_tables.Histories]:
    if "://" in source or _is_sqlite(Path(source)):
        return adopt_tables.open_histories(source, table, LAYOUT)
    if table is not None:
        raise InvalidInput("A file of JSON has no tables.")
    return nullcontext(StoredLists(_stores(_parsed(source))))


def _is_sqlite(path: Path) -> bool:
    if not path.is_file() or adopt_databases.is_busy(path):
        return True  # then that is what has something to say of it
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _name(key: adopt_tables.Key) -> str | None:
    """Return the thread of a session; None for one that has no name."""
    return key if isinstance(key, str) and key.strip() else None


class Reading:
    """Tells of the rows of one session what is to be kept."""

    def __init__(self, session: adopt_messages.Session) -> None:
        self._session = session
        self._said: Counter[str] = Counter()

    def __call__(self, row: adopt_tables.Row) -> adopt_messages.Told | None:
        """Return what is to be kept of a row; None where it holds no message."""
        message = message_of(row)
        if message is None:
            return None
        return adopt_messages.Told(
            draft_of(message, self._session.thread, self._named(message)),
            given=message.role in GIVERS,
            calls=call_ids(message),
            answers=answered_call(message),
            made_at=_made_at(row.made_at),
            archived=row.status == MessageStatus.ARCHIVED.value,
        )

    def _named(self, message: ChatMessage) -> str:
        """Return an id for what a message says, with how often that was said up to here.

        The digest is keyed, so that it says nothing of what was erased.
        """
        said = exact_json.sorted_text(message)
        digest = self._session.memory.items.digest([said])[:32]
        self._said[digest] += 1
        return f"adopted:{digest}:{self._said[digest]}"


def message_of(row: adopt_tables.Row) -> ChatMessage | None:
    """Return the message that a row holds; None where it holds none that can be read."""
    try:
        stored = row.message
        # A text that never was UTF-8 cannot be encoded.
        said = json.loads(stored.encode() if isinstance(stored, str) else stored or b"")
        return ChatMessage(**said) if _tells(said) else None
    except Exception:  # noqa: BLE001 - whatever is wrong with a row, the others are read
        return None


def _tells(said: Any) -> bool:
    """Whether something is a message, as it is stored now or was before it had blocks."""
    return isinstance(said, dict) and "role" in said and ("blocks" in said or "content" in said)


def _made_at(told: Any) -> int | None:
    """Return the microseconds since 1970 that a time in a table stands for."""
    if not isinstance(told, int):
        return None
    if 0 < told <= LAST:
        return told * 1_000_000
    return told // 1_000 if NANO * NANO // 10 < told <= LAST * NANO else None


# files


class StoredLists:
    """The messages of a file: by session, lists of mappings as they are stored."""

    table = "store"

    def __init__(self, stores: Mapping[str, Sequence[Any]]) -> None:
        self._stores = stores

    def sizes(self) -> dict[adopt_tables.Key, int]:
        """See Histories."""
        return {key: len(said) for key, said in self._stores.items()}

    def sessions(self) -> Iterator[tuple[adopt_tables.Key, list[adopt_tables.Key]]]:
        """See Histories."""
        for key, said in self._stores.items():
            yield key, [(key, at) for at, _ in enumerate(said)]

    def rows(self, ids: Sequence[adopt_tables.Key]) -> Iterator[adopt_tables.Row]:
        """See Histories."""
        for key, at in ids:
            yield adopt_tables.Row(f"{key}:{at}", json.dumps(self._stores[key][at]))


def _parsed(source: str) -> Any:
    """Return what a file's JSON says; an older version wrote JSON of a text that is JSON.

    Raises InvalidInput that says where it is none.
    """
    try:
        found = json.loads(Path(source).read_text("utf-8-sig"))
        return json.loads(found) if isinstance(found, str) else found
    except UnicodeDecodeError as error:
        wrong = f"byte {error.start} is no UTF-8"
    except json.JSONDecodeError as error:
        wrong = f"it is none at line {error.lineno}, column {error.colno}"
    except RecursionError:
        wrong = "it is nested too deeply"
    raise InvalidInput(f"The source is neither a SQLite file nor JSON: {wrong}.")


def _stores(found: Any) -> Mapping[str, Sequence[Any]]:
    """Return the lists of messages in a parsed file, by session. Raises InvalidInput."""
    said = found if isinstance(found, dict) else {}
    if isinstance(said.get("chat_store"), dict):  # of a ChatMemoryBuffer
        said = said["chat_store"]
    elif isinstance(said.get("chat_history"), list):  # of a very old one
        said = {"store": {"chat_history": said["chat_history"]}}
    stores = said.get("store")
    if not isinstance(stores, dict):
        raise InvalidInput("The source holds no SimpleChatStore and no ChatMemoryBuffer.")
    for at, one in enumerate(stores.values()):
        if not isinstance(one, list):
            raise InvalidInput(f"The source holds no list of messages under its key {at}.")
    return stores
