"""Score every system of a test set with every metric.

All systems go to a metric in one call, so work on references, sources and repeated outputs is
shared. The rows of statistics are then split by system.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tertium.arrays import FloatArray, check_resamples
from tertium.data.testset import TestSet, check_testset
from tertium.display import Displayable
from tertium.errors import (
    DataError,
    MissingInputError,
    TertiumError,
    UnknownNameError,
    UsageError,
    short_repr,
)
from tertium.evaluation.resampling import Interval, bootstrap, interval
from tertium.extras import explain_missing, install_command, is_installed
from tertium.frames import is_frame, make_frame
from tertium.metrics.base.loading import load_metric, load_metrics, replace_fields
from tertium.metrics.base.metric import HOW_TO_PROVIDE, Metric, share_encoding
from tertium.metrics.base.text_warnings import select_language_warnings
from tertium.metrics.lexical.sacrebleu_adapter import describe_tokenizer, tokenizer_for
from tertium.models.checkpoint import HOW_TO_INSTALL, has_bundled_models
from tertium.scores import Scores
from tertium.segment import Segment
from tertium.text.language_identification import (
    WRONG_LANGUAGE_WARNING,
    flag_wrong_language,
    main_language,
    seem_english,
)

if TYPE_CHECKING:
    from pandas import DataFrame


logger = logging.getLogger(__name__)

Value = TypeVar("Value")
Translations = Any  # a TestSet, a frame, a list of texts, or lists of texts by system
References = Sequence[str] | Sequence[Sequence[str]] | None
SEARCH_PARTS = 8  # parts into which segments are split to locate a warning


class SystemDict(dict[str, Value]):
    """Values by system name; an unknown name raises an error with a suggestion."""

    def __missing__(self, name: str) -> Value:
        raise UnknownNameError("system", name, self)


class MetricDict(dict[str, Value]):
    """Values by metric spec, found under any spelling of the spec.

    >>> values = MetricDict({"chrf:word_order=2": 1})
    >>> values["chrf++"], "chrf++" in values, values.get("bleu")
    (1, True, None)
    """

    def __missing__(self, name: str) -> Value:
        spec = self._find_spec(name)
        if not super().__contains__(spec):
            raise UnknownNameError("metric", name, self)
        return self[spec]

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name) or not isinstance(name, str):
            return super().__contains__(name)
        return super().__contains__(self._find_spec(name))

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(self._find_spec(name), default)

    def _find_spec(self, name: str) -> str:
        """Return the key of a metric; its tokenizer may have been chosen by the language."""
        spec = name if super().__contains__(name) else _canonical_spec(name)
        if super().__contains__(spec) or "tokenize" in name:
            return spec
        same = [key for key in self if "tokenize" in key and _without_tokenizer(key) == spec]
        return same[0] if len(same) == 1 else spec


def _canonical_spec(name: str) -> str:
    """Return the canonical spec of a metric, or the name itself if there is no such metric."""
    try:
        return load_metric(name).spec
    except TertiumError:
        return name


def _without_tokenizer(spec: str) -> str:
    """Return the spec of a metric with the default tokenizer."""
    try:
        metric = load_metric(spec)
    except TertiumError:
        return spec
    default = getattr(type(metric), "tokenize", None)
    return spec if default is None else replace_fields(metric, {"tokenize": default}).spec


@dataclass(frozen=True)
class Evaluation(Displayable):
    """The scores of systems under metrics, as returned by `tertium.score`.

    Attributes
    ----------
    testset
        The scored test set.
    systems, metrics
        Names of the systems and specs of the metrics.
    scores
        `scores[system][metric]`, also `evaluation[system][metric]`, under any spelling of a spec.
    intervals
        Bootstrap confidence intervals in the same layout; empty if they were not computed.

    >>> evaluation = score(["hello world"], "chrf", references=["hello there"])
    >>> round(evaluation["system"]["chrf"].system, 1)
    31.2
    """

    testset: TestSet
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    scores: Mapping[str, Mapping[str, Scores]] = field(repr=False)
    intervals: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for part in ("scores", "intervals"):
            by_system = getattr(self, part).items()
            object.__setattr__(self, part, SystemDict({s: MetricDict(v) for s, v in by_system}))

    def __getitem__(self, system: str) -> Mapping[str, Scores]:
        """Return the scores of a system by metric."""
        return self.scores[system]

    def __iter__(self) -> Iterator[str]:
        return iter(self.systems)

    @cached_property
    def names(self) -> dict[str, str]:
        """Display names of the metrics by spec."""
        first = self.scores[self.systems[0]]
        return distinct_labels({metric: first[metric].name or metric for metric in self.metrics})

    def metric_scores(self, metric: str) -> list[Scores]:
        """Return the scores of all systems under one metric, in the order of `systems`."""
        return [self.scores[system][metric] for system in self.systems]

    def records(self, *, segments: bool = True) -> list[dict[str, Any]]:
        """Return one dictionary for each system and metric, in the layout of sacrebleu's JSON."""
        return [
            self._record(system, metric, segments)
            for system in self.systems
            for metric in self.metrics
        ]

    def to_frame(self) -> DataFrame:
        """Return a pandas frame of `segment_columns`: a row per system, metric and segment."""
        return make_frame(self.segment_columns())

    def segment_columns(self) -> dict[str, Sequence[Any]]:
        """Return columns with one value for each system, metric and segment.

        The columns are `system`, `metric`, `segment` (its name in the test set, or its number from
        1), `document` if known, `score` and `higher_is_better`. `tertium meta --scores` reads them
        from a Parquet or TSV file.
        """
        count = len(self.testset)
        pairs = [(system, metric) for system in self.systems for metric in self.metrics]
        documents = {"document": list(self.testset.documents) * len(pairs)}
        return {
            "system": [system for system, _ in pairs for _ in range(count)],
            "metric": [metric for _, metric in pairs for _ in range(count)],
            "segment": as_numbers(self.testset.items) * len(pairs),
            **(documents if self.testset.documents else {}),
            "score": np.concatenate([self.scores[s][m].segments for s, m in pairs]).tolist(),
            "higher_is_better": [
                self.scores[s][m].higher_is_better for s, m in pairs for _ in range(count)
            ],
        }

    def _record(self, system: str, metric: str, segments: bool) -> dict[str, Any]:
        scores = self.scores[system][metric]
        record: dict[str, Any] = {
            "system": system,
            "name": scores.name,
            "spec": metric,
            "score": scores.system,
            "signature": scores.signature,
            "verbose_score": scores.verbose,
            "higher_is_better": scores.higher_is_better,
        }
        if system in self.intervals:
            bounds = self.intervals[system][metric]
            record["confidence_mean"] = bounds.mean
            record["confidence_var"] = bounds.half_width
            record["confidence_interval"] = [bounds.low, bounds.high]
        if self.testset.documents:
            record["documents"] = scores.documents(self.testset.documents)
        if segments:
            record |= segment_fields(self.testset, scores.segments)
        if scores.usage:
            record["usage"] = dict(scores.usage)
        if scores.warnings:
            record["warnings"] = dict(scores.warnings)
        return record


