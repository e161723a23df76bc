"""DeLLMSaver: a LangGraph checkpointer whose checkpoints can forget.

A swap-in for the stock savers. Source of the interface: langgraph.checkpoint.base of
langgraph-checkpoint 4.3, `BaseCheckpointSaver`; the stock `InMemorySaver` where it is silent.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from dellm import InvalidInput, Memory

from .addresses import Address, thread_name
from .channels import Channels, channels_of
from .options import checked_key
from .questions import keep_questions
from .tenants import Tenanted, workspace_named
from .waiting import until, wait
from .workspace import Workspace
from .writing import Writer

UNTOLD = "~untold"  # the path of a task where LangGraph was kept from telling it


class DeLLMSaver(Tenanted, BaseCheckpointSaver[Any]):
    """Keeps a graph's checkpoints in a Memory, so that a forget reaches every one of them.

    `workspace` names the key of `configurable` that says in whose workspace a run is; without it
    everything is in the workspace of `memory`. `serde` writes what is not a message. `schema` is
    the graph's state type: its Literals carry nobody's text, its defaults take the place of what
    was erased. `defaults`, by channel, are more of those. `untracked` channels depend on nothing.
    `reads` narrows what a node can have read to the channels given. `rebuild` makes a value anew,
    from the surviving values of the other channels, where it was erased.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        workspace: str | None = None,
        serde: SerializerProtocol | None = None,
        schema: Any = None,
        defaults: Mapping[str, Any] | None = None,
        untracked: Collection[str] = (),
        reads: Mapping[str, Collection[str]] | None = None,
        rebuild: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
    ) -> None:
        super().__init__(serde=serde)
        if not isinstance(memory, Memory):
            raise InvalidInput("DeLLMSaver takes a dellm.Memory.")
        self.memory = memory
        self._key = checked_key(workspace)
        self._channels: Channels = channels_of(schema, defaults, untracked, reads, rebuild)
        self._workspaces: dict[tuple[str, int], Workspace] = {}

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str, **options: Any) -> Iterator[Self]:
        """Open a memory at a path or URL for a saver, and close it at the end.

        `embedder=` goes to Memory.open; the other options to the saver.
        """
        with Memory.open(conn_string, embedder=options.pop("embedder", "auto")) as memory:
            yield cls(memory, **options)

    def owner_of(self, configurable: Mapping[str, Any]) -> tuple[int, str]:
        """Return what tells the calls of one memory and workspace from those of any other."""
        name = self.memory.id if self._key is None else str(configurable.get(self._key))
        return self.memory.identity, name

    def workspace_of(self, config: RunnableConfig) -> Workspace:
        """Return the workspace a run is in; InvalidInput where its config names none."""
        return self._of(config)

    def _at(self, config: RunnableConfig, *, any_ns: bool = False) -> Address:
        return Address.of(config, key=self._key, any_ns=any_ns)

    def _of(self, config: RunnableConfig | None) -> Workspace:
        name = self.memory.id
        if self._key is not None:
            said = (config or {}).get("configurable", {})
            name = workspace_named(said, self._key, running=bool(config))
        # A twin made by with_allowlist shares this dict, and has a serializer of its own.
        key = (name, id(self.serde))
        known = self._workspaces.get(key)
        if known is None:
            made = Workspace(self.memory.workspace(name), self.serde, self._channels)
            known = self._workspaces.setdefault(key, made)
        return known

    # writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; return the config that addresses it.

        What was erased meanwhile, and what was made from it, is left out.
        """
        workspace, address = self._of(config), self._at(config)
        wait(partial(workspace.ready_for, address))
        return self._put(workspace, config, checkpoint, metadata, new_versions)

    def _put(
        self,
        workspace: Workspace,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        address = self._at(config)
        Writer(workspace, address, config).put(checkpoint, metadata, new_versions)
        return address.config(address.ns or "", checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote, with what it was made from."""
        workspace, address = self._of(config), self._at(config)
        with workspace.writing(address.place):
            wait(partial(workspace.ready_for_writes, address))
            self._put_writes(workspace, config, writes, task_id, task_path)

    def _put_writes(
        self,
        workspace: Workspace,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> None:
        indexed = [
            (WRITES_IDX_MAP.get(channel, at), channel, value)
            for at, (channel, value) in enumerate(writes)
        ]
        address = self._at(config)
        keep_questions(workspace, address.place, writes)
        # LangGraph tells no path to a subclass or wrapper whose signature does not name it; without
        # one, what a task made would pass for what came from outside.
        path = task_path or ("" if self._is_told_paths() else UNTOLD)
        Writer(workspace, address, config).put_writes(indexed, task_id, path)

    def _is_told_paths(self) -> bool:
        ways = (self.put_writes, self.aput_writes)
        return all("task_path" in inspect.signature(one).parameters for one in ways)

    # reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint the config addresses, or the newest of its thread; None if none."""
        return self._of(config).get(self._at(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the interface's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first, whose metadata equals `filter`; `before` an earlier one."""
        workspace = self._of(config)
        address = None if config is None else self._at(config, any_ns=True)
        # A graph that replays its past names only the checkpoint here, not the thread.
        earlier = (before or {}).get("configurable", {}).get("checkpoint_id")
        if limit is not None and limit <= 0:
            return
        left = limit
        for found in workspace.walk(address, earlier, filter or {}):
            yield found
            if left is not None:
                left -= 1
                if not left:
                    return

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return, for channels kept as writes, the writes since their last stored value, and it."""
        if not channels:
            return {}
        return self._of(config).delta_history(self._at(config), channels)

    # discarding

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread: checkpoints, writes and records; what a late run writes is refused."""
        workspace = self._of(None)
        workspace.delete_thread(_stored_name(workspace, thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata has one of the run ids, and what only they held."""
        self._of(None).checkpoints.delete_runs([str(one) for one in run_ids])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread; a forget reaches the original and the copy from then on."""
        workspace = self._of(None)
        workspace.checkpoints.copy_thread(
            _stored_name(workspace, source_thread_id), thread_name(target_thread_id)
        )

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Thin threads out: "keep_latest" checkpoint of each namespace, or "delete" them all.

        Kept are also the ancestors that a DeltaChannel is read from. Messages that only older
        checkpoints held stay as memory: what was derived from them could not be found otherwise.
        """
        workspace = self._of(None)
        names = [_stored_name(workspace, one) for one in thread_ids]
        if strategy == "delete":
            for name in names:
                workspace.delete_thread(name)
        elif strategy == "keep_latest":
            workspace.checkpoints.keep_newest(names)
        else:
            raise InvalidInput("strategy= is 'keep_latest' or 'delete'.")

    # async: the same, off the loop

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As put; it waits for the writes of its tasks without keeping a thread busy."""
        workspace, address = self._of(config), self._at(config)
        await until(partial(workspace.ready_for, address), here=not address.ns)
        return await asyncio.to_thread(
            self._put, workspace, config, checkpoint, metadata, new_versions
        )

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As put_writes; it waits for the task's checkpoint without keeping a thread busy."""
        workspace, address = self._of(config), self._at(config)
        with workspace.writing(address.place):
            await until(partial(workspace.ready_for_writes, address))
            await asyncio.to_thread(self._put_writes, workspace, config, writes, task_id, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As get_tuple."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the interface's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As list."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(next, found, None)) is not None:
            yield one

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As get_delta_channel_history."""
        return await asyncio.to_thread(
            lambda: self.get_delta_channel_history(config=config, channels=channels)
        )

    async def adelete_thread(self, thread_id: str) -> None:
        """As delete_thread."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As delete_for_runs."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As copy_thread."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As prune."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    # versions

    def get_next_version(self, current: Any, channel: None) -> Any:  # noqa: ARG002 - deprecated
        """Return the next version of a channel: a whole number, or the same form as before.

        Threads adopted from a stock saver have versions like "00000000000000000000000000000003.x".
        """
        if current is None:
            return 1
        if isinstance(current, str):
            number, _, rest = current.partition(".")
            return f"{int(number) + 1:032}.{rest}"
        return int(current) + 1

    @property
    def inexact(self) -> int:
        """How many stored values have parents that may be more than what they were made from."""
        return sum(one.inexact for one in self._workspaces.values())


def _stored_name(workspace: Workspace, thread_id: object) -> str:
    """Return the name of a thread; a number that only LangGraph's graphs were given is its text."""
    name = thread_name(thread_id)
    if isinstance(thread_id, int):
        there = workspace.checkpoints.threads()
        if name not in there and str(thread_id) in there:
            return str(thread_id)
    return name
