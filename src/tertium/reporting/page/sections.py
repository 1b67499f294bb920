"""Sections of a page: the overview, a challenge set, the panel of doubts, results slice by slice.

The overview is systems x metrics with intervals and clusters, and what they mean; each of the
others is a sentence, a picture and the numbers, folded where they are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tertium.evaluation.challenge import ChallengeStudy
from tertium.evaluation.comparison import Comparison
from tertium.evaluation.panel.case import Doubt
from tertium.evaluation.panel.panel import DoubtPanel
from tertium.evaluation.resampling import Interval
from tertium.evaluation.scoring import Evaluation
from tertium.evaluation.slices import Slices
from tertium.meta.correlation import ranks
from tertium.meta.results import Results
from tertium.reporting.charts.axes import Scale
from tertium.reporting.charts.rows import direction, dots_chart
from tertium.reporting.markup import Markup, element, escape, folded, join, scrollable
from tertium.reporting.names import short_names, shown_name
from tertium.reporting.page.grid import TranslationGrid
from tertium.reporting.page.pictures import figure
from tertium.reporting.tables.challenges import challenge_chart, challenge_table
from tertium.reporting.tables.evaluations import (
    column_name,
    document_table,
    is_best,
    meaning_table,
    pair_table,
    too_few,
)
from tertium.reporting.tables.panels import doubt_table, not_asked_lines
from tertium.reporting.tables.slices import agreement_slice_tables, slice_table
from tertium.reporting.tables.table import Cell, Table, html_table, number

MOST_DOCUMENTS = 2000  # rows of the table of documents
TRACK = 120  # pixels of the line below a score
LONGEST_NAME = 28  # letters of a system's name in the table
MOST, MOST_ROWS = 60, 24  # slices in a picture, rows of a table that stands open


def overview(evaluation: Evaluation, grid: TranslationGrid) -> Markup:
    """The whole section below its heading."""
    parts: list[Markup] = []
    said = findings(evaluation)
    if said:
        parts.append(element("ul", *(element("li", text) for text in said), class_="findings"))
    parts.append(system_scores(evaluation))
    if isinstance(evaluation, Comparison) and evaluation.metrics:
        parts += [_meanings(evaluation), _pairs(evaluation)]
    if evaluation.testset.documents:
        parts.append(_documents(evaluation))
    parts.append(_warnings(evaluation, grid))
    signatures = [s.signature for s in evaluation.scores[evaluation.systems[0]].values()]
    parts.append(signature_list([text for text in signatures if text]))
    return join(parts)


def system_scores(evaluation: Evaluation) -> Markup:
    """Systems x metrics, sortable; each score with its interval and its cluster."""
    columns = [column_name(evaluation, metric) for metric in evaluation.metrics]
    head = [_sorter("system", ""), *(_sorter(column, "number") for column in columns)]
    rows = []
    short = short_names(evaluation.systems, LONGEST_NAME)
    for place, system in enumerate(evaluation.systems):
        first = isinstance(evaluation, Comparison) and not place
        base = element("span", " baseline", class_="muted base") if first else ""
        cells = [_score(evaluation, place, metric) for metric in evaluation.metrics]
        name = shown_name(system, short[place])
        rows.append(element("tr", element("th", name, base, scope="row"), *cells))
    table = element(
        "table",
        element("caption", "Scores of systems"),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
        class_="sortable scores",
    )
    legend = element("p", *_legend(evaluation), class_="note")
    few = [element("p", line, class_="note") for line in too_few(evaluation)]
    return join([scrollable(table, "Scores of systems"), legend, *few])


def _sorter(name: str, style: str) -> Markup:
    button = element("button", name, type="button")
    return element("th", button, scope="col", class_=style or None, aria_sort="none")


def _score(evaluation: Evaluation, place: int, metric: str) -> Markup:
    system = evaluation.systems[place]
    scores = evaluation.scores[system][metric]
    best = is_best(scores, evaluation.of_metric(metric))
    parts = [element("span", number(scores.system, scores.decimals).text, class_="score")]
    known = scores.system == scores.system
    if isinstance(evaluation, Comparison) and known:
        parts += _standing(evaluation, place, system, metric)
    bounds = evaluation.intervals.get(system, {}).get(metric)
    if bounds is not None and known:
        every = [evaluation.intervals[s][metric] for s in evaluation.systems]
        every = [interval for interval in every if interval.low == interval.low]
        parts.append(_track(scores.system, bounds, every))
        low, high = (f"{v:z.{scores.decimals}f}" for v in (bounds.low, bounds.high))
        parts.append(element("span", f" {low} to {high}", class_="muted range"))
    return element(
        "td", *parts, class_="number best" if best else "number", data_value=repr(scores.system)
    )


def _track(value: float, own: Interval, every: Sequence[Interval]) -> Markup:
    """The interval as a line beside those of the other systems; the numbers stand above it."""
    x = Scale(min(i.low for i in every), max(i.high for i in every), 5, TRACK - 5)
    return element(
        "svg",
        element("line", x1=3, x2=TRACK - 3, y1=6, y2=6, class_="rail"),
        element("line", x1=x(own.low), x2=x(own.high), y1=6, y2=6, class_="interval"),
        element("circle", cx=x(value), cy=6, r=4, class_="dot"),
        width=TRACK,
        height=12,
        viewBox=f"0 0 {TRACK} 12",
        class_="track",
        aria_hidden="true",
    )


def _standing(comparison: Comparison, place: int, system: str, metric: str) -> list[Markup]:
    """The mark of a significant difference from the baseline, and the cluster."""
    cluster = comparison.clusters[metric][place]
    badge = element(
        "span",
        element("span", " cluster ", class_="hidden"),
        str(cluster),
        class_=f"cluster k{min(cluster, 4)}",
        title=f"cluster {cluster}",
    )
    if not place:
        return [element("span", class_="mark"), badge]
    p = comparison.p_value(metric, system)
    sign, style, said = "", "", "not told apart from"
    if p < comparison.alpha:
        better = comparison.difference(metric, system) > 0
        sign, style, said = ("▲", "good", "better than") if better else ("▼", "bad", "worse than")
    baseline, sure = comparison.baseline, f", p = {p:.4f} " if p == p else ", p is undefined "
    hidden = element("span", f" {said} ", element("bdi", baseline), sure, class_="hidden")
    title = f"{said} {baseline}{sure}".strip()
    return [element("span", sign, hidden, class_=f"mark {style}".strip(), title=title), badge]


def _legend(evaluation: Evaluation) -> list[Markup | str]:
    parts: list[Markup | str] = ["↑ higher is better, ↓ lower is better; the best in bold. "]
    if evaluation.intervals:
        parts.append("Below a score stands its 95 % bootstrap interval. ")
    if isinstance(evaluation, Comparison):
        how = "bootstrap samples" if evaluation.test == "bootstrap" else "randomization trials"
        parts += [
            "▲ ▼: significantly better or worse than ",
            element("bdi", evaluation.baseline),
            " (paired, "
            f"p < {evaluation.alpha:g}, {evaluation.resamples:,} {how}, seed {evaluation.seed}). "
            "Numbers in boxes are clusters: each system of one is significantly better than every "
            "system of the next. ",
        ]
    return parts


def findings(evaluation: Evaluation) -> list[Markup]:
    """What the table says, in sentences."""
    systems, metrics = evaluation.systems, evaluation.metrics
    if len(systems) < 2:
        return []
    names = evaluation.names
    winners: dict[tuple[str, ...], list[str]] = {}  # systems, and the metrics they are best under
    for metric in metrics:
        every = evaluation.of_metric(metric)
        best = tuple(s for s, own in zip(systems, every, strict=True) if is_best(own, every))
        winners.setdefault(best, []).append(metric)
    winners.pop((), None)
    said = []
    for best, won in sorted(winners.items(), key=lambda entry: -len(entry[1])):
        which = ", ".join(names[m] for m in won)
        if len(won) == len(metrics) > 1:
            which = "both metrics" if len(metrics) == 2 else f"all {len(metrics)} metrics"
        sure = ""
        if isinstance(evaluation, Comparison) and len(best) < len(systems):
            # a system without a score, in cluster 0, is not known to be behind
            ahead = [m for m in won if sum(c < 2 for c in evaluation.clusters[m]) == len(best)]
            sure = _how_sure(len(ahead), len(won))
        who = [part for name in best for part in (" and ", element("bdi", name))][1:]
        said.append(join([*who, f" {'are' if best[1:] else 'is'} best under {which}{sure}."]))
    return said + _orders(evaluation)


def _how_sure(ahead: int, won: int) -> str:
    if ahead == won:
        return ", significantly ahead of all others"
    if ahead:
        return f", significantly ahead of all others under {ahead} of them"
    return ", but not significantly ahead of all others"


def _orders(evaluation: Evaluation) -> list[Markup]:
    """Whether the metrics put the systems into one order; equals are part of it."""
    if len(evaluation.metrics) < 2:
        return []
    orders: set[tuple[float, ...]] = set()
    for metric in evaluation.metrics:
        scores = np.array([s.sign * s.system for s in evaluation.of_metric(metric)])
        if np.isnan(scores).any():
            return []
        orders.add(tuple(ranks(scores).tolist()))
    if all(len({*order}) == 1 for order in orders):
        return []  # all systems are equal under all metrics
    every = "Both" if len(evaluation.metrics) == 2 else "All"
    if len(orders) == 1:
        return [escape(f"{every} metrics put the systems into the same order.")]
    return [escape(f"The metrics put the systems into {len(orders)} different orders.")]


def _pairs(comparison: Comparison) -> Markup:
    tables = [pair_table(comparison, metric) for metric in comparison.metrics]
    note = join(element("p", text, class_="note") for text in tables[0].notes)  # of all the same
    heads = ["", *short_names(comparison.systems, LONGEST_NAME)]  # in the order of the rows
    shown = [html_table(replace(table, header=heads, notes=()), style="pairs") for table in tables]
    return folded("p-values of all pairs of systems", note, *shown)


def _meanings(comparison: Comparison) -> Markup:
    table = meaning_table(comparison)
    if not table.rows:
        return Markup("")
    return folded("What the differences mean to people", html_table(table))


def _documents(evaluation: Evaluation) -> Markup:
    count = len(evaluation.systems) * len(set(evaluation.testset.documents))
    if count > MOST_DOCUMENTS:
        text = f"{count:,} scores of documents are too many for a page: tertium score -dl has them."
        return element("p", text, class_="note")
    title = "Scores of documents"
    table = html_table(replace(document_table(evaluation), title=title), sortable=True)
    return folded(title, table)


def _warnings(evaluation: Evaluation, grid: TranslationGrid) -> Markup:
    """A table of what was counted: systems x kinds."""
    counts: dict[str, list[int]] = {
        kind: np.bincount(grid.system_of[mask], minlength=len(grid.systems)).tolist()
        for kind, mask in grid.warnings.items()
    }
    for place, system in enumerate(evaluation.systems):
        for scores in evaluation.scores[system].values():
            for kind, n in scores.warnings.items():
                row = counts.setdefault(kind, [0] * len(evaluation.systems))
                row[place] = max(row[place], n)
    if not counts:
        return element("p", "No warnings: no empty or copied output, nothing cut.", class_="note")
    rows: list[list[Cell | str]] = [
        [system, *(Cell(str(row[place] or "–"), row[place]) for row in counts.values())]
        for place, system in enumerate(grid.systems)
    ]
    title = "Warnings: how many translations"
    return html_table(Table(["system", *counts], rows, title=title), style="warned")


def signature_list(signatures: Sequence[str]) -> Markup:
    """Signatures with a button each that copies it."""
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
    everything = element(
        "button", "Copy all", type="button", class_="copy", data_copy="\n".join(signatures)
    )
    parts = [element("h3", "Signatures"), element("ul", *lines, class_="signatures")]
    return join([*parts, everything] if len(lines) > 1 else parts)


def challenge_contents(study: ChallengeStudy) -> Markup:
    """A sentence, the picture, and the table folded below it."""
    picture = _figures([figure(challenge_chart(study), study.challenge.name)])
    numbers = folded("Numbers", html_table(challenge_table(study)))
    return join([element("p", _reading(study)), picture, numbers])


def _reading(study: ChallengeStudy) -> str:
    """Each metric's mean over groups, and where it is weakest."""
    said = []
    for m, name in enumerate(study.names):
        worst = int(study.accuracy[m].argmin())
        share = 100 * study.accuracy[m, worst]
        said.append(
            f"{name} puts {100 * study.mean[m]:.0f} % right, "
            f"{share:.0f} % where it is weakest ({study.groups[worst]})"
        )
    return (
        "Of pairs of a better and a worse translation, in the mean over "
        f"{len(study.groups)} groups, {'; '.join(said)}. A coin gets 50 %."
    )


