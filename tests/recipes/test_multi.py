"""Parts of the tertium-multi recipe: overlap, calibration, error spans."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from recipes.multi import ship
from recipes.multi.judgments import HeldOut, normalize_text
from recipes.multi.spans import (
    MIN_SPANS,
    MarkedSet,
    calibrate_severity,
    choose,
    choose_precise,
    count_all,
)

from tertium.metrics.bundled.row_scorer import RowScorer
from tertium.metrics.bundled.scales import (
    ERROR_COLUMNS,
    MAJOR,
    WRONG,
    ErrorPenalty,
    NoErrorProbability,
)
from tertium.metrics.bundled.tertium_multi import TertiumMulti


def record(**changes: object) -> dict[str, object]:
    plain = {
        "lp": "de-en",
        "source": "Der Hund.",
        "reference": "The dog.",
        "hypothesis": "A dog.",
        "segment": "1",
        "system": "a",
        "score": 1.0,
    }
    return {**plain, **changes}


def test_overlap_by_reference_or_by_source_of_the_same_pair() -> None:
    held_out = HeldOut()
    held_out.add([record()])
    assert held_out.overlaps(record(source="Ein anderer.", reference="“The DOG”"))
    assert held_out.overlaps(record(reference="Another one."))
    assert not held_out.overlaps(record(lp="de-fr", reference="Un chien."))
    assert held_out.overlaps(record(lp="en-de", source="the dog", reference="Etwas."))
    assert normalize_text("It’s  over!") == normalize_text("its over")


def test_no_error_probability_recovers_its_parameters() -> None:
    rng = np.random.default_rng(1)
    sums, probability = -rng.lognormal(-2, 1, 20_000), NoErrorProbability(half=0.1, slope=1.5)
    truths = (rng.random(len(sums)) < probability(sums)).astype(float)
    found = ship.fit_no_error_probability(sums, truths)
    assert found["slope"] == pytest.approx(1.5, abs=0.05)
    assert found["half"] == pytest.approx(0.1, abs=0.005)


def test_expert_scores_are_scaled_to_unit_interval(tmp_path: Path) -> None:
    folder = tmp_path / "modern/dev/mqm/talks"
    folder.mkdir(parents=True)
    lines = [json.dumps(record(score=score, reference=None)) for score in (0.0, -5.0, -75.0)]
    with gzip.open(folder / "de-en.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    scored_rows = ship.read_expert_scores(tmp_path, 10)
    assert sorted(score for _, score in scored_rows) == [0.0, 0.8, 1.0]
    assert len(ship.read_expert_scores(tmp_path, 2)) == 2


def test_expert_maps_are_increasing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raw scores that predict expert scores, with lengths, give an increasing map."""
    rng = np.random.default_rng(6)
    quality = rng.normal(0, 0.5, 800)
    scored_rows = [(record(hypothesis=str(n)), float(n)) for n in range(len(quality))]
    metric = TertiumMulti(scale="mqm")
    pieces = rng.integers(5, 200, len(quality)).astype(float)
    left = 1 + ErrorPenalty(**ship.ERRORS)(quality, pieces, np.zeros(len(pieces), dtype=bool))
    monkeypatch.setattr(TertiumMulti, "raw_scores", lambda _, rows: quality)
    monkeypatch.setattr(RowScorer, "count_pieces", lambda _, rows: pieces)
    fitted = ship.fit_expert_mode(
        metric, [(row, left[int(n)]) for (row, n) in scored_rows], "source"
    )
    knots = fitted["calibration"]
    assert len(knots["raw"]) == ship.CALIBRATION_KNOTS
    assert knots["score"] == pytest.approx([1 + raw for raw in knots["raw"]], abs=1e-4)
    # what is left is the bend between knots, little where sums lie close
    assert min(fitted["uncertainty"]["deviation"]) < 0.01


def marked_set(rows: int, probabilities: list[float], wrong_words: set[int]) -> MarkedSet:
    """Rows of the same text: words of four letters with these probabilities, some annotated."""
    text = " ".join(["word"] * len(probabilities))
    places = [(5 * n, 5 * n + 4) for n in range(len(probabilities))]
    errors = np.zeros((len(places), ERROR_COLUMNS), np.float32)
    errors[:, WRONG["mqm"]] = probabilities
    errors[:, MAJOR["mqm"]] = 0.5 * np.array(probabilities)
    spans = [
        {"start": 5 * n, "end": 5 * n + 4, "side": "hypothesis", "severity": "minor"}
        for n in sorted(wrong_words)
    ]
    row = {"hypothesis": text, "spans": spans}
    return MarkedSet("ted21/en-de", [row] * rows, [places] * rows, [errors] * rows)


def test_shown_spans_are_confirmed_in_half_of_the_cases() -> None:
    """Every second word is suspected; with .9 and .6, one of two is confirmed; with .3, less."""
    dataset = marked_set(MIN_SPANS, [0.9, 0.0, 0.6, 0.0, 0.3, 0.0, 0.3], {0})
    counts = count_all([dataset], "mqm")
    assert counts[0.9 - 0.02][0].precision == 1.0
    assert counts[0.5][0].precision == 0.5
    assert counts[0.3][0].precision == pytest.approx(0.25)
    precise = choose_precise(counts)
    assert precise == 0.62  # at .6 and below, a standard error less than one half is confirmed
    assert choose_precise(count_all([marked_set(9, [0.9], {0})], "mqm")) is None  # too few spans
    wrong = marked_set(MIN_SPANS, [0.9, 0.0, 0.9], {1})
    assert choose_precise(count_all([wrong], "mqm")) is None
    assert choose_precise(count_all([dataset, wrong], "mqm")) is None  # in one dataset


def test_severities_are_as_frequent_as_annotators_say() -> None:
    dataset = marked_set(100, [0.9, 0.0, 0.6], {0, 2})
    for n in range(100):
        dataset.rows[n] = {**dataset.rows[n], "spans": [dict(s) for s in dataset.rows[n]["spans"]]}
        dataset.rows[n]["spans"][0]["severity"] = "major"
    threshold = calibrate_severity([dataset], "mqm", 0.5)
    assert threshold is not None
    assert 0.3 <= threshold <= 0.45  # shares of major errors: .45 and .3, half of each
    assert calibrate_severity([dataset], "words", 0.5) is None
    assert calibrate_severity([marked_set(3, [0.9], {0})], "mqm", 0.5) is None


def test_families_without_a_choice_set_show_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = choose([marked_set(100, [0.9, 0.0, 0.3], {0})], "mqm", "source")
    assert chosen["germanic"]["precise"] is not None
    assert chosen["other"]["precise"] is None
    assert chosen["germanic"]["wrong"] == chosen["other"]["wrong"]
    assert "mqm source germanic precise: precision 1.000" in capsys.readouterr().out
    assert choose([], "words", "both") == {}
