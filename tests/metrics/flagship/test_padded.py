"""Padded passes, as a GPU has them, say what is said row by row, but for rounding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tertium.execution import runtime
from tertium.metrics.flagship.row_scorer import RowScorer, load_row_scorer
from tertium.metrics.flagship.score_correction import Row
from tertium.metrics.flagship.tertium_multi import TertiumMulti

torch = pytest.importorskip("torch")

from tertium.encoders.transformer_layer import PaddedLayout  # noqa: E402
from tertium.metrics.flagship.row_alignment import PaddedAlignment, RowwiseAlignment  # noqa: E402

ROUNDING = 1e-4  # some of what is read a second time is divided by very small spreads
TRANSLATIONS = (
    ("the cat sat on the mat", "die Katze saß auf der Matte", "the cat was sitting on the mat"),
    ("", "nichts", "nothing"),
    ("no source", "", "no source at all"),
    ("猫坐在垫子上。", "die Katze saß auf der Matte", "猫在垫子上坐着。"),
    ("it rains " * 270, "es regnet " * 40, "it is raining " * 30),  # read in windows
)
ROWS: list[Row] = [
    row
    for hypothesis, source, reference in TRANSLATIONS
    for row in (
        (hypothesis, source, None),
        (hypothesis, None, reference),
        (hypothesis, source, reference),
    )
]


@pytest.fixture
def padded() -> Iterator[RowScorer]:
    """tertium-multi on a CPU, as if it were a GPU."""
    model = TertiumMulti().model
    judge = RowScorer(model, "fp32", "cpu")
    judge._network = network = load_row_scorer(model, "fp32", "cpu")._network
    network.padded = True
    yield judge
    network.padded = False


@pytest.mark.parametrize("limits", [{}, {"token_budget": 40}, {"batch_size": 1}])
def test_padded_passes_say_what_rows_by_themselves_do(
    padded: RowScorer, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[tuple[int, int]] = []
    lay = PaddedLayout.__init__

    def count(self: PaddedLayout, lengths: list[int], *rest: object) -> None:
        passes.append((len(lengths), len(lengths) * max(lengths)))
        lay(self, lengths, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(PaddedLayout, "__init__", count)
    rows = ROWS[:-3] if limits else ROWS
    with runtime(cache=False, **limits):
        found = padded(rows)
        padded._network.padded = False
        alone = padded(rows)
    assert passes, "no pass was padded"
    assert all(n <= limits.get("batch_size", n) for n, _ in passes)
    assert all(n == 1 or size <= limits.get("token_budget", size) for n, size in passes)
    for one, other in zip(found, alone, strict=True):
        np.testing.assert_allclose(one, other, atol=ROUNDING)


def test_an_explanation_finds_the_same_partners(padded: RowScorer) -> None:
    found = list(padded.comparisons(TRANSLATIONS[0], {}))
    padded._network.padded = False
    for one, other in zip(found, padded.comparisons(TRANSLATIONS[0], {}), strict=True):
        np.testing.assert_allclose(one.cosines, other.cosines, atol=1e-5)


def test_what_meets_does_not_depend_on_padding() -> None:
    generator = torch.Generator().manual_seed(1)
    rows = [{0: slice(1, 3), 2: slice(4, 9)}, {0: slice(9, 10), 2: slice(11, 12)}]
    vectors = torch.randn(3, 14, 8, generator=generator)
    device = torch.device("cpu")
    alone, score_on_gpu = RowwiseAlignment(rows), PaddedAlignment(rows, device)
    states = vectors[0]
    torch.testing.assert_close(together.matches(vectors, 2), alone.matches(vectors, 2))
    both = [
        meeting.align(
            [10 * like for like in meeting.likeness(states, 2)],
            meeting.pieces(states, 0),
            meeting.pieces(states, 2),
            2,
        )
        for meeting in (alone, together)
    ]
    torch.testing.assert_close(*both)
    for role in (0, 2):
        pieces = alone.pieces(states, role)
        assert torch.equal(together.pieces(states, role), pieces)
        torch.testing.assert_close(together.means(pieces, role), alone.means(pieces, role))
        assert torch.equal(together.maxima(pieces, role), alone.maxima(pieces, role))
