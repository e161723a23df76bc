"""A DeLLMMemory is a handle: whatever is copied or written down means one memory, and holds no text."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.workflow import Context, JsonSerializer, StartEvent, StopEvent, Workflow, step
from other_process import said_by

import dellm
from dellm_llamaindex import DeLLMMemory, attach

Opened = Callable[..., dellm.Memory]

COPIES: dict[str, Callable[[DeLLMMemory], DeLLMMemory]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "model_copy": lambda one: one.model_copy(),
    "deep model_copy": lambda one: one.model_copy(deep=True),
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    "to_dict": lambda one: DeLLMMemory.from_dict(json.loads(json.dumps(one.to_dict()))),
    "to_string": lambda one: DeLLMMemory.from_string(one.to_string()),
    "JSON of pydantic": lambda one: DeLLMMemory.model_validate_json(one.model_dump_json()),
    "nested deepcopy": lambda one: copy.deepcopy({"a": [one]})["a"][0],
}


class Keeping(Workflow):
    """Puts a memory into its Context, and finds it there."""

    @step
    async def keep(self, ctx: Context, event: StartEvent) -> StopEvent:
        if event.get("memory"):
            await ctx.store.set("memory", event.get("memory"))
        return StopEvent(result=await ctx.store.get("memory"))


def ours(memory: dellm.Memory, **options: object) -> DeLLMMemory:
    options.setdefault("session_id", "main")
    return DeLLMMemory.from_defaults(memory, **options)  # type: ignore[arg-type] # a test's options


def said(memory: DeLLMMemory) -> list[str | None]:
    return [one.content for one in memory.get_all()]


def in_another_process(code: str, *arguments: str) -> str:
    """Return what a new process prints that runs the code, with its errors' types."""
    program = (
        f"import json, sys\nimport dellm\nfrom dellm_llamaindex import DeLLMMemory, attach\n{code}"
    )
    return said_by(program, *arguments)


@pytest.mark.parametrize("way", COPIES)
def test_every_copy_is_of_the_same_open_memory(memory: dellm.Memory, way: str) -> None:
    one = ours(memory, top_k=3, last_n=2, threshold=0.5, by="both", across_sessions=True)
    one.put(ChatMessage("first"))
    other = COPIES[way](one)
    other.put(ChatMessage("second"))
    assert said(one) == said(other) == ["first", "second"]
    assert (other.core.identity, other.core.id) == (memory.identity, memory.id)
    for name in ("top_k", "last_n", "threshold", "by", "across_sessions", "token_limit"):
        assert getattr(other, name) == getattr(one, name)


async def test_a_context_that_was_written_down_means_the_same_memory(memory: dellm.Memory) -> None:
    one = ours(memory)
    flow = Keeping()
    context = Context(flow)
    await flow.run(ctx=context, memory=one)
    one.put(ChatMessage("between two runs"))
    written = json.dumps(context.to_dict(serializer=JsonSerializer()))
    again = Context.from_dict(flow, json.loads(written), serializer=JsonSerializer())
    found = await flow.run(ctx=again)
    assert isinstance(found, DeLLMMemory)
    assert said(found) == ["between two runs"]
    assert found.core.identity == memory.identity
    assert "between" not in written


def test_a_handle_holds_no_text_and_no_password(postgres_url: str, opened: Opened) -> None:
    url = postgres_url.replace("postgres:@", "postgres:hunter2@") + "&password=hunter3"
    assert "hunter2" in url
    one = ours(opened(url))
    one.put(ChatMessage("a word of mine"))
    for written in (json.dumps(one.to_dict()), one.to_string(), repr(one), str(pickle.dumps(one))):
        assert not [word for word in ("hunter", "a word of mine") if word in written]
    assert said(DeLLMMemory.from_string(one.to_string())) == ["a word of mine"]


def test_another_process_opens_the_memory_of_a_handle_by_its_url(memory: dellm.Memory) -> None:
    one = ours(memory)
    one.put(ChatMessage("there"))
    shown = in_another_process(
        "one = DeLLMMemory.from_string(sys.argv[1])\n"
        "two = DeLLMMemory.from_string(sys.argv[1])\n"
        "print([m.content for m in one.get_all()], one.core.id)\n"
        "print(one.core.identity == two.core.identity)",
        one.to_string(),
    )
    assert shown.splitlines() == ["['there'] alex", "True"]


def test_another_process_can_say_how_the_memory_is_opened(sqlite_url: str, opened: Opened) -> None:
    one = ours(opened(sqlite_url))
    shown = in_another_process(
        "mine = attach(dellm.Memory.open(sys.argv[2], embedder='hashing'))\n"
        "one = DeLLMMemory.from_string(sys.argv[1])\n"
        "print(one.core.identity == mine.identity)",
        one.to_string(),
        sqlite_url,
    )
    assert shown.split() == ["True"]


def test_a_memory_in_another_process_only_is_refused_by_name() -> None:
    one = DeLLMMemory.from_defaults(dellm.Memory.open(":memory:", embedder="hashing"))
    shown = in_another_process("DeLLMMemory.from_string(sys.argv[1])", one.to_string())
    assert "dellm.errors.InvalidInput" in shown
    assert "not open in this process" in shown
    one.core.close()
    with pytest.raises(dellm.InvalidInput, match="not open in this process"):
        DeLLMMemory.from_string(one.to_string())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork processes")
