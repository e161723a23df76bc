"""What was sent where: against a list of all calls, through every kind of forget."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_server import OpenAIServer
from raw_tables import connected, statement

import dellm
from dellm import (
    Assistant,
    Atom,
    Draft,
    EmbedderError,
    InvalidInput,
    Keep,
    Memory,
    ModelError,
    OpenAIEmbedder,
    OpenAIModel,
    Plan,
    Providers,
    depth,
)

NUMBERS = itertools.count()
START = datetime(2026, 1, 1, tzinfo=UTC)
MODELS = ("api.openai.com/gpt-x", "api.anthropic.com/claude", "local/smol", None)


def day(number: int) -> datetime:
    return START + timedelta(days=number)


class Clock:
    """A clock that goes on by a second each time it is asked."""

    def __init__(self) -> None:
        self.now = int(START.timestamp()) * 1_000_000

    def __call__(self) -> int:
        self.now += 1_000_000
        return self.now


def seen(memory: Memory, ids: Iterable[int] | None = None) -> set[tuple[int, str, datetime]]:
    return {(one.record, f"{one.host}/{one.model}", one.last) for one in memory.exposures(ids)}


# what a call leaves


def test_a_reply_says_who_was_sent_its_context_and_when(memory: Memory) -> None:
    first = memory.remember("my name is Ada")
    apart = memory.remember("never sent")
    reply = memory.record("hello Ada", context=[first.id], model=MODELS[0], created_at=day(1))
    memory.record("quietly", context=[first.id], model="local/smol", created_at=day(2))
    memory.record("by hand", context=[first.id], created_at=day(2))
    again = memory.record("again", context=[first.id], model=MODELS[0], created_at=day(3))
    later = memory.record("of it", context=[reply.id], model=MODELS[1], created_at=day(4))
    found = memory.exposures([first.id])
    assert [(one.host, one.model, one.embeds) for one in found] == [
        ("api.openai.com", "gpt-x", False)
    ]
    assert (found[0].first, found[0].last) == (day(1), day(3))
    assert seen(memory) == {
        (first.id, MODELS[0], day(3)),
        (reply.id, MODELS[0], day(1)),
        (reply.id, MODELS[1], day(4)),  # and not the record that it was made from
        (again.id, MODELS[0], day(3)),
        (later.id, MODELS[1], day(4)),
    }
    assert memory.exposures([apart.id]) == []


def test_a_model_call_writes_no_row_however_long_its_context_is(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url).workspace("alex")
    history: list[int] = []
    for turn in range(30):
        history.append(memory.remember(f"question {turn}", thread="t").id)
        reply = memory.record(
            "answer", context=history, thread="t", model=MODELS[0], created_at=day(turn)
        )
        history.append(reply.id)
    with connected(url) as raw:
        assert statement(raw, "select count(*) from exposure")[0][0] == 0
    assert seen(memory, history[:1]) == {(history[0], MODELS[0], day(29))}
    assert seen(memory, history[-1:]) == {(history[-1], MODELS[0], day(29))}
    assert len(memory.exposures()) == 60
    receipt = memory.forget(ids=history[40:41])
    with connected(url) as raw:
        # One for the newest sequence that lives on, which speaks for the 39 below; one for the
        # answer after it, and one for each of the 9 questions whose answer went.
        assert statement(raw, "select count(*) from exposure")[0][0] == 1 + 1 + 9
    assert [(one.records, one.last) for one in receipt.providers] == [(11, day(29))]
    assert seen(memory) == {(one, MODELS[0], day(29)) for one in (*history[:40], *history[42::2])}


def test_calls_whose_reply_was_not_stored_are_noted(memory: Memory) -> None:
    one, other = memory.remember("one"), memory.remember("other")
    assert memory.exposures.note([one.id, other.id, 99], model="api.groq.com/llama") == 2
    assert memory.exposures.note([one.id], model="local/smol") == 0
    assert [(found.record, found.host) for found in memory.exposures()] == [
        (one.id, "api.groq.com"),
        (other.id, "api.groq.com"),
    ]
    # What was sent on later says nothing of what it was made from.
    made = memory.record("made", context=[one.id])
    memory.exposures.note([made.id], model="api.cohere.com/command")
    assert {found.host for found in memory.exposures([one.id])} == {"api.groq.com"}
    for wrong in ("", " ", None):
        with pytest.raises(InvalidInput):
            memory.exposures.note([one.id], model=wrong)  # type: ignore[arg-type] # as users do
    assert memory.verify().ok


def test_an_assistant_notes_what_it_sent_to_a_model_that_failed(memory: Memory) -> None:
    with OpenAIServer(faults=["401"]) as server:
        model = OpenAIModel("canary", base_url=server.url, api_key="test", retries=0)
        with pytest.raises(ModelError):
            Assistant(memory, model).send("My door code is 4711.")
    (found,) = memory.exposures()
    assert (found.record, found.host, found.model) == (1, "127.0.0.1", "canary")


# forgetting


class Calls:
    """Every call there was: its reply, what it was sent, the model, the day."""

    def __init__(self) -> None:
        self.living: dict[int, list[int]] = {}
        self.calls: list[tuple[int, list[int], str, datetime]] = []

    def exposed(self) -> set[tuple[int, str, datetime]]:
        last: dict[tuple[int, str], datetime] = {}
        for reply, context, model, at in self.calls:
            for one in {reply, *context} & self.living.keys():
                last[one, model] = max(at, last.get((one, model), at))
        return {(one, model, at) for (one, model), at in last.items()}

    def dep(self, seeds: set[int]) -> set[int]:
        found, moved = set(seeds), True
        while moved:
            more = {one for one, made in self.living.items() if found & set(made)} - found
            found, moved = found | more, bool(more)
        return found


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["say", "all", "all", "some", "past", "forget"]),
        st.integers(0, 10**6),
        st.sampled_from(MODELS),
    ),
    min_size=4,
    max_size=30,
)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@settings(max_examples=25)
@given(steps=STEPS)
def test_survivors_keep_exactly_the_exposures_of_all_calls_there_ever_were(
    kind: str, steps: list[tuple[str, int, str | None]], bench: dict[str, Memory]
) -> None:
    memory, model = bench[kind].workspace(f"w{next(NUMBERS)}"), Calls()
    for number, (step, seed, name) in enumerate(steps):
        living = sorted(model.living)
        pick = random.Random(seed)
        if step == "say" or not living:
            model.living[memory.remember(f"said {number}", thread="t").id] = []
        elif step == "forget":
            going = model.dep({pick.choice(living)})
            before = {one for one in model.exposed() if one[0] in going}
            receipt = memory.forget(ids=[min(going)], scrub=False)
            assert set(receipt.ids) == going
            latest: dict[str, tuple[int, datetime]] = {}
            for _, one, at in before:
                count, last = latest.get(one, (0, at))
                latest[one] = (count + 1, max(at, last))
            assert {
                f"{one.host}/{one.model}": (one.records, one.last) for one in receipt.providers
            } == latest
            for one in going:
                del model.living[one]
        else:
            context = {
                "all": living,
                "some": pick.sample(living, pick.randint(1, len(living))),
                "past": living[: pick.randint(1, len(living))],
            }[step]
            at = day(pick.randint(0, 99))
            reply = memory.record(
                f"reply {number}", context=context, thread="t", model=name, created_at=at
            )
            model.living[reply.id] = context
            if name and not name.startswith("local/"):
                model.calls.append((reply.id, context, name, at))
        assert seen(memory) == model.exposed()
    some = sorted(model.living)[::2]
    assert seen(memory, some) == {one for one in model.exposed() if one[0] in some}
    assert memory.verify().ok


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return one open memory of each kind; every example has a workspace of its own."""
    path = str(tmp_path_factory.mktemp("exposures") / "memory.db")
    urls = {"sqlite": path, "postgres": request.getfixturevalue("one_database")[0]}
    opened = {kind: Memory.open(url, embedder=None, scrub_below=0) for kind, url in urls.items()}
    yield opened
    for memory in opened.values():
        memory.close()


