"""tertium-base: its arithmetic on a small random model, and the bundled weights."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import change_json

from tertium.core.errors import ModelError
from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.metrics.base.loading import load_metric
from tertium.metrics.bundled.bundled_model import ENCODER_PREFIX
from tertium.metrics.bundled.input_rows import Row
from tertium.metrics.bundled.tertium_base import TertiumBase

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers")

PAIRS = [  # hypothesis and reference
    ("the cat sat on the mat .", "a cat sat on a mat ."),
    ("the dog barked loudly !", "the dog went home"),
    ("", "the dog went home"),
    ("big house", "the big house , unseen"),
]
ROWS: list[Row] = [(hypothesis, None, reference) for hypothesis, reference in PAIRS]
TABLES = {
    "calibration": {"raw": [-2.0, 0.0, 2.0], "score": [0.1, 0.5, 0.9]},
    "uncertainty": {"score": [0.0, 1.0], "deviation": [0.2, 0.1]},
    "percentiles": {"score": [0.0, 1.0], "percent": [0.0, 100.0], "segments": 2},
}


@pytest.fixture(scope="module")
def tuned(tiny_model: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as the recipe writes it: a tiny mpnet with a delta of rank 3, and a head."""
    from recipes.flagship.package import low_rank_difference
    from recipes.flagship.ship import base_config
    from safetensors.torch import save_file
    from transformers import AutoModel

    from tertium.metrics.bundled.row_alignment import CrossHead

    torch.manual_seed(5)
    encoder = tiny_model("mpnet")
    public = AutoModel.from_pretrained(encoder).state_dict()
    prefixed = {ENCODER_PREFIX + name: value for name, value in public.items()}
    weights = {
        name: value + 0.3 * torch.randn(value.shape[0], 3) @ torch.randn(3, value.shape[1])
        if value.ndim == 2 and "layer" in name
        else value.clone()
        for name, value in prefixed.items()
        if value.is_floating_point()
    }
    head = {f"head.{name}": value for name, value in CrossHead(16).state_dict().items()}
    folder = tmp_path_factory.mktemp("base")
    save_file(
        low_rank_difference({**weights, **head}, prefixed, rank=3), folder / "weights.safetensors"
    )
    digest = hashlib.sha256((folder / "weights.safetensors").read_bytes()).hexdigest()
    config = {**base_config(f"dir/{encoder}", 1.5, -0.25), **TABLES, "weights_sha256": digest}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def plain_score(folder: Path, hypothesis: str, reference: str) -> float:
    """Score one pair with transformers: [CLS] reference [SEP] [SEP] hypothesis [SEP], mean."""
    from safetensors.torch import load_file
    from transformers import AutoModel, AutoTokenizer

    from tertium.metrics.bundled.bundled_model import apply_weight_delta

    config = json.loads((folder / "config.json").read_text())
    encoder = Path(config["encoder"].removeprefix("dir/"))
    model = AutoModel.from_pretrained(encoder).eval()
    weights = load_file(folder / "weights.safetensors")
    changes = {
        k.removeprefix(ENCODER_PREFIX): v
        for k, v in weights.items()
        if k.startswith(ENCODER_PREFIX)
    }
    model.load_state_dict(apply_weight_delta(model.state_dict(), changes))
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    h, r = (
        tokenizer(text, add_special_tokens=False)["input_ids"] for text in (hypothesis, reference)
    )
    start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    with torch.inference_mode():
        ids = torch.tensor([[start, *r, end, end, *h, end]])
        pooled = model(input_ids=ids).last_hidden_state[0].mean(dim=0)
        w1, b1, w2, b2 = (
            weights[f"head.{n}"].float() for n in ("1.weight", "1.bias", "4.weight", "4.bias")
        )
        inner = torch.nn.functional.gelu(w1 @ pooled + b1)
        return float((w2 @ inner + b2)[0]) * config["scale"] + config["shift"]


def test_raw_scores_equal_a_plain_forward_pass(tuned: Path) -> None:
    metric = TertiumBase(precision="fp32", folder=str(tuned))
    scores = metric.raw_scores(ROWS)
    expected = [plain_score(tuned, h, r) for h, r in PAIRS]
    np.testing.assert_allclose(scores, expected, atol=2e-5)


def test_scores_are_calibrated_and_a_copy_scores_one(tuned: Path) -> None:
    metric: Any = load_metric(f"tertium-base:precision=fp32,folder={tuned}")
    segments = [Segment(h, None, (r,)) for h, r in [*PAIRS, ("the cat", "the cat")]]
    scores = metric.segment_scores(segments)
    assert scores[-1] == 1.0
    assert ((scores[:-1] > 0) & (scores[:-1] < 1)).all()
    raw = metric.raw_scores(ROWS[3:])
    assert scores[3] == pytest.approx(float(metric.human_scale().calibrate(raw)[0]))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("scale", 3.0),
        ("shift", 0.5),
        ("positions", 8),
        ("calibration", {"raw": [-2.0, 0.0, 2.0], "score": [0.2, 0.6, 0.8]}),
    ],
)
def test_same_weights_with_other_settings_are_another_model(
    tuned: Path, tmp_path: Path, setting: str, value: Any
) -> None:
    """Scores differ, and cached scores of the other model are not used."""
    segments = [Segment(h, None, (r,)) for h, r in PAIRS]
    metric = TertiumBase(precision="fp32", folder=str(tuned))
    scores = metric.score(segments)
    copy = shutil.copytree(tuned, tmp_path / "copy")
    assert TertiumBase(precision="fp32", folder=str(copy)) == metric
    change_json(copy / "config.json", **{setting: value})
    other = TertiumBase(precision="fp32", folder=str(shutil.copytree(copy, tmp_path / "other")))
    other_scores = other.score(segments)
    with runtime(cache=False, memory=0):
        np.testing.assert_array_equal(other.score(segments).segments, other_scores.segments)
    assert not (other_scores.segments == scores.segments).all()
    assert other_scores.signature != scores.signature
    assert other != metric


def test_long_texts_are_truncated_and_counted(tuned: Path) -> None:
    metric = TertiumBase(precision="fp32", folder=str(tuned))
    long = Segment("the cat " * 30, None, ("the dog",))
    assert metric.score([long]).warnings["truncated text"] == 1
    assert metric.reader.max_length == 20


def test_wrong_encoder_raises_an_error(tuned: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tuned, tmp_path / "copy")
    change_json(copy / "config.json", encoder_sha256="0" * 64)
    with pytest.raises(ModelError, match="needs the encoder"):
        TertiumBase(precision="fp32", folder=str(copy)).raw_scores(ROWS)
