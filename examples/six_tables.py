"""One phone number, said once, in six tables; then the user asks to forget it.

On the left an app as many are built, with a table for each of its parts: the request deletes the
message, and five copies stay. On the right the same turns through DeLLM: one forget, and the number
is in no table that the database lists and in no byte of its files.

Run it with `python examples/six_tables.py`: no model, no network. The stand-in for a model copies all
that it is sent, which is the worst that a model can do. The exit code is 0 when five are left on the
left and none on the right.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dellm import (
    HashingEmbedder,
    Memory,
    Receipt,
    RuleExtractor,
    ScanReport,
)
from dellm.values import needle, quick

NUMBER = "+1 415 555 0142"
TELLING = f"My phone number is {NUMBER}, for when a booking needs a reminder."
SAID = ("I work at Ledgerly.", TELLING, "My dog is called Biscuit.")
ASKED = ("What is my phone number?", "What is my dog called?")
REQUEST = "Please forget my phone number."
TABLES = ("messages", "search_index", "summaries", "facts", "audit_log", "response_cache")


def copying(*texts: str) -> str:
    """Return all that a model is sent: nothing that was in a prompt can stay unseen."""
    return " ".join(texts)


# the app with six tables


class SixTables:
    """An app whose every part writes a table of its own. Nothing tells which row came from which."""

    def __init__(self, path: Path) -> None:
        """Open the app's database, made new."""
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript(
            "create table messages(role text, content text);"
            "create table search_index(vector blob, text text);"
            "create table summaries(text text);"
            "create table facts(key text, value text, valid_from text, valid_to text);"
            "create table audit_log(event text);"
            "create table response_cache(prompt text, reply text);"
            "insert into summaries values ('');"
        )

    def hear(self, text: str) -> None:
        """Store what the user said, in each part's own way."""
        vector = HashingEmbedder().embed([text])[0].tobytes()
        self.db.execute("insert into messages values ('user', ?)", (text,))
        self.db.execute("insert into search_index values (?, ?)", (vector, text))
        (summary,) = self.db.execute("select text from summaries").fetchone()
        self.db.execute("update summaries set text = ?", (copying(summary, text),))
        if NUMBER in text:
            fact = ("phone", NUMBER, "2026-01-19", None)
            self.db.execute("insert into facts values (?, ?, ?, ?)", fact)
            self.db.execute(
                "insert into audit_log values (?)", (f"fact saved: {fact[0]} = {NUMBER}",)
            )

    def answer(self, question: str) -> None:
        """Answer from everything that the index has, and keep prompt and reply for the next time."""
        found = [text for (text,) in self.db.execute("select text from search_index")]
        prompt = copying(*found, question)
        self.db.execute("insert into response_cache values (?, ?)", (prompt, copying(prompt)))

    def forget(self) -> None:
        """Do what the request seems to ask: delete the message, and close the fact."""
        self.db.execute("delete from messages where content like ?", (f"%{NUMBER}%",))
        self.db.execute("update facts set valid_to = '2026-03-02' where value = ?", (NUMBER,))

    def count(self) -> dict[str, int]:
        """Return in how many rows of each table that the database lists the number is."""
        holds = quick(needle(NUMBER))
        names = [name for (name,) in self.db.execute("select name from sqlite_master")]
        return {
            name: sum(
                any(isinstance(cell, str) and holds(cell) for cell in row)
                for row in self.db.execute(f"select * from {name}")
            )
            for name in names
        }


# the same with DeLLM


