"""Which pictures a page shows, in which order, and what each is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from tertium.evaluation.comparison import Comparison
from tertium.evaluation.scoring import Evaluation
from tertium.meta.curves import Curve
from tertium.meta.judged import JudgedSet
from tertium.reporting.charts.clouds import (
    Axis,
    cloud_chart,
    correlation,
    darkest,
    describe,
    length_chart,
    outermost,
)
from tertium.reporting.charts.curves import curve_chart
from tertium.reporting.charts.rows import interval_chart, ridge_chart
from tertium.reporting.markup import Markup, element, join
from tertium.reporting.page.explained import heat_map
from tertium.reporting.page.grid import TranslationGrid

MOST_PAIRS = 9  # of metrics that are drawn against each other
MOST_SYSTEM_PICTURES = 24
MOST_ROWS, FEWEST = 25, 5  # systems in a picture of distributions, segments of a system in it


def pictures(
    grid: TranslationGrid,
    evaluation: Evaluation | None = None,
    curves: Mapping[str, Curve] | None = None,
    judged: Sequence[JudgedSet] = (),
) -> Markup:
    """All pictures there is data for."""
    parts = [
        ranking_pictures(evaluation) if evaluation else Markup(""),
        distribution_pictures(grid),
        human_pictures(grid),
        system_pictures(judged),
        pair_pictures(grid),
        length_pictures(grid),
        curve_pictures(curves or {}),
    ]
    return join(part for part in parts if part)


def ranking_pictures(evaluation: Evaluation) -> Markup:
    """Systems in their order under each metric."""
    compared = evaluation if isinstance(evaluation, Comparison) else None
    names = evaluation.names
    figures = []
    for metric in evaluation.metrics:
        scores = evaluation.of_metric(metric)
        bounds = [evaluation.intervals.get(s, {}).get(metric) for s in evaluation.systems]
        intervals = np.array([(b.low, b.high) if b else (np.nan, np.nan) for b in bounds])
        groups = compared.clusters[metric] if compared else [0] * len(scores)
        chart = interval_chart(
            evaluation.systems,
            np.array([s.system for s in scores]),
            intervals,
            groups,
            title=names[metric],
            higher_is_better=scores[0].higher_is_better,
            decimals=scores[0].decimals,
        )
        figures.append(figure(chart, names[metric]))
    more = " A shade is a cluster, significantly better than all below it." if compared else ""
    lines = " Lines are 95 % bootstrap intervals." if evaluation.intervals else ""
    if len(evaluation.systems) == 1:
        return group("Score of the system", lines.strip(), figures)
    return group("Ranking of systems", f"Best above.{lines}{more}", figures)


def distribution_pictures(grid: TranslationGrid) -> Markup:
    """How each system's segment scores are spread under each metric."""
    figures = []
    counts = np.bincount(grid.system_of, minlength=len(grid.systems))
    usual = [int(n) for n in np.argsort(-counts, kind="stable")[:MOST_ROWS]]
    for column in grid.columns:
        samples = [column.values[grid.system_of == s] for s in range(len(grid.systems))]
        kept = [n for n in sorted(usual) if np.isfinite(samples[n]).sum() >= FEWEST]
        if kept:
            chart = ridge_chart(
                [grid.systems[n] for n in kept],
                [samples[n] for n in kept],
                title=column.name,
                higher_is_better=column.higher_is_better,
            )
            figures.append(figure(chart, column.name))
    said = (
        "The dot is the median; the line below an outline spans the middle half of the segments. "
        "A peak more than twice as high as those of most is cut."
    )
    if (counts < FEWEST).any() or len(counts) > MOST_ROWS:
        said += f" At most {MOST_ROWS} systems, of {FEWEST} segments or more."
    return group("Distributions", said, figures)


def human_pictures(grid: TranslationGrid) -> Markup:
    """Each metric against what people said, with the fit."""
    if grid.human is None or not np.isfinite(grid.human).any():
        return Markup("")
    people = Axis(name="human score", values=grid.human)
    figures = [
        translations_figure(
            grid, people, c, f"{c.name}: {describe(grid.human, c.values)}", fit=True
        )
        for c in grid.columns
    ]
    said = "The line is the least-squares fit of the metric to people's scores."
    return group("Metrics against people", f"{_sign(figures)} {said}", figures)


