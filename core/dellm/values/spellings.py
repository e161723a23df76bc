"""Byte strings a value may stand as in a raw file."""

from __future__ import annotations

import base64
import datetime as dt
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from dellm.values.normal import plain

if TYPE_CHECKING:
    from dellm.values.needle import Needle

_SHORTEST: Final = 4
# Base64 mixes letters freely, so that shorter pieces stand in unrelated data.
_SHORTEST_BASE64: Final = 6


def byte_spellings(needle: Needle) -> list[bytes]:
    """Return the byte strings to look for when scanning raw files, each of at least 4 bytes.

    The original and the usual written forms of the value, each as UTF-8, UTF-16 (both orders), JSON
    with escapes, percent-encoded, and base64 at its three alignments. At most a few hundred. Bytes are
    compared as they are, so spellings outside this list (other case or separators), values under
    four bytes in an encoding, and compressed pages are not seen: scan decoded values for those.
    """
    found: dict[bytes, None] = {}
    for text in spellings(needle):
        utf8 = text.encode("utf-8", "surrogatepass")
        forms = [
            utf8,
            text.encode("utf-16-le", "surrogatepass"),
            text.encode("utf-16-be", "surrogatepass"),
            json.dumps(text)[1:-1].encode(),
            quote(utf8, safe="").encode(),
            quote(utf8, safe="").lower().encode() if "%" in quote(utf8, safe="") else utf8,
        ]
        found.update(dict.fromkeys(form for form in forms if len(form) >= _SHORTEST))
        found.update(dict.fromkeys(_base64(utf8)))
    return list(found)


def spellings(needle: Needle) -> list[str]:
    """Return the usual written forms of the value, without repeats, the original first."""
    original = needle.original.strip()
    forms = [original, *_FORMS.get(needle.kind, _cased)(needle)]
    return list(dict.fromkeys(form for form in forms if form))


def _base64(data: bytes) -> list[bytes]:
    """Return what `data` looks like inside a base64 text, whatever stands before and after it."""
    pieces = []
    for shift, lost in ((0, 0), (1, 2), (2, 3)):
        whole = (shift + len(data)) * 8 // 6
        encoded = base64.b64encode(b"\0" * shift + data)[lost:whole]
        pieces += [encoded, encoded.translate(bytes.maketrans(b"+/", b"-_"))]
    return [piece for piece in pieces if len(piece) >= _SHORTEST_BASE64]


def _cased(needle: Needle) -> list[str]:
    original = needle.original.strip()
    return [original.lower(), original.upper(), original.title(), plain(original), needle.key]


def _phone(needle: Needle) -> list[str]:
    import phonenumbers

    forms = [needle.key]
    try:
        number = phonenumbers.parse(f"+{needle.key}", None)
    except phonenumbers.NumberParseException:
        return forms
    national = phonenumbers.national_significant_number(number)
    styles = phonenumbers.PhoneNumberFormat
    forms += [
        phonenumbers.format_number(number, style)
        for style in (styles.E164, styles.INTERNATIONAL, styles.NATIONAL)
    ]
    if len(needle.key) > 7:
        forms.append(national)
    if len(national) == 10:
        area, exchange, line = national[:3], national[3:6], national[6:]
        forms += [gap.join((area, exchange, line)) for gap in "-. "]
    return forms


def _fours(needle: Needle) -> list[str]:
    key = needle.key.upper()
    parts = [key[at : at + 4] for at in range(0, len(key), 4)]
    return [key, " ".join(parts), "-".join(parts), key.lower()]


def _date(needle: Needle) -> list[str]:
    day = dt.date.fromisoformat(needle.key)
    month = _MONTHS[day.month - 1]
    return [
        needle.key,
        f"{day:%Y%m%d}", f"{day:%Y/%m/%d}", f"{day:%d/%m/%Y}", f"{day:%m/%d/%Y}", f"{day:%d.%m.%Y}",
        f"{day.month}/{day.day}/{day.year}", f"{day.day}/{day.month}/{day.year}",
        f"{month} {day.day}, {day.year}", f"{day.day} {month} {day.year}",
    ]  # fmt: skip


def _separated(needle: Needle) -> list[str]:
    compact = "".join(filter(str.isalnum, needle.key))
    return [*_cased(needle), compact, compact.upper()]


_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_FORMS: Final = {
    "phone": _phone,
    "card": _fours,
    "iban": _fours,
    "date": _date,
    "code": _separated,
    "number": _separated,
}
