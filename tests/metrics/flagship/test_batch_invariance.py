"""Networks that are not batch-invariant on a processor get texts one by one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tertium.errors import MissingResourceError
from tertium.execution import runtime
from tertium.metrics.flagship.row_scorer import RowScorer, load_row_scorer
from tertium.metrics.flagship.tertium_base import PairScorer, TertiumBase
from tertium.metrics.flagship.tertium_multi import TertiumMulti

torch = pytest.importorskip("torch")

from tertium.encoders.transformer_layer import TransformerLayer  # noqa: E402
from tertium.metrics.flagship.joint_network import JointHead, SoftComparison  # noqa: E402

TEXTS = [
    ("the cat sat", "the cat sat on the mat"),
    ("", "nothing at all"),
    ("a dog was barking at us", "a dog barked"),
    ("it is raining", "it rains today"),
]
Pairs = list[tuple[str, str]]
Scorer = Callable[[Pairs], list[Any]]
Setup = tuple[Scorer, Callable[[], None]]  # the scorer, and a function that skips its trial


def untested_multi() -> Setup:
    """Return tertium-multi with a loaded network that was not yet tested."""
    model = TertiumMulti().model
    scorer = RowScorer(model, "fp32", "cpu")
    scorer._network = load_row_scorer(model, "fp32", "cpu")._network

    def score(pairs: Pairs) -> list[Any]:  # some rows have a source as well
        return scorer([(h, None if len(h) % 2 else r, r) for h, r in pairs])

    return score, lambda: setattr(scorer, "_is_batch_invariant", True)


def untested_base() -> Setup:
    """Return tertium-base with a loaded network that was not yet tested."""
    try:
        loaded = TertiumBase().reader
    except MissingResourceError as error:
        pytest.skip(str(error))
    scorer: PairScorer = copy.copy(loaded)
    scorer._network = network = copy.copy(loaded._network)
    vars(network).pop("requires_batch_size_one", None)

    def score(pairs: Pairs) -> list[Any]:
        results: dict[int, float] = {}
        sides = (list(texts) for texts in zip(*pairs, strict=True))
        for rows, scores in scorer.score_batches(*sides):
            results |= dict(zip(rows.tolist(), scores, strict=True))
        return [results[row] for row in range(len(pairs))]

    return score, lambda: setattr(network, "requires_batch_size_one", False)


def depend_on_position(values: Any) -> Any:
    """Return values, (rows, d), changed by the position of their row."""
    return values * (1 + 1e-4 * (torch.arange(len(values)) % 7))[:, None]


def depends_on_batch(score: Scorer) -> bool:
    """Return whether scores of a batch differ from those of single pairs."""
    single = [score([pair])[0] for pair in TEXTS]
    return not all(map(np.array_equal, single, score(TEXTS)))


@pytest.mark.parametrize("setup", [untested_multi, untested_base])
def test_texts_are_read_one_by_one_if_layers_depend_on_position(
    setup: Callable[[], Setup], monkeypatch: pytest.MonkeyPatch
) -> None:
    transform = TransformerLayer._feed_forward
    with runtime(cache=False, threads=1):
        score, skip_trial = setup()
        monkeypatch.setattr(
            TransformerLayer, "_feed_forward", lambda *args: depend_on_position(transform(*args))
        )
        assert not depends_on_batch(score)
        skip_trial()
        assert depends_on_batch(score)


@pytest.mark.parametrize("part", [JointHead, SoftComparison])
def test_rows_are_read_one_by_one_if_heads_depend_on_position(
    part: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = part.forward

    def changed_forward(*args: Any) -> Any:
        output = forward(*args)
        if isinstance(output, tuple):
            return (depend_on_position(output[0]), *output[1:])
        return depend_on_position(output)

    with runtime(cache=False, threads=1):
        score, skip_trial = untested_multi()
        monkeypatch.setattr(part, "forward", changed_forward)
        assert not depends_on_batch(score)
        skip_trial()
        assert depends_on_batch(score)
