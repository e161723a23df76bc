"""DeLLMSaver as users set it up: tenants, options, thread ids, pruning, strict mode. Both databases."""

from __future__ import annotations

import asyncio
import operator
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages

from dellm import InvalidInput, Memory
from dellm_langchain import DeLLMSaver

Opened = Callable[..., Memory]


class Echo(BaseChatModel):
    """Repeats its whole prompt."""

    @property
    def _llm_type(self) -> str:
        return "echo"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        said = " / ".join(str(one.content) for one in messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"heard {said}"))])


def chat(saver: Any, state: Any = MessagesState) -> Any:
    model = Echo()
    graph = StateGraph(state)
    graph.add_node("bot", lambda values: {"messages": [model.invoke(values["messages"])]})
    graph.add_edge(START, "bot")
    return graph.compile(checkpointer=saver)


def at(thread: Any = "t", **more: Any) -> Any:
    return {"configurable": {"thread_id": thread, **more}}


def said(*texts: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text) for text in texts]}


def texts(app: Any, config: Any) -> list[str]:
    return [one.content for one in app.get_state(config).values.get("messages", ())]


# tenants


def test_one_graph_serves_many_tenants_and_none_sees_another(url: str, opened: Opened) -> None:
    memory = opened(url)
    saver = DeLLMSaver(memory, workspace="user_id")
    app = chat(saver)
    for user, text in (("alex", "quokka"), ("sam", "wombat")):
        app.invoke(said(text), at(user_id=user))
    assert texts(app, at(user_id="alex")) == ["quokka", "heard quokka"]
    assert texts(app, at(user_id="sam")) == ["wombat", "heard wombat"]
    assert [one.text for one in memory.workspace("alex").history("t")] == ["quokka", "heard quokka"]
    memory.workspace("alex").forget("quokka")
    assert texts(app, at(user_id="alex")) == []
    assert texts(app, at(user_id="sam")) == ["wombat", "heard wombat"]
    saver.for_workspace("sam").delete_thread("t")
    assert texts(app, at(user_id="sam")) == []


def test_calls_that_name_no_tenant_are_errors(sqlite_url: str, opened: Opened) -> None:
    saver = DeLLMSaver(opened(sqlite_url), workspace="user_id")
    app = chat(saver)
    app.invoke(said("quokka"), at(user_id="alex"))
    with pytest.raises(InvalidInput, match="user_id"):
        app.invoke(said("wombat"), at())
    for call in (
        lambda: saver.delete_thread("t"),
        lambda: saver.prune(["t"]),
        lambda: saver.prune(["t"], strategy="delete"),
        lambda: saver.copy_thread("t", "u"),
        lambda: saver.delete_for_runs(["r"]),
        lambda: list(saver.list(None)),
        lambda: asyncio.run(saver.adelete_thread("t")),
    ):
        with pytest.raises(InvalidInput, match="for_workspace"):
            call()
    assert len(list(saver.for_workspace("alex").list(None))) == 3
    assert list(saver.for_workspace("sam").list(None)) == []
    assert texts(app, at(user_id="alex")) == ["quokka", "heard quokka"]


def test_a_prompt_of_one_tenant_is_no_source_of_another_in_the_same_thread(
    sqlite_url: str, opened: Opened
) -> None:
    memory = opened(sqlite_url)
    app = chat(DeLLMSaver(memory, workspace="user_id"))
    for user in ("alex", "sam"):
        app.invoke(said("quokka of " + user), at(user_id=user), durability="exit")
    for user in ("alex", "sam"):
        reply = memory.workspace(user).history("t")[-1]
        context = [memory.workspace(user).get(one).text for one in
                   memory.workspace(user).context_of(reply.id)]  # fmt: skip
        assert context == ["quokka of " + user]


# opening


def test_it_opens_from_a_connection_string_as_the_stock_savers_do(url: str) -> None:
    with DeLLMSaver.from_conn_string(url, embedder=None, untracked={"x"}) as saver:
        chat(saver).invoke(said("quokka"), at())
    with DeLLMSaver.from_conn_string(url, embedder=None) as saver:
        assert texts(chat(saver), at()) == ["quokka", "heard quokka"]


