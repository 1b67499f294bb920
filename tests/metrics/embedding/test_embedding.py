"""Common behavior of embedding metrics: sides, references, warnings, signatures, explanations."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import MissingInputError, UsageError
from tertium.core.segment import Segment
from tertium.metrics import load_metric
from tertium.metrics.base.text_warnings import count_flags
from tertium.metrics.embedding.bertscore import BERTR
from tertium.metrics.embedding.embedding_metric import EmbeddingMetric
from tertium.metrics.embedding.optimal_transport import WMD
from tertium.metrics.embedding.sentsim import SSS

NAMES = ("bertr", "bertscore", "wmd", "wmdo", "smd", "sss", "sentsim")
BOTH = Segment("a b c", "a b", ("c d",))


def toy(name: str, **fields: object) -> EmbeddingMetric:
    metric = load_metric(name, encoder="toy", **fields)
    assert isinstance(metric, EmbeddingMetric)
    return metric


@pytest.mark.parametrize("name", NAMES)
def test_both_is_the_mean_of_reference_and_source(name: str) -> None:
    sides = [toy(name, against=side).score([BOTH]).system for side in ("reference", "source")]
    assert toy(name, against="both").score([BOTH]).system == pytest.approx(np.mean(sides))


def test_idf_weights_of_each_side_come_from_its_own_texts() -> None:
    segments = [BOTH, Segment("the dog sat", "der Hund saß", ("the dog sat down",))]
    values = {
        side: toy("bertscore", idf=True, against=side).score(segments).segments
        for side in ("reference", "source", "both")
    }
    np.testing.assert_allclose(values["both"], (values["reference"] + values["source"]) / 2)


@pytest.mark.parametrize("name", NAMES)
def test_auto_uses_references_if_there_are_any(name: str) -> None:
    auto = toy(name)
    drop_without_references = toy(name, against="reference").score([BOTH]).system
    assert auto.score([BOTH]).system == drop_without_references
    bare = Segment(BOTH.hypothesis, BOTH.source)
    assert auto.score([bare]).system == toy(name, against="source").score([bare]).system


def test_auto_refuses_mixed_inputs() -> None:
    with pytest.raises(MissingInputError, match="segment 2 has no references"):
        toy("sss").score([BOTH, Segment("x", "y")])
    with pytest.raises(MissingInputError, match="neither"):
        toy("sss").score([Segment("x")])
    # the message names the setting that requires the input
    with pytest.raises(
        MissingInputError, match=r"^sss:.*against=both needs the source, and segment 1"
    ):
        toy("sss", against="both").score([Segment("x", None, ("y",))])
    with pytest.raises(
        MissingInputError, match=r"^tertium-multi:against=both needs references.*inputs of each\)$"
    ):
        load_metric("tertium-multi:against=both").check([Segment("x", "y")])


@pytest.mark.parametrize("name", NAMES)
def test_two_references_are_best_or_mean(name: str) -> None:
    two = Segment("a b c", None, ("a b d", "x y"))
    single = [toy(name).score([Segment("a b c", None, (r,))]).system for r in two.references]
    best = max(single) if toy(name).higher_is_better else min(single)
    assert toy(name).score([two]).system == pytest.approx(best)
    mean = toy(name, references="mean").score([two]).system
    assert mean == pytest.approx(np.mean(single))


@pytest.mark.parametrize("name", NAMES)
def test_texts_without_known_words_have_defined_scores(name: str, tmp_path: Path) -> None:
    vectors = tmp_path / "v.txt"
    vectors.write_text("cat 1 0\ndog 0 1\n", encoding="utf-8")
    metric = load_metric(name, encoder=f"file/{vectors}")
    rows = [("zebra", "cat"), ("zebra", "zebra"), ("cat", "cat"), ("dog", "cat")]
    scores = metric.score([Segment(h, None, (r,)) for h, r in rows])
    assert np.isfinite(scores.segments).all()
    unknown, equal, same, other = scores.segments if metric.higher_is_better else -scores.segments
    assert unknown <= other < same
    assert equal == pytest.approx(same, abs=0.11)  # WMDO of a single word differs
    assert scores.flags["unknown word"].tolist() == [True, True, False, False]


def test_warnings_count_translations(tmp_path: Path) -> None:
    vectors = tmp_path / "v.txt"
    vectors.write_text("cat 1 0\n", encoding="utf-8")
    segment = Segment("cat zebra", "cat Katze Hund " + "cat " * 3000, ("cat gnu emu",))
    scores = SSS(encoder=f"file/{vectors}", against="both").score([segment])
    assert scores.warnings["unknown word"] == 1
    assert scores.warnings["truncated text"] == 1
    long = Segment("Привет, мир" + " cat" * 3000, "cat", ("cat",))
    for encoder in (f"file/{vectors}", "minilm@1"):
        scores = SSS(encoder=encoder, against="both").score([long])
        assert scores.warnings["truncated text"] == 1
        assert "|trunc:1|" in scores.signature
    assert scores.warnings["language unknown to minilm"] == 1


@pytest.mark.parametrize("spec", ["bertscore:encoder=minilm@1", "esim", "meteor:synonyms=false"])
def test_metrics_for_english_count_references_in_other_languages(spec: str) -> None:
    """Also those in Latin script."""
    metric = load_metric(spec)
    kind = "reference not English" if spec.startswith("meteor") else "language unknown to minilm"
    german = ("Die Katze sitzt auf der Matte.", "Wir gehen heute Abend ins Kino.")
    english = ("The cat sits on the mat.", "We are going to the cinema tonight.")
    foreign = [Segment(text, references=(text,)) for text in german]
    assert count_flags(metric.flags(foreign)) == {kind: 2}
    ours = [Segment(text, references=(text,)) for text in english]
    assert count_flags(metric.flags(ours)) == {}
    clearly = "Die Katze sitzt seit heute Morgen auf der Matte vor der Tür."
    assert count_flags(metric.flags([*ours * 5, Segment(clearly, references=(clearly,))])) == {
        kind: 1
    }
    if spec.startswith("meteor"):
        assert count_flags(load_metric(spec, language="de").flags(foreign)) == {}


def test_unsupported_language_pair_is_counted() -> None:
    segment = Segment("a cat", "yksi kissa")
    assert SSS(encoder="use", lp="fi-en").score([segment]).warnings == {
        "language unknown to use": 1
    }
    assert SSS(encoder="use", lp="de-en").score([segment]).warnings == {}
    # Against the reference the source language does not matter.
    referenced = Segment("a cat", "yksi kissa", ("the cat",))
    assert SSS(lp="fi-en").score([referenced]).warnings == {}
    with pytest.raises(UsageError, match="de-en"):
        SSS(lp="fi")


LONG_ENGLISH = "The old train to the coast leaves at seven in the morning, rain or shine."
LONG_GERMAN = "Der alte Zug an die Küste fährt bei jedem Wetter um sieben Uhr morgens ab."
LONG_FINNISH = "Vanha juna rannikolle lähtee aamulla seitsemältä, satoi tai paistoi."


@pytest.mark.parametrize("name", NAMES)
def test_wrong_language_penalty_moves_the_score_towards_unrelated_texts(name: str) -> None:
    wrong, correct = Segment(LONG_GERMAN, LONG_GERMAN), Segment(LONG_ENGLISH, LONG_GERMAN)
    shares = (0.0, 0.3, 1.0)
    metrics = [
        toy(name, against="source", lp="de-en", wrong_language_penalty=share) for share in shares
    ]
    free, partial, full = (metric.score([wrong, correct]).segments for metric in metrics)
    assert free[1] == partial[1] == full[1]
    blank = metrics[0].score([Segment(LONG_ENGLISH, "")]).segments[0]  # unrelated texts
    assert full[0] == pytest.approx(blank)
    if name != "sentsim":  # which penalizes its components
        assert partial[0] == pytest.approx(free[0] + 0.3 * (blank - free[0]))
    sign = 1 if metrics[0].higher_is_better else -1
    assert sign * free[0] > sign * partial[0] > sign * full[0]


def test_wrong_language_penalty_is_in_the_signature() -> None:
    segments = [Segment(LONG_GERMAN, LONG_GERMAN), Segment(LONG_ENGLISH, LONG_FINNISH)]
    scores = toy("sss", against="source", lp="de-en").score(segments)
    assert scores.warnings == {
        "hypothesis equals source": 1,
        "source not in de": 1,
        "translation not in en": 1,
    }
    assert "|astray:0.3|" in scores.signature
    free = toy("sss", against="source", lp="de-en", wrong_language_penalty=0.0).score(segments)
    assert (free.warnings, "astray" in free.signature) == (scores.warnings, False)
    # The penalty needs a language pair, and does not apply to references.
    assert "astray" not in toy("sss", against="source").score(segments).signature
    referenced = [Segment(LONG_GERMAN, LONG_GERMAN, (LONG_GERMAN,))]
    assert toy("sss", lp="de-en").score(referenced).system == pytest.approx(1)
    assert "astray" not in toy("sss", lp="de-en").score(referenced).signature


def test_settings_that_give_other_scores_have_other_signatures() -> None:
    segments = [Segment(LONG_GERMAN, LONG_GERMAN), Segment(LONG_ENGLISH, LONG_FINNISH)]
    variants = (
        {"lp": "de-fi"},
        {"lp": "en-de"},
        {"wrong_language_penalty": 0.3000001},
        {"wrong_language_penalty": 1.0},
    )
    results = [
        toy("sss", **{"against": "source", "lp": "de-en", **variant}).score(segments)
        for variant in ({}, *variants)
    ]
    assert len({scores.signature for scores in results}) == len(results)
    assert len({scores.segments.tobytes() for scores in results}) == len(results)
    assert "|lp:de-en|astray:0.3|" in results[0].signature
    assert "|astray:1|" in results[-1].signature
    idle = [
        toy("sss", against="source", lp=lp, wrong_language_penalty=0.0) for lp in ("de-en", "de-fi")
    ]
    assert len({metric.score(segments).signature for metric in idle}) == 1


def test_mixed_language_text_is_counted() -> None:
    mixed = Segment(f"{LONG_ENGLISH * 2} {LONG_FINNISH * 2}", LONG_GERMAN * 4)
    assert toy("sss", against="source").score([mixed]).warnings == {"text of two languages": 1}


def test_unsupported_language_is_detected_from_the_text() -> None:
    metric = SSS(encoder="use", against="source")
    assert count_flags(metric.flags([Segment(LONG_ENGLISH, LONG_FINNISH)])) == {
        "language unknown to use": 1
    }
    assert not count_flags(metric.flags([Segment(LONG_ENGLISH, LONG_GERMAN)]))


@pytest.mark.parametrize(
    ("lp", "complaint"),
    [
        ("xx-en", "lp=xx-en: 'xx' is not an ISO 639-1 language code such as de"),
        ("de-english", "lp=de-english: 'english' is not an ISO 639-1 language code"),
        ("deu_Latn-en", "'deu_Latn' is not an ISO 639-1 language code such as de; write de"),
        ("pt-br-en", "such as de-en, two codes without region or script"),
        ("de-en-fr", "lp=de-en-fr: expected a language pair such as de-en"),
    ],
)
@pytest.mark.parametrize("name", [*NAMES, "tertium-multi"])
def test_invalid_language_pair_raises_an_error(name: str, lp: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        load_metric(f"{name}:lp={lp}")


def test_source_in_an_unsupported_script_is_counted() -> None:
    metric = SSS(encoder="use")
    assert metric.score([Segment("a cat", "\u0db4\u0dd6\u0dc3\u0dcf")]).warnings == {
        "language unknown to use": 1
    }
    assert metric.score([Segment("a cat", "\u732b")]).warnings == {}


def test_empty_source_is_counted_and_has_a_defined_score() -> None:
    scores = SSS(encoder="use").score([Segment("a cat", "")])
    assert scores.warnings == {"empty source": 1}
    assert scores.system == 0.0


def test_signature_contains_both_sides() -> None:
    signature = SSS(against="both").score([Segment("a cat", "eine Katze", ("the cat",))]).signature
    assert "|against:reference+source|model:minilm@" in signature
    assert "|srcmodel:e5@" in signature


def test_links_connect_matching_pieces() -> None:
    explanation = BERTR(encoder="minilm@4").explain(Segment("A cat sat.", None, ("The cat sat.",)))
    (comparison,) = explanation.comparisons
    assert comparison.hypothesis_pieces == ("a", "cat", "sat", ".")
    values = {link.other: link.hypothesis for link in comparison.links}
    assert (values[1], values[2], values[3]) == (1, 2, 3)
    assert {link.direction for link in comparison.links} == {"recall"}
    mean = sum(link.similarity * link.weight for link in comparison.links)
    assert mean == pytest.approx(explanation.score, abs=1e-6)


def test_explanation_of_an_empty_text_has_no_links() -> None:
    explanation = WMD(encoder="toy").explain(Segment("", None, ("a b",)))
    assert explanation.score == 2.0
    assert explanation.comparisons[0].links == ()
