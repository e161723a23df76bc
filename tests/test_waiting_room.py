"""What came in quarantined: out of every read until it is confirmed, gone for good when rejected."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dellm import ContextForgotten, Draft, EmbedderError, Memory, NotFound, NothingMatched

SAID = "the zanzibar quokka, dial (212) 867-5309"


def stored(memory: Memory) -> int:
    memory.remember("a plain zanzibar note", thread="t")
    memory.remember_many([Draft(SAID, thread="t", quarantined=True)])
    memory.remember("another zanzibar note", thread="t")
    return memory.waiting()[0].id


def seen(memory: Memory) -> set[int]:
    """Return every id that any read gives."""
    found = {one.id for one in memory.history("t")} | {one.id for one in memory.export()}
    for by in ("meaning", "keyword", "both"):
        found |= {one.record.id for one in memory.search(SAID, by=by, threshold=-1)}
        found |= set(memory.context(SAID, by=by, k=9, last=9, thread="t", threshold=-1).ids)
    return found


def test_what_waits_is_in_no_read_and_in_no_index(memory: Memory) -> None:
    id_ = stored(memory)
    assert [one.text for one in memory.waiting()] == [SAID]
    memory.index()
    assert seen(memory) == {1, 3}
    assert memory.verify().ok
    assert {one.table for one in memory.scan("quokka", files=False).places} == {"record"}
    with pytest.raises(NotFound):
        memory.get(id_)
    with pytest.raises(ContextForgotten):
        memory.record("made of it", context=[id_])


def test_what_is_confirmed_is_read_and_found_as_any_other(memory: Memory) -> None:
    id_ = stored(memory)
    for early in (True, False):  # before there are vectors, and after
        if not early:
            memory.remember_many([Draft(SAID, thread="t", quarantined=True)])
            memory.remember("a later zanzibar note", thread="t")
            memory.index()
            id_ = memory.waiting()[0].id
        assert memory.confirm(id_).text == SAID
        assert memory.waiting() == []
        assert memory.search(SAID, by="meaning", threshold=-1)[0].record.text == SAID
        assert id_ in {one.record.id for one in memory.search("quokka", by="keyword")}
        assert id_ in seen(memory)
        assert memory.verify().ok
        assert memory.ledger()[-1].body == {"ids": [id_]}
        with pytest.raises(NotFound):
            memory.confirm(id_)
    memory.record("made of it", context=[id_])
    memory.forget("quokka")
    assert memory.verify().ok
    assert memory.scan("quokka", files=False).clean


def test_what_is_rejected_is_erased(memory: Memory, url: str) -> None:
    id_ = stored(memory)
    receipt = memory.reject(id_)
    assert receipt.ids == (id_,)
    assert memory.verify().ok
    assert memory.scan("quokka", files=not url.startswith("postgres")).clean
    with pytest.raises(NothingMatched):
        memory.reject(1)
    assert memory.get(1).id == 1


@pytest.mark.parametrize("how", ["value", "keyword", "ids", "thread", "redact"])
def test_a_forget_finds_what_waits(memory: Memory, how: str) -> None:
    id_ = stored(memory)
    if how == "redact":
        receipt = memory.forget(value="212-867-5309", mode="redact")
        assert [one.text for one in memory.waiting()] == ["the zanzibar quokka, dial [redacted]"]
        assert memory.waiting()[0].id == receipt.redacted[id_]
    else:
        which = {"value": "212 867 5309", "keyword": "quokka", "ids": [id_], "thread": "t"}
        memory.forget(**{how: which[how]})
        assert memory.waiting() == []
    memory.index()
    assert memory.scan("212-867-5309", files=False).clean
    assert memory.verify().ok


def test_a_confirmed_record_needs_the_embedder_of_the_others(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url).workspace("alex")
    id_ = stored(memory)
    memory.index()
    other = opened(url, embedder=None).workspace("alex")
    with pytest.raises(EmbedderError):
        other.confirm(id_)
    assert [one.id for one in memory.waiting()] == [id_]
    assert memory.confirm(id_).id == id_


def test_what_waits_can_be_confirmed_while_vectors_are_made(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    class Slow:
        """An embedder that lets somebody else in between reading the texts and storing vectors."""

        name = "slow"
        threshold = 0.0
        dimensions = 4

        def embed(self, texts: list[str]) -> object:
            import numpy as np

            if len(texts) > 1:
                other.confirm(2)
            return np.full((len(texts), 4), 0.5, np.float32)

    memory = opened(sqlite_url, embedder=Slow()).workspace("alex")
    other = opened(sqlite_url, embedder=Slow()).workspace("alex")
    stored(memory)
    memory.index()
    assert memory.verify().ok
    assert 2 in {one.record.id for one in memory.search("x", by="meaning", threshold=-1)}


def test_what_is_suppressed_waits_no_longer_and_cannot_be_confirmed(memory: Memory) -> None:
    id_ = stored(memory)
    receipt = memory.forget(ids=[id_], mode="suppress")
    assert memory.waiting() == []
    with pytest.raises(NotFound):
        memory.confirm(id_)
    assert id_ not in seen(memory)
    other = memory.forget(ids=[1, id_], mode="suppress")
    assert memory.restore(receipt) == []
    assert memory.waiting() == []  # the other suppression holds it
    memory.restore(other)
    assert [one.id for one in memory.waiting()] == [id_]
    assert id_ not in seen(memory)  # what was undone is no consent
    assert memory.confirm(id_).id == id_
    assert memory.verify().ok


def test_what_is_left_of_a_suppressed_record_does_not_wait_either(memory: Memory) -> None:
    id_ = stored(memory)
    suppressed = memory.forget(ids=[id_], mode="suppress")
    redacted = memory.forget(value="212-867-5309", mode="redact").redacted
    assert memory.waiting() == []
    memory.restore(suppressed)
    assert [one.id for one in memory.waiting()] == list(redacted.values())
    assert memory.verify().ok
