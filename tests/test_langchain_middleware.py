"""The context half: a model call sees its turn and what is relevant, and that is what is recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from agents import Ways, agent, at, heard, said, say, texts
from graphs import Parrot, lookup, weather
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelFallbackMiddleware
from langchain.tools import tool
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from pairing import problems

from dellm import HashingEmbedder, InvalidInput, Memory
from dellm_langchain import DeLLMSaver
from dellm_langchain.middleware import ContextMiddleware, DeLLMMiddleware
from dellm_langchain.middleware_choosing import group, paired

APPLE, BOAT, CLOCK = "the apple is red", "a boat sails on the lake", "old clocks tick slowly"
ASKED = "which colour has the apple"


@pytest.fixture
def small(sqlite_url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(sqlite_url).workspace("alex")


def by_text(memory: Memory, text: str, thread: str = "t") -> int:
    return next(one.id for one in memory.history(thread) if one.text == text)


def parents(memory: Memory, reply: str, thread: str = "t") -> list[str]:
    """Return what the reply to a message was made from, as texts."""
    records = memory.history(thread)
    place = next(n for n, one in enumerate(records) if one.text == reply) + 1
    return [memory.get(one).text for one in memory.context_of(records[place].id)]


class Injecting(AgentMiddleware[Any, Any, Any]):
    """Puts a message of its own at the end of each prompt."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        more = [*request.messages, HumanMessage(self.text)]
        return handler(request.override(messages=more))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        more = [*request.messages, HumanMessage(self.text)]
        return await handler(request.override(messages=more))


class Restoring(AgentMiddleware[Any, Any, Any]):
    """Gives the model the whole state again, with a model of its own if it has one."""

    def __init__(self, **changes: Any) -> None:
        super().__init__()
        self.changes = changes

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(messages=request.state["messages"], **self.changes))


@pytest.mark.parametrize("way", Ways)
def test_a_reply_is_made_from_its_turn_and_what_is_relevant_and_from_nothing_else(
    memory: Memory, way: str
) -> None:
    graph = agent(memory, k=1)
    for text in (APPLE, BOAT, CLOCK):
        say(graph, text, way=way)
    prompts = heard(lambda: say(graph, ASKED, way=way))
    assert [said(one) for one in prompts] == [[APPLE, ASKED]]
    assert parents(memory, ASKED) == [APPLE, ASKED]
    assert parents(memory, CLOCK) == [CLOCK]
    assert texts(graph)[0::2] == [APPLE, BOAT, CLOCK, ASKED]  # the state is as it would be
    assert memory.dependents([by_text(memory, BOAT)])[1:] == [by_text(memory, BOAT) + 1]


def test_what_a_middleware_listed_later_puts_in_is_seen_and_counts_as_a_parent(
    small: Memory,
) -> None:
    graph = agent(small, k=1, after=[Injecting("be brief")])
    say(graph, APPLE)
    say(graph, BOAT)
    prompts = heard(lambda: say(graph, ASKED))
    assert said(prompts[0]) == [APPLE, ASKED, "be brief"]
    # Nobody can tell what it was made of, so the reply may depend on all that the run could read.
    assert {APPLE, ASKED} <= set(parents(small, ASKED))
    reply = texts(graph)[-1]
    small.forget(BOAT)
    assert reply not in texts(graph)


def test_what_a_middleware_listed_earlier_puts_in_stays(small: Memory) -> None:
    graph = agent(small, k=1, before=[Injecting("be brief")])
    say(graph, APPLE)
    say(graph, BOAT)
    assert said(heard(lambda: say(graph, ASKED))[0]) == [APPLE, ASKED, "be brief"]


def other_model() -> Parrot:
    return Parrot(provider="other")


@pytest.mark.parametrize("changes", [{}, {"model": other_model()}], ids=["same", "other model"])
def test_a_middleware_listed_later_cannot_bring_back_what_was_not_chosen(
    small: Memory, changes: dict[str, Any]
) -> None:
    graph = agent(small, k=1, after=[Restoring(**changes)])
    for text in (APPLE, BOAT, CLOCK):
        say(graph, text)
    assert said(heard(lambda: say(graph, ASKED))[0]) == [APPLE, ASKED]
    assert parents(small, ASKED) == [APPLE, ASKED]


class Failing(Parrot):
    """A model that is out of order."""

    def _generate(self, *_: Any, **__: Any) -> Any:
        raise ConnectionError("out of order")

    _stream = _generate


def test_a_fallback_model_gets_the_chosen_context_too(small: Memory) -> None:
    graph = create_agent(
        Failing(),
        middleware=[DeLLMMiddleware(small, k=0), ModelFallbackMiddleware(Parrot()), Restoring()],
        checkpointer=DeLLMSaver(small),
    )
    say(graph, APPLE)
    assert said(heard(lambda: say(graph, BOAT))[0]) == [BOAT]


