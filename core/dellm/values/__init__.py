"""Values in any spelling: what a user names, found in a text with its exact place.

`needle` reads what is to be looked for, `find` says where it stands, `redact` and `redact_clause`
take it out, `clauses` parts a text as that does, `recognise` lists the values of a text, `described` reads "Sam's phone number",
`named_parts` "the phrase cinder soft".
"""

from __future__ import annotations

from dellm.values.aliases import aliases
from dellm.values.clauses import clauses, redact, redact_clause
from dellm.values.described import Described, described, value_matches_description
from dellm.values.kinds import READ, Found, recognise, telling
from dellm.values.named import named_parts, without_pointing
from dellm.values.needle import Needle, needle
from dellm.values.patterns import let_go
from dellm.values.sentences import sentences
from dellm.values.spans import Span, contains, find, quick
from dellm.values.spellings import byte_spellings

__all__ = [
    "READ",
    "Described",
    "Found",
    "Needle",
    "Span",
    "aliases",
    "byte_spellings",
    "clauses",
    "contains",
    "described",
    "find",
    "let_go",
    "named_parts",
    "needle",
    "quick",
    "recognise",
    "redact",
    "redact_clause",
    "sentences",
    "telling",
    "value_matches_description",
    "without_pointing",
]
