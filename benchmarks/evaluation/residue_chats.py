"""LlamaIndex's memories, LangChain's history and cache, and mem0 in the residue audit."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult, Generation
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from pydantic import Field

from dellm.embedding import Embedder

from .canary import Canary
from .residue_contest import ALL, MESSAGE, TELLING, Contestant, Place, Talk, Verb, canary_chat
from .systems.chat import Chat

SESSION: Any = {"configurable": {"session_id": "chat"}}


class Engine:
    """A LlamaIndex chat engine whose model repeats its prompt, on some memory."""

    def __init__(self, memory: Any) -> None:
        from llama_index.core.chat_engine import SimpleChatEngine
        from llama_index.core.llms import MockLLM

        self.memory = memory
        self.engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory)

    def play(self, said: Talk) -> None:
        for turn in said.turns:
            self.engine.chat(turn)

    def live(self) -> list[str]:
        return [one.content or "" for one in self.memory.get_all()]

    def history(self) -> list[object] | None:
        return None

    def cached(self) -> None:
        return None


class Sessions(Engine):
    """LlamaIndex's Memory: its SQL store deletes by the row's number, or a whole session."""

    def history(self) -> list[object]:
        """Return the messages that are archived, which `get_all` does give by their status."""
        from llama_index.core.storage.chat_store.base_db import MessageStatus

        return list(self.memory.get_all(status=MessageStatus.ARCHIVED))

    def delete_one(self, said: Talk) -> None:
        self._delete(lambda text: text == said.telling)

    def delete_telling(self, said: Talk) -> None:
        self._delete(said.secret.told_by)

    def _delete(self, wanted: Any) -> None:
        from llama_index.core.async_utils import asyncio_run

        store = self.memory.sql_store
        for number, text in asyncio_run(self._numbered()):
            if wanted(text):
                asyncio_run(store.delete_message("chat", number))

    async def _numbered(self) -> list[tuple[int, str]]:
        from sqlalchemy import select

        session, table = await self.memory.sql_store._initialize()
        async with session() as opened:
            found = await opened.execute(select(table.c.id, table.c.data))
            return [(one.id, one.data["blocks"][0]["text"]) for one in found]

    def reset(self, _: Talk) -> None:
        self.memory.reset()


class Buffer(Engine):
    """ChatMemoryBuffer on a SimpleChatStore, in memory."""

    def delete_one(self, said: Talk) -> None:
        self._delete(lambda text: text == said.telling)

    def delete_telling(self, said: Talk) -> None:
        self._delete(said.secret.told_by)

    def _delete(self, wanted: Any) -> None:
        texts = self.live()
        for number in reversed(range(len(texts))):
            if wanted(texts[number]):
                self.memory.chat_store.delete_message(self.memory.chat_store_key, number)

    def reset(self, _: Talk) -> None:
        self.memory.reset()


@contextmanager
def _sessions(place: Place) -> Iterator[Sessions]:
    from llama_index.core.async_utils import asyncio_run
    from llama_index.core.memory import Memory

    uri = f"sqlite+aiosqlite:///{place.folder / 'chat.db'}"
    subject = Sessions(Memory.from_defaults(session_id="chat", async_database_uri=uri))
    yield subject
    engine = subject.memory.sql_store._async_engine
    if engine is not None:
        asyncio_run(engine.dispose())


@contextmanager
def _buffer(_: Place) -> Iterator[Buffer]:
    from llama_index.core.memory import ChatMemoryBuffer
    from llama_index.core.storage.chat_store import SimpleChatStore

    store = SimpleChatStore()
    yield Buffer(ChatMemoryBuffer.from_defaults(chat_store=store, token_limit=100_000))


def _in_buffer(buffer: Buffer) -> list[object]:
    return [one for kept in buffer.memory.chat_store.store.values() for one in kept]


PROMPT = ChatPromptTemplate([MessagesPlaceholder("past"), ("human", "{question}")])


class Chain:
    """A LangChain chain with a chat history."""

    def __init__(self, chain: Any, history: Any) -> None:
        self.chain, self.past = chain, history

    def play(self, said: Talk) -> None:
        for turn in said.turns:
            self.chain.invoke({"question": turn}, SESSION)

    def live(self) -> list[str]:
        return [one.text for one in self.past.messages]

    def history(self) -> None:
        return None

    def cached(self) -> None:
        return None

    def clear(self, _: Talk) -> None:
        self.past.clear()


@contextmanager
def _chain(place: Place) -> Iterator[Chain]:
    from sqlalchemy import create_engine

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both packages announce their successors
        from langchain_community.chat_message_histories import SQLChatMessageHistory
        from langchain_core.runnables.history import RunnableWithMessageHistory

        engine = create_engine(f"sqlite:///{place.folder / 'history.db'}")
        past = SQLChatMessageHistory("chat", connection=engine)
        chain = RunnableWithMessageHistory(
            PROMPT | canary_chat(),
            lambda _: past,
            input_messages_key="question",
            history_messages_key="past",
        )
        yield Chain(chain, past)
        engine.dispose()


class Answers:
    """A cache of a model's answers: what is asked with the whole talk so far as the prompt."""

    def __init__(self, cache: Any) -> None:
        self.cache, self.prompts = cache, list[str]()

    def play(self, said: Talk) -> None:
        self.prompts = [
            said.first,
            " ".join([said.first, said.telling, said.question]),
            said.last,
        ]
        for prompt in self.prompts:
            self.cache.update(prompt, "canary", [Generation(text=prompt)])

    def _found(self) -> list[str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a default of langchain-core's that will change
            found = [self.cache.lookup(prompt, "canary") for prompt in self.prompts]
        return [one[0].text for one in found if one]

    def live(self) -> list[str]:
        return self._found()

    def history(self) -> None:
        return None

    def cached(self) -> list[object]:
        return list(self._found())

    def clear(self, _: Talk) -> None:
        self.cache.clear()


@contextmanager
def _cache(place: Place) -> Iterator[Answers]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package announces its successors
        from langchain_community.cache import SQLiteCache

        cache = SQLiteCache(str(place.folder / "cache.db"))
    yield Answers(cache)
    cache.engine.dispose()


class Extracting(Chat):
    """The model that mem0 asks what to keep: it keeps what the newest message says, word for word."""

    inner: Any = Field(default_factory=Canary)
    fact: str = ""

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        said = json.dumps({"memory": [{"text": self.fact}]})
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])


