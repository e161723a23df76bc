"""What a second pair of eyes found by using the verbs together, in ways each was not tested for."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from raw_tables import connected, statement
from typer.testing import CliRunner

import dellm
from dellm import InvalidInput, Memory, Plan, Status
from dellm.cli import app
from dellm.commands.selecting import read_plan


def set_status(url: str, id_: int, status: Status) -> None:
    """Put a record of the workspace on hold or release it, as an operator would with SQL."""
    with connected(url) as owner:
        statement(owner, "update record set status = ? where id = ?", int(status), id_)
        statement(owner, "update workspace set version = version + 1")


def test_a_record_that_two_suppressions_took_comes_back_when_both_are_undone(
    memory: Memory,
) -> None:
    memory.remember("I like tea", thread="t")  # 1
    memory.remember("I like rum", thread="t")  # 2
    memory.record("tea and rum", context=[1, 2], thread="t")  # 3, of which both speak
    tea = memory.forget(ids=[1], mode="suppress")
    rum = memory.forget(ids=[2], mode="suppress")
    assert memory.restore(rum) == [2]
    assert [one.id for one in memory.history("t")] == [2]
    assert memory.restore(tea) == [1, 3]
    assert [one.id for one in memory.history("t")] == [1, 2, 3]


def test_a_spared_record_still_goes_with_what_its_erased_source_was_made_from(
    memory: Memory,
) -> None:
    memory.remember("I live in Paris", thread="t")  # 1
    memory.remember("I have a cat", thread="t")  # 2
    memory.record("Paris, with a cat", context=[1, 2], thread="t")  # 3
    memory.record("A cat in Paris", context=[3], thread="t")  # 4
    memory.record("Paris is far from here", context=[4], thread="t")  # 5
    memory.forget(ids=[3], reach=dellm.depth(1))  # takes 3 and 4
    assert memory.context_of(5) == [1, 2]
    assert memory.forget(ids=[1]).ids == (1, 5)
    assert memory.context_of(5) == []
    assert [one.id for one in memory.export()] == [2]
    assert memory.verify().ok


def test_a_record_on_hold_still_hangs_on_the_sources_of_its_erased_source(
    memory: Memory, url: str
) -> None:
    memory.remember("I live in Paris")  # 1
    memory.record("Paris it is", context=[1])  # 2
    memory.record("Paris again", context=[2])  # 3
    set_status(url, 3, Status.HELD)
    memory.forget(ids=[2])
    set_status(url, 3, Status.ACTIVE)
    assert memory.forget(ids=[1]).ids == (1, 3)


def test_in_a_long_chat_a_spared_reply_is_tied_to_what_is_left_of_the_whole_history(
    memory: Memory,
) -> None:
    said: list[int] = []
    for turn in range(12):
        said.append(memory.remember(f"question {turn}", thread="t").id)
        said.append(memory.record(f"answer {turn}", context=said, thread="t").id)
    memory.forget(ids=[said[3]], reach=dellm.depth(0))
    for place in range(5, len(said), 2):
        assert memory.context_of(said[place]) == [one for one in said[:place] if one != said[3]]
    assert memory.verify().ok


def test_a_reply_spared_by_a_relaxed_redaction_hangs_on_the_new_version(memory: Memory) -> None:
    memory.remember("I live in Oslo and my cat is Tom")  # 1
    memory.record("Tom must like Oslo", context=[1])  # 2
    receipt = memory.forget("Oslo", ids=[1], mode="redact", reach=dellm.depth(0))
    assert receipt.redacted == {1: 3}
    assert memory.context_of(2) == [3]
    assert memory.forget("my cat is Tom").ids == (2, 3)


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        (json.dumps({"city": "Zürich", "km": 3}), {}),
        (base64.b64encode("the lake of Zürich".encode()).decode(), {}),
        ("a trip", {"reply": json.dumps({"city": "Zürich"})}),
        ("a trip", {"raw": base64.b64encode("the lake of Zürich".encode()).decode()}),
    ],
    ids=["json", "base64", "json beside it", "base64 beside it"],
)
def test_a_value_inside_an_encoding_is_forgotten_as_it_is_found_by_the_scan(
    memory: Memory, text: str, metadata: dict[str, Any]
) -> None:
    memory.remember(text, kind="tool", metadata=metadata)
    memory.remember("something else")
    assert memory.scan("Zürich", files=False).places
    assert memory.forget("Zürich").ids == (1,)
    assert memory.scan("Zürich", files=False).clean


def test_a_redaction_leaves_the_value_nowhere_beside_the_text(memory: Memory) -> None:
    memory.remember(
        "Sam Miller lives in Oslo",
        subject="Sam Miller",
        purpose="calling sam miller",
        sensitivity="high",
        metadata={
            "who": "SAM MILLER",
            "raw": base64.b64encode(b"a letter to Sam Miller").decode(),
            "seen": 3,
        },
        payload=b'{"content": "Sam Miller lives in Oslo"}',
    )
    receipt = memory.forget("Sam Miller", mode="redact")
    left = memory.get(receipt.redacted[1])
    assert (left.text, left.metadata) == ("[redacted] lives in Oslo", {"seen": 3})
    assert (left.subject, left.purpose, left.sensitivity) == (None, None, "high")
    assert memory.scan("Sam Miller", files=False).clean


def test_a_redaction_knows_the_numbers_of_the_memory_s_own_region(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, region="GB")
    memory.remember("Ring 020 7946 0958 at six", metadata={"tel": "+44 20 7946 0958", "n": 1})
    receipt = memory.forget("020 7946 0958", mode="redact")
    left = memory.get(receipt.redacted[1])
    assert (left.text, left.metadata) == ("Ring [redacted] at six", {"n": 1})


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": []},
        {"mode": "shred"},
        {"reach": []},
        {"reach": ["depth", "x"]},
        {"reach": ["all", 1]},
        {"reach": ["influence", 7]},
        {"digest": None},
        {"head": 5},
        {"workspace": 5},
        {"matches": [{"id": "1", "why": "named", "spans": []}]},
        {"matches": [{"id": 1, "why": 5, "spans": []}]},
        {"matches": [{"id": 1, "why": "named", "spans": [["a", "b"]]}]},
        {"dependents": [{"id": 2, "trace": ["x"], "copy": False}]},
        {"suspects": [{"id": 1 << 70, "why": "x"}]},
        {"held": [{"id": 1, "why": None}]},
    ],
    ids=str,
)
def test_json_with_a_value_that_no_plan_has_is_refused_when_it_is_read(
    memory: Memory, wrong: dict[str, Any]
) -> None:
    memory.remember("one")
    kept = memory.plan("one", mode="redact", reach=dellm.depth(2), ids=[1]).to_json()
    assert Plan.from_json(kept).to_json()["reach"] == ["depth", 2]
    with pytest.raises(InvalidInput):
        Plan.from_json(kept | wrong)


@pytest.mark.parametrize(
    "selection",
    [{"everything": "no"}, {"everything": 1}, {"ids": [1], "aliases": "no"}],
    ids=str,
)
def test_only_true_and_false_are_taken_for_yes_and_no(
    memory: Memory, selection: dict[str, Any]
) -> None:
    memory.remember("one")
    with pytest.raises(InvalidInput):
        memory.forget(**selection)
    assert len(list(memory.export())) == 1


def test_a_status_that_is_none_is_refused(memory: Memory) -> None:
    memory.remember("one")
    memory.remember("two")
    memory.forget(ids=[2], mode="suppress")
    assert memory.plan(where={"status": "Suppressed"}).ids == (2,)
    with pytest.raises(InvalidInput):
        memory.plan(where={"status": "nowhere"})


def test_a_plan_file_that_is_no_text_is_a_user_s_mistake(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput):
        read_plan(file)


def test_a_reply_whose_sources_may_not_be_read_is_not_called_made_from_nothing(
    url: str, opened: Callable[..., Memory]
) -> None:
    hour = [0]
    memory = opened(url, clock=lambda: hour[0] * 3_600_000_000)
    memory.remember("the code is 7312", retention_until=3_600_000_000)
    memory.remember("where is the door?")
    # It is kept on a basis of its own: else it would end with what it was made from.
    memory.record("Over there.", context=[1, 2], basis="contract", retention="project_decision")
    hour[0] = 2
    told = memory.explain(3)
    assert (told.hidden, [one.id for one in told.context]) == (1, [2])
    assert "1 record(s) that may not be read" in str(told)
    assert "7312" not in str(told)
    memory.forget(ids=[2], mode="suppress", reach=dellm.depth(0))
    assert "was not made from anything" not in str(memory.explain(3))
    assert "was not made from anything" in str(memory.explain(memory.remember("x").id))


def test_a_described_value_is_redacted_wherever_the_record_repeats_it(memory: Memory) -> None:
    memory.remember("Sam's phone is 415 555 0142. Call +1 415-555-0142 at six.")
    memory.remember("something else")
    memory.forget(memory.plan(description="Sam's phone number", mode="redact"))
    assert memory.get(3).text == "Sam's phone is [redacted]. Call [redacted] at six."
    assert memory.scan("415 555 0142", files=False).clean


def test_a_record_that_still_says_it_in_an_encoding_is_erased_whole(memory: Memory) -> None:
    memory.remember(r'["Oslo", "\u004fslo", "Bergen"]')
    receipt = memory.forget("Oslo", mode="redact")
    assert (receipt.ids, dict(receipt.redacted)) == ((1,), {})
    assert memory.scan("Oslo", files=False).clean


def test_the_command_line_gives_the_same_receipt_when_a_forget_is_repeated(url: str) -> None:
    def dellm_(*words: str) -> tuple[int, str]:
        options = ("--db", url, "--embedder", "none")
        run = CliRunner().invoke(app, [words[0], *options, *words[1:]])
        return run.exit_code, run.stdout

    dellm_("remember", "My phone is 415 555 0142")
    dellm_("remember", "something else")
    first = dellm_("forget", "(415) 555-0142", "--yes", "--json")
    assert first[0] == 0
    assert dellm_("forget", "(415) 555-0142", "--yes", "--json") == first
    code, said = dellm_("forget", "a word that never was", "--yes")
    assert (code, said) == (1, "nothing matches: nothing would be changed\n")


@pytest.mark.parametrize("wrong", ["2", None, True, float("nan")])
def test_a_reach_takes_numbers_only(wrong: Any) -> None:
    for make in (dellm.depth, dellm.influence):
        with pytest.raises(InvalidInput):
            make(wrong)
    with pytest.raises(InvalidInput):
        dellm.depth(1.5)  # type: ignore[arg-type] # a caller without type checks


def test_the_name_of_a_thread_goes_with_its_last_record(memory: Memory) -> None:
    name = "chat with sam.miller@example.com"
    said = [memory.remember(f"note {number}", thread="notes").id for number in range(12)]
    memory.record("seen", context=said, thread=name)  # of which a sequence of notes is left
    for turn in range(6):
        said.append(memory.remember(f"question {turn}", thread=name).id)
        said.append(memory.record(f"answer {turn}", context=said, thread=name).id)
    memory.forget(thread=name)
    assert memory.scan(name, files=False).clean
    assert len(memory.history("notes")) == 12
    assert memory.verify().ok
