"""Where the model calls and tool runs seen in this process are kept: bounded, and safe in threads."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage

from .call_index import CallIndex
from .call_places import Around, owner, parsed, running, saying, stepped, store_tells, with_ambient
from .calls import (
    Call,
    Prompt,
    ToolRun,
    fingerprint,
    generated,
    messages_within,
    returned,
)
from .captured_parts import Kept, Place, Reply, Run, Tool
from .injection import calling_tool, reads_state
from .raw_inputs import RawInputs

if TYPE_CHECKING:
    from uuid import UUID

_Meta = Mapping[str, Any]


class Captured:
    """The model calls and tool runs of this process, the oldest dropped first; safe in threads.

    At most `calls` calls are kept, whose prompts hold about `size` bytes at most, counted as if no
    two prompts shared a message; the newest call is always kept. What was dropped is not silently
    missing: its task then has an opaque call.
    """

    def __init__(self, *, calls: int = 4_096, size: int = 128_000_000) -> None:
        self._most_calls, self._most_size, self._size = calls, size, 0
        self._lock = RLock()
        self._places: OrderedDict[UUID, Place] = OrderedDict()
        self._kept: OrderedDict[UUID, Kept] = OrderedDict()
        self._index = CallIndex(lost=16 * calls)
        self._replies: dict[str, list[Reply]] = {}
        self._moment = 0
        self._tools: OrderedDict[UUID, Tool] = OrderedDict()
        self._tool_calls: dict[str, list[UUID]] = {}
        self._given: weakref.WeakValueDictionary[int, BaseMessage] = weakref.WeakValueDictionary()
        self._said: dict[int, Hashable] = {}
        self._systems: OrderedDict[Hashable, tuple[weakref.ref[BaseMessage], UUID]] = OrderedDict()
        self._everywhere = False
        self._under_way: OrderedDict[UUID, Run] = OrderedDict()  # root runs on threads

    def everywhere(self) -> None:
        """From now on keep also the calls that belong to neither a graph's task nor a thread."""
        self._everywhere = True

    def around(self) -> Around:
        """Return what the code running now is in."""
        place = self._places.get(run) if (run := running()) else None
        if place is None:
            return Around()
        return Around(place.tasks, place.runs, self._tool_call_around(place))

    def of_id(self, run_id: UUID) -> Call | None:
        """Return a call by its own id, None where it is not kept."""
        kept = self._kept.get(run_id)
        return None if kept is None else kept.call

    def of_run(self, run_id: UUID) -> list[Call]:
        """Return the calls made in a run, in order; only known after `everywhere`."""
        with self._lock:
            return self._index.get(("run", run_id))

    def lately(self, owner: Hashable, most: int = 32) -> list[Call]:
        """Return the calls made on a saver of one workspace, of the newest of this process."""
        with self._lock:
            newest = list(islice(reversed(self._kept.values()), most))
        return [one.call for one in newest if one.call.owner == owner]

    def replies_of(self, call: Call) -> list[str]:
        """Return the ids of the messages that a call generated."""
        kept = self._kept.get(call.run_id)
        return [] if kept is None else list(dict.fromkeys(kept.replies))

    def said_in(self, text: str, run_id: UUID) -> Call | None:
        """Return the newest call of a run that generated just this text, None if there is none."""
        said = hash(text)
        with self._lock:
            for call in reversed(self._index.get(("run", run_id))):
                kept = self._kept.get(call.run_id)
                names = set(kept.replies) if kept is not None else ()
                replies = (one for name in names for one in self._replies[name])
                if any(one.call is call and one.text == said for one in replies):
                    return call
        return None

    def of_task(self, task_id: str) -> list[Call]:
        """Return the calls made by a task, in order, those of nested agents and tools included."""
        with self._lock:
            return self._index.get(("task", task_id))

    def of_step(
        self, thread_id: str, step: int, *, owner: Hashable = None, after: int = 0
    ) -> list[Call]:
        """Return the calls of a step of a thread's outermost graph, over all its runs on a saver.

        Calls of graph tasks on this thread whose step is not known are in every step. `after`: only
        those made since that moment.
        """
        with self._lock:
            found = [
                *self._index.get(("step", owner, thread_id, step)),
                *self._index.get(("step", owner, thread_id, None)),
            ]
        return [one for one in found if one.moment > after]

    def now(self) -> int:
        """Return the moment of the newest call."""
        return self._moment

    def of_reply(
        self,
        message: BaseMessage,
        *,
        task_id: str | None = None,
        thread_id: str | None = None,
        owner: Hashable = None,
    ) -> Call | None:
        """Return the call whose generation this message is: same id, and unchanged in every part.

        `task_id` and `thread_id` leave only calls made there. A model or cache that gives one id
        to several replies leaves several calls: the newest if their prompts are equal, else None.
        """
        same = generated(message)
        with self._lock:
            found = [
                one.call
                for one in self._replies.get(message.id or "", ())
                if one.generated == same
                and message.name in one.names
                and (task_id is None or task_id in one.call.tasks)
                and (owner is None or owner == one.call.owner)
                and (thread_id is None or thread_id in dict(one.call.steps))
            ]
        if not found or not all(_alike(found[-1], one) for one in found[:-1]):
            return None
        return found[-1]

    def tool(
        self, tool_call_id: str, task_id: str | None = None, *, owner: Hashable = None
    ) -> ToolRun | None:
        """Return the runs of a tool call (of one task, if named) taken together.

        None when no such run is known: then nothing can be said about what its result depends on.
        """
        with self._lock:
            runs = [
                (run_id, self._tools[run_id])
                for run_id in self._tool_calls.get(tool_call_id, ())
                if (task_id is None or task_id in self._tools[run_id].place.tasks)
                and (owner is None or owner == self._tools[run_id].owner)
            ]
            calls = [one for run_id, _ in runs for one in self._index.get(("tool", run_id))]
            outputs = frozenset(one for _, run in runs for one in run.outputs)
            inputs = frozenset(run.input for _, run in runs)
        if not runs:
            return None
        place, name = runs[-1][1].place, runs[-1][1].name
        reads = any(run.reads_state for _, run in runs)
        ran = tuple(run_id for run_id, _ in runs)
        return ToolRun(tool_call_id, name, place.tasks, reads, tuple(calls), inputs, outputs, ran)

    def tools_of(self, task_id: str) -> list[ToolRun]:
        """Return the runs of tools that a task made itself."""
        with self._lock:
            names = [
                run.tool_call_id
                for run in self._tools.values()
                if run.place.tasks[-1:] == (task_id,) and run.tool_call_id is not None
            ]
            found = [self.tool(name, task_id) for name in dict.fromkeys(names)]
        return [one for one in found if one is not None]

    def given(self, message: BaseMessage) -> bool:
        """Whether this very object was in the input of a graph run that nothing else started, as it is."""
        same = self._given.get(id(message)) is message
        return same and self._said.get(id(message)) == saying(message)

    def raw_inputs(self, thread_id: str, owner: Hashable) -> RawInputs:
        """Return what the run under way on a thread was given; nothing where that is not sure."""
        with self._lock:
            found = [
                run.inputs
                for run in self._under_way.values()
                if run.thread_id == thread_id and run.owner in {None, owner}
            ]
        return found[0] if len(found) == 1 else RawInputs()

    # What the handler reports.

    def chain_started(
        self, run_id: UUID, parent: UUID | None, metadata: _Meta, inputs: object
    ) -> None:
        """Note where a run is; the messages a root run was given are remembered weakly."""
        place = self._entered(run_id, parent, metadata)
        if place is not None and parent is None:
            found = list(messages_within(inputs))
            thread = metadata.get("thread_id")
            with self._lock:
                if thread is not None:
                    self._under_way[run_id] = Run(str(thread), RawInputs(inputs))
                    if len(self._under_way) > self._most_calls:
                        self._under_way.popitem(last=False)
                self._given.update((id(one), one) for one in found)
                self._said.update((id(one), saying(one)) for one in found)
                while len(self._said) > 4 * self._most_calls + len(self._given):
                    self._said.pop(next(iter(self._said)))

    def ended(self, run_id: UUID) -> None:
        """Forget the place of a run that is over."""
        with self._lock:
            self._places.pop(run_id, None)
            self._under_way.pop(run_id, None)

    def call_started(
        self,
        run_id: UUID,
        parent: UUID | None,
        metadata: _Meta,
        messages: Sequence[BaseMessage] | None,
    ) -> None:
        """Keep a call; `messages` is None when only a string is known."""
        metadata, thread = with_ambient(metadata)
        place = self._place(run_id, parent, metadata)
        if place is None:
            return
        place = place._replace(steps=stepped(place.steps, thread, None))
        prompt, opaque = _read(messages)
        call = Call(
            run_id=run_id,
            root=place.root,
            steps=place.steps,
            tasks=place.tasks,
            node=place.node,
            prompt=prompt,
            opaque=opaque,
            tool_call_id=self._tool_call_around(place),
            lc_source=metadata.get("lc_source"),
            owner=owner(),
            moment=self._tick(),
        )
        with self._lock:
            prompt.constants = frozenset(self._constants(call))
            if (run := self._under_way.get(call.root)) is not None and call.owner is not None:
                run.owner = call.owner
            self._keep(call, place, metadata.get("lc_agent_name"))

    def call_ended(self, run_id: UUID, messages: Iterable[BaseMessage]) -> None:
        """Note what a kept call generated."""
        with self._lock:
            kept = self._kept.get(run_id)
            for message in messages if kept else ():
                said = generated(message)
                if kept and message.id and said is not None:
                    agent = kept.agent if isinstance(kept.agent, str) else message.name
                    text = hash(str(message.text)) if self._everywhere else 0
                    reply = Reply(kept.call, said, frozenset({message.name, agent}), text)
                    self._replies.setdefault(message.id, []).append(reply)
                    kept.replies.append(message.id)

    def tool_started(
        self,
        run_id: UUID,
        parent: UUID | None,
        metadata: _Meta,
        tool_call_id: str | None,
        name: str,
        inputs: object,
    ) -> None:
        """Keep a tool run: a fingerprint of its arguments, and whether it can reach the state."""
        place = self._entered(run_id, parent, with_ambient(metadata)[0], tool=True)
        if place is None:
            return
        tool = calling_tool()
        reads = reads_state(tool, store_tells=store_tells())
        run = Tool(tool_call_id, name, place, reads, fingerprint(inputs), owner())
        with self._lock:
            self._tools[run_id] = run
            for around in (self._tools.get(one) for one in place.tools):
                if around is not None:
                    around.reads_state |= run.reads_state
            if tool_call_id is not None:
                self._tool_calls.setdefault(tool_call_id, []).append(run_id)
            while len(self._tools) > self._most_calls:
                self._drop_tool()

    def tool_ended(self, run_id: UUID, output: object) -> None:
        """Note what a kept tool run returned."""
        self.ended(run_id)
        results = [one for one in messages_within(output) if isinstance(one, ToolMessage)]
        with self._lock:
            if run_id in self._tools:
                known = {one for one in map(returned, results) if one is not None}
                self._tools[run_id].outputs |= known

    # Inside.

    def _entered(
        self, run_id: UUID, parent: UUID | None, metadata: _Meta, *, tool: bool = False
    ) -> Place | None:
        place = self._place(run_id, parent, metadata)
        if place is None:
            return None
        if tool:
            place = place._replace(tools=(*place.tools, run_id))
        place = place._replace(runs=(*place.runs, run_id))
        with self._lock:
            self._places[run_id] = place
            if len(self._places) > 16 * self._most_calls:
                self._places.popitem(last=False)
        return place

    def _place(self, run_id: UUID, parent: UUID | None, metadata: _Meta) -> Place | None:
        above = self._places.get(parent) if parent else None
        ns, thread = metadata.get("langgraph_checkpoint_ns"), metadata.get("thread_id")
        if above is None:
            if ns is None and thread is None and not self._everywhere:
                return None
            # A run that was not seen, of no thread, is known to its own by this.
            above = Place(parent or run_id, runs=() if parent is None else (parent,))
        steps = stepped(above.steps, thread, metadata.get("langgraph_step"))
        if ns is None:
            return above if steps is above.steps else above._replace(steps=steps)
        tasks, node = parsed(ns)
        new = tuple(one for one in tasks if one not in above.tasks)
        return above._replace(steps=steps, tasks=above.tasks + new, node=node)

    def _tick(self) -> int:
        with self._lock:
            self._moment += 1
            return self._moment

    def _tool_call_around(self, place: Place) -> str | None:
        with self._lock:
            around = [self._tools.get(one) for one in reversed(place.tools)]
        return next((one.tool_call_id for one in around if one and one.tool_call_id), None)

    def _constants(self, call: Call) -> list[int]:
        """Find the system messages without id that an earlier run has sent as the same object."""
        found = []
        for at, message in enumerate(call.prompt.messages[:8]):
            if not isinstance(message, SystemMessage) or message.id or self.given(message):
                continue
            key = (id(message), at, call.node)
            first = self._systems.get(key)
            if first is None or first[0]() is not message:
                self._systems[key] = (weakref.ref(message), call.root)
            elif first[1] != call.root:
                found.append(at)
        while len(self._systems) > self._most_calls:
            self._systems.popitem(last=False)
        return found

    def _keep(self, call: Call, place: Place, agent: object) -> None:
        keys: list[Hashable] = [("task", one) for one in call.tasks]
        keys += [("tool", one) for one in place.tools]
        keys += [("step", call.owner, *one) for one in call.steps if call.tasks]
        if self._everywhere:
            keys += [("run", one) for one in (*place.runs, call.run_id)]
        kept = Kept(call, call.prompt.weight, tuple(keys), agent)
        self._kept[call.run_id] = kept
        self._size += kept.weight
        self._index.add(call, keys)
        while len(self._kept) > 1 and self._too_much():
            self._drop_oldest()

    def _too_much(self) -> bool:
        return len(self._kept) > self._most_calls or self._size > self._most_size

    def _drop_oldest(self) -> None:
        _, kept = self._kept.popitem(last=False)
        self._size -= kept.weight
        self._index.drop(kept.call, kept.keys)
        for name in set(kept.replies):
            left = [one for one in self._replies[name] if one.call is not kept.call]
            if left:
                self._replies[name] = left
            else:
                del self._replies[name]

    def _drop_tool(self) -> None:
        run_id, run = self._tools.popitem(last=False)
        if run.tool_call_id is not None:
            left = [one for one in self._tool_calls[run.tool_call_id] if one != run_id]
            if left:
                self._tool_calls[run.tool_call_id] = left
            else:
                del self._tool_calls[run.tool_call_id]


def _alike(one: Call, other: Call) -> bool:
    known = not (one.opaque or other.opaque)
    return known and one.tasks == other.tasks and one.prompt.same(other.prompt)


def _read(messages: Sequence[BaseMessage] | None) -> tuple[Prompt, bool]:
    """Return the prompt and whether it is opaque: what can't be read must not look empty."""
    if messages is None:
        return Prompt(), True
    try:
        return Prompt(messages), False
    except Exception:  # noqa: BLE001 - a message we can't read makes its call unknown, not the run fail
        return Prompt(), True
