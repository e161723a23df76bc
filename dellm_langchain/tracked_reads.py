"""Which documents read lately a prompt repeats, for loops that are no chain and no graph.

There, nothing but the text ties what was read to the prompt that it was put into. No text is kept
in this process: what was read is read again, by its record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dellm import Memory, NotFound

from .reads import THREAD, reads

MOST = 32  # records read last that are looked for, newest first


class Quoted:
    """Finds the records that texts repeat word for word, of those read lately.

    `noted` are records that are known to be in the prompt of `texts` in one form or another: those
    that no text repeats, or that are gone by now, count as repeated in each of them.
    """

    def __init__(
        self, memory: Memory, thread: str, noted: Sequence[int], texts: Iterable[str]
    ) -> None:
        owner = (memory.identity, memory.id)
        lately = [one for place in dict.fromkeys(("", thread)) for one in reads.of(owner, (THREAD, place))]  # fmt: skip
        found = {one: _text(memory, one) for one in dict.fromkeys([*lately[-MOST:], *noted])}
        self._texts = {one: text for one, text in found.items() if text}
        listed = list(texts) if noted else []
        self._anyhow = [one for one in noted if not any(self._in(one, text) for text in listed)]

    def __bool__(self) -> bool:
        """Whether there is anything that could be repeated."""
        return bool(self._texts or self._anyhow)

    def __call__(self, text: str) -> list[int]:
        """Return the records that a text repeats."""
        return [*self._anyhow, *(one for one in self._texts if self._in(one, text))]

    def _in(self, record: int, text: str) -> bool:
        return record in self._texts and self._texts[record] in text


def _text(memory: Memory, record: int) -> str:
    try:
        return memory.get(record).text.strip()
    except NotFound:
        return ""
