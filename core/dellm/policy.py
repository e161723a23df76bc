"""The policy of a memory: what may be stored, read, given out and erased, and for how long.

A `Policy` is one frozen value, read from TOML (see policy_reading and data/policy.toml). Its decisions
are functions of values: they look nothing up and change nothing. Each says why, in words that hold no
memory content: names of the policy's own classes, sensitivities, rules and roles only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Self

from .errors import InvalidInput
from .governance import UNTRUSTED, Described
from .policy_values import By, Class, Decision, Retention, Rule, Seen, Sensitivity, by_of, open_to
from .records import to_micros

DAY = 24 * 3600 * 1_000_000
# What public text and a workspace's own may say without being asked about: see Policy.may_write.
HARMLESS = frozenset({"public", "internal"})


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
    def _of_kind(self) -> dict[str, Class]:
        return {kind: one for one in self.classes for kind in one.kinds}

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
                and one.roles is None
                and (self.allowed is None or one.name in self.allowed)
                for one in usual
            )
        )

    # what is made of a record

    def seen(self, one: Described) -> Seen:
        """Return what the policy makes of a record; every decision begins with it."""
        rules = tuple(rule for rule in self.rules if rule.matches(one))
        says: dict[str, str] = {}
        for rule in reversed(rules):  # the first that says something counts
            says.update(rule.says)
        named = one.retention or says.get("class")
        kept = self._of_kind.get(one.kind) if named is None else self._classes.get(named)
        usual = None if kept is None else kept.sensitivity
        return Seen(
            rules,
            named,
            kept,
            says.get("purpose") if one.purpose is None else one.purpose,
            (says.get("sensitivity") or usual) if one.sensitivity is None else one.sensitivity,
            one.basis or says.get("basis"),
        )

    def class_of(self, one: Described) -> Class | None:
        """Return the class of a record: the one it names, a rule's, or its kind's."""
        return self.seen(one).kept

    # decisions

    def may_write(self, draft: Described, by: By | str = "human") -> Decision:
        """Decide whether something may be stored, at once or after somebody confirmed it."""
        return self.write_of(draft, self.seen(draft), by)

    def write_of(self, draft: Described, seen: Seen, by: By | str) -> Decision:
        """Decide as may_write on what was seen already."""
        asker = by_of(by)
        if not self.memory:
            return Decision(False, "memory is switched off")
        if (refusal := self._refusal(draft, seen)) is not None:
            return Decision(False, refusal)
        said = self._said_of_write(draft, seen)
        for reason in (why for write, why in said if write == "refuse"):
            return Decision(False, f"{reason} refuses it")
        for reason in (why for write, why in said if write == "confirm"):
            return Decision(True, f"to be confirmed: {reason}", waits=True)
        return Decision(True, f"nothing is against it, as said by {asker.who}")

    def _refusal(self, draft: Described, seen: Seen) -> str | None:
        kept = seen.kept
        if self.purpose and draft.kind != "state" and not seen.purpose:
            return "it has no purpose, and every record needs one"
        if kept is None:
            unknown = "it names a retention class that the policy does not have"
            return None if seen.named is None else unknown
        if not kept.records:
            return f"class {kept.name} is of no records"
        if self.allowed is not None and kept.name not in self.allowed:
            return f"class {kept.name} is not allowed here"
        return None

    def _said_of_write(self, draft: Described, seen: Seen) -> list[tuple[str, str]]:
        """Return what rule, class and sensitivity say of a write, and whose word that is."""
        rules = ((one.write, f"rule {one.name}") for one in seen.rules if one.write is not None)
        said = [one for one in (next(rules, None),) if one is not None]
        if seen.kept is not None:
            said.append((seen.kept.write, f"class {seen.kept.name}"))
        known = self._sensitivities.get(seen.sensitivity or "")
        if known is not None:
            said.append((known.write, f"sensitivity {known.name}"))
        sensitive = seen.sensitivity is not None and seen.sensitivity not in HARMLESS
        if draft.kind == "inferred" and (sensitive or self.confirm == "always"):
            said.append(("confirm", "inferred memory of this kind waits for confirmation"))
        return said

    def may_read(self, record: Described, by: By | str = "human") -> Decision:
        """Decide whether a record may be given to somebody, in a prompt or otherwise."""
        asker = by_of(by)
        if not self.memory:
            return Decision(False, "memory is switched off")
        for kept, what in self._governing(record):
            if not open_to(kept.roles, asker.role):
                return Decision(False, f"{what} {kept.name} is for other roles")
        return Decision(True, "no class or sensitivity keeps it from this role")

    def limits_of(self, draft: Described) -> tuple[str, ...]:
        """Return what of a record only some roles may read: "class NAME", "sensitivity NAME"."""
        found = ((what, kept) for kept, what in self._governing(draft) if kept.roles is not None)
        return tuple(sorted(f"{what} {kept.name}" for what, kept in found))

    def open_limits(self, role: str | None) -> frozenset[str]:
        """Return the classes and sensitivities that a role may read, named as by limits_of."""
        said: list[tuple[str, Class | Sensitivity]] = [
            *(("class", one) for one in self.classes),
            *(("sensitivity", one) for one in self.sensitivities),
        ]
        return frozenset(f"{what} {one.name}" for what, one in said if open_to(one.roles, role))

    def closed_to(self, role: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the classes, and the sensitivities, of which a role may read nothing."""
        return (
            tuple(one.name for one in self.classes if not open_to(one.roles, role)),
            tuple(one.name for one in self.sensitivities if not open_to(one.roles, role)),
        )

    def gives_out(self, by: By | str = "human") -> Decision:
        """Decide whether somebody may have an export at all."""
        asker = by_of(by)
        if asker.who in UNTRUSTED:
            return Decision(False, f"a {asker.who} cannot ask for an export")
        if asker.who == "system":
            return Decision(True, "the program looks through it and gives nothing out")
        if not open_to(self.export, asker.role):
            return Decision(False, "exports are for other roles" if self.export else "no exports")
        return Decision(True, f"asked by a {asker.who}")

    def keeps_in(self, by: By | str) -> bool:
        """Whether there is a class or sensitivity of which somebody is given nothing in an export."""
        asker = by_of(by)
        said: list[Class | Sensitivity] = [*self.classes, *self.sensitivities]
        return asker.who != "system" and any(
            not (one.export and open_to(one.roles, asker.role)) for one in said
        )

    def kept_from(self, by: By | str) -> tuple[Class, ...]:
        """Return the classes of which somebody may have nothing erased; see may_erase."""
        asker = by_of(by)
        if asker.who == "system":
            return ()
        return tuple(one for one in self.classes if not open_to(one.erase, asker.role))

    def may_export(self, record: Described, by: By | str = "human") -> Decision:
        """Decide whether a record may leave the memory in an export."""
        asker = by_of(by)
        given = self.gives_out(asker)
        if not given or asker.who == "system":
            return given
        for kept, what in self._governing(record):
            if not kept.export:
                return Decision(False, f"{what} {kept.name} is not exported")
            if not open_to(kept.roles, asker.role):
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
        return self.end_of(draft, self.seen(draft), at)

    def end_of(self, draft: Described, seen: Seen, at: int) -> Retention:
        """Decide as retention_for on what was seen already."""
        kept, own = seen.kept, draft.retention_until
        made = at if draft.created_at is None else to_micros(draft.created_at)
        ends = [] if own is None else [(to_micros(own), "the record says until when")]
        if kept is not None and kept.days is not None:
            ends.append((made + kept.days * DAY, f"class {kept.name} has {kept.days} days"))
        rules = ((one.days, one.name) for one in seen.rules if one.days is not None)
        for days, name in (one for one in (next(rules, None),) if one is not None):
            ends.append((made + days * DAY, f"rule {name} has {days} days"))
        until, reason = min(ends, default=(None, "nothing limits it"))
        return Retention(
            None if kept is None else kept.name,
            None if until is None else max(0, until - made) // DAY,
            until,
            reason,
            with_sources=kept is not None and kept.with_sources,
        )

    def _governing(self, record: Described) -> list[tuple[Class | Sensitivity, str]]:
        seen = self.seen(record)
        kept, named = seen.kept, seen.sensitivity
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
