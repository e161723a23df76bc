"""How much of the end of a session fits a number of tokens: by ChatMemoryBuffer's rules.

Source of the rules: ChatMemoryBuffer.get of llama-index-core 0.14. Messages go from the front until
the rest, joined by spaces, has at most so many tokens; it never begins with a reply or a tool's
result, unless that is all that is left; the last message always stays. That class counts the
tokens of the whole rest anew for every message it takes off; here the tokens of single messages
lead to the place, and only there the rest is counted.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock

from .pairs import opens_wrongly
from .tags import Owner

Tokenizer = Callable[[str], list[Any]]

MOST = 100_000  # records whose tokens are kept, by tokenizer and workspace
TOKENIZERS = 32  # tokenizers and workspaces that are kept


class Counter:
    """Counts tokens with one tokenizer, and keeps those of a workspace's records. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._known: dict[int, int] = {}
        self._guard = threading.Lock()

    def joined(self, messages: Iterable[ChatMessage]) -> int:
        """Return the tokens of messages, joined as ChatMemoryBuffer does."""
        texts = [str(one.content) for one in messages]
        return len(self.tokenizer(" ".join(texts))) if texts else 0

    def calls(self, message: ChatMessage) -> int:
        """Return the tokens of the tool calls in a message, which its content does not say."""
        said = [one.tool_kwargs for one in message.blocks if isinstance(one, ToolCallBlock)]
        said = said or list(message.additional_kwargs.get("tool_calls") or ())
        return sum(len(self.tokenizer(str(one))) for one in said)

    def each(self, messages: Sequence[ChatMessage], records: Sequence[int]) -> list[int]:
        """Return the tokens of each message, which is a record: once counted, they are kept."""
        found = [self._known.get(one) for one in records]
        if None not in found:
            return [one or 0 for one in found]
        counts = [
            len(self.tokenizer(f" {one.content}")) if known is None else known
            for one, known in zip(messages, found, strict=True)
        ]
        with self._guard:
            if len(self._known) > MOST:
                self._known.clear()
            self._known.update(zip(records, counts, strict=True))
        return counts


class _Counters:
    """The counters that were used last. Thread-safe."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, Owner], Counter] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, tokenizer: Tokenizer, owner: Owner) -> Counter:
        with self._guard:
            found = self._known.setdefault((id(tokenizer), owner), Counter(tokenizer))
            self._known.move_to_end((id(tokenizer), owner))
            while len(self._known) > TOKENIZERS:
                self._known.popitem(last=False)
            return found


_counters = _Counters()


def counter_of(tokenizer: Tokenizer, owner: Owner) -> Counter:
    """Return what counts the tokens of a workspace's messages with a tokenizer."""
    return _counters.of(tokenizer, owner)


def start_of(
    messages: Sequence[ChatMessage],
    records: Sequence[int],
    counter: Counter,
    room: int,
    *,
    complete: bool = True,
) -> int | None:
    """Return where the part of the messages that has at most `room` tokens begins.

    None where more of the session has to be read. `complete`: there is none before these.
    """
    last = len(messages) - 1
    if last < 0:
        return 0
    starts = [0] if complete else []
    starts += [at for at in range(1, last + 1) if at == last or not opens_wrongly(messages[at])]
    if not starts:
        return None
    sums = list(accumulate(reversed(counter.each(messages, records)), initial=0))
    guess = next(
        (place for place, at in enumerate(starts) if sums[last + 1 - at] <= room), len(starts) - 1
    )

    def fits(place: int) -> bool:
        return counter.joined(messages[starts[place] :]) <= room

    at = _first(fits, guess, len(starts) - 1)
    if at == 0 and not complete and fits(0):
        return None
    return starts[at]


def _first(fits: Callable[[int], bool], guess: int, last: int) -> int:
    """Return the first place that fits, near the one that was guessed; the last if none does."""
    if fits(guess):
        while guess and fits(guess - 1):
            guess -= 1
        return guess
    while guess < last:
        guess += 1
        if fits(guess):
            break
    return guess
