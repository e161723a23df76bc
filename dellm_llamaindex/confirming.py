"""confirm_forget(): a step of a workflow that carries out deletion requests, once a human agrees.

The step waits in the framework's own way, so the run may be kept as JSON and resumed elsewhere. The
request is taken out of the event that brought it: what is kept while nobody has answered is ids.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from workflows import Context
from workflows.events import Event, HumanResponseEvent, InputRequiredEvent

from dellm import InvalidInput, RequestKind, may_act, recognise
from dellm.adapting import Classifier

from .asking import Asking, Question, Said
from .forgetting import conversation_of, speaker

STATE = "dellm_forget"  # where an event says how far its request has got


class ForgetQuestion(InputRequiredEvent):
    """What a human is asked before anything is erased: `question` as of Question.to_dict.

    `prefix` says it in words, with no word of what would go. Answer with a HumanResponseEvent whose
    `response` is "yes", "no", "only 3 and 5", True, False or a list of ids; its `plan`, if it has
    one, is the token that the answer is meant for.
    """

    prefix: str
    question: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settled:
    """How a deletion request ended: what to tell the user, without a word of what was erased.

    `receipt` is the number of what was done, None where nothing was; `rest` what else was said.
    """

    text: str
    receipt: int | None
    rest: str


async def confirm_forget(
    ctx: Context[Any],
    memory: Any,
    event: Event,
    *,
    field: str = "input",
    session_id: str | None = None,
    classifier: Classifier | None = None,
    wait: float | None = None,
) -> Settled | None:
    """Return how the deletion request in an event ended, None where there is none in it.

    Call it first in a step, with the step's event, whose `field` is what the user says, a text or a
    ChatMessage. A request is taken out of the event, which keeps only what else was said; then it is
    planned and asked about by a ForgetQuestion, and the step waits for the answer, for `wait`
    seconds (None: as long as it takes). Anything but a clear answer is asked again, and so is a
    yes to what has changed meanwhile. In a workflow that a tool runs nothing is a request, nor is
    what a model has said in the same run, or a retriever found.

    `memory` is a DeLLMMemory, or a dellm.Memory with `session_id`; `classifier` gives a second
    opinion on what is a request. Raises InvalidInput, EmbedderError, StorageError.
    """
    asking = Asking(*conversation_of(memory, session_id, "confirm_forget()"))
    state = getattr(event, STATE, None)
    if state is None:
        state = await _begun(asking, event, field, classifier)
    if state is None:
        return None
    while state["said"] is None:
        question = Question.from_dict(state["questions"][-1])
        answer = await ctx.wait_for_event(
            HumanResponseEvent,
            waiter_event=ForgetQuestion(prefix=str(question), question=question.to_dict()),
            waiter_id=f"dellm-forget-{question.plan}-{len(state['questions'])}",
            timeout=wait,
        )
        _note(state, await asyncio.to_thread(asking.answer, question, _answered(answer)))
    return Settled(state["said"]["text"], state["said"]["receipt"], _text(getattr(event, field)))


async def _begun(
    asking: Asking, event: Event, field: str, classifier: Classifier | None
) -> dict[str, Any] | None:
    """Take the request out of an event, and plan it; None where there is none."""
    message = getattr(event, field, None)
    if message is None:
        raise InvalidInput("The event of confirm_forget() has no such field=.")
    if not may_act(_speaker(message)):
        return None
    request = await asyncio.to_thread(recognise, _text(message), model=classifier)
    if request.kind is not RequestKind.FORGET:
        return None
    said = await asyncio.to_thread(asking.ask, request)
    state: dict[str, Any] = {"questions": [], "said": None}
    _note(state, said)
    setattr(event, field, _with(message, request.rest.strip()))
    setattr(event, STATE, state)
    return state


def _speaker(message: Any) -> str:
    """Return who says a message; what has another role than the user's is no wish of theirs."""
    if isinstance(message, ChatMessage) and message.role is not MessageRole.USER:
        return "tool" if message.role in {MessageRole.TOOL, MessageRole.FUNCTION} else "model"
    return speaker(_text(message))


def _note(state: dict[str, Any], said: Said) -> None:
    """Note on an event what comes next: a question, or the end."""
    if said.question is not None:
        state["questions"].append(said.question.to_dict())
    else:
        receipt = None if said.receipt is None else said.receipt.number
        state["said"] = {"text": said.text, "receipt": receipt}


def _answered(event: HumanResponseEvent) -> Any:
    answer, plan = getattr(event, "response", None), getattr(event, "plan", None)
    if plan is None or isinstance(answer, dict):
        return answer
    return {"answer": answer, "plan": plan}


def _text(message: Any) -> str:
    if isinstance(message, ChatMessage):
        return message.content or ""
    if isinstance(message, str):
        return message
    raise InvalidInput("What the user says is a text or a ChatMessage.")


def _with(message: Any, text: str) -> Any:
    """Return a message that says something else, with what is attached to it."""
    if isinstance(message, str):
        return text
    others = [one for one in message.blocks if not isinstance(one, TextBlock)]
    return ChatMessage(
        role=message.role,
        blocks=[TextBlock(text=text), *others],
        additional_kwargs=message.additional_kwargs,
    )
