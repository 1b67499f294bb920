"""tertium-multi: bundled weights, input modes, windows, error spans and warnings."""

from __future__ import annotations

import dataclasses
import json
from itertools import pairwise

import numpy as np
import pytest
from tests.builders import record_calls
from tests.short_windows import MAX_PIECES, short_windows

from tertium.core.errors import MissingInputError
from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.encoders.vector_cache import clear_memory
from tertium.metrics.base.loading import load_metric
from tertium.metrics.bundled.input_rows import INPUT_MODES
from tertium.metrics.bundled.row_scorer import RowScorer, piece_errors, row_features
from tertium.metrics.bundled.tertium_multi import TertiumMulti
from tertium.metrics.bundled.tertium_small import TertiumSmall

pytest.importorskip("torch")
SOURCE = "Der Zug nach Hamburg fährt heute nicht um 14 Uhr ab."
REFERENCE = "The train to Hamburg is not leaving at 2 pm today."
GOOD = "The train to Hamburg does not leave at 14:00 today."


@pytest.fixture(scope="module")
def metric() -> TertiumMulti:
    return TertiumMulti()


@pytest.mark.parametrize(("precision", "atol"), [("int8", 0.0), ("fp32", 1e-4)])
def test_batches_and_threads_do_not_change_scores(
    precision: str, atol: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric = TertiumMulti(precision=precision)  # type: ignore[arg-type]
    texts = (GOOD, "train leaves not", "", "word " * 40)
    inputs = ((SOURCE, REFERENCE), (SOURCE, None), (None, REFERENCE))
    rows = [(text, *others) for text in texts for others in inputs]
    single = []
    for row in rows:
        clear_memory()
        with runtime(cache=False, memory=0, threads=1):
            single.append(metric.raw_scores([row])[0])
    monkeypatch.setattr("tertium.metrics.bundled.row_scorer.PIECES_IN_MEMORY", 90)
    monkeypatch.setattr("tertium.metrics.bundled.row_scorer.PIECES_PER_BATCH", 200)
    clear_memory()
    with runtime(cache=False, memory=0, threads=2):
        batched = [metric.raw_scores(rows[mode::3][::-1])[::-1] for mode in range(3)]
    np.testing.assert_allclose(np.ravel(batched, "F"), single, rtol=0, atol=atol)


@pytest.mark.parametrize("mode", INPUT_MODES)
@pytest.mark.parametrize(
    "damaged", ["The train to Hamburg leaves at 14:00 today.", "train leaves not", "", SOURCE]
)
def test_damage_lowers_every_score(metric: TertiumMulti, mode: str, damaged: str) -> None:
    variant = dataclasses.replace(metric, against=mode)  # type: ignore[arg-type]
    segments = [Segment(text, SOURCE, (REFERENCE,)) for text in (GOOD, damaged)]
    result = variant.assess(segments)
    assert result["score"][0] > result["score"][1]
    assert result["no error"][0] > result["no error"][1]


def test_input_mode_follows_the_inputs(metric: TertiumMulti) -> None:
    both = Segment(GOOD, SOURCE, (REFERENCE,))
    for mode, segment in (
        ("both", both),
        ("source", Segment(GOOD, SOURCE)),
        ("reference", Segment(GOOD, None, (REFERENCE,))),
    ):
        explicit = dataclasses.replace(metric, against=mode)  # type: ignore[arg-type]
        assert metric.input_mode([segment]) == mode
        assert metric.score([segment]).system == explicit.score([both]).system
    assert not metric.required_inputs
    assert load_metric("tertium-multi:against=both").required_inputs == {"source", "references"}
    assert "|against:source+reference|" in metric.score([both]).signature
    with pytest.raises(
        MissingInputError, match="segment 2 has no references, but other segments have"
    ):
        metric.score([both, Segment(GOOD, SOURCE)])
    with pytest.raises(MissingInputError, match="neither"):
        metric.score([Segment(GOOD)])


def test_windows_of_a_long_text_are_averaged_by_length(metric: TertiumMulti) -> None:
    row = (f"{GOOD} " * 6, f"{SOURCE} " * 5, None)
    with short_windows():
        scorer = metric.reader
        pieces = {text: scorer.tokenizer([text])[0] for text in row[:2]}
        windows = scorer._split_windows(row, pieces)
        assert len(windows) > 1
        assert all(len(ids) <= MAX_PIECES for window in windows for _, ids in window)
        ids = [tuple(i for window in windows for i in window[side][1]) for side in (0, 1)]
        assert ids == [scorer.tokenizer([text])[0].ids for text in row[:2]]
        [features] = row_features([row], np.zeros(1)).astype(np.float32)
        parts = scorer._run_network([(window, features) for window in windows])
        sizes = [len(window[0][1]) for window in windows]
        [output] = metric.raw_outputs([row])
    mean = np.average([float(part.score) for part in parts], weights=sizes)
    assert output[0] == pytest.approx(mean, abs=1e-6)
    assert (
        len(piece_errors(output)) == sum(sizes) == len(scorer.tokenizer.token_offsets([row[0]])[0])
    )


def test_paragraph_in_windows_scores_like_its_sentences(metric: TertiumMulti) -> None:
    """Windows of translation and source are aligned."""
    paragraph = Segment(f"{GOOD} " * 6, f"{SOURCE} " * 6)
    short = Segment(GOOD, SOURCE)
    wrong = Segment("The weather stays fine until Sunday evening. " * 9, f"{SOURCE} " * 6)
    with short_windows():
        long_score, short_score, wrong_score = metric.segment_scores([paragraph, short, wrong])
    assert abs(long_score - short_score) < 0.2
    assert long_score > wrong_score + 0.05


def test_spans_need_no_second_pass(metric: TertiumMulti, monkeypatch: pytest.MonkeyPatch) -> None:
    segments = [
        Segment("A Hund sits on the table.", "Ein Hund sitzt auf dem Tisch."),
        Segment("", SOURCE),
        Segment("Der 🚆 fährt nicht", SOURCE),
    ]
    metric = dataclasses.replace(metric, all_spans=True)
    clear_memory()
    with runtime(cache=False):
        scores = metric.score(segments)
        monkeypatch.setattr(RowScorer, "__call__", lambda *_: pytest.fail("a second pass"))
        spans = metric.mark_errors(segments)
    assert np.isfinite(scores.segments).all()
    assert not spans[1]
    assert spans[0]
    assert spans[2]
    for segment, marked in zip(segments, spans, strict=True):
        for span in marked:
            part = span.of(segment.hypothesis)
            assert part == part.strip() != ""
            assert span.severity in ("minor", "major")
            assert span.chance is not None
            assert span.chance >= metric.settings.spans["mqm"]["source"]["germanic"].wrong
        assert all(a.end <= b.start for a, b in pairwise(marked))


def test_each_row_is_computed_once(metric: TertiumMulti, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = record_calls(monkeypatch, RowScorer, "__call__")
    clear_memory()
    with runtime(cache=False, memory=0):
        metric.score([Segment("Es regnet.", None, ("It rains.",)), Segment("", None, ("Rain.",))])
    computed = [row for _, rows in calls for row in rows]
    assert len(computed) == len(set(computed)) == 2


def test_only_precise_spans_are_marked_by_default(metric: TertiumMulti) -> None:
    segments = [
        Segment("He Haus gegangen was the Auto yesterday blue.", "Il est rentré chez lui hier."),
        Segment("Green ideas the sleeping is furiously Katze of of.", "Les chats dorment ici."),
    ]
    words = dataclasses.replace(metric, marks="words", lp="fr-en")
    everything = dataclasses.replace(words, all_spans=True)
    precise, all_spans = words.mark_errors(segments), everything.mark_errors(segments)
    limits = metric.settings.spans["words"]["source"]["germanic"]
    assert limits.precise is not None
    assert limits.precise > limits.wrong
    assert any(precise)
    assert all(span.chance >= limits.precise for own in precise for span in own)
    lengths = [sum(len(span) for own in marked for span in own) for marked in (precise, all_spans)]
    assert lengths[0] < lengths[1]
    # a language family without a choice set, and a scheme that never reaches the precision
    assert dataclasses.replace(words, lp="fr-eu").mark_errors(segments) == [(), ()]
    assert dataclasses.replace(words, lp="fr-eu", all_spans=True).mark_errors(segments) != [(), ()]
    assert dataclasses.replace(metric, lp="fr-en").mark_errors(segments) == [(), ()]
    scores, other = words.score(segments), everything.score(segments)
    assert scores.segments.tolist() == other.segments.tolist()
    assert scores.signature == other.signature
    assert "tertium-multi:lp=fr-en,marks=words,all_spans=true" in words.span_note
    assert not everything.span_note


def test_language_of_spans_is_detected_without_a_language_pair(metric: TertiumMulti) -> None:
    hypothesis = "Das Haus ist on the Straße gestern blue und sie gehen nicht nach Hause gehen."
    segment = Segment(hypothesis, "The house was on the street yesterday and they did not go home.")
    detected = dataclasses.replace(metric, marks="words").mark_errors([segment])
    assert detected == dataclasses.replace(metric, marks="words", lp="en-de").mark_errors([segment])


def test_wrong_language_output_is_counted_and_penalized() -> None:
    french = "Le train pour Hambourg ne part pas aujourd'hui à 14 heures."
    copy = f"{SOURCE} Er fährt morgen."
    segments = [Segment(text, SOURCE) for text in (GOOD, french, copy, "Hamburg")]
    with_pair = TertiumMulti(lp="de-en")
    result, plain = with_pair.assess(segments), TertiumMulti().assess(segments)
    assert result["score"][0] == plain["score"][0]
    assert result["score"][3] == plain["score"][3]
    assert (result["score"][1:3] < plain["score"][1:3]).all()
    assert (result["score"][1:3] < 0.5 * result["score"][0]).all()
    assert (result["no error"][1:3] < 0.03).all()
    scores = with_pair.score(segments)
    assert scores.warnings["translation not in en"] == 2
    assert json.loads(json.dumps(scores.warnings)) == scores.warnings
    assert "|lp:de-en|" in scores.signature
    assert with_pair.segment_scores([Segment(french, None, (french,))])[0] == 1.0


def test_names_are_not_taken_for_wrong_language_output() -> None:
    texts = ("Microsoft Azure DevOpsを使う", "Microsoft Azure DevOps", "IBM", "#TrainsAndTracks")
    segments = [Segment(text, "Use Microsoft Azure DevOps") for text in texts]
    result, plain = TertiumMulti(lp="en-ja").assess(segments), TertiumMulti().assess(segments)
    expected = [True, False, True, True]
    assert (result["score"] == plain["score"]).tolist() == expected
    assert (result["no error"] == plain["no error"]).tolist() == expected


def test_missing_inputs_raise_an_error(metric: TertiumMulti) -> None:
    for predict in (metric.assess, metric.mqm_points, TertiumSmall().mqm_points):
        with pytest.raises(MissingInputError, match="segment 1 has n"):
            predict([Segment(GOOD)])


def test_explanation_has_the_predictions_for_each_reference(metric: TertiumMulti) -> None:
    explanation = metric.explain(Segment(GOOD, SOURCE, (REFERENCE, "A train.")))
    assert [c.text for c in explanation.comparisons] == [REFERENCE, "A train."]
    assert [c.combined_with for c in explanation.comparisons] == ["source", "source"]
    values = explanation.comparisons[0].values
    assert set(values) == {"score", "uncertainty", "percentile", "no error", "MQM points"}
    assert "reference 'A train.': with the source, score" in str(explanation)
    [source] = metric.explain(Segment(GOOD, SOURCE)).comparisons
    assert (set(source.values), source.side, source.combined_with) == (set(values), "source", "")
