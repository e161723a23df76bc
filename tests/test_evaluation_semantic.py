"""Deletion by meaning: a lower threshold takes more, and what is left is what the texts say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from benchmarks.evaluation import figures, semantic
from benchmarks.evaluation.canary import Canary
from benchmarks.evaluation.judging import Answered, WordJudge
from benchmarks.evaluation.persona_replay import Asked, Replayed, replay
from benchmarks.evaluation.personas import Persona, load
from benchmarks.evaluation.results import Cell, Number, Report, share
from benchmarks.evaluation.running import Run
from benchmarks.evaluation.systems import Make
from benchmarks.evaluation.systems.every import every
from dellm.embedding import HashingEmbedder

RUN = Run(Canary(), HashingEmbedder(), small=True)
PERSONAS = load()[: semantic.SMALL]
FULL, OURS, PAPER = "full history (LangChain)", "ours (LangChain)", "DeLLM (paper)"


@pytest.fixture(scope="module")
def report() -> Report:
    return semantic.run(RUN)


def number(report: Report, system: str, column: str) -> float:
    (cell,) = [row[column] for row in report.rows if row["system"] == system]
    assert isinstance(cell, Number)
    assert cell.value is not None
    return cell.value


def by_threshold(report: Report, column: str) -> list[float]:
    """The values of a column from the highest threshold to the lowest."""
    names = [f"semantic deletion ({one})" for one in semantic.THRESHOLDS]
    return [number(report, name, column) for name in names]


def test_every_system_is_there_once_for_every_number_of_personas(report: Report) -> None:
    assert [row["system"] for row in report.rows] == list(every(RUN, semantic.THRESHOLDS))
    assert {row["personas"] for row in report.rows} == {semantic.SMALL}


def test_a_lower_threshold_takes_more_and_leaves_less_to_answer_from(report: Report) -> None:
    gone = by_threshold(report, "messages gone")
    assert gone == sorted(gone)
    assert gone[0] < gone[-1]
    for column in ("forget after", "retain after", "left in memory"):
        found = by_threshold(report, column)
        assert all(high >= low for high, low in pairwise(found))
    assert by_threshold(report, "retain after")[-1] < 1


def test_the_ends_are_no_memory_and_a_memory_that_deletes_nothing(report: Report) -> None:
    for column in ("forget before", "forget after", "retain before", "messages held"):
        assert number(report, "no memory", column) == 0
    assert number(report, FULL, "forget after") == number(report, FULL, "retain after") == 1
    assert number(report, FULL, "messages gone") == 0


@pytest.mark.parametrize("system", [PAPER, OURS])
def test_what_was_made_from_the_fact_goes_where_a_high_threshold_leaves_it(
    report: Report, system: str
) -> None:
    assert number(report, system, "forget before") == 1
    assert number(report, system, "forget after") == 0
    assert number(report, system, "left in memory") == 0
    assert number(report, "semantic deletion (0.8)", "left in memory") == 1


class Forgetful:
    """A system that says it has forgotten, and has only lost what else it knew."""

    name = "control"

    def __init__(self, inner: Make) -> None:
        self._inner = inner()
        self.tell, self.load, self.ask = self._inner.tell, self._inner.load, self._inner.ask
        self.held, self.close = self._inner.held, self._inner.close

    def forget(self, fact: str) -> int:
        """Let the other system forget all messages of the user but the one that is to go."""
        others = [text for one in PERSONAS for text in one.statements if text != fact]
        return sum(self._inner.forget(text) for text in others if text in self.held())


def test_a_system_that_keeps_the_fact_and_loses_the_rest_is_found_out() -> None:
    whole = every(RUN, (0.999,))["semantic deletion (0.999)"]
    found = semantic.replayed(RUN, PERSONAS, {"control": lambda: Forgetful(whole)})
    row = semantic.scored(PERSONAS, found["control"], WordJudge(), RUN)
    values = {name: cell.value for name, cell in row.items() if isinstance(cell, Number)}
    assert values["forget after"] == values["left in memory"] == 1
    # The worst leaker answers the first message with just that message, which goes with it.
    assert values["messages gone"] == len(PERSONAS[0].statements)


def test_what_a_request_adds_is_not_counted_against_what_went() -> None:
    said = replay(every(RUN)[FULL], PERSONAS[0])
    assert (said.gone, said.held) == (0, 30)
    assert len(said.left) == 32


@pytest.mark.parametrize("system", [PAPER, OURS, "semantic deletion (0.4)"])
def test_a_system_says_how_many_messages_it_holds_no_longer(system: str) -> None:
    made = every(RUN, (0.4,))[system]()
    for text in PERSONAS[0].statements:
        made.tell(text)
    before = made.held()
    said = made.forget(PERSONAS[0].forget.fact)
    left = made.held()
    made.close()
    assert said == (Counter(before) - Counter(left)).total() > 1


def made_up(persona: Persona, *answers: str, left: tuple[str, ...] = ()) -> Replayed:
    """A replay in which the other questions were answered so, before and after."""
    retain = tuple(
        Answered(one.question, one.answer, (one.perturbed,), text)
        for one, text in zip(persona.retain, answers, strict=True)
    )
    asked = Asked(Answered("?", persona.forget.answer, (), ""), retain)
    return Replayed(asked, asked, 30, 3, left)


def test_a_share_of_answers_counts_each_and_a_message_that_is_left_is_read() -> None:
    persona = PERSONAS[0]
    right = [one.answer for one in persona.retain]
    said = [
        made_up(persona, *right, left=(f"Was it {persona.forget.answer}?",)),
        made_up(persona, right[0], "no", "no", left=("Hello.",)),
    ]
    row = semantic.scored([persona, persona], said, WordJudge(), RUN)
    retained, kept = row["retain after"], row["left in memory"]
    assert isinstance(retained, Number)
    assert isinstance(kept, Number)
    assert (retained.value, retained.n) == (pytest.approx(4 / 6), 6)
    assert (kept.value, kept.n) == (0.5, 2)


def test_the_figure_shows_each_threshold_and_beside_it_what_others_reach(report: Report) -> None:
    reports = {f"semantic-{model}": replace(report) for model in figures.MODELS}
    drawn = figures.semantic(reports)
    assert figures.png(drawn).startswith(b"\x89PNG\r\n")
    for axes, column in zip(drawn.axes, ("forget after", "retain after"), strict=False):
        lines = {str(one.get_label()): one for one in axes.get_lines()}
        shown = [one.get_text() for one in axes.get_xticklabels()]
        assert shown == [str(one) for one in semantic.THRESHOLDS]
        (curve,) = axes.containers
        assert list(curve.lines[0].get_ydata()) == pytest.approx(
            [100 * one for one in by_threshold(report, column)]
        )
        for name in figures.LEVELS:
            level = lines[f"{name}, {semantic.SMALL} personas"]
            assert set(level.get_ydata()) == {100 * number(report, name, column)}


def test_the_trade_off_is_drawn_with_what_is_lost_across_and_what_is_told_up() -> None:
    rows: list[dict[str, Cell | Number]] = [
        {
            "context": context,
            "replies": replies,
            "reach": reach,
            "others lose all evidence": share(lost, 100),
            "a reply still tells": share(told, 100),
        }
        for context in ("top 5", "last 5")
        for replies in ("as said", "with made up")
        for reach, lost, told in (("depth(0)", 1, 60), ("strict", 25, 0), ("influence(0.5)", 2, 9))
    ]
    name = "locomo-replies-extractive"
    drawn = figures.locomo_replies({name: Report(name, "Made up", rows, {})})
    for axes in drawn.axes:
        hops, bounded = axes.get_lines()[0], axes.get_lines()[3]
        assert (list(hops.get_xdata()), list(hops.get_ydata())) == ([1, 25], [60, 0])
        assert (list(bounded.get_xdata()), list(bounded.get_ydata())) == ([2], [9])


class Silent:
    """A judge that comes to no verdict."""

    name = "silent"

    def right(self, item: Answered, /) -> bool | None:
        """Say nothing."""


def test_an_answer_without_a_verdict_does_not_count() -> None:
    persona = PERSONAS[0]
    row = semantic.scored([persona], [made_up(persona, "a", "b", "c")], Silent(), RUN)
    for name in ("forget after", "retain after"):
        cell = row[name]
        assert isinstance(cell, Number)
        assert (cell.value, cell.n) == (None, 0)
