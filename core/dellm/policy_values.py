"""The values of a policy: its classes, sensitivities and rules, who asks, and what is decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from .arguments import check_choice, check_text
from .errors import PolicyRefused
from .governance import ASKERS, Described, creator_of


@dataclass(frozen=True, slots=True)
class By:
    """Who asks: one of ASKERS, and the role in which they act, None for the application itself."""

    who: str = "human"
    role: str | None = None

    def __post_init__(self) -> None:
        """Raise InvalidInput for one that is none of ASKERS."""
        check_choice(self.who, ASKERS, "by=")
        if self.role is not None:
            check_text(self.role, "role=")


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether something may be done, and why. `waits`: only after somebody confirms it."""

    allowed: bool
    reason: str
    waits: bool = False

    def __bool__(self) -> bool:
        return self.allowed

    def require(self) -> None:
        """Raise PolicyRefused where it may not be done."""
        if not self.allowed:
            raise PolicyRefused(f"The policy does not allow it: {self.reason}.")


@dataclass(frozen=True, slots=True)
class Retention:
    """How long something is kept: its class, and how many days of it, None where nothing limits it.

    `with_sources`: as long as all that it was made from, and no longer. `until`: microseconds UTC.
    """

    retention: str | None
    days: int | None
    until: int | None
    reason: str
    with_sources: bool = False


@dataclass(frozen=True, slots=True)
class Class:
    """A retention class. `days`: how long a record of it is kept at most; a record may say sooner.

    `kinds` are the kinds of records that are of it where nothing else is said. `roles`: who may be
    given it, None for everybody. `write` is one of WRITES, `sensitivity` what its records are where
    they do not say. `records`: False for what is no record (vectors, audit entries).
    """

    name: str
    days: int | None = None
    with_sources: bool = False
    kinds: tuple[str, ...] = ()
    write: str = "allow"
    roles: tuple[str, ...] | None = None
    export: bool = True
    erase: tuple[str, ...] | None = None
    sensitivity: str | None = None
    records: bool = True


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What holds for records of a sensitivity; as for Class."""

    name: str
    write: str = "allow"
    roles: tuple[str, ...] | None = None
    export: bool = True


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for records that match. Empty conditions match everything; `thread` has patterns.

    What a rule says of class, purpose, sensitivity and basis counts where the record does not say.
    """

    name: str
    kind: tuple[str, ...] = ()
    role: tuple[str, ...] = ()
    thread: tuple[str, ...] = ()
    purpose: tuple[str, ...] = ()
    sensitivity: tuple[str, ...] = ()
    created_by: tuple[str, ...] = ()
    subject: bool | None = None
    says: Mapping[str, str] = field(default_factory=dict)  # of SAID: what the record then says
    days: int | None = None
    write: str | None = None

    def matches(self, one: Described) -> bool:
        """Whether the rule is about a record."""
        if (self.kind and one.kind not in self.kind) or (self.role and one.role not in self.role):
            return False
        if self.purpose and one.purpose not in self.purpose:
            return False
        if self.sensitivity and one.sensitivity not in self.sensitivity:
            return False
        if self.created_by and creator_of(one) not in self.created_by:
            return False
        if self.subject not in {None, one.subject is not None}:
            return False
        return not self.thread or any(fnmatchcase(one.thread or "", p) for p in self.thread)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a policy makes of a record: the rules that match, its class, and what it then says.

    `named` is the class that the record names, or a rule for it; `kept` is that, or its kind's.
    """

    rules: tuple[Rule, ...]
    named: str | None
    kept: Class | None
    purpose: str | None
    sensitivity: str | None
    basis: str | None


def open_to(roles: tuple[str, ...] | None, role: str | None) -> bool:
    """Whether something that is for these roles (None: for everybody) is for one in this role."""
    return roles is None or (role is not None and role in roles)


def by_of(by: By | str) -> By:
    """Return who asks; InvalidInput for somebody who is none of ASKERS."""
    return by if isinstance(by, By) else By(by)
