"""Which model a framework's reply is from is on its record, and so who was sent its prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import Memory as StockMemory
from llama_models import RepeatingChat
from openai_server import OpenAIServer

from dellm import Memory
from dellm_langchain import DeLLMChatMessageHistory, DeLLMSaver, DeLLMStore
from dellm_langchain.messages import model_of
from dellm_langchain.summarizer import DeLLMSummarizer
from dellm_llamaindex import DeLLMChatStore, DeLLMFactBlock, DeLLMMemory, DeLLMSummaryBlock
from dellm_llamaindex.model_names import model_of as described


def exposed(memory: Memory) -> set[tuple[str, str, str]]:
    texts = {one.id: one.text for one in memory.export()}
    return {(texts[one.record], one.host, one.model) for one in memory.exposures()}


@pytest.mark.parametrize("streaming", [False, True])
def test_an_agents_reply_names_its_model(
    url: str, opened: Callable[..., Memory], streaming: bool
) -> None:
    memory = opened(url).workspace("alex")
    with OpenAIServer(reply=lambda _: "hello Ada") as server:
        model = ChatOpenAI(model="gpt-x", base_url=server.url, api_key="none", streaming=streaming)
        agent: Any = create_agent(model, [], checkpointer=DeLLMSaver(memory))
        config = {"configurable": {"thread_id": "t"}}
        for text in ("I am Ada", "who am I"):
            agent.invoke({"messages": [("user", text)]}, config)
    assert exposed(memory) == {
        (text, "openai", "gpt-x") for text in ("I am Ada", "hello Ada", "who am I")
    }
    receipt = memory.forget("Ada", scrub=False)
    assert [(one.provider, one.model) for one in receipt.providers] == [("openai", "gpt-x")]
    assert receipt.providers[0].until is not None


def test_a_history_keeps_the_model_of_its_messages(url: str, opened: Callable[..., Memory]) -> None:
    memory = opened(url).workspace("alex")
    history = DeLLMChatMessageHistory(memory, "t")
    said = {"model_provider": "anthropic", "model_name": "claude"}
    history.add_messages([HumanMessage("hi"), AIMessage("hello", response_metadata=said)])
    assert [one.model for one in memory.history("t")] == [None, "anthropic/claude"]
    assert history.messages[1].response_metadata == said


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ({}, None),
        ({"model_name": "m"}, "unknown/m"),
        ({"model": "org/m", "model_provider": "together"}, "together/org/m"),
        ({"model_name": "", "model_provider": "openai"}, None),
        ({"model_name": 3, "model": "m", "model_provider": 3}, "unknown/m"),
        ({"model_name": "m", "model_provider": "a/b"}, "unknown/m"),
    ],
)
def test_what_a_message_says_of_its_model_may_be_anything(
    said: dict[str, Any], model: str | None
) -> None:
    assert model_of(AIMessage("x", response_metadata=said)) == model
    assert model_of(HumanMessage("x", response_metadata=said)) is None


class Named(RepeatingChat):
    """A model that says its name, as a provider's client does."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, model_name="m")

    @classmethod
    def class_name(cls) -> str:
        return "example_llm"

    def say(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        return ChatMessage(role="assistant", content="hello Ada")


@pytest.mark.parametrize("way", ["chat", "stream_chat"])
def test_a_chat_engines_reply_names_its_model(
    url: str, opened: Callable[..., Memory], way: str
) -> None:
    memory = opened(url).workspace("alex")
    engine = SimpleChatEngine.from_defaults(
        llm=Named(), memory=DeLLMMemory.from_defaults(memory, "t")
    )
    for text in ("I am Ada", "who am I"):
        if way == "chat":
            engine.chat(text)
        else:
            "".join(engine.stream_chat(text).response_gen)
    assert exposed(memory) == {
        (text, "example", "m") for text in ("I am Ada", "hello Ada", "who am I")
    }


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ({"class_name": "openai_llm", "model_name": "gpt-x"}, "openai/gpt-x"),
        ({"class_name": "Anthropic_LLM", "model_name": "claude"}, "anthropic/claude"),
        ({"class_name": "llm", "model_name": "m"}, "unknown/m"),
        ({"class_name": "a/b", "model_name": "org/m"}, "a_b/org/m"),
        ({"class_name": "MockLLM"}, None),
        ({"class_name": "o", "model_name": " "}, None),
        ({"model_name": "m"}, None),
        (None, None),
    ],
)
def test_what_an_event_says_of_its_model_may_be_anything(said: Any, model: str | None) -> None:
    assert described(said) == model


