"""Where a processor lets a row's place decide its last bits, large networks read texts alone."""

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
Anew = tuple[Callable[[Pairs], list[Any]], Callable[[bool], None]]  # says, and is told to trust


def multi_anew() -> Anew:
    """tertium-multi with its loaded network, of which nothing was tried yet."""
    model = TertiumMulti().model
    judge = RowScorer(model, "fp32", "cpu")
    judge._network = load_row_scorer(model, "fp32", "cpu")._network

    def say(pairs: Pairs) -> list[Any]:  # of every second against a source as well
        return judge([(h, None if len(h) % 2 else r, r) for h, r in pairs])

    return say, lambda alone: setattr(judge, "_alone", alone)


def base_anew() -> Anew:
    """The same of tertium-base."""
    try:
        loaded = TertiumBase().reader
    except MissingResourceError as error:
        pytest.skip(str(error))
    judge: PairScorer = copy.copy(loaded)
    judge._network = network = copy.copy(loaded._network)
    vars(network).pop("alone", None)

    def say(pairs: Pairs) -> list[Any]:
        found: dict[int, float] = {}
        for places, scores in judge.scores(*(list(texts) for texts in zip(*pairs, strict=True))):
            found |= dict(zip(places.tolist(), scores, strict=True))
        return [found[place] for place in range(len(pairs))]

    return say, lambda alone: setattr(network, "alone", alone)


def by_place(made: Any) -> Any:
    """Numbers, (rows, d), that depend on their row's place."""
    return made * (1 + 1e-4 * (torch.arange(len(made)) % 7))[:, None]


def changes(say: Callable[[Pairs], list[Any]]) -> bool:
    """Whether anything is said of pairs together that is not said of each alone."""
    alone = [say([pair])[0] for pair in TEXTS]
    return not all(map(np.array_equal, alone, say(TEXTS)))


@pytest.mark.parametrize("anew", [multi_anew, base_anew])
def test_where_a_place_matters_texts_are_read_alone(
    anew: Callable[[], Anew], monkeypatch: pytest.MonkeyPatch
) -> None:
    transform = TransformerLayer._feed_forward
    with runtime(cache=False, threads=1):
        say, trust = anew()
        monkeypatch.setattr(
            TransformerLayer, "_feed_forward", lambda *given: by_place(transform(*given))
        )
        assert not changes(say)
        trust(False)  # as if the trial had found nothing
        assert changes(say)


@pytest.mark.parametrize("part", [JointHead, SoftComparison])
def test_where_a_place_matters_behind_the_layers_rows_are_read_alone(
    part: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = part.forward

    def forward_by_place(*given: Any) -> Any:
        made = forward(*given)
        return (by_place(made[0]), *made[1:]) if isinstance(made, tuple) else by_place(made)

    with runtime(cache=False, threads=1):
        say, trust = multi_anew()
        monkeypatch.setattr(part, "forward", forward_by_place)
        assert not changes(say)
        trust(False)
        assert changes(say)
