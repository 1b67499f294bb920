"""Every metric on judgments of modern systems: what holds where translations are good.

The sets choose and never train. At most about a thousand judged translations of a language pair are
scored, segments drawn once and for all metrics alike, each with all its systems; human references
that were judged among the systems are left out. `tertium reproduce modern --rows
tertium-small --again -o docs/results.md` measures one metric anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from papers.overview import EMBEDDING, rows_for
from papers.table import Figure, PaperTable, Row
from tertium.arrays import generator
from tertium.data.collection import Collection
from tertium.data.formats import read_records
from tertium.data.records import segment_from_record
from tertium.errors import UnknownNameError
from tertium.meta.accuracy import acc_eq_calibrated
from tertium.meta.agreement import Agreement
from tertium.meta.correlation import pearson
from tertium.meta.systems import soft_pairwise_accuracy
from tertium.metrics import Metric
from tertium.segment import Judgment

FOLDER = "modern/dev"
ROWS = 1000  # judged translations of a language pair, at most about
WITHOUT_REFERENCE_ROWS = 300
SEED = 2024
HUMAN = ("ref", "human")  # how the names of human translations begin


@dataclass(frozen=True)
class Sample:
    """Judged translations of some segments, in order, and where they stand in a matrix."""

    judgments: tuple[Judgment, ...]
    systems: tuple[str, ...]
    items: tuple[str, ...]

    def matrix(self, values: Sequence[float]) -> np.ndarray:
        """One value a judgment as (systems, items), NaN where nobody judged."""
        table = np.full((len(self.systems), len(self.items)), np.nan)
        rows = {name: n for n, name in enumerate(self.systems)}
        columns = {name: n for n, name in enumerate(self.items)}
        for judgment, value in zip(self.judgments, values, strict=True):
            table[rows[judgment.system], columns[judgment.item]] = value
        return table


@lru_cache(maxsize=8)
def read_sample(path: Path, rows: int, references: bool) -> Sample:
    """Whole segments drawn until there are about `rows` translations; all where there are fewer."""
    if not path.is_file():
        raise UnknownNameError("set", str(path), sorted(str(p) for p in path.parent.glob("*")))
    judged = []
    for where, record in read_records(path):
        item, system = f"{record.get('doc', '')}:{record['segment']}", str(record["system"])
        if references and (not record.get("reference") or system.lower().startswith(HUMAN)):
            continue
        segment = segment_from_record(record, where)
        judged.append(Judgment(segment, float(record["score"]), item=item, system=system))
    systems = tuple(sorted({j.system for j in judged}))
    items = sorted({j.item for j in judged})
    drawn = generator(SEED).permutation(len(items))[: max(2, rows // len(systems))]
    kept = {items[n] for n in drawn}
    chosen = tuple(j for j in judged if j.item in kept)
    return Sample(chosen, systems, tuple(sorted(kept)))


_KEPT: dict[tuple[str, Path, int], tuple[list[float], str]] = {}


def score_sample(
    metric: Metric, path: Path, rows: int, references: bool = True
) -> tuple[list[float], str]:
    """What a metric gives to a sample, and its signature; once for all statistics."""
    key = metric.spec, path, rows
    if key not in _KEPT:
        sample = read_sample(path, rows, references)
        scores = metric.score([j.segment for j in sample.judgments])
        _KEPT[key] = scores.upward.tolist(), scores.signature
    return _KEPT[key]


@dataclass(frozen=True, kw_only=True)
class Modern:
    """Agreement with people on samples of modern sets; a column is `SET LP`."""

    kind: str
    columns: tuple[str, ...]
    level: str = "segment"
    rows: int = ROWS

    @property
    def data(self) -> str:
        where = f"{FOLDER}/{self.kind}: about {self.rows:,} judged translations of a language pair"
        return f"{where}, whole segments drawn under seed {SEED}, without human translations"

    @property
    def statistic(self) -> str:
        if self.level == "system":
            return "soft pairwise accuracy of systems (1,000 permutations)"
        return "acc_eq with calibrated ties, by segment"

    def measure(self, collection: Collection, model: Metric, column: str) -> Figure:
        name, lp = column.split()
        path = collection.root / FOLDER / self.kind / name / f"{lp}.jsonl.gz"
        values, signature = score_sample(model, path, self.rows)
        sample = read_sample(path, self.rows, True)
        human, scores = sample.matrix([j.score for j in sample.judgments]), sample.matrix(values)
        agreement: Agreement
        if self.level == "system":
            agreement = soft_pairwise_accuracy(human, scores, rng=generator(SEED))
        else:
            agreement = acc_eq_calibrated(human, scores)
        return Figure(value=float(agreement), count=len(values), signature=signature)


@dataclass(frozen=True, kw_only=True)
class WithoutReference:
    """Pearson's r with scores of quality estimation, the mean over the language pairs of a set."""

    columns: tuple[str, ...]
    rows: int = WITHOUT_REFERENCE_ROWS
    statistic: str = "Pearson's r with human scores of segments, mean over language pairs"

    @property
    def data(self) -> str:
        return f"{FOLDER}/qe: {self.rows} segments of each language pair, drawn under seed {SEED}"

    def measure(self, collection: Collection, model: Metric, column: str) -> Figure:
        figures, count, signature = [], 0, ""
        for path in sorted((collection.root / FOLDER / "qe" / column).glob("*.jsonl.gz")):
            values, signature = score_sample(model, path, self.rows, False)
            human = [j.score for j in read_sample(path, self.rows, False).judgments]
            figures.append(float(pearson(human, np.array(values))))
            count += len(human)
        return Figure(value=float(np.mean(figures)), count=count, signature=signature)


