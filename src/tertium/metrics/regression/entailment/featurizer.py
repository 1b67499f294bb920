"""Entailment features of segments as columns: both directions, all groups or some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tertium.arrays import FloatArray
from tertium.linguistics.parse import load_parser
from tertium.linguistics.sentence import Sentence, build_sentence
from tertium.metrics.base.featurizer import reference_of
from tertium.metrics.regression.entailment import GROUPS
from tertium.metrics.regression.entailment.feature import BACKWARD, FORWARD, AnyFeature
from tertium.metrics.regression.entailment.pair import Pair, make_pairs
from tertium.metrics.regression.entailment.vectors import is_static, node_vectors
from tertium.segment import Segment

DIRECTIONS = (FORWARD, BACKWARD)
REMEMBERED = 4096  # sentences


@dataclass(frozen=True)
class EntailmentFeatures:
    """The features of the named groups in both directions: 212 columns for all groups.

    `forward` asks whether the hypothesis follows from the reference, `backward` whether the
    reference follows from the hypothesis. `vectors` is the encoder of distributional similarity:
    static (`glove`) or contextual (`minilm@4`).
    """

    groups: tuple[str, ...] = tuple(GROUPS)
    vectors: str = "glove"

    @property
    def forks(self) -> bool:
        """Contextual vectors run a network, whose threads a forked process would wait for."""
        return is_static(self.vectors)

    @property
    def features(self) -> tuple[AnyFeature, ...]:
        """The features of each direction."""
        return tuple(feature for group in self.groups for feature in GROUPS[group])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{d}.{feature.name}" for d in DIRECTIONS for feature in self.features)

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        features = self.features
        rows = [
            [feature.value(pair) for pair in pairs for feature in features]
            for pairs in self.pairs(segments)
        ]
        return np.array(rows, dtype=np.float64).reshape(len(rows), 2 * len(features))

    def pairs(self, segments: Sequence[Segment]) -> list[tuple[Pair, Pair]]:
        """Both directions of each segment, aligned."""
        texts = [text for s in segments for text in (s.hypothesis, reference_of(s))]
        found = sentences(texts, self.vectors)
        return [make_pairs(found[s.hypothesis], found[s.references[0]]) for s in segments]


def sentences(texts: Sequence[str], vectors: str = "glove") -> dict[str, Sentence]:
    """Each distinct text as a sentence ready for comparison."""
    memory = _memory(vectors)
    found = {text: memory[text] for text in texts if text in memory}
    missing = [text for text in dict.fromkeys(texts) if text not in found]
    if missing:
        lookup = node_vectors(vectors)
        lookup.prepare(missing)
        for analysis in load_parser().analyse(missing):
            found[analysis.text] = build_sentence(analysis, lookup)
    for text in missing:
        if len(memory) >= REMEMBERED:
            memory.pop(next(iter(memory)))
        memory[text] = found[text]
    return found


def forget() -> None:
    """Drop the sentences held in memory; the store on disk keeps its analyses."""
    _memory.cache_clear()


@lru_cache(maxsize=4)
def _memory(vectors: str) -> dict[str, Sentence]:
    """Sentences by text, the oldest first."""
    return {}