def system_pictures(sets: Sequence[JudgedSet]) -> Markup:
    """Whole systems: what metrics say of them against what people say, set by set."""
    figures: list[Markup] = []
    for judged in sets:
        known = np.isfinite(judged.human_systems)
        for name, scores in zip(judged.metrics, judged.system_scores, strict=True):
            if (known & np.isfinite(scores)).sum() < 3 or len(figures) >= MOST_SYSTEM_PICTURES:
                continue
            x = Axis(name="human score of a system", values=judged.human_systems)
            chart = cloud_chart(x, Axis(name=name, values=scores), fit=True, names=judged.systems)
            close = describe(judged.human_systems, scores)
            figures.append(figure(chart, f"{judged.name}, {name}: {close}"))
    return group("Systems: metrics against people", "A dot is a system.", figures)


def pair_pictures(grid: TranslationGrid) -> Markup:
    """Metrics against each other: the correlations of all, the pictures of the least alike."""
    columns = grid.columns
    if len(columns) < 2 or not len(grid):
        return Markup("")
    table = np.array([[abs(correlation(a.values, b.values)) for b in columns] for a in columns])
    names = [c.name for c in columns]
    matrix = heat_map(names, names, table, caption="Correlation of segment scores, |r|")
    pairs = sorted(combinations(range(len(columns)), 2), key=lambda pair: table[pair])
    figures = []
    for a, b in ((columns[i], columns[j]) for i, j in pairs[:MOST_PAIRS]):
        caption = f"{a.name}, {b.name}: {describe(a.values, b.values)}"
        figures.append(translations_figure(grid, a, b, caption))
    hidden = len(pairs) - MOST_PAIRS
    said = f" Of {len(pairs)} pairs the {MOST_PAIRS} least alike." if hidden > 0 else ""
    return group("Metrics against each other", f"{_sign(figures)}{said}", figures, matrix)


def length_pictures(grid: TranslationGrid) -> Markup:
    """Each metric against the length of the translation."""
    if not any(grid.texts):
        return Markup("")
    length = Axis(name=f"{grid.unit}s of the translation", values=grid.lengths)
    figures = []
    for column in grid.columns:
        chart = length_chart(length, column, label=grid.label)
        figures.append(_with_rows(grid, chart, column.name, length, column))
    said = "The line is the median of translations of about one length, the band their middle half."
    return group("Length against score", f"{_sign(figures)} {said}", figures)


def translations_figure(
    grid: TranslationGrid, x: Axis, y: Axis, caption: str, *, fit: bool = False
) -> Markup:
    """Two numbers of all translations: a picture, and links to the outermost of them."""
    chart = cloud_chart(x, y, fit=fit, label=grid.label)
    return _with_rows(grid, chart, caption, x, y)


def _with_rows(grid: TranslationGrid, chart: Markup, caption: str, x: Axis, y: Axis) -> Markup:
    """A picture of translations: what its darkest shade counts, or links to its outermost dots."""
    most = darkest(x.values, y.values)
    if most:
        return figure(chart, f"{caption}; darkest shade: {most:,}")
    links = [
        element("a", element("bdi", grid.label(row)), data_row=int(row), href=grid.anchor(row))
        for row in outermost(x.values, y.values)
    ]
    outer = element("p", "Outermost: ", join(links, "; "), class_="note outer") if links else ""
    return figure(chart, caption, outer)


def _sign(figures: Sequence[Markup]) -> str:
    """What a sign stands for, in pictures of translations."""
    shaded = sum('class="shade"' in figure for figure in figures)
    dot, shade = "A dot is a translation.", "A shade is the number of translations."
    return " ".join([dot] * (shaded < len(figures)) + [shade] * (shaded > 0))


def curve_pictures(curves: Mapping[str, Curve]) -> Markup:
    """Learning curves and ablations that were given."""
    figures = [figure(curve_chart(curve, name), name) for name, curve in curves.items()]
    said = "Means over seeds; thin lines span the seeds."
    return group("Learning curves and ablations", said, figures)


def figure(chart: Markup, caption: str, below: str = "") -> Markup:
    """A picture with its name above."""
    return element("figure", element("figcaption", caption), chart, below)


def group(title: str, said: str, figures: Sequence[Markup], before: str = "") -> Markup:
    """Pictures of one kind under a heading; nothing where there are none."""
    if not figures:
        return Markup("")
    name = title.lower().replace(" ", "-")
    return element(
        "section",
        element("h3", title, id=name),
        element("p", said, class_="note") if said else "",
        before,
        element("div", *figures, class_="figures"),
        aria_labelledby=name,
    )
