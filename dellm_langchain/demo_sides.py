"""The two runs of the demo: one script, two checkpointers, and each one's way to forget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command

from dellm import Memory, Plan, Receipt

from . import demo_counting as counting
from .demo_agent import agent
from .demo_counting import Share, Word
from .saver import DeLLMSaver

SECRET = "17 Rue Lepic"  # noqa: S105 - no password; what the user asks to have forgotten
WORD = Word("Lepic")  # its one word that no other address has
HOME, OFFICE = "home", "office"
OFFICE_TURN = "My office plant is a fern."
TURNS = (
    "My favourite tea is oolong.",
    f"My home address is {SECRET}, Paris.",
    "Please send a box of that to me.",
    "What is my home address?",
    "Which metro station is near my home address?",
)
TOLD_AT = 1  # the turn that tells the secret
QUESTION, OTHER_QUESTION, OTHER_FACT = TURNS[3], "What is my favourite tea?", "oolong"


class Side(Protocol):
    """A checkpointer with its folder, and the way to forget that goes with it."""

    name: str
    how: str
    folder: Path

    def opened(self) -> AbstractContextManager[BaseCheckpointSaver[Any]]:
        """Open the saver for a `with`."""
        ...

    def forget(self, run: Run) -> None:
        """Forget the secret in the way that is documented for this saver."""
        ...

    def rows(self, run: Run) -> dict[str, int]:
        """Return how many rows of each table hold the word."""
        ...


class Heard(BaseCallbackHandler):
    """Keeps the newest prompt that the agent's model was given."""

    def __init__(self) -> None:
        self.prompt: list[BaseMessage] = []

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - the interface's form
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,  # noqa: ARG002 - the interface's form
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ARG002 - the interface's form
    ) -> None:
        """Keep the prompt; not that of the notes, which are written after the reply."""
        if (metadata or {}).get("langgraph_node") == "model":
            self.prompt = list(messages[0])


@dataclass(frozen=True, slots=True)
class Said:
    """One turn: what the user said, what the agent asked a yes for, what it replied."""

    text: str
    asked: tuple[str, ...]
    reply: str


@dataclass(slots=True)
class Run:
    """The agent on an open saver."""

    saver: BaseCheckpointSaver[Any]
    graph: Any
    heard: Heard = field(default_factory=Heard)

    def config(self, thread: str = HOME) -> dict[str, Any]:
        """Return the config of a thread."""
        return {"configurable": {"thread_id": thread}, "callbacks": [self.heard]}

    def say(self, text: str, thread: str = HOME) -> Said:
        """Say something, give the agent the yes it asks for, and return the turn."""
        config = self.config(thread)
        given: Any = {"messages": [HumanMessage(text)]}
        asked: list[str] = []
        while True:
            state = self.graph.invoke(given, config)
            requests = [
                action
                for stop in state.get("__interrupt__", ())
                for action in stop.value["action_requests"]
            ]
            if not requests:
                return Said(text, tuple(asked), state["messages"][-1].text)
            asked += [f"{one['name']}({_arguments(one['args'])})" for one in requests]
            given = Command(resume={"decisions": [{"type": "approve"}] * len(requests)})

    def state(self, thread: str = HOME) -> dict[str, Any]:
        """Return the newest state of a thread."""
        found: dict[str, Any] = self.graph.get_state(self.config(thread)).values
        return found


def _arguments(args: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in args.items())


@contextmanager
def running(side: Side, model: BaseChatModel) -> Iterator[Run]:
    """Start the agent on a side's saver, and stop it."""
    with side.opened() as saver:
        yield Run(saver, agent(model, saver))


@dataclass(slots=True)
class Stock:
    """langgraph-checkpoint-sqlite, and RemoveMessage for each message that tells the secret."""

    folder: Path
    name: str = "SqliteSaver"
    how: str = "RemoveMessage"
    removed: int = 0

    def opened(self) -> AbstractContextManager[BaseCheckpointSaver[Any]]:
        """Open the stock saver."""
        from langgraph.checkpoint.sqlite import SqliteSaver

        return SqliteSaver.from_conn_string(str(self.folder / "checkpoints.db"))

    def forget(self, run: Run) -> None:
        """Remove each message that tells the secret, as LangGraph's documentation shows it."""
        found = [one for one in run.state()["messages"] if counting.tells(one, WORD)]
        self.removed = len(found)
        gone = [RemoveMessage(id=one.id) for one in found]
        run.graph.update_state(run.config(), {"messages": gone})

    def rows(self, run: Run) -> dict[str, int]:
        """Look at every cell of every table, as it is stored."""
        connection: counting.Database = getattr(run.saver, "conn")  # noqa: B009 - only SqliteSaver has it
        return counting.rows(connection, WORD)


