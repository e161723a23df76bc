"""Turn the object of a request into what a matcher should search for."""

from __future__ import annotations

import re
from collections import deque

from dellm.requests.phrases import MEMORY_PLACE
from dellm.requests.reading import MASK, mask, plain_copy
from dellm.requests.request import Target
from dellm.requests.shapes import ID, ID_NOUN, IDS, NEWEST, THREAD, TOTAL

MOST_IDS = 10_000
_COUNTED = "zero one two three four five six seven eight nine ten"
_NUMBERS = {word: number for number, word in enumerate(_COUNTED.split())}
_NUMBERS |= {"couple": 2, "couple of": 2, "few": 3, "several": 3}

_TAIL = re.compile(
    r"[\s,]+(?:please|pls|plz|any ?more|any ?longer|for me|now|right now|thanks?|thank you|completely|entirely|totally"
    r"|everywhere|too|also|as well|right away|immediately|permanently|forever|for good|asap|already|again|lol|haha|at once|altogether"
    r"|ok|okay|ever (?:existed|happened)|exists?|if you can|if possible|when you can|thx|will you|would you|going forward|from now on|for privacy|instead)\W*\Z"
)
_WHOLE_OF = re.compile(r"\s*(?:everything|all|anything) (?:from|in) ")
_ENDS_OBJECT = re.compile(
    r"\s*(?:\Z|[,;]|(?:after|before|once|when|as soon as|by|while|for|at|this|until|today|now|on|going|and (?:from|anywhere|everywhere))\b)"
)
_PERSON = re.compile(
    r"(?:my|our|his|her|their) (?:\w+ )?(?:ex|boss|manager|sister|brother|mother|mom|mum|father|dad|wife|husband|partner|son|daughter|girlfriend|boyfriend|friend|neighbou?r|colleague|coworker|roommate|flatmate|landlord|doctor|dentist|therapist|uncle|aunt|cousin|grandm\w+|grandf\w+|ex-\w+|fiancée?|teacher|lawyer|client|employer|dog|cat)(?: [A-Z]\w+)?\Z"
)
_WRAPPER = re.compile(
    r"""(?:(?:absolutely|literally|only|just|about)\ )*
    (?:(?:the\ |a\ |any\ |all\ |every\ |each\ |all\ (?:of\ )?the\ |that\ |those\ |my\ |your\ |this\ |last\ |some\ |earlier\ |old\ |saved\ |stored\ |personal\ |remaining\ |single\ |exact\ |previous\ |explicit\ )*
       (?:fact|note|memory|thing|bit|part|stuff|message|line|sentence|statement|info|information|detail|data|reference|mention|record|trace|entry|piece|knowledge|remark|comment|story|memories|entries|bits\ and\ pieces|allusion|notion|idea)s?
       (?:\ (?:of\ information|you\ have|you\ hold|you\ stored|you\ saved|you\ know|stored|saved|we\ had|you\ keep|in\ memory|you've\ got|you\ got))?
     |(?:everything|anything|all|whatever|what|all\ (?:of\ )?what|stuff|things)(?:\ else)?)
    (?:\ that)?
    (?:\ (?:i|we)(?:'ve|\ have|'d|\ had)?(?:\ (?:ever|just|already|once|previously|earlier|recently|may\ have|might\ have))*\ (?:said|told|mentioned|shared|wrote|gave|typed|sent|say|tell|discussed|talked|disclosed|revealed|written)(?:\ (?:to\ )?you)?(?:\ (?:earlier|before|yesterday|last\ \w+|today|just\ now))?
      |\ you(?:'ve|\ have|\ currently|\ still|\ might|\ may)*\ (?:know|knew|remember|learned|learnt|stored?|saved?|have|hold|got|keep|kept|recorded|noted|collected|gathered)(?:\ (?:stored|saved|on\ file))?)?
    (?:\ (?:about|of|on|that|where|when|saying|regarding|concerning|which\ says|that\ says|that\ reads|mentioning|containing|related\ to|relating\ to|involving|with|to\ do\ with|having\ to\ do\ with|connected\ to|referring\ to|says|saying|reads|reading|states|to|i\.e\.|namely|stating|for)\b
      (?:\ (?:i|we)\ (?:said|told\ you|mentioned|wrote|say|claimed|tell\ you)\b(?:\ that)?)?)
    \s*""",
    re.VERBOSE,
)
_SAID = re.compile(
    r"(?:(?:the fact(?= (?:i|we|my|he|she)\b) |the fact |i told you |i said |i mentioned |that )*(?:i(?:'ve| have)? (?:ever )?(?:told you|said|mentioned|wrote|tell you)(?: (?:that|about))?|that|the fact(?: that)?|about|of))\s+"
)
_STATEMENT = re.compile(
    r"(?:i|i'm|i've|i'd|i'll|we|we're|we've|he|she|they|it|there|he's|she's|they're|it's)\b|.{1,60}?\b(?:is|are|was|were|am|has|have|had|lives?|works?|owes?|likes?|hates?|loves?|passed|got|went|moved|wants?|needs?|plays?|died)\b"
)
_ENTITY = re.compile(
    r"(?:[A-Z][\w'’.&-]*\s?)+\Z|(?:Mr|Mrs|Ms|Dr|Prof|mr|mrs|ms|dr|prof)\b|(?:project|company|badge|the IBAN|IBAN|account|customer|client) (?:[A-Z]|\d)"
)
VALUE = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![\w])\+?\(?\d[\d ().\-/]{5,}\d(?!\w)|\b[A-Z]{2}\d{2}(?: ?\w{4}){3,7}(?: ?\w{1,3})?\b"
    r"|(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z_])[A-Za-z0-9]\w*(?:[-_.]\w+)*(?![\w-])|(?<![\w.-])\d{4,}(?![\w-])|\bhttps?://\S+|\bwww\.\S+"
    r"|(?<![\w])(?:\d{1,3}\.){3}\d{1,3}(?!\w)"
)
_LIST_BREAK = re.compile(
    rf",\s+(?:and|plus|or)\s+|,\s+(?=(?:the|my|our|any|all|his|her|their|every|that|a|an|delete|remove|erase)\s|[+\d{MASK}]|[A-Z])"
    rf"|\s+(?:and|plus|as well as|or)\s+(?=(?:also\s+)?(?:the|my|our|any|all|his|her|their|every|that|delete|remove|erase)\s|[+\d{MASK}]|[A-Z])"
    rf"|\s+(?:and|plus)\s+(?=(?:(?:exact|old|current|former|earlier)\s+)*(?:phrase|location|place|point|room|alias|extension|code|pin|label|password)\s)"
)

