"""What messages were made from is found out by where code runs and what models were shown."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.chat_engine import (
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode
from llama_index.core.workflow import (
    Context,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from llama_models import (
    RepeatingCaller,
    RepeatingChat,
    RepeatingCompletion,
    SilentChat,
    WordEmbedding,
    repeated,
)
from llama_sessions import Opened, both, core, memory, session

from dellm import Memory
from dellm_llamaindex import DeLLMMemory
from dellm_llamaindex.scopes import Scope, Scopes, scopes

__all__ = ["both", "core", "memory"]


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def assistant(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


def made_of(core: Memory, thread: str = "main") -> dict[int, set[int]]:
    """Return the records of a thread in order, with what each was made from."""
    return {one.id: set(core.context_of(one.id)) for one in core.history(thread)}


def last_of(core: Memory, thread: str = "main") -> Any:
    return core.history(thread)[-1]


# outside of any engine


def test_a_reply_to_messages_of_the_memory_depends_on_just_these(
    core: Memory, memory: DeLLMMemory
) -> None:
    model = RepeatingChat()
    for text in ("one", "two", "three"):
        memory.put(user(text))
    first, _, third = memory.get_all()
    memory.put(model.chat([first, third]).message)
    assert list(made_of(core).values()) == [set(), set(), set(), {1, 3}]
    assert not last_of(core).metadata.get("inexact")


def test_a_reply_to_a_prompt_that_nobody_knows_depends_on_its_whole_session(
    core: Memory, memory: DeLLMMemory
) -> None:
    memory.put(user("one"))
    memory.put(user("two"))
    memory.put(RepeatingChat().chat([user("one and two, in other words")]).message)
    assert made_of(core)[3] == {1, 2}
    assert last_of(core).metadata["inexact"]


def test_a_reply_that_no_model_was_seen_to_make_depends_on_its_session_and_what_was_read(
    core: Memory, memory: DeLLMMemory
) -> None:
    other = session(core, "other")
    other.put(user("elsewhere"))
    memory.put(user("here"))
    other.get_all()
    memory.put(assistant("by a client of its own"))
    assert made_of(core)[3] == {1, 2}


def test_what_was_read_before_the_question_before_is_not_what_a_reply_was_made_from(
    core: Memory, memory: DeLLMMemory
) -> None:
    other = session(core, "other")
    other.put(user("elsewhere"))
    other.get_all()
    memory.put(user("one"))
    memory.put(user("two"))
    memory.put(assistant("by a client of its own"))
    assert made_of(core)[4] == {2, 3}


def test_a_reply_is_known_again_by_its_object_though_its_text_was_set_anew(
    core: Memory, memory: DeLLMMemory
) -> None:
    memory.put(user("one"))
    memory.put(user("two"))
    reply = RepeatingChat().chat(memory.get_all()[:1]).message
    reply.content = "shorter"
    memory.put(reply)
    assert made_of(core)[3] == {1}


def test_a_part_of_a_reply_that_was_given_up_in_the_middle_is_made_from_the_prompt(
    core: Memory, memory: DeLLMMemory
) -> None:
    memory.put(user("one"))
    memory.put(user("two"))
    part = next(RepeatingChat().stream_chat(memory.get_all()[:1]))
    memory.put(part.message)
    assert made_of(core)[3] == {1}


def test_a_stored_message_put_again_is_made_from_the_one_it_was(
    core: Memory, memory: DeLLMMemory
) -> None:
    memory.put(user("one"))
    session(core, "copy").put(memory.get_all()[0])
    assert made_of(core, "copy") == {2: {1}}


def test_a_reply_in_one_opening_of_a_database_depends_on_what_was_read_in_another(
    core: Memory, memory: DeLLMMemory, sqlite_url: str, opened: Opened
) -> None:
    memory.put(user("one"))
    reply = RepeatingChat().chat(memory.get_all()).message
    session(opened(sqlite_url).workspace("alex"), "main").put(reply)
    assert made_of(core) == {1: set(), 2: {1}}


# engines


def test_a_system_prompt_taints_nothing_and_is_not_taken_for_unknown(
    core: Memory, memory: DeLLMMemory
) -> None:
    memory.put(user("not read by anyone"))
    fresh = session(core, "fresh")
    engine = SimpleChatEngine.from_defaults(
        llm=RepeatingChat(), memory=fresh, system_prompt="Be kind."
    )
    engine.chat("hello")
    assert made_of(core, "fresh") == {2: set(), 3: {2}}


def test_two_messages_that_say_the_same_are_both_in_a_prompt_that_was_made_anew(
    core: Memory, memory: DeLLMMemory
) -> None:
    engine = context_engine(memory, [])
    memory.put(user("again"))
    memory.put(user("again"))
    engine.chat("what?")
    assert made_of(core)[4] == {1, 2, 3}


def test_a_question_stored_after_the_answer_was_made_is_what_it_was_made_from(
    core: Memory, memory: DeLLMMemory
) -> None:
    engine = context_engine(memory, ["a document"])
    engine.chat("what?")
    document = next(one for one in core.export() if one.kind == "document")
    [question, answer] = core.history("main")
    assert set(core.context_of(answer.id)) == {question.id, document.id}
    assert not core.context_of(question.id)
    assert not answer.metadata.get("inexact")


def test_a_list_that_an_engine_was_given_and_never_stores_makes_its_reply_depend_on_all(
    core: Memory, memory: DeLLMMemory
) -> None:
    model = RepeatingChat()
    memory.put(user("said before"))
    engine = CondenseQuestionChatEngine.from_defaults(
        query_engine=RetrieverQueryEngine.from_args(index([]).as_retriever(), llm=model),
        llm=model,
        memory=memory,
    )
    engine.chat("and now?", chat_history=[user("said before")])
    assert 1 in made_of(core)[last_of(core).id]


def test_a_stream_that_is_only_begun_to_be_read_is_stored_with_its_prompt(
    core: Memory, memory: DeLLMMemory
) -> None:
    engine = SimpleChatEngine.from_defaults(llm=RepeatingChat(), memory=memory)
    engine.chat("one")
    response = engine.stream_chat("two")
    next(iter(response.response_gen))
    assert made_of(core)[4] == {1, 2, 3}


class Forwarding(RepeatingChat):
    """A model that asks another one, as routers and proxies do."""

    other: Any = None

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return self.other.chat([ChatMessage(role="system", content="Answer."), *messages])


def test_a_model_that_asks_another_one_is_one_call(core: Memory, memory: DeLLMMemory) -> None:
    memory.put(user("not in the prompt"))
    memory.put(user("one"))
    model = Forwarding(other=RepeatingChat())
    memory.put(model.chat(memory.get_all()[1:]).message)
    assert 2 in made_of(core)[3]


def test_a_silent_model_in_an_engine_depends_on_what_the_turn_has_read(
    core: Memory, memory: DeLLMMemory
) -> None:
    session(core, "other").put(user("elsewhere"))
    engine = SimpleChatEngine.from_defaults(llm=SilentChat(), memory=memory)
    engine.chat("one")
    engine.chat("two")
    assert made_of(core) == {2: set(), 3: {2}, 4: set(), 5: {2, 3, 4}}


# forgetting while a turn runs


class Meanwhile(RepeatingChat):
    """A model during whose answer something else happens."""

    happens: Any = None

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        self.happens()
        return ChatResponse(message=self.say(messages))


def test_a_reply_to_what_is_forgotten_while_the_model_answers_is_not_stored(
    core: Memory, memory: DeLLMMemory
) -> None:
    model = Meanwhile(happens=lambda: core.forget(ids=[1]))
    engine = SimpleChatEngine.from_defaults(llm=model, memory=memory)
    engine.chat("a secret")
    assert not core.history("main")


def test_a_reply_to_a_document_that_is_forgotten_while_the_model_answers_is_not_stored(
    both: Memory,
) -> None:
    core, memory = both, session(both, "main")
    context_engine(memory, ["a document"]).chat("what?")
    document = next(one for one in core.export() if one.kind == "document")
    model = Meanwhile(happens=lambda: core.forget(ids=[document.id]))
    context_engine(memory, ["a document"], model).chat("and?")
    assert [one.text for one in core.history("main")] == ["what?", "and?"]


def test_no_text_of_a_node_is_held_after_a_forget(core: Memory, memory: DeLLMMemory) -> None:
    context_engine(memory, ["an unmistakable document"]).chat("what?")
    document = next(one for one in core.export() if one.kind == "document")
    core.forget(ids=[document.id])
    gc.collect()
    flows = [flow for one in scopes.all() for flow in (one.reads, one.begun)]
    flows += [reply.made for one in scopes.all() for reply in one.replies]
    held = [node for flow in flows for node in flow.nodes.values()]
    assert not [one for one in held if "unmistakable" in one.get_content()]


# tools


async def test_what_a_tool_says_to_another_engine_depends_on_the_call(both: Memory) -> None:
    core, memory, inner = both, session(both, "main"), session(both, "inner")
    engine = SimpleChatEngine.from_defaults(llm=RepeatingChat(), memory=inner)

    def consult(text: str) -> str:
        """Ask somebody."""
        return str(engine.chat(f"about {repeated(text)}"))

    await agent([consult], ["consult"]).run(user_msg="one", memory=memory)
    call = next(one for one in core.history("main") if one.role == "assistant")
    asked, answered = core.history("inner")
    assert {asked.id, answered.id} <= set(core.dependents([call.id]))
    core.forget(ids=[call.id])
    assert not core.history("inner")


async def test_what_a_tool_puts_into_a_memory_depends_on_the_call(
    core: Memory, memory: DeLLMMemory
) -> None:
    notes = session(core, "notes")

    def jot(text: str) -> str:
        """Write down."""
        notes.put(user(f"noted {repeated(text)}"))
        return "done"

    await agent([jot], ["jot"]).run(user_msg="one", memory=memory)
    question = core.history("main")[0]
    call = core.history("main")[1]
    for one in (question, call):
        assert core.history("notes")[0].id in core.dependents([one.id])


async def test_a_tool_that_reads_the_memory_itself_depends_on_what_it_was_given(
    core: Memory, memory: DeLLMMemory
) -> None:
    session(core, "other").put(user("a treasure lies here"))
    session(core, "other").put(user("nothing at all"))

    def find(text: str) -> str:
        """Search all sessions."""
        return f"{core.search('treasure', by='keyword')[0].record.text} for {text}"

    await agent([find], ["find"]).run(user_msg="one", memory=memory)
    result = next(one for one in core.history("main") if one.role == "tool")
    assert set(core.context_of(result.id)) & {1, 2} == {1}


async def test_results_of_calls_that_share_an_id_are_told_apart(
    core: Memory, memory: DeLLMMemory
) -> None:
    other = session(core, "other")
    other.put(user("read by the second tool only"))

    def first(text: str) -> str:
        """Read nothing."""
        return f"first of {text}"

    def second(text: str) -> str:
        """Read the other session."""
        return f"second with {other.get_all()[0].content} for {text}"

    model = SameIds()
    model.then(["first"], ["second"])
    made = FunctionAgent(tools=[first, second], llm=model)
    await made.run(user_msg="one", memory=memory)
    results = [one for one in core.history("main") if one.role == "tool"]
    assert [1 in core.context_of(one.id) for one in results] == [False, True]


class SameIds(RepeatingCaller):
    """A model all of whose calls have one id, as those of some local servers."""

    def say(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        made = super().say(messages)
        for one in made.blocks:
            if one.block_type == "tool_call":
                one.tool_call_id = "call_0"
        return made


# workflows of one's own


class Summing(Workflow):
    """Asks twice, and puts the second answer only."""

    memory: DeLLMMemory
    model: Any

    @step
    async def ask(self, ev: StartEvent) -> StopEvent:
        self.memory.put(user(ev.text))
        draft = await self.model.achat(self.memory.get_all())
        final = await self.model.achat([draft.message, user("Shorter!")])
        self.memory.put(final.message)
        return StopEvent(result=None)


async def test_a_workflow_of_ones_own_is_a_turn(core: Memory, memory: DeLLMMemory) -> None:
    flow = Summing()
    flow.memory, flow.model = memory, RepeatingChat()
    await flow.run(text="one")
    await flow.run(text="two")
    assert made_of(core) == {1: set(), 2: {1}, 3: set(), 4: {1, 2, 3}}


class Asking(InputRequiredEvent):
    """A question to a person."""


class Answering(HumanResponseEvent):
    """A person's answer."""


