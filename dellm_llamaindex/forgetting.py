"""ForgettingChatEngine: a deletion request in a chat is planned, confirmed and carried out.

Source of the interface: llama_index.core.chat_engine.types of llama-index-core 0.14,
`BaseChatEngine`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)

from dellm import InvalidInput, Memory, RequestKind, may_act, recognise
from dellm.adapting import Classifier, Kind, answering, check_callable, check_flag

from . import scopes
from .asking import DROPPED, Asking, Question, Said
from .replies import told as told_by
from .retriever import memory_of


@dataclass(frozen=True, slots=True)
class Turn:
    """What a message comes down to.

    `said` is what to answer to a deletion request, or to the answer to a question; None where there
    is none. `rest` is what else the message says, for the engine; "" where there is nothing.
    `dropped`: a question was left open by it.
    """

    said: Said | None
    rest: str
    dropped: bool = False


class ForgetDialog:
    """Deletion requests in one conversation: each message is shown to it before anything else is.

        turn = dialog.turn(message)
        if turn.said is not None: ...      # answer it; the message is not to be stored, nor sent
        if turn.rest: ...                  # this may be, instead of the message

    A request is planned and asked about; the next message answers: yes, no, or which of the numbers.
    Anything else cancels, and is a message like any other. Nothing of a request, and nothing that is
    forgotten, is kept: while a question is open only ids are, and not after the process ends.
    `memory` is a DeLLMMemory, or a dellm.Memory with the name of the conversation. `classifier`
    gives a second opinion on what is a request. Thread-safe. Raises InvalidInput.
    """

    def __init__(
        self, memory: Any, session_id: str | None = None, *, classifier: Classifier | None = None
    ) -> None:
        core, thread = conversation_of(memory, session_id, "ForgetDialog")
        if classifier is not None:
            what = "The method complete of classifier="
            check_callable(getattr(classifier, "complete", None), what)
        self._asking, self._classifier = Asking(core, thread), classifier
        self._guard = threading.Lock()
        self._pending: Question | None = None

    @property
    def pending(self) -> Question | None:
        """The question that waits for an answer, by ids and counts."""
        return self._pending

    def cancel(self) -> None:
        """Leave an open question unanswered: nothing is forgotten."""
        with self._guard:
            self._pending = None

    def turn(self, message: str) -> Turn:
        """Return what a message of the user comes down to.

        What a model or a document says is no request: nothing is one in code that a tool runs, nor
        is what a workflow hands on that a model has said or a retriever found in the same run.
        Raises EmbedderError, StorageError.
        """
        if not may_act(speaker(message)):
            return Turn(None, message)
        with self._guard:
            waiting, self._pending = self._pending, None
            if waiting is not None and answering.read(message).kind is not Kind.OTHER:
                return Turn(self._answered(waiting, message), "")
            request = recognise(message, model=self._classifier)
            if request.kind is not RequestKind.FORGET:
                return Turn(None, message, dropped=waiting is not None)
            said = self._asking.ask(request)
            self._pending = said.question
            return Turn(said, request.rest.strip())

    def again(self, said: Said) -> Said:
        """Return what is asked, as it is by now: what was said meanwhile may have to go as well."""
        with self._guard:
            if said.question is None or self._pending != said.question:
                return said
            now = self._asking.again(said.question)
            self._pending = now.question
            return now

    def answer(self, value: Any) -> Said:
        """Answer the open question with what dellm.adapting.answering.read understands.

        That is True, False, "yes", "no", ids, or a mapping. Raises InvalidInput where there is none.
        """
        with self._guard:
            waiting, self._pending = self._pending, None
            if waiting is None:
                raise InvalidInput("There is no question to answer.")
            return self._answered(waiting, value)

    def _answered(self, waiting: Question, value: Any) -> Said:
        self._pending = waiting  # it still stands when this fails
        said = self._asking.answer(waiting, value)
        self._pending = said.question
        return said


def conversation_of(memory: Any, session_id: str | None, user: str) -> tuple[Memory, str]:
    """Return the core's memory of what a user was given, and the name of its conversation."""
    core = memory_of(memory, user)
    thread = getattr(memory, "session_id", None) if session_id is None else session_id
    if not isinstance(thread, str) or not thread.strip():
        raise InvalidInput("session_id= names the conversation.")
    return core, thread


