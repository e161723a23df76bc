"""ForgetMiddleware: a deletion request is planned, confirmed and carried out, and leaves no trace.

A request is erased from the memory before anything else happens, so that it does not reach the
model, and is in no checkpoint while the user is asked. What is then asked about stands in the
question itself, as ids of records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain.agents.middleware import hook_config
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from dellm import (
    ContextForgotten,
    InvalidInput,
    Memory,
    NotFound,
    NothingMatched,
    Request,
    RequestKind,
    may_act,
    recognise,
)
from dellm.adapting import Classifier, check_callable

from .capture import captured
from .messages import draft_of, text_of
from .middleware_consent import shown
from .middleware_run import NOTICE, MemoryMiddleware, Run, resuming
from .middleware_settling import Outcome, Settling, wished, wished_before

RECENT = 20  # newest records of a thread among which a request's own are looked for

Update = dict[str, Any]


class ForgetMiddleware(MemoryMiddleware):
    """Carries out what a user asks to be forgotten, once they have confirmed it.

    The newest human messages are looked at before the agent starts. A deletion request
    (dellm.recognise; `classifier` gives a second opinion) is erased at once, from the checkpoints
    and the memory, whatever the answer will be: it repeats what is to go. Then the run is
    interrupted with ids of records, counts and a token for the plan, never text:

        {"action": "forget", "plan": "...", "count": 3, "ids": [4, 5, 9], "matches": [4], ...}

    Resume with True or False, "yes" or "no", a list of ids or {"ids": [...]} to take only some, or
    {"answer": ..., "plan": token}. Anything else, and a yes to a plan that has changed meanwhile,
    is asked again; everything goes only after True or "yes". After a yes the records and all that
    was made of them are erased, a confirmation is said and the turn ends, with no call of the
    model. A new message instead of an answer cancels. What a message says besides its request is
    answered afterwards, without the request.

    It needs a checkpointer, since it pauses. Where that is no DeLLMSaver, the checkpointer's own
    copies of the conversation are out of reach: the request is then taken out of the state when the
    next turn begins. Where the agent is a node of a graph, the messages of that graph lose the
    request and what was erased when the agent's turn ends with it, so that the next nodes do not see
    them; not with durability "exit", not in graphs further out, and not where what a message says
    besides its request is answered: there they are gone from the next turn on. Another agent with
    this middleware that comes later in the turn makes no call of its model. In an agent that runs inside a tool nothing is a request, since what it is told
    comes from a model. `workspace` as for DeLLMSaver. List it first, so that no other middleware sees
    a request before it is gone.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        workspace: str | None = None,
        classifier: Classifier | None = None,
    ) -> None:
        MemoryMiddleware.__init__(self, memory, workspace)
        self._classifier = checked(classifier)

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: Any, runtime: Runtime[Any]) -> Update | None:  # noqa: ARG002 - the interface's
        """Carry out a deletion request, or the answer to what was asked about one.

        Raises InvalidInput without a checkpointer, EmbedderError, StorageError.
        """
        # In a tool, the human messages are a model's.
        if not may_act("human" if captured.around().call is None else "tool"):
            return None
        messages: Sequence[AnyMessage] = state["messages"]
        # The request is gone by then: what stands last may be the end of the turn before.
        question = asked_before(self.run()) if resuming() else None
        if question is None and messages and (messages[-1].id or "").startswith(NOTICE):
            return {"jump_to": "end"}  # another agent of the graph has ended the turn
        waiting = _unanswered(messages)
        read = [(one, self._request(one)) for one in waiting]
        asked = [one for one in read if one[1].kind is RequestKind.FORGET]
        if not asked and not resuming():
            return None
        run = self.run()
        turn = _Turn(run, messages, asked)
        if question is not None:
            return turn.settled(question)
        old = run.ids_before()
        fresh = [one for one in asked if one[0].id not in old]
        others = {one.id for one in waiting}.difference(old, (one.id for one, _ in asked))
        return turn.planned(fresh, others=bool(others)) if fresh else turn.dropped()

    @hook_config(can_jump_to=["end"])
    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> Update | None:
        """As before_agent, off the loop."""
        return await asyncio.to_thread(self.before_agent, state, runtime)

    def _request(self, message: HumanMessage) -> Request:
        return recognise(text_of(message.content), model=self._classifier)


def _unanswered(messages: Sequence[AnyMessage]) -> list[HumanMessage]:
    """Return the human messages at the end of a conversation."""
    found: list[HumanMessage] = []
    for one in reversed(messages):
        if isinstance(one, AIMessage):
            break
        if isinstance(one, HumanMessage):
            found.append(one)
    return found[::-1]


def checked(classifier: Classifier | None) -> Classifier | None:
    """Return what gives second opinions; InvalidInput where it is nothing that could."""
    if classifier is not None:
        check_callable(getattr(classifier, "complete", None), "The method complete of classifier=")
    return classifier


