"""A file that keeps what paid models answered, so that nothing is asked, and paid for, twice.

Every answer is kept under a digest of all that decides on it: the endpoint's address, the model, its
parameters and the messages, or the text to embed. It is on disk before the run goes on: a run that
was killed goes on where it stopped. Several processes may use one file at the same time; two that
want the same answer at the same moment both ask for it.

An answer that is kept is given again word for word. Where the temperature is over 0, as it always is
with models that reason, the second of two equal requests therefore gets the first one's answer; who
wants another sample takes another file. So does who wants to see what a model says today: a name
such as gpt-4.1-nano may stand for other weights later.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import apsw
import numpy as np
from numpy.typing import NDArray

from dellm.embedding import Embedder
from dellm.embedding.remote import BATCH_BYTES, TEXT_BYTES
from dellm.errors import EmbedderError, InvalidInput, ModelError
from dellm.models import Model, checked_messages
from dellm.openai_endpoint import Used

BATCH = 128  # texts of one request for embeddings
MESSAGE = 4  # tokens that a chat message costs besides its words
_WAIT = 30_000  # milliseconds for another process to finish its write
_SCHEMA = """
create table if not exists answers (
  key blob primary key, source text not null, answer blob not null
) without rowid
"""


class Answers(Protocol):
    """Where answers are looked up and kept. `source` says whose they are."""

    def get(self, key: bytes, /) -> bytes | None:
        """Return what is kept under a key, or None."""
        ...

    def put(self, source: str, answers: Mapping[bytes, bytes], /) -> None:
        """Keep answers under their keys; what is there already stays."""
        ...


class AnswerFile:
    """Answers in a SQLite file, which is made with its folder. Raises InvalidInput if it is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._using = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._file = apsw.Connection(str(path))
            self._file.set_busy_timeout(_WAIT)
            self._file.execute(_SCHEMA)
        except apsw.Error as error:
            raise InvalidInput(f"{path} can't be used to keep answers in.") from error

    def get(self, key: bytes, /) -> bytes | None:
        """Return what is kept under a key, or None."""
        with self._using:
            text = "select answer from answers where key = ?"
            found: bytes | None = self._file.execute(text, (key,)).get
        return found

    def put(self, source: str, answers: Mapping[bytes, bytes], /) -> None:
        """Keep answers in one transaction that is on disk when this returns."""
        rows = [(key, source, answer) for key, answer in answers.items()]
        with self._using, self._file:
            self._file.executemany("insert or ignore into answers values (?, ?, ?)", rows)

    def one_of(self, source: str) -> bytes | None:
        """Return any answer of a source, or None."""
        with self._using:
            text = "select answer from answers where source = ? limit 1"
            found: bytes | None = self._file.execute(text, (source,)).get
        return found

    def __len__(self) -> int:
        with self._using:
            return int(self._file.execute("select count(*) from answers").get)

    def close(self) -> None:
        """Close the file."""
        with self._using:
            self._file.close()


class Unsaved:
    """What a file holds, and what is put here besides, which never gets into it."""

    def __init__(self, file: Answers) -> None:
        self._file = file
        self._new: dict[bytes, bytes] = {}

    def get(self, key: bytes, /) -> bytes | None:
        """Return what is kept under a key here or in the file, or None."""
        found = self._new.get(key)
        return self._file.get(key) if found is None else found

    def put(self, _source: str, answers: Mapping[bytes, bytes], /) -> None:
        """Keep answers as long as this object lives."""
        self._new.update(answers)


@dataclass(slots=True)
class Tally:
    """What one model was asked: requests, those that failed, and tokens; `kept`: taken from the file.

    Tokens are characters / 4, rounded up, and `MESSAGE` more for each chat message: about what
    OpenAI's tokenizers make of English, unless they were `counted` by the endpoint, hidden ones
    included. Of an embedder, `kept` counts texts.
    """

    name: str
    role: str
    asked: int = 0
    failed: int = 0
    kept: int = 0
    input: int = 0
    output: int = 0
    counted: bool = False
    _adding: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def took(self, count: int = 1) -> None:
        """Count answers that were taken from the file."""
        with self._adding:
            self.kept += count

    def asked_for(self, given: int, made: int = 0) -> None:
        """Count a request that was answered, with its tokens in and out."""
        with self._adding:
            self.asked += 1
            self.input += given
            self.output += made

    def settle(self, used: Used) -> None:
        """Take the tokens that the endpoint counted, if it counted every answer."""
        with self._adding:
            if self.asked and used.answers >= self.asked:
                self.input, self.output, self.counted = used.input, used.output, True

    def missed(self) -> None:
        """Count a request that was not answered."""
        with self._adding:
            self.failed += 1


