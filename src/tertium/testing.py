"""The laws that every metric keeps, for metrics of other packages as for tertium's own.

    from tertium.testing import check_metric

    def test_length_ratio_keeps_the_laws() -> None:
        check_metric("length-ratio")

A law is a function of a metric and some segments that raises an `AssertionError`. They are plain
functions, so that any test runner will do.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tertium.arrays import FloatArray
from tertium.errors import TertiumError
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.registry import METRICS
from tertium.segment import Segment, attach_context
from tertium.specs import build_dataclass, split_spec

TOLERANCE = 2e-5  # neural metrics: sums of float32 products in another order
EXAMPLE_SEGMENTS = (
    Segment("the cat sat on the mat", "die Katze sass auf der Matte", ("the cat sat on a mat",)),
    Segment("a dog barked", "ein Hund bellte", ("a dog was barking", "the dog barked loudly")),
    Segment("", "nichts", ("nothing",)),
    Segment("he went home .", "er ging nach Hause.", ("he went home .",)),
    Segment("mat the on sat cat the", "die Katze sass auf der Matte", ("the cat sat on a mat",)),
    Segment("It costs 3.5 million euros.", "Es kostet 3,5 Mio.", ("The price is 3.5 million.",)),
)


def check_metric(metric: Metric | str, segments: Sequence[Segment] = EXAMPLE_SEGMENTS) -> None:
    """Try every law on a metric or its spec; an error names the law and the metric.

    `segments` should have hypotheses of several lengths; what the metric needs must be there.

    >>> check_metric("chrf")
    """
    found = load_metric(metric) if isinstance(metric, str) else metric
    if found.reads_context:
        segments = attach_context(segments, ["document"] * len(segments))
    for law in METRIC_CHECKS:
        try:
            law(found, segments)
        except AssertionError as error:
            says = (law.__doc__ or "").partition("\n")[0]
            raise AssertionError(f"{found.spec}: {says}: {error}") from error


def _rows(metric: Metric, segments: Sequence[Segment]) -> FloatArray:
    return metric.score(segments).segments


def check_finite_scores(metric: Metric, segments: Sequence[Segment]) -> None:
    """as many finite scores as segments, from as many statistics as columns"""
    scores = metric.score(segments)
    assert scores.statistics.shape == (len(segments), len(metric.columns))
    assert scores.segments.shape == (len(segments),), f"`reduce` gives {scores.segments.shape}"
    for segment, value in zip(segments, scores.segments, strict=True):
        assert np.isfinite(value), f"{value} for {segment}"
    assert np.isfinite(scores.system), f"{scores.system} for all together"


def order_does_not_matter(metric: Metric, segments: Sequence[Segment]) -> None:
    """the order of segments does not matter"""
    turned = _rows(metric, segments[::-1])[::-1]
    np.testing.assert_allclose(turned, _rows(metric, segments), atol=TOLERANCE)


def neighbors_do_not_matter(metric: Metric, segments: Sequence[Segment]) -> None:
    """a segment's score does not depend on its neighbors, unless `reads_corpus` says so"""
    if not metric.reads_corpus:
        alone = [_rows(metric, [segment])[0] for segment in segments]
        np.testing.assert_allclose(alone, _rows(metric, segments), atol=TOLERANCE)


def duplicates_score_the_same(metric: Metric, segments: Sequence[Segment]) -> None:
    """equal segments have equal scores, to the last bit"""
    twice = _rows(metric, [*segments, *segments])
    np.testing.assert_array_equal(twice[: len(segments)], twice[len(segments) :])


def check_context_independence(metric: Metric, segments: Sequence[Segment]) -> None:
    """what stands around a segment in its document does not matter, unless it `reads_context`"""
    if not metric.reads_context:
        placed = attach_context(segments, ["document"] * len(segments))
        np.testing.assert_array_equal(_rows(metric, placed), _rows(metric, segments))


def check_error_spans(metric: Metric, segments: Sequence[Segment]) -> None:
    """errors are marked alike whatever the neighbors, or refused in a line"""
    if not metric.can_mark_errors:
        assert _refusal(lambda: metric.mark_errors(segments)) is not None, "it was marked"
        return
    assert metric.mark_errors(segments) == [
        metric.mark_errors([segment])[0] for segment in segments
    ]


def aggregates_are_sums(metric: Metric, segments: Sequence[Segment]) -> None:
    """a weighted score is the formula of the weighted sum of statistics"""
    scores = metric.score(segments)
    weights = np.random.default_rng(1).integers(0, 3, size=(5, len(segments))).astype(float)
    weights[:, 0] += 1  # a sample of nothing has no score
    for weight, value in zip(weights, scores.aggregate(weights), strict=True):
        total = np.zeros(scores.statistics.shape[1])
        for w, row in zip(weight, scores.statistics, strict=True):
            total += w * row
        np.testing.assert_allclose(value, metric.reduce(total), rtol=1e-9, atol=1e-9)


def scoring_is_deterministic(metric: Metric, segments: Sequence[Segment]) -> None:
    """scoring twice gives the same numbers"""
    np.testing.assert_array_equal(_rows(metric, segments), _rows(metric, segments))


