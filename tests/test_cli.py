"""The command line, each command as a user calls it: what it prints, and how it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from openai_server import OpenAIServer
from typer.testing import CliRunner

from dellm import Draft, InvalidInput, Memory, cli
from dellm.commands.selecting import numbers, reach_of
from dellm.plan import STRICT, depth, influence

pytestmark = pytest.mark.own_database

PHONE = "(415) 555-0132"
DONE, NOTHING, USAGE, FAILED = 0, 1, 2, 3


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs the program on a database of its own."""
    for name in list(os.environ):
        if name.startswith(("DELLM_", "OPENAI_")) and name != "DELLM_CACHE":
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DELLM_DB", str(tmp_path / "memory.db"))
    monkeypatch.setenv("DELLM_EMBEDDER", "hashing")

    def run_(*arguments, typed=None, code=DONE):
        result = CliRunner().invoke(cli.app, [str(one) for one in arguments], input=typed)
        assert result.exit_code == code, (result.stdout, result.stderr)
        assert "Traceback" not in result.stderr
        return result

    return run_


@pytest.fixture
def filled(run, tmp_path):
    """The program on a memory with a number, a reply made from it, and something else."""
    with Memory.open(str(tmp_path / "memory.db"), embedder="hashing") as memory:
        first = memory.remember(f"My phone number is {PHONE}", thread="a")
        memory.record("Noted, 415 555 0132", context=[first.id], thread="a", model="x.example/m")
        memory.remember("The rain is loud", thread="b", metadata={"mood": "calm"})
    return run


def data(result):
    return json.loads(result.stdout)


# --- remember, context, show, explain, graph, export, index ---


def test_remember_stores_and_names_the_record(run):
    assert run("remember", "hello", "--thread", "a").stdout == "remembered as 1\n"
    made = data(run("remember", "-", "--json", "--at", "2026-03-01T09:30", typed="from a pipe\n"))
    assert made[0]["text"] == "from a pipe"
    assert made[0]["created_at"].startswith("2026-03-01T09:30")
    assert len(data(run("remember", "One. Two.", "--parts", "--json"))) == 2


def test_remember_refuses_what_makes_no_sense(run):
    run("remember", "x", "--at", "tomorrow", code=USAGE)
    run("remember", "x", "--kind", "poem", code=USAGE)
    run("remember", code=USAGE)


def test_context_shows_the_records_and_why(filled):
    assert "rain is loud" in filled("context", "Is the rain loud?", "-k", 1).stdout
    found = data(filled("context", "Is the rain loud?", "-k", 1, "--json"))
    assert [one["id"] for one in found] == [3]
    assert "cosine" in found[0]["why"]
    filled("context", "rain", "--by", "luck", code=USAGE)


def test_context_can_print_the_prompt(filled):
    told = filled("context", "Is the rain loud?", "-k", 1, "--prompt").stdout
    assert told.startswith("Here are past conversations")
    assert told.rstrip().endswith("Is the rain loud?")


def test_context_with_nothing_relevant_ends_with_one(filled):
    filled("context", "zebra", "--by", "keyword", code=NOTHING)


def test_show_lists_threads_records_and_one_thread(filled):
    assert data(filled("show", "--json")) == {"a": 2, "b": 1}
    assert "rain" in filled("show", "3").stdout
    assert [one["id"] for one in data(filled("show", "1-3", "--json"))] == [1, 2, 3]
    assert [one["id"] for one in data(filled("show", "--thread", "a", "--last", 1, "--json"))] == [
        2
    ]
    filled("show", "--thread", "none", code=NOTHING)
    filled("show", "99", code=NOTHING)
    filled("show", "x", code=USAGE)
    filled("show", "1", "--thread", "a", code=USAGE)


def test_a_text_cannot_drive_the_terminal(run):
    run("remember", "red \x1b[31m alert \x07 \u202e flipped")
    told = run("show", "1").stdout + run("explain", 1).stdout + run("plan", "alert").stdout
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", told)
    assert "\\x1b" in told
    assert data(run("show", "1", "--json"))[0]["text"] == "red \x1b[31m alert \x07 \u202e flipped"


