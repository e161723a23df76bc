"""Where a config points: thread, namespace, checkpoint; and what its reader knew of erasures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from langchain_core.runnables import RunnableConfig

from dellm import InvalidInput, Place

_INT, _STR = "int:", "str:"
OTHERS = "__checkpoint__"  # in the settings: what a checkpoint of another version holds besides
THREADS = ("thread_id", "session_id")  # where a config may name the thread
START = "__start__"  # the channel and the node of a graph's input


class LoadedId(str):
    """A checkpoint's id as a reader got it: `head` is the newest ledger entry at that time.

    A run that begins at this id has nothing in its memory that was erased up to that entry.
    """

    __slots__ = ("generation", "head")

    head: int
    generation: int

    def __new__(cls, cid: str, head: int, generation: int) -> Self:
        """Return the id, equal to the plain one."""
        made = super().__new__(cls, cid)
        made.head = head
        made.generation = generation
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


def thread_name(thread_id: object) -> str:
    """Return the name of a thread by its id; the number 1 and the text "1" are two threads.

    A UUID is its text. Raises InvalidInput for an id that is nothing of these, or blank.
    """
    if isinstance(thread_id, UUID):
        return str(thread_id)
    if isinstance(thread_id, str) and thread_id.strip():
        return f"{_STR}{thread_id}" if thread_id.startswith((_INT, _STR)) else thread_id
    if isinstance(thread_id, int) and not isinstance(thread_id, bool):
        return f"{_INT}{thread_id}"
    raise InvalidInput("thread_id is neither text nor a whole number.")


def thread_said(configurable: Mapping[str, Any]) -> str:
    """Return the name of the thread that a config names. Raises InvalidInput where it names none."""
    found = (configurable[key] for key in THREADS if configurable.get(key) is not None)
    thread = next(found, None)
    if thread is None:
        raise InvalidInput(
            "The config names no thread: there is no thread_id and no session_id in configurable.",
            remedy='Pass configurable={"thread_id": ...}, or thread= where this is made.',
        )
    return thread_name(thread)


def thread_id_of(name: str) -> str | int:
    """Return the id that `thread_name` was given."""
    if name.startswith(_STR):
        return name.removeprefix(_STR)
    return int(name.removeprefix(_INT)) if name.startswith(_INT) else name


@dataclass(frozen=True, slots=True)
class Address:
    """A line of checkpoints and, with `cid`, one of them. `ns` None is any namespace.

    `key` is the configurable that names the workspace, if there is one.
    """

    thread: str
    ns: str | None
    cid: str | None
    above: dict[str, str]
    key: tuple[str, str] | None = None

    @classmethod
    def of(cls, config: RunnableConfig, *, key: str | None = None, any_ns: bool = False) -> Address:
        """Return where a config points; InvalidInput when it names no thread."""
        said = config.get("configurable", {})
        if "thread_id" not in said:
            raise InvalidInput("The config names no thread: configurable has no 'thread_id'.")
        ns = said.get("checkpoint_ns", None if any_ns else "")
        above = said.get("checkpoint_map") or {}
        named = (key, said[key]) if key is not None and key in said else None
        return cls(
            thread_name(said["thread_id"]), ns, said.get("checkpoint_id"), dict(above), named
        )

    def config(self, ns: str, cid: str) -> RunnableConfig:
        """Return the config that addresses a checkpoint of the same thread."""
        said: dict[str, Any] = {
            "thread_id": thread_id_of(self.thread),
            "checkpoint_ns": ns,
            "checkpoint_id": cid,
        }
        if self.key is not None:
            said[self.key[0]] = self.key[1]
        return {"configurable": said}

    @property
    def place(self) -> Place | None:
        """The checkpoint that is addressed."""
        return None if self.cid is None else Place(self.thread, self.ns or "", str(self.cid))

    @property
    def since(self) -> int | None:
        """The ledger entry up to which the addressed checkpoint's reader knew of erasures."""
        return _head(self.cid)

    @property
    def root(self) -> Place | None:
        """The checkpoint of the outermost graph, None where this is its own or it is not known."""
        cid = self.above.get("") if self.ns else None
        return None if cid is None else Place(self.thread, "", str(cid))

    def outer(self, parents: dict[str, str]) -> Place | None:
        """Return the checkpoint of the graph around this one; None for a root graph."""
        if not self.ns:
            return None
        ns = self.ns.rpartition("|")[0]
        cid = str({**parents, **self.above}.get(ns, ""))
        # A task of the functional API names the checkpoint as if what called it were a graph too.
        same = (one for one, other in self.above.items() if cid and str(other) == cid)
        return Place(self.thread, min(same, key=len, default=ns), cid)

    @property
    def outer_since(self) -> int | None:
        """As `since`, of the checkpoint of the graph around this one."""
        return _head(self.above.get((self.ns or "").rpartition("|")[0]))


def _head(cid: str | None) -> int | None:
    return cid.head if isinstance(cid, LoadedId) else None
