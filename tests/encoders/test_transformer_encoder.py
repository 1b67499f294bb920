"""All architectures run up to the requested layer and pool as their settings say."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import change_json

from tertium.core.errors import ModelError, UsageError
from tertium.core.runtime import runtime
from tertium.encoders import load_encoder
from tertium.encoders.transformer_encoder import TransformerEncoder

torch = pytest.importorskip("torch")
network = importlib.import_module("tertium.encoders.encoder_network")

ARCHITECTURES = ["bert", "roberta", "mpnet", "distilbert", "albert", "t5", "xlm-roberta"]
TEXTS = [
    "The cat sat on the mat.",
    "a dog",
    "",
    "the unseens went home , the dog barked loudly !",
    "A dog",
    "xyzzy",
]
TinyModel = Callable[[str], Path]


def hidden_states(folder: Path, text: str) -> tuple[list[np.ndarray], list[str]]:
    """Return AutoModel's states and tokens of one text, without special tokens."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    model = model.get_encoder() if model.config.is_encoder_decoder else model
    given = tokenizer(text, return_tensors="pt", truncation=True, return_special_tokens_mask=True)
    keep = given.pop("special_tokens_mask")[0].numpy() == 0
    with torch.no_grad():
        states = model(input_ids=given["input_ids"], output_hidden_states=True).hidden_states
    tokens: Any = tokenizer.convert_ids_to_tokens(given["input_ids"][0][keep].tolist())
    return [state[0].numpy()[keep] for state in states], tokens


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_token_vectors_equal_automodel(kind: str, tiny_model: TinyModel) -> None:
    folder = tiny_model(kind)
    expected = [hidden_states(folder, text) for text in TEXTS]
    for layer in range(4):
        found = load_encoder(f"dir/{folder}@{layer}").encode(TEXTS)
        for row, (states, tokens) in enumerate(expected):
            assert list(found.tokens[row]) == tokens
            np.testing.assert_allclose(found.token_vectors(row), states[layer], atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "albert", "t5"])
def test_all_layers_and_some_layers(kind: str, tiny_model: TinyModel) -> None:
    folder = tiny_model(kind)
    single = [load_encoder(f"dir/{folder}@{layer}").encode(TEXTS).vectors for layer in range(4)]
    everything = load_encoder(f"dir/{folder}@all")
    assert (everything.layers, everything.dim) == (4, 64)
    np.testing.assert_allclose(
        everything.encode(TEXTS).vectors, np.concatenate(single, axis=1), atol=1e-6
    )
    some = load_encoder(f"dir/{folder}@1+3").encode(TEXTS).vectors
    np.testing.assert_allclose(some, np.concatenate(single[1::2], axis=1), atol=1e-6)


def test_only_layers_up_to_the_requested_one_run(tiny_model: TinyModel) -> None:
    encoder = load_encoder(f"dir/{tiny_model('bert')}@1")
    assert isinstance(encoder, TransformerEncoder)
    calls: list[str] = []
    for number, layer in enumerate(encoder.network.layers):
        layer.register_forward_pre_hook(lambda *_, n=number: calls.append(f"layer {n}"))
    encoder.encode(["the cat"], sentences=False)
    assert calls == ["layer 0"]
    calls.clear()
    encoder.encode(["the cat"], tokens=False)
    assert calls == ["layer 0", "layer 1", "layer 2"]


def test_a_batch_that_exceeds_the_memory_is_split(
    tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(f"dir/{tiny_model('bert')}@2")
    texts = [*TEXTS, "the cat sat", "sat the cat", "cat sat the", "sat cat the"]  # equally long
    expected = encoder.encode(texts)
    run, sizes = network.EncoderNetwork.__call__, []

    def small_device(self: Any, rows: Sequence[Any], *rest: Any) -> Any:
        sizes.append(len(rows))
        if len(rows) > 2:
            raise torch.OutOfMemoryError("out of memory")
        return run(self, rows, *rest)

    monkeypatch.setattr(network.EncoderNetwork, "__call__", small_device)
    found = encoder.encode(texts)
    assert max(sizes) > 2
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-6)
    np.testing.assert_allclose(found.sentences, expected.sentences, atol=1e-6)


@pytest.mark.parametrize("mode", ["cls", "mean"])
def test_sentence_vectors_equal_sentence_transformers(
    mode: str, tiny_model: TinyModel, tmp_path: Path
) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    parts = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    base = pytest.importorskip("sentence_transformers.base.modules")
    folder = tmp_path / "model"
    pooling = parts.Pooling(16, pooling_mode=mode)
    dense = base.Dense(16, 6)
    model = sentence_transformers.SentenceTransformer(
        modules=[
            base.Transformer(str(tiny_model("bert"))),
            pooling,
            dense,
            base.Normalize(),
        ],
        device="cpu",
    )
    model.save(str(folder))
    texts = [text for text in TEXTS if text]
    encoder = load_encoder(f"dir/{folder}")
    assert encoder.sentence_dim == 6
    np.testing.assert_allclose(encoder.encode(texts).sentences, model.encode(texts), atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"pooling_mode": "max"}, "'max'"),
        ({"pooling_mode": "lasttoken"}, "'lasttoken'"),
        ({"pooling_mode": ["mean", "cls"]}, r"'mean \+ cls'"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, r"'cls \+ mean'"),
        ({"pooling_mode_weightedmean_tokens": True}, "'pooling_mode_weightedmean_tokens'"),
        ({"pooling_mode_mean_tokens": False}, "'none'"),
    ],
)
def test_other_pooling_modes_are_refused(
    settings: dict[str, object], found: str, tiny_model: TinyModel, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_model("bert"), tmp_path / "model")
    module = {"idx": 1, "name": "1", "path": "pool", "type": "sentence_transformers.models.Pooling"}
    (folder / "modules.json").write_text(json.dumps([module]))
    (folder / "pool").mkdir()
    (folder / "pool" / "config.json").write_text(json.dumps(settings))
    expected = (
        rf"pool/config.json: pooling mode {found} is not supported: expected one of cls, mean"
    )
    with pytest.raises(ModelError, match=expected):
        load_encoder(f"dir/{folder}")


