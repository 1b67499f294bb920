"""Diagnostics: each detects a fault that was built into a metric, and reports none otherwise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import write_file

import tertium
from tertium.cli import main
from tertium.core.arrays import FloatArray
from tertium.core.errors import UsageError
from tertium.core.segment import Segment
from tertium.metrics.base.metric import SegmentMetric
from tertium.studies.diagnostic_checks import (
    DiagnosticData,
    DiagnosticRow,
    cross_fit,
)
from tertium.studies.diagnostics import (
    CHECKS,
    Diagnostic,
    DiagnosticReport,
    run_check,
    run_diagnostics,
)
from tertium.studies.meta_evaluation import AgreementStudy

NAMES = [check.name for check in CHECKS]
WORDS = (Path(__file__).parents[2] / "examples" / "reference-a.en.txt").read_text().split()


@dataclass(frozen=True, kw_only=True)
class LikesLength(SegmentMetric):
    """A metric that counts characters: every diagnostic should detect it."""

    name = "likes-length"
    title = "likes length"

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        return np.array([float(len(segment.hypothesis)) for segment in segments])


@pytest.fixture(scope="module")
def judgments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five systems that drop more and more words; human scores count the remaining ones."""
    rng = np.random.default_rng(5)
    rows = []
    for item in range(40):
        size = int(rng.integers(6, 14))
        start = int(rng.integers(len(WORDS) - size))
        reference = WORDS[start : start + size]
        texts = {"src": " ".join(w[::-1] for w in reference), "ref": " ".join(reference)}
        for system in range(5):
            words = [w for w in reference if rng.random() > 0.12 * system]
            score = len(words) / size + float(rng.normal(0, 0.05))
            row = {"item": f"i{item}", "system": f"s{system}", "mt": " ".join(words) or "x"}
            rows.append({**row, **texts, "score": score, "domain": ("law", "news")[item % 2]})
    return write_file(tmp_path_factory.mktemp("diagnostics") / "judged.jsonl", rows)


def read_rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def study(judgments: Path) -> AgreementStudy:
    return tertium.meta_evaluate(judgments, ["chrf", LikesLength()], resamples=0)


@pytest.fixture(scope="module")
def report(study: AgreementStudy) -> DiagnosticReport:
    return run_diagnostics(study)


def find(report: DiagnosticReport, name: str) -> Diagnostic:
    return next(diagnostic for diagnostic in report.diagnostics if diagnostic.name == name)


def make_data(study: AgreementStudy, *metrics: SegmentMetric) -> DiagnosticData:
    (aligned,) = study.sets
    return DiagnosticData(
        aligned=aligned, human_data=study.human_data[aligned.name], metrics=metrics, seed=1
    )


def test_every_diagnostic_runs(report):
    assert [diagnostic.name for diagnostic in report.diagnostics] == NAMES
    assert report.skipped == {}
    for diagnostic in report.diagnostics:
        assert diagnostic.summary.endswith(".")
        assert diagnostic.values.shape == (len(diagnostic.rows), len(diagnostic.series))
        assert diagnostic.summary in diagnostic.table().notes
        low, high = np.moveaxis(diagnostic.intervals, -1, 0)
        is_outside = (low > diagnostic.values + 1e-9) | (high < diagnostic.values - 1e-9)
        assert is_outside.mean() < 0.1, diagnostic.name
    assert report.file_table().header == ["diagnostic", "row", "series", "value", "low", "high"]
    json.dumps(report.records())


def test_unscorable_translations_are_excluded(judgments, tmp_path):
    """Human translations among the systems are often the reference and have none themselves."""
    rows = read_rows(judgments)
    references = [
        {**row, "system": "refA", "mt": row["ref"], "ref": None, "score": 1.0}
        for row in rows
        if row["system"] == "s0"
    ]
    file = write_file(tmp_path / "judged.jsonl", [*rows, *references])
    # the second metric uses references or sources, and rejects a mix of them
    study = tertium.meta_evaluate(file, ["chrf", "sss:encoder=toy"], resamples=0)
    (aligned,) = study.sets
    human = aligned.systems.index("refA")
    assert np.isnan(aligned.scores[:, human]).all()
    assert not np.isnan(np.delete(aligned.scores, human, axis=1)).any()
    report = run_diagnostics(study)
    assert [diagnostic.name for diagnostic in report.diagnostics] == NAMES
    assert "the best system's output" in find(report, "references").rows


def test_length_metric_is_detected(report):
    chrf, length = 0, 1
    joined = find(report, "length").rows["8 segments joined"].values
    assert joined[length] > 5 > abs(joined[chrf])
    unrelated = find(report, "bad outputs").rows["fluent but unrelated"].values
    assert unrelated[length] > 0.3
    assert unrelated[chrf] < 0.1
    references = find(report, "references")
    assert (
        references.rows["the reference"].values[length]
        == references.rows["the reference of another segment"].values[length]
    )
    assert references.values[0, chrf] > references.values[-1, chrf] + 0.3


