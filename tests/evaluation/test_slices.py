"""Slices: their scores, adjusted tests, and invalid columns."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.builders import write_file

import tertium
from tertium.cli import main
from tertium.core.errors import DataError, LengthError, UnknownNameError, UsageError
from tertium.core.resampling import holm
from tertium.data.rankings import ComparisonIndex, RankingSet
from tertium.data.slices import slice_items, slice_testset
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import Comparison, compare
from tertium.evaluation.slice_scores import slice_results
from tertium.meta.metric_agreement import MetaEvaluation

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def testset() -> TestSet:
    full_set = TestSet.from_records(EXAMPLES / "examples.jsonl")
    domains = tuple(document.partition("-")[0] for document in full_set.documents)
    return full_set.with_columns({"domain": domains})


def slow_holm(p_values: list[float]) -> list[float]:
    """Step down: the smallest p times m, the next times m - 1, never below an earlier one."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    result, highest = [0.0] * len(p_values), 0.0
    for step, place in enumerate(order):
        highest = max(highest, min(1.0, p_values[place] * (len(p_values) - step)))
        result[place] = highest
    return result


def test_holm_equals_the_loop_and_ignores_nan():
    rng = np.random.default_rng(1)
    for size in (1, 2, 7, 40):
        p = rng.random(size).round(2)  # with ties
        assert holm(p).tolist() == pytest.approx(slow_holm(p.tolist()), abs=1e-15)
    assert np.isnan(holm([np.nan, 0.5])[0])
    assert holm([np.nan, 0.5])[1] == 0.5
    # Holm (1979) rejects in this order at .05: .01 <= .05/4, .0105 <= .05/3, .03 > .05/2
    assert (holm([0.03, 0.01, 0.04, 0.0105]) < 0.05).tolist() == [False, True, False, True]


def test_slice_scores_equal_scores_of_its_segments(testset):
    evaluation = tertium.score(testset, ["bleu", "chrf", "ter"])
    slices = slice_results(evaluation, "domain")
    assert list(slices.parts) == list(dict.fromkeys(testset.columns["domain"]))
    assert slices.adjusted == {}
    rows = [n for n, domain in enumerate(testset.columns["domain"]) if domain == "legal"]
    alone = tertium.score(testset.subset(rows), ["bleu", "chrf", "ter"])
    for system in testset.systems:
        for metric in evaluation.metrics:
            part = slices.parts["legal"].scores[system][metric]
            assert part.system == alone.scores[system][metric].system
    assert sum(len(part.testset) for part in slices.parts.values()) == len(testset)


def test_p_values_of_slices_are_adjusted_over_slices_and_systems(testset):
    comparison = tertium.compare(testset, ["chrf"], resamples=200)
    slices = slice_results(comparison, "length", resamples=500)
    raw = {}
    for name, part in slices.parts.items():
        assert isinstance(part, tertium.Comparison)
        for system in ("fair", "poor"):
            raw[name, system] = part.p_value("chrf", system)
    adjusted = dict(zip(raw, slow_holm([*raw.values()]), strict=True))
    assert slices.adjusted["chrf"] == pytest.approx(adjusted, abs=1e-15)
    record = next(r for r in slices.records() if r["system"] == "fair")
    assert record["p_holm"] >= record["p_value"]
    assert record["size"] == 12


def test_a_slice_compares_systems_with_the_baseline_only(testset):
    """All pairs on all slices would take minutes for twenty systems."""
    names = [*testset.systems]
    slices = slice_results(compare(testset, "chrf", resamples=50), "domain", resamples=50)
    for part in slices.parts.values():
        assert isinstance(part, Comparison)
        assert np.isnan(part.p_values["chrf"][1:, 1:][~np.eye(len(names) - 1, dtype=bool)]).all()
        assert part.clusters["chrf"] == [0] * len(names)
        assert all(record["cluster"] is None for record in part.records())


