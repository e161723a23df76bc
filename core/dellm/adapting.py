"""What adapters to a framework may use besides the public names: the rest of the core is private.

Checks of arguments that raise this library's own errors, and the values that its verbs take apart.
Each name is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arguments import (
    check_callable,
    check_choice,
    check_flag,
    check_iterable,
    check_number,
    check_text,
    whole_numbers,
)
from .database import without_password
from .loading import lazily
from .records import from_micros

if TYPE_CHECKING:
    from . import adopt_databases, adopt_messages, adopt_tables, answering, consent, foreign, wishes
    from .consent import Kind
    from .context import Choice
    from .embedding import embed
    from .item_rows import ALL_KNOWN, CACHED
    from .previews import Selection
    from .requests import Classifier, Target

_HOME = {
    "ALL_KNOWN": "item_rows",
    "CACHED": "item_rows",
    "Choice": "context",
    "Classifier": "requests",
    "Kind": "consent",
    "Selection": "memory",
    "Target": "requests",
    "embed": "embedding",
}


_MODULES = frozenset(
    {
        *("answering", "consent", "wishes"),  # how a user's request is understood and agreed to
        "foreign",  # documents that other systems hold
        *("adopt_databases", "adopt_messages", "adopt_tables"),  # reading what other tools keep
    }
)


__getattr__ = lazily(__name__, _HOME, _MODULES)


__all__ = [
    "ALL_KNOWN",
    "CACHED",
    "Choice",
    "Classifier",
    "Kind",
    "Selection",
    "Target",
    "adopt_databases",
    "adopt_messages",
    "adopt_tables",
    "answering",
    "check_callable",
    "check_choice",
    "check_flag",
    "check_iterable",
    "check_number",
    "check_text",
    "consent",
    "embed",
    "foreign",
    "from_micros",
    "lazily",
    "whole_numbers",
    "wishes",
    "without_password",
]
