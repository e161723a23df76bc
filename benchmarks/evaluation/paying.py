"""Runs that cost money: tried out first, begun only if that is wanted, and never paid for twice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import numpy as np

from dellm.embedding import Embedder, OpenAIEmbedder
from dellm.errors import ModelError
from dellm.models import ExtractiveReader, Model, OpenAIModel

from .canary import Canary
from .costs import Bill, Prices, prices
from .kept_answers import AnswerFile, Answers, KeptEmbedder, KeptModel, Tally, Unsaved, source_of
from .results import RESULTS
from .running import Run
from .standing_in import REPLY, StandIn, StandInEmbedder, StandInJudge, by_meaning

KEPT = RESULTS / ".cache" / "answers.db"
MEANT = "vectors of MiniLM"
SPELLED = "vectors by spelling, which makes it rather low (better: dellm models install minilm)"
REFUSED = 2
STOPPED = 130  # what a shell says of a program that was interrupted
# Runs all that was asked for and returns the exit status. The function it is given is called before
# a report is saved, and raises if the report is not to be believed.
Play = Callable[[Run, Callable[[], None]], int]
Try = Callable[[Run], None]


class Wishes(Protocol):
    """What the command line says of paid models."""

    cache: Path
    prices: Path | None
    estimate: bool
    yes: bool


def costs(run: Run) -> bool:
    """Tell whether a run has a model that is paid for."""
    return any(map(_paid, (run.model, run.embedder, run.judge)))


def _paid(model: object) -> bool:
    return isinstance(model, OpenAIModel | OpenAIEmbedder)


def paid(run: Run, wishes: Wishes, real: Play, dry: Try) -> int:
    """Estimate what a run costs, and run it if that is wanted; return the exit status.

    `dry` runs the same without showing or keeping anything. Raises DellmError.
    """
    table = prices(wishes.prices)
    file = AnswerFile(wishes.cache)
    try:
        bill = estimated(run, file, table, dry)
        print(f"\n{said(bill, run, file)}\n")
        if wishes.estimate:
            return 0
        if bill.asked and not agreed(yes=wishes.yes):
            return REFUSED
        return paid_for(run, file, table, real)
    finally:
        file.close()


def estimated(run: Run, file: AnswerFile, table: Prices, dry: Try) -> Bill:
    """Try a run out with stand-ins; return what it would ask that is not kept in the file."""
    answers = Unsaved(file)
    tallies: list[Tally] = []
    tried = replace(
        run,
        model=_stand_in(run.model, "answers", answers, tallies),
        judge=run.judge and _stand_in(run.judge, "judging", answers, tallies),
        embedder=_stand_in_embedder(run.embedder, file, answers, tallies),
    )
    dry(tried)
    return Bill(tallies, table)


def _stand_in(model: Model, role: str, answers: Answers, tallies: list[Tally]) -> Model:
    if isinstance(model, Canary | ExtractiveReader):
        return model
    inner = StandInJudge(model) if role == "judging" else StandIn(model)
    if not isinstance(model, OpenAIModel):
        return inner  # costs nothing, but may take long
    return KeptModel(inner, source_of(model, "chat"), answers, _tally(model.name, role, tallies))


def _stand_in_embedder(
    embedder: Embedder, file: AnswerFile, answers: Answers, tallies: list[Tally]
) -> Embedder:
    if not isinstance(embedder, OpenAIEmbedder):
        return embedder
    source = source_of(embedder, "embedding")
    known = file.one_of(source)
    width = None if known is None else len(np.frombuffer(known, "<f4"))
    inner = StandInEmbedder(embedder, width)
    return KeptEmbedder(inner, source, answers, _tally(embedder.name, "vectors", tallies))


def _tally(name: str, role: str, tallies: list[Tally]) -> Tally:
    tallies.append(Tally(name, role))
    return tallies[-1]


def said(bill: Bill, run: Run, file: AnswerFile) -> str:
    """Return an estimate in words."""
    hosts = {
        urlsplit(one.base_url).hostname or "unknown"
        for one in (run.model, run.embedder, run.judge)
        if isinstance(one, OpenAIModel | OpenAIEmbedder)
    }
    vectors = MEANT if by_meaning() else SPELLED
    lines = [
        f"This run would ask {bill.asked} requests and cost about {bill.total()}.",
        bill.table(),
        f"Tried out with a stand-in whose replies have {REPLY} tokens, and with {vectors}. "
        f"{len(file)} answers and vectors are kept in {file.path}.",
        *(line for host in sorted(hosts) for line in bill.caveats(host)),
    ]
    return "\n\n".join(dict.fromkeys(lines))


def agreed(*, yes: bool) -> bool:
    """Tell whether the run is wanted: by --yes, or asked on a terminal."""
    if yes:
        return True
    if not sys.stdin.isatty():
        print(
            "Nothing was asked: there is no terminal to agree on. Give --yes to run it at this "
            "cost, or --estimate to see the cost alone.",
            file=sys.stderr,
        )
        return False
    if input("Go on? [y/N] ").strip().casefold() in {"y", "yes"}:
        return True
    print("Nothing was asked.", file=sys.stderr)
    return False


def paid_for(run: Run, file: AnswerFile, table: Prices, real: Play) -> int:
    """Run with the paid models, each answer kept at once; say at the end what that was."""
    tallies: list[Tally] = []
    kept = replace(
        run,
        model=_kept(run.model, "answers", file, tallies),
        judge=run.judge and _kept(run.judge, "judging", file, tallies),
        embedder=_kept_embedder(run.embedder, file, tallies),
    )
    whole = False
    try:
        status = real(kept, lambda: check(tallies))
        whole = True
        return status
    except KeyboardInterrupt:
        return STOPPED
    finally:
        if not whole:
            print(
                f"The run is not finished. {len(file)} answers and vectors are kept in {file.path}: "
                "the same command goes on from there and asks for none of them again.",
                file=sys.stderr,
            )
        settle(run, tallies)
        print(Bill(tallies, table).spent())


def settle(run: Run, tallies: list[Tally]) -> None:
    """Take the tokens that the endpoints counted."""
    used = {"answers": run.model, "judging": run.judge, "vectors": run.embedder}
    for tally in tallies:
        asked = used[tally.role]
        if isinstance(asked, OpenAIModel | OpenAIEmbedder):
            tally.settle(asked.used)


def check(tallies: list[Tally]) -> None:
    """Raise ModelError if a request failed: the memory goes on without vectors, a result can't."""
    failed = sum(one.failed for one in tallies)
    if failed:
        raise ModelError(f"{failed} requests got no answer, so that the numbers are not those.")


def _kept(model: Model, role: str, file: Answers, tallies: list[Tally]) -> Model:
    if not isinstance(model, OpenAIModel):
        return model
    return KeptModel(model, source_of(model, "chat"), file, _tally(model.name, role, tallies))


def _kept_embedder(embedder: Embedder, file: Answers, tallies: list[Tally]) -> Embedder:
    if not isinstance(embedder, OpenAIEmbedder):
        return embedder
    tally = _tally(embedder.name, "vectors", tallies)
    return KeptEmbedder(embedder, source_of(embedder, "embedding"), file, tally)
