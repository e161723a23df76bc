"""What running code has read is never answered by less than it has read, however much that is."""

from __future__ import annotations

from dellm_langchain.reads import THREAD, Reads

ME = "me"


def test_a_hundred_thousand_reads_of_one_task_are_all_known_in_their_order() -> None:
    reads = Reads()
    for at in range(0, 100_000, 1_000):
        reads.note(ME, ["task"], range(at, at + 1_000), at // 50_000)
    reads.note(ME, ["task"], range(100_000), 9)
    assert reads.of(ME, "task") == list(range(100_000))
    assert reads.of(ME, "task", before=1) == list(range(50_000))
    assert reads.of("other", "task") == reads.of(ME, "else") == []


def test_the_first_moment_counts_also_among_reads_that_are_packed() -> None:
    reads = Reads()
    reads.note(ME, ["task"], range(5_000), 1)
    reads.note(ME, ["task"], [7, 6_000], 5)
    assert reads.of(ME, "task", before=5) == list(range(5_000))
    assert reads.of(ME, "task", before=6) == [*range(5_000), 6_000]


def test_of_a_task_that_was_dropped_all_that_its_thread_has_read_is_told() -> None:
    reads = Reads(most=2)
    reads.note(ME, ["first", (THREAD, "t")], [1], 0)
    for one in (2, 3, 4):
        reads.note(ME, [f"task{one}", (THREAD, "t")], [one], one)
    reads.note(ME, ["else", (THREAD, "u")], [9], 0)
    assert reads.of(ME, "first") == [1, 2, 3, 4]
    assert reads.of(ME, "first", before=3) == [1, 2]
    assert reads.of(ME, "else") == [9]


def test_of_a_thread_that_was_dropped_all_that_such_threads_have_read_is_told() -> None:
    reads = Reads(most=1)
    for name, one in (("t", 1), ("u", 2), ("v", 3)):
        reads.note(ME, [f"task {name}", (THREAD, name)], [one], 0)
    assert reads.of(ME, (THREAD, "t")) == reads.of(ME, "task t") == [1, 2]
    assert reads.of(ME, (THREAD, "v")) == reads.of(ME, "task v") == [3]
    assert reads.of("other", (THREAD, "t")) == []
    reads.note(ME, [(THREAD, "t")], [7], 0)
    assert sorted(reads.of(ME, (THREAD, "t"))) == [1, 2, 3, 7]


def test_many_reads_let_the_oldest_tasks_go_and_not_the_newest() -> None:
    reads = Reads(entries=10_000)
    reads.note(ME, ["old"], range(6_000), 0)
    reads.note(ME, ["new"], range(20_000, 40_000), 0)
    assert reads.of(ME, "old") == list(range(6_000))  # of no thread: what is told may be more
    assert reads.of(ME, "new") == list(range(20_000, 40_000))