def test_a_model_that_keeps_count_of_its_calls_still_does(small: Memory) -> None:
    model = FakeListChatModel(responses=["one", "two", "three"])
    graph = create_agent(model, middleware=[DeLLMMiddleware(small)], checkpointer=DeLLMSaver(small))
    for text in (APPLE, BOAT, CLOCK):
        say(graph, text)
    assert texts(graph)[1::2] == ["one", "two", "three"]


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_calls_and_their_results_come_together_or_not_at_all(small: Memory, way: str) -> None:
    graph = agent(small, k=1, tools=[lookup, weather])
    say(graph, "call:lookup(zebra) call:weather(paris) please", way=way)
    say(graph, BOAT, way=way)
    prompt = heard(lambda: say(graph, "found zebra", way=way))[0]
    kinds = [one.type for one in prompt]
    assert kinds == ["ai", "tool", "tool", "human"]
    assert problems(prompt) == []
    calls, result = prompt[0], prompt[1]
    assert isinstance(calls, AIMessage)
    assert isinstance(result, ToolMessage)
    assert {one["id"] for one in calls.tool_calls} >= {result.tool_call_id}


def test_a_call_that_could_not_be_read_comes_with_its_result_as_well() -> None:
    bad = InvalidToolCall(name="lookup", args="{", id="bad", error="no JSON")
    call = ToolCall(name="lookup", args={}, id="good")
    caller = AIMessage("", tool_calls=[call], invalid_tool_calls=[bad])
    results = [ToolMessage("found", tool_call_id="good"), ToolMessage("no", tool_call_id="bad")]
    messages = [HumanMessage(BOAT), caller, *results, HumanMessage(APPLE)]
    assert [group(messages, at, 4) for at in range(4)] == [(0,), *[(1, 2, 3)] * 3]
    assert paired(messages) == messages
    assert paired([messages[0], caller, messages[4]]) == [messages[0], messages[4]]
    assert group([*results], 0, 2) == ()


def test_the_turn_is_whole_in_every_call_of_it(small: Memory) -> None:
    graph = agent(small, k=0, tools=[lookup])
    say(graph, APPLE)
    prompts = heard(lambda: say(graph, "call:lookup(zebra) now"))
    assert [[one.type for one in prompt] for prompt in prompts] == [
        ["human"],
        ["human", "ai", "tool"],
    ]


def test_system_messages_that_a_conversation_begins_with_stay(small: Memory) -> None:
    graph = agent(small, k=1, scope="workspace")
    graph.invoke({"messages": [SystemMessage("be kind"), HumanMessage(BOAT)]}, at())
    small.remember(APPLE, thread="elsewhere")
    assert said(heard(lambda: say(graph, ASKED))[0]) == ["be kind", APPLE, ASKED]


def test_the_newest_messages_are_there_when_asked_for(small: Memory) -> None:
    graph = agent(small, k=0, last=2)
    for text in (APPLE, BOAT):
        say(graph, text)
    reply = texts(graph)[-1]
    assert said(heard(lambda: say(graph, CLOCK))[0]) == [BOAT, reply, CLOCK]


@pytest.mark.parametrize(("budget", "fits"), [(3, []), (4, [APPLE])], ids=str)
def test_what_does_not_fit_the_budget_is_passed_over(
    small: Memory, budget: int, fits: list[str]
) -> None:
    graph = agent(small, k=2, budget=budget)
    say(graph, APPLE)
    assert said(heard(lambda: say(graph, ASKED))[0]) == [*fits, ASKED]


def test_other_threads_are_recalled_only_if_asked_and_are_then_parents(memory: Memory) -> None:
    graph = agent(memory, k=1, scope="workspace")
    say(graph, APPLE, at("one"))
    prompts = heard(lambda: say(graph, ASKED, at("two")))
    assert said(prompts[0]) == [APPLE, ASKED]
    assert parents(memory, ASKED, "two") == [APPLE, ASKED]
    apart = heard(lambda: say(agent(memory, k=1), ASKED, at("three")))
    assert said(apart[0]) == [ASKED]
    memory.forget(APPLE)
    assert texts(graph, at("two")) == [ASKED]
    assert len(texts(graph, at("three"))) == 2


def test_documents_and_facts_are_recalled_as_what_they_are(small: Memory) -> None:
    small.remember("the apple grows on trees", kind="document", role="document")
    graph = agent(small, k=1, scope="workspace")
    prompt = heard(lambda: say(graph, "where does the apple grow"))[0]
    assert said(prompt)[0] == "From memory, a document:\nthe apple grows on trees"


def test_without_an_embedder_words_decide(sqlite_url: str, opened: Callable[..., Memory]) -> None:
    memory = opened(sqlite_url, embedder=None).workspace("alex")
    graph = agent(memory, k=1)
    for text in (APPLE, BOAT):
        say(graph, text)
    assert said(heard(lambda: say(graph, ASKED))[0])[1:] == [ASKED]


