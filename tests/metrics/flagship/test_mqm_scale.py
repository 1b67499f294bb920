"""The MQM scale of bundled models."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tertium.core.segment import Segment
from tertium.metrics.base.loading import load_metric
from tertium.metrics.bundled.calibrated_metric import (
    MAX_MQM_POINTS,
    EnglishCalibratedMetric,
)
from tertium.metrics.bundled.tertium_multi import TertiumMulti

pytest.importorskip("torch")
SOURCE = "Der Zug nach Hamburg fährt heute nicht um 14 Uhr ab."
REFERENCE = "The train to Hamburg is not leaving at 2 pm today."
GOOD = "The train to Hamburg does not leave at 14:00 today."
BAD = "The train of Hamburg leaves today."


@pytest.fixture(scope="module")
def da_metric() -> TertiumMulti:
    return TertiumMulti()


@pytest.fixture(scope="module")
def mqm_metric(da_metric: TertiumMulti) -> TertiumMulti:
    return dataclasses.replace(da_metric, scale="mqm")


@pytest.mark.parametrize("spec", ["tertium-small", "tertium-multi"])
def test_points_are_25_times_the_loss_and_a_copy_of_the_reference_has_none(spec: str) -> None:
    da_metric, mqm_metric = load_metric(spec), load_metric(f"{spec}:scale=mqm")
    segments = [Segment(text, SOURCE, (REFERENCE,)) for text in (GOOD, BAD, REFERENCE)]
    scores = mqm_metric.score(segments).segments
    for metric in (da_metric, mqm_metric):
        assert metric.mqm_points(segments) == pytest.approx(MAX_MQM_POINTS * (1 - scores))  # type: ignore[attr-defined]
    assert 0 < scores[1] < scores[0] < scores[2] == 1
    assert scores[:2].tolist() != da_metric.score(segments).segments[:2].tolist()


def test_mqm_scale_of_tertium_small_has_no_length_penalty() -> None:
    """The error sum already depends on the number of reference words."""
    costs, free = (
        load_metric(f"tertium-small:scale=mqm,length={kind}") for kind in ("costs", "free")
    )
    assert isinstance(costs, EnglishCalibratedMetric)
    segments = [
        Segment(BAD, SOURCE, (REFERENCE,)),
        Segment("", SOURCE, ("",)),
        Segment("a", "b", ("c",)),
    ]
    scores = costs.score(segments).segments
    assert scores.tolist() == free.score(segments).segments.tolist()
    raw = costs.raw_scores([(BAD, None, REFERENCE)])
    sums = costs.settings.experts.errors(raw, np.array([float(len(REFERENCE.split()))]))
    assert scores[0] == costs.settings.experts.calibrate(sums)[0]
    assert costs.human_scale() is costs.settings.experts
    assert (costs.uncertainty(scores) > 0).all()


def test_wrong_language_output_is_penalized() -> None:
    with_pair = load_metric("tertium-multi:scale=mqm,lp=de-en")
    plain = load_metric("tertium-multi:scale=mqm")
    french = [Segment("Le train pour Hambourg ne part pas à 14 heures aujourd'hui.", SOURCE)]
    assert with_pair.score(french).segments[0] < 0.03 < 0.8 < plain.score(french).segments[0]


@pytest.mark.parametrize("spec", ["tertium-small", "tertium-multi", "tertium-multi:against=source"])
def test_empty_translation_gets_the_maximum_penalty_unless_the_input_is_empty(spec: str) -> None:
    metric = load_metric(spec)
    short = [Segment(text, "Ja.", ("Yes.",)) for text in ("", " \t", "No.")]
    points = metric.mqm_points([*short, Segment("", "", ("",))])  # type: ignore[attr-defined]
    assert (points[:2] > 0.97 * MAX_MQM_POINTS).all()
    assert points[2] < 0.5 * MAX_MQM_POINTS
    assert points[3] < 0.5 * MAX_MQM_POINTS


def test_worse_and_longer_texts_have_lower_no_error_probability(da_metric: TertiumMulti) -> None:
    longer = [Segment(" ".join([t] * 3), " ".join([SOURCE] * 3)) for t in (GOOD, BAD)]
    result = da_metric.assess([Segment(GOOD, SOURCE), Segment(BAD, SOURCE), *longer])
    good, bad, many_good, many_bad = result["no error"].tolist()
    assert 1 > good > bad > many_bad > 0
    assert good > many_good > many_bad
    mqm_result = dataclasses.replace(da_metric, scale="mqm").assess([Segment(GOOD, SOURCE)])
    assert mqm_result["no error"][0] == good
