"""What was measured once for an encoder: where unrelated and bad translations lie on its scales.

Encoders spread cosines over different ranges. A `baseline` is the mean BERTScore of sentences that
have nothing to do with each other, for rescaling; a `bound` is the value one translation in 200
does not reach, for SentSim. All were taken on da/wmt15 and da/wmt16 alone (`python -m
tertium.reproduce.calibrate` measures them anew). They are part of the metrics: to change one is to
change scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tertium.errors import UnknownNameError

Kind = Literal["precision", "recall", "f1", "wmd", "smd", "sss"]
BOUND_KINDS: tuple[Kind, ...] = ("precision", "recall", "f1", "wmd", "smd", "sss")

# Cosines of unrelated texts lie around 0, unit vectors at right angles sqrt(2) apart.
GENERIC = (0.0, 0.0, 0.0, 1.4142, 1.4142, 0.0)

# (encoder, what it is compared with): bounds in the order of BOUND_KINDS
BOUNDS: Mapping[tuple[str, str], tuple[float, ...]] = {}

# (encoder, what it is compared with): precision, recall, F1 of unrelated sentences
BASELINES: Mapping[tuple[str, str], tuple[float, float, float]] = {}


def baseline(encoder: str, side: str) -> tuple[float, float, float]:
    """BERTScore's precision, recall and F1 of unrelated sentences under an encoder."""
    if (encoder, side) not in BASELINES:
        known = [name for name, where in BASELINES if where == side]
        raise UnknownNameError(f"encoder with a stored baseline against {side}", encoder, known)
    return BASELINES[encoder, side]


def bound(encoder: str, side: str, kind: Kind) -> float:
    """The value of the worst translations under an encoder; a generic one where none is stored.

    >>> bound("dir/mine@4", "reference", "sss")
    0.0
    """
    return BOUNDS.get((encoder, side), GENERIC)[BOUND_KINDS.index(kind)]
