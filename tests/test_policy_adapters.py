"""The policy holds through the frameworks: what they store is decided on like anything else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from agents import agent, at, say, texts
from langchain_core.messages import HumanMessage
from llama_index.core.base.llms.types import ChatMessage

from dellm import Memory, Policy, PolicyRefused
from dellm.policy import DAY
from dellm_langchain import DeLLMChatMessageHistory, DeLLMStore
from dellm_llamaindex import DeLLMMemory

Opened = Callable[..., Memory]
AT = 20_000 * DAY
RULES = """
[[rules]]
name = "support"
when = { thread = "support-*" }
class = "operational_state"
purpose = "support"
basis = "contract"

[[rules]]
name = "notes end"
when = { role = "item" }
days = 3

[[rules]]
name = "no gossip"
when = { thread = "gossip" }
write = "refuse"
"""


class Clock:
    """A clock that the test sets, in microseconds UTC."""

    at = AT

    def __call__(self) -> int:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(url: str, opened: Opened, clock: Clock) -> Memory:
    return opened(url, clock=clock, policy=Policy.parse(RULES)).workspace("alex")


def ends(memory: Memory) -> set[int | None]:
    """Return after how many days what is stored ends."""
    found = (one.retention_until for one in memory.export())
    return {None if one is None else round((one.timestamp() * 1e6 - AT) / DAY) for one in found}


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_an_agents_thread_ends_as_its_class_says(memory: Memory, clock: Clock, way: str) -> None:
    graph = agent(memory, k=0)
    config = at("support-1")
    say(graph, "My parcel is late", config, way)
    say(graph, "Where is it?", config, way)
    messages = [one for one in memory.export() if one.kind == "message"]
    assert len(messages) == 4
    assert {one.purpose for one in messages} == {"support"}
    assert {memory.governed(one.id).basis for one in messages} == {"contract"}
    assert ends(memory) == {7}
    clock.at += 7 * DAY
    assert list(memory.export()) == []
    memory.expiry.sweep()
    assert texts(graph, config) == []
    say(graph, "Hello again", config, way)
    assert [one for one in texts(graph, config) if "parcel" in one] == []
    assert memory.verify().ok


def test_a_thread_that_no_rule_names_stays(memory: Memory) -> None:
    graph = agent(memory, k=0)
    say(graph, "My parcel is late", at("sales-1"))
    assert ends(memory) == {None}


def test_what_is_refused_is_not_in_any_checkpoint(memory: Memory) -> None:
    graph = agent(memory, k=0)
    with pytest.raises(PolicyRefused):
        say(graph, "Have you heard?", at("gossip"))
    assert "heard" not in str([one.text for one in memory.acting(overseer=True).export()])
    assert memory.verify().ok


def test_histories_and_stores_obey_as_well(memory: Memory) -> None:
    history = DeLLMChatMessageHistory(memory, "support-2")
    history.add_messages([HumanMessage("My parcel is late")])
    assert ends(memory) == {7}
    with pytest.raises(PolicyRefused):
        DeLLMChatMessageHistory(memory, "gossip").add_messages([HumanMessage("Psst")])
    store = DeLLMStore(memory)
    store.put(("notes",), "one", {"text": "likes tea"})
    assert ends(memory) == {7, 3}


def test_a_llamaindex_memory_obeys_as_well(memory: Memory) -> None:
    session = DeLLMMemory.from_defaults(memory, "support-3")
    session.put(ChatMessage(role="user", content="My parcel is late"))
    session.put(ChatMessage(role="assistant", content="It is"))
    assert ends(memory) == {7}
    with pytest.raises(PolicyRefused):
        DeLLMMemory.from_defaults(memory, "gossip").put(ChatMessage(role="user", content="Psst"))
