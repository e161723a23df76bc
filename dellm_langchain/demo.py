"""The demo for LangGraph: one agent, two checkpointers, and what each keeps of a forgotten address.

Run it with `python -m dellm_langchain.demo`. The agent is a `create_agent` with a tool that needs a
yes, a graph inside the tool, and notes in a string channel. It runs on DeLLMSaver, and the very same
script on langgraph-checkpoint-sqlite where that is installed. Everything shown is counted in the
files that the run has left. The exit code is 0 only when DeLLMSaver has kept nothing.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dellm import DellmError, Memory, Plan, Receipt

from .demo_agent import Chosen, choose
from .demo_counting import size_of_files
from .demo_sides import (
    OTHER_FACT,
    SECRET,
    WORD,
    Measured,
    Ours,
    Outcome,
    Said,
    Side,
    Stock,
    play,
)

PIPED_WIDTH = 120  # columns where the output is no terminal
NO_STOCK = (
    "langgraph-checkpoint-sqlite is not installed, so DeLLMSaver has nothing next to it here."
    " For the comparison: pip install langgraph-checkpoint-sqlite"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return the exit code: 0 nothing is left, 1 something is, 3 an error."""
    options = _options(arguments)
    logging.getLogger("langgraph").addFilter(_not_of_erased_calls)
    chosen = choose(offline=options.offline)
    try:
        if options.keep:
            Path(options.keep).mkdir(parents=True)
            return _Demo(Path(options.keep), chosen).play()
        with tempfile.TemporaryDirectory(prefix="dellm-demo-") as folder:
            return _Demo(Path(folder), chosen).play()
    except DellmError as error:
        print(f"dellm demo: {error}", file=sys.stderr)
    except OSError as error:
        print(f"dellm demo: {error.strerror or type(error).__name__}", file=sys.stderr)
    except chosen.faults as error:
        print(f"dellm demo: the endpoint failed: {type(error).__name__}", file=sys.stderr)
    return 3


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m dellm_langchain.demo", description="The demo of DeLLMSaver."
    )
    parser.add_argument("--offline", action="store_true", help="no model: quote only")
    parser.add_argument("--keep", metavar="FOLDER", help="a new folder to leave the databases in")
    return parser.parse_args(arguments)


def _not_of_erased_calls(record: logging.LogRecord) -> bool:
    """Keep out LangGraph's remark on each tool call erased from an old checkpoint: a None is there."""
    return not record.getMessage().startswith("Ignoring invalid packet type")


class _Demo:
    """The demo's scenes, in order."""

    def __init__(self, folder: Path, chosen: Chosen) -> None:
        self.folder = folder
        self.chosen = chosen
        self.console = Console(highlight=False, markup=False, emoji=False)
        if not self.console.is_terminal:
            self.console.width = PIPED_WIDTH

    def play(self) -> int:
        """Play all scenes; return the exit code."""
        self._title("A LangGraph agent on DeLLMSaver")
        self._say(f"Model: {self.chosen.says}")
        ours = Ours(self._made("dellm"), self._show_forgetting)
        outcomes: list[tuple[Side, Outcome]] = [(ours, self._play(ours, self._show))]
        if find_spec("langgraph.checkpoint.sqlite") is None:
            self._say(f"\n{NO_STOCK}")
        else:
            outcomes.insert(0, self._stock())
        self._compare(outcomes)
        self._title("An old checkpoint (the state right after the address was told), read now")
        for side, outcome in outcomes:
            self._say(f"{side.name}: {_told(outcome.told_now)}")
        self._title("The next model call")
        for side, outcome in outcomes:
            self._say(
                f"{side.name}, the prompt and what came of it:\n{_prompt(outcome.prompt_after)}"
            )
            for said in outcome.replies:
                self._show(said)
        return self._verdict(ours, outcomes[-1][1])

    def _made(self, name: str) -> Path:
        made = self.folder / name
        made.mkdir()
        return made

    def _compare(self, outcomes: Sequence[tuple[Side, Outcome]]) -> None:
        self._title(f"Where “{WORD.text}” is, before and after")
        self.console.print(_counts(outcomes))
        for side, outcome in outcomes:
            left = outcome.after
            self._say(
                f"After {side.how}, {side.name} has it in {sum(left.rows.values())} rows and"
                f" {left.running} times in its files."
            )
        empty = self._empty() / 1024
        self._say(
            "Rows: every cell of every table (DeLLM's by memory.scan, which also decodes). In files:"
            " times in the bytes of all files; running: with the write-ahead log, stopped: after a"
            " clean stop. In the prompt: the last call before, the next one after. An empty DeLLM"
            f" database has {empty:,.0f} KiB; how both grow: python -m benchmarks.checkpoints"
        )

    def _empty(self) -> int:
        """Return the bytes of a DeLLM database with nothing in it."""
        folder = self._made("empty")
        Memory.open(str(folder / "memory.db"), embedder=None).close()
        return size_of_files(folder)

    def _play(self, side: Side, show: Callable[[Said], None]) -> Outcome:
        return play(side, self.chosen.model, show)

    def _stock(self) -> tuple[Side, Outcome]:
        """Run the same script on the stock saver; its turns are the ones already shown."""
        side = Stock(self._made("stock"))
        self._title("The same script on SqliteSaver (langgraph-checkpoint-sqlite)")
        turns: list[Said] = []
        outcome = self._play(side, turns.append)
        self._say(
            f"{len(turns)} turns, then the documented way to forget: update_state with a"
            f" RemoveMessage for each of the {side.removed} messages that say “{WORD.text}”."
        )
        return side, outcome

    def _show(self, said: Said) -> None:
        self.console.print(Text(f"  you: {said.text}", style="cyan"))
        for one in said.asked:
            self._say(f"       tool, approved by you: {one}")
        self._say(f"agent: {said.reply}")

    def _show_forgetting(self, what: Plan | Receipt) -> None:
        if isinstance(what, Plan):
            self._title(f"memory.plan(“{SECRET}”): what will go, and why (“agent”: a state value)")
        else:
            self._title("memory.forget(plan): the receipt")
        self._say(str(what))

    def _verdict(self, ours: Ours, outcome: Outcome) -> int:
        self._title("Verdict on DeLLMSaver")
        checks = [*_checks(outcome), *_proofs(ours.folder)]
        for name, holds in checks:
            style = "green" if holds else "bold red"
            self.console.print(Text(f"{'yes' if holds else 'NO ':4}{name}", style=style))
        return 0 if all(holds for _, holds in checks) else 1

    def _title(self, text: str) -> None:
        self.console.print()
        self.console.rule(Text(text), align="left")

    def _say(self, text: str) -> None:
        self.console.print(Text(_visible(text)), soft_wrap=True)


