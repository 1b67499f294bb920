"""Does it follow? About a hundred features for each direction between translation and reference.

A new group is a tuple of features and a line in `GROUPS`.
(Pado, Galley, Jurafsky and Manning 2009; MacCartney et al. 2006.)
"""

from __future__ import annotations

from collections.abc import Mapping

from tertium.metrics.regression.entailment import compatibility, structure, words
from tertium.metrics.regression.entailment.feature import AnyFeature

GROUPS: Mapping[str, tuple[AnyFeature, ...]] = {
    "alignment": words.ALIGNMENT,
    "compatibility": compatibility.FEATURES,
    "insertions": words.INSERTIONS,
    "reference": words.REFERENCE,
    "structure": structure.FEATURES,
}
