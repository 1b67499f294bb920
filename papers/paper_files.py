"""Read the page of a paper from `papers/tables/PAPER.toml`: its tables with the published figures.

A value `{ kind = "NAME", ... }` becomes a call of one of `BUILDERS` with the other keys. A string
`"@NAME"` becomes the builder itself, or what the section `define` of the file calls so. Departures
are named by their keys in `papers/departures.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from papers.departures import DEPARTURES
from papers.experiments import Archived, Comparisons, Segments, Systems, no_model
from papers.guzman2015_rankers import RankerRecipe, SeededRankings
from papers.overview import BundledRanker
from papers.pado2009 import (
    METEORR2007,
    METEORR2008,
    SpearmanGain,
    TrainingShareCurve,
    bundled_model,
    model_pair,
    train_on_shares,
    train_round_robin,
)
from papers.pado2009_experiments import RandomOrder, TieAwareMetricsTask, TieAwareSystems
from papers.printed_examples import (
    ExamplePercentiles,
    ExampleRanks,
    ExampleScores,
    ExampleScoreShares,
    load_examples,
)
from papers.shimanaka2018 import ErrorAnalysis
from papers.table import Departure, PaperTable, Row
from papers.trained_metrics import (
    AssessmentHead,
    Head,
    LearningCurve,
    SeededSegments,
    SeededSystems,
    SentenceRegression,
    first_seed_only,
    untrained_head,
)
from tertium.meta.agreement import spearman
from tertium.meta.pairwise import consistency, kendall_wmt14
from tertium.metrics.heads.config import HeadOptions
from tertium.metrics.pairwise.neural_ranker import PairwiseOptions
from tertium.metrics.regression import regression_metrics
from tertium.metrics.regression.linear_metric import RegressionOptions

FOLDER = Path(__file__).parent / "tables"
EXPERIMENTS = (
    Archived, Comparisons, ErrorAnalysis, ExamplePercentiles, ExampleRanks, ExampleScores,
    ExampleScoreShares, LearningCurve, RandomOrder, SeededRankings, SeededSegments, SeededSystems,
    Segments, SpearmanGain, Systems, TieAwareMetricsTask, TieAwareSystems, TrainingShareCurve,
)  # fmt: skip
MODELS = (
    AssessmentHead, BundledRanker, Head, RankerRecipe, SentenceRegression, bundled_model,
    first_seed_only, model_pair, no_model, train_on_shares, train_round_robin, untrained_head,
)  # fmt: skip
OPTIONS = (
    HeadOptions, PairwiseOptions, RegressionOptions, METEORR2007, METEORR2008, consistency,
    kendall_wmt14, load_examples, spearman,
)  # fmt: skip
BUILDERS: Mapping[str, Any] = {
    "none": None,
    **{one.__name__: one for one in (*EXPERIMENTS, *MODELS, *OPTIONS)},
    **{
        name: getattr(regression_metrics, name)
        for name in ("BLEUR", "METEORR", "MTR", "MTRTER", "NISTR", "RTER", "TERR")
    },
}


@dataclass(frozen=True, kw_only=True)
class PaperPage:
    """What a page shows: text, the (table, row) of figures on the overview page, and tables.

    `definitions` are the models and experiments that several rows share, by name.
    """

    introduction: str
    headlines: tuple[tuple[str, str], ...] = ()
    tables: list[PaperTable]
    definitions: Mapping[str, Any] = field(default_factory=dict)


@cache
def read_page(paper: str) -> PaperPage:
    """Read the file of a paper."""
    content = tomllib.loads((FOLDER / f"{paper}.toml").read_text(encoding="utf-8"))
    names = dict(BUILDERS)
    for name, value in content.get("define", {}).items():
        names[name] = build(value, names)
    return PaperPage(
        introduction=content["introduction"],
        headlines=build(content["headlines"], names),
        tables=[_build_table(paper, entry, names) for entry in content["table"]],
        definitions={name: names[name] for name in content.get("define", {})},
    )


def build(value: Any, names: Mapping[str, Any]) -> Any:
    """Return the object that a value of a file describes."""
    if isinstance(value, str) and value.startswith("@"):
        return names[value[1:]]
    if isinstance(value, list):
        return tuple(build(item, names) for item in value)
    if isinstance(value, dict):
        arguments = {key: build(item, names) for key, item in value.items()}
        kind = arguments.pop("kind", None)
        return names[kind](**arguments) if kind else arguments
    return value


def _build_table(paper: str, entry: dict[str, Any], names: Mapping[str, Any]) -> PaperTable:
    rows = [Row(**build(row, names)) for row in entry.pop("rows")]
    departures = tuple(_find_departure(item) for item in entry.pop("departures", ()))
    return PaperTable(paper=paper, rows=rows, departures=departures, **build(entry, names))


def _find_departure(entry: str | dict[str, str]) -> Departure:
    """Return a departure by its key; a table may give the pattern of its rows."""
    if isinstance(entry, str):
        return DEPARTURES[entry]
    return replace(DEPARTURES[entry["key"]], row_pattern=entry["row_pattern"])
