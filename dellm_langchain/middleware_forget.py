"""ForgetMiddleware: a deletion request is planned, confirmed and carried out, and leaves no trace.

A request is taken out of the state and out of the memory before anything else happens, so that it
does not reach the model, and is in no checkpoint while the user is asked. What waits for the answer
is a list of record ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentState, hook_config
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from dellm import (
    ContextForgotten,
    InvalidInput,
    Memory,
    NothingMatched,
    Plan,
    PlanChanged,
    Request,
    RequestKind,
    SelectorError,
    recognise,
    wishes,
)
from dellm.consent import Kind
from dellm.requests import Classifier

from .messages import draft_of, text_of
from .middleware_consent import Answer, answers, question, read, shown, token_of, visible
from .middleware_run import MemoryMiddleware, Run
from .questions import Question

PENDING = "dellm_forget"
# What the first number of PENDING says; the ids of matches follow IDS.
IDS, EVERYTHING, NOTHING, UNCLEAR, STRETCH = range(5)

SAYS = {
    NOTHING: "I remember nothing that matches, so nothing was forgotten.",
    UNCLEAR: "Tell me what to forget: quote it or name it. Nothing was forgotten.",
    STRETCH: "Tell me how many of the last messages to forget. Nothing was forgotten.",
}
NO = "Nothing was forgotten."
DONE = "Forgotten: {count} of the things I remembered (receipt {receipt})."

Update = dict[str, Any]


def newest(_: list[int], new: list[int]) -> list[int]:
    """Return the newer of two values; several tools may write in one step."""
    return new


class ForgetState(AgentState[Any]):
    """The agent's state with what waits for the user's answer: a code and ids of records."""

    dellm_forget: NotRequired[Annotated[list[int], newest, PrivateStateAttr]]


class ForgetMiddleware(MemoryMiddleware):
    """Carries out what a user asks to be forgotten, once they have confirmed it.

    The newest human messages are looked at before the agent starts. A deletion request
    (dellm.recognise; `classifier` gives a second opinion) is erased at once, from the state, the
    checkpoints and the memory, whatever the answer will be: it repeats what is to go. Then the run
    is interrupted with ids of records, counts and a token for the plan, never text:

        {"action": "forget", "plan": "...", "count": 3, "ids": [4, 5, 9], "matches": [4], ...}

    Resume with True or False, "yes" or "no", a list of ids or {"ids": [...]} to take only some, or
    {"answer": ..., "plan": token}. Anything else, and a yes to a plan that has changed meanwhile,
    is asked again. After a yes the records and all that was made of them are erased, a confirmation
    is said and the turn ends, with no call of the model. A new message instead of an answer
    cancels. What a message says besides its request is answered first, without the request.

    It needs a checkpointer, since it pauses. Where that is no DeLLMSaver, the checkpointer's own
    copies of the conversation are out of reach. `workspace` as for DeLLMSaver. List it first, so
    that no other middleware sees a request before it is gone.
    """

    state_schema = ForgetState

    def __init__(
        self,
        memory: Memory,
        *,
        workspace: str | None = None,
        classifier: Classifier | None = None,
    ) -> None:
        MemoryMiddleware.__init__(self, memory, workspace)
        self._classifier = classifier

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: Any, runtime: Runtime[Any]) -> Update | None:  # noqa: ARG002 - the interface's
        """Take a deletion request out of the conversation, and plan what it asks."""
        cleared: Update = {PENDING: []} if state.get(PENDING) else {}
        waiting = _unanswered(state["messages"])
        read_ = [(one, self._request(one)) for one in waiting]
        asked = [(one, request) for one, request in read_ if request.kind is RequestKind.FORGET]
        if not asked:
            return cleared or None
        return _planned(self.run(), asked, alone=len(asked) == len(waiting))

    @hook_config(can_jump_to=["end"])
    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> Update | None:
        """As before_agent, off the loop."""
        return await asyncio.to_thread(self.before_agent, state, runtime)

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> Update | None:  # noqa: ARG002 - the interface's
        """Ask whether what was planned is to be forgotten, and do what is answered."""
        if not state.get(PENDING):
            return None
        settling = Settling(self.run(), state)
        if not settling.begin():
            return settling.update
        said = answers(settling.question)
        if not said or not settling.decided(said[-1], settling.shown()):
            interrupt(settling.question)
        return settling.update

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> Update | None:  # noqa: ARG002 - the interface's
        """As after_agent; the memory and the checkpointer are asked off the loop."""
        if not state.get(PENDING):
            return None
        settling = Settling(self.run(), state)
        if not await asyncio.to_thread(settling.begin):
            return settling.update
        said = answers(settling.question)
        plan = await settling.ashown() if said else None
        if not said or not await asyncio.to_thread(settling.decided, said[-1], plan):
            interrupt(settling.question)
        return settling.update

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


def _planned(run: Run, asked: Sequence[tuple[HumanMessage, Request]], *, alone: bool) -> Update:
    """Return the update that takes requests out, and says what waits for an answer."""
    if run.saver is None:
        raise InvalidInput(
            "To forget, an agent must be able to ask, and this one has no checkpointer.",
            remedy="Give create_agent a checkpointer, such as DeLLMSaver(memory).",
        )
    run.settled()
    for message, _ in asked:
        erase_request(run, message)
    update: Update = {PENDING: pending(run, [request for _, request in asked])}
    rests = [HumanMessage(one.rest, id=f"{m.id}-rest") for m, one in asked if one.rest.strip()]
    run.remembered(rests)
    update["messages"] = [*(RemoveMessage(id=one.id or "") for one, _ in asked), *rests]
    if alone and not rests:
        update["jump_to"] = "end"
    return update


def erase_request(run: Run, message: HumanMessage) -> None:
    """Erase a message from the memory for good: what is still to be written of it is refused."""
    if run.kept is None or run.thread is None:
        return
    recent = run.memory.history(run.thread, last=20)
    ids = {one.id for one in recent if one.framework_id == message.id}
    try:
        ids.add(run.memory.remember_many([draft_of(message, run.thread, run.kept.serde)])[0].id)
    except ContextForgotten:
        if not ids:
            return  # it was erased when this was tried before
    with suppress(NothingMatched):  # somebody else has just erased it
        run.memory.forget(ids=sorted(ids))


def pending(run: Run, requests: Sequence[Request], apart: Sequence[int] = ()) -> list[int]:
    """Return what waits for an answer: a code and, for IDS, the records that match the requests.

    Records `apart`, which hold the requests themselves, are no reason to think that one is found.
    """
    codes: set[int] = set()
    ids: set[int] = set()
    for request in requests:
        wish = wishes.wish_of(run.memory, request, run.thread or "", apart=apart)
        plan = _guessed(run.memory, wish)
        if plan is EVERYTHING or (plan and wish.total and not wish.kept):
            return [EVERYTHING]
        if isinstance(plan, Plan):
            ids.update(one.id for one in plan.matches)
        elif wish.stretch:
            codes.add(STRETCH)
        else:
            codes.add(UNCLEAR if request.needs_question else NOTHING)
    return [IDS, *sorted(ids)] if ids else [max(codes)]


def _guessed(memory: Memory, wish: wishes.Wish) -> Plan | int | None:
    """Return the plan of a wish, EVERYTHING where a guess takes all there is."""
    try:
        return wishes.plan_of(memory, wish)
    except SelectorError:
        return EVERYTHING


class Settling:
    """What waits for an answer in one task: the question, and afterwards the update."""

    def __init__(self, run: Run, state: Any) -> None:
        self._run = run
        self._messages: Sequence[AnyMessage] = state["messages"]
        self._code, *self._ids = state[PENDING]
        self._plan: Plan | None = None
        self.question = Question()
        self.update: Update = {}

    def begin(self) -> bool:
        """Return whether there is something to ask; else the update says why not."""
        if self._code in SAYS:
            return self._says(SAYS[self._code])
        self._run.settled()
        return self._asks(None)

    def shown(self) -> str | None:
        """Return the token of the plan that the user was shown last."""
        saver = self._run.saver
        found = None if saver is None else saver.get_tuple(self._run.at)
        return None if found is None else shown(found.pending_writes, self._run.task)

    async def ashown(self) -> str | None:
        """As shown."""
        saver = self._run.saver
        found = None if saver is None else await saver.aget_tuple(self._run.at)
        return None if found is None else shown(found.pending_writes, self._run.task)

    def decided(self, value: Any, token: str | None) -> bool:
        """Do what was answered to the plan of a token; False when it must be asked again."""
        answer, plan = read(value), self._plan
        if plan is None:
            return True
        if answer.kind is Kind.NO:
            self._says(NO)
            return True
        vague = self._code == EVERYTHING and not answer.explicit
        if answer.kind is Kind.OTHER or (answer.kind is Kind.YES and vague):
            return not self._asks("unclear")
        if token != token_of(plan) or answer.plan not in {None, token}:
            return not self._asks("changed")
        return self._taken(answer, plan)

    def _taken(self, answer: Answer, plan: Plan) -> bool:
        if answer.kind is Kind.YES:
            return self._erased(plan)
        if not set(visible(plan)).issuperset(answer.ids):
            return not self._asks("not in the plan")
        if answer.kind is Kind.ALSO:
            return self._erased(plan)
        ids = set(answer.ids)
        if answer.kind is Kind.EXCEPT:
            ids = {one.id for one in plan.matches}.difference(answer.ids)
        part = self._run.memory.plan(ids=sorted(ids)) if ids else None
        if not part:
            self._says(NO)
            return True
        if answer.kind is Kind.EXCEPT and set(answer.ids).intersection(part.ids):
            return not self._asks("goes with it")
        return self._erased(part)

    def _asks(self, remark: str | None) -> bool:
        """Put the question for what the plan is now; False where nothing is left to ask about."""
        memory, everything = self._run.memory, self._code == EVERYTHING
        plan = memory.plan(everything=True) if everything else memory.plan(ids=self._ids)
        if not plan or not visible(plan):
            return self._says(SAYS[NOTHING])
        self._plan = plan
        self.question = question(plan, everything=everything, remark=remark)
        return True

    def _erased(self, plan: Plan) -> bool:
        known = self._run.records_of(self._messages)
        going = set(plan.ids)
        try:
            receipt = self._run.memory.forget(plan)
        except (PlanChanged, NothingMatched):
            return not self._asks("changed")
        gone = [
            RemoveMessage(id=one.id)
            for one, record in zip(self._messages, known, strict=True)
            if record in going and one.id is not None
        ]
        self._says(
            DONE.format(count=len(visible(plan)), receipt=receipt.number),
            gone,
            dellm_receipt=receipt.number,
        )
        return True

    def _says(self, text: str, removed: Sequence[RemoveMessage] = (), **metadata: Any) -> bool:
        said = self._run.said(text, **metadata)
        self.update = {PENDING: [], "messages": [*removed, said]}
        return False