def segment_fields(testset: TestSet, values: FloatArray) -> dict[str, Any]:
    """Return segment scores as record fields, with `items` unless these are 1, 2, ..."""
    items = as_numbers(testset.items)
    item_field = {} if items == [*range(1, len(items) + 1)] else {"items": items}
    return {**item_field, "segments": values.tolist()}


def as_numbers(items: Sequence[str]) -> list[str | int]:
    """Convert items to numbers if all of them are numbers, so that they sort numerically.

    >>> as_numbers(["9", "10"]), as_numbers(["9", "010"])
    ([9, 10], ['9', '010'])
    """
    if all(item.isdecimal() and item == str(int(item)) for item in items):
        return [int(item) for item in items]
    return list(items)


def distinct_labels(names: Mapping[str, str]) -> dict[str, str]:
    """Return display names by spec; metrics that share a name are shown by their specs.

    >>> distinct_labels({"chrf": "chrF", "bleu": "BLEU", "bleu:lowercase=true": "BLEU"})
    {'chrf': 'chrF', 'bleu': 'bleu', 'bleu:lowercase=true': 'bleu:lowercase=true'}
    """
    labels = list(names.values())
    return {spec: name if labels.count(name) == 1 else spec for spec, name in names.items()}


def load_metrics_for(
    texts: Sequence[str], metrics: str | Metric | Sequence[str | Metric]
) -> list[Metric]:
    """Load metrics for texts in the target language.

    Specs without a tokenizer get that of the language, if they need one. Metric objects stay as
    they are.
    """
    if isinstance(metrics, Iterable) and not isinstance(metrics, str):
        metrics = list(metrics)  # an iterator can be read once
    loaded = load_metrics(metrics)
    specs = [metrics] if isinstance(metrics, str | Metric) else metrics
    return choose_tokenizers(loaded, specs, texts)


