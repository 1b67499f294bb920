# The public names; type checkers read this file, and `__init__.py` loads the names.
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
from tertium.version import __version__ as __version__

__all__: list[str]

def _read_public_names(package_file: str) -> dict[str, str]: ...
