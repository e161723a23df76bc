"""What was said sessions ago is known, and after its messages are forgotten it is not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.evaluation import dmr, longmemeval
from benchmarks.evaluation.canary import Canary
from benchmarks.evaluation.choosing import embedder_of
from benchmarks.evaluation.results import Number
from benchmarks.evaluation.running import Run
from benchmarks.evaluation.sets import dmr as dmr_set
from benchmarks.evaluation.sets import longmemeval as longmemeval_set
from benchmarks.evaluation.shipped import Alone, Remembering, Settings, Whole, systems
from benchmarks.evaluation.systems import Said
from benchmarks.evaluation.talking import Asked, Make, asked, reported, right, rows
from benchmarks.evaluation.talks import Probe, Talk
from dellm.errors import InvalidInput
from dellm.plan import depth

DATA = Path(__file__).parents[1].parent / "shared" / "data"
BREWER, SISTER = "I work nights as a brewer.", "My sister lives in Lisbon."
TALK = Talk(
    "t",
    (
        Said("user", BREWER),
        Said("assistant", "A brewer! That must smell good."),
        Said("user", SISTER),
        Said("assistant", "Nice."),
    ),
    (
        Probe("I work nights as a ___?", "brewer", "work", told=(BREWER,)),
        Probe("My sister lives in ___?", "Lisbon", "family", told=(SISTER,)),
    ),
)
RUN = Run(Canary(), embedder_of("hashing"), small=True)


def remembering(name: str = "DeLLM") -> Remembering:
    return Remembering(RUN.model, RUN.embedder, Settings(name))


MAKERS: dict[str, Make] = {
    "alone": lambda: Alone(Canary()),
    "whole": lambda: Whole(Canary()),
    "ours": remembering,
}


def test_a_memory_leaks_nothing_to_the_model_that_repeats_its_context() -> None:
    found = list(asked(remembering, TALK))
    assert ["brewer" in found[0].before, "Lisbon" in found[1].before] == [True, True]
    assert not any(one.probe.answer in (one.after or one.probe.answer) for one in found)
    assert found[0].gone == 2  # the reply that was made from it goes, too
    assert "Lisbon" in (found[1].still or "")  # and what has nothing to do with it stays


def test_a_model_with_the_whole_history_goes_on_leaking() -> None:
    found = list(asked(MAKERS["whole"], TALK))
    assert all(one.probe.answer in (one.after or "") for one in found)
    assert [one.gone for one in found] == [0, 0]


def test_without_memory_nothing_is_known() -> None:
    found = list(asked(MAKERS["alone"], TALK))
    assert not any(one.probe.answer in one.before for one in found)


@pytest.mark.parametrize("name", MAKERS)
def test_a_probe_leaves_nothing_behind(name: str) -> None:
    system = MAKERS[name]()
    system.load(TALK.said)
    before = system.held()
    system.ask("Where does my sister live?")
    assert system.held() == before
    assert len(before) == (0 if name == "alone" else 4)
    system.close()


def test_what_is_told_stays_with_its_reply() -> None:
    system = remembering()
    system.tell(SISTER)
    assert SISTER in system.ask("My sister lives in ___?")
    assert len(system.held()) == 2
    system.close()


def test_semantic_deletion_takes_what_is_near_and_no_reply_made_from_it() -> None:
    settings = Settings("semantic", reach=depth(0), meaning=0.9)
    system = Remembering(RUN.model, RUN.embedder, settings)
    system.load(TALK.said)
    assert system.forget(BREWER) == 1
    assert "A brewer! That must smell good." in system.held()
    system.close()


def test_semantic_deletion_that_takes_everything_is_done() -> None:
    system = Remembering(RUN.model, RUN.embedder, Settings("all", reach=depth(0), meaning=-1.0))
    system.load(TALK.said)
    assert system.forget(BREWER) == 4
    assert system.held() == []
    assert system.forget(SISTER) == 0
    system.close()


def test_an_answer_is_right_with_half_of_the_telling_words_and_none_is_not_counted() -> None:
    probe = Probe("?", "a red boat", "kind")
    number = right([(probe, "The boat."), (probe, "A car."), (probe, None)])
    assert (number.value, number.n) == (0.5, 2)
    assert right([]).value is None


def test_rows_stand_for_each_kind_and_all_together() -> None:
    one = Asked(TALK.probes[0], "brewer", None, "nothing", 2, 4)
    two = Asked(TALK.probes[1], "no idea")
    made = list(rows({"s": (one, two)}, 0))
    assert [(row["questions"], row["n"]) for row in made] == [
        ("all", 2),
        ("work", 1),
        ("family", 1),
    ]
    assert [values(row["right"]) for row in made] == [0.5, 1.0, 0.0]
    assert values(made[1]["gone, of all"]) == 0.5
    assert "messages gone" not in made[2]


def values(cell: object) -> float | None:
    assert isinstance(cell, Number)
    return cell.value


def test_the_report_shows_the_worst_leaker_stopped_by_ours_alone() -> None:
    report = reported(RUN, "name", "Title", [TALK])
    after = {
        row["system"]: values(row["right after forgetting"])
        for row in report.rows
        if row["questions"] == "all"
    }
    assert list(after) == list(systems(RUN))
    assert after["full history"] == 1.0
    assert after["DeLLM (k=5, strict)"] == after["no memory"] == 0.0
    assert report.name == "name-canary"


def official_dmr(folder: Path, count: int) -> Path:
    row = {
        "personas": [],
        "previous_dialogs": [{"dialog": [{"text": "I sing in a choir."}, {"text": "I sail."}]}],
        "dialog": [{"text": "Hello.", "id": "Speaker 1"}],
        "self_instruct": {"B": "Where did you say you sing, in a choir or alone?", "A": "a choir"},
    }
    (folder / "dmr").mkdir()
    path = folder / "dmr" / "msc_self_instruct.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for _ in range(count)), "utf-8")
    return folder


def test_the_official_dmr_file_is_run_without_deletions(tmp_path: Path) -> None:
    (report,) = dmr.run(replace(RUN, data=official_dmr(tmp_path, dmr_set.OFFICIAL)))
    assert report.name == "dmr-canary"
    assert {row["n"] for row in report.rows} == {dmr.SMALL}
    assert "right after forgetting" not in report.columns
    known = {row["system"]: values(row["right"]) for row in report.rows}
    assert known["full history"] == known["DeLLM (k=5, strict)"] == 1.0


def test_a_dmr_file_with_rows_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="has 500"):
        dmr.run(replace(RUN, data=official_dmr(tmp_path, 499)))


@pytest.mark.parametrize("module", [dmr, longmemeval])
def test_a_data_folder_without_the_set_is_said(tmp_path: Path, module: object) -> None:
    for data in (None, tmp_path):
        with pytest.raises(InvalidInput, match="--data DIR"):
            module.run(replace(RUN, data=data))  # type: ignore[attr-defined]  # both have it


def longmemeval_rows() -> Sequence[dict[str, object]]:
    kinds = [kind for kind, count in longmemeval_set.TYPES.items() for _ in range(count)]
    return [
        {
            "question_id": f"q{number}",
            "question_type": kind,
            "question": "Which boat did I buy?",
            "answer": "sloop",
            "question_date": "2023/05/30",
            "haystack_session_ids": ["s1"],
            "haystack_dates": ["2023/05/20"],
            "haystack_sessions": [[{"role": "user", "content": "I did buy a boat, a sloop."}]],
            "answer_session_ids": ["s1"],
        }
        for number, kind in enumerate(kinds)
    ]


def test_longmemeval_is_run_per_type(tmp_path: Path) -> None:
    (tmp_path / "longmemeval").mkdir()
    path = tmp_path / "longmemeval" / "longmemeval_oracle.json"
    path.write_text(json.dumps(longmemeval_rows()), "utf-8")
    report = longmemeval.run(replace(RUN, data=tmp_path))
    assert {row["questions"] for row in report.rows} == {"single-session-user"}
    known = {row["system"]: values(row["right"]) for row in report.rows}
    assert (known["no memory"], known["full history"]) == (0.0, 1.0)


def test_longmemeval_without_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "longmemeval").mkdir()
    with pytest.raises(InvalidInput, match="neither the oracle file nor S"):
        longmemeval.run(replace(RUN, data=tmp_path))


def test_the_small_run_on_msc_forgets_what_it_knew() -> None:
    if not (DATA / "msc").is_dir():
        pytest.skip("../shared/data/msc is not here")
    found = {one.name: one for one in dmr.run(replace(RUN, data=DATA))}
    rows_of = {row["system"]: row for row in found["dmr-msc-canary"].rows}
    ours = rows_of["DeLLM (k=5, strict)"]
    assert values(ours["right after forgetting"]) == 0.0
    assert values(rows_of["full history"]["right after forgetting"]) == 1.0
    assert values(rows_of["full history"]["right"]) == 1.0