def beside(message: HumanMessage, request: Request) -> HumanMessage | None:
    """Return what a message says besides its request, with what is attached to it; None if nothing."""
    if not request.rest.strip():
        return None
    content: Any = request.rest
    if isinstance(message.content, list):
        others = [one for one in message.content if not text_of([one])]
        content = [{"type": "text", "text": request.rest}, *others]
    return HumanMessage(content, id=f"{message.id}-rest", name=message.name)


class _Turn:
    """One turn that begins with requests."""

    def __init__(
        self,
        run: Run,
        messages: Sequence[AnyMessage],
        asked: Sequence[tuple[HumanMessage, Request]],
    ) -> None:
        self._run = run
        self._messages = messages
        self._asked = asked
        run.settled()
        self._above = run.ids_above()  # before anything of it is erased

    def dropped(self) -> Update | None:
        """Take out requests that were never answered, of a state that still holds them."""
        return {"messages": self._removed()} if self._asked else None

    def planned(self, fresh: Sequence[tuple[HumanMessage, Request]], *, others: bool) -> Update:
        """Erase the requests, plan what they ask, and ask about that.

        `others` says that the run was given other messages, too, which are answered next.
        """
        run = self._run
        if run.saver is None:
            raise InvalidInput(
                "To forget, an agent must be able to ask, and this one has no checkpointer.",
                remedy="Give create_agent a checkpointer, such as DeLLMSaver(memory).",
            )
        for message, _ in fresh:
            erase_request(run, message)
        wish = wished(run, [request for _, request in fresh])
        rests = [one for one in (beside(*both) for both in fresh) if one is not None]
        known = run.remembered(rests)
        settling = Settling(run, self._messages, *wish, rest=known, others=others)
        return self._update(settling.settled(None), rests, others=others)

    def settled(self, question: Mapping[str, Any]) -> Update:
        """Do what was answered to a question that was asked before."""
        run = self._run
        rest, others = question["rest"], question["others"]
        wish = wished_before(question)
        settling = Settling(run, self._messages, *wish, rest=rest, others=others)
        outcome = settling.settled(question["plan"])
        return self._update(outcome, self._rests(rest), others=others)

    def _rests(self, ids: Sequence[int]) -> Sequence[BaseMessage]:
        """Return what else was said, from its records or, if there are none, from the requests."""
        run = self._run
        if run.kept is None:
            return [one for one in (beside(*both) for both in self._asked) if one is not None]
        generation, found = run.generation(), []
        for id_ in ids:
            with suppress(NotFound):  # it was forgotten meanwhile
                record = run.memory.get(id_)
                found.append((run.message_of(record, record.framework_id), id_))
        run.know(found, generation)
        return [one for one, _ in found]

    def _update(self, outcome: Outcome, rests: Sequence[BaseMessage], *, others: bool) -> Update:
        changed = {one.id: one for one in (*self._removed(), *outcome.changed)}
        update: Update = {**outcome.channels, "messages": [*changed.values(), *rests]}
        if others:  # they are answered next, so that nothing may stand after them
            return update
        said = self._run.said(outcome.text, **outcome.metadata)
        update["messages"] = [*changed.values(), said, *rests]
        return update if rests else {**update, "messages": self._ended(update), "jump_to": "end"}

    def _ended(self, update: Update) -> Any:
        """Return the messages of a turn that ends: for a graph around it, too, which adds them to its own."""
        said: list[Any] = update["messages"]
        gone = [one for one in said if isinstance(one, RemoveMessage) and one.id in self._above]
        if not gone:
            return said
        state: list[Any] = [*self._messages]
        left: list[Any] = list(add_messages(state, said))
        return Overwrite([*left[:-1], *gone, left[-1]])

    def _removed(self) -> list[RemoveMessage]:
        return [RemoveMessage(id=one.id or "") for one, _ in self._asked]


def asked_before(run: Run) -> Mapping[str, Any] | None:
    """Return the question that the running task has asked, None if it has not asked any."""
    found = None if run.saver is None else run.saver.get_tuple(run.at)
    return None if found is None else shown(found.pending_writes, run.task)


def erase_request(run: Run, message: HumanMessage) -> None:
    """Erase a message from the memory for good: what is still to be written of it is refused."""
    if run.kept is None or run.thread is None:
        return
    recent = run.memory.history(run.thread, last=RECENT)
    ids = {one.id for one in recent if one.framework_id == message.id}
    with suppress(ContextForgotten):  # it was erased when this was tried before
        ids.add(run.memory.remember_many([draft_of(message, run.thread, run.kept.serde)])[0].id)
    if ids:
        with suppress(NothingMatched):  # somebody else has just erased it
            run.memory.forget(ids=sorted(ids), by="human")
