"""Every way in which something is deleted, as one table: what puts the word in, and what takes it out.

Each holds for a memory without any hold too; tests check that first, so that no way is one in name only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.messages import HumanMessage
from langchain_core.outputs import Generation
from langgraph.graph import MessagesState, StateGraph
from lines import run, state
from llama_index.core.base.llms.types import ChatMessage
from typer.testing import CliRunner

from dellm import Assistant, Atom, Draft, ExtractiveReader, Keep, Memory, Sources, depth
from dellm.cli import app
from dellm_langchain import DeLLMCache, DeLLMSaver
from dellm_langchain.history import DeLLMChatMessageHistory
from dellm_langchain.store import DeLLMStore
from dellm_llamaindex.chat_store import DeLLMChatStore
from dellm_llamaindex.memory import DeLLMMemory

WORD = "zanzibar"
SAID = f"I was born in {WORD} long ago"
HOUR = 3_600_000_000


@dataclass(frozen=True)
class Path:
    """A way of deleting. `left`: what becomes of the word when the hold ends.

    "gone"; or "unused": it stays, out of use; "back": the way names only what it sees, and it does not
    see what is on hold, so that nobody asked for it.
    """

    put: Callable[[Memory], Any]
    take: Callable[[Memory, Any], object]
    left: str = "gone"


def one(memory: Memory) -> int:
    memory.remember("Something else", thread="v")  # no way may take all there is by a guess
    return memory.remember(SAID, thread="t").id


def with_reply(memory: Memory) -> int:
    first = one(memory)
    memory.record(f"In {WORD}, you say", context=[first], thread="t")
    return first


def forgotten(**selection: Any) -> Path:
    return Path(with_reply, lambda memory, _: memory.forget(**selection))


def waits(memory: Memory) -> int:
    return memory.remember_many([Draft(SAID, thread="t", quarantined=True)])[0].id


def ends(memory: Memory) -> int:
    at = memory._engine.options.clock()
    return memory.remember(SAID, thread="t", retention_until=at + HOUR).id


def item(memory: Memory, *, ttl: float | None = None, text: str = SAID) -> int:
    atom = Atom(Draft(text, role="item", kind="state"))
    memory.items.put("store", [Keep(("a",), "n", atom, ttl)])
    return atom.id or 0


def answer(memory: Memory, *, ttl: float | None = None) -> int:
    reply = memory.remember("a reply", thread="t")
    return memory.answers.keep(f"where is {WORD}?", reply, ttl=ttl, scope="s") or 0


def later(memory: Memory) -> None:
    memory._engine.options.clock.hours += 2


def summed(memory: Memory) -> None:
    one(memory)
    memory.summaries.use(lambda previous, texts: "\n".join([previous or "", *texts]))
    memory.summaries.rolling("t")


def summed_again(memory: Memory, _: object) -> None:
    memory.forget(thread="t")
    memory.remember("another thing", thread="t")
    memory.summaries.rolling("t")


def checkpointed(memory: Memory) -> None:
    line = run(memory, run="first")
    line.put(m=state(SAID))
    run(memory, run="second", parent=line.parent).put("c9999", m=state("something else"))


def graph(memory: Memory) -> Any:
    built = StateGraph(MessagesState)
    built.add_node("n", lambda _: {"messages": []})
    built.set_entry_point("n")
    made = built.compile(checkpointer=DeLLMSaver(memory))
    made.invoke({"messages": [HumanMessage(SAID)]}, {"configurable": {"thread_id": "t"}})
    return made


def in_store(memory: Memory) -> DeLLMStore:
    store = DeLLMStore(memory)
    store.put(("a",), "n", {"text": SAID})
    return store


def in_history(memory: Memory) -> DeLLMChatMessageHistory:
    history = DeLLMChatMessageHistory(memory, "t")
    history.add_messages([HumanMessage(SAID)])
    return history


def in_cache(memory: Memory) -> BaseCache:
    cache = DeLLMCache(memory)
    cache.update("prompt", "model", [Generation(text=SAID)])
    return cache


def in_llama(memory: Memory) -> DeLLMMemory:
    kept = DeLLMMemory.from_defaults(memory, "t")
    kept.put(ChatMessage(SAID, role="user"))
    return kept


def in_chat_store(memory: Memory) -> DeLLMChatStore:
    store = DeLLMChatStore(memory, deletes_forget=True)
    asyncio.run(store.add_message("t", ChatMessage(SAID, role="user")))
    return store


def asked(memory: Memory, _: object) -> None:
    Assistant(memory, ExtractiveReader(), thread="u", confirm=lambda _: True).send(
        f"Forget that I was born in {WORD} long ago."
    )


def commanded(memory: Memory, id_: int) -> None:
    url = memory.url
    arguments = ["forget", "--db", url, "-w", memory.id, "--ids", str(id_), "--yes"]
    done = CliRunner().invoke(app, [*arguments, "--embedder", "none"])
    assert done.exit_code == 0, done.output


PATHS: dict[str, Path] = {
    "ids": Path(with_reply, lambda memory, id_: memory.forget(ids=[id_])),
    "quote": forgotten(quote=SAID),
    "value": forgotten(value=WORD),
    "keyword": forgotten(keyword=WORD),
    "thread": forgotten(thread="t"),
    "where": forgotten(where={"thread": "t"}),
    "everything": forgotten(everything=True),
    "alone": Path(one, lambda memory, id_: memory.forget(ids=[id_], reach=depth(0))),
    "plan": Path(with_reply, lambda memory, _: memory.forget(memory.plan(WORD))),
    "kept plan": Path(
        with_reply,
        lambda memory, _: memory.forget(type(p := memory.plan(WORD)).from_json(p.to_json())),
    ),
    "meaning": Path(
        one, lambda memory, _: memory.forget(memory.plan(meaning=SAID))
    ),
    "redact": forgotten(quote=WORD, mode="redact"),
    "clause": forgotten(quote=WORD, mode="redact", unit="clause"),
    "suppress": Path(
        with_reply, lambda memory, id_: memory.forget(ids=[id_], mode="suppress"), "unused"
    ),
    "regenerate": Path(
        with_reply,
        lambda memory, id_: memory.forget(
            ids=[id_], on_dependents="regenerate", regenerate=lambda *_: None
        ),
    ),
    "reject": Path(waits, lambda memory, id_: memory.forget(ids=[id_])),
    "expiry": Path(ends, lambda memory, _: (later(memory), memory.expiry.sweep())),
    "item over": Path(item, lambda memory, _: item(memory, text="another")),
    "item deleted": Path(item, lambda memory, _: memory.items.put("store", [Keep(("a",), "n")])),
    "items cleared": Path(item, lambda memory, _: memory.items.clear("store")),
    "items expired": Path(
        lambda memory: item(memory, ttl=1),
        lambda memory, _: (later(memory), memory.items.sweep("store")),
    ),
    "answers cleared": Path(answer, lambda memory, _: memory.answers.clear()),
    "answers expired": Path(
        lambda memory: answer(memory, ttl=1),
        lambda memory, _: (later(memory), memory.answers.sweep()),
    ),
    "summary over": Path(summed, summed_again),
    "assistant": Path(one, asked),
    "command line": Path(one, commanded),
    "line deleted": Path(checkpointed, lambda memory, _: memory.checkpoints.delete_thread("t")),
    "line pruned": Path(checkpointed, lambda memory, _: memory.checkpoints.keep_newest(["t"])),
    "run deleted": Path(checkpointed, lambda memory, _: memory.checkpoints.delete_runs(["first"])),
    "saver.delete_thread": Path(graph, lambda memory, _: DeLLMSaver(memory).delete_thread("t")),
    "saver.prune all": Path(
        graph, lambda memory, _: DeLLMSaver(memory).prune(["t"], strategy="delete")
    ),
    "store.delete": Path(in_store, lambda _, store: store.delete(("a",), "n")),
    "store.put over": Path(in_store, lambda _, store: store.put(("a",), "n", {"text": "other"})),
    "store.clear": Path(in_store, lambda _, store: store.clear(("a",))),
    "history.clear": Path(in_history, lambda _, history: history.clear()),
    "cache.clear": Path(in_cache, lambda _, cache: cache.clear()),
    "llama.forget": Path(in_llama, lambda _, kept: kept.forget(WORD)),
    "chat_store.delete": Path(
        in_chat_store, lambda _, store: asyncio.run(store.delete_messages("t")), "back"
    ),
    "tied": Path(item, lambda memory, id_: memory.items.tie([id_], [None]), "back"),
    "made of it": Path(
        one,
        lambda memory, id_: (
            memory.items.put(
                "store",
                [Keep(("a",), "n", Atom(Draft(SAID, kind="state", role="item"),
                                         made=Sources(known=(id_,))))],
            ),
            memory.forget(ids=[id_]),
        ),
    ),
}  # fmt: skip
