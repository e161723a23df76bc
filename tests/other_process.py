"""Other processes, which begin with the frameworks loaded: importing them takes each three seconds.

A server of the tests' own loads them once and is forked for each process that is asked for, so
that nothing of the asking one is in it.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from multiprocessing.connection import Connection
from typing import Any, TextIO

# Nothing of the tests' own folder, which the server does not find before Python 3.13.
LOADED = [
    *("pytest", "dellm.memory", "dellm.sqlite", "dellm.postgres"),
    *("langchain.agents", "langgraph.func", "dellm_langchain.saver"),
    *("llama_index.core.agent.workflow", "llama_index.core.chat_engine", "dellm_llamaindex.memory"),
]
FORKS = "forkserver" in multiprocessing.get_all_start_methods()
CONTEXT: Any = multiprocessing.get_context("forkserver" if FORKS else "spawn")
if FORKS:
    CONTEXT.set_forkserver_preload(LOADED)


class OtherProcess:
    """A Python program in another process, as `python program arguments` would run it.

    `program` is the path of a file, or the code itself. It reads what `tell` sends and its output,
    errors included, is read by `line` and `rest`.
    """

    def __init__(self, program: str, *arguments: str) -> None:
        told, self._telling = CONTEXT.Pipe(duplex=False)
        self._heard, telling = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=_run, args=(program, arguments, told, telling))
        self._process.start()
        told.close()
        telling.close()
        self._output: TextIO = os.fdopen(os.dup(self._heard.fileno()), encoding="utf-8")
        self._heard.close()

    def line(self) -> str:
        return self._output.readline()

    def tell(self, line: str) -> None:
        os.write(self._telling.fileno(), f"{line}\n".encode())

    def rest(self) -> str:
        """Return all that is still said, once the process has ended."""
        self._telling.close()
        said = self._output.read()
        self._output.close()
        self._process.join(60)
        return said

    @property
    def code(self) -> int | None:
        return self._process.exitcode  # type: ignore[no-any-return] # the context is untyped


def said_by(program: str, *arguments: str) -> str:
    """Return all that a program says, its errors included."""
    return OtherProcess(program, *arguments).rest()


def _run(program: str, arguments: tuple[str, ...], told: Connection, telling: Connection) -> None:
    os.dup2(told.fileno(), 0)
    for number in (1, 2):
        os.dup2(telling.fileno(), number)
    told.close()
    telling.close()
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1)
    sys.argv = [program, *arguments]
    try:
        if program.endswith(".py"):
            runpy.run_path(program, run_name="__main__")
        else:
            exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
    finally:
        sys.stdout.flush()
