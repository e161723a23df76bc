"""DeLLMMemory: what a chat engine or an agent remembers, and can really forget.

A swap-in for Memory and ChatMemoryBuffer. Source of the interface: llama_index.core.memory.types of
llama-index-core 0.14, `BaseMemory`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar
from uuid import uuid4

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.llms.llm import LLM
from llama_index.core.memory.types import BaseMemory
from llama_index.core.utils import get_tokenizer

from dellm import InvalidInput, Memory, Plan, Receipt
from dellm.adapting import Choice

from . import documents, scopes, taps
from .choosing import Wanted, chosen
from .handles import Handle, Held, handle_of, open_once, opened
from .listing import reset, set_list
from .messages import checked, text_of
from .scopes import Scope
from .sessions import Session
from .trimming import counter_of

TOKEN_LIMIT = 3_000  # as ChatMemoryBuffer's, where no model says how much it takes
TOKEN_SHARE = 0.75  # of a model's context window

_T = TypeVar("_T")

taps.install()


class DeLLMMemory(BaseMemory):
    """The messages of one session of a dellm.Memory, each tied to what it was made from.

    `get(input)` gives the system messages, the `top_k` records that mean most for the input, the
    newest `last_n` messages and the running turn, within `token_limit` tokens; without an input the
    last user message stands for it. `threshold` and `by` are as in dellm.Memory.context;
    `across_sessions` looks for relevant records in the whole workspace. With `top_k=None` it gives
    what ChatMemoryBuffer gives: as much of the session's end as fits.

    The object is a handle: copies, pickles, `to_dict` and a workflow's Context mean the same
    memory, and hold no message and no password; nor `tokenizer_fn`, for which the default stands
    where the handle is read. See handles.attach for other processes.
    """

    url: str = Field(default="", description="Where the memory is, without a password.")
    workspace: str = Field(default="default", description="The workspace of the memory.")
    opened: str = Field(default="", description="Which open memory of which process it is.")
    session_id: str = Field(default_factory=lambda: uuid4().hex)
    top_k: int | None = Field(default=5)
    token_limit: int = Field(default=TOKEN_LIMIT, ge=1)
    last_n: int = Field(default=0)
    threshold: float | None = Field(default=None)
    by: str | None = Field(default=None)
    across_sessions: bool = Field(default=False)
    tokenizer_fn: Callable[[str], list[Any]] = Field(default_factory=get_tokenizer, exclude=True)

    _held: Held = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Find the open memory that this is a handle of; InvalidInput for settings of no sense."""
        super().model_post_init(context)
        wanted = Choice(self.top_k or 0, self.threshold, self.last_n, self.by or "meaning")
        wanted.check()
        if not self.session_id.strip():
            raise InvalidInput("session_id= is empty.")
        memory = opened(self._handle) if self.url else open_once(":memory:", self.workspace)
        self.url, self.workspace, self.opened = handle_of(memory)
        self._held = Held(memory)

    @classmethod
    def class_name(cls) -> str:
        """Return the name by which LlamaIndex knows the class."""
        return "DeLLMMemory"

    @classmethod
    def from_defaults(  # type: ignore[override] # each memory class has options of its own
        cls,
        memory: Memory | str | None = None,
        session_id: str | None = None,
        *,
        top_k: int | None = 5,
        token_limit: int | None = None,
        last_n: int = 0,
        threshold: float | None = None,
        by: str | None = None,
        across_sessions: bool = False,
        chat_history: list[ChatMessage] | None = None,
        llm: LLM | None = None,
        tokenizer_fn: Callable[[str], list[Any]] | None = None,
        workspace: str | None = None,
    ) -> Self:
        """Return the memory of a session, a new one if no `session_id` is given.

        `memory` is an open dellm.Memory, or the path or URL of one, which is opened once in this
        process; None: one in this process's memory, which all who say nothing else share.
        `workspace` is another workspace of it. `chat_history` is what the session then holds (see
        `set`). `token_limit` is 3,000, or three quarters of the context window of `llm`.
        Raises InvalidInput, and what dellm.Memory.open raises.
        """
        made = cls(
            **_handle_of(memory, workspace),
            session_id=session_id if session_id is not None else uuid4().hex,
            top_k=top_k,
            token_limit=_limit(token_limit, llm),
            last_n=last_n,
            threshold=threshold,
            by=by,
            across_sessions=across_sessions,
            tokenizer_fn=tokenizer_fn or get_tokenizer(),
        )
        if chat_history:
            made.set(chat_history)
        return made

    @property
    def core(self) -> Memory:
        """The open dellm.Memory, of this workspace."""
        return self._held.of(self._handle)

    @property
    def _handle(self) -> Handle:
        return Handle(self.url, self.workspace, self.opened)

    @property
    def _session(self) -> Session:
        return Session(self.core, self.session_id)

    # copies

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self.model_copy()

    def to_string(self) -> str:
        """Return the handle as JSON."""
        return self.to_json()

    @classmethod
    def from_string(cls, json_str: str) -> Self:
        """Return the memory of a handle that to_string gave."""
        return cls.from_dict(json.loads(json_str))

    # reading

    def get(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002 - BaseMemory calls it so
        initial_token_count: int = 0,
        **_: Any,
    ) -> list[ChatMessage]:
        """Return what goes into the prompt for an input; fresh objects at every call.

        `initial_token_count` tokens of the limit are taken already; ValueError if those are more.
        """
        found = self._get(input, initial_token_count)
        scopes.given(found)
        return found

    async def aget(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002 - BaseMemory calls it so
        initial_token_count: int = 0,
        **_: Any,
    ) -> list[ChatMessage]:
        """As get."""
        found = await asyncio.to_thread(self._get, input, initial_token_count)
        scopes.given(found)
        return found

    def _get(self, asked: str | ChatMessage | None, initial: int) -> list[ChatMessage]:
        if initial > self.token_limit:
            raise ValueError("Initial token count exceeds token limit")
        session = self._session
        room = self.token_limit - initial
        counter = counter_of(self.tokenizer_fn, session.owner)
        if self.top_k is None:
            return session.fitting(counter, room)
        query = text_of(asked) if isinstance(asked, ChatMessage) else asked
        wanted = Wanted(
            self.top_k, self.last_n, self.threshold, self.by, self.across_sessions, room
        )
        return chosen(session, query, wanted, counter)

    def get_all(self) -> list[ChatMessage]:
        """Return all messages of the session; fresh objects at every call."""
        found = self._session.window().messages
        scopes.given(found)
        return found

    async def aget_all(self) -> list[ChatMessage]:
        """As get_all."""
        found = await asyncio.to_thread(lambda: self._session.window().messages)
        scopes.given(found)
        return found

    # writing

    def put(self, message: ChatMessage) -> None:
        """Add a message; it is not stored if what it was made from is forgotten by now."""
        self.put_messages([message])

    async def aput(self, message: ChatMessage) -> None:
        """As put."""
        await self.aput_messages([message])

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Add messages, in one transaction."""
        self._put(checked(messages), scopes.current())

    async def aput_messages(self, messages: Sequence[ChatMessage]) -> None:
        """As put_messages."""
        await self._off(self._put, checked(messages))

    def _put(self, messages: list[ChatMessage], scope: Scope | None) -> None:
        if messages:
            self._session.add(messages, scope)

    def set(self, messages: list[ChatMessage]) -> None:
        """Let the session hold these messages, in one transaction.

        What the list and the session begin with alike stays; what follows in the session is
        dropped from it, and what follows in the list is added. Dropping is not forgetting: see
        `reset`.
        """
        set_list(self._session, checked(messages), scopes.current())

    async def aset(self, messages: list[ChatMessage]) -> None:
        """As set."""
        await self._off(
            lambda given, scope: set_list(self._session, given, scope), checked(messages)
        )

    def reset(self) -> None:
        """Begin the session anew: its messages are no longer given.

        This is not forgetting. The messages stay in the memory with all that was made from them,
        so that a later forget finds both; `forget(thread=memory.session_id)` erases them.
        """
        reset(self._session)

    async def areset(self) -> None:
        """As reset."""
        await asyncio.to_thread(self.reset)

    async def _off(
        self, call: Callable[[list[ChatMessage], Scope | None], _T], messages: list[ChatMessage]
    ) -> _T:
        """Call off the loop, as from the scope that this is called in."""
        scope = scopes.current()
        if scope is None:
            scopes.outside()  # so that what the other thread notes is noted for this task
        return await asyncio.to_thread(call, messages, scope)

    # forgetting

    def plan(self, what: str | None = None, **options: Any) -> Plan:
        """Show what a forget would take: of the whole workspace, not of this session alone.

        The arguments are those of dellm.Memory.plan; `thread=memory.session_id` narrows it.
        """
        return self.core.plan(what, **options)

    async def aplan(self, what: str | None = None, **options: Any) -> Plan:
        """As plan."""
        return await asyncio.to_thread(lambda: self.plan(what, **options))

    def forget(self, what: Plan | str | None = None, **options: Any) -> Receipt:
        """Forget, in the whole workspace, what the arguments say; as dellm.Memory.forget."""
        return self.core.forget(what, **options)

    async def aforget(self, what: Plan | str | None = None, **options: Any) -> Receipt:
        """As forget."""
        return await asyncio.to_thread(lambda: self.forget(what, **options))

    def plan_document(self, ref_doc_id: str, **options: Any) -> Plan:
        """Show what forgetting a document would take: its nodes, and all that was made from them."""
        return documents.plan_document(self.core, ref_doc_id, **options)

    async def aplan_document(self, ref_doc_id: str, **options: Any) -> Plan:
        """As plan_document."""
        return await asyncio.to_thread(lambda: self.plan_document(ref_doc_id, **options))

    def forget_document(self, ref_doc_id: str, **options: Any) -> Receipt:
        """Forget a document: its nodes that were retrieved, and all that was made from them."""
        return documents.forget_document(self.core, ref_doc_id, **options)

    async def aforget_document(self, ref_doc_id: str, **options: Any) -> Receipt:
        """As forget_document."""
        return await asyncio.to_thread(lambda: self.forget_document(ref_doc_id, **options))


def _handle_of(memory: Memory | str | None, workspace: str | None) -> dict[str, str]:
    found = open_once(":memory:" if memory is None else memory, workspace)
    return handle_of(found)._asdict()


def _limit(token_limit: int | None, llm: LLM | None) -> int:
    """Return the limit that ChatMemoryBuffer would have."""
    if llm is not None:
        return token_limit or int(llm.metadata.context_window * TOKEN_SHARE)
    return TOKEN_LIMIT if token_limit is None else token_limit
