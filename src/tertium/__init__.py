"""tertium evaluates machine translation. A quick tour:

    import tertium

    # Score and compare system outputs; one text per line in each file.
    testset = tertium.TestSet.read(["ours.txt", "theirs.txt"], references=["reference.txt"])
    evaluation = tertium.score(testset, ["bleu", "chrf"])
    comparison = tertium.compare(testset, ["chrf"])  # with significance tests
    tertium.report(testset, ["bleu", "chrf"]).write("report.html")

    # Use one metric on one segment.
    metric = tertium.load_metric("chrf++")
    metric.sentence_score("a hypothesis", ["a reference"])
    tertium.explain(tertium.Segment("a hypothesis", references=("a reference",)), metric="rte-r")

    # Rank systems, measure agreement with human scores, train a metric, filter a corpus.
    ranking = tertium.rank(testset, "pairwise")
    agreement = tertium.meta_evaluate("judgments.tsv", ["bleu", "chrf"])
    trained = tertium.train("bleu-r", "judgments.tsv", folder="models/mine")
    tertium.score_corpus("pairs/*.parquet", ["chrf"], "scored", keep="chrf >= 50")

    # Choose device, threads, batch size or cache for a block of calls.
    with tertium.runtime(device="cpu", threads=4, cache=False):
        tertium.score(testset, "bertscore")

Names are loaded on first use: `import tertium` imports no metric and no heavy library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tertium.version import __version__

if TYPE_CHECKING:
    from tertium.core.errors import TertiumError as TertiumError
    from tertium.core.runtime import runtime as runtime
    from tertium.core.scores import ScoreMatrix as ScoreMatrix
    from tertium.core.scores import Scores as Scores
    from tertium.core.segment import Judgment as Judgment
    from tertium.core.segment import Preference as Preference
    from tertium.core.segment import Segment as Segment
    from tertium.core.spans import Span as Span
    from tertium.corpus.corpus_run import score_corpus as score_corpus
    from tertium.corpus.summary import CorpusSummary as CorpusSummary
    from tertium.data.testset import TestSet as TestSet
    from tertium.decide.gate import gate as gate
    from tertium.decide.gate_result import GateResult as GateResult
    from tertium.decide.route import Route as Route
    from tertium.decide.route import fit_route as fit_route
    from tertium.decide.routing import RoutedTranslations as RoutedTranslations
    from tertium.decide.routing import apply_route as apply_route
    from tertium.decide.worst import WorstSegments as WorstSegments
    from tertium.decide.worst import worst as worst
    from tertium.evaluation.checking import CheckReport as CheckReport
    from tertium.evaluation.checking import check as check
    from tertium.evaluation.comparison import Comparison as Comparison
    from tertium.evaluation.comparison import compare as compare
    from tertium.evaluation.error_marking import write_back as write_back
    from tertium.evaluation.explaining import explain as explain
    from tertium.evaluation.ranking import Ranking as Ranking
    from tertium.evaluation.ranking import rank as rank
    from tertium.evaluation.scoring import score as score
    from tertium.evaluation.system_scores import Evaluation as Evaluation
    from tertium.evaluation.training import train as train
    from tertium.files.projects import Project as Project
    from tertium.files.projects import read_project as read_project
    from tertium.metrics.base.explanation import Explanation as Explanation
    from tertium.metrics.base.loading import load_metric as load_metric
    from tertium.metrics.base.metric import Metric as Metric
    from tertium.metrics.base.metric import SegmentMetric as SegmentMetric
    from tertium.metrics.base.ranker import Ranker as Ranker
    from tertium.metrics.base.ranker import load_ranker as load_ranker
    from tertium.output.page.report import Report as Report
    from tertium.output.page.report import report as report
    from tertium.people.planning import plan_campaign as plan_campaign
    from tertium.people.power import plan_power as plan_power
    from tertium.people.rater_agreement import RaterStudy as RaterStudy
    from tertium.people.rater_agreement import agree as agree
    from tertium.studies.challenge import ChallengeStudy as ChallengeStudy
    from tertium.studies.challenge import challenge as challenge
    from tertium.studies.meta_evaluation import AgreementStudy as AgreementStudy
    from tertium.studies.meta_evaluation import meta_evaluate as meta_evaluate

_PUBLIC_NAMES = {  # module: its public names
    "tertium.corpus.corpus_run": "score_corpus",
    "tertium.corpus.summary": "CorpusSummary",
    "tertium.data.testset": "TestSet",
    "tertium.decide.gate": "gate",
    "tertium.decide.gate_result": "GateResult",
    "tertium.decide.route": "Route fit_route",
    "tertium.decide.routing": "RoutedTranslations apply_route",
    "tertium.decide.worst": "WorstSegments worst",
    "tertium.core.errors": "TertiumError",
    "tertium.people.planning": "plan_campaign",
    "tertium.people.power": "plan_power",
    "tertium.studies.challenge": "ChallengeStudy challenge",
    "tertium.evaluation.checking": "CheckReport check",
    "tertium.evaluation.comparison": "Comparison compare",
    "tertium.evaluation.explaining": "explain",
    "tertium.studies.meta_evaluation": "AgreementStudy meta_evaluate",
    "tertium.evaluation.ranking": "Ranking rank",
    "tertium.people.rater_agreement": "RaterStudy agree",
    "tertium.evaluation.system_scores": "Evaluation",
    "tertium.evaluation.scoring": "score",
    "tertium.evaluation.training": "train",
    "tertium.evaluation.error_marking": "write_back",
    "tertium.core.runtime": "runtime",
    "tertium.files.projects": "Project read_project",
    "tertium.metrics.base.explanation": "Explanation",
    "tertium.metrics.base.loading": "load_metric",
    "tertium.metrics.base.metric": "Metric SegmentMetric",
    "tertium.metrics.base.ranker": "Ranker load_ranker",
    "tertium.output.page.report": "Report report",
    "tertium.core.scores": "ScoreMatrix Scores",
    "tertium.core.segment": "Judgment Preference Segment",
    "tertium.core.spans": "Span",
}
_MODULE_BY_NAME = {name: home for home, names in _PUBLIC_NAMES.items() for name in names.split()}

__all__ = ["__version__", *_MODULE_BY_NAME]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'tertium' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_BY_NAME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
