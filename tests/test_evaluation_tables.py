"""The paper's tables: each system forgets through its own adapter, and a leak would show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.evaluation import tables
from benchmarks.evaluation.canary import Canary
from benchmarks.evaluation.persona_replay import replay
from benchmarks.evaluation.personas import load
from benchmarks.evaluation.results import Number, Report
from benchmarks.evaluation.running import Run
from benchmarks.evaluation.systems.agents import Agent
from benchmarks.evaluation.systems.every import every
from dellm.embedding import HashingEmbedder
from dellm.models import ExtractiveReader

RUN = Run(Canary(), HashingEmbedder(), small=True)
SYSTEMS = ["no memory", "full history (LangChain)", "DeLLM (paper)", "ours (LangChain)"]


@pytest.fixture(scope="module")
def personas() -> Report:
    (made,) = tables.run(RUN)
    return made


def numbers(report: Report, key: str, column: str = "right") -> dict[str, float | None]:
    found = [row for row in report.rows if row["table"] == tables.TABLES[key]]
    cells: Mapping[str, object] = {str(row["system"]): row[column] for row in found}
    return {name: one.value for name, one in cells.items() if isinstance(one, Number)}


def test_every_table_has_every_system_and_says_of_how_many(personas: Report) -> None:
    for key, count in (("before", 8), ("forget after", 2), ("retain after", 6)):
        rows = [row for row in personas.rows if row["table"] == tables.TABLES[key]]
        assert [row["system"] for row in rows] == SYSTEMS
        assert {row["n"] for row in rows} == {count}
    assert personas.name == "tables-pf-canary"


def test_what_was_forgotten_is_answered_by_none_that_forgets_and_by_one_that_does_not(
    personas: Report,
) -> None:
    assert numbers(personas, "forget before")["full history (LangChain)"] == 1
    after = numbers(personas, "forget after")
    assert after["full history (LangChain)"] == 1  # the control
    assert after["DeLLM (paper)"] == after["ours (LangChain)"] == after["no memory"] == 0
    before, left = (numbers(personas, key) for key in ("retain before", "retain after"))
    assert left["ours (LangChain)"] == before["ours (LangChain)"]
    assert numbers(personas, "forget after", "ROUGE-L recall")["ours (LangChain)"] == 0


class Forgetful(Agent):
    """An agent that says yes and forgets nothing."""

    def forget(self, fact: str) -> int:
        return 0


def test_a_system_that_forgets_nothing_is_found_out() -> None:
    said = [replay(lambda: Forgetful(Canary()), one) for one in load()[:2]]
    answers = tables.of_personas(said)
    report = tables.report(RUN, "pf", "", {"forgetful": answers})
    assert numbers(report, "forget after") == {"forgetful": 1.0}


def test_tofu_forgets_one_fact_after_another(shared: Path) -> None:
    """A second request in a row is answered after its own words are gone."""
    run = Run(Canary(), HashingEmbedder(), data=shared / "data", small=True)
    facts = tables.chosen(run)
    assert (len(facts.forget), len(facts.retain)) == (2, 6)
    for name in ("DeLLM (paper)", "ours (LangChain)"):
        found = tables.remembered(run, every(run)[name], facts, name)
        texts = [one.answer for one in found[name]["forget after"]]
        assert not any(fact.answer in text for fact in facts.forget for text in texts)
    report = tables.report(run, "tofu", "", found)
    before, after = (numbers(report, key) for key in ("retain before", "retain after"))
    assert after["ours (LangChain)"] == before["ours (LangChain)"]


def test_dmr_is_asked_before_only(tmp_path: Path) -> None:
    from benchmarks.evaluation.sets.dmr import PAPER

    assert PAPER == 100
    run = Run(ExtractiveReader(), HashingEmbedder())
    from benchmarks.evaluation.systems import Said
    from benchmarks.evaluation.talks import Probe, Talk

    talk = Talk(
        "1",
        (Said("user", "My dog is called Rex."),),
        (Probe("What is my dog called?", "Rex", "DMR"),),
    )
    found = {name: tables.dialogues(run, make, [talk], name) for name, make in every(run).items()}
    report = tables.report(run, "dmr", "DMR", found)
    assert {row["table"] for row in report.rows} == {tables.TABLES["before"]}
    before = numbers(report, "before")
    assert before["no memory"] == 0
    assert before["full history (LangChain)"] == 1
    assert json.loads(report.save(tmp_path).read_text())["name"] == "tables-dmr-extractive"