def doubts_contents(panel: DoubtPanel) -> Markup:
    """All doubts, then what could not be asked."""
    parts = [_doubt(doubt) for doubt in panel.doubts]
    missing = [element("li", line) for line in not_asked_lines(panel)]
    return join([*parts, element("ul", *missing, class_="note") if missing else ""])


def _doubt(doubt: Doubt) -> Markup:
    chart = dots_chart(
        doubt.rows,
        doubt.series,
        doubt.values,
        title=doubt.question,
        label=doubt.label,
        intervals=doubt.intervals,
        rule=doubt.rule,
        span=doubt.span,
    )
    numbers = folded("Numbers", html_table(doubt_table(doubt, drawn=False)))
    heading, reading = element("h3", doubt.question), element("p", doubt.reading)
    return join([heading, reading, _figures([figure(chart, doubt.name)]), numbers])


def slices_contents(several: Sequence[Slices]) -> Markup:
    """Systems on slices: a table, and a picture for each metric."""
    parts = []
    for slices in several:
        figures = [_picture(slices, metric) for metric in _first(slices).metrics]
        parts += [_table(slice_table(slices)), _figures(figures)]
    return join(parts)


def agreement_slices_contents(sliced: Mapping[str, Results]) -> Markup:
    """Metrics on slices: a table and a picture for each statistic."""
    parts = []
    for by, results in sliced.items():
        tables = agreement_slice_tables(results, by)
        for table, own in zip(tables, results.by_statistic().values(), strict=True):
            chart = _agreement_picture(own, by)
            parts += [_table(table), _figures([figure(chart, table.title)])]
    return join(parts)