class Guessing(Summing):
    """Asks with a prompt of its own making."""

    @step
    async def ask(self, ev: StartEvent) -> StopEvent:
        self.memory.put(user(ev.text))
        said = " and ".join(one.content or "" for one in self.memory.get_all())
        reply = await self.model.achat([user(f"In short: {said}")])
        self.memory.put(reply.message)
        return StopEvent(result=None)


async def test_a_prompt_of_ones_own_making_is_made_from_what_was_read_and_that_is_a_guess(
    core: Memory, memory: DeLLMMemory
) -> None:
    session(core, "other").put(user("elsewhere"))
    flow = Guessing()
    flow.memory, flow.model = memory, RepeatingChat()
    await flow.run(text="one")
    assert made_of(core) == {2: set(), 3: {2}}
    assert last_of(core).metadata["inexact"]


def test_the_scope_of_a_run_that_has_not_ended_is_known_however_many_others_there_were() -> None:
    held, waiting = Scopes(most=2), Scope("waiting")
    held.enter("waiting", None, waiting)
    for at in range(5):
        held.enter(f"other {at}", None, Scope(f"other {at}"))
    assert held.at("waiting") is waiting
    held.leave("waiting")
    assert held.at("waiting") is None


class Waiting(Workflow):
    """Waits for a person, and puts a reply that no model was seen to make."""

    memory: DeLLMMemory

    @step
    async def ask(self, ctx: Context, ev: StartEvent) -> StopEvent:
        if await ctx.store.get("begun", default=None) is None:
            await ctx.store.set("begun", True)
            self.memory.get_all()
        await ctx.wait_for_event(Answering, waiter_event=Asking())
        self.memory.put(assistant("made of what was there before the break"))
        return StopEvent(result=None)


