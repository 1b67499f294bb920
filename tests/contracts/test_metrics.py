"""What every registered metric refuses, prefers and says of itself; `tests/laws` has its laws."""

from __future__ import annotations

import dataclasses
import json
import math
import typing

import numpy as np
import pytest

from tertium.data.testset import TestSet
from tertium.errors import DataError, MissingResourceError, NeedsError, TertiumError, UsageError
from tertium.evaluation.scoring import score
from tertium.metrics.base.metric import Metric, load_metric
from tertium.metrics.base.ranker import load_ranker
from tertium.registry import ALIASES, METRICS, RANKERS, ranges, resolve
from tertium.segment import Segment

SPECS = [*METRICS, *ALIASES]
TOLERANCE = 2e-5  # neural metrics: sums of float32 products in another order


@pytest.fixture(params=SPECS)
def metric(request: pytest.FixtureRequest) -> Metric:
    loaded = load_metric(request.param)
    try:
        loaded.score([Segment("it is raining", "es regnet", ("it is raining",))])
    except MissingResourceError as error:
        pytest.skip(str(error))
    return loaded


def rows(metric: Metric, segments: list[Segment]) -> np.ndarray:
    return metric.score(segments).segments


def test_missing_field_is_refused(metric: Metric) -> None:
    if "references" in metric.needs:
        with pytest.raises(NeedsError, match="segment 2"):
            metric.score([Segment("a", "b", ("c",)), Segment("a", "b")])
    if "source" in metric.needs:
        with pytest.raises(NeedsError, match="segment 1"):
            metric.score([Segment("a", None, ("c",))])
    if not metric.needs:
        with pytest.raises((NeedsError, DataError)):
            metric.score([Segment("a")])


def test_no_segments_are_refused(metric: Metric) -> None:
    with pytest.raises(DataError, match="nothing to score"):
        metric.score([])


def test_a_score_is_explained_or_refused(metric: Metric, segments: list[Segment]) -> None:
    if not metric.explains:
        with pytest.raises(UsageError, match=f"{metric.name} cannot explain its scores"):
            metric.explain(segments[0])
        return
    explained = metric.explain(segments[0])
    assert explained.score == pytest.approx(metric.score(segments[:1]).segments[0], abs=TOLERANCE)
    assert explained.comparisons or explained.reasons
    json.dumps(explained.as_dict(), allow_nan=False)


def test_a_perfect_hypothesis_beats_a_wrong_one(metric: Metric) -> None:
    reference = ("the parliament rejected the new budget on Tuesday",)
    source = "das Parlament lehnte am Dienstag den neuen Haushalt ab"
    good, bad = rows(
        metric,
        [
            Segment(reference[0], source, reference),
            Segment("my old bicycle is green and rusty today", source, reference),
        ],
    )
    assert good > bad if metric.higher_is_better else good < bad


def test_metric_orders_the_example(metric: Metric, example: TestSet) -> None:
    result = score(example, metric)
    good, fair, poor = (s.system for s in result.of_metric(metric.spec))
    assert (good > poor and fair > poor) if metric.higher_is_better else (good < poor > fair)


def test_metrics_are_frozen_and_keyword_only(metric: Metric) -> None:
    assert metric.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert all(field.kw_only for field in dataclasses.fields(metric))
    assert hash(metric) == hash(load_metric(metric.spec))


def test_every_metric_can_be_cited(metric: Metric) -> None:
    assert metric.citation.startswith("@")


def numeric_fields() -> list[tuple[str, str]]:
    """The fields of all metrics and rankers that hold a number."""
    found = []
    for table in (METRICS, RANKERS):
        for name in table:
            cls = resolve(table, name, "metric or ranker")
            hints = typing.get_type_hints(cls)
            for field in (f.name for f in dataclasses.fields(cls)):
                if {int, float} & {hints[field], *typing.get_args(hints[field])}:
                    found.append((name, field))
    return found


@pytest.mark.parametrize(("name", "field"), numeric_fields())
def test_every_number_has_a_range(name: str, field: str) -> None:
    table = METRICS if name in METRICS else RANKERS
    cls = resolve(table, name, "metric or ranker")
    allowed = ranges(cls)[field]
    for value in (math.nan, math.inf, -math.inf, -1, -0.5, -1e308):
        assert value not in allowed
        with pytest.raises(UsageError, match=f"{field} must be"):
            cls(**{field: value})
    with pytest.raises(TertiumError):
        (load_metric if name in METRICS else load_ranker)(f"{name}:{field}=nan")