def test_explain_says_what_a_record_was_made_from(filled):
    assert "had in its prompt: 1" in filled("explain", 2).stdout
    assert data(filled("explain", 2, "--json"))["context"] == [1]
    filled("explain", 99, code=NOTHING)


def test_graph_draws_ids_and_no_content(filled):
    assert "1 -> 2" in filled("graph").stdout
    drawn = filled("graph", "--mermaid").stdout
    assert "m1 --> m2" in drawn
    assert "555" not in drawn
    assert data(filled("graph", "1,2", "--json"))["edges"] == [[1, 2]]
    filled("graph", "--dot", "--mermaid", code=USAGE)


def test_an_export_can_be_replayed_into_the_same_memory_elsewhere(filled, tmp_path):
    kept = tmp_path / "all.jsonl"
    assert data(filled("export", "--out", kept, "--json")) == {"records": 3}
    assert kept.read_text() == filled("export").stdout
    tally = data(filled("replay", kept, "--db", tmp_path / "other.db", "--json"))
    assert (tally["remembered"], tally["recorded"]) == (2, 1)

    def plain(stdout):
        return [json.loads(line) for line in stdout.splitlines()]

    again = plain(filled("export", "--db", tmp_path / "other.db").stdout)
    assert again == plain(kept.read_text())


def test_index_makes_the_vectors_once(filled):
    assert data(filled("index", "--json")) == {"made": 3}
    assert "0 vector(s)" in filled("index").stdout
    filled("index", "--embedder", "none", code=FAILED)


# --- plan, forget, restore, scan, scrub, verify, receipts ---


def test_plan_shows_the_tree_and_changes_nothing(filled):
    told = filled("plan", "+1 415-555-0132").stdout
    assert "2 record(s)" in told
    assert "holds the phone" in told
    assert data(filled("show", "--json")) == {"a": 2, "b": 1}
    filled("plan", "zebra", code=NOTHING)


@pytest.mark.parametrize(
    ("selectors", "ids"),
    [
        (["--ids", "1"], [1, 2]),
        (["--ids", "2-3"], [2, 3]),
        (["--quote", "My phone number"], [1, 2]),
        (["--value", "4155550132"], [1, 2]),
        (["--keyword", "loud rain"], [3]),
        (["--meaning", "The rain is loud", "--threshold", "0.9"], [3]),
        (["--description", "my phone number"], [1, 2]),
        (["--where", "mood=calm"], [3]),
        (["--where", "role=assistant", "--where", "thread=a"], [2]),
        (["--thread", "a"], [1, 2]),
        (["--everything"], [1, 2, 3]),
        (["--ids", "1", "--include", "3"], [1, 2, 3]),
        (["--everything", "--exclude", "3"], [1, 2]),
        (["--ids", "1", "--reach", "depth:0"], [1]),
        (["loud"], [3]),
    ],
)
def test_each_selector_selects(filled, selectors, ids):
    plan = data(filled("plan", *selectors, "--json"))
    assert sorted(one["id"] for part in ("matches", "dependents") for one in plan[part]) == ids


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [" "],
        ["--ids", "1,x"],
        ["--ids", "5-3"],
        ["--where", "mood"],
        ["--mode", "burn", "x"],
        ["--reach", "depth:x", "x"],
        ["--reach", "far", "x"],
        ["--reach", "influence:2", "x"],
        ["--everything", "x"],
        ["--no-such-option"],
    ],
)
def test_a_selector_that_makes_no_sense_is_a_usage_error(filled, wrong):
    for verb in ("plan", "forget"):
        assert filled(verb, *wrong, code=USAGE).stdout == ""


def test_forget_asks_and_no_means_no(filled):
    told = filled("forget", "4155550132", typed="n\n", code=NOTHING).stdout
    assert "holds the phone" in told
    assert "Nothing was forgotten" in told
    filled("forget", "4155550132", typed="", code=NOTHING)
    assert data(filled("show", "--json")) == {"a": 2, "b": 1}