def _checks(outcome: Outcome) -> Iterator[tuple[str, bool]]:
    """Yield what must hold of a run, and whether it does."""
    before, after = outcome.before, outcome.after
    then = (sum(before.rows.values()), before.running, before.checkpoints.telling)
    yield "the address was in rows, files and checkpoints before", all(then)
    yield "it is in no row any more", not after.rows
    yield "it is in no byte of any file, running or stopped", not (after.running or after.stopped)
    left = (after.checkpoints.telling, after.states.telling, *map(WORD.times, [outcome.told_now]))
    yield "no old checkpoint says it any more", not any(left)
    every = after.checkpoints.of >= before.checkpoints.of and after.states.of >= before.states.of
    yield "every old checkpoint can still be read", every
    replies = [said.reply for said in outcome.replies]
    yield (
        "the next prompt and reply do not have it",
        not WORD.told_by((outcome.prompt_after, replies)),
    )
    yield (
        f"“{OTHER_FACT}”, said before it, is still known",
        OTHER_FACT in repr(outcome.prompt_after),
    )
    yield "another thread is exactly as it was", outcome.others_untouched


def _proofs(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield what the memory itself says when it is opened once more."""
    with Memory.open(str(folder / "memory.db"), embedder=None) as memory:
        scan = memory.scan(SECRET)
        places = len(scan.looked_at)
        yield f"memory.scan finds it in none of {places} tables and files, decoded", scan.clean
        yield "memory.verify: the audit chain and the graph hold", memory.verify().ok


def _counts(outcomes: Sequence[tuple[Side, Outcome]]) -> Table:
    """Return the table of counts: a pair of columns for each side."""
    made = Table(box=SIMPLE, pad_edge=False)
    made.add_column("")
    for side, _ in outcomes:
        made.add_column(f"{side.name}\nbefore", justify="right")
        made.add_column(f"{side.name}\n{side.how}", justify="right")
    moments = [one for _, outcome in outcomes for one in (outcome.before, outcome.after)]
    tables = sorted({table for one in moments for table in one.rows})
    for table in tables:
        made.add_row(f"rows of {table}", *(str(one.rows.get(table, 0)) for one in moments))
    for name, read in _READINGS.items():
        made.add_row(name, *(str(read(one)) for one in moments))
    return made


_READINGS: dict[str, Callable[[Measured], object]] = {
    "rows in all": lambda one: sum(one.rows.values()),
    "in files (running)": lambda one: one.running,
    "in files (stopped)": lambda one: one.stopped,
    "old states saying it": lambda one: one.states,
    "checkpoints saying it": lambda one: one.checkpoints,
    "in the model's prompt": lambda one: one.prompt,
    "size of the files": lambda one: f"{one.size / 1024:,.0f} KiB",
}


def _told(state: dict[str, Any]) -> str:
    messages = [f"{one.type}: {one.text}" for one in state.get("messages", [])]
    return " / ".join([*messages, f"notes: {state.get('notes', '')}"])


def _prompt(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(f"    {one.type}: {' '.join(one.text.split())}" for one in messages)


def _visible(text: str) -> str:
    """Return text that any terminal can show: control characters and surrogates escaped."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text
    )


if __name__ == "__main__":
    sys.exit(main())
