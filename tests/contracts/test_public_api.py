"""The public API of `tertium.metrics`: class names, compatibility calls, loading errors."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tertium.metrics
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.registry import METRICS, RANKERS, resolve_scorer
from tertium.core.scores import Scores
from tertium.metrics import Metric, load_metric
from tertium.metrics.base.compatibility_calls import Prediction
from tertium.metrics.base.ranker import load_ranker

CLASSES = (
    "AdaptedMulti BERTR BERTScore BLEU BLEUR BiLSTM BiLSTMAttention Blend CHRF Checks ESIM Judge "
    "METEOR METEORR MTR MTRTER NIST NISTR Pairwise RTER SMD SSS SVR SentSim TER TERR "
    "TertiumBase TertiumMulti TertiumSmall WMD WMDO"
).split()
CHEAP_METRICS = ("bleu", "ter", "nist", "bleu-r", "bertscore:encoder=toy", "wmd:encoder=toy")
HYPOTHESES = ["the cat sat on the mat", "a dog barked loudly", "nobody came"]
REFERENCES = ["the cat sat on a mat", "a dog barked", "nobody came home"]
# Modules of scoring, and modules of training that they must not import.
SCORING_MODULES = (
    "tertium.metrics.heads.head_metric",
    "tertium.metrics.heads.networks",
    "tertium.metrics.pairwise.neural_ranker",
    "tertium.models.trained_model",
    "tertium.metrics.embedding.bertscore",
    "tertium.metrics.lexical.bleu_metric",
)
TRAINING_MODULES = ("head_training", "ranker_training", "training_loop", "training_data")


def test_metric_classes_are_importable_by_name() -> None:
    assert dir(tertium.metrics) == sorted([*CLASSES, "Metric", "SegmentMetric", "load_metric"])
    classes = [resolve_scorer(name) for name in (*METRICS.builtin, *RANKERS.builtin)]
    assert {cls.__name__: cls for cls in classes} == {
        name: getattr(tertium.metrics, name) for name in CLASSES
    }
    with pytest.raises(AttributeError, match=r"'tertium\.metrics' has no attribute 'Blue'"):
        _ = tertium.metrics.Blue


def test_scoring_imports_no_training_module() -> None:
    program = f"import sys, {', '.join(SCORING_MODULES)}; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    modules = [name for name in output.split() if name.startswith("tertium")]
    loaded = {name.rpartition(".")[2] for name in modules}
    assert not loaded & {*TRAINING_MODULES}


@pytest.fixture(params=CHEAP_METRICS)
def metric(request: pytest.FixtureRequest) -> Metric:
    return load_metric(request.param)


def test_compatibility_calls_return_the_documented_types(metric: Metric) -> None:
    scores = metric.corpus_score(HYPOTHESES, [REFERENCES])
    assert isinstance(scores, Scores)
    assert type(scores.system) is float
    assert scores.segments.shape == (3,)
    assert scores.signature.startswith(metric.label)
    segment_scores = scores.segments.tolist()

    sentence = metric.sentence_score(HYPOTHESES[0], REFERENCES[:1])
    assert type(sentence) is float
    if not metric.reads_corpus:
        np.testing.assert_allclose(sentence, segment_scores[0], rtol=1e-6)

    records = [{"mt": h, "ref": r} for h, r in zip(HYPOTHESES, REFERENCES, strict=True)]
    prediction = metric.predict(records)
    assert isinstance(prediction, Prediction)
    assert prediction.scores == segment_scores
    assert prediction.system_score == scores.system
    assert set(prediction) == {"scores", "system_score"}
    with pytest.raises(AttributeError, match="no metadata: only metrics that mark errors"):
        _ = prediction.metadata

    result = metric.compute(predictions=HYPOTHESES, references=REFERENCES)
    assert result == {
        "score": scores.system,
        "scores": segment_scores,
        "signature": scores.signature,
    }


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("device", r'with tertium\.runtime\(device="cuda"\):`, on the command line --device'),
        ("batch_size", r"with tertium\.runtime\(batch_size=\.\.\.\):`, .* --batch-size"),
        ("threads", r"with tertium\.runtime\(threads=\.\.\.\):`, .* --threads"),
    ],
)
def test_runtime_options_are_not_fields(option: str, hint: str) -> None:
    for load in (load_metric, load_ranker):
        with pytest.raises(UsageError, match=hint):
            load("chrf", **{option: "cuda"})
    with pytest.raises(UsageError, match=hint):
        load_metric(f"chrf:{option}=cuda")
    with pytest.raises(UnknownNameError, match="unknown field of chrf 'word_orders'"):
        load_metric("chrf", word_orders=2)
