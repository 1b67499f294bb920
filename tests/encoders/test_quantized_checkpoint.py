"""A 4-bit checkpoint becomes an equal model folder; inconsistent files are rejected."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.encoders import quantized_file
from tests.encoders.quantized_file import (
    CHARACTER_MAP,
    SPECIAL_TOKENS,
    WORDS,
    checkpoint_bytes,
    tensors,
)

from tertium.core.errors import ModelError
from tertium.encoders import load_encoder
from tertium.encoders.e5.quantized_checkpoint import (
    QuantizedModel,
    compile_replacements,
    read_quantized,
    unpack_model,
)


def write(folder: Path, content: bytes) -> Path:
    file = folder / "tiny.bin"
    file.write_bytes(content)
    return file


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> QuantizedModel:
    return read_quantized(write(tmp_path_factory.mktemp("checkpoint"), checkpoint_bytes()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tokenizers")
    home = tmp_path_factory.mktemp("unpacked")
    unpack_model(write(home, checkpoint_bytes()), home / "model")
    return home / "model"


def test_every_value_is_read(model: QuantizedModel) -> None:
    assert model.vocabulary == (*SPECIAL_TOKENS, *WORDS)
    assert dict(model.special_ids) == {"bos": 0, "eos": 2, "pad": 1, "unk": 3}
    assert model.character_map == CHARACTER_MAP
    assert (model.scores == -np.arange(len(model.vocabulary)) / 4).all()
    assert list(model.tensors) == list(quantized_file.shapes())
    for name, value in tensors().items():
        assert (model.tensor(name, *value.shape) == value).all(), name


def test_a_tensor_must_have_the_shape_of_the_header(model: QuantizedModel) -> None:
    with pytest.raises(ModelError, match=r"emb\.pos has 768 values"):
        model.tensor("emb.pos", 24, 33)
    with pytest.raises(ModelError, match="no tensor l9"):
        model.tensor("l9.q.w", 32, 32)


def test_a_truncated_file_is_rejected(tmp_path: Path) -> None:
    complete = checkpoint_bytes()
    for length in (*range(0, 900, 7), *range(900, len(complete), 997), len(complete) - 1):
        with pytest.raises(
            ModelError, match=r"tiny\.bin is (incomplete or damaged|not a 4-bit checkpoint)"
        ):
            read_quantized(write(tmp_path, complete[:length]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"magic": b"GGUF"}, "not a 4-bit checkpoint"),
        ({"version": 2}, "version 2"),
        ({"heads": 5}, "do not divide among 5 heads"),
        ({"heads": 0}, "invalid header"),
        ({"text_length": 1 << 60}, "incomplete or damaged"),
        ({"text_length": 3}, "not in order"),
        ({"map_length": 5}, "incomplete or damaged"),
        ({"map_length": (1 << 32) - 1}, "incomplete or damaged"),
        ({"vocabulary": ["x"] * 41}, "41 tokens"),
        ({"vocabulary": ["<s>"]}, "1 tokens with special ids"),
        ({"counts": {"emb.word": 32}}, "has 32 values"),
        ({"counts": {"emb.word": 33}}, "has 33 values"),
        ({"counts": {"emb.ln.w": (1 << 32) - 1}}, "has 4294967295 values"),
        ({"kinds": {"emb.pos": 7}}, "unknown type 7"),
        ({"offsets": {"l1.q.w": 1 << 62}}, "incomplete or damaged"),
    ],
)
def test_an_inconsistent_file_is_rejected(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        read_quantized(write(tmp_path, checkpoint_bytes(**change)))  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(position=st.integers(0, 1200), value=st.integers(0, 255))
def test_a_changed_byte_gives_a_model_or_a_one_line_error(
    tmp_path_factory: pytest.TempPathFactory, position: int, value: int
) -> None:
    content = bytearray(checkpoint_bytes())
    content[position] = value
    message = ""
    try:
        read_quantized(write(tmp_path_factory.mktemp("changed"), bytes(content)))
    except ModelError as error:
        message = str(error)
    assert "\n" not in message


def test_transformers_loads_the_folder(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    network = transformers.AutoModel.from_pretrained(folder).eval()
    state = network.state_dict()
    expected = tensors()
    assert (state["embeddings.word_embeddings.weight"].numpy() == expected["emb.word"]).all()
    assert (state["encoder.layer.1.output.dense.weight"].numpy() == expected["l1.fo.w"]).all()
    assert (
        state["encoder.layer.0.attention.output.LayerNorm.bias"].numpy() == expected["l0.aln.b"]
    ).all()
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


def test_equal_files_give_equal_weights(folder: Path, tmp_path: Path) -> None:
    unpack_model(write(tmp_path, checkpoint_bytes()), tmp_path / "again")
    names = ("model.safetensors", "tokenizer.json")
    hashes = [
        [hashlib.sha256((home / name).read_bytes()).hexdigest() for name in names]
        for home in (folder, tmp_path / "again")
    ]
    assert hashes[0] == hashes[1]


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
