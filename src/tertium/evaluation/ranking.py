"""Rank systems, or lists of candidates, by their mean probability of winning against the others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.charts import IntervalChart
from tertium.core.options import Compute, Display, InFile, Option
from tertium.core.result import Column, Result, Table, View
from tertium.core.scores import ScoreMatrix, format_warning_counts
from tertium.core.segment import Segment
from tertium.data.candidate_lists import CandidateList, read_candidates
from tertium.data.tables import missing_to_null
from tertium.data.testset import TestSet
from tertium.evaluation.metric_choice import load_scorer, recommend_metric_for, target_texts
from tertium.evaluation.scoring import References, Translations, as_testset
from tertium.evaluation.system_scores import (
    is_caution,
    segment_fields,
    tokenizer_notes,
)
from tertium.files.text_inputs import InputFiles
from tertium.metrics.base.judge_run import JudgeConnection
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.ranker import Ranker, ScoreRanker, as_ranker
from tertium.metrics.base.text_warnings import count_flags

DECIMALS = 4  # of win probabilities
NOT_COMPARED = "translation not compared because its score is not a number"  # a warning


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranking(Result):
    """A ranking of systems, as returned by `tertium.rank`.

    Attributes
    ----------
    matrix
        The mean win probability of each system on each segment.
    signature
        The signature of the ranker.
    warnings
        Counts by kind of warning and system.

    >>> systems = {"a": ["a dog"], "b": ["a cat"]}
    >>> ranking = rank(systems, "chrf", references=["the cat"])
    >>> [(record["system"], record["rank"]) for record in ranking.records()]
    [('b', 1), ('a', 2)]
    """

    testset: TestSet
    ranker: Ranker
    matrix: ScoreMatrix = field(repr=False)
    signature: str
    warnings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def order(self) -> list[int]:
        """The row indices of the systems from best to worst; ties in input order."""
        order: list[int] = np.argsort(-self.matrix.system_scores, kind="stable").tolist()
        return order

    @property
    def ranks(self) -> list[float]:
        """The rank of each system from 1; ties share the better rank, NaN without a score."""
        scores = self.matrix.system_scores
        return [1 + int((scores > s).sum()) if s == s else np.nan for s in scores]

    @property
    def best_on(self) -> IntArray:
        """On how many segments each system is the best, alone or tied, (systems,)."""
        values = self.matrix.values
        # sums in another order differ by rounding, which must not separate ties
        count: IntArray = (values >= np.fmax.reduce(values) - 1e-12).sum(axis=1)
        return count

    def records(self, *, segments: bool = False) -> list[dict[str, Any]]:
        """Return one dictionary for each system, from best to worst."""
        scores = self.matrix.system_scores
        ranks = self.ranks
        best_on = self.best_on
        records = []
        for n in self.order:
            system = self.matrix.systems[n]
            record = {
                "name": self.matrix.name,
                "system": system,
                "rank": ranks[n],
                "score": float(scores[n]),
                "best": int(best_on[n]),
                "signature": self.signature,
                **(segment_fields(self.testset, self.matrix.values[n]) if segments else {}),
            }
            warnings = {kind: by[system] for kind, by in self.warnings.items() if system in by}
            records.append({**record, "warnings": warnings} if warnings else record)
        return records

    def tables(self) -> list[Table]:
        """Return one row per system, best first."""
        columns = [
            Column("system"),
            Column("rank", decimals=0),
            Column(
                "win probability",
                "score",
                DECIMALS,
                mark=lambda row: "best" if row["rank"] == 1 else "",
                adjustable=True,
            ),
            Column("best on", "best", 0),
        ]
        count = len(self.testset)
        lines = self.warning_lines()
        notes = [
            f"{count} segment{'s' * (count != 1)}, all pairs of {len(self.matrix.systems)} systems",
            self.signature,
            *(line for line in lines if not is_caution(line)),
        ]
        return [Table(columns, self.records(), notes=notes, cautions=[*filter(is_caution, lines)])]

    def charts(self) -> list[IntervalChart]:
        """Return the mean win probability of each system."""
        by_score = isinstance(self.ranker, ScoreRanker)
        label = f"wins by {self.ranker.spec}" if by_score else self.ranker.title
        count = len(self.matrix.systems)
        chart = IntervalChart(
            title=f"Systems by {label}",
            caption=label,
            names=self.matrix.systems,
            values=self.matrix.system_scores,
            intervals=np.full((count, 2), np.nan),
            clusters=[0] * count,
            decimals=DECIMALS,
        )
        return [chart]

    def segment_table(self) -> Table:
        """Return one row per segment with the win probability of each system."""
        columns = [Column("segment", self.matrix.items.__getitem__)]
        for system in self.matrix.systems:
            values = self.matrix[system].tolist()
            columns.append(Column(system, values.__getitem__, DECIMALS, adjustable=True))
        return Table(columns, range(len(self.matrix.items)))

    def warning_lines(self) -> list[str]:
        """Return lines on tokenizers and on warnings with counts by system."""
        notes = tokenizer_notes(self.testset, [self.ranker.spec])
        return [*notes, *format_warning_counts(self.warnings)]


def recommend_ranker(segments: Sequence[Segment], language: str = "") -> str:
    """Return "pairwise" for English references, else the recommended metric."""
    first = [segment.references[0] for segment in segments if segment.references]
    has_sources = any(segment.source is not None for segment in segments)
    metric = recommend_metric_for(first, sources=has_sources, language=language)
    return "pairwise" if metric == "tertium-small" else metric


def rank(
    testset: Translations,
    ranker: str | Metric | Ranker | None = None,
    *,
    sources: Sequence[str] | None = None,
    references: References = None,
) -> Ranking:
    """Compare every two translations of each segment and rank systems by win probability.

    A translation whose score is NaN is not compared, but counted; a system without a score has no
    rank.

    Parameters
    ----------
    testset
        A `TestSet`, a pandas or polars frame, or lists of translations by system name.
    ranker
        A ranker, a metric (the better score wins), or the spec of one. By default "pairwise" for
        English references, otherwise the recommended metric.
    sources, references
        Texts for each segment, if `testset` is a dictionary of lists.

    Returns
    -------
    Ranking
        Win probabilities and ranks.
    """
    testset = as_testset(testset, sources, references)
    first = testset.segments(next(iter(testset.systems)))
    choice = recommend_ranker(first) if ranker is None else ranker
    if isinstance(choice, str):
        choice = load_scorer(choice, texts=target_texts(testset))
    chosen = as_ranker(choice)
    matrix = chosen.rank(testset)
    signature = chosen.signature(first)
    warnings: dict[str, dict[str, int]] = {}
    for system in matrix.systems:
        for kind, count in count_flags(chosen.flags(testset.segments(system))).items():
            warnings.setdefault(kind, {})[system] = count
        if not_compared := int(np.isnan(matrix[system]).sum()):
            warnings.setdefault(NOT_COMPARED, {})[system] = not_compared
    return Ranking(
        testset=testset, ranker=chosen, matrix=matrix, signature=signature, warnings=warnings
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedCandidates(Result):
    """Lists of candidates with the win probability of each candidate in its list.

    `warnings` are counts by kind of warning.
    """

    lists: Sequence[CandidateList]
    rates: Sequence[FloatArray]
    warnings: Mapping[str, int]

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the lists, each with its candidates from best to worst."""
        pairs = zip(self.lists, self.rates, strict=True)
        return [entry.reorder(rates.tolist()) for entry, rates in pairs]

    lines = records

    def tables(self) -> list[Table]:
        """Return one row per candidate."""
        rows = []
        for number, (entry, record) in enumerate(zip(self.lists, self.records(), strict=True), 1):
            for text, score in zip(record[entry.key], record["scores"], strict=True):
                rows.append({"list": number, "candidate": text, "score": score})
        columns = [
            Column("list", decimals=0),
            Column("candidate"),
            Column("win probability", "score", DECIMALS, adjustable=True),
        ]
        return [Table(columns, rows)]

    def warning_lines(self) -> list[str]:
        return [f"warning: {kind}: {count}" for kind, count in self.warnings.items()]