def speaker(message: str) -> str:
    """Return who says a message: "human", or a "tool", "model" or "document" of the running turn."""
    scope = inner = scopes.current()
    while scope is not None:
        if scope.kind == "tool":
            return "tool"
        scope = scope.parent
    if inner is None:
        return "human"
    if told_by(message, inner):
        return "model"
    return "document" if message.strip() in _found(inner) else "human"


def _found(scope: scopes.Scope) -> Iterator[str]:
    """Yield what the nodes say that the running turn, or one around it, has found."""
    with scopes.guard:
        nodes = [node for turn in scope.around() for node in turn.reads.nodes.values()]
    for one in nodes:
        yield one.get_content().strip()


class ForgettingChatEngine(BaseChatEngine):
    """Does what another chat engine does, and carries out what a user asks to be forgotten.

    A deletion request is neither stored nor sent to a model. It is answered with what would go, by
    ids of records, counts and, with `preview`, their beginnings, and with a question; the next
    message is the answer, which is not stored either. Anything but a clear answer cancels, and is
    answered by the engine. What a message says besides its request goes to the engine, and its
    answer comes before the question. See `ForgetDialog`.

    `memory` is that of the engine, a DeLLMMemory, where none is given; else a DeLLMMemory, or a
    dellm.Memory with `session_id`. What a response says of it is in its metadata, as "dellm":
    {"question": ...}, {"receipt": number} or {"cancelled": True}; a stream has none: see `pending`.
    Raises InvalidInput.
    """

    def __init__(
        self,
        engine: BaseChatEngine,
        *,
        memory: Any = None,
        session_id: str | None = None,
        classifier: Classifier | None = None,
        preview: bool = True,
    ) -> None:
        if not isinstance(engine, BaseChatEngine):
            raise InvalidInput("ForgettingChatEngine takes a chat engine.")
        check_flag(preview, "preview=")
        own = getattr(engine, "_memory", None) if memory is None else memory
        self.engine, self.preview = engine, preview
        self.dialog = ForgetDialog(own, session_id, classifier=classifier)

    @property
    def pending(self) -> Question | None:
        """The question that waits for an answer, by ids and counts."""
        return self.dialog.pending

    @property
    def chat_history(self) -> list[ChatMessage]:
        """As the engine's: requests and what is said of them are not in it."""
        return self.engine.chat_history

    def reset(self) -> None:
        """Reset the engine, and leave an open question unanswered. It is not forgetting."""
        self.dialog.cancel()
        self.engine.reset()

    def chat(self, message: str, chat_history: list[ChatMessage] | None = None) -> Any:
        """Answer a message; see BaseChatEngine.chat."""
        turn = self.dialog.turn(message)
        if turn.said is not None and not turn.rest:
            return AgentChatResponse(self._shown(turn), metadata=told(turn))
        answer = self.engine.chat(turn.rest, chat_history)
        return self._after(answer, self._again(turn))

    async def achat(self, message: str, chat_history: list[ChatMessage] | None = None) -> Any:
        """As chat."""
        turn = await asyncio.to_thread(self.dialog.turn, message)
        if turn.said is not None and not turn.rest:
            return AgentChatResponse(self._shown(turn), metadata=told(turn))
        answer = await self.engine.achat(turn.rest, chat_history)
        return self._after(answer, await asyncio.to_thread(self._again, turn))

    def stream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> StreamingAgentChatResponse:
        """As chat, in pieces."""
        turn = self.dialog.turn(message)
        if turn.said is not None and not turn.rest:
            return streamed(None, lambda: self._shown(turn))
        answer = self.engine.stream_chat(turn.rest, chat_history)
        return self._followed(answer, turn)

    async def astream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> StreamingAgentChatResponse:
        """As stream_chat."""
        turn = await asyncio.to_thread(self.dialog.turn, message)
        if turn.said is not None and not turn.rest:
            return streamed(None, lambda: self._shown(turn))
        answer = await self.engine.astream_chat(turn.rest, chat_history)
        return self._followed(answer, turn)

    def _again(self, turn: Turn) -> Turn:
        """Return a turn, the rest of which has been answered, with what is asked by now."""
        return turn if turn.said is None else replace(turn, said=self.dialog.again(turn.said))

    def _followed(
        self, answer: StreamingAgentChatResponse, turn: Turn
    ) -> StreamingAgentChatResponse:
        if not self._shown(turn):
            return answer
        return streamed(answer, lambda: f"\n\n{self._shown(self._again(turn))}")

    def _shown(self, turn: Turn) -> str:
        """Return what to tell the user of a request; "" where there was none."""
        if turn.said is None:
            return DROPPED if turn.dropped else ""
        said = turn.said
        parts = [said.preview] if self.preview and said.preview else []
        return "\n".join([*parts, said.text])

    def _after(self, answer: Any, turn: Turn) -> Any:
        """Return an engine's answer, and after it what is said of a request."""
        more = self._shown(turn)
        if not more:
            return answer
        return AgentChatResponse(
            response=f"{answer}\n\n{more}",
            sources=list(answer.sources),
            source_nodes=list(answer.source_nodes),
            metadata={**(answer.metadata or {}), **told(turn)},
        )


