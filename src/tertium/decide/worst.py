"""The translations most in need of attention, over all systems and language pairs: `worst`.

1. Outputs that are not a translation: empty, in the wrong language, copied, cut off.
2. Translations with a critical finding of a check, such as a lost placeholder.
3. All others by the chance of a serious error, if a metric predicts human scores with their spread,
   else by the rank of the score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import UsageError
from tertium.core.options import Compute, Option
from tertium.core.result import Column, MarkedLine, Result, Section, Table, mark_texts
from tertium.core.segment import Segment
from tertium.core.spans import Span
from tertium.evaluation.checking import FAILED_OUTPUT, find_errors, finding_kinds
from tertium.evaluation.metric_choice import MetricOptions, default_metric, recommend_metric
from tertium.evaluation.rows import (
    Row,
    RowScores,
    group_by_pair,
    mark_rows,
    metric_for_pair,
    rows_of_testset,
    score_rows,
)
from tertium.evaluation.scoring import References, Translations, as_testset
from tertium.evaluation.system_scores import distinct_labels
from tertium.files.text_inputs import InputFiles
from tertium.metrics.base.capabilities import can_mark_errors, predict_uncertainty
from tertium.metrics.base.judge_run import JudgeServer
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric

# A human score below which a translation has a serious error, for metrics that predict such scores:
# the middle of the DA scale; MQM penalties of at least one major error, 5 of 25 points.
SERIOUS_SCORES = {"da": 0.5, "mqm": 0.8}
LOW_SCORE = "low score"
MAX_PRINTED = 60  # characters of a text in the terminal
NO_CHANCE = "chance: these metrics predict none; rows are ordered by score"


@dataclass(frozen=True, kw_only=True)
class WorstRow:
    """A translation with its rank, from 1, and the reason why it is listed.

    `reason` is the id of a check, or `LOW_SCORE`. `chance` is that of a serious error by the
    scores; NaN if no metric predicts one, or if a check is the reason. `spans` are errors marked
    by metrics (with the metric as rater) and findings of checks.
    """

    rank: int
    row: Row
    reason: str
    chance: float
    scores: Mapping[str, float]
    warnings: tuple[str, ...]
    spans: tuple[Span, ...]

    def record(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "rank": self.rank,
            "reason": self.reason,
            "chance": self.chance,
            **self.row.record(),
            "scores": dict(self.scores),
            "warnings": list(self.warnings),
            "spans": [span.as_dict() for span in self.spans],
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class WorstSegments(Result):
    """The worst translations, worst first, of `total` translations.

    `metrics` are the metrics by their display names.
    """

    is_spreadsheet = True
    rows: tuple[WorstRow, ...]
    total: int
    metrics: Mapping[str, Metric]

    def __len__(self) -> int:
        return len(self.rows)

    def records(self) -> list[dict[str, Any]]:
        """Return one record for each translation."""
        return [row.record() for row in self.rows]

    lines = records

    def counts(self) -> dict[str, int]:
        """Count the translations of each reason."""
        return dict(Counter(row.reason for row in self.rows))

    def tables(self) -> list[Table]:
        """Return one row per translation, without references and errors."""
        notes = [self.page_subtitle]
        if self.rows and not self._has_chance:
            notes.append(NO_CHANCE)
        return [replace(self.file_table(), notes=notes)]

    @property
    def page_title(self) -> str:
        """What to do with the translations."""
        return "Translations to look at first"

    @property
    def page_subtitle(self) -> str:
        """The number of translations."""
        return f"{len(self):,} of {self.total:,} translations"

    def sections(self) -> list[Section]:
        """Return the number of translations by reason, and all with marked errors."""
        counts = self.counts()
        reasons = [Column("reason", str), Column("translations", counts.__getitem__, 0)]
        hidden = ("translation", "source")
        columns = [own for own in self._columns() if own.show and own.name not in hidden]
        filters = ["reason", "system", "lp", "document"]
        texts = Table([*columns, Column("texts", _mark)], self.rows, filters=filters)
        return [Section("Reasons", [Table(reasons, [*counts])]), Section("Translations", [texts])]

    def file_table(self, suffix: str = "") -> Table:
        """Return one row per translation with all texts, scores, warnings and errors."""
        return Table(self._columns(), self.rows)

    def _columns(self) -> list[Column]:
        rows = [entry.row for entry in self.rows]
        has_source = any(row.segment.source is not None for row in rows)
        columns = [
            Column("rank", decimals=0),
            Column("reason"),
            Column("chance", decimals=2, show=self._has_chance),
            Column("system", "row.system"),
            Column("segment", "row.item"),
            Column("lp", "row.lp", show=any(row.lp for row in rows)),
            Column("document", "row.document", show=any(row.document for row in rows)),
        ]
        for label, metric in self.metrics.items():
            columns.append(Column(label, partial(_score, metric.spec), metric.decimals))
        columns += [
            Column("translation", "row.segment.hypothesis", max_length=MAX_PRINTED),
            Column("source", "row.segment.source", show=has_source, max_length=MAX_PRINTED),
        ]
        count = max((len(row.segment.references) for row in rows), default=0)
        for place in range(count):
            name = f"reference {place + 1}" if count > 1 else "reference"
            columns.append(Column(name, partial(_reference, place), show=False))
        columns += [
            Column("warnings", lambda row: "; ".join(row.warnings), show=False),
            Column("errors", _describe_errors, show=False),
        ]
        return columns

    @property
    def _has_chance(self) -> bool:
        return any(np.isfinite(row.chance) for row in self.rows)


def _score(spec: str, row: WorstRow) -> float:
    return row.scores[spec]


def _reference(place: int, row: WorstRow) -> str | None:
    references = row.row.segment.references
    return references[place] if place < len(references) else None


def _mark(row: WorstRow) -> list[MarkedLine]:
    messages = [span.message for span in row.spans if span.message]
    messages += [f"warning: {kind}" for kind in row.warnings]
    return mark_texts(row.row.segment, row.spans, "; ".join(dict.fromkeys(messages)))


def _describe_errors(row: WorstRow) -> str:
    return "\n".join(describe_span(span, row.row.segment) for span in row.spans)


def describe_span(span: Span, segment: Segment) -> str:
    """Describe an error in one line: severity, kind, marked text and message.

    >>> span = Span(0, 3, severity="major", category="numbers", message="lost")
    >>> describe_span(span, Segment("12 a"))
    'major numbers: "12 " (lost)'
    """
    kind = " ".join(filter(None, (span.severity, span.category)))
    details = "; ".join(filter(None, (span.message, span.rater)))
    text = span.of(segment.text_of(span.side))
    return f'{kind}: "{text}"' + (f" ({details})" if details else "")


def worst(
    testset: Translations,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    *,
    sources: Sequence[str] | None = None,
    references: References = None,
    count: int = 50,
    per: Mapping[str, int] | None = None,
    lp: str = "",
) -> WorstSegments:
    """List the translations most in need of attention, the worst first.

    Parameters
    ----------
    testset
        A `TestSet`, a frame, a list of translations, or lists by system name. A column `lp` names
        the language pair of each segment, so that one call may mix languages.
    metrics
        Specs or metrics; by default the recommended metric for the data.
    sources, references
        Texts for each segment, if `testset` is a list or a dictionary of lists.
    count
        Number of translations.
    per
        At most so many translations of each "language" pair, and of each "document".
    lp
        The language pair of all rows, if there is no column.

    Examples
    --------
    >>> result = worst(["", "a dog"], "chrf", references=["a cat", "a dog"], sources=["x", "y"])
    >>> [(row.row.item, row.reason) for row in result.rows]
    [(1, 'empty'), (2, 'low score')]
    """
    limits = per or {}
    for name, limit in {"count": count, **limits}.items():
        if limit < 1:
            raise UsageError(f"{name} is {limit}: expected 1 or more")
    texts = as_testset(testset, sources, references)
    if "document" in limits and not texts.documents:
        raise UsageError("a limit per document needs document names: give them with --documents")
    rows = rows_of_testset(texts, lp)
    specs = recommend_metric(texts) if metrics is None else metrics
    loaded = load_metrics(specs)
    scored = score_rows(rows, [metric.spec for metric in loaded])
    findings = find_errors(rows)
    reasons = [_reason(spans) for spans in findings]
    predicted = [_predict_chances(scores, rows) for scores in scored]
    predictions = [chances for chances in predicted if chances is not None]
    chances = np.mean(predictions, axis=0) if predictions else np.full(len(rows), np.nan)
    ranks = np.mean([_rank(scores.oriented) for scores in scored], axis=0)
    places = [place for place, _ in reasons]
    order = np.lexsort((-ranks, -np.nan_to_num(chances, nan=2.0), places)).tolist()
    chosen = _apply_limits(order, rows, count, limits)
    marks = _mark_errors(loaded, rows, chosen)
    listed = [
        WorstRow(
            rank=rank,
            row=rows[n],
            reason=reasons[n][1],
            chance=float(chances[n]) if reasons[n][1] == LOW_SCORE else np.nan,
            scores={own.metric.spec: float(own.values[n]) for own in scored},
            warnings=tuple(dict.fromkeys(kind for own in scored for kind in own.warnings[n])),
            spans=(*marks[n], *findings[n]),
        )
        for rank, n in enumerate(chosen, start=1)
    ]
    labels = distinct_labels({metric.spec: metric.label for metric in loaded})
    metrics_by_label = dict(zip(labels.values(), loaded, strict=True))
    return WorstSegments(rows=tuple(listed), total=len(rows), metrics=metrics_by_label)


def _reason(spans: Sequence[Span]) -> tuple[int, str]:
    """Return the place of a row among the reasons, and the reason."""
    for name in finding_kinds(spans, FAILED_OUTPUT):
        return FAILED_OUTPUT.index(name), name
    place = len(FAILED_OUTPUT)
    critical = [span.category for span in spans if span.severity == "critical"]
    return (place, critical[0]) if critical else (place + 1, LOW_SCORE)


def _predict_chances(scores: RowScores, rows: Sequence[Row]) -> FloatArray | None:
    """Return the chance of a serious error of each row, (n,); None if the metric predicts none."""
    limit = SERIOUS_SCORES.get(getattr(scores.metric, "scale", ""))
    if limit is None:
        return None
    from scipy.special import ndtr

    chances = np.full(len(rows), np.nan)
    for lp, indices in group_by_pair(rows).items():
        segments = [rows[n].segment for n in indices]
        metric = metric_for_pair(scores.metric.spec, lp, [s.hypothesis for s in segments])
        values = scores.values[indices]
        deviation = predict_uncertainty(metric, values, segments)
        if deviation is None:
            return None
        chances[indices] = ndtr(-(values - limit) / deviation)
    return chances


def _rank(oriented: FloatArray) -> FloatArray:
    """Return the share of rows with a better score, (n,); 1 for rows without a score."""
    ordered = np.sort(oriented[np.isfinite(oriented)])
    better = len(ordered) - np.searchsorted(ordered, oriented, side="right")
    return np.where(np.isfinite(oriented), better / max(len(ordered), 1), 1.0)


def _apply_limits(
    order: Sequence[int], rows: Sequence[Row], count: int, limits: Mapping[str, int]
) -> list[int]:
    """Return the first rows of an order that are within all limits."""
    seen: Counter[tuple[str, ...]] = Counter()
    chosen: list[int] = []
    for n in order:
        lp = rows[n].lp
        document = rows[n].document
        keys = [("language", lp), ("document", lp, document)]
        if any(seen[key] >= limits.get(key[0], np.inf) for key in keys):
            continue
        seen.update(keys)
        chosen.append(n)
    return chosen[:count]


def _mark_errors(
    metrics: Sequence[Metric], rows: Sequence[Row], chosen: Sequence[int]
) -> dict[int, tuple[Span, ...]]:
    """Return the errors that the metrics mark in the chosen rows, by row."""
    marks: dict[int, tuple[Span, ...]] = dict.fromkeys(chosen, ())
    for metric in filter(can_mark_errors, metrics):
        marked = mark_rows([rows[n] for n in chosen], metric.spec)
        for n, spans in zip(chosen, marked, strict=True):
            marks[n] += tuple(replace(span, rater=metric.label) for span in spans)
    return marks


def parse_limit(text: str) -> tuple[str, int]:
    """Parse a value of --per.

    >>> parse_limit("language=20")
    ('language', 20)
    """
    name, _, count = text.partition("=")
    if name not in ("language", "document") or not count.isdecimal():
        raise UsageError(f"{text}: expected language=N or document=N")
    return name, int(count)


Limit = Annotated[tuple[str, int], Option(metavar="NAME=N", type=parse_limit)]


def worst_of_files(
    inputs: InputFiles,
    metrics: MetricOptions,
    compute: Compute,
    judge: JudgeServer,
    *,
    count: Annotated[int, Option("-n", "--count", group="Output")] = 50,
    per: Annotated[tuple[Limit, ...], Option(group="Output")] = (),
) -> WorstSegments:
    """List the translations most in need of attention, over systems and languages.

    Parameters
    ----------
    count
        Translations.
    per
        At most N translations of each language pair (language=20) or document (document=5).

    Examples
    --------
    tertium worst -s source.txt -t a.txt b.txt -r reference.txt -o worst.xlsx
    tertium worst -t systems.jsonl -m tertium-multi -n 100 --per language=20 -o worst.html
    tertium worst -t systems.jsonl -m chrf -o worst.csv worst.jsonl

    Notes
    -----
    Outputs that are not a translation come first: empty, in the wrong language, copied, cut off.
    Then come critical findings of `tertium check`, then the highest chances of a serious error. A
    column lp (en-de) gives each row its own language pair.
    """
    texts = inputs.read()
    specs = metrics.metrics or default_metric(texts.testset, texts.target_language)
    loaded = metrics.load_specs(specs)
    judge.stop_dry_run((texts.testset, loaded))
    return worst(
        texts.testset,
        [metric.spec for metric in loaded],
        count=count,
        per=dict(per),
        lp=inputs.language_pair,
    )
