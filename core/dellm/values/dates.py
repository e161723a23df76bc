"""Dates in their usual written forms, in seven languages."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import regex

if TYPE_CHECKING:
    from collections.abc import Iterator

# en, de, es, fr, it, pt, nl; plain form (no accents).
_MONTH_NAMES: Final = (
    "january jan januar jaenner janner enero ene janvier janv gennaio gen janeiro januari",
    "february feb februar febrero fevrier fevr febbraio fevereiro fev februari",
    "march mar marz maerz marzo mars marco maart mrt",
    "april apr abril abr avril avr aprile",
    "may mai mayo maggio mag maio mei",
    "june jun juni junio juin giugno giu junho",
    "july jul juli julio juillet juil luglio lug julho",
    "august aug agosto ago aout augustus",
    "september sep sept septiembre septembre settembre set setembro",
    "october oct oktober okt octubre octobre ottobre ott outubro out",
    "november nov noviembre novembre novembro",
    "december dec dezember dez diciembre dic decembre dicembre dezembro",
)
_MONTHS: Final = {
    name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()
}
_NAME: Final = "|".join(sorted(_MONTHS, key=len, reverse=True))
_WORDS: Final = r"(?:[\s,.\-/]|\b(?:of|de|del|do|di)\b)"
_ORDINAL: Final = r"(?:st|nd|rd|th|er|\.|º|ª|o\b|a\b)?"
_EDGE_LEFT: Final = r"(?<![0-9a-z_])(?<![0-9][./\-])"
_EDGE_RIGHT: Final = r"(?![0-9a-su-z_]|[./\-][0-9]|t(?![0-9]))"
_ANY: Final = regex.compile(
    rf"""{_EDGE_LEFT}(?:
      (?P<y1>[12][0-9]{{3}})(?P<s1>\s?[-/.\s]\s?)(?P<m1>[01]?[0-9])(?P=s1)(?P<d1>[0-3]?[0-9])
    | (?P<a>[0-3]?[0-9])(?P<s2>\s?[-/.]\s?|\s)(?P<b>[0-3]?[0-9])(?P=s2)(?P<y2>[12][0-9]{{3}}|[0-9]{{2}})
    | (?P<y3>[12][0-9]{{3}})(?P<m3>[01][0-9])(?P<d3>[0-3][0-9])
    | (?P<n4>{_NAME}){_WORDS}{{0,3}}(?P<d4>[0-3]?[0-9]){_ORDINAL}{_WORDS}{{1,3}}(?P<y4>[12][0-9]{{3}}|'[0-9]{{2}})
    | (?P<d5>[0-3]?[0-9]){_ORDINAL}{_WORDS}{{0,4}}(?P<n5>{_NAME}){_WORDS}{{0,4}}(?P<y5>[12][0-9]{{3}}|'?[0-9]{{2}})
    | (?P<y6>[12][0-9]{{3}}){_WORDS}{{1,3}}(?P<n6>{_NAME}){_WORDS}{{0,3}}(?P<d6>[0-3]?[0-9]){_ORDINAL}
    | (?P<y7>[12][0-9]{{3}})\s?年\s?(?P<m7>[01]?[0-9])\s?月\s?(?P<d7>[0-3]?[0-9])\s?日
    ){_EDGE_RIGHT}""",
    regex.VERBOSE,
)
_HINT: Final = regex.compile(r"[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Written:
    """A date as written at plain[start:end]: its ISO readings, the first by the region's habit.

    More than one reading means that day and month can be told apart only by habit.
    """

    start: int
    end: int
    readings: tuple[str, ...]


def written(
    form: str, *, region: str = "US", low: int = 0, high: int | None = None
) -> Iterator[Written]:
    """Yield every date in plain form[low:high], in order; linear in its length."""
    high = len(form) if high is None else high
    if not _HINT.search(form, low, high):
        return
    for found in _ANY.finditer(form, low, high):
        readings = _readings(found, region)
        if readings:
            yield Written(found.start(), found.end(), readings)


def read(form: str, *, region: str = "US", thorough: bool = False) -> str | None:
    """Return the ISO date that `form` is, or None.

    `thorough` also asks dateparser, which knows more languages and forms but takes milliseconds.
    """
    for date in written(form, region=region):
        if (date.start, date.end) == (0, len(form)):
            return date.readings[0]
    return _thorough(form, region) if thorough else None


@lru_cache(maxsize=256)
def readings(form: str, region: str) -> tuple[str, ...]:
    """Return every ISO date that `form` can be read as."""
    for date in written(form, region=region):
        if (date.start, date.end) == (0, len(form)):
            return date.readings
    found = _thorough(form, region)
    return (found,) if found else ()


def _thorough(form: str, region: str) -> str | None:
    import dateparser

    order = "MDY" if region in {"US", "PH"} else "DMY"
    found = dateparser.parse(
        form,
        settings={"DATE_ORDER": order, "REQUIRE_PARTS": ["day", "month", "year"]},
    )
    return found.date().isoformat() if found else None


def _readings(found: regex.Match[str], region: str) -> tuple[str, ...]:
    part = {name[0]: value for name, value in found.groupdict().items() if value}
    year = _year(part["y"])
    if "a" in part:
        first, second = int(part["a"]), int(part["b"])
        orders = [(first, second), (second, first)]
        if region not in {"US", "PH"}:
            orders.reverse()
        days = [_iso(year, month, day) for month, day in orders]
    else:
        month = _MONTHS[part["n"]] if "n" in part else int(part["m"])
        days = [_iso(year, month, int(part["d"]))]
    return tuple(dict.fromkeys(day for day in days if day))


def _year(digits: str) -> int:
    """Two digits mean the years 1930 to 2029."""
    number = int(digits.strip("'"))
    return number if number >= 100 else number + (1900 if number >= 30 else 2000)


def _iso(year: int, month: int, day: int) -> str | None:
    try:
        return dt.date(year, month, day).isoformat()
    except ValueError:
        return None
