"""Order, other segments, duplicates, batch size, threads and the cache do not change a score.

Scores of int8 encoders and of metrics without a network are equal to the last bit. Other networks
add in an order that depends on the batch: fp32 within 1e-5, bf16 within the rounding of a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from tertium.core.errors import MissingResourceError
from tertium.core.registry import RANKERS
from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.encoders.vector_cache import clear_memory
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.ranker import load_ranker
from tertium.models.checkpoint import bundled_models_folder

VARIANTS = [
    "mt-rte-r:embeddings=true",
    "sentsim:against=source",
    "bertscore:encoder=use",
    "bertscore:precision=bf16",
    "bertscore:precision=int8",
    "bertscore:encoder=e5@9,against=source,precision=int8",
    "sentsim:precision=int8",
    "esim:precision=int8",
    "sentsim:sentence=smd,token=wmd",
    "tertium-multi:scale=mqm",
    "tertium-small:scale=mqm",
]
RANKER_VARIANTS = [
    str(bundled_models_folder() / name) for name in ("pairwise-minilm", "pairwise-published")
]
SAMPLE = 2  # segments per system of the example
TOLERANCES = {"fp32": 1e-5, "bf16": 2e-3, "int8": 0.0}
TRAINED_HEADS = ("bilstm", "bilstm-attention", "esim", "svr")  # compute in fp32 after the encoder


@pytest.fixture(scope="module")
def texts(example: TestSet) -> list[Segment]:
    """Outputs of three systems on the same segments, and some unusual texts."""
    rows = [s for name in example.systems for s in example.segments(name)[:SAMPLE]]
    unusual = [
        Segment(text, "Hallo.", ("Hello there.",)) for text in ("", "?", "Hello", "word " * 90)
    ]
    return [*rows, *unusual]


def score_uncached(spec: str, segments: list[Segment], **options: object) -> np.ndarray:
    """Score segments without any cache, with these runtime options."""
    clear_memory()
    with runtime(cache=False, memory=0, **options):
        return load_metric(spec).score(segments).segments


def tolerance(spec: str) -> float:
    """Return the allowed difference of scores."""
    metric = load_metric(spec)
    precision = "fp32" if metric.name in TRAINED_HEADS else getattr(metric, "precision", "int8")
    return TOLERANCES[precision]


def assert_equal(actual: np.ndarray, expected: np.ndarray, spec: str, problem: str) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance(spec), err_msg=problem)


@pytest.mark.parametrize("spec", VARIANTS)
def test_metric_scores_depend_on_the_text_only(spec: str, texts: list[Segment]) -> None:
    metric, rng = load_metric(spec), np.random.default_rng(1)
    order = rng.permutation(len(texts))
    clear_memory()
    try:
        scores = metric.score(texts).segments  # default batches; fills the cache
    except MissingResourceError as error:
        pytest.skip(str(error))
    shuffled = metric.score([texts[n] for n in order]).segments
    assert_equal(shuffled, scores[order], spec, "order or a warm cache changes scores")
    # a metric that reads the corpus may depend on other segments
    part = order if metric.reads_corpus else [*order, *rng.integers(0, len(texts), 4)]
    again = score_uncached(spec, [texts[n] for n in part], batch_size=2, threads=2)
    problem = "order, duplicates, batches, threads or the cache change scores"
    assert_equal(again, scores[part], spec, problem)
    if not metric.reads_corpus:
        alone = score_uncached(spec, texts[-1:])
        assert_equal(alone, scores[-1:], spec, "other segments change a score")


@pytest.mark.parametrize("spec", [*RANKERS, *RANKER_VARIANTS])
def test_preferences_depend_on_the_two_texts_only(spec: str, texts: list[Segment]) -> None:
    left, right = texts[:SAMPLE], texts[SAMPLE : 2 * SAMPLE]

    def prefer(rows: Sequence[int], **options: object) -> np.ndarray:
        clear_memory()
        with runtime(cache=False, memory=0, **options):
            return load_ranker(spec).prefer([left[n] for n in rows], [right[n] for n in rows])

    scores = prefer(range(SAMPLE))
    order = np.random.default_rng(1).permutation(SAMPLE)
    close = partial(np.testing.assert_allclose, rtol=0, atol=TOLERANCES["fp32"])
    close(prefer(order.tolist()), scores[order])
    close(prefer(range(SAMPLE), batch_size=1, threads=2), scores)
    close([prefer([n])[0] for n in range(SAMPLE)], scores)
