"""What the residue audit asks of each system: the same talk, its own deletion, and its reads."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dellm.embedding import Embedder

from .canary import Canary
from .residue_looking import Secret
from .systems.chat import Chat

MESSAGE, TELLING, ALL = "one message", "all that tell it", "thread or user"


@dataclass(frozen=True, slots=True)
class Talk:
    """What is said: something else, the secret, a question for it, and something else again."""

    secret: Secret
    first: str = "My dog is called Biscuit."
    question: str = "What is my phone number?"
    last: str = "I play chess on Sundays."

    @property
    def telling(self) -> str:
        """The one message of the user's that tells the secret."""
        return f"My phone number is {self.secret.text}."

    @property
    def turns(self) -> tuple[str, ...]:
        """All messages of the user, in order."""
        return self.first, self.telling, self.question, self.last

    @property
    def others(self) -> tuple[str, str]:
        """The messages that have nothing to do with the secret."""
        return self.first, self.last


def talk(draw: random.Random) -> Talk:
    """Return a talk whose secret is a phone number of ten digits that no other talk has."""
    return Talk(Secret(f"415{draw.randrange(2_000_000, 9_999_999)}"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a system keeps its data: a folder, and a PostgreSQL database where it needs one."""

    folder: Path
    url: str
    embedder: Embedder


class Subject(Protocol):
    """An opened system."""

    def play(self, said: Talk) -> None:
        """Hold the talk, as the system's documentation shows it."""
        ...

    def live(self) -> list[str]:
        """Return every text that an application reads now, each message or item one."""
        ...

    def history(self) -> list[object] | None:
        """Return the older versions that an application can read, or None without such reads."""
        ...

    def cached(self) -> list[object] | None:
        """Return the cached answers, or None where the system has no cache."""
        ...


@dataclass(frozen=True, slots=True)
class Verb:
    """A documented way to delete; `scope` is MESSAGE, TELLING (message by message) or ALL.

    `act` is None where the documentation has no way for the scope.
    """

    words: str
    scope: str
    act: Callable[[Any, Talk], object] | None


@dataclass(frozen=True, slots=True)
class Contestant:
    """A system, the distributions it comes from, and where it keeps its data.

    `keeps` is "memory", "files" or "postgres". `raw` gives what stands in its memory for the rows
    of a table, where there are no tables.
    """

    name: str
    distributions: tuple[str, ...]
    keeps: str
    opened: Callable[[Place], AbstractContextManager[Any]]
    verbs: tuple[Verb, ...]
    raw: Callable[[Any], list[object]] | None = None
    ours: bool = False


def canary_chat() -> Chat:
    """Return the canary as a LangChain chat model: it repeats its prompt."""
    return Chat(inner=Canary())
