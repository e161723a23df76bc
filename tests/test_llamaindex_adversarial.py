"""Ways in which content gets past a memory into a prompt, or from a reply into the memory.

Each was found by trying to make something that is said depend on something without the memory being
told. Nothing may be missed, whatever way it went; some of it cannot be told exactly.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index.core.workflow import Context, StartEvent, StopEvent, Workflow, step
from llama_models import (
    Refused,
    RepeatingCaller,
    RepeatingChat,
    RepeatingCompletion,
    WordEmbedding,
    fresh,
    own_tokens,
    repeated,
    tokens_in,
)
from llama_talks import (
    ENGINES,
    WAYS,
    Kit,
    caller,
    engine_turn,
    given_context,
    look,
    restored,
    run,
    talk,
)
from taint import Found, measured, told

import dellm
from dellm_llamaindex import DeLLMMemory

Opened = Callable[..., dellm.Memory]


class Place:
    """A workspace, memories of it by session, and what the oracle says of it."""

    def __init__(self, core: dellm.Memory) -> None:
        self.core = core
        self.kit = Kit(self.session)

    def session(self, name: str = "main", top_k: int | None = None) -> DeLLMMemory:
        return DeLLMMemory.from_defaults(
            memory=self.core, session_id=name, top_k=top_k, token_limit=1_000_000
        )

    def found(self) -> Found:
        return measured(self.core)

    def missed(self) -> list[str]:
        found = self.found()
        assert found.true
        return told(self.core, found.missed)

    def wrong(self) -> list[str]:
        return [*self.missed(), *told(self.core, self.found().extra)]

    def begun(self, turns: int = 2) -> DeLLMMemory:
        """Return a memory in which something was said already."""
        talk(self.kit, engine_turn(self.kit, self.session(), "simple", "chat"), turns)
        return self.session()


@pytest.fixture
def place(sqlite_url: str, opened: Opened) -> Place:
    return Place(opened(sqlite_url).workspace("alex"))


def user(text: str = "") -> ChatMessage:
    return ChatMessage(role="user", content=f"{fresh('U')} {text or 'tell me of the cat'}")


async def _run(agent: Any, **given: Any) -> Any:
    return await agent.run(**given)


# what a model is shown that no memory gave


@pytest.mark.parametrize("way", WAYS)
def test_a_list_that_an_engine_only_looks_at_is_what_its_question_is_made_from(
    place: Place, way: str
) -> None:
    memory = place.begun()
    engine_turn(place.kit, memory, "condense_question", way)
    run(WAYS[way](place.kit.engines[-1], place.kit.question(), chat_history=memory.get_all()))
    assert not place.missed()


def test_a_list_written_down_and_read_again_is_what_its_question_is_made_from(
    place: Place,
) -> None:
    memory = place.begun()
    texts = json.dumps([one.model_dump(mode="json") for one in memory.get_all()])
    again = [ChatMessage.model_validate(one) for one in json.loads(texts)]
    engine_turn(place.kit, memory, "condense_question", "chat")
    place.kit.engines[-1].chat(place.kit.question(), chat_history=again)
    assert not place.missed()


def test_a_retold_history_is_not_taken_for_nothing(place: Place) -> None:
    memory = place.begun()
    retold = ChatMessage(
        role="user", content=" | ".join(one.content or "" for one in memory.get_all())
    )
    engine_turn(place.kit, memory, "condense_question", "chat")
    place.kit.engines[-1].chat(place.kit.question(), chat_history=[retold])
    assert not place.missed()


@pytest.mark.parametrize("engine", ["context", "condense_plus_context"])
@pytest.mark.parametrize("way", WAYS)
def test_a_stored_message_that_a_template_fills_in_again_is_seen_with_what_it_is_filled_with(
    place: Place, engine: str, way: str
) -> None:
    memory = place.session()
    memory.put(ChatMessage(role="user", content=f"{fresh('U')} what of {{query_str}}"))
    memory.put(ChatMessage(role="assistant", content="that is {context_str}"))
    talk(place.kit, engine_turn(place.kit, memory, engine, way), 2)
    assert not place.missed()


def test_text_in_front_of_all_prompts_depends_on_nothing(place: Place) -> None:
    model = place.kit.model(RepeatingChat)
    engine = SimpleChatEngine.from_defaults(
        llm=model,
        memory=place.session(),
        prefix_messages=[ChatMessage(role="system", content="be kind"), ChatMessage(content="hm")],
    )
    engine.chat(user().content)
    engine.chat(user().content)
    assert not place.wrong()


def test_the_metadata_of_a_node_belongs_to_its_document(place: Place) -> None:
    node = TextNode(text="nothing to see", metadata={"author": fresh("D")})
    assert own_tokens(node.get_content(MetadataMode.LLM))
    place.kit._index = VectorStoreIndex([node], embed_model=WordEmbedding())
    talk(place.kit, engine_turn(place.kit, place.session(), "context", "chat"), 2)
    found = place.found()
    assert not place.missed()
    assert any(of.role for of in place.core.export() if of.kind == "document")
    assert not {one for one in found.homeless if one[1] == "D"}


# a loop of a user's own


def test_a_model_called_by_hand_with_what_a_memory_gave_is_recorded_exactly(place: Place) -> None:
    memory, model = place.begun(), RepeatingChat()
    memory.put(user())
    memory.put(model.chat(memory.get()).message)
    assert not place.wrong()


def test_an_answer_made_by_hand_from_some_of_the_messages_has_only_those_as_sources(
    place: Place,
) -> None:
    memory, model = place.begun(3), RepeatingChat()
    memory.put(model.chat(memory.get()[-2:]).message)
    assert not place.missed()
    assert len(place.core.context_of(place.core.history("main")[-1].id)) == 2


def test_a_stream_read_by_hand_is_recorded(place: Place) -> None:
    memory, model = place.begun(), RepeatingChat()
    memory.put(user())
    for part in model.stream_chat(memory.get()):
        last = part.message
    memory.put(last)
    assert not place.missed()


def test_a_stream_broken_off_by_hand_is_recorded(place: Place) -> None:
    memory, model = place.begun(), RepeatingChat()
    memory.put(user())
    for part in model.stream_chat(memory.get()):
        half = part.message
        break
    memory.put(half)
    assert not place.missed()


def test_an_answer_rebuilt_from_its_text_is_recorded(place: Place) -> None:
    memory, model = place.begun(), RepeatingChat()
    memory.put(user())
    text = model.chat(memory.get()).message.content
    memory.put(ChatMessage(role="assistant", content=text))
    memory.put(ChatMessage(role="assistant", content=f"in short: {text}"))
    assert not place.missed()


def test_a_flat_prompt_made_by_hand_is_recorded(place: Place) -> None:
    memory, model = place.begun(), RepeatingCompletion()
    prompt = "\n".join(str(one) for one in memory.get())
    memory.put(ChatMessage(role="assistant", content=str(model.complete(prompt))))
    assert not place.missed()


def test_a_prediction_by_a_template_is_recorded(place: Place) -> None:
    memory, model = place.begun(), RepeatingChat()
    asked = PromptTemplate("Sum up: {text}")
    said = model.predict(asked, text="\n".join(str(one) for one in memory.get()))
    memory.put(ChatMessage(role="assistant", content=said))
    assert not place.missed()


def test_a_reply_put_as_if_a_user_had_said_it_keeps_its_sources(place: Place) -> None:
    memory, model = place.begun(), RepeatingChat()
    answer = model.chat(memory.get()).message
    memory.put(ChatMessage(role="user", content=answer.content))
    assert not place.missed()


def test_a_reply_put_into_another_session_keeps_its_sources(place: Place) -> None:
    memory = place.begun()
    place.session("other").put(memory.get_all()[-1])
    assert not place.missed()


def test_a_list_of_one_session_set_in_another_keeps_its_sources(place: Place) -> None:
    memory = place.begun()
    place.session("other").set(memory.get_all())
    talk(place.kit, engine_turn(place.kit, place.session("other"), "simple", "chat"), 1)
    assert not place.missed()


@pytest.mark.parametrize("how", ["changed", "copied", "pickled"])
def test_a_message_changed_after_it_was_read_and_put_again_keeps_its_sources(
    place: Place, how: str
) -> None:
    memory = place.begun()
    one = memory.get_all()[-1]
    one = {
        "changed": one,
        "copied": copy.deepcopy(one),
        "pickled": pickle.loads(pickle.dumps(one)),
    }[how]
    one.blocks = [TextBlock(text=f"he said: {one.content}")]
    memory.put(one)
    assert not place.missed()


def test_what_a_caller_does_to_a_message_later_does_not_change_what_was_kept(place: Place) -> None:
    memory = place.session()
    mine = user("hello")
    memory.put(mine)
    memory.get()[0].blocks = []
    memory.get_all()[0].additional_kwargs["x"] = 1
    mine.blocks[0].text = "changed"  # type: ignore[union-attr]
    assert "hello" in (memory.get_all()[0].content or "")
    assert memory.get_all()[0].additional_kwargs == {}


def test_a_memory_that_is_open_twice_is_one_memory(
    place: Place, sqlite_url: str, opened: Opened
) -> None:
    memory, model = place.begun(), RepeatingChat()
    twin = Place(opened(sqlite_url).workspace("alex")).session()
    twin.put(model.chat(memory.get()).message)
    memory.put(model.chat(twin.get()).message)
    twin.put(memory.get_all()[-1])
    assert not place.missed()


@pytest.mark.parametrize("plan", [(["look"], "raise"), (["look"], ["look"], "raise")])
def test_a_run_that_failed_goes_on_where_the_memory_was_opened_anew(
    sqlite_url: str, opened: Opened, plan: Any
) -> None:
    first = opened(sqlite_url)
    place = Place(first.workspace("alex"))
    memory = place.begun()
    agent = _agent(place, look)
    context = Context(agent)
    agent.llm.then(*plan)  # type: ignore[attr-defined]
    with pytest.raises(Refused):
        run(_run(agent, user_msg=place.kit.question(), memory=memory, ctx=context))
    written = json.dumps(context.to_dict())
    first.close()
    again = Place(opened(sqlite_url).workspace("alex"))
    context = Context.from_dict(agent, json.loads(written))
    run(_run(agent, user_msg=place.kit.question(), memory=again.session(), ctx=context))
    run(_run(agent, user_msg=place.kit.question(), memory=again.session(), ctx=context))
    assert not again.missed()


class Steps(Workflow):
    """A workflow of a user's own, which reads, asks and writes in a step each."""

    memory: Any
    model: Any

    @step
    async def only(self, ev: StartEvent) -> StopEvent:
        await self.memory.aput(ChatMessage(role="user", content=ev.asked))
        given = await self.memory.aget()
        answer = await self.model.achat(given)
        await self.memory.aput(answer.message)
        return StopEvent(result=str(answer.message.content))


