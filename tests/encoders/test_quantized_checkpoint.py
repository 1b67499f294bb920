"""A 4-bit checkpoint becomes an equal model folder."""

from __future__ import annotations

import itertools
import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.encoders.quantized_file import LAYERS, checkpoint_bytes, tensors

from tertium.core.errors import ModelError
from tertium.encoders import load_encoder
from tertium.encoders.e5_checkpoint import (
    EMBEDDING_TENSORS,
    LAYER_TENSORS,
    compile_replacements,
    unpack_model,
)


def write(folder: Path, content: bytes) -> Path:
    file = folder / "tiny.bin"
    file.write_bytes(content)
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tokenizers")
    home = tmp_path_factory.mktemp("unpacked")
    unpack_model(write(home, checkpoint_bytes()), home / "model")
    return home / "model"


def test_transformers_loads_the_folder(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    network = transformers.AutoModel.from_pretrained(folder).eval()
    state = network.state_dict()
    expected = tensors()
    names = {**EMBEDDING_TENSORS}
    for layer, (part, name) in itertools.product(range(LAYERS), LAYER_TENSORS.items()):
        names[f"l{layer}.{part}.w"] = f"encoder.layer.{layer}.{name}.weight"
        names[f"l{layer}.{part}.b"] = f"encoder.layer.{layer}.{name}.bias"
    assert {*names} == {*expected}
    for stored_name, name in names.items():
        assert (state[name].numpy() == expected[stored_name]).all(), name
    assert network.config.layer_norm_eps == 1e-12
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer.convert_ids_to_tokens(tokenizer("the cat\tsat！").input_ids) == [
        "<s>",
        "▁the",
        "▁cat",
        "▁sat",
        "!",
        "</s>",
    ]
    assert tokenizer.mask_token == "<mask>"


def test_the_prompt_precedes_every_text_and_has_no_vectors(folder: Path) -> None:
    pytest.importorskip("torch")
    encoder = load_encoder(f"dir/{folder}")
    assert encoder.signature_fields()["prefix"] == "query"
    found = encoder.encode(["the cat", ""])
    assert found.tokens == (("▁the", "▁cat"), ())
    assert found.sentences[1].any()
    plain = folder.parent / "plain"
    if not plain.exists():
        plain.mkdir()
        for file in folder.iterdir():
            if file.is_file() and file.name != "config_sentence_transformers.json":
                (plain / file.name).write_bytes(file.read_bytes())
        (plain / "1_Pooling").symlink_to(folder / "1_Pooling")
    without_prompt = load_encoder(f"dir/{plain}")
    assert "prefix" not in without_prompt.signature_fields()
    assert without_prompt.fingerprint("tokens") != encoder.fingerprint("tokens")
    explicit = without_prompt.encode(["query: the cat"])
    assert explicit.tokens == (("▁que", "ry", ":", "▁the", "▁cat"),)
    assert np.allclose(explicit.vectors[3:], found.vectors, atol=1e-5)
    assert np.allclose(explicit.sentences[0], found.sentences[0], atol=1e-6)


def test_a_prompt_that_merges_with_the_text_is_rejected(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for file in folder.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "modules.json").unlink()
    prompt = {"prompts": {"x": "the"}, "default_prompt_name": "x"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompt))
    with pytest.raises(ModelError, match="merges 'the' with the text after it"):
        load_encoder(f"dir/{tmp_path}").encode(["the cat"])


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=1),
        st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=3),
        max_size=40,
    )
)
def test_a_compiled_table_replaces_its_keys(replacements: dict[str, str]) -> None:
    normalizers = pytest.importorskip("tokenizers").normalizers
    table = normalizers.Precompiled(compile_replacements(replacements))
    for key, text in replacements.items():
        if not unicodedata.combining(key):
            assert table.normalize_str(f"{key}") == text
    others = [c for c in "abcxyzäß中가😀" if c not in replacements]
    for other in others:
        assert table.normalize_str(other) == other