def test_lengths_are_quartiles_in_any_order(testset):
    slicing = slice_testset(testset, "length")
    lengths = [len(text) for text in testset.sources]
    for label, length in zip(slicing.labels, lengths, strict=True):
        low, high = label.split()[0].split("-")
        assert int(low) <= length <= int(high)
    assert [slicing.labels.count(name) for name in slicing.names] == [12, 12, 12, 12]
    backwards = testset.subset(range(len(testset))[::-1])
    reversed_slicing = slice_testset(backwards, "length")
    assert reversed_slicing.labels[::-1] == slicing.labels
    assert reversed_slicing.names == slicing.names
    few = TestSet(systems={"a": ["x"] * 3}, sources=["Zug", "Boot", "Brot"])
    assert slice_testset(few, "length").names == ("3 characters", "4 characters")


def test_labels_and_warnings_of_slices(testset):
    sources = ["Der Zug fährt heute nicht.", "Le train ne part pas aujourd'hui."]
    texts = TestSet(systems={"a": ["x", "y"]}, sources=sources)
    assert slice_testset(texts, "language").names == ("de", "fr")
    pairs = TestSet(systems={"a": ["x", "y"]}, columns={"lp": ["de-en", ""]})
    assert slice_testset(pairs, "language").names == ("de-en", "(none)")
    assert any("warnings" in record for record in tertium.score(testset, "chrf").records())
    sliced = slice_results(tertium.score(testset, "chrf"), "domain")
    assert not any("warnings" in record for record in sliced.records())


def test_names_of_columns(testset):
    """Column names are matched without case."""
    labels = testset.columns["domain"]
    for name in ("Domain", "DOMAIN"):
        capital = dataclasses.replace(testset, columns={name: labels})
        assert slice_testset(capital, "domain").labels == labels
        assert slice_testset(testset, name).labels == labels
    two = dataclasses.replace(testset, columns={"Domain": labels, "DOMAIN": labels[::-1]})
    assert slice_testset(two, "Domain").labels == labels
    with pytest.raises(UnknownNameError, match="did you mean 'D"):
        slice_testset(two, "domain")
    with pytest.raises(UnknownNameError, match="did you mean 'domain'"):
        slice_testset(testset, "domains")
    with pytest.raises(DataError, match="needs sources or references"):
        slice_testset(TestSet(systems={"a": ["x"]}), "length")
    with pytest.raises(LengthError, match="column 'domain' has 1 segments"):
        TestSet(systems={"a": ["x", "y"]}, columns={"domain": ["news"]})
    with pytest.raises(DataError, match="give --documents FILE"):
        slice_testset(dataclasses.replace(testset, documents=()), "document")


def test_columns_round_trip_unless_systems_differ(tmp_path):
    rows = [
        {"mt": f"{s} {n}", "ref": "r", "system": s, "domain": "news" if n else "law", "own": s}
        for s in "ab"
        for n in range(3)
    ]
    testset = TestSet.from_records(write_file(tmp_path / "systems.jsonl", rows))
    assert testset.columns == {"domain": ("law", "news", "news")}
    testset.write(tmp_path / "again.jsonl")
    assert TestSet.from_records(tmp_path / "again.jsonl") == testset


@pytest.fixture
def judgments(tmp_path: Path) -> Path:
    rng = np.random.default_rng(7)
    rows = []
    for n in range(40):
        for system in "ABC":
            words = rng.permutation("the quick brown fox jumps over a lazy dog".split())
            output = " ".join(words[: rng.integers(2, 9)])
            row = {"item": n, "system": system, "mt": output, "ref": " ".join(words)}
            row |= {"score": float(rng.normal()), "doc": f"d{n // 10}"}
            rows.append(row | {"domain": "news" if n % 2 else "law"})
    return write_file(tmp_path / "judged.jsonl", rows)


