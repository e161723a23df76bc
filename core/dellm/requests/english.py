"""Find English deletion requests in a sentence by their grammar: frame, verb, object.

A frame is what makes a verb an instruction: the imperative, a polite question, a wish, a passive
demand, or a request to stop keeping. A clause that starts with none of them is not a request,
whatever words it holds; that is what keeps "I forgot my keys" out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dellm.requests.phrases import KEEP, KEEP_ING, KEEP_PAST, VERB, VERB_ING, VERB_PAST
from dellm.requests.reading import MASK, Sentence

_WORD = r"(?:please|pls|plz|pleeease|kindly|just|now|also|simply|actually|maybe|possibly|perhaps|completely|permanently|fully|immediately|totally|quickly|entirely|then|instead|too|go ahead and|finally|really|first|at once|right now|go and|all|safely|again|definitely|for me|never ?mind and)"
ADVERBS = rf"(?:{_WORD},?\s+)*+"
SOFT = (
    rf"[^\w{MASK}]*+(?:(?:{_WORD}|hey|hi|hello|ok|okay|oh|well|um|uh|hmm+|yes|yeah|yep|no(?! (?:need|longer|reason))|nope|nah|sorry|thanks"
    r"|thank you|alright|right|so|and|but|or|wait|actually|anyway|btw|by the way|on second thoughts?|on reflection|come to think of it"
    r"|in fact|if (?:you can|possible|you could|you don'?t mind|i may|you would)|assistant|claude|chatgpt|siri|alexa|dude"
    r"|bot|computer|for (?:privacy|security|safety)(?: reasons)?|next|lastly|second(?:ly)?|additionally|in addition"
    r"|after that|from now on|security action|as well|here'?s (?:a|my) request|privacy request|memory request"
    r"|be a dear and|do me a favou?r and|as of (?:today|now)|ps|p\.s\.|urgent|important|to be safe|good|great|cool"
    r"|fine|listen|look|honestly|you know what|you know|in that case|for the record|strictly speaking|one more thing|another thing|last thing|i changed my mind|changed my mind|i've changed my mind|if so|anyhow|i repeat|as i said|as agreed|dear (?:ai|bot|agent)|hey there|good (?:morning|evening|afternoon)|i said|pretty|pretty please|same here|friend|agent|ai|computer|quick(?: request| one)?|my bad|oops|whoops|ugh|damn|dear assistant|my friend|buddy"
    r"|under (?:the )?(?:gdpr|ccpa)(?: (?:article|art\.?) ?\d+)?|per (?:the )?(?:gdpr|ccpa)|under article \d+(?: of the gdpr)?)"
    r"[\s,:;.!…-]++)*+"
)
_WANT = (
    r"(?:i|we)(?:'d| would|'m|'ll)?(?: really| kindly| hereby| do| just| also| now| very much| strongly)*"
    r" (?:want|need|like|love|wish|prefer|ask|request|demand|beg|order|instruct|expect|require|asking|requesting|appreciate|insist)"
)
_GLAD = (
    r"(?:(?:it|that)(?:'d be|'d mean|'d help| would be| would mean| would help| will be| will mean| will help|'ll be|'s| is)[\w ]{0,24}? if you"
    r"|(?:i|we)(?:'d| would) (?:be (?:very |so |really )?(?:grateful|happy|glad|pleased|thankful|delighted)|appreciate it|feel (?:better|safer)|love it|like it) if you"
    r"|(?:i|we) (?:would )?appreciate if you|(?:is there )?any chance (?:that )?you)(?:'d| could| would| can)?"
)
_MATTERS = r"it(?:'s| is)(?: \w+){0,2}? (?:important|essential|crucial|best|better|time|necessary|vital|imperative|critical) (?:that |for )?you(?: to| must| should)?"
_GLAD_IF = _GLAD.replace("if you", "if")
_NOT = r"(?:do not|don'?t|no longer|did not|didn'?t|never|shouldn'?t|should not|needn'?t|need not|must not|mustn'?t|can'?t|cannot|may not)"
_TO_BE = r"(?:to be |be |being |was |were |is |are |could be |would be )?(?:treated as |considered |regarded as |marked as )?(?:all |completely |permanently |fully |now |totally |entirely |safely )*"
_GONE = rf"(?P<verb>{VERB_PAST}|gone|unavailable|(?:taken )?(?:out|off) of (?=your|the|our)|(?:taken )?off (?=your|the record))(?!\w)"
_SHOULD = r"(?:should|must|shall|needs? to|has to|have to|had better|ought to|can|may|is to|are to|could|better)(?: please| now| all| just| also| both)?"
_NO_MORE = r"(?:is|are|was|be|gets?|stays?)(?: completely| all)? (?:no longer|not|n't)\b[\w ]{0,40}|(?:isn'?t|aren'?t) [\w ]{0,40}|(?:does not|doesn'?t|do not|don'?t) (?:stay|remain|exist|appear|show up)\b[\w ]{0,30}"

_BEFORE_OBJECT = [
    # the imperative and what stands for it
    ("imperative", rf"(?:(?:do|be sure to|make sure (?:that you|you|to)|ensure (?:that )?you|be (?:so )?kind(?: enough)? (?:and|to)|let'?s|lets|let us|make yourself|make it so (?:that )?you|try to|try and|(?:it's |it is )?time to|proceed to|go) )?{ADVERBS}(?:to )?(?P<verb>{VERB})"),
    ("permission", rf"(?:so )?(?:you|u) (?:can|may|should|must|have to|need to|ought to|are to|could|might|'d better|had better|are (?:free|welcome|allowed) to)(?: as well)? {ADVERBS}(?P<verb>{VERB})"),
    ("question", rf"(?:can|could|would|will|might) (?:you|u|ya|we|i (?:get|have|ask) you to) {ADVERBS}(?:make sure (?:that you|you|to) |try to |make yourself |be so kind (?:and|as to) )?{ADVERBS}(?P<verb>{VERB})"),
    ("question", rf"(?:can|could|would) you {ADVERBS}(?:be (?:so kind as to|kind enough to|willing to|able to|a dear and)) {ADVERBS}(?P<verb>{VERB})"),
    ("wish", rf"(?:would|do) you mind {ADVERBS}(?P<verb>{VERB_ING})"),
    ("wish", rf"(?:how|what) about (?:you )?(?P<verb>{VERB_ING})"),
    ("wish", rf"(?:may|can|could|might) i (?:kindly )?ask (?:that )?you (?:to )?{ADVERBS}(?P<verb>{VERB})"),
    ("wish", rf"{_WANT}(?: that| for| of)?(?: it if)? (?:you|u)(?: to|'d| would| could| should| will)? {ADVERBS}(?:try to )?(?P<verb>{VERB}|{VERB_PAST})"),
    ("wish", rf"(?:i|we)(?:'d| would) (?:rather|sooner)(?: that)? you {ADVERBS}(?P<verb>{VERB}|{VERB_PAST})"),
    ("wish", rf"{_MATTERS} {ADVERBS}(?P<verb>{VERB})"),
    ("wish", rf"{_GLAD} {ADVERBS}(?P<verb>{VERB}|{VERB_PAST})"),
    ("wish", rf"(?:i|we) {ADVERBS}(?:authori[sz]e|allow|permit) you to {ADVERBS}(?P<verb>{VERB})"),
    ("wish", rf"you (?:have|got) (?:my permission|permission) to {ADVERBS}(?P<verb>{VERB})"),
    # nouns of deletion
    ("noun", r"(?:(?:i|we)(?:'d| would)?(?: hereby| formally| also| am| 'm)* (?:request|demand|want|ask for|like|require|requesting|exercise my right to|invoke my right to|need)|requesting|exercise my right to|please (?:confirm|arrange|process|perform|do)|this is (?:a|my) request for)(?: the| a| an)?(?: immediate| full| complete| prompt| total| permanent| data| formal)* (?P<verb>erasure|deletion|removal|destruction|purge|purging)(?: request)?(?: of| for)?"),
    ("noun", r"(?:gdpr |data |formal )?(?P<verb>erasure|deletion|removal|delete|remove) request(?! (?:entered|recorded|logged|received|executed|noted|complete|completed|processed|confirmed|is|was|has|from|form|accepted|acknowledged|submitted))(?: for|:| -|,)?"),
    ("noun", r"(?:i|we)(?: hereby)? (?P<verb>withdraw|revoke)(?: my| our)? (?:consent|permission)(?: for you| to you)?(?: to| for)? (?:storing|keeping|remembering|holding|retaining|store|keep|remember|hold|retain|the storage of|the use of|use|using)"),
    # asked to stop keeping
    ("not_keep", rf"(?:{_NOT}) (?:ever |even |you )?(?P<verb>{KEEP})"),
    ("not_keep", rf"(?:can you |could you |would you |i need you to |i want you to |i'd like you to )?(?:please )?(?:stop|quit|cease) (?P<verb>{KEEP_ING})"),
    ("not_keep", rf"you (?:(?:do not|don'?t|no longer) (?:really |actually )?(?:need|have|ought|are supposed) (?:to )?|(?:shouldn'?t|should not|needn'?t|need not|must not|mustn'?t|may not) )(?P<verb>{KEEP})"),
    ("not_keep", rf"(?:there(?:'s| is) )?no (?:need|reason)(?: for you)? to (?:still )?(?P<verb>{KEEP})"),
    ("not_keep", rf"(?:i|we)(?:'d| would)? (?:really )?{_NOT}(?: really)? (?:want|need|like|wish)(?: for)? (?:you|u|it)(?: to)? (?:still |ever )?(?P<verb>{KEEP})"),
    ("not_keep", rf"(?:i|we)(?:'d| would) (?:much )?(?:rather|prefer|like)(?: it)?(?: if| that)? (?:you|u) (?:{_NOT}|not to|not)(?: to)? (?P<verb>{KEEP})"),
    ("not_keep", rf"(?:i|we) (?:wish|hope) you (?:{_NOT}|would not|wouldn'?t) (?P<verb>{KEEP})"),
    ("not_keep", rf"(?:i|we)(?:'m| am|'re| are)? (?:(?:do not|don'?t|no longer) (?:consent|agree|want to agree)|(?:not|no longer) (?:comfortable|ok|okay|happy|fine)|uncomfortable|unhappy)(?: to| with)? (?:you|your|it|u) (?:still )?(?P<verb>{KEEP_ING})"),
    ("wish", r"(?:please )?(?P<verb>leave|remember|keep|retain|store|have|i want|i'd like|there should be|make sure there is|make sure there's)(?: you to have| to have)? (?:no (?:trace|record|mention|memory|recollection|knowledge|copy|note)s? of|nothing (?:about|of|on|regarding|related to))"),
    ("wish", r"(?:i|we)(?:'d| would)? (?:want|need|like) you to (?P<verb>remember|keep|retain|have|know) (?:no (?:trace|record|mention|memory|recollection|knowledge)s? of|nothing (?:about|of|on|regarding))"),
    # as if it had never been said
    ("pretend", r"(?:can we |could we |could you |can you |let'?s |lets |i want you to |i'd like you to )?(?:please |just )?(?P<verb>pretend|act like|act as if|act as though)(?: that)? (?:i|we)(?:'d| had)? (?:never|didn'?t|did not|hadn'?t|had not)(?: ever)? (?:told you|tell you|said|say|mentioned|mention|wrote|write|shared|share|brought up|sent)(?: you| anything)?(?: that| about)?"),
    ("pretend", r"(?:can we |could you |can you |let'?s )?(?:please |just )?(?P<verb>pretend|act like|act as if)(?: that)? you (?:don'?t know|do not know|never (?:heard|knew|saw|read|learned|learnt|met)|didn'?t (?:hear|see|know|read)|had never (?:heard|seen|read|known))(?: that| about| of)?"),
]  # fmt: skip
_AROUND_OBJECT = [
    ("passive", rf"(?:{_WANT}|i (?:do )?want|have|get|can i (?:get|have)|could (?:i|you) (?:get|have)|i'm looking to get) (?P<obj>(?!you\b|to\b|i\b|we\b|he\b|she\b|they\b).{{1,300}}?) {_TO_BE}{_GONE}"),
    ("passive", rf"(?:(?:i need you to |i want you to |can you |could you )?(?:please |just )?(?:make (?:absolutely |very )?(?:sure|certain)|ensure|see to it|check)|(?:i|we)(?:'d| would)? (?:want|need|like|prefer) (?:you )?to (?:make sure|be sure|ensure))(?: that)? (?P<obj>(?!you\b|to\b).{{1,300}}?) (?:(?:is|are|gets?|will be|has been|have been|be)(?: completely| all| fully| permanently)? {_GONE}|(?P<verb2>{_NO_MORE}))"),
    ("passive", rf"(?:(?:(?:can|could|would|will) (?:you|u|we)|(?:i|we)(?:'d| would)? (?:want|need|like) you to) )?{ADVERBS}(?:treat|consider|regard|mark) (?P<obj>.{{1,300}}?) (?:as )?(?:being )?(?:permanently )?{_GONE}"),
    ("passive", rf"let (?P<obj>(?:my|our|the|that|this|it|all|any|every)\b.{{0,200}}?) be {_GONE}"),
    ("passive", rf"(?:i|we) {_NOT} (?:want|need|like) (?P<obj>(?!you\b|to\b).{{1,200}}?) (?:to (?:be|stay|remain) |being |staying )?(?:(?P<verb>{KEEP_PAST})\b|(?P<verb2>(?:in|on) (?:your|the|shared|assistant|our) [\w ]{{0,30}}?(?:memory|memories|notes?|file|records?|mind|database|chart)|on file|around))"),
    ("passive", rf"(?:(?:(?:can|could|would|will) (?:you|u|we)|(?:i|we)(?:'d| would)? (?:want|need|like) you to) )?{ADVERBS}(?P<verb>take|get|leave) (?P<obj>.{{1,300}}?) (?:out of|off|off of) (?:your|the|our|my|shared|assistant)\b[\w' -]{{0,40}}?(?:memory|memories|mind|records?|notes?|head|brain|database|files?|history|system|chart)\b"),
    ("passive", rf"(?P<obj>(?:my|our|the|that|this|those|these|all|any|every|everything|anything|whatever|what|his|her|their|messages?|records?|[a-z]+'s)\b.{{0,200}}?) {_SHOULD} (?:be )?(?:treated as |considered |regarded as )?(?:completely |permanently |fully |all |now )*(?:{_GONE}|(?P<verb2>go|disappear|vanish)\b(?=\s*(?:$|[,.!]|now|please|too)))"),
    ("passive", rf"(?P<obj>(?:my|our|the|that|this|those|these|all|any|every|everything|anything|whatever|what)\b.{{0,200}}?) (?:should|must|shall|needs? to|is to|may|can) (?:no longer|not|never)(?: need to)? (?:be |stay |remain )?(?P<verb>{KEEP_PAST}|restated|repeated|mentioned|shown|surfaced|reused|brought up|available|in (?=your (?:memory|notes|records)|memory))\b"),
    ("passive", rf"(?P<obj>(?:my|our|the|that|this|those|these|all|any|every|everything|anything|whatever|what)\b.{{0,200}}?) (?:no longer needs?|does not need|doesn'?t need|do not need|don'?t need|no longer has|no longer have) to be (?P<verb>{KEEP_PAST})\b"),
    ("passive", rf"nothing (?P<obj>.{{1,200}}?) (?:should|must|may|shall|can|needs? to|is to) (?:be |stay |remain )?(?P<verb>{KEEP_PAST}|in (?=your|memory|the)|on file|anywhere|with you)"),
    ("passive", rf"could (?P<obj>(?:my|our|the|that|this|those|these|all|any|everything)\b.{{0,200}}?) (?:please |kindly )?be (?:please |kindly )?{_GONE}"),
    ("passive", rf"{_GLAD_IF} (?P<obj>(?:my|our|the|that|this|those|these|all|any|everything)\b.{{0,200}}?) {_TO_BE}{_GONE}"),
    ("all", r"(?:i|we)(?:'d| would)? (?:want|need|like|wish|prefer|ask|demand)(?: for)?(?: me)? to be (?P<verb>forgotten|erased|deleted|removed)\b(?P<obj>)"),
]  # fmt: skip
_LEADING = [(name, re.compile(SOFT + body + r"(?![\w'-])")) for name, body in _BEFORE_OBJECT]
_WRAPPING = [(name, re.compile(SOFT + body)) for name, body in _AROUND_OBJECT]

_TRIGGER = re.compile(
    rf"n'?t\b|\b(?:memor(?:y|ies)|no longer|nothing|notes?|records?|system|database|know|to go|unavailable|trace|{VERB}|{VERB_ING}|{VERB_PAST}|{KEEP_ING}|pretend|act like|gone|erasure|deletion|removal|consent"
    r"|remember|keep|hold|retain|store[ds]?|kept|out of|off|can go|should go|must go)\b"
)
_CLAUSE = re.compile(
    rf"[,;:(]\s*|\s[-–—]+\s*|—|\s(?=(?:and|but|so|then|or)\s)|\s(?=(?:please|pls|kindly)\s)|{MASK}\s+"
)
# Sentences whose "and <verb>" continues an infinitive or a question and instructs nobody.
_NOT_ADDRESSED = re.compile(
    rf"{SOFT}(?:i|we|he|she|they|it|my|our|his|her|their|remind|help|tell|show|teach|let me|add|set|how|what|why|when"
    r"|where|who|which|should|do|does|did|is|are|was|were|have|has|had|will|if|the|a|an|there|you)\b"
)
_INDIRECT = re.compile(
    r"\b(?:remind me|add|set (?:a|an|up)|schedule|how (?:to|do|can)|write|tell me how|show me how|teach me"
    r"|(?:he|she|they|people|everyone|someone|[a-z]+) (?:says?|said|told|thinks?|wants?|asked) (?:that )?(?:i|me|us|we)"
    r"|in order|used to|going to|trying to|tried to|able to|learn to)\b"
)
_NEGATED_BEFORE = re.compile(
    r"(?:\b(?:do not|don'?t|never|not|please don'?t|no need to|without|instead of|rather than|i (?:said|meant) not)\W*)\Z"
)
_NEGATED_ACROSS = re.compile(r"(?:\b(?:do not|not|never)|n't)\s*[,(][^.;!?]{0,120}[,)]\s*\Z")
_CONDITION = re.compile(
    rf"{SOFT}(?:if|unless|in case|suppose|supposing|imagine|what if|should (?:i|we) (?:ever|decide))\b"
)
_POLITE_CONDITION = re.compile(r"\bif (?:you|possible|it'?s|that'?s|i may|there'?s)\b")


_PLEADS = re.compile(r"(?:and|or|then),? (?:please|pls|kindly|can you|could you)\b")


@dataclass(frozen=True, slots=True)
class Clause:
    """A request found in a sentence; positions are characters of ``Sentence.plain``."""

    start: int
    verb_end: int
    object_start: int
    object_end: int
    frame: str
    verb: str
    conditional: bool
    certain_end: int


def find_clauses(sentence: Sentence) -> Iterator[Clause]:
    """Yield the request clauses of a sentence in order, before their objects are judged."""
    plain = sentence.plain
    if not _TRIGGER.search(plain):
        return
    done = 0
    found_one = False
    for start in _clause_starts(plain):
        if start < done or not _may_start(sentence, start, follows=found_one):
            continue
        clause = _match(plain, start)
        if clause is not None:
            found_one = True
            done = max(clause.verb_end, clause.certain_end)
            yield clause


def _clause_starts(plain: str) -> list[int]:
    return [0, *(found.end() for found in _CLAUSE.finditer(plain))][:40]


def _may_start(sentence: Sentence, start: int, *, follows: bool) -> bool:
    plain = sentence.plain
    if start == 0:
        return True
    before, here = plain[:start], plain[start : start + 24]
    if _NEGATED_BEFORE.search(before.rstrip(" ,;:(-–—")) or _NEGATED_ACROSS.search(before):
        return False
    joined = re.match(r"(?:and|or|then)\s", here) or before.endswith(("and ", "or ", "then "))
    if joined and not follows and not _PLEADS.match(here):
        own_clause = re.search(r",\s*(?:and\s*)?\Z", before) or not _NOT_ADDRESSED.match(plain)
        return bool(own_clause) and not _INDIRECT.search(before)
    if (
        sentence.question
        and not follows
        and re.match(
            rf"{SOFT}(?:how|what|why|when|where|who|which|should|do|did|does|is|are|have|has)\b",
            plain,
        )
    ):
        return bool(re.match(r"\W*(?:please|can you|could you|would you|just)\b", here))
    return not _INDIRECT.search(before[-60:]) or bool(re.search(r"[,;:—–-]\s*$", before))


def _match(plain: str, start: int) -> Clause | None:
    conditional = bool(_CONDITION.match(plain)) and not _POLITE_CONDITION.search(plain[:start])
    for name, pattern in _LEADING:
        found = pattern.match(plain, start)
        if found:
            end = found.end()
            return Clause(
                start, end, end, object_end(plain, end), name, found["verb"], conditional, end
            )
    for name, pattern in _WRAPPING:
        found = pattern.match(plain, start, start + 700)
        if found:
            verb = found["verb"] or "remove"
            return Clause(
                start, found.end(), found.start("obj"), found.end("obj"), name, verb, conditional, found.end()
            )  # fmt: skip
    return None


_OBJECT_STOP = re.compile(
    r"""\s*[;]\s
      | \s*[!?…]+(?:\s|$) | \s*[.]+\s*$ | \n
      | \s[-–—]+\s | \s?—\s?
      | :\s
      | ,?\swhen\s(?:we|you|i|it|this|that|the)\b[^,.;]{0,40}\b(?:done|finished|over|closes?|complete|completed|ends?)\b
      | ,?\s(?:because|cause|cuz|since|so\ that|otherwise|unless|before|until|while|although|though|whereas|in\ case|as\ (?:i|it|we|he|she|that)|given\ that|now\ that|in\ order|if)\s
      | ,?\s(?:and|but|then|so|or)\s(?:then\s|also\s|please\s|just\s|do\s)*(?=(?:i|i'm|i'll|i've|i'd|you|we|he|she|they|it|let|let's|what|when|where|how|who|can|could|would|will
          |do|don't|never|keep|leave|retain|save|tell|show|give|play|set|add|make|remind|replace|use|update|store|remember|put|change|book|call|send|start|find|focus|act|go|move|try|answer|help|behave|respond|continue|listen|come|take|get|write|translate|bold
          |delete|erase|remove|forget|wipe|purge|scrub|clear|drop|get\ rid|destroy|expunge|confirm|let\ me|stop|not)\b)
      | ,\s(?=(?:i(?!\.e)|i'm|i'll|i've|i'd|you|we|he|she|they|it|it's|that's|let|let's|what|which|how|can|could|would|will|don't|do|never|keep|leave|retain|save|not|thanks|thank
          |please|just|delete|erase|remove|forget|wipe|take|ok|okay|only|the\ \w+\ (?:is|are|can|stays?)|his|her|she's|he's|there|if|since|because|as|after|once|when|then|unless|too)\b)
      | ,?\s(?:except|apart\ from|other\ than|besides|excluding|aside\ from|save\ for|but\ not|rather\ than|instead\ of|not\ the)\b
    """,
    re.VERBOSE,
)


_PRONOUN_OBJECT = re.compile(r"\s+(?:it|that|this|them|those|these)(?=\s*(?:,|\band\b|\bbut\b))")
_OPENED = re.compile(
    r"(?:\s+(?:all of )?(?:the following|these|this|from (?:your |the )?(?:memory|notes|records)))?(?: \w+)?\s*:\s*(?=\S)(?!(?:please )?(?:delete|erase|remove|forget|wipe|clear|purge)\b)"
)


def object_end(plain: str, start: int) -> int:
    """Where the object that begins at ``start`` ends: at the next clause or the sentence's end.

    A colon right behind the verb ("delete the following: ...") opens the object.
    """
    pronoun = _PRONOUN_OBJECT.match(plain, start)
    if pronoun:
        return pronoun.end()
    opened = _OPENED.match(plain, start)
    start = opened.end() if opened else start
    found = _OBJECT_STOP.search(plain, start)
    return found.start() if found else len(plain)
