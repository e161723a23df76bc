"""Which turns of an episode ask for a deletion, and of what: read off the hidden targets.

For scoring, and for an oracle in place of our recogniser. The data name no deletion turns, so this is
the rule:

- A turn is a *request* if a sentence of it, no question and not of later ("until you tell us to"),
  has a verb of deleting as an order ("delete", "please remove", "should be treated as deleted").
- It is an *announcement* if it is none, and says that something was deleted, or asked to be
  ("Deleted X", "X has been removed", "deletion request logged for X").
- A target is *named* by one that holds it, by the official rule, in that same sentence, and in no
  part of it that says what stays ("the current code is X"). It is due there if a forgetting
  checkpoint at or after that turn has it among its cleaned targets.
- A target that no such turn up to its checkpoint names is *described*: due at that request, else
  announcement, after its first mention which shares most words with the checkpoint's question and the
  turns that hold the target; the latest of equals. Where there is none, it is due nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .gatemem_scoring import cleaned, hits
from .sets.gatemem import Checkpoint, Episode

_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\S)[^.!?\n]+)*[.!?]*")
_VERB = r"(?:delete|erase|forget|remove|purge|wipe|scrub|expunge|discard|clear|drop|strike|retire)"
_GONE = (
    r"(?:deleted|erased|removed|purged|wiped|scrubbed|expunged|discarded|cleared|dropped|retired)"
)
_ORDER = re.compile(
    rf"^\W*(?:(?:yes|ok|okay|now|also|please|then|and|so|thanks|correct|confirmed|good)\W+)*{_VERB}\b"
    rf"|[,;:.]\s*(?:and |then |so |now |also |please )*{_VERB}\b"
    rf"|\b(?:please|to|and|should|must|can you|could you|i want you to|let's) (?:also |now |fully )?{_VERB}\b"
    rf"|\b(?:want|need|like) [^.?!]{{1,120}} {_GONE}(?= (?:from|now|today|as well|too)\b|\W*\Z)"
    rf"|\b(?:should|must) be (?:treated as )?{_GONE}\b"
    r"|\b(?:old|earlier|former|prior|previous|retired|deleted) [^.?!]{1,80} should (?:no longer|not|never) be\b"
    r"|\b(?:do not|don't|stop) (?:keep|retain|stor)",
    re.IGNORECASE,
)
_LATER = re.compile(
    rf"\b(?:if|once|until|prepare|ready|soon|will)\b[^.?!]*\b(?:{_VERB}|removed)\b|longer than",
    re.IGNORECASE,
)
_LISTED = re.compile(
    rf"^\W*(?:confirmed\W+)?{_GONE}\b"
    r"|\bdelet(?:ion|e) request\b[^.]{0,20}\b(?:logged|received|entered|recorded|processed)\b"
    rf"|\basked (?:us )?to {_VERB}\b",
    re.IGNORECASE,
)
_SAID = re.compile(
    rf"\b(?:is|are|was|were|been|being|now|remains?|stays?) (?:now |fully )?{_GONE}\b",
    re.IGNORECASE,
)
_KEPT = re.compile(
    r"\b(?:current|active|keep|retain|is now|remains? (?!deleted|unavailable|retired|removed))\b",
    re.IGNORECASE,
)
_ENDS = re.compile(rf"\b{_VERB}\b|\b{_GONE}\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be deleted at one turn: targets that it names, and targets that it describes."""

    named: tuple[str, ...] = ()
    described: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Labels:
    """The deletions of an episode by the index of their turn, and how each checkpoint's are asked for.

    `ways` gives for each forgetting checkpoint with cleaned targets its id: "named" (each target by a
    request), "some named", "announced" (named, but some only by an announcement), "described" (none
    is named anywhere), "none" (no turn asks for it).
    """

    due: dict[int, Due]
    ways: dict[str, str]


def asks(text: str) -> bool:
    """Whether a turn is a request to delete."""
    return any(_is_order(one) for one in _statements(text))


def announces(text: str) -> bool:
    """Whether a turn says that something was deleted, or is to be."""
    return any(_LISTED.search(one) or _SAID.search(one) for one in _statements(text))