def test_models_of_single_texts_are_cross_fitted(report):
    rng = np.random.default_rng(2)
    texts = ["a" * int(n) for n in rng.integers(1, 60, 300)]
    target = np.array([len(t) for t in texts], float)
    folds = np.arange(300) % 5
    assert np.corrcoef(cross_fit(texts, target, folds), target)[0, 1] > 0.95
    noise = rng.normal(size=300)
    distinct = ["".join(rng.choice(list("abcdefgh"), 30)) for _ in range(300)]
    assert abs(np.corrcoef(cross_fit(distinct, noise, folds), noise)[0, 1]) < 0.2
    result = find(report, "best systems")
    assert [*result.rows] == ["all systems", "the better half", "the best 4"]
    assert result.rows["all systems"].values[0] == 1.0
    result = find(report, "sentinels")
    assert np.isnan(result.rows["source only"].values[1])
    assert np.isnan(result.rows["reference only"].values[1])
    assert result.rows["translation only"].values[0] > 0.2  # shorter is worse in these data


def test_missing_references_skip_one_diagnostic(judgments, tmp_path):
    @dataclass(frozen=True, kw_only=True)
    class Free(LikesLength):
        name = "free"

        @property
        def required_inputs(self) -> frozenset[str]:
            return frozenset()

    rows = [{name: row[name] for name in row if name != "ref"} for row in read_rows(judgments)]
    bare = write_file(tmp_path / "bare.jsonl", rows)
    result = run_diagnostics(tertium.meta_evaluate(bare, [Free()], resamples=0))
    assert result.skipped == {"references": "there are no references"}
    assert "reference only" not in find(result, "sentinels").rows


def test_scores_from_files_skip_text_diagnostics(judgments, study):
    bare = replace(study, metrics=())
    result = run_diagnostics(bare)
    assert set(result.skipped) == {"bad outputs", "references", "length"}
    with pytest.raises(UsageError, match="need the segment level"):
        run_diagnostics(replace(study, level="system"))


def test_rows_of_several_sets_are_averaged(study):
    one = DiagnosticRow(("m",), np.array([1.0]), np.array([[0.5], [1.5]]))
    other = one._replace(values=np.array([3.0]))
    data = make_data(study)
    second = replace(data, aligned=replace(data.aligned, name="second"))
    parts = iter([{"a": one, "b": one}, {"a": other, "c": other}])
    check = replace(CHECKS[0], measure=lambda data: next(parts))
    merged = run_check(check, [data, second]).rows
    assert {name: row.values.tolist() for name, row in merged.items()} == {
        "a": [2.0],
        "b": [1.0],
        "c": [3.0],
    }
    assert merged["a"].draws.tolist() == [[0.5], [1.5]]


def test_command_prints_and_writes_diagnostics(judgments, tmp_path, capsys):
    page = tmp_path / "page.html"
    argv = ["meta", "diagnostics", "--human", str(judgments), "-m", "chrf"]
    assert main([*argv, "-o", str(page)]) == 0
    out = capsys.readouterr().out
    assert "sentinels: Can human agreement be reached without comparing texts?" in out
    assert "Can human agreement be reached" in page.read_text(encoding="utf-8")
    assert main([*argv, "-f", "tsv"]) == 0
    assert capsys.readouterr().out.startswith("diagnostic\trow\tseries\tvalue\tlow\thigh\n")
    assert main([*argv, "-f", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [*dict.fromkeys(row["diagnostic"] for row in result)] == NAMES


def test_diagnostics_of_human_comparisons(tmp_path):
    rng = np.random.default_rng(9)
    rows, texts = ["segment\tjudge\tsystem_a\tsystem_b\tpreference"], []
    for n in range(40):
        reference = [str(w) for w in rng.choice(WORDS, 8)]
        outputs = {s: " ".join(reference[: 8 - 2 * k]) for k, s in enumerate("ABC")}
        texts.append({"segment": str(n), "reference": " ".join(reference), "outputs": outputs})
        rows += [f"{n}\tj\t{a}\t{b}\ta" for a, b in ("AB", "BC", "AC")]
    write_file(tmp_path / "x.texts.jsonl", texts)
    file = write_file(tmp_path / "x.judgements.tsv", "\n".join([*rows, ""]))
    study = tertium.meta_evaluate(file, ["chrf"], resamples=0)
    assert make_data(study).human.tolist() == [[1.0] * 40, [0.5] * 40, [0.0] * 40]
    result = run_diagnostics(study)
    assert find(result, "sentinels").rows["chrf"].values[1] > 0.9
    assert "best systems" in result.skipped


def test_diagnostics_without_system_names(judgments, tmp_path):
    """One translation per item without system names."""
    rows = [row | {"item": n, "system": ""} for n, row in enumerate(read_rows(judgments))]
    file = write_file(tmp_path / "alone.jsonl", rows)
    result = run_diagnostics(tertium.meta_evaluate(file, ["chrf"], resamples=0))
    assert set(result.skipped) == {"best systems"}
    assert find(result, "sentinels").series == ("all translations",)
