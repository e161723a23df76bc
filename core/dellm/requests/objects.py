"""Judge the object of an English deletion verb: something remembered, or something to work on.

The rule is default-positive: what somebody tells an agent memory to delete is a request unless it
is a task (a file, a list, a calendar entry, a stain) or an idiom. Personal things are not listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from dellm.requests.english import Clause
from dellm.requests.phrases import (
    ABOUT_MEMORY,
    FILE_NAME,
    IDIOM,
    MEMORY_PLACE,
    TASK_NOUNS,
    is_forgetting,
    is_loose,
)
from dellm.requests.reading import MASK, Sentence
from dellm.requests.shapes import IDS, NEWEST, PRONOUN, THREAD, TOTAL
from dellm.requests.tasks import PRECISE, is_informative, is_organised, is_task, is_task_place

_NO_STORE = re.compile(
    r"(?:this|the following|these)\s*(?::|\Z)|(?:what|whatever|anything|everything|things?)(?: that)? (?:i(?:'m| am|'ll| will)?|we(?:'re|'ll)?)\b.{0,24}?\b(?:next|about to|going to|from now|now|say|tell|write|type)\b"
    r"|(?:this|our|the|these) (?:chat|conversation|session|thread|message|messages)|anything\Z|any of (?:this|it)|from now|(?:this|that) (?:next|part)|what follows|me (?:waiting|posted)|in mind|it (?:simple|short|up|brief|secret)"
)
_GENERIC = re.compile(
    r"(?:things?|something|stuff|memories|messages?|conversations?|data|information|facts?|people|specific \w+|individual \w+|single \w+|certain \w+"
    r"|old \w+|(?:a|an|one|some|any) (?!(?:of my|of the))[\w ]{0,30}|anything|what|how|on command|by|permanently|selectively|at will|user data|when|if|personal data|someone|parts?)(?:\W*\Z| (?:from|in|on|about|if|when|for|you|i (?:ask|tell|want|said|say)|that i|at|by|on|forever|later|once|after|like|or)\b)"
)
_POSSESSIVE = re.compile(
    r"(?:(?:all|any|any of|both|each of|all of|only|that|the) )?(?:my|our|his|her|their|your)\b|[a-z]+'s\b"
)
_QUOTING_TASK = re.compile(
    r"(?:words?|strings?|characters?|letters?|tags?|columns?|lines? of code|functions?)\W*\Z"
)
_NAME = re.compile(r"[A-Z][\w'’&.-]*[\w]")
_VALUE = re.compile(
    r"[^\s@]+@[^\s@]+\.\w|\d[\d\s().+-]{4,}\d|\b(?=\w*\d)(?=[\w-]*[a-z_-])[\w-]{4,}\b|\b\d{4,}\b|\w://|\bwww\."
)
_ORGANISED = re.compile(
    r"\b(?:(?:shopping|grocery|to[ -]?do|guest|wish|play) ?lists?|calendar|cart|playlist|reminders?)\b"
)
_SCHEDULED = re.compile(
    r"(?:my |the |our )?(?:\d{1,2} ?(?:am|pm|o'clock)|\d{1,2}:\d\d(?: ?[ap]m)?)(?= (?:with|meeting|call|appointment|slot|one)\b|\Z)"
)
_ORDINAL = re.compile(
    r"(?:the )?(?:first|second|third|fourth|fifth|\d+(?:st|nd|rd|th)|last|next|final|top|bottom|middle)\b"
)
_CASUAL = re.compile(
    r"(?:drop|clear|los[et]|cut|kill|pull|tak|toss|dump|str[iu]ck|strike|throw|withdr|chuck|bin|clean|part)"
)
_COMMAND = re.compile(
    r"\b(?:commands?|instructions?|requests?|questions?|orders?|prompts?|rules|task)\Z"
)
_PLEASE = re.compile(r"\b(?:please|pls|plz|kindly)\b")
_REPORTED = re.compile(r"\b(?:says?|said|thinks?|believes?|states?|told me|requires?)\b")
_RECORD_OF = re.compile(
    r"\A(?:track|a record|records?|a note|notes?|a log|hold|a copy|copies|tabs|any record) (?:of|on|about) "
)
_BARE = re.compile(r"[^a-z]*(?:[a-z]+,? )*?(?:do not|don'?t|never)\b")
_OVER = re.compile(r"\b(?:any ?more|any ?longer|longer)\b")
_PASSING = frozenset(
    ["know", "have", "use", "save", "store", "record", "log", "track", "recall", "hold"]
)
_USING = re.compile(r"(?:have|having|us(?:e|ing)|record(?:ing)?|log(?:ging)?|track(?:ing)?)\Z")
_NOT_A_FACT = re.compile(
    r"to \w|(?:about )?(?!everything|anything|something)\w+ing\b|you\b|your\b(?! (?:memory|memories|notes?))|not\b|nothing\b"
    r"|(?:what|who|where|how|when) (?!i\b|i'|we\b|we'|my\b|our\b|you (?:know|have|stor|remember|learn|heard|saw|were told))"
)
_NOT_AN_OBJECT = re.compile(
    r"(?:\w+ )?(?:key|button|function|command|verb|option) (?:is|was|does|doesn)|(?:is|are|was|were|has|means)\b|everything you (?:think|thought)\b"
)
_GOES_ON = re.compile(
    r"\s*(?:[,;]|and|[-–—]\s)\s*(?!(?:please|pls|thanks|keep|leave|but|ok|thank|you can|delete|erase|remove|and (?:keep|delete|erase))\b)[\w']"
)
_CONTACT = re.compile(
    r"[^\s@]+@[^\s@]+\.\w+|(?:https?://|www\.)\S+|\+?\(?\d[\d ().+/-]{3,}\d|(?:\d{1,3}\.){3}\d{1,3}"
)
_JOINT = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
_TOKEN = re.compile(r"(?!(?:19|20)\d\d\Z)(?=\S*\d)[\w.+/-]{4,}")
_ASKS_NEXT = re.compile(
    r"[\s,;–—-]*(?:(?:and|also|then|now|please|just|instead|after that)[\s,]+)*"
    r"(?:tell|show|give me|explain|remind|help|list|summari[sz]e|translate|answer|write"
    r"|what|how|when|where|who|why|which|can|could|do|does|did|is|are|will|would)\b"
)
_OF_THE_USER = re.compile(r"\b(?:i|i'm|i've|my|we|our|his|her|their|everything|anything)\b")
_SEVERAL = re.compile(r"(?:all|any|every|everything|anything|whatever)\b")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a clause is a request, and whether the rules would stand by it."""

    accepted: bool
    certain: bool


