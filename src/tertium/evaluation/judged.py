"""Read human judgments once, with the metric scores to compare them with, aligned by name.

Metric scores come from files or from the judgments, or the metrics score the judged translations. A
human baseline can be added as another metric.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Annotated, Any, ClassVar, TypeVar, cast

import numpy as np

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UnknownNameError, UsageError, short_repr
from tertium.core.options import InFiles, LanguagePairs, Names, Option, Specs
from tertium.core.result import is_frame
from tertium.core.scores import ScoreMatrix
from tertium.data import ratings
from tertium.data.human_data import HumanData
from tertium.data.human_data_files import read_human_data, reject_duplicate_sources
from tertium.data.metric_scores import MetricScores, merge_levels, read_metric_scores
from tertium.data.rankings import RankingSet
from tertium.evaluation.rows import Row, score_rows
from tertium.meta.aligned_scores import AlignedScores
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric
from tertium.text.language_codes import normalize_language_pair

Metrics = str | Metric | Sequence[str | Metric]
Sources = PathLike | HumanData | Sequence[PathLike | HumanData]
Source = TypeVar("Source", bound=PathLike | HumanData)


LISTS = ("human", "lps", "exclude", "scores", "human_baseline", "lower_better")


@dataclass(frozen=True, kw_only=True)
class HumanInputs:
    """Human judgments of translations.

    Attributes
    ----------
    human
        Human scores or comparisons: files, folders, names of sets in --data, or - for stdin.
    data
        Folder of human judgments (default: $TERTIUM_DATA).
    lps
        Only these language pairs (default: all).
    exclude
        Systems to leave out.
    gold
        Human scores to use: a name in a folder (mqm) or a column of a file.
    """

    group: ClassVar[str] = "Input"
    human: InFiles
    data: Annotated[str | None, Option(metavar="DIR")] = None
    lps: LanguagePairs = ()
    exclude: Annotated[Names, Option(metavar="SYSTEM")] = ()
    gold: str = ""

    def __post_init__(self) -> None:
        for name in LISTS:
            if hasattr(self, name):
                object.__setattr__(self, name, as_list(getattr(self, name)))
        object.__setattr__(self, "lps", [normalize_language_pair(lp) for lp in self.lps])

    def read(
        self, level: str = "segment", *, human: Sequence[Any] = (), standardize: bool = False
    ) -> dict[str, HumanData]:
        """Read the judgments, or others with the same options.

        The name of a set is its language pair if that is unique, else its name and pair.
        """
        sources: Sequence[Any] = human or self.human
        reject_duplicate_sources(own for own in sources if isinstance(own, str | os.PathLike))
        entries = self._read_entries(sources, level, self.lps)
        if missing := [lp for lp in self.lps if lp not in {entry.lp for entry in entries}]:
            available = {entry.lp for entry in self._read_entries(sources, level)} - {""}
            raise DataError(
                f"no judgments for {', '.join(missing)} in {', '.join(map(str, sources))}; "
                f"available: {', '.join(sorted(available)) or 'unknown language pairs'}"
            )
        if standardize:
            entries = [ratings.standardize_ratings(entry) for entry in entries]
        pairs = Counter(entry.lp for entry in entries)
        sets = {e.lp if e.lp and pairs[e.lp] == 1 else e.title: e for e in entries}
        if len(sets) < len(entries):
            names = ", ".join(entry.title for entry in entries)
            raise DataError(f"two sets of judgments have one name ({names}): rename their files")
        return sets

    def _read_entries(
        self, sources: Sequence[Any], level: str, lps: Sequence[str] = ()
    ) -> list[HumanData]:
        """Read the sets of all sources in these language pairs, by default all."""
        entries: list[HumanData] = []
        options: Any = {"level": level, "gold": self.gold, "data": self.data, "lps": lps}
        for source in sources:
            if not isinstance(source, HumanData):
                entries += read_human_data(source, **options)
            elif self.gold:
                raise UsageError(f"gold={self.gold!r} needs a file or folder, got {source!r}")
            elif source.lp in lps or not lps:
                entries.append(source)
        return entries

    def check_excluded(self, systems: Mapping[str, Collection[str]]) -> None:
        """Raise an error if a system to exclude is in none of the sets."""
        names = set().union(*systems.values())
        for system in self.exclude:
            if system not in names:
                raise UnknownNameError(f"system of {', '.join(systems)}", system, names)


@dataclass(frozen=True, kw_only=True)
class ScoredInputs(HumanInputs):
    """Human judgments, and metric scores to compare with them.

    Attributes
    ----------
    scores
        Files of metric scores.
    scores_from_rows
        Also evaluate metric scores in the field `scores` of the judgments: all, or those named
        (default: all, if there are no other metrics).
    standardize
        Replace ratings by z-scores of each rater.
    human_baseline
        Add human scores as a row: a second set, or `rater` to hold out one rater.
    lower_better
        Metrics of --scores where lower is better.
    """

    scores: InFiles = ()
    scores_from_rows: Annotated[Specs | None, Option(nargs="*")] = None
    standardize: bool = False
    human_baseline: InFiles = ()
    lower_better: Specs = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted: Any = self.scores_from_rows
        if isinstance(wanted, bool):
            wanted = () if wanted else None
        object.__setattr__(self, "scores_from_rows", wanted if wanted is None else as_list(wanted))


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedSets:
    """Aligned human and metric scores.

    `sets` hold both on the same cells, at a level; `human_data` are the judgments by set name.
    `metrics` are those that scored the translations; `lower_better` are the metrics read from files
    whose scores were negated.
    """

    sets: tuple[AlignedScores, ...]
    level: str
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


def read_judged(
    human: Sources | ScoredInputs,
    metrics: Metrics = (),
    *,
    level: str = "segment",
    judgment_level: str = "",
    **options: Any,
) -> JudgedSets:
    """Read judgments, read or compute metric scores, and align the two.

    Judgments are read at `judgment_level`, by default `level`. `options` are the fields of
    `ScoredInputs`. `human_baseline` adds human scores as another metric: files of a second
    campaign, or "rater" for one rater of each translation, who is then held out of the judgments.
    """
    inputs = as_inputs(human, options)
    human_data, baselines = _read_with_baseline(inputs, judgment_level or level, level)
    loaded = load_metrics(metrics) if metrics else []
    bundled_files = [file for entry in human_data.values() for file in entry.files]
    files = inputs.scores or ([] if loaded else bundled_files)
    stored: SetScores = []
    for entry in (entry for file in files for entry in read_metric_scores(file)):
        if not inputs.lps or not entry.lp or entry.lp in inputs.lps:
            stored.append((_find_set(entry, human_data), entry))
    if inputs.scores_from_rows is not None or not (files or loaded):
        stored += _select_row_scores(human_data, inputs.scores_from_rows, level)
    if not stored and not loaded:
        raise UsageError("no metric to evaluate: give --scores FILES or -m METRICS")
    names = {entry.metric for _, entry in stored}
    if unknown := next((name for name in inputs.lower_better if name not in names), None):
        raise UsageError(
            f"--lower-better {unknown}: no such metric in --scores ({', '.join(sorted(names))}); "
            "metrics of -m know whether lower is better"
        )
    negated = {e.metric for _, e in stored if not e.higher_is_better} | {*inputs.lower_better}
    oriented = [(name, _negate(e) if e.metric in negated else e) for name, e in stored]
    computed = _compute_scores(loaded, human_data, level, inputs.exclude)
    sets = []
    for name, data in human_data.items():
        entries = [e for owner, e in (*oriented, *computed, *baselines) if owner == name]
        scores = merge_levels(entries)
        aligned = AlignedScores.align(
            name,
            [entry.segments for entry in scores if entry.segments is not None],
            human=data.matrix(level),
            comparisons=data if isinstance(data, RankingSet) else None,
            human_systems=data.system_scores or None,
            system_scores={entry.metric: entry.systems for entry in scores if entry.systems},
        )
        sets.append(aligned)
    inputs.check_excluded({aligned.name: aligned.systems for aligned in sets})
    return JudgedSets(
        sets=tuple(own.drop_systems([*{*inputs.exclude} & {*own.systems}]) for own in sets),
        level=level,
        human_data=human_data,
        metrics=tuple(loaded),
        lower_better=tuple(sorted(negated)),
    )


def as_inputs(human: Any, options: Mapping[str, Any]) -> ScoredInputs:
    """Return human judgments with the options of reading them."""
    return human if isinstance(human, ScoredInputs) else ScoredInputs(human=human, **options)


SetScores = list[tuple[str, MetricScores]]  # with the name of the set


def _read_with_baseline(
    inputs: ScoredInputs, read_level: str, level: str
) -> tuple[dict[str, HumanData], SetScores]:
    """Return the judgments to compare with, and the human baseline of each set."""
    read = partial(inputs.read, level=read_level, standardize=inputs.standardize)
    human_data = read()
    rows: Mapping[str, ScoreMatrix] = {}
    if [str(source) for source in inputs.human_baseline] == [ratings.HELD_OUT_RATER]:
        split = {name: ratings.hold_out_rater(entry, level) for name, entry in human_data.items()}
        human_data = {name: entry for name, (entry, _) in split.items()}
        rows = {name: row for name, (_, row) in split.items()}
    elif inputs.human_baseline:
        second = read(human=inputs.human_baseline)
        rows = ratings.align_second_campaign(human_data, second, level)
    baselines = [(n, MetricScores(metric=row.name, segments=row)) for n, row in rows.items()]
    return human_data, baselines


def as_list(sources: Source | Sequence[Source]) -> list[Source]:
    if isinstance(sources, str | os.PathLike | HumanData) or is_frame(sources):
        return [cast(Source, sources)]
    if not isinstance(sources, Iterable):
        raise UsageError(f"expected names, files or sets of judgments, got {short_repr(sources)}")
    return list(sources)


def _find_set(entry: MetricScores, human_data: Mapping[str, HumanData]) -> str:
    """Return the set that scores belong to: by language pair, or the only set."""
    matching = [name for name, data in human_data.items() if data.lp == entry.lp]
    if entry.lp and len(matching) == 1:
        return matching[0]
    has_no_pairs = not entry.lp or not any(data.lp for data in human_data.values())
    if len(human_data) == 1 and has_no_pairs:
        return next(iter(human_data))
    raise DataError(
        f"no unique set of judgments matches the scores of {entry.metric} "
        f"({entry.lp or 'no language pair'}) among {', '.join(human_data)}: put the language pair "
        "into the file name (NAME.de-en.tsv), its folder, or a column lp"
    )


def _select_row_scores(
    human_data: Mapping[str, HumanData], wanted: Sequence[str] | None, level: str
) -> SetScores:
    """Return the scores of each wanted metric in the judgments; without names, of all."""
    by_set = {name: entry.metric_scores() for name, entry in human_data.items()}
    names = list(dict.fromkeys(metric for own in by_set.values() for metric in own))
    if not names and wanted is not None:
        raise DataError(
            f"--scores-from-rows: no judgment of {', '.join(human_data)} has metric scores: "
            'expected JSONL with a field "scores": {"METRIC": 0.5, ...}'
        )
    if unknown := next((metric for metric in wanted or () if metric not in names), None):
        raise UnknownNameError("metric in the judgments", unknown, names)
    selected = []
    for metric in wanted or names:
        for name, scores in by_set.items():
            if metric not in scores:
                continue
            matrix = human_data[name].to_score_matrix(scores[metric], metric, level)
            has_scores = np.asarray(~np.isnan(matrix.values).all(axis=1))
            systems = tuple(compress(matrix.systems, has_scores.tolist()))
            segments = replace(matrix, systems=systems, values=matrix.values[has_scores])
            selected.append((name, MetricScores(metric=metric, segments=segments)))
    return selected


def _negate(entry: MetricScores) -> MetricScores:
    segments = entry.segments
    if segments is not None:
        segments = replace(segments, values=-segments.values)
    return replace(entry, segments=segments, systems={s: -v for s, v in entry.systems.items()})


def _compute_scores(
    metrics: Sequence[Metric],
    human_data: Mapping[str, HumanData],
    level: str,
    exclude: Sequence[str],
) -> SetScores:
    """Score the judged translations of each set with each metric, oriented (higher is better)."""
    computed: SetScores = []
    for name, data in human_data.items() if metrics else ():
        translations = data.rows(level)
        if not any(segment.hypothesis for _, _, segment in translations):
            raise DataError(
                f"{data.title}: the judgments have no texts that a metric could score: "
                "score the systems first (`tertium score ... -o scores.tsv`), then give --scores"
            )
        wanted = [n for n, (system, _, _) in enumerate(translations) if system not in exclude]
        wanted = wanted or [*range(len(translations))]
        rows = [Row(segment=s, system=system) for system, _, s in translations]
        for scored in score_rows([rows[n] for n in wanted], metrics):
            spec = scored.metric.spec
            values = np.full(len(rows), np.nan)
            values[wanted] = scored.oriented
            entry = MetricScores(
                metric=spec,
                segments=data.to_score_matrix(values, spec, level),
                systems={s: own.sign * own.system for (_, s), own in scored.parts.items()},
            )
            computed.append((name, entry))
    return computed
