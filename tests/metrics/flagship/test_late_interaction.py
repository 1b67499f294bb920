"""Late interaction equals a loop over tokens and does not depend on padding or the batch."""

from __future__ import annotations

import torch

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