YES, LIKELY = Verdict(accepted=True, certain=True), Verdict(accepted=True, certain=False)
NO, UNLIKELY = Verdict(accepted=False, certain=True), Verdict(accepted=False, certain=False)


@dataclass(frozen=True, slots=True)
class Case:
    """A clause with its object: ``thing`` plain and trimmed, ``shown`` as the user wrote it.

    ``antecedent`` says that the message names, before the clause, what a pronoun could mean.
    """

    sentence: Sentence
    clause: Clause
    shown: str
    thing: str
    antecedent: bool

    @property
    def asked(self) -> str:
        """The clause up to and with its verb."""
        return self.sentence.plain[self.clause.start : self.clause.verb_end]

    @property
    def after(self) -> str:
        """The sentence behind the object."""
        return self.sentence.plain[self.clause.object_end :]

    @property
    def forgetting(self) -> bool:
        """Whether the verb is one of the mind."""
        return is_forgetting(self.clause.verb)

    @property
    def loose(self) -> bool:
        """Whether the verb has many other uses."""
        return is_loose(self.clause.verb)

    @property
    def owned(self) -> bool:
        """Whether the object belongs to somebody ("my ...", "Ann's ...")."""
        return bool(_POSSESSIVE.match(self.thing))

    @property
    def told(self) -> bool:
        """Whether the object speaks of what was told or is remembered."""
        return bool(ABOUT_MEMORY.search(self.thing))


def judge(case: Case) -> Verdict:
    """Judge by the first check that has an opinion; a thing of no special shape comes last."""
    for check in _CHECKS:
        verdict = check(case)
        if verdict is not None:
            return verdict
    return _judge_thing(case)


def _frame(case: Case) -> Verdict | None:
    if case.clause.frame == "not_keep":
        return _judge_not_keep(case)
    if case.clause.frame == "all":
        return YES
    if case.clause.frame == "pretend":
        return YES if case.thing or case.antecedent else LIKELY
    return NO if _is_mere_question(case) else None


