"""The benchmark of checkpoint savers counts and compares what it says. Nothing here is timed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks import checkpoint_chat as chat
from benchmarks import checkpoint_measures as measures
from benchmarks import checkpoint_rows as rows
from benchmarks import checkpoints
from benchmarks.checkpoint_savers import DELTA, KINDS, OURS, STOCK, contender
from benchmarks.core.stores import SqliteStore

TURNS = 4


@pytest.fixture
def store(tmp_path):
    return SqliteStore(str(tmp_path))


def quiet(_line):
    return None


def contents(saver):
    """Return all that a saver holds of the chat, without the ids and times of the run."""
    return [
        (
            one.metadata["step"],
            one.metadata["source"],
            {
                name: [message.text for message in value["messages"]]
                if isinstance(value, dict)
                else [message.text for message in value or []]
                for name, value in one.checkpoint["channel_values"].items()
            },
            sorted(channel for _, channel, _ in one.pending_writes),
        )
        for one in saver.list(chat.config())
    ]


class Watched(InMemorySaver):
    """Knows the very objects that its calls were given."""

    def __init__(self):
        super().__init__()
        self.given = []

    def put(self, config, checkpoint, metadata, new_versions):
        self.given += checkpoint["channel_values"].get("messages", [])
        return super().put(config, checkpoint, metadata, new_versions)


@pytest.mark.parametrize("kind", KINDS)
def test_calls_made_after_the_run_store_what_the_run_itself_stores(kind, store):
    one = contender(kind, "sqlite")
    replies = chat.texts(TURNS, 2)
    with one.open(store.fresh()) as during, one.open(store.fresh()) as after:
        deferred = chat.Deferred(after)
        graphs = [chat.graph(saver, replies, delta=one.delta) for saver in (during, deferred)]
        for text in chat.texts(TURNS, 1):
            for graph in graphs:
                graph.invoke(chat.said(text), chat.config())
            calls = deferred.replay()
            assert (calls.puts, calls.writes) == (3, 2)
        assert contents(after) == contents(during)
        assert len(contents(after)) == 3 * TURNS


def test_nothing_is_written_before_the_replay_and_nothing_twice():
    saver = Watched()
    deferred = chat.Deferred(saver)
    chat.graph(deferred, chat.texts(1, 2)).invoke(chat.said("hello"), chat.config())
    assert saver.get_tuple(chat.config()) is None
    deferred.replay()
    assert len(list(saver.list(chat.config()))) == 3
    assert deferred.replay() == chat.Calls(0.0, 0.0, 0, 0)


def test_the_calls_are_given_the_objects_of_the_run_and_not_copies():
    saver = Watched()
    deferred = chat.Deferred(saver)
    graph = chat.graph(deferred, chat.texts(1, 2))
    answer = graph.invoke(chat.said("hello"), chat.config())["messages"]
    deferred.replay()
    seen = Counter(id(message) for message in saver.given)
    assert seen == {id(answer[0]): 2, id(answer[1]): 1}


def test_every_text_has_two_hundred_characters_and_the_model_says_its_own():
    graph = chat.graph(InMemorySaver(), chat.texts(3, 2))
    for text in chat.texts(3, 1):
        graph.invoke(chat.said(text), chat.config())
    told = [message.text for message in graph.get_state(chat.config()).values["messages"]]
    assert {len(text) for text in told} == {200}
    assert told[0::2] == list(chat.texts(3, 1))
    assert told[1::2] == list(chat.texts(3, 2))
    assert len(set(told)) == 6


def test_a_conversation_is_measured_with_every_saver(store):
    figures = measures.conversation(store, KINDS, TURNS, quiet)
    assert set(figures) == set(KINDS)
    for one in figures.values():
        assert {turn: len(times) for turn, times in one.turn.items()} == {TURNS: TURNS}
        assert len(one.warm[TURNS]) == measures.READS
        assert len(one.cold[TURNS]) == len(one.opened[TURNS]) == measures.OPENINGS
        assert set(one.size) == {TURNS}
    assert figures[STOCK].size[TURNS] > figures[DELTA].size[TURNS]


@pytest.mark.parametrize("kind", KINDS)
def test_the_size_is_that_of_the_file_with_nothing_left_in_its_log(kind, store):
    one, url = contender(kind, "sqlite"), store.fresh()
    with one.open(url) as saver:
        graph = chat.graph(saver, chat.texts(1, 2), delta=one.delta)
        graph.invoke(chat.said("x" * 200_000), chat.config())
        size = one.size(url)
        assert size == Path(url).stat().st_size > 200_000
        assert Path(f"{url}-wal").stat().st_size == 0


def test_savers_that_tell_different_conversations_are_not_compared(store):
    with measures.talks(store, (STOCK, DELTA), 1) as talks:
        for talk, text in zip(talks, ("one", "another"), strict=True):
            talk.turn(text)
        with pytest.raises(AssertionError, match="same conversation"):
            measures.same(talks)


def test_a_saver_that_gives_the_same_object_twice_is_not_measured():
    first, second = chat.said("one")["messages"], chat.said("one")["messages"]
    measures.fresh(first, second)
    with pytest.raises(AssertionError, match="share"):
        measures.fresh(first, first)
    with pytest.raises(AssertionError, match="differ"):
        measures.fresh(first, chat.said("two")["messages"])


def test_the_turns_told_are_apart_and_the_last_ones_among_them():
    for turns in (3, 50, 200, 1_000):
        told = measures.stages(turns)
        numbers = [number for around in told.values() for number in around]
        assert len(numbers) == len(set(numbers))
        assert max(numbers) == turns
    assert list(measures.stages(1_000)) == [20, 100, 200, 1_000]
    assert measures.marks(1_000) == [50, 200, 1_000]
    assert measures.marks(60) == [50, 60]


def figures(size, seconds):
    return measures.Figures(
        size={200: size, 1_000: size},
        turn={20: [seconds], 100: [seconds], 1_000: [seconds]},
        warm={1_000: [seconds]},
        cold={1_000: [seconds]},
        opened={1_000: [seconds]},
    )


def verdicts(found):
    return {(row.name, row.peer): (row.value, row.verdict) for row in found}


def test_the_bounds_judge_a_thousand_turns_and_the_right_way_round():
    found = verdicts(
        rows.conversation(
            "sqlite",
            {
                OURS: figures(4_000_001, 0.0011),
                STOCK: figures(1_000_000_250, 0.001),
                DELTA: figures(11_000_000, 0.0011),
            },
        )
    )
    stock, delta = "SqliteSaver", "SqliteSaver, DeltaChannel"
    assert found["bytes after 1,000 turns", "-"] == (4.0, "pass")
    assert found["bytes after 1,000 turns", stock] == (250.0, "pass")
    assert found["bytes after 1,000 turns", delta] == (2.75, "miss")
    assert found["bytes after 200 turns", stock] == (250.0, "")
    assert found["a whole turn, at turn 20", stock] == (1.1, "pass")
    assert found["a whole turn, at turn 100", stock] == (1.1, "miss")
    assert found["a whole turn, at turn 100", delta] == (1.0, "")
    assert found["a whole turn, at turn 1,000", delta] == (1.0, "pass")
    assert found["get_tuple, warm, 2,000 messages", stock] == (0.91, "miss")
    assert found["get_tuple, warm, 2,000 messages", delta] == (1.0, "")


def calls(early, late, turns):
    return [
        chat.Calls(seconds * 0.9, seconds * 0.1, 3, 3)
        for seconds in [early] * (turns - 60) + [late] * 60
    ]


def talk(kind, calls):
    figures = measures.Figures(size={len(calls): 1_000_000})
    return measures.Talk(contender(kind, "postgres"), "", None, None, None, figures, calls)


def test_writing_is_compared_by_the_last_sixty_turns():
    found = verdicts(
        rows.replayed(
            "postgres",
            {
                OURS: talk(OURS, calls(0.002, 0.003, 1_000)),
                STOCK: talk(STOCK, calls(1.0, 0.021, 1_000)),
                DELTA: talk(DELTA, calls(1.0, 0.001, 1_000)),
            },
        )
    )
    span = "last 60 of 1,000"
    stock, delta = "PostgresSaver", "PostgresSaver, DeltaChannel"
    assert found[f"put + put_writes of a turn, {span}", stock] == (7.0, "miss")
    assert found[f"put + put_writes of a turn, {span}", delta] == (3.0, "miss")
    assert found["put + put_writes of a turn, growth", "itself, turns 20 to 80"] == (1.5, "pass")
    assert found[f"one put, {span}", stock] == (0.14, "")


def test_fewer_turns_are_not_judged_by_the_bounds_of_a_thousand():
    found = verdicts(
        rows.replayed(
            "postgres",
            {OURS: talk(OURS, calls(0.1, 0.1, 200)), STOCK: talk(STOCK, calls(0.1, 0.1, 200))},
        )
    )
    judged = {name for (name, _), (_, verdict) in found.items() if verdict}
    assert judged == {"put + put_writes of a turn, growth"}


def test_the_command_writes_its_rows(tmp_path, capsys):
    file = tmp_path / "rows.json"
    asked = ["--turns", str(TURNS), "--database", "sqlite", "--json", str(file)]
    checkpoints.main(asked)
    written = json.loads(file.read_text())
    assert f"{TURNS} turns" in written["head"]
    assert {row["database"] for row in written["rows"]} == {"sqlite"}
    assert {row["peer"] for row in written["rows"]} >= {"SqliteSaver", "SqliteSaver, DeltaChannel"}
    assert "DeLLMSaver: put + put_writes" in capsys.readouterr().err
