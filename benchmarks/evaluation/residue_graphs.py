"""LangGraph's savers and stores in the residue audit, and ours in their places."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore, IndexConfig
from langgraph.store.memory import InMemoryStore

from dellm.embedding import Embedder

from .residue_contest import ALL, MESSAGE, TELLING, Contestant, Place, Talk, Verb, canary_chat

CONFIG: Any = {"configurable": {"thread_id": "chat"}}
SPACE = ("alex", "facts")


class State(MessagesState):
    """The messages, and a summary of them that the graph keeps beside."""

    summary: str


def _answer(state: State) -> dict[str, Any]:
    reply = canary_chat().invoke(state["messages"])
    return {"messages": [reply], "summary": f"Said so far: {reply.text}"}


class Graph:
    """A chat on a checkpointer."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        self.saver = saver
        made = StateGraph(State)
        made.add_node("bot", _answer)
        made.add_edge(START, "bot")
        self.app = made.compile(checkpointer=saver)

    def play(self, said: Talk) -> None:
        for turn in said.turns:
            self.app.invoke({"messages": [HumanMessage(turn)], "summary": ""}, CONFIG)

    @property
    def values(self) -> dict[str, Any]:
        found: dict[str, Any] = self.app.get_state(CONFIG).values
        return found

    def live(self) -> list[str]:
        texts = [one.text for one in self.values.get("messages", [])]
        return [*texts, self.values.get("summary", "")]

    def history(self) -> list[object]:
        """Return all states but the newest, as get_state_history gives them."""
        states = list(self.app.get_state_history(CONFIG))[1:]
        return [(one.values, one.tasks, one.metadata) for one in states]

    def cached(self) -> None:
        return None

    def remove_message(self, said: Talk) -> None:
        """Remove the message that tells the secret."""
        self._remove([one for one in self.values["messages"] if one.text == said.telling])

    def remove_telling(self, said: Talk) -> None:
        """Remove every message that holds the secret, and empty the summary."""
        holding = [one for one in self.values["messages"] if said.secret.told_by(one.text)]
        self._remove(holding, summary="")

    def _remove(self, messages: list[Any], **more: Any) -> None:
        gone = [RemoveMessage(id=one.id) for one in messages]
        self.app.update_state(CONFIG, {"messages": gone, **more})

    def delete_thread(self, _: Talk) -> None:
        self.saver.delete_thread("chat")


SAVER_VERBS = (
    Verb("update_state with RemoveMessage", MESSAGE, Graph.remove_message),
    Verb("update_state with RemoveMessage", TELLING, Graph.remove_telling),
    Verb("delete_thread", ALL, Graph.delete_thread),
)


class Items:
    """Long-term facts in a LangGraph store: what was told, and a summary made of it."""

    def __init__(self, store: BaseStore) -> None:
        self.store = store

    def play(self, said: Talk) -> None:
        for key, text in (("dog", said.first), ("phone", said.telling), ("chess", said.last)):
            self.store.put(SPACE, key, {"text": text})
        read = self.store.search(SPACE)
        summary = " ".join(one.value["text"] for one in read)
        self.store.put(SPACE, "summary", {"text": summary})

    def live(self) -> list[str]:
        return [one.value["text"] for one in self.store.search(SPACE, limit=100)]

    def history(self) -> None:
        return None

    def cached(self) -> None:
        return None

    def delete_one(self, _: Talk) -> None:
        self.store.delete(SPACE, "phone")

    def delete_telling(self, said: Talk) -> None:
        for one in self.store.search(SPACE, limit=100):
            if said.secret.told_by(one.value):
                self.store.delete(SPACE, one.key)

    def delete_all(self, _: Talk) -> None:
        for one in self.store.search(SPACE, limit=100):
            self.store.delete(SPACE, one.key)


STORE_VERBS = (
    Verb("store.delete", MESSAGE, Items.delete_one),
    Verb("store.delete", TELLING, Items.delete_telling),
    Verb("store.delete of each item", ALL, Items.delete_all),
)


def loads_extensions() -> bool:
    """Whether SqliteStore can search by vectors: not every Python lets it."""
    return hasattr(sqlite3.Connection, "enable_load_extension")


def index_of(embedder: Embedder) -> IndexConfig:
    """Return the index configuration of a store."""

    def embed(texts: Any) -> list[list[float]]:
        return [row.tolist() for row in embedder.embed(list(texts))]

    return {"dims": embedder.embed(["one"]).shape[1], "embed": embed, "fields": ["text"]}


@contextmanager
def _memory_saver(_: Place) -> Iterator[Graph]:
    yield Graph(InMemorySaver())


def _sqlite_saver(pragma: str = "") -> Callable[[Place], Any]:
    @contextmanager
    def opened(place: Place) -> Iterator[Graph]:
        from langgraph.checkpoint.sqlite import SqliteSaver

        with SqliteSaver.from_conn_string(str(place.folder / "checkpoints.db")) as saver:
            if pragma:
                saver.conn.execute(pragma)
            yield Graph(saver)

    return opened


@contextmanager
def _postgres_saver(place: Place) -> Iterator[Graph]:
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(place.url) as saver:
        saver.setup()
        yield Graph(saver)


@contextmanager
def _memory_store(place: Place) -> Iterator[Items]:
    yield Items(InMemoryStore(index=index_of(place.embedder)))


@contextmanager
def _sqlite_store(place: Place) -> Iterator[Items]:
    from langgraph.store.sqlite import SqliteStore

    index: Any = index_of(place.embedder) if loads_extensions() else None
    with SqliteStore.from_conn_string(str(place.folder / "store.db"), index=index) as store:
        store.setup()
        yield Items(store)


@contextmanager
def _postgres_store(place: Place) -> Iterator[Items]:
    from langgraph.store.postgres import PostgresStore

    index: Any = index_of(place.embedder)
    with PostgresStore.from_conn_string(place.url, index=index) as store:
        store.setup()
        yield Items(store)


def _in_saver(graph: Graph) -> list[object]:
    kept: Any = graph.saver
    blobs = [value for each in (kept.blobs, kept.writes) for value in each.values()]
    return [*blobs, *(one for spaces in kept.storage.values() for one in spaces.values())]


def _in_store(items: Items) -> list[object]:
    kept: Any = items.store
    return [one.value for space in kept._data.values() for one in space.values()]


GRAPH, SQLITE = ("langgraph", "langgraph-checkpoint"), "langgraph-checkpoint-sqlite"
POSTGRES = "langgraph-checkpoint-postgres"
SAVERS = (
    Contestant("InMemorySaver", GRAPH, "memory", _memory_saver, SAVER_VERBS, _in_saver),
    Contestant("SqliteSaver", (*GRAPH, SQLITE), "files", _sqlite_saver(), SAVER_VERBS),
    Contestant(
        "SqliteSaver, secure_delete off",
        (*GRAPH, SQLITE),
        "files",
        _sqlite_saver("pragma secure_delete = off"),
        SAVER_VERBS,
    ),
    Contestant("PostgresSaver", (*GRAPH, POSTGRES), "postgres", _postgres_saver, SAVER_VERBS),
)
STORES = (
    Contestant("InMemoryStore", GRAPH, "memory", _memory_store, STORE_VERBS, _in_store),
    Contestant("SqliteStore", (*GRAPH, SQLITE), "files", _sqlite_store, STORE_VERBS),
    Contestant("PostgresStore", (*GRAPH, POSTGRES), "postgres", _postgres_store, STORE_VERBS),
)
