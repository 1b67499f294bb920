"""Entailment features: about a hundred per direction between translation and reference.

To add a group, define a tuple of features and add a line to `GROUPS`.
(Pado, Galley, Jurafsky and Manning 2009; MacCartney et al. 2006.)
"""

from __future__ import annotations

from collections.abc import Mapping

from tertium.metrics.regression.entailment import (
    semantic_compatibility,
    sentence_structure,
    words_and_entities,
)
from tertium.metrics.regression.entailment.feature_types import AnyFeature

GROUPS: Mapping[str, tuple[AnyFeature, ...]] = {
    "alignment": words_and_entities.ALIGNMENT,
    "compatibility": semantic_compatibility.FEATURES,
    "insertions": words_and_entities.INSERTIONS,
    "reference": words_and_entities.REFERENCE,
    "structure": sentence_structure.FEATURES,
}
