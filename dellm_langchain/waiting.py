"""Waiting for what another thread or process is about to store, but not for long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PAUSE = 0.001  # seconds between two looks whether something is stored
WAIT = 2.0  # seconds that a task's write waits for the checkpoint that the task has read


def wait(ready: Callable[[], bool]) -> bool:
    """Wait until something is ready; return whether it is."""
    end = time.monotonic() + WAIT
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE)
    return True


async def until(ready: Callable[[], bool], *, here: bool = False) -> bool:
    """As wait, without keeping a thread busy; `here`: to ask takes no time."""
    end = time.monotonic() + WAIT
    while not (ready() if here else await asyncio.to_thread(ready)):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(PAUSE)
    return True
