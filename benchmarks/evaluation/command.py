"""The command line of the evaluation: which experiments there are, and how one is run."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.progress import track

from dellm.errors import DellmError

from . import paying
from .choosing import chat_model, embedder_of
from .results import RESULTS, Report
from .running import MissingData, Run

# The module of each experiment; it has `run(run: Run) -> Report | list[Report]`.
EXPERIMENTS: dict[str, str] = {
    "gatemem": "benchmarks.evaluation.gatemem",
    "tables": "benchmarks.evaluation.tables",
    "semantic": "benchmarks.evaluation.semantic",
    "ablation": "benchmarks.evaluation.ablation",
    "residue": "benchmarks.evaluation.residue",
    "forgeteval": "benchmarks.evaluation.forgeteval",
    "dmr": "benchmarks.evaluation.dmr",
    "longmemeval": "benchmarks.evaluation.longmemeval",
    "locomo": "benchmarks.evaluation.locomo",
    "locomo-replies": "benchmarks.evaluation.locomo_replies",
    "msc": "benchmarks.evaluation.msc",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for, print and save it; return the exit status."""
    options = parser().parse_args(arguments)
    names = list(EXPERIMENTS) if options.name == "all" else [options.name]
    try:
        run = run_of(options)
        if paying.costs(run):
            return paying.paid(
                run, options, partial(played, names, options.out), partial(tried, names)
            )
        if options.estimate:
            print("No model of this run is paid for.")
            return 0
        return played(names, options.out, run)
    except DellmError as error:
        print(error, file=sys.stderr)
        return 2


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.evaluation", description=__doc__)
    made.add_argument("name", choices=[*EXPERIMENTS, "all"])
    made.add_argument(
        "--model", default="extractive", help="extractive, canary, local, openai:NAME"
    )
    made.add_argument("--embedder", default="minilm", help="minilm, hashing, openai:NAME")
    made.add_argument(
        "--judge", default="none", help="none, or a model such as openai:gpt-4.1-nano"
    )
    made.add_argument("--data", type=Path, help="the folder that holds tofu/, gatemem/ and others")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--limit", type=int, help="only the first so many personas, episodes, cases")
    made.add_argument("--small", action="store_true", help="the sample that runs in CI")
    made.add_argument("--out", type=Path, default=RESULTS, help="the folder for the results")
    paid = made.add_argument_group("models that are paid for (openai:NAME)")
    paid.add_argument("--estimate", action="store_true", help="say what it would cost, and stop")
    paid.add_argument("--yes", action="store_true", help="run it at that cost without asking")
    paid.add_argument(
        "--cache", type=Path, default=paying.KEPT, help="the file that keeps what was answered"
    )
    paid.add_argument("--prices", type=Path, help="a price table that comes before ours (TOML)")
    return made


def run_of(options: argparse.Namespace) -> Run:
    """Make the models that the options name."""
    return Run(
        model=chat_model(options.model),
        embedder=embedder_of(options.embedder),
        judge=None if options.judge == "none" else chat_model(options.judge),
        data=options.data,
        seed=options.seed,
        small=options.small,
        limit=options.limit,
        watch=watched,
    )


def watched(items: Iterable[Any], name: str) -> Iterator[Any]:
    """Pass items on, with a progress bar on a terminal."""
    return iter(track(list(items), name, disable=not sys.stderr.isatty()))


def played(
    names: Sequence[str], out: Path, run: Run, check: Callable[[], None] = lambda: None
) -> int:
    """Run experiments, print and save their reports; return the exit status.

    Of several, those whose data are not there are skipped: 2 only if all are. `check` is called
    before a report is saved, and raises if it is not to be believed.
    """
    ran = 0
    for name in names:
        try:
            made = reports(name, run)
        except MissingData as error:
            if len(names) == 1:
                raise
            print(f"Skipped {name}: {error.what}")
            continue
        check()
        ran += 1
        for report in made:
            print(f"\n{report.title}\n\n{report.table()}\n")
            print(*report.notes, f"Saved as {report.save(out).name}.", sep="\n")
    return 0 if ran else 2


def tried(names: Sequence[str], run: Run) -> None:
    """Run experiments whose data are there, and throw their reports away."""
    for name in names:
        try:
            reports(name, run)
        except MissingData:
            if len(names) == 1:
                raise


def reports(name: str, run: Run) -> list[Report]:
    """Run one experiment."""
    made = importlib.import_module(EXPERIMENTS[name]).run(run)
    return [made] if isinstance(made, Report) else list(made)
