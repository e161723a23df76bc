"""What answers a user: the protocol of every chat system here, and the paper's two baselines.

Both baselines (section VI-A) hand a deletion request to the model like anything else: one has no
memory to delete from, the other can only ask the model to pretend.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from .context import prompt
from .disclosures import provider_of
from .errors import InvalidInput
from .models import Model
from .plan import Plan
from .receipts import Receipt
from .records import HIDDEN, Record
from .regenerating import Ask, question_of

# The paper's instruction prompt (section VI-A); the baselines get the last sentence too.
INSTRUCTIONS = (
    "Use the following information from the user, to answer their questions later. "
    "Keep your answers very short."
)
BASELINE_INSTRUCTIONS = (
    f"{INSTRUCTIONS} If the user asks to remove something remove it from the conversation."
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a system says to one message.

    `text` is for the user. `question` and `answer` are the ids of the records of this turn, and
    `context` the ids of what was in the prompt of the answer, the question included; None and ()
    where nothing is recorded. `plan` is what a forget would take; while `pending` it waits for the
    user's yes. `receipt` says what a forget did.
    """

    text: str = field(repr=False)
    question: int | None = None
    answer: int | None = None
    context: tuple[int, ...] = ()
    plan: Plan | None = None
    receipt: Receipt | None = None
    pending: bool = False


@runtime_checkable
class System(Protocol):
    """Anything that a user can chat with."""

    def send(self, text: str, /) -> Reply:
        """Answer one message of the user."""
        ...


class NoMemory:
    """The paper's "LLM w/o memory": each message is answered from a clean state."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def send(self, text: str, /) -> Reply:
        """Answer from the message alone. Raises ModelError, InvalidInput for a blank message."""
        return Reply(self.model.complete([_system(), _said("user", checked(text))]))


class FullHistory:
    """The paper's "LLM w/ memory": the model is sent the whole conversation each time."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._messages: list[Mapping[str, str]] = [_system()]

    @property
    def messages(self) -> Sequence[Mapping[str, str]]:
        """What the model is sent before the next message."""
        return tuple(self._messages)

    def send(self, text: str, /) -> Reply:
        """Answer from all that was said. Raises ModelError, InvalidInput for a blank message.

        A message that the model failed to answer is kept, like one it answered.
        """
        self._messages.append(_said("user", checked(text)))
        answer = self.model.complete(self.messages)
        self._messages.append(_said("assistant", answer))
        return Reply(answer)


def asked(text: str, records: Iterable[Record]) -> list[dict[str, str]]:
    """Return what the assistant's model is sent for a message and the records chosen for it."""
    return [
        {"role": "system", "content": INSTRUCTIONS},
        {"role": "user", "content": prompt(text, records)},
    ]


def reply_with(model: Model) -> Ask:
    """Return what asks a model for a reply again as the assistant does; see Memory.regenerator.

    What is not for people to read, an agent's state, is left out of the prompt.
    """
    return _Replying(model)


@dataclass(frozen=True, slots=True)
class _Replying:
    """Asks a model again; a new reply is recorded as one of it."""

    of: Model

    @property
    def model(self) -> str:
        return seen_by(self.of)

    def __call__(self, reply: Record, context: Sequence[Record]) -> str | None:
        question = question_of(reply, context)
        if question is None:
            return None
        others = [one for one in context if one.id != question.id and one.kind not in HIDDEN]
        return self.of.complete(asked(question.text, others))


def checked(text: object) -> str:
    """Return the message; InvalidInput where it is no text or a blank one."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("The message is blank, or is not a string.")
    return text


def seen_by(model: Model) -> str:
    """Return "provider/model" for the record of exposures, such as "api.openai.com/gpt-4.1-nano"."""
    name = model.name
    for scheme in ("openai:", "local:"):
        name = name.removeprefix(scheme)
    return f"{provider_of(model)}/{name}"


def _said(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def _system() -> dict[str, str]:
    return _said("system", BASELINE_INSTRUCTIONS)
