"""What retrievers and stores have given out lately, and which texts repeat it.

Nothing but the text ties what was read outside of a run to the message or prompt that it was put
into. No text is kept: a text given out is known again by numbers made of its runs of words, which
mean nothing outside of this process.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import TypeVar

import orjson

from dellm import Atom, Item, Memory, NotFound, Receipt, Record, Sources

WINDOW = 6  # words of one run
PASSAGE = 16  # overlapping runs that make a text a quotation: 21 words
WHOLE = 8  # runs of a text, up to which it has to stand there whole
EACH = 512  # runs kept of one text
MOST = 100_000  # runs kept in all
# Of scripts that set no spaces between words, each sign counts as one.
_SIGN = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_SIGN}]|[^\W_{_SIGN}]+")
_Key = tuple[Hashable, int, int]
_Given = TypeVar("_Given", Record, Item)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A text of a record: the numbers of its runs, and how many of them make a quotation."""

    size: int
    needed: int
    runs: frozenset[int]


class Shown:
    """The texts of records that were given out last. Bounded, thread-safe.

    What a forget of this process takes is dropped with it.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._guard = threading.Lock()
        self._pieces: OrderedDict[_Key, _Piece] = OrderedDict()
        self._of_record: dict[tuple[Hashable, int], set[_Key]] = {}
        self._index: dict[int, set[_Key]] = {}
        self._not_in_index: dict[_Key, _Piece] = {}
        self._sizes: dict[Hashable, Counter[int]] = {}
        self._heard: set[int] = set()
        self._runs = 0

    def note(self, memory: Memory, texts: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Keep that the texts of records of a workspace were given out."""
        owner = (memory.identity, memory.id)
        listed = list(texts)
        with self._guard:
            fresh = bool(listed) and memory.identity not in self._heard
            self._heard.add(memory.identity)
            for record, said in listed:
                self._note(owner, record, said)
            while self._runs > self._most and len(self._of_record) > 1:
                self._drop_all(next(iter(self._pieces))[:2])
        if fresh:
            memory.after_forget(partial(self._forgotten, memory.identity))

    def note_records(self, memory: Memory, records: Iterable[Record]) -> None:
        """Keep that records were given out; items of stores by the texts in their values."""
        listed = self._unknown(memory, records)
        self.note(
            memory,
            [(one.id, _in_value(one.text) if one.role == "item" else [one.text]) for one in listed],
        )

    def note_values(self, memory: Memory, items: Iterable[Item]) -> None:
        """Keep that items of stores were given out, by the texts in their values."""
        listed = self._unknown(memory, items)
        if listed:
            self.note(memory, [(one.id, _in_value(one.text)) for one in listed])

    def _unknown(self, memory: Memory, given: Iterable[_Given]) -> list[_Given]:
        """Return what was not given out lately; mostly the same is, again and again."""
        owner = (memory.identity, memory.id)
        with self._guard:
            return [one for one in given if not self._again((owner, one.id))]

    def _again(self, record: tuple[Hashable, int]) -> bool:
        known = self._of_record.get(record, ())
        for key in known:
            self._pieces.move_to_end(key)
        return bool(known)

    def of(self, owner: Hashable, text: str) -> list[int]:
        """Return the records of which a text repeats one whole, or a passage of it.

        That is all of a short text, and half of a longer one or 21 words of it in a row.
        """
        sizes = self._sizes.get(owner)
        if not sizes:
            return []
        words = _words(text)
        runs = {one for size in list(sizes) for one in _runs(owner, words, size)}
        with self._guard:
            self._put_in_index()
            held = Counter(key for one in runs for key in self._index.get(one, ()))
            found = [key[1] for key, often in held.items() if often >= self._pieces[key].needed]
        return sorted(set(found))

    def tied(self, owner: Hashable, text: str, made: Sources | None) -> Sources | None:
        """Return what a text was made from, with the records that it repeats."""
        found = self.of(owner, text)
        if not found:
            return made
        more = made or Sources()
        atoms = (Atom(known=one, unsure=True) for one in found)
        return replace(more, also=(*more.also, *atoms))

    def _note(self, owner: Hashable, record: int, texts: Sequence[str]) -> None:
        if self._again((owner, record)):
            return
        for at, text in enumerate(texts):
            piece = _piece(owner, text)
            if piece is None:
                continue
            key = (owner, record, at)
            self._pieces[key] = piece
            self._not_in_index[key] = piece
            self._of_record.setdefault((owner, record), set()).add(key)
            self._sizes.setdefault(owner, Counter())[piece.size] += 1
            self._runs += len(piece.runs)

    def _put_in_index(self) -> None:
        """Put in what was noted since: much more is read than is asked for here."""
        for key, piece in self._not_in_index.items():
            for one in piece.runs:
                self._index.setdefault(one, set()).add(key)
        self._not_in_index.clear()

    def _drop_all(self, record: tuple[Hashable, int]) -> None:
        """Drop a record: half of one would pass for all of it when it is given out again."""
        for key in list(self._of_record.get(record, ())):
            self._drop(key)

    def _drop(self, key: _Key) -> None:
        piece = self._pieces.pop(key)
        self._runs -= len(piece.runs)
        if self._not_in_index.pop(key, None) is None:
            self._take_out(key, piece)
        sizes, keys = self._sizes[key[0]], self._of_record[key[:2]]
        sizes[piece.size] -= 1
        if not sizes[piece.size]:
            del sizes[piece.size]
        keys.discard(key)
        if not keys:
            del self._of_record[key[:2]]

    def _take_out(self, key: _Key, piece: _Piece) -> None:
        for one in piece.runs:
            self._index[one].discard(key)
            if not self._index[one]:
                del self._index[one]

    def _forgotten(self, identity: int, receipt: Receipt) -> None:
        """Drop what was erased; what was suppressed may come back."""
        if receipt.mode == "suppress":
            return
        owner = (identity, receipt.workspace)
        with self._guard:
            for record in receipt.ids:
                self._drop_all((owner, record))


