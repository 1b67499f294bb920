"""All metrics on judgments of modern systems (WMT21 to WMT24), where most translations are good.

These sets may be used to choose between models, but never for training. About 1,000 judged
translations per language pair are scored: the same segments for all metrics, each with all its
systems. Human translations that were judged with the systems are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from papers.overview import EMBEDDING_METRICS, LEXICAL_METRICS, metric_rows, spec_rows
from papers.table import Figure, PaperTable, Row
from tertium.core.errors import UnknownNameError
from tertium.core.resampling import make_rng
from tertium.core.segment import Judgment
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.record_files import read_records
from tertium.data.records import segment_from_record
from tertium.meta.accuracy import acc_eq_calibrated, soft_pairwise_accuracy
from tertium.meta.agreement import Agreement, pearson
from tertium.metrics import Metric

INTRODUCTION = """\
Agreement with human scores of systems from WMT21 to WMT24. Most of their translations are good, so
differences between metrics are smaller than on older sets.

- Segments (`da22`, `ted21`, `esa24`): acc_eq with calibrated ties, the share of pairs of
  translations of one segment that a metric orders as the human scores do.
- Systems (`SPA`): soft pairwise accuracy, the same for pairs of systems.
- `qe`: Pearson's r of source-only metrics, mean over the language pairs of a set.

Limitations:

- Each language pair has a sample of about 1,000 judged translations.
- These sets were used to choose tertium-multi, but no model was trained on them.
- A dash: the metric was trained on the set, or does not support its languages.
- Trained networks and all metrics over `e5` were measured on a GPU.

`python -m papers modern --rows METRIC --again -o docs/papers` measures one metric again.
"""

FOLDER = "modern/dev"
SAMPLE_SIZE = 1000  # judged translations per language pair, approximately
QE_SAMPLE_SIZE = 300
SEED = 2024
HUMAN_PREFIXES = ("ref", "human")  # system names of human translations start with these


@dataclass(frozen=True)
class Sample:
    """Judged translations of some segments, with their systems and items in order."""

    judgments: tuple[Judgment, ...]
    systems: tuple[str, ...]
    items: tuple[str, ...]

    def matrix(self, values: Sequence[float]) -> np.ndarray:
        """Arrange one value per judgment as (systems, items); NaN where there is no judgment."""
        table = np.full((len(self.systems), len(self.items)), np.nan)
        rows = {name: n for n, name in enumerate(self.systems)}
        columns = {name: n for n, name in enumerate(self.items)}
        for judgment, value in zip(self.judgments, values, strict=True):
            table[rows[judgment.system], columns[judgment.item]] = value
        return table


@lru_cache(maxsize=8)
def read_sample(path: Path, size: int, needs_references: bool) -> Sample:
    """Draw whole segments until there are about `size` judged translations."""
    if not path.is_file():
        raise UnknownNameError("set", str(path), sorted(str(p) for p in path.parent.glob("*")))
    judgments = []
    for where, record in read_records(path):
        item, system = f"{record.get('doc', '')}:{record['segment']}", str(record["system"])
        is_human = system.lower().startswith(HUMAN_PREFIXES)
        if needs_references and (not record.get("reference") or is_human):
            continue
        segment = segment_from_record(record, where)
        judgments.append(Judgment(segment, float(record["score"]), item=item, system=system))
    systems = tuple(sorted({j.system for j in judgments}))
    items = sorted({j.item for j in judgments})
    drawn = make_rng(SEED).permutation(len(items))[: max(2, size // len(systems))]
    drawn_items = {items[n] for n in drawn}
    sample = tuple(j for j in judgments if j.item in drawn_items)
    return Sample(sample, systems, tuple(sorted(drawn_items)))


_SCORE_CACHE: dict[tuple[str, Path, int], tuple[list[float], str]] = {}


def score_sample(
    metric: Metric, path: Path, size: int, needs_references: bool = True
) -> tuple[list[float], str]:
    """Return the oriented scores of a sample and the signature; cached for other statistics."""
    key = metric.spec, path, size
    if key not in _SCORE_CACHE:
        sample = read_sample(path, size, needs_references)
        scores = metric.score([j.segment for j in sample.judgments])
        _SCORE_CACHE[key] = scores.oriented_segments.tolist(), scores.signature
    return _SCORE_CACHE[key]


@dataclass(frozen=True, kw_only=True)
class ModernSample:
    """Agreement with human scores on a sample; a column is `SET LP`."""

    kind: str
    columns: tuple[str, ...]
    level: str = "segment"
    size: int = SAMPLE_SIZE

    @property
    def data(self) -> str:
        where = f"{FOLDER}/{self.kind}: about {self.size:,} judged translations per language pair"
        return f"{where}, whole segments drawn with seed {SEED}, without human translations"

    @property
    def statistic(self) -> str:
        if self.level == "system":
            return "soft pairwise accuracy of systems (1,000 permutations)"
        return "acc_eq with calibrated ties, by segment"

    def measure(self, datasets: DatasetFolder, model: Metric, column: str) -> Figure:
        name, lp = column.split()
        path = datasets.root / FOLDER / self.kind / name / f"{lp}.jsonl.gz"
        values, signature = score_sample(model, path, self.size)
        sample = read_sample(path, self.size, True)
        human, scores = sample.matrix([j.score for j in sample.judgments]), sample.matrix(values)
        agreement: Agreement
        if self.level == "system":
            agreement = soft_pairwise_accuracy(human, scores, rng=make_rng(SEED))
        else:
            agreement = acc_eq_calibrated(human, scores)
        return Figure(value=float(agreement), count=len(values), signature=signature)


@dataclass(frozen=True, kw_only=True)
class QualityEstimation:
    """Pearson's r with quality estimation scores, mean over the language pairs of a set."""

    columns: tuple[str, ...]
    size: int = QE_SAMPLE_SIZE
    statistic: str = "Pearson's r with human scores of segments, mean over language pairs"

    @property
    def data(self) -> str:
        return f"{FOLDER}/qe: {self.size} segments per language pair, drawn with seed {SEED}"

    def measure(self, datasets: DatasetFolder, model: Metric, column: str) -> Figure:
        correlations, count, signature = [], 0, ""
        for path in sorted((datasets.root / FOLDER / "qe" / column).glob("*.jsonl.gz")):
            values, signature = score_sample(model, path, self.size, False)
            human = [j.score for j in read_sample(path, self.size, False).judgments]
            correlations.append(float(pearson(human, np.array(values))))
            count += len(human)
        return Figure(value=float(np.mean(correlations)), count=count, signature=signature)


