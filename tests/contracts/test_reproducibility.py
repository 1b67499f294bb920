"""Scores are reproducible to the last bit for every metric and ranker.

Order, other segments, duplicates, batch size, threads and the cache must not change a score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tertium.cache.vector_cache import clear_memory
from tertium.data.testset import TestSet
from tertium.errors import MissingResourceError
from tertium.execution import runtime
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.ranker import load_ranker
from tertium.models.checkpoint import bundled_models_folder
from tertium.registry import METRICS, RANKERS
from tertium.segment import Segment

VARIANTS = [
    "mt-rte-r:embeddings=true",
    "sentsim:against=source",
    "bertscore:encoder=use",
    "bertscore:precision=bf16",
    "wmd:solver=sinkhorn",
    "sentsim:sentence=smd,token=wmd",
    "tertium-multi:scale=mqm",
    "tertium-small:scale=mqm",
]
RANKER_VARIANTS = [
    str(bundled_models_folder() / name) for name in ("pairwise-minilm", "pairwise-published")
]
SAMPLE = 2  # segments per system of the example


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


@pytest.mark.parametrize("spec", [*METRICS, *VARIANTS])
def test_metric_scores_depend_on_the_text_only(spec: str, texts: list[Segment]) -> None:
    metric, rng = load_metric(spec), np.random.default_rng(1)
    order = rng.permutation(len(texts))
    clear_memory()
    try:
        scores = metric.score(texts).segments  # default batches; fills the cache
    except MissingResourceError as error:
        pytest.skip(str(error))
    shuffled = metric.score([texts[n] for n in order]).segments
    assert (shuffled == scores[order]).all(), "order or a warm cache changes scores"
    # a metric that reads the corpus may depend on other segments
    part = order if metric.reads_corpus else [*order, *rng.integers(0, len(texts), 4)]
    again = score_uncached(spec, [texts[n] for n in part], batch_size=2, threads=2)
    assert (again == scores[part]).all(), (
        "order, duplicates, batches, threads or the cache change scores"
    )
    if not metric.reads_corpus:
        assert score_uncached(spec, texts[-1:])[0] == scores[-1], "other segments change a score"


@pytest.mark.parametrize("spec", [*RANKERS, *RANKER_VARIANTS])
def test_preferences_depend_on_the_two_texts_only(spec: str, texts: list[Segment]) -> None:
    left, right = texts[:SAMPLE], texts[SAMPLE : 2 * SAMPLE]

    def prefer(rows: Sequence[int], **options: object) -> np.ndarray:
        clear_memory()
        with runtime(cache=False, memory=0, **options):
            return load_ranker(spec).prefer([left[n] for n in rows], [right[n] for n in rows])

    scores = prefer(range(SAMPLE))
    order = np.random.default_rng(1).permutation(SAMPLE)
    assert (prefer(order.tolist()) == scores[order]).all()
    assert (prefer(range(SAMPLE), batch_size=1, threads=2) == scores).all()
    assert [prefer([n])[0] for n in range(SAMPLE)] == scores.tolist()
