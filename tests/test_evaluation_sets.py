"""The loaders of the data sets read the official shapes, and refuse damaged files by name only."""

from __future__ import annotations

import copy
import importlib.util
import json
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evaluation.sets import (
    dmr,
    locomo,
    longmemeval,
    meme,
    memory_agent_bench,
    msc,
    reading,
    tofu,
)
from dellm.errors import InvalidInput

DATA = Path(__file__).parents[1].parent / "shared" / "data"
SECRET = "Zanzibar-4711"  # stands in every synthetic row: no error may repeat it


def official(name: str) -> Path:
    """The folder of a real data set; skips where it is not beside the repository."""
    if not (DATA / name).is_dir():
        pytest.skip(f"../shared/data/{name} is not here")
    return DATA / name


def lines(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


# ---- TOFU


def tofu_row(number: int) -> dict[str, Any]:
    return {
        "question": f"Question {number}?",
        "answer": f"{SECRET} {number}",
        "paraphrased_question": f"Paraphrase {number}?",
        "paraphrased_answer": "…",
        "perturbed_answer": [f"wrong {place}" for place in range(5)],
    }


def tofu_files(folder: Path, forget: list[Any], retain: list[Any], ending: str = "jsonl") -> Path:
    lines(folder / f"forget01_perturbed.{ending}", forget)
    lines(folder / f"retain_perturbed.{ending}", retain)
    return folder


def tofu_rows() -> tuple[list[Any], list[Any]]:
    return [tofu_row(n) for n in range(40)], [tofu_row(n) for n in range(40, 440)]


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_tofu_is_read_with_its_authors(tmp_path: Path, ending: str) -> None:
    made = tofu.load(tofu_files(tmp_path, *tofu_rows(), ending))
    assert [len(made.forget), len(made.retain)] == [40, 400]
    assert Counter(fact.author for fact in made.forget) == {198: 20, 199: 20}
    assert Counter(fact.author for fact in made.retain) == dict.fromkeys(range(20), 20)
    assert made.forget[3].answer == f"{SECRET} 3"
    assert made.forget[3].perturbed[4] == "wrong 4"


def test_tofu_with_a_row_too_few_is_refused(tmp_path: Path) -> None:
    forget, retain = tofu_rows()
    with pytest.raises(
        InvalidInput, match="39 rows of forget01_perturbed where the data set has 40"
    ):
        tofu.load(tofu_files(tmp_path, forget[:-1], retain))


def test_tofu_with_a_question_twice_is_refused(tmp_path: Path) -> None:
    forget, retain = tofu_rows()
    with pytest.raises(InvalidInput, match="39 different questions"):
        tofu.load(tofu_files(tmp_path, [*forget[:-1], forget[0]], retain))


def test_tofu_with_a_question_in_both_sets_is_refused(tmp_path: Path) -> None:
    forget, retain = tofu_rows()
    with pytest.raises(InvalidInput, match="1 questions are both to forget and to keep"):
        tofu.load(tofu_files(tmp_path, forget, [forget[0], *retain[1:]]))


def test_the_real_tofu_is_that_of_the_paper() -> None:
    made = tofu.load(official("tofu"))
    assert [len(made.forget), len(made.retain)] == [40, 400]
    assert {fact.author for fact in made.forget} == {198, 199}
    assert len({fact.author for fact in made.retain}) == 20
    assert all("Basil" in fact.answer or "Al-Kuwaiti" in fact.answer for fact in made.forget[:3])
    for fact in (*made.forget, *made.retain):
        assert fact.answer not in fact.perturbed


# ---- DMR


def dmr_row(*, named: bool = True) -> dict[str, Any]:
    def said(texts: list[str]) -> list[dict[str, str]]:
        return [
            {"text": text, **({"id": f"Speaker {place % 2 + 1}"} if named else {})}
            for place, text in enumerate(texts)
        ]

    return {
        "personas": [["I sing."], ["I sail."]],
        "previous_dialogs": [
            {"personas": [], "dialog": [{"text": f"a{n}"}, {"text": SECRET}], "time_back": "1 day"}
            for n in range(4)
        ],
        "dialog": said(["hello", "hi", "bye"]),
        "self_instruct": {"B": "What did you say?", "A": SECRET},
        "summary_speaker_1": ["…"],
    }


@pytest.mark.parametrize("named", [True, False])
def test_dmr_is_read_with_its_five_sessions_and_speakers(tmp_path: Path, named: bool) -> None:
    lines(tmp_path / "msc_self_instruct.jsonl", [dmr_row(named=named), dmr_row(named=named)])
    first, second = dmr.load(tmp_path, official=2)
    assert [first.number, second.number] == [0, 1]
    assert Counter(turn.session for turn in first.turns) == {1: 2, 2: 2, 3: 2, 4: 2, 5: 3}
    assert [turn.speaker for turn in first.turns] == [0, 1] * 5 + [0]
    assert (first.question, first.answer) == ("What did you say?", SECRET)


def test_dmr_with_another_count_than_the_official_is_refused(tmp_path: Path) -> None:
    lines(tmp_path / "msc_self_instruct.jsonl", [dmr_row()])
    with pytest.raises(InvalidInput, match="jsonl where the data set has 500"):
        dmr.load(tmp_path)


# ---- MSC


def msc_row() -> dict[str, Any]:
    def turn(speaker: int, fact: str | None) -> dict[str, Any]:
        return {"s": speaker, "text": f"{SECRET} …", **({"persona": fact} if fact else {})}

    return {
        "id": "valid_7",
        "personas_session1": [["I like dogs."], []],
        "sessions": [
            {"session": 1, "turns": [turn(0, "I have two dogs."), turn(1, "I have two dogs.")]},
            {"session": 2, "turns": [turn(0, None), turn(1, "I sail. My boat is red.")]},
            {"session": 3, "turns": [turn(0, "I am tall. I have two dogs."), turn(1, "I sailed.")]},
            {"session": 4, "turns": [turn(0, "I have a cat."), turn(1, "My red boat is old.")]},
        ],
    }


def msc_synthetic(folder: Path) -> msc.Conversation:
    lines(folder / msc.FILE, [msc_row()])
    (made,) = msc.load(folder, official=False)
    return made


def test_msc_is_read_with_the_fact_of_each_turn(tmp_path: Path) -> None:
    made = msc_synthetic(tmp_path)
    assert [turn.place for turn in made.turns] == list(range(8))
    assert [turn.session for turn in made.turns] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [turn.place for turn in made.disclosing] == [0, 1, 3, 4, 5, 6, 7]
    assert made.turns[2].fact is None


def test_the_same_fact_is_found_again_only_with_its_own_speaker(tmp_path: Path) -> None:
    made = msc_synthetic(tmp_path)
    again = {turn.place: [one.place for one in made.same_fact(turn)] for turn in made.turns}
    assert again[0] == [0, 4]  # not 1, which the other said of himself
    assert again[1] == [1]
    assert again[2] == []  # discloses nothing
    assert again[3] == [3, 7]  # "red boat" of two sentences
    assert again[6] == [6]


def test_msc_with_another_count_is_refused(tmp_path: Path) -> None:
    lines(tmp_path / msc.FILE, [msc_row()])
    with pytest.raises(InvalidInput, match="1 conversations where the data set has 100"):
        msc.load(tmp_path)


def test_the_real_msc_has_its_counts_and_facts_told_again() -> None:
    made = msc.load(official("msc"))
    assert sum(len(one.turns) for one in made) == 5_105
    assert sum(len(one.disclosing) for one in made) == 3_286
    several = sum(len(one.same_fact(turn)) > 1 for one in made for turn in one.disclosing)
    assert several > 300
    for conversation in made[:10]:
        for turn in conversation.disclosing:
            assert turn in conversation.same_fact(turn)


# ---- LoCoMo


def locomo_row() -> dict[str, Any]:
    def turn(name: str, **more: str) -> dict[str, str]:
        return {"speaker": "Ann", "dia_id": name, "text": SECRET, **more}

    def asked(evidence: list[str], category: int = 1, **answer: Any) -> dict[str, Any]:
        return {"question": "?", "evidence": evidence, "category": category, **answer}

    return {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bob",
            "session_1_date_time": "noon",
            "session_1": [turn("D1:1"), turn("D1:2", blip_caption="a boat")],
            "session_2_date_time": "night",
            "session_2": [turn("D2:1"), turn("D2:14")],
            "session_10_date_time": "a date without a session",
        },
        "observation": {
            "session_1_observation": {"Ann": [["saw", "D1:1"]], "Bob": [["did", ["D1:1, D1:2"]]]},
        },
        "session_summary": {"session_2_summary": "all", "session_1_summary": "part"},
        "event_summary": {},
        "qa": [
            asked(["D1:1; D2:14"], answer=2022),
            asked(["D:2:14", "D1:1 D1:2 D1:1"], answer="red"),
            asked(["D", "D2:3"], answer="blue"),
            asked([], category=5, adversarial_answer="wrong", answer="none"),
        ],
    }


