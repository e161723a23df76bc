"""A process that is killed while derived texts are made anew leaves each of them to be made, once.

The process is really killed: see crash_child.py.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import test_crash
from crash_child import register

from dellm import Memory

pytestmark = pytest.mark.own_database

SECRET = "My door code is canaryqzxv."
TEA = "I like tea."
OSLO = "I live in Oslo."
LOW, HIGH = f"said: {TEA}", f"said: said: {TEA} {OSLO}"

kill = test_crash.kill


def plant(memory: Memory) -> None:
    """Store a secret and two other messages, a text made of it, and one made of that."""
    ids = [memory.remember(text).id for text in (TEA, SECRET, OSLO)]
    low = memory.derive("digest", sources=ids[:2])
    memory.derive("digest", sources=[low.id, ids[2]])


def put_off(memory: Memory) -> None:
    plant(memory)
    memory.forget("canaryqzxv", rebuild="later", scrub=False)


def emptied(memory: Memory) -> None:
    memory.forget(everything=True, scrub=False)


@pytest.fixture
def here(url: str, opened: Callable[..., Memory]) -> Memory:
    memory = opened(url, scrub_below=0).workspace("alex")
    register(memory, None)
    return memory


def derived(memory: Memory) -> list[str]:
    """Return the derived texts there are, each checked against the sources it names."""
    made = [one for one in memory.export() if "derivation" in one.metadata]
    for one in made:
        sources = [memory.get(id_).text for id_ in memory.context_of(one.id)]
        assert one.text == "said: " + " ".join(sources)
    return [one.text for one in made]


def whole(memory: Memory, *, erased: bool = True) -> None:
    assert memory.verify().ok, memory.verify().problems
    if erased:
        assert not [one for one in memory.export() if "canaryqzxv" in one.text]


@pytest.mark.long
@pytest.mark.parametrize(("how", "step"), [("statement", 3), ("call", 1), ("write", 3)])
def test_a_rebuild_killed_anywhere_is_taken_up_again(
    here: Memory, url: str, kill: test_crash.Kill, how: str, step: int
) -> None:
    if how == "write" and url.startswith("postgresql"):
        pytest.skip("its server does the writes")
    at, killed = 0, 0
    while True:
        at += step
        put_off(here)
        answer = kill(url, "rebuild", at, how)
        whole(here)
        receipt = here.receipts()[-1]
        assert receipt.pending + len(receipt.rebuilt) == 2
        assert len(derived(here)) == len(receipt.rebuilt)
        here.rebuild()
        assert derived(here) == [LOW, HIGH]
        done = here.receipt(receipt.number)
        assert (len(done.rebuilt), done.pending, done.not_rebuilt) == (2, 0, 0)
        whole(here)
        if not answer["killed"]:
            break
        killed += 1
        emptied(here)
    assert killed >= 2


@pytest.mark.long
def test_a_forget_that_puts_off_is_killed_with_all_or_nothing(
    here: Memory, url: str, kill: test_crash.Kill
) -> None:
    at = 0
    plant(here)
    while True:
        at += 4
        receipts = len(here.receipts())
        answer = kill(url, "put off", at)
        done = len(here.receipts()) > receipts
        whole(here, erased=done)
        if done:
            assert (here.receipts()[-1].pending, derived(here)) == (2, [])
            here.rebuild()
            assert derived(here) == [LOW, HIGH]
        if not answer["killed"]:
            assert done
            break
        if done:
            emptied(here)
            plant(here)
        else:
            assert len(derived(here)) == 2
            assert here.rebuild().made == {}


@pytest.mark.long
@pytest.mark.parametrize(("how", "step"), [("statement", 9), ("call", 1)])
def test_making_older_versions_anew_killed_anywhere_is_taken_up_again(
    here: Memory, url: str, kill: test_crash.Kill, how: str, step: int
) -> None:
    at = 0
    while True:
        at += step
        here.derivation("digest", version=1)(lambda sources: f"old: {len(sources)}")
        plant(here)
        register(here, None)
        answer = kill(url, "rederive", at, how)
        whole(here, erased=False)
        texts = [one.text for one in here.export() if "derivation" in one.metadata]
        assert len(texts) == 2
        here.rederive("digest")
        assert sorted(derived(here)) == [
            f"said: {TEA} {SECRET}", f"said: said: {TEA} {SECRET} {OSLO}",
        ]  # fmt: skip
        if not answer["killed"]:
            break
        emptied(here)
    whole(here, erased=False)
