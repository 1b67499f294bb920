"""The commands `route fit` and `route apply`: publish, post-edit or translate again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, ClassVar

from tertium.core.errors import UsageError
from tertium.core.options import Compute, InFile, Names, Option
from tertium.decide.route import Route, fit_route
from tertium.decide.routing import RoutedTranslations, apply_route
from tertium.evaluation.judged import HumanInputs
from tertium.evaluation.metric_choice import MetricOptions
from tertium.files.text_inputs import InputFiles
from tertium.metrics.base.judge_run import JudgeConnection

Share = Annotated[float, Option(metavar="P")]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a route promises, and which translations are good.

    Attributes
    ----------
    target_precision
        Share of good translations among the published ones.
    bad_precision
        Share of bad translations among those below the lower threshold.
    alpha
        Probability that one of these shares is not reached.
    good_score
        Human score of a good translation (default: 80 for ESA and DA, -1 MQM).
    bad_score
        Human score below which it is bad (default: 50 for ESA and DA, -10 MQM).
    """

    group: ClassVar[str] = "Statistics"
    target_precision: Share = 0.95
    bad_precision: Share = 0.5
    alpha: Share = 0.05
    good_score: float | None = None
    bad_score: float | None = None


def fit_route_to_files(
    inputs: HumanInputs,
    metrics: MetricOptions,
    promise: Promise,
    compute: Compute,
    judge: JudgeConnection,
    *,
    escalate: Annotated[str | None, Option(group="Metrics", metavar="METRIC")] = None,
    ignore: Annotated[Names, Option(group="Metrics", metavar="ID")] = (),
) -> Route:
    """Fit thresholds with a promised precision on judged translations.

    Parameters
    ----------
    escalate
        A more expensive metric for rows that the first leaves undecided.
    ignore
        Checks that do not decide; see `tertium list checks` (default: none).

    Examples
    --------
    tertium route fit --human judged.jsonl -m tertium-multi --target-precision 0.9 -o route.json
    tertium route fit --human judged.jsonl -m chrf --escalate judge:model=NAME -o route.json

    Notes
    -----
    At least 100 judged rows with texts, a human score and a language pair (lp) are needed.
    """
    if len(metrics.metrics) != 1:
        raise UsageError("`route fit` needs one metric: give it with -m, a second with --escalate")
    metric, *more = metrics.load_specs([*metrics.metrics, *([escalate] if escalate else [])])
    return fit_route(
        inputs,
        metric.spec,
        escalate=more[0].spec if more else None,
        ignore=ignore,
        **asdict(promise),
    )


def apply_route_to_files(
    route: Annotated[InFile, Option(metavar="ROUTE")],
    /,
    inputs: InputFiles,
    compute: Compute,
    judge: JudgeConnection,
) -> RoutedTranslations:
    """Decide which translations to publish, to post-edit and to translate again.

    Parameters
    ----------
    route
        File of the fitted route.

    Examples
    --------
    tertium route apply route.json -t new.jsonl -o labeled.jsonl

    Notes
    -----
    Each row gets an outcome and its reason. A warning says if the scores are unlike those of the
    fit.
    """
    fitted = Route.load(route)
    return apply_route(fitted, inputs.read().testset, lp=inputs.language_pair)