def test_a_workflow_of_a_users_own_is_recorded_exactly(place: Place) -> None:
    flow = Steps()
    flow.memory, flow.model = place.begun(), RepeatingChat()

    async def work() -> None:
        for _ in range(2):
            await flow.run(asked=user().content)

    run(work())
    assert not place.wrong()


def test_workflows_of_a_users_own_at_once_are_told_apart(place: Place) -> None:
    memory = place.session(top_k=1)

    async def work() -> None:
        flows = []
        for _ in range(4):
            flow = Steps()
            flow.memory, flow.model = memory, RepeatingChat()
            flows.append(flow.run(asked=place.kit.question()))
        await asyncio.gather(*flows)

    run(work())
    run(work())
    assert not place.wrong()


# tools


def _agent(place: Place, *tools: Any, **options: Any) -> FunctionAgent:
    return caller(place.kit, tools, **options)


def _twice(place: Place, agent: FunctionAgent, tool: str, memory: DeLLMMemory) -> None:
    for steps in ((["look"], [tool]), ([tool],)):
        agent.llm.then(*steps)  # type: ignore[attr-defined]
        run(_run(agent, user_msg=place.kit.question(), memory=memory))


def test_a_query_engine_as_a_tool_passes_its_documents_on(place: Place) -> None:
    model = place.kit.model(RepeatingChat)
    asked = RetrieverQueryEngine.from_args(place.kit.index.as_retriever(), llm=model)

    def consult(text: str) -> str:
        """Ask the documents."""
        return str(asked.query(f"the cat and {text}"))

    _twice(place, _agent(place, look, consult), "consult", place.session())
    assert not place.missed()
    assert [one for one in place.core.export() if one.kind == "document"]


