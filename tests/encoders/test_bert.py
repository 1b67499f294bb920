"""Our own forward pass gives the states of transformers without importing it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import gallery
from tests.builders import change_json
from tests.heavy import HEAVY, IMPORTED

from tertium.core.errors import ModelError
from tertium.encoders import load_encoder
from tertium.encoders.tokenizer import Tokenizer
from tertium.encoders.transformer_encoder import TransformerEncoder, open_network
from tertium.encoders.weight_files import find_installed_weights, read_tensors

torch = pytest.importorskip("torch")


from tertium.encoders.bert import read_bert_config  # noqa: E402
from tertium.encoders.encoder_network import EncoderNetwork, TransformersModel  # noqa: E402

KINDS = ["bert", "roberta", "xlm-roberta", "mpnet"]
# Sums of up to 3,072 fp32 values in another order, through 12 layers.
TOLERANCE = 1e-5
TinyModel = Callable[[str], Path]
WORDS = "It cost 3.5 million euros, they said; nobody in Zürich believed them. 漢字 ".split()


def reference_states(folder: Path, row: Sequence[int]) -> list[np.ndarray]:
    """Return the states of one text by transformers, layer by layer."""
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        found = model(input_ids=torch.tensor([row]), output_hidden_states=True)
    return [state[0].numpy() for state in found.hidden_states]


def own_states(network: EncoderNetwork, row: Sequence[int]) -> list[np.ndarray]:
    states, _ = network([row], range(network.depth + 1), None)
    return [state[0].numpy() for state in states]


@pytest.mark.parametrize("name", ["minilm", "e5", pytest.param("mpnet", marks=pytest.mark.slow)])
def test_every_layer_of_a_real_model_equals_transformers(name: str) -> None:
    if find_installed_weights(name) is None:
        pytest.skip(f"the weights of {name} are not installed")
    encoder = load_encoder(name)
    assert isinstance(encoder, TransformerEncoder)
    before, after = encoder.tokenizer.prefix_ids, encoder.tokenizer.suffix_ids
    for text in (" ".join(WORDS), " ".join(WORDS * 40)):  # the second fills all positions
        row = [*before, *encoder.encode_ids([text])[0][: encoder.max_tokens], *after]
        expected = reference_states(encoder.weights.folder, row)
        for number, own in enumerate(own_states(encoder.network, row)):
            scale = max(1.0, np.abs(expected[number]).max() / 10)  # minilm has states of size 10
            np.testing.assert_allclose(own, expected[number], atol=TOLERANCE * scale)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_only_rounding(kind: str, tiny_model: TinyModel) -> None:
    """As on a GPU, but run on a CPU."""
    folder = tiny_model(kind)
    model, layers = open_network(folder, "cpu", "fp32"), frozenset(range(4))
    rows = [[2, 8, 9, 3], [2, 5, 6, 7, 8, 9, 10, 3], [2, 3]]
    ids = torch.tensor([row + [1] * (8 - len(row)) for row in rows])
    mask = torch.arange(8)[None] < torch.tensor([[len(row)] for row in rows])
    with torch.inference_mode():
        padded = model.compute_states([ids], mask, layers)
        alone = [model.compute_states([torch.tensor([row])], None, layers) for row in rows]
    for layer in layers:
        for place, row in enumerate(rows):
            found = padded[layer][0][place, : len(row)]
            assert torch.allclose(found, alone[place][layer][0][0], atol=1e-6)


@pytest.mark.parametrize(
    "unsupported", [{"hidden_act": "relu"}, {"is_decoder": True}, {"model_type": "distilbert"}]
)
def test_unsupported_settings_are_left_to_transformers(
    unsupported: dict[str, Any], tiny_model: TinyModel, tmp_path: Path
) -> None:
    folder = copy_with(tiny_model("bert"), tmp_path / "other", unsupported)
    assert read_bert_config(folder) is None
    if unsupported == {"hidden_act": "relu"}:
        network = open_network(folder, "cpu", "fp32")
        assert isinstance(network, TransformersModel)
        row = [2, 9, 8, 7, 3]
        expected = reference_states(folder, row)
        for number, own in enumerate(own_states(network, row)):
            np.testing.assert_allclose(own, expected[number], atol=1e-6)


def copy_with(folder: Path, target: Path, settings: dict[str, Any]) -> Path:
    shutil.copytree(folder, target)
    change_json(target / "config.json", **settings)
    return target


def test_tensor_names_of_older_files_and_of_models_with_heads(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    from safetensors.torch import save_file

    folder = copy_with(tiny_model("bert"), tmp_path / "older", {})
    stored = read_tensors(folder)
    older = {
        f"bert.{n}".replace("LayerNorm.weight", "LayerNorm.gamma"): t for n, t in stored.items()
    }
    older = {n.replace("LayerNorm.bias", "LayerNorm.beta"): t.clone() for n, t in older.items()}
    save_file({**older, "cls.predictions.bias": torch.ones(3)}, folder / "model.safetensors")
    row = [2, 9, 8, 7, 3]
    networks = [open_network(f, "cpu", "fp32") for f in (tiny_model("bert"), folder)]
    for own, expected in zip(*(own_states(n, row) for n in networks), strict=True):
        assert np.array_equal(own, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: None, "layers.1.down.bias is missing"),
        (lambda t: t[:3], r"has shape \(3,\), expected \(16,\)"),
        (lambda t: t.int(), r"has type torch.int32"),
        (lambda t: t * np.nan, "down.bias has NaN or infinite numbers"),
        (lambda t: t + 3e38, "give NaN or infinite states"),
    ],
)
def test_invalid_weights_are_rejected(
    change: Callable[[Any], Any], message: str, tiny_model: TinyModel
) -> None:
    name = "encoder.layer.1.output.dense.bias"
    stored = read_tensors(tiny_model("bert"))
    stored[name] = change(stored[name])
    with pytest.raises(ModelError, match=message):
        open_network(tiny_model("bert"), "cpu", "fp32", lambda: stored)


@pytest.mark.parametrize("name", ["minilm", "mpnet", "e5"])
def test_a_tokenizer_loaded_without_transformers_gives_the_same_tokens(name: str) -> None:
    from transformers import AutoTokenizer

    place = find_installed_weights(name)
    if place is None:
        pytest.skip(f"the weights of {name} are not installed")
    theirs, ours = AutoTokenizer.from_pretrained(place[0]), Tokenizer(place[0])
    texts = [
        *sum(gallery.TEXTS.values(), ()),
        " ".join(WORDS),
        "<s> </s> <pad> <unk> <mask> [CLS] [SEP] [UNK] [MASK]",
    ]
    expected = [theirs(text, add_special_tokens=False)["input_ids"] for text in texts]
    assert ours.encode_ids(texts) == expected
    assert [*ours.prefix_ids, *ours.suffix_ids] == theirs("")["input_ids"]


PROGRAM = """
import sys
import tertium
segments = [tertium.Segment("a cat sat on the mat", None, ("the cat sat on a mat",))]
for spec in sys.argv[1:]:
    tertium.load_metric(spec).score(segments)
print(*sys.modules)
"""


def test_scoring_imports_neither_transformers_nor_a_compiler(
    minilm: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Use the imports of the test process if it scored every metric, else of a new process."""
    imported = request.config.stash.get(IMPORTED, None)
    if imported is not None:
        assert not imported
        return
    specs = [f"sss:encoder={minilm}", f"bertscore:encoder={minilm}", "tertium-small"]
    specs += ["bertscore:encoder=e5"] if find_installed_weights("e5") else []
    specs += ["tertium-base"] if find_installed_weights("mpnet") else []
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *specs],
        env={**os.environ, "TERTIUM_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not set(done.stdout.split()) & {*HEAVY}
