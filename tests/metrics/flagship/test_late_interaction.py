"""Late interaction equals a loop over tokens and does not depend on padding or the batch."""

from __future__ import annotations

import pytest
import torch

from tertium.encoders.int8_linear import Int8Linear
from tertium.metrics.flagship.late_interaction import (
    LateInteraction,
    Tokens,
    greedy_matches,
    max_pool,
    mean_pool,
    similarities,
)


def tokens(seed: int, lengths: list[int], width: int, layers: int = 3, dim: int = 8) -> Tokens:
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(layers, len(lengths), width, dim, generator=generator)
    mask = torch.arange(width)[None] < torch.tensor(lengths)[:, None]
    return Tokens(states, mask)


def test_greedy_matches_equal_a_loop() -> None:
    h, r = tokens(1, [4, 2], 4), tokens(2, [3, 5], 5)
    matches = greedy_matches(similarities(h, r), h.mask, r.mask)
    for pair in range(2):
        expected: list[list[float]] = [[], [], [], []]
        for layer in range(3):
            a = h.states[layer, pair][h.mask[pair]]
            b = r.states[layer, pair][r.mask[pair]]
            cosines = [[float(torch.cosine_similarity(x, y, dim=0)) for y in b] for x in a]
            recall = [max(row[j] for row in cosines) for j in range(len(b))]
            precision = [max(row) for row in cosines]
            for place, values in ((0, recall), (2, precision)):
                expected[place].append(sum(values) / len(values))
                expected[place + 1].append(min(values))
        flat = [value for part in expected for value in part]
        torch.testing.assert_close(matches[pair], torch.tensor(flat))


def test_padding_and_batches_change_no_score() -> None:
    torch.manual_seed(0)
    net = LateInteraction(layers=3, dim=8, surface=4, hidden=16).eval()
    h, r = tokens(1, [4, 2, 1], 4), tokens(2, [3, 5, 2], 5)
    surface = torch.randn(3, 4)
    batched = net(h, r, surface)
    for n in range(3):
        a, b = int(h.mask[n].sum()), int(r.mask[n].sum())
        left = Tokens(h.states[:, n : n + 1, :a], h.mask[n : n + 1, :a])
        right = Tokens(r.states[:, n : n + 1, :b], r.mask[n : n + 1, :b])
        single = net(left, right, surface[n : n + 1])
        torch.testing.assert_close(single[0], batched[n], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("int8", [False, True])
def test_concatenated_pairs_get_the_scores_of_padded_and_of_single_pairs(int8: bool) -> None:
    """With int8 layers, single pairs are equal to the last bit."""
    torch.manual_seed(0)
    net = LateInteraction(layers=3, dim=32, surface=4, hidden=32).eval()
    if int8:
        net.compare[0] = Int8Linear.quantize(net.compare[0], fine=True)
        net.head[1] = Int8Linear.quantize(net.head[1], fine=True)
    lengths = [7, 23, 1, 16, 9]  # reference 4 is that of two hypotheses
    texts = [tokens(n, [length], length, dim=32) for n, length in enumerate(lengths)]
    numbers = [(0, 1), (2, 4), (3, 4)]
    states = torch.cat([text.states[:, 0] for text in texts], dim=1)
    ends = [0, *torch.tensor(lengths).cumsum(0).tolist()]
    at = [slice(*ends[n : n + 2]) for n in range(len(texts))]
    pairs = [(at[h], at[r]) for h, r in numbers]
    surface = torch.randn(3, 4)
    with torch.inference_mode():
        scores = net.score_concatenated(states, pairs, surface)
        for row, (h, r) in enumerate(numbers):
            padded = net(texts[h], texts[r], surface[row : row + 1])
            torch.testing.assert_close(padded[0], scores[row], atol=1e-5, rtol=1e-5)
            alone = torch.cat([texts[h].states[:, 0], texts[r].states[:, 0]], dim=1)
            sides = slice(0, lengths[h]), slice(lengths[h], None)
            single = net.score_concatenated(alone, [sides], surface[row : row + 1])
            torch.testing.assert_close(
                single[0], scores[row], atol=0 if int8 else 1e-6, rtol=0 if int8 else 1e-6
            )


def test_text_without_tokens_has_a_finite_score() -> None:
    net = LateInteraction(layers=3, dim=8, surface=4, hidden=16).eval()
    scores = net(tokens(1, [0, 2], 2), tokens(2, [3, 0], 3), torch.zeros(2, 4))
    assert torch.isfinite(scores).all()


def test_pooling_ignores_masked_tokens() -> None:
    states = torch.tensor([[[1.0, 4.0], [3.0, 2.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False]])
    assert mean_pool(states, mask).tolist() == [[2.0, 3.0]]
    assert max_pool(states, mask).tolist() == [[3.0, 4.0]]


def test_network_fits_a_tiny_dataset() -> None:
    torch.manual_seed(0)
    net = LateInteraction(layers=3, dim=8, surface=4, hidden=16, dropout=0.0)
    h, r, surface = tokens(1, [4] * 24, 4), tokens(2, [3] * 24, 3), torch.randn(24, 4)
    target = torch.randn(24)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(120):
        optimizer.zero_grad()
        ((net(h, r, surface) - target) ** 2).mean().backward()
        optimizer.step()
    predicted = net.eval()(h, r, surface).detach()
    assert float(torch.corrcoef(torch.stack([predicted, target]))[0, 1]) > 0.95
