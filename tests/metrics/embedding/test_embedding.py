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


FINNISH, GERMAN, SINHALA = "yksi kissa", "eine Katze", "\u0db4\u0dd6\u0dc3\u0dcf"
UNSUPPORTED = "language unknown to use"
MIXED = f"{LONG_ENGLISH * 2} {LONG_FINNISH * 2}"


@pytest.mark.parametrize(
    ("lp", "segment", "warnings"),
    [
        ("fi-en", Segment("a cat", FINNISH), [UNSUPPORTED]),
        ("de-en", Segment("a cat", FINNISH), []),
        ("", Segment("a cat", SINHALA), [UNSUPPORTED]),
        ("", Segment("a cat", "\u732b"), []),
        ("", Segment("a cat", ""), ["empty source"]),
        ("", Segment(LONG_ENGLISH, LONG_FINNISH), [UNSUPPORTED]),
        ("", Segment(LONG_ENGLISH, LONG_GERMAN), []),
        ("", Segment(MIXED, LONG_GERMAN * 4), ["text of two languages"]),
        ("de-en", Segment(LONG_GERMAN, "Hallo"), ["translation not in en"]),
        ("de-en", Segment(LONG_ENGLISH, LONG_FINNISH), ["source not in de"]),
    ],
)
def test_languages_of_the_pair_or_of_the_text(
    lp: str, segment: Segment, warnings: list[str]
) -> None:
    metric = SSS(encoder="use", lp=lp, against="source")
    assert metric.score([segment]).warnings == dict.fromkeys(warnings, 1)


def test_the_language_of_the_source_does_not_matter_to_references() -> None:
    referenced = [Segment(LONG_GERMAN, LONG_GERMAN, (LONG_GERMAN,))]
    scores = toy("sss", lp="de-en").score(referenced)
    assert scores.system == pytest.approx(1)
    assert "astray" not in scores.signature
    assert "astray" not in toy("sss", against="source").score(referenced).signature