@pytest.mark.parametrize("known", [True, False])
async def test_a_run_that_goes_on_where_another_stopped_depends_on_what_that_had_read(
    core: Memory, memory: DeLLMMemory, known: bool
) -> None:
    memory.put(user("said before"))
    flow = Waiting()
    flow.memory = memory
    handler = flow.run()
    async for event in handler.stream_events():
        if isinstance(event, Asking):
            break
    held = handler.ctx.to_dict()
    if not known:
        del held["state"]["dellm"]
    await handler.cancel_run()
    memory.put(user("said while it waited"))
    again = Waiting()
    again.memory = memory
    resumed = again.run(ctx=Context.from_dict(again, held))
    resumed.ctx.send_event(Answering(response="go on"))
    await resumed
    assert made_of(core)[3] == ({1} if known else {1, 2})


# the parts


def index(texts: Sequence[str]) -> VectorStoreIndex:
    nodes = [TextNode(text=one, id_=f"node-{at}") for at, one in enumerate(texts)]
    return VectorStoreIndex(nodes, embed_model=WordEmbedding())


def context_engine(
    memory: DeLLMMemory, texts: Sequence[str], model: RepeatingCompletion | None = None
) -> ContextChatEngine:
    return ContextChatEngine.from_defaults(
        retriever=index(texts).as_retriever(similarity_top_k=2),
        llm=model or RepeatingChat(),
        memory=memory,
    )


def agent(tools: Sequence[Any], *steps: Sequence[str]) -> FunctionAgent:
    model = RepeatingCaller()
    model.then(*steps)
    return FunctionAgent(tools=list(tools), llm=model)