def specs_rebuild(metric: Metric, segments: Sequence[Segment]) -> None:
    """`load_metric(metric.spec)` gives an equal metric, for every choice of its switches

    One that is not registered is made by its class, as it will be.
    """
    switches = [f.name for f in dataclasses.fields(metric) if f.type in (bool, "bool")]  # type: ignore[arg-type]
    for changes in ({}, *({name: not getattr(metric, name)} for name in switches)):
        changed = dataclasses.replace(metric, **changes)  # type: ignore[type-var]
        rebuilt = _load(changed.spec, type(metric))
        assert rebuilt == changed
        assert rebuilt.spec == changed.spec
        assert hash(rebuilt) == hash(changed)


def _load(spec: str, cls: type[Metric]) -> Metric:
    """The metric of a spec, by its class where the name is not registered."""
    name, fields = split_spec(spec)
    metric: Metric = load_metric(spec) if name in METRICS else build_dataclass(cls, name, fields)
    return metric


def metrics_are_values(metric: Metric, segments: Sequence[Segment]) -> None:
    """a metric is a frozen dataclass with keywords only, and has something to cite"""
    assert metric.__dataclass_params__.frozen, "it is not frozen"  # type: ignore[attr-defined]
    for field in dataclasses.fields(metric):  # type: ignore[arg-type]
        assert field.kw_only, f"{field.name} may be given without its name: say kw_only=True"
    assert metric.citation.startswith("@"), "`citation` is its BibTeX entry"


def signatures_tell_all(metric: Metric, segments: Sequence[Segment]) -> None:
    """a signature is a label and parts `key:value`, among them the version and `nrefs`"""
    label, *parts = metric.score(segments).signature.split("|")
    keys = [part.partition(":")[0] for part in parts]
    assert label == metric.label
    assert all(part.count(":") == 1 for part in parts), parts
    assert len(set(keys)) == len(keys), keys
    assert {"nrefs", "version"} <= set(keys), keys


def missing_parts_are_refused(metric: Metric, segments: Sequence[Segment]) -> None:
    """what it needs and a segment lacks is refused with the segment's number; so is no segment"""
    (full,) = attach_context([Segment("a", "b", ("c",))], ["document"])
    lacking = [Segment("a")] if not metric.required_inputs else []
    lacking += [Segment("a", "b")] if "references" in metric.required_inputs else []
    lacking += [Segment("a", None, ("c",))] if "source" in metric.required_inputs else []
    lacking += [Segment("a", "b", ("c",))] if "context" in metric.required_inputs else []
    for poor in lacking:
        said = _refusal(partial(metric.score, [full, poor]))
        assert said is not None, f"{poor} was scored"
        assert "segment 2" in said or not metric.required_inputs, said
    assert "nothing to score" in (_refusal(lambda: metric.score([])) or "it was scored")


def _refusal(call: Callable[[], object]) -> str | None:
    """The error of a call that a user can mend; None where it succeeds."""
    try:
        call()
    except TertiumError as error:
        return str(error)
    return None


def check_empty_hypotheses(metric: Metric, segments: Sequence[Segment]) -> None:
    """empty hypotheses are counted among the warnings"""
    empty = Segment("", segments[0].source, segments[0].references)
    assert metric.score([segments[0], empty]).warnings.get("empty hypothesis") == 1


def scores_are_explained_or_refused(metric: Metric, segments: Sequence[Segment]) -> None:
    """an explanation is of the score and can be written as JSON; else it is refused in a line"""
    if not metric.can_explain:
        said = _refusal(lambda: metric.explain(segments[0]))
        assert f"{metric.name} cannot explain its scores" in (said or "it was explained")
        return
    explained = metric.explain(segments[0])
    scored = _rows(metric, segments[:1])[0]
    np.testing.assert_allclose(explained.score, scored, atol=TOLERANCE)
    assert explained.comparisons or explained.attribution, "nothing is explained"
    json.dumps(explained.as_dict(), allow_nan=False)


def check_perfect_beats_unrelated(metric: Metric, segments: Sequence[Segment]) -> None:
    """a perfect translation is better than a wrong one"""
    source = "das Parlament lehnte am Dienstag den neuen Haushalt ab"
    reference = "the parliament rejected the new budget on Tuesday"
    texts = (reference, "my old bicycle is green and rusty")
    good, bad = _rows(metric, [Segment(text, source, (reference,)) for text in texts])
    assert good > bad if metric.higher_is_better else good < bad, (good, bad)


METRIC_CHECKS: Sequence[Callable[[Metric, Sequence[Segment]], None]] = (
    metrics_are_values,  # first: what is none fails the others in odd ways
    check_finite_scores,
    order_does_not_matter,
    neighbors_do_not_matter,
    duplicates_score_the_same,
    check_context_independence,
    check_error_spans,
    aggregates_are_sums,
    scoring_is_deterministic,
    specs_rebuild,
    signatures_tell_all,
    missing_parts_are_refused,
    check_empty_hypotheses,
    scores_are_explained_or_refused,
    check_perfect_beats_unrelated,
)