def _pronoun(case: Case) -> Verdict | None:
    if case.thing and not PRONOUN.match(case.thing):
        return None
    if MEMORY_PLACE.search(case.sentence.plain[case.clause.object_start :]):
        return YES
    if case.forgetting and not case.antecedent and _says_more(case.after):
        return NO
    if case.antecedent:
        return _judge_pronoun_with_antecedent(case)
    if case.loose:
        emphatic = case.thing and re.match(r"(?:wipe|scratch|strike|nuke)", case.clause.verb)
        return LIKELY if emphatic else UNLIKELY
    return LIKELY


def _judge_pronoun_with_antecedent(case: Case) -> Verdict:
    if (
        case.loose
        and case.thing
        and re.match(r"(?:drop|cut|lose|pull|take|kill)", case.clause.verb)
    ):
        return UNLIKELY
    return LIKELY if case.loose and not case.thing else YES


def _says_more(after: str) -> bool:
    words = re.sub(r"\b(?:please|thanks?|thank you|now|ok|okay|pls|and|keep|don't)\b", "", after)
    return bool(re.search(r"\w+\W+\w+", words))


def _reported(case: Case) -> Verdict | None:
    if case.thing.startswith("nothing"):
        return NO
    if case.clause.frame == "passive" and _REPORTED.search(case.thing) and not case.told:
        return NO
    return None


def _numbered(case: Case) -> Verdict | None:
    if not IDS.match(case.thing) or is_task_place(case.thing):
        return None
    return None if is_task(re.sub(r"#?\d.*", "", case.thing)) else YES


_CLOCK = re.compile(r"\d{1,2}:\d\d(?: ?[ap]\.?m)?")


def _clock(case: Case) -> Verdict | None:
    """Accept a mere time where something else is already to be forgotten; alone it is an alarm."""
    return YES if case.antecedent and _CLOCK.fullmatch(case.thing) else None


def _in_memory(case: Case) -> Verdict | None:
    start, end = case.clause.start, case.clause.object_end
    if not MEMORY_PLACE.search(case.sentence.plain[start : end + 60]):
        return None
    return NO if FILE_NAME.search(case.thing) else YES


def _quote(case: Case) -> Verdict | None:
    place = case.thing.find(MASK)
    if place < 0:
        return None
    before, behind = case.thing[:place], case.thing[place:].lstrip(MASK) + case.after
    if _QUOTING_TASK.search(before) or is_task_place(behind[:80]):
        return NO
    nouns = [word for word in re.findall(r"[\w-]+", before) if word in TASK_NOUNS]
    about_memory = ABOUT_MEMORY.search(before) or is_informative(before)
    return NO if nouns and not about_memory and nouns != ["line"] else YES


def _idiom(case: Case) -> Verdict | None:
    thing = case.thing
    if case.clause.verb.startswith(("clear", "drop")) and thing == "my name":
        return NO
    if IDIOM.match(thing) or FILE_NAME.search(thing) or _NOT_AN_OBJECT.match(thing):
        return NO
    if not case.forgetting:
        return None
    if _NOT_A_FACT.match(thing) and not case.told:
        return NO
    if re.match(r"what i (?:told|asked) you to ", thing) or _COMMAND.search(thing):
        return UNLIKELY
    goes_on = _GOES_ON.match(case.after)
    mine = case.owned or case.told or _OF_THE_USER.search(thing)
    named = _NAME.match(case.shown) or _is_bare_value(case)
    return NO if goes_on and not mine and not named else None


def _is_bare_value(case: Case) -> bool:
    """Tell whether "forget X, and ..." is about a value, not "forget python2 and use python3".

    A product's name may look like a code; it is none where the user says please, or goes on to ask.
    """
    others = [one for one in _JOINT.split(case.thing) if not _CONTACT.fullmatch(one)]
    asks = _PLEASE.search(case.asked) or _ASKS_NEXT.match(case.after)
    return not others or bool(asks and all(map(_TOKEN.fullmatch, others)))


def _whole(case: Case) -> Verdict | None:
    if NEWEST.match(case.thing) and is_task(case.thing) and not case.told:
        return NO
    if case.thing == "me" and _says_more(case.after):
        return NO
    if THREAD.match(case.thing) or NEWEST.match(case.thing):
        return YES
    casual = re.match(r"(?:drop|cut|lose|pull|kill|take|toss|throw)", case.clause.verb)
    return YES if TOTAL.match(case.thing) and not casual else None


