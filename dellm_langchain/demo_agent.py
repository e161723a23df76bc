"""The agent of the demo: a tool that needs a yes, a graph inside it, and notes in a string channel.

Nothing here knows which checkpointer it runs on. That is the point: the demo runs it on two.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any, NotRequired, TypedDict

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelRequest,
    ModelResponse,
)
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from pydantic import PrivateAttr, SecretStr

from dellm import ExtractiveReader, Model, ModelError, SmolModel, WeightsError

SYSTEM = "Reply in one short sentence. Use the notes."
NOTES = "Notes on the user:"
NOTING = "Repeat what is mine: favourite, home."  # words that all three models can do with
WORDS = 24  # tokens that the local model may answer with
TRIGGER = "send"  # what the user says when the small models shall use the tool


class Label(TypedDict):
    """State of the graph inside the tool."""

    tea: str
    address: str
    label: NotRequired[str]


def _write_label(state: Label) -> dict[str, str]:
    return {"label": f"{state['tea']} to {state['address']}"}


def _courier() -> Any:
    graph = StateGraph(Label)
    graph.add_node("write_label", _write_label)
    graph.add_edge(START, "write_label")
    return graph.compile()


@tool
def send_tea(
    tea: Annotated[str, "the user's favourite tea"],
    address: Annotated[str, "the user's home address"],
) -> str:
    """Send a box of tea to the user."""
    done = _courier().invoke({"tea": tea, "address": address})
    return f"On its way: {done['label']}."


class NotesState(AgentState[Any]):
    """The agent's state, with what it noted on the user as one string."""

    notes: NotRequired[str]


class Notes(AgentMiddleware[NotesState]):
    """Has the model write notes after each turn, and puts them into the next system prompt."""

    state_schema = NotesState

    def __init__(self, model: BaseChatModel) -> None:
        super().__init__()
        self._model = model

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Add the notes to the system prompt."""
        told = dict(request.state).get("notes") or ""
        return handler(request.override(system_message=_system(str(told))))

    def after_agent(self, state: NotesState, runtime: Runtime[Any]) -> dict[str, Any]:  # noqa: ARG002 - the hook's form
        """Write the notes anew from the conversation and the old notes."""
        prompt = [_system(state.get("notes", "")), *state["messages"], HumanMessage(NOTING)]
        return {"notes": self._model.invoke(prompt).text}


def _system(notes: str) -> SystemMessage:
    return SystemMessage(f"{SYSTEM}\n{NOTES}\n{notes}" if notes else SYSTEM)


def agent(model: BaseChatModel, saver: BaseCheckpointSaver[Any]) -> Any:
    """Return the agent on a checkpointer: the only line that differs between two runs."""
    approve = HumanInTheLoopMiddleware(
        {"send_tea": {"allowed_decisions": ["approve", "reject"]}}, description_prefix="Send this?"
    )
    middleware: list[Any] = [Notes(model), approve]
    return create_agent(model, [send_tea], middleware=middleware, checkpointer=saver)


class PromptOnly(BaseChatModel):
    """A model of dellm as a chat model. It knows what its prompt says, and nothing else.

    These models cannot call tools. So a rule does: where a tool is bound and the user's last
    message has the word "send", the tool is called, with what the model answers when it is asked
    for each argument. They read what the user stated and the notes; more would only confuse them.
    An equal prompt gets an equal answer, so it is worked out once for both runs of the demo.
    """

    inner: Any  # a dellm.Model
    _answers: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def _llm_type(self) -> str:
        return "dellm"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Any:
        """Bind tools for the rule; it cannot be told which to choose."""
        del tool_choice
        return self.bind(tools=[convert_to_openai_tool(one) for one in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the interface's form
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - as above
        **kwargs: Any,
    ) -> ChatResult:
        reply = self._call(messages, kwargs.get("tools") or []) or self._answer(messages)
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _call(self, messages: list[BaseMessage], tools: list[dict[str, Any]]) -> AIMessage | None:
        last = messages[-1]
        asked = isinstance(last, HumanMessage) and TRIGGER in last.text.casefold().split()
        if not (tools and asked):
            return None
        function = tools[0]["function"]
        known = _lines(messages)
        answers = {
            name: self._ask(known, f"What is {one['description']}?")
            for name, one in function["parameters"]["properties"].items()
        }
        args = {name: said.rpartition(" is ")[2].rstrip(".") for name, said in answers.items()}
        call = ToolCall(name=function["name"], args=args, id=f"call_{uuid.uuid4().hex[:12]}")
        return AIMessage("", tool_calls=[call])

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        last = messages[-1]
        if isinstance(last, ToolMessage):  # told as it is: a small model would only garble it
            return AIMessage(last.text)
        return AIMessage(self._ask(_lines(messages[:-1]), last.text))

    def _ask(self, known: list[str], question: str) -> str:
        memory = "\n".join(known)
        content = f"<memory>\n{memory}\n</memory>\n\n{question}" if known else question
        if content not in self._answers:
            answer: str = self.inner.complete([{"role": "user", "content": content}])
            self._answers[content] = " ".join(answer.split())
        return self._answers[content]


def _lines(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the notes of a prompt and what the user stated in it, a line each."""
    lines: list[str] = []
    for one in messages:
        if isinstance(one, SystemMessage):
            lines += one.text.splitlines()[2:]  # what is below SYSTEM and NOTES
        elif isinstance(one, HumanMessage) and not one.text.endswith("?"):
            lines.append(f"user: {one.text}")
    return lines


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chat model that the demo talks with, one line on it, and how it can fail."""

    model: BaseChatModel
    says: str
    faults: tuple[type[Exception], ...] = ()


def choose(*, offline: bool) -> Chosen:
    """Return the best chat model in reach: an OpenAI-compatible endpoint, SmolLM2, or quoting."""
    if not offline and (endpoint := _endpoint()) is not None:
        return endpoint
    rule = "It cannot call tools: a rule does where the user says “send”."
    if not offline and (local := _local()) is not None:
        says = f"SmolLM2 in this process, a very small model that also invents. {rule}"
        return Chosen(PromptOnly(inner=local), says)
    quoting = "No language model: a reader quotes the best sentence of its prompt."
    return Chosen(PromptOnly(inner=ExtractiveReader()), f"{quoting} {rule}")


def _endpoint() -> Chosen | None:
    key, url = os.environ.get("OPENAI_API_KEY"), os.environ.get("OPENAI_BASE_URL")
    if not (key or url) or find_spec("langchain_openai") is None:
        return None
    from langchain_openai import ChatOpenAI
    from openai import OpenAIError

    name = os.environ.get("OPENAI_MODEL") or "gpt-4.1-nano"
    model = ChatOpenAI(
        model=name, base_url=url, api_key=SecretStr(key or "none"), temperature=0, max_retries=4
    )
    says = f"{name} at an OpenAI-compatible endpoint; it calls the tool itself."
    return Chosen(model, says, (OpenAIError,))


def _local() -> Model | None:
    try:
        return SmolModel(max_tokens=WORDS)
    except (ModelError, WeightsError):
        return None
