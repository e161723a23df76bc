"""The demo for LangGraph: what it counts, what it says, and that it fails when something is left."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sqlite3
from importlib import util
from pathlib import Path

import openai_server
import pytest
from openai_server import OpenAIServer

from dellm import ExtractiveReader, Memory
from dellm_langchain import demo, demo_counting, demo_sides
from dellm_langchain.demo_agent import Chosen, PromptOnly, choose
from dellm_langchain.demo_counting import Share, Word

SECRET = demo_sides.WORD.text.lower().encode()


class Remembering:
    """A model that never lets go of the address, whatever it is asked."""

    name = "remembering"

    def complete(self, messages, /):
        return f"You live at {demo_sides.SECRET}."


@pytest.fixture
def no_network(monkeypatch):
    """Any attempt to connect is an error of the test."""

    def refuse(*_args):
        raise AssertionError("the demo went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def bytes_in(folder: Path) -> int:
    files = [one for one in folder.iterdir() if one.is_file()]
    assert files
    return sum(one.read_bytes().lower().count(SECRET) for one in files)


def rows_in(place: Path) -> int:
    """Count with a driver of our own, as DeLLM's rows are counted by DeLLM in the demo."""
    with contextlib.closing(sqlite3.connect(place)) as database:
        return sum(demo_counting.rows(database, demo_sides.WORD).values())


def line_of(told: str, name: str) -> list[str]:
    """Return the numbers of a line of the table: stock before and after, ours before and after."""
    (line,) = [one for one in told.splitlines() if one.strip().startswith(name)]
    return line.strip().removeprefix(name).split("  ")


def numbers_of(told: str, name: str) -> list[int]:
    return [int(one.split()[0]) for one in line_of(told, name) if one.strip()]


def test_the_demo_forgets_proves_it_and_shows_what_the_stock_saver_keeps(
    no_network, tmp_path, capsys
):
    assert demo.main(["--offline", "--keep", str(tmp_path / "kept")]) == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "NO " not in told
    assert told.index("memory.plan(") < told.index("the receipt") < told.index("Verdict")
    assert "scrubbed: " in told
    assert "tool, approved by you: send_tea(tea='oolong', address='17 Rue Lepic, Paris')" in told
    names = ("rows in all", "in files (running)", "in files (stopped)", "in the model's prompt")
    for name in (*names, "old states saying it", "checkpoints saying it"):
        stock_before, stock_after, ours_before, ours_after = numbers_of(told, name)
        assert stock_before > 0
        assert stock_after > 0
        assert ours_before > 0
        assert ours_after == 0
    assert numbers_of(told, "rows in all")[1] >= 28
    assert re.search(r"After forget, DeLLMSaver has it in 0 rows and 0 times in its files", told)
    assert bytes_in(tmp_path / "kept" / "dellm") == 0
    assert rows_in(tmp_path / "kept" / "dellm" / "memory.db") == 0
    assert (
        rows_in(tmp_path / "kept" / "stock" / "checkpoints.db") > numbers_of(told, "rows in all")[1]
    )
    # The last line of the table was counted before two more questions were asked.
    assert bytes_in(tmp_path / "kept" / "stock") >= numbers_of(told, "in files (stopped)")[1]
    with Memory.open(str(tmp_path / "kept" / "dellm" / "memory.db"), embedder=None) as memory:
        assert len(memory.receipts()) == 1
        assert "oolong" in " ".join(record.text for record in memory.history("home"))


def test_both_savers_are_given_the_same_conversation(tmp_path):
    told: dict[str, list[demo_sides.Said]] = {"stock": [], "ours": []}
    model = PromptOnly(inner=ExtractiveReader())
    for name, made in (
        ("stock", demo_sides.Stock),
        ("ours", lambda folder: demo_sides.Ours(folder, lambda what: None)),
    ):
        folder = tmp_path / name
        folder.mkdir()
        with demo_sides.running(made(folder), model) as run:
            told[name] = [run.say(text) for text in demo_sides.TURNS]
    assert told["stock"] == told["ours"]
    assert [len(one.asked) for one in told["ours"]] == [0, 0, 1, 0, 0]


def test_without_the_stock_saver_the_demo_says_so_and_goes_on(monkeypatch, capsys):
    found = util.find_spec
    monkeypatch.setattr(
        demo, "find_spec", lambda name: None if name.endswith("sqlite") else found(name)
    )
    assert demo.main(["--offline"]) == 0
    told = capsys.readouterr().out
    assert "pip install langgraph-checkpoint-sqlite" in told
    assert "SqliteSaver" not in told