def choose_tokenizers(
    metrics: Sequence[Metric], specs: Sequence[str | Metric], texts: Sequence[str]
) -> list[Metric]:
    """Set the tokenizers of metrics for the language of texts, unless their specs have one."""
    chosen = [choose_tokenizer(*pair, texts) for pair in zip(metrics, specs, strict=True)]
    chosen_specs = [metric.spec for metric in chosen]
    pairs = zip(chosen, metrics, strict=True)  # both may have been given: bleu, bleu:tokenize=zh
    return [own if chosen_specs.count(own.spec) == 1 else metric for own, metric in pairs]


def choose_tokenizer(metric: Metric, spec: str | Metric, texts: Sequence[str]) -> Metric:
    """Set the tokenizer of a metric for the language of texts, unless its spec has one."""
    if isinstance(spec, Metric) or not hasattr(metric, "tokenize") or "tokenize" in spec:
        return metric
    return replace_fields(metric, {"tokenize": tokenizer_for(main_language(texts))})


def set_languages(metric: Metric, spec: str | Metric, source: str, target: str) -> Metric:
    """Set the languages of a metric unless its spec names them; the source may be unknown.

    BLEU and NIST get sacrebleu's tokenizer for the target language, if it is installed.
    """
    names = {own_field.name for own_field in fields(metric)}  # type: ignore[arg-type]
    if isinstance(spec, Metric):
        return metric
    if source and "lp" in names and not getattr(metric, "lp", ""):
        return replace_fields(metric, {"lp": f"{source}-{target}"})
    if "language" in names and "language=" not in spec:
        return replace_fields(metric, {"language": target})
    if "tokenize" in names and "tokenize" not in spec:
        return replace_fields(metric, {"tokenize": tokenizer_for(target)})
    return metric


def describe_tokenizers(testset: TestSet, specs: Iterable[str]) -> list[str]:
    """Return a sentence for each metric that splits texts in a language with its own tokenizer."""
    sentences = []
    for spec in specs:
        with suppress(TertiumError):
            metric = load_metric(spec)
            if tokenizer := getattr(metric, "tokenize", ""):
                language = main_language(target_texts(testset))
                sentence = describe_tokenizer(language, tokenizer)
                sentences += [f"{metric.label}: {sentence}"] if sentence else []
    return sentences


def target_texts(testset: TestSet) -> Sequence[str]:
    """Return the first references or, without any, the translations of the first system."""
    references = [texts[0] for texts in testset.references if texts]
    return references or next(iter(testset.systems.values()))


