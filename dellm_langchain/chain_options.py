"""What with_memory() is told once: how its chain is given its memory, and where its messages stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dellm import InvalidInput, estimated_tokens
from dellm.adapting import Choice, check_flag, check_text


@dataclass(frozen=True, slots=True)
class Recalling:
    """What a chain is given of its memory; see Memory.context for each but `across_threads`."""

    k: int = 5
    last: int = 0
    threshold: float | None = None
    by: str | None = None
    budget: int | None = None
    count: Callable[[str], int] = estimated_tokens
    across_threads: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidInput for options that make no sense."""
        check_flag(self.across_threads, "across_threads=")
        how = Choice(k=self.k, last=self.last, threshold=self.threshold, budget=self.budget)
        replace(how, by=self.by or "meaning", count=self.count).check()
        if self.threshold is not None and not -1 <= self.threshold <= 1:
            raise InvalidInput("threshold= is a cosine between -1 and 1.")


@dataclass(frozen=True, slots=True)
class Keys:
    """Under which keys of a dict the messages are; None: the usual or the only one."""

    input: str | None
    history: str | None
    output: str | None

    def __post_init__(self) -> None:
        """Raise InvalidInput for a key that is no text."""
        for name, key in (
            ("input", self.input),
            ("history", self.history),
            ("output", self.output),
        ):
            if key is not None:
                check_text(key, f"{name}_messages_key=")


class Seen:
    """The chunks of a stream, added up where they can be."""

    def __init__(self) -> None:
        self.some = False
        self.whole: Any = None

    def add(self, chunk: Any) -> None:
        """Take a chunk in."""
        if not self.some:
            self.some, self.whole = True, chunk
            return
        try:
            self.whole = self.whole + chunk
        except TypeError:  # what cannot be added up is the newest of it
            self.whole = chunk