def test_an_address_that_comes_back_in_a_reply_is_a_failure(tmp_path, capsys):
    chosen = Chosen(PromptOnly(inner=Remembering()), "one that never forgets")
    assert demo._Demo(tmp_path, chosen).play() == 1
    told = capsys.readouterr().out
    assert "NO  the next prompt and reply do not have it" in told


def test_the_demo_talks_to_an_endpoint_where_one_is_named(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    reader = ExtractiveReader()

    def reply(messages):
        said = [{"role": one["role"], "content": one["content"] or ""} for one in messages]
        return reader.complete(said)

    with OpenAIServer(reply=reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert demo.main([]) == 0
        asked = server.requests
    assert all(one["path"] == "/v1/chat/completions" for one in asked)
    assert any("send_tea" in str(one.get("tools")) for one in asked)
    assert "gpt-4.1-nano at an OpenAI-compatible endpoint" in capsys.readouterr().out


class Calling(openai_server._Handler):
    """Answers "send" with two tool calls at once, as OpenAI's models can."""

    def _chat(self, body, fault):
        last = body["messages"][-1]
        if not (body.get("tools") and last["role"] == "user" and "send" in last["content"]):
            super()._chat(body, fault)
            return
        args = json.dumps({"tea": "oolong", "address": demo_sides.SECRET})
        calls = [
            {"id": id_, "type": "function", "function": {"name": "send_tea", "arguments": args}}
            for id_ in ("call_1", "call_2")
        ]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        answer = openai_server._chat_object(body["model"], "chat.completion")
        answer["choices"] = [{"index": 0, "finish_reason": "tool_calls", "message": message}]
        self._send(answer)


def test_an_endpoint_that_calls_the_tool_itself_leaves_nothing_either(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setattr(openai_server, "_Handler", Calling)
    with OpenAIServer(reply=lambda messages: str([one["content"] for one in messages])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert demo.main([]) == 0
    told = capsys.readouterr().out
    assert told.count("tool, approved by you: send_tea(tea='oolong'") == 2
    assert numbers_of(told, "in files (running)")[3] == 0


def test_an_endpoint_that_refuses_is_one_line_and_an_exit_code(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with OpenAIServer(faults=["401"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert demo.main([]) == 3
    told = capsys.readouterr().err
    assert re.fullmatch(r"dellm demo: the endpoint failed: \w*AuthenticationError\n", told)


def test_a_folder_that_is_there_is_left_alone(tmp_path, capsys):
    assert demo.main(["--offline", "--keep", str(tmp_path)]) == 3
    assert capsys.readouterr().err == "dellm demo: File exists\n"
    assert list(tmp_path.iterdir()) == []


def test_rows_are_counted_once_in_every_table_whatever_holds_the_word(tmp_path):
    place = tmp_path / "any.db"
    database = sqlite3.connect(place)
    database.executescript(
        'create table "odd ""name" (a, b); create virtual table words using fts5(text);'
        "create table other (a);"
    )
    database.execute(
        'insert into "odd ""name" values (?, ?)', ("the CANARY sings", b"\x00canary\xff")
    )
    database.execute('insert into "odd ""name" values (?, ?)', (b"\x01Canary", None))
    database.execute('insert into "odd ""name" values (?, ?)', ("a sparrow", 7))
    database.execute("insert into words values ('a canary')")
    database.execute("insert into other values ('a sparrow')")
    database.commit()
    counts = demo_counting.rows(database, Word("canary"))
    assert counts['odd "name'] == 2
    assert counts["words_content"] == 1
    assert "other" not in counts
    database.close()
    assert demo_counting.times_in_files(tmp_path, Word("canary"))["any.db"] >= 4
    assert demo_counting.times_in_files(tmp_path, Word("eagle")) == {"any.db": 0}


def test_a_row_that_holds_it_in_two_columns_is_one_row():
    with Memory.open(":memory:", embedder=None) as memory:
        memory.remember("a canary", metadata={"seen": "canary"})
        memory.remember("another canary")
        memory.remember("a sparrow", metadata={"seen": "canary"})
        report = memory.scan("canary", files=False)
    assert sum(place.count for place in report.places) == 4
    assert demo_counting.scanned_rows(report) == {"record": 3}


def test_a_share_counts_what_tells_and_what_there_is():
    shown = Share.counted(["a canary", {"b": ["CANARY"]}, b"sparrow", None], Word("canary"))
    assert str(shown) == "2 of 4"


@pytest.mark.long
def test_the_demo_runs_on_the_local_model(monkeypatch, capsys):
    from weights_at_hand import weights_folder

    weights_folder("smollm2")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert "SmolLM2" in choose(offline=False).says
    assert demo.main([]) == 0
    assert "a rule does where the user says “send”" in capsys.readouterr().out
