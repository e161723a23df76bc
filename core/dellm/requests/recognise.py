"""Recognise deletion requests in a user's message, by rules and, where asked, a second opinion."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from dellm.requests.announcements import announced
from dellm.requests.classifier import Classifier, ask
from dellm.requests.english import Clause, find_clauses
from dellm.requests.keeping import kept_parts
from dellm.requests.languages import Foreign, find_foreign
from dellm.requests.objects import Case, judge
from dellm.requests.reading import MASK, Sentence, read
from dellm.requests.remainder import Span, remainder
from dellm.requests.request import Request, RequestKind, Target
from dellm.requests.shapes import PRONOUN
from dellm.requests.targets import names_a_message, targets_of, targets_of_statement, trim

_SPECIFIC_FIRST = (
    "message_id",
    "quoted",
    "last",
    "entity",
    "topic",
    "fact",
    "session",
    "all",
    "vague",
)
_HINT = re.compile(
    r"forg[eo]t|delet|eras|remov|wip|purg|scrub|expung|drop|clear|rid of|strike|scratch|discard|dispose|remember|memor"
    r"|don'?t keep|stop (?:keep|stor)|pretend|unlearn|gone|redact|no longer|any ?more"
)
_GREETING = re.compile(
    r"\W*(?:(?:hi|hey|hello|thanks|thank you|thx|ok|okay|sorry|oh|oops|whoops|well|sure|great|good|morning|evening|please|yes|no|one|more|thing|actually|wait|so|there|again|just|now|also|and|but|on second thoughts?|never ?mind|right|hmm+|um|uh|then|reflection|start from scratch|i changed my mind)\W*)*\Z"
)


_LIST = re.compile(
    r"(?:[ ,]+(?:too|as well|also|please|now))*[ ]*:[ ]*(?P<list>[^:;\n]*?)[ ]*"
    r"(?=[;\n]|\Z|[.!][\s\"')]*\Z|[ ,]+(?:which|that|and|but|or)?[ ]*(?:should|must|shall|keep|retain|leave)\b)"
)
_EXPLAINS = re.compile(
    r"\b(?:i|i'm|i've|we|you|he|she|it|they|this|there|is|are|was|were|has|have|had|do|does|did|not|don't|will"
    r"|would|can|could|may|because|since|delete|remove|erase|forget|wipe|purge|keep|retain|yes|no|please)\b"
    rf"|\A[^\w{MASK}]*\Z"
)


@dataclass(slots=True)
class _Found:
    """What the rules gathered from one message."""

    scopes: list[str] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    ask: bool = False
    certain: bool = True
    doubtful: bool = False
    vague: bool = False
    conditional: bool = False
    language: str = "en"


def recognise(message: str, *, role: str = "user", model: Classifier | None = None) -> Request:
    """Say whether ``message`` asks to delete something remembered, and what.

    Only a message of the role ``user`` can be a request, and in it only the user's own voice:
    quotations, code, pasted and reported text are not read. At most 9,000 characters are looked
    at (see :mod:`dellm.requests.reading`). Rules decide first; ``model`` is asked only where they
    are unsure, and an answer that isn't exactly as demanded is ignored. Never raises on any text;
    what ``model`` raises goes through.
    """
    if role != "user":
        return Request(RequestKind.NONE, rest=message)
    sentences = read(message)
    found = _gather(sentences, message)
    request = _as_request(found, sentences, message)
    if model is not None and _is_unsure(found, sentences):
        request = _second_opinion(model, message, request, sentences)
    return request


def _gather(sentences: list[Sentence], message: str) -> _Found:
    found = _Found()
    for place, sentence in enumerate(sentences):
        clauses = list(find_clauses(sentence))
        for clause in clauses:
            _consider(found, sentences, place, clause, message)
        if not clauses:
            foreign = find_foreign(sentence, message)
            if foreign:
                _add_foreign(found, sentences, place, foreign, message)
    return found


def _consider(
    found: _Found, sentences: list[Sentence], place: int, clause: Clause, message: str
) -> None:
    sentence = sentences[place]
    offset = sentence.start
    start, end = trim(message, offset + clause.object_start, offset + clause.object_end)
    thing = sentence.plain[start - offset : end - offset]
    before = _antecedent(sentences, place, clause.start, found.spans)
    known = before is not None or bool(found.targets)
    verdict = judge(Case(sentence, clause, message[start:end], thing, known))
    if not verdict.accepted:
        found.doubtful |= not verdict.certain
        return
    found.certain &= verdict.certain
    found.conditional |= clause.conditional
    stop = max(clause.object_end, clause.verb_end)
    pronoun = not thing or bool(PRONOUN.match(thing))
    listed = _listed_after(sentence, stop, pronoun=pronoun) if thing else None
    found.spans.append((offset + clause.start, offset + (listed[1] if listed else stop)))
    only_quoted = listed and _is_quoted(sentence, listed) and names_a_message(thing)
    objects = [] if pronoun or only_quoted else [(start, end)]
    if listed:
        objects.append(trim(message, offset + listed[0], offset + listed[1]))
    for first, last in objects:
        shown, masked = message[first:last], sentence.plain[first - offset : last - offset]
        _add(found, *targets_of(shown, masked))
    if objects:
        return
    if clause.frame == "all":
        _add(found, "all", (Target("everything"),), asks=True)
    else:
        _add_referent(
            found, before, message, idiom=thing == "it" and clause.verb.startswith("forget")
        )


def _listed_after(sentence: Sentence, stop: int, *, pronoun: bool) -> Span | None:
    """Return where in a sentence what is to go is listed after a colon, or None.

    "Delete my nickname: Biscuit." What explains the request ("...: I moved") is no list, a quotation
    is one; behind a pronoun ("forget that: ...") nothing else is.
    """
    after = _LIST.match(sentence.plain, stop)
    if after is None or _EXPLAINS.search(after["list"]):
        return None
    listed = after.span("list")
    return None if pronoun and not _is_quoted(sentence, listed) else listed


def _is_quoted(sentence: Sentence, span: Span) -> bool:
    return MASK in sentence.plain[slice(*span)]


def _add(found: _Found, scope: str, targets: tuple[Target, ...], asks: bool) -> None:
    found.scopes.append(scope)
    found.targets.extend(target for target in targets if target not in found.targets)
    found.ask |= asks


def _add_referent(found: _Found, before: Span | None, message: str, *, idiom: bool) -> None:
    """Resolve "it" or "that": the statement before, an earlier request, or else a question."""
    if before is not None:
        scope, targets = targets_of_statement(message[before[0] : before[1]])
        found.spans.append(before)
        _add(found, scope, targets, asks=idiom)
    elif not found.targets:
        found.vague = True


def _antecedent(
    sentences: list[Sentence], place: int, start: int, spans: list[Span]
) -> Span | None:
    """Find the nearest statement before a position that a pronoun can stand for, as a span."""
    sentence = sentences[place]
    own = (sentence.start, sentence.start + start)
    before = [own] if start else []
    before += [(s.start, s.end) for s in reversed(sentences[:place]) if _is_statement(s)][:2]
    for first, last in before:
        if any(a < last and first < b for a, b in spans):
            return None
        words = _plain(sentences, first, last)
        if len(re.findall(r"\w+", words)) >= 2 and not _GREETING.match(words):
            return first, last
    return None


def _is_statement(sentence: Sentence) -> bool:
    """Tell whether a sentence can be what "that" means: no question, save a mere "my name?"."""
    if not sentence.question:
        return True
    return (
        bool(re.match(r"\W*(?:my|the|our|his|her|their|that)\b", sentence.plain))
        and len(sentence.plain) < 60
    )


def _plain(sentences: list[Sentence], first: int, last: int) -> str:
    for sentence in sentences:
        if sentence.start <= first < sentence.end:
            return sentence.plain[first - sentence.start : last - sentence.start]
    return ""


def _add_foreign(
    found: _Found, sentences: list[Sentence], place: int, foreign: Foreign, message: str
) -> None:
    sentence = sentences[place]
    found.language = foreign.language
    if foreign.pronoun:
        before = _antecedent(sentences, place, 0, found.spans)
        _add_referent(found, before, message, idiom=False)
    else:
        _add(found, foreign.scope, foreign.targets, asks=foreign.total)
    found.spans.append((sentence.start, sentence.end))


def _as_request(found: _Found, sentences: list[Sentence], message: str) -> Request:
    if not found.scopes and found.vague:
        _add(found, "vague", (Target("last", count=1),), asks=True)
    if not found.scopes:
        return _offer(sentences, message)
    keep, keep_spans = kept_parts(sentences, found.spans, message)
    targets = tuple(t for t in found.targets if not t.text or t.text not in keep)
    scope = "partial" if keep else min(found.scopes, key=_SPECIFIC_FIRST.index)
    if found.conditional:
        return Request(
            RequestKind.OFFER, scope, targets, rest=message, keep=keep, language=found.language
        )
    rest = remainder(message, sentences, [*found.spans, *keep_spans], targets)
    return Request(
        RequestKind.FORGET, scope, targets, found.ask or not targets, rest, keep, found.language
    )


def _offer(sentences: list[Sentence], message: str) -> Request:
    targets = tuple(target for sentence in sentences for target in announced(sentence, message))
    if not targets:
        return Request(RequestKind.NONE, rest=message)
    return Request(RequestKind.OFFER, "topic", targets, rest=message, language="en")


def _is_unsure(found: _Found, sentences: list[Sentence]) -> bool:
    if found.scopes or found.vague:
        return not found.certain
    return found.doubtful or any(_HINT.search(sentence.plain) for sentence in sentences)


def _second_opinion(
    model: Classifier, message: str, request: Request, sentences: list[Sentence]
) -> Request:
    answer = ask(model, message)
    if answer is None or answer[0] == request.kind:
        return request
    kind, named = answer
    if kind != RequestKind.FORGET:
        if request.kind is RequestKind.FORGET and kind == RequestKind.NONE:
            return Request(RequestKind.NONE, rest=message)
        return (
            request
            if not request.targets
            else replace(request, kind=RequestKind(kind), rest=message, needs_question=False)
        )
    targets = tuple(Target("description", text) for text in named) or request.targets
    if not targets:
        targets = tuple(_hinted(sentences, message))
    rest = remainder(message, sentences, [], targets)
    return Request(
        RequestKind.FORGET, "topic", targets, not named, rest, (), request.language or "en"
    )


def _hinted(sentences: list[Sentence], message: str) -> list[Target]:
    return [
        Target("meaning", message[s.start : s.end].strip())
        for s in sentences
        if _HINT.search(s.plain)
    ][:3]
