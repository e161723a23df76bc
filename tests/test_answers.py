"""Cached answers: who is given which, that none is stale, and that a forget reaches every one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from openai_server import words_as_vector
from raw_tables import connected, statement

from dellm import ContextForgotten, EmbedderError, InvalidInput, Memory, NotFound, Record, depth

ASKED = "What is my sister's name?"
SAME = "  what is my SISTER'S name"
CLOSE = "what is my sister's name again"
OTHER = "where do I live"


class Words:
    """An embedder by words, of someone else: questions of the same words are near."""

    name = "words"
    dimensions = 64
    threshold = 0.2

    def __init__(self, provider: str = "local") -> None:
        self.provider = provider

    def embed(self, texts: list[str]) -> Any:
        rows = np.stack([words_as_vector(one.replace("?", ""), 64) for one in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    return opened(url, embedder=Words()).workspace("alex")


def told(memory: Memory, thread: str = "t") -> tuple[Record, Record, Record]:
    """The user says something, asks, and is answered by a model that repeats its whole prompt."""
    fact = memory.remember("My sister is Quokka.", thread=thread)
    question = memory.remember(ASKED, thread=thread)
    text = f"You told me: {fact.text} {question.text}"
    reply = memory.record(text, context=[fact.id, question.id], thread=thread)
    return fact, question, reply


# hits


@pytest.mark.parametrize(
    ("question", "by", "hit"),
    [
        (ASKED, "exact", True),
        (SAME, "exact", True),
        (CLOSE, "exact", False),
        (ASKED, "meaning", True),
        (CLOSE, "meaning", True),
        (OTHER, "meaning", False),
        (SAME, "both", True),
        (CLOSE, "both", True),
        (OTHER, "both", False),
    ],
)
def test_an_answer_is_given_to_the_same_question_or_to_one_that_means_it(
    memory: Memory, question: str, by: str, hit: bool
) -> None:
    fact, asked, reply = told(memory)
    memory.answers.keep(asked, reply)
    again = memory.remember(question, thread="t")
    found = memory.answers.find(question, context=[fact.id, again.id], thread="t", by=by)
    assert (found is not None) == hit
    if found is not None:
        assert (found.text, found.role, found.thread) == (reply.text, "assistant", "t")
        assert found.id > again.id
        assert memory.get(found.id) == found


def test_a_hit_is_made_from_the_present_context_the_reply_and_the_entry(memory: Memory) -> None:
    fact, asked, reply = told(memory)
    entry = memory.answers.keep(ASKED, reply.id)
    again = memory.remember(SAME, thread="t")
    hit = memory.answers.find(SAME, context=[fact.id, again.id], thread="t")
    assert hit is not None
    assert memory.context_of(hit.id) == [fact.id, again.id, reply.id, entry]
    assert memory.context_of(entry) == [reply.id]
    assert memory.dependents([asked.id]) == [asked.id, reply.id, entry, hit.id]
    assert memory.verify().ok


def test_a_hit_is_governed_as_the_reply_is_that_it_gives_again(memory: Memory) -> None:
    until = datetime.now(UTC) + timedelta(days=1)
    reply = memory.record(
        "Quokka.",
        context=[],
        thread="t",
        subject="nia",
        purpose="chat",
        sensitivity="family",
        retention_until=until,
    )
    memory.answers.keep(ASKED, reply)
    hit = memory.answers.find(ASKED, thread="t")
    assert hit is not None
    assert (hit.subject, hit.purpose, hit.sensitivity) == ("nia", "chat", "family")
    assert hit.retention_until == until


def test_only_questions_that_say_the_same_are_the_same(memory: Memory) -> None:
    reply = memory.record("A language.", context=[])
    memory.answers.keep("What is C++?", reply, scope="all")
    assert memory.answers.find("what is c++", scope="all", by="exact") is not None
    assert memory.answers.find("What is C?", scope="all", by="exact") is None


def test_the_nearest_of_several_answers_is_given(memory: Memory) -> None:
    for city in ("rome", "oslo", "lima"):
        reply = memory.record(f"It is warm in {city}.", context=[])
        memory.answers.keep(f"how is the weather today in {city}", reply, scope="all")
    found = memory.answers.find("how is weather today in oslo", scope="all", threshold=0.5)
    assert found is not None
    assert found.text == "It is warm in oslo."
    assert memory.answers.find("how is it in oslo", scope="all", threshold=0.999) is None


def test_a_kept_answer_takes_the_place_of_the_one_before(memory: Memory) -> None:
    for text in ("one", "two"):
        memory.answers.keep("how many?", memory.record(text, context=[]), scope="all")
    found = memory.answers.find("how many", scope="all")
    assert found is not None
    assert found.text == "two"
    assert memory.answers.clear() == 1


# what an answer may not be


def test_an_answer_made_from_anything_else_is_stale(memory: Memory) -> None:
    fact, asked, reply = told(memory)
    memory.answers.keep(asked, reply)
    news = memory.remember("My sister is called Zebra now.", thread="t")
    again = memory.remember(ASKED, thread="t")
    for context in ([fact.id, news.id, again.id], [news.id, again.id], [again.id], []):
        assert memory.answers.find(ASKED, context=context, thread="t") is None
    stale = memory.answers.find(ASKED, context=[news.id, again.id], thread="t", same_context=False)
    assert stale is not None
    assert memory.answers.find(ASKED, context=[fact.id, again.id], thread="t") is not None


def test_an_answer_never_reaches_another_thread_or_scope(memory: Memory) -> None:
    _, _, reply = told(memory)
    memory.answers.keep(ASKED, reply)
    memory.answers.keep(ASKED, reply, scope="user:ada")
    asking = {"by": "both", "same_context": False}
    assert memory.answers.find(ASKED, thread="t", **asking) is not None  # type: ignore[arg-type] # options
    assert memory.answers.find(ASKED, scope="user:ada", **asking) is not None  # type: ignore[arg-type] # options
    for where in ({"thread": "u"}, {}, {"scope": "user:bob"}, {"scope": "t"}, {"scope": ""}):
        for question in (ASKED, CLOSE):
            assert memory.answers.find(question, **where, **asking) is None  # type: ignore[arg-type] # options
    assert memory.scan("user:ada", files=False).clean
    assert memory.answers.clear("user:ada") == 1
    assert memory.answers.find(ASKED, scope="user:ada", **asking) is None  # type: ignore[arg-type] # options


def test_an_answer_lives_as_long_as_it_was_kept_for(
    url: str, opened: Callable[..., Memory]
) -> None:
    now = [1_700_000_000_000_000]
    memory = opened(url, embedder=Words(), clock=lambda: now[0]).workspace("alex")
    memory.answers.keep("how long?", memory.record("so long", context=[]), scope="all", ttl=1)
    now[0] += 59_000_000
    assert memory.answers.find("how long", scope="all") is not None
    assert memory.answers.sweep() == 0
    now[0] += 2_000_000
    assert memory.answers.find("how long", scope="all") is None
    assert memory.answers.find("how long then", scope="all", threshold=0.5) is None
    assert memory.answers.sweep() == 1
    assert memory.verify().ok


# forgetting


WAYS: dict[str, Callable[[Memory, int, int, int], object]] = {
    "what was said": lambda m, fact, asked, reply: m.forget(ids=[fact]),
    "the question": lambda m, fact, asked, reply: m.forget(ids=[asked]),
    "the reply": lambda m, fact, asked, reply: m.forget(ids=[reply]),
    "the value": lambda m, fact, asked, reply: m.forget("Quokka"),
    "the value, redacted": lambda m, fact, asked, reply: m.forget("Quokka", mode="redact"),
    "no more than the reply": lambda m, fact, asked, reply: m.forget(ids=[reply], reach=depth(0)),
    "suppressed": lambda m, fact, asked, reply: m.forget(ids=[fact], mode="suppress"),
    "dropped": lambda m, fact, asked, reply: m.conversations.hide("t", [reply]),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_hit_returns_what_was_forgotten_in_either_mode(memory: Memory, way: str) -> None:
    fact, asked, reply = told(memory)
    memory.answers.keep(asked, reply)
    memory.answers.keep(CLOSE, reply, scope="all")
    hit = memory.answers.find(ASKED, context=[fact.id], thread="t", same_context=False)
    assert hit is not None  # the negative control
    assert "Quokka" in hit.text
    WAYS[way](memory, fact.id, asked.id, reply.id)
    for question in (ASKED, CLOSE):
        for by in ("exact", "meaning", "both"):
            for where in ({"thread": "t"}, {"scope": "all"}):
                found = memory.answers.find(
                    question, by=by, threshold=0.5, same_context=False, **where
                )
                assert found is None
    assert memory.verify().ok


ELSEWHERE = """
import sys
from dellm import Memory
with Memory.open(sys.argv[1], embedder="hashing") as memory:
    memory = memory.workspace("alex")
    for by in ("exact", "meaning"):
        print(memory.answers.find(sys.argv[2], by=by, scope="all", same_context=False))
