"""Models and tools of LlamaIndex that repeat every token they were shown.

All that is said for the first time brings a token of its own, `=TU00012=` where it is said first
and `TU00012` where it is repeated. So a text was made from another exactly if it holds that one's
token, and nothing needs to be known of how the text came about. The second letter says who brought
it: U a user, D a document, T a tool, R a model's reply, S a state that the agent began with.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection

TOKEN = re.compile(r"T[UDTRS]\d{5}")
OWN = re.compile(r"=(T[UDTRS]\d{5})=")
NUMBERS = itertools.count(1)
CALLS = itertools.count(1)

Step = Sequence[str] | str  # the tools to call at once; or "garbled", "empty", "raise"


def fresh(who: str) -> str:
    """Return a token nobody has said yet, as it is said first."""
    return f"=T{who}{next(NUMBERS):05}="


def tokens_in(value: object) -> list[str]:
    """Return the tokens in a value, each once, in order."""
    return list(dict.fromkeys(TOKEN.findall(_text(value))))


def own_tokens(value: object) -> list[str]:
    """Return the tokens that a value says first, or quotes from where they were said first."""
    return list(dict.fromkeys(OWN.findall(_text(value))))


def repeated(value: object) -> str:
    """Return the tokens of a value as they are repeated."""
    return " ".join(tokens_in(value))


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, ChatMessage):
        return str(value.model_dump())
    if isinstance(value, (list, tuple)):
        return " ".join(map(_text, value))
    return value if isinstance(value, str) else str(value)


def pieces(text: str) -> list[str]:
    """Return a text in three or fewer parts, cut between words."""
    words = re.findall(r"\S+\s*", text)
    size = max(1, -(-len(words) // 3))
    return ["".join(words[at : at + size]) for at in range(0, len(words), size)]


class Heard:
    """What a model was shown, prompt by prompt."""

    def __init__(self) -> None:
        self.prompts: list[frozenset[str]] = []

    def reply(self, prompt: object) -> str:
        """Note the tokens of a prompt; return an answer that repeats them all."""
        self.prompts.append(frozenset(tokens_in(prompt)))
        return f"{fresh('R')} heard of {repeated(prompt)}".strip()

    def since(self, mark: int) -> set[str]:
        return {token for one in self.prompts[mark:] for token in one}


class RepeatingCompletion(CustomLLM):
    """Completes a flat prompt; its chats are what CustomLLM makes of that."""

    _heard: Heard = PrivateAttr(default_factory=Heard)

    @property
    def heard(self) -> Heard:
        return self._heard

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=1_000_000, num_output=256, is_chat_model=False)

    @classmethod
    def class_name(cls) -> str:
        return cls.__name__

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return CompletionResponse(text=self._heard.reply(prompt))

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **_: Any
    ) -> CompletionResponseGen:
        def parts() -> CompletionResponseGen:
            said = ""
            for one in pieces(self._heard.reply(prompt)):
                said += one
                yield CompletionResponse(text=said, delta=one)

        return parts()


class RepeatingChat(RepeatingCompletion):
    """Chats as a provider's client does: it is given messages, and makes a message."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=1_000_000, num_output=256, is_chat_model=True)

    def say(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        """Return the whole reply to a prompt."""
        return ChatMessage(role="assistant", content=self._heard.reply(list(messages)))

    def parts(self, messages: Sequence[ChatMessage]) -> Iterator[ChatResponse]:
        """Yield the reply in parts, each a message of its own, as clients of providers do."""
        whole = self.say(messages)
        text, rest = "", [one for one in whole.blocks if not isinstance(one, TextBlock)]
        for piece in pieces(whole.content or "") or [""]:
            text += piece
            message = ChatMessage(role="assistant", content=text.strip() or None)
            yield ChatResponse(message=message, delta=piece)
        if rest or whole.additional_kwargs:
            yield ChatResponse(message=whole, delta="")

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return ChatResponse(message=self.say(messages))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponseGen:
        return (one for one in self.parts(messages))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return ChatResponse(message=self.say(messages))

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponseAsyncGen:
        return _later(self.parts(messages))


async def _later(parts: Iterable[ChatResponse]) -> AsyncIterator[ChatResponse]:
    for one in parts:
        yield one


class SilentChat(RepeatingChat):
    """A client whose author forgot the callbacks: no event says what it is shown or replies."""

    def chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return ChatResponse(message=self.say(messages))

    def stream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponseGen:
        return (one for one in self.parts(messages))

    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return ChatResponse(message=self.say(messages))

    async def astream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponseAsyncGen:
        return _later(self.parts(messages))


class Refused(RuntimeError):
    """What a model raises where its plan says so."""


class RepeatingCaller(RepeatingChat, FunctionCallingLLM):
    """Calls the tools that its plan names, one step for each prompt, then answers.

    The text of a call repeats all that it was shown, and so do the arguments. `provider`: the calls
    stand in the shape of a provider's client, not in blocks.
    """

    provider: bool = Field(default=False)
    _plan: list[Step] = PrivateAttr(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=1_000_000,
            num_output=256,
            is_chat_model=True,
            is_function_calling_model=True,
        )

    def then(self, *steps: Step) -> None:
        """Set what the next prompts are answered with."""
        self._plan = list(steps)

    def next_step(self) -> Step:
        step: Step = self._plan.pop(0) if self._plan else ()
        if step == "raise":
            raise Refused("the model is not there")
        return step

    def say(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        said = self._heard.reply(list(messages))
        calls = [_call(name, said) for name in self.next_step()]
        if not self.provider:
            blocks = [TextBlock(text=said), *(ToolCallBlock(**one) for one in calls)]
            return ChatMessage(role="assistant", blocks=blocks)
        shaped = [_as_provider(one) for one in calls]
        more = {"tool_calls": shaped} if shaped else {}
        return ChatMessage(role="assistant", content=said, additional_kwargs=more)

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[Any],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **_: Any,
    ) -> dict[str, Any]:
        asked = (
            ChatMessage(role="user", content=user_msg) if isinstance(user_msg, str) else user_msg
        )
        return {"messages": [*(chat_history or []), *([asked] if asked else [])]}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **_: Any
    ) -> list[ToolSelection]:
        message = response.message
        blocks = [one for one in message.blocks if isinstance(one, ToolCallBlock)]
        called = [(one.tool_call_id, one.tool_name, one.tool_kwargs) for one in blocks]
        for one in message.additional_kwargs.get("tool_calls", ()):
            made = one["function"]
            called.append((one["id"], made["name"], json.loads(made["arguments"])))
        return [
            ToolSelection(tool_id=id_ or "", tool_name=name, tool_kwargs=dict(given))
            for id_, name, given in called
        ]


