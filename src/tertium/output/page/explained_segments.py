"""Explanations of selected segments of a report."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from tertium.core.errors import TertiumError, UsageError
from tertium.core.runtime import track_progress
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.evaluation.explaining import add_error_spans
from tertium.metrics.base.capabilities import Explains
from tertium.metrics.base.explanation import Explanation
from tertium.metrics.base.judge_run import JudgeServerError
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.output.html import render_fragment
from tertium.output.markup_builder import Markup, element
from tertium.output.page.translation_grid import (
    TranslationGrid,
    select_items_to_explain,
    select_systems_to_explain,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SegmentExplanation:
    """An explanation of one translation, with the name of the metric as title."""

    item: int
    system: int
    title: str
    html: Markup


def render_explanation(explanation: Explanation) -> Markup:
    """Return all contents of an explanation."""
    return element("div", render_fragment(explanation.contents()), class_="explanation")


def check_explainer(metric: str | Metric) -> Metric:
    """Load the metric that explains segments; refuse one that cannot."""
    loaded = metric if isinstance(metric, Metric) else load_metric(metric)
    if not isinstance(loaded, Explains):
        raise UsageError(
            f"--explain-with {loaded.spec}: it cannot explain its scores; choose a metric such as "
            "rte-r, tertium-multi or judge:model=NAME"
        )
    return loaded


def explain_items(
    testset: TestSet,
    grid: TranslationGrid,
    metrics: Sequence[Metric],
    count: int,
    explainer: Metric | None = None,
) -> list[SegmentExplanation]:
    """Explain selected segments with `explainer`, else all metrics that can."""
    explainers = [explainer] if explainer is not None else []
    if explainer is None:
        explainers = [metric for metric in metrics if isinstance(metric, Explains)]
    items = select_items_to_explain(grid, count) if explainers else []
    places = [(item, system) for item in items for system in select_systems_to_explain(grid, item)]
    segments = [testset.segments(grid.systems[system])[item] for item, system in places]
    if explainer is not None and segments:
        explainer.score(segments)  # all answers at once
    explanations: list[SegmentExplanation] = []
    for place, segment in track_progress([*zip(places, segments, strict=True)], "explaining"):
        explanations += _explain_translation(explainers, segment, *place)
    return explanations


def _explain_translation(
    metrics: Sequence[Metric], segment: Segment, item: int, system: int
) -> list[SegmentExplanation]:
    explanations = []
    for metric in metrics:
        try:
            html = render_explanation(add_error_spans(metric.explain(segment), metric, segment))
        except JudgeServerError:
            raise
        except TertiumError as error:  # such as an empty output
            logger.info("segment %d: %s", item + 1, error)
            continue
        explanations.append(SegmentExplanation(item, system, metric.label, html))
    return explanations
