"""A model that copies its whole prompt into its reply: the worst case of tainted memory (I1, I9).

Every message holds a word of its own. After random messages are forgotten no read of any verb, no
table and, after a scrub, no byte of the files holds the word of an erased one; all others survive.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from raw_tables import connected, is_postgres, rows_of
from verbs import READING, strings

import dellm
from dellm import ContextForgotten, Memory, Record

pytestmark = pytest.mark.long
WORD = re.compile(r"canary[a-z]{6}")
TOPICS = ("paris", "falcon", "melon", "harbour", "winter")


def parrot(prompt: str) -> str:
    """A model that says everything it was told."""
    return " ".join(WORD.findall(prompt))


class Conversation:
    """A long chat in several threads, with every way of choosing a context."""

    def __init__(self, memory: Memory, seed: int) -> None:
        self.memory = memory
        self.draw = random.Random(seed)
        self.own: dict[int, str] = {}  # the word of each message by its id
        self.sources: dict[int, set[int]] = {}  # of each message: whose words it may hold

    def word(self) -> str:
        return "canary" + "".join(self.draw.choices("bcdfghjklmnpqrstvwxz", k=6))

    def say(self) -> Record:
        word, topic = self.word(), self.draw.choice(TOPICS)
        said = self.memory.remember(
            f"{topic} {word}",
            thread=self.draw.choice(("a", "b")),
            metadata={"seen": word},
            payload=word.encode("utf-16-le"),
        )
        self.own[said.id] = word
        self.sources[said.id] = {said.id}
        return said

    def answer(self, query: Record) -> None:
        thread = query.thread
        chosen = self.draw.choice(("top k", "window", "all", "mixed", "repeated"))
        context: Any = {
            "top k": lambda: self.memory.context(query.text, thread=thread, k=4),
            "window": lambda: self.memory.context(query.text, thread=thread, k=0, last=5),
            "all": lambda: [one.id for one in self.memory.history(thread or "")],
            "mixed": lambda: self.memory.context(query.text, thread=thread, k=3, last=3, by="both"),
            "repeated": lambda: [query.id, query.id],
        }[chosen]()
        ids = list(context) if isinstance(context, list) else context.ids
        prompt = dellm.prompt(query.text, [self.memory.get(one) for one in ids])
        word = self.word()
        seen = {*ids, query.id}
        if not isinstance(context, list):
            context = [*ids, query.id] if query.id not in ids else context
        reply = self.memory.record(
            f"{word} {parrot(prompt)}", context=context, thread=thread, model="parrot"
        )
        self.own[reply.id] = word
        self.sources[reply.id] = {reply.id}.union(*(self.sources[one] for one in seen))

    def turn(self) -> None:
        self.answer(self.say())

    def tainted(self, ids: set[int]) -> set[int]:
        return {one for one, sources in self.sources.items() if sources & ids}

    def drop(self, ids: set[int]) -> None:
        for one in ids:
            del self.own[one], self.sources[one]


def everything_read(memory: Memory, receipt: dellm.Receipt) -> set[str]:
    """Return every canary that any reading verb gives away."""
    found: set[str] = set()
    for call in READING.values():
        for said in strings(call(memory, receipt)):
            found |= set(WORD.findall(said))
    for query in TOPICS:
        for by in ("meaning", "keyword", "both"):
            hits = memory.search(query, by=by, limit=500, threshold=-1)
            found |= {word for hit in hits for word in WORD.findall(hit.record.text)}
    return found


def test_nothing_a_parrot_repeated_outlives_what_it_repeated(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, scrub_below=0).workspace("alex")
    bystander = memory.workspace("bystander")
    kept = bystander.remember("paris canarykeptkk").text
    chat = Conversation(memory, seed=11)
    gone: set[str] = set()
    for round_ in range(3 if is_postgres(url) else 6):
        for _ in range(12):
            chat.turn()
        # Mostly recent ones: an early one would take nearly everything each time.
        chosen = set(chat.draw.sample(sorted(chat.own)[-30:], k=2))
        expected = chat.tainted(chosen)
        words = {chat.own[one] for one in expected}
        receipt = forgotten(memory, chat, chosen, round_)
        assert set(receipt.ids) == expected
        gone |= words
        chat.drop(expected)
        with pytest.raises(ContextForgotten):
            memory.record("late", context=sorted(expected)[:3])

        living = set(chat.own.values())
        assert set(WORD.findall(" ".join(one.text for one in memory.export()))) == living
        read = everything_read(memory, receipt)
        assert read == living
        with connected(url) as raw:
            stored = set(WORD.findall(repr(rows_of(raw))))
            assert stored == living | {"canarykeptkk"}
    assert len(gone) > 12
    assert len(chat.own) > 12
    assert [one.text for one in bystander.export()] == [kept]
    assert memory.verify().ok
    scrubbed(memory, url, gone, set(chat.own.values()))


def forgotten(memory: Memory, chat: Conversation, chosen: set[int], round_: int) -> dellm.Receipt:
    if round_ % 2 == 0:
        return memory.forget(ids=sorted(chosen))
    # By its words: whoever repeats them is a match as well, and was made from it anyway.
    first, second = sorted(chosen)
    plan = memory.plan(quote=chat.own[first], include=[second])
    assert not set(WORD.findall(str(plan.to_json())))
    return memory.forget(plan)


def scrubbed(memory: Memory, url: str, gone: set[str], living: set[str]) -> None:
    """Clean up, and look for every erased word in the bytes of the files, in each encoding."""
    assert memory.scrub().clean
    assert {one.level for one in memory.receipts()} == {"scrubbed"}
    for word in sorted(gone)[:3] if is_postgres(url) else sorted(gone):
        report = memory.scan(word)
        assert (report.places, report.files) == ((), ())
    if is_postgres(url):
        assert memory.scan(min(living)).files
        return
    data = b"".join(path.read_bytes() for path in Path(url).parent.glob("memory.db*"))
    for word in gone:
        for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
            assert word.encode(encoding) not in data
    assert all(word.encode() in data for word in living)


def test_what_a_relaxed_reach_spares_may_still_say_it_and_the_receipt_says_so(
    memory: Memory,
) -> None:
    chat = Conversation(memory, seed=5)
    source = chat.say()
    reply = memory.record(parrot(source.text), context=[source.id])
    receipt = memory.forget(ids=[source.id], reach=dellm.depth(0))
    assert (receipt.relaxed, receipt.spared) == (True, 1)
    assert chat.own[source.id] in memory.get(reply.id).text
    assert memory.scan(chat.own[source.id], files=False).places[0].ids == (reply.id,)
    assert memory.forget(memory.plan(chat.own[source.id])).ids == (reply.id,)
    assert memory.scan(chat.own[source.id], files=False).clean
