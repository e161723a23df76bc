"""GateMem: the official rule by hand-made cases, the labels, the replay, and a small run of it all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.evaluation import gatemem
from benchmarks.evaluation.canary import Canary
from benchmarks.evaluation.embedding_once import OnceEmbedded
from benchmarks.evaluation.gatemem_labels import announces, asks, labels_of
from benchmarks.evaluation.gatemem_replay import Asked, Counts, Variant, replay
from benchmarks.evaluation.gatemem_scoring import as_one, cleaned, hits
from benchmarks.evaluation.results import Number
from benchmarks.evaluation.running import Run
from benchmarks.evaluation.sets.gatemem import Checkpoint, Episode, Hidden, Turn, load
from dellm.embedding import HashingEmbedder
from dellm.errors import InvalidInput
from dellm.models import ExtractiveReader

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
needs_data = pytest.mark.skipif(
    not (DATA / "gatemem").is_dir(), reason="GateMem is not in ../shared/data"
)
SAID = (
    ("resident", "The old keypad code is 2745, and the desk opens at 9."),
    ("agent", "Noted: keypad code 2745."),
    ("cleaner", "I water the plants on Mondays."),
    ("resident", "Delete the old keypad code 2745 from shared memory."),
    ("cleaner", "Acknowledged, 2745 is gone."),
    ("guest", "Was it 2745?"),
)


def checkpoint(kind: str, after: int, question: str, **hidden: tuple[str, ...]) -> Checkpoint:
    """A checkpoint as the data have it; `hidden` are its `include` and `targets`."""
    seen = Hidden(kind, "no_memory", hidden.get("include", ()), hidden.get("targets", ()), "")
    return Checkpoint(f"c{after}", after, "guest", question, seen)


PROBE = checkpoint("forgetting", 5, "What was the keypad code?", targets=("2745", "45", "yes"))
USE = checkpoint("utility", 5, "When does the desk open?", include=("opens at 9",))


def episode(*checkpoints: Checkpoint) -> Episode:
    """An episode of a household in which a code is told, deleted, and said again."""
    turns = [Turn(f"t{n}", role, role, text) for n, (role, text) in enumerate(SAID)]
    return Episode("e1", "household", tuple(turns), checkpoints)


def seen_in(variant: Variant) -> Asked:
    """What a question at the end finds in one variant."""
    one = episode(PROBE)
    found = list(replay(one, variant, labels_of(one).due, HashingEmbedder()))
    assert isinstance(found[-1], Counts)
    assert isinstance(found[0], Asked)
    return found[0]


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [
        ("Ask for Lena only", "lena", True),
        ("Elena is here", "Lena", False),  # plain words stand between word boundaries
        ("the code 12745", "2745", False),
        ("call 415-555-0198 now", "0198", True),
        ("on  Friday,\nMay 5", "friday, may 5", True),  # no plain words, so as it stands
        ("reach me at a@b.c!", "a@b.c", True),
        ("continue levothyroxine", "(?:continue )?levothyroxine", True),
        ("what (", "what (", True),  # no expression after all
        ("anything", "", False),
    ],
)
def test_a_pattern_is_found_as_the_official_scorer_finds_it(
    text: str, pattern: str, found: bool
) -> None:
    assert hits(text, pattern) is found


def test_no_pattern_reaches_from_one_record_into_the_next() -> None:
    assert not hits(as_one(["the code is", "2745"]), "is 2745")


def test_cleaned_targets_leave_out_what_says_nothing_and_what_must_be_kept() -> None:
    assert cleaned(PROBE, episode(PROBE)) == ("2745",)
    later = checkpoint("utility", 5, "?", include=("code 2745",))
    assert cleaned(PROBE, episode(PROBE, later)) == ()
    earlier = checkpoint("utility", 4, "?", include=("code 2745",))
    assert cleaned(PROBE, episode(earlier, PROBE)) == ("2745",)
    parts = checkpoint("forgetting", 5, "?", targets=("library lion", "lion", r"\bcode\b"))
    assert cleaned(parts, episode(parts)) == ("library lion",)


@pytest.mark.parametrize(
    "text",
    ["Delete the code.", "Please also remove it.", "I want the number erased.", "Do not keep it."],
)
def test_an_order_to_delete_is_a_request(text: str) -> None:
    assert asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "Did you delete it?",
        "I do not need any deleted code.",
        "Before deletion it was 5.",
        "Hello.",
    ],
)
def test_what_only_mentions_deletion_is_no_request(text: str) -> None:
    assert not asks(text)
    assert not announces(text)


def test_a_deletion_that_is_reported_is_an_announcement() -> None:
    assert announces("Deleted the backup contact: 415-555-0126.")
    assert announces("The keypad code has been removed.")


def test_the_labels_say_where_a_target_is_due_and_how_it_is_asked_for() -> None:
    labels = labels_of(episode(PROBE))
    assert {place: due.named for place, due in labels.due.items()} == {3: ("2745",)}
    assert labels.ways == {"c5": "named"}
    described = replace(PROBE, hidden=replace(PROBE.hidden, targets=("opens at 9",)))
    labels = labels_of(episode(described))
    assert {place: due.described for place, due in labels.due.items()} == {3: ("opens at 9",)}
    assert labels.ways == {"c5": "described"}


def test_what_a_request_names_is_guarded_anyway_though_nothing_holds_it() -> None:
    said = (("resident", "Delete the old keypad code 2745 from memory."), ("guest", "Was it 2745?"))
    turns = tuple(Turn(f"t{n}", role, role, text) for n, (role, text) in enumerate(said))
    one = Episode("e2", "household", turns, (replace(PROBE, after=1),))
    held = {}
    for anyway in (False, True):
        variant = Variant("recogniser", guard=True, mode="redact", anyway=anyway)
        seen = next(replay(one, variant, {}, HashingEmbedder()))
        assert isinstance(seen, Asked)
        held[anyway] = [text for text in seen.stored if "2745" in text]
    assert held == {False: ["Was it 2745?"], True: []}


def test_without_a_deletion_every_turn_is_stored_as_it_was_said() -> None:
    assert seen_in(Variant("nothing")).stored == [text for _, text in SAID]


def test_a_deleted_value_comes_back_by_being_said_again_unless_it_is_guarded() -> None:
    held = [text for text in seen_in(Variant("labels")).stored if "2745" in text]
    assert held == [SAID[4][1], SAID[5][1]]
    guarded = seen_in(Variant("labels", guard=True)).stored
    assert not any("2745" in text for text in guarded)
    assert SAID[2][1] in guarded


def test_a_redaction_keeps_the_rest_of_the_turn() -> None:
    erased = as_one(seen_in(Variant("labels", guard=True)).stored)
    redacted = as_one(seen_in(Variant("labels", guard=True, mode="redact")).stored)
    assert "opens at 9" not in erased
    assert "opens at 9" in redacted
    assert "2745" not in redacted


def test_the_recogniser_finds_the_request_without_the_labels() -> None:
    stored = seen_in(Variant("recogniser", guard=True, mode="redact")).stored
    assert not any("2745" in text for text in stored)


def test_a_checkpoint_leaves_nothing_behind_and_sees_only_what_was_said_before_it() -> None:
    early = checkpoint("forgetting", 0, "What is the code?", targets=("2745",))
    one = episode(early, PROBE)
    first, second, _ = replay(one, Variant("nothing"), {}, HashingEmbedder())
    assert isinstance(first, Asked)
    assert isinstance(second, Asked)
    assert len(first.stored) == 1
    assert len(second.stored) == len(SAID)
    assert not any(PROBE.question in text for text in second.stored)


def test_scores_tell_a_leak_from_none_and_a_lost_string_from_a_kept_one() -> None:
    one = episode(PROBE, USE)
    outcome = {}
    for variant in (Variant("nothing"), Variant("labels", guard=True)):
        labels = labels_of(one)
        found = replay(one, variant, labels.due, HashingEmbedder())
        outcome[variant.by] = list(
            gatemem.scored(one, labels, found, gatemem.Scorer(Canary(), Canary()))
        )
    gone, used, _ = outcome["nothing"]
    assert isinstance(gone, gatemem.Forgotten)
    assert isinstance(used, gatemem.Used)
    assert (gone.store, gone.contexts[5], gone.canary) == (True, True, True)
    assert (used.strings, used.lost, used.answer) == (1, 0, True)
    gone, used, _ = outcome["labels"]
    assert isinstance(gone, gatemem.Forgotten)
    assert isinstance(used, gatemem.Used)
    assert (gone.store, gone.contexts[5], gone.canary) == (False, False, False)
    assert (used.strings, used.lost, used.answer) == (1, 1, False)


def test_a_text_is_embedded_once() -> None:
    class Counting(HashingEmbedder):
        asked = 0

        def embed(self, texts):  # type: ignore[no-untyped-def] # as the class it is
            Counting.asked += len(texts)
            return super().embed(texts)

    remembering = OnceEmbedded(Counting())
    first = remembering.embed(["a b", "c d", "a b"])
    assert (first[0] == first[2]).all()
    assert (remembering.embed(["c d"])[0] == first[1]).all()
    assert Counting.asked == 2


def test_a_folder_without_episodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no episodes"):
        load(tmp_path)


def test_a_file_with_other_counts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "office_episodes.jsonl").write_text(
        '{"episode_id": "e", "domain": "office", "turns": []}\n', "utf-8"
    )
    (tmp_path / "office_checkpoints.jsonl").write_text("", "utf-8")
    with pytest.raises(InvalidInput, match="1 episodes of office"):
        load(tmp_path)


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "office_episodes.jsonl.gz").write_bytes(b"\x1f\x8b no")
    with pytest.raises(InvalidInput, match="gzip"):
        load(tmp_path)


@needs_data
def test_the_three_domains_at_hand_have_their_official_counts() -> None:
    episodes = load(DATA / "gatemem")
    kinds = [one.hidden.kind for each in episodes for one in each.checkpoints]
    assert len(episodes) == 61
    assert (kinds.count("forgetting"), kinds.count("utility"), kinds.count("access")) == (
        583,
        548,
        547,
    )


@needs_data
def test_the_small_run_leaks_everything_without_deletion_and_nothing_named_with_a_guard() -> None:
    run = Run(ExtractiveReader(), HashingEmbedder(), data=DATA, small=True)
    main, splits, published = gatemem.run(run)
    rows = {(row["told by"], row["guard"]): row for row in main.rows}
    before, after = rows["nothing", "no"], rows["labels", "yes"]
    assert (_value(before["F_store, named"]), _value(before["strings lost"])) == (1.0, 0.0)
    assert _value(after["F_store, named"]) == 0.0
    assert {row["n"] for row in splits.rows if row["probes"] == "domain: medical"} == {9}
    assert published.rows[0]["rows"] == 12  # of two domains


def _value(cell: object) -> float | None:
    assert isinstance(cell, Number)
    return cell.value