shown = Shown()


class Quoted:
    """Finds the records that texts repeat, of those given out lately.

    `noted` are records that are known to be in the prompt of `texts` in one form or another: those
    that no text repeats, or that are gone by now, count as repeated in each of them. `used`:
    whether any was found.
    """

    def __init__(self, memory: Memory, noted: Sequence[int], texts: Iterable[str]) -> None:
        self._owner = (memory.identity, memory.id)
        self._noted = {one: text for one in dict.fromkeys(noted) if (text := _text(memory, one))}
        listed = list(texts) if noted else []
        repeated = {one for text in listed for one in self._in(text)}
        self._anyhow = [one for one in dict.fromkeys(noted) if one not in repeated]
        self.used = bool(self._anyhow)

    def __call__(self, text: str) -> list[int]:
        """Return the records that a text repeats."""
        found = list(dict.fromkeys([*self._anyhow, *self._in(text)]))
        self.used = self.used or bool(found)
        return found

    def _in(self, text: str) -> list[int]:
        whole = [one for one, said in self._noted.items() if said in text]
        return [*whole, *shown.of(self._owner, text)]


def _text(memory: Memory, record: int) -> str:
    try:
        return memory.get(record).text.strip()
    except NotFound:
        return ""


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _runs(owner: Hashable, words: Sequence[str], size: int, step: int = 1) -> Iterator[int]:
    return map(hash, zip(repeat(owner), *(words[at::step] for at in range(size)), strict=False))


def _piece(owner: Hashable, text: str) -> _Piece | None:
    """Return what a text is known by, None where too little is in it to tell it from others."""
    words = _words(text)
    if not _tells(words):
        return None
    size = min(WINDOW, len(words))
    step = 1 + (len(words) - size) // EACH
    runs = frozenset(_runs(owner, words, size, step))
    if len(runs) <= WHOLE:
        return _Piece(size, len(runs), runs)
    return _Piece(size, max(2, min(len(runs) // 2, PASSAGE // step)), runs)


def _tells(words: Sequence[str]) -> bool:
    """Whether words say something of their own: at least three of them, or a number or code."""
    return len(words) > 2 or any(len(one) > 3 and not one.isalpha() for one in words)


def _in_value(text: str) -> list[str]:
    """Return the texts of a store's item: those in its value, besides the whole."""
    try:
        return [text, *_leaves(orjson.loads(text))]
    except orjson.JSONDecodeError:  # after a redaction
        return [text]


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
