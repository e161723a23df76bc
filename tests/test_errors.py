"""Every failure is a clear error of ours: what happened, what is unchanged, what to do; nothing lost."""

from __future__ import annotations

import copy
import hashlib
import inspect
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from lines import nothing
from verbs import found_in, public_verbs

import dellm
from dellm import (
    Answers,
    Atom,
    Audit,
    Body,
    Checkpoint,
    Checkpoints,
    Conversations,
    Elsewhere,
    Expiry,
    Exposures,
    Facts,
    Foreign,
    Guards,
    Holds,
    Items,
    Keep,
    Literal,
    Memory,
    Place,
    Policies,
    Proposed,
    Remembered,
    Saying,
    Summaries,
    TaskWrite,
)
from dellm.details import Details
from dellm.errors import (
    ContextForgotten,
    DatabaseClosed,
    DellmError,
    EmbedderError,
    InvalidInput,
    NotFound,
    NothingMatched,
    PreviewRequired,
    SchemaError,
    SelectorError,
    StorageError,
)
from dellm.previews import Selection
from dellm.records import Draft

SECRET = "zyxcanaryword"


def assert_clear(error: BaseException) -> None:
    """A leaf that says what, what is unchanged and what to do, and quotes nothing."""
    assert isinstance(error, DellmError)
    assert type(error) is not DellmError
    said = str(error)
    assert error.what in said
    assert error.unchanged in said
    assert error.todo
    assert error.todo in said
    assert SECRET not in said
    assert said.endswith((".", ")"))


@contextmanager
def clearly(kind: type[DellmError]) -> Iterator[None]:
    with pytest.raises(kind) as caught:
        yield
    assert_clear(caught.value)


# unknown and erased ids


def test_unknown_and_erased_ids_are_told_apart_where_it_matters(memory: Memory) -> None:
    kept = memory.remember("kept")
    gone = memory.remember(SECRET)
    memory.forget(ids=[gone.id], scrub=False)
    for id_ in (999, gone.id, 0, -1):
        with clearly(NotFound):
            memory.get(id_)
        with clearly(NotFound):
            memory.explain(id_)
    for number in (0, -1, 999):
        with clearly(NotFound):
            memory.receipt(number)
        with clearly(NotFound):
            memory.proof(number)
    with clearly(NotFound):
        memory.record("reply", context=[kept.id, 999])
    with clearly(ContextForgotten):
        memory.record("reply", context=[kept.id, gone.id])
    with clearly(ContextForgotten):
        memory.remember("copy", copy_of=gone.id)
    with clearly(NothingMatched):
        memory.forget(ids=[999])
    assert memory.dependents([999, gone.id]) == []
    assert memory.context_of(999) == []
    assert [one.id for one in memory.export()] == [kept.id]
    assert memory.verify().ok


def test_a_late_write_of_an_erased_object_is_refused_and_stores_nothing(memory: Memory) -> None:
    said = memory.remember(SECRET, framework_id="msg-1", thread="t")
    memory.forget(ids=[said.id], scrub=False)
    with clearly(ContextForgotten):
        memory.remember(SECRET, framework_id="msg-1", thread="t")
    with clearly(ContextForgotten):
        memory.remember_many([Draft("new"), Draft(SECRET, framework_id="msg-1", thread="t")])
    assert list(memory.export()) == []


