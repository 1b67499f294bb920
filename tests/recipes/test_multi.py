"""Parts of the tertium-multi recipe: overlap, vocabulary, losses, compression."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from recipes.multi import losses, ship  # noqa: E402
from recipes.multi.e5 import BLOCK_BYTES, Published, prune  # noqa: E402
from recipes.multi.network import TAGS, Prediction  # noqa: E402
from recipes.multi.pack import HeldOut, Packed, normalize_text  # noqa: E402
from recipes.multi.spans import (  # noqa: E402
    MIN_SPANS,
    MarkedSet,
    calibrate_severity,
    choose,
    choose_precise,
    count_all,
)

from tertium.metrics.flagship.error_spans import (  # noqa: E402
    ERROR_COLUMNS,
    MAJOR,
    WRONG,
)
from tertium.metrics.flagship.row_scorer import RowScorer  # noqa: E402
from tertium.metrics.flagship.scales import ErrorPenalty, NoErrorProbability  # noqa: E402
from tertium.metrics.flagship.tertium_multi import TertiumMulti  # noqa: E402


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


def test_packed_scores_are_standardized_and_texts_deduplicated() -> None:
    packed = Packed()
    rows = [record(score=1.0), record(score=3.0, hypothesis="The dog.")]
    packed.add("set/de-en", "da", rows)
    assert packed.columns["score"] == [-1.0, 1.0]
    assert packed.texts.lines == ["Der Hund.", "The dog.", "A dog."]
    assert packed.columns["hypothesis"][1] == packed.columns["reference"][0]
    spans = [{"start": 0, "end": 1, "side": "hypothesis", "severity": "critical"}]
    packed.add("marked", "mqm", [record(spans=spans), record(spans=[])], standardize=False)
    assert packed.columns["clean"][2:] == [0, 1]
    assert packed.spans == [(2, 0, 1, 2, 0, 1.0)]


def test_prune_keeps_wanted_pieces_and_single_characters(tmp_path: Path) -> None:
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁dog", "▁cat", "a", "▁b", "<mask>"]
    table = np.random.default_rng(1).integers(0, 255, (len(pieces), BLOCK_BYTES), np.uint8)
    published = Published(pieces, np.zeros(len(pieces), np.float32), {}, {"emb.word": table}, 32)
    settings = {
        "model": {"vocab": [[p, -1.0] for p in pieces]},
        "added_tokens": [{"content": "<mask>"}, {"content": "<s>"}],
    }
    (tmp_path / "full.json").write_text(json.dumps(settings), encoding="utf-8")
    prune(published, tmp_path / "full.json", ["▁dog"], tmp_path / "out")
    found = json.loads((tmp_path / "out" / "tokenizer.json").read_text(encoding="utf-8"))
    assert [p for p, _ in found["model"]["vocab"]] == [*pieces[:5], "a", "▁b"]
    assert found["added_tokens"] == [{"content": "<s>"}]
    with np.load(tmp_path / "out" / "e5.npz") as stored:
        assert (stored["emb.word"] == table[[0, 1, 2, 3, 4, 6, 7]]).all()


def make_prediction(scores: list[list[float]]) -> Prediction:
    values = torch.tensor(scores)
    zeros = torch.zeros(len(scores), 2, TAGS)
    return Prediction(values, torch.zeros_like(values), values[:, 0], zeros, torch.ones(2, 2) > 0)


def test_score_loss_ignores_nan_and_bounds_unrelated_scores() -> None:
    targets = torch.tensor([[math.nan, 1.0, math.nan], [-2.5, math.nan, math.nan]])
    weights = torch.ones(2)
    found = losses.score_loss(
        make_prediction([[5.0, 1.0, 5.0], [-4.0, 0.0, 0.0]]), targets, weights
    )
    assert float(found) == 0.0
    assert float(losses.score_loss(make_prediction([[0.0] * 3] * 2), targets, weights)) > 1.0


def test_pair_loss_is_bradley_terry() -> None:
    pairs = torch.tensor([[0.0, 1.0, 1.0, 1.0]])
    found = losses.pair_loss(make_prediction([[1.0] * 3, [0.0] * 3]), pairs)
    assert float(found) == pytest.approx(math.log1p(math.exp(-losses.LOGISTIC_SLOPE)), rel=1e-5)


def test_margin_loss_is_the_shortfall() -> None:
    margins = torch.tensor([[0.0, 1.0, 0.5]])
    assert float(losses.margin_loss(make_prediction([[1.0] * 3, [0.4] * 3]), margins)) == 0.0
    short = losses.margin_loss(make_prediction([[1.0] * 3, [0.8] * 3]), margins)
    assert float(short) == pytest.approx(0.3, rel=1e-4)


def test_no_error_probability_recovers_its_parameters() -> None:
    rng = np.random.default_rng(1)
    sums, probability = -rng.lognormal(-2, 1, 20_000), NoErrorProbability(half=0.1, slope=1.5)
    truths = (rng.random(len(sums)) < probability(sums)).astype(float)
    found = ship.fit_no_error_probability(sums, truths)
    assert found["slope"] == pytest.approx(1.5, abs=0.05)
    assert found["half"] == pytest.approx(0.1, abs=0.005)


def test_compress_keeps_scale_mixture_no_error_output_and_tags() -> None:
    last = torch.arange(7.0)[:, None].repeat(1, 4)
    trained = {
        "head.last.weight": last,
        "head.last.bias": torch.arange(7.0),
        "tagger.0.weight": torch.ones(2, 2),
    }
    table = np.random.default_rng(1).integers(0, 255, (24, BLOCK_BYTES), np.uint8)
    table[:, 1] &= 0x3B  # finite scales
    compact = ship.compress(trained, table, {"da": 1.0, "mqm": 0.0, "esa": 0.0})
    assert compact["network.head.last.bias"].tolist() == [0.0, 6.0]
    mixed = ship.compress(trained, table, {"da": 0.5, "mqm": 0.25, "esa": 0.25})
    assert mixed["network.head.last.bias"].tolist() == [0.75, 6.0]
    assert mixed["network.head.last.weight"].shape == (2, 4)
    assert (compact["network.tagger.0.weight"] == 1).all()
    assert compact["words.nibbles"].shape == (2, 12, 16)
    rows = table.reshape(2, 12, BLOCK_BYTES)
    assert (compact["words.nibbles"].numpy() == rows[..., 2:]).all()
    assert (compact["words.scales"].numpy().view(np.uint8).reshape(2, 12, 2) == rows[..., :2]).all()


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