@pytest.mark.parametrize("outside", [True, False])
def test_what_a_stores_index_embeds_and_asks_is_an_exposure(
    url: str, opened: Callable[..., Memory], outside: bool
) -> None:
    memory = opened(url).workspace("alex")
    with OpenAIServer() as server:
        options = {"base_url": server.url, "api_key": "none", "check_embedding_ctx_length": False}
        embeds = OpenAIEmbeddings(model="small", **options) if outside else None
        index: Any = None if embeds is None else {"embed": embeds, "dims": server.dimensions}
        store = DeLLMStore(memory, index=index)
        store.put(("facts",), "one", {"text": "I am Ada"})
        store.put(("facts",), "two", {"text": "not embedded"}, index=False)
        assert len(store.search(("facts",), query="who am I")) == 2
    found = [(one.host, one.model, one.embeds) for one in memory.exposures()]
    assert found == ([("openai", "small", True)] if outside else [])
    assert [one.count for one in memory.exposures.queries()] == ([1] if outside else [])
    receipt = memory.forget("Ada", scrub=False)
    assert [one.embeds for one in receipt.providers] == ([True] if outside else [])
    assert memory.verify().ok


def test_a_summary_names_the_model_that_wrote_it_in_both_frameworks(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url).workspace("alex")
    with OpenAIServer(reply=lambda _: "Ada was here") as server:
        model = ChatOpenAI(model="gpt-x", base_url=server.url, api_key="none")
        summarizer = DeLLMSummarizer(model, memory)
        middleware = SummarizationMiddleware(
            model,
            summarizer=summarizer,
            trigger=("messages", 3),
            keep=("messages", 1),
            token_counter=len,
        )
        agent: Any = create_agent(
            model, [], middleware=[middleware], checkpointer=DeLLMSaver(memory)
        )
        for text in ("I am Ada", "who am I"):
            agent.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "t"}})
    (made,) = [one for one in memory.export() if one.kind == "summary"]
    assert made.model == "openai/gpt-x"

    other = memory.workspace("other")
    block = DeLLMSummaryBlock(other, llm=Named())
    stock = StockMemory.from_defaults(
        session_id="t",
        token_limit=40,
        token_flush_size=8,
        chat_history_token_ratio=0.4,
        memory_blocks=[block],
        tokenizer_fn=str.split,
        chat_store=DeLLMChatStore(other),
    )
    for number in range(4):
        text = f"I am Ada and I like tea, said {number} times or more"
        stock.put_messages([ChatMessage(text), ChatMessage("noted", role="assistant")])
    (made,) = [one for one in other.export() if one.kind == "summary"]
    assert made.model == "example/m"
    assert {one.record for one in other.exposures()} >= {1, made.id}


class Silent(Named):
    """A model that finds nothing, or breaks off after it was sent all."""

    fails: bool = False

    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        if self.fails:
            raise RuntimeError
        return ChatResponse(message=ChatMessage(" ", role="assistant"))


@pytest.mark.parametrize("block", [DeLLMFactBlock, DeLLMSummaryBlock])
@pytest.mark.parametrize("fails", [False, True])
async def test_what_a_block_sends_for_nothing_is_an_exposure(
    url: str, opened: Callable[..., Memory], block: Any, fails: bool
) -> None:
    memory = opened(url).workspace("alex")
    made = block(memory, llm=Silent(fails=fails))
    with pytest.raises(RuntimeError) if fails else nullcontext():
        await made.aput([ChatMessage("I am Ada")], session_id="t")
    assert ("I am Ada", "example", "m") in exposed(memory)
    assert [one.provider for one in memory.forget("Ada", scrub=False).providers] == ["example"]
