"""Conformance checks for metrics, built-in ones and those of other packages.

    from tertium.testing import check_metric

    def test_length_ratio() -> None:
        check_metric("length-ratio")

A check is a function of a metric and some segments that raises `AssertionError`. The checks work
with any test runner.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import TertiumError
from tertium.core.fields import build_dataclass, split_spec
from tertium.core.registry import METRICS
from tertium.core.segment import Segment, attach_context
from tertium.metrics.base.capabilities import Explains, can_mark_errors, reads_context
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric

TOLERANCE = 2e-5  # float32 sums of neural metrics may be computed in another order
EXAMPLE_SEGMENTS = (
    Segment("the cat sat on the mat", "die Katze sass auf der Matte", ("the cat sat on a mat",)),
    Segment("a dog barked", "ein Hund bellte", ("a dog was barking", "the dog barked loudly")),
    Segment("", "nichts", ("nothing",)),
    Segment("he went home .", "er ging nach Hause.", ("he went home .",)),
    Segment("mat the on sat cat the", "die Katze sass auf der Matte", ("the cat sat on a mat",)),
    Segment("It costs 3.5 million euros.", "Es kostet 3,5 Mio.", ("The price is 3.5 million.",)),
)


def check_metric(metric: Metric | str, segments: Sequence[Segment] = EXAMPLE_SEGMENTS) -> None:
    """Run all checks on a metric or spec; an error names the metric and the failed check.

    `segments` should have hypotheses of several lengths and all inputs that the metric requires.

    >>> check_metric("chrf")
    """
    tested = load_metric(metric) if isinstance(metric, str) else metric
    if reads_context(tested):
        segments = attach_context(segments, ["document"] * len(segments))
    for check in METRIC_CHECKS:
        try:
            check(tested, segments)
        except AssertionError as error:
            rule = (check.__doc__ or "").partition("\n")[0]
            raise AssertionError(f"{tested.spec}: {rule} {error}") from error


def _segment_scores(metric: Metric, segments: Sequence[Segment]) -> FloatArray:
    return metric.score(segments).segments


def check_finite_scores(metric: Metric, segments: Sequence[Segment]) -> None:
    """Every segment has a finite score and one statistic per column."""
    scores = metric.score(segments)
    assert scores.statistics.shape == (len(segments), len(metric.columns))
    assert scores.segments.shape == (len(segments),), f"`reduce` gives {scores.segments.shape}"
    for segment, value in zip(segments, scores.segments, strict=True):
        assert np.isfinite(value), f"{value} for {segment}"
    assert np.isfinite(scores.system), f"{scores.system} for all segments together"


def check_order_independence(metric: Metric, segments: Sequence[Segment]) -> None:
    """Scores do not depend on the order of segments."""
    reordered = _segment_scores(metric, segments[::-1])[::-1]
    np.testing.assert_allclose(reordered, _segment_scores(metric, segments), atol=TOLERANCE)


def check_batch_independence(metric: Metric, segments: Sequence[Segment]) -> None:
    """A segment's score does not depend on other segments, unless the metric `reads_corpus`."""
    if not metric.reads_corpus:
        single = [_segment_scores(metric, [segment])[0] for segment in segments]
        np.testing.assert_allclose(single, _segment_scores(metric, segments), atol=TOLERANCE)


def check_duplicates(metric: Metric, segments: Sequence[Segment]) -> None:
    """Equal segments have exactly equal scores."""
    repeated = _segment_scores(metric, [*segments, *segments])
    np.testing.assert_array_equal(repeated[: len(segments)], repeated[len(segments) :])


def check_context_independence(metric: Metric, segments: Sequence[Segment]) -> None:
    """Scores do not depend on the document context, unless the metric `reads_context`."""
    if not reads_context(metric):
        in_document = attach_context(segments, ["document"] * len(segments))
        np.testing.assert_array_equal(
            _segment_scores(metric, in_document), _segment_scores(metric, segments)
        )


def check_error_spans(metric: Metric, segments: Sequence[Segment]) -> None:
    """Error spans do not depend on other segments; a metric without them raises an error."""
    if not can_mark_errors(metric):
        assert _error_message(lambda: metric.mark_errors(segments)) is not None, "no error raised"
        return
    single = [metric.mark_errors([segment])[0] for segment in segments]
    assert metric.mark_errors(segments) == single


def check_additive_statistics(metric: Metric, segments: Sequence[Segment]) -> None:
    """A weighted score is `reduce` of the weighted sum of statistics."""
    scores = metric.score(segments)
    weights = np.random.default_rng(1).integers(0, 3, size=(5, len(segments))).astype(float)
    weights[:, 0] += 1  # an empty sample has no score
    for weight, value in zip(weights, scores.aggregate(weights), strict=True):
        total = np.zeros(scores.statistics.shape[1])
        for w, row in zip(weight, scores.statistics, strict=True):
            total += w * row
        np.testing.assert_allclose(value, metric.reduce(total), rtol=1e-9, atol=1e-9)


