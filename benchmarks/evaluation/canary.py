"""The worst-case leaker: a model that repeats everything it was sent.

If an answer of it does not hold a value, the value was not in its context: no model could leak it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dellm.models import checked_messages


class Canary:
    """Repeats its messages, less the system's, each line once; deterministic and offline."""

    name = "canary"
    provider = "local"

    def complete(self, messages: Sequence[Mapping[str, str]], /) -> str:
        """Return all lines of the messages; raise InvalidInput for messages without content."""
        said = [one["content"] for one in checked_messages(messages) if one["role"] != "system"]
        lines = dict.fromkeys(line.strip() for text in said for line in text.splitlines())
        return "\n".join(line for line in lines if line)
