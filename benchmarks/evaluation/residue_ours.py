"""Our memory in the residue audit: in the place of each system, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dellm import Memory
from dellm_langchain import DeLLMCache, DeLLMChatMessageHistory, DeLLMSaver, DeLLMStore, with_memory
from dellm_llamaindex import DeLLMMemory

from .residue_chats import PROMPT, Answers, Chain, Engine
from .residue_contest import (
    ALL,
    MESSAGE,
    TELLING,
    Contestant,
    Place,
    Subject,
    Talk,
    Verb,
    canary_chat,
)
from .residue_graphs import Graph, Items, index_of


class Forgetting:
    """A system on a Memory, which forgets for it; reads and the talk are those of the system."""

    def __init__(self, memory: Memory, subject: Subject) -> None:
        self.memory, self.subject = memory, subject

    def play(self, said: Talk) -> None:
        self.subject.play(said)

    def live(self) -> list[str]:
        return self.subject.live()

    def history(self) -> list[object] | None:
        return self.subject.history()

    def cached(self) -> list[object] | None:
        return self.subject.cached()

    def forget_message(self, said: Talk) -> None:
        self.memory.forget(said.telling)

    def forget_and_scrub(self, said: Talk) -> None:
        self.memory.forget(said.telling, scrub=True)

    def forget_value(self, said: Talk) -> None:
        self.memory.forget(value=said.secret.text, scrub=True)

    def forget_everything(self, _: Talk) -> None:
        self.memory.forget(everything=True, scrub=True)


def _graph(memory: Memory, _: Place) -> Graph:
    return Graph(DeLLMSaver(memory))


def _items(memory: Memory, place: Place) -> Items:
    return Items(DeLLMStore(memory, index=index_of(place.embedder)))


def _engine(memory: Memory, _: Place) -> Engine:
    return Engine(DeLLMMemory.from_defaults(memory, "chat", top_k=None))


def _chain(memory: Memory, _: Place) -> Chain:
    keys = {"input_messages_key": "question", "history_messages_key": "past"}
    chain = with_memory(PROMPT | canary_chat(), memory, last=100, **keys)  # type: ignore[arg-type] # keys of the chain only
    return Chain(chain, DeLLMChatMessageHistory(memory, "chat"))


def _cache(memory: Memory, _: Place) -> Answers:
    return Answers(DeLLMCache(memory))


Made = Callable[[Memory, Place], Subject]
PARTS: tuple[tuple[str, str, Made], ...] = (
    ("DeLLMSaver", "langgraph", _graph),
    ("DeLLMStore", "langgraph", _items),
    ("DeLLMMemory (LlamaIndex)", "llama-index-core", _engine),
    ("with_memory (LangChain)", "langchain-core", _chain),
    ("DeLLMCache", "langchain-core", _cache),
)


def _opened(made: Made, keeps: str) -> Callable[[Place], AbstractContextManager[Any]]:
    @contextmanager
    def opened(place: Place) -> Iterator[Forgetting]:
        url = place.url if keeps == "postgres" else str(place.folder / "memory.db")
        with Memory.open(url, embedder=place.embedder) as memory:
            yield Forgetting(memory, made(memory, place))

    return opened


FORGET = Verb("forget", MESSAGE, Forgetting.forget_message)  # which scrubs small SQLite files
MORE = (
    Verb("forget(value), scrub", TELLING, Forgetting.forget_value),
    Verb("forget(everything), scrub", ALL, Forgetting.forget_everything),
)
VERBS = {
    "files": (FORGET, *MORE),
    "postgres": (FORGET, Verb("forget, scrub", MESSAGE, Forgetting.forget_and_scrub), *MORE),
}
OURS = tuple(
    Contestant(
        f"{name}, {shown}", ("dellm", peer), keeps, _opened(made, keeps), VERBS[keeps], ours=True
    )
    for name, peer, made in PARTS
    for keeps, shown in (("files", "SQLite"), ("postgres", "PostgreSQL"))
)