def test_a_redacted_record_keeps_what_it_was_exposed_to(memory: Memory) -> None:
    said = memory.remember("my code is 4711 and my cat is Tom")
    memory.record("noted", context=[said.id], model=MODELS[0], created_at=day(1))
    receipt = memory.forget("4711", mode="redact")
    assert seen(memory) == {(receipt.redacted[said.id], MODELS[0], day(1))}
    assert memory.verify().ok


def test_what_is_made_anew_by_a_model_was_sent_once_more(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, clock=Clock()).workspace("alex")
    memory.rebuilder("sum", lambda _, sources: " ".join(one.text for one in sources))
    one, other = memory.remember("door 4711"), memory.remember("cat Tom")
    old = memory.record("door 4711 cat Tom", context=[one.id, other.id], model=MODELS[0],
                        created_at=day(-9), metadata={"rebuild": "sum"})  # fmt: skip
    receipt = memory.forget(ids=[one.id])
    new = receipt.rebuilt[old.id]
    assert seen(memory) == {(new, MODELS[0], receipt.at), (other.id, MODELS[0], receipt.at)}
    assert {found.first for found in memory.exposures([other.id])} == {day(-9)}


def test_a_reply_that_outlives_its_source_still_says_what_the_others_were_sent(
    memory: Memory,
) -> None:
    one, other = memory.remember("one"), memory.remember("other")
    reply = memory.record("r", context=[one.id, other.id], model=MODELS[0], created_at=day(1))
    memory.forget(ids=[one.id], reach=depth(0))
    assert seen(memory) == {(other.id, MODELS[0], day(1)), (reply.id, MODELS[0], day(1))}
    memory.forget(ids=[reply.id])
    assert seen(memory) == {(other.id, MODELS[0], day(1))}


