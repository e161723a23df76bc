"""How the loaders read: lines of JSON, values of the right type, and counts that must agree.

What is wrong is said by file, line and count, never by what stands there.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from dellm.errors import InvalidInput

Row = Mapping[str, Any]
Value = TypeVar("Value")
Key = TypeVar("Key")


@contextmanager
def shape_of(what: str) -> Iterator[None]:
    """Raise InvalidInput, without the content, where a block finds another shape than `what`."""
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        # from None: the error above carries what was read
        raise InvalidInput(f"The data do not have the shape of {what}.") from None


def existing(folder: Path, *names: str) -> Path:
    """Return the first file of a folder that is there; raise InvalidInput if none is."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise InvalidInput(f"{folder.name}/ holds no {' or '.join(names)}.")


def json_of(path: Path) -> Any:
    """Return what a JSON file holds; raise InvalidInput if it is none."""
    with shape_of(f"JSON in UTF-8 ({path.name})"):
        return json.loads(path.read_text("utf-8"))


def rows_of(path: Path, make: Callable[[Row], Value]) -> tuple[Value, ...]:
    """Make a value of each line of a JSON Lines file, or of each element of one JSON list.

    A file whose name ends in .gz is unpacked.

    Raises InvalidInput that names the file and the row (from 1) which has another shape.
    """
    made = []
    for place, row in enumerate(_raw(path), 1):
        with shape_of(f"{path.name}, row {place}"):
            made.append(make(typed(row, dict)))
    return tuple(made)


def _raw(path: Path) -> Iterable[Any]:
    raw = path.read_bytes()
    if path.suffix == ".gz":
        raw = _unpacked(raw, path.name)
    with shape_of(f"UTF-8 ({path.name})"):
        text = raw.decode()
    if text.lstrip().startswith("["):
        with shape_of(f"a list in JSON ({path.name})"):
            return list(json.loads(text))
    return _lines(text, path.name)


def _unpacked(raw: bytes, name: str) -> bytes:
    with suppress(OSError, EOFError, zlib.error):
        return gzip.decompress(raw)
    raise InvalidInput(f"{name} is not a whole gzip file.")


def _lines(text: str, name: str) -> Iterator[Any]:
    # split("\n"), not splitlines(): U+2028 and others may stand in a JSON string
    for place, line in enumerate(text.split("\n"), 1):
        if line.strip():
            with shape_of(f"JSON Lines ({name}, line {place})"):
                row = json.loads(line)
            yield row


def typed(value: object, kind: type[Value]) -> Value:
    """Return a value of a type; raise TypeError if it has another."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(kind.__name__)
    return value


def texts(value: object) -> tuple[str, ...]:
    """Return a list of texts; raise TypeError for anything else."""
    return tuple(typed(one, str) for one in typed(value, list))


def counted(what: str, found: int, official: int) -> None:
    """Raise InvalidInput if a count is not the official one."""
    if found != official:
        raise InvalidInput(f"There are {found} {what} where the data set has {official}.")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, tuple[Value, ...]]:
    """Return the values of each key, in their order."""
    made: dict[Key, list[Value]] = {}
    for key, value in pairs:
        made.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in made.items()}