def locomo_synthetic(folder: Path, row: dict[str, Any] | None = None) -> locomo.Conversation:
    (folder / locomo.FILE).write_text(json.dumps([row or locomo_row()]), "utf-8")
    (made,) = locomo.load(folder, official=False)
    return made


def test_locomo_evidence_is_read_in_all_its_spellings(tmp_path: Path) -> None:
    made = locomo_synthetic(tmp_path)
    assert [one.evidence for one in made.questions] == [
        ("D1:1", "D2:14"),
        ("D2:14", "D1:1", "D1:2"),
        (),
        (),
    ]
    assert [one.unknown for one in made.questions] == [0, 0, 1, 0]
    assert [one.named for one in made.questions] == [True, True, True, False]
    assert [one.answer for one in made.questions] == ["2022", "red", "blue", "wrong"]
    assert [one.adversarial for one in made.questions] == [False, False, False, True]


def test_locomo_derived_texts_know_their_sources(tmp_path: Path) -> None:
    made = locomo_synthetic(tmp_path)
    assert [one.sources for one in made.observations] == [("D1:1",), ("D1:1", "D1:2")]
    assert [(one.text, one.sources) for one in made.summaries] == [
        ("part", ("D1:1", "D1:2")),
        ("all", ("D2:1", "D2:14")),
    ]
    assert [turn.caption for turn in made.turns] == [None, "a boat", None, None]
    assert made.times[2] == "night"


