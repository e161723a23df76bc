"""What is erased must be in no file: the files are read here, byte by byte, not through scan().

Every test that finds nothing has a negative control that finds something when a protection is off.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import logging
import random
import re
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import dellm.embedding
from dellm import Memory
from dellm.database import Cleaned
from dellm.errors import DellmError
from dellm.records import Draft

pytestmark = pytest.mark.own_database

# A canary ends in the marker: FTS5 shortens terms at the front, so the end is what stays readable.
MARK = re.compile(rb"([0-9a-f]{10})cnry")
DIMENSIONS = 96


class Canaries:
    """Hands out unique words, and knows those handed out since `take` was last called."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._new: set[str] = set()

    def __call__(self) -> str:
        tail = f"{self._random.getrandbits(40):010x}"
        self._new.add(tail)
        return f"{self._random.getrandbits(32):08x}{tail}cnry"

    def take(self) -> set[str]:
        taken, self._new = self._new, set()
        return taken


class DenseEmbedder:
    """A vector of random numbers without a zero for every text, the same each time."""

    name, dimensions, threshold, provider = "dense", DIMENSIONS, -1.0, "local"

    def embed(self, texts: Sequence[str], /) -> np.ndarray:
        rows = np.array([self._row(text) for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _row(self, text: str) -> np.ndarray:
        seed = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest()[:8])
        return np.random.default_rng(seed).normal(size=DIMENSIONS)


def vector_bytes(text: str) -> bytes:
    """Return bytes out of the middle of the text's vector, as both databases store them."""
    return dellm.embedding.embed(DenseEmbedder(), [text])[0].astype("<f4").tobytes()[128:192]


def files_of(url: str) -> list[Path]:
    """Return every file that the database may have written."""
    if not url.startswith("postgresql"):
        path = Path(url)
        return [one for one in path.parent.iterdir() if one.name.startswith(path.name)]
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("checkpoint")
        folder, oid = owner.execute(
            "select current_setting('data_directory'), oid from pg_database "
            "where datname = current_database()"
        ).fetchone()
    root = Path(folder)
    parts = [root / "base" / str(oid), root / "global", root / "pg_wal", root / "log"]
    found = [part for part in parts if part.is_file()]
    return found + [one for part in parts if part.is_dir() for one in part.rglob("*")]


def content_of(url: str) -> bytes:
    """Return the bytes of all files of the database, with a gap between two files."""
    read = []
    for file in files_of(url):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            read.append(file.read_bytes())
    return (b"\0" * 64).join(read)


def canaries_in(data: bytes) -> set[str]:
    return {one.decode() for one in MARK.findall(data)}


def plant(memory: Memory, new: Canaries, name: str) -> list[str]:
    """Store short, long and derived records full of canaries; return their texts."""
    short = memory.remember(
        f"A short note {new()}",
        thread=name,
        metadata={"key": new(), new(): {"deep": [new()]}},
        payload=f"payload {new()}".encode(),
        subject=new(),
        framework_id=new(),
    )
    filler = "lorem ipsum " * 900
    long = memory.remember(
        f"{new()} {filler} {new()} {filler} {new()}",
        thread=name,
        metadata={"long": filler + new() + filler},
        payload=b"\x00\x81" + filler.encode() + new().encode() + filler.encode(),
    )
    unicode = memory.remember(f"Zoë \x00 \ud800 ﷲ {new()}", thread=name, metadata={"é\x00": new()})
    reply = memory.record(f"A reply with {new()}", context=[short.id, long.id], thread=name)
    return [one.text for one in (short, long, unicode, reply)]


def plant_separators(memory: Memory, new: Canaries, name: str) -> None:
    """Store doomed terms between living ones that differ at their very ends only.

    FTS5 keeps, for each index page, the shortest beginning that tells its first term from the last
    one before it: here that is a whole doomed term, for every third page or so.
    """
    stems = [new() for _ in range(1_500)]
    memory.remember(" ".join(stems), thread=name)
    beside = (stem[:-1] + letter for stem in stems for letter in "xz")
    memory.remember(" ".join(beside), thread="beside")


class Scenario:
    """A memory with doomed and living records, interleaved; `forget` takes the doomed ones."""

    def __init__(self, url: str, opened: Callable[..., Memory], *, separators: bool = False):
        self.url = url
        self.memory = opened(url, embedder=DenseEmbedder()).workspace("alex")
        new = Canaries(7)
        self.dead_texts: list[str] = []
        self.living_texts: list[str] = []
        self.dead: set[str] = set()
        self.living: set[str] = set()
        for turn in range(6):
            self.dead_texts += plant(self.memory, new, "doomed")
            self.dead |= new.take()
            self.living_texts += plant(self.memory, new, f"living-{turn}")
            self.living |= new.take()
        if separators:
            plant_separators(self.memory, new, "doomed")
        self.separators = new.take()
        self.dead |= self.separators
        self.memory.index()

    def forget(self, **options: Any) -> dellm.Receipt:
        return self.memory.forget(thread="doomed", **options)

    def left(self) -> set[str]:
        """Return the doomed canaries that are still in a file."""
        return canaries_in(content_of(self.url)) & self.dead

    def vectors_left(self) -> int:
        data = content_of(self.url)
        return sum(vector_bytes(text) in data for text in self.dead_texts)

    def assert_clean(self) -> None:
        data = content_of(self.url)
        found = canaries_in(data)
        assert found & self.dead == set()
        assert not [text for text in self.dead_texts if vector_bytes(text) in data]
        # What lives on is there to be found: the reading itself works.
        assert self.living <= found
        assert all(vector_bytes(text) in data for text in self.living_texts)


@pytest.fixture
def scenario(url: str, opened: Callable[..., Memory]) -> Scenario:
    return Scenario(url, opened, separators=True)


# physical erasure, and its negative controls


def test_after_forget_and_scrub_no_byte_of_the_erased_is_in_any_file(scenario: Scenario) -> None:
    assert scenario.left() == scenario.dead  # the reading finds each of them beforehand
    assert scenario.vectors_left() == len(scenario.dead_texts)
    receipt = scenario.forget(scrub=True)
    assert receipt.level == "scrubbed"
    scenario.assert_clean()
    assert scenario.memory.verify().ok


def test_a_small_sqlite_file_is_scrubbed_within_forget(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    scenario = Scenario(sqlite_url, opened)
    assert scenario.forget().level == "scrubbed"
    scenario.assert_clean()


def test_redaction_leaves_no_byte_of_the_old_version(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=DenseEmbedder()).workspace("alex")
    new = Canaries(1)
    gone, kept = new(), new()
    said = memory.remember(f"My code is {gone}. My dog is {kept}.", payload=f"raw {gone}".encode())
    memory.index()
    receipt = memory.forget(gone, mode="redact", scrub=True)
    assert receipt.level == "scrubbed"
    data = content_of(url)
    assert gone.encode() not in data
    assert kept.encode() in data
    assert vector_bytes(said.text) not in data
    assert kept in memory.get(receipt.redacted[said.id]).text


def test_erasing_a_whole_workspace_leaves_the_others_bytes_alone(
    url: str, opened: Callable[..., Memory]
) -> None:
    scenario = Scenario(url, opened)
    other = opened(url, embedder=DenseEmbedder()).workspace("kim")
    new = Canaries(99)
    plant(other, new, "theirs")
    theirs = new.take()
    other.index()
    before = list(other.export())
    scenario.memory.forget(everything=True, scrub=True)
    found = canaries_in(content_of(url))
    assert not found & (scenario.dead | scenario.living)
    assert theirs <= found
    assert list(other.export()) == before


def switch_protections(memory: Memory, *, rows: bool, terms: bool) -> None:
    connection = memory._engine.database._connection
    connection.pragma("secure_delete", int(rows))
    connection.execute(
        "insert into keyword(keyword, rank) values ('secure-delete', ?)", (int(terms),)
    )


def checkpoint(memory: Memory) -> None:
    """Bring the log into the file and empty it: what SQLite does by itself sooner or later."""
    memory._engine.database._connection.execute("pragma wal_checkpoint(truncate)").fetchall()


@pytest.mark.parametrize(
    ("rows", "terms", "stays"),
    [
        (False, False, {"rows", "vectors", "terms"}),
        (False, True, {"rows", "vectors"}),
        (True, False, {"terms"}),
        (True, True, {"terms"}),
    ],
)
def test_without_a_protection_or_without_a_scrub_sqlite_keeps_bytes(
    sqlite_url: str, opened: Callable[..., Memory], rows: bool, terms: bool, stays: set[str]
) -> None:
    scenario = Scenario(sqlite_url, opened, separators=True)
    switch_protections(scenario.memory, rows=rows, terms=terms)
    assert scenario.forget(scrub=False).level == "erased"
    checkpoint(scenario.memory)
    found = scenario.left()
    left = {
        "rows": bool(found - scenario.separators),
        "vectors": scenario.vectors_left() > 0,
        "terms": bool(found & scenario.separators),
    }
    assert {name for name, there in left.items() if there} >= stays
    # Whatever was off: the scrub removes it, and finds the files clean because they are.
    assert scenario.memory.scrub().clean
    scenario.assert_clean()


def test_secure_delete_alone_takes_the_rows_out_of_the_file(
    sqlite_url: str, opened: Callable[..., Memory]
) -> None:
    scenario = Scenario(sqlite_url, opened)
    scenario.forget(scrub=False)
    assert scenario.left()  # still in the log
    checkpoint(scenario.memory)
    assert len(scenario.left()) <= len(scenario.dead) // 20  # DESIGN decision 15: not proof


def test_without_a_scrub_postgresql_keeps_bytes_in_tables_and_log(
    postgres_url: str, opened: Callable[..., Memory]
) -> None:
    scenario = Scenario(postgres_url, opened, separators=True)
    assert scenario.forget().level == "erased"  # no scrub unless asked for
    assert list(scenario.memory.history("doomed")) == []
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("checkpoint")
    places = {"base": set(), "pg_wal": set()}
    for file in files_of(postgres_url):
        for place in places:
            if place in file.parts and file.is_file():
                places[place] |= canaries_in(file.read_bytes()) & scenario.dead
    assert places["base"]
    assert places["pg_wal"]
    assert scenario.vectors_left() > 0
    assert scenario.memory.scrub().clean
    scenario.assert_clean()


def test_the_planner_keeps_no_value_of_an_erased_record(
    postgres_url: str, opened: Callable[..., Memory]
) -> None:
    scenario = Scenario(postgres_url, opened)
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("analyze")
    scenario.forget(scrub=True)
    with psycopg.connect(postgres_url) as owner:
        said = json.dumps(owner.execute("select * from pg_stats").fetchall(), default=str)
    assert not canaries_in(said.encode()) & scenario.dead


def stress(memory: Memory, operations: int, batch: int) -> tuple[set[str], set[str]]:
    """Insert, redact (an update) and erase at random; return (dead, living) canaries."""
    choose, new = random.Random(3), Canaries(11)
    living: dict[int, set[str]] = {}
    dead: set[str] = set()
    done = 0
    while done < operations:
        drafts, marks = [], []
        for _ in range(batch):
            size = choose.choice((0, 3, 60, 900))
            drafts.append(
                Draft(f"{new()} {'word ' * size}{new()}", payload=new().encode(), subject=new())
            )
            marks.append(new.take())
        for record, its in zip(memory.remember_many(drafts), marks, strict=True):
            living[record.id] = its
        going = choose.sample(sorted(living), len(living) // 2)
        for id_ in going[::8]:
            words = memory.get(id_).text.split()
            if len(words) < 2 or words[0].startswith("["):
                continue
            word = words[0]
            receipt = memory.forget(quote=word, mode="redact", scrub=False)
            its = living.pop(id_)
            version = memory.get(receipt.redacted[id_])
            kept = canaries_in(f"{version.text} {version.subject}".encode())
            living[version.id] = kept
            dead |= its - kept
            assert word not in version.text
        rest = [id_ for id_ in going if id_ in living]  # not those redacted above
        if rest:
            memory.forget(ids=rest, scrub=False)
        for id_ in rest:
            dead |= living.pop(id_)
        done += batch + len(going)
    return dead, set().union(*living.values())


@pytest.mark.long
def test_thousands_of_random_inserts_updates_and_erasures_leave_nothing(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=None, scrub_below=0).workspace("alex")
    count = 3_000 if memory._engine.database.dialect == "sqlite" else 1_000
    dead, living = stress(memory, count, 60)
    assert len(dead) > count
    assert memory.scrub().clean
    found = canaries_in(content_of(url))
    assert found & dead == set()
    assert living <= found
    assert memory.verify().ok
    assert {receipt.level for receipt in memory.receipts()} == {"scrubbed"}


# receipts and residue


def rows_of(memory: Memory, table: str) -> int:
    with memory._engine.database.transaction(memory._engine.scope(memory.id)) as tx:
        return tx.one(f"select count(*) from {table}")[0]


def test_a_forget_above_the_threshold_is_erased_and_a_later_scrub_upgrades_its_receipt(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, scrub_below=0).workspace("alex")
    said = memory.remember("The code of the vault is 4711-9923-aa")
    receipt = memory.forget(ids=[said.id])
    assert receipt.level == "erased"
    assert rows_of(memory, "residue") > 0
    report = memory.scrub()
    assert report.clean
    assert report.receipts == (receipt.number,)
    assert rows_of(memory, "residue") == 0
    assert memory.receipt(receipt.number).level == "scrubbed"
    assert memory.verify().ok


def test_a_second_scrub_finds_nothing_to_prove_and_writes_no_entry(memory: Memory) -> None:
    said = memory.remember("The code of the vault is 4711-9923-aa")
    memory.forget(ids=[said.id], scrub=True)
    before = len(memory.ledger())
    report = memory.scrub()
    assert report.clean
    assert report.receipts == ()
    assert len(memory.ledger()) == before


def test_a_suppression_is_never_called_erased_or_scrubbed(memory: Memory) -> None:
    said = memory.remember("The code of the vault is 4711-9923-aa")
    receipt = memory.forget(ids=[said.id], mode="suppress", scrub=True)
    assert receipt.level == "suppressed"
    assert memory.receipts()[0].level == "suppressed"
    assert memory.restore(receipt) == [said.id]


PARTS = {
    "text": lambda word: Draft(f"the secret of the house is {word}"),
    "metadata": lambda word: Draft("note", metadata={"secret": f"the house is {word}"}),
    "payload": lambda word: Draft("note", payload=f"the secret of the house is {word}".encode()),
    "subject": lambda word: Draft("note", subject=f"the lady of the house {word}"),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_clean_up_that_did_nothing_is_found_out(
    url: str, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    memory = opened(url, embedder=None, scrub_below=0).workspace("alex")
    word = Canaries(2)()
    said = memory.remember_many([PARTS[part](word)])[0]
    receipt = memory.forget(ids=[said.id])
    database = memory._engine.database
    with monkeypatch.context() as broken:
        # Everything is done but the cleaning; on SQLite the log still holds the old pages.
        broken.setattr(database, "clean", lambda progress: Cleaned(("nothing",), complete=True))
        report = memory.scrub()
    assert word.encode() in content_of(url)
    assert not report.clean
    assert report.found > 0
    assert memory.receipt(receipt.number).level == "erased"
    assert memory.scrub().clean
    assert memory.receipt(receipt.number).level == "scrubbed"
    assert word.encode() not in content_of(url)


def test_a_clean_up_that_left_a_vector_is_found_out(
    url: str, opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(url, embedder=DenseEmbedder(), scrub_below=0).workspace("alex")
    said = memory.remember("short")
    memory.index()
    memory.forget(ids=[said.id])
    database = memory._engine.database
    with monkeypatch.context() as broken:
        broken.setattr(database, "clean", lambda progress: Cleaned(("nothing",), complete=True))
        report = memory.scrub()
    assert vector_bytes("short") in content_of(url)
    assert not report.clean
    assert memory.scrub().clean


def test_content_that_lives_on_elsewhere_does_not_stop_a_receipt(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=DenseEmbedder()).workspace("alex")
    other = opened(url, embedder=DenseEmbedder()).workspace("kim")
    details: dict[str, Any] = {
        "metadata": {"source": "the same long words of metadata"},
        "payload": b"the same long words of payload",
        "subject": "the same long name of a subject",
    }
    text = "The very same long sentence, said by two people. Ж"
    said = memory.remember(text, **details)
    other.remember(text, **details)
    memory.index()
    other.index()
    assert memory.forget(ids=[said.id], scrub=True).level == "scrubbed"
    assert text.encode() in content_of(url)


# a scrub among others

READER = """
import sys
{opening}
print("reading", flush=True)
sys.stdin.readline()
{closing}
print("ended", flush=True)
"""
OPENING = {
    "sqlite": """
import apsw
c = apsw.Connection(sys.argv[1])
c.execute("begin"); c.execute("select count(*) from record").fetchall()
""",
    "postgres": """
import psycopg
c = psycopg.connect(sys.argv[1])
c.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
c.execute("select count(*) from record")
""",
}
CLOSING = {"sqlite": 'c.execute("rollback"); c.close()', "postgres": "c.close()"}


@contextlib.contextmanager
def reader_elsewhere(memory: Memory, url: str) -> Iterator[Callable[[], None]]:
    """Hold a read transaction in another process; yields the function that ends it."""
    dialect = memory._engine.database.dialect
    code = READER.format(opening=OPENING[dialect], closing=CLOSING[dialect])
    with subprocess.Popen(
        [sys.executable, "-c", code, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout.readline() == "reading\n"

        def end() -> None:
            if child.poll() is None and not child.stdin.closed:
                child.stdin.write("\n")
                child.stdin.close()
                assert child.stdout.readline() == "ended\n"
                child.wait(timeout=30)

        yield end
        end()


def test_a_scrub_beside_a_reader_says_so_and_completes_after_it(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, scrub_below=0).workspace("alex")
    word = Canaries(4)()
    said = memory.remember(f"The word is {word}")
    with reader_elsewhere(memory, url) as end:
        receipt = memory.forget(ids=[said.id], scrub=True)
        assert receipt.level == "erased"
        report = memory.scrub()
        assert not report.clean
        assert "completes after it ends" in report.obstacle
        assert rows_of(memory, "residue") > 0
        assert word.encode() in content_of(url)
        end()
        assert memory.scrub().clean
    assert memory.receipt(receipt.number).level == "scrubbed"
    assert word.encode() not in content_of(url)


def test_two_scrubs_at_once_both_end_and_prove_each_receipt_once(
    url: str, opened: Callable[..., Memory]
) -> None:
    first = opened(url, scrub_below=0).workspace("alex")
    second = opened(url, scrub_below=0).workspace("alex")
    word = Canaries(6)()
    said = first.remember(f"The word is {word}")
    receipt = first.forget(ids=[said.id])
    reports: list[Any] = []
    threads = [
        threading.Thread(target=lambda one=one: reports.append(one.scrub()))
        for one in (first, second)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 2
    if not any(report.clean for report in reports):  # each stood in the other's way, and said so
        assert all(report.obstacle for report in reports)
        assert first.scrub().clean
    assert first.receipt(receipt.number).level == "scrubbed"
    scrubbed = [entry for entry in first.ledger() if entry.action == "scrub"]
    assert [list(entry.body["receipts"]) for entry in scrubbed] == [[receipt.number]]
    assert word.encode() not in content_of(url)
    assert first.verify().ok


# scan finds what is planted


@contextlib.contextmanager
def raw(memory: Memory, url: str) -> Iterator[Callable[..., Any]]:
    """Yield a function that runs SQL beside the library."""
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as connection:
            yield lambda sql, *values: connection.execute(sql.replace("?", "%s"), values)
    else:
        connection = memory._engine.database._connection
        yield lambda sql, *values: connection.execute(sql, values).fetchall()


def planted(memory: Memory, url: str, cell: str | bytes) -> None:
    """Put the cell into a table of another program beside ours, in a row of this workspace."""
    kind = "text" if isinstance(cell, str) else memory._engine.database.dialect
    column = {"text": "text", "sqlite": "blob", "postgres": "bytea"}[kind]
    with raw(memory, url) as run:
        run(f"create table planted(ws integer, id integer, cell {column})")
        run("insert into planted values (?, 7, ?)", memory._engine.scope(memory.id).ws, cell)


def fixstr(text: str) -> bytes:
    """Return `text` as a MessagePack string (str 8)."""
    return b"\xd9" + bytes([len(text.encode())]) + text.encode()


VALUE = "Zoë Maréchal-Ünver of Kingsbury"
ENCODINGS: dict[str, Callable[[str], str | bytes]] = {
    "plain": str,
    "JSON with escapes": lambda text: json.dumps({"deep": [{"note": f"said {text} once"}]}),
    "JSON in JSON": lambda text: json.dumps({"inner": json.dumps({"note": text})}),
    "UTF-8 bytes": lambda text: text.encode(),
    "UTF-16": lambda text: f"a{text}".encode("utf-16-le"),
    "UTF-16 big-endian": lambda text: text.encode("utf-16-be"),
    "gzip": lambda text: gzip.compress(f"before {text} after".encode() * 3),
    "zlib": lambda text: zlib.compress(f"before {text} after".encode() * 3),
    "base64": lambda text: base64.b64encode(f"before {text} after".encode()).decode(),
    "base64 bytes": lambda text: base64.b64encode(text.encode()),
    "base64 of gzip of JSON": lambda text: base64.b64encode(
        gzip.compress(json.dumps({"note": text}).encode())
    ).decode(),
    "JSON of base64": lambda text: json.dumps({"b": base64.b64encode(text.encode()).decode()}),
    "MessagePack": lambda text: b"\x82\xa1a\x01\xa4note" + fixstr(text),
    "other spelling": lambda text: f"about ZOE  MARECHAL unver OF kingsbury, {len(text)}",
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_scan_finds_a_value_in_a_table_it_has_never_heard_of(
    memory: Memory, url: str, encoding: str
) -> None:
    memory.remember("something else")
    assert memory.scan(VALUE, files=False).clean
    planted(memory, url, ENCODINGS[encoding](VALUE))
    report = memory.scan(VALUE, files=False)
    assert [(one.table, one.column, one.ids) for one in report.places] == [
        ("planted", "cell", (7,))
    ]
    assert not report.clean
    assert "planted" in report.looked_at
    assert VALUE not in json.dumps(report.to_json(), ensure_ascii=False)


def test_a_table_that_knows_no_workspaces_is_looked_at_with_the_files(
    memory: Memory, url: str
) -> None:
    memory.remember("something else")
    with raw(memory, url) as run:
        run("create table shared_by_all(note text)")
        run("insert into shared_by_all values ('Kingsbury castle opens at nine')")
    report = memory.scan("kingsbury CASTLE")
    assert ("shared_by_all", "note", 1) in [
        (one.table, one.column, one.count) for one in report.places
    ]


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("call +1 (415) 555-0134 now", "415.555.0134"),
        ("born 1990-04-03", "3 April 1990"),
        ("mail Alice at Acme.io", "alice@acme.io"),
        ("card 9111 1111 1111 1110", "9111-1111-1111-1110"),
    ],
)
def test_a_scan_finds_another_spelling(memory: Memory, url: str, stored: str, asked: str) -> None:
    said = memory.remember(stored, metadata={"again": stored}, payload=stored.encode())
    report = memory.scan(asked, files=False)
    found = {one.column: one.ids for one in report.places if one.table == "record"}
    assert found == {"text": (said.id,), "metadata": (said.id,), "payload": (said.id,)}
    memory.forget(asked, scrub=False)
    assert memory.scan(asked, files=False).clean


def test_a_scan_counts_what_stands_in_the_files_only(
    url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(url, embedder=None, scrub_below=0).workspace("alex")
    said = memory.remember("Kingsbury castle opens at nine")
    memory.forget(ids=[said.id])
    report = memory.scan("Kingsbury castle")
    assert report.places == ()
    assert len(report) == sum(one.count for one in report.files) > 0
    assert not report.clean
    memory.scrub()
    report = memory.scan("Kingsbury castle")
    assert report.clean
    assert len([one for one in report.looked_at if "." in one or "/" in one]) >= 1


def test_a_scan_sees_only_its_own_workspace_in_tables_that_have_one(memory: Memory) -> None:
    memory.remember("mine")
    other = type(memory)(memory._engine, "kim")
    other.remember("Kingsbury castle opens at nine")
    assert memory.scan("Kingsbury castle", files=False).places == ()
    assert other.scan("Kingsbury castle", files=False).places


def test_a_scan_that_may_not_read_the_files_says_so(
    postgres: str, postgres_url: str, opened: Callable[..., Memory]
) -> None:
    database = psycopg.conninfo.conninfo_to_dict(postgres_url)["dbname"]
    login = f"plain_{database}"
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f"create role {login} login")
        owner.execute(f"grant dellm_app to {login}")
        owner.execute(f"grant create on schema public to {login}")
        tables = owner.execute(
            "select relname from pg_class where relkind = 'r' and relnamespace = "
            "'public'::regnamespace"
        ).fetchall()
        for (table,) in tables:
            owner.execute(f"alter table {table} owner to {login}")
            owner.execute(f"drop policy if exists app on {table}")
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        for (table,) in tables:
            if table == "workspace":
                rule = "name = current_setting('dellm.name', true)"
            else:
                rule = "ws = nullif(current_setting('dellm.ws', true), '')::bigint"
            if table not in {"migration", "setting"}:
                owner.execute(
                    f"create policy app on {table} to dellm_app, {login} "
                    f"using ({rule}) with check ({rule})"
                )
    try:
        memory = opened(postgres_url.replace("postgres:@", f"{login}:@")).workspace("alex")
        said = memory.remember("Kingsbury castle opens at nine")
        receipt = memory.forget(ids=[said.id], scrub=True)
        assert receipt.level == "erased"
        report = memory.scan("Kingsbury castle")
        assert report.not_looked_at == ("The login may not read the server's files.",)
        assert not report.clean
        assert "not looked at" in str(report)
        report = memory.scrub()
        assert not report.clean
        assert report.obstacle
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute(f"reassign owned by {login} to postgres")
            owner.execute(f"drop owned by {login}")
            owner.execute(f"drop role {login}")


# I7: no shadow


def everything_but_records(memory: Memory, url: str) -> str:
    """Return every cell of every table that is not there to hold content, as one text."""
    content = {"record", "embedding", "keyword", "keyword_data", "keyword_idx", "keyword_docsize"}
    said: list[object] = []
    with memory._engine.database.transaction(memory._engine.scope(memory.id), owner=True) as tx:
        for table, columns, scoped in tx.tables():
            if table not in content and columns:
                ws = memory._engine.scope(memory.id).ws if scoped else None
                said += [table, *tx.table_rows(table, columns, ws)]
    return repr(said)


def test_no_audit_row_receipt_tombstone_repeat_or_residue_row_holds_content(
    scenario: Scenario,
) -> None:
    memory = scenario.memory
    for quote in scenario.dead_texts[::4]:
        memory.forget(quote, scrub=False)
    memory.forget(thread="doomed", mode="suppress")
    scenario.forget(scrub=False)
    said = everything_but_records(memory, scenario.url)
    said += "".join(str(one) + json.dumps(one.to_json()) for one in memory.receipts())
    said += repr(memory.ledger())
    everything = scenario.dead | scenario.living
    assert not canaries_in(said.encode()) & everything
    for text in [*scenario.dead_texts, *everything]:
        data = text.encode("utf-8", "surrogatepass")
        for algorithm in ("md5", "sha1", "sha256", "sha512", "blake2b"):
            digest = hashlib.new(algorithm, data)
            assert digest.hexdigest()[:16] not in said
            assert repr(digest.digest()[:8])[2:-1] not in said
    scenario.memory.scrub()
    assert not canaries_in(everything_but_records(memory, scenario.url).encode()) & everything


def test_a_plan_at_rest_holds_no_content(scenario: Scenario) -> None:
    plan = scenario.memory.plan(scenario.dead_texts[0])
    said = json.dumps(plan.to_json()) + repr(plan)
    assert not canaries_in(said.encode()) & (scenario.dead | scenario.living)
    assert dellm.Plan.from_json(plan.to_json()).digest == plan.digest


def failing_calls(memory: Memory, word: str, held: int) -> Iterator[Callable[[], object]]:
    """Yield calls that each fail, with the word in whatever place a caller can put it."""
    here = memory
    yield lambda: here.remember(word, kind=word)
    yield lambda: here.remember(word, role="")
    yield lambda: here.remember(word, thread="")
    yield lambda: here.remember(word, payload=word)
    yield lambda: here.remember(word, metadata={word: {word}})
    yield lambda: here.remember(word, metadata={word: float("nan")})
    yield lambda: here.remember(word, metadata=[word])
    yield lambda: here.remember(word, subject=[word])
    yield lambda: here.remember(word, purpose=[word])
    yield lambda: here.remember(word, sensitivity=[word])
    yield lambda: here.remember(word, model=[word])
    yield lambda: here.remember(word, framework_id=[word])
    yield lambda: here.remember(word, version=word, framework_id=word)
    yield lambda: here.remember(word, created_at=word)
    yield lambda: here.remember(word, retention_until=word)
    yield lambda: here.remember(word, copy_of=word)
    yield lambda: here.remember(word, copy_of=999)
    yield lambda: here.remember(word, framework_id="kept")
    yield lambda: here.remember([word])
    yield lambda: here.remember_many([word])
    yield lambda: here.record(word, context=[word])
    yield lambda: here.record(word, context=word)
    yield lambda: here.record(word, context=[999])
    yield lambda: here.context([word])
    yield lambda: here.context(word, by=word)
    yield lambda: here.context(word, scope=word)
    yield lambda: here.context(word, thread="", scope="thread")
    yield lambda: here.search([word])
    yield lambda: here.search(word, by=word)
    yield lambda: here.get(word)
    yield lambda: here.history([word])
    yield lambda: here.dependents([word])
    yield lambda: here.explain(word)
    yield lambda: here.receipt(word)
    yield lambda: here.scan([word])
    yield lambda: here.scan(f"... {'*' * 3}")
    yield lambda: here.plan(word, mode=word)
    yield lambda: here.plan([word])
    yield lambda: here.plan(ids=[word])
    yield lambda: here.plan(**{word: word})
    yield lambda: here.plan(description=word)
    yield lambda: here.plan(where={"before": word})
    yield lambda: here.plan(where=word)
    yield lambda: here.plan(word, threshold=word)
    yield lambda: here.plan(meaning=word, threshold=7)
    yield lambda: here.forget(f"{word} never said")
    yield lambda: here.forget(meaning=word)
    yield lambda: here.forget(word, mode="redact", unit=word)
    yield lambda: here.forget(ids=[held], mode=word)
    yield lambda: here.workspace([word])
    yield lambda: here.restore(word)
    yield lambda: here.bind_login(f"no such {word}")
    yield lambda: Memory.open(f"/no/such/folder/{hashlib.md5(word.encode()).hexdigest()}.db")


def chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        one = rest.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            rest += [one.__cause__, one.__context__]


def test_every_error_is_ours_and_neither_errors_nor_logs_nor_warnings_hold_content(
    memory: Memory, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    caplog.set_level(logging.DEBUG)
    word = "zyxcanaryword"
    kept = memory.remember("kept", framework_id="kept")
    said = memory.remember(f"I say {word}")
    before = list(memory.export())
    foreign: list[str] = []
    leaking: list[str] = []
    for number, call in enumerate(failing_calls(memory, word, kept.id)):
        try:
            call()
        except DellmError as error:
            if any(word in f"{one} {one!r}" for one in chain(error)):
                leaking.append(f"call {number}: {type(error).__name__}")
        except Exception as error:
            foreign.append(f"call {number}: {type(error).__name__}: {error}")
        else:
            foreign.append(f"call {number}: nothing raised")
    assert "\n".join(foreign) == ""
    assert "\n".join(leaking) == ""
    assert list(memory.export()) == before
    memory.forget(ids=[said.id], scrub=True)
    assert memory.verify().ok
    assert word not in caplog.text
    assert not [one for one in recwarn if word in str(one.message)]


def test_the_working_verbs_log_no_content(
    memory: Memory, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    caplog.set_level(logging.DEBUG)
    word = "zyxcanaryword"
    said = memory.remember(f"I say {word}", thread=word, metadata={word: word}, subject=word)
    reply = memory.record(f"You say {word}", context=memory.context(word, thread=word), thread=word)
    memory.search(word, by="both")
    str(memory.explain(reply.id))
    memory.scan(word)
    memory.forget(memory.plan(ids=[said.id]), scrub=True)
    assert memory.scan(word).places == () or memory.threads()
    assert word not in caplog.text
    assert not [one for one in recwarn if word in str(one.message)]


def test_the_server_log_holds_no_content_when_the_database_refuses_a_row(
    postgres_url: str, opened: Callable[..., Memory]
) -> None:
    memory = opened(postgres_url, embedder=None).workspace("alex")
    word = Canaries(12)()
    memory.remember("kept")
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(
            "alter table record add constraint refusing check (position('!' in text) = 0)"
        )
    with pytest.raises(DellmError) as caught:
        memory.remember(f"Refused! {word}")
    assert not [one for one in chain(caught.value) if word in str(one)]
    log = b"".join(file.read_bytes() for file in files_of(postgres_url) if file.name == "log")
    assert log
    assert word.encode() not in log