class AsLangChain(Embeddings):
    """An embedder of ours as LangChain knows them."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [row.tolist() for row in self.embedder.embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Mem0:
    """mem0 with a local vector store and its history database."""

    def __init__(self, memory: Any, model: Extracting) -> None:
        self.memory, self.model, self.ids = memory, model, list[str]()

    def play(self, said: Talk) -> None:
        for turn in said.turns:
            asked = turn == said.question
            reply = f"Your phone number is {said.secret.text}." if asked else "Noted."
            self.model.fact = f"User asked for the phone: {reply}" if asked else turn
            spoken = [{"role": "user", "content": turn}, {"role": "assistant", "content": reply}]
            self.memory.add(spoken, user_id="alex")
        self.ids = [one["id"] for one in self._all()]

    def _all(self) -> list[dict[str, Any]]:
        found = self.memory.get_all(filters={"user_id": "alex"})
        return list(found["results"])

    def live(self) -> list[str]:
        return [one["memory"] for one in self._all()]

    def history(self) -> list[object]:
        return [entry for one in self.ids for entry in self.memory.history(one)]

    def cached(self) -> list[object]:
        """Return the newest messages, which mem0 keeps for the prompt of its next extraction."""
        return list(self.memory.db.get_last_messages("user_id=alex"))

    def delete_one(self, said: Talk) -> None:
        self._delete(lambda text: text == said.telling)

    def delete_telling(self, said: Talk) -> None:
        self._delete(said.secret.told_by)

    def _delete(self, wanted: Any) -> None:
        for one in self._all():
            if wanted(one["memory"]):
                self.memory.delete(one["id"])

    def delete_all(self, _: Talk) -> None:
        self.memory.delete_all(user_id="alex")

    def reset(self, _: Talk) -> None:
        self.memory.reset()


def _configuration(place: Place, model: Extracting) -> dict[str, Any]:
    vectors = {
        "path": str(place.folder / "qdrant"),
        "on_disk": True,
        "embedding_model_dims": place.embedder.dimensions,
    }
    return {
        "vector_store": {"provider": "qdrant", "config": vectors},
        "llm": {"provider": "langchain", "config": {"model": model}},
        "embedder": {"provider": "langchain", "config": {"model": AsLangChain(place.embedder)}},
        "history_db_path": str(place.folder / "history.db"),
    }


@contextmanager
def _mem0(place: Place) -> Iterator[Mem0]:
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ.setdefault("MEM0_DIR", str(place.folder / "settings"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from mem0 import Memory  # type: ignore[import-untyped] # it has no types

        model = Extracting()
        with closing(Memory.from_config(_configuration(place, model))) as memory:
            yield Mem0(memory, model)
            memory.vector_store.client.close()


LLAMA, LANGCHAIN = ("llama-index-core",), ("langchain-core", "langchain-community")
CHATS = (
    Contestant(
        "LlamaIndex Memory",
        (*LLAMA, "SQLAlchemy"),
        "files",
        _sessions,
        (
            Verb("sql_store.delete_message", MESSAGE, Sessions.delete_one),
            Verb("sql_store.delete_message", TELLING, Sessions.delete_telling),
            Verb("Memory.reset", ALL, Sessions.reset),
        ),
    ),
    Contestant(
        "LlamaIndex ChatMemoryBuffer",
        LLAMA,
        "memory",
        _buffer,
        (
            Verb("chat_store.delete_message", MESSAGE, Buffer.delete_one),
            Verb("chat_store.delete_message", TELLING, Buffer.delete_telling),
            Verb("reset", ALL, Buffer.reset),
        ),
        _in_buffer,
    ),
    Contestant(
        "RunnableWithMessageHistory",
        LANGCHAIN,
        "files",
        _chain,
        (Verb("none for one message", MESSAGE, None), Verb("clear", ALL, Chain.clear)),
    ),
    Contestant(
        "SQLiteCache",
        LANGCHAIN,
        "files",
        _cache,
        (Verb("none for one answer", MESSAGE, None), Verb("clear", ALL, Answers.clear)),
    ),
    Contestant(
        "mem0",
        ("mem0ai", "qdrant-client"),
        "files",
        _mem0,
        (
            Verb("delete", MESSAGE, Mem0.delete_one),
            Verb("delete", TELLING, Mem0.delete_telling),
            Verb("delete_all(user_id)", ALL, Mem0.delete_all),
            Verb("reset", "everybody", Mem0.reset),
        ),
    ),
)
