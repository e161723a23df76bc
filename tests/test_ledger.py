"""The audit chain and verify(): nothing can be changed, dropped or added without being noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, LiteralString

import pytest

from dellm import Memory
from dellm.ledger import GENESIS, LedgerEntry
from dellm.records import Draft


def run(memory: Memory, sql: LiteralString, **values: object) -> int:
    """Change the database behind the library's back."""
    with memory._engine.writing(memory.id) as (tx, scope):
        return tx.run(sql, ws=scope.ws, **values)


@pytest.fixture
def audited(url: str, opened: Callable[..., Memory]) -> Memory:
    """Return a memory with a chain of an erasure, a suppression, its undoing, a redaction, a scrub."""
    memory = opened(url, scrub_below=0).workspace("alex")
    memory.remember_many([Draft(f"note {number} of the kingsbury files") for number in range(6)])
    reply = memory.record("a reply", context=[1, 2])
    memory.forget(ids=[1])
    hidden = memory.forget(ids=[3], mode="suppress")
    memory.restore(hidden)
    memory.forget("note 4", mode="redact")
    memory.scrub()
    assert reply.id not in [one.id for one in memory.export()]
    memory.index()
    return memory


def test_the_chain_tells_what_was_done_in_order_and_each_entry_names_the_one_before(
    audited: Memory,
) -> None:
    chain = audited.ledger()
    assert [one.action for one in chain] == ["erase", "suppress", "restore", "redact", "scrub"]
    assert [one.seq for one in chain] == [1, 2, 3, 4, 5]
    assert [one.previous for one in chain] == [GENESIS, *(one.digest for one in chain[:-1])]
    assert len({one.digest for one in chain}) == 5
    assert chain[0].body["ids"] == [1, 7]
    assert chain[4].body == {"receipts": [1, 4]}
    report = audited.verify()
    assert report.ok
    assert (report.receipts, report.entries) == (3, 5)
    assert str(report) == "all holds; 5 audit entry(s)"


