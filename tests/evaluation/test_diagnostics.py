"""Diagnostics: each detects a fault that was built into a metric, and reports none otherwise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import tertium
from tertium.cli import main
from tertium.core.arrays import FloatArray
from tertium.core.errors import UsageError
from tertium.core.segment import Segment
from tertium.metrics.base.metric import SegmentMetric
from tertium.studies.diagnostic_checks import (
    DiagnosticData,
    DiagnosticRow,
    check_bad_outputs,
    check_chance,
    check_interference,
    check_length,
    cross_fit,
    join_segments,
)
from tertium.studies.diagnostics import (
    CHECKS,
    Diagnostic,
    DiagnosticReport,
    merge_rows,
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
    lines = []
    for item in range(40):
        size = int(rng.integers(6, 14))
        start = int(rng.integers(len(WORDS) - size))
        reference = WORDS[start : start + size]
        for system in range(5):
            words = [w for w in reference if rng.random() > 0.12 * system]
            lines.append(
                {
                    "item": f"i{item}",
                    "system": f"s{system}",
                    "src": " ".join(w[::-1] for w in reference),
                    "mt": " ".join(words) or "x",
                    "ref": " ".join(reference),
                    "score": len(words) / size + float(rng.normal(0, 0.05)),
                    "domain": "news" if item % 2 else "law",
                }
            )
    file = tmp_path_factory.mktemp("diagnostics") / "judged.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


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


def test_every_diagnostic_runs(report: DiagnosticReport) -> None:
    assert [diagnostic.name for diagnostic in report.diagnostics] == NAMES
    assert report.skipped == {}
    for diagnostic in report.diagnostics:
        assert diagnostic.summary.endswith(".")
        assert diagnostic.values.shape == (len(diagnostic.rows), len(diagnostic.series))
        table = diagnostic.table()
        assert diagnostic.summary in table.notes
    assert report.file_table().header == ["diagnostic", "row", "series", "value", "low", "high"]
    json.dumps(report.records())


def test_unscorable_translations_are_excluded(judgments: Path, tmp_path: Path) -> None:
    """Human translations among the systems are often the reference and have none themselves."""
    rows = [json.loads(line) for line in judgments.read_text("utf-8").splitlines()]
    references = [
        {**row, "system": "refA", "mt": row["ref"], "ref": None, "score": 1.0}
        for row in rows
        if row["system"] == "s0"
    ]
    file = tmp_path / "judged.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *references]), "utf-8")
    # the second metric uses references or sources, and rejects a mix of them
    study = tertium.meta_evaluate(file, ["chrf", "sss:encoder=toy"], resamples=0)
    (aligned,) = study.sets
    human = aligned.systems.index("refA")
    assert np.isnan(aligned.scores[:, human]).all()
    assert not np.isnan(np.delete(aligned.scores, human, axis=1)).any()
    report = run_diagnostics(study)
    assert [diagnostic.name for diagnostic in report.diagnostics] == NAMES
    assert "the best system's output" in find(report, "references").rows


def test_length_metric_is_detected(report: DiagnosticReport) -> None:
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


def test_chance_level_is_below_a_good_metric(study: AgreementStudy) -> None:
    result = check_chance(make_data(study))
    own, tied, shuffled = (row.values for row in result.values())
    assert (own > shuffled + 0.2).all()
    assert (tied < 0.1).all()  # human scores rarely tie
    assert (shuffled > 0.3).all()


def test_interference_equals_the_loop(study: AgreementStudy) -> None:
    data = make_data(study)
    result = check_interference(data)
    human, table = data.human, data.aligned.scores[0]
    centered = human - human.mean(axis=0)
    centered /= centered.std()
    gains = [centered[table[:, i] == table[:, i].max(), i].mean() for i in range(40)]
    human_gains, metric_gains = result["under human scores"].values, result["under chrf"].values
    assert human_gains[0] == pytest.approx(np.mean(gains))
    assert metric_gains[0] >= metric_gains[1]  # the metric that chose gains most


def test_interference_of_ties_is_their_mean(study: AgreementStudy) -> None:
    data = make_data(study)
    tied = np.zeros_like(data.aligned.scores)
    tied[1, :2] = 1.0
    result = check_interference(replace(data, aligned=replace(data.aligned, scores=tied)))
    centered = data.human - data.human.mean(axis=0)
    centered /= centered.std()
    gains = result["under human scores"].values
    assert gains[0] == pytest.approx(0.0)  # all are chosen
    assert gains[1] == pytest.approx(centered[:2].mean())


def test_best_systems_rows(report: DiagnosticReport) -> None:
    result = find(report, "best systems")
    assert [*result.rows] == ["all systems", "the better half", "the best 4"]
    assert result.rows["all systems"].values[0] == 1.0


def test_single_text_models_are_cross_fitted() -> None:
    rng = np.random.default_rng(2)
    texts = ["a" * int(n) for n in rng.integers(1, 60, 300)]
    target = np.array([len(t) for t in texts], float)
    folds = np.arange(300) % 5
    assert np.corrcoef(cross_fit(texts, target, folds), target)[0, 1] > 0.95
    noise = rng.normal(size=300)
    distinct = ["".join(rng.choice(list("abcdefgh"), 30)) for _ in range(300)]
    assert abs(np.corrcoef(cross_fit(distinct, noise, folds), noise)[0, 1]) < 0.2


def test_source_model_is_undefined_within_items(report: DiagnosticReport) -> None:
    result = find(report, "sentinels")
    assert np.isnan(result.rows["source only"].values[1])
    assert np.isnan(result.rows["reference only"].values[1])
    assert result.rows["translation only"].values[0] > 0.2  # shorter is worse in these data


def test_file_order_does_not_matter(judgments: Path, tmp_path: Path) -> None:
    lines = judgments.read_text(encoding="utf-8").splitlines()
    reversed_file = tmp_path / "judged.jsonl"
    reversed_file.write_text("\n".join(lines[::-1]) + "\n", encoding="utf-8")
    one, other = (
        tertium.meta_evaluate(f, ["chrf"], resamples=0) for f in (judgments, reversed_file)
    )
    for check in (check_bad_outputs, check_length):
        first, second = (check(make_data(s, tertium.load_metric("chrf"))) for s in (one, other))
        for name, row in first.items():
            assert row.values.tolist() == second[name].values.tolist()


def test_missing_references_skip_one_diagnostic(judgments: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.jsonl"
    records = [json.loads(line) for line in judgments.read_text().splitlines()]
    for record in records:
        del record["ref"]
    bare.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")

    @dataclass(frozen=True, kw_only=True)
    class Free(LikesLength):
        name = "free"

        @property
        def required_inputs(self) -> frozenset[str]:
            return frozenset()

    result = run_diagnostics(tertium.meta_evaluate(bare, [Free()], resamples=0))
    assert result.skipped == {"references": "there are no references"}
    assert "reference only" not in find(result, "sentinels").rows


def test_scores_from_files_skip_text_diagnostics(judgments: Path, study: AgreementStudy) -> None:
    bare = replace(study, metrics=())
    result = run_diagnostics(bare)
    assert set(result.skipped) == {"bad outputs", "references", "length"}
    with pytest.raises(UsageError, match="need the segment level"):
        run_diagnostics(replace(study, level="system"))


def test_merging_several_sets() -> None:
    one = DiagnosticRow(("m",), np.array([1.0]), np.array([[0.5], [1.5]]))
    other = replace(one, values=np.array([3.0]))
    merged = merge_rows([{"a": one, "b": one}, {"a": other, "c": other}])
    assert {name: row.values.tolist() for name, row in merged.items()} == {
        "a": [2.0],
        "b": [1.0],
        "c": [3.0],
    }
    assert merged["a"].draws.tolist() == [[0.5], [1.5]]


def test_join_segments() -> None:
    one, two = Segment("a", "A", ("x", "y")), Segment("b", "B", ("z",))
    assert join_segments([one, two]) == Segment("a b", "A B", ("x z",))
    assert join_segments([Segment("你好"), Segment("再见")]) == Segment("你好再见")


def test_command_prints_and_writes_diagnostics(
    judgments: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_diagnostics_of_human_comparisons(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    rows, texts = ["segment\tjudge\tsystem_a\tsystem_b\tpreference"], []
    for n in range(40):
        reference = [str(w) for w in rng.choice(WORDS, 8)]
        outputs = {s: " ".join(reference[: 8 - 2 * k]) for k, s in enumerate("ABC")}
        texts.append({"segment": str(n), "reference": " ".join(reference), "outputs": outputs})
        rows += [f"{n}\tj\t{a}\t{b}\ta" for a, b in ("AB", "BC", "AC")]
    (tmp_path / "x.judgements.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    texts_file = tmp_path / "x.texts.jsonl"
    texts_file.write_text("".join(json.dumps(t) + "\n" for t in texts), encoding="utf-8")
    study = tertium.meta_evaluate(tmp_path / "x.judgements.tsv", ["chrf"], resamples=0)
    (aligned,) = study.sets
    data = DiagnosticData(
        aligned=aligned, human_data=study.human_data[aligned.name], metrics=(), seed=1
    )
    assert data.human.tolist() == [[1.0] * 40, [0.5] * 40, [0.0] * 40]
    result = run_diagnostics(study)
    assert find(result, "sentinels").rows["chrf"].values[1] > 0.9
    assert "best systems" in result.skipped


def test_diagnostics_without_system_names(judgments: Path, tmp_path: Path) -> None:
    """One translation per item without system names."""
    records = [json.loads(line) for line in judgments.read_text().splitlines()]
    for n, record in enumerate(records):
        record.update(item=n, system="")
    file = tmp_path / "alone.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    result = run_diagnostics(tertium.meta_evaluate(file, ["chrf"], resamples=0))
    assert set(result.skipped) == {"chance", "best systems", "interference"}
    assert find(result, "sentinels").series == ("all translations",)


def test_sampled_values_have_intervals(report: DiagnosticReport) -> None:
    for diagnostic in report.diagnostics:
        low, high = diagnostic.intervals[..., 0], diagnostic.intervals[..., 1]
        is_defined = ~np.isnan(diagnostic.values)
        assert (low[is_defined] <= diagnostic.values[is_defined] + 1e-9).mean() > 0.9, (
            diagnostic.name
        )
        assert (high[is_defined] >= diagnostic.values[is_defined] - 1e-9).mean() > 0.9, (
            diagnostic.name
        )


def test_draws_equal_the_loop(study: AgreementStudy) -> None:
    data = make_data(study)
    result = check_interference(data)
    items = [str(n) for n in range(40)]
    weights = data.weights(items)
    assert weights.sum(axis=1).tolist() == [40.0] * len(weights)
    centered = data.human - data.human.mean(axis=0)
    centered /= centered.std()
    table = data.aligned.scores[0]
    gains = [centered[table[:, i] == table[:, i].max(), i].mean() for i in range(40)]
    drawn = data.weights([data.aligned.items[n] for n in range(40)])
    for n in (0, 7):
        expected = np.repeat(gains, drawn[n].astype(int)).mean()
        assert result["under human scores"].draws[n, 0] == pytest.approx(expected)