def test_the_frameworks_own_tools_for_engines_and_retrievers_pass_their_documents_on(
    place: Place,
) -> None:
    model = place.kit.model(RepeatingChat)
    retriever = place.kit.index.as_retriever()
    asked = RetrieverQueryEngine.from_args(retriever, llm=model)
    tools = {
        "query": QueryEngineTool.from_defaults(asked, name="query", description="ask"),
        "fetch": RetrieverTool.from_defaults(retriever, name="fetch", description="find"),
    }
    agent = _agent(place, look, *tools.values())
    for name in tools:
        agent.llm._plan = []  # type: ignore[attr-defined]
        agent.llm.then([name])  # type: ignore[attr-defined]
        given = _renamed(agent.llm, "input")
        run(_run(agent, user_msg=place.kit.question(), memory=place.session()))
        given()
    assert not place.missed()


def _renamed(model: Any, name: str) -> Callable[[], None]:
    """Let a model call its argument something else until told otherwise."""
    chosen = type(model).get_tool_calls_from_response

    def calls(self: Any, response: Any, **more: Any) -> Any:
        found = chosen(self, response, **more)
        for one in found:
            one.tool_kwargs = {name: one.tool_kwargs.get("text", "")}
        return found

    type(model).get_tool_calls_from_response = calls

    def back() -> None:
        type(model).get_tool_calls_from_response = chosen

    return back