# "A, b, and c": the comma before the last says that every comma parts two things.
_LAST_OF_LIST = re.compile(r",[^,]+,\s+(?:and|or|plus)\s")
_EVERY_COMMA = re.compile(rf",\s+(?:(?:and|or|plus)\s+)?|{_LIST_BREAK.pattern}")
_ANY_BREAK = re.compile(r",\s+(?:(?:and|or|plus)\s+)?|\s+(?:and|or|plus)\s+|\s*:\s+")


def trim(message: str, start: int, end: int) -> tuple[int, int]:
    """Narrow a span to its object: without memory places, courtesies and outer punctuation."""
    plain = plain_copy(message[start:end])
    while True:
        size = len(plain)
        plain = plain.rstrip(" \t\n,;:.!?…()-–—")
        plain = _TAIL.sub("", plain)
        place = deque(MEMORY_PLACE.finditer(plain), maxlen=1)
        if (
            place
            and not _WHOLE_OF.match(plain)
            and place[0].start() > 0
            and _ENDS_OBJECT.match(plain, place[0].end())
        ):
            plain = plain[: place[0].start()]
        if len(plain) == size:
            break
    lead = len(plain) - len(plain.lstrip(" \t\n,;:.!?…()-–—"))
    lead += _leading_words(plain[lead:])
    opening = MEMORY_PLACE.match(plain, lead)
    if opening:
        lead = (
            opening.end() + len(plain[opening.end() :]) - len(plain[opening.end() :].lstrip(" ,:"))
        )
    return start + min(lead, len(plain)), start + len(plain)


def _leading_words(plain: str) -> int:
    found = re.match(
        r"(?:please |(?:track|a record|records|a note|notes|a log|hold|a copy|copies|tabs|any record) (?:of|on|about) |the following: ?|all of the following: ?|only |just |once and for all |right away )+(?=\S)",
        plain,
    )
    return found.end() if found else 0


