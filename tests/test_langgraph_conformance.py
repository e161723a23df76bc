"""The public conformance suite of LangGraph's checkpointers, all of it, on both databases.

The suite calls only the async methods of a saver; the sync ones are put behind an adapter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.conformance.report import CapabilityReport
from langgraph.checkpoint.memory import InMemorySaver

from dellm import Memory
from dellm_langchain import DeLLMSaver

Saver = BaseCheckpointSaver[Any]
# 81 in the release the tests were written with; a later one may have more, never fewer.
TESTS = 81
ORDER = [one.value for one in Capability].index


class ThroughSync(BaseCheckpointSaver[Any]):
    """Answer each async call with the sync method of another saver, in a thread."""

    def __init__(self, saver: Saver) -> None:
        super().__init__(serde=saver.serde)
        self.saver = saver

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self.saver.get_next_version(current, channel)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        put = self.saver.put
        return await asyncio.to_thread(put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await asyncio.to_thread(self.saver.put_writes, config, writes, task_id, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.saver.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 # the interface's own name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        def listed() -> list[CheckpointTuple]:
            return list(self.saver.list(config, filter=filter, before=before, limit=limit))

        for one in await asyncio.to_thread(listed):
            yield one

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.saver.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.saver.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.saver.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(self.saver.prune, thread_ids, strategy=strategy)


WAYS: dict[str, Callable[[Saver], Saver]] = {"async": lambda saver: saver, "sync": ThroughSync}


def reported(saver: Saver) -> CapabilityReport:
    """Run the whole suite on one saver; its tests use threads of their own."""

    @checkpointer_test(name=type(saver).__name__)
    async def given() -> AsyncGenerator[Saver, None]:
        yield saver

    return asyncio.run(validate(given))


def passed(report: CapabilityReport) -> int:
    return sum(result.tests_passed for result in report.results.values())


def failures(report: CapabilityReport) -> list[str]:
    return [one for result in report.results.values() for one in result.failures]


def detected(report: CapabilityReport) -> set[str]:
    return {name for name, result in report.results.items() if result.detected}


def inherited(saver: type[Saver], names: list[str]) -> list[str]:
    """Return the methods a class does not have of its own: those only raise NotImplementedError."""
    return [name for name in names if getattr(saver, name) is getattr(BaseCheckpointSaver, name)]


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_every_test_of_the_conformance_suite_passes(
    url: str, way: str, opened: Callable[..., Memory]
) -> None:
    saver = DeLLMSaver(opened(url).workspace("conformance"))
    report = reported(WAYS[way](saver))
    assert failures(report) == []
    assert detected(report) == {one.value for one in Capability}
    assert passed(report) >= TESTS


def test_the_saver_has_each_capability_of_its_own_sync_and_async() -> None:
    names = [one.value for one in Capability]
    assert inherited(DeLLMSaver, [*names, *(f"a{name}" for name in names)]) == []


@pytest.mark.parametrize("way", WAYS)
def test_the_suite_is_run_as_it_should_on_a_stock_saver(way: str) -> None:
    """What is known of another saver shows that failures and gaps would be seen."""
    report = reported(WAYS[way](InMemorySaver()))
    gaps = {"delete_for_runs", "copy_thread", "prune"}
    assert inherited(InMemorySaver, [one.value for one in Capability]) == sorted(gaps, key=ORDER)
    failed = {name for name, result in report.results.items() if result.tests_failed}
    if way == "async":
        assert detected(report) == {one.value for one in Capability} - gaps
        assert (passed(report), failed) == (58, set())
    else:
        # The adapter has every method, so what the saver lacks fails instead of being left out.
        assert failed == gaps
        assert passed(report) + len(failures(report)) == TESTS
