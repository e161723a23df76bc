"""What makes derived texts: functions registered by name, and what their records say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .records import Record

ASKS = "rebuild"  # metadata that names the function by which a record wants to be made anew
# Metadata of what a derivation made: by it the record may also be made anew later, elsewhere.
DERIVED, VERSION = "derivation", "version"


@dataclass(frozen=True, slots=True)
class Made:
    """A text that a function made, None for none, and how many model calls that took."""

    text: str | None = field(repr=False)
    calls: int = 1


Rebuilder = Callable[[Record, Sequence[Record]], "str | Made | None"]
Make = Callable[[Sequence[Record]], "str | Made | None"]


@dataclass(frozen=True, slots=True)
class Derivation:
    """A function from sources to a text, registered by name; its version grows when it changes.

    `model`, "provider/name", is what its records say they were made by.
    """

    name: str
    version: int
    make: Make = field(repr=False)
    model: str | None = None

    def __call__(self, _record: Record, sources: Sequence[Record]) -> str | Made | None:
        """Make the text as a rebuilder does."""
        return self.make(sources)

    @property
    def metadata(self) -> dict[str, Any]:
        """What a record that it made says of itself."""
        return said_of(self.name, self.version)


def said_of(name: str, version: int) -> dict[str, Any]:
    """Return what a record that a derivation made says of itself."""
    return {ASKS: name, DERIVED: name, VERSION: version}


def derived_by(metadata: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the name and version of the derivation that made a record, None if none did."""
    name, version = metadata.get(DERIVED), metadata.get(VERSION)
    if not isinstance(name, str) or name != metadata.get(ASKS) or type(version) is not int:
        return None
    return name, version


def model_of(make: object) -> str | None:
    """Return which model a function asks, "provider/name", where it says so by a `model`."""
    named = getattr(make, "model", None)
    return named if isinstance(named, str) and named.strip() else None


def versions_of(makers: Mapping[str, object]) -> dict[str, int | None]:
    """Return the version of each derivation by name, None for what is registered but is none."""
    return {
        name: make.version if isinstance(make, Derivation) else None
        for name, make in dict(makers).items()
    }


def counted(answer: object) -> Made:
    """Return what a function of the caller's gave as what it is: no text unless it says something."""
    made = answer if isinstance(answer, Made) else Made(answer if isinstance(answer, str) else None)
    text: object = made.text
    calls = made.calls if type(made.calls) is int and made.calls >= 0 else 1
    return Made(text if isinstance(text, str) and text.strip() else None, calls)
