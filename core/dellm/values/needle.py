"""A value to look for: what kind it is, and the one form all its spellings share."""

from __future__ import annotations

import ipaddress
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import regex

from dellm.errors import SelectorError
from dellm.values import dates
from dellm.values.normal import plain

if TYPE_CHECKING:
    from collections.abc import Callable

WORD: Final = regex.compile(r"[^\W_]+")
_DIGIT: Final = regex.compile(r"[0-9]")
_EMAIL: Final = regex.compile(r'(?:"([^"@\s]+)"|([^\s@"<>(),:;]+))@([\w.-]+\.[\w-]{2,})')
_SPELLED_AT: Final = regex.compile(r"\s*[\[({<]\s*at\s*[\])}>]\s*|\s+at\s+")
_SPELLED_DOT: Final = regex.compile(r"\s*[\[({<]\s*dot\s*[\])}>]\s*|\s+dot\s+")
_HOST: Final = r"(?:[a-z0-9\u00a1-\uffff](?:[\w-]*\w)?\.)+(?:[a-z\u00a1-\uffff]{2,}|xn--[\w-]+)"
_URL: Final = regex.compile(
    rf"(?:(?:[a-z][a-z0-9+.-]*)://\S+|www\.\S+|{_HOST}(?::\d+)?(?:[/?#]\S*)?)"
)
# Endings that a bare dotted name has when it is a file, not a site.
_FILE_ENDING_WORDS: Final = """
bak c cc cfg conf cpp cs css csv doc docx exe gif go h html ini jpg js json log md mp3 mp4
pdf php pl png ppt ps py rb rs rtf sh sql svg tar toml ts txt xls xlsx xml yaml yml zip
"""
FILE_ENDINGS: Final = frozenset(_FILE_ENDING_WORDS.split())
KINDS: Final = frozenset(
    {"phone", "email", "card", "iban", "ip", "date", "url", "number", "code", "text"}
)


@dataclass(frozen=True, slots=True)
class Needle:
    """A value to look for.

    `kind` is one of KINDS; `key` is the form that all spellings of the value share: E.164 digits of
    a phone (national digits when the country can't be told), a casefolded mailbox, an ISO date, a
    host and path without scheme, digits, or words joined by one space. `original` is what was asked.
    """

    kind: str
    key: str
    original: str


def needle(value: str, *, region: str = "US", kind: str | None = None) -> Needle:
    """Read `value` as something to look for, in any spelling.

    `region` (ISO 3166 letters) reads phone numbers without a country code and dates like 3/4/1990.
    `kind` overrides the guess. Raises SelectorError when nothing is left to look for (blank,
    punctuation, wildcards), when `kind` is unknown, or when the value isn't of that kind.
    """
    form = plain(value).strip()
    if not any(
        character.isalnum() or unicodedata.category(character) == "So" for character in form
    ):
        raise SelectorError("The value has no letter, digit or symbol that could be looked for.")
    if kind is not None and kind not in KINDS:
        raise SelectorError(f"The kind must be one of {', '.join(sorted(KINDS))}.")
    for name, read in _READERS.items():
        if kind in (None, name):
            key = read(form, region, kind is not None)
            if key:
                return Needle(name, key, value)
    raise SelectorError(f"The value can't be read as a {kind}.")


def words(form: str) -> list[str]:
    """Return the words of a plain form, as a text needle compares them."""
    found: list[str] = WORD.findall(form)
    return found


def digits(form: str) -> str:
    """Return only the ASCII digits of a plain form."""
    return "".join(_DIGIT.findall(form))


def read_email(form: str) -> str | None:
    """Return the mailbox that `form` spells ("alice at acme dot io" too), or None."""
    spelled = form.removeprefix("mailto:").replace("%40", "@")
    if "@" not in spelled:
        spelled = _SPELLED_DOT.sub(".", _SPELLED_AT.sub("@", spelled))
    found = _EMAIL.fullmatch(spelled.strip("<>"))
    return f"{found[1] or found[2]}@{found[3]}" if found else None


def read_url(form: str) -> str | None:
    """Return host and path of an address, without scheme, www., final slash or percent-encoding."""
    form = without_tail(form)
    return url_key(form) if _URL.fullmatch(form) else None


def without_tail(form: str) -> str:
    """Return an address without the punctuation of the sentence around it."""
    form = form.rstrip(".,;:!?'*_")
    while form[-1:] in {")", "]"} and sum(map(form.count, ")]")) > sum(map(form.count, "([")):
        form = form[:-1].rstrip(".,;:!?'*_")
    return form


def url_key(form: str) -> str:
    """Return the shared form of something already known to be an address."""
    rest = form.partition("://")[2] or form
    host, mark, path = _partition(rest, "/?#")
    host = host.rpartition("@")[2].removeprefix("www.").rstrip(".")
    for port in (":80", ":443"):
        host = host.removesuffix(port)
    return host + plain(unquote(mark + path)).rstrip("/")


def _partition(text: str, marks: str) -> tuple[str, str, str]:
    cut = min((at for at in map(text.find, marks) if at >= 0), default=len(text))
    return text[:cut], text[cut : cut + 1], text[cut + 1 :]


