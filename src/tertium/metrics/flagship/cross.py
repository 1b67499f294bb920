"""Cross-encoding: two texts read together by one encoder, the mean of all states judged by a head.

Each token sees the other text from the first layer on, which tells fine differences best; the price
is that nothing can be kept, since every pair is a text of its own.
"""

from __future__ import annotations

from torch import Tensor, nn

from tertium.metrics.flagship.late import mean_pool


class CrossHead(nn.Sequential):
    """From a pair's pooled state (pairs, dim) to its score (pairs, 1)."""

    def __init__(self, dim: int, dropout: float = 0.1) -> None:
        super().__init__(
            nn.Dropout(dropout),
            nn.Linear(dim, dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(dim, 1),
        )


def judge(head: CrossHead, states: Tensor, mask: Tensor) -> Tensor:
    """Scores (pairs,) from states (pairs, tokens, dim); special tokens count as tokens here."""
    scores: Tensor = head(mean_pool(states, mask))
    return scores.squeeze(-1).float()
