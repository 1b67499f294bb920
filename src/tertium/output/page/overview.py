"""The overview of a report: the scores of systems with intervals, tests and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tertium.core.result import Cell, Table, number_cell
from tertium.evaluation.comparison import Comparison
from tertium.evaluation.evaluation import Evaluation
from tertium.evaluation.resampling import Interval
from tertium.evaluation.verdicts import describe_verdict
from tertium.meta.correlation import ranks
from tertium.output.charts.axes import Scale
from tertium.output.html_table import render_table as render_html_table
from tertium.output.markup import (
    Markup,
    collapsible,
    element,
    escape,
    isolate_names,
    join,
    scrollable,
)
from tertium.output.page.translation_grid import TranslationGrid
from tertium.output.short_names import name_markup, shorten_names

MAX_DOCUMENT_ROWS = 2000
INTERVAL_WIDTH = 120  # pixels of the interval below a score
MAX_NAME_LENGTH = 28  # characters of a system name in tables


def overview_contents(evaluation: Evaluation, grid: TranslationGrid) -> Markup:
    """Return the overview: findings, scores, tests, documents, warnings and signatures."""
    cautions = evaluation.caution_lines()
    parts = [element("p", line, class_="note") for line in cautions]
    findings = summarize_evaluation(evaluation)
    if isinstance(evaluation, Comparison) and (verdict := describe_verdict(evaluation)):
        findings = [element("strong", *isolate_names(verdict, evaluation.systems)), *findings]
    if findings:
        parts.append(element("ul", *(element("li", text) for text in findings), class_="findings"))
    parts.append(system_score_table(evaluation))
    if isinstance(evaluation, Comparison) and evaluation.metrics:
        parts += [element("p", line, class_="note") for line in evaluation.agreement_lines()]
        parts.append(_pairwise_p_values(evaluation))
    if evaluation.testset.documents:
        parts.append(_documents(evaluation))
    parts.append(_warnings(evaluation, grid))
    signatures = [s.signature for s in evaluation.scores[evaluation.systems[0]].values()]
    parts.append(signature_list([text for text in signatures if text]))
    return join(parts)


def system_score_table(evaluation: Evaluation) -> Markup:
    """Return systems x metrics, sortable, with intervals and clusters."""
    columns = [evaluation.heading(metric) for metric in evaluation.metrics]
    head = [_sort_header("system", ""), *(_sort_header(column, "number") for column in columns)]
    rows = []
    short = shorten_names(evaluation.systems, MAX_NAME_LENGTH)
    for place, system in enumerate(evaluation.systems):
        is_baseline = isinstance(evaluation, Comparison) and not place
        label = element("span", " baseline", class_="muted base") if is_baseline else ""
        cells = [_score(evaluation, place, metric) for metric in evaluation.metrics]
        name = name_markup(system, short[place])
        rows.append(element("tr", element("th", name, label, scope="row"), *cells))
    table = element(
        "table",
        element("caption", "System scores"),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
        class_="sortable scores",
    )
    legend = element("p", *_legend(evaluation), class_="note")
    warnings = [element("p", line, class_="note") for line in evaluation._sample_warnings()]
    return join([scrollable(table, "System scores"), legend, *warnings])


def _sort_header(name: str, style: str) -> Markup:
    button = element("button", name, type="button")
    return element("th", button, scope="col", class_=style or None, aria_sort="none")


def _score(evaluation: Evaluation, place: int, metric: str) -> Markup:
    system = evaluation.systems[place]
    scores = evaluation.scores[system][metric]
    best = evaluation.is_best(system, metric)
    parts = [element("span", number_cell(scores.system, scores.decimals).text, class_="score")]
    has_score = scores.system == scores.system
    if isinstance(evaluation, Comparison) and has_score:
        parts += _significance_marks(evaluation, place, system, metric)
    bounds = evaluation.intervals.get(system, {}).get(metric)
    if bounds is not None and has_score:
        intervals = [evaluation.intervals[s][metric] for s in evaluation.systems]
        intervals = [interval for interval in intervals if interval.low == interval.low]
        parts.append(_interval_svg(scores.system, bounds, intervals))
        low, high = (f"{v:z.{scores.decimals}f}" for v in (bounds.low, bounds.high))
        parts.append(element("span", f" {low} to {high}", class_="muted range"))
    return element(
        "td", *parts, class_="number best" if best else "number", data_value=repr(scores.system)
    )


def _interval_svg(value: float, own: Interval, intervals: Sequence[Interval]) -> Markup:
    """Draw a confidence interval on the scale of all systems."""
    x = Scale(min(i.low for i in intervals), max(i.high for i in intervals), 5, INTERVAL_WIDTH - 5)
    return element(
        "svg",
        element("line", x1=3, x2=INTERVAL_WIDTH - 3, y1=6, y2=6, class_="rail"),
        element("line", x1=x(own.low), x2=x(own.high), y1=6, y2=6, class_="interval"),
        element("circle", cx=x(value), cy=6, r=4, class_="dot"),
        width=INTERVAL_WIDTH,
        height=12,
        viewBox=f"0 0 {INTERVAL_WIDTH} 12",
        class_="track",
        aria_hidden="true",
    )


def _significance_marks(result: Comparison, place: int, system: str, metric: str) -> list[Markup]:
    """Return a mark for a significant difference to the baseline, and the cluster."""
    cluster = result.clusters[metric][place]
    badge = element(
        "span",
        element("span", " cluster ", class_="hidden"),
        str(cluster),
        class_=f"cluster k{min(cluster, 4)}",
        title=f"cluster {cluster}",
    )
    if not place:
        return [element("span", class_="mark"), badge]
    p = result.p_value(metric, system)
    sign, style, verb = "", "", "not significantly different from"
    if p < result.alpha:
        better = result.difference(metric, system) > 0
        sign, style, verb = ("▲", "good", "better than") if better else ("▼", "bad", "worse than")
    baseline = result.baseline
    p_text = f", p = {p:.4f} " if p == p else ", p is undefined "
    hidden = element("span", f" {verb} ", element("bdi", baseline), p_text, class_="hidden")
    title = f"{verb} {baseline}{p_text}".strip()
    return [element("span", sign, hidden, class_=f"mark {style}".strip(), title=title), badge]


def _legend(evaluation: Evaluation) -> list[Markup | str]:
    parts: list[Markup | str] = ["↑ higher is better, ↓ lower is better; best in bold. "]
    if evaluation.intervals:
        parts.append("Below each score: its 95 % bootstrap interval. ")
    if isinstance(evaluation, Comparison):
        resampling = (
            "bootstrap resamples" if evaluation.test == "bootstrap" else "randomization trials"
        )
        parts += [
            "▲ ▼: significantly better or worse than ",
            element("bdi", evaluation.baseline),
            " (paired, "
            f"p < {evaluation.alpha:g}, {evaluation.resamples:,} {resampling}, "
            f"seed {evaluation.seed}). "
            "Numbers in boxes are clusters: each system is significantly better than all systems "
            "of the next cluster. ",
        ]
    return parts


def summarize_evaluation(evaluation: Evaluation) -> list[Markup]:
    """Return sentences on the best systems and the agreement of the metrics."""
    systems, metrics = evaluation.systems, evaluation.metrics
    if len(systems) < 2:
        return []
    names = evaluation.names
    winners: dict[tuple[str, ...], list[str]] = {}  # best systems: metrics
    for metric in metrics:
        best = tuple(system for system in systems if evaluation.is_best(system, metric))
        winners.setdefault(best, []).append(metric)
    winners.pop((), None)
    sentences = []
    for best, won in sorted(winners.items(), key=lambda entry: -len(entry[1])):
        metric_names = ", ".join(names[m] for m in won)
        if len(won) == len(metrics) > 1:
            metric_names = "both metrics" if len(metrics) == 2 else f"all {len(metrics)} metrics"
        significance = ""
        if isinstance(evaluation, Comparison) and len(best) < len(systems):
            # a system without a score is in cluster 0 and may be better
            ahead = [m for m in won if sum(c < 2 for c in evaluation.clusters[m]) == len(best)]
            significance = _describe_significance(len(ahead), len(won))
        winners_text = [part for name in best for part in (" and ", element("bdi", name))][1:]
        verb = "are" if best[1:] else "is"
        sentences.append(join([*winners_text, f" {verb} best under {metric_names}{significance}."]))
    return sentences + _compare_orders(evaluation)


def _describe_significance(ahead: int, won: int) -> str:
    if ahead == won:
        return ", significantly better than all others"
    if ahead:
        return f", significantly better than all others under {ahead} of them"
    return ", but not significantly better than all others"


def _compare_orders(evaluation: Evaluation) -> list[Markup]:
    """Return whether the metrics rank the systems in the same order, ties included."""
    if len(evaluation.metrics) < 2:
        return []
    orders: set[tuple[float, ...]] = set()
    for metric in evaluation.metrics:
        scores = np.array([s.sign * s.system for s in evaluation.metric_scores(metric)])
        if np.isnan(scores).any():
            return []
        orders.add(tuple(ranks(scores).tolist()))
    if all(len({*order}) == 1 for order in orders):
        return []  # all systems are tied under all metrics
    quantifier = "Both" if len(evaluation.metrics) == 2 else "All"
    if len(orders) == 1:
        return [escape(f"{quantifier} metrics rank the systems in the same order.")]
    return [escape(f"The metrics rank the systems in {len(orders)} different orders.")]


def _pairwise_p_values(comparison: Comparison) -> Markup:
    tables = [comparison.pair_table(metric) for metric in comparison.metrics]
    note = join(element("p", text, class_="note") for text in tables[0].notes)  # the same for all
    tables_html = [render_html_table(replace(table, notes=()), style="pairs") for table in tables]
    return collapsible("p-values of all pairs of systems", note, *tables_html)


def _documents(evaluation: Evaluation) -> Markup:
    count = len(evaluation.systems) * len(set(evaluation.testset.documents))
    if count > MAX_DOCUMENT_ROWS:
        text = f"{count:,} document scores are too many for a page: see tertium score -dl."
        return element("p", text, class_="note")
    title = "Document scores"
    table = render_html_table(replace(evaluation.document_table(), title=title), sortable=True)
    return collapsible(title, table)


def _warnings(evaluation: Evaluation, grid: TranslationGrid) -> Markup:
    counts: dict[str, list[int]] = {
        kind: np.bincount(grid.system_indices[mask], minlength=len(grid.systems)).tolist()
        for kind, mask in grid.warnings.items()
    }
    for place, system in enumerate(evaluation.systems):
        for scores in evaluation.scores[system].values():
            for kind, n in scores.warnings.items():
                row = counts.setdefault(kind, [0] * len(evaluation.systems))
                row[place] = max(row[place], n)
    if not counts:
        return element("p", "No warnings: no empty, copied or truncated output.", class_="note")
    rows: list[list[Cell | str]] = [
        [system, *(Cell(str(row[place] or "–"), row[place]) for row in counts.values())]
        for place, system in enumerate(grid.systems)
    ]
    title = "Warnings: number of translations"
    return render_html_table(
        Table.from_cells(["system", *counts], rows, title=title), style="warned"
    )


def signature_list(signatures: Sequence[str]) -> Markup:
    """Return signatures with a copy button each."""
    if not signatures:
        return Markup("")
    lines = [
        element(
            "li",
            element("code", text),
            element(
                "button",
                "Copy",
                type="button",
                class_="copy",
                data_copy=text,
                aria_label=f"Copy the signature of {text.partition('|')[0]}",
            ),
        )
        for text in signatures
    ]
    copy_all = element(
        "button", "Copy all", type="button", class_="copy", data_copy="\n".join(signatures)
    )
    parts = [element("h3", "Signatures"), element("ul", *lines, class_="signatures")]
    return join([*parts, copy_all] if len(lines) > 1 else parts)
