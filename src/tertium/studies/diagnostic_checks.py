"""What diagnostics measure: changes of scores, and agreement with human scores, with intervals.

Sentinels are regressions that read only the source, only the translation or only the reference, so
they cannot measure translation quality. If they agree with human scores, a metric may do so for the
wrong reason (Perrella et al. 2024, "Guardians of the Machine Translation Meta-Evaluation: Sentinel
Metrics Fall In!", ACL). Ours are ridge regressions on surface features (length, digits, capitals,
punctuation, repeated words, hashed character trigrams), cross-fitted to human scores in five folds
of the items.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import NamedTuple

import numpy as np

from tertium.core.arrays import FloatArray, divide, nan_mean
from tertium.core.errors import DataError
from tertium.core.resampling import draw_group_counts, make_rng
from tertium.core.segment import Segment
from tertium.data.challenge_sets import wrong_language_sentence
from tertium.data.human_data import HumanData, Texts
from tertium.evaluation.rows import find_scorable_by_all
from tertium.meta.agreement import Grouping
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import Task
from tertium.metrics.base.metric import Metric
from tertium.models.ridge import fit_ridge_weights
from tertium.text.language_identification import identify_language
from tertium.text.scripts import is_unspaced_script

SAMPLE = 200  # translations of a set that are changed and scored again
RESAMPLES = 1000  # bootstrap samples of items

Cell = tuple[str, str]  # system and item of a translation
FOLDS = 5
HASHES = 256
RIDGE = 10.0  # ridge strength, for standardized features
MIN_TEXTS = 50
MIN_SYSTEMS = 4
JOINED = (1, 2, 4, 8)  # numbers of joined segments
GOOD_SHARE = 0.25  # share of translations, by human score, that count as good
MAX_GOOD = 128
MIN_REFERENCES = 10


class DiagnosticRow(NamedTuple):
    """A row of a diagnostic: a value for each series, and values of bootstrap samples.

    `draws` are (resamples, series); one draw of NaN if there is no sampling variation.
    """

    series: tuple[str, ...]
    values: FloatArray
    draws: FloatArray


Rows = dict[str, DiagnosticRow]


def average(parts: Sequence[DiagnosticRow]) -> DiagnosticRow:
    """Return the mean of independent rows of the same series."""
    values = nan_mean(np.stack([part.values for part in parts], axis=-1))
    draws = nan_mean(np.stack([part.draws for part in parts], axis=-1))
    return DiagnosticRow(parts[0].series, values, draws)


@dataclass(frozen=True, kw_only=True, eq=False)
class DiagnosticData:
    """Human and metric scores of one set; `metrics` are those that can score new texts."""

    aligned: AlignedScores
    human_data: HumanData
    metrics: tuple[Metric, ...]
    seed: int

    @cached_property
    def human(self) -> FloatArray:
        """Human scores of each translation, (systems, items); win rates if humans compared."""
        if self.aligned.comparisons is None:
            return self.aligned.human
        return self.human_data.segment_scores().values

    @cached_property
    def positions(self) -> dict[Cell, tuple[int, int]]:
        """The row and column of each judged translation."""
        cells = np.argwhere(~np.isnan(self.human)).tolist()
        return {(self.aligned.systems[r], self.aligned.items[c]): (r, c) for r, c in cells}

    @cached_property
    def texts(self) -> Texts:
        """The judged translations that all metrics can score, by a hash of their names."""
        texts = {cell: s for cell, s in self.human_data.texts().items() if cell in self.positions}
        scorable = compress(texts.items(), find_scorable_by_all([*texts.values()], self.metrics))
        return dict(sorted(scorable, key=lambda entry: self.hash_names(*entry[0])))

    def sample(self, count: int | None = SAMPLE) -> list[tuple[Cell, Segment]]:
        """Sample translations to change and score again, independent of the order of files."""
        if not self.metrics:
            raise DataError("metrics must score texts: give them with -m")
        if not self.texts:
            raise DataError("the judgments have no texts")
        return [*self.texts.items()][:count]

    def hash_names(self, *names: str) -> int:
        """Hash names together with the seed."""
        return zlib.crc32("\t".join([str(self.seed), *names]).encode())

    def human_scores(self, cells: Sequence[Cell]) -> FloatArray:
        """Return the human scores of some cells, (cells,)."""
        return np.array([self.human[self.positions[cell]] for cell in cells])

    def score(self, segments: Sequence[Segment]) -> FloatArray:
        """Score segments with each metric, oriented (higher is better), (metrics, segments)."""
        return np.stack([metric.score(segments).oriented_segments for metric in self.metrics])

    def arrange(self, cells: Sequence[Cell], values: FloatArray) -> FloatArray:
        """Arrange values of cells (cells,) as systems x items; the others are NaN."""
        table = np.full(self.human.shape, np.nan)
        for cell, value in zip(cells, values, strict=True):
            table[self.positions[cell]] = value
        return table

    def correlation(
        self, values: FloatArray, names: Sequence[str], grouping: Grouping = "none"
    ) -> DiagnosticRow:
        """Measure Pearson's r of named tables of scores, (tables, systems, items)."""
        series = tuple(names)
        human = np.where(np.isnan(values).all(axis=0), np.nan, self.human)
        aligned = replace(
            self.aligned,
            metrics=series,
            human=human,
            human_systems=nan_mean(human),
            scores=values,
            system_scores=nan_mean(values),
            comparisons=None,
        )
        task = Task(
            sets=(aligned.name,),
            grouping=grouping,
            resamples=RESAMPLES,
            test="none",
        )
        result = MetaEvaluation([aligned], seed=self.seed).run_task(task)
        return DiagnosticRow(series, result.values, result.replicates)

    def means(self, values: FloatArray, items: Sequence[str]) -> DiagnosticRow:
        """Average values (metrics, units) that belong to items."""
        series = tuple(metric.spec for metric in self.metrics)
        draws = weighted_means(values, self.weights(items))
        return DiagnosticRow(series, values.mean(axis=-1), draws)

    def weights(self, items: Sequence[str]) -> FloatArray:
        """Return how often bootstrap samples of items contain each unit, (resamples, units)."""
        return draw_group_counts([*items], RESAMPLES, make_rng(self.seed))


