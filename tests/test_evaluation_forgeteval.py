"""ForgetEval is scored as its paper says, and what goes beside the target is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from weights_at_hand import weights_folder

import dellm
from benchmarks.evaluation import forgeteval as experiment
from benchmarks.evaluation.canary import Canary
from benchmarks.evaluation.results import Number, Report
from benchmarks.evaluation.running import Run
from benchmarks.evaluation.sets import forgeteval
from benchmarks.evaluation.sets.forgeteval import Case, Mutation
from dellm.embedding import HashingEmbedder, MiniLMEmbedder
from dellm.errors import InvalidInput


def a_case(**other: object) -> Case:
    said: dict[str, object] = {
        "id": "made",
        "category": "prefix_collision",
        "facts": ("Ticket T-100 is done.", "Ticket T-1000 is open.", "It rained."),
        "mutations": (Mutation("purge", "ticket T-100"),),
        "query": "Which ticket is open?",
        "must": ("T-1000",),
        "must_not": ("T-100 is",),
        "neutral": ("Ticket T-1000 is open.", "It rained."),
    }
    return Case(**{**said, **other})  # type: ignore[arg-type] # a test may replace any field


@pytest.fixture
def memory() -> dellm.Memory:
    return dellm.Memory.open(":memory:", embedder=HashingEmbedder())


@pytest.mark.parametrize(
    ("recalled", "passes"),
    [
        (["Ticket T-1000 is open."], True),
        (["It rained."], False),
        (["Ticket T-1000 is open.", "Ticket T-100 is done."], False),
        (["ticket t-1000 is open."], False),
        ([], False),
    ],
)
def test_a_case_passes_with_every_string_wanted_and_none_unwanted(
    recalled: list[str], passes: bool
) -> None:
    assert a_case().passed(recalled) is passes


def test_the_phrase_deletes_its_target_and_nothing_else(memory: dellm.Memory) -> None:
    found = experiment.played(memory, a_case(), experiment.by_phrase)
    assert (found.passed, found.lost) == (True, ())


def test_deleting_everything_loses_every_neutral_fact(memory: dellm.Memory) -> None:
    case = a_case()
    found = experiment.played(memory, case, experiment.everything)
    assert (found.passed, found.lost) == (False, case.neutral)


def test_deleting_nothing_fails_and_loses_nothing(memory: dellm.Memory) -> None:
    found = experiment.played(memory, a_case(), experiment.nothing)
    assert (found.passed, found.lost) == (False, ())


def test_what_supersedes_is_remembered(memory: dellm.Memory) -> None:
    change = Mutation("supersede", "ticket T-100", "Ticket T-100 was reopened.")
    case = a_case(mutations=(change,), must=("reopened",), must_not=("done",))
    assert experiment.played(memory, case, experiment.by_phrase).passed


def test_what_is_released_is_no_longer_recalled_and_can_come_back(memory: dellm.Memory) -> None:
    case = a_case(mutations=(Mutation("release", "ticket T-100"),))
    assert experiment.played(memory, case, experiment.by_phrase).passed
    (receipt,) = memory.receipts()
    assert len(memory.restore(receipt)) == 1


@pytest.mark.parametrize(
    "damage",
    [
        {"mutations": [["shred", "x"]]},
        {"mutations": [["supersede", "x"]]},
        {"mutations": [["purge", "x", "y"]]},
        {"must_contain": "open"},
        {"final_query": None},
    ],
)
def test_a_case_of_another_shape_is_refused_without_its_content(
    tmp_path: Path, damage: dict[str, object]
) -> None:
    path = _written(tmp_path, [{**_ROW, **damage}])
    with pytest.raises(InvalidInput, match=r"cases\.jsonl, row 1") as error:
        forgeteval.read(path)
    assert "T-100" not in str(error.value)


def test_another_number_of_cases_is_refused(tmp_path: Path) -> None:
    _written(tmp_path, [_ROW])
    with pytest.raises(InvalidInput, match="1 cases of ForgetEval where the data set has 109"):
        forgeteval.load(tmp_path)


def test_neutral_are_the_facts_said_so_else_those_that_may_be_recalled(tmp_path: Path) -> None:
    rows = [_ROW, {**_ROW, "neutral": ["It rained."]}]
    read, said = forgeteval.read(_written(tmp_path, rows))
    assert read.neutral == ("Ticket T-1000 is open.", "It rained.")
    assert said.neutral == ("It rained.",)


def test_the_cases_on_disk_have_their_categories(shared: Path) -> None:
    cases = forgeteval.load(shared / "data" / "forgeteval")
    counts = {one.category: 0 for one in cases}
    for one in cases:
        counts[one.category] += 1
    assert counts == {
        "substring_trap": 11,
        "prefix_collision": 19,
        "negation_trap": 3,
        "shared_attribute": 14,
        "compound_fact": 8,
        "identifier_obfuscation": 37,
        "cross_lingual_identifier": 17,
    }
    assert sum(len(one.neutral) for one in cases) == 172


def test_the_small_sample_passes_and_the_controls_do_not(shared: Path) -> None:
    embedder = MiniLMEmbedder(weights_folder("minilm"))
    run = Run(model=Canary(), embedder=embedder, data=shared / "data", small=True)
    report = experiment.run(run)[0]
    assert report.settings["cases"] == experiment.SMALL
    assert _number(report, "by phrase", "passed") >= 0.95
    assert _number(report, "by phrase", "neutral facts lost") <= 0.01
    assert _number(report, "control: delete everything", "neutral facts lost") == 1.0
    assert _number(report, "control: delete nothing", "passed") == 0.0


def _number(report: Report, policy: str, column: str) -> float:
    row = next(one for one in report.rows if (one["policy"], one["category"]) == (policy, "all"))
    cell = row[column]
    assert isinstance(cell, Number)
    assert cell.value is not None
    return cell.value


_ROW = {
    "id": "made",
    "category": "prefix_collision",
    "setup_facts": ["Ticket T-100 is done.", "Ticket T-1000 is open.", "It rained."],
    "mutations": [["purge", "ticket T-100"]],
    "final_query": "Which ticket is open?",
    "must_contain": ["T-1000"],
    "must_not_contain": ["T-100 is"],
}


def _written(folder: Path, rows: list[dict[str, object]]) -> Path:
    path = folder / "cases.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_the_variants_of_our_own_are_fair_and_sixty_or_more() -> None:
    cases = forgeteval.read(experiment.UNSEEN)
    assert len(cases) >= 60
    assert len({case.id for case in cases}) == len(cases)
    for case in cases:
        new = [one.new for one in case.mutations if one.new]
        gone = [fact for fact in case.facts if fact not in case.neutral]
        assert set(case.neutral) < set(case.facts)
        assert all(any(one in fact for fact in gone) for one in case.must_not), case.id
        assert not any(one in kept for one in case.must_not for kept in (*case.neutral, *new)), (
            case.id
        )
        assert all(any(one in said for said in (*case.facts, *new)) for one in case.must), case.id
