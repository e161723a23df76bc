"""The compared systems: what a probe leaves, and what a request takes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.evaluation.canary import Canary
from benchmarks.evaluation.running import Run
from benchmarks.evaluation.systems import Said, System
from benchmarks.evaluation.systems.every import every
from dellm.embedding import HashingEmbedder

FACT = "I work as a nurse in Oslo."
OTHER = "My dog Rex eats carrots."
MAKERS = every(Run(Canary(), HashingEmbedder()), (0.9,))
KEEPING = [name for name in MAKERS if name != "no memory"]
DELETING = [name for name in KEEPING if name != "full history (LangChain)"]


@pytest.fixture
def system(request: pytest.FixtureRequest) -> Iterator[System]:
    made = MAKERS[request.param]()
    yield made
    made.close()


@pytest.mark.parametrize("system", list(MAKERS), indirect=True)
def test_a_probe_leaves_nothing_behind(system: System) -> None:
    system.tell(FACT)
    before = system.held()
    assert "zebra" in system.ask("Is there a zebra at work in Oslo?")
    assert system.held() == before


@pytest.mark.parametrize("system", KEEPING, indirect=True)
def test_what_was_told_is_known_until_it_is_forgotten(system: System) -> None:
    system.load([Said("user", FACT), Said("assistant", "Noted."), Said("user", OTHER)])
    assert "nurse" in system.ask("Where do I work as a nurse in Oslo, and as what?")
    assert len(system.held()) == 3


@pytest.mark.parametrize("system", DELETING, indirect=True)
def test_a_request_takes_the_fact_and_leaves_the_other(system: System) -> None:
    system.tell(FACT)
    system.tell(OTHER)
    assert system.forget(FACT) >= 1
    assert FACT not in system.held()
    assert OTHER in system.held()
    if not system.name.startswith("semantic"):  # which leaves what quotes it among other words
        assert "Oslo" not in "\n".join(system.held())


@pytest.mark.parametrize("system", ["full history (LangChain)"], indirect=True)
def test_a_stock_agent_keeps_the_fact_and_the_request_too(system: System) -> None:
    system.tell(FACT)
    assert system.forget(FACT) == 0
    assert sum("Oslo" in one for one in system.held()) > 2
