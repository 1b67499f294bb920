"""What was measured once for an encoder: where unrelated and bad translations lie on its scales.

Encoders spread cosines over different ranges. `baseline` is the mean value of sentence pairs that
have nothing to do with each other, for BERTScore's rescaling; `bounds` is the value of the worst
translations, for SentSim. Both were taken on da/wmt15 and da/wmt16 alone (`tertium.reproduce.
calibrate` measures them anew) and are part of the metrics: to change one is to change scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tertium.errors import UnknownNameError


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The figures of one encoder at one layer.

    `precision`, `recall` and `f1` are BERTScore's of unrelated sentences, `far` the bound of each
    similarity or distance: sss, smd, wmd, and BERTScore's three measures.
    """

    precision: float
    recall: float
    f1: float
    far: Mapping[str, float]


CALIBRATIONS: Mapping[str, Calibration] = {}

# Cosines of unrelated texts lie around 0, unit vectors at right angles sqrt(2) apart.
GENERIC: Mapping[str, float] = {
    "sss": 0.0, "precision": 0.0, "recall": 0.0, "f1": 0.0, "smd": 1.4142, "wmd": 1.4142,
}  # fmt: skip


def baseline(encoder: str) -> tuple[float, float, float]:
    """BERTScore's precision, recall and F1 of unrelated sentences under an encoder."""
    if encoder not in CALIBRATIONS:
        raise UnknownNameError("baseline for rescaling of encoder", encoder, CALIBRATIONS)
    found = CALIBRATIONS[encoder]
    return found.precision, found.recall, found.f1


def bounds(encoder: str, kind: str) -> float:
    """The value of the worst translations under an encoder; a generic one where none is stored."""
    found = CALIBRATIONS.get(encoder)
    return found.far[kind] if found else GENERIC[kind]