def read_ip(form: str) -> str | None:
    """Return the canonical form of an IP address (zero padding dropped), or None."""
    parts = form.split(".")
    if len(parts) == 4 and all(part.isdecimal() and len(part) <= 3 for part in parts):
        form = ".".join(str(int(part)) for part in parts)
    try:
        return str(ipaddress.ip_address(form))
    except ValueError:
        return None


def read_iban(form: str) -> str | None:
    """Return an IBAN in lower case without spaces when its check digits hold, else None."""
    from stdnum import iban

    compact = regex.sub(r"[\s-]", "", form).removeprefix("iban").lstrip(":")
    return compact if len(compact) >= 15 and iban.is_valid(compact.upper()) else None


def read_card(form: str) -> str | None:
    """Return the 13 to 19 digits of a payment card when the Luhn check holds, else None."""
    from stdnum import luhn

    if not regex.fullmatch(r"[1-9][0-9](?:[ .-]{0,2}[0-9]){11,17}", form):
        return None
    number = digits(form)
    return number if luhn.is_valid(number) else None


def read_phone(form: str, region: str, *, asked: bool = False) -> str | None:
    """Return E.164 digits of a number that could be dialled from `region`, else None.

    Seven-digit local numbers give their own digits. Without "+", "00" or grouping a run of digits
    only counts as a phone when the numbering plan knows it, unless it was `asked` for as one.
    """
    import phonenumbers

    dialled = regex.sub(r"^(?:tel:|phone:?)\s*", "", form)
    if not regex.fullmatch(
        r"[+(]*[0-9][0-9 ().\-/\u00b7]*(?:\s*(?:;?ext\.?=?|extension|x|#)\s*[0-9]+)?", dialled
    ):
        return None
    dialled = regex.sub(r"^(?:00|011)\s*(?=[1-9])", "+", dialled)
    try:
        number = phonenumbers.parse(dialled, region)
    except phonenumbers.NumberParseException:
        return None
    bare = dialled.isdecimal()
    if not phonenumbers.is_possible_number(number) or (
        bare and not asked and not phonenumbers.is_valid_number(number)
    ):
        return digits(dialled) if asked and len(digits(dialled)) >= 5 else None
    national = phonenumbers.national_significant_number(number)
    reason = phonenumbers.is_possible_number_with_reason(number)
    if reason == phonenumbers.ValidationResult.IS_POSSIBLE_LOCAL_ONLY:
        abroad = dialled.lstrip("(").startswith("+")
        return f"{number.country_code}{national}" if abroad else _local(dialled, national, asked)
    return f"{number.country_code}{national}"


def _local(dialled: str, national: str, asked: bool) -> str | None:
    """Return a number without its area; only grouped like a phone, for any seven digits could be one."""
    return national if asked or regex.search(r"[0-9]{3}[-.][0-9]{4}", dialled) else None


def read_number(form: str) -> str | None:
    """Return the digits of a value made only of digits and separators, else None."""
    if not regex.fullmatch(r"[#$€£¥№(+\s]*[0-9](?:[0-9\s().,'/_-]*[0-9])?[)%$€£¥]?", form):
        return None
    cents = regex.fullmatch(r"[^0-9]*([0-9]{1,3}(?:[,' ]?[0-9]{3})*)\.([0-9]{1,2})[^0-9]*", form)
    if cents:
        return f"{digits(cents[1])}.{cents[2]}"
    return digits(form)


def read_code(form: str) -> str | None:
    """Return one token of letters and digits (KX-4471, api_key_v1) without "#" or "@", else None."""
    token = form.strip("#@.,;:!?()[]{}\"'<>")
    if regex.search(r"\s", token) or not regex.search(r"[0-9]", token):
        return None
    if not regex.search(r"\p{L}", token) or not regex.fullmatch(r"[\w\-#.:/+=~@&$!*%^|\\]+", token):
        return None
    return token


def read_text(form: str) -> str:
    """Return the words of any other value joined by one space; symbols stand in when it has none."""
    return " ".join(WORD.findall(form)) or "".join(form.split())


_READERS: Final[dict[str, Callable[[str, str, bool], str | None]]] = {
    "email": lambda form, _region, _asked: read_email(form),
    "date": lambda form, region, asked: dates.read(form, region=region, thorough=asked),
    "ip": lambda form, _region, _asked: read_ip(form),
    "card": lambda form, _region, _asked: read_card(form),
    "iban": lambda form, _region, _asked: read_iban(form),
    "url": lambda form, _region, asked: (
        read_url(form) if asked or not _looks_like_file(form) else None
    ),
    "phone": lambda form, region, asked: read_phone(form, region, asked=asked),
    "number": lambda form, _region, _asked: read_number(form),
    "code": lambda form, _region, _asked: read_code(form),
    "text": lambda form, _region, _asked: read_text(form),
}


def _looks_like_file(form: str) -> bool:
    """Whether a dotted name without scheme or path ends like a file (notes.md, main.py)."""
    return "/" not in form and form.rpartition(".")[2] in FILE_ENDINGS
