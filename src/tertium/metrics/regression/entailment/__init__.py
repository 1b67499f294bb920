"""Does it follow? About a hundred features for each direction between translation and reference.

One module for each group; a new group is a new module and a line in `GROUPS`.
(Pado, Galley, Jurafsky and Manning 2009; MacCartney et al. 2006.)
"""

from __future__ import annotations

from collections.abc import Mapping

from tertium.metrics.regression.entailment import (
    alignment,
    compatibility,
    insertions,
    reference,
    structure,
)
from tertium.metrics.regression.entailment.feature import AnyFeature

GROUPS: Mapping[str, tuple[AnyFeature, ...]] = {
    "alignment": alignment.FEATURES,
    "compatibility": compatibility.FEATURES,
    "insertions": insertions.FEATURES,
    "reference": reference.FEATURES,
    "structure": structure.FEATURES,
}
