"""Whose values a saver is handed."""

from __future__ import annotations

from dataclasses import dataclass

from dellm import Place


@dataclass(slots=True)
class Task:
    """Whose values are looked at: a task, or a whole step when `id` is None.

    `place` is the checkpoint it read; `given`: its values come from outside, not from any task.
    `owner` and `after` tell its model calls from others'. `ended`: all steps of a run are stored as
    one, so what was made of what cannot be told. `around` is the task of the graph around this one,
    and its checkpoint, where the values are its input.
    `root` is the checkpoint of the outermost graph, to which answers are given.
    """

    thread: str
    thread_id: str
    id: str | None
    node: str | None
    place: Place | None
    since: int | None
    given: bool
    step: int | None = None
    owner: tuple[int, str] | None = None
    after: int = 0
    ended: bool = False
    around: tuple[str, Place] | None = None
    root: Place | None = None