VIEWS = tuple(f"tertium-multi:against={view}" for view in ("both", "reference", "source"))
OVER_E5 = tuple(f"{name}:encoder=e5" for name in EMBEDDING)
# SentSim with the weights of its paper, which were its defaults when it was measured.
PUBLISHED_WEIGHTS = {"sentsim": ",sentence_weight=0.5,token_weight=0.5"}
AGAINST_SOURCE = tuple(
    f"{name}:against=source,encoder=e5{PUBLISHED_WEIGHTS.get(name, '')}" for name in EMBEDDING
)
NEURAL = (*VIEWS, *OVER_E5, *AGAINST_SOURCE)  # of any language
MULTILINGUAL = ("bleu", "chrf", "chrf++", "ter", "nist", *NEURAL)


def _rows(specs: Sequence[str]) -> list[Row]:
    return [Row(label=spec, model=spec) for spec in specs]


def _into_english(seen: str) -> list[Row]:
    """Every metric that has not learned from a set, the multilingual ones in all their views."""
    registered = [row for row in rows_for(seen) if row.label != "tertium-multi"]
    return [*registered, *_rows(NEURAL)]


def _tables(number: str, title: str, experiment: Modern, rows: Sequence[Row]) -> list[PaperTable]:
    """A table of segments and one of systems, made of the same scores."""
    systems = Modern(kind=experiment.kind, columns=experiment.columns, level="system")
    return [
        PaperTable(
            paper="modern",
            number=f"{number}{suffix}",
            title=f"{title}, {what}",
            experiment=asked,
            rows=rows,
            picture="rows",
        )
        for suffix, what, asked in (("", "segments", experiment), (" SPA", "systems", systems))
    ]


TABLES = [
    *_tables(
        "da22",
        "direct assessment of WMT22, into English",
        Modern(kind="da", columns=("wmt22 uk-en", "wmt22 liv-en")),
        _into_english("modern"),
    ),
    *_tables(
        "ted21 zh-en",
        "experts' error weights of talks, Chinese to English",
        Modern(kind="mqm", columns=("ted21 zh-en",)),
        _into_english("mqm"),
    ),
    *_tables(
        "ted21",
        "experts' error weights of talks, out of English",
        Modern(kind="mqm", columns=("ted21 en-de", "ted21 en-ru")),
        _rows(MULTILINGUAL),
    ),
    *_tables(
        "esa24",
        "error span annotation of WMT24",
        Modern(kind="esa", columns=("wmt24 cs-uk", "wmt24 en-is")),
        _rows(MULTILINGUAL),
    ),
    PaperTable(
        paper="modern",
        number="qe",
        title="quality estimation, without reference",
        experiment=WithoutReference(
            columns=("mlqe-dev", "mlqe-test20", "mlqe-test21", "qe22-test", "qe24-test")
        ),
        rows=_rows(("tertium-multi:against=source", *AGAINST_SOURCE)),
        picture="rows",
    ),
]