def test_a_tool_that_talks_with_an_agent_of_its_own_passes_on_what_that_one_was_told(
    place: Place,
) -> None:
    inner = _agent(place, look, name="inner")

    async def consult(text: str) -> str:
        """Ask somebody who has tools."""
        inner.llm.then(["look"])  # type: ignore[attr-defined]
        asked = f"{fresh('U')} for {repeated(text)}"
        return str(await inner.run(user_msg=asked, memory=place.session("inner")))

    _twice(place, _agent(place, look, consult, name="outer"), "consult", place.session())
    assert not place.missed()


def test_a_tool_that_writes_into_the_agents_own_memory_does_not_hide_what_it_wrote(
    place: Place,
) -> None:
    memory = place.session()

    def jot(text: str) -> str:
        """Write something down."""
        memory.put(ChatMessage(role="user", content=f"{fresh('U')} to keep: {repeated(text)}"))
        return f"{fresh('T')} kept {repeated(text)}"

    _twice(place, _agent(place, look, jot), "jot", memory)
    assert not place.missed()


def test_a_tool_that_calls_a_model_with_what_a_memory_gave_is_recorded(place: Place) -> None:
    other, model = place.session("other"), place.kit.model(RepeatingChat)
    other.put(user())

    def think(text: str) -> str:
        """Think about what was said elsewhere."""
        return str(model.chat([*other.get(), ChatMessage(content=repeated(text))]).message.content)

    _twice(place, _agent(place, look, think), "think", place.session())
    assert not place.missed()


@pytest.mark.parametrize("how", ["thread", "pool"])
def test_a_tool_that_reads_a_memory_in_a_thread_of_its_own_is_recorded(
    place: Place, how: str
) -> None:
    other = place.session("other")
    other.put(user())

    def recall(text: str) -> str:
        """Read what was said elsewhere."""
        read: list[ChatMessage] = []
        if how == "thread":
            thread = threading.Thread(target=lambda: read.extend(other.get_all()))
            thread.start()
            thread.join()
        else:
            with ThreadPoolExecutor(1) as pool:
                read = pool.submit(other.get_all).result()
        return f"{fresh('T')} recalls {repeated(read)} {repeated(text)}"

    _twice(place, _agent(place, look, recall), "recall", place.session())
    assert not place.missed()


def test_a_tool_that_searches_the_core_memory_itself_is_recorded(place: Place) -> None:
    core = place.core
    place.session("other").put(user("the treasure lies here"))

    def search(text: str) -> str:
        """Search all that was said."""
        found = [one.record.text for one in core.search("where does the treasure lie", limit=3)]
        return f"{fresh('T')} finds {repeated(found)} {repeated(text)}"

    _twice(place, _agent(place, look, search), "search", place.session())
    assert not place.missed()


