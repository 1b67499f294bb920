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
BOUNDS: Mapping[tuple[str, str], tuple[float, ...]] = {
    ("minilm@0", "reference"): (0.3273, 0.3662, 0.3523, 1.1501, 0.4584, 0.1777),
    ("minilm@1", "reference"): (0.3981, 0.4351, 0.4216, 1.0966, 0.4668, 0.1777),
    ("minilm@2", "reference"): (0.4116, 0.4514, 0.4333, 1.0971, 0.5058, 0.1777),
    ("minilm@3", "reference"): (0.4179, 0.4628, 0.4452, 1.0904, 0.5350, 0.1777),
    ("minilm@4", "reference"): (0.4358, 0.4830, 0.4582, 1.0755, 0.5742, 0.1777),
    ("minilm@5", "reference"): (0.4622, 0.4920, 0.4845, 1.0595, 0.5622, 0.1777),
    ("minilm@6", "reference"): (0.2515, 0.2824, 0.2692, 1.2475, 0.8018, 0.1777),
    ("use@3", "reference"): (0.3138, 0.3266, 0.3273, 1.1574, 0.4895, 0.3335),
    ("use@3", "source"): (0.2901, 0.2750, 0.2872, 1.1994, 0.4972, 0.4813),
}

# (encoder, what it is compared with): precision, recall, F1 of unrelated sentences, the first 100
# hypotheses of each language pair with another segment's reference (minilm), or all (use)
BASELINES: Mapping[tuple[str, str], tuple[float, float, float]] = {
    ("minilm@0", "reference"): (0.3252, 0.3203, 0.3163),
    ("minilm@1", "reference"): (0.3825, 0.3777, 0.3756),
    ("minilm@2", "reference"): (0.3773, 0.3741, 0.3721),
    ("minilm@3", "reference"): (0.3697, 0.3680, 0.3661),
    ("minilm@4", "reference"): (0.3967, 0.3954, 0.3940),
    ("minilm@5", "reference"): (0.4899, 0.4878, 0.4871),
    ("minilm@6", "reference"): (0.1600, 0.1604, 0.1575),
    ("use@3", "reference"): (0.2668, 0.2624, 0.2546),
    ("use@3", "source"): (0.2240, 0.2169, 0.2125),
}


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
