"""Credentials in a text: keys and tokens of known formats, private keys, said passwords, card numbers.

Only what is hardly ever anything else: a format with a fixed beginning and length, a value that the
text itself calls a password or key, a card number with its issuer's prefix, length and check digit.
Ids, hashes, UUIDs and base64 are none. What has no such form ("the usual one, with a 7") is missed,
and so is a password that is a plain word without quotes. PINs of doors and lockers are let be: users
want them remembered.

`may_hold` is the cheap question asked of everything that is stored, `recognise` the exact one.
Formats: the providers' own documentation of their keys' prefixes, as of 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MARKER: Final = "[credential]"
_TOKEN_RUN: Final = b"a" * 16  # no key or token that is recognised is shorter
_DIGIT_RUN: Final = b"0" * 13
_AS_TOKEN: Final = bytes(
    ord("a") if chr(code).isascii() and (chr(code).isalnum() or chr(code) in "_-") else ord(" ")
    for code in range(256)
)
_AS_DIGIT: Final = bytes(
    ord("0") if ord("0") <= code <= ord("9") else ord(" ") for code in range(256)
)
_NO_DIGITS: Final = bytes(code for code in range(256) if not ord("0") <= code <= ord("9"))


@dataclass(frozen=True, slots=True)
class Credential:
    """What text[start:end] is: a kind such as "card number", never the value itself."""

    kind: str
    start: int
    end: int


def may_hold(data: bytes) -> bool:
    """Whether UTF-8 text may hold a credential; False is certain. About 5 ns for a byte."""
    if _TOKEN_RUN in data.translate(_AS_TOKEN):
        return True
    # Most texts have too few digits at all, which is told faster.
    many = len(data.translate(None, _NO_DIGITS)) >= len(_DIGIT_RUN)
    if many and _DIGIT_RUN in data.translate(_AS_DIGIT, b" -."):
        return True
    low = data.lower()
    if b"pass" in low or b"pwd" in low or b"-----BEGIN" in data:
        return True
    return b"@" in data and b"://" in data


def recognise(text: str) -> list[Credential]:
    """Return the credentials in a text, in order and without overlaps; it never raises."""
    if not may_hold(text.encode("utf-8", "surrogatepass")):
        return []
    found = sorted(_found(text), key=lambda one: (one.start, -one.end))
    kept: list[Credential] = []
    for one in found:
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def _found(text: str) -> Iterator[Credential]:
    for kind, anchors, pattern in _FORMATS:
        if any(anchor in text for anchor in anchors):
            for match in pattern.finditer(text):
                group = "value" if "value" in pattern.groupindex else 0
                yield Credential(kind, match.start(group), match.end(group))
    yield from _said(text)
    yield from _cards(text)


def redacted(text: str, found: list[Credential]) -> str:
    """Return the text with a marker in the place of each credential."""
    for one in reversed(found):
        text = text[: one.start] + MARKER + text[one.end :]
    return text


def _format(kind: str, anchors: str, pattern: str) -> tuple[str, tuple[str, ...], re.Pattern[str]]:
    return kind, tuple(anchors.split()), re.compile(rf"(?<![A-Za-z0-9_]){pattern}")


_END: Final = r"(?![A-Za-z0-9_])"
_FORMATS: Final = (
    (
        "private key",
        ("PRIVATE KEY",),
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[^-]|-(?!----))*(?:-----END [A-Z0-9 ]+-----)?"
        ),
    ),
    _format("AWS key id", "AKIA ASIA ABIA ACCA", rf"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}{_END}"),
    _format("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"gh[opusr]_[A-Za-z0-9]{{36,255}}{_END}"),
    _format("GitHub token", "github_pat_", rf"github_pat_[A-Za-z0-9_]{{36,255}}{_END}"),
    _format("GitLab token", "gl", r"gl(?:pat|dt|ptt|rt|soat|ft|cbt)-[A-Za-z0-9_\-]{20,}"),
    _format("Slack token", "xox xapp-", r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9\-]{16,}"),
    _format(
        "Slack webhook",
        "hooks.slack.com",
        r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9_/]{20,}",
    ),
    _format("Stripe key", "_live_ _test_", rf"[srw]k_(?:live|test)_[A-Za-z0-9]{{16,}}{_END}"),
    _format("webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}"),
    _format("Anthropic key", "sk-ant-", r"sk-ant-[A-Za-z0-9_\-]{20,}"),
    _format("OpenAI key", "sk-", r"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_\-]{20,}"),
    _format("OpenRouter key", "sk-or-", r"sk-or-v1-[0-9a-f]{40,}"),
    _format("secret key", "sk-", rf"sk-(?=[A-Za-z]*[0-9])[A-Za-z0-9]{{32,}}{_END}"),
    _format("Google key", "AIza", r"AIza[A-Za-z0-9_\-]{35}(?![A-Za-z0-9_\-])"),
    _format("Google token", "ya29. GOCSPX-", r"(?:ya29\.|GOCSPX-)[A-Za-z0-9_\-]{24,}"),
    _format("Hugging Face token", "hf_", rf"hf_[A-Za-z0-9]{{30,}}{_END}"),
    _format("Groq key", "gsk_", rf"gsk_[A-Za-z0-9]{{40,}}{_END}"),
    _format("xAI key", "xai-", rf"xai-[A-Za-z0-9]{{60,}}{_END}"),
    _format("Perplexity key", "pplx-", rf"pplx-[A-Za-z0-9]{{40,}}{_END}"),
    _format("Replicate token", "r8_", rf"r8_[A-Za-z0-9]{{37}}{_END}"),
    _format("SendGrid key", "SG.", r"SG\.[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{43}"),
    _format("npm token", "npm_", rf"npm_[A-Za-z0-9]{{36}}{_END}"),
    _format("PyPI token", "pypi-", r"pypi-AgE[A-Za-z0-9_\-]{50,}"),
    _format("DigitalOcean token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _format("Databricks token", "dapi", rf"dapi[0-9a-f]{{32}}(?:-[0-9])?{_END}"),
    _format("Shopify token", "shp", rf"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}{_END}"),
    _format("Vault token", "hvs. hvb.", r"hv[sb]\.[A-Za-z0-9_\-]{24,}"),
    _format("Linear key", "lin_api_", rf"lin_api_[A-Za-z0-9]{{40}}{_END}"),
    _format("Notion token", "ntn_", rf"ntn_[A-Za-z0-9]{{40,}}{_END}"),
    _format("Postman key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _format("Telegram token", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_\-]{33}(?![A-Za-z0-9_\-])"),
    _format("storage key", "AccountKey=", r"AccountKey=(?P<value>[A-Za-z0-9+/]{86}==)"),
    _format(
        "web token",
        "eyJ",
        r"eyJ[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{16,}",
    ),
    _format(
        "password in an address",
        "://",
        r"[a-z][a-z0-9+.\-]{1,20}://[^\s/:@\"'<>]{1,64}:(?P<value>[^\s/:@\"'<>]{3,128})@(?=[\w\[])",
    ),
    _format(
        "bearer token",
        "earer",
        r"[Bb]earer\s+(?P<value>(?=[A-Za-z_.\-]*[0-9])[A-Za-z0-9_.~+/\-]{24,}=*)",
    ),
)

_OPENING: Final = "\"'“‘`«„"
_QUOTED: Final = rf"[{_OPENING}](?P<quoted>[^\"'”’`»“\\\n]{{4,80}})\\?[\"'”’`»“]"
_BARE: Final = r"(?P<bare>[^\s\"'“”`<>{},;\\\udc80-\udcff]{4,80})"
# What a binary format has between a name and a text: see masking.readable.
_BINARY: Final = r"\udc80-\udcff"
_PACKED: Final = rf"(?<=[{_BINARY}])(?P<packed>[^{_BINARY}\n]{{4,80}})"
_NAMES: Final = r"pass(?:word|code|phrase|wort)|passwd|pwd"
_OWNER: Final = r"(?:my|our|the|his|her|their|your|its|mein|unser|das)"
_IS: Final = r"(?:is|was|are|=|:|->|ist)"
_FOR: Final = r"(?:\s+(?:for|to|of|on|at|in)\s+[^\n.,:;=!?\"]{1,40}?)?"
_SAID: Final = re.compile(
    rf"\b{_OWNER}\s+(?:[\w’'.\-]+\s+){{0,3}}?(?:{_NAMES}){_FOR}\s*{_IS}\s*"
    rf"(?:now\s+|still\s+|just\s+)?(?:{_QUOTED}|{_BARE})",
    re.IGNORECASE,
)
_ASSIGNED: Final = re.compile(
    rf"(?<![A-Za-z])(?:{_NAMES})\\?[\"']?\s*(?:=|:|[{_BINARY}]+)\s*(?:{_PACKED}|\\?{_QUOTED}|{_BARE})",
    re.IGNORECASE,
)
_KEY: Final = re.compile(
    r"(?<![A-Za-z])(?:api|secret|access|auth|client|private|signing|encryption|aws)"
    r"[ _\-]?(?:access[ _\-]?)?(?:key|token|secret)\\?[\"']?\s*(?:is|was|=|:|[\udc80-\udcff]+)\s*\\?[\"'“`]?"
    r"(?P<bare>[A-Za-z0-9_\-./+=~]{16,200})",
    re.IGNORECASE,
)
_TELLING_SIGN: Final = re.compile(r"[!#$%^&*+=?~|§€]|[^@]@[^@]|[a-z][A-Z]|_")
_NO_VALUE: Final = re.compile(
    r"[*•●.x]+|\W+|https?:.*|[^@\s]+@[\w\-]+\.\w{2,}|\$.*|%.*%|\[.*|required|string|null|none|true|false|hidden|redacted"
    r"|password|changed|optional|unknown|incorrect|invalid",
    re.IGNORECASE,
)


def _said(text: str) -> Iterator[Credential]:
    """Yield what a text itself calls a password or key."""
    for kind, pattern in (
        ("password", _SAID),
        ("password", _ASSIGNED),
        ("key", _KEY),
    ):
        for match in pattern.finditer(text):
            group = match.lastgroup or "bare"
            quoted = group != "bare"
            value = match[group].rstrip(".,;:?)]") if group == "bare" else match[group]
            if not _NO_VALUE.fullmatch(value) and (quoted or _tells(kind, value)):
                start = match.start(group)
                yield Credential(kind, start, start + len(value))


def _tells(kind: str, value: str) -> bool:
    """Whether a bare word looks like a secret and not like a word of the sentence."""
    digit = any(character.isdigit() for character in value)
    if kind == "key":
        return digit and len(value) >= 16 and any(character.isalpha() for character in value)
    return len(value) >= 4 and (digit or _TELLING_SIGN.search(value) is not None)


_CARD: Final = re.compile(r"(?<![\w.+\-/=#])[2-6](?:[ .\-]?[0-9]){11,18}(?![\w]|[.\-][0-9])")
_CARD_WORD: Final = re.compile(
    r"card|visa|master|amex|american express|discover|maestro|diners|credit|debit|cvv|cvc|expir"
    r"|\bexp\b|\bpan\b|karte|tarjeta|carte|carta",
    re.IGNORECASE,
)
# Lengths and beginnings of the issuers: ISO/IEC 7812 and the networks' published ranges.
_ISSUERS: Final = re.compile(
    r"4[0-9]{15}|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}"
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12}"
)
_GROUPED: Final = re.compile(
    r"[0-9]{4}([ .\-])[0-9]{4}\1[0-9]{4}\1[0-9]{4}|[0-9]{4}([ .\-])[0-9]{6}\2[0-9]{4,5}"
)


def _cards(text: str) -> Iterator[Credential]:
    """Yield card numbers: grouped as on a card, or named as a card's by the text around them."""
    for match in _CARD.finditer(text):
        number = re.sub(r"\D", "", match[0])
        if not _ISSUERS.fullmatch(number) or not _checks(number):
            continue
        around = text[max(0, match.start() - 60) : match.end() + 30]
        if _GROUPED.fullmatch(match[0]) or _CARD_WORD.search(around):
            yield Credential("card number", match.start(), match.end())


def _checks(number: str) -> bool:
    from stdnum import luhn

    return bool(luhn.is_valid(number))
