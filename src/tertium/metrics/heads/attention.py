"""BiLSTM + attention: each side as the other sees it (Mathur et al. 2019, equations 7 to 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tertium.metrics.heads.metric import PairHead


@dataclass(frozen=True, kw_only=True, eq=False)
class BiLSTMAttention(PairHead):
    """Each side re-expressed by softmax attention over the other, pooled, matched, regressed on.

        h~_t = softmax(h_t h_r') h_r    v = [mean h~; max h~]    y as in `bilstm`

    Tokens of the two sides meet, as they do not in `bilstm`; `esim` reads their meeting again.
    """

    name: ClassVar[str] = "bilstm-attention"
    title: ClassVar[str] = "BiLSTM+attention"