def test_results_of_tools_called_at_once_are_not_made_from_each_other(place: Place) -> None:
    agent = _agent(place, look)
    memory = place.session()
    agent.llm.then(["look", "look", "look"])  # type: ignore[attr-defined]
    run(_run(agent, user_msg=place.kit.question(), memory=memory))
    assert not place.wrong()


def test_a_model_that_gives_every_call_the_same_name_is_recorded(place: Place) -> None:
    agent = _agent(place, look)
    memory = place.session()
    for steps in ((["look"],), (["look"], ["look"])):
        import llama_models

        llama_models.CALLS = itertools.repeat(1)  # type: ignore[assignment]
        try:
            agent.llm.then(*steps)  # type: ignore[attr-defined]
            run(_run(agent, user_msg=place.kit.question(), memory=memory))
        finally:
            llama_models.CALLS = itertools.count(10_000)
    assert not place.missed()


# what a context carries from one run to the next


@given_context
async def keep(ctx: Context, text: str) -> str:
    """Write into a value of the context that is not the state."""
    said = f"{fresh('T')} is kept with {repeated(text)}"
    await ctx.store.set("mine", said)
    return said


@given_context
async def keep_silently(ctx: Context, text: str) -> str:
    """Write into the context, and tell the model nothing of it."""
    await ctx.store.set("mine", repeated(text))
    return "done"


@given_context
async def fetch(ctx: Context, text: str) -> str:
    """Read what a tool wrote there earlier."""
    said = await ctx.store.get("mine", default="")
    return f"{fresh('T')} is what was fetched: {repeated(said)} for {repeated(text)}"


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("tool", [keep, keep_silently], ids=["told", "silent"])
def test_what_a_tool_left_in_the_context_is_known_to_the_tool_that_takes_it(
    place: Place, tool: Any, written: bool
) -> None:
    agent = _agent(place, tool, fetch)
    context = Context(agent)
    first, second = place.session("first"), place.session("second")
    agent.llm.then([tool.__name__])  # type: ignore[attr-defined]
    run(_run(agent, user_msg=place.kit.question(), memory=first, ctx=context))
    if written:
        context = restored(agent, context)

    async def move() -> None:
        await context.store.set("memory", second)

    run(move())
    agent.llm.then(["fetch"])  # type: ignore[attr-defined]
    run(_run(agent, user_msg=place.kit.question(), ctx=context))
    assert place.core.history("second")
    assert not place.missed()


@given_context
async def mark(ctx: Context, text: str) -> str:
    """Change the state, and tell the model nothing of it."""
    state = await ctx.store.get("state")
    await ctx.store.set("state", {**state, "marked": repeated(text)})
    return "done"


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("top_k", [None, 1])
def test_a_state_that_a_tool_changed_silently_is_known_in_every_later_prompt(
    place: Place, top_k: int | None, written: bool
) -> None:
    agent = _agent(place, mark, initial_state={"mood": "calm"})
    context = Context(agent)
    memory = place.session(top_k=top_k)
    for steps in ((["mark"],), (), (["mark"],), ()):
        agent.llm.then(*steps)  # type: ignore[attr-defined]
        run(_run(agent, user_msg=place.kit.question(), memory=memory, ctx=context))
        context = restored(agent, context) if written else context
    assert not place.missed()


def test_a_state_that_nobody_wrote_to_makes_no_reply_depend_on_the_whole_session(
    place: Place,
) -> None:
    agent = _agent(place, look, initial_state={"mood": "calm"})
    context = Context(agent)
    memory = place.session(top_k=1)
    for _ in range(5):
        agent.llm.then(["look"])  # type: ignore[attr-defined]
        run(_run(agent, user_msg=place.kit.question(), memory=memory, ctx=context))
    assert not place.wrong()


def test_a_state_that_the_program_fills_from_the_memory_is_known(place: Place) -> None:
    agent = _agent(place, look, initial_state={"mood": "calm"})
    context = Context(agent)
    memory = place.begun()

    async def work() -> None:
        told_ = repeated(await memory.aget_all())
        await context.store.set("state", {"known": told_})
        await agent.run(user_msg=place.kit.question(), memory=place.session("new"), ctx=context)

    run(work())
    assert place.core.history("new")
    assert not place.missed()


