"""A channel that is kept as writes only is in no checkpoint, and yet its run has it in its memory.

What a later node of the run makes of it is refused all the same once it was forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from forgotten import remains, taken, thread
from graphs import STATEMENT, WORD, Parrot, told
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from typing_extensions import TypedDict

from dellm import Memory
from dellm_langchain import DeLLMSaver

Forget = Callable[[], None]


class Noted(TypedDict, total=False):
    messages: Annotated[
        list[AnyMessage], DeltaChannel(_messages_delta_reducer, snapshot_frequency=100)
    ]
    notes: str


def graph_of(memory: Memory, asked: Forget, between: Forget) -> tuple[DeLLMSaver, Any]:
    """Return a graph that asks the model, and then notes all that it said in another channel."""

    def ask(state: Any) -> Any:
        reply = Parrot().invoke(state["messages"])
        asked()
        return {"messages": [reply]}

    def wait(_: Any) -> Any:
        between()
        return {}

    def note(state: Any) -> Any:
        said = told(state["messages"])
        return {"notes": said} if "now" in said else {}

    graph = StateGraph(Noted)
    for name, node in (("ask", ask), ("wait", wait), ("note", note)):
        graph.add_node(name, node)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "wait")
    graph.add_edge("wait", "note")
    saver = DeLLMSaver(memory)
    return saver, graph.compile(checkpointer=saver)


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("when", ["asked", "between"])
def test_what_is_made_of_a_forgotten_reply_in_a_later_step_is_refused(
    memory: Memory, when: str, durability: Any
) -> None:
    on = {"asked": False, "between": False}

    def at(place: str) -> Forget:
        def forget() -> None:
            if on[place]:
                on[place] = False
                (one,) = (one.id for one in memory.history("t") if one.text == STATEMENT)
                memory.forget(ids=[one])

        return forget

    saver, graph = graph_of(memory, at("asked"), at("between"))
    say = {"durability": durability}
    graph.invoke({"messages": [HumanMessage("the sky is blue")]}, thread(), **say)
    graph.invoke({"messages": [HumanMessage(STATEMENT)]}, thread(), **say)
    on[when] = True
    graph.invoke({"messages": [HumanMessage("and now")]}, thread(), **say)
    assert remains(saver, graph, thread()) == []
    assert memory.scan(WORD, files=False).clean
    assert "and now" in [one.text for one in graph.get_state(thread()).values["messages"]]
    assert on == {"asked": False, "between": False}


@pytest.mark.parametrize("when", ["asked", "between"])
def test_what_is_made_of_anything_else_is_stored(memory: Memory, when: str) -> None:
    on = {"asked": False, "between": False}

    def at(place: str) -> Forget:
        def forget() -> None:
            if on[place]:
                memory.forget(thread="other")

        return forget

    saver, graph = graph_of(memory, at("asked"), at("between"))
    graph.invoke({"messages": [HumanMessage("the sky is blue")]}, thread())
    graph.invoke({"messages": [HumanMessage(STATEMENT)]}, thread("other"))
    on[when] = True
    graph.invoke({"messages": [HumanMessage("and now")]}, thread())
    values = graph.get_state(thread()).values
    assert len(values["messages"]) == 4
    assert "now" in values["notes"]
    assert not taken(saver, graph, thread()).holds()