def test_agreement_by_slice_equals_that_of_the_part(judgments, capsys):
    argv = ["meta", "--human", str(judgments), "-m", "chrf", "bleu", "-f", "json"]
    assert (
        main([*argv, "--by", "domain", "document", "--grouping", "item", "--resamples", "50"]) == 0
    )
    result = json.loads(capsys.readouterr().out)
    assert {task["grouping"] for task in result["tasks"]} == {"item"}
    assert len(result["slices"]["document"]["tasks"]) == 8
    assert main([*argv[:-1], "tsv", "--by", "domain", "document", "--resamples", "0"]) == 0
    header, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert header[:4] == ["metric", "statistic", "set", "value"]
    assert len(rows) == 2 * (1 + 2 + 4)  # overall, domains, documents
    assert {len(row) for row in rows} == {len(header)}
    assert header[-1] == "by"  # a domain and a document may have the same name
    assert [row[-1] for row in rows] == [""] * 2 + ["domain"] * 4 + ["document"] * 8
    study = tertium.meta_evaluate(judgments, ["chrf"], by="domain", resamples=0)
    (aligned,) = study.sets
    odd = np.array([int(item) % 2 == 1 for item in aligned.items])
    wanted = stats.pearsonr(aligned.human[:, odd].ravel(), aligned.scores[0][:, odd].ravel())[0]
    news = next(t for t in study.slices["domain"].tasks if t.task.sets == ("news",))
    assert news.values[0] == pytest.approx(wanted, abs=1e-12)


def test_invalid_options_are_rejected_before_scoring():
    for choices in ({"statistics": "pearson"}, {"sample": 9}):
        with pytest.raises(UnknownNameError, match=r"^unknown option 's.*known: alpha, conf"):
            tertium.meta_evaluate("nowhere.jsonl", "chrf", **choices)
    with pytest.raises(
        UsageError, match="resamples must be an integer from 0 to 1,000,000, got True"
    ):
        tertium.meta_evaluate("nowhere.jsonl", "chrf", statistic="pearson", resamples=True)


def test_p_values_of_metrics_on_slices_are_adjusted(judgments):
    plain = tertium.meta_evaluate(judgments, ["chrf", "bleu", "ter"], by=["domain"], resamples=99)
    results = plain.slices["domain"]
    assert len(results.tasks) == 2
    raw = []
    for task in results.tasks:  # the same task on the slice alone has the same resamples
        part = next(s for s in plain.sets)
        mask = slice_items(plain.human_data[part.name], part.items, "domain").mask(
            task.task.sets[0]
        )
        alone = MetaEvaluation([part.keep_items(mask, task.task.sets[0])]).run([task.task])
        raw.append(alone.tasks[0].p_values)
    family = [
        (n, i, j)
        for n, task in enumerate(results.tasks)
        for i in range(3)
        for j in range(3)
        if task.values[i] > task.values[j]
    ]
    assert len(family) == 6
    adjusted = slow_holm([float(raw[n][i, j]) for n, i, j in family])
    for (n, i, j), p in zip(family, adjusted, strict=True):
        assert results.tasks[n].p_values[i, j] == pytest.approx(p)


@pytest.mark.parametrize("style", ["text", "md", "tsv", "json", "latex"])
def test_every_command_slices(style, tmp_path, capsys):
    records = str(EXAMPLES / "examples.jsonl")
    for command, trials in (("score", []), ("compare", ["--paired-ar-n", "50"])):
        argv = [command, "-t", records, "-m", "chrf", "--by", "document", "length", "-f", style]
        assert main([*argv, *trials]) == 0
        out = capsys.readouterr().out
        assert "travel-delay" in out
        assert "107-134 characters" in out
        if style == "tsv":
            rows = [line.split("\t") for line in out.splitlines()]
            assert [row[0] for row in rows] == ["by", *["document"] * 36, *["length"] * 12]
            assert {len(row) for row in rows} == {len(rows[0])}


