"""The report class: one self-contained HTML file with style, script and data.

The data are JSON, deflated and base64-encoded. The translations of a segment are adjacent, which
compresses well. Scores are integers: the rounded score without its decimal point.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from tertium.arrays import FloatArray
from tertium.atomic import PathLike, write_text
from tertium.core.result import Result, Table
from tertium.display import Displayable
from tertium.evaluation.evaluation import Evaluation
from tertium.meta.aligned_scores import AlignedScores
from tertium.output.html_table import render_table as render_html_table
from tertium.output.markup import Markup, element, isolate_names, join
from tertium.output.page.explanations import SegmentExplanation
from tertium.output.page.figures import all_figures
from tertium.output.page.overview import overview_contents, signature_list
from tertium.output.page.template import fill_template, render_page, section
from tertium.output.page.translation_grid import MetricColumn, TranslationGrid

SCRIPTS = ("elements", "tables", "data", "query", "differences", "results", "start")
RANK_DECIMALS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Report(Displayable, Result):
    """The contents of a report; sections without data are omitted.

    Attributes:
        grid: the translations with scores and warnings.
        title: title of the page.
        results: scores or a comparison of systems.
        agreement: tables of the agreement of metrics with human scores.
        explained: explanations of selected segments.
        aligned_scores: datasets whose system-level scores are plotted against human scores.
        findings: pairs of a metric and a sentence about it; used without `results`.
        signatures: signatures of the metrics; used without `results`.
        extra_sections: name, title and contents of further sections.
    """

    grid: TranslationGrid = field(repr=False)
    title: str = "Translation quality report"
    results: Evaluation | None = None
    agreement: tuple[Table, ...] = field(default=(), repr=False)
    explained: tuple[SegmentExplanation, ...] = field(default=(), repr=False)
    aligned_scores: tuple[AlignedScores, ...] = field(default=(), repr=False)
    findings: tuple[tuple[str, str], ...] = ()  # type: ignore[assignment]
    signatures: tuple[str, ...] = ()
    extra_sections: tuple[tuple[str, str, Markup], ...] = field(default=(), repr=False)

    def html(self) -> str:
        """Return the page as HTML."""
        sections = self._sections()
        links = [(name, title) for name, title, _ in sections] + [("segments", "Segments")]
        items = (element("li", element("a", title, href=f"#{name}")) for name, title in links)
        values = {
            "sections": join(section(*part) for part in sections),
            "explanations": self._explanations_note(),
            "units": f"{self.grid.unit}s".capitalize(),
            "data": Markup(encode_grid(self.grid, self.explained)),
        }
        return render_page(
            fill_template("report.html", values),
            SCRIPTS,
            title=self.title,
            heading=join(isolate_names(self.title, self.grid.systems)),
            subtitle=self.subtitle,
            navigation=element("nav", element("ul", *items), aria_label="Sections"),
        )

    def write(self, *paths: PathLike) -> None:
        """Write the page atomically."""
        for path in paths:
            write_text(path, self.html())

    def _sections(self) -> list[tuple[str, str, Markup]]:
        sections = []
        if self.results is not None:
            sections.append(("overview", "Overview", overview_contents(self.results, self.grid)))
        elif self.findings or self.signatures:
            sections.append(("overview", "Overview", self._findings_overview()))
        if self.agreement:
            tables = join(render_html_table(table, sortable=True) for table in self.agreement)
            sections.append(("agreement", "Agreement with human scores", tables))
        sections += self.extra_sections
        if figures := all_figures(self.grid, self.results, self.aligned_scores):
            sections.append(("charts", "Charts", figures))
        return sections

    def _findings_overview(self) -> Markup:
        lines = [element("li", element("bdi", name), f" {text}.") for name, text in self.findings]
        findings = element("ul", *lines, class_="findings") if lines else Markup("")
        return join([findings, signature_list(self.signatures)])

    @property
    def subtitle(self) -> str:
        """The number of systems, segments, metrics and human scores."""
        grid = self.grid
        documents = len({item.document for item in grid.items if item.document})
        counts = [
            (len(grid.systems), "system"),
            (len(grid.items), "segment"),
            (documents, "dataset" if self.aligned_scores else "document"),
            (len(grid.columns), "metric"),
        ]
        texts = [f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts if n]
        human_count = 0 if grid.human is None else int((grid.human == grid.human).sum())
        texts += [f"{human_count:,} human scores"] if human_count else []
        return " · ".join(texts)

    def _explanations_note(self) -> str:
        if not self.explained:
            return (
                "This page has no explanations. Metrics with explanations: BERTR, BERTScore, WMD, "
                "tertium-small, tertium-multi and entailment."
            )
        items = sorted({e.item for e in self.explained})
        labels = ", ".join(self.grid.items[n].label for n in items[:40])
        more = f" and {len(items) - 40} more" if len(items) > 40 else ""
        return (
            f"Explanations are available for {len(items)} segment{'s' * (len(items) != 1)} where "
            f"metrics, human scores or systems differ most: {labels}{more}."
        )


def encode_grid(grid: TranslationGrid, explanations: Sequence[SegmentExplanation] = ()) -> str:
    """Return the data of the segment browser as base64."""
    text = json.dumps(grid_contents(grid, explanations), ensure_ascii=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")


def grid_contents(
    grid: TranslationGrid, explanations: Sequence[SegmentExplanation]
) -> dict[str, Any]:
    """Return the data of the segment browser; `script/data.js` reads them."""
    documents = list(dict.fromkeys(item.document for item in grid.items))
    number = {name: n for n, name in enumerate(documents)}
    by_item: list[list[str]] = [[] for _ in grid.items]
    for item, text in zip(grid.item_indices.tolist(), grid.texts, strict=True):
        by_item[item].append(text)
    return {
        "systems": list(grid.systems),
        "documents": documents,
        "items": [
            [item.label, number[item.document], item.source, list(item.references), texts]
            for item, texts in zip(grid.items, by_item, strict=True)
        ],
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
    return [
        int(f"{value:.{decimals}f}".replace(".", "")) if isfinite(value) else None
        for value in values.tolist()
    ]


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