# receipts, plans, providers


def test_a_receipt_says_who_may_still_have_it_and_until_when(memory: Memory) -> None:
    said = memory.remember("my code is 4711")
    memory.record("noted 4711", context=[said.id], model=MODELS[0], created_at=day(0))
    memory.record("again 4711", context=[said.id], model=MODELS[0], created_at=day(9))
    memory.record("and 4711", context=[said.id], model="nobody.example/m", created_at=day(5))
    plan = memory.plan("4711")
    receipt = memory.forget(plan)
    assert plan.providers == receipt.providers == memory.receipt(receipt.number).providers
    openai, nobody = receipt.providers
    assert (openai.provider, openai.host, openai.model) == ("openai", "api.openai.com", "gpt-x")
    assert (openai.records, openai.first, openai.last) == (3, day(0), day(9))
    entry = Providers().named("openai")
    assert entry is not None
    assert entry.retention_days is not None
    assert openai.until == day(9 + entry.retention_days)
    assert (openai.source, openai.checked) == (entry.source, entry.checked)
    assert (nobody.provider, nobody.until, nobody.deletion) == ("nobody.example", None, "unknown")
    assert f"until: {openai.until:%Y-%m-%d}" in str(receipt)
    assert "until: unknown" in str(receipt)
    assert f"[source: {openai.source}, as of {openai.checked}]" in str(receipt)
    assert "api.openai.com" in str(plan) or "openai (gpt-x)" in " ".join(str(plan).split())
    assert Plan.from_json(plan.to_json()).providers == plan.providers
    assert receipt.to_json()["providers"][0]["until"] == openai.until.isoformat()
    assert memory.scan("4711", files=False).clean
    assert memory.exposures() == []


def test_a_receipt_from_before_there_were_exposures_names_none(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url).workspace("alex")
    memory.remember("one")
    number = memory.forget(ids=[1]).number
    assert memory.receipt(number).providers == ()


def test_an_own_table_of_providers_takes_the_place_of_entries_by_name(
    sqlite_url: str, tmp_path: Path, opened: Callable[..., Memory]
) -> None:
    table = tmp_path / "mine.toml"
    table.write_text(
        '[openai]\nretention_days = 0\nsource = "our contract"\nchecked = 2026-01-02\n'
        '[house]\nhosts = ["nobody.example"]\nself_hosted = true\n'
    )
    memory = opened(sqlite_url, providers=table).workspace("alex")
    memory.remember("one")
    memory.record("r", context=[1], model=MODELS[0], created_at=day(1))
    memory.record("s", context=[1], model="NOBODY.example:8000/m", created_at=day(1))
    house, openai = memory.exposures.providers()
    assert (openai.until, openai.source, openai.checked) == (day(1), "our contract", "2026-01-02")
    assert openai.zero_retention == "unknown"  # nothing of the entry that it replaces
    assert (house.provider, house.self_hosted, house.until) == ("house", True, None)


