"""Providers: who may keep what was sent to a model or an embedder, until when, and who says so.

The table is data/providers.toml, and a file of the same form that `Memory.open(providers=...)`
names. It holds what the providers publish, with source and date; what nobody says is "unknown".
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from .errors import InvalidInput

UNKNOWN = "unknown"
_TEXTS = ("sent", "deletion", "zero_retention", "source")
_KEYS = {*_TEXTS, "hosts", "retention_days", "checked", "self_hosted"}
_DAYS = 36_500  # a retention above a hundred years is a mistake


@dataclass(frozen=True, slots=True)
class Provider:
    """What one provider says of what it is sent; each text is "unknown" where no source says it.

    `hosts` are patterns (*, ?) of its host or of what frameworks call it. `retention_days` is the
    longest time it may keep a plain call by default, in days, None where that is unknown. `source` is
    an address, `checked` the ISO date of the copy of it that was read. `self_hosted`: it is the
    user's own server.
    """

    name: str
    hosts: tuple[str, ...] = ()
    sent: str = UNKNOWN
    retention_days: int | None = None
    deletion: str = UNKNOWN
    zero_retention: str = UNKNOWN
    source: str = UNKNOWN
    checked: str = UNKNOWN
    self_hosted: bool = False

    def until(self, last: datetime) -> datetime | None:
        """Return until when it may keep what it was sent at `last`; None where that is unknown."""
        if self.retention_days is None:
            return None
        try:
            return last + timedelta(days=self.retention_days)
        except OverflowError:
            return None


class Providers:
    """The table of providers, with the user's own entries in the place of those that ship."""

    def __init__(self, path: str | Path | None = None) -> None:
        """Read the file at `path`, if one is given. Raises InvalidInput, which names the mistake."""
        own = {} if path is None else _parsed(_text_of(path))
        self._own = {name: _checked(name, table) for name, table in own.items()}

    @cached_property
    def _table(self) -> dict[str, Provider]:
        shipped = resources.files(__package__).joinpath("data/providers.toml").read_text("utf-8")
        table = {name: _checked(name, one) for name, one in _parsed(shipped).items()}
        for name, one in self._own.items():
            old = table.pop(name, None)
            table[name] = replace(one, hosts=old.hosts) if old and not one.hosts else one
        return table

    def __iter__(self) -> Iterator[Provider]:
        return iter(self._table.values())

    def named(self, name: str) -> Provider | None:
        """Return the entry of this name, if there is one."""
        return self._table.get(name)

    def of(self, host: str) -> Provider:
        """Return who is behind a host or a framework's name for a provider.

        The user's entries come first. Of one that is not in the table all is unknown but its name.
        """
        asked = host.casefold()
        bare = asked.rsplit(":", 1)[0] if asked.count(":") == 1 else asked
        own = [one for name, one in self._table.items() if name in self._own]
        for one in (*own, *self._table.values()):
            names = (one.name, *one.hosts)
            if any(fnmatchcase(said, name.casefold()) for name in names for said in (asked, bare)):
                return one
        return Provider(host)


SHIPPED = Providers()  # read when it is first asked


def _text_of(path: str | Path) -> str:
    problem = InvalidInput("providers= names no file that can be read as UTF-8 text.")
    if not isinstance(path, str | Path) or not str(path).strip():
        raise problem
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError):
        raise problem from None


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = InvalidInput(f"The table of providers is no TOML: {error}.")
    except RecursionError:
        problem = InvalidInput("The table of providers is no TOML: it is nested too deeply.")
    raise problem


def _checked(name: str, table: Any) -> Provider:
    """Return the entry that a table describes; InvalidInput names the table and the key."""
    if not isinstance(table, Mapping):
        raise InvalidInput(f"Table of providers: {name} is no table; write [{name}].")
    for key in table:
        if key not in _KEYS:
            raise _wrong(name, key, f"is none of {', '.join(sorted(_KEYS))}")
    hosts = table.get("hosts", [])
    if not isinstance(hosts, list) or not all(isinstance(one, str) and one for one in hosts):
        raise _wrong(name, "hosts", "is no list of patterns")
    said = {key: table.get(key, UNKNOWN) for key in _TEXTS}
    for key, value in said.items():
        if not isinstance(value, str) or not value.strip():
            raise _wrong(name, key, 'is no text; write "unknown"')
    hosted = table.get("self_hosted", False)
    if not isinstance(hosted, bool):
        raise _wrong(name, "self_hosted", "is neither true nor false")
    days, checked = _days(name, table), _date(name, table)
    return Provider(
        name, tuple(hosts), retention_days=days, checked=checked, self_hosted=hosted, **said
    )


def _days(name: str, table: Mapping[str, Any]) -> int | None:
    value = table.get("retention_days", UNKNOWN)
    if value == UNKNOWN:
        return None
    if type(value) is not int or not 0 <= value <= _DAYS:
        raise _wrong(name, "retention_days", f'is no number of days up to {_DAYS}, nor "unknown"')
    if table.get("source", UNKNOWN) == UNKNOWN:
        raise _wrong(name, "source", "is missing: a number of days needs one")
    return value


def _date(name: str, table: Mapping[str, Any]) -> str:
    value = table.get("checked", UNKNOWN)
    if value == UNKNOWN:
        return UNKNOWN
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    raise _wrong(name, "checked", 'is no date such as 2026-04-07, nor "unknown"')


def _wrong(name: str, key: str, what: str) -> InvalidInput:
    return InvalidInput(f"Table of providers: {key} of [{name}] {what}.")