def _call(name: str, said: str) -> dict[str, Any]:
    tool, _, to = name.partition(":")
    given = {"to_agent": to, "reason": repeated(said)} if to else {"text": repeated(said)}
    return {"tool_call_id": f"call_{next(CALLS)}", "tool_name": tool, "tool_kwargs": given}


def _as_provider(call: dict[str, Any]) -> dict[str, Any]:
    made = {"name": call["tool_name"], "arguments": json.dumps(call["tool_kwargs"])}
    return {"id": call["tool_call_id"], "type": "function", "function": made}


class RepeatingReasoner(RepeatingChat):
    """Answers in the form of ReAct: what its plan names step by step, then the answer."""

    _plan: list[Step] = PrivateAttr(default_factory=list)

    def then(self, *steps: Step) -> None:
        """Set what the next prompts are answered with."""
        self._plan = list(steps)

    def say(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        said = self._heard.reply(list(messages))
        step: Step = self._plan.pop(0) if self._plan else ()
        if step == "raise":
            raise Refused("the model is not there")
        return ChatMessage(role="assistant", content=self._form(said, step))

    def _form(self, said: str, step: Step) -> str:
        if step == "empty":
            return ""
        if step == "garbled":
            return f"Thought: {said}"
        if not step:
            return f"Thought: {said}\nAnswer: {said}"
        tool = step if isinstance(step, str) else step[0]
        given = json.dumps({"text": repeated(said)})
        return f"Thought: {said}\nAction: {tool}\nAction Input: {given}"


class RepeatingCoder(RepeatingReasoner):
    """Writes code that an agent executes, where its plan has a step, then answers."""

    def _form(self, said: str, step: Step) -> str:
        return f"{said}\n<execute>{repeated(said)}</execute>" if step else said


class WordEmbedding(BaseEmbedding):
    """Vectors by counts of words, so that what shares words is near; no weights, always the same."""

    size: int = Field(default=64)

    @classmethod
    def class_name(cls) -> str:
        return "WordEmbedding"

    def vector(self, text: str) -> list[float]:
        """Return counts of the words of a text by a hash of each."""
        found = [1e-3] * self.size
        for word in re.findall(r"[a-z]+", text.lower()):
            found[sum(map(ord, word)) % self.size] += 1.0
        return found

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self.vector(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.vector(text)
