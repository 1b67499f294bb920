"""The segment browser of a report: its controls, and its data for the script.

The data are JSON, deflated and base64-encoded. The translations of a segment are adjacent, which
compresses well. Scores are integers: the rounded score without its decimal point.
"""

from __future__ import annotations

import base64
import json
import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from tertium.core.arrays import FloatArray
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
from tertium.output.html import Block, fill_template, render_fragment
from tertium.output.markup_builder import Markup, element
from tertium.output.page.translation_grid import (
    MetricColumn,
    TranslationGrid,
    select_items_to_explain,
    select_systems_to_explain,
)

SCRIPTS = ("data", "query", "differences", "results", "start")
RANK_DECIMALS = 3

logger = logging.getLogger(__name__)


def browse_segments(grid: TranslationGrid, explained: Sequence[SegmentExplanation]) -> Block:
    """Return the segment browser."""
    values = {
        "explanations": _describe_explanations(grid, explained),
        "units": f"{grid.unit}s".capitalize(),
        "data": Markup(encode_grid(grid, explained)),
    }
    return Block(fill_template("segments.html", values), SCRIPTS)


def _describe_explanations(grid: TranslationGrid, explained: Sequence[SegmentExplanation]) -> str:
    if not explained:
        return (
            "This page has no explanations. Metrics with explanations: BERTR, BERTScore, WMD, "
            "tertium-small, tertium-multi and entailment."
        )
    items = sorted({e.item for e in explained})
    labels = ", ".join(grid.items[n].label for n in items)
    return (
        f"Explanations are available for {len(items)} segment{'s' * (len(items) != 1)} where "
        f"metrics, human scores or systems differ most: {labels}."
    )


def encode_grid(grid: TranslationGrid, explanations: Sequence[SegmentExplanation] = ()) -> str:
    """Return the data of the segment browser as base64."""
    contents = grid_contents(grid, explanations)
    text = json.dumps(contents, ensure_ascii=True, separators=(",", ":"))
    packed = zlib.compress(text.encode("ascii"), 9)
    return base64.b64encode(packed).decode("ascii")


def grid_contents(
    grid: TranslationGrid, explanations: Sequence[SegmentExplanation]
) -> dict[str, Any]:
    """Return the data of the segment browser; `script/data.js` reads them."""
    documents = list(dict.fromkeys(item.document for item in grid.items))
    number = {name: n for n, name in enumerate(documents)}
    outputs: list[list[str]] = [[] for _ in grid.items]
    for place, text in zip(grid.item_indices.tolist(), grid.texts, strict=True):
        outputs[place].append(text)
    items = []
    for item, texts in zip(grid.items, outputs, strict=True):
        document = number[item.document]
        items.append([item.label, document, item.source, list(item.references), texts])
    return {
        "systems": list(grid.systems),
        "documents": documents,
        "items": items,
        "systemIndices": grid.system_indices.tolist(),
        "unit": grid.unit,
        "columns": [_column(column) for column in grid.columns],
        "human": None if grid.human is None else _human(grid.human),
        "metricDisagreement": to_scaled_integers(grid.metric_disagreement, RANK_DECIMALS),
        "humanDisagreement": to_scaled_integers(grid.human_disagreement, RANK_DECIMALS),
        "warnings": list(grid.warnings),
        "warningBits": _warning_bits(grid),
        "explanations": [[e.item, e.system, e.title, str(e.html)] for e in explanations],
    }


def to_scaled_integers(values: FloatArray, decimals: int) -> list[int | None]:
    """Return values rounded as in tables, without the decimal point; None for NaN.

    >>> to_scaled_integers(np.array([0.5, 0.015, np.nan]), 2)  # 0.015 is less in binary
    [50, 1, None]
    """
    integers = []
    for value in values.tolist():
        digits = f"{value:.{decimals}f}".replace(".", "")
        integers.append(int(digits) if isfinite(value) else None)
    return integers


def _column(column: MetricColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "spec": column.spec,
        "higherIsBetter": column.higher_is_better,
        "decimals": column.decimals,
        "values": to_scaled_integers(column.values, column.decimals),
    }


def _human(values: FloatArray) -> dict[str, Any]:
    """Return human scores with one decimal for a 0-100 scale, three for z-scores."""
    finite = values[np.isfinite(values)]
    is_wide = finite.size > 0 and float(np.ptp(finite)) > 20
    decimals = 1 if is_wide else 3
    return {"decimals": decimals, "values": to_scaled_integers(values, decimals)}


def _warning_bits(grid: TranslationGrid) -> list[int]:
    """Return a bit set of warning kinds per row; empty without any warnings."""
    if not grid.warnings:
        return []
    total = np.zeros(len(grid), dtype=np.int64)
    for place, mask in enumerate(grid.warnings.values()):
        total += mask.astype(np.int64) << place
    return total.tolist()


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