def _first(slices: Slices) -> Evaluation:
    return next(iter(slices.parts.values()))


def _picture(slices: Slices, metric: str) -> Markup:
    first = _first(slices)
    names = [*slices.parts][:MOST]
    values = [[s.system for s in slices.parts[name].of_metric(metric)] for name in names]
    title, scores = first.names[metric], first.of_metric(metric)[0]
    chart = dots_chart(
        names,
        first.systems,
        np.array(values),
        title=f"{title} by {slices.by}",
        label=direction(scores.higher_is_better),
        decimals=scores.decimals,
    )
    return figure(chart, f"{title} by {slices.by}")


def _agreement_picture(results: Results, by: str) -> Markup:
    tasks = results.tasks[:MOST]
    bounds = np.array([np.stack([task.low, task.high], axis=1) for task in tasks])
    return dots_chart(
        [task.task.label for task in tasks],
        results.metrics,
        np.array([task.values for task in tasks]),
        title=f"Agreement by {by}",
        label=tasks[0].task.kind.title,
        intervals=bounds,
    )


def _table(table: Table) -> Markup:
    """A table; a long one folded, with its notes."""
    shown = html_table(table, sortable=True)
    return shown if len(table.rows) <= MOST_ROWS else folded(f"{table.title}: numbers", shown)


def _figures(figures: Sequence[Markup]) -> Markup:
    return element("div", *figures, class_="figures")
