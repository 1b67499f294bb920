"""COMET's estimators, read from a folder: the numbers of unbabel-comet 2.2.7.

Expected scores are those of its models (`prepare_sample`, `predict_step`) over the same tiny
folders, row by row, with torch 2.13 and transformers 5.22; its batches agree to 1e-6. To run under
that transformers it was given another tokenizer class, a forward pass of the encoder that reads
hidden states by name, and XLM-R's way to join two texts (start A end end B end), which these values
therefore do not check; sparsemax_patch was given to it as softmax, as its loader does.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.compat.tiny_comet import save_checkpoint, save_comet

from tertium.compat import comet
from tertium.compat.comet_metric import COMET
from tertium.core.errors import DataError, MissingInputError, MissingResourceError, ModelError
from tertium.core.registry import METRICS
from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.metrics.base.scorer import format_signature
from tertium.testing import METRIC_CHECKS, check_metric, check_perfect_beats_unrelated

pytestmark = pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers")

SEGMENTS = [
    Segment("the cat sat on the mat", "a cat on mat .", ("the cat sat on a mat .",)),
    Segment("a dog barked loudly !", "unseen dogs barked", ("the dog barked",)),
    Segment("", "a house", ("the big house",)),
    Segment("the " * 24 + "cat", "go home", ("went home",)),  # longer than the encoder
]
EXPECTED: list[tuple[str, dict[str, Any], list[float]]] = [
    ("regression_metric", {}, [1.099211, 1.184829, 1.084556, 1.156693]),
    (
        "regression_metric",
        {"layer_transformation": "sparsemax", "layer_norm": False, "pool": "max"},
        [2.023504, 2.079220, 1.932204, 1.698266],
    ),
    ("regression_metric", {"layer": 2, "pool": "cls"}, [-0.275741, -0.087217, 0.088163, -0.295702]),
    ("referenceless_regression_metric", {}, [0.903851, 0.715303, 0.615975, 0.859870]),
    (
        "unified_metric",
        {"input_segments": ["mt", "src"], "layer_transformation": "sparsemax_patch"},
        [1.023321, 1.027771, 1.018998, 1.026926],
    ),
    (
        "unified_metric",
        {"input_segments": ["mt", "src", "ref"], "final_activation": "Sigmoid"},
        [0.736550, 0.736085, 0.734513, 0.736397],
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_comet(tmp_path_factory.mktemp("comet") / "tiny-comet-da")


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A folder to damage."""
    return Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.mark.parametrize(("kind", "changes", "expected"), EXPECTED)
def test_scores_equal_unbabel_comet(
    kind: str, changes: dict[str, Any], expected: list[float], tmp_path: Path
) -> None:
    metric = COMET(model=str(save_comet(tmp_path / "model", kind, **changes)))
    np.testing.assert_allclose(metric.score(SEGMENTS).segments, expected, atol=2e-6)


def test_comet_passes_the_metric_checks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tertium.testing

    checks = [c for c in METRIC_CHECKS if c is not check_perfect_beats_unrelated]
    monkeypatch.setattr(tertium.testing, "METRIC_CHECKS", checks)  # the weights are random
    monkeypatch.setitem(METRICS.builtin, "comet", "tertium.compat.comet_metric:COMET")  # type: ignore[index]
    check_metric(COMET(model=str(folder)))
    check_metric(f"comet:model={folder},references=mean")


def test_batches_and_threads_change_no_bit(folder: Path) -> None:
    metric, many = COMET(model=str(folder)), [*SEGMENTS * 3, *SEGMENTS[:1]]
    with runtime(threads=1, batch_size=1):
        alone = metric.statistics(many)
    with runtime(threads=3, batch_size=8):
        np.testing.assert_array_equal(metric.statistics(many), alone)


def test_several_references(folder: Path) -> None:
    texts = ("the cat sat", "a dog")
    both = [Segment("the cat", "a cat", texts), SEGMENTS[0]]
    alone = [Segment("the cat", "a cat", (text,)) for text in texts]
    each = COMET(model=str(folder)).score(alone).segments
    assert COMET(model=str(folder)).score(both).segments[0] == max(each)
    mean = COMET(model=str(folder), references="mean").score(both).segments[0]
    assert mean == pytest.approx(np.mean(each))


