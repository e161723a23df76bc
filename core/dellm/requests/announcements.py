"""Statements that something is over: worth an offer to delete, never a deletion.

"That code is retired", "the old number has been disconnected", "I moved away from Acme".
"""

from __future__ import annotations

import re

from dellm.requests.phrases import PERSONAL_HEADS, TASK_NOUNS
from dellm.requests.reading import Sentence
from dellm.requests.request import Target
from dellm.requests.targets import parts_of

_OVER = (
    r"(?:retired|disconnected|cancelled|canceled|closed|revoked|deactivated|expired|dead|obsolete|outdated|out of date|void"
    r"|invalid|decommissioned|discontinued|replaced|deleted|removed|erased|purged|history|disabled|terminated|withdrawn"
    r"|out of service|out of use|no more|useless|superseded|scrapped|shut down|switched off|defunct)"
)
_OVER_NOW = re.compile(
    rf"(?P<obj>\b(?:that|the|my|our|his|her|their|this|those|these)\b[^,;:]{{1,100}}?) (?:is|are|was|were|has been|have been|got|'s|remains?|stays?)"
    rf"(?: (?:now|all|already|officially|since|finally|just|been|being))* (?:{_OVER}|no longer (?:in use|valid|active|mine|current|used|relevant|needed|correct|true|ours|available|in service)"
    rf"|not (?:valid|active|in use|mine|current|relevant|true) any ?(?:more|longer))\b"
    r"|(?P<obj2>\b(?:that|the|my|our|his|her|their|this)\b[^,;:]{1,100}?) (?:isn'?t|aren'?t|wasn'?t) (?:valid|active|in use|mine|current|relevant|true|needed|used|working|correct)(?: any ?(?:more|longer))\b"
)
_NO_LONGER = re.compile(
    r"(?P<obj>\b(?:that|the|my|our|his|her|their|this)\b[^,;:]{1,100}?) (?:no longer|doesn'?t|does not|don'?t) (?:works?|exists?|applies|apply|belongs? to me|reach(?:es)? me)\b(?: any ?more)?"
)
_LEFT = re.compile(
    r"\b(?:i|we)(?:'ve| have|'m| am|'re| are)?(?: (?:just|recently|finally|already|now|also))* "
    r"(?:(?:moved (?:away from|out of)|left (?!(?:my|the|it|in|on|a|some|for|at|home|early|late|work|you|to|and|because|him|her|them|this|that|our|his|off|out|over)\b)|left (?=(?:my|the|our) (?:\w+ )?(?:job|company|firm|team|church|club|school|gym|husband|wife|partner|position|role|group))|quit|stopped (?:working (?:at|for)|using|seeing|going to)|no longer (?:work (?:at|for)|use|live (?:in|at)|own|have|see|go to|drive|need)"
    r"|(?:do not|don'?t) (?:work (?:at|for)|use|live (?:in|at)|own|have|see|go to)|broke up with|(?:am )?not (?:a member of|with|at)|no longer (?:a member of|with|at|in)"
    r"|cancelled|canceled|closed|disconnected|got rid of|gave up|sold|(?:have )?switched from)) "
    r"(?P<obj>[^,;:.!?]{2,80})"
)
_GIVEN_AWAY = re.compile(
    r"(?:i (?:shouldn'?t|should not) have (?:told you|mentioned|shared)|i regret (?:telling you|mentioning|sharing))(?: (?:about|that))? (?P<obj>[^,;:.!?]{2,80})"
)
_LOGGED = re.compile(
    r"\A\W*(?:(?:confirmed|done|noted|ok|okay|logged)\W+)?(?:deleted|erased|removed|purged|wiped|cleared) "
    r"(?![^;.!?]*\b(?:is|are|was|were|remains?|stays?|should|must|means?|will|can|cannot|do|does|did|not|has|have|had)\b)"
    r"(?P<obj>[^;!?]{3,200}?)"
    r"(?= (?:from|at|per|because) |[;.]\s|[;.]?\Z)"
    r"|\b(?:deletion|delete|erasure|removal) request (?:was |is |has been )?(?:received|recorded|logged|entered|noted|processed|executed|completed|carried out)"
    r"(?: for|:)(?: (?:remove|delete|erase))? (?P<obj2>[^;!?]{3,200}?)(?=[;.]\s|[;.]?\Z)"
)
# Without "the" or "my" before it, only what is said of a memory tells: no file "is closed" there.
_GONE_FROM_MEMORY = re.compile(
    r"(?:\A|[:;]\s+|, (?:and )?)(?P<obj>[^;:.!?]{3,200}?),? (?:(?:was|were|is|are|has been|have been) )?(?:now |fully )?"
    r"(?:deleted|erased|removed|purged|wiped|cleared) from [\w' -]{0,40}?\b(?:memory|memories|notes|records)\b"
    r"|(?:\A|[:;]\s+|, (?:and )?)(?P<obj2>[^,;:.!?]{3,80}?) (?:(?:is|are|has been|have been|remains?|stays?) (?:now |fully )?(?:deleted|erased|purged|wiped))\b"
)
_TREATED = re.compile(
    rf"(?P<obj>\b(?:that|the|my|our|his|her|their|this|those|these)\b[^,;:]{{1,100}}?) (?:should|must|is to|are to) be"
    rf" (?:treated|considered|regarded) as (?:now )?(?:{_OVER}|historical|unavailable)\b"
)
_DOING = re.compile(
    r"\b(?:i|we)(?:'m| am|'re| are)(?: (?:also|now|hereby|just))* (?:deleting|erasing|removing|purging|retiring|wiping) (?P<obj>(?:my|our|the|that|this|those|these)\b[^;:.!?]{2,120})"
    r"|\A\W*(?:logging|marking|noting|recording) (?P<obj2>[^;:.!?]{2,120}?) as (?:now )?(?:deleted|erased|removed|purged|retired)\b"
)
_ASKS = re.compile(
    r"\W*(?:please |can you |could you |hey |and |so )*(?:how|what|where|when|who|why|which|do|does|did|is|are|was|were|can|could|would|will|tell me|show me|if|give me|find|explain|note that)\b"
)
_STILL_OPEN = re.compile(
    r"\b(?:i|we) (?:do not|don'?t)\b(?!.*\bany ?(?:more|longer)\b)|\bnot (?:a member|with|at|in)\b(?!.*\bany ?(?:more|longer)\b)"
)


