"""The demo: a conversation of many days, a phone number that spreads in it, and its forgetting.

Run it with `python -m dellm.demo`. It talks with a real model: an OpenAI-compatible endpoint where
OPENAI_API_KEY or OPENAI_BASE_URL is set, else SmolLM2 in this process, with MiniLM for meaning; their
weights are fetched once. Without them it says so and goes on with parts that need nothing. The exit
code is 0 only when the number is in no table and no file any more, and in no answer.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from rich.console import Console
from rich.text import Text

from dellm import values, weights
from dellm.assistant import Assistant
from dellm.commands.replaying import Line, read_lines
from dellm.commands.session import FAILED, console_for
from dellm.commands.showing import one_line, shown, table
from dellm.errors import DellmError
from dellm.memory import Memory
from dellm.models import ExtractiveReader, Model, SmolModel, resolve_model
from dellm.scan import ScanReport
from dellm.systems import Reply

NUMBER = "+1 415 555 0132"
REQUEST = "Please forget my phone number."
SAME_QUESTION = "Tell me my phone number."
OTHER_QUESTION = "What is my favourite tea?"
OTHER_FACT = "oolong"
WORDS = 20  # tokens that the local model may answer with
MOST = 3  # records in a prompt: so small a model gets lost in more


@dataclass(frozen=True, slots=True)
class Parts:
    """What the demo runs on: the model that answers, and the embedder's name."""

    model: Model
    embedder: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return the exit code: 0 forgotten and proved, 1 not, 3 an error."""
    options = _options(arguments)
    console = console_for()
    try:
        parts = _parts(console, offline=options.offline)
        if options.db:
            return _run(options.db, parts, console)
        with tempfile.TemporaryDirectory(prefix="dellm-demo-") as folder:
            return _run(str(Path(folder) / "memory.db"), parts, console)
    except DellmError as error:
        print(f"dellm demo: {shown(str(error))}", file=sys.stderr)
        return FAILED


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m dellm.demo", description="The demo of DeLLM.")
    parser.add_argument(
        "--db", help="keep the memory: a path or postgresql://...; else a temp folder"
    )
    parser.add_argument("--offline", action="store_true", help="no model, no weights: quote only")
    return parser.parse_args(arguments)


def _parts(console: Console, *, offline: bool) -> Parts:
    """Return the best model and embedder that are in reach."""
    if offline:
        return Parts(ExtractiveReader(), "hashing")
    named = os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")
    has_meaning = _fetched(console, "minilm", ("tokenizers", "safetensors"))
    embedder = "local" if has_meaning else "hashing"
    if named:
        return Parts(resolve_model(), embedder)
    if _fetched(console, "smollm2", ("xllamacpp",)):
        return Parts(SmolModel(max_tokens=WORDS), embedder)
    return Parts(ExtractiveReader(), embedder)


def _fetched(console: Console, name: str, libraries: Sequence[str]) -> bool:
    """Return whether a local model can be used, fetching its weights where that is needed."""
    if not all(map(importlib.util.find_spec, libraries)):
        _say(console, f"{name} needs the extra `local`: going on without it.")
        return False
    try:
        weights.install([name], progress=lambda step: _say(console, step))
    except DellmError as error:
        _say(console, f"{error.what} Going on without {name}.")
        return False
    return True


def _run(url: str, parts: Parts, console: Console) -> int:
    with Memory.open(url, embedder=parts.embedder) as opened:
        return _Demo(opened.workspace("demo"), parts, console).play()


class _Demo:
    """The demo's scenes, in order."""

    def __init__(self, memory: Memory, parts: Parts, console: Console) -> None:
        self.memory = memory
        self.parts = parts
        self.console = console
        self.needle = values.needle(NUMBER, region="US")

    def play(self) -> int:
        """Play all scenes; return the exit code."""
        model, embedder = self.parts.model.name, self.parts.embedder
        self._title(f"A conversation of four weeks ({model}, {embedder} embedder)")
        self._converse()
        chat = self._assistant("today")
        self._title("Before: the number is known")
        self._show(chat, SAME_QUESTION)
        before = self.memory.scan(NUMBER)
        _say(self.console, f"The number is in {len(before)} places of tables and files.")
        self._title("The request, in the chat")
        self._show(chat, REQUEST)
        reply = self._show(chat, "yes")
        if reply.receipt is None or reply.receipt.level != "scrubbed":
            _say(self.console, str(self.memory.scrub()))
        after = self.memory.scan(NUMBER)
        self._title("Where the number is: before and after")
        self._compare(before, after)
        self._title("The same question again, and another one")
        same, other = self._show(chat, SAME_QUESTION), self._show(chat, OTHER_QUESTION)
        return self._verdict(before, after, same, other)

    def _assistant(self, thread: str) -> Assistant:
        return Assistant(self.memory, self.parts.model, thread=thread, k=MOST)

    def _converse(self) -> None:
        chats: dict[str, Assistant] = {}
        day = ""
        for line in conversation():
            thread = line.thread or "main"
            if thread not in chats:
                chats[thread] = self._assistant(thread)
            if line.at is not None and (today := f"{line.at:%A %d %B %Y}") != day:
                day = today
                self.console.print(Text(f"\n{day}, thread “{thread}”", style="bold"))
            self._show(chats[thread], line.text, line)

    def _show(self, chat: Assistant, text: str, line: Line | None = None) -> Reply:
        """Send a message, and print it with the reply and what that was made from."""
        reply = chat.send(text, at=line.at if line else None)
        number = "" if reply.question is None else f"{reply.question:>3} "
        self.console.print(Text(f"{number}you: {text}", style="cyan"))
        if reply.answer is None:
            _say(self.console, reply.text)
        else:
            made = ", ".join(map(str, reply.context))
            said = Text(f"{reply.answer:>3} assistant: {one_line(reply.text)}")
            self.console.print(said.append(f"  [from {made}]", style="dim"))
        return reply

    def _title(self, text: str) -> None:
        self.console.print()
        self.console.rule(Text(text), align="left")

    def _compare(self, before: ScanReport, after: ScanReport) -> None:
        first, last = _places(before), _places(after)
        rows = [(place, first.get(place, 0), last.get(place, 0)) for place in {**first, **last}]
        rows.append(("all", len(before), len(after)))
        self.console.print(table(("place", "before", "after"), rows))
        looked = len(after.looked_at)
        _say(self.console, f"{looked} tables and files were looked at, for every spelling.")

    def _verdict(self, before: ScanReport, after: ScanReport, same: Reply, other: Reply) -> int:
        known = [self.memory.get(id_).text for id_ in other.context]
        checks = (
            ("the number was in the memory before", len(before) > 0),
            ("it is in no table and in no file any more", after.clean),
            ("it is in no answer any more", not self._leaks(same, other)),
            (
                "what has nothing to do with it is still known",
                any(OTHER_FACT in one for one in known),
            ),
            ("the audit chain and the graph hold", self.memory.verify().ok),
        )
        self._title("Verdict")
        for name, holds in checks:
            style = "green" if holds else "bold red"
            self.console.print(Text(f"{'yes' if holds else 'NO ':4}{name}", style=style))
        return 0 if all(holds for _, holds in checks) else 1

    def _leaks(self, *replies: Reply) -> bool:
        holds: Callable[[str], bool] = values.quick(self.needle)
        return any(holds(reply.text) for reply in replies)


def conversation() -> list[Line]:
    """Return the bundled conversation: what the user said, in six threads over four weeks."""
    with resources.as_file(resources.files("dellm") / "data" / "conversation.jsonl") as path:
        return read_lines(path)


def _places(report: ScanReport) -> dict[str, int]:
    tables = {f"table {one.table}, {one.column}": one.count for one in report.places}
    return tables | {f"file {one.file}": one.count for one in report.files}


def _say(console: Console, text: str) -> None:
    console.print(Text(shown(text)))


if __name__ == "__main__":
    sys.exit(main())
