"""The same text gets the same score to the last bit: laws that every metric and ranker keeps.

Order, neighbors, duplicates, batch size, threads and the state of the cache change nothing.
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
TAKEN = 2  # segments of each system of the example


@pytest.fixture(scope="module")
def texts(example: TestSet) -> list[Segment]:
    """Outputs of three systems on the same segments, empty and odd ones among them."""
    rows = [s for name in example.systems for s in example.segments(name)[:TAKEN]]
    odd = [Segment(text, "Hallo.", ("Hello there.",)) for text in ("", "?", "Hello", "word " * 90)]
    return [*rows, *odd]


def cold(spec: str, segments: list[Segment], **choices: object) -> np.ndarray:
    """Scores computed anew, under these choices of a run."""
    clear_memory()
    with runtime(cache=False, memory=0, **choices):
        return load_metric(spec).score(segments).segments


@pytest.mark.parametrize("spec", [*METRICS, *VARIANTS])
def test_nothing_but_the_text_decides_a_score(spec: str, texts: list[Segment]) -> None:
    metric, rng = load_metric(spec), np.random.default_rng(1)
    order = rng.permutation(len(texts))
    clear_memory()
    try:
        found = metric.score(texts).segments  # in batches as they come, which fills the cache
    except MissingResourceError as error:
        pytest.skip(str(error))
    turned = metric.score([texts[n] for n in order]).segments
    assert (turned == found[order]).all(), "order, or a cache that is full"
    # neighbors and duplicates matter only where a metric does not read the corpus
    part = order if metric.reads_corpus else [*order, *rng.integers(0, len(texts), 4)]
    again = cold(spec, [texts[n] for n in part], batch_size=2, threads=2)
    assert (again == found[part]).all(), "order, neighbors, duplicates, batches, threads, no cache"
    if not metric.reads_corpus:
        assert cold(spec, texts[-1:])[0] == found[-1], "alone"


@pytest.mark.parametrize("spec", [*RANKERS, *RANKER_VARIANTS])
def test_nothing_but_two_texts_decides_a_preference(spec: str, texts: list[Segment]) -> None:
    left, right = texts[:TAKEN], texts[TAKEN : 2 * TAKEN]

    def prefer(rows: Sequence[int], **choices: object) -> np.ndarray:
        clear_memory()
        with runtime(cache=False, memory=0, **choices):
            return load_ranker(spec).prefer([left[n] for n in rows], [right[n] for n in rows])

    found = prefer(range(TAKEN))
    order = np.random.default_rng(1).permutation(TAKEN)
    assert (prefer(order.tolist()) == found[order]).all()
    assert (prefer(range(TAKEN), batch_size=1, threads=2) == found).all()
    assert [prefer([n])[0] for n in range(TAKEN)] == found.tolist()
