"""What an open memory tells: what was forgotten, and what running code has read of it directly.

After a forget, what the process holds of a turn says so, and holds no text of retrieved nodes. The
numbers of erased records stay, so that what is still made from them is refused.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence

from dellm import Memory, Receipt

from .calls import calls
from .documents import records_of
from .flows import ERASED, Flow, Output
from .prompts import known_to_be_all
from .replies import leftovers
from .scopes import Scope, current, every_outside, guard, read, scopes
from .tags import Owner, owner_of

_watched: set[int] = set()  # open memories, by their identity
# The same by the number of their database; each lives as long as it is open: by what it is to call.
_open: dict[int, list[weakref.ref[Memory]]] = {}
_then: list[Callable[[Owner, set[int]], object]] = []
_once = threading.Lock()


def watch(memory: Memory) -> None:
    """Purge what is held in this process after every forget of an open memory, and note its reads."""
    with _once:
        if memory.identity in _watched:
            return
        _watched.add(memory.identity)
        _open.setdefault(owner_of(memory)[0], []).append(weakref.ref(memory))
    memory.after_forget(lambda receipt: purge(memory.workspace(receipt.workspace), receipt))
    memory.after_read(lambda name, records: _given((owner_of(memory)[0], name), records))


def _given(owner: Owner, records: Sequence[int]) -> None:
    """Note what a tool, or a workflow of the user's own, has read of the memory itself."""
    scope = current()
    own = scope is not None and (scope.kind == "tool" or not known_to_be_all(scope))
    if own or (scope is None and scopes.tools):  # a tool may have begun the thread that reads
        read(owner, records, scope)


def memory_of(owner: Owner) -> Memory | None:
    """Return the workspace that an owner is, if it is watched and open."""
    with _once:
        there = [one() for one in _open.get(owner[0], ())]
    memory = next((one for one in reversed(there) if one is not None and not one.closed), None)
    return memory.workspace(owner[1]) if memory is not None else None


def then(call: Callable[[Owner, set[int]], object]) -> None:
    """Have a function called with what was forgotten, once the flows of all scopes are marked."""
    if call not in _then:
        _then.append(call)


def purge(memory: Memory, receipt: Receipt) -> None:
    """Mark what was made from what a workspace has forgotten, and hold no text of it."""
    owner = owner_of(memory)
    gone = set(receipt.ids)
    held = scopes.all()
    for scope in held:
        _purge_nodes(memory, owner, scope)
    outputs = [*leftovers.all(), *calls.under_way()]
    for output in outputs:
        _drop(output.made)
    with guard:
        for place in every_outside():
            place.forget(owner, gone)
        for scope in held:
            for flow in (scope.reads, scope.begun):
                mark(flow, owner, gone)
            outputs += [*scope.replies, scope.asked, *_results(scope)]
        for output in dict.fromkeys(outputs):
            mark(output.made, owner, gone)
            if output.stored.get(owner) in gone:
                output.made.read(owner, [ERASED])
    for call in _then:
        call(owner, gone)


def mark(flow: Flow, owner: Owner, gone: set[int]) -> None:
    """Let a flow say that a part of it was erased."""
    if not gone.isdisjoint(flow.records.get(owner, {})):
        flow.read(owner, [ERASED])


def dead(flow: Flow) -> bool:
    """Whether a part of what a flow holds was erased."""
    seen: set[Output] = set()
    waiting = [flow]
    with guard:
        while waiting:
            one = waiting.pop()
            if any(ERASED in records for records in one.records.values()):
                return True
            waiting += [output.made for output in one.outputs if output not in seen]
            seen.update(one.outputs)
    return False


def _results(scope: Scope) -> Iterator[Output]:
    for some in scope.results.values():
        yield from some


def _purge_nodes(memory: Memory, owner: Owner, scope: Scope) -> None:
    touched = owner in scope.reads.records or owner in scope.turn.asked.made.records
    for flow in (scope.reads, scope.begun, *(one.made for one in scope.replies)):
        if flow.nodes and touched:
            _resolve(memory, owner, flow)
        elif flow.nodes and scope.turn.open <= 0:
            _drop(flow)


def _resolve(memory: Memory, owner: Owner, flow: Flow) -> None:
    """Put records in the place of nodes."""
    with guard:
        nodes = [one for one in flow.nodes.values() if id(one) not in flow.rewritten]
    found = records_of(memory, nodes)
    with guard:
        flow.read(owner, [one or ERASED for one in found.values()])
        flow.nodes.clear()
        # Of another workspace they are unknown; those that were rewritten have no record.
        flow.unsure = flow.unsure or len(flow.records) > 1 or bool(flow.rewritten)
        flow.rewritten.clear()


def _drop(flow: Flow) -> None:
    with guard:
        if flow.nodes:
            flow.nodes.clear()
            flow.unsure = True
