"""For modules of many small tests: one PostgreSQL database, emptied between them.

Copying the template takes half a second on a busy machine, emptying the tables a hundredth of it.
Import both fixtures to use them in a module in place of conftest's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest
from raw_tables import emptied


@pytest.fixture(scope="module")
def one_database(postgres: str, template: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL of a database that the tests of one module use in turn."""
    name = f"dellm_{request.module.__name__.rsplit('.', 1)[-1]}_{os.getpid()}"
    with psycopg.connect(postgres, autocommit=True) as owner:
        owner.execute(f"create database {name} template {template} strategy file_copy")
        yield postgres.replace("/postgres?", f"/{name}?")
        owner.execute(f"drop database {name} with (force)")


@pytest.fixture
def postgres_url(one_database: str) -> str:
    """Return the URL of an empty PostgreSQL database."""
    emptied(one_database)
    return one_database