WRONG = {
    "[openai]\nretention_days = 30\n": "source of [openai]",
    '[openai]\nretention_days = "a month"\nsource = "x"\n': "retention_days of [openai]",
    '[openai]\nretention_days = true\nsource = "x"\n': "retention_days of [openai]",
    '[openai]\nretention_days = -1\nsource = "x"\n': "retention_days of [openai]",
    "[openai]\nretention = 30\n": "retention of [openai]",
    '[openai]\nchecked = "today"\n': "checked of [openai]",
    '[openai]\nhosts = "api.openai.com"\n': "hosts of [openai]",
    "[openai]\ndeletion = 3\n": "deletion of [openai]",
    "[openai]\nself_hosted = 1\n": "self_hosted of [openai]",
    "openai = 3\n": "openai is no table",
    "[openai\n": "line 1",
    "[openai]\nhosts = = 1\n": "line 2",
}


@pytest.mark.parametrize("text", WRONG, ids=WRONG.values())
def test_a_mistake_in_a_table_of_providers_is_named(
    text: str, sqlite_url: str, tmp_path: Path
) -> None:
    table = tmp_path / "mine.toml"
    table.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        Memory.open(sqlite_url, embedder=None, providers=table)
    assert WRONG[text] in str(caught.value)
    assert not Path(sqlite_url).exists()


def test_the_table_that_ships_gives_a_source_for_every_number_and_knows_our_names() -> None:
    table = Providers()
    assert len(list(table)) >= 12
    for one in table:
        assert one.sent != "unknown"
        assert one.hosts
        assert one.retention_days is None or one.source.startswith("https://")
        assert one.checked == "unknown" or datetime.fromisoformat(one.checked)
    for host, name in {
        "api.openai.com": "openai",
        "eu.api.openai.com": "openai",
        "contoso.openai.azure.com": "azure-openai",
        "anthropic": "anthropic",
        "google_genai": "google-gemini",
        "europe-west4-aiplatform.googleapis.com": "google-vertex",
        "bedrock-runtime.eu-central-1.amazonaws.com": "bedrock",
        "localhost:11434": "ollama",
        "127.0.0.1": "ollama",
        "elsewhere.example": "elsewhere.example",
    }.items():
        assert table.of(host).name == name
    assert table.of("elsewhere.example").until(START) is None


# embeddings


class Outside:
    """An embedder that says it is someone else's."""

    provider = "embed.example"
    name = "openai:tiny"
    dimensions = 2
    threshold = 0.0

    def __init__(self) -> None:
        self.fails = False

    def embed(self, texts: list[str]) -> Any:
        if self.fails:
            raise EmbedderError("It does not answer.")
        return np.tile(np.array([[1.0, 0.0]], np.float32), (len(texts), 1))


def test_vectors_of_an_outside_embedder_are_exposures_and_go_with_their_records(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=Outside()).workspace("alex")
    assert memory.search("before anything was stored") == []
    assert memory.exposures.queries() == []
    memory.remember_many([Draft("one"), Draft("two"), Draft("state", kind="state")])
    assert memory.exposures() == []
    memory.index()
    assert [(found.record, found.host, found.model, found.embeds) for found in memory.exposures()] == [
        (1, "embed.example", "tiny", True),
        (2, "embed.example", "tiny", True),
    ]  # fmt: skip
    receipt = memory.forget(ids=[1])
    assert [(one.provider, one.embeds, one.records) for one in receipt.providers] == [
        ("embed.example", True, 1)
    ]
    assert [found.record for found in memory.exposures()] == [2]
    assert memory.verify().ok


def test_queries_that_an_outside_embedder_was_sent_are_counted_without_what_they_ask(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=Outside()).workspace("alex")
    memory.remember("one")
    for query in ("where is quokka", "and zebra"):
        memory.context(query)
    memory.search("quokka", by="keyword")  # that stays here
    (found,) = memory.exposures.queries()
    assert (found.host, found.model, found.count) == ("embed.example", "tiny", 2)
    assert found.first <= found.last
    assert memory.scan("quokka", files=False).clean
    assert [one.record for one in memory.exposures()] == [1]