def ids_of(plain: str) -> tuple[int, ...] | None:
    """Record numbers named in an object, in order; ``()`` for a range that is too long."""
    found = IDS.match(plain)
    if not found:
        return None
    numbers = [int(found[1] or found[2])]
    for joiner, number in re.findall(
        rf"\s*(,\s*and|,|and|&|to|-|–|through|until|thru|up to|plus|or)\s*(?:{ID_NOUN}[ _]?)?{ID}",
        found[3],
    ):
        last = int(number)
        if joiner in {"to", "-", "–", "through", "until", "thru", "up to"} and last > numbers[-1]:
            if last - numbers[-1] > MOST_IDS:
                return ()
            numbers.extend(range(numbers[-1] + 1, last + 1))
        else:
            numbers.append(last)
    return tuple(dict.fromkeys(numbers))


_SAYS_NOTHING = re.compile(
    r"\W*\w?\W*|\W*(?:an|and|are|as|at|be|but|by|for|from|had|has|have|he|her|his|if|in|is|it|its|me|my|no|"
    r"not|of|on|or|our|she|so|that|the|their|them|then|they|this|to|was|we|were|with|you|your)\W*",
    re.IGNORECASE,
)


def targets_of(shown: str, masked: str) -> tuple[str, tuple[Target, ...], bool]:
    """Scope, targets and whether to ask, for a trimmed object (as written, and masked plain)."""
    if re.fullmatch(
        r"(?:about )?(?:that|this|the|these|those) (?:thing|things|stuff|part|bit|one|info|information|memory|note|fact|message)",
        masked,
    ):
        return "vague", (Target("last", count=1),), True
    numbers = ids_of(masked)
    if numbers is not None:
        kind = (Target("ids", shown, ids=numbers),) if numbers else ()
        return "message_id", kind, not numbers
    if MASK in masked:
        said = [text for text in _quotes(shown, masked) if text]
        if any(map(_SAYS_NOTHING.fullmatch, said)):  # it stands in every other record
            return "quoted", (), True
        quotes = tuple(Target("quote", text) for text in said)
        return "quoted", (*quotes, *_beside_quotes(shown, masked)), not quotes
    for test in (_thread, _newest, _total):
        found = test(shown, masked)
        if found:
            return found
    return _named(shown, masked)


def _quotes(shown: str, masked: str) -> list[str]:
    return [
        shown[found.start() : found.end()].strip("\"'“”„«»‘’「」『』`<>› ‹.,")
        for found in re.finditer(f"{MASK}+", masked)
    ]


def _beside_quotes(shown: str, masked: str) -> tuple[Target, ...]:
    """Return what a list names beside its quotations: "the minute 6:35 AM and the point 'west arcade'"."""
    parts, start = [], 0
    for found in _LIST_BREAK.finditer(masked):
        parts.append((start, found.start()))
        start = found.end()
    plain = [(a, b) for a, b in [*parts, (start, len(masked))] if MASK not in masked[a:b]]
    return tuple(dict.fromkeys(one for a, b in plain for one in parts_of(shown[a:b])))


def names_a_message(plain: str) -> bool:
    """Tell whether an object says only that it is a message: "this note of mine", "what I said"."""
    alone = re.sub(r" of (?:mine|ours)\Z", "", plain.strip())
    return not TOTAL.match(alone) and bool(_WRAPPER.fullmatch(f"{alone} about"))


def _thread(shown: str, masked: str) -> tuple[str, tuple[Target, ...], bool] | None:
    return ("session", (Target("thread", shown),), False) if THREAD.match(masked) else None


def _total(_shown: str, masked: str) -> tuple[str, tuple[Target, ...], bool] | None:
    return ("all", (Target("everything"),), True) if TOTAL.match(masked) else None


def _newest(shown: str, masked: str) -> tuple[str, tuple[Target, ...], bool] | None:
    found = NEWEST.match(masked)
    if not found:
        return None
    word = found["count"] or "1"
    count = int(word) if word.isdigit() else _NUMBERS[re.sub(r"\s+", " ", word)]
    if re.match(r"(?:minute|hour|day|week)", found["noun"] or ""):
        count = 0
    about = re.search(r"\b(?:about|regarding|concerning|on) (?!this\b|that\b|it\b|me\b)", masked)
    text = shown[about.end() :] if about else ""
    return "last", (Target("last", text, count=count),), False


