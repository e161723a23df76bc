"""A thread that deletes a store's items whose time is over, as LangGraph's stores have one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from dellm import DatabaseClosed

_log = logging.getLogger(__name__)


class Sweeper:
    """Calls `sweep` every so many minutes until it is stopped. Thread-safe."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()

    def start(self, minutes: float) -> Future[None]:
        """Begin, unless it runs; return what is done once it has ended, and ends it if cancelled."""
        future: Future[None] = Future()
        future.add_done_callback(lambda one: self._stop.set() if one.cancelled() else None)
        with self._guard:
            if self._thread is None or not self._thread.is_alive():
                self._stop.clear()
                self._thread = threading.Thread(
                    target=self._run, args=(minutes, future), daemon=True, name="dellm-ttl-sweeper"
                )
                self._thread.start()
        return future

    def stop(self, timeout: float | None = None) -> bool:
        """End it; return whether it has ended within `timeout` seconds (None: however long)."""
        with self._guard:
            thread = self._thread
        if thread is None:
            return True
        self._stop.set()
        thread.join(timeout)
        return not thread.is_alive()

    def _run(self, minutes: float, future: Future[None]) -> None:
        while not self._stop.wait(min(minutes * 60, threading.TIMEOUT_MAX)):
            try:
                self._sweep()
            except DatabaseClosed:
                break
            except Exception as error:  # noqa: BLE001 - the database may be away for a while
                _log.warning("Sweeping a store failed with %s.", type(error).__name__)
        if not future.cancelled():
            future.set_result(None)