def test_locomo_with_an_id_twice_is_refused(tmp_path: Path) -> None:
    row = locomo_row()
    row["conversation"]["session_2"][0]["dia_id"] = "D1:1"
    with pytest.raises(InvalidInput, match="3 different ids"):
        locomo_synthetic(tmp_path, row)


def test_the_real_locomo_has_its_counts() -> None:
    made = locomo.load(official("locomo"))
    asked = [one for conversation in made for one in conversation.questions]
    assert Counter(one.category for one in asked) == {1: 282, 2: 321, 3: 96, 4: 841, 5: 446}
    assert sum(one.unknown for one in asked) == 2
    assert all(one.sources for conversation in made for one in conversation.observations)
    for conversation in made:
        there = {turn.id for turn in conversation.turns}
        assert all(there.issuperset(one.evidence) for one in conversation.questions)


# ---- LongMemEval


def longmemeval_row(number: int = 0, kind: str = "multi-session") -> dict[str, Any]:
    return {
        "question_id": f"q{number}" + ("_abs" if number % 2 else ""),
        "question_type": kind,
        "question": "How many?",
        "answer": 3 if number else SECRET,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["s1", "answer_1"],
        "haystack_dates": ["2023/05/20", "2023/05/21"],
        "haystack_sessions": [
            [{"role": "user", "content": "hello"}],
            [
                {"role": "user", "content": SECRET, "has_answer": True},
                {"role": "assistant", "content": "noted", "has_answer": False},
            ],
        ],
        "answer_session_ids": ["answer_1"],
    }


