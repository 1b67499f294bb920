"""Rank systems, or lists of candidates, by their mean chance to win against all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tertium.arrays import FloatArray, IntArray, divide
from tertium.data.candidates import CandidateList
from tertium.data.testset import TestSet, check_testset
from tertium.display import Displayed
from tertium.errors import NeedsError
from tertium.evaluation.scoring import Evaluation, best_metric_for, segment_fields
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.ranker import ByScore, Ranker, find_ranker
from tertium.scores import ScoreMatrix, Scores
from tertium.segment import Segment

NOT_COMPARED = "translation not compared, for a score is no number"  # a warning


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranking(Displayed):
    """The mean chance of each system to win on each segment (`matrix`), and what follows.

    `warnings` counts, for each kind and system, what a reader of the ranking should know.
    """

    testset: TestSet
    ranker: Ranker
    matrix: ScoreMatrix = field(repr=False)
    signature: str
    warnings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def order(self) -> list[int]:
        """The rows of the systems from best to worst; equals in the order given."""
        order: list[int] = np.argsort(-self.matrix.system_scores, kind="stable").tolist()
        return order

    @property
    def places(self) -> list[float]:
        """The place of each system, from 1; equals share the better one, NaN for one unscored."""
        scores = self.matrix.system_scores
        return [1 + int((scores > s).sum()) if s == s else np.nan for s in scores]

    @property
    def best_on(self) -> IntArray:
        """On how many segments each system is the best, alone or with others, (systems,)."""
        values = self.matrix.values
        # sums of chances in another order differ in their last bits, which must not part equals
        count: IntArray = (values >= np.fmax.reduce(values) - 1e-12).sum(axis=1)
        return count

    def records(self, *, segments: bool = False) -> list[dict[str, Any]]:
        """One plain dictionary for each system, from best to worst."""
        matrix = self.matrix
        return [
            {
                "name": matrix.name,
                "system": matrix.systems[n],
                "rank": self.places[n],
                "score": float(matrix.system_scores[n]),
                "best": int(self.best_on[n]),
                "signature": self.signature,
                **(segment_fields(self.testset, matrix.values[n]) if segments else {}),
                **({"warnings": warnings} if (warnings := self._warnings_of(n)) else {}),
            }
            for n in self.order
        ]

    def _warnings_of(self, row: int) -> dict[str, int]:
        system = self.matrix.systems[row]
        return {kind: by[system] for kind, by in self.warnings.items() if system in by}

    def beside(self, evaluation: Evaluation) -> Evaluation:
        """An evaluation of the same test set with the chances as one more column."""
        by_score = isinstance(self.ranker, ByScore)
        label = f"wins by {self.ranker.spec}" if by_score else self.ranker.title
        spec = f"wins by {self.matrix.name}"
        scores = {
            system: {
                **evaluation.scores[system],
                spec: mean_scores(spec, self.matrix[system], label, self.signature),
            }
            for system in evaluation.systems
        }
        metrics = (*evaluation.metrics, spec)
        return replace(evaluation, metrics=metrics, scores=scores, intervals={})

    def as_evaluation(self) -> Evaluation:
        """An evaluation in which the mean chance to win is the only score."""
        systems = self.matrix.systems
        return self.beside(Evaluation(self.testset, systems, (), {name: {} for name in systems}))


def best_ranker(segments: Sequence[Segment]) -> str:
    """What ranks such translations best: pairwise, which learned from English references alone.

    Beside other references, or none, it is the metric that scores them best.
    """
    first = [segment.references[0] for segment in segments if segment.references]
    metric = best_metric_for(first, sources=any(s.source is not None for s in segments))
    return "pairwise" if metric == "tertium-small" else metric


def rank(testset: TestSet, ranker: str | Metric | Ranker | None = None) -> Ranking:
    """Compare every two translations of each segment, and rank systems by their chance to win.

    One whose score is no number is not compared, and counted; a system without a score has no rank.

    `ranker` is a ranker or a metric, whose better score wins, or the spec of one: pairwise for
    English references unless it is given, tertium-multi for all others and where there is none.

    >>> two = TestSet(systems={"a": ["a dog"], "b": ["a cat"]}, references=[["the cat"]])
    >>> [(record["system"], record["rank"]) for record in rank(two, "chrf").records()]
    [('b', 1), ('a', 2)]
    """
    check_testset(testset)
    first = testset.segments(next(iter(testset.systems)))
    chosen = find_ranker(best_ranker(first) if ranker is None else ranker)
    matrix = chosen.rank(testset)
    signature = chosen.signature(first)
    warnings: dict[str, dict[str, int]] = {}
    for system in matrix.systems:
        for kind, count in chosen.warnings(testset.segments(system)).items():
            warnings.setdefault(kind, {})[system] = count
        if lost := int(np.isnan(matrix[system]).sum()):
            warnings.setdefault(NOT_COMPARED, {})[system] = lost
    return Ranking(
        testset=testset, ranker=chosen, matrix=matrix, signature=signature, warnings=warnings
    )


def rerank(
    lists: Sequence[CandidateList], ranker: str | Metric | Ranker | None = None
) -> list[dict[str, Any]]:
    """The records of candidate lists, each with its candidates from best to worst."""
    firsts = [entry.segments[0] for entry in lists]
    chosen = find_ranker(best_ranker(firsts) if ranker is None else ranker)
    for number, segment in enumerate(firsts, start=1):
        for part, given in (("references", segment.references), ("source", segment.source)):
            if part in chosen.needs and not given:
                raise NeedsError(
                    f"{chosen.spec} needs {part}, and list {number} has none: give each list some, "
                    "or choose a ranker or metric that reads what all have"
                )
    rates = chosen.win_rates([entry.segments for entry in lists])
    return [e.reorder(r.tolist()) for e, r in zip(lists, rates, strict=True)]


def mean_scores(spec: str, values: FloatArray, name: str, signature: str = "") -> Scores:
    """Segment scores as `Scores` whose system score is their mean; NaN counts for nothing.

    >>> mean_scores("mine", np.array([1.0, np.nan, 2.0]), "Mine").system
    1.5
    """
    known = np.isfinite(values)
    statistics = np.column_stack([np.where(known, values, 0.0), known.astype(np.float64)])
    return Scores(metric=spec, name=name, statistics=statistics, reduce=_mean, signature=signature)


def _mean(totals: FloatArray) -> FloatArray:
    return divide(totals[..., 0], totals[..., 1])
