"""What replies were made from, found out by an oracle that knows nothing of how it is recorded.

Every model and tool repeats each token that it saw. So what is recorded can be compared with what
is true: nothing may be missed, and where all calls of models are seen nothing may be too much.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from llama_models import RepeatingCompletion, SilentChat, fresh, own_tokens, tokens_in
from llama_pausing import go_on, pause, resume, stop
from llama_talks import (
    AGENTS,
    ENGINES,
    SHARED,
    WAYS,
    Kit,
    Turn,
    engine_turn,
    run,
    talk,
    talk_at_once,
)
from other_process import CONTEXT
from taint import (
    Found,
    carried_by,
    closure,
    compared,
    in_files,
    in_process,
    in_tables,
    measured,
    said_first_by,
    told,
)

import dellm
from dellm_llamaindex import DeLLMChatStore, DeLLMMemory, cleaned_context, track

CLASSIC, RELEVANT = None, 5
Opened = Callable[..., dellm.Memory]


@dataclass
class Talk:
    """A conversation with a memory of ours, and the open memory under it."""

    url: str
    core: dellm.Memory
    top_k: int | None = CLASSIC
    seed: int = 1
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kit = Kit(
            self.session, random.Random(self.seed), lambda index: track(index, self.core)
        )

    def session(self, name: str) -> DeLLMMemory:
        given = {"token_limit": 1_000_000, **self.options}
        return DeLLMMemory.from_defaults(
            memory=self.core, session_id=name, top_k=self.top_k, **given
        )

    @property
    def memory(self) -> DeLLMMemory:
        return self.session("main")

    def engine(self, name: str, way: str, turns: int, **more: Any) -> Found:
        talk(self.kit, engine_turn(self.kit, self.memory, name, way, **more), turns)
        return measured(self.core)

    def agent(self, name: str, shared: str, turns: int) -> Found:
        talk(self.kit, AGENTS[name](self.kit, self.memory, shared), turns)
        return measured(self.core)

    def complaint(self, found: Found) -> list[str]:
        """Return in words what was missed and what was too much; nothing when all is exact."""
        missed = [f"MISSED {one}" for one in told(self.core, found.missed)]
        extra = [f"EXTRA {one}" for one in told(self.core, found.extra)]
        return missed + extra


@pytest.fixture
def talking(sqlite_url: str, opened: Opened) -> Callable[..., Talk]:
    return lambda **more: Talk(sqlite_url, opened(sqlite_url).workspace("alex"), **more)


@pytest.fixture
def talking_on_both(url: str, opened: Opened) -> Callable[..., Talk]:
    return lambda **more: Talk(url, opened(url).workspace("alex"), **more)


# the oracle itself


def _three_of_a_chain() -> tuple[dict[int, set[str]], dict[str, int]]:
    said = {1: "=TU00001= hello", 2: "=TR00002= heard TU00001", 3: "=TR00003= TU00001 TR00002"}
    owners = {token: id_ for id_, text in said.items() for token in own_tokens(text)}
    return {id_: set(tokens_in(text)) for id_, text in said.items()}, owners


def test_the_oracle_finds_all_that_a_memory_without_edges_misses() -> None:
    carried, owners = _three_of_a_chain()
    found = compared(carried, owners, lambda _: [])
    assert found.missed == found.true == {(1, 2), (1, 3), (2, 3)}
    assert not found.extra


def test_the_oracle_finds_the_one_edge_that_was_not_recorded() -> None:
    carried, owners = _three_of_a_chain()
    found = compared(carried, owners, {1: [2, 3], 2: [], 3: []}.__getitem__)
    assert found.missed == {(2, 3)}


def test_the_oracle_finds_the_one_edge_that_is_not_true() -> None:
    carried, owners = _three_of_a_chain()
    found = compared(carried, owners, {1: [2, 3], 2: [3], 3: [1]}.__getitem__)
    assert (found.missed, found.extra) == (set(), {(3, 1)})


def test_the_oracle_finds_a_planted_token_in_tables_files_and_the_process(
    talking: Callable[..., Talk],
) -> None:
    talked = talking()
    token = own_tokens(fresh("U"))[0]
    talked.core.remember(f"={token}= is said")
    assert in_tables(talked.url, [token])
    assert in_files(talked.url, [token])
    import dellm_llamaindex

    assert not in_process("dellm_llamaindex", [token])
    dellm_llamaindex.planted = [{"deep": (b"", [token])}]  # type: ignore[attr-defined]
    try:
        assert in_process("dellm_llamaindex", [token])
    finally:
        del dellm_llamaindex.planted  # type: ignore[attr-defined]


# exact contexts


@pytest.mark.parametrize("top_k", [CLASSIC, RELEVANT])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_records_what_each_reply_was_made_from(
    talking: Callable[..., Talk], engine: str, way: str, top_k: int | None
) -> None:
    talked = talking(top_k=top_k)
    found = talked.engine(engine, way, 4)
    assert not talked.complaint(found)
    assert len(found.true) >= 8
    assert not {one for one in found.homeless if one[1] in "UDT"}


@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_records_what_each_message_was_made_from(
    talking: Callable[..., Talk], agent: str, shared: str
) -> None:
    talked = talking()
    found = talked.agent(agent, shared, 5)
    assert not talked.complaint(found)
    assert len(found.true) >= 8


@pytest.mark.long
@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_that_is_given_only_what_matters_is_recorded_as_exactly(
    talking: Callable[..., Talk], agent: str
) -> None:
    talked = talking(top_k=RELEVANT)
    assert not talked.complaint(talked.agent(agent, "context", 6))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_model_that_only_completes_text_is_recorded_too(
    talking: Callable[..., Talk], engine: str, way: str
) -> None:
    talked = talking()
    assert not talked.complaint(talked.engine(engine, way, 3, kind=RepeatingCompletion))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_missed_of_a_model_that_tells_nobody_what_it_is_asked(
    talking: Callable[..., Talk], engine: str, way: str
) -> None:
    talked = talking()
    found = talked.engine(engine, way, 3, kind=SilentChat)
    assert not told(talked.core, found.missed)
    assert found.true


def test_the_dependents_of_a_record_are_all_that_can_be_reached_by_contexts(
    talking: Callable[..., Talk],
) -> None:
    talked = talking()
    talked.agent("function_agent", "memory", 4)
    for one in talked.core.export():
        assert set(talked.core.dependents([one.id])) == closure(talked.core, one.id)


@pytest.mark.parametrize(
    ("kind", "name"),
    [*(("engine", one) for one in ENGINES), ("agent", "function_agent"), ("agent", "handoff")],
)
def test_contexts_are_exact_on_both_databases(
    talking_on_both: Callable[..., Talk], kind: str, name: str
) -> None:
    talked = talking_on_both()
    ran = talked.engine(name, "achat", 3) if kind == "engine" else talked.agent(name, "json", 3)
    assert not talked.complaint(ran)


@pytest.mark.parametrize("limit", [60, 200])
def test_messages_that_no_longer_fit_are_not_taken_for_read(
    talking: Callable[..., Talk], limit: int
) -> None:
    talked = talking(options={"token_limit": limit, "tokenizer_fn": str.split})
    found = talked.engine("simple", "chat", 8)
    assert not talked.complaint(found)
    whole = sum(range(1, 16, 2))
    assert 8 <= len(found.true) <= whole


@pytest.mark.long
@pytest.mark.parametrize("top_k", [2, 6])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_another_session_said_is_recorded_where_it_was_given(
    talking: Callable[..., Talk], engine: str, top_k: int
) -> None:
    talked = talking(top_k=top_k, options={"across_sessions": True, "threshold": -1.0})
    first, second = (
        engine_turn(talked.kit, talked.session(name), engine, "achat") for name in ("one", "two")
    )
    for turn in (first, second, first, second):
        talk(talked.kit, turn, 2)
    assert not talked.complaint(found := measured(talked.core))
    threads = {one.id: one.thread for one in talked.core.export()}
    assert any({threads[of], threads[made]} == {"one", "two"} for of, made in found.true)


@pytest.mark.parametrize("options", [{"last_n": 2}, {"threshold": -1.0}, {"by": "both"}])
@pytest.mark.parametrize("name", ["simple", "condense_question", "function_agent"])
def test_contexts_are_exact_whatever_is_chosen(
    talking: Callable[..., Talk], name: str, options: dict[str, Any]
) -> None:
    talked = talking(top_k=2, options=options)
    ran = talked.engine(name, "chat", 6) if name in ENGINES else talked.agent(name, "context", 4)
    assert not talked.complaint(ran)


@dataclass
class StockTalk(Talk):
    """A conversation with the stock Memory, which keeps its messages in a chat store of ours."""

    def session(self, name: str) -> Any:
        store = DeLLMChatStore(self.core)
        return Memory.from_defaults(
            session_id=name, chat_store=store, token_limit=1_000_000, tokenizer_fn=str.split
        )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_stock_memory_on_our_chat_store_misses_nothing_of_an_engine(
    sqlite_url: str, opened: Opened, engine: str, way: str
) -> None:
    talked = StockTalk(sqlite_url, opened(sqlite_url).workspace("alex"))
    found = talked.engine(engine, way, 3)
    assert not told(talked.core, found.missed)
    assert len(found.true) >= 8


@pytest.mark.long
@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_a_stock_memory_on_our_chat_store_misses_nothing_of_an_agent(
    sqlite_url: str, opened: Opened, agent: str
) -> None:
    talked = StockTalk(sqlite_url, opened(sqlite_url).workspace("alex"))
    found = talked.agent(agent, "memory", 6)
    assert not told(talked.core, found.missed)
    assert len(found.true) >= 8


# several turns at once


@pytest.mark.long
@pytest.mark.parametrize("top_k", [CLASSIC, RELEVANT])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_turns_at_once_on_one_memory_are_told_apart(
    talking: Callable[..., Talk], engine: str, way: str, top_k: int | None
) -> None:
    talked = talking(top_k=top_k)
    turns = [engine_turn(talked.kit, talked.memory, engine, way) for _ in range(3)]
    talk_at_once(talked.kit, turns, 2)
    assert not talked.complaint(measured(talked.core))


@pytest.mark.long
@pytest.mark.parametrize("agent", AGENTS)
def test_agents_at_once_on_one_memory_are_told_apart(
    talking: Callable[..., Talk], agent: str
) -> None:
    talked = talking()
    turns = [AGENTS[agent](talked.kit, talked.memory, "memory") for _ in range(3)]
    talk_at_once(talked.kit, turns, 2)
    found = measured(talked.core)
    if agent == "code_act_agent":  # it stores results as a user's, so all that was read counts
        found.extra = set()
    assert not talked.complaint(found)


@pytest.mark.parametrize("agent", ["function_agent", "initial_state", "react_agent", "handoff"])
def test_agents_at_once_in_one_loop_are_told_apart(
    talking: Callable[..., Talk], agent: str
) -> None:
    talked = talking()
    turns = [AGENTS[agent](talked.kit, talked.memory, "context") for _ in range(3)]

    async def all_turns() -> None:
        for _ in range(2):
            await asyncio.gather(*(one(talked.kit.question()) for one in turns))

    run(all_turns())
    assert not talked.complaint(measured(talked.core))


def test_engines_and_agents_of_every_kind_at_once_on_one_memory_are_told_apart(
    talking: Callable[..., Talk],
) -> None:
    talked = talking()
    ways = list(WAYS)
    turns: list[Turn] = [
        engine_turn(talked.kit, talked.memory, name, ways[at]) for at, name in enumerate(ENGINES)
    ]
    turns += [
        AGENTS[name](talked.kit, talked.memory, "context") for name in ("function_agent", "handoff")
    ]
    talk_at_once(talked.kit, turns, 3)
    assert not talked.complaint(measured(talked.core))


# lists handed in


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_list_handed_in_with_some_left_out_and_some_new_is_recorded(
    talking: Callable[..., Talk], engine: str, way: str
) -> None:
    talked = talking()
    talk(talked.kit, turn := engine_turn(talked.kit, talked.memory, engine, way), 2)
    listed = talked.memory.get_all()
    new = [
        ChatMessage(role="user", content=f"{fresh('U')} is new"),
        ChatMessage(role="assistant", content=f"{fresh('R')} is an answer from elsewhere"),
    ]
    del listed[1]
    engine_of = talked.kit.engines[-1]
    run(WAYS[way](engine_of, talked.kit.question(), chat_history=[*listed, *new]))
    talk(talked.kit, turn, 1)
    assert not told(talked.core, measured(talked.core).missed)


# another process


def _in_a_process(work: Callable[..., None], *given: Any) -> Any:
    results = CONTEXT.Queue()
    child = CONTEXT.Process(target=work, args=(*given, results))
    child.start()
    try:
        return results.get(timeout=90)
    finally:
        child.join(30)


@pytest.mark.long
def test_a_run_that_waits_for_a_person_and_goes_on_in_another_process_misses_nothing(
    sqlite_url: str, opened: Opened
) -> None:
    talked = Talk(sqlite_url, opened(sqlite_url).workspace("alex"))
    talked.engine("simple", "chat", 2)
    written = _in_a_process(pause, sqlite_url, 50_000)
    _in_a_process(resume, sqlite_url, 60_000, written)
    found = measured(talked.core)
    assert not told(talked.core, found.missed)
    roles = [one.role for one in talked.core.history("main")]
    assert roles[-6:] == ["user", "assistant", "tool", "assistant", "user", "assistant"]


@pytest.mark.long
@pytest.mark.parametrize("ends", ["early", "failed"])
def test_a_run_that_stopped_and_left_things_behind_goes_on_in_another_process_exactly_enough(
    sqlite_url: str, opened: Opened, ends: str
) -> None:
    talked = Talk(sqlite_url, opened(sqlite_url).workspace("alex"))
    talked.engine("simple", "chat", 2)
    written = _in_a_process(stop, sqlite_url, 50_000, ends)
    again = _in_a_process(go_on, sqlite_url, 60_000, written)
    found = measured(talked.core)
    assert not told(talked.core, found.missed)
    assert {one.role for one in talked.core.history("main")} == {"user", "assistant", "tool"}
    first = talked.core.history("main")[0].id
    gone = _gone(talked, [first])
    talked.memory.forget(ids=[first])
    assert gone & set(tokens_in(again))
    cleaned = cleaned_context(json.loads(again), talked.memory)
    assert not gone & set(tokens_in(json.dumps(cleaned)))
    assert not in_tables(sqlite_url, gone)


# forgetting


def _gone(talked: Talk, ids: Sequence[int]) -> set[str]:
    """Return the tokens that must be nowhere once the records and what was made from them went."""
    records = list(talked.core.export())
    owners = said_first_by(records)
    erased = {token for token, id_ in owners.items() if id_ in set(ids)}
    made = {one.id for one in records if carried_by(one) & erased}
    return {token for token, id_ in owners.items() if id_ in made} | erased


def _reads(talked: Talk) -> dict[str, object]:
    kit, core = talked.kit, talked.core
    read: dict[str, object] = {}
    for name in core.threads():
        memory = talked.session(name)
        read[f"get of {name}"] = memory.get()
        read[f"get_all of {name}"] = memory.get_all()
        read[f"get by meaning of {name}"] = memory.get(input="tell me of the cat and her garden")
        read[f"async reads of {name}"] = [*run(memory.aget()), *run(memory.aget_all())]
        read[f"history of {name}"] = [carried_by(one) for one in core.history(name)]
    read["export"] = [carried_by(one) for one in core.export()]
    read["search"] = [one.record.text for one in core.search("tell heard seen", limit=100)]
    for at, engine in enumerate(kit.engines):
        read[f"chat history {at}"] = engine.chat_history
    for at, (_, context) in enumerate(kit.contexts):
        read[f"context {at}"] = json.dumps(context.to_dict())
    if kit._index is not None:
        found = kit.index.as_retriever(similarity_top_k=100)
        read["index"] = [one.node.get_content() for one in found.retrieve("what is known")]
        read["docstore"] = [one.get_content() for one in kit.index.docstore.docs.values()]
    return read


def _left(talked: Talk, gone: set[str]) -> list[str]:
    """Return every place that still holds one of the tokens."""
    found = [
        f"{where}: {sorted(gone & set(tokens_in(value)))[:3]}"
        for where, value in _reads(talked).items()
        if gone & set(tokens_in(value))
    ]
    found += in_tables(talked.url, gone)
    talked.core.scrub()
    return found + in_files(talked.url, gone) + in_process("dellm_llamaindex", gone)


def _forget_some(talked: Talk, kinds: Sequence[str] = ("message", "tool", "document")) -> set[str]:
    """Forget two random records; return the tokens that must be nowhere."""
    there = [one.id for one in talked.core.export() if one.kind in kinds]
    chosen = talked.kit.draw.sample(there, 2)
    gone = _gone(talked, chosen)
    before = {one.id: carried_by(one) for one in talked.core.export() if one.text or one.payload}
    talked.memory.forget(ids=chosen)
    after = {one.id for one in talked.core.export()}
    spared = {id_ for id_, tokens in before.items() if not tokens & gone}
    assert spared <= after
    return gone


def _nothing_comes_back(talked: Talk, turn: Turn, gone: set[str]) -> None:
    marks = talked.kit.heard()
    talk(talked.kit, turn, 2)
    assert not gone & talked.kit.heard_since(marks)
    assert not _left(talked, gone)


@pytest.mark.parametrize("top_k", [CLASSIC, RELEVANT])
@pytest.mark.parametrize(("engine", "way"), list(zip(ENGINES, WAYS, strict=True)))
def test_nothing_of_what_was_forgotten_is_left_anywhere_around_an_engine(
    talking: Callable[..., Talk], engine: str, way: str, top_k: int | None
) -> None:
    talked = talking(top_k=top_k, seed=3)
    turn = engine_turn(talked.kit, talked.memory, engine, way)
    talk(talked.kit, turn, 4)
    gone = _forget_some(talked)
    assert gone
    assert not _left(talked, gone)
    _nothing_comes_back(talked, turn, gone)


@pytest.mark.long
@pytest.mark.parametrize("shared", ["context", "json"])
@pytest.mark.parametrize("agent", AGENTS)
def test_nothing_of_what_was_forgotten_is_left_anywhere_around_an_agent(
    talking: Callable[..., Talk], agent: str, shared: str
) -> None:
    talked = talking(seed=5)
    turn = AGENTS[agent](talked.kit, talked.memory, shared)
    talk(talked.kit, turn, 4)
    gone = _forget_some(talked)
    assert gone
    assert not _left(talked, gone)
    _nothing_comes_back(talked, turn, gone)


@pytest.mark.parametrize("name", ["context", "function_agent"])
def test_nothing_of_what_was_forgotten_is_left_on_either_database(
    talking_on_both: Callable[..., Talk], name: str
) -> None:
    talked = talking_on_both(seed=4)
    if name in ENGINES:
        turn = engine_turn(talked.kit, talked.memory, name, "chat")
    else:
        turn = AGENTS[name](talked.kit, talked.memory, "json")
    talk(talked.kit, turn, 3)
    gone = _forget_some(talked)
    assert not _left(talked, gone)


# all of it, more of it


def _one(talked: Talk, kind: str, name: str, how: str) -> Found:
    turns = 6 if kind == "engine" else 5
    return talked.engine(name, how, turns) if kind == "engine" else talked.agent(name, how, turns)


ALL = [
    *(("engine", name, way) for name in ENGINES for way in WAYS),
    *(("agent", name, shared) for name in AGENTS for shared in SHARED),
]


@pytest.mark.long
def test_of_ten_thousand_true_pairs_none_is_missed_and_none_is_too_much(
    tmp_path_factory: pytest.TempPathFactory, opened: Opened
) -> None:
    pairs, wrong = 0, []
    for top_k in (CLASSIC, RELEVANT):
        url = str(tmp_path_factory.mktemp("oracle") / "memory.db")
        core = opened(url)
        for at, (kind, name, how) in enumerate(ALL):
            talked = Talk(url, core.workspace(f"w{at}"), top_k, seed=11)
            found = _one(talked, kind, name, how)
            pairs += len(found.true)
            wrong += [f"{name} {how} {top_k} {one}" for one in talked.complaint(found)]
    print(f"{pairs} true pairs")  # how much was looked at is what the test is about
    assert not wrong
    assert pairs >= 10_000