"""


def test_no_other_process_gives_it_either_and_it_is_nowhere(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url).workspace("alex")
    _, asked, reply = told(memory)
    memory.answers.keep(asked, reply, scope="all")
    code = [sys.executable, "-c", ELSEWHERE, url, ASKED]
    before = subprocess.run(code, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [one.startswith("Record(") for one in before] == [True, True]
    assert len(memory.scan("Quokka", files=False)) > 0
    memory.forget("Quokka")
    after = subprocess.run(code, capture_output=True, text=True, check=True).stdout.splitlines()
    assert after == ["None", "None"]
    memory.scrub()
    assert memory.scan("Quokka").clean
    with connected(url) as raw:
        assert statement(raw, "select count(*) from item")[0][0] == 0


def test_a_value_in_the_question_alone_takes_question_and_vector_along(
    memory: Memory, url: str
) -> None:
    for mode in ("erase", "redact"):
        reply = memory.record("I do not know.", context=[])
        memory.answers.keep("Is Quokka my sister?", reply, scope="all")
        assert memory.answers.find("is quokka my sister", scope="all") is not None
        memory.forget("Quokka", mode=mode)
        assert memory.answers.find("is quokka my sister", scope="all") is None
        assert memory.get(reply.id).text == "I do not know."
        assert memory.scan("Quokka", files=False).clean
        with connected(url) as raw:  # nor is a digest of the question left as a name
            assert statement(raw, "select count(*) from item")[0][0] == 0
    assert memory.verify().ok


def test_forgetting_a_hit_by_its_id_takes_the_entry_that_would_bring_it_back(
    memory: Memory,
) -> None:
    reply = memory.record("so many", context=[])
    memory.answers.keep("how many?", reply, scope="all")
    hit = memory.answers.find("how many?", scope="all")
    assert hit is not None
    memory.forget(ids=[hit.id])
    assert memory.answers.find("how many?", scope="all") is None


def test_what_goes_of_the_present_context_takes_the_hit_and_leaves_the_answer(
    memory: Memory,
) -> None:
    reply = memory.record("so many", context=[])
    memory.answers.keep("how many?", reply, scope="all")
    again = memory.remember("how many?", thread="t")
    hit = memory.answers.find("how many?", context=[again.id], scope="all")
    assert hit is not None
    assert hit.id in memory.forget(ids=[again.id]).ids
    assert memory.answers.find("how many?", scope="all") is not None


def test_a_forget_between_the_look_and_the_hit_leaves_no_hit(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = memory.record("so many", context=[])
    memory.answers.keep("how many?", reply, scope="all")
    answers = memory.answers
    real = answers._given

    def late(*given: Any) -> Record | None:
        memory.forget(ids=[reply.id])
        return real(*given)

    monkeypatch.setattr(answers, "_given", late)
    assert answers.find("how many?", scope="all") is None
    assert [one.text for one in memory.export()] == []


# errors


def test_what_cannot_be_kept_or_asked_is_said(memory: Memory) -> None:
    reply = memory.record("so many", context=[])
    other = memory.remember("gone")
    memory.forget(ids=[other.id])
    with pytest.raises(NotFound):
        memory.answers.keep("how many?", other)
    with pytest.raises(NotFound):
        memory.answers.keep("how many?", 99)
    with pytest.raises(InvalidInput):
        memory.answers.keep("  ", reply)
    memory.answers.keep("how many?", reply, scope="all")
    with pytest.raises(ContextForgotten):
        memory.answers.find("how many?", context=[other.id], scope="all", same_context=False)
    with pytest.raises(InvalidInput):
        memory.answers.find("how many?", by="luck")


def test_without_an_embedder_only_the_same_question_finds_an_answer(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=None).workspace("alex")
    assert memory.answers.find("nobody wrote here") is None
    reply = memory.record("so many", context=[])
    memory.answers.keep("how many?", reply, scope="all")
    assert memory.answers.find("how many", scope="all") is not None
    with pytest.raises(EmbedderError):
        memory.answers.find("how many", scope="all", by="meaning")


def test_a_question_sent_to_an_outside_embedder_is_an_exposure(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=Words("embed.example")).workspace("alex")
    entry = memory.answers.keep("how many?", memory.record("so many", context=[]), scope="all")
    assert [(one.record, one.host) for one in memory.exposures()] == [(entry, "embed.example")]
    assert memory.exposures.queries() == []
    memory.answers.find("how many of them", scope="all")
    assert [one.count for one in memory.exposures.queries()] == [1]


def test_a_question_sent_in_vain_is_counted(url: str, opened: Callable[..., Memory]) -> None:
    memory = opened(url, embedder=Words("api.example.com")).workspace("alex")
    reply = memory.record("Quokka.", context=[])

    class Forgetting(Words):
        def embed(self, texts: list[str]) -> Any:
            memory.forget(ids=[reply.id])
            return super().embed(texts)

    other = opened(url, embedder=Forgetting("api.example.com")).workspace("alex")
    with pytest.raises(ContextForgotten):
        other.answers.keep(ASKED, reply, scope="all")
    assert [one.count for one in memory.exposures.queries()] == [1]
    assert memory.exposures() == []


def test_a_question_with_a_credential_is_not_kept(memory: Memory) -> None:
    key = "ghp_" + "a1B2" * 9
    reply = memory.record("so many", context=[])
    assert memory.answers.keep(f"what is {key} for", reply, scope="all") is None
    assert memory.answers.keep("how many?", reply, scope="all")
    assert memory.scan(key, files=False).clean
    for by in ("exact", "meaning"):
        assert memory.answers.find(f"what is {key} for", scope="all", by=by) is None
        assert memory.answers.find("how many", scope="all", by=by) is not None


def test_a_question_of_what_a_guard_keeps_out_is_not_kept_and_not_sent(
    url: str, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = Words("api.example.com")
    memory = opened(url, embedder=embedder).workspace("alex")
    reply = memory.record("Yes.", context=[])
    memory.remember("My sister is Quokka.")
    memory.forget("Quokka", guard=True)
    sent: list[str] = []
    embed = embedder.embed
    monkeypatch.setattr(embedder, "embed", lambda texts: sent.extend(texts) or embed(texts))
    assert memory.answers.keep("Is Quokka my sister?", reply, scope="all") is None
    assert sent == []
    assert list(memory.export()) == [memory.get(reply.id)]
    monkeypatch.setattr(memory.answers.__class__, "_may_be_stored", lambda *_: True)
    assert memory.answers.keep("Is Quokka my sister?", reply, scope="all") is None  # set meanwhile
    assert memory.answers.find("Is Quokka my sister?", scope="all", threshold=0.2) is None
    with connected(url) as raw:
        assert statement(raw, "select count(*) from item") == [(0,)]
        assert statement(raw, "select count(*) from record where payload is not null") == [(0,)]
    assert memory.verify().ok