def test_each_user_recalls_only_their_own(memory: Memory) -> None:
    graph = agent(memory, workspace="user_id", k=3, scope="workspace")
    say(graph, APPLE, at("one", user_id="ann"))
    assert said(heard(lambda: say(graph, ASKED, at("two", user_id="bob")))[0]) == [ASKED]
    mine = heard(lambda: say(graph, ASKED, at("two", user_id="ann")))[0]
    assert APPLE in said(mine)
    with pytest.raises(InvalidInput, match="names no workspace"):
        say(graph, APPLE, at("one"))


def test_a_bound_middleware_needs_no_key(small: Memory) -> None:
    bound = DeLLMMiddleware(small, workspace="user_id", delete_tool=True).for_workspace("ann")
    graph = create_agent(
        Parrot(), middleware=[bound], checkpointer=DeLLMSaver(small.workspace("ann"))
    )
    say(graph, APPLE)
    assert next(one.text for one in small.workspace("ann").history("t")) == APPLE
    assert small.history("t") == []


def test_a_checkpointer_of_another_memory_is_refused(
    small: Memory, tmp_path: Any, opened: Callable[..., Memory]
) -> None:
    other = opened(str(tmp_path / "other.db"))
    graph = agent(small, saver=DeLLMSaver(other))
    with pytest.raises(InvalidInput, match="different memories"):
        say(graph, APPLE)


@pytest.mark.parametrize("saver", [InMemorySaver(), False], ids=["stock", "none"])
def test_with_another_checkpointer_or_none_what_the_memory_has_is_still_recalled(
    small: Memory, saver: Any
) -> None:
    small.remember(APPLE, thread="elsewhere")
    middleware = ContextMiddleware(small, k=1, last=1, scope="workspace")
    graph = create_agent(Parrot(), middleware=[middleware], checkpointer=saver or None)
    given = {"messages": [HumanMessage(BOAT), HumanMessage(CLOCK), HumanMessage(ASKED)]}
    prompts = heard(lambda: graph.invoke(given, at() if saver else None))
    assert said(prompts[0]) == [APPLE, CLOCK, ASKED]


def test_what_was_erased_during_a_run_is_not_sent_again(small: Memory) -> None:
    @tool
    def regret(query: str) -> str:
        """Forget the apple in the middle of the run."""
        small.forget(APPLE)
        return f"done {query}"

    graph = agent(small, k=1, tools=[regret])
    say(graph, APPLE)
    prompts = heard(lambda: say(graph, "call:regret(now) the apple is"))
    assert APPLE in said(prompts[0])
    assert APPLE not in said(prompts[1])
    assert problems(prompts[1]) == []
    assert [str(one) for one in small.scan(APPLE, files=False).places] == []


def test_a_question_erased_during_its_run_is_not_answered(small: Memory) -> None:
    @tool
    def regret(query: str) -> str:
        """Forget what was asked, in the middle of the run."""
        small.forget(ids=[one.id for one in small.history("t") if one.role == "user"])
        return f"done {query}"

    graph = agent(small, k=1, tools=[regret])
    assert len(heard(lambda: say(graph, "call:regret(now) zebra"))) == 1
    assert [str(one) for one in small.scan("zebra", files=False).places] == []


class Watched(HashingEmbedder):
    """Notes in which threads it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def embed(self, texts: Any) -> Any:
        self.threads.add(threading.get_ident())
        return super().embed(texts)


def test_an_event_loop_is_not_kept_waiting(sqlite_url: str, opened: Callable[..., Memory]) -> None:
    embedder = Watched()
    memory = opened(sqlite_url, embedder=embedder).workspace("alex")
    graph = agent(memory, k=1)
    say(graph, APPLE, way="ainvoke")
    say(graph, ASKED, way="astream")
    say(graph, f"Please forget that {APPLE}", way="ainvoke")
    assert embedder.threads != set()
    assert threading.get_ident() not in embedder.threads  # asyncio.run uses this thread


@pytest.mark.parametrize(
    "options",
    [
        *(
            {"k": -1},
            {"last": 1.5},
            {"scope": "world"},
            {"by": "luck"},
            {"budget": -1},
            {"k": True},
        ),
        *({"k": "5"}, {"by": []}, {"scope": []}, {"threshold": "x"}, {"threshold": 1.5}),
        *({"threshold": float("nan")}, {"count": 3}, {"classifier": 3}, {"workspace": 7}),
        *({"workspace": " "}, {"context": "no"}, {"forget": 1}, {"delete_tool": "yes"}),
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(small: Memory, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        DeLLMMiddleware(small, **options)


def test_only_a_memory_is_taken() -> None:
    with pytest.raises(InvalidInput, match=r"takes a dellm\.Memory"):
        DeLLMMiddleware("memory.db")  # type: ignore[arg-type] # what is tried here