def test_longmemeval_is_read_with_its_sessions_and_evidence(tmp_path: Path) -> None:
    rows = [longmemeval_row(0), longmemeval_row(1, "knowledge-update")]
    (tmp_path / "longmemeval_s.json").write_text(json.dumps(rows), "utf-8")
    first, second = longmemeval.load(tmp_path, "s", official=False)
    assert [(one.id, one.date, len(one.turns)) for one in first.sessions] == [
        ("s1", "2023/05/20", 1),
        ("answer_1", "2023/05/21", 2),
    ]
    assert [turn.evidence for turn in first.sessions[1].turns] == [True, False]
    assert [first.abstention, second.abstention] == [False, True]
    assert second.answer == "3"
    assert list(longmemeval.by_type((first, second))) == ["multi-session", "knowledge-update"]


def test_longmemeval_with_the_official_count_of_each_type_is_taken(tmp_path: Path) -> None:
    kinds = [kind for kind, count in longmemeval.TYPES.items() for _ in range(count)]
    rows = [longmemeval_row(number, kind) for number, kind in enumerate(kinds)]
    path = tmp_path / "longmemeval_oracle.json"
    path.write_text(json.dumps(rows), "utf-8")
    assert len(longmemeval.load(tmp_path)) == 500
    rows[0]["question_type"] = "multi-session"
    path.write_text(json.dumps(rows), "utf-8")
    with pytest.raises(InvalidInput, match="69 questions of type single-session-user"):
        longmemeval.load(tmp_path)


@pytest.mark.parametrize("size", ["", "S", "xl"])
def test_longmemeval_in_another_size_is_refused(tmp_path: Path, size: str) -> None:
    with pytest.raises(InvalidInput, match="oracle, s, m"):
        longmemeval.load(tmp_path, size)


def test_longmemeval_with_evidence_that_is_not_there_is_refused(tmp_path: Path) -> None:
    row = longmemeval_row() | {"answer_session_ids": ["answer_2"]}
    (tmp_path / "longmemeval_oracle.json").write_text(json.dumps([row]), "utf-8")
    with pytest.raises(InvalidInput, match="0 sessions with the answer"):
        longmemeval.load(tmp_path, official=False)


# ---- MEME


def meme_row() -> dict[str, Any]:
    def asked(task: str, answer: str, **more: Any) -> dict[str, Any]:
        return {"task_type": task, "question": "What?", answer: SECRET, "entity": ["door"], **more}

    session = {
        "timestamp": "2023/03/05",
        "conversation": [
            {"role": "user", "content": SECRET},
            {"role": "assistant", "content": "."},
        ],
    }
    return {
        "episode_id": 3,
        "domain": "personal_life",
        "root": "home",
        "sessions": [session, session | {"evidence_type": "Change+Delete Event"}, session],
        "before_questions": {
            "position_after_session": 0,
            "questions": [asked("Deletion (before delete)", "expected_answer")],
        },
        "after_questions": {
            "position_after_session": 2,
            "questions": [
                asked("Del", "gold_answer", entity_values={"door": "green"}),
                asked("Multiple-update", "gold_answer", entity_values={"door": ["red", "green"]}),
                asked("Cascade-U (1-hop)", "gold_answer"),
            ],
        },
    }


def test_meme_is_read_with_its_tasks_under_either_name(tmp_path: Path) -> None:
    (tmp_path / "meme_nofiller.json").write_text(json.dumps([meme_row()] * 100), "utf-8")
    first = meme.load(tmp_path, "nofiller")[0]
    assert [one.task for one in (*first.before, *first.after)] == ["Del", "Del", "Tr", "Abs"]
    assert [one.values for one in first.after] == [("green",), ("red", "green"), ()]
    assert [one.task for one in first.scored] == ["Del", "Abs"]
    assert [one.evidence for one in first.sessions] == [None, "Change+Delete Event", None]
    assert [first.before_at, first.after_at] == [0, 2]


def test_meme_with_another_count_is_refused(tmp_path: Path) -> None:
    (tmp_path / "meme_filler32k.json").write_text(json.dumps([meme_row()] * 99), "utf-8")
    with pytest.raises(InvalidInput, match="99 episodes where the data set has 100"):
        meme.load(tmp_path)