@pytest.mark.parametrize(
    ("selection", "kind"),
    [
        ({}, SelectorError),
        ({"what": "   "}, SelectorError),
        ({"what": "..."}, SelectorError),
        ({"keyword": "!!"}, SelectorError),
        ({"ids": []}, SelectorError),
        ({"where": {}}, SelectorError),
        ({"thread": " "}, SelectorError),
        ({"everything": True, "what": SECRET}, SelectorError),
        ({"where": lambda record: True}, SelectorError),
        ({"meaning": SECRET}, PreviewRequired),
        ({"description": SECRET}, PreviewRequired),
        ({"what": SECRET, "aliases": True}, PreviewRequired),
        ({"no_such_selector": SECRET}, InvalidInput),
        ({SECRET: 1}, InvalidInput),
        ({"what": SECRET, "mode": SECRET}, InvalidInput),
        ({"what": SECRET, "mode": "redact", "unit": SECRET}, InvalidInput),
        ({"ids": [1], "mode": "redact"}, SelectorError),
        ({"what": "never said"}, NothingMatched),
    ],
)
def test_a_selector_that_says_too_little_too_much_or_nonsense_takes_nothing(
    memory: Memory, selection: dict[str, Any], kind: type[DellmError]
) -> None:
    memory.remember(SECRET)
    memory.remember("another")
    rest = {name: value for name, value in selection.items() if name != "what"}
    with clearly(kind):
        memory.forget(selection.get("what"), **rest)
    assert len(list(memory.export())) == 2
    assert memory.ledger() == []


# every verb, with good and with bad arguments

HERE = Place("t", "", "c1")


def checkpoint() -> Checkpoint:
    """Return a checkpoint as an adapter hands it in."""
    body = Body(4, "", {"x": 1}, {}, {}, None, {})
    return Checkpoint(HERE, None, body, ["x"], frozenset(), Literal)


