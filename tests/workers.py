"""What the processes and threads of test_concurrency do; importable, so that they can be spawned.

Every record has a word of its own ("w1n7x"), and a reply quotes the words of what was in its
prompt, so that its text says what its context must be.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dellm import ContextForgotten, DellmError, Memory, NothingMatched

OWN = re.compile(r"^w\d+n\d+x")
WORD = re.compile(r"w\d+n\d+x")


@dataclass
class Done:
    """What a worker did, and any error it must not have met."""

    written: int = 0
    refused: int = 0
    erased: dict[int, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    torn: int = 0
    wrong: list[str] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)


def opened(url: str) -> Memory:
    return Memory.open(url, embedder=None, scrub_below=0)


def write(memory: Memory, number: int, rounds: int, done: Done) -> None:
    """Chat: say something, read the newest records, answer from them."""
    for n in range(rounds):
        thread = f"t{n % 3}"
        memory.remember(f"w{number}n{2 * n}x said", thread=thread)
        prompt = memory.history(thread, last=3 + n % 9)
        quoted = " ".join(OWN.findall(one.text)[0] for one in prompt)
        try:
            memory.record(
                f"w{number}n{2 * n + 1}x answers {quoted}",
                context=[one.id for one in prompt],
                thread=thread,
            )
            done.written += 1
        except ContextForgotten:
            done.refused += 1


def forget(memory: Memory, number: int, rounds: int, done: Done) -> None:
    """Forget what is there: by id, by quote, by a plan; note which words must be gone."""
    draw = random.Random(number)
    end = time.monotonic() + 20
    while not list(memory.export()) and time.monotonic() < end:  # the writers may start later
        time.sleep(0.01)
    for n in range(rounds):
        there = list(memory.export())
        if not there:
            continue
        texts = {one.id: OWN.findall(one.text)[0] for one in there}
        chosen = draw.choice(there[-20:])
        ways: list[Callable[[], Any]] = [
            lambda chosen=chosen: memory.forget(ids=[chosen.id]),
            lambda chosen=chosen: memory.forget(quote=OWN.findall(chosen.text)[0]),
            lambda chosen=chosen: memory.forget(keyword=f"{OWN.findall(chosen.text)[0]} said"),
        ]
        try:
            receipt = ways[n % 3]()
        except NothingMatched:
            continue
        done.erased |= {id_: texts.get(id_, "") for id_ in receipt.ids}


def read_groups(memory: Memory, size: int, done: Done) -> None:
    """Read until nothing is left; count each time a group of `size` was there in part."""
    while True:
        # One page is one snapshot; the records of a group are made from its first.
        ids = [one.id for one in memory.history("t")]
        groups: dict[int, int] = {}
        for id_ in ids:
            groups[(id_ - 1) // size] = groups.get((id_ - 1) // size, 0) + 1
        done.torn += sum(count != size for count in groups.values())
        done.seen.add(str(len(groups)))
        if not ids:
            return


def spawned(kind: str, url: str, number: int, rounds: int, barrier: Any, results: Any) -> None:
    """Run one kind of worker in this process, and send back what it did."""
    done = Done()
    try:
        if kind == "open":
            _open_fresh(url.split("\n"), number, barrier, done)
        else:
            with opened(url) as memory:
                barrier.wait(30)
                _work(kind, memory.workspace("alex"), number, rounds, done)
    except DellmError as error:
        done.wrong.append(f"{kind}: {type(error).__name__}: {error}")
    except BaseException as error:
        done.wrong.append(f"{kind}: {error!r}")
    results.put((number, done))


def _work(kind: str, memory: Memory, number: int, rounds: int, done: Done) -> None:
    if kind == "write":
        write(memory, number, rounds, done)
    elif kind == "forget":
        forget(memory, number, rounds, done)
    elif kind == "read":
        read_groups(memory, rounds, done)
    elif kind == "same":
        done.ids = [
            memory.remember(f"object {n}", thread="t", framework_id=f"f{n}").id
            for n in range(rounds)
        ]


def _open_fresh(urls: list[str], number: int, barrier: Any, done: Done) -> None:
    for url in urls:
        barrier.wait(30)
        with opened(url) as memory:
            done.ids.append(memory.workspace("alex").remember(f"from {number}").id)
