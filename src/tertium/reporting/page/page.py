"""A report is one HTML file: it opens from disk, asks nothing of any network, and runs no text.

The page carries its style, script and data. A content security policy names the script by its
hash, so that even a segment that slipped through every escape could not run.

The data are columns of whole numbers and texts item by item, deflated, in base64. All translations
of a segment stand beside each other, which deflate rewards: a test set of eleven systems takes
little more room than one of four. A score is written as the whole number that its table would show
without the point, so a page says exactly what the tables say.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from tertium.arrays import FloatArray
from tertium.atomic import write_text
from tertium.display import Displayed
from tertium.evaluation.scoring import Evaluation
from tertium.meta.curves import Curve
from tertium.meta.judged import JudgedSet
from tertium.reporting.markup import Markup, element, escape, join, set_apart
from tertium.reporting.page.explained import Explained
from tertium.reporting.page.grid import Column, TranslationGrid
from tertium.reporting.page.pictures import pictures
from tertium.reporting.page.sections import overview, signature_list
from tertium.reporting.tables.table import Table, html_table
from tertium.version import __version__

# The first part stands in the head, before anything is painted; the others are one script at the
# end, in which what a part names is known to those after it.
EARLY = "theme"
SCRIPT = ("elements", "tables", "data", "query", "differences", "results", "start")
PER_MILLE = 3  # decimals of ranks and their differences
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Report(Displayed):
    """Everything a page shows; what is not there has no section.

    `grid` holds the translations; `agreement` are tables of how well metrics agree with people;
    `explained` what was explained when the report was made; `curves` are named; `judged` are sets
    of which the pictures show whole systems against people. `findings` are sentences, the metric
    they are about apart; they and the `signatures` stand where there are no `results`. `more` are
    sections of other kinds: name, title and contents.
    """

    grid: TranslationGrid = field(repr=False)
    title: str = "Translations judged"
    results: Evaluation | None = None
    agreement: tuple[Table, ...] = field(default=(), repr=False)
    explained: tuple[Explained, ...] = field(default=(), repr=False)
    curves: Mapping[str, Curve] = field(default_factory=dict, repr=False)
    judged: tuple[JudgedSet, ...] = field(default=(), repr=False)
    findings: tuple[tuple[str, str], ...] = ()
    signatures: tuple[str, ...] = ()
    more: tuple[tuple[str, str, Markup], ...] = field(default=(), repr=False)

    def html(self) -> str:
        """The page."""
        early, script, sections = _script(EARLY), _script(*SCRIPT), self._sections()
        links = [(name, title) for name, title, _ in sections] + [("segments", "Segments")]
        values = {
            "title": escape(self.title),
            "heading": join(set_apart(self.title, self.grid.systems)),
            "policy": escape(_policy(early, script)),
            "style": Markup(resource("pictures.css") + resource("page.css")),
            "early": Markup(early),
            "script": Markup(script),
            "subtitle": self.subtitle,
            "sections": join(_section(*part) for part in sections),
            "links": join(
                element("li", element("a", title, href=f"#{name}")) for name, title in links
            ),
            "explained": self._explained_note(),
            "units": escape(f"{self.grid.unit}s".capitalize()),
            "data": Markup(encode(self.grid, self.explained)),
            "version": escape(__version__),
        }
        return _PLACEHOLDER.sub(lambda found: values[found[1]], resource("page.html"))

    def write(self, path: str | Path) -> None:
        """Write the page, whole or not at all."""
        write_text(path, self.html())

    def _sections(self) -> list[tuple[str, str, Markup]]:
        """The name, title and contents of every section before the segments."""
        found = []
        if self.results is not None:
            contents = overview(self.results, self.grid)
            found.append(("overview", "Overview", contents))
        elif self.findings or self.signatures:
            found.append(("overview", "Overview", self._overview()))
        if self.agreement:
            tables = join(html_table(table, sortable=True) for table in self.agreement)
            found.append(("agreement", "Agreement with people", tables))
        found += self.more
        drawn = pictures(self.grid, self.results, self.curves, self.judged)
        if drawn:
            found.append(("pictures", "Pictures", drawn))
        return found

    def _overview(self) -> Markup:
        """What was found and the signatures, of a page without an evaluation."""
        lines = [element("li", element("bdi", name), f" {text}.") for name, text in self.findings]
        said = element("ul", *lines, class_="findings") if lines else Markup("")
        return join([said, signature_list(self.signatures)])

    @property
    def subtitle(self) -> Markup:
        """How many systems, segments, metrics and human scores it is about."""
        grid = self.grid
        documents = len({item.document for item in grid.items if item.document})
        counts = [
            (len(grid.systems), "system"),
            (len(grid.items), "segment"),
            (documents, "set" if self.judged else "document"),
            (len(grid.columns), "metric"),
        ]
        said = [f"{n:,} {what}{'' if n == 1 else 's'}" for n, what in counts if n]
        judged = 0 if grid.human is None else int((grid.human == grid.human).sum())
        said += [f"{judged:,} human scores"] if judged else []
        return escape(" · ".join(said))

    def _explained_note(self) -> Markup:
        if not self.explained:
            return escape(
                "No explanations were made for this page: they exist for metrics that can explain "
                "(BERTR, BERTScore, WMD, tertium-small, tertium-multi, entailment) and for rankers."
            )
        items = sorted({e.item for e in self.explained})
        labels = ", ".join(self.grid.items[n].label for n in items[:40])
        more = f" and {len(items) - 40} more" if len(items) > 40 else ""
        return escape(
            f"Explanations were made for {len(items)} segment{'s' * (len(items) != 1)} where the "
            f"metrics, people or systems differ most: {labels}{more}."
        )


@lru_cache(maxsize=16)
def resource(name: str) -> str:
    """A file of this package: the template, the style or the script."""
    return (files("tertium.reporting.page") / name).read_text(encoding="utf-8")


def _script(*parts: str) -> str:
    return "".join(resource(f"script/{part}.js") for part in parts)


def _section(name: str, title: str, contents: Markup) -> Markup:
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, contents, id=name, aria_labelledby=f"{name}-title")


def _policy(*scripts: str) -> str:
    digests = [hashlib.sha256(script.encode("utf-8")).digest() for script in scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(d).decode('ascii')}'" for d in digests)
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def encode(grid: TranslationGrid, explained: Sequence[Explained] = ()) -> str:
    """Everything the segment browser reads, as base64 text."""
    text = json.dumps(contents(grid, explained), ensure_ascii=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")


def contents(grid: TranslationGrid, explained: Sequence[Explained]) -> dict[str, Any]:
    """The same as plain values; see `script/data.js`, which reads them."""
    documents = list(dict.fromkeys(item.document for item in grid.items))
    number = {name: n for n, name in enumerate(documents)}
    by_item: list[list[str]] = [[] for _ in grid.items]
    for item, text in zip(grid.item_of.tolist(), grid.texts, strict=True):
        by_item[item].append(text)
    return {
        "systems": list(grid.systems),
        "documents": documents,
        "items": [
            [item.label, number[item.document], item.source, list(item.references), texts]
            for item, texts in zip(grid.items, by_item, strict=True)
        ],
        "systemOf": grid.system_of.tolist(),
        "unit": grid.unit,
        "columns": [_column(column) for column in grid.columns],
        "human": None if grid.human is None else _human(grid.human),
        "spread": whole(grid.spread, PER_MILLE),
        "misfit": whole(grid.misfit, PER_MILLE),
        "warnings": list(grid.warnings),
        "warned": _bits(grid),
        "explained": [[e.item, e.system, e.title, str(e.html)] for e in explained],
    }


def whole(values: FloatArray, decimals: int) -> list[int | None]:
    """Numbers as tables round them without their point, None where there is none.

    >>> whole(np.array([0.5, 0.015, np.nan]), 2)  # 0.015 is a little less in binary, 1.5 is not
    [50, 1, None]
    """
    return [
        int(f"{value:.{decimals}f}".replace(".", "")) if isfinite(value) else None
        for value in values.tolist()
    ]


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "spec": column.spec,
        "up": column.higher_is_better,
        "decimals": column.decimals,
        "values": whole(column.values, column.decimals),
    }


def _human(values: FloatArray) -> dict[str, Any]:
    """People's scores with as many decimals as tell them apart: one for 0 to 100, three for z."""
    known = values[np.isfinite(values)]
    wide = known.size > 0 and float(np.ptp(known)) > 20
    decimals = 1 if wide else 3
    return {"decimals": decimals, "values": whole(values, decimals)}


def _bits(grid: TranslationGrid) -> list[int]:
    """For each row the sum of 2^k over its kinds of warnings; empty where there are none at all."""
    if not grid.warnings:
        return []
    total = np.zeros(len(grid), dtype=np.int64)
    for place, mask in enumerate(grid.warnings.values()):
        total += mask.astype(np.int64) << place
    return total.tolist()
