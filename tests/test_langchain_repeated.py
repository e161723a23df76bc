"""What retrievers and stores gave out before a run is known again in what goes into the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agents import at
from documents import CANARY, PLAIN, SECRET, Words
from graphs import Parrot
from langchain.agents import create_agent
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from one_file import lite
from typing_extensions import TypedDict
from unheard import unheard

from dellm import Memory
from dellm_langchain import (
    DeLLMCache,
    DeLLMRetriever,
    DeLLMSaver,
    DeLLMStore,
    track,
    with_memory,
)
from dellm_langchain.tracked_reads import MOST, Shown, shown

__all__ = ["lite", "unheard"]

Give = Callable[[Memory], tuple[str, int]]  # what is given out, and its record
Pass = Callable[[Memory, str], Any]


def of_a_vector_store(memory: Memory) -> tuple[str, int]:
    tracked = track(InMemoryVectorStore(Words()), memory)
    tracked.add_texts([*PLAIN, SECRET])
    (found,) = tracked.as_retriever(search_kwargs={"k": 1}).invoke("vault of the bank")
    return found.page_content, found.metadata["dellm_id"]


def of_a_memory(memory: Memory) -> tuple[str, int]:
    memory.remember(SECRET)
    (found,) = DeLLMRetriever(memory=memory, by="keyword", k=1).invoke("vault")
    return found.page_content, found.metadata["dellm_id"]


def of_a_store(memory: Memory) -> tuple[str, int]:
    store = DeLLMStore(memory)
    store.put(("alex",), "vault", {"facts": [{"text": SECRET}], "sure": True})
    item = store.get(("alex",), "vault")
    assert item is not None
    (kept,) = [one for one in memory.export() if one.role == "item"]
    return item.value["facts"][0]["text"], kept.id


def of_a_search(memory: Memory) -> tuple[str, int]:
    DeLLMStore(memory).put(("alex",), "vault", {"text": SECRET})
    (item,) = DeLLMStore(memory).search(("alex",))
    (kept,) = [one for one in memory.export() if one.role == "item"]
    return item.value["text"], kept.id


GIVERS = [of_a_vector_store, of_a_memory, of_a_store, of_a_search]


def chain(*parts: tuple[str, str]) -> Any:
    return ChatPromptTemplate([*parts, MessagesPlaceholder("past"), ("human", "{q}")]) | Parrot()


def in_a_prompt(memory: Memory, text: str) -> None:
    made = with_memory(
        chain(("system", "know: {ctx}")),
        memory,
        input_messages_key="q",
        history_messages_key="past",
    )
    made.invoke({"q": "what opens it", "ctx": text}, {"configurable": {"session_id": "s"}})


def in_a_question(memory: Memory, text: str) -> None:
    made = with_memory(chain(), memory, input_messages_key="q", history_messages_key="past")
    made.invoke({"q": f"given: {text}. what opens it"}, {"configurable": {"session_id": "s"}})


def in_an_input(memory: Memory, text: str) -> None:
    agent = create_agent(Parrot(), [], checkpointer=DeLLMSaver(memory))
    agent.invoke({"messages": [("system", f"know: {text}"), ("user", "hi")]}, at("t"))


def at_the_exit(memory: Memory, text: str) -> None:
    agent = create_agent(Parrot(), [], checkpointer=DeLLMSaver(memory))
    agent.invoke({"messages": [HumanMessage(f"use “{text}”")]}, at("t"), durability="exit")


def in_a_system_prompt(memory: Memory, text: str) -> None:
    saver = DeLLMSaver(memory)
    agent = create_agent(Parrot(), [], system_prompt=f"know: {text}", checkpointer=saver)
    agent.invoke({"messages": [HumanMessage("hi")]}, at("t"))


def in_a_node(memory: Memory, text: str) -> None:
    """A node tells its model what was found before the run, in a message of its own."""

    def ask(state: Any) -> Any:
        return {"said": str(Parrot().invoke([HumanMessage(f"{text} {state['said']}")]).text)}

    graph_of(ask, DeLLMSaver(memory)).invoke({"said": "hi"}, at("t"))


def in_the_state(memory: Memory, text: str) -> None:
    graph_of(lambda state: {"said": f"so {state['said']}"}, DeLLMSaver(memory)).invoke(
        {"said": f"know: {text}"}, at("t")
    )


def in_a_cached_call(memory: Memory, text: str) -> None:
    Parrot(cache=DeLLMCache(memory)).invoke([SystemMessage(f"know: {text}"), HumanMessage("hi")])


def in_a_cached_text(memory: Memory, text: str) -> None:
    FakeListLLM(responses=[f"it is {text}"], cache=DeLLMCache(memory)).invoke(f"know: {text}")


def before_a_store(memory: Memory, text: str) -> None:
    """A graph with another checkpointer keeps an item of what its messages say."""
    store = DeLLMStore(memory)

    def keep(state: Any) -> Any:
        store.put(("kept",), "k", {"said": state["said"][0].text.upper()})
        return {}

    class Said(TypedDict):
        said: list[Any]

    graph: Any = StateGraph(Said)
    graph.add_node("keep", keep)
    graph.add_edge(START, "keep")
    made = graph.compile(checkpointer=InMemorySaver(), store=store)
    made.invoke({"said": [HumanMessage(f"know: {text}", id="m")]}, at("t"))


PASSES = [
    in_a_prompt,
    in_a_question,
    in_an_input,
    at_the_exit,
    in_a_system_prompt,
    in_a_node,
    in_the_state,
    in_a_cached_call,
    in_a_cached_text,
    before_a_store,
]


class Saying(TypedDict):
    said: str


def graph_of(node: Any, saver: DeLLMSaver) -> Any:
    graph: Any = StateGraph(Saying)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile(checkpointer=saver)


def assert_it_goes(memory: Memory, record: int) -> None:
    found = [
        *memory.scan(CANARY, files=False).places,
        *memory.scan(CANARY.upper(), files=False).places,
    ]
    assert len({id_ for one in found for id_ in one.ids}) > 1  # besides the record, what was made
    memory.forget(ids=[record])
    assert not memory.scan(CANARY, files=False).places
    assert not memory.scan(CANARY.upper(), files=False).places
    assert memory.verify().ok


@pytest.mark.parametrize("passed", PASSES)
@pytest.mark.parametrize("give", GIVERS)
def test_what_was_given_out_goes_with_all_that_repeats_it(
    give: Give, passed: Pass, lite: Memory
) -> None:
    text, record = give(lite)
    lite.remember("tea is at five", thread="other")
    passed(lite, text)
    assert_it_goes(lite, record)
    assert [one.text for one in lite.history("other")] == ["tea is at five"]


@pytest.mark.parametrize("passed", [in_a_prompt, in_an_input])
def test_it_goes_on_both_databases(passed: Pass, memory: Memory) -> None:
    text, record = of_a_store(memory)
    passed(memory, text)
    assert_it_goes(memory, record)


def test_what_says_something_else_stays(lite: Memory) -> None:
    _, record = of_a_vector_store(lite)
    in_an_input(lite, "the moon rises over the bank of the lake")
    lite.forget(ids=[record])
    assert len(lite.history("t")) == 3


def shown_with(*texts: str, most: int = MOST, memory: Memory) -> tuple[Shown, Any]:
    made = Shown(most)
    made.note(memory, [(at + 1, [one]) for at, one in enumerate(texts)])
    return made, (memory.identity, memory.id)


LONG = " ".join(f"word{one}" for one in range(100))


@pytest.mark.parametrize(
    ("given", "said", "repeats"),
    [
        ("the moon rises over the lake", "He said: “The moon rises\n over the lake!”", True),
        ("the moon rises over the lake", "the moon rises over the sea", False),
        (LONG, LONG[: len(LONG) // 2 + 40], True),  # half of it
        (LONG, " ".join(LONG.split()[40:62]), True),  # a passage
        (LONG, " ".join(LONG.split()[40:52]), False),  # a phrase of it
        ("Tom", "Tom and Tina", False),  # says too little to be told from other words
        ("4711", "the code is 4711", True),
        ("私の猫はトムです", "知っている：私の猫はトムです。", True),
        ("", "anything", False),
    ],
)
def test_a_text_repeats_another_whole_or_by_a_passage(
    given: str, said: str, repeats: bool, lite: Memory
) -> None:
    made, owner = shown_with(given, memory=lite)
    assert (made.of(owner, said) == [1]) is repeats


def test_only_so_much_is_kept_and_the_newest_of_it(lite: Memory) -> None:
    texts = [f"{one} " + " ".join(f"word{one}x{at}" for at in range(50)) for one in range(20)]
    made, owner = shown_with(*texts, most=200, memory=lite)
    found = [bool(made.of(owner, one)) for one in texts]
    assert found == [False] * 16 + [True] * 4


def test_what_only_half_was_kept_of_is_known_whole_when_it_is_given_out_again(lite: Memory) -> None:
    first, second, third = (
        f"{one} " + " ".join(f"word{one}x{at}" for at in range(50)) for one in range(3)
    )
    made, owner = shown_with(most=120, memory=lite)
    made.note(lite, [(1, [first, second])])
    made.note(lite, [(2, [third])])  # there is no room for all three
    made.note(lite, [(1, [first, second])])
    assert [made.of(owner, one) for one in (first, second)] == [[1], [1]]


def test_nothing_is_kept_of_what_a_forget_took_and_it_can_be_said_anew(lite: Memory) -> None:
    text, record = of_a_vector_store(lite)
    owner = (lite.identity, lite.id)
    assert shown.of(owner, text) == [record]
    lite.forget(ids=[record])
    assert shown.of(owner, text) == []
    in_an_input(lite, text)
    assert CANARY in lite.history("t")[0].text
