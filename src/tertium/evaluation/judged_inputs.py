"""Load human judgments and metric scores, and align them for meta-evaluation.

Metric scores come from files, or the metrics score the judged translations. A human baseline can be
added as another metric.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, TertiumError, UnknownNameError, UsageError, short_repr
from tertium.core.frames import is_frame
from tertium.core.runtime import track_progress
from tertium.core.scores import ScoreMatrix
from tertium.data import ratings
from tertium.data.human_data import HumanData
from tertium.data.human_data_files import read_human_data, reject_duplicate_sources
from tertium.data.human_score_tables import HumanScoreTable
from tertium.data.metric_scores import MetricScores, merge_levels, read_metric_scores
from tertium.data.rankings import RankingSet
from tertium.evaluation.rows import Row, find_scorable_by_all, score_rows
from tertium.evaluation.scoring import score_systems
from tertium.meta.aligned_scores import AlignedScores
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric, share_encoding
from tertium.text.language_codes import normalize_language_pair

Files = PathLike | Sequence[PathLike]
Sources = PathLike | HumanData | Sequence[PathLike | HumanData]
Source = TypeVar("Source", bound=PathLike | HumanData)


@dataclass(frozen=True, kw_only=True, eq=False)
class MetaInputs:
    """Aligned human and metric scores.

    `sets` hold both on the same cells; `human_data` are the judgments by set name. `metrics` are
    the metrics that scored the translations; `lower_better` are the metrics read from files whose
    scores were negated.
    """

    sets: tuple[AlignedScores, ...]
    human_data: Mapping[str, HumanData]
    metrics: tuple[Metric, ...] = ()
    lower_better: tuple[str, ...] = ()

    @property
    def negated_metrics(self) -> frozenset[str]:
        """Names of the metrics where lower is better: `sets` hold their negated scores."""
        computed = (metric.spec for metric in self.metrics if not metric.higher_is_better)
        return frozenset((*self.lower_better, *computed))

    @property
    def excluded_counts(self) -> dict[str, dict[str, int]]:
        """The number of unused judgments by set and reason."""
        entries = self.human_data.items()
        return {
            name: dict(entry.excluded_counts) for name, entry in entries if entry.excluded_counts
        }


@dataclass
class _SetScores:
    """Metric scores of one set: segment score matrices, and system scores by metric."""

    matrices: list[ScoreMatrix] = field(default_factory=list)
    systems: dict[str, Mapping[str, float]] = field(default_factory=dict)


def load_meta_inputs(
    human: Sources,
    metrics: str | Metric | Sequence[str | Metric] = (),
    *,
    scores: Files = (),
    level: str = "segment",
    judgment_level: str = "",
    lps: Sequence[str] = (),
    exclude: Sequence[str] = (),
    gold: str = "",
    data: PathLike | None = None,
    standardize: bool = False,
    lower_better: Sequence[str] = (),
    human_baseline: Sources = (),
    scores_from_rows: bool | str | Sequence[str] = False,
) -> MetaInputs:
    """Read judgments, read or compute metric scores, and align the two.

    Judgments are read at `judgment_level`, by default `level`. `human_baseline` adds human scores
    as another metric: files of a second campaign, or "rater" for one rater of each translation, who
    is then held out of the judgments. `scores_from_rows` adds the metric scores of the judgments
    (field `scores`): all, or those named; without other metrics they are used anyway.
    """

    lps = [normalize_language_pair(lp) for lp in lps]

    def read(sources: Sources) -> dict[str, HumanData]:
        read_level = judgment_level or level
        return read_sets(
            as_list(sources), read_level, lps=lps, gold=gold, data=data, standardize=standardize
        )

    human_data, rows = _add_human_baseline(read(human), human_baseline, level, read)
    loaded = load_metrics(metrics) if metrics else []
    bundled_files = [file for entry in human_data.values() for file in entry.files]
    files = as_list(scores) or ([] if loaded else bundled_files)
    row_scores = []
    if scores_from_rows or not (files or loaded):
        wanted = [] if isinstance(scores_from_rows, bool) else as_list(scores_from_rows)
        is_requested = bool(scores_from_rows)
        row_scores = _select_row_scores(human_data, wanted, level, is_requested=is_requested)
    if not files and not loaded and not row_scores:
        raise UsageError("no metric to evaluate: give --scores FILES or -m METRICS")
    if lower_better and not files and not row_scores:
        raise UsageError(
            f"--lower-better {' '.join(lower_better)} needs --scores: "
            "metrics given with -m know whether lower is better"
        )
    tables, negated = _read_scores(files, row_scores, human_data, lps, lower_better)
    if loaded:
        _add_computed_scores(loaded, human_data, level, tables, exclude)
    for name, row in rows.items():
        tables.setdefault(name, _SetScores()).matrices.append(row)
    aligned = [
        _align(n, data, tables.get(n, _SetScores()), level) for n, data in human_data.items()
    ]
    check_excluded(exclude, {aligned_set.name: aligned_set.systems for aligned_set in aligned})
    sets = tuple(j.drop_systems([s for s in exclude if s in j.systems]) for j in aligned)
    return MetaInputs(sets=sets, human_data=human_data, metrics=tuple(loaded), lower_better=negated)


def check_excluded(exclude: Sequence[str], systems: Mapping[str, Collection[str]]) -> None:
    """Raise an error if a system to exclude is in none of the sets."""
    known_names = {system for names in systems.values() for system in names}
    if unknown := next((system for system in exclude if system not in known_names), None):
        raise UnknownNameError(f"system of {', '.join(systems)}", unknown, known_names)


def _add_human_baseline(
    human_data: dict[str, HumanData],
    human_baseline: Sources,
    level: str,
    read: Callable[[Sources], dict[str, HumanData]],
) -> tuple[dict[str, HumanData], dict[str, ScoreMatrix]]:
    """Return the judgments to compare with, and the human baseline of each set."""
    sources = as_list(human_baseline)
    if not sources:
        return human_data, {}
    if [str(source) for source in sources] != [ratings.HELD_OUT_RATER]:
        return human_data, ratings.align_second_campaign(human_data, read(sources), level)
    split = {name: ratings.hold_out_rater(entry, level) for name, entry in human_data.items()}
    return {n: data for n, (data, _) in split.items()}, {n: row for n, (_, row) in split.items()}


def as_list(sources: Source | Sequence[Source]) -> list[Source]:
    if isinstance(sources, str | os.PathLike | HumanData) or is_frame(sources):
        return [cast(Source, sources)]
    if not isinstance(sources, Iterable):
        raise UsageError(f"expected names, files or sets of judgments, got {short_repr(sources)}")
    return list(sources)


def read_sets(
    sources: Sequence[PathLike | HumanData],
    level: str,
    *,
    lps: Sequence[str] = (),
    gold: str = "",
    data: PathLike | None = None,
    standardize: bool = False,
) -> dict[str, HumanData]:
    """Read human judgments by set name: the language pair if it is unique, else name and pair."""
    lps = [normalize_language_pair(lp) for lp in lps]
    entries: list[HumanData] = []
    reject_duplicate_sources(source for source in sources if isinstance(source, str | os.PathLike))
    for source in sources:
        if isinstance(source, HumanData):
            if gold:
                raise UsageError(f"gold={gold!r} needs a file or folder, got {source!r}")
            entries += [source] if source.lp in lps or not lps else []
            continue
        try:
            entries += read_human_data(source, level=level, lps=lps, gold=gold, data=data)
        except UnknownNameError as error:
            if Path(source).exists() or error.name != str(source):
                raise
            raise DataError(f"{source}: no such file or folder; {error}") from None
    if missing := [lp for lp in lps if lp not in {entry.lp for entry in entries}]:
        searched = [s.title if isinstance(s, HumanData) else str(s) for s in sources]
        available = _language_pairs(sources, level, gold, data)
        raise DataError(
            f"no judgments for {', '.join(missing)} in {', '.join(searched)}"
            + (f"; available: {', '.join(available)}" if available else "")
        )
    if standardize:
        entries = [ratings.standardize_human_ratings(entry) for entry in entries]
    pairs = [entry.lp for entry in entries]
    names = [e.lp if e.lp and pairs.count(e.lp) == 1 else e.title for e in entries]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"two sets of judgments are named {repeated!r}: rename one of the files")
    return dict(zip(names, entries, strict=True))


def _language_pairs(
    sources: Sequence[PathLike | HumanData], level: str, gold: str, data: PathLike | None
) -> list[str]:
    """Return the language pairs of all sources, or an empty list if they cannot be read."""
    pairs = {source.lp for source in sources if isinstance(source, HumanData)}
    try:
        for source in sources:
            if not isinstance(source, HumanData):
                entries = read_human_data(source, level=level, gold=gold, data=data)
                pairs |= {entry.lp for entry in entries}
    except TertiumError:
        return []
    return sorted(pairs - {""})


def _select_row_scores(
    human_data: Mapping[str, HumanData], wanted: Sequence[str], level: str, *, is_requested: bool
) -> list[tuple[str, MetricScores]]:
    """Return set name and scores of each wanted metric in the judgments; without names, of all."""
    by_set = {name: entry.metric_scores() for name, entry in human_data.items()}
    names = list(dict.fromkeys(metric for own in by_set.values() for metric in own))
    if not names and is_requested:
        raise DataError(
            f"--scores-from-rows: no judgment of {', '.join(human_data)} has metric scores: "
            'expected JSONL with a field "scores": {"METRIC": 0.5, ...}'
        )
    if unknown := next((metric for metric in wanted if metric not in names), None):
        raise UnknownNameError("metric in the judgments", unknown, names)
    selected = []
    for metric in wanted or names:
        for name in (name for name, own in by_set.items() if metric in own):
            matrix = human_data[name].to_score_matrix(by_set[name][metric], metric, level)
            has_scores = np.asarray(~np.isnan(matrix.values).all(axis=1))
            systems = tuple(compress(matrix.systems, has_scores.tolist()))
            segments = replace(matrix, systems=systems, values=matrix.values[has_scores])
            entry = MetricScores(metric=metric, lp=human_data[name].lp, segments=segments)
            selected.append((name, entry))
    return selected


def _read_scores(
    files: Sequence[PathLike],
    row_scores: Sequence[tuple[str, MetricScores]],
    human_data: Mapping[str, HumanData],
    lps: Sequence[str],
    lower_better: Sequence[str],
) -> tuple[dict[str, _SetScores], tuple[str, ...]]:
    """Read metric scores of each set, oriented (higher is better), and the negated metrics."""
    entries = [entry for file in files for entry in read_metric_scores(file)]
    names = {entry.metric for entry in (*entries, *(entry for _, entry in row_scores))}
    for name in lower_better:
        if name not in names:
            raise UsageError(f"--lower-better {name}: no such metric ({', '.join(sorted(names))})")
    by_set: dict[str, list[MetricScores]] = {name: [] for name in human_data}
    negated = set(lower_better)
    used = [entry for entry in entries if not lps or not entry.lp or entry.lp in lps]
    for name, entry in [*((_find_set(e, human_data), e) for e in used), *row_scores]:
        lower = not entry.higher_is_better or entry.metric in lower_better
        by_set[name].append(_negate(entry) if lower else entry)
        negated |= {entry.metric} if lower else set()
    tables = {}
    for name, own in by_set.items():
        merged = merge_levels(own)
        tables[name] = _SetScores(
            [e.segments for e in merged if e.segments is not None],
            {e.metric: e.systems for e in merged if e.systems},
        )
    return tables, tuple(sorted(negated))


def _find_set(entry: MetricScores, human_data: Mapping[str, HumanData]) -> str:
    """Return the set that scores belong to: by language pair, or the only set."""
    matching = [name for name, aligned_set in human_data.items() if aligned_set.lp == entry.lp]
    if entry.lp and len(matching) == 1:
        return matching[0]
    has_no_pairs = not entry.lp or not any(aligned_set.lp for aligned_set in human_data.values())
    if len(human_data) == 1 and has_no_pairs:
        return next(iter(human_data))
    raise DataError(
        f"no unique set of judgments matches the scores of {entry.metric} "
        f"({entry.lp or 'no language pair'}) among {', '.join(human_data)}: put the language pair "
        "into the file name (NAME.de-en.tsv), its folder, or a column lp"
    )


def _negate(entry: MetricScores) -> MetricScores:
    segments = entry.segments
    if segments is not None:
        segments = replace(segments, values=-segments.values)
    return replace(entry, segments=segments, systems={s: -v for s, v in entry.systems.items()})


def _add_computed_scores(
    metrics: Sequence[Metric],
    human_data: Mapping[str, HumanData],
    level: str,
    tables: dict[str, _SetScores],
    exclude: Sequence[str],
) -> None:
    """Score the judged translations with each metric and add the scores to the tables."""
    known_names = [[segment for _, segment in e.translations(level)] for e in human_data.values()]
    served = [[*compress(part, find_scorable_by_all(part, metrics))] for part in known_names]
    with share_encoding(metrics, *filter(None, served)):
        for metric, name in track_progress(
            [(m, name) for m in metrics for name in human_data], "scoring"
        ):
            matrix, systems = _score_set(metric, human_data[name], level, exclude)
            table = tables.setdefault(name, _SetScores())
            table.matrices.append(matrix)
            table.systems[metric.spec] = systems


def _score_set(
    metric: Metric, human_data: HumanData, level: str, exclude: Sequence[str]
) -> tuple[ScoreMatrix, Mapping[str, float]]:
    if isinstance(human_data, HumanScoreTable) and human_data.testset is not None:
        # complete outputs: a metric that reads the corpus reads one system at a time
        [by_system] = score_systems(human_data.testset, [metric])
        values = np.concatenate([scores.oriented_segments for scores in by_system])
        totals = [scores.sign * scores.system for scores in by_system]
        systems = dict(zip(human_data.testset.systems, totals, strict=True))
        return human_data.to_score_matrix(values, metric.spec), systems
    translations = human_data.translations(level)
    if not translations:
        raise DataError(
            f"{human_data.title}: the judgments have no texts that a metric could score: "
            "score the systems first (`tertium score ... -o scores.tsv`), then give --scores"
        )
    rows = [Row(segment=segment, system=system) for system, segment in translations]
    wanted = [n for n, row in enumerate(rows) if row.system not in exclude] or [*range(len(rows))]
    [scored] = score_rows([rows[n] for n in wanted], [metric])
    values = np.full(len(rows), np.nan)
    values[wanted] = scored.oriented
    matrix = human_data.to_score_matrix(values, metric.spec, level)
    systems = {system: own.sign * own.system for (_, system), own in scored.parts.items()}
    return matrix, systems


def _align(name: str, human_data: HumanData, scores: _SetScores, level: str) -> AlignedScores:
    return AlignedScores.align(
        name,
        scores.matrices,
        human=human_data.matrix(level),
        comparisons=human_data if isinstance(human_data, RankingSet) else None,
        human_systems=human_data.system_scores() or None,
        system_scores=scores.systems,
    )