def test_it_takes_a_memory_and_nothing_else() -> None:
    with pytest.raises(InvalidInput):
        DeLLMSaver("memory.db")  # type: ignore[arg-type]


def test_it_can_be_set_up_only_with_what_makes_sense(sqlite_url: str, opened: Opened) -> None:
    memory = opened(sqlite_url)
    for options in (
        {"untracked": "counter"},
        {"reads": {"bot": "messages"}},
        {"rebuild": {"summary": "not a function"}},
        {"schema": 7},
    ):
        with pytest.raises(InvalidInput):
            DeLLMSaver(memory, **options)


# threads


def test_a_number_and_its_text_are_two_threads(url: str, opened: Opened) -> None:
    """To the saver; LangGraph's own graphs turn a number into text before they ask it."""
    saver = DeLLMSaver(opened(url))
    app = chat(saver)
    names = (1, "1", "int:1", "str:1")
    for name in names:
        written = {**empty_checkpoint(), "channel_values": {"said": f"by {name!r}"}}
        written["channel_versions"] = {"said": 1}
        config = at(name, checkpoint_ns="")
        saver.put(config, written, {"source": "update", "step": 1, "parents": {}}, {"said": 1})
    for name in names:
        found = saver.get_tuple(at(name))
        assert found.checkpoint["channel_values"] == {"said": f"by {name!r}"}
        assert found.config["configurable"]["thread_id"] == name
    saver.delete_thread(1)  # type: ignore[arg-type]
    assert [saver.get_tuple(at(name)) is None for name in names] == [True, False, False, False]
    app.invoke(said("quokka"), at(7))
    assert texts(app, at(7)) == texts(app, at("7")) == ["quokka", "heard quokka"]


@pytest.mark.parametrize("thread", [None, "", "  ", 1.5, True, ["t"]])
def test_a_thread_without_a_name_is_an_error(thread: Any, sqlite_url: str, opened: Opened) -> None:
    saver = DeLLMSaver(opened(sqlite_url))
    with pytest.raises(InvalidInput):
        saver.get_tuple(at(thread))
    with pytest.raises(InvalidInput, match="thread"):
        saver.get_tuple({"configurable": {}})


def test_a_long_thread_id_is_no_problem(url: str, opened: Opened) -> None:
    app = chat(DeLLMSaver(opened(url)))
    name = "t" * 2_000
    app.invoke(said("quokka"), at(name))
    assert texts(app, at(name)) == ["quokka", "heard quokka"]


# options


class Notes(TypedDict):
    messages: Annotated[list[Any], add_messages]
    summary: str
    verdict: Literal["yes", "no"]
    counter: str


def noting(saver: Any) -> Any:
    def bot(values: Notes) -> Any:
        newest = values["messages"][-1].content
        return {"summary": f"about {newest}", "verdict": "yes", "counter": f"{len(newest)} letters"}

    graph = StateGraph(Notes)
    graph.add_node("bot", bot)
    graph.add_edge(START, "bot")
    return graph.compile(checkpointer=saver)


def test_a_literal_and_an_untracked_channel_outlive_what_they_were_written_with(
    url: str, opened: Opened
) -> None:
    memory = opened(url)
    app = noting(DeLLMSaver(memory, schema=Notes, untracked={"counter"}))
    app.invoke(said("quokka"), at())
    memory.forget("quokka")
    assert app.get_state(at()).values == {"messages": [], "verdict": "yes", "counter": "6 letters"}


def test_an_erased_value_is_its_earlier_one_else_its_default(url: str, opened: Opened) -> None:
    memory = opened(url)
    app = noting(DeLLMSaver(memory, defaults={"summary": "nothing yet"}))
    app.invoke(said("wombat"), at())
    app.invoke(said("quokka"), at())
    memory.forget("quokka")
    assert app.get_state(at()).values["summary"] == "about wombat"
    memory.forget("wombat")
    assert app.get_state(at()).values["summary"] == "nothing yet"


