"""The policy of a memory: what may be stored, read, given out and erased, and for how long.

A `Policy` is one frozen value, read from TOML (see policy_reading and data/policy.toml). Its decisions
are functions of values: they look nothing up and change nothing. Each says why, in words that hold no
memory content: names of the policy's own classes, sensitivities, rules and roles only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Self

from .arguments import check_choice, check_text
from .errors import InvalidInput, PolicyRefused
from .governance import ASKERS, UNTRUSTED, Described, creator_of
from .records import to_micros

DAY = 24 * 3600 * 1_000_000
# What public text and a workspace's own may say without being asked about: see Policy.may_write.
HARMLESS = frozenset({"public", "internal"})


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
        said = (
            (self.kind, one.kind),
            (self.role, one.role),
            (self.purpose, one.purpose),
            (self.sensitivity, one.sensitivity),
            (self.created_by, creator_of(one)),
        )
        if any(names and value not in names for names, value in said):
            return False
        if self.subject is not None and self.subject != (one.subject is not None):
            return False
        return not self.thread or any(fnmatchcase(one.thread or "", p) for p in self.thread)


@dataclass(frozen=True)
class Policy:
    """What one memory, or one workspace of it, may keep, and who may use it. See docs/policy.md.

    `memory`: False stores nothing more, and gives nothing to a prompt. `allowed`: the classes that
    may be stored, None for all. `purpose`: whether every record must have one. `confirm`: which
    inferred memory waits for somebody: "sensitive" or "always". `export`: the roles that may be given
    an export, None for everybody, () for nobody. `cross_project`: whether what belongs to one project
    may be read in another. `basis` is what records rest on that do not say.
    """

    memory: bool = True
    allowed: tuple[str, ...] | None = None
    purpose: bool = False
    confirm: str = "sensitive"
    export: tuple[str, ...] | None = None
    cross_project: bool = False
    basis: str = "legitimate use"
    classes: tuple[Class, ...] = ()
    sensitivities: tuple[Sensitivity, ...] = ()
    rules: tuple[Rule, ...] = ()

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a policy from a TOML file; PolicyError names the line of a mistake."""
        if not isinstance(path, str | Path) or not str(path).strip():
            raise InvalidInput("A policy is read from a file; this is no path.")
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, ValueError):
            problem = InvalidInput("The policy's file cannot be read as UTF-8 text.")
        else:
            return cls.parse(text)
        raise problem

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the policy that a TOML text describes, on top of the shipped classes.

        Raises PolicyError, with the line of the mistake.
        """
        from .policy_reading import parsed

        return cls(**parsed(text))

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """Return the policy that a table such as TOML's describes; PolicyError for a mistake."""
        from .policy_reading import described

        return cls(**described(table))

    @classmethod
    def shipped(cls) -> Self:
        """Return the policy of a memory for which none was set: data/policy.toml."""
        text = resources.files(__package__).joinpath("data/policy.toml").read_text("utf-8")
        return cls.parse(text)

    def to_table(self) -> dict[str, Any]:
        """Return the policy as plain values, of which Policy.of makes the same one."""
        from .policy_table import table_of

        return table_of(self)

    @cached_property
    def _classes(self) -> dict[str, Class]:
        return {one.name: one for one in self.classes}

    @cached_property
    def _sensitivities(self) -> dict[str, Sensitivity]:
        return {one.name: one for one in self.sensitivities}

    @cached_property
    def plain(self) -> bool:
        """Whether it has nothing to say of what is stored without class and sensitivity."""
        usual = [one for one in self.classes if one.kinds]
        return (
            self.memory
            and not (self.purpose or self.rules)
            and self.confirm == "sensitive"
            and all(
                one.records
                and one.days is None
                and one.write == "allow"
                and one.sensitivity is None
                and (self.allowed is None or one.name in self.allowed)
                for one in usual
            )
        )

    # what is said of a record

    def class_of(self, one: Described) -> Class | None:
        """Return the class of a record: the one it names, a rule's, or its kind's."""
        named = self.named_class(one)
        if named is not None:
            return self._classes.get(named)
        return next((kept for kept in self.classes if one.kind in kept.kinds), None)

    def named_class(self, one: Described) -> str | None:
        """Return the class that a record names, or a rule for it; not that of its kind."""
        return one.retention or self._said(one, "class")

    def said_of(self, one: Described, what: str) -> str | None:
        """Return the record's purpose, sensitivity or basis: its own, else a rule's, or its class's."""
        found: str | None = getattr(one, what) or self._said(one, what)
        if found is None and what == "sensitivity":
            kept = self.class_of(one)
            return None if kept is None else kept.sensitivity
        return found

    def _said(self, one: Described, what: str) -> str | None:
        rules = (rule for rule in self.rules if what in rule.says)
        return next((rule.says[what] for rule in rules if rule.matches(one)), None)

    # decisions

    def may_write(self, draft: Described, by: By | str = "human") -> Decision:
        """Decide whether something may be stored, at once or after somebody confirmed it."""
        asker = by_of(by)
        if not self.memory:
            return Decision(False, "memory is switched off")
        kept = self.class_of(draft)
        if kept is None and self.named_class(draft) is not None:
            return Decision(False, "it names a retention class that the policy does not have")
        for refusal in (self._refused_class(kept), self._refused_purpose(draft)):
            if refusal is not None:
                return Decision(False, refusal)
        return self._write_said(draft, kept, asker)

    def _refused_class(self, kept: Class | None) -> str | None:
        if kept is None:
            return None
        if not kept.records:
            return f"class {kept.name} is of no records"
        if self.allowed is not None and kept.name not in self.allowed:
            return f"class {kept.name} is not allowed here"
        return None

    def _refused_purpose(self, draft: Described) -> str | None:
        if self.purpose and draft.kind != "state" and not self.said_of(draft, "purpose"):
            return "it has no purpose, and every record needs one"
        return None

    def _write_said(self, draft: Described, kept: Class | None, asker: By) -> Decision:
        """Return the strictest of what rule, class and sensitivity say of a write."""
        said = [
            (rule.write, f"rule {rule.name}")
            for rule in self.rules
            if rule.write is not None and rule.matches(draft)
        ][:1]
        if kept is not None:
            said.append((kept.write, f"class {kept.name}"))
        named = self.said_of(draft, "sensitivity")
        known = self._sensitivities.get(named or "")
        if known is not None:
            said.append((known.write, f"sensitivity {known.name}"))
        if draft.kind == "inferred" and self._asks_of(named):
            said.append(("confirm", "inferred memory of this kind waits for confirmation"))
        for reason in (why for write, why in said if write == "refuse"):
            return Decision(False, f"{reason} refuses it")
        for reason in (why for write, why in said if write == "confirm"):
            return Decision(True, f"to be confirmed: {reason}", waits=True)
        return Decision(True, f"nothing is against it, as said by {asker.who}")

    def _asks_of(self, sensitivity: str | None) -> bool:
        sensitive = sensitivity is not None and sensitivity not in HARMLESS
        return self.confirm == "always" or sensitive

    def may_read(self, record: Described, by: By | str = "human") -> Decision:
        """Decide whether a record may be given to somebody, in a prompt or otherwise."""
        asker = by_of(by)
        if not self.memory:
            return Decision(False, "memory is switched off")
        for kept, what in self._governing(record):
            if not _open_to(kept.roles, asker.role):
                return Decision(False, f"{what} {kept.name} is for other roles")
        return Decision(True, "no class or sensitivity keeps it from this role")

    def closed_to(self, role: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the classes, and the sensitivities, of which a role may read nothing."""
        return (
            tuple(one.name for one in self.classes if not _open_to(one.roles, role)),
            tuple(one.name for one in self.sensitivities if not _open_to(one.roles, role)),
        )

    def kept_from(self, by: By | str) -> tuple[Class, ...]:
        """Return the classes of which somebody may have nothing erased; see may_erase."""
        asker = by_of(by)
        if asker.who == "system":
            return ()
        return tuple(one for one in self.classes if not _open_to(one.erase, asker.role))

    def may_export(self, record: Described, by: By | str = "human") -> Decision:
        """Decide whether a record may leave the memory in an export."""
        asker = by_of(by)
        if asker.who in UNTRUSTED:
            return Decision(False, f"a {asker.who} cannot ask for an export")
        if not _open_to(self.export, asker.role):
            return Decision(False, "exports are for other roles" if self.export else "no exports")
        for kept, what in self._governing(record):
            if not kept.export:
                return Decision(False, f"{what} {kept.name} is not exported")
            if not _open_to(kept.roles, asker.role):
                return Decision(False, f"{what} {kept.name} is for other roles")
        return Decision(True, "nothing keeps it in")

    def may_erase(self, record: Described, by: By | str = "human") -> Decision:
        """Decide whether somebody may have a record forgotten or corrected.

        The program itself may, "system": what has come to its end goes, whatever its class.
        """
        asker = by_of(by)
        if asker.who in UNTRUSTED:
            return Decision(False, f"a {asker.who} cannot ask for that")
        kept = self.class_of(record)
        if kept in self.kept_from(asker):
            return Decision(False, f"class {kept.name} is erased by other roles only")
        return Decision(True, f"asked by a {asker.who}")

    def retention_for(self, draft: Described, at: int = 0) -> Retention:
        """Decide how long something is kept that is stored at a moment, in microseconds UTC.

        The shortest of what the record itself, its class and the first rule with days say. Counted
        from when it was made, where it says so.
        """
        kept = self.class_of(draft)
        found = [(draft.retention_until, "the record says until when")]
        made = at if draft.created_at is None else to_micros(draft.created_at)
        if kept is not None and kept.days is not None:
            found.append((made + kept.days * DAY, f"class {kept.name} has {kept.days} days"))
        rules = (one for one in self.rules if one.days is not None and one.matches(draft))
        if (rule := next(rules, None)) is not None:
            found.append((made + (rule.days or 0) * DAY, f"rule {rule.name} has {rule.days} days"))
        ends = [(to_micros(until), why) for until, why in found if until is not None]
        until, reason = min(ends, default=(None, "nothing limits it"))
        return Retention(
            None if kept is None else kept.name,
            None if until is None else max(0, until - made) // DAY,
            until,
            reason,
            with_sources=kept is not None and kept.with_sources,
        )

    def _governing(self, record: Described) -> list[tuple[Class | Sensitivity, str]]:
        kept, named = self.class_of(record), self.said_of(record, "sensitivity")
        found: list[tuple[Class | Sensitivity, str]] = []
        if kept is not None:
            found.append((kept, "class"))
        if (known := self._sensitivities.get(named or "")) is not None:
            found.append((known, "sensitivity"))
        return found


def may_act(by: By | str) -> Decision:
    """Decide whether somebody may ask for a deletion, correction, hold or export, whatever the policy.

    Never what came out of a tool, a document or a model: their words are not anybody's wish.
    """
    asker = by_of(by)
    if asker.who in UNTRUSTED:
        return Decision(False, f"a {asker.who} cannot ask for that")
    return Decision(True, f"asked by a {asker.who}")


def by_of(by: By | str) -> By:
    """Return who asks; InvalidInput for somebody who is none of ASKERS."""
    return by if isinstance(by, By) else By(by)


def _open_to(roles: tuple[str, ...] | None, role: str | None) -> bool:
    return roles is None or (role is not None and role in roles)