def test_what_a_failing_embedder_was_sent_counts_as_sent(
    url: str, opened: Callable[..., Memory]
) -> None:
    embedder = Outside()
    memory = opened(url, embedder=embedder).workspace("alex")
    memory.remember("one")
    embedder.fails = True
    with pytest.raises(EmbedderError):
        memory.index()
    assert [found.host for found in memory.exposures()] == ["embed.example"]


def test_a_real_endpoint_is_named_by_its_host(url: str, opened: Callable[..., Memory]) -> None:
    with OpenAIServer() as server:
        embedder = OpenAIEmbedder("small", base_url=server.url, api_key="test")
        memory = opened(url, embedder=embedder).workspace("alex")
        memory.remember("one")
        memory.index()
    assert [(found.host, found.model) for found in memory.exposures()] == [("127.0.0.1", "small")]
    assert memory.exposures.providers()[0].self_hosted


def test_a_value_that_is_tied_to_more_keeps_what_it_was_exposed_to(memory: Memory) -> None:
    one = memory.remember("one")
    atom = Atom(Draft("kept", role="item", kind="state"))
    vectors = [np.ones(2, np.float32)]
    memory.items.put("store", [Keep(("a",), "k", atom, vectors=vectors, embedder="e.example/m")])
    assert atom.id is not None
    (new,) = memory.items.tie([atom.id], [one.id])
    assert [found.host for found in memory.exposures([new])] == ["e.example"]
    memory.items.search("store", ("a",), near=vectors[0], embedder="e.example/m")
    memory.items.search("store", ("a",), near=vectors[0], embedder="local/m")
    assert [found.count for found in memory.exposures.queries()] == [1]
    assert memory.verify().ok


def test_an_embedder_of_this_process_leaves_nothing(memory: Memory) -> None:
    memory.remember("one")
    memory.context("one")
    assert memory.exposures() == []
    assert memory.exposures.queries() == []


def test_exposures_are_of_one_workspace(url: str, opened: Callable[..., Memory]) -> None:
    memory = opened(url)
    for name in ("a", "b"):
        memory.workspace(name).remember("one")
        memory.workspace(name).exposures.note([1], model=f"{name}.example/m")
    for name in ("a", "b"):
        assert [one.host for one in memory.workspace(name).exposures()] == [f"{name}.example"]
    assert dellm.Exposures is type(memory.exposures)


def test_a_turn_asks_no_more_of_the_database_where_its_model_is_named(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(sqlite_url, embedder=None).workspace("alex")
    ran: list[str] = []

    def note(_: object, sql: str, __: object) -> bool:
        ran.append(sql)
        return True

    def turn(thread: str, model: str | None) -> list[str]:
        history: list[int] = []
        for number in range(12):
            ran.clear()
            history.append(memory.remember(f"question {number}", thread=thread).id)
            reply = memory.record("answer", context=history, thread=thread, model=model)
            history.append(reply.id)
        return list(ran)

    turn("before", None)
    memory._engine.database._connection.exec_trace = note  # type: ignore[attr-defined] # of SQLite
    without, named = turn("without", None), turn("with", MODELS[0])
    assert len(without) > 5
    assert named == without


@settings(max_examples=10)
@given(steps=STEPS, hops=st.integers(0, 1))
def test_under_a_relaxed_reach_no_survivor_loses_an_exposure(
    steps: list[tuple[str, int, str | None]], hops: int, bench: dict[str, Memory]
) -> None:
    memory = bench["sqlite"].workspace(f"w{next(NUMBERS)}")
    known: set[tuple[int, str, datetime]] = set()
    living: list[int] = []
    for number, (step, seed, name) in enumerate(steps):
        pick = random.Random(seed)
        if step == "say" or not living:
            living.append(memory.remember(f"said {number}", thread="t").id)
        elif step == "forget":
            receipt = memory.forget(ids=[pick.choice(living)], reach=depth(hops), scrub=False)
            living = [one for one in living if one not in receipt.ids]
        else:
            context = living if step == "all" else living[: pick.randint(1, len(living))]
            at = day(pick.randint(0, 99))
            reply = memory.record("r", context=context, thread="t", model=name, created_at=at)
            living.append(reply.id)
        now = {(one, who): last for one, who, last in seen(memory)}
        assert {one for one, _ in now} <= set(living)
        for one, who, last in known:
            assert one not in living or now[one, who] >= last
        known = {(one, who, last) for (one, who), last in now.items()}
    assert memory.verify().ok
