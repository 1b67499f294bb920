"""All registered metrics on all available test sets, with their default settings.

There is one table per test set. A metric is not evaluated on its own training data: rows of sets in
`TRAINING_SETS` are left out. Test sets out of English have rows for multilingual metrics only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from papers.departures import DEPARTURES
from papers.experiments import Comparisons, Segments, SegmentsByPart, Systems
from papers.language_pairs import INTO_ENGLISH, MULTI30K, QE_WMT20
from papers.table import Experiment, PaperTable, Row
from tertium.core.registry import METRICS, RANKERS
from tertium.data.dataset_folder import DatasetFolder
from tertium.metrics.base.ranker import load_ranker

INTRODUCTION = """\
Every metric with its default settings, on every test set that is available. A metric is not
evaluated on its own training data; such rows are left out.

- `da/wmt15` to `da/wmt17`: direct assessments (DA) of segments, Pearson's r.
- `rankings/wmt08` to `rankings/wmt16`: human comparisons, Kendall's tau x 100. A tie of the metric
  counts as an error.
- `wmt17-metrics-task`, `wmt18-metrics-task`: human scores of systems, Pearson's r.
- `mqm`: MQM scores of segments, `da/multi30k`: image captions, `qe/wmt20`: quality estimation
  (source-only metrics). All three Pearson's r.
"""

RANKING_SETS = frozenset(f"rankings/wmt{year}" for year in (11, 13, 15, 16))
DA_SETS = frozenset({"da/wmt15", "da/wmt16"})
# rankings/wmt15 and rankings/wmt16 contain the segments of da/wmt15 and da/wmt16.
REGRESSION_SETS = DA_SETS | {"rankings/wmt15", "rankings/wmt16"}
TRAINING_SETS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("bleu-r", "nist-r", "ter-r", "meteor-r", "mt-r", "rte-r", "mt-rte-r", "svr"),
        REGRESSION_SETS,
    ),
    **dict.fromkeys(("bilstm", "bilstm-attention", "esim"), DA_SETS | RANKING_SETS),
    **dict.fromkeys(
        ("tertium-base", "tertium-small"), DA_SETS | RANKING_SETS | {"mqm", "wmt18-metrics-task"}
    ),
    "tertium-multi": DA_SETS | RANKING_SETS | {"rankings/wmt08", "mqm", "wmt18-metrics-task"},
    "pairwise": DA_SETS | RANKING_SETS,  # its features include tertium-small
}

VARIANTS = ("chrf++", "mt-rte-r:embeddings=true")
LEXICAL_METRICS = ("bleu", "chrf", "chrf++", "ter", "nist")
# without default weights, or not a score of the whole translation (checks)
NOT_COMPARED = ("blend", "checks", "judge", "tertium-multi-adapted")
EMBEDDING_METRICS = ("bertr", "bertscore", "wmd", "wmdo", "smd", "sss", "sentsim")


@dataclass(frozen=True)
class BundledRanker:
    """Loads a bundled ranker."""

    name: str

    def __call__(self, datasets: DatasetFolder, column: str) -> object:
        return load_ranker(self.name)


def spec_rows(specs: Sequence[str]) -> list[Row]:
    """Return one row per metric spec."""
    return [Row(spec, model=spec) for spec in specs]


def metric_rows(set_name: str) -> list[Row]:
    """Return one row per registered metric that was not trained on a set."""
    specs = [name for name in [*METRICS.builtin, *VARIANTS] if name not in NOT_COMPARED]
    rows = spec_rows([spec for spec in specs if set_name not in training_sets(spec)])
    if set_name.startswith("rankings/"):
        rows += [
            Row(name, model=BundledRanker(name))
            for name in RANKERS.builtin
            if set_name not in training_sets(name)
        ]
    return rows


def training_sets(spec: str) -> frozenset[str]:
    """Return the sets that the bundled weights of a metric were trained on."""
    return TRAINING_SETS.get(spec.partition(":")[0], frozenset())


def _table(experiment: Experiment, set_name: str, title: str, rows: Sequence[Row]) -> PaperTable:
    return PaperTable(
        paper="overview",
        number=set_name,
        title=f"{set_name}: {title}",
        experiment=experiment,
        rows=rows,
        decimals=1 if set_name.startswith("rankings/") else 3,
        chart="rows",
        departures=(DEPARTURES["wmt11-segments"],) if set_name == "rankings/wmt11" else (),
    )


def _into_english(set_name: str) -> PaperTable:
    columns = INTO_ENGLISH[set_name]
    experiment: Experiment
    if set_name.startswith("da/"):
        experiment, level = Segments(set=set_name, columns=columns), "segments"
    elif set_name.startswith("rankings/"):
        experiment, level = Comparisons(set=set_name, columns=columns), "comparisons"
    else:
        experiment, level = Systems(set=set_name, columns=columns), "systems"
    return _table(experiment, set_name, f"{level}, into English", metric_rows(set_name))


TABLES = [
    *(_into_english(name) for name in INTO_ENGLISH),
    _table(
        SegmentsByPart(set="mqm", lp="zh-en", columns=("news21", "ted21")),
        "mqm",
        "MQM scores of WMT21 news and TED talks, Chinese to English",
        metric_rows("mqm"),
    ),
    _table(
        Segments(set="da/multi30k", columns=MULTI30K),
        "da/multi30k",
        "image captions, out of English",
        spec_rows([*LEXICAL_METRICS, *(f"{name}:encoder=use" for name in EMBEDDING_METRICS)]),
    ),
    _table(
        Segments(set="qe/wmt20", columns=QE_WMT20, part="test"),
        "qe/wmt20",
        "quality estimation (source-only)",
        spec_rows([f"{name}:against=source" for name in EMBEDDING_METRICS]),
    ),
]
