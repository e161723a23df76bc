"""After a forget: nodes that turns have read are held by their records only, not by their text.

The numbers of erased records stay, so that what is still made from them is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from dellm import Memory, Receipt

from .documents import records_of
from .flows import ERASED, Flow
from .replies import leftovers
from .scopes import Scope, every_outside, guard, scopes
from .tags import Owner

_watched: set[int] = set()
_once = threading.Lock()


def watch(memory: Memory) -> None:
    """Purge what is held in this process after every forget of an open memory."""
    with _once:
        if memory.identity in _watched:
            return
        _watched.add(memory.identity)
    memory.after_forget(lambda receipt: purge(memory.workspace(receipt.workspace), receipt))


def purge(memory: Memory, receipt: Receipt) -> None:
    """Hold no text of what a workspace may have forgotten."""
    owner: Owner = (memory.identity, memory.id)
    for scope in scopes.all():
        touched = owner in scope.reads.records or owner in scope.turn.asked.stored
        for flow in _flows(scope):
            if not flow.nodes:
                continue
            if touched:
                _resolve(memory, owner, flow)
            elif scope.turn.open <= 0:
                _drop(flow)
    for output in leftovers.all():
        _drop(output.made)
    with guard:
        gone = set(receipt.ids)
        for place in every_outside():
            place.forget(owner, gone)


def _flows(scope: Scope) -> Iterator[Flow]:
    yield scope.reads
    yield scope.begun
    for one in scope.replies:
        yield one.made


def _resolve(memory: Memory, owner: Owner, flow: Flow) -> None:
    """Put records in the place of nodes."""
    with guard:
        nodes = list(flow.nodes.values())
    found = records_of(memory, nodes)
    with guard:
        flow.read(owner, [one or ERASED for one in found.values()])
        flow.nodes.clear()
        flow.unsure = flow.unsure or len(flow.records) > 1  # of another workspace they are unknown


def _drop(flow: Flow) -> None:
    with guard:
        if flow.nodes:
            flow.nodes.clear()
            flow.unsure = True