# retrieval


@pytest.mark.parametrize("named", ["anew", "alike"])
def test_nodes_that_a_postprocessor_rewrote_still_stand_for_their_documents(
    place: Place, named: str
) -> None:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    class Rewrites(BaseNodePostprocessor):
        """Makes a new node of each node, as a compressor does."""

        def _postprocess_nodes(
            self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
        ) -> list[NodeWithScore]:
            names = [{"id_": one.node_id} if named == "alike" else {} for one in nodes]
            return [
                NodeWithScore(node=TextNode(text=f"short: {one.text}", **name), score=1.0)
                for one, name in zip(nodes, names, strict=True)
            ]

    from llama_index.core.chat_engine import ContextChatEngine

    engine = ContextChatEngine.from_defaults(
        retriever=place.kit.index.as_retriever(),
        llm=place.kit.model(RepeatingChat),
        memory=place.session(),
        node_postprocessors=[Rewrites()],
    )
    for _ in range(2):
        engine.chat(place.kit.question())
    assert not place.missed()
    assert not {one for one in place.found().homeless if one[1] == "D"}


def test_documents_of_earlier_turns_do_not_taint_a_reply_that_was_not_shown_them(
    place: Place,
) -> None:
    memory = place.session(top_k=1)
    talk(place.kit, engine_turn(place.kit, memory, "context", "chat"), 6)
    assert not place.wrong()


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_that_share_a_model_at_once_are_told_apart(place: Place, engine: str) -> None:
    model = RepeatingCaller()
    memory = place.session(top_k=2)

    async def work() -> None:
        turns = []
        for _ in range(3):
            engine_turn(place.kit, memory, engine, "achat")
            mine = place.kit.engines[-1]
            mine._llm = model
            turns.append(mine.achat(place.kit.question()))
        await asyncio.gather(*turns)

    run(work())
    run(work())
    assert not place.missed()
    assert tokens_in([one.text for one in place.core.export()])


# what is forgotten while it is still about


def _gone(place: Place, ids: list[int]) -> set[str]:
    """Return the tokens said first by records that are to be forgotten, and by what they made."""
    made = place.core.dependents(ids)
    return {token for id_ in made for token in own_tokens(place.core.get(id_).text)}


def _there(place: Place, gone: set[str]) -> set[str]:
    read = [*place.core.export(), *[one for n in place.core.threads() for one in _all(place, n)]]
    return {token for one in read for token in gone & _carried(one)}


def _all(place: Place, name: str) -> list[ChatMessage]:
    return place.session(name).get_all()


def _carried(one: Any) -> set[str]:
    return set(tokens_in(one if isinstance(one, ChatMessage) else f"{one.text} {one.payload!r}"))


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_forgotten_while_a_stream_is_read_does_not_come_back_with_its_end(
    place: Place, engine: str
) -> None:
    memory = place.begun()
    first = place.core.history("main")[0].id
    gone = _gone(place, [first])
    engine_turn(place.kit, memory, engine, "astream_chat")

    async def work() -> None:
        response = await place.kit.engines[-1].astream_chat(place.kit.question())
        memory.forget(ids=[first])
        async for _ in response.async_response_gen():
            continue

    run(work())
    assert gone
    assert not _there(place, gone)
    marks = place.kit.heard()
    talk(place.kit, engine_turn(place.kit, memory, engine, "chat"), 1)
    assert not gone & place.kit.heard_since(marks)


@pytest.mark.parametrize("written", [False, True])
def test_what_a_tool_lets_be_forgotten_does_not_come_back_with_the_end_of_its_run(
    place: Place, written: bool
) -> None:
    memory = place.begun()
    first = place.core.history("main")[0].id
    gone = _gone(place, [first])

    def drop(text: str) -> str:
        """Forget what was said first."""
        memory.forget(ids=[first])
        return f"{fresh('T')} is done, of {repeated(text)}"

    agent = _agent(place, look, drop)
    context = Context(agent)
    agent.llm.then(["look"], ["drop"], ["look"])  # type: ignore[attr-defined]
    run(_run(agent, user_msg=place.kit.question(), memory=memory, ctx=context))
    assert gone
    assert not _there(place, gone)
    context = restored(agent, context) if written else context
    marks = place.kit.heard()
    run(_run(agent, user_msg=place.kit.question(), ctx=context))
    assert not gone & place.kit.heard_since(marks)
    assert not _there(place, gone)