_PATTERNS = (
    _LOGGED,
    _NO_LONGER,
    _OVER_NOW,
    _LEFT,
    _GIVEN_AWAY,
    _TREATED,
    _GONE_FROM_MEMORY,
    _DOING,
)
_OFFERED = frozenset(
    {"account", "accounts", "phone", "subscription", "email", "emails", "contacts"}
)


def announced(sentence: Sentence, message: str) -> tuple[Target, ...]:
    """Find what a sentence says to be over, as descriptions; nothing for questions and all others.

    Of a list each part with a name or a number in it is one, and so is each value.
    """
    if sentence.question or _ASKS.match(sentence.plain):
        return ()
    for pattern in _PATTERNS:
        found = pattern.search(sentence.plain)
        if found and not _STILL_OPEN.search(found.group() + sentence.plain[found.end() :]):
            start, end = found.span("obj" if found["obj"] else "obj2")
            if _is_about_a_task(sentence.plain[start:end]):
                return ()
            said = message[sentence.start + start : sentence.start + end].strip()
            return tuple(dict.fromkeys((Target("description", said), *parts_of(said))))
    return ()


def _is_about_a_task(thing: str) -> bool:
    words = re.findall(r"[\w-]+", thing)
    return bool(words) and words[-1] in TASK_NOUNS - PERSONAL_HEADS - _OFFERED