VERBS: dict[str, dict[str, Any]] = {
    "remember": {"text": "text"},
    "remember_many": {"drafts": [Draft("text")]},
    "remember_parts": {"text": "One. Two."},
    "record": {"text": "text", "context": []},
    "index": {},
    "derive": {"name": "digest", "sources": [1], "thread": "t", "kind": "summary"},
    "rebuild": {},
    "rederive": {"name": "digest"},
    "plan": {"what": "kept"},
    "forget": {"what": "kept"},
    "restore": {"receipt": None},
    "scrub": {},
    "correct": {"id_": 1, "to": "text"},
    "restore_check": {},
    "bind_login": {"login": "nobody"},
    "context": {"query": "text"},
    "search": {"query": "text"},
    "closeness": {"query": "text", "texts": ["text"]},
    "get": {"id_": 1},
    "history": {"thread": "t"},
    "threads": {},
    "export": {},
    "dependents": {"ids": [1]},
    "context_of": {"id_": 1},
    "used_in": {"id_": 1},
    "explain": {"id_": 1},
    "graph": {"ids": [1]},
    "receipt": {"number": 1},
    "proof": {"number": 1},
    "receipts": {},
    "ledger": {},
    "scan": {"value": "kept", "files": False},
    "verify": {},
    "waiting": {},
    "confirm": {"id_": 1},
    "reject": {"id_": 1},
    "items.put": {
        "family": "store",
        "keeps": [Keep(("a",), "k", Atom(Draft("kept", kind="state")))],
        "thread": "t",
        "trusted": 0,
    },
    "items.get": {"family": "store", "names": [(("a",), "k")], "refresh": True},
    "items.search": {
        "family": "store",
        "prefix": ("a",),
        "holding": [["kept"]],
        "limit": 1,
        "offset": 0,
    },
    "items.spaces": {"family": "store"},
    "items.tie": {"records": [1], "parents": [1]},
    "items.sweep": {"family": "store"},
    "items.clear": {"family": "store", "prefix": ("a",)},
    "items.digest": {"parts": ["a", "b"]},
    "conversations.read": {"thread": "t", "last": 1, "before": 2, "among": "kept"},
    "conversations.after": {"thread": "t", "record": 1, "most": 1},
    "conversations.some": {"thread": "t", "ids": [1]},
    "conversations.preceding": {"thread": "t", "ids": [1], "role": "user"},
    "conversations.spoken_by": {"thread": "t", "role": "user"},
    "conversations.hide": {"thread": "t", "ids": [1], "archive": True},
    "conversations.add": {
        "thread": "t",
        "said": [Saying(Draft("kept", thread="t", framework_id="f"))],
        "trusted": 0,
        "ended": 0,
        "only": [1],
    },
    "conversations.end": {"thread": "t"},
    "elsewhere.take": {
        "place": "docs",
        "documents": [Foreign("1", Atom(Draft("kept", kind="document")), "a.pdf")],
        "new": False,
        "noted": True,
        "own": False,
        "thread": "t",
        "trusted": 0,
    },
    "elsewhere.put": {"place": "docs", "records": {"1": 1}},
    "elsewhere.gone": {"place": "docs"},
    "elsewhere.same": {"place": "docs", "texts": {"1": "kept"}},
    "elsewhere.noted": {"place": "docs", "names": ["1"]},
    "elsewhere.places": {},
    "answers.keep": {"question": "text?", "reply": 1, "scope": "s", "ttl": 1.0},
    "answers.find": {"question": "text?", "context": [1], "thread": "t", "by": "exact"},
    "answers.sweep": {},
    "answers.clear": {"scope": "s"},
    "audit.prune": {"keep_days": 30},
    "audit.trace": {"minutes": 1},
    "audit.traces": {},
    "audit.end_trace": {},
    "governed": {"id_": 1},
    "policies.current": {},
    "policies.set": {"policy": None},
    "policies.require": {"action": "forget"},
    "holds.place": {"basis": "case 1", "by": "counsel", "ids": [1]},
    "holds.release": {"number": 1, "by": "counsel"},
    "holds.waiting": {},
    "expiry.due": {},
    "expiry.next": {},
    "expiry.sweep": {"most": 1, "scrub": False},
    "guards.add": {"values": ["a"]},
    "remembered.each": {"subject": "ann"},
    "remembered.export": {"path": os.devnull, "subject": "ann"},
    "remembered.bring_back": {"path": os.devnull},
    "guards.lift": {"receipt": 1},
    "guards.always": {"on": True},
    "exposures.of": {"ids": [1]},
    "exposures.providers": {"ids": [1]},
    "exposures.queries": {},
    "exposures.note": {"records": [1], "model": "host/model"},
    "elsewhere.drop": {"place": "docs", "names": ["1"], "gone": True},
    "summaries.rolling": {"thread": "t", "by": "default", "keep": True},
    "summaries.tree": {"thread": "t", "by": "default", "leaf": 2, "fan_out": 2},
    "summaries.current": {"thread": "t", "form": "tree", "by": "default"},
    "summaries.versions": {"thread": "t", "by": "default"},
    "facts.declare": {"key": "k", "many": True},
    "facts.state": {
        "key": "k",
        "value": "v",
        "valid_from": 1,
        "valid_to": 2,
        "confidence": 0.5,
        "context": [1],
        "subject": "s",
        "inferred": False,
        "sensitivity": "health",
    },
    "facts.state_many": {"facts": [Proposed("k", "v")], "context": [1]},
    "facts.close": {"key": "k", "value": "v", "at": 5, "context": [1], "subject": "s"},
    "facts.history": {"key": "k", "subject": "s"},
    "facts.previous": {"key": "k", "subject": "s"},
    "facts.supports": {"id_": 1},
    "facts.keys": {},
    "facts.waiting": {},
    "facts.confirm": {"id_": 1},
    "facts.reject": {"id_": 1},
    "facts.extract": {
        "extractor": found_in,
        "thread": "t",
        "records": None,
        "again": True,
        "roles": ["user"],
    },
    "checkpoints.put": {"new": checkpoint(), "trusted": 0},
    "checkpoints.put_writes": {
        "place": HERE,
        "task": "task",
        "path": "",
        "trusted": 0,
        "new": [TaskWrite(0, "x", Literal(1))],
    },
    "checkpoints.get": {"thread": "t", "ns": "", "cid": None, "have": nothing},
    "checkpoints.page": {"thread": "t", "ns": None, "have": nothing},
    "checkpoints.ancestors": {"thread": "t", "ns": "", "cid": "c1", "have": nothing},
    "checkpoints.exists": {"place": HERE},
    "checkpoints.generation": {},
    "checkpoints.standing": {"ids": [1]},
    "checkpoints.erased_calls": {"thread": "t", "calls": ["call"]},
    "checkpoints.threads": {},
    "checkpoints.delete_thread": {"thread": "t"},
    "checkpoints.delete_runs": {"runs": ["run"]},
    "checkpoints.keep_newest": {"threads": ["t"]},
    "checkpoints.copy_thread": {"source": "t", "target": "u"},
}


