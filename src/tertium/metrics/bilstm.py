"""BiLSTM: each side encoded, pooled and matched (Mathur, Baldwin, Cohn 2019, equations 3 to 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tertium.metrics.pair_head import PairHead


@dataclass(frozen=True, kw_only=True, eq=False)
class BiLSTM(PairHead):
    """A BiLSTM over each side, max and mean pooled; the two vectors matched and regressed on.

        v = [mean h; max h]    y = w' ReLU(W' [t; r; t*r; t-r] + b) + b'

    The sides meet only as pooled vectors, which makes it the weakest of the three; no weights ship.
    `bilstm-attention` lets tokens meet, `esim` reads the meeting again.
    """

    name: ClassVar[str] = "bilstm"
    title: ClassVar[str] = "BiLSTM"
