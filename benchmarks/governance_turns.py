"""A turn of an agent with a policy and without one.

The policy has what a team would write: a rule for support chats, one for scratch work of tools, one
that keeps a purpose out, and a class of its own. With "ends" every record has an end, so that each
reply takes over the soonest one of its prompt: that is what a policy with lifetimes costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from dellm import Memory, Policy

from .core.stores import Store
from .core.timing import Row, turns

ROUNDS = 400
BEFORE = 200  # turns of the thread that are there when measuring begins
LIMIT = 1.05
RULES = """
[classes.note]
days = 90

[[rules]]
name = "support chats"
when = { thread = "support-*", role = "user" }
class = "customer_context"
purpose = "support"

[[rules]]
name = "scratch work"
when = { kind = "tool" }
class = "operational_state"

[[rules]]
name = "no gossip"
when = { purpose = "gossip" }
write = "refuse"
"""
ALL_END = '[[rules]]\nname = "everything"\ndays = 400\n'


class Agent:
    """An agent of one thread, whose turns are all alike."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._numbers = memory, count(1)

    def turn(self) -> None:
        """Ask, choose a context, answer."""
        memory, number = self._memory, next(self._numbers)
        asked = memory.remember(f"question {number} about topic {number % 37}", thread="t")
        context = memory.context(f"topic {number % 37}", thread="t", k=5, by="keyword")
        memory.record(f"answer {number}", context=[*context.ids, asked.id], thread="t")


def measured(store: Store, tell: Callable[[str], None], rounds: int) -> Iterator[Row]:
    """Yield the rows of the turns."""
    yield _row(store, tell, rounds, "turn, a policy of rules", RULES, LIMIT)
    yield _row(store, tell, rounds, "turn, every record has an end", ALL_END, None)


def _row(
    store: Store,
    tell: Callable[[str], None],
    rounds: int,
    name: str,
    policy: str,
    bound: float | None,
) -> Row:
    tell(f"{name} ({store.name})")
    urls = [store.fresh(), store.fresh()]
    with (
        Memory.open(urls[0], embedder=None, policy=Policy.parse(policy)) as governed,
        Memory.open(urls[1], embedder=None) as plain,
    ):
        agents = [Agent(one.workspace("alex")) for one in (governed, plain)]
        for _ in range(BEFORE):
            for one in agents:
                one.turn()
        pair = turns(agents[0].turn, agents[1].turn, rounds)
    for url in urls:
        store.drop(url)
    return pair.row(name, store.name, "the same without a policy", bound)