def call(memory: Memory, verb: str, arguments: dict[str, Any]) -> object:
    arguments = copy.deepcopy(arguments)  # a verb may note in an atom which record it became
    positional = {"what", "query", "text"} & set(arguments)
    first = [arguments[name] for name in positional]
    rest = {name: value for name, value in arguments.items() if name not in positional}
    answer = attrgetter(verb)(memory)(*first, **rest)
    return list(answer) if verb in {"export", "checkpoints.ancestors"} else answer


def test_every_public_verb_is_tried_here() -> None:
    assert public_verbs() == set(VERBS)


def test_every_verb_of_a_closed_memory_says_that_it_is_closed(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url).workspace("alex")
    memory.remember("kept", thread="t")
    receipt = memory.forget("kept", mode="suppress")
    memory.close()
    memory.close()
    for verb, arguments in VERBS.items():
        given = {"receipt": receipt} if verb == "restore" else arguments
        if verb == "bind_login" and not url.startswith("postgresql"):
            continue
        with clearly(DatabaseClosed):
            call(memory, verb, given)
        if verb != "restore":
            with clearly(DatabaseClosed):  # a workspace that was never looked up
                call(memory.workspace("new"), verb, given)


WRONG: tuple[Any, ...] = (
    object(),
    None,
    2**70,
    -(2**70),
    -1,
    1.5,
    float("nan"),
    True,
    b"bytes",
    "",
    "text",
    ["text"],
    [None],
    [2**70],
    {"key": object()},
    {1: 2},
    lambda *given: None,
)


GROUPS: dict[str, type] = {
    "answers": Answers,
    "audit": Audit,
    "checkpoints": Checkpoints,
    "conversations": Conversations,
    "elsewhere": Elsewhere,
    "facts": Facts,
    "exposures": Exposures,
    "guards": Guards,
    "remembered": Remembered,
    "holds": Holds,
    "expiry": Expiry,
    "items": Items,
    "policies": Policies,
    "summaries": Summaries,
}


def method(verb: str) -> Callable[..., Any]:
    group, _, name = verb.rpartition(".")
    return getattr(GROUPS.get(group, Memory), name)


def parameters(verb: str) -> list[str]:
    names: list[str] = []
    for name, one in inspect.signature(method(verb)).parameters.items():
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            names += {"details": Details, "selection": Selection}[name].__annotations__
        elif name != "self":
            names.append(name)
    return names


