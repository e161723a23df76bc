"""Deletion by meaning against deletion by provenance: the paper's Figure 8.

Personas talk with each system, then ask for one statement to be forgotten. A system with semantic
deletion has the whole conversation in every prompt and removes each message whose cosine with the
statement reaches a threshold: a high one leaves what was said from it in other words, a low one
takes messages that have nothing to do with it. Cosines of another embedder are others, so that the
shapes of two curves can be compared, and their thresholds cannot.

The paper takes 20 personas. In the middle of the curve so few vary by 10 points and more, which is
why all 100 stand beside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .evidence import Part, ratio
from .judging import Answered, Judge, judge_of
from .persona_replay import Asked, Replayed, replay
from .personas import Persona, load
from .results import Cell, Number, Report, mean, rate
from .running import Run
from .stating import states
from .systems import Make
from .systems.every import every

THRESHOLDS = (0.8, 0.6, 0.4, 0.2, 0.1)
SIZES = (20, 100)  # personas: the paper's, and all
SMALL = 2

Found = dict[str, list[Replayed]]  # of each system, one for each persona


def run(run: Run) -> Report:
    """Replay every persona with every system; score the first 20, and all."""
    personas = run.first(list(load()), SMALL)
    return report(run, personas, replayed(run, personas, every(run, THRESHOLDS)))


def replayed(run: Run, personas: Sequence[Persona], makers: Mapping[str, Make]) -> Found:
    """Return what each system did with each persona."""
    return {
        name: [replay(make, one) for one in run.watch(personas, name)]
        for name, make in makers.items()
    }


def report(run: Run, personas: Sequence[Persona], found: Found) -> Report:
    """Return the report of all sizes that there are personas for."""
    judge = judge_of(run)
    return Report(
        name=run.named("semantic"),
        title=f"Semantic deletion against DeLLM, Persona Facts ({run.model.name})",
        rows=[
            {"personas": size, "system": name, **scored(personas[:size], said[:size], judge, run)}
            for size in sorted({min(size, len(personas)) for size in SIZES})
            for name, said in found.items()
        ],
        settings=run.settings(dataset="Persona Facts", right_by=judge.name),
        notes=notes(),
    )


def scored(
    personas: Sequence[Persona], said: Sequence[Replayed], judge: Judge, run: Run
) -> dict[str, Cell | Number]:
    """Return what one system reaches over personas, and what it takes."""
    before, after = [one.before for one in said], [one.after for one in said]
    told = zip(personas, said, strict=True)
    return {
        "forget before": rate(judge.right(one.forget) for one in before),
        "forget after": rate(judge.right(one.forget) for one in after),
        "retain before": ratio(parts(before, judge), run.seed),
        "retain after": ratio(parts(after, judge), run.seed),
        "left in memory": rate(left(one, persona) for persona, one in told),
        "messages held": mean([one.held for one in said], run.seed),
        "messages gone": mean([one.gone for one in said], run.seed),
    }


def parts(asked: Sequence[Asked], judge: Judge) -> Iterator[list[Part]]:
    """Yield for each persona how its other questions were answered: a part for each verdict."""
    for one in asked:
        yield [part(answer, judge) for answer in one.retain]


def part(answer: Answered, judge: Judge) -> Part:
    """Return 1 of 1 for a right answer, 0 of 1 for a wrong one, 0 of 0 without a verdict."""
    right = judge.right(answer)
    return float(bool(right)), float(right is not None)


def left(said: Replayed, persona: Persona) -> bool:
    """Tell whether a message that is left states what was to be forgotten."""
    return any(states(text, persona.forget.answer) for text in said.left)


def notes() -> list[str]:
    """Return what a reader of the table must know."""
    return [
        "Forget: the question about the statement that is to go, one for each persona. Retain: the "
        "three others; intervals draw whole personas. After a deletion, lower is better for forget "
        "and for what is left, higher for retain. Left in memory: personas with a message that is "
        "left and holds at least half of the answer's telling words.",
        "Semantic deletion removes every message whose cosine with the statement is the number or "
        "more. Held and gone: messages of a persona's conversation, before it asks; gone: that the "
        "system does not hold any longer. A request, and a reply to it, are not counted.",
    ]