def _named(shown: str, masked: str) -> tuple[str, tuple[Target, ...], bool]:
    skip = _WRAPPER.match(masked)
    wrapped = bool(skip and skip.end() < len(masked))
    start = skip.end() if skip and wrapped else 0
    said = _SAID.match(masked, start)
    stated = bool(
        said
        and said.end() < len(masked)
        and re.search(r"\b(?:that|where|fact|said|told|mentioned)\b", masked[: said.end()])
    )
    if (
        said
        and said.end() < len(masked)
        and (stated or wrapped or masked.startswith(("about", "of")))
    ):
        start = said.end()
    text, plain = shown[start:], masked[start:]
    if not re.search(r"\w\w", plain):
        return "vague", (Target("last", count=1),), True
    says = re.search(
        r"\b(?:that|where|saying|says|reads|states|fact)\b", masked[:start]
    ) or re.match(r"(?:i|i'm|i've|we|we're|we've)\b", plain)
    if says and _STATEMENT.match(plain):
        return "fact", (Target("meaning", text), *_values(text)), False
    return _listed(text)


def _listed(text: str) -> tuple[str, tuple[Target, ...], bool]:
    found: list[Target] = []
    breaks = _EVERY_COMMA if _LAST_OF_LIST.search(text) else _LIST_BREAK
    for part in breaks.split(text):
        piece = re.sub(
            r"(?i)\A(?:and|also|plus|delete|remove|erase)\s+", "", part.strip(" ,;.")
        ).strip()
        if not piece:
            continue
        if VALUE.fullmatch(piece):
            found.append(Target("value", piece))
            continue
        found.append(Target("description", piece))
        found.extend(_values(piece))
    entity = any(t.kind == "value" for t in found[:1]) or bool(
        _ENTITY.match(text) or _PERSON.match(text)
    )
    short = bool(re.fullmatch(r"\d{1,3}", text))
    return "entity" if entity else "topic", tuple(dict.fromkeys(found)), short or not found


def parts_of(text: str) -> tuple[Target, ...]:
    """Return every part of a list that has a name or a number in it, and the values in that."""
    parts = [one.strip(" ,;.") for one in _ANY_BREAK.split(text)]
    telling = [one for one in parts if any(c.isupper() or c.isdigit() for c in one)]
    found = [(Target("description", one), *_values(one)) for one in telling]
    return tuple(dict.fromkeys(target for several in found for target in several))


def _values(text: str) -> tuple[Target, ...]:
    return tuple(Target("value", found.group().strip(" -/().")) for found in VALUE.finditer(text))


def targets_of_statement(shown: str) -> tuple[str, tuple[Target, ...]]:
    """Scope and targets of what a pronoun stands for: an earlier sentence, or its topic."""
    plain = plain_copy(shown)
    lead = re.match(
        r"\W*(?:(?:hey|hi|hello|ok|okay|so|well|as for|regarding|about|concerning|by the way|btw|earlier|i told you|i (?:just )?said|i mentioned|you (?:still )?know|that|also|thanks|fyi|remember(?: when)?|the fact|and|never ?mind),?:?\s+)+",
        plain,
    )
    start = lead.end() if lead and lead.end() < len(plain) else 0
    masked = mask(plain)
    quoted = [text for text in _quotes(shown, masked) if text]
    if quoted and len(re.findall(r"\w+", masked)) <= 8:
        return "quoted", tuple(Target("quote", text) for text in quoted)
    text = shown[start:].strip(" ,;:.!?-–—\n\t")
    if NEWEST.match(plain[start:]) or NEWEST.match(plain):
        return "last", (Target("last", count=1),)
    if _STATEMENT.match(plain[start:]) and not re.match(
        r"the [\w ]{1,40} (?:i|we) (?:gave|told|sent|shared|mentioned)\b", plain[start:]
    ):
        return "fact", (Target("meaning", text), *_values(text))
    return _listed(text)[:2]
