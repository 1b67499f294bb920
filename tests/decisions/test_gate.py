"""`tertium.gate`: verdicts, rules, slices, stored baselines and sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tertium
from tertium.core.errors import TertiumError, UsageError
from tertium.decide.gate import GateSet, gate_sets, read_baseline
from tertium.decide.gate_result import GateResult
from tertium.decide.gate_rules import GateRules, resolve_margins, suggest_margins
from tertium.evaluation.score_command import SlicedResult
from tertium.metrics.base.loading import load_metric, load_metrics
from tertium.output.html import render_page

MEAN = "bertr:encoder=toy"  # its score is the mean of segment scores
REFERENCES = [f"the {n} train to the coast leaves at {n} in the morning" for n in range(60)]
DAMAGED = [text.replace("morning", "mourning") for text in REFERENCES]
SOURCES = [f"der {n}. Zug an die Küste fährt um {n} Uhr am Morgen" for n in range(60)]


def mixed(share: float, seed: int = 0) -> list[str]:
    is_damaged = np.random.default_rng(seed).random(len(REFERENCES)) < share
    pairs = zip(REFERENCES, DAMAGED, is_damaged, strict=True)
    return [bad if damaged else good for good, bad, damaged in pairs]


def gate(
    baseline: list[str],
    candidate: list[str],
    margin: float = 1,
    *,
    references: Sequence[str] = REFERENCES,
    **rules: Any,
) -> GateResult:
    """Compare translations by chrF."""
    margins = {"margin": {"chrf": margin}}
    return tertium.gate(baseline, candidate, "chrf", references=references, **margins | rules)


@pytest.mark.parametrize(
    ("baseline", "candidate", "margin", "verdict"),
    [
        (REFERENCES, REFERENCES, 0, "pass"),
        (mixed(0.5, 1), mixed(0.5, 2), 5, "pass"),
        (REFERENCES, DAMAGED, 0.5, "worse"),
        (DAMAGED, REFERENCES, 0.5, "better"),
        (mixed(0.5, 1), mixed(0.5, 2), 0.2, "undecided"),
    ],
    ids=range(5),
)
def test_four_verdicts(baseline, candidate, margin, verdict):
    assert gate(baseline, candidate, margin).verdict == verdict


def test_undecided_says_how_many_more_segments():
    result = gate(mixed(0.5, 1), mixed(0.5, 2), 0.2)
    assert f"about {result.tests[0].more_segments:,} more segments" in result.sentence
    choices = [replace(result, undecided=choice) for choice in ("", "pass", "fail")]
    assert [choice.exit_code for choice in choices] == [3, 0, 1]


def test_conditions_fail_the_gate():
    outputs = ["", *REFERENCES[1:]]
    limits = {"maximum": {"empty": 0, "wrong language": "1%"}, "minimum": {"chrf": 50}}
    result = gate(outputs, outputs, sources=SOURCES, **limits)
    assert result.verdict == "fail"
    assert result.exit_code == 1
    assert [condition.is_met for condition in result.conditions] == [False, True, True]
    assert "empty in 1 of 60 segments (at most 0)" in result.sentence


def test_a_worse_slice_fails_but_an_undecided_one_does_not():
    domain = ["law", "news", "news"] * 20
    rows = zip(REFERENCES, DAMAGED, domain, strict=True)
    worse_in_law = [bad if label == "law" else good for good, bad, label in rows]
    for candidate, expected in ((worse_in_law, "worse"), (REFERENCES, "pass")):
        result = gate(REFERENCES, candidate, 3.5, by={"domain": domain})
        assert result.verdict == expected
    assert [test.slice for test in result.tests] == ["", "law", "news"]


def test_p_values_are_adjusted_over_all_tests():
    baseline, candidate = mixed(0.5, 1), mixed(0.6, 2)
    common = {"references": REFERENCES, "margin": {"chrf": 1.5, "ter": 2.0}}
    one = tertium.gate(baseline, candidate, "chrf", **common | {"margin": {"chrf": 1.5}})
    two = tertium.gate(baseline, candidate, ["chrf", "ter"], **common)
    assert two.tests[0].p_pass >= one.tests[0].p_pass
    assert two.tests[0].low < one.tests[0].low


def test_several_language_pairs_give_one_verdict():
    rules = GateRules.from_values({"chrf": 0.5})

    def make_set(name: str, candidate: list[str]) -> GateSet:
        systems = {"old": REFERENCES, "new": candidate}
        testset = tertium.TestSet.from_lists(systems, references=REFERENCES)
        metrics = [load_metric("chrf")]
        return GateSet(
            testset=testset,
            baseline="old",
            candidate="new",
            metrics=metrics,
            rules=rules,
            name=name,
        )

    result = gate_sets([make_set("de-en", REFERENCES), make_set("fr-en", DAMAGED)])
    assert result.verdict == "worse"
    assert [test.verdict for test in result.tests] == ["pass", "worse"]
    assert "in fr-en" in result.sentence
    verdict_sentence = result.sentence.split(". ")[0]
    assert "de-en" not in verdict_sentence


def test_margins_in_human_terms_come_from_the_scale():
    # into English, humans agree with 0.387 to 0.883 chrF in 52 %, with 0.883 to 2.303 in 63 %
    texts = ["The train to the coast leaves at seven in the morning, rain or shine."] * 12
    result = tertium.gate(texts, texts, "chrf", references=texts, margin={"human": "5%"})
    assert 0.63 < result.tests[0].margin < 1.6
    with pytest.raises(UsageError, match="no scale for a margin in human terms"):
        tertium.gate(texts, texts, "wmd", references=texts, margin={"human": "5%"})


@pytest.mark.parametrize(("rules", "message"), [
    ({"margin": {}}, "chrf has no margin"),
    ({"margin": {"chrf": -1}}, "expected 0 or more"),
    ({"margin": {"chrf": "much"}}, "expected a number"),
    ({"margin": {"human": 5}}, "such as 5%"),
    ({"margin": {"chrf": 1, "bleu": 1}}, "unknown metric 'bleu'"),
    ({"maximum": {"empt": 0}}, "did you mean 'empty'"),
    ({"maximum": {"empty": 1.5}}, "a number of segments"),
    ({"maximum": {"chrf": 50}}, "higher is better; give --min"),
    ({"alpha": 2}, "alpha"),
])  # fmt: skip
def test_bad_rules_are_errors(rules, message):
    rules = {"margin": {"chrf": 1}, **rules}
    with pytest.raises(TertiumError, match=message):
        tertium.gate(REFERENCES, REFERENCES, "chrf", references=REFERENCES, **rules)


def store(path: Path, outputs: list[str], references: list[str]) -> Path:
    """Store scores as `tertium score -o FILE.json` does."""
    evaluation = tertium.score({"old": outputs}, [MEAN], references=references)
    SlicedResult(evaluation, is_stored=True).write(path)
    return path


def gate_stored(
    file: Path,
    candidate: list[str],
    metrics: str | list[str],
    *,
    references: list[str],
    margin: dict[str, float],
) -> GateResult:
    testset = tertium.TestSet.from_lists({"candidate": candidate}, references=references)
    gate_set = GateSet(
        testset=testset,
        baseline=read_baseline(str(file)),
        candidate="candidate",
        metrics=load_metrics(metrics),
        rules=GateRules.from_values(margin),
    )
    return gate_sets([gate_set])


def test_a_stored_baseline_gives_the_same_result(tmp_path):
    file = store(tmp_path / "old.json", mixed(0.5, 1), REFERENCES)
    options = {"references": REFERENCES, "margin": {MEAN: 1}}
    stored = gate_stored(file, mixed(0.5, 2), MEAN, **options)
    direct = tertium.gate(mixed(0.5, 1), mixed(0.5, 2), MEAN, **options)
    assert stored.tests == direct.tests
    assert stored.baseline == f"{file} (old)"


def test_an_unlike_stored_baseline_is_refused(tmp_path):
    file = store(tmp_path / "old.json", REFERENCES, REFERENCES)
    options = {"margin": {MEAN: 1, "bleu": 1}}
    with pytest.raises(UsageError, match="other sources or references"):
        gate_stored(file, REFERENCES, MEAN, references=DAMAGED, margin={MEAN: 1})
    with pytest.raises(UsageError, match="has no scores of bleu"):
        gate_stored(file, REFERENCES, [MEAN, "bleu"], references=REFERENCES, **options)
    records = json.loads(file.read_text())
    records[0]["signature"] += "|other"
    file.write_text(json.dumps(records))
    with pytest.raises(UsageError, match=r"\|other \(stored\) and .* \(candidate\)"):
        gate_stored(file, REFERENCES, MEAN, references=REFERENCES, margin={MEAN: 1})
    evaluation = tertium.score({"old": REFERENCES}, ["chrf"], references=REFERENCES)
    file.write_text(json.dumps(evaluation.records()))
    with pytest.raises(UsageError, match="not a mean of segment scores"):
        gate_stored(file, REFERENCES, "chrf", references=REFERENCES, margin={"chrf": 1})


def test_suggested_margins_let_both_runs_pass():
    first, second = mixed(0.5, 1), mixed(0.5, 2)
    evaluation = tertium.score({"a": first, "b": second}, ["chrf"], references=REFERENCES)
    (suggested,) = suggest_margins({"": evaluation}).margins
    for pair in ((first, second), (second, first)):
        assert gate(*pair, suggested["margin"]).verdict == "pass"
    worse_last = (first, second) if suggested["difference"] < 0 else (second, first)
    assert gate(*worse_last, 0.1).verdict != "pass"


def test_results_are_written_by_suffix(tmp_path):
    candidate = ["", *DAMAGED[1:]]
    result = gate(REFERENCES, candidate, 0.5, sources=SOURCES, maximum={"empty": 0})
    for suffix in (".json", ".tsv", ".md", ".xml", ".sarif"):
        result.write(tmp_path / f"gate{suffix}")
    record = json.loads((tmp_path / "gate.json").read_text())
    assert (record["verdict"], record["exit_code"]) == ("worse", result.exit_code)
    header, row = (tmp_path / "gate.tsv").read_text().splitlines()
    values = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    assert (values["metric"], values["verdict"]) == ("chrF", "worse")
    assert float(values["low"]) < float(values["difference"]) < float(values["high"])
    assert 'failures="2"' in (tmp_path / "gate.xml").read_text()
    assert "Worse: candidate is worse" in (tmp_path / "gate.md").read_text()
    [finding] = json.loads((tmp_path / "gate.sarif").read_text())["runs"][0]["results"]
    assert finding["ruleId"] == "empty"
    assert "Worse: candidate is worse than baseline by more than the margin" in str(result)


def test_metrics_that_disagree_are_left_to_people():
    # more n-grams match, but words are repeated
    longer = [f"{text} in the in the in the" for text in REFERENCES]
    metrics = ["chrf:beta=3", "ter"]
    margin = {"chrf:beta=3": 0.1, "ter": 0.1}
    result = tertium.gate(DAMAGED, longer, metrics, references=REFERENCES, margin=margin)
    assert [test.verdict for test in result.tests] == ["better", "worse"]
    assert "prefers it: have people judge a sample (`tertium plan`)." in result.sentence


HUNDRED = (REFERENCES * 2)[:100]


def empty_in(count: int) -> list[str]:
    return [""] * count + HUNDRED[count:]


def test_empty_translations_are_counted_without_sources():
    result = gate(HUNDRED, empty_in(2), 90, references=HUNDRED, maximum={"empty": 0})
    (condition,) = result.conditions
    assert (condition.observed, condition.is_met) == (2, False)
    with pytest.raises(TertiumError, match="--max numbers needs the sources"):
        gate(HUNDRED, empty_in(2), 90, references=HUNDRED, maximum={"numbers": 0})


@pytest.mark.parametrize("count", [29, 57, 58])
def test_a_share_that_is_exactly_the_limit_passes(count):
    for share, is_met in ((f"{count}%", True), (f"{count - 0.1}%", False)):
        limit = {"maximum": {"empty": share}}
        result = gate(HUNDRED, empty_in(count), 90, references=HUNDRED, **limit)
        assert result.conditions[0].is_met == is_met
        assert result.conditions[0].bound == share.replace("%", " %")


def test_bounds_and_slices():
    words = [f"w{number}" for number in range(100)]
    candidate = " ".join([*"abcdefg", *words[7:]])
    options = {"references": [" ".join(words)], "margin": {"ter": 90}}
    result = tertium.gate([candidate], [candidate], "ter", maximum={"ter": 7}, **options)
    (condition,) = result.conditions
    assert condition.observed > 7  # TER is 7, and 7.000000000000001 in floating point
    assert condition.is_met
    result = gate(DAMAGED, REFERENCES, 0.5, by={"domain": ["law"] * 4 + ["news"] * 56})
    assert result.verdict == "better"
    assert "1 slice not decided: domain law (4 segments)." in result.sentence
    assert "within the margin otherwise" not in result.sentence


def test_a_candidate_that_equals_the_reference_is_named():
    result = gate(DAMAGED, REFERENCES, 0.5)
    assert result.sentence.startswith("Better: ")
    caution = "60 of 60 translations of candidate equal the reference"
    (text,) = result.records()["cautions"]
    assert text.startswith(caution)
    for output in (render_page(result), str(result)):
        assert output.count(caution) == 1
    baseline = [f"a {text}" for text in REFERENCES]
    few = gate(baseline, REFERENCES[:9] + DAMAGED[9:], 0.5)
    assert few.cautions == ()


def test_human_margins_need_a_scale_for_the_inputs():
    systems = {"old": DAMAGED, "new": REFERENCES}
    rules = GateRules.from_values({"human": "5%"})
    for spec in ("tertium-multi", "tertium-multi:lp=de-en"):
        metric = load_metric(spec)
        both = tertium.TestSet.from_lists(systems, SOURCES, REFERENCES)
        assert resolve_margins(rules, [metric], both)[metric.spec] > 0
        for sources, references, inputs in (
            (SOURCES, None, "source"), (None, REFERENCES, "reference"),
        ):  # fmt: skip
            testset = tertium.TestSet.from_lists(systems, sources, references)
            with pytest.raises(UsageError, match=f"into English, {inputs}"):
                resolve_margins(rules, [metric], testset)


def test_a_rule_finds_its_metric_although_languages_are_named():
    testset = tertium.TestSet.from_lists({"a": SOURCES}, SOURCES)
    rules = GateRules.from_values({"tertium-multi": 0.1})
    metric = load_metric("tertium-multi:lp=de-en")
    assert resolve_margins(rules, [metric], testset) == {metric.spec: 0.1}