def test_forget_forgets_after_yes_and_shows_the_receipt(filled):
    told = filled("forget", "4155550132", typed="y\n").stdout
    assert "scrubbed: 2 record(s), 1 of them matched" in told or "scrubbed: 2 record(s)" in told
    assert "x.example/m" in told
    assert data(filled("show", "--json")) == {"b": 1}


def test_forget_with_yes_prints_one_json_receipt(filled):
    receipt = data(filled("forget", "4155550132", "--yes", "--json"))
    assert receipt["ids"] == [1, 2]
    assert "555" not in json.dumps(receipt["exposures"])
    filled("forget", "loud", "--json", code=USAGE)
    assert data(filled("forget", "zebra", "-y", "--json", code=NOTHING))["size"] == 0


def test_what_is_forgotten_with_a_guard_does_not_come_in_again(filled):
    number = filled("forget", "4155550132", "--yes", "--guard", "--json")
    (guard,) = data(filled("guards", "--json"))
    assert (guard["receipt"], guard["digests"] > 0) == (
        int(data(number)["id"].split("/")[-1]),
        True,
    )
    assert str(guard["digests"]) in filled("guards").stdout
    again = ("remember", "was it 415-555-0132?", "--json")
    assert "555" not in data(filled(*again))[0]["text"]
    assert data(filled("guards", "--lift", str(guard["receipt"]), "--json")) == {
        "digests": guard["digests"]
    }
    assert data(filled("guards", "--json")) == []
    assert "555" in data(filled(*again))[0]["text"]


def test_a_hold_is_placed_listed_and_released(filled):
    placed = ("hold", "place", "--basis", "case 4711", "--by", "counsel", "--json")
    hold = data(filled(*placed, "--ids", "1"))
    assert (hold["number"], hold["kind"], hold["records"]) == (1, "ids", 1)
    filled("show", "1", code=NOTHING)
    assert data(filled("forget", "--ids", "1", "--yes", "--json"))["held"] == [1]
    listed = data(filled("hold", "list", "--json"))
    assert (listed["holds"], listed["waiting"]) == ([hold], [1])
    assert "case 4711" in filled("hold", "list").stdout
    assert [one["ids"] for one in data(filled("hold", "release", "1", "--json"))] == [[1]]
    filled("hold", "release", "1", code=NOTHING)
    assert data(filled("hold", "list", "--released", "--json"))["holds"][0]["released_at"]
    filled(*placed, code=USAGE)
    filled(*placed, "--ids", "3", "--everything", code=USAGE)


def test_what_waits_is_confirmed_or_rejected(filled, tmp_path):
    with Memory.open(str(tmp_path / "memory.db"), embedder="hashing") as memory:
        memory.remember_many([Draft("maybe ill", quarantined=True), Draft("no", quarantined=True)])
    first, second = data(filled("waiting", "--json"))
    assert (first["text"], second["text"]) == ("maybe ill", "no")
    assert "maybe ill" in filled("waiting").stdout
    filled("confirm", str(first["id"]))
    assert data(filled("reject", str(second["id"]), "--json"))["ids"] == [second["id"]]
    assert data(filled("waiting", "--json")) == []
    filled("confirm", str(first["id"]), code=NOTHING)


def test_a_guess_is_planned_and_shown_too(filled):
    told = filled(
        "forget", "--meaning", "The rain is loud", "--threshold", "0.9", typed="y\n"
    ).stdout
    assert "means the same" in told
    assert data(filled("show", "--json")) == {"a": 2}


def test_a_kept_plan_is_executed_as_it_was_shown(filled, tmp_path):
    kept = tmp_path / "plan.json"
    filled("plan", "4155550132", "--save", kept)
    assert "555" not in kept.read_text()
    assert data(filled("forget", "--plan", kept, "-y", "--json"))["ids"] == [1, 2]


def test_a_kept_plan_that_no_longer_holds_is_refused(filled, tmp_path):
    kept = tmp_path / "plan.json"
    filled("plan", "--ids", "1", "--save", kept)
    with Memory.open(str(tmp_path / "memory.db"), embedder=None) as memory:
        memory.record("more", context=[1])
    filled("forget", "--plan", kept, "-y", code=FAILED)
    assert data(filled("show", "--json"))["a"] == 2