def test_models_that_expect_lower_cased_texts_are_refused(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_model("bert"), tmp_path / "model")
    module = {"path": "", "type": "sentence_transformers.models.Transformer"}
    (folder / "modules.json").write_text(json.dumps([module]))
    settings = folder / "sentence_bert_config.json"
    settings.write_text(json.dumps({"max_seq_length": 512, "do_lower_case": False}))
    load_encoder(f"dir/{folder}")
    settings.write_text(json.dumps({"max_seq_length": 512, "do_lower_case": True}))
    with pytest.raises(ModelError, match=r"sentence_bert_config\.json: do_lower_case is not"):
        load_encoder(f"dir/{folder}", precision="bf16")


def test_a_long_text_is_truncated_and_counted(tiny_model: TinyModel) -> None:
    encoder = load_encoder(f"dir/{tiny_model('bert')}@2")
    assert encoder.max_length == 20
    fits, long = " ".join(["cat"] * 18), " ".join(["cat"] * 19)
    found = encoder.encode([fits, long, "a dog"])
    assert found.truncated.tolist() == [False, True, False]
    assert found.lengths.tolist() == [18, 18, 2]
    assert encoder.find_truncated([fits, long, "a dog", long]) == {long}


def test_bf16_vectors_are_close_and_have_bf16_values(tiny_model: TinyModel) -> None:
    folder = tiny_model("bert")
    exact = load_encoder(f"dir/{folder}@2").encode(TEXTS).vectors
    rounded = load_encoder(f"dir/{folder}@2", precision="bf16").encode(TEXTS).vectors
    assert not (rounded.view(np.uint32) & 0xFFFF).any()
    norms = np.linalg.norm(exact, axis=1) * np.linalg.norm(rounded, axis=1)
    cosines = (exact * rounded).sum(axis=1) / norms
    assert cosines.min() > 0.999
    assert not np.array_equal(exact, rounded)


@pytest.mark.parametrize(
    ("layer", "device", "precision", "message"),
    [
        ("", "cpu", "fp16", "fp16 needs a GPU"),
        pytest.param(
            *("", "cuda", "fp32", "device cuda is not available"),
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
        ("@7", "cpu", "fp32", "layers 0 to 3: there is no layer 7"),
    ],
)
def test_settings_that_the_model_or_the_machine_lacks_are_refused(
    layer: str, device: str, precision: Any, message: str, tiny_model: TinyModel
) -> None:
    with runtime(device=device), pytest.raises(UsageError, match=message):
        load_encoder(f"dir/{tiny_model('bert')}{layer}", precision=precision).encode(["a cat"])


def test_weights_that_do_not_match_the_config_are_rejected(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    folder = tmp_path / "mixed"
    shutil.copytree(tiny_model("bert"), folder)
    change_json(folder / "config.json", num_hidden_layers=5)
    with pytest.raises(ModelError, match="do not fit its config"):
        load_encoder(f"dir/{folder}").encode(["a cat"])


def test_the_fingerprint_depends_on_everything_that_changes_vectors(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    folder = tiny_model("bert")
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    names = [f"dir/{folder}@1", f"dir/{folder}@2"]
    prints = {load_encoder(name).fingerprint("tokens") for name in names}
    prints.add(load_encoder(names[0], precision="bf16").fingerprint("tokens"))
    prints.add(load_encoder(names[0]).fingerprint("sentences"))
    assert load_encoder(f"dir/{other}@1").fingerprint("tokens") in prints  # same files
    change_json(other / "tokenizer_config.json", model_max_length=9)
    load_encoder.__globals__["_load"].cache_clear()
    prints.add(load_encoder(f"dir/{other}@1").fingerprint("tokens"))
    assert len(prints) == 5
    sentences = [load_encoder(name).fingerprint("sentences") for name in names]
    assert sentences[0] == sentences[1]


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("config.json", "num_attention_heads", 6),
        ("tokenizer_config.json", "model_max_length", 100),
        ("1_Pooling/config.json", "include_prompt", False),
    ],
)
def test_changed_settings_of_a_known_model_change_the_signature(
    file: str, key: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder("minilm")
    assert isinstance(encoder, TransformerEncoder)
    assert encoder.signature_fields()["model"] == f"minilm@{encoder.weights_hash[:8]}"
    folder = shutil.copytree(encoder.weights.folder, tmp_path / "minilm")
    change_json(folder / file, **{key: value})
    monkeypatch.setenv("TERTIUM_MODELS", str(tmp_path))
    changed = load_encoder.__globals__["_load"].__wrapped__("minilm", "fp32", False, "cpu")
    assert changed.weights.folder == folder
    name, _, suffix = changed.signature_fields()["model"].partition("+")
    assert name == f"minilm@{encoder.weights_hash[:8]}"
    assert suffix == changed.settings.hash[:8]


def test_tokenizer_with_more_ids_than_embeddings_is_refused(
    tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(tiny_model("bert"), tmp_path / "model")
    size = json.loads((folder / "config.json").read_text())["vocab_size"]
    change_json(folder / "tokenizer.json", model={"vocab": {"extra": size}})
    encoder = load_encoder(f"dir/{folder}")
    with pytest.raises(ModelError, match=r"has ids up to \d+, but the model has only \d+ embed"):
        encoder.encode(["a text"])
