"""Models that ship on the scale of experts, who add up errors: how they do, and what it means."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tertium.data.formats import read_records
from tertium.data.records import segment_from_record
from tertium.metrics.base.loading import load_metric
from tertium.metrics.flagship.calibrated_metric import MAX_MQM_POINTS, EnglishCalibratedMetric
from tertium.metrics.flagship.scales import RATE_SMOOTHING, ErrorPenalty
from tertium.metrics.flagship.tertium_multi import INPUT_MODES, InputMode, TertiumMulti, build_rows
from tertium.segment import Segment

pytest.importorskip("torch")
SOURCE = "Der Zug nach Hamburg fährt heute nicht um 14 Uhr ab."
REFERENCE = "The train to Hamburg is not leaving at 2 pm today."
GOOD = "The train to Hamburg does not leave at 14:00 today."
BAD = "The train of Hamburg leaves today."


@pytest.fixture(scope="module")
def crowds() -> TertiumMulti:
    return TertiumMulti()


@pytest.fixture(scope="module")
def experts(crowds: TertiumMulti) -> TertiumMulti:
    return dataclasses.replace(crowds, scale="mqm")


def test_errors_grow_with_length_and_fall_with_the_raw_score_for_ever() -> None:
    add_up = ErrorPenalty(best=1.2, power=0.7, whole=500)
    raw = np.linspace(-6, 6, 400)
    some = np.zeros(len(raw), dtype=bool)
    found = add_up(raw, np.full(len(raw), 500.0), some)
    assert (np.diff(found) > 0).all()
    assert (found < 0).all()
    # below the best a line, as far as the bend lets it
    assert found[0] == pytest.approx(-7.2, abs=RATE_SMOOTHING**2)
    pieces = np.array([2.0, 40.0, 80.0, 2050.0])
    longer = add_up(np.zeros(4), pieces, some[:4])
    assert (np.diff(longer) < 0).all()
    assert longer[2] / longer[1] == pytest.approx(2**0.7)


@pytest.mark.parametrize("spec", ["tertium-small", "tertium-multi"])
def test_points_are_what_is_missing_to_one_and_a_copy_of_the_reference_has_none(spec: str) -> None:
    crowds, experts = load_metric(spec), load_metric(f"{spec}:scale=mqm")
    segments = [Segment(text, SOURCE, (REFERENCE,)) for text in (GOOD, BAD, REFERENCE)]
    scores = experts.score(segments).segments
    for metric in (crowds, experts):
        assert metric.mqm_points(segments) == pytest.approx(MAX_MQM_POINTS * (1 - scores))  # type: ignore[attr-defined]
    assert 0 < scores[1] < scores[0] < scores[2] == 1
    assert scores[:2].tolist() != crowds.score(segments).segments[:2].tolist()


@pytest.mark.parametrize("against", INPUT_MODES)
def test_of_one_segment_experts_and_crowds_order_translations_alike(
    crowds: TertiumMulti, against: str
) -> None:
    texts = (GOOD, BAD, "Hamburg.", "The train to Hamburg isn't leaving at 2 p.m. today.", SOURCE)
    segments = [Segment(text, SOURCE, (REFERENCE,)) for text in texts]
    said = [
        load_metric(f"tertium-multi:against={against},scale={scale}").score(segments).segments
        for scale in ("da", "mqm")
    ]
    assert np.argsort(said[0]).tolist() == np.argsort(said[1]).tolist()
    assert (said[0] != said[1]).all()


def test_a_longer_text_of_the_same_quality_loses_more_points(experts: TertiumMulti) -> None:
    """The same sentence three times is no worse to crowds, and three times as much can be wrong."""
    once = Segment(BAD, SOURCE, (REFERENCE,))
    bad, source, reference = (" ".join([text] * 3) for text in (BAD, SOURCE, REFERENCE))
    thrice = Segment(bad, source, (reference,))
    few, many = experts.mqm_points([once, thrice])
    assert many > 1.3 * few


def test_a_small_model_counts_words_of_the_reference_and_their_cost_is_in_the_sum() -> None:
    """What longer references cost crowds is no part of what experts add up."""
    costs, free = (
        load_metric(f"tertium-small:scale=mqm,length={kind}") for kind in ("costs", "free")
    )
    assert isinstance(costs, EnglishCalibratedMetric)
    segments = [
        Segment(BAD, SOURCE, (REFERENCE,)),
        Segment("", SOURCE, ("",)),
        Segment("a", "b", ("c",)),
    ]
    said = costs.score(segments).segments
    assert said.tolist() == free.score(segments).segments.tolist()
    raw = costs.raw_scores([BAD], [REFERENCE])
    sums = costs.settings.experts.errors(
        raw, np.array([float(len(REFERENCE.split()))]), np.array([False])
    )
    assert said[0] == costs.settings.experts.calibrate(sums)[0]
    assert costs.human_scale is costs.settings.experts
    assert (costs.uncertainty(said) > 0).all()


def test_length_is_that_of_the_reference_or_else_of_the_source(experts: TertiumMulti) -> None:
    rows = [
        ("a", "b b b b", "c c"),
        ("a a a a a a", None, "c c"),
        ("a", "b b b b", None),
        ("", "", None),
    ]
    assert experts.reader.count_pieces(rows).tolist() == [4, 4, 6, 2]


def test_nobody_gains_points_by_leaving_words_out(experts: TertiumMulti) -> None:
    words = GOOD.split()
    cut = [Segment(" ".join(words[:n]), SOURCE, (REFERENCE,)) for n in (9, 6, 3, 0)]
    mqm_points = experts.mqm_points(cut)
    assert points[0] < points[1:].min()


def test_the_signature_names_the_scale_and_what_it_is_made_of(
    crowds: TertiumMulti, experts: TertiumMulti
) -> None:
    segments = [Segment(GOOD, SOURCE, (REFERENCE,))]
    assert "scale:mqm" in experts.score(segments).signature
    assert "scale" not in crowds.score(segments).signature
    assert experts.model_ids != crowds.model_ids
    assert experts.spec == "tertium-multi:scale=mqm"


def test_another_language_than_asked_for_costs_points() -> None:
    named = load_metric("tertium-multi:scale=mqm,lp=de-en")
    plain = load_metric("tertium-multi:scale=mqm")
    stray = [Segment("Le train pour Hambourg ne part pas à 14 heures aujourd'hui.", SOURCE)]
    assert named.score(stray).segments[0] < 0.03 < 0.8 < plain.score(stray).segments[0]


@pytest.mark.parametrize("spec", ["tertium-small", "tertium-multi", "tertium-multi:against=source"])
def test_no_text_at_all_loses_all_points_unless_none_was_asked_for(spec: str) -> None:
    metric = load_metric(spec)
    short = [Segment(text, "Ja.", ("Yes.",)) for text in ("", " \t", "No.")]
    mqm_points = metric.mqm_points([*short, Segment("", "", ("",))])  # type: ignore[attr-defined]
    assert (points[:2] > 0.97 * MAX_MQM_POINTS).all()
    assert points[2] < 0.5 * MAX_MQM_POINTS
    assert points[3] < 0.5 * MAX_MQM_POINTS


def test_errors_are_likelier_in_a_worse_and_in_a_longer_text(crowds: TertiumMulti) -> None:
    longer = [Segment(" ".join([t] * 3), " ".join([SOURCE] * 3)) for t in (GOOD, BAD)]
    said = crowds.assess([Segment(GOOD, SOURCE), Segment(BAD, SOURCE), *longer])
    good, bad, many_good, many_bad = said.clean.tolist()
    assert 1 > good > bad > many_bad > 0
    assert good > many_good > many_bad
    told = dataclasses.replace(crowds, scale="mqm").assess([Segment(GOOD, SOURCE)])
    assert told.clean[0] == good


@pytest.mark.parametrize("view", INPUT_MODES)
def test_each_view_has_a_chance_of_no_error_of_its_own(
    crowds: TertiumMulti, view: InputMode
) -> None:
    metric = dataclasses.replace(crowds, against=view)
    segments = [Segment(text, SOURCE, (REFERENCE,)) for text in (GOOD, BAD)]
    _, rows = build_rows(segments, view)
    experts = getattr(metric.settings.experts, view)
    pieces, none_lost = metric.reader.count_pieces(rows), np.zeros(2, dtype=bool)
    sums = experts.errors(metric.raw_scores(rows), pieces, none_lost)
    chances = {its: getattr(metric.settings.clean, its)(sums).tolist() for its in INPUT_MODES}
    assert metric.assess(segments).clean.tolist() == chances[view]
    assert len({chance for chance, _ in chances.values()}) == len(INPUT_MODES)


@pytest.mark.parametrize("spec", ["tertium-small", "tertium-multi"])
def test_an_explanation_says_how_many_points_are_expected(spec: str) -> None:
    segment = Segment(BAD, SOURCE, (REFERENCE,))
    for metric in (load_metric(spec), load_metric(f"{spec}:scale=mqm")):
        explained = metric.explain(segment)
        said = {part.values["MQM points"] for part in explained.comparisons if part.values}
        assert said == {metric.mqm_points([segment])[0]}  # type: ignore[attr-defined]


@pytest.mark.parametrize("view", INPUT_MODES)
def test_maps_of_experts_are_increasing_and_inside_zero_and_one(
    experts: TertiumMulti, view: str
) -> None:
    scale = getattr(experts.settings.experts, view)
    mapped = scale.calibrate(np.linspace(-8, 0, 300))
    assert (np.diff(mapped) > 0).all()
    assert 0 < mapped[0] < mapped[-1] < 1
    assert scale.errors.power < 1 < scale.errors.best


@pytest.mark.parametrize(
    ("spec", "pair", "step"),
    [("tertium-multi:against=reference", "en-de", 45), ("tertium-small", "zh-en", 20)],
)
def test_experts_scores_of_talks_agree_far_better_with_it(
    human_data: Path, spec: str, pair: str, step: int
) -> None:
    """r by the reference; on 2,743 rows .234 and .411, on 1,945 .281 and .415."""
    file = human_data / f"modern/dev/mqm/ted21/{pair}.jsonl.gz"
    records = [(where, r) for where, r in read_records(file) if r.get("reference")][::step]
    segments = [segment_from_record(record, where) for where, record in records]
    human = np.array([record["score"] for _, record in records], float)
    metric = load_metric(spec)
    by_crowds, by_experts = metric.score(segments).segments, -metric.mqm_points(segments)  # type: ignore[attr-defined]
    gained = np.corrcoef(human, by_experts)[0, 1] - np.corrcoef(human, by_crowds)[0, 1]
    assert gained > 0.05