def test_an_erased_value_is_rebuilt_from_what_survives(url: str, opened: Opened) -> None:
    memory = opened(url)
    rebuild = {"summary": lambda values: f"{len(values['messages'])} message(s)"}
    app = noting(DeLLMSaver(memory, rebuild=rebuild))
    app.invoke(said("wombat"), at())
    app.invoke(said("quokka"), at())
    assert app.get_state(at()).values["summary"] == "about quokka"
    memory.forget("quokka")
    assert app.get_state(at()).values["summary"] == "1 message(s)"
    assert "quokka" not in str(app.get_state(at()).values)


def test_a_node_depends_on_no_channel_that_it_does_not_read(url: str, opened: Opened) -> None:
    class Two(TypedDict):
        given: str
        other: str
        made: str

    def build(**options: Any) -> Any:
        graph = StateGraph(Two)
        graph.add_node("bot", lambda values: {"made": f"of {values['given']}"})
        graph.add_edge(START, "bot")
        return graph.compile(checkpointer=DeLLMSaver(memory, **options))

    memory = opened(url)
    narrow, wide = build(reads={"bot": ["given"]}), build()
    for name, app in (("narrow", narrow), ("wide", wide)):
        app.invoke({"given": "wombat", "other": "quokka"}, at(name))
    memory.forget("quokka")
    assert narrow.get_state(at("narrow")).values == {"given": "wombat", "made": "of wombat"}
    assert wide.get_state(at("wide")).values == {"given": "wombat"}
    memory.forget("wombat")
    assert narrow.get_state(at("narrow")).values == {}


def test_what_a_reducer_made_of_an_update_depends_on_the_value_before(
    url: str, opened: Opened
) -> None:
    class Log(TypedDict):
        log: Annotated[str, operator.add]
        last: str

    memory = opened(url)
    graph = StateGraph(Log)
    graph.add_node("bot", lambda _: {"last": "done"})
    graph.add_edge(START, "bot")
    app = graph.compile(checkpointer=DeLLMSaver(memory))
    app.invoke({"log": "quokka", "last": "old"}, at())
    app.update_state(at(), {"log": " and wombat", "last": "new"}, as_node="bot")
    assert app.get_state(at()).values == {"log": "quokka and wombat", "last": "new"}
    first = next(one for one in memory.export() if one.text == "quokka")
    memory.forget(ids=[first.id])
    assert "quokka" not in str([one.values for one in app.get_state_history(at())])
    assert app.get_state(at()).values["last"] == "new"


def test_what_cannot_be_traced_is_counted(sqlite_url: str, opened: Opened) -> None:
    memory = opened(sqlite_url)
    saver = DeLLMSaver(memory)
    graph = StateGraph(MessagesState)
    model = Echo()
    graph.add_node("bot", lambda _: {"messages": [model.invoke("a prompt without messages")]})
    graph.add_edge(START, "bot")
    graph.compile(checkpointer=saver).invoke(said("quokka"), at())
    assert saver.inexact == 1
    assert memory.history("t")[-1].metadata == {"inexact": True}


# pruning and copying


class Delta(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(_messages_delta_reducer, snapshot_frequency=100)]


@pytest.mark.parametrize("state", [MessagesState, Delta])
def test_a_pruned_thread_goes_on_from_its_newest_checkpoint(
    state: Any, url: str, opened: Opened
) -> None:
    saver = DeLLMSaver(opened(url))
    app = chat(saver, state)
    for text in ("one", "two", "three"):
        app.invoke(said(text), at())
    before, number = texts(app, at()), len(list(saver.list(at())))
    saver.prune(["t"])
    assert texts(app, at()) == before
    left = len(list(saver.list(at())))
    assert left == 1 if state is MessagesState else left <= number
    app.invoke(said("four"), at())
    assert texts(app, at())[:6] == before
    assert texts(app, at())[6] == "four"
    saver.prune(["t"], strategy="delete")
    assert texts(app, at()) == []
    with pytest.raises(InvalidInput):
        saver.prune(["t"], strategy="some")


def test_a_pruned_thread_still_forgets_what_its_messages_were_made_from(
    url: str, opened: Opened
) -> None:
    memory = opened(url)
    saver = DeLLMSaver(memory)
    app = chat(saver)
    app.invoke(said("quokka"), at())
    app.invoke(said("what did I say?"), at())
    saver.prune(["t"])
    memory.forget("quokka")
    assert texts(app, at()) == ["what did I say?"]
    assert memory.verify().ok