def rerank(
    lists: Sequence[CandidateList], ranker: str | Metric | Ranker | None = None
) -> RankedCandidates:
    """Compute the win probability of each candidate in its list."""
    first_segments = [entry.segments[0] for entry in lists]
    chosen = as_ranker(recommend_ranker(first_segments) if ranker is None else ranker)
    chosen.check(first_segments)  # an error names the list
    rates = chosen.win_rates([entry.segments for entry in lists])
    warnings = count_flags(chosen.flags([*chain(*(entry.segments for entry in lists))]))
    if not_compared := sum(int(np.isnan(own).sum()) for own in rates if len(own) > 1):
        warnings = {**warnings, NOT_COMPARED: not_compared}
    return RankedCandidates(lists=lists, rates=rates, warnings=warnings)


RankerName = Annotated[
    str | None, Option("-m", "--metrics", "--model", metavar="RANKER", group="Metrics")
]


def rank_files(
    inputs: InputFiles,
    compute: Compute,
    judge: JudgeConnection,
    *,
    ranker: RankerName = None,
    sentence_level: Annotated[bool, Option("-sl", "--sentence-level", group="Output")] = False,
) -> View:
    """Rank systems by their mean probability of winning against each other, segment by segment.

    Parameters
    ----------
    ranker
        Ranker or metric (default: pairwise for English references, otherwise tertium-multi).
    sentence_level
        Print a probability for each segment.

    Examples
    --------
    tertium rank -t a.txt b.txt c.txt -r reference.txt
    tertium rank -s source.txt -t a.txt b.txt
    tertium rank -t a.txt b.txt -r reference.txt -m chrf -sl -f tsv
    tertium rank candidates candidates.jsonl > reordered.jsonl

    Notes
    -----
    RANKER is pairwise, pairwise:model=NAME (pairwise-minilm, a larger network; pairwise-published,
    the network of the paper; a folder with your own), or any metric, whose better score wins.
    """
    texts = inputs.read()
    testset = texts.testset
    source = texts.source_language
    target = texts.target_language
    first = testset.segments(next(iter(testset.systems)))
    spec = ranker or recommend_ranker(first, target)
    ranking = rank(testset, load_scorer(spec, source, target, target_texts(testset)))
    table = ranking.segment_table() if sentence_level else ranking.tables()[0]
    return View(
        result=ranking,
        printed=[table],
        table=table,
        json=ranking.records(segments=sentence_level),
        warns_aside=sentence_level,
    )


def rank_candidates(
    candidates: InFile,
    /,
    compute: Compute,
    judge: JudgeConnection,
    display: Display,
    *,
    ranker: RankerName = None,
) -> Annotated[View, RankedCandidates]:
    """Sort the candidates of each segment by their mean probability of winning.

    Parameters
    ----------
    candidates
        JSONL file of records with candidates, source and references.
    ranker
        Ranker or metric (default: pairwise for English references, otherwise tertium-multi).

    Examples
    --------
    tertium rank candidates candidates.jsonl > reordered.jsonl
    tertium rank candidates candidates.jsonl -m tertium-multi -o reordered.jsonl

    Notes
    -----
    The output has the candidates from best to worst; other fields of the records stay.
    """
    ranked = rerank(read_candidates(candidates), ranker)
    lines = (json.dumps(missing_to_null(line), ensure_ascii=False) for line in ranked.lines())
    return View(
        result=ranked,
        bare="".join(f"{line}\n" for line in lines) if display.format == "text" else None,
        warns_aside=True,
    )