@pytest.mark.parametrize("how", ["set", "put", "chat_history"])
def test_a_list_read_before_a_forget_does_not_bring_back_what_was_forgotten(
    place: Place, how: str
) -> None:
    memory = place.begun(3)
    old = memory.get_all()
    first = place.core.history("main")[2].id
    gone = _gone(place, [first])
    memory.forget(ids=[first])
    if how == "set":
        memory.set(old)
    elif how == "put":
        memory.put_messages(old)
    else:
        place.kit.engines[0].chat(place.kit.question(), chat_history=old)
    assert gone & set(tokens_in(old))
    assert not _there(place, gone)


@pytest.mark.parametrize("ends", ["early", "failed"])
def test_a_context_written_before_a_forget_does_not_show_it_to_a_model_later(
    place: Place, ends: str
) -> None:
    memory = place.begun()
    agent = _agent(place, look, early_stopping_method="generate")
    context = Context(agent)
    agent.llm.then(["look"], "raise" if ends == "failed" else ["look"])  # type: ignore[attr-defined]
    given = {"memory": memory, "ctx": context, "max_iterations": 2 if ends == "early" else 9}
    try:
        run(_run(agent, user_msg=place.kit.question(), **given))
    except Refused:
        assert ends == "failed"
    written = json.dumps(context.to_dict())
    first = place.core.history("main")[0].id
    gone = _gone(place, [first])
    assert gone & set(tokens_in(written))
    memory.forget(ids=[first])
    context = Context.from_dict(agent, json.loads(written))
    marks = place.kit.heard()
    agent.llm.then()  # type: ignore[attr-defined]
    run(_run(agent, user_msg=place.kit.question(), ctx=context))
    assert not gone & place.kit.heard_since(marks)
    assert not _there(place, gone)
    assert not gone & set(tokens_in(json.dumps(context.to_dict())))


def test_a_state_written_before_a_forget_does_not_show_it_to_a_model_later(place: Place) -> None:
    agent = _agent(place, mark, initial_state={"mood": "calm"})
    context = Context(agent)
    memory = place.session()
    agent.llm.then(["mark"])  # type: ignore[attr-defined]
    run(_run(agent, user_msg=place.kit.question(), memory=memory, ctx=context))
    written = json.dumps(context.to_dict())
    first = place.core.history("main")[0].id
    gone = _gone(place, [first])
    memory.forget(ids=[first])
    for held in (context, Context.from_dict(agent, json.loads(written))):
        marks = place.kit.heard()
        agent.llm.then()  # type: ignore[attr-defined]
        run(_run(agent, user_msg=place.kit.question(), ctx=held))
        assert not gone & place.kit.heard_since(marks)
        assert not _there(place, gone)
        assert not gone & set(tokens_in(json.dumps(held.to_dict())))


def test_a_run_that_was_stopped_in_a_tool_is_recorded_when_its_context_is_used_again(
    place: Place,
) -> None:
    begun = asyncio.Event()

    async def wait(text: str) -> str:
        """Take long."""
        begun.set()
        await asyncio.sleep(60)
        return text

    memory = place.begun()
    agent = _agent(place, look, wait)
    context = Context(agent)
    agent.llm.then(["look"], ["wait"])  # type: ignore[attr-defined]

    async def work() -> None:
        handler = agent.run(user_msg=place.kit.question(), memory=memory, ctx=context)
        await begun.wait()
        await handler.cancel_run()

    run(work())
    again = Context.from_dict(agent, _without_events(context.to_dict()))
    agent.llm.then()  # type: ignore[attr-defined]
    run(_run(agent, user_msg=place.kit.question(), ctx=again))
    assert not place.missed()


def _without_events(written: dict[str, Any]) -> dict[str, Any]:
    """Return a context of which only the store is taken over."""
    return {**written, "is_running": False, "workers": {}}