@dataclass(slots=True)
class Ours:
    """DeLLMSaver, and forget. `show` is given the plan before and the receipt after."""

    folder: Path
    show: Callable[[Plan | Receipt], None]
    name: str = "DeLLMSaver"
    how: str = "forget"

    def opened(self) -> AbstractContextManager[BaseCheckpointSaver[Any]]:
        """Open our saver."""
        return DeLLMSaver.from_conn_string(str(self.folder / "memory.db"), embedder=None)

    def forget(self, run: Run) -> None:
        """Plan what goes with the secret, and forget it."""
        memory = _memory(run)
        plan = memory.plan(SECRET)
        self.show(plan)
        self.show(memory.forget(plan))

    def rows(self, run: Run) -> dict[str, int]:
        """Let the memory look at every cell of every table, decoded and raw."""
        return counting.scanned_rows(_memory(run).scan(WORD.text))


def _memory(run: Run) -> Memory:
    if not isinstance(run.saver, DeLLMSaver):
        raise TypeError("This run is not on DeLLMSaver.")
    return run.saver.memory


@dataclass(frozen=True, slots=True)
class Measured:
    """What is left of the secret at one moment. `size` is in bytes, with the agent stopped."""

    rows: dict[str, int]
    running: int  # times in all files while the agent runs, write-ahead log included
    stopped: int  # times in all files once it is stopped
    size: int
    checkpoints: Share
    states: Share
    prompt: int  # times in the last prompt before this moment, or in the next after a forget


@dataclass(frozen=True, slots=True)
class Outcome:
    """A side's whole run. `prompt_after` is what the model was given when it was asked again."""

    before: Measured
    after: Measured
    prompt_after: Sequence[BaseMessage]
    replies: tuple[Said, Said]  # to the question for the secret, and to the other one
    told_now: dict[str, Any]  # the old state right after the secret was told, as it reads now
    others_untouched: bool  # the thread that has nothing to do with it is as it was


def play(side: Side, model: BaseChatModel, show: Callable[[Said], None]) -> Outcome:
    """Run the whole script on a side: converse, forget, and ask again, with restarts between."""
    with running(side, model) as run:
        run.say(OFFICE_TURN, OFFICE)
        told = _converse(run, show)
        office = run.state(OFFICE)
        seen = _seen(side, run)
        asked = run.heard.prompt
    before = Measured(**seen, **_stopped(side), prompt=counting.in_prompt(asked, WORD))
    with running(side, model) as run:
        side.forget(run)
        seen = _seen(side, run)
    stopped = _stopped(side)
    with running(side, model) as run:
        now = run.graph.get_state(told.config).values
        same = run.say(QUESTION)
        asked = run.heard.prompt
        return Outcome(
            before=before,
            after=Measured(**seen, **stopped, prompt=counting.in_prompt(asked, WORD)),
            prompt_after=asked,
            replies=(same, run.say(OTHER_QUESTION)),
            told_now=now,
            others_untouched=run.state(OFFICE) == office,
        )


def _converse(run: Run, show: Callable[[Said], None]) -> Any:
    """Say all turns; return the state's snapshot right after the secret was told."""
    told = None
    for turn, text in enumerate(TURNS):
        show(run.say(text))
        if turn == TOLD_AT:
            told = run.graph.get_state(run.config())
    return told


def _seen(side: Side, run: Run) -> dict[str, Any]:
    """Count while the agent runs."""
    return {
        "rows": side.rows(run),
        "running": sum(counting.times_in_files(side.folder, WORD).values()),
        "checkpoints": counting.checkpoints(run.saver, HOME, WORD),
        "states": counting.states(run.graph, run.config(), WORD),
    }


def _stopped(side: Side) -> dict[str, Any]:
    """Count once the agent is stopped."""
    left = counting.times_in_files(side.folder, WORD)
    return {"stopped": sum(left.values()), "size": counting.size_of_files(side.folder)}
