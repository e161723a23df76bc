"""Paid models: nothing is asked twice, a killed run goes on, and the cost is said before it is spent."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai_server
import pytest
from openai_server import OpenAIServer

from benchmarks.evaluation import command, paying
from benchmarks.evaluation.costs import Bill, prices
from benchmarks.evaluation.kept_answers import (
    AnswerFile,
    KeptEmbedder,
    KeptModel,
    Tally,
    Unsaved,
    batches,
    message_tokens,
    source_of,
    tokens,
)
from benchmarks.evaluation.sets import dmr as dmr_set
from benchmarks.evaluation.standing_in import StandIn, StandInEmbedder, StandInJudge
from dellm.embedding import OpenAIEmbedder
from dellm.errors import EmbedderError, InvalidInput, ModelError
from dellm.models import OpenAIModel
from dellm.openai_endpoint import Used

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
MODEL, EMBEDDER = "openai:gpt-4.1-nano", "openai:text-embedding-3-small"
JOBS = ("baker", "diver", "potter", "weaver", "miller", "tiler")


def own_words(messages: list[dict[str, Any]]) -> str:
    """A reply that only these messages get."""
    return f"It is {hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:12]}, you said."


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a made-up DMR of the official size, each conversation of its own."""
    folder = tmp_path / "data" / "dmr"
    folder.mkdir(parents=True)
    rows = []
    for number in range(dmr_set.OFFICIAL):
        job = f"{JOBS[number % len(JOBS)]} number {number}"
        said = [f"I work as a {job}.", "Good for you.", f"My boat has {number} sails.", "Oh."]
        rows.append(
            {
                "personas": [],
                "previous_dialogs": [{"dialog": [{"text": text} for text in said]}],
                "dialog": [{"text": "Hello.", "id": "Speaker 1"}],
                "self_instruct": {"B": "What did you say you work as?", "A": job},
            }
        )
    path = folder / "msc_self_instruct.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder.parent


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer(reply=own_words, dimensions=512) as made:
        monkeypatch.setenv("OPENAI_BASE_URL", made.url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        yield made


def arguments(tmp_path: Path, data: Path, *more: str, name: str = "dmr") -> list[str]:
    folders = ["--data", str(data), "--out", str(tmp_path / "out")]
    kept = ["--cache", str(tmp_path / "kept" / "answers.db")]
    return [name, "--model", MODEL, "--embedder", EMBEDDER, "--small", *folders, *kept, *more]


def bodies(requests: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(one, sort_keys=True) for one in requests]


# --- a run ---


def test_a_second_run_asks_nothing_and_finds_the_same(
    server: OpenAIServer, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = arguments(tmp_path, data, "--yes")
    assert command.main(asked) == 0
    first = (tmp_path / "out" / "dmr-openai-gpt-4.1-nano.json").read_text("utf-8")
    count = len(server.requests)
    assert count > 10
    assert f"Asked {count} requests" in capsys.readouterr().out
    assert len(set(bodies(server.requests))) == count  # not even within a run
    assert (
        command.main([one for one in asked if one != "--yes"]) == 0
    )  # there is nothing to agree on
    assert len(server.requests) == count
    assert "would ask 0 requests and cost about $0.0000" in capsys.readouterr().out
    assert (tmp_path / "out" / "dmr-openai-gpt-4.1-nano.json").read_text("utf-8") == first


def test_without_a_terminal_and_yes_nothing_is_asked(
    server: OpenAIServer, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(arguments(tmp_path, data)) == 2
    assert "--yes" in capsys.readouterr().err
    assert command.main(arguments(tmp_path, data, "--estimate")) == 0
    assert "would ask" in capsys.readouterr().out
    assert server.requests == []
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("typed", "status"), [("y\n", 0), ("\n", 2), ("no\n", 2)])
def test_on_a_terminal_it_is_asked_first(
    server: OpenAIServer, data: Path, tmp_path: Path, typed: str, status: int
) -> None:
    if sys.platform == "win32":
        pytest.skip("there is no pseudo-terminal")
    import pty

    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.evaluation", *arguments(tmp_path, data, "--limit", "1")],
        cwd=ROOT,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        out, _ = run.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    assert run.returncode == status
    assert "Go on? [y/N]" in out
    assert bool(server.requests) == (status == 0)


def test_the_estimate_is_what_the_server_then_counts(
    server: OpenAIServer,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    as_expected(server, monkeypatch)
    assert command.main(arguments(tmp_path, data, "--yes")) == 0
    said = capsys.readouterr().out
    chats, vectors = counted(server)
    assert row_of(said, "answers") == chats
    assert row_of(said, "vectors") == vectors
    dollars = (chats[1] * 0.10 + chats[2] * 0.40 + vectors[1] * 0.02) / 1e6
    assert f"would ask {chats[0] + vectors[0]} requests and cost about ${dollars:.4f}" in said


def test_an_estimate_leaves_out_what_is_kept(
    server: OpenAIServer,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    as_expected(server, monkeypatch)
    server._faults.extend(["", "", "", "", "", "", "400"])
    assert command.main(arguments(tmp_path, data, "--yes")) == 2
    server.requests.clear()
    capsys.readouterr()
    assert command.main(arguments(tmp_path, data, "--yes")) == 0
    assert f"would ask {len(server.requests)} requests" in capsys.readouterr().out


def as_expected(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server answer just as the stand-ins do."""
    embedder = StandInEmbedder(OpenAIEmbedder(), None)
    monkeypatch.setattr(openai_server, "words_as_vector", lambda text, _: embedder.embed([text])[0])
    server.reply = StandIn(OpenAIModel("gpt-4.1-nano")).complete


def counted(server: OpenAIServer) -> list[tuple[int, int, int]]:
    """Requests, tokens in and tokens out at the server: of chat, and of vectors."""
    chats = [one["messages"] for one in server.requests if "messages" in one]
    texts = [one["input"] for one in server.requests if "input" in one]
    return [
        (
            len(chats),
            sum(map(message_tokens, chats)),
            sum(tokens(str(server.reply(one))) for one in chats),
        ),
        (len(texts), sum(tokens(text) for several in texts for text in several), 0),
    ]


def row_of(said: str, role: str) -> tuple[int, int, int]:
    """Requests, tokens in and tokens out that an estimate says of a model."""
    found = re.search(rf"\| {role} \| (\d+) \| \d+ \| (\d+) \| (\d+) \|", said)
    assert found
    return int(found[1]), int(found[2]), int(found[3])


def test_a_killed_run_goes_on_where_it_was(data: Path, tmp_path: Path) -> None:
    stuck, free = threading.Event(), threading.Event()
    chats: list[int] = []

    def reply(messages: list[dict[str, Any]]) -> str:
        chats.append(1)
        if len(chats) == 8 and not free.is_set():
            stuck.set()
            free.wait(60)
        return own_words(messages)

    with OpenAIServer(reply=reply, dimensions=512) as server:
        asked = arguments(tmp_path, data, "--yes", "--limit", "6")
        run = started(server, asked)
        assert stuck.wait(60)
        run.send_signal(signal.SIGKILL)
        assert run.wait(30) == -signal.SIGKILL
        free.set()
        before = bodies(server.requests)
        server.requests.clear()
        resumed = started(server, asked)
        assert resumed.wait(120) == 0
        after = bodies(server.requests)
        server.requests.clear()
        assert (
            command_in(server, arguments(tmp_path / "afresh", data, "--yes", "--limit", "6")) == 0
        )
        whole = bodies(server.requests)
    assert set(before[:-1]) & set(after) == set()  # what was answered is not asked again
    assert before[-1] in after  # the one that was under way is
    assert sorted(before[:-1] + after) == sorted(whole)
    results = [tmp_path / one / "out" / "dmr-openai-gpt-4.1-nano.json" for one in (".", "afresh")]
    assert results[0].read_text("utf-8") == results[1].read_text("utf-8")


@pytest.mark.long
@pytest.mark.parametrize("name", ["tables", "gatemem"])
def test_a_run_with_a_judge_is_killed_and_resumed(tmp_path: Path, name: str) -> None:
    if name not in command.EXPERIMENTS:
        pytest.skip(f"there is no experiment {name}")
    if name == "gatemem" and not (DATA / name).is_dir():
        pytest.skip("../shared/data/gatemem is not here")
    stuck, free = threading.Event(), threading.Event()
    judged: list[int] = []

    def reply(messages: list[dict[str, Any]]) -> str:
        if not {"CORRECT", "LEAK"} & set(messages[0]["content"].split()):
            return own_words(messages)
        judged.append(1)
        if len(judged) == 5 and not free.is_set():
            stuck.set()
            free.wait(300)
        return "CORRECT" if len(messages[-1]["content"]) % 2 else "WRONG"

    with OpenAIServer(reply=reply, dimensions=512) as server:
        judge = ["--judge", MODEL, "--yes", "--limit", "1"]
        asked = arguments(tmp_path, DATA, *judge, name=name)
        run = started(server, asked)
        assert stuck.wait(300)
        run.send_signal(signal.SIGKILL)
        run.wait(30)
        free.set()
        before = bodies(server.requests)
        server.requests.clear()
        assert started(server, asked).wait(300) == 0
        after = bodies(server.requests)
        server.requests.clear()
        assert started(server, asked).wait(300) == 0
        assert server.requests == []
    assert not set(before[:-1]) & set(after)
    assert before[-1] in after
    assert list((tmp_path / "out").glob("*.json"))


def started(server: OpenAIServer, asked: list[str]) -> subprocess.Popen[bytes]:
    here = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "test"}
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.evaluation", *asked],
        cwd=ROOT,
        env=here,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def command_in(server: OpenAIServer, asked: list[str]) -> int:
    return started(server, asked).wait(120)


def test_a_fault_of_the_server_keeps_what_was_answered(
    server: OpenAIServer, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = OpenAIServer(reply=own_words, dimensions=512, faults=["", "", "", "", "400"])
    asked = arguments(tmp_path, data, "--yes")
    with broken, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", broken.url)
        assert command.main(asked) == 2
    said = capsys.readouterr()
    assert "the same command goes on" in said.err
    assert "status 400" in said.err
    assert "Asked 4 requests (4 tokens in, " in said.out  # the server counts one a request
    assert not (tmp_path / "out").exists()


def test_a_run_whose_vectors_failed_is_no_result(tmp_path: Path) -> None:
    tally = Tally(EMBEDDER, "vectors")
    with OpenAIServer(faults=["400"]) as server:
        embedder = OpenAIEmbedder(base_url=server.url, api_key="k")
        with pytest.raises(EmbedderError):
            kept(embedder, tmp_path, tally).embed(["text"])
    with pytest.raises(ModelError, match="1 requests got no answer"):
        paying.check([tally])


def test_what_failed_is_asked_again_and_the_rest_is_not(
    server: OpenAIServer, data: Path, tmp_path: Path
) -> None:
    asked = arguments(tmp_path, data, "--yes")
    server._faults.extend(["", "", "", "", "400"])
    assert command.main(asked) == 2
    answered, failed = bodies(server.requests)[:-1], bodies(server.requests)[-1]
    server.requests.clear()
    assert command.main(asked) == 0
    again = bodies(server.requests)
    assert failed in again
    assert not set(answered) & set(again)


def test_a_model_that_reasons_gets_no_temperature(
    server: OpenAIServer, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [one.replace("4.1", "5") for one in arguments(tmp_path, data, "--yes", "--limit", "1")]
    assert command.main(asked) == 0
    chats = [one for one in server.requests if "messages" in one]
    assert chats
    assert {one["model"] for one in chats} == {"gpt-5-nano"}
    assert not any("temperature" in one or "max_tokens" in one for one in chats)
    assert "by the guess of the price table" in capsys.readouterr().out


def test_what_was_spent_is_what_the_endpoint_counted_with_what_it_hides() -> None:
    tally = Tally("openai:gpt-5-nano", "answers")
    tally.asked_for(10, 1)
    tally.settle(Used())  # an endpoint that does not count
    assert (tally.input, Bill([tally], prices()).output(tally)) == (10, 501)
    tally.settle(Used(1, 12, 300))
    assert (tally.input, Bill([tally], prices()).output(tally)) == (12, 300)


def test_an_unknown_price_is_not_zero(
    server: OpenAIServer, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [one.replace("gpt-4.1-nano", "tiny") for one in arguments(tmp_path, data, "--estimate")]
    assert command.main(asked) == 0
    assert "what openai:tiny costs, whose price is unknown" in capsys.readouterr().out
    table = tmp_path / "prices.toml"
    table.write_text('dated = "today"\n[models.tiny]\ninput = 1000000\noutput = 0\n', "utf-8")
    assert command.main([*asked, "--prices", str(table)]) == 0
    said = capsys.readouterr().out
    assert "whose price is unknown" not in said
    assert f"{row_of(said, 'answers')[1]}.0000" in said


def test_all_skips_what_has_no_data_and_says_so(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    some = {name: command.EXPERIMENTS[name] for name in ("locomo", "dmr", "longmemeval")}
    monkeypatch.setattr(command, "EXPERIMENTS", some)
    offline = ["all", "--small", "--embedder", "hashing", "--out", str(tmp_path / "out")]
    assert command.main([*offline, "--data", str(data)]) == 0
    said = capsys.readouterr().out
    assert "Skipped locomo: " in said
    assert "Skipped longmemeval: " in said
    assert [one.name for one in (tmp_path / "out").glob("*.json")] == ["dmr-extractive.json"]
    assert command.main([*offline, "--data", str(tmp_path)]) == 2
    assert command.main(["locomo", *offline[1:], "--data", str(tmp_path)]) == 2
    assert "--data DIR" in capsys.readouterr().err


def test_a_run_that_costs_nothing_is_not_asked_about(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offline = ["dmr", "--small", "--embedder", "hashing", "--data", str(data)]
    assert command.main([*offline, "--estimate", "--out", str(tmp_path / "out")]) == 0
    assert "No model" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


# --- the file ---


def kept(embedder: OpenAIEmbedder, folder: Path, tally: Tally) -> KeptEmbedder:
    file = AnswerFile(folder / "answers.db")
    return KeptEmbedder(embedder, source_of(embedder, "embedding"), file, tally)


def test_models_endpoints_and_parameters_are_never_mixed(tmp_path: Path) -> None:
    file = AnswerFile(tmp_path / "answers.db")
    asked = [{"role": "user", "content": "hi"}]
    with OpenAIServer(reply=lambda _: "one") as one, OpenAIServer(reply=lambda _: "two") as two:
        models = [
            OpenAIModel("m", base_url=one.url, api_key="k"),
            OpenAIModel("m", base_url=two.url, api_key="k"),
            OpenAIModel("n", base_url=one.url, api_key="k"),
            OpenAIModel("m", base_url=one.url, api_key="k", temperature=1),
            OpenAIModel("m", base_url=one.url, api_key="k", max_tokens=9),
        ]
        for _ in range(2):
            found = [
                KeptModel(model, source_of(model, "chat"), file, Tally("", "")).complete(asked)
                for model in models
            ]
            assert found == ["one", "two", "one", "one", "one"]
        assert (len(one.requests), len(two.requests)) == (4, 1)
    assert len(file) == len(models)


def test_vectors_are_kept_text_by_text_and_blanks_are_not_sent(tmp_path: Path) -> None:
    tally = Tally(EMBEDDER, "vectors")
    with OpenAIServer(dimensions=16) as server:
        embedder = OpenAIEmbedder(base_url=server.url, api_key="k")
        first = kept(embedder, tmp_path, tally).embed(["a cat", "", "a dog", "a cat"])
        again = kept(embedder, tmp_path, tally).embed(["a dog", "a cow", " "])
        plain = embedder.embed(["a cat", "", "a dog", "a cat"])
        assert server.texts()[:3] == ["a cat", "a dog", "a cow"]
    assert (first == plain).all()
    assert (again[0] == first[2]).all()
    assert not again[2].any()
    assert (tally.asked, tally.kept) == (2, 1)


def test_blanks_alone_have_the_width_of_the_others(tmp_path: Path) -> None:
    with OpenAIServer(dimensions=16) as server:
        embedder = OpenAIEmbedder(base_url=server.url, api_key="k")
        found = kept(embedder, tmp_path, Tally(EMBEDDER, "vectors")).embed(["", " "])
    assert found.shape == (2, 16)
    assert not found.any()


def test_every_group_of_texts_is_one_request() -> None:
    texts = [f"{number} " + "x" * 9_000 for number in range(300)] + ["short"] * 300
    groups = list(batches(texts))
    with OpenAIServer() as server:
        embedder = OpenAIEmbedder(base_url=server.url, api_key="k")
        for group in groups:
            embedder.embed(group)
        assert len(server.requests) == len(groups)
    assert [text for group in groups for text in group] == texts


def test_what_is_tried_out_never_gets_into_the_file(tmp_path: Path) -> None:
    file = AnswerFile(tmp_path / "answers.db")
    file.put("s", {b"1": b"real"})
    tried = Unsaved(file)
    tried.put("s", {b"2": b"made up"})
    assert [tried.get(b"1"), tried.get(b"2"), file.get(b"2")] == [b"real", b"made up", None]


def test_two_processes_use_one_file_at_once(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from benchmarks.evaluation.kept_answers import AnswerFile\n"
        "file = AnswerFile(Path(sys.argv[1]))\n"
        "for n in range(150): file.put(sys.argv[2], {f'{sys.argv[2]}{n}'.encode(): b'x'})\n"
    )
    path = tmp_path / "answers.db"
    runs = [
        subprocess.Popen([sys.executable, "-c", script, str(path), name], cwd=ROOT)
        for name in ("a", "b")
    ]
    assert [run.wait(60) for run in runs] == [0, 0]
    assert len(AnswerFile(path)) == 300


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    path.write_text("no database, but text " * 100, "utf-8")
    with pytest.raises(InvalidInput, match="can't be used"):
        AnswerFile(path)


def test_answers_are_on_disk_when_they_are_there(tmp_path: Path) -> None:
    file = AnswerFile(tmp_path / "answers.db")
    file.put("s", {b"1": b"said"})
    other = AnswerFile(tmp_path / "answers.db")
    assert other.get(b"1") == b"said"
    file.put("s", {b"1": b"said otherwise"})
    assert other.get(b"1") == b"said"  # the first answer stays


# --- prices ---


def test_a_snapshot_costs_what_its_model_costs() -> None:
    table = prices()
    assert table.of("openai:gpt-5-nano-2025-08-07") == table.of("openai:gpt-5-nano")
    assert table.of("openai:text-embedding-3-small@512") == table.of(EMBEDDER)
    assert table.of("openai:gpt-4.1-nano-mine") is None


def test_a_small_sum_is_not_shown_as_nothing() -> None:
    tally = Tally(EMBEDDER, "vectors")
    assert Bill([tally], prices()).total() == "$0.0000"
    tally.asked_for(10)
    assert Bill([tally], prices()).total() == "under $0.0001"


def test_hidden_reasoning_is_paid_for() -> None:
    tally = Tally("openai:gpt-5-nano", "answers")
    tally.asked_for(1_000_000, 0)
    assert Bill([tally], prices()).dollars(tally) == pytest.approx(0.05 + 500 * 0.40 / 1e6)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "models = 3",
        "[models.m]\ninput = 1",
        "[models.m]\ninput = -1\noutput = 1",
        "not = toml =",
    ],
)
def test_a_price_table_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(InvalidInput, match="price table"):
        prices(path)


def test_stand_ins_tell_messages_apart_and_repeat_themselves() -> None:
    stand_in = StandIn(OpenAIModel("m", api_key="k"))
    one, two = ([{"role": "user", "content": text}] for text in ("a", "b"))
    assert stand_in.complete(one) == stand_in.complete(one) != stand_in.complete(two)
    assert stand_in.complete([{"role": "system", "content": "only"}])
    assert StandInJudge(OpenAIModel("m", api_key="k")).complete(one) == "CORRECT"