@pytest.mark.parametrize("kind", ["regression_metric", "unified_metric"])
def test_truncated_texts_are_counted(kind: str, tmp_path: Path) -> None:
    metric = COMET(model=str(save_comet(tmp_path / "model", kind)))
    room = metric._estimator.positions - 4
    cut = "truncated text"
    assert cut not in metric.score(SEGMENTS[:3]).warnings
    assert metric.score([*SEGMENTS, SEGMENTS[3]]).warnings[cut] == 2  # the same text twice
    full, longer = (Segment("cat " * size, "a", ("a",)) for size in (room, room + 1))
    together = int(kind == "unified_metric")  # whose texts share the positions of one row
    assert metric.score([full]).warnings.get(cut, 0) == together
    assert metric.score([longer]).warnings[cut] == 1
    short = Segment("cat " * (room // 2), "cat " * (room // 2), ("a",))
    assert metric.score([short]).warnings.get(cut, 0) == together
    both = Segment("the " * 21, "the " * 22, ("a",))  # two texts of one row
    assert f"|trunc:{2 - together}|" in metric.score([both]).signature


def test_required_inputs_depend_on_the_model(tmp_path: Path) -> None:
    kiwi = save_comet(tmp_path / "kiwi", "unified_metric", input_segments=["mt", "src"])
    assert COMET(model=str(kiwi)).required_inputs == {"source"}
    with pytest.raises(MissingInputError, match="needs the source"):
        COMET(model=str(kiwi)).score([Segment("a", None, ("b",))])
    assert COMET().required_inputs == {"source", "references"}


def test_signature_and_hash_follow_the_weights(folder: Path, copy: Path) -> None:
    from safetensors.numpy import load_file, save_file

    metric = COMET(model=str(folder))
    name, digest = metric.model_ids[0].split("@")
    assert (name, [*map(len, digest.split("+"))]) == ("comet", [8, 8])
    assert f"|weights:tiny-comet-da@{digest}|" in format_signature(metric, SEGMENTS)
    weights = load_file(copy / "model.safetensors")
    weights["estimator.ff.6.bias"] += 1
    save_file(weights, copy / "model.safetensors")
    changed = COMET(model=str(copy))
    assert changed.model_ids != metric.model_ids
    moved = changed.score(SEGMENTS).segments - metric.score(SEGMENTS).segments
    np.testing.assert_allclose(moved, 1, atol=1e-5)


def test_signature_and_scores_follow_the_settings(copy: Path) -> None:
    """The same weights under other settings, or another tokenizer, are another model."""
    metric, file = COMET(model=str(copy)), copy / "hparams.yaml"
    results = [metric.score(SEGMENTS)]
    file.write_text(file.read_text().replace("pool: avg", "pool: max"))
    results.append(metric.score(SEGMENTS))
    words = copy / "encoder" / "tokenizer.json"
    words.write_text(words.read_text().replace('"cat"', '"tac"'))
    results.append(metric.score(SEGMENTS))
    assert len({scores.signature for scores in results}) == 3
    assert len({scores.segments.tobytes() for scores in results}) == 3
    file.write_text(file.read_text().replace("batch_size: 4", "batch_size: 8"))  # of training
    assert metric.score(SEGMENTS).signature == results[-1].signature


def test_signature_names_reference_reduction(folder: Path, tmp_path: Path) -> None:
    several = [Segment("the cat", "a cat", ("the cat sat", "a dog"))]
    assert "|refs:mean|" in format_signature(COMET(model=str(folder), references="mean"), several)
    assert "|refs:" not in format_signature(COMET(model=str(folder), references="mean"), SEGMENTS)
    kiwi = save_comet(tmp_path / "kiwi", "unified_metric", input_segments=["mt", "src"])
    assert "|refs:" not in format_signature(COMET(model=str(kiwi), references="mean"), several)


def test_a_checkpoint_is_not_unpickled(copy: Path) -> None:
    save_checkpoint(copy)
    with pytest.raises(ModelError, match=r"only as checkpoints/model.ckpt, a pickle file.*convert"):
        COMET(model=str(copy)).score(SEGMENTS)


HPARAMS = {
    "pool: [1": "hparams.yaml cannot be read",
    "pool: avg\npool: cls": "a key appears twice",
    "- 1": "contains no settings",
    "class_identifier: xcomet_metric": "class_identifier is the text 'xcomet_metric'",
    "class_identifier: unified_metric\ninput_segments: [src]": "input_segments are src, expected",
    "class_identifier: unified_metric\nencoder_model: BERT": "unified metrics with BERT are not",
    "class_identifier: regression_metric\npool: default": "pool is the text 'default'",
    "class_identifier: regression_metric\nlayer: 9": "requires layer 9 of 3",
    "class_identifier: regression_metric\nactivations: Swish": "unknown activation 'Swish'",
    "class_identifier: regression_metric\nhidden_sizes: [5]": "do not fit|has no|unexpected 'ff",
}


@pytest.mark.parametrize("content", HPARAMS)
def test_invalid_settings_are_errors(copy: Path, content: str) -> None:
    (copy / "hparams.yaml").write_text(content)
    with pytest.raises(ModelError, match=HPARAMS[content]):
        COMET(model=str(copy)).score(SEGMENTS)


def test_missing_files_are_errors(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(copy / "hub"))
    shutil.rmtree(copy / "encoder")
    with pytest.raises(MissingResourceError, match="was trained from tiny: put"):
        COMET(model=str(copy)).score(SEGMENTS)
    (copy / "hparams.yaml").unlink()
    with pytest.raises(ModelError, match="not a COMET checkpoint"):
        COMET(model=str(copy)).score(SEGMENTS)
    with pytest.raises(MissingResourceError, match="give the folder of a COMET checkpoint"):
        COMET().score(SEGMENTS)


@pytest.mark.parametrize("drop", ["estimator.ff.0.bias", "layerwise_attention.gamma"])
def test_incomplete_weights_are_errors(copy: Path, drop: str) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    del weights[drop]
    save_file(weights, copy / "model.safetensors")
    with pytest.raises(ModelError, match="missing"):
        COMET(model=str(copy)).score(SEGMENTS)
    (copy / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="damaged"):
        COMET(model=str(copy)).score(SEGMENTS)


def test_comet_calls_accept_a_folder(folder: Path) -> None:
    data = [{"src": s.source, "mt": s.hypothesis, "ref": s.references[0]} for s in SEGMENTS]
    for path in (folder, folder / "checkpoints" / "model.ckpt"):
        results = comet.load_from_checkpoint(str(path)).predict(data, gpus=0)
        np.testing.assert_allclose(results.scores, EXPECTED[0][2], atol=2e-6)
    with pytest.raises(DataError, match="comet: no segments to score"):
        comet.load_from_checkpoint(str(folder)).predict([], gpus=0)


def test_comet_is_registered_as_an_entry_point() -> None:
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
    entries = project["project"]["entry-points"]["tertium.metrics"]
    assert entries == {COMET.name: f"{COMET.__module__}:{COMET.__qualname__}"}


def test_torch_is_imported_lazily() -> None:
    code = "import sys, tertium.compat.comet_metric as m; m.COMET().required_inputs; "
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
