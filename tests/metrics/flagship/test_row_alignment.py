"""Padded batches, as on a GPU, equal row-by-row computation up to rounding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tertium.execution import runtime
from tertium.metrics.flagship.row_features import Row
from tertium.metrics.flagship.row_scorer import RowScorer, load_row_scorer
from tertium.metrics.flagship.tertium_multi import TertiumMulti

torch = pytest.importorskip("torch")

from tertium.encoders.transformer_layer import PaddedLayout  # noqa: E402
from tertium.metrics.flagship.row_alignment import PaddedAlignment, RowwiseAlignment  # noqa: E402

ROUNDING = 1e-4  # the head divides some states by very small deviations
TRANSLATIONS = (
    ("the cat sat on the mat", "die Katze saß auf der Matte", "the cat was sitting on the mat"),
    ("", "nichts", "nothing"),
    ("no source", "", "no source at all"),
    ("猫坐在垫子上。", "die Katze saß auf der Matte", "猫在垫子上坐着。"),
    ("it rains " * 260, "es regnet " * 4, "it is raining " * 3),  # read in windows
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
    """tertium-multi with padded batches on a CPU."""
    model = TertiumMulti().model
    scorer = RowScorer(model, "fp32", "cpu")
    scorer._network = network = load_row_scorer(model, "fp32", "cpu")._network
    network.padded = True
    yield scorer
    network.padded = False


@pytest.mark.parametrize("limits", [{}, {"token_budget": 40}, {"batch_size": 1}])
def test_padded_batches_equal_single_rows(
    padded: RowScorer, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[tuple[int, int]] = []
    make_layout = PaddedLayout.__init__

    def record(self: PaddedLayout, lengths: list[int], *args: object) -> None:
        batches.append((len(lengths), len(lengths) * max(lengths)))
        make_layout(self, lengths, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(PaddedLayout, "__init__", record)
    rows = ROWS[:-3] if limits else ROWS
    with runtime(cache=False, **limits):
        outputs = padded(rows)
        padded._network.padded = False
        expected = padded(rows)
    assert batches, "no batch was padded"
    assert all(n <= limits.get("batch_size", n) for n, _ in batches)
    assert all(n == 1 or size <= limits.get("token_budget", size) for n, size in batches)
    for left, right in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(left, right, atol=ROUNDING)


def test_explanations_are_equal(padded: RowScorer) -> None:
    outputs = list(padded.comparisons(TRANSLATIONS[0], {}))
    padded._network.padded = False
    for left, right in zip(outputs, padded.comparisons(TRANSLATIONS[0], {}), strict=True):
        np.testing.assert_allclose(left.cosines, right.cosines, atol=1e-5)


def test_alignment_does_not_depend_on_padding() -> None:
    generator = torch.Generator().manual_seed(1)
    rows = [{0: slice(1, 3), 2: slice(4, 9)}, {0: slice(9, 10), 2: slice(11, 12)}]
    vectors = torch.randn(3, 14, 8, generator=generator)
    device = torch.device("cpu")
    rowwise, padded = RowwiseAlignment(rows), PaddedAlignment(rows, device)
    states = vectors[0]
    torch.testing.assert_close(
        padded.greedy_matches(vectors, 2), rowwise.greedy_matches(vectors, 2)
    )
    results = [
        alignment.align(
            [10 * similarity for similarity in alignment.similarities(states, 2)],
            alignment.pieces(states, 0),
            alignment.pieces(states, 2),
            2,
        )
        for alignment in (rowwise, padded)
    ]
    torch.testing.assert_close(*results)
    for role in (0, 2):
        pieces = rowwise.pieces(states, role)
        assert torch.equal(padded.pieces(states, role), pieces)
        torch.testing.assert_close(padded.means(pieces, role), rowwise.means(pieces, role))
        assert torch.equal(padded.maxima(pieces, role), rowwise.maxima(pieces, role))
