"""Keyed digests of values in their normal forms: of a value to guard, and of all that a text holds.

Two forms of a value are kept: its words, run together, in the plain form of dellm.values (no case,
accents, look-alikes or punctuation), and for what has a kind of its own (a phone, a mail address, a
date) the key that all its spellings share. The digest needs the workspace's secret; who has that can
guess short values.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final

import regex

from . import values
from .values.normal import Folded, plain

KEYED: Final = frozenset({"phone", "email", "card", "iban", "url", "code", "ip", "date", "number"})
APART: Final = 8  # words into which digits and codes may be cut
LONGEST_WHOLE: Final = 24  # words of a text that is guarded as a whole
# Scripts without spaces count by character, as in dellm.terms.
_UNSPACED: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD: Final = regex.compile(rf"[{_UNSPACED}]\p{{M}}*|[^\W_{_UNSPACED}]+")
_PLAIN_WORD: Final = re.compile("[a-z0-9]+")
# What a text must have to hold a value of a kind; reading it for those takes far longer.
_DIGIT: Final = regex.compile("[0-9]")
_NEEDS: Final = {
    "email": regex.compile(r"@|%40|at[\])}>\s].*(?:\.|dot)", regex.DOTALL),
    "url": regex.compile(r"\w\.\w|://"),
    "ip": regex.compile("[0-9:]"),
}


@dataclass(frozen=True, slots=True)
class Form:
    """The digest of text[start:end]: `kind` "words", "whole" or a kind of value.

    `chars` and `words` are the most that it takes of a text: characters run together, words.
    """

    digest: bytes
    kind: str
    start: int = 0
    end: int = 0
    chars: int = 0
    words: int = 0


def _digest(secret: bytes, kind: str, form: str) -> bytes:
    said = f"guard:{kind}:{form}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, key=secret[:64], digest_size=16).digest()


def forms_of(secret: bytes, value: str, kind: str, region: str) -> list[Form]:
    """Return the digests by which a value is known again; none where it has no letter or digit.

    `kind` "whole": the text of a record, which is known only as a whole; too long ones are not.
    """
    found = _WORD.findall(plain(value))
    compact = "".join(found)
    if not compact or (kind == "whole" and len(found) > LONGEST_WHOLE):
        return []
    if kind == "whole":
        return [Form(_digest(secret, kind, compact), kind, chars=len(compact), words=len(found))]
    read = values.needle(value, region=region)
    apart = APART if read.kind in KEYED and any(map(str.isdecimal, compact)) else 0
    most = max(len(found), apart)
    forms = [Form(_digest(secret, "words", compact), "words", chars=len(compact), words=most)]
    if read.kind in KEYED:
        forms.append(Form(_digest(secret, read.kind, read.key), read.kind))
    return forms


class Forms:
    """What is to be looked for in texts: how long, of which kinds."""

    def __init__(self, secret: bytes, region: str) -> None:
        self._secret, self._region = secret, region
        self._lengths: dict[int, int] = {}  # characters run together -> most words
        self._wholes: set[int] = set()
        self._kinds: set[str] = set()

    def expect(self, kind: str, chars: int, words: int) -> None:
        """Look for a digest of this kind and size from now on."""
        if kind == "words":
            self._lengths[chars] = max(words, self._lengths.get(chars, 0))
        elif kind == "whole":
            self._wholes.add(chars)
        else:
            self._kinds.add(kind)

    def of(self, text: str, among: Container[bytes] | None = None) -> Iterator[Form]:
        """Yield the digests of what a text holds, one for each stretch of a length in use.

        Only those `among` the ones given, if any are.
        """
        folded = Folded(text)
        words = _PLAIN_WORD if folded.plain.isascii() else _WORD  # five times as fast
        spans = [one.span() for one in words.finditer(folded.plain)]
        if self._wholes:
            yield from self._whole(folded, spans)
        if self._lengths:
            yield from self._stretches(folded, spans, among)
        kinds = [one for one in self._kinds if _NEEDS.get(one, _DIGIT).search(folded.plain)]
        if kinds:
            for found in values.recognise(text, region=self._region, kinds=kinds):
                digest = _digest(self._secret, found.kind, found.key)
                yield Form(digest, found.kind, found.start, found.end)

    def _whole(self, folded: Folded, spans: list[tuple[int, int]]) -> Iterator[Form]:
        if sum(high - low for low, high in spans) in self._wholes:
            compact = "".join(folded.plain[low:high] for low, high in spans)
            yield Form(_digest(self._secret, "whole", compact), "whole", 0, len(folded.text))

    def _stretches(
        self, folded: Folded, spans: list[tuple[int, int]], among: Container[bytes] | None
    ) -> Iterator[Form]:
        longest = max(self._lengths)
        for first, (start, _) in enumerate(spans):
            compact = ""
            for last, (low, high) in enumerate(spans[first:], 1):
                compact += folded.plain[low:high]
                if len(compact) > longest:
                    break
                if self._lengths.get(len(compact), 0) >= last:
                    digest = _digest(self._secret, "words", compact)
                    if among is None or digest in among:
                        yield Form(digest, "words", *folded.original(start, high))