MULTI_SPECS = tuple(f"tertium-multi:against={side}" for side in ("both", "reference", "source"))
E5_SPECS = tuple(f"{name}:encoder=e5" for name in EMBEDDING_METRICS)
# SentSim was measured with the published weights, which were its defaults then.
SENTSIM_WEIGHTS = {"sentsim": ",sentence_weight=0.5,token_weight=0.5"}
SOURCE_SPECS = tuple(
    f"{name}:against=source,encoder=e5{SENTSIM_WEIGHTS.get(name, '')}" for name in EMBEDDING_METRICS
)
MULTILINGUAL_SPECS = (*MULTI_SPECS, *E5_SPECS, *SOURCE_SPECS)


def _into_english(set_name: str) -> list[Row]:
    """Return all metrics that were not trained on a set; tertium-multi has one row per input."""
    registered = [row for row in metric_rows(set_name) if row.label != "tertium-multi"]
    return [*registered, *spec_rows(MULTILINGUAL_SPECS)]


def _out_of_english() -> list[Row]:
    return spec_rows([*LEXICAL_METRICS, *MULTILINGUAL_SPECS])


def _tables(
    number: str, title: str, experiment: ModernSample, rows: Sequence[Row]
) -> list[PaperTable]:
    """Return a table for segments and one for systems, from the same scores."""
    segments = PaperTable(
        paper="modern",
        number=number,
        title=f"{title}, segments",
        experiment=experiment,
        rows=rows,
        chart="rows",
    )
    systems = replace(
        segments,
        number=f"{number} SPA",
        title=f"{title}, systems",
        experiment=replace(experiment, level="system"),
    )
    return [segments, systems]


TABLES = [
    *_tables(
        "da22",
        "Direct assessments of WMT22, into English",
        ModernSample(kind="da", columns=("wmt22 uk-en", "wmt22 liv-en")),
        _into_english("modern"),
    ),
    *_tables(
        "ted21 zh-en",
        "MQM scores of TED talks (WMT21), Chinese to English",
        ModernSample(kind="mqm", columns=("ted21 zh-en",)),
        _into_english("mqm"),
    ),
    *_tables(
        "ted21",
        "MQM scores of TED talks (WMT21), out of English",
        ModernSample(kind="mqm", columns=("ted21 en-de", "ted21 en-ru")),
        _out_of_english(),
    ),
    *_tables(
        "esa24",
        "Error span annotation (ESA) of WMT24",
        ModernSample(kind="esa", columns=("wmt24 cs-uk", "wmt24 en-is")),
        _out_of_english(),
    ),
    PaperTable(
        paper="modern",
        number="qe",
        title="Quality estimation (source-only)",
        experiment=QualityEstimation(
            columns=("mlqe-dev", "mlqe-test20", "mlqe-test21", "qe22-test", "qe24-test")
        ),
        rows=spec_rows(["tertium-multi:against=source", *SOURCE_SPECS]),
        chart="rows",
    ),
]