@pytest.mark.parametrize("state", [MessagesState, Delta])
def test_a_copy_goes_on_by_itself_and_forgets_with_its_original(
    state: Any, url: str, opened: Opened
) -> None:
    memory = opened(url)
    saver = DeLLMSaver(memory)
    app = chat(saver, state)
    app.invoke(said("wombat"), at())
    app.invoke(said("quokka"), at())
    saver.copy_thread("t", "copy")
    assert texts(app, at("copy")) == texts(app, at())
    app.invoke(said("of the copy"), at("copy"))
    assert "of the copy" not in texts(app, at())
    memory.forget("quokka")
    assert texts(app, at()) == ["wombat", "heard wombat"]
    assert texts(app, at("copy")) == ["wombat", "heard wombat", "of the copy"]
    assert memory.verify().ok


def test_deleting_a_thread_leaves_its_copy(url: str, opened: Opened) -> None:
    memory = opened(url)
    saver = DeLLMSaver(memory)
    app = chat(saver)
    app.invoke(said("quokka"), at())
    saver.copy_thread("t", "copy")
    saver.delete_thread("t")
    assert texts(app, at()) == []
    assert texts(app, at("copy")) == ["quokka", "heard quokka"]
    assert [one.text for one in memory.history("t")] == []
    assert memory.verify().ok


def test_the_runs_that_are_deleted_leave_nothing_that_only_they_held(
    url: str, opened: Opened
) -> None:
    memory = opened(url)
    saver = DeLLMSaver(memory)
    app = chat(saver)
    app.invoke(said("wombat"), {**at(), "metadata": {"run_id": "r1"}})
    app.invoke(said("quokka"), {**at(), "metadata": {"run_id": "r2"}})
    saver.delete_for_runs(["r2"])
    assert texts(app, at()) == ["wombat", "heard wombat"]
    assert memory.scan("quokka", files=False).clean
    assert memory.verify().ok


# how it stores


def test_a_thread_costs_a_constant_number_of_rows_a_turn(sqlite_url: str, opened: Opened) -> None:
    memory = opened(sqlite_url)
    app = chat(DeLLMSaver(memory))

    def rows() -> int:
        with memory._engine.reading("default") as (tx, _):
            names = ("record", "edge", "sequence", "checkpoint", "task_write")
            return sum(tx.one(f"select count(*) from {name}")[0] for name in names)

    counts = []
    for turn in range(12):
        app.invoke(said(f"turn {turn}"), at())
        counts.append(rows())
    grown = [after - before for before, after in pairwise(counts)]
    assert len(set(grown[3:])) == 1


def test_the_states_are_those_of_the_stock_saver(url: str, opened: Opened) -> None:
    ours, stock = chat(DeLLMSaver(opened(url))), chat(InMemorySaver())
    for app in (ours, stock):
        for text in ("one", "two"):
            app.invoke({"messages": [HumanMessage(text, id=text)]}, at())
    mine, its = (list(app.get_state_history(at())) for app in (ours, stock))
    assert len(mine) == len(its)
    for one, other in zip(mine, its, strict=True):
        assert one.next == other.next
        assert [m.content for m in one.values.get("messages", ())] == [
            m.content for m in other.values.get("messages", ())
        ]
        assert {k: one.metadata[k] for k in ("source", "step", "parents")} == {
            k: other.metadata[k] for k in ("source", "step", "parents")
        }
        assert one.metadata.keys() == other.metadata.keys()


def test_two_reads_share_nothing_that_can_be_changed(sqlite_url: str, opened: Opened) -> None:
    class Mixed(TypedDict):
        messages: Annotated[list[Any], add_messages]
        numbers: list[int]
        empty: dict[str, Any]
        data: dict[str, Any]

    saver = DeLLMSaver(opened(sqlite_url))
    graph = StateGraph(Mixed)
    graph.add_node("bot", lambda _: {"numbers": [1, 2], "empty": {}, "data": {"a": ["b"]}})
    graph.add_edge(START, "bot")
    app = graph.compile(checkpointer=saver)
    app.invoke(said("quokka"), at())
    first = app.get_state(at()).values
    first["messages"][0].content = "changed"
    first["messages"].append("more")
    first["numbers"].append(3)
    first["empty"]["x"] = 1
    first["data"]["a"].append("c")
    second = app.get_state(at()).values
    assert [one.content for one in second["messages"]] == ["quokka"]
    assert (second["numbers"], second["empty"], second["data"]) == ([1, 2], {}, {"a": ["b"]})