def test_a_plan_file_that_is_none_is_a_usage_error(filled, tmp_path):
    wrong = tmp_path / "wrong.json"
    for text in ("", "[]", "{}", "not json"):
        wrong.write_text(text)
        filled("forget", "--plan", wrong, "-y", code=USAGE)
    filled("forget", "--plan", tmp_path / "missing.json", "-y", code=USAGE)
    filled("forget", "--plan", wrong, "--ids", "1", "-y", code=USAGE)


def test_suppression_can_be_undone(filled):
    number = data(filled("forget", "4155550132", "--mode", "suppress", "-y", "--json"))["id"]
    assert data(filled("show", "--json")) == {"b": 1}
    assert data(filled("restore", number.split("/")[1], "--json")) == {"ids": [1, 2]}
    assert data(filled("show", "--json")) == {"a": 2, "b": 1}
    filled("restore", 99, code=NOTHING)


def test_redaction_takes_the_span(filled):
    receipt = data(
        filled("forget", "4155550132", "--mode", "redact", "--unit", "span", "-y", "--json")
    )
    new = receipt["redacted"]["1"]
    shown = data(filled("show", new, "--json"))[0]["text"]
    assert "555" not in shown
    assert shown.startswith("My phone number is")


def test_scan_finds_a_value_until_it_is_gone(filled):
    assert "record.text" in filled("scan", "415.555.0132", code=NOTHING).stdout
    assert not data(filled("scan", "-", "--json", typed=PHONE, code=NOTHING))["clean"]
    filled("forget", "4155550132", "-y")
    assert data(filled("scan", PHONE, "--json"))["clean"]
    filled("scan", " ", code=USAGE)


def test_scrub_cleans_what_a_forget_left(filled):
    receipt = data(filled("forget", "4155550132", "-y", "--no-scrub", "--json"))
    assert receipt["level"] == "erased"
    assert data(filled("scrub", "--json"))["clean"]
    assert "clean" in filled("scrub").stdout
    assert data(filled("receipts", 1, "--json"))[0]["level"] == "scrubbed"


def test_verify_says_whether_all_holds(filled, tmp_path):
    assert data(filled("verify", "--json"))["ok"]
    import apsw

    broken = apsw.Connection(str(tmp_path / "memory.db"))
    broken.execute("update workspace set documents = documents + 1")
    broken.close()
    assert "problem" in filled("verify", code=NOTHING).stdout


def test_receipts_are_listed(filled):
    filled("forget", "4155550132", "-y")
    assert "scrubbed" in filled("receipts").stdout
    assert "receipt default/1" in filled("receipts", 1).stdout
    assert [one["ids"] for one in data(filled("receipts", "--json"))] == [[1, 2]]
    filled("receipts", 7, code=NOTHING)


# --- chat and replay ---


def test_chat_answers_plans_and_forgets(run):
    said = "My code is 4711\n\nRain again\nForget 4711\nyes\n/quit\nnever read\n"
    told = run("chat", "--model", "extractive", typed=said).stdout
    assert "Answer yes, no" in told
    assert "Forgotten." in told
    run("scan", "4711")
    assert "never read" not in run("export").stdout


def test_chat_can_speak_json(run):
    told = run(
        "chat", "--model", "extractive", "--json", typed="Hello\nForget message 1\nno\n"
    ).stdout
    first, second, third = [json.loads(line) for line in told.splitlines()]
    assert (first["question"], first["answer"], first["context"]) == (1, 2, [1])
    assert second["pending"]
    assert second["plan"]["matches"][0]["id"] == 1
    assert (third["pending"], third["receipt"]) == (False, None)