def as_testset(
    translations: Translations, sources: Sequence[str] | None = None, references: References = None
) -> TestSet:
    """Return a test set as it is, or make one of lists of texts or of a frame."""
    if isinstance(translations, Mapping | Sequence) and not isinstance(translations, str):
        return TestSet.from_lists(translations, sources, references)
    if not is_frame(translations):
        check_testset(translations)
    if sources is not None or references is not None:
        raise UsageError(
            "sources= and references= need lists of translations: a test set or frame has its own"
        )
    return TestSet.from_frame(translations) if is_frame(translations) else translations


def score(
    testset: Translations,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    *,
    sources: Sequence[str] | None = None,
    references: References = None,
    confidence: bool = False,
    resamples: int = 1000,
    seed: int = 12345,
) -> Evaluation:
    """Score every system of a test set with every metric.

    Parameters
    ----------
    testset
        A `TestSet`, a pandas or polars frame, a list of translations, or lists by system name.
    metrics
        Specs ("chrf:word_order=2") or metrics. By default, the recommended metric for the data.
        Specs of BLEU and NIST without `tokenize` get the tokenizer of the target language.
    sources, references
        Texts for each segment, if `testset` is a list or a dictionary of lists. A segment may have
        a list of references.
    confidence
        Whether to compute 95 % bootstrap confidence intervals.
    resamples
        Number of bootstrap resamples.
    seed
        Seed of the bootstrap.

    Returns
    -------
    Evaluation
        The scores by system and metric.

    >>> evaluation = score({"ours": ["hello world"]}, ["chrf"], references=["hello world"])
    >>> evaluation["ours"]["chrf"].system
    100.0
    """
    if not isinstance(confidence, bool):
        raise UsageError(
            f"confidence must be True or False, got {short_repr(confidence)}: use resamples= for "
            "the number of resamples"
        )
    check_resamples(resamples)
    texts = as_testset(testset, sources, references)
    chosen = recommend_metric(texts) if metrics is None else metrics
    loaded = load_metrics_for(target_texts(texts), chosen)
    with share_encoding(loaded, texts.segments(next(iter(texts.systems)))):
        by_metric = {metric.spec: score_systems(texts, metric) for metric in loaded}
    systems = tuple(texts.systems)
    scores = {
        system: {spec: by_metric[spec][n] for spec in by_metric} for n, system in enumerate(systems)
    }
    evaluation = Evaluation(texts, systems, tuple(by_metric), scores)
    return add_intervals(evaluation, resamples, seed) if confidence else evaluation


def score_systems(testset: TestSet, metric: Metric) -> list[Scores]:
    """Score each system under one metric, in the order of the test set."""
    parts = [testset.segments(system) for system in testset.systems]
    for part in parts:
        metric.check(part)
    if metric.reads_corpus:
        return [metric.score(part) for part in parts]
    all_segments: list[Segment] = [segment for part in parts for segment in part]
    size = len(testset)
    with explain_missing(metric.name):
        rows = metric.compute_statistics(all_segments)  # (systems * segments, k)
        return [
            metric.make_scores(part, rows[n * size : (n + 1) * size])
            for n, part in enumerate(parts)
        ]


def find_scorable(segments: Sequence[Segment], metric: Metric) -> list[bool]:
    """Return a mask of the translations that have the inputs of a metric.

    A metric with optional inputs rejects a mix of them. In that case, keep the translations with
    all inputs that any translation has: a human translation among the systems may be the reference
    itself and have no other.
    """
    available = [(bool(s.references), s.source is not None) for s in segments]
    needs = ("references" in metric.required_inputs, "source" in metric.required_inputs)
    mask = [all(h or not n for h, n in zip(has, needs, strict=True)) for has in available]
    try:
        metric.check(list(compress(segments, mask)))
    except MissingInputError:
        all_inputs = tuple(map(any, zip(*available, strict=True)))
        complete = [has == all_inputs for has in available]
        return complete if any(complete) else mask
    except DataError:  # no segment is left
        return mask
    return mask


def find_scorable_by_all(segments: Sequence[Segment], metrics: Sequence[Metric]) -> list[bool]:
    """Return a mask of the translations that have the inputs of every metric."""
    masks = [find_scorable(segments, metric) for metric in metrics]
    return [all(mask) for mask in zip(*masks, strict=True)] if masks else [True] * len(segments)