def test_strict_mode_keeps_working_through_a_copy_of_the_saver(tmp_path: Path) -> None:
    """The graph is compiled with a shallow copy of the saver then, whose serializer knows more."""
    program = """
import sys, dellm
from dataclasses import dataclass
from typing import TypedDict
from langgraph.graph import START, StateGraph
from dellm_langchain import DeLLMSaver

@dataclass
class Pet:
    name: str

class State(TypedDict):
    pet: Pet

with DeLLMSaver.from_conn_string(sys.argv[1], embedder=None) as saver:
    graph = StateGraph(State)
    graph.add_node("bot", lambda values: {"pet": Pet(values["pet"].name + "!")})
    graph.add_edge(START, "bot")
    app = graph.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "t"}}
    app.invoke({"pet": Pet("quokka")}, config)
    assert app.get_state(config).values == {"pet": Pet("quokka!")}, app.get_state(config).values
    saver.memory.forget("quokka")
    assert app.get_state(config).values == {}
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "memory.db")],
        env={"LANGGRAPH_STRICT_MSGPACK": "true", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Blocked" not in done.stderr


def test_the_loop_is_never_blocked(sqlite_url: str, opened: Opened) -> None:
    app = chat(DeLLMSaver(opened(sqlite_url)))
    beats = 0

    async def heart() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    async def main() -> list[str]:
        beating = asyncio.create_task(heart())
        for text in ("one", "two"):
            await app.ainvoke(said(text), at())
        before = beats
        state = await app.aget_state(at())
        assert beats > before
        beating.cancel()
        return [one.content for one in state.values["messages"]]

    assert asyncio.run(main())[0] == "one"


# odd input


def test_what_a_checkpoint_of_another_version_holds_besides_can_be_forgotten(
    url: str, opened: Opened
) -> None:
    memory = opened(url)
    saver = DeLLMSaver(memory)
    written = {**empty_checkpoint(), "pending_sends": ["quokka"]}
    saver.put(at(checkpoint_ns=""), written, {"source": "loop", "step": 1, "parents": {}}, {})
    found = saver.get_tuple(at())
    assert found.checkpoint["pending_sends"] == ["quokka"]
    assert "__checkpoint__" not in found.metadata
    memory.forget("quokka")
    assert memory.scan("quokka", files=False).clean
    assert "pending_sends" not in saver.get_tuple(at()).checkpoint


def test_a_checkpoint_that_names_itself_as_its_parent_can_be_read(
    sqlite_url: str, opened: Opened
) -> None:
    memory = opened(sqlite_url)
    saver = DeLLMSaver(memory)
    written = {**empty_checkpoint(), "channel_values": {"said": "quokka"}}
    written["channel_versions"] = {"said": 1}
    config = at(checkpoint_ns="", checkpoint_id=written["id"])
    saver.put(config, written, {"source": "loop", "step": 1, "parents": {}}, {"said": 1})
    memory.forget("quokka")
    assert saver.get_tuple(at()).checkpoint["channel_values"] == {}


def test_a_number_that_a_graph_took_as_text_can_be_deleted(url: str, opened: Opened) -> None:
    memory = opened(url)
    saver = DeLLMSaver(memory)
    chat(saver).invoke(said("quokka"), at(7))
    saver.delete_thread(7)  # type: ignore[arg-type]
    assert memory.scan("quokka", files=False).clean


def test_an_input_whose_keys_are_no_names_is_one_record(sqlite_url: str, opened: Opened) -> None:
    from langgraph.func import entrypoint

    memory = opened(sqlite_url)

    @entrypoint(checkpointer=DeLLMSaver(memory))
    def count(given: dict[str, int]) -> int:
        return len(given)

    assert count.invoke({"quokka of Perth": 1}, at()) == 1
    memory.forget("quokka of Perth")
    assert memory.scan("quokka", files=False).clean
