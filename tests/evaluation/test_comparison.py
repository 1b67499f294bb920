"""Human agreement with differences: bundled scales, wording, and when it is not shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import write_file

import tertium
from tertium.evaluation import comparison
from tertium.evaluation.comparison import find_scale, load_bundled_scales
from tertium.evaluation.judged import read_judged
from tertium.evaluation.metric_choice import load_metrics_for
from tertium.meta.difference_scales import DifferenceBin, DifferenceScale
from tertium.metrics.base import word_tokenizers
from tertium.metrics.base.capabilities import find_inputs
from tertium.metrics.base.loading import load_metric
from tertium.metrics.lexical.bleu_metric import BLEU
from tertium.output.html import render_page
from tertium.output.page.report import report_results
from tertium.output.text import render_table
from tertium.studies.good_decisions import fit_difference_scales


@pytest.fixture
def compared():
    words = "the cat sat on the mat while it was raining in the old town".split()
    references = [" ".join(words[n % 5 :]) for n in range(40)]
    worse = [r.replace("cat", "dog") for r in references]
    testset = tertium.TestSet({"base": worse, "ours": references}, [[r] for r in references])
    return tertium.compare(testset, "chrf", resamples=50)


def test_bundled_scales_of_default_metrics():
    for spec in ("bleu", "chrf"):
        for direction in ("into English", "not into English", "all"):
            scale = find_scale(spec, direction, "reference")
            assert scale.direction == direction
            assert scale.pairs > 100
    for scale in load_bundled_scales():
        shares = [b.agree for b in scale.bins]
        assert shares == sorted(shares)
        assert all(0 <= share <= 1 for share in shares)


ENGLISH = "The old train to the coast leaves at seven in the morning, rain or shine: "
GERMAN = "Der alte Zug an die Küste fährt bei jedem Wetter um sieben Uhr morgens ab: "


def lines_in(*texts: str) -> list[str]:
    return [f"{texts[n % len(texts)]} {n}." for n in range(40)]


@pytest.mark.parametrize(
    ("languages", "direction"),
    [
        ((ENGLISH,), "into English"),
        ((GERMAN,), "not into English"),
        ((ENGLISH, GERMAN), "all"),
        ((GERMAN, GERMAN, GERMAN, ENGLISH), "all"),
        ((ENGLISH, ENGLISH, ENGLISH, GERMAN), "all"),
    ],
)
def test_scale_direction_follows_the_target_languages(languages, direction):
    references = lines_in(*languages)
    worse = [r.replace("e", "a", 2) for r in references]
    testset = tertium.TestSet({"base": worse, "ours": references}, [[r] for r in references])
    match = tertium.compare(testset, ["chrf", "bleu"], resamples=20)
    assert {match.human_agreement(m, "ours")["direction"] for m in match.metrics} == {direction}


def test_directions_of_metrics_and_inputs(compared):
    result = tertium.compare(compared.testset, "ter", resamples=20)
    assert result.scores["ours"]["ter"].system < result.scores["base"]["ter"].system
    (line,) = result.agreement_lines()
    assert f"{result.scores['base']['ter'].system:.2f} TER better: humans agree in" in line
    for against, inputs in (("both", "source+reference"), ("source", "source")):
        metric = load_metric(f"tertium-multi:against={against}")
        assert find_inputs(metric, []) == inputs
        scale = find_scale(metric.spec, "into English", inputs)
        assert (scale is not None) == (against == "both")


def test_every_format_has_human_agreement(compared):
    difference = compared.difference("chrf", "ours")
    match = find_scale("chrf", "into English", "reference").find(difference)
    agreement = {"agree": match.agree, "pairs": match.pairs, "direction": "into English"}
    base, ours = compared.records()
    assert "people_agree" not in base
    assert ours["people_agree"] == agreement
    assert not compared.human_agreement("chrf", "ours", "ours")
    share = f"{100 * match.agree:.0f}"
    (line,) = compared.agreement_lines()
    assert line == (
        f"ours: {difference:.2f} chrF better: humans agree in {share} % of such "
        f"system pairs (n = {match.pairs:,}, into English)"
    )
    for style in ("text", "md", "latex"):
        assert f"humans agree in {share} %" in render_table(compared.comparison_table(), style)
    header, first, second = render_table(compared.comparison_table(), "tsv").splitlines()
    column = header.split("\t").index("chrF ↑ human agreement")
    assert (first.split("\t")[column], second.split("\t")[column]) == ("", str(match.agree))
    assert compared.human_agreement("chrf", "base", "ours")["agree"] == match.agree
    assert f"{share} %" in render_page(report_results(compared))


@pytest.mark.parametrize("count", [1, 29])
def test_few_segments_have_no_human_agreement(compared, count):
    """Scales were fitted on whole test sets and do not hold for single sentences."""
    few = tertium.compare(compared.testset.subset(range(count)), "chrf", resamples=20)
    assert few.difference("chrf", "ours") > 0
    assert not few.human_agreement("chrf", "ours")
    assert few.records()[1]["people_agree"] is None
    output = render_table(few.comparison_table(), "text")
    assert "humans agree in" not in output
    assert "fewer than 30 segments: human agreement with the difference not shown" in output
    lone = tertium.compare(few.testset, "nist", resamples=20)  # without any scale
    assert "human agreement" not in render_table(lone.comparison_table(), "text")


def as_multi(references, sources, spec="tertium-multi"):
    """Return a comparison by chrF that is read as one by tertium-multi, without its network."""
    outputs = {"base": lines_in(ENGLISH[:40]), "ours": lines_in(ENGLISH)}
    testset = tertium.TestSet.from_lists(outputs, sources, references)
    scored = tertium.score(outputs, "chrf", references=lines_in(ENGLISH))
    scores = {
        system: {spec: replace(own["chrf"], metric=spec, name="tertium-multi")}
        for system, own in scored.scores.items()
    }
    evaluation = replace(scored, testset=testset, metrics=(spec,), scores=scores)
    return comparison.compare_evaluation(evaluation, resamples=20)


@pytest.mark.parametrize("spec", ["tertium-multi", "tertium-multi:lp=de-en"])
def test_scales_hold_only_for_the_inputs_they_were_fitted_with(spec):
    references = lines_in(ENGLISH + "really")
    both = as_multi(references, lines_in(GERMAN), spec)
    assert both.human_agreement(spec, "ours")
    for own_references, sources in ((None, lines_in(GERMAN)), (references, None)):
        part = as_multi(own_references, sources, spec)
        assert not part.human_agreement(spec, "ours")
        for style in ("text", "md"):
            assert "humans agree" not in render_table(part.comparison_table(), style)
        assert part.records()[1]["people_agree"] is None


def test_retrained_metric_has_no_scale(monkeypatch):
    bins = (DifferenceBin(0.0, 1.0, 30, 0.7),)
    old = DifferenceScale(
        metric="chrf", direction="all", inputs="reference", bins=bins, learned=("other@1",)
    )
    monkeypatch.setattr(comparison, "load_bundled_scales", lambda: (old,))
    assert find_scale("chrf", "into English", "reference") is None
    monkeypatch.setattr(comparison, "load_bundled_scales", lambda: (replace(old, learned=()),))
    assert find_scale("chrf", "into English", "reference") is not None
    assert find_scale("bleu", "into English", "reference") is None


JAPANESE = ["これは保存したファイルです。", "電車は七時に出発します。", "彼女は昨日東京に行った。"]
CHINESE = ["今天公园里天气很好，我们去散步。", "他昨天去了北京。", "火车七点出发。"]


def compare_unspaced(texts, metrics):
    references = [texts[n % len(texts)] for n in range(42)]
    systems = {"base": [r[:-3] for r in references], "ours": [r[:-1] for r in references]}
    return tertium.compare(systems, metrics, references=references, resamples=50)


@pytest.mark.parametrize(
    ("texts", "tokenizer", "installed"),
    [(CHINESE, "zh", False), (JAPANESE, "char", False), (JAPANESE, "ja-mecab", True)],
)
def test_tokenizer_follows_the_detected_language(texts, tokenizer, installed, monkeypatch):
    monkeypatch.setattr(word_tokenizers, "is_installed", lambda *m: installed or not m)
    loaded = load_metrics_for(texts, ["bleu", "nist", "chrf", "bleu:lowercase=true"])
    assert [getattr(m, "tokenize", "") for m in loaded] == [tokenizer, tokenizer, "", tokenizer]
    for given in ("bleu:tokenize=13a", BLEU()):
        assert [m.spec for m in load_metrics_for(texts, given)] == ["bleu"]
    both = ["bleu", f"bleu:tokenize={tokenizer}"]
    assert [m.spec for m in load_metrics_for(texts, both)] == both
    assert [m.spec for m in load_metrics_for(["A cat sat."], ["bleu"])] == ["bleu"]


def test_no_meaning_of_differences_under_another_tokenizer():
    compared = compare_unspaced(JAPANESE, ["bleu", "chrf"])
    scores = compared["ours"]["bleu"]  # found although its spec has a tokenizer now
    assert "|tok:char|" in scores.signature
    assert not compared.human_agreement("bleu", "ours")
    assert compared.human_agreement("chrf", "ours")
    text = render_table(compared.comparison_table())
    note = "note: BLEU: texts in ja are split with tokenize=char, because ja-mecab is not installed"
    assert text.index(note) < text.index("BLEU ↑") < text.index("humans agree")
    assert text.count("tokenize=char") == 1


def test_ranking_and_cautions_name_the_tokenizer():
    compared = compare_unspaced(CHINESE, "bleu:tokenize=13a")
    assert not compared.human_agreement("bleu", "ours")
    for style in ("text", "md", "latex"):
        text = render_table(compared.comparison_table(), style)
        assert text.index("needs blanks between words") < text.index("base")
    page = render_page(report_results(compared, [BLEU()]))
    claim = page.index("<table")
    assert page.index("no blanks to split words at") < claim
    assert page.index("use tokenize=zh") < claim
    systems = {"a": [t[:-3] for t in CHINESE], "b": [t[:-1] for t in CHINESE]}
    ranking = tertium.rank(systems, "bleu", references=CHINESE)
    assert "|tok:zh|" in ranking.signature
    text = render_table(ranking.tables()[0])
    assert text.index("texts in zh are split with tokenize=zh") < text.index("win probability")


def test_fitted_scales_say_which_inputs_the_metric_read(tmp_path):
    texts = {"source": GERMAN, "reference": ENGLISH}
    rows = [
        {"system": f"s{n}", "segment": item, "hypothesis": ENGLISH[: 20 + 3 * n + item], **texts}
        | {"score": 10 * n}
        for n in range(8)
        for item in range(4)
    ]
    file = write_file(tmp_path / "judged.jsonl", rows)
    scales = fit_difference_scales(read_judged(file, "chrf", level="system")).scales
    assert {scale.inputs for scale in scales} == {"reference"}
