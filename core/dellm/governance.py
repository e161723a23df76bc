"""The words of governance: who may make a record, on what basis, and who may ask for something."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

CREATORS = ("human", "system", "agent", "import", "admin")
BASES = (
    "explicit instruction",
    "workspace policy",
    "contract",
    "legitimate use",
    "consent",
    "legal obligation",
    "legal hold",
    "other",
)
# Who may ask for something: the creators, and those whose words are never a wish of anybody.
UNTRUSTED = frozenset({"agent", "tool", "document", "model"})
ASKERS = frozenset(CREATORS) | UNTRUSTED
WRITES = ("allow", "confirm", "refuse")


class Described(Protocol):
    """What a policy knows of a record, or of what is to become one: a Draft, or a Governed."""

    @property
    def kind(self) -> str:
        """One of KINDS."""

    @property
    def role(self) -> str:
        """Who speaks in it."""

    @property
    def thread(self) -> str | None:
        """Its conversation."""

    @property
    def subject(self) -> str | None:
        """Whom it is about; a policy only asks whether it says so."""

    @property
    def purpose(self) -> str | None:
        """What it is kept for."""

    @property
    def sensitivity(self) -> str | None:
        """How sensitive it is."""

    @property
    def retention(self) -> str | None:
        """The name of its retention class, where it names one."""

    @property
    def retention_until(self) -> datetime | int | None:
        """Until when it is kept."""

    @property
    def created_at(self) -> datetime | int | None:
        """When it was made."""

    @property
    def created_by(self) -> str | None:
        """One of CREATORS, where it says so."""

    @property
    def basis(self) -> str | None:
        """One of BASES, where it says so."""


def creator_of(one: Described) -> str:
    """Return who made a record: who it says, else what its role and kind tell."""
    return one.created_by or usual_creator(one.kind, one.role)


def usual_creator(kind: str, role: str) -> str:
    """Return who makes records of a kind and role, where they say nothing else.

    Documents are brought in, a user's words are a human's, and what tools and the program itself
    write is the system's; all else an agent has made.
    """
    if kind == "document":
        return "import"
    if kind == "tool" or role in {"tool", "system", "developer"}:
        return "system"
    return "human" if role == "user" and kind == "message" else "agent"