class OneMemory:
    """The same parts, kept as records with what they were made from."""

    def __init__(self, memory: Memory) -> None:
        """Use a workspace of an open memory."""
        self.memory = memory
        memory.summaries.use(
            lambda previous, texts: copying(*filter(None, [previous]), *texts),
            say=lambda record: record.text,
        )

    def hear(self, text: str) -> None:
        """Store what the user said; what is made of it names it as its source."""
        self.memory.remember(text, thread="chat")
        self.memory.index()
        self.memory.summaries.rolling("chat")
        self.memory.facts.extract(RuleExtractor(), thread="chat")

    def answer(self, question: str) -> None:
        """Answer from everything that a search finds, and keep the reply for the next time."""
        context = self.memory.context(question, by="both", k=9, threshold=-1)
        asked = self.memory.remember(question, thread="asked")
        reply = copying(*(record.text for record in context.records), question)
        made = self.memory.record(reply, context=[*context.ids, asked.id], thread="asked")
        self.memory.answers.keep(asked, made)

    def forget(self) -> Receipt:
        """Close the fact as the app does; then forget the number, wherever it went."""
        self.memory.facts.close("phone")
        return self.memory.forget(NUMBER)

    def count(self) -> dict[str, int]:
        """Return in how many records of each part the number is; in the audit, in how many entries."""
        holds = quick(needle(NUMBER))
        records = [record for record in self.memory.export() if holds(record.text)]
        cached = [self._cached(question) for question in ASKED]
        found = self.memory.search("415 555 0142", by="keyword", limit=50)
        entries = [entry for entry in self.memory.ledger() if holds(str(entry.body))]
        return {
            "messages": sum(record.role == "user" for record in records),
            "search_index": sum(holds(hit.record.text) for hit in found),
            "summaries": sum(record.kind == "summary" for record in records),
            "facts": len(self.memory.facts.history("phone")),
            "audit_log": len(entries),
            "response_cache": sum(map(holds, cached)),
        }

    def _cached(self, question: str) -> str:
        hit = self.memory.answers.find(question, thread="asked", same_context=False)
        return "" if hit is None else hit.text


@dataclass(frozen=True, slots=True)
class Outcome:
    """How often the number is in each table before and after, and what proves the right side."""

    left: tuple[dict[str, int], dict[str, int]]
    right: tuple[dict[str, int], dict[str, int]]
    receipt: Receipt
    before: ScanReport
    after: ScanReport
    summary: str

    @property
    def as_it_should(self) -> bool:
        """Whether the left has five tables left, and the right nothing anywhere but all the rest."""
        return (
            sum(1 for count in self.left[1].values() if count) == 5
            and len(self.before) > 0
            and self.after.clean
            and not any(self.right[1].values())
            and self.summary == copying(SAID[0], SAID[2])
        )


def played(app: SixTables | OneMemory) -> dict[str, int]:
    """Hold the conversation; return where the number is by then."""
    for text in SAID:
        app.hear(text)
    for question in ASKED:
        app.answer(question)
    return app.count()


def run(url: str, folder: Path) -> Outcome:
    """Play both sides: the left in a folder, the right in the memory at `url`."""
    left = SixTables(folder / "app.db")
    left_before = played(left)
    left.forget()
    left_after = left.count()
    left.db.close()
    with Memory.open(url, embedder=HashingEmbedder()) as opened:
        right = OneMemory(opened.workspace("six tables"))
        right_before = played(right)
        before = right.memory.scan(NUMBER)
        receipt = right.forget()
        if receipt.level != "scrubbed":
            right.memory.scrub()
        return Outcome(
            (left_before, left_after),
            (right_before, right.count()),
            right.memory.receipt(receipt.number),
            before,
            right.memory.scan(NUMBER),
            right.memory.summaries.current("chat").text,
        )


def shown(outcome: Outcome) -> str:
    """Return the outcome as a small table."""
    lines = [f"{'':16}{'six tables of an app':>22}{'DeLLM':>22}"]
    lines += [f"{'':16}{'before':>11}{'after':>11}{'before':>11}{'after':>11}"]
    for name in TABLES:
        counts = [side[name] for side in (*outcome.left, *outcome.right)]
        lines.append(f"{name:16}" + "".join(f"{count:>11}" for count in counts))
    looked = len(outcome.after.looked_at)
    lines += [
        "",
        f"DeLLM's audit says what happened, not the values. {outcome.receipt.id}: {outcome.receipt.level}.",
        f"All {looked} tables and files that the database lists were read: the number was in "
        f"{len(outcome.before)} places, now in {len(outcome.after)}.",
        f"The summary is made anew from what stays: {outcome.summary}",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both sides and print the table; return the exit code."""
    parser = argparse.ArgumentParser(description="One phone number in six tables.")
    parser.add_argument("--db", help="the memory: a path or postgresql://...; else a temp folder")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="six-tables-") as folder:
        outcome = run(options.db or str(Path(folder) / "memory.db"), Path(folder))
    print(shown(outcome))
    return 0 if outcome.as_it_should else 1


if __name__ == "__main__":
    sys.exit(main())
