"""Contracts of every registered metric; `tests/laws` has further properties."""

from __future__ import annotations

import dataclasses
import math
import typing

import pytest

from tertium.core.errors import MissingResourceError, TertiumError, UsageError
from tertium.core.fields import field_ranges
from tertium.core.registry import ALIASES, METRICS, RANKERS, resolve
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.evaluation.scoring import score
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.ranker import load_ranker
from tertium.testing import check_metric

SPECS = [*METRICS, *ALIASES]


@pytest.fixture(params=SPECS)
def metric(request: pytest.FixtureRequest) -> Metric:
    loaded = load_metric(request.param)
    try:
        loaded.score([Segment("it is raining", "es regnet", ("it is raining",))])
    except MissingResourceError as error:
        pytest.skip(str(error))
    return loaded


def test_metric_passes_the_plugin_checks(metric: Metric, segments: list[Segment]) -> None:
    check_metric(metric, segments)


def every_third(testset: TestSet) -> TestSet:
    """A third of the segments with the first reference each, to save time.

    The documentation scores the example with this reference, so the cache is shared.
    """
    return TestSet(
        {name: texts[::3] for name, texts in testset.systems.items()},
        [texts[:1] for texts in testset.references[::3]],
        testset.sources[::3],
        testset.documents[::3],
    )


def test_metric_orders_the_example(metric: Metric, example: TestSet) -> None:
    result = score(every_third(example), metric)
    good, fair, poor = (s.system for s in result.metric_scores(metric.spec))
    assert (good > poor and fair > poor) if metric.higher_is_better else (good < poor > fair)


def test_load_metric_accepts_metrics_and_refuses_other_objects() -> None:
    chrf = load_metric("chrf")
    assert load_metric(chrf) is chrf
    assert load_metric(chrf, word_order=2) == load_metric("chrf:word_order=2")
    for wrong in (None, 5, ["chrf"]):
        with pytest.raises(UsageError, match="expected a metric or a spec"):
            load_metric(wrong)  # type: ignore[arg-type]


def numeric_fields() -> list[tuple[str, str]]:
    """Numeric fields of all metrics and rankers."""
    fields = []
    for table in (METRICS, RANKERS):
        for name in table:
            cls = resolve(table, name, "metric or ranker")
            hints = typing.get_type_hints(cls)
            for field in (f.name for f in dataclasses.fields(cls)):
                if {int, float} & {hints[field], *typing.get_args(hints[field])}:
                    fields.append((name, field))
    return fields


@pytest.mark.parametrize(("name", "field"), numeric_fields())
def test_every_number_has_a_range(name: str, field: str) -> None:
    table = METRICS if name in METRICS else RANKERS
    cls = resolve(table, name, "metric or ranker")
    allowed = field_ranges(cls)[field]
    for value in (math.nan, math.inf, -math.inf, -1, -0.5, -1e308):
        assert value not in allowed
        with pytest.raises(UsageError, match=f"{field} must be"):
            cls(**{field: value})
    with pytest.raises(TertiumError):
        (load_metric if name in METRICS else load_ranker)(f"{name}:{field}=nan")