TAMPERINGS: dict[str, LiteralString] = {
    "another time": "update ledger set at = at + 1 where ws = :ws and seq = 2",
    "another action": "update ledger set action = 'erase' where ws = :ws and seq = 2",
    "another body": "update ledger set body = replace(body, '1', '2') where ws = :ws and seq = 1",
    "another digest": "update ledger set digest = previous where ws = :ws and seq = 5",
    "another predecessor": "update ledger set previous = digest where ws = :ws and seq = 3",
    "an entry dropped": "delete from ledger where ws = :ws and seq = 3",
    "the first dropped": "delete from ledger where ws = :ws and seq = 1",
    "another number": "update ledger set seq = 9 where ws = :ws and seq = 5",
    "an entry added": (
        "insert into ledger(ws, seq, at, action, body, previous, digest) "
        "select ws, 6, at, action, body, digest, digest from ledger where ws = :ws and seq = 5"
    ),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_a_tampered_chain_is_noticed(audited: Memory, tampering: str) -> None:
    assert run(audited, TAMPERINGS[tampering]) == 1
    report = audited.verify()
    assert not report.ok
    assert any("audit chain is broken" in one for one in report.problems)


DAMAGES: dict[str, tuple[LiteralString, str]] = {
    "a lost record": (
        "delete from record where ws = :ws and id = 2",
        "more or less than the workspace counts",
    ),
    "an erased record brought back": (
        "insert into record(ws, id, place, thread, kind, role, version, text, status, tokens, "
        "created_at) values (:ws, 1, 1, '', 'message', 'user', 1, 'x', 0, 1, 0)",
        "have a tombstone",
    ),
    "an edge to nowhere": (
        "insert into edge(ws, child, pos, parent) values (:ws, 99, 1, 2)",
        "whose child is gone",
    ),
    "an edge from nowhere": (
        "insert into edge(ws, child, pos, parent) values (:ws, 2, 1, 99)",
        "whose parent is gone",
    ),
    "an edge back to what was made of a record": (
        "insert into edge(ws, child, pos, parent) values (:ws, 2, 0, 3), (:ws, 3, 0, 2)",
        "2 record(s) made from themselves",
    ),
    "an edge back by way of a sequence": (
        "insert into edge(ws, child, pos, parent) values (:ws, 2, 0, -9), (:ws, -9, 1, 3), "
        "(:ws, 3, 0, 2)",
        "2 record(s) made from themselves",
    ),
    "a lost vector": (
        "delete from embedding where ws = :ws and id = 2",
        "should have a vector and have none",
    ),
    "a vector left behind": (
        "update embedding set id = 1 where ws = :ws and id = 2",
        "vector(s) without a record",
    ),
    "a wrong count of terms": (
        "update workspace set tokens = tokens + 1 where ws = :ws",
        "term(s) more or less",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_inconsistency_is_noticed(audited: Memory, damage: str) -> None:
    sql, sentence = DAMAGES[damage]
    assert run(audited, sql) >= 1
    report = audited.verify()
    assert not report.ok
    assert any(sentence in one for one in report.problems), report.problems
    assert sentence in str(report)


def test_each_workspace_has_a_chain_of_its_own(audited: Memory) -> None:
    other = audited.workspace("kim")
    assert other.ledger() == []
    assert other.receipts() == []
    said = other.remember("note")
    other.forget(ids=[said.id])
    assert [one.seq for one in other.ledger()] == [1]
    assert len(audited.ledger()) == 5
    run(other, "update ledger set action = 'redact' where ws = :ws")
    assert not other.verify().ok
    assert audited.verify().ok


def test_a_receipt_is_what_the_chain_says_and_survives_reopening(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, scrub_below=0).workspace("alex")
    said = memory.remember("the kingsbury file", thread="t")
    memory.record("a reply", context=[said.id], model="openai:gpt-x")
    receipt = memory.forget(ids=[said.id])
    again = opened(url).workspace("alex")
    assert again.receipts() == [receipt]
    assert again.receipt(receipt.number) == receipt
    assert receipt.exposures == {"openai:gpt-x": 1}
    assert receipt.id == "alex/1"
    assert (receipt.matched, len(receipt)) == (1, 2)
    assert receipt.rows["record"] == 2
    said_json = json.dumps(receipt.to_json())
    assert "kingsbury" not in said_json + str(receipt)
    assert "not ours to erase there" in str(receipt)
    assert all(f"out of reach: {one}" in str(receipt) for one in receipt.out_of_reach)
    memory.scrub()
    assert again.receipt(receipt.number).level == "scrubbed"
    assert again.receipt(receipt.number).ids == receipt.ids


def test_a_refused_or_empty_forget_writes_no_entry(audited: Memory) -> None:
    before = audited.ledger()
    refused: list[dict[str, Any]] = [{"ids": [99]}, {"what": "never said"}, {"meaning": "note"}, {}]
    for selection in refused:
        with pytest.raises(Exception, match=r"\."):
            audited.forget(selection.pop("what", None), **selection)
    audited.forget(ids=[1])  # done before
    assert audited.ledger() == before


def test_a_body_holds_ids_counts_and_codes_only(audited: Memory) -> None:
    def leaves(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [one for inner in value.values() for one in leaves(inner)]
        if isinstance(value, list | tuple):
            return [one for inner in value for one in leaves(inner)]
        return [value]

    known = {*audited._engine.database.out_of_reach(), "strict"}
    for entry in audited.ledger():
        for leaf in leaves(entry.body):
            digest = isinstance(leaf, str) and len(leaf) == 64 and int(leaf, 16) >= 0
            nothing = leaf is None or isinstance(leaf, int)
            assert digest or leaf in known or nothing, entry.seq


def test_a_scrub_proves_every_forget_since_the_one_before(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, scrub_below=0).workspace("alex")
    numbers = []
    for count in (2, 1, 3):
        made = [memory.remember(f"word{count}{one} is said here") for one in range(count)]
        numbers += [memory.forget(ids=[one.id]).number for one in made]
        assert {memory.receipt(one).level for one in numbers[-count:]} == {"erased"}
        assert list(memory.scrub().receipts) == numbers[-count:]
        assert {one.level for one in memory.receipts()} == {"scrubbed"}
    assert memory.scrub().receipts == ()


def test_a_forget_reads_no_more_of_the_chain_the_longer_it_is(
    sqlite_url: str, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(sqlite_url).workspace("alex")
    read: list[int] = []
    whole = LedgerEntry.__init__

    def counted(self: LedgerEntry, seq: int, *rest: Any) -> None:
        read.append(seq)
        whole(self, seq, *rest)

    monkeypatch.setattr(LedgerEntry, "__init__", counted)
    counts = []
    for number in range(12):
        made = memory.remember(f"word{number} is said here")
        read.clear()
        assert memory.forget(ids=[made.id]).level == "scrubbed"
        counts.append(len(read))
    assert counts[-1] <= counts[2]