def test_a_forked_process_opens_the_memory_anew(sqlite_url: str) -> None:
    shown = in_another_process(
        "import os\n"
        "mine = DeLLMMemory.from_defaults(sys.argv[1], 'main')\n"
        "written = mine.to_string()\n"
        "child = os.fork()\n"
        "if child: os.waitpid(child, 0)\n"
        "other = DeLLMMemory.from_string(written)\n"
        "print(other.core.identity == mine.core.identity, flush=True)",
        sqlite_url,
    )
    assert shown.split() == ["False", "True"]


def test_two_open_memories_of_one_file_are_told_apart(sqlite_url: str, opened: Opened) -> None:
    first, second = ours(opened(sqlite_url)), ours(opened(sqlite_url))
    for one in (first, second):
        for way in COPIES.values():
            assert way(one).core.identity == one.core.identity


def test_a_handle_means_a_memory_that_is_still_open(sqlite_url: str, opened: Opened) -> None:
    closed, open_ = opened(sqlite_url), opened(sqlite_url)
    one = ours(closed)
    one.put(ChatMessage("kept"))
    attach(open_)
    written = one.to_string()
    closed.close()
    again = DeLLMMemory.from_string(written)
    assert again.core.identity == open_.identity
    assert said(again) == ["kept"]
    with pytest.raises(dellm.DatabaseClosed):
        one.get_all()
    open_.close()
    anew = DeLLMMemory.from_string(written)  # opened once more, at its URL
    assert said(anew) == ["kept"]
    anew.core.close()


def test_a_handle_outlasts_the_object_it_was_made_of(opened: Opened) -> None:
    core = opened(":memory:")
    written = ours(core.workspace("alex")).to_string()
    gc.collect()
    assert DeLLMMemory.from_string(written).core.identity == core.identity


def test_handles_do_not_keep_a_memory_open_that_nobody_uses(tmp_path: Path) -> None:
    memory = dellm.Memory.open(str(tmp_path / "m.db"), embedder=None)
    one = ours(memory)
    engine = weakref.ref(memory._engine)
    memory.close()
    del memory, one
    gc.collect()
    assert engine() is None


def test_a_path_is_opened_once_and_means_the_file_wherever_the_process_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = DeLLMMemory.from_defaults("memory.db", "main")
    second = DeLLMMemory.from_defaults("memory.db", "main", workspace="kim")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    third = DeLLMMemory.from_defaults(str(tmp_path / "memory.db"), "main")
    assert first.core.identity == second.core.identity == third.core.identity
    assert (first.core.id, second.core.id) == ("default", "kim")
    assert Path(first.url) == tmp_path / "memory.db"
    first.put(ChatMessage("of the first"))
    assert (said(third), said(second)) == (["of the first"], [])
    first.core.close()


def test_without_a_memory_all_sessions_of_a_process_are_in_one_of_its_own() -> None:
    first, second = DeLLMMemory.from_defaults(), DeLLMMemory()
    assert first.core.identity == second.core.identity
    assert first.core.url == ":memory:"
    assert first.session_id != second.session_id
    first.put(ChatMessage("of the first"))
    assert (said(first), said(second)) == (["of the first"], [])


def test_a_copy_may_be_of_another_session_or_workspace(memory: dellm.Memory) -> None:
    one = ours(memory)
    one.put(ChatMessage("of alex"))
    session = one.model_copy(update={"session_id": "other"})
    kim = one.model_copy(update={"workspace": "kim"})
    for other in (session, kim):
        assert said(other) == []
        other.put(ChatMessage("of the other"))
    assert said(one) == ["of alex"]
    assert (kim.core.id, kim.core.identity) == ("kim", memory.identity)


@pytest.mark.parametrize("wrong", [5, "", "  ", b"m.db", ["m.db"]])
def test_what_is_no_memory_is_refused(wrong: object) -> None:
    with pytest.raises(dellm.InvalidInput):
        DeLLMMemory.from_defaults(wrong)  # type: ignore[arg-type] # is what is tried
    with pytest.raises(dellm.InvalidInput):
        attach(wrong)  # type: ignore[arg-type] # is what is tried


def test_a_database_made_anew_at_the_same_place_is_another_one(sqlite_url: str) -> None:
    def talk(words: str) -> list[str]:
        with dellm.Memory.open(sqlite_url, embedder=None) as core:
            memory = DeLLMMemory.from_defaults(core, "s", top_k=None)
            memory.put_messages([ChatMessage(role="user", content=one) for one in words.split()])
            kept.extend(memory.get())
            return [str(one.content) for one in memory.get()]

    kept: list[ChatMessage] = []
    assert talk("one two three") == ["one", "two", "three"]
    for path in Path(sqlite_url).parent.glob("memory.db*"):
        path.unlink()
    old = list(kept)
    assert talk("four five") == ["four", "five"]
    with dellm.Memory.open(sqlite_url, embedder=None) as core:
        memory = DeLLMMemory.from_defaults(core, "s", top_k=None)
        memory.set([*old[:1], *memory.get()])  # a message of the other database is not known here
        assert [str(one.content) for one in memory.get()] == ["one", "four", "five"]
        assert len({one.origin for one in (core, core.workspace("other"))}) == 1
