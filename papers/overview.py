"""Every metric on every set of judgments that can be had: what the tables of papers leave open.

A table for each set, a row for each registered metric, its defaults as they are. A metric that
learned must not be judged by what it learned from: `SEEN` says which sets those are, and such rows
are left out. Sets out of English take the metrics that know their languages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from papers.departures import WMT11_SEGMENTS
from papers.experiments import Comparisons, Segments, Systems
from papers.table import Experiment, Figure, PaperTable, Row
from tertium.data.collection import Collection
from tertium.meta.correlation import pearson
from tertium.metrics import Metric
from tertium.metrics.base.ranker import load_ranker
from tertium.registry import METRICS, RANKERS

INTO_ENGLISH: Mapping[str, tuple[str, ...]] = {
    "da/wmt15": ("cs-en", "de-en", "fi-en", "ru-en"),
    "da/wmt16": ("cs-en", "de-en", "fi-en", "ro-en", "ru-en", "tr-en"),
    "da/wmt17": ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en"),
    "rankings/wmt08": ("cs-en", "de-en", "es-en", "fr-en"),
    "rankings/wmt11": ("cs-en", "de-en", "es-en", "fr-en"),
    "rankings/wmt12": ("cs-en", "de-en", "es-en", "fr-en"),
    "rankings/wmt13": ("cs-en", "de-en", "es-en", "fr-en"),
    "rankings/wmt15": ("cs-en", "de-en", "fi-en", "fr-en", "ru-en"),
    "rankings/wmt16": ("cs-en", "de-en", "fi-en", "ro-en", "ru-en", "tr-en"),
    "wmt17-metrics-task": ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en"),
    "wmt18-metrics-task": ("cs-en", "de-en", "et-en", "fi-en", "ru-en", "tr-en", "zh-en"),
}

RANKED = frozenset(f"rankings/wmt{year}" for year in (11, 13, 15, 16))
ASSESSED = frozenset({"da/wmt15", "da/wmt16"})
# The rankings of 2015 and 2016 are about segments of da/wmt15 and da/wmt16.
REGRESSIONS = ASSESSED | {"rankings/wmt15", "rankings/wmt16"}
SEEN: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("bleu-r", "nist-r", "ter-r", "meteor-r", "mt-r", "rte-r", "mt-rte-r", "svr"), REGRESSIONS
    ),
    **dict.fromkeys(("bilstm", "bilstm-attention", "esim"), ASSESSED | RANKED),
    **dict.fromkeys(
        ("tertium-base", "tertium-small"), ASSESSED | RANKED | {"mqm", "wmt18-metrics-task"}
    ),
    "tertium-multi": ASSESSED | RANKED | {"rankings/wmt08", "mqm", "wmt18-metrics-task"},
    "pairwise": ASSESSED | RANKED,  # it reads tertium-small
}

VARIANTS = ("chrf++", "mt-rte-r:embeddings=true")
EMBEDDING = ("bertr", "bertscore", "wmd", "wmdo", "smd", "sss", "sentsim")
MULTILINGUAL = (
    "bleu",
    "chrf",
    "chrf++",
    "ter",
    "nist",
    *(f"{name}:encoder=use" for name in EMBEDDING),
)
WITHOUT_REFERENCE = tuple(f"{name}:against=source" for name in EMBEDDING)
INFERRED = {"rankings/wmt11": (WMT11_SEGMENTS,)}
QE = ("ne-en", "en-de", "et-en", "en-zh", "ro-en", "si-en", "ru-en")


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Correlation with human scores in each part of a set that has one language pair."""

    set: str
    lp: str
    columns: tuple[str, ...]
    statistic: str = "Pearson's r with human scores of segments"

    @property
    def data(self) -> str:
        return f"{self.set}, {self.lp}"

    def measure(self, collection: Collection, model: Metric, column: str) -> Figure:
        judged = collection.judgments(self.set, self.lp, column)
        scores = model.score(judged.segments)
        agreement = pearson(judged.scores, scores.upward)
        return Figure(
            value=float(agreement),
            count=int(agreement.used),
            signature=scores.signature,
            left_out=dict(judged.left_out),
        )


@dataclass(frozen=True)
class Shipped:
    """A ranker as it ships."""

    name: str

    def __call__(self, collection: Collection, column: str) -> object:
        return load_ranker(self.name)


def rows_for(set_name: str) -> list[Row]:
    """Every registered metric that has not learned from a set."""
    specs = [*METRICS.builtin, *VARIANTS]
    rows = [Row(label=s, model=s) for s in specs if set_name not in training_sets(s)]
    if set_name.startswith("rankings/"):
        rows += [
            Row(label=name, model=Shipped(name))
            for name in RANKERS.builtin
            if set_name not in training_sets(name)
        ]
    return rows


def training_sets(spec: str) -> frozenset[str]:
    """The sets that a metric's shipped weights have learned from."""
    return SEEN.get(spec.partition(":")[0], frozenset())


def _table(set_name: str, experiment: Experiment, rows: Sequence[Row], what: str) -> PaperTable:
    ranked = set_name.startswith("rankings/")
    return PaperTable(
        paper="overview",
        number=set_name,
        title=f"{set_name}: {what}",
        experiment=experiment,
        rows=rows,
        digits=1 if ranked else 3,
        picture="rows",
        departures=INFERRED.get(set_name, ()),
    )


def _into_english(set_name: str) -> PaperTable:
    columns = INTO_ENGLISH[set_name]
    experiment: Experiment
    if set_name.startswith("da/"):
        experiment, what = Segments(set=set_name, columns=columns), "segments"
    elif set_name.startswith("rankings/"):
        experiment, what = Comparisons(set=set_name, columns=columns), "comparisons"
    else:
        experiment, what = Systems(set=set_name, columns=columns), "systems"
    return _table(set_name, experiment, rows_for(set_name), f"{what}, into English")


TABLES = [
    *(_into_english(name) for name in INTO_ENGLISH),
    _table(
        "mqm",
        Parts(set="mqm", lp="zh-en", columns=("news21", "ted21")),
        rows_for("mqm"),
        "experts' error weights of 2021, Chinese to English",
    ),
    _table(
        "da/multi30k",
        Segments(set="da/multi30k", columns=("en-de", "en-fr")),
        [Row(label=spec, model=spec) for spec in MULTILINGUAL],
        "captions out of English",
    ),
    _table(
        "qe/wmt20",
        Segments(set="qe/wmt20", columns=QE, part="test"),
        [Row(label=spec, model=spec) for spec in WITHOUT_REFERENCE],
        "without reference",
    ),
]