def test_the_episode_on_the_page_of_meme_is_read_whole() -> None:
    made = meme.load_page(official("meme"))
    assert [one.place for one in made.sessions] == list(range(17))
    assert [one.place for one in made.sessions if one.evidence] == [3, 6, 9, 11, 14]
    assert [one.task for one in made.after] == ["Tr", "Cas", "Abs", "Del", "Agg", "ER"]
    (gone,) = (one for one in made.after if one.task == "Del")
    said = [turn.text for one in made.sessions[:15] for turn in one.turns if turn.role == "user"]
    assert any(gone.values[0] in text for text in said)


# ---- MemoryAgentBench


def bench_row() -> dict[str, Any]:
    return {
        "context": f"Facts:\n0. {SECRET} is red.\n1. {SECRET} is green.\nno fact",
        "questions": ["Which colour?", "And now?"],
        "answers": [["green", "Green"], "green"],
        "metadata": {"source": "factconsolidation_sh_6k", "qa_pair_ids": ["p0", "p1"]},
    }


def test_memory_agent_bench_is_read_with_its_numbered_facts(tmp_path: Path) -> None:
    lines(tmp_path / "Conflict_Resolution.jsonl", [bench_row()] * 8)
    first = memory_agent_bench.load(tmp_path)[0]
    assert first.facts == ((0, f"{SECRET} is red."), (1, f"{SECRET} is green."))
    assert [(one.id, one.answers) for one in first.questions] == [
        ("p0", ("green", "Green")),
        ("p1", ("green",)),
    ]


def test_memory_agent_bench_in_parquet_is_read_or_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "Test_Time_Learning-00000-of-00001.parquet"
    rows = [bench_row() | {"answers": [["green"], ["green"]]}] * 6
    if importlib.util.find_spec("pyarrow") is None:
        path.write_bytes(b"PAR1")
        with pytest.raises(InvalidInput, match="needs the package pyarrow"):
            memory_agent_bench.load(tmp_path, "Test_Time_Learning")
        return
    parquet, table = (importlib.import_module(f"pyarrow{name}") for name in (".parquet", ""))
    parquet.write_table(table.Table.from_pylist(rows), path)
    made = memory_agent_bench.load(tmp_path, "Test_Time_Learning")
    assert [len(one.questions) for one in made] == [2] * 6
    path.write_bytes(b"PAR1")
    with pytest.raises(InvalidInput, match="do not have the shape"):
        memory_agent_bench.load(tmp_path, "Test_Time_Learning")


@pytest.mark.parametrize("split", ["Forgetting", "conflict_resolution"])
def test_memory_agent_bench_has_no_other_split(tmp_path: Path, split: str) -> None:
    with pytest.raises(InvalidInput, match="these splits"):
        memory_agent_bench.load(tmp_path, split)


def test_memory_agent_bench_with_an_answer_too_few_is_refused(tmp_path: Path) -> None:
    lines(tmp_path / "Conflict_Resolution.jsonl", [bench_row() | {"answers": [["green"]]}])
    with pytest.raises(InvalidInput, match="row 1"):
        memory_agent_bench.load(tmp_path, official=False)


# ---- damage of every kind, in every set

Loader = Callable[[Path], Sequence[object]]
SHAPES: dict[str, tuple[str, Callable[[], dict[str, Any]], Loader]] = {
    "dmr": ("msc_self_instruct.jsonl", dmr_row, lambda at: dmr.load(at, official=1)),
    "msc": (msc.FILE, msc_row, lambda at: msc.load(at, official=False)),
    "locomo": (locomo.FILE, locomo_row, lambda at: locomo.load(at, official=False)),
    "longmemeval": (
        "longmemeval_oracle.json",
        longmemeval_row,
        lambda at: longmemeval.load(at, official=False),
    ),
    "meme": ("meme_filler32k.json", meme_row, lambda at: meme.load(at, official=1)),
    "memory_agent_bench": (
        "Conflict_Resolution.json",
        bench_row,
        lambda at: memory_agent_bench.load(at, official=False),
    ),
}
KEYS = {
    "dmr": ["previous_dialogs", "dialog", "self_instruct", "personas"],
    "msc": ["id", "sessions", "personas_session1"],
    "locomo": ["sample_id", "conversation", "observation", "session_summary", "qa"],
    "longmemeval": [
        "question_id",
        "question_type",
        "answer",
        "question_date",
        "haystack_session_ids",
        "haystack_dates",
        "haystack_sessions",
        "answer_session_ids",
    ],
    "meme": ["episode_id", "domain", "sessions", "before_questions", "after_questions"],
    "memory_agent_bench": ["context", "questions", "answers", "metadata"],
}