def weighted_means(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Average the known values (..., units) for each resample, (resamples, ...)."""
    is_known = ~np.isnan(values)
    total = np.moveaxis(np.where(is_known, values, 0.0) @ weights.T, -1, 0)
    return divide(total, np.moveaxis(is_known @ weights.T, -1, 0))


def check_sentinels(data: DiagnosticData) -> Rows:
    """Measure Pearson's r of metrics and sentinels, over all translations and within items."""
    if len(data.texts) < MIN_TEXTS:
        raise DataError(f"sentinels need {MIN_TEXTS} judged texts, got {len(data.texts)}")
    cells = [*data.texts]
    segments = data.texts.values()
    folds = np.array([data.hash_names(item) % FOLDS for _, item in cells])
    texts = {
        "source only": [segment.source or "" for segment in segments],
        "reference only": ["".join(segment.references[:1]) for segment in segments],
        "translation only": [segment.hypothesis for segment in segments],
    }
    names = [*data.aligned.metrics]
    tables = [*data.aligned.scores]
    for name, own in texts.items():
        if any(own):
            names.append(name)
            predicted = cross_fit(own, data.human_scores(cells), folds)
            tables.append(data.arrange(cells, predicted))
    groupings: dict[str, Grouping] = {"all translations": "none"}
    has_several_outputs = (~np.isnan(data.human)).sum(axis=0) > 1  # of each item
    if has_several_outputs.mean() >= 0.5:
        groupings["within an item"] = "item"
    stack = np.stack(tables)
    columns = [data.correlation(stack, names, grouping) for grouping in groupings.values()]
    rows = {}
    for n, name in enumerate(names):
        values = np.array([column.values[n] for column in columns])
        draws = np.stack([column.draws[:, n] for column in columns], axis=-1)
        rows[name] = DiagnosticRow(tuple(groupings), values, draws)
    return rows


def cross_fit(texts: list[str], target: FloatArray, folds: np.ndarray) -> FloatArray:
    """Predict each text by a ridge regression that was fitted on the other folds."""
    distinct, row_of = np.unique(np.array(texts), return_inverse=True)
    distinct_features = np.stack([surface_features(text) for text in distinct.tolist()])
    features = distinct_features[row_of]
    predicted = np.empty(len(texts))
    for fold in np.unique(folds):
        held_out = folds == fold
        if held_out.all():
            raise DataError("all translations are of one item")
        middle = features[~held_out].mean(axis=0)
        spread = features[~held_out].std(axis=0)
        standardized = (distinct_features - middle) / np.where(spread > 0, spread, 1.0)
        training = standardized[row_of[~held_out]]
        mean = target[~held_out].mean()
        [weights] = fit_ridge_weights(training, target[~held_out] - mean, [RIDGE / len(training)])
        # predict distinct texts, so that equal texts have exactly equal predictions
        predicted[held_out] = mean + (standardized @ weights)[row_of[held_out]]
    return predicted


def surface_features(text: str) -> FloatArray:
    """Return the surface features of a text, (5 + HASHES,)."""
    words = text.split()
    size = max(len(text), 1)
    plain = [
        np.log1p(len(text)),
        sum(map(str.isdecimal, text)) / size,
        sum(map(str.isupper, text)) / size,
        sum(not (c.isalnum() or c.isspace()) for c in text) / size,
        len(set(words)) / max(len(words), 1),
    ]
    hashed = np.zeros(HASHES)
    for n in range(len(text) - 2):
        hashed[zlib.crc32(text[n : n + 3].lower().encode()) % HASHES] += 1
    return np.concatenate([plain, np.sqrt(hashed / size)])


def check_best_systems(data: DiagnosticData) -> Rows:
    """Measure pairwise accuracy among all systems and among the best by human score."""
    human = nan_mean(data.human)
    count = int((~np.isnan(human)).sum())
    if count < MIN_SYSTEMS:
        raise DataError(f"needs {MIN_SYSTEMS} judged systems, got {count}")
    weights = data.weights(data.aligned.items)
    human_draws = weighted_means(data.human, weights)[:, None]  # (resamples, 1, systems)
    # A resample changes system scores by as much as the means of segment scores.
    changes = weighted_means(data.aligned.scores, weights) - nan_mean(data.aligned.scores)
    score_draws = data.aligned.system_scores + np.nan_to_num(changes)
    order = np.argsort(-human, kind="stable")  # unjudged systems are last
    sizes = {"all systems": count, "the better half": count // 2, "the best 4": MIN_SYSTEMS}
    rows = {}
    for name, size in sizes.items():
        best = order[: max(size, MIN_SYSTEMS)]
        values = share_in_order(human[best], data.aligned.system_scores[:, best])
        draws = share_in_order(human_draws[..., best], score_draws[..., best])
        rows[name] = DiagnosticRow(data.aligned.metrics, values, draws)
    return rows


def share_in_order(human: FloatArray, scores: FloatArray) -> FloatArray:
    """Return the share of pairs (..., systems) in human order; human ties are left out."""
    first, second = np.triu_indices(human.shape[-1], 1)
    human_lead = np.sign(human[..., first] - human[..., second])
    metric_lead = np.sign(scores[..., first] - scores[..., second])
    is_counted = (human_lead != 0) & ~np.isnan(metric_lead)
    return divide((is_counted & (human_lead == metric_lead)).sum(-1), is_counted.sum(-1))


def check_length(data: DiagnosticData) -> Rows:
    """Measure the change of the mean score if good translations are joined."""
    cells = data.sample(None)
    human = data.human_scores([cell for cell, _ in cells])
    least = np.quantile(human, 1 - GOOD_SHARE)
    good = [segment for (_, segment), score in zip(cells, human, strict=True) if score >= least]
    longest = max(JOINED)
    segments = good[: min(len(good), MAX_GOOD) // longest * longest]
    if len(segments) < 2 * longest:
        raise DataError(f"fewer than {2 * longest} translations to join")
    spread = data.score([segment for _, segment in data.sample()]).std(axis=1)
    unit = np.where(spread > 0, spread, 1.0)[:, None]
    means = {}  # of the longest texts, (metrics, texts)
    for size in JOINED:
        joined = [join_segments(segments[n : n + size]) for n in range(0, len(segments), size)]
        scores = data.score(joined) / unit
        name = "one segment" if size == 1 else f"{size} segments joined"
        means[name] = scores.reshape(len(scores), -1, longest // size).mean(axis=-1)
    single = means["one segment"]
    texts = [str(n) for n in range(single.shape[1])]
    return {name: data.means(own - single, texts) for name, own in means.items()}


def join_segments(segments: list[Segment]) -> Segment:
    """Join hypotheses, sources, and as many references as all segments have."""

    def join(texts: list[str]) -> str:
        return ("" if is_unspaced_script(texts[0]) else " ").join(texts)

    sources = [segment.source for segment in segments if segment.source is not None]
    references = zip(*(segment.references for segment in segments), strict=False)
    return Segment(
        join([segment.hypothesis for segment in segments]),
        join(sources) if len(sources) == len(segments) else None,
        tuple(join([*texts]) for texts in references),
    )


def check_bad_outputs(data: DiagnosticData) -> Rows:
    """Compare scores of outputs that are not translations with those of real ones."""
    cells = data.sample()
    segments = [segment for _, segment in cells]
    sources = [segment.source or "" for segment in segments]
    first_texts = [segment.hypothesis for segment in segments[:20]]
    languages = [identify_language(" ".join(texts)) for texts in (sources[:20], first_texts)]
    count = range(len(cells))
    outputs = {
        "empty": [""] * len(cells),
        "fluent but unrelated": [_find_unrelated(cells, n) for n in count],
        "source copied": sources,
        "unrelated, in another language": [wrong_language_sentence(n, languages) for n in count],
    }
    if any(segment.source is None for segment in segments):
        del outputs["source copied"]
    real = np.sort(data.score(segments), axis=1)
    rows = {}
    for name, texts in outputs.items():
        changed = [replace(s, hypothesis=text) for s, text in zip(segments, texts, strict=True)]
        pairs = zip(real, data.score(changed), strict=True)
        below = np.array([np.searchsorted(own, new, "left") for own, new in pairs])
        rows[name] = data.means(below / len(cells), [item for (_, item), _ in cells])
    return rows


def _find_unrelated(cells: list[tuple[Cell, Segment]], n: int) -> str:
    """Return the next translation of another item."""
    (_, item), segment = cells[n]
    for (_, other_item), other in [*cells[n:], *cells[:n]]:
        if other_item != item and other.hypothesis != segment.hypothesis:
            return other.hypothesis
    raise DataError("all translations are of one item")


def check_references(data: DiagnosticData) -> Rows:
    """Measure Pearson's r with human scores if another text replaces the reference."""
    cells = [(cell, segment) for cell, segment in data.sample() if segment.references]
    if len(cells) < MIN_REFERENCES:
        raise DataError("there are no references")
    text_systems = {system for system, _ in data.texts}
    has_text = [system in text_systems for system in data.aligned.systems]
    means = np.where(has_text, nan_mean(data.human), np.nan)
    best = data.aligned.systems[int(np.nanargmax(means))]
    best_outputs = {i: s.hypothesis for (system, i), s in data.texts.items() if system == best}
    least = min(len(segment.references) for _, segment in cells)
    comparable = [(c, s) for c, s in cells if c[0] != best and c[1] in best_outputs]
    cells = comparable or cells
    own = [segment.references for _, segment in cells]
    references = {"the reference": own}
    for n in range(1, least):
        references[f"reference {n + 1} alone"] = [texts[n : n + 1] for texts in own]
    if comparable:
        references["the best system's output"] = [(best_outputs[item],) for (_, item), _ in cells]
    half = len(cells) // 2
    references["the reference of another segment"] = own[half:] + own[:half]
    names = [cell for cell, _ in cells]
    specs = [metric.spec for metric in data.metrics]
    rows = {}
    for name, replacements in references.items():
        pairs = zip(cells, replacements, strict=True)
        scores = data.score([replace(s, references=texts) for (_, s), texts in pairs])
        tables = np.stack([data.arrange(names, row) for row in scores])
        rows[name] = data.correlation(tables, specs)
    return rows
