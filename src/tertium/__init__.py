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
    from tertium.corpus.run import CorpusSummary, score_corpus
    from tertium.data.testset import TestSet
    from tertium.errors import TertiumError
    from tertium.evaluation.agreement import AgreementStudy, meta_evaluate
    from tertium.evaluation.challenge import ChallengeStudy, challenge
    from tertium.evaluation.comparison import Comparison, compare
    from tertium.evaluation.explaining import explain
    from tertium.evaluation.ranking import Ranking, rank
    from tertium.evaluation.scoring import Evaluation, score
    from tertium.evaluation.training import train
    from tertium.metrics.base.explanation import Explanation
    from tertium.metrics.base.metric import Metric, SegmentMetric, load_metric
    from tertium.metrics.base.ranker import Ranker, load_ranker
    from tertium.reporting.page.making import report
    from tertium.reporting.page.page import Report
    from tertium.scores import ScoreMatrix, Scores
    from tertium.segment import Judgement, Preference, Segment
    from tertium.spans import Span

_HOMES = {
    "AgreementStudy": "tertium.evaluation.agreement",
    "ChallengeStudy": "tertium.evaluation.challenge",
    "Comparison": "tertium.evaluation.comparison",
    "CorpusSummary": "tertium.corpus.run",
    "Evaluation": "tertium.evaluation.scoring",
    "Explanation": "tertium.metrics.base.explanation",
    "Judgement": "tertium.segment",
    "Metric": "tertium.metrics.base.metric",
    "Preference": "tertium.segment",
    "Ranker": "tertium.metrics.base.ranker",
    "Ranking": "tertium.evaluation.ranking",
    "Report": "tertium.reporting.page.page",
    "ScoreMatrix": "tertium.scores",
    "Scores": "tertium.scores",
    "Segment": "tertium.segment",
    "SegmentMetric": "tertium.metrics.base.metric",
    "Span": "tertium.spans",
    "TertiumError": "tertium.errors",
    "TestSet": "tertium.data.testset",
    "challenge": "tertium.evaluation.challenge",
    "compare": "tertium.evaluation.comparison",
    "explain": "tertium.evaluation.explaining",
    "load_metric": "tertium.metrics.base.metric",
    "load_ranker": "tertium.metrics.base.ranker",
    "meta_evaluate": "tertium.evaluation.agreement",
    "rank": "tertium.evaluation.ranking",
    "report": "tertium.reporting.page.making",
    "score": "tertium.evaluation.scoring",
    "score_corpus": "tertium.corpus.run",
    "train": "tertium.evaluation.training",
}

__all__ = [
    "AgreementStudy",
    "ChallengeStudy",
    "Comparison",
    "CorpusSummary",
    "Evaluation",
    "Explanation",
    "Judgement",
    "Metric",
    "Preference",
    "Ranker",
    "Ranking",
    "Report",
    "ScoreMatrix",
    "Scores",
    "Segment",
    "SegmentMetric",
    "Span",
    "TertiumError",
    "TestSet",
    "__version__",
    "challenge",
    "compare",
    "explain",
    "load_metric",
    "load_ranker",
    "meta_evaluate",
    "rank",
    "report",
    "score",
    "score_corpus",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tertium' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
