"""BiLSTM: each side encoded, pooled and matched (Mathur, Baldwin, Cohn 2019, equations 3 to 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tertium.metrics.heads.metric import PairHead


@dataclass(frozen=True, kw_only=True, eq=False)
class BiLSTM(PairHead):
    """A BiLSTM over each side, max and mean pooled; the two vectors matched and regressed on.

        v = [mean h; max h]    y = w' ReLU(W' [t; r; t*r; t-r] + b) + b'

    The sides meet only as pooled vectors: the quickest of the three, and with absolute differences
    (as shipped) close to `esim`, which lets tokens meet and reads the meeting again.
    """

    name: ClassVar[str] = "bilstm"
    title: ClassVar[str] = "BiLSTM"
