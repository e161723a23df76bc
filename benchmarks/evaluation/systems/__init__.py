"""The systems that are compared, each through its real adapter, behind one protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Said:
    """A message that was said before: `role` is "user" or "assistant"."""

    role: str
    text: str


class System(Protocol):
    """A chat system with or without a memory, for one user and one conversation."""

    name: str

    def tell(self, text: str) -> str:
        """Say something as the user; the message and the reply, which is returned, stay."""
        ...

    def load(self, said: Sequence[Said]) -> None:
        """Put in messages of a conversation that is fixed, without asking the model."""
        ...

    def ask(self, question: str) -> str:
        """Ask a probe: answered as any message would be, and afterwards nothing of it is there."""
        ...

    def forget(self, fact: str) -> int:
        """Ask, in the words of `forget_request`, for a message to be forgotten, and say yes.

        Returns how many messages went, the named one included; 0 where the system cannot delete.
        """
        ...

    def held(self) -> list[str]:
        """Return the text of every message that the system can still use, oldest first."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...


Make = Callable[[], System]


def forget_request(fact: str) -> str:
    """Return the user's request to forget a message, the same for every system."""
    return f'Please forget this message of mine: "{fact}"'
