"""Stored calibration values of encoders: baselines for BERTScore, bounds and weights for SentSim.

Encoders spread cosines over different ranges. A baseline is the mean BERTScore of unrelated
sentences, used for rescaling. A bound is the value that one translation in 200 does not reach.
Both were measured on da/wmt15 and da/wmt16 only; `python -m recipes.calibrate_encoder` repeats the
measurement. Changing a value changes scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tertium.core.errors import UsageError

Kind = Literal["precision", "recall", "f1", "wmd", "smd", "sss"]
BOUND_KINDS: tuple[Kind, ...] = ("precision", "recall", "f1", "wmd", "smd", "sss")

# Cosines of unrelated texts are about 0, distances of orthogonal unit vectors sqrt(2).
GENERIC = (0.0, 0.0, 0.0, 1.4142, 1.4142, 0.0)

# Encoder, calibration key, bounds in the order of BOUND_KINDS, then the baseline: precision, recall
# and F1 of unrelated sentences. Hypotheses were paired with the reference of another segment: the
# first 100 of each language pair (minilm) or all (mpnet, use). e5@8 was measured on every second
# segment of da/wmt16; the part after the slash is the centering:
# python -m recipes.calibrate_encoder e5@8 --side source --sets da/wmt16 --every 2 --centre language
MEASURED = """
minilm@0 reference       0.3273 0.3662 0.3523 1.1501 0.4584 0.1777  0.3252 0.3203 0.3163
minilm@1 reference       0.3981 0.4351 0.4216 1.0966 0.4668 0.1777  0.3825 0.3777 0.3756
minilm@2 reference       0.4116 0.4514 0.4333 1.0971 0.5058 0.1777  0.3773 0.3741 0.3721
minilm@3 reference       0.4179 0.4628 0.4452 1.0904 0.5350 0.1777  0.3697 0.3680 0.3661
minilm@4 reference       0.4358 0.4830 0.4582 1.0755 0.5742 0.1777  0.3967 0.3954 0.3940
minilm@5 reference       0.4622 0.4920 0.4845 1.0595 0.5622 0.1777  0.4899 0.4878 0.4871
minilm@6 reference       0.2515 0.2824 0.2692 1.2475 0.8018 0.1777  0.1600 0.1604 0.1575
mpnet@0  reference       0.2730 0.3047 0.2967 1.1507 0.4714 0.1810  0.2746 0.2682 0.2595
mpnet@1  reference       0.2881 0.3279 0.3015 1.1833 0.5049 0.1810  0.2607 0.2562 0.2489
mpnet@2  reference       0.2937 0.3368 0.3262 1.1814 0.5259 0.1810  0.2430 0.2393 0.2330
mpnet@3  reference       0.2971 0.3422 0.3372 1.1748 0.5509 0.1810  0.2387 0.2363 0.2301
mpnet@4  reference       0.3068 0.3442 0.3460 1.1653 0.5766 0.1810  0.2514 0.2496 0.2437
mpnet@5  reference       0.3171 0.3515 0.3482 1.1597 0.5868 0.1810  0.2617 0.2607 0.2554
mpnet@6  reference       0.3339 0.3782 0.3679 1.1523 0.6030 0.1810  0.2798 0.2797 0.2750
mpnet@7  reference       0.3473 0.3875 0.3741 1.1379 0.6104 0.1810  0.2980 0.2982 0.2937
mpnet@8  reference       0.3503 0.3942 0.3798 1.1327 0.6239 0.1810  0.3075 0.3067 0.3027
mpnet@9  reference       0.3507 0.3929 0.3781 1.1317 0.6494 0.1810  0.3082 0.3068 0.3032
mpnet@10 reference       0.3913 0.4138 0.4142 1.0937 0.6506 0.1810  0.3333 0.3310 0.3282
mpnet@11 reference       0.4340 0.4651 0.4583 1.0630 0.6829 0.1810  0.3877 0.3846 0.3828
mpnet@12 reference       0.1962 0.2177 0.2085 1.2817 1.0789 0.1810  0.1081 0.1080 0.1088
use@3    reference       0.3138 0.3266 0.3273 1.1574 0.4895 0.3335  0.2668 0.2624 0.2546
e5@8     source/aligned  0.5947 0.5907 0.6004 0.9280 0.4680 0.4915  0.3695 0.3623 0.3563
e5@8     source/language 0.4334 0.4199 0.4284 1.0927 0.5503 0.4598  0.2695 0.2623 0.2610
e5@8     source          0.5768 0.5615 0.5717 0.9571 0.5079 0.8313  0.4639 0.4614 0.4613
use@3    source          0.2901 0.2750 0.2872 1.1994 0.4972 0.4813  0.2240 0.2169 0.2125
"""
_NUMBERS: Mapping[tuple[str, str], tuple[float, ...]] = {
    (encoder, scale): tuple(map(float, numbers))
    for encoder, scale, *numbers in map(str.split, MEASURED.strip().splitlines())
}
# Sentence and token weights of SentSim by encoder and side, chosen on da/wmt15, da/wmt16 and the
# development part of qe/wmt20
WEIGHTS: Mapping[tuple[str, str], tuple[float, float]] = {("e5@8", "source"): (0.2, 0.8)}
EQUAL_WEIGHTS = (0.5, 0.5)


def baseline(encoder: str, scale: str) -> tuple[float, float, float]:
    """Return BERTScore of unrelated sentences; `scale` is an `EmbeddingMetric.calibration_key`."""
    if (encoder, scale) not in _NUMBERS:
        names = ", ".join(name for name, own_scale in _NUMBERS if own_scale == scale)
        raise UsageError(
            f"no baseline of {encoder} against {scale} is stored: expected one of {names}; "
            "use one of them, or rescale=false"
        )
    precision, recall, f1 = _NUMBERS[encoder, scale][len(BOUND_KINDS) :]
    return precision, recall, f1


def has_bounds(encoder: str, scale: str) -> bool:
    """Return whether bounds are stored for an encoder; otherwise `lower_bound` is generic."""
    return (encoder, scale) in _NUMBERS


def lower_bound(encoder: str, scale: str, kind: Kind) -> float:
    """Return the value of the worst translations under an encoder, or a generic one.

    >>> lower_bound("dir/mine@4", "reference", "sss")
    0.0
    """
    return _NUMBERS.get((encoder, scale), GENERIC)[BOUND_KINDS.index(kind)]