def locate_warnings(metric: Metric, segments: Sequence[Segment]) -> list[tuple[str, ...]]:
    """Return the kinds of warning of each segment, found by bisection; most have none.

    The language of most translations is that of all segments, so it is found before bisection.
    """
    kinds = _bisect_warnings(metric, segments)
    if any(WRONG_LANGUAGE_WARNING in own for own in kinds):
        kinds = [[kind for kind in own if kind != WRONG_LANGUAGE_WARNING] for own in kinds]
    if WRONG_LANGUAGE_WARNING in metric.warnings(segments):
        for row in np.flatnonzero(flag_wrong_language([s.hypothesis for s in segments])):
            kinds[row].append(WRONG_LANGUAGE_WARNING)
    return [tuple(own) for own in kinds]


def _bisect_warnings(metric: Metric, segments: Sequence[Segment]) -> list[list[str]]:
    """Return the kinds of warning of each segment.

    All segments may be in another language although no single one is clearly so.
    """
    counted = metric.warnings(segments)
    if not counted or len(segments) == 1:
        return [[*counted] for _ in segments]
    languages = select_language_warnings(counted)
    shared = [kind for kind, count in languages.items() if count == len(segments)]
    size = -(-len(segments) // SEARCH_PARTS)
    pieces = [segments[start : start + size] for start in range(0, len(segments), size)]
    by_segment = [kinds for piece in pieces for kinds in _bisect_warnings(metric, piece)]
    return [[*shared, *(kind for kind in own if kind not in shared)] for own in by_segment]


def add_intervals(evaluation: Evaluation, resamples: int, seed: int = 12345) -> Evaluation:
    """Add 95 % bootstrap intervals to an evaluation, all from the same resamples."""
    pairs = [(s, m) for s in evaluation.systems for m in evaluation.metrics]
    samples = bootstrap([evaluation.scores[s][m] for s, m in pairs], resamples=resamples, seed=seed)
    bounds: dict[str, dict[str, Interval]] = {system: {} for system in evaluation.systems}
    for (system, metric), row in zip(pairs, samples, strict=True):
        bounds[system][metric] = interval(row)
    return replace(evaluation, intervals=bounds)


COMPANIONS = ("bleu", "chrf")  # shown with the recommended metric in comparisons and reports


def recommend_metric(testset: TestSet, language: str = "") -> str:
    """Return the metric with the best human agreement on such data that is installed."""
    first = [texts[0] for texts in testset.references if texts]
    return recommend_metric_for(first, sources=bool(testset.sources), language=language)


def recommend_metric_for(references: Sequence[str], *, sources: bool, language: str = "") -> str:
    """Return the recommended metric, given the first reference of each segment.

    `language` is the target language, if it is known.
    """
    if not references and not sources:
        raise MissingInputError(
            "no metric is given, and the default one (tertium-small for English references, "
            "otherwise tertium-multi) needs references, sources or both: "
            f"{HOW_TO_PROVIDE['references']}, or the source likewise"
        )
    can_run = is_installed("torch", "tokenizers")
    if can_run and has_bundled_models():
        is_english = language == "en" if language else seem_english(references)
        return "tertium-small" if references and is_english else "tertium-multi"
    if not references:
        return "sss" if can_run else "tertium-multi"  # its error explains what to install
    logger.warning(
        "no metric is given, so chrf is used: a metric with better human agreement needs %s",
        HOW_TO_INSTALL if can_run else f"torch: {install_command('neural')}",
    )
    return "chrf"


def default_metrics(testset: TestSet, language: str = "") -> list[str]:
    """Return the default metrics of a comparison: BLEU, chrF and the recommended metric."""
    companions = COMPANIONS if testset.references else ()
    return list(dict.fromkeys([*companions, recommend_metric(testset, language)]))