def test_reports_have_slices(tmp_path):
    page, records = tmp_path / "page.html", str(EXAMPLES / "examples.jsonl")
    argv = ["report", "-t", records, "-m", "chrf", "--by", "length", "--count", "0"]
    assert main([*argv, "-o", str(page)]) == 0
    assert '<section id="by-length"' in page.read_text(encoding="utf-8")


def test_labels_from_a_file(tmp_path, capsys):
    argv = ["-t", str(EXAMPLES / "system-good.en.txt"), "-r", str(EXAMPLES / "reference-a.en.txt")]
    file = EXAMPLES / "documents.txt"
    assert main(["score", *argv, "-m", "chrf", "--by", f"text={file}", "-f", "tsv"]) == 0
    assert "science-bees" in capsys.readouterr().out
    (tmp_path / "short.txt").write_text("a\n")
    assert main(["score", *argv, "-m", "chrf", "--by", f"text={tmp_path / 'short.txt'}"]) == 2
    assert "column 'text' has 1 segments" in capsys.readouterr().err


def test_comparisons_are_sliced_with_their_items(tmp_path):
    rng = np.random.default_rng(4)
    rows = ["segment\tjudge\tsystem_a\tsystem_b\tpreference"]
    for n in range(60):
        a, b = rng.choice(list("ABC"), 2, replace=False)
        rows.append(f"{n % 20}\tj{n}\t{a}\t{b}\t{rng.choice(['a', 'b', 'tie'])}")
    outputs = dict.fromkeys("ABC", "t")
    write_file(
        tmp_path / "x.texts.jsonl",
        [
            {"segment": str(n), "source": "q" * n, "reference": "r", "outputs": outputs}
            for n in range(20)
        ],
    )
    file = write_file(tmp_path / "x.judgements.tsv", "\n".join([*rows, ""]))
    study = tertium.meta_evaluate(file, ["chrf"], by=["length"], resamples=0)
    (aligned,), (human_data,) = study.sets, study.human_data.values()
    assert isinstance(human_data, RankingSet)
    every = aligned.keep_items(np.ones(len(aligned.items), bool), "all")
    wins = ComparisonIndex.of(human_data).expected_wins(len(every.systems))
    assert every.human_systems == pytest.approx(wins, nan_ok=True)
    parts = [t.agreement.judged_count for t in study.slices["length"].tasks]
    assert len(parts) == 4
    assert sum(parts) == study.results.tasks[0].agreement.judged_count


def test_several_statistics_and_levels_are_one_table(judgments):
    def evaluate(statistic, level):
        options = {"statistic": statistic, "level": level, "by": "domain", "resamples": 20}
        return tertium.meta_evaluate(judgments, ["chrf", "bleu"], **options)

    both = evaluate(["Pearson", "SPA", "acc_eq"], ["segment", "system"])
    pairs = [(r.task.statistic, r.task.level) for r in both.results.tasks]
    of_segments = [("pearson", "segment"), ("acc-eq", "segment")]
    assert pairs == [*of_segments, ("pearson", "system"), ("spa", "system")]
    assert both.level == "segment"
    for pair in pairs:
        records = [
            record
            for record in both.results.records()["tasks"]
            if (record["statistic"], record["level"]) == pair
        ]
        assert records == evaluate(*pair).results.records()["tasks"]
    assert len(both.slices["domain"].tasks) == 2 * len(pairs)
    usual = tertium.meta_evaluate(judgments, "chrf", statistic=["pearson", "spa"], resamples=0)
    assert [r.task.level for r in usual.results.tasks] == ["segment", "system"]
    with pytest.raises(UnknownNameError, match="unknown level 'document'"):
        tertium.meta_evaluate(judgments, "chrf", level="document")
    with pytest.raises(UsageError, match="does not support level=segment"):
        tertium.meta_evaluate(judgments, "chrf", statistic="spa", level="segment")
