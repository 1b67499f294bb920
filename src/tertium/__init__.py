"""tertium judges machine translation.

    import tertium

    testset = tertium.TestSet.read(["ours.txt", "theirs.txt"], references=["reference.txt"])
    evaluation = tertium.score(testset, ["bleu", "chrf"])
    comparison = tertium.compare(testset, ["chrf"])
    tertium.load_metric("chrf++").sentence_score("a hypothesis", ["a reference"])
    ranking = tertium.rank(testset, "pairwise")
    tertium.report(testset, ["bleu", "chrf"]).write("report.html")
    agreement = tertium.meta_evaluate("judgements.tsv", ["bleu", "chrf"])
    mine = tertium.train("bleu-r", "judgements.tsv", folder="models/mine")
    tertium.score_corpus("pairs/*.parquet", ["chrf"], "scored", keep="chrf >= 50")
    tertium.explain(tertium.Segment("a hypothesis", references=("a reference",)), metric="rte-r")

Names are resolved when first used: `import tertium` loads no metric and no heavy library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tertium.version import __version__

if TYPE_CHECKING:
    from tertium.corpus.run import CorpusSummary as CorpusSummary
    from tertium.corpus.run import score_corpus as score_corpus
    from tertium.data.testset import TestSet as TestSet
    from tertium.errors import TertiumError as TertiumError
    from tertium.evaluation.agreement import AgreementStudy as AgreementStudy
    from tertium.evaluation.agreement import meta_evaluate as meta_evaluate
    from tertium.evaluation.challenge import ChallengeStudy as ChallengeStudy
    from tertium.evaluation.challenge import challenge as challenge
    from tertium.evaluation.comparison import Comparison as Comparison
    from tertium.evaluation.comparison import compare as compare
    from tertium.evaluation.explaining import explain as explain
    from tertium.evaluation.ranking import Ranking as Ranking
    from tertium.evaluation.ranking import rank as rank
    from tertium.evaluation.scoring import Evaluation as Evaluation
    from tertium.evaluation.scoring import score as score
    from tertium.evaluation.training import train as train
    from tertium.metrics.base.explanation import Explanation as Explanation
    from tertium.metrics.base.loading import load_metric as load_metric
    from tertium.metrics.base.metric import Metric as Metric
    from tertium.metrics.base.metric import SegmentMetric as SegmentMetric
    from tertium.metrics.base.ranker import Ranker as Ranker
    from tertium.metrics.base.ranker import load_ranker as load_ranker
    from tertium.reporting.page.making import report as report
    from tertium.reporting.page.page import Report as Report
    from tertium.scores import ScoreMatrix as ScoreMatrix
    from tertium.scores import Scores as Scores
    from tertium.segment import Judgment as Judgment
    from tertium.segment import Preference as Preference
    from tertium.segment import Segment as Segment
    from tertium.spans import Span as Span

_NAMES = {
    "corpus.run": "CorpusSummary score_corpus",
    "data.testset": "TestSet",
    "errors": "TertiumError",
    "evaluation.agreement": "AgreementStudy meta_evaluate",
    "evaluation.challenge": "ChallengeStudy challenge",
    "evaluation.comparison": "Comparison compare",
    "evaluation.explaining": "explain",
    "evaluation.ranking": "Ranking rank",
    "evaluation.scoring": "Evaluation score",
    "evaluation.training": "train",
    "metrics.base.explanation": "Explanation",
    "metrics.base.loading": "load_metric",
    "metrics.base.metric": "Metric SegmentMetric",
    "metrics.base.ranker": "Ranker load_ranker",
    "reporting.page.making": "report",
    "reporting.page.page": "Report",
    "scores": "ScoreMatrix Scores",
    "segment": "Judgment Preference Segment",
    "spans": "Span",
}
_HOMES = {name: f"tertium.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tertium' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
