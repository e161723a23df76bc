"""Proofs: what somebody without the database can check, and what a changed one gives away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dellm import InvalidInput, Memory, NotFound, Proof, check_proof
from dellm.proof import Store, canonical
from dellm.signing import new_key, write_key

SECRET = "zanzibar 415 555 0199"


@pytest.fixture(params=["sqlite", "postgres"])
def memory(
    request: pytest.FixtureRequest, tmp_path: Path, opened: Callable[..., Memory]
) -> Iterator[Memory]:
    """A memory on each database, from which something was made and is to be forgotten."""
    url = str(tmp_path / "m.db")
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    made = opened(url, embedder="hashing").workspace(request.node.name[:40])
    said = made.remember(SECRET, thread="t", subject="ann")
    made.record(f"noted {SECRET}", context=[said.id], model="openai.example/gpt")
    made.remember("kept")
    made.index()
    return made


def proved(memory: Memory, **options: Any) -> Proof:
    return memory.proof(memory.forget(ids=[1], **options).number)


def stores(proof: Proof) -> dict[str, Store]:
    return {one.name: one for one in proof.stores}


def changed(proof: Proof, **parts: Any) -> bytes:
    return canonical({**proof.data, **parts})


def test_a_proof_counts_what_is_left_and_says_where_nobody_looked(memory: Memory) -> None:
    proof = proved(memory, scrub=False)
    found = stores(proof)
    assert (found["records"].before, found["records"].after) == (2, 0)
    assert (found["vectors"].before, found["vectors"].after) == (2, 0)
    assert (found["keyword index"].after, found["provenance"].after) == (0, 0)
    assert found["files"].after is None
    assert not proof.clean
    assert set(proof.not_looked_at) == {"files", "openai.example (openai.example/gpt)"} or (
        "files" in proof.not_looked_at and len(proof.not_looked_at) == 2
    )
    checked = check_proof(proof.to_bytes())
    assert checked.valid
    assert not checked.clean
    assert not checked.signed_by
    assert "not looked at: files" in str(checked)


def test_after_a_scrub_the_files_were_looked_at(memory: Memory) -> None:
    number = memory.forget(ids=[1], scrub=False).number
    assert stores(memory.proof(number))["files"].after is None
    assert memory.scrub().clean
    proof = memory.proof(number)
    assert proof.level == "scrubbed"
    assert stores(proof)["files"].clean


def test_a_row_that_is_left_is_found(memory: Memory) -> None:
    """The control: a count that cannot be other than zero would prove nothing."""
    number = memory.forget(ids=[1], scrub=False).number
    with memory._engine.writing(memory.id) as (tx, scope):
        tx.run(
            "insert into edge(ws, child, pos, parent) values (:ws, 3, 1, 1)",
            ws=scope.ws,
        )
        tx.add_terms(scope.ws, [(2, ["zanzibar"])])
    found = stores(memory.proof(number))
    assert (found["provenance"].after, found["keyword index"].after) == (1, 1)
    with memory._engine.writing(memory.id) as (tx, scope):
        tx.run("delete from edge where ws = :ws and child = 3", ws=scope.ws)


def test_a_suppression_says_that_the_rows_stay(memory: Memory) -> None:
    proof = proved(memory, mode="suppress")
    assert proof.level == "suppressed"
    assert [one.name for one in proof.stores] == ["reads"]
    assert proof.stores[0].clean
    assert check_proof(proof.to_bytes()).valid
    memory.restore(memory.receipt(int(proof.data["chain"]["seq"])))
    assert memory.proof(int(proof.data["chain"]["seq"])).stores[0].after == 2


def test_no_proof_holds_content(memory: Memory) -> None:
    said = proved(memory).to_bytes().decode()
    assert "zanzibar" not in said
    assert "0199" not in said
    assert "ann" not in said.split('"')


def test_there_is_no_proof_without_a_receipt(memory: Memory) -> None:
    with pytest.raises(NotFound):
        memory.proof(99)
    number = memory.forget(ids=[1]).number
    with pytest.raises(InvalidInput):
        memory.proof(number, valid_days=0)


@pytest.fixture
def proof(opened: Callable[..., Memory]) -> Proof:
    """A proof of a small forget."""
    made = opened(":memory:", embedder=None)
    said = made.remember(SECRET)
    made.record("noted", context=[said.id])
    return made.proof(made.forget(ids=[said.id]).number)


def test_each_changed_part_is_seen(proof: Proof) -> None:
    receipt, chain = proof.data["receipt"], proof.data["chain"]
    fewer = [{**one, "after": 0, "how": "trust us"} for one in proof.data["stores"]]
    tampered = {
        "ids": changed(proof, receipt={**receipt, "ids": [1]}),
        "mode": changed(proof, receipt={**receipt, "mode": "redact"}),
        "reach": changed(proof, receipt={**receipt, "reach": "depth 1"}),
        "time": changed(proof, receipt={**receipt, "at": "2020-01-01T00:00:00+00:00"}),
        "held back": changed(proof, receipt={**receipt, "held": [7]}),
        "scope": changed(proof, scope={**proof.data["scope"], "workspace": "other"}),
        "audit chain was changed": changed(proof, chain={**chain, "at": chain["at"] + 1}),
        "level": changed(proof, level="erased"),
        "canonical": b" " + proof.to_bytes(),
    }
    for said, document in tampered.items():
        found = check_proof(document)
        assert not found.valid, said
        assert said in str(found), (said, str(found))
    assert check_proof(changed(proof, stores=fewer)).valid  # what only a signature can vouch for


def test_a_level_needs_the_stores_that_bear_it_out(proof: Proof) -> None:
    for name in ("records", "files"):
        for after in (None, 3):
            several = [
                {**one, "after": after} if one["name"] == name else one
                for one in proof.data["stores"]
            ]
            assert f"{name} are not clean" in str(check_proof(changed(proof, stores=several)))


def test_a_signature_is_of_the_document_and_of_the_key(proof: Proof) -> None:
    private, public = new_key()
    document = proof.signed(private).to_bytes()
    found = check_proof(document, public_key=public)
    assert found.valid
    assert found.trusted
    assert found.signed_by
    assert not check_proof(document).trusted
    other, other_public = new_key()
    assert "another key" in str(check_proof(document, public_key=other_public))
    forged = json.loads(document)
    forged["stores"][0]["how"] = "trust us"
    assert "not of this document" in str(check_proof(canonical(forged), public_key=public))
    again = Proof(json.loads(document)).signed(other)
    assert check_proof(again.to_bytes(), public_key=other_public).trusted
    assert "not signed" in str(check_proof(proof.to_bytes(), public_key=public))


def test_keys_are_kept_for_their_owner_and_never_written_over(tmp_path: Path, proof: Proof) -> None:
    path = tmp_path / "key"
    public = write_key(path)
    assert path.stat().st_mode & 0o077 == 0
    document = proof.signed(path.read_bytes()).to_bytes()
    assert check_proof(document, public_key=public.read_bytes()).trusted
    kept = path.read_bytes()
    with pytest.raises(InvalidInput):
        write_key(path)
    public.unlink()
    with pytest.raises(InvalidInput):
        write_key(path)
    assert path.read_bytes() == kept
    for wrong in (b"", b"no key", public_of_rsa()):
        with pytest.raises(InvalidInput):
            proof.signed(wrong)
        with pytest.raises(InvalidInput):
            check_proof(document, public_key=wrong)


def public_of_rsa() -> bytes:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def test_a_proof_gets_out_of_date(proof: Proof) -> None:
    later = datetime.now(UTC) + timedelta(days=366)
    assert "out of date" in str(check_proof(proof.to_bytes(), at=later))
    assert check_proof(proof.to_bytes(), at=later - timedelta(days=2)).valid


@given(
    st.one_of(
        st.binary(max_size=40),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["format", "stores", "chain", "x"]), inner)
            ),
            max_leaves=8,
        ).map(lambda value: json.dumps(value).encode()),
    )
)
def test_what_is_no_proof_is_an_error_of_ours(document: bytes) -> None:
    with pytest.raises(InvalidInput):
        check_proof(document)


@given(st.data())
def test_a_damaged_proof_is_never_valid_and_never_crashes(data: st.DataObject) -> None:
    with Memory.open(":memory:", embedder=None) as memory:
        whole = memory.proof(memory.forget(ids=[memory.remember(SECRET).id]).number)
    part = data.draw(st.sampled_from(sorted(whole.data)))
    value = data.draw(st.none() | st.integers() | st.text(max_size=5) | st.just({}) | st.just([]))
    try:
        found = check_proof(changed(whole, **{part: value}))
    except InvalidInput:
        return
    assert not found.valid