def _told(case: Case) -> Verdict | None:
    found = ABOUT_MEMORY.search(case.thing)
    if not found or is_task_place(case.thing) or is_organised(case.thing[: found.start() + 24]):
        return None
    return YES


_CHECKS: tuple[Callable[[Case], Verdict | None], ...] = (
    _frame, _pronoun, _reported, _numbered, _clock, _in_memory, _quote, _idiom, _whole, _told,
)  # fmt: skip


def _judge_not_keep(case: Case) -> Verdict:
    """Judge "don't keep X": about what is already told, or about what is still to come."""
    thing = _RECORD_OF.sub("", case.thing)
    tail = case.sentence.plain[case.clause.object_start :].lstrip()
    verb = re.sub(r"\s+", " ", case.clause.verb)
    if _NO_STORE.match(thing) or re.match(r"(?:this|the following)\s*[:,-]", tail):
        return NO
    if not thing or PRONOUN.match(thing):
        return YES if case.antecedent and verb not in {"know", "have", "use"} else UNLIKELY
    if re.match(r"(?:to|that you|how|if|why|whether|when|who)\b", thing):
        return NO
    over = bool(_OVER.search(case.sentence.plain[case.clause.start :]))
    return _judge_kept(case, thing, verb, over=over)


def _judge_kept(case: Case, thing: str, verb: str, *, over: bool) -> Verdict:
    addressed = re.search(r"\b(?:you|stop|quit|cease|need)\b", case.asked)
    if _BARE.match(case.asked) and not addressed and not over:
        if re.match(r"(?:what|where|which)\b", thing) and not ABOUT_MEMORY.search(thing):
            return NO
        if verb in _PASSING:
            return UNLIKELY
    if _USING.match(verb):
        return LIKELY if over else UNLIKELY
    return NO if is_task(thing) and not _POSSESSIVE.match(thing) else YES


def _is_mere_question(case: Case) -> bool:
    """Tell whether "can you delete ..." asks about an ability rather than for a deletion."""
    if _PLEASE.search(case.sentence.plain):
        return False
    if case.clause.frame == "question":
        return _asks_ability(case)
    if case.clause.frame not in {"passive", "permission"} or not case.sentence.question:
        return False
    return not re.search(
        r"\b(?:can|could|may) (?:i|we|you) (?:get|have|make)|make sure|ensure|\bcould\b", case.asked
    )


def _asks_ability(case: Case) -> bool:
    if re.search(r"\b(?:ever|really|actually|even|still)\b", case.asked):
        return True
    if re.search(r"\b(?:will|might) (?:you|u) forget\b", case.asked):
        return True
    return not case.thing or bool(_GENERIC.match(case.thing) and not case.told)


def _judge_thing(case: Case) -> Verdict:
    thing = case.thing
    if _is_work(case):
        return UNLIKELY if case.forgetting else NO
    if _is_doubtful(case):
        return UNLIKELY
    named = bool(_NAME.match(case.shown) if case.loose else _NAME.search(case.shown))
    precise = PRECISE if _CASUAL.match(case.clause.verb) else _VALUE
    named |= bool(precise.search(thing))
    if not case.loose:
        return YES if case.owned or named or case.forgetting else LIKELY
    if is_informative(thing) or named or (case.owned and not _CASUAL.match(case.clause.verb)):
        return YES
    return LIKELY if _SEVERAL.match(thing) else UNLIKELY


def _is_work(case: Case) -> bool:
    return is_task(case.thing) and not (case.forgetting and case.owned)


def _is_doubtful(case: Case) -> bool:
    """Tell whether something in sight speaks for a task, without settling it."""
    thing, verb = case.thing, case.clause.verb
    if case.clause.frame == "passive" and re.match(r"remov|tak|out|off|clear|cut", verb):
        return not is_informative(thing)
    if verb.startswith("reset"):
        return True
    if not case.forgetting and (_SCHEDULED.match(thing) or re.match(r"(?:a|an|some|one)\b", thing)):
        return True
    if case.owned:
        return False
    ordinal = _ORDINAL.match(thing) and not is_informative(thing)
    return bool(ordinal or _ORGANISED.search(case.sentence.plain))