def told(turn: Turn) -> dict[str, Any]:
    """Return what the metadata of a response say of a request."""
    said = turn.said
    if said is None:
        return {"dellm": {"cancelled": True}} if turn.dropped else {}
    if said.question is not None:
        return {"dellm": {"question": said.question.to_dict()}}
    return {"dellm": {} if said.receipt is None else {"receipt": said.receipt.number}}


def streamed(
    answer: StreamingAgentChatResponse | None, more: Callable[[], str]
) -> StreamingAgentChatResponse:
    """Return a stream of an engine's answer, if there is one, and then of a text.

    The answer is written to the engine's memory as it would be without the text, which is asked for
    when the answer has been read.
    """
    made = StreamingAgentChatResponse(
        response=more() if answer is None else "",
        sources=[] if answer is None else list(answer.sources),
        source_nodes=[] if answer is None else list(answer.source_nodes),
        chat_stream=_pieces(answer, more),
        achat_stream=_a_pieces(answer, more),
        is_writing_to_memory=False,
    )
    if answer is not None:
        made.write_response_to_history_thread = answer.write_response_to_history_thread
        made.awrite_response_to_history_task = answer.awrite_response_to_history_task
    return made


def _pieces(
    answer: StreamingAgentChatResponse | None, more: Callable[[], str]
) -> Generator[ChatResponse, None, None]:
    so_far = _so_far()
    for piece in answer.response_gen if answer is not None else ():
        yield so_far(piece)
    yield so_far(more())


async def _a_pieces(
    answer: StreamingAgentChatResponse | None, more: Callable[[], str]
) -> AsyncGenerator[ChatResponse, None]:
    so_far = _so_far()
    if answer is not None:
        async for piece in answer.async_response_gen():
            yield so_far(piece)
    yield so_far(await asyncio.to_thread(more))


def _so_far() -> Callable[[str], ChatResponse]:
    """Return a function that makes a response of each piece, with all pieces up to it."""
    said: list[str] = []

    def response(piece: str) -> ChatResponse:
        said.append(piece)
        message = ChatMessage(role=MessageRole.ASSISTANT, content="".join(said))
        return ChatResponse(message=message, delta=piece)

    return response