def refused(at: Path, load: Loader) -> str:
    """Load damaged data; return the error, and hold that no part of it repeats the data."""
    with pytest.raises(InvalidInput) as raised:
        load(at)
    whole = "".join(traceback.format_exception(raised.value, chain=True))
    assert SECRET not in whole
    return str(raised.value)


@pytest.mark.parametrize("name", SHAPES)
def test_the_synthetic_row_itself_is_taken(tmp_path: Path, name: str) -> None:
    file, row, load = SHAPES[name]
    (tmp_path / file).write_text(json.dumps([row()]), "utf-8")
    assert len(load(tmp_path)) == 1


@pytest.mark.parametrize(("name", "key"), [(name, key) for name in KEYS for key in KEYS[name]])
def test_a_row_without_a_key_is_refused_without_its_content(
    tmp_path: Path, name: str, key: str
) -> None:
    file, row, load = SHAPES[name]
    broken = row()
    del broken[key]
    (tmp_path / file).write_text(json.dumps([broken]), "utf-8")
    assert "shape" in refused(tmp_path, load)


WRONG: dict[str, Any] = {
    "null": None,
    "mapping": {"x": SECRET},
    "texts": [SECRET],
    "lists of texts": [[SECRET]],
}
RIGHT = {  # what another type than the row's own is right for
    ("dmr", "personas", "lists of texts"),
    ("msc", "personas_session1", "lists of texts"),
    *(("meme", "episode_id", wrong) for wrong in WRONG),  # anything that can be written down
}


@pytest.mark.parametrize(
    ("name", "key", "wrong"),
    [
        (name, key, wrong)
        for name in KEYS
        for key in KEYS[name]
        for wrong in WRONG
        if (name, key, wrong) not in RIGHT
    ],
)
def test_a_row_with_another_type_is_refused_without_its_content(
    tmp_path: Path, name: str, key: str, wrong: str
) -> None:
    file, row, load = SHAPES[name]
    broken = row()
    broken[key] = WRONG[wrong]
    (tmp_path / file).write_text(json.dumps([broken]), "utf-8")
    refused(tmp_path, load)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    "damage",
    [
        f'{{"{SECRET}": ',
        f'["{SECRET}"]',
        f'[["{SECRET}"]]',
        "[3]",
        f'"{SECRET}"\n',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_refused_without_its_content(
    tmp_path: Path, name: str, damage: str
) -> None:
    file, _, load = SHAPES[name]
    (tmp_path / file).write_text(damage, "utf-8")
    refused(tmp_path, load)


@pytest.mark.parametrize("name", SHAPES)
def test_a_file_that_is_not_utf8_is_refused_without_its_content(tmp_path: Path, name: str) -> None:
    file, _, load = SHAPES[name]
    (tmp_path / file).write_bytes(b"\xff\xfe" + SECRET.encode())
    assert "UTF-8" in refused(tmp_path, load)


@pytest.mark.parametrize("name", SHAPES)
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    file, _, load = SHAPES[name]
    assert file in refused(tmp_path, load)


def test_a_damaged_line_is_named_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / msc.FILE
    path.write_text(json.dumps(msc_row()) + "\n\n" + f'{{"{SECRET}\n', "utf-8")
    assert "line 3" in refused(tmp_path, lambda at: msc.load(at, official=False))


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    row = copy.deepcopy(msc_row())
    row["sessions"][0]["turns"][0]["text"] = "one\u2028two"
    (tmp_path / msc.FILE).write_text(json.dumps(row, ensure_ascii=False) + "\n", "utf-8")
    (made,) = msc.load(tmp_path, official=False)
    assert made.turns[0].text == "one\u2028two"


def test_a_truth_value_is_no_number() -> None:
    with pytest.raises(TypeError):
        reading.typed(True, int)
