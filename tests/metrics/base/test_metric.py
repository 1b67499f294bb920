"""Empty translations score worst under every metric, and warnings are located in segments."""

from __future__ import annotations

import pytest

from tertium.core.segment import Segment
from tertium.evaluation.error_marking import mark_errors
from tertium.evaluation.explaining import explain
from tertium.evaluation.scoring import score
from tertium.metrics.base.capabilities import Explains
from tertium.metrics.base.explanation import EMPTY_TRANSLATION
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.scorer import flag_empty
from tertium.metrics.base.text_warnings import count_flags
from tertium.metrics.bundled.tertium_multi import TertiumMulti
from tertium.output.page.segment_browser import render_explanation
from tertium.text.language_identification import WRONG_LANGUAGE_WARNING

SOURCE = "Der Zug nach Hamburg fährt um sieben Uhr ab."
REFERENCE = "The train to Hamburg leaves at seven o'clock."
BLANK_TEXTS = ("", " \t", "\u3000\u00a0", "\u200b\ufeff")


@pytest.mark.parametrize("against", ["source", "reference", "both"])
@pytest.mark.parametrize("scale", ["da", "mqm"])
def test_empty_translation_is_a_critical_error(against: str, scale: str) -> None:
    metric = TertiumMulti(against=against, scale=scale)
    segments = [Segment(text, SOURCE, (REFERENCE,)) for text in (*BLANK_TEXTS, "Bananas swim.")]
    *empty, garbage = metric.score(segments).segments
    assert empty == [0.0] * len(BLANK_TEXTS)
    assert garbage > 0
    assert metric.mqm_points(segments[:2]).tolist() == [25.0, 25.0]
    result = metric.assess(segments)
    assert result["percentile"][0] == result["score"][0] == result["no error"][0] == 0.0
    explanation = explain(segments[1], metric=metric)
    assert (explanation.score, explanation.errors) == (0.0, (EMPTY_TRANSLATION,))
    values = explanation.comparisons[0].values
    assert (values["percentile"], values["MQM points"]) == (0.0, 25.0)
    assert explanation.marked_text is None  # not "errors: none"
    assert "critical error: empty translation" in str(explanation)
    assert "critical error: empty translation" in render_explanation(explanation)
    assert explanation.as_dict()["errors"][0]["severity"] == "critical"


@pytest.mark.parametrize("spec", ["tertium-small", "esim", "svr", "rte-r", "sss", "bertscore"])
def test_metrics_explain_an_empty_translation_by_its_score(spec: str) -> None:
    metric = load_metric(spec)
    segments = [Segment(text, None, (REFERENCE,)) for text in ("\u200b", "x", "Bananas swim.")]
    empty, *others = metric.score(segments).segments
    assert empty <= min(others)
    if isinstance(metric, Explains):
        explanation = metric.explain(segments[0])
        assert explanation.errors == (EMPTY_TRANSLATION,)
        assert explanation.score == empty
        assert not metric.explain(segments[2]).errors


def test_empty_translation_of_an_empty_text_is_right() -> None:
    """The references decide; without references or for a source-only metric, the source does."""
    metric = load_metric("tertium-multi")
    assert flag_empty(
        metric,
        [
            Segment("", SOURCE, (" ",)),
            Segment("", SOURCE, (" ", REFERENCE)),
            Segment("", "\u3000", (REFERENCE,)),
            Segment("", "\u3000"),
            Segment("", SOURCE),
        ],
    ).tolist() == [False, True, True, False, True]
    source_only = load_metric("tertium-multi", against="source")
    assert flag_empty(source_only, [Segment("", SOURCE, (" ",))]).all()
    assert metric.score([Segment("", None, ("",))]).segments.tolist() == [1.0]


def test_empty_translations_are_the_worst_in_lists_of_errors() -> None:
    texts = ["A Hund sits on the Tisch and und aber Kaffee.", "", REFERENCE]
    evaluation = score({"a": texts}, "tertium-multi", sources=[SOURCE] * 3)
    (marked,) = mark_errors(evaluation, [load_metric("tertium-multi")])
    assert marked.worst(3)[0].segment.hypothesis == ""
    assert marked.counts()["critical"] == 1


def test_counted_warnings_are_located() -> None:
    """Also those that depend on the other segments: the language of most translations."""
    icelandic = "Veðrið verður gott á morgun, en á föstudag rignir um allt land og hvessir."
    refusal = "I apologize, but I cannot translate that whole passage into Icelandic."
    hypotheses = [icelandic] * 9 + [refusal] + [icelandic] * 10
    segments = [Segment(text, SOURCE) for text in hypotheses]
    metric = load_metric("tertium-multi")
    assert count_flags(metric.flags(segments))[WRONG_LANGUAGE_WARNING] == 1
    located = metric.flags(segments)[WRONG_LANGUAGE_WARNING].tolist()
    assert located == [text == refusal for text in hypotheses]
