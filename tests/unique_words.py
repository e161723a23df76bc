"""Words that nothing else holds, by which what was erased is known wherever it turns up."""

from __future__ import annotations


def word_for(number: int) -> str:
    """Return a word that only the record with this number holds; none begins with another."""
    letters = ""
    for _ in range(4):
        number, rest = divmod(number, 26)
        letters += chr(ord("a") + rest)
    return f"cnry{letters}"