def _is_order(sentence: str) -> bool:
    return bool(
        _ORDER.search(sentence) and not _LATER.search(sentence) and not _LISTED.search(sentence)
    )


def names(text: str, target: str) -> bool:
    """Whether a request or an announcement names a target: in its own sentence, not as what stays."""
    for sentence in _statements(text):
        if not hits(sentence, target):
            continue
        if _is_order(sentence) or _LISTED.search(sentence):
            parts = [one for one in re.split(r"[,;]", sentence) if hits(one, target)]
            if any(_ENDS.search(one) or not _KEPT.search(one) for one in parts or [sentence]):
                return True
        elif any(_SAID.search(one) and hits(one, target) for one in re.split(r"[,;]", sentence)):
            return True
    return False


def _statements(text: str) -> Iterator[str]:
    for found in _SENTENCE.finditer(text):
        if not found.group().rstrip("\"' )").endswith("?"):
            yield found.group().strip()


def labels_of(episode: Episode) -> Labels:
    """Return the labels of an episode by the rule above."""
    reader = _Reader(episode)
    for checkpoint in episode.checkpoints:
        if checkpoint.hidden.kind == "forgetting":
            reader.read(checkpoint)
    return reader.labels()


class _Reader:
    """Reads the labels of one episode, checkpoint by checkpoint."""

    def __init__(self, episode: Episode) -> None:
        self._episode = episode
        turns = [(place, one.text) for place, one in enumerate(episode.turns) if not one.by_agent]
        self._orders = [place for place, text in turns if asks(text)]
        self._news = [place for place, text in turns if not asks(text) and announces(text)]
        self._named: dict[int, set[str]] = {}
        self._described: dict[int, set[str]] = {}
        self._ways: dict[str, str] = {}

    def labels(self) -> Labels:
        places = sorted({*self._named, *self._described})
        due = {
            place: Due(
                tuple(sorted(self._named.get(place, ()))),
                tuple(sorted(self._described.get(place, ()))),
            )
            for place in places
        }
        return Labels(due, dict(self._ways))

    def read(self, checkpoint: Checkpoint) -> None:
        targets = cleaned(checkpoint, self._episode)
        if targets:
            found = [self._target(one, checkpoint) for one in targets]
            self._ways[checkpoint.id] = _way(found)

    def _target(self, target: str, checkpoint: Checkpoint) -> str:
        """Note where a target is due, and return how it is asked for."""
        ways = []
        for way, places in (("named", self._orders), ("announced", self._news)):
            holding = [
                one for one in self._upto(places, checkpoint.after) if self._holds(one, target)
            ]
            for place in holding:
                self._named.setdefault(place, set()).add(target)
            ways += [way] if holding else []
        if ways:
            return ways[0]
        due = self._described_at(target, checkpoint)
        if due is None:
            return "none"
        self._described.setdefault(due, set()).add(target)
        return "described"

    def _described_at(self, target: str, checkpoint: Checkpoint) -> int | None:
        said = [one for one in range(checkpoint.after) if names(self._text(one), target)]
        about = _words(checkpoint.question, *(self._text(one) for one in said))
        for places in (self._orders, self._news):
            later = [
                one for one in self._upto(places, checkpoint.after) if one > min(said, default=-1)
            ]
            if later:
                return max(later, key=lambda one: (len(about & _words(self._text(one))), one))
        return None

    def _text(self, place: int) -> str:
        return self._episode.turns[place].text

    def _holds(self, place: int, target: str) -> bool:
        return hits(self._text(place), target)

    @staticmethod
    def _upto(places: list[int], after: int) -> list[int]:
        return [one for one in places if one <= after]


def _words(*texts: str) -> set[str]:
    """Return the words of four letters or more."""
    return {word for text in texts for word in re.findall(r"[^\W_]{4,}", text.casefold())}


def _way(found: list[str]) -> str:
    if all(one == "named" for one in found):
        return "named"
    if all(one in {"named", "announced"} for one in found):
        return "announced"
    if any(one in {"named", "announced"} for one in found):
        return "some named"
    return "described" if "described" in found else "none"
