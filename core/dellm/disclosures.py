"""What a forget, or a look at it, says of outsiders: who was sent the records, and how long it counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from .arguments import check_flag, check_text, check_whole
from .providers import Provider, Providers
from .records import from_micros

if TYPE_CHECKING:
    from .exposure_rows import Seen, Who

_TIMES = ("first", "last", "until")


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What one outside model or embedder was sent of some records; no content.

    `provider` is the entry in the table of providers, `host` what the record says: they are the same
    where the table has none. `records` counts them; `first` and `last` are when one of them was first
    and last sent. `until` is when the provider's own rules end for the last one, None where they are
    unknown. The rest is of the table, as it was then.
    """

    provider: str
    host: str
    model: str
    embeds: bool
    records: int
    first: datetime
    last: datetime
    until: datetime | None
    deletion: str
    zero_retention: str
    source: str
    checked: str
    self_hosted: bool

    def __str__(self) -> str:
        what = "embedding" if self.embeds else "replies"
        sent = f"{self.records} record(s) sent to {self.provider} ({self.model}) for {what}"
        until = "unknown" if self.until is None else f"{self.until:%Y-%m-%d}"
        where = " (your own server)" if self.self_hosted else ""
        dated = "of unknown date" if self.checked == "unknown" else f"as of {self.checked}"
        kept = f"last {self.last:%Y-%m-%d}, may be kept there{where} until: {until}"
        return f"{sent}, {kept}; deletion: {self.deletion} [source: {self.source}, {dated}]"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        found: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        moments = {name: found[name] for name in _TIMES}
        return found | {
            name: None if moment is None else moment.isoformat() for name, moment in moments.items()
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return what `to_json` gave. Raises InvalidInput, KeyError, TypeError, ValueError for else."""
        moments = {
            name: None if data[name] is None and name == "until" else _moment(data[name])
            for name in _TIMES
        }
        made = cls(**{**data, **moments})
        check_whole(made.records, "records")
        for name in ("embeds", "self_hosted"):
            check_flag(data[name], name)
        for name in cls.__slots__:
            if name not in {*_TIMES, "records", "embeds", "self_hosted"}:
                check_text(data[name], name)
        return made


def disclosed(found: Mapping[int, Seen], providers: Providers) -> tuple[Disclosure, ...]:
    """Return what the records were exposed to, by provider and model."""
    spans: dict[Who, tuple[int, int, int]] = {}
    for seen in found.values():
        for who, (first, last) in seen.items():
            count, least, most = spans.get(who, (0, first, last))
            spans[who] = (count + 1, min(first, least), max(last, most))
    return tuple(_one(who, span, providers) for who, span in sorted(spans.items()))


def split(name: str) -> tuple[str, str]:
    """Return the host and the model of "provider/model"; the host "unknown" where none is said."""
    for mark in ("/", ":"):
        host, found, model = name.partition(mark)
        if found and host and model:
            return host, model
    return "unknown", name


def provider_of(asked: object) -> str:
    """Say who gets to see what a model or an embedder is given, for the record of exposures.

    The host of an endpoint, `"local"` if it does not leave this process, and `"unknown"` for an
    object without a `provider` attribute, which must be taken for an outside one.
    """
    provider = getattr(asked, "provider", None)
    return provider if isinstance(provider, str) and provider else "unknown"


def _moment(said: str) -> datetime:
    moment = datetime.fromisoformat(said)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _one(who: Who, span: tuple[int, int, int], providers: Providers) -> Disclosure:
    host, model = split(who[0])
    entry: Provider = providers.of(host)
    count, first, last = span
    return Disclosure(
        provider=entry.name,
        host=host,
        model=model,
        embeds=who[1],
        records=count,
        first=from_micros(first),
        last=from_micros(last),
        until=entry.until(from_micros(last)),
        deletion=entry.deletion,
        zero_retention=entry.zero_retention,
        source=entry.source,
        checked=entry.checked,
        self_hosted=entry.self_hosted,
    )