def check_determinism(metric: Metric, segments: Sequence[Segment]) -> None:
    """Scoring twice gives the same numbers."""
    scores = _segment_scores(metric, segments)
    np.testing.assert_array_equal(scores, _segment_scores(metric, segments))


def check_spec_round_trip(metric: Metric, segments: Sequence[Segment]) -> None:
    """`load_metric(metric.spec)` gives an equal metric, for both values of each boolean field."""
    switches = [f.name for f in dataclasses.fields(metric) if f.type in (bool, "bool")]  # type: ignore[arg-type]
    for changes in ({}, *({name: not getattr(metric, name)} for name in switches)):
        changed = dataclasses.replace(metric, **changes)  # type: ignore[type-var]
        name, fields = split_spec(changed.spec)
        is_registered = name in METRICS
        rebuilt = (
            load_metric(changed.spec)
            if is_registered
            else build_dataclass(type(metric), name, fields)
        )
        assert rebuilt == changed
        assert rebuilt.spec == changed.spec
        assert hash(rebuilt) == hash(changed)


def check_dataclass(metric: Metric, segments: Sequence[Segment]) -> None:
    """A metric is a frozen dataclass with keyword-only fields; its citation, if any, is BibTeX."""
    assert metric.__dataclass_params__.frozen, "it is not frozen"  # type: ignore[attr-defined]
    for field in dataclasses.fields(metric):  # type: ignore[arg-type]
        assert field.kw_only, f"{field.name} is positional: use kw_only=True"
    citation = getattr(metric, "citation", "")
    is_bibtex = not citation or citation.startswith("@")
    assert is_bibtex, "`citation` must be a BibTeX entry, or be omitted"


def check_signature(metric: Metric, segments: Sequence[Segment]) -> None:
    """A signature is a label and `key:value` parts, including `version` and `nrefs`."""
    label, *parts = metric.score(segments).signature.split("|")
    keys = [part.partition(":")[0] for part in parts]
    assert label == metric.label
    assert all(part.count(":") == 1 for part in parts), parts
    assert len(set(keys)) == len(keys), keys
    assert {"nrefs", "version"} <= set(keys), keys


def check_missing_inputs(metric: Metric, segments: Sequence[Segment]) -> None:
    """A missing input raises an error with the segment number, as does an empty list."""
    (complete,) = attach_context([Segment("a", "b", ("c",))], ["document"])
    incomplete = [Segment("a")] if not metric.required_inputs else []
    incomplete += [Segment("a", "b")] if "references" in metric.required_inputs else []
    incomplete += [Segment("a", None, ("c",))] if "source" in metric.required_inputs else []
    incomplete += [Segment("a", "b", ("c",))] if "context" in metric.required_inputs else []
    for segment in incomplete:
        message = _error_message(partial(metric.score, [complete, segment]))
        assert message is not None, f"{segment} was scored"
        assert "segment 2" in message or not metric.required_inputs, message
    assert "no segments to score" in (_error_message(lambda: metric.score([])) or "no error raised")


def _error_message(call: Callable[[], object]) -> str | None:
    """Return the message of the `TertiumError` that a call raises, None if it succeeds."""
    try:
        call()
    except TertiumError as error:
        return str(error)
    return None


def check_empty_hypotheses(metric: Metric, segments: Sequence[Segment]) -> None:
    """Empty hypotheses are counted in the warnings."""
    empty = Segment("", segments[0].source, segments[0].references)
    assert metric.score([segments[0], empty]).warnings.get("empty hypothesis") == 1


def check_explanation(metric: Metric, segments: Sequence[Segment]) -> None:
    """An explanation has the score of the metric and converts to JSON, or raises an error."""
    if not isinstance(metric, Explains):
        message = _error_message(lambda: metric.explain(segments[0]))
        assert f"{metric.name} cannot explain its scores" in (message or "no error raised")
        return
    explanation = metric.explain(segments[0])
    score = _segment_scores(metric, segments[:1])[0]
    np.testing.assert_allclose(explanation.score, score, atol=TOLERANCE)
    assert explanation.comparisons or explanation.attribution, "the explanation is empty"
    json.dumps(explanation.as_dict(), allow_nan=False)


def check_perfect_beats_unrelated(metric: Metric, segments: Sequence[Segment]) -> None:
    """A perfect translation scores better than an unrelated one."""
    source = "das Parlament lehnte am Dienstag den Haushalt für 2027 ab"
    reference = "the parliament rejected the budget for 2027 on Tuesday"
    texts = (reference, "my old bicycle is green and rusty")
    good, bad = _segment_scores(metric, [Segment(text, source, (reference,)) for text in texts])
    assert good > bad if metric.higher_is_better else good < bad, (good, bad)


METRIC_CHECKS: Sequence[Callable[[Metric, Sequence[Segment]], None]] = (
    check_dataclass,  # first: other checks fail in confusing ways without it
    check_finite_scores,
    check_order_independence,
    check_batch_independence,
    check_duplicates,
    check_context_independence,
    check_error_spans,
    check_additive_statistics,
    check_determinism,
    check_spec_round_trip,
    check_signature,
    check_missing_inputs,
    check_empty_hypotheses,
    check_explanation,
    check_perfect_beats_unrelated,
)