@pytest.mark.parametrize("verb", VERBS)
def test_a_wrong_type_in_any_argument_is_an_error_of_ours_or_harmless(
    memory: Memory, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some take the path of a file to write
    memory.remember("kept", thread="t")
    memory.remember("other", thread="t")
    problems = []
    for name in parameters(verb):
        for wrong in WRONG[:3] if name == "files" else WRONG:  # each reads all files of the server
            try:
                call(memory, verb, {**VERBS[verb], name: wrong})
            except DellmError as error:
                assert_clear(error)
            except Exception as error:
                problems.append(f"{verb}({name}={wrong!r:.40}): {type(error).__name__}: {error}")
    assert "\n".join(problems) == ""
    assert memory.verify().ok


@pytest.mark.parametrize(
    "name",
    [
        "url",
        "embedder",
        "scrub_below",
        "region",
        "providers",
        "credentials",
        "guards",
        "policy",
        "guard_days",
        "journal",
        "unchecked",
    ],
)
def test_a_wrong_type_at_opening_is_an_error_of_ours(sqlite_url: str, name: str) -> None:
    problems = []
    for wrong in WRONG:
        if name in {"url", "journal"} and wrong == "text":
            continue  # a good path
        try:
            with Memory.open(**{"url": sqlite_url, "embedder": None, name: wrong}) as memory:
                memory.remember("call 415-555-0134")
                memory.plan("+1 415 555 0134")
                memory.forget("415 555 0134")
        except DellmError as error:
            assert_clear(error)
        except Exception as error:
            problems.append(f"open({name}={wrong!r:.40}): {type(error).__name__}: {error}")
    assert "\n".join(problems) == ""


def test_a_workspace_needs_a_name(memory: Memory) -> None:
    for wrong in ("", "  ", None, 7, b"x"):
        with clearly(InvalidInput):
            memory.workspace(wrong)


def test_search_by_meaning_without_an_embedder_says_what_to_do(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=None).workspace("alex")
    memory.remember("kept")
    assert [one.record.text for one in memory.context("kept")] == ["kept"]
    for act in (
        lambda: memory.context("kept", by="meaning"),
        lambda: memory.search("kept", by="both"),
        lambda: memory.plan(meaning="kept"),
        memory.index,
    ):
        with clearly(EmbedderError):
            act()


# nested use


def test_verbs_may_be_called_while_an_export_is_iterated(memory: Memory) -> None:
    memory.remember_many([Draft(f"record {number}", thread="t") for number in range(1_200)])
    seen = []
    for record in memory.export():
        seen.append(record.id)
        if record.id == 10:
            memory.forget(ids=[700], scrub=False)
            memory.remember("a late one")
            assert memory.get(11).text == "record 10"
    assert seen == [*range(1, 700), *range(701, 1_202)]
    assert memory.verify().ok


def test_a_verb_called_from_inside_another_is_refused_and_changes_nothing(memory: Memory) -> None:
    memory.remember("kept")
    memory.remember("other")
    for act in (
        lambda: memory.plan(where=lambda record: memory.remember("from inside")),
        lambda: memory.forget(where=lambda record: memory.remember("from inside")),
        lambda: memory.forget(where=lambda record: memory.get(1)),
        lambda: memory.context("kept", by="keyword", budget=9, count=lambda text: memory.index()),
    ):
        with clearly(InvalidInput):
            act()
    assert [one.text for one in memory.export()] == ["kept", "other"]
    memory.remember("afterwards")
    assert memory.verify().ok


def test_an_error_of_the_user_s_own_predicate_passes_through_and_changes_nothing(
    memory: Memory,
) -> None:
    memory.remember("kept")

    def broken(record: object) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        memory.forget(where=broken)
    assert [one.text for one in memory.export()] == ["kept"]
    assert memory.ledger() == []
    memory.remember("afterwards")


# SQLite files


def digest(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(sqlite_url: str) -> None:
    Path(sqlite_url).write_bytes(b"These are the notes of somebody else.\n" * 400)
    before = digest(sqlite_url)
    with clearly(SchemaError):
        Memory.open(sqlite_url, embedder=None)
    assert digest(sqlite_url) == before
    assert [one.name for one in Path(sqlite_url).parent.iterdir()] == ["memory.db"]


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_of_another_program_is_refused_and_left_as_it_was(
    sqlite_url: str, journal: str
) -> None:
    other = apsw.Connection(sqlite_url)
    other.pragma("journal_mode", journal)
    other.execute("create table theirs(a); insert into theirs values (1), (2)").fetchall()
    other.close()
    before = digest(sqlite_url)
    with clearly(SchemaError):
        Memory.open(sqlite_url, embedder=None)
    assert digest(sqlite_url) == before
    assert [one.name for one in Path(sqlite_url).parent.iterdir()] == ["memory.db"]


def test_a_schema_of_a_newer_version_is_refused_and_left_as_it_was(url: str) -> None:
    Memory.open(url, embedder=None).close()
    with beside(url) as run:
        run("insert into migration values (999, 'the_future', 0)")
    with clearly(SchemaError) as _:
        Memory.open(url, embedder=None)
    with beside(url) as run:
        assert [row[0] for row in run("select number from migration order by number")][-1] == 999
        run("delete from migration where number = 999")
    Memory.open(url, embedder=None).close()


@contextmanager
def beside(url: str) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    """Yield a function that runs SQL without the library."""
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as connection:

            def run(sql: str, *values: object) -> list[tuple[Any, ...]]:
                cursor = connection.execute(sql, values)
                return cursor.fetchall() if cursor.description else []

            yield run
        return
    connection = apsw.Connection(url)
    yield lambda sql, *values: connection.execute(sql, values).fetchall()
    connection.close()


def filled(url: str, records: int = 300) -> None:
    with Memory.open(url, embedder="hashing", scrub_below=0) as memory:
        alex = memory.workspace("alex")
        alex.remember_many(
            [Draft(f"{SECRET} {number} " * 20, thread="t") for number in range(records)]
        )
        alex.index()


@pytest.mark.parametrize("damage", ["noise", "zeros", "cut", "header"])
def test_a_damaged_file_gives_storage_errors_and_is_never_made_worse(
    sqlite_url: str, damage: str
) -> None:
    filled(sqlite_url)
    data = bytearray(Path(sqlite_url).read_bytes())
    if damage == "cut":
        del data[len(data) // 2 :]
    elif damage == "header":
        data[:100] = random.Random(1).randbytes(100)
    else:
        noise = random.Random(1).randbytes(len(data))
        start = 8192 * 20
        data[start:-8192] = (
            noise[start:-8192] if damage == "noise" else bytes(len(data) - start - 8192)
        )
    Path(sqlite_url).write_bytes(data)
    failed = 0
    for verb in ("export", "search", "forget", "verify", "scan", "scrub", "plan", "index"):
        arguments = {"what": SECRET} if verb in {"forget", "plan"} else VERBS[verb]
        try:
            with Memory.open(sqlite_url, embedder="hashing", scrub_below=0) as memory:
                call(memory.workspace("alex"), verb, arguments)
        except StorageError as error:
            assert_clear(error)
            failed += 1
        except NothingMatched as error:
            assert_clear(error)
    assert failed >= 4


def test_a_path_that_cannot_be_opened_is_a_storage_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no such folder" / "memory.db"):
        with clearly(StorageError):
            Memory.open(str(path), embedder=None)
    with clearly(InvalidInput):
        Memory.open("  ", embedder=None)


READ_ONLY = """
import os, sys, json
import dellm
from dellm import (
    Atom,
    Body,
    Checkpoint,
    Checkpoints,
    Items,
    Keep,
    Literal,
    Memory,
    Place,
    TaskWrite,
)
from dellm.errors import DellmError
warm = Memory.open(":memory:", embedder="hashing")
warm.remember("x", thread="t"); warm.context("x"); warm.forget("x")
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
def tried(act):
    try:
        return ["ok", act()]
    except DellmError as error:
        return [type(error).__name__, str(error)]
said = {}
try:
    memory = Memory.open(sys.argv[1], embedder="hashing", scrub_below=0)
except DellmError as error:
    said["open"] = [type(error).__name__, str(error)]
else:
    said["open"] = ["ok", 0]
    alex = memory.workspace("alex")
    said["read"] = tried(lambda: len(list(alex.export())))
    said["search"] = tried(lambda: len(alex.search("zyxcanaryword", limit=3)))
    said["remember"] = tried(lambda: alex.remember("more").id)
    said["workspace"] = tried(lambda: memory.workspace("new").remember("more").id)
    said["forget"] = tried(lambda: alex.forget("zyxcanaryword").number)
    said["scrub"] = tried(lambda: alex.scrub().clean)
print(json.dumps(said))
"""


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """Return a folder that a user without rights may enter; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="dellm-rights-"))
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


def as_nobody(path: Path) -> dict[str, list[Any]]:
    import json

    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(os.name != "posix", reason="rights of files")
def test_a_read_only_file_can_be_read_and_refuses_every_change(open_to_all: Path) -> None:
    path = open_to_all / "memory.db"
    filled(str(path), 30)
    path.chmod(0o444)
    before = digest(path)
    said = as_nobody(path)
    assert said.pop("open")[0] == "ok"
    assert said.pop("read") == ["ok", 30]
    assert said.pop("search") == ["ok", 3]
    for name, (kind, message) in said.items():
        assert kind == "StorageError", name
        assert "read-only" in message, name
    assert digest(path) == before


@pytest.mark.skipif(os.name != "posix", reason="rights of files")
def test_a_read_only_folder_is_a_storage_error(open_to_all: Path) -> None:
    path = open_to_all / "memory.db"
    filled(str(path), 30)
    path.chmod(0o666)
    open_to_all.chmod(0o555)
    before = digest(path)
    said = as_nobody(path)
    assert all(kind in {"StorageError", "ok"} for kind, _ in said.values())
    assert said.get("remember", said["open"])[0] == "StorageError"
    assert digest(path) == before
    kind, message = as_nobody(open_to_all / "new.db")["open"]
    assert kind == "StorageError"
    assert "cannot be opened" in message


def test_a_full_disk_loses_nothing_that_was_stored(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(sqlite_url, scrub_below=0).workspace("alex")
    connection = memory._engine.database._connection
    memory.remember("the first")
    connection.pragma("max_page_count", connection.pragma("page_count") + 20)
    stored = ["the first"]
    with clearly(StorageError):
        for number in range(1_000):
            text = f"{number} " + "word " * 500
            memory.remember(text)
            stored.append(text)
    assert 1 < len(stored) < 1_000
    assert [one.text for one in memory.export()] == stored
    assert memory.verify().ok
    try:
        memory.context("word")
    except StorageError as error:
        assert_clear(error)
    assert memory.verify().ok
    connection.pragma("max_page_count", 1_000_000)
    memory.remember("there is room again")
    receipt = memory.forget("the first")
    assert receipt.level == "erased"
    assert memory.scrub().clean


def test_a_forget_on_a_full_disk_does_all_or_nothing(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(sqlite_url, scrub_below=0).workspace("alex")
    memory.remember_many([Draft(f"note {one} about {SECRET}", thread="t") for one in range(2_000)])
    connection = memory._engine.database._connection
    connection.pragma("max_page_count", connection.pragma("page_count"))
    try:
        receipt = memory.forget(thread="t")
    except StorageError as error:
        assert_clear(error)
        assert len(list(memory.export())) == 2_000
        assert memory.ledger() == []
    else:
        assert len(receipt) == 2_000
        assert list(memory.export()) == []
    assert memory.verify().ok


def test_a_file_locked_by_another_process_is_a_storage_error_and_reads_go_on(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(sqlite_url, scrub_below=0).workspace("alex")
    memory.remember("kept")
    other = apsw.Connection(sqlite_url)
    other.execute("begin immediate")
    memory._engine.database._connection.set_busy_timeout(20)
    for act in (
        lambda: memory.remember(SECRET),
        lambda: memory.record(SECRET, context=[1]),
        lambda: memory.forget("kept"),
        lambda: memory.workspace("new").remember(SECRET),
        memory.index,
    ):
        with clearly(StorageError) as _:
            act()
    assert [one.text for one in memory.export()] == ["kept"]
    assert not memory.scrub().clean
    other.execute("rollback")
    memory.remember("afterwards")
    assert memory.verify().ok
    other.close()


# PostgreSQL


def end_sessions(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )


def test_after_a_lost_connection_the_next_verb_works_again(
    postgres_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(postgres_url).workspace("alex")
    memory.remember("kept")
    for verb in ("export", "remember", "context", "forget"):
        end_sessions(postgres_url)
        call(memory, verb, VERBS[verb])  # on another connection, as nothing was begun yet
    assert memory.verify().ok
    assert [one.text for one in memory.export()] == ["text"]


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://somebody:sekretword@127.0.0.1:1/nowhere",
        "postgresql://127.0.0.1:1/nowhere?password=sekretword",
        "postgresql://somebody:sekretword@127.0.0.1:port/nowhere",
        "postgresql://?no_such_option=sekretword",
        "postgres://%zz",
    ],
)
def test_an_address_that_leads_nowhere_is_an_error_without_its_password(dsn: str) -> None:
    with pytest.raises(DellmError) as caught:
        Memory.open(dsn, embedder=None)
    assert_clear(caught.value)
    seen: BaseException | None = caught.value
    while seen is not None:
        assert "sekretword" not in f"{seen} {seen!r}"
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def test_no_password_shows_in_a_memory_s_name(
    postgres_url: str, opened: Callable[..., Memory]
) -> None:
    named = postgres_url.replace("postgres:@", "postgres:sekretword@")
    assert "sekretword" not in repr(opened(named))
    assert "sekretword" not in repr(opened(f"{postgres_url}&password=sekretword"))


def test_a_database_that_is_not_there_is_a_storage_error(postgres_url: str) -> None:
    with clearly(StorageError):
        Memory.open(postgres_url.replace("/dellm_", "/no_such_"), embedder=None)


@pytest.fixture
def plain_login(postgres: str, postgres_url: str) -> Iterator[str]:
    """Return the URL of an empty database whose login may create tables but no extension."""
    name = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    login, database = f"login_{name}", f"bare_{name}"
    with psycopg.connect(postgres, autocommit=True) as owner:
        owner.execute(f"create role {login} login")
        owner.execute(f"create database {database}")
    bare = postgres_url.replace(f"/{name}?", f"/{database}?")
    with psycopg.connect(bare, autocommit=True) as owner:
        owner.execute(f"grant create on schema public to {login}")
    yield bare.replace("postgres:@", f"{login}:@")
    with psycopg.connect(postgres, autocommit=True) as owner:
        owner.execute(f"drop database {database} with (force)")
        owner.execute(f"drop role {login}")


def test_a_login_that_may_not_create_the_extension_is_told_so_and_leaves_nothing(
    plain_login: str,
) -> None:
    with pytest.raises(SchemaError, match="pgvector") as caught:
        Memory.open(plain_login, embedder=None)
    assert_clear(caught.value)
    assert "CREATE EXTENSION" in str(caught.value)
    with psycopg.connect(plain_login) as connection:
        assert connection.execute(
            "select count(*) from pg_class where relnamespace = 'public'::regnamespace"
        ).fetchone() == (0,)


def test_a_database_that_only_reads_is_a_storage_error(
    postgres_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(postgres_url).workspace("alex")
    memory.remember("kept")
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("alter table record add constraint refusing check (role <> 'refused')")
    with clearly(StorageError):
        memory.remember(SECRET, role="refused")
    assert [one.text for one in memory.export()] == ["kept"]
    assert memory.verify().ok


def test_bind_login_is_for_logins_only(url: str, opened: Callable[..., Memory]) -> None:
    memory = opened(url).workspace("alex")
    kinds = (StorageError, InvalidInput) if url.startswith("postgresql") else (DellmError,)
    for login in ("no_such_login", 'x"; drop table record; --', "", SECRET):
        with pytest.raises(kinds) as caught:
            memory.bind_login(login)
        assert_clear(caught.value)


def test_each_leaf_says_what_is_unchanged_and_what_to_do() -> None:
    leaves = [
        one
        for one in vars(dellm.errors).values()
        if inspect.isclass(one) and issubclass(one, DellmError) and one is not DellmError
    ]
    assert len(leaves) >= 12
    for leaf in leaves:
        assert_clear(leaf("What happened."))
        assert leaf.__doc__
