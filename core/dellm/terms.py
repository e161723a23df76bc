"""The one tokenizer of the keyword index, so that both databases hold the same terms.

A term is a run of letters, digits and underscores after compatibility folding (NFKD), without
combining marks and case; characters of scripts written without spaces are terms of their own.
"""

from __future__ import annotations

import re
import unicodedata

# Characters of a term that count; the rest of a longer one is cut. PostgreSQL takes 2,046 bytes.
LONGEST = 500
# Maps each ASCII character to itself in lower case, or to a space where it is no part of a term.
_ASCII = "".join(
    chr(code).lower() if chr(code).isalnum() or chr(code) == "_" else " " for code in range(128)
)
# Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar: no spaces between words
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_TOKEN = re.compile(rf"[{_UNSPACED}\U00020000-\U0003ffff]|[^\W{_UNSPACED}\U00020000-\U0003ffff]+")


def terms(text: str) -> list[str]:
    """Return the terms of `text` in order, repeated ones repeated."""
    ascii_only = text.isascii()
    found = text.translate(_ASCII).split() if ascii_only else _TOKEN.findall(_folded(text))
    if len(text) > LONGEST and max(map(len, found), default=0) > LONGEST:
        return [term[:LONGEST] for term in found]
    return found


def distinct(text: str) -> list[str]:
    """Return each term of `text` once, in order of first use."""
    return list(dict.fromkeys(terms(text)))


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(
        letter
        for letter in plain
        if not unicodedata.combining(letter) and not "\ud800" <= letter <= "\udfff"
    )
