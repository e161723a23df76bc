"""What makes summaries: functions of the user's, by name, and how much each is given at once.

A summariser is also what makes a summary anew in a forget, from the records that stay alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from .arguments import check_callable, check_text, check_whole
from .context import estimated_tokens
from .errors import InvalidInput, ModelError
from .item_rows import REPLACED
from .making import Made
from .records import Record

OF_MESSAGES = "summary:"  # before the name of a summariser: what its summaries ask to be made by
OF_PARTS = "summary of summaries:"
SAID = ("message", "tool")  # the kinds of what is summarised

Summarise = Callable[[str | None, Sequence[str]], str]


def told(record: Record) -> str:
    """Return a message as a summariser is given it: who said it, and what."""
    return f"{record.role}: {record.text}"


@dataclass(frozen=True, slots=True)
class Pace:
    """How much a summariser is given in one call.

    At most `chunk` texts, and at most `budget` tokens of them as counted by `count`; a text that
    alone is longer is given alone. The summary that is to be continued comes on top.
    """

    chunk: int = 32
    budget: int = 6_000
    count: Callable[[str], int] = estimated_tokens

    def check(self) -> None:
        """Raise InvalidInput unless something fits."""
        check_callable(self.count, "count=")
        for number, name in ((self.chunk, "chunk="), (self.budget, "budget=")):
            check_whole(number, name)
            if number < 1:
                raise InvalidInput(f"{name} is one or more.")

    def pieces(self, texts: Sequence[str]) -> Iterator[Sequence[str]]:
        """Yield the texts in order, as many at a time as fit one call."""
        start = 0
        while start < len(texts):
            end = start + self._fit(texts[start : start + self.chunk])
            yield texts[start:end]
            start = end

    def _fit(self, texts: Sequence[str]) -> int:
        """Return how many texts from the first on fit; the first always does."""
        used = 0
        for at, text in enumerate(texts):
            used += self._tokens(text)
            if at and used > self.budget:
                return at
        return len(texts)

    def _tokens(self, text: str) -> int:
        tokens = self.count(text)
        check_whole(tokens, "What count= returns")
        return tokens


@dataclass(frozen=True, slots=True)
class Summariser:
    """A function by its name, with its pace; see Summaries.use for each field."""

    name: str
    summarise: Summarise = field(repr=False)
    pace: Pace = Pace()
    say: Callable[[Record], str] = field(default=told, repr=False)
    model: str | None = None
    locks: WeakValueDictionary[tuple[str, ...], threading.RLock] = field(
        default_factory=WeakValueDictionary, repr=False, compare=False
    )

    def check(self) -> None:
        """Raise InvalidInput for what is no summariser."""
        check_text(self.name, "name=")
        if not self.name.strip():
            raise InvalidInput("The name of a summariser is blank.")
        check_callable(self.summarise, "summarise")
        check_callable(self.say, "say=")
        if self.model is not None:
            check_text(self.model, "model=")
            if not self.model.strip():
                raise InvalidInput("model= is blank.")
        self.pace.check()

    def piece(self, messages: Sequence[Record]) -> tuple[list[Record], list[str]]:
        """Return the messages, from the first on, that fit one call, and what is said of them."""
        texts = self.said(messages)
        fits = next(iter(self.pace.pieces(texts)), [])
        return list(messages[: len(fits)]), list(fits)

    def summed_up(self, texts: Sequence[str]) -> str:
        """Return the summary of one or more texts that continues none; raises as `call`."""
        return list(self._growing(texts))[-1]

    def _growing(self, texts: Sequence[str]) -> Iterator[str]:
        """Yield the summary after each call."""
        made: str | None = None
        for piece in self.pace.pieces(texts):
            made = self.call(made, piece)
            yield made

    def said(self, records: Sequence[Record]) -> list[str]:
        """Return what the function is given of messages or parts; ModelError where `say` fails."""
        problem: ModelError | None = None
        try:
            texts = [one.text if is_part(one) else self.say(one) for one in records]
        except Exception as error:  # noqa: BLE001 - the caller's own function, whatever it raises
            problem = self._failed("say=", error)
        if problem is not None:
            raise problem
        for one in texts:
            check_text(one, "What say= returns")
        return texts

    def call(self, previous: str | None, texts: Sequence[str]) -> str:
        """Return the summary of `previous` and the texts, in one call of the function.

        Raises ModelError, without what the function said, where it fails or returns nothing.
        """
        problem: ModelError | None = None
        try:
            made = self.summarise(previous, texts)
        except Exception as error:  # noqa: BLE001 - the caller's own function, whatever it raises
            problem = self._failed("The summariser", error)
        if problem is not None:
            raise problem
        if not isinstance(made, str) or not made.strip():
            raise ModelError("The summariser returned no text.", remedy=_REMEDY)
        return made

    def _failed(self, what: str, error: Exception) -> ModelError:
        return ModelError(f"{what} failed with {type(error).__name__}.", remedy=_REMEDY)

    def lock(self, key: tuple[str, ...]) -> threading.RLock:
        """Return the lock of one summary in this process: two callers would ask the model twice."""
        with _GUARD:
            return self.locks.setdefault(key, threading.RLock())

    def again(self, sources: Sequence[Record]) -> Made:
        """Return the text and how many calls it took, failed ones too; no text where one fails."""
        text, calls = None, 0
        try:
            texts = self.said([one for one in sources if one.role != REPLACED])
        except ModelError:
            return Made(None, 0)
        growing = self._growing(texts)
        while True:
            try:
                text = next(growing)
            except StopIteration:
                return Made(text, calls)
            except ModelError:
                return Made(None, calls + 1)
            calls += 1


@dataclass(frozen=True, slots=True)
class Again:
    """Makes a summary of messages anew, as a rebuilder, or one `of_parts`; it asks the same model."""

    summariser: Summariser
    of_parts: bool

    @property
    def model(self) -> str | None:
        """What it asks, "provider/name", as far as that is known."""
        return self.summariser.model

    def __call__(self, _: Record, sources: Sequence[Record]) -> Made:
        """Return what the sources alone come to; an earlier version of a rolling summary is none."""
        return self.summariser.again([one for one in sources if is_part(one) is self.of_parts])


_GUARD = threading.Lock()
_REMEDY = "What was summarised before is kept; bring the summary up to date again later."


def is_part(record: Record) -> bool:
    """Whether a record is a summary, or what is left of one, and no message."""
    return record.kind not in SAID