class Priced(Protocol):
    """A model behind an endpoint: what decides on its answers can be read."""

    @property
    def base_url(self) -> str:
        """Address of the endpoint."""
        ...

    @property
    def options(self) -> dict[str, Any]:
        """What every request says besides its messages or texts."""
        ...


def source_of(priced: Priced, kind: str) -> str:
    """Return what decides on the answers of a model besides what it is asked, as one text."""
    said = {"kind": kind, "base_url": priced.base_url, **priced.options}
    return json.dumps(said, sort_keys=True)


class KeptModel:
    """A chat model whose answers are kept. `source` is that of the model that is paid for."""

    def __init__(self, inner: Model, source: str, answers: Answers, tally: Tally) -> None:
        self.name = inner.name
        self.provider = getattr(inner, "provider", "local")
        self._inner, self._source, self._answers, self._tally = inner, source, answers, tally

    def complete(self, messages: Sequence[Mapping[str, str]], /) -> str:
        """Return the kept answer to these messages, else ask for it and keep it.

        Raises InvalidInput, or ModelError if the model can't answer; what was kept stays.
        """
        sent = checked_messages(messages)
        key = _key(self._source, sent)
        known = self._answers.get(key)
        if known is not None:
            self._tally.took()
            return known.decode("utf-8", "surrogatepass")
        try:
            said = self._inner.complete(sent)
        except ModelError:
            self._tally.missed()
            raise
        self._answers.put(self._source, {key: said.encode("utf-8", "surrogatepass")})
        self._tally.asked_for(message_tokens(sent), tokens(said))
        return said


class KeptEmbedder:
    """An embedder whose vectors are kept, text by text."""

    def __init__(self, inner: Embedder, source: str, answers: Answers, tally: Tally) -> None:
        self.name, self.threshold = inner.name, inner.threshold
        self.provider = getattr(inner, "provider", "local")
        self._inner, self._source, self._answers, self._tally = inner, source, answers, tally
        self._width: int | None = inner.dimensions

    @property
    def dimensions(self) -> int | None:
        """Length of a vector; None while neither the file nor the embedder has told it."""
        return self._width

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return a row for each text; only those that are not kept are asked for, each once.

        They are kept request by request. A blank text is never sent; its row is zeros. Raises
        EmbedderError if the embedder can't answer; what was kept stays.
        """
        keys = {text: _key(self._source, text) for text in texts if text.strip()}
        rows = {text: self._answers.get(key) for text, key in keys.items()}
        self._tally.took(sum(row is not None for row in rows.values()))
        for some in batches(text for text, row in rows.items() if row is None):
            made = self._asked(some)
            self._answers.put(self._source, {keys[text]: row for text, row in made.items()})
            rows.update(made)
        found = {text: np.frombuffer(row, "<f4") for text, row in rows.items() if row}
        return self._stacked([found.get(text) for text in texts])

    def _asked(self, texts: Sequence[str]) -> dict[str, bytes]:
        try:
            made = self._inner.embed(texts)
        except EmbedderError:
            self._tally.missed()
            raise
        self._tally.asked_for(sum(map(text_tokens, texts)))
        return {text: row.astype("<f4").tobytes() for text, row in zip(texts, made, strict=True)}

    def _stacked(self, rows: Sequence[NDArray[np.float32] | None]) -> NDArray[np.float32]:
        widths = {len(row) for row in rows if row is not None}
        if self._width is None and not widths and rows:  # nothing but blanks so far
            widths = {self.embed(["dimensions"]).shape[1]}
        self._width = self._width or next(iter(widths), None)
        blank = np.zeros(self._width or 0, dtype=np.float32)
        made = [blank if row is None else row for row in rows]
        return np.stack(made) if made else np.zeros((0, len(blank)), dtype=np.float32)


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the texts in groups of which each is one request of an `OpenAIEmbedder`."""
    batch: list[str] = []
    room = BATCH_BYTES
    for text in texts:
        size = min(len(text.encode("utf-8", "replace")), TEXT_BYTES)
        if batch and (len(batch) == BATCH or size > room):
            yield batch
            batch, room = [], BATCH_BYTES
        batch.append(text)
        room -= size
    if batch:
        yield batch


def tokens(text: str) -> int:
    """Return about how many tokens a text has: a quarter of its characters, rounded up."""
    return -(-len(text) // 4)


def text_tokens(text: str) -> int:
    """Return about how many tokens of a text are embedded: what is cut off is not counted."""
    return tokens(text[:TEXT_BYTES])


def message_tokens(messages: Iterable[Mapping[str, str]]) -> int:
    """Return about how many tokens the messages of a chat request have."""
    return sum(tokens(one["content"]) + MESSAGE for one in messages)


def _key(source: str, asked: object) -> bytes:
    said = json.dumps([source, asked], ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(said).digest()
