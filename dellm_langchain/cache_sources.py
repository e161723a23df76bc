"""What a cached reply was made from where no graph says so: the messages of a history in its prompt."""

from __future__ import annotations

from collections.abc import Iterator

from dellm import Sources

from .calls import Call, text_of
from .capture import captured
from .history_origins import OURS
from .history_turns import Named, content_number, turns
from .running import Here
from .tracked_reads import shown


def outside(at: Here, call: Call, read: Sources | None) -> Sources | None:
    """Return what a reply to a call outside of any graph was made from, None for nothing known.

    What a prompt holds besides the messages of a history may be made of all that its run has read.
    """
    found = turns.read_in(captured.around().runs, at.owner)
    named = {name: one for turn in found for name, one in turn.named.items()}
    ids = list(_known(call, named))
    whole = len(ids) == len(call.prompt) - len(call.prompt.constants) and not call.opaque
    if not whole:
        ids += [one.record for one in named.values()]
        ids += [
            one for text in map(text_of, call.prompt.contents) for one in shown.of(at.owner, text)
        ]
    also = () if read is None else read.also
    if not ids and not also:
        return None
    return Sources(known=list(dict.fromkeys(ids)), also=also, inexact=not whole)


def _known(call: Call, named: dict[str, Named]) -> Iterator[int]:
    """Yield the records of the messages of a prompt that are known as they were sent."""
    for at, message in enumerate(call.prompt.messages):
        name = call.prompt.ids[at] or message.id or ""
        one = named.get(name)
        if one is not None and one.content == content_number(call.prompt.contents[at]):
            yield one.record
        elif (ours := OURS.fullmatch(name)) is not None:
            yield int(ours[1])
