"""Windows of erased texts among the texts that live on."""

from __future__ import annotations

from dellm import residue
from dellm.database import Scope

SCOPE = Scope("alex", 1, b"k" * 32)


def probes_of(*windows: bytes) -> residue.Probes:
    key, factor = residue._keys(SCOPE)
    return residue.Probes(
        factor, key, frozenset(residue._probe(key, factor, one) for one in windows)
    )


def test_a_window_is_found_at_every_offset_of_a_chunk() -> None:
    window = b"I live in Paris!"
    probes = probes_of(window)
    for before in range(20):
        assert probes.in_chunk(b"." * before + window + b"tail") == probes.wanted
    assert probes.in_chunk(window[:-1]) == set()


def test_a_window_counts_as_living_only_inside_one_text() -> None:
    inside, across = b"I live in Paris!", b"abcdefghijklmnop"
    probes = probes_of(inside, across)
    texts = [b"xx " + inside, across[:8], across[8:], b""]
    living = residue.still_living(probes, probes.wanted, texts)
    assert living == probes_of(inside).wanted


def test_windows_are_found_in_more_texts_than_are_searched_at_once() -> None:
    first, last = b"the first window", b"last window here"
    probes = probes_of(first, last)
    texts = [first, *[b"nothing of it in this one " * 4_000] * 60, last]
    assert residue.still_living(probes, probes.wanted, texts) == probes.wanted
