"""The ways in which a chain is run, on the conversation "chat", whatever its config calls that."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import Runnable

Chain = Runnable[Any, Any]
Config = dict[str, Any]
TEMPLATE = ChatPromptTemplate.from_messages(
    [("system", "answer kindly"), MessagesPlaceholder("history"), ("human", "{q}")]
)


class Ways:
    """Runs chains with one config, each method to the end of what it gives."""

    def __init__(self, config: Config) -> None:
        self.config: Any = config

    def invoke(self, chain: Chain, value: Any) -> None:
        chain.invoke(value, self.config)

    def stream(self, chain: Chain, value: Any) -> None:
        assert list(chain.stream(value, self.config))

    def batch(self, chain: Chain, value: Any) -> None:
        chain.batch([value], self.config)

    def ainvoke(self, chain: Chain, value: Any) -> None:
        asyncio.run(chain.ainvoke(value, self.config))

    def abatch(self, chain: Chain, value: Any) -> None:
        asyncio.run(chain.abatch([value], self.config))

    def astream(self, chain: Chain, value: Any) -> None:
        async def run() -> None:
            assert [one async for one in chain.astream(value, self.config)]

        asyncio.run(run())