def test_chat_goes_on_after_an_error_of_the_model(run, monkeypatch):
    with OpenAIServer(faults=["400"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        result = run("chat", typed="a secret word\nhello again\n")
    assert "dellm: " in result.stderr
    assert "secret" not in result.stderr
    assert "hello again" in result.stdout


def test_chat_without_a_model_says_what_to_do(run, monkeypatch, tmp_path):
    monkeypatch.setenv("DELLM_CACHE", str(tmp_path))
    assert "OPENAI_API_KEY" in run("chat", typed="hi\n", code=FAILED).stderr
    run("chat", "--model", "nonsense", typed="hi\n", code=USAGE)


def write(path: Path, messages, *, lines=True):
    text = "\n".join(map(json.dumps, messages)) if lines else json.dumps(messages)
    path.write_text(text, "utf-8")
    return path


SAID = [
    {"role": "user", "text": "My code is 4711", "thread": "a", "at": "2026-03-01T09:00:00+00:00"},
    {"role": "assistant", "text": "Noted.", "thread": "a", "context": [0], "at": 1_772_355_660},
    {"role": "user", "content": "Rain", "thread": "b"},
    {"role": "assistant", "text": "Yes, rain.", "thread": "b", "context": []},
]


@pytest.mark.parametrize("lines", [True, False])
def test_replay_records_given_contexts_without_a_model(run, tmp_path, lines):
    tally = data(run("replay", write(tmp_path / "talk.json", SAID, lines=lines), "--json"))
    assert (tally["remembered"], tally["recorded"], tally["answered"]) == (3, 1, 0)
    assert data(run("explain", 2, "--json"))["context"] == [1]
    shown = data(run("show", "1-4", "--json"))
    assert [one["thread"] for one in shown] == ["a", "a", "b", "b"]
    assert shown[0]["created_at"] == "2026-03-01T09:00:00+00:00"
    assert shown[1]["created_at"] == "2026-03-01T09:01:00+00:00"


def test_replay_asks_the_model_where_no_context_is_known(run, tmp_path):
    said = [
        {"role": "user", "text": "My bicycle is green"},
        {"role": "assistant", "text": "This line was said without a context."},
        {"role": "user", "text": "Which colour has my bicycle?"},
    ]
    path = write(tmp_path / "talk.jsonl", said)
    tally = data(run("replay", path, "--model", "extractive", "--json"))
    assert tally["answered"] == 2
    told = run("export").stdout
    assert "without a context" not in told
    assert data(run("explain", 4, "--json"))["context"] == [1, 3]


def test_replay_without_a_model_takes_all_that_was_said_before_as_the_context(run, tmp_path):
    said = [{"role": role, "text": f"{n}"} for n, role in enumerate(["user", "assistant"] * 2)]
    run("replay", write(tmp_path / "talk.jsonl", said), "--no-model")
    assert data(run("explain", 4, "--json"))["context"] == [1, 2, 3]


def test_replay_executes_a_request_in_the_conversation(run, tmp_path):
    texts = ("My code is 4711", "Rain again", "Forget 4711", "yes")
    said = [{"role": "user", "text": text} for text in texts]
    tally = data(
        run("replay", write(tmp_path / "t.jsonl", said), "--model", "extractive", "--json")
    )
    assert (tally["forgets"], tally["answered"]) == (1, 2)
    run("scan", "4711")


def test_replay_does_not_bring_back_what_was_erased(filled, tmp_path):
    said = [{"role": "user", "text": "The code is 4711", "framework_id": "m-1"}]
    path = write(tmp_path / "t.jsonl", said)
    filled("replay", path, "--no-model")
    filled("forget", "4711", "-y")
    assert data(filled("replay", path, "--no-model", "--json"))["refused"] == 1
    filled("scan", "4711")


@pytest.mark.parametrize(
    "wrong",
    [
        "not json",
        '{"role": "user"}',
        '{"role": 5, "text": "x"}',
        '{"role": "assistant", "text": "x", "context": [3]}',
        '{"role": "assistant", "text": "x", "context": "all"}',
        '{"text": "x", "at": "soon"}',
        '{"text": "x", "at": 1e99}',
        '{"text": "x", "payload": "***"}',
        "[1, 2]",
        "\udcff",
    ],
)
def test_replay_of_a_file_that_makes_no_sense_is_a_usage_error(run, tmp_path, wrong):
    path = tmp_path / "t.jsonl"
    path.write_text(wrong, "utf-8", "surrogateescape")
    run("replay", path, "--no-model", code=USAGE)


# --- models ---


def test_models_are_listed(run, monkeypatch, tmp_path):
    monkeypatch.setenv("DELLM_CACHE", str(tmp_path))
    found = {one["name"]: one for one in data(run("models", "list", "--json"))}
    assert set(found) == {"minilm", "smollm2"}
    assert found["minilm"]["folder"] is None
    assert "not installed" in run("models", "list").stdout


def test_models_that_cannot_be_had_are_an_error_of_one_line(run, monkeypatch, tmp_path):
    monkeypatch.setenv("DELLM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "empty").mkdir()
    result = run("models", "install", "minilm", "--folder", tmp_path / "empty", code=FAILED)
    assert result.stderr.count("\n") == 1
    run("models", "install", "no-such-model", code=USAGE)


def test_models_that_are_there_stay(run):
    from weights_at_hand import weights_folder

    folder = weights_folder("minilm")
    done = data(run("models", "install", "minilm", "--json"))
    assert done == [{"name": "minilm", "folder": str(folder), "fetched": False}]


# --- the program ---


def test_a_missing_memory_is_named_and_not_made(run, tmp_path):
    for command in (["show"], ["plan", "x"], ["scan", "x"], ["verify"], ["export"]):
        run(*command, code=USAGE)
    assert not (tmp_path / "memory.db").exists()


def test_a_file_that_is_no_memory_is_an_error_of_one_line(run, tmp_path):
    (tmp_path / "memory.db").write_text("a diary with a secret word in it. " * 100)
    result = run("show", code=FAILED)
    assert result.stderr.startswith("dellm: ")
    assert "secret" not in result.stderr


def test_workspaces_do_not_see_each_other(filled):
    filled("remember", "of another", "-w", "other")
    assert "of another" not in filled("export").stdout
    assert data(filled("show", "1", "--json", "--workspace", "other"))[0]["text"] == "of another"


def test_the_environment_names_the_memory_and_the_workspace(run, monkeypatch, tmp_path):
    monkeypatch.setenv("DELLM_WORKSPACE", "mine")
    run("remember", "hello")
    monkeypatch.setenv("DELLM_WORKSPACE", "default")
    run("show", code=NOTHING)
    assert data(run("show", "--json", "-w", "mine", "1"))[0]["workspace"] == "mine"


def test_every_command_works_on_postgresql_too(run, postgres_url, monkeypatch):
    monkeypatch.setenv("DELLM_DB", postgres_url)
    run("remember", f"My phone number is {PHONE}")
    run("remember", "The rain is loud")
    assert data(run("forget", "4155550132", "-y", "--json"))["ids"] == [1]
    assert data(run("scan", PHONE, "--no-files", "--json"))["clean"]
    assert data(run("verify", "--json"))["ok"]


def test_a_fault_of_ours_shows_where_and_never_what(filled, monkeypatch):
    def broken(*_args, **_options):
        raise RuntimeError("it fell over a secret word")

    monkeypatch.setattr(Memory, "scan", broken)
    result = filled("scan", "x", code=FAILED)
    assert "RuntimeError in test_cli.py" in result.stderr
    assert "secret" not in result.stderr


def test_every_command_prints_json_where_it_prints_data(run):
    commands = {command.name: command for command in cli.app.registered_commands}
    assert set(commands) >= {"chat", "replay", "plan", "forget", "scan", "verify", "export"}
    for name in [*commands, "models list", "models install"]:
        told = CliRunner().invoke(cli.app, [*name.split(), "--help"], env={"COLUMNS": "200"}).output
        assert "--json" in told, name


def test_the_program_starts_and_names_its_version_and_its_exit_codes():
    call = [sys.executable, "-m", "dellm.cli"]
    version = subprocess.run([*call, "--version"], capture_output=True, text=True, timeout=60)
    assert re.match(r"\d+\.\d+", version.stdout)
    told = subprocess.run([*call, "--help"], capture_output=True, text=True, timeout=60)
    assert "Exit codes" in told.stdout
    assert "\x1b" not in told.stdout
    wrong = subprocess.run([*call, "no-such-command"], capture_output=True, timeout=60)
    assert wrong.returncode == USAGE


def test_importing_the_library_loads_no_program():
    code = "import dellm, sys; print([n for n in ('typer', 'rich', 'openai') if n in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert told.stdout.strip() == "[]"


def test_ids_and_reaches_are_read_exactly():
    assert numbers("3, 5-8 10") == [3, 5, 6, 7, 8, 10]
    assert (reach_of("strict"), reach_of("depth:2")) == (STRICT, depth(2))
    assert reach_of("influence:0.3") == influence(0.3)
    for wrong in ("", "-", "1-999999999", "1.5", "--"):
        with pytest.raises(InvalidInput):
            numbers(wrong)


# --- prove, verify-receipt, keygen ---


def test_a_proof_is_written_signed_and_checked_without_the_database(filled, tmp_path):
    number = data(filled("forget", "--yes", PHONE, "--json"))["id"].split("/")[1]
    filled("keygen", tmp_path / "key")
    file = tmp_path / "proof.json"
    shown = filled("prove", number, "--key", tmp_path / "key", "--out", file)
    assert "records: 2 before, 0 after" in shown.stdout
    (tmp_path / "memory.db").unlink()
    checked = data(filled("verify-receipt", file, "--key", tmp_path / "key.pub", "--json"))
    assert checked["valid"]
    assert checked["trusted"]
    file.write_bytes(file.read_bytes().replace(b'"before":2', b'"before":1'))
    assert "NOT valid" in filled("verify-receipt", file, code=NOTHING).stdout
    file.write_text("no proof")
    filled("verify-receipt", file, code=USAGE)
    filled("verify-receipt", tmp_path / "none", code=USAGE)


def test_the_audit_chain_is_listed_and_pruned(filled):
    filled("forget", "--yes", PHONE)
    assert "erase" in filled("audit").stdout
    kept = data(filled("audit", "--prune", "30", "--json"))
    assert (kept["pruned"], kept["entries"][0]["action"]) == (0, "erase")
    filled("audit", "--prune", "0", code=USAGE)


# --- restore-check ---


def test_a_restored_database_is_checked_by_its_journal(filled, tmp_path, monkeypatch):
    monkeypatch.setenv("DELLM_JOURNAL", str(tmp_path / "journal"))
    backup = (tmp_path / "memory.db").read_bytes()
    filled("forget", "--yes", PHONE)
    (tmp_path / "memory.db").write_bytes(backup)
    assert "older than its journal" in filled("show", code=FAILED).stderr
    assert "erased again" in filled("restore-check", tmp_path / "journal").stdout
    assert PHONE not in filled("export").stdout
    assert data(filled("restore-check", tmp_path / "journal", "--json"))["lost"] == 0


# --- sweep ---


def test_what_has_expired_is_swept(filled, tmp_path):
    with Memory.open(str(tmp_path / "memory.db"), embedder=None) as memory:
        memory.remember("the code is 4711", retention_until=1)
    assert data(filled("sweep", "--json"))["gone"] == 1
    assert "0 expired" in filled("sweep", "--no-scrub").stdout


# --- remembered, correct, import ---


def test_what_is_remembered_is_shown_put_right_and_taken_along(run, tmp_path, monkeypatch):
    with Memory.open(str(tmp_path / "memory.db"), embedder=None) as memory:
        memory.remember("lives in Paris", subject="Ann Lee")
        memory.remember("the rain is loud")
    assert [one["text"] for one in data(run("remembered", "ann lee", "--json"))] == [
        "lives in Paris"
    ]
    run("correct", "1", "lives in Oslo")
    assert "lives in Oslo" in run("remembered", "Ann Lee").stdout
    out = tmp_path / "out"
    assert data(run("remembered", "--out", out, "--json"))["records"] == 2
    run("remembered", "Bob", code=NOTHING)
    monkeypatch.setenv("DELLM_DB", str(tmp_path / "other.db"))
    assert data(run("import", out, "--json"))["new"] == 2
    assert data(run("import", out, "--json"))["here"] == 2
