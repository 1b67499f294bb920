"""Doubts: each finds the fault that was put into a metric, and none where there is none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import tertium
from tertium.arrays import FloatArray
from tertium.cli import main
from tertium.errors import UsageError
from tertium.evaluation.diagnostics.diagnostic import (
    Diagnostic,
    DiagnosticData,
    merge,
    weighted_correlations,
)
from tertium.evaluation.diagnostics.run import DIAGNOSTICS, DiagnosticReport, run_diagnostics
from tertium.evaluation.diagnostics.score_checks import check_chance, check_interference, cross_fit
from tertium.evaluation.diagnostics.text_checks import (
    check_bad_outputs,
    check_length,
    check_order,
    join_segments,
)
from tertium.evaluation.meta_evaluation import AgreementStudy
from tertium.metrics.base.metric import SegmentMetric
from tertium.reporting.tables.diagnostics import diagnostic_table
from tertium.segment import Segment

WORDS = (Path(__file__).parents[2] / "examples" / "reference-a.en.txt").read_text().split()


@dataclass(frozen=True, kw_only=True)
class LikesLength(SegmentMetric):
    """A metric that counts characters: no doubt should miss it."""

    name = "likes-length"
    title = "likes length"

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        return np.array([float(len(segment.hypothesis)) for segment in segments])


@dataclass(frozen=True, kw_only=True)
class ReadsNeighbors(LikesLength):
    """One that looks at how many others there are."""

    name = "reads-neighbors"
    title = "reads neighbors"

    @property
    def reads_corpus(self) -> bool:
        return True

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        return np.array([float(len(s.hypothesis) + len(segments)) for s in segments])


@pytest.fixture(scope="module")
def judgments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five systems that lose more and more words; people count what is left of the reference."""
    rng = np.random.default_rng(5)
    lines = []
    for item in range(40):
        size = int(rng.integers(6, 14))
        start = int(rng.integers(len(WORDS) - size))
        reference = WORDS[start : start + size]
        for system in range(5):
            kept = [w for w in reference if rng.random() > 0.12 * system]
            lines.append(
                {
                    "item": f"i{item}",
                    "system": f"s{system}",
                    "src": " ".join(w[::-1] for w in reference),
                    "mt": " ".join(kept) or "x",
                    "ref": " ".join(reference),
                    "score": len(kept) / size + float(rng.normal(0, 0.05)),
                    "domain": "news" if item % 2 else "law",
                }
            )
    file = tmp_path_factory.mktemp("panel") / "judged.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def study(judgments: Path) -> AgreementStudy:
    return tertium.meta_evaluate(judgments, ["chrf", LikesLength()], resamples=0)


@pytest.fixture(scope="module")
def panel(study: AgreementStudy) -> DiagnosticReport:
    return run_diagnostics(study)


def find(panel: DiagnosticReport, name: str) -> Diagnostic:
    return next(doubt for doubt in panel.diagnostics if doubt.name == name)


def case_of(study: AgreementStudy, *metrics: SegmentMetric) -> DiagnosticData:
    (judged,) = study.sets
    return DiagnosticData(
        judged=judged, human_data=study.human_data[judged.name], metrics=metrics, seed=1
    )


def test_every_doubt_is_asked_read_and_drawn(panel: DiagnosticReport) -> None:
    assert [doubt.name for doubt in panel.diagnostics] == list(DIAGNOSTICS)
    assert panel.skipped == {}
    for doubt in panel.diagnostics:
        assert doubt.summary.endswith(".")
        assert doubt.values.shape == (len(doubt.rows), len(doubt.series))
        table = diagnostic_table(doubt)
        assert doubt.summary in table.notes
    json.dumps(panel.records())


def test_translations_that_a_metric_cannot_score_are_left_out(
    judgments: Path, tmp_path: Path
) -> None:
    """Human translations among the systems are often the reference themselves, and have none."""
    rows = [json.loads(line) for line in judgments.read_text("utf-8").splitlines()]
    human_data = [
        {**row, "system": "refA", "mt": row["ref"], "ref": None, "score": 1.0}
        for row in rows
        if row["system"] == "s0"
    ]
    file = tmp_path / "judged.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *people]), "utf-8")
    # the second takes references or sources, whatever there is, and refuses a mix of them
    study = tertium.meta_evaluate(file, ["chrf", "sss:encoder=toy"], resamples=0)
    (judged,) = study.sets
    human = judged.systems.index("refA")
    assert np.isnan(judged.scores[:, human]).all()
    assert not np.isnan(np.delete(judged.scores, human, axis=1)).any()
    panel = run_diagnostics(study)
    assert [doubt.name for doubt in panel.diagnostics] == list(DIAGNOSTICS)
    assert "the best system's output" in find(panel, "references").rows


def test_a_metric_of_length_is_found_out(panel: DiagnosticReport) -> None:
    chrf, length = 0, 1
    joined = find(panel, "length").row("8 segments joined")
    assert joined[length] > 5 > abs(joined[chrf])
    unrelated = find(panel, "bad outputs").row("fluent but unrelated")
    assert unrelated[length] > 0.3
    assert unrelated[chrf] < 0.1
    references = find(panel, "references")
    assert (
        references.row("the reference")[length]
        == references.row("the reference of another segment")[length]
    )
    assert references.values[0, chrf] > references.values[-1, chrf] + 0.3


def test_order_matters_to_who_reads_neighbors(
    panel: DiagnosticReport, study: AgreementStudy
) -> None:
    assert (find(panel, "order").values == 0).all()
    found = check_order(case_of(study, ReadsNeighbors()))
    assert found.row("scored alone")[0] == 49


def test_chance_is_far_below_a_good_metric_and_near_itself(study: AgreementStudy) -> None:
    found = check_chance(case_of(study))
    own, shuffled, tied = found.values
    assert (own > shuffled + 0.2).all()
    assert (tied < 0.1).all()  # people's scores hardly tie
    assert (shuffled > 0.3).all()


def test_interference_is_that_of_a_loop(study: AgreementStudy) -> None:
    case = case_of(study)
    found = check_interference(case)
    human, table = case.human, case.judged.scores[0]
    centred = human - human.mean(axis=0)
    centred /= centred.std()
    gains = [centred[table[:, i] == table[:, i].max(), i].mean() for i in range(40)]
    assert found.values[0, -1] == pytest.approx(np.mean(gains))
    assert found.values[0, 0] >= found.values[1, 0]  # nobody gains more than who chose


def test_interference_of_equals_is_their_mean(study: AgreementStudy) -> None:
    case = case_of(study)
    tied = np.zeros_like(case.judged.scores)
    tied[1, :2] = 1.0
    found = check_interference(replace(case, judged=replace(case.judged, scores=tied)))
    centred = case.human - case.human.mean(axis=0)
    centred /= centred.std()
    assert found.values[0, -1] == pytest.approx(0.0)  # all are chosen
    assert found.values[1, -1] == pytest.approx(centred[:2].mean())


def test_the_best_systems_are_fewer_pairs(panel: DiagnosticReport) -> None:
    found = find(panel, "best systems")
    assert found.rows == ("all 5 systems", "the best 4")
    assert found.row("all 5 systems")[0] == 1.0


def test_sentinels_are_fitted_on_what_they_do_not_score() -> None:
    rng = np.random.default_rng(2)
    texts = ["a" * int(n) for n in rng.integers(1, 60, 300)]
    target = np.array([len(t) for t in texts], float)
    folds = np.arange(300) % 5
    assert np.corrcoef(cross_fit(texts, target, folds), target)[0, 1] > 0.95
    noise = rng.normal(size=300)
    distinct = ["".join(rng.choice(list("abcdefgh"), 30)) for _ in range(300)]
    assert abs(np.corrcoef(cross_fit(distinct, noise, folds), noise)[0, 1]) < 0.2


def test_a_sentinel_of_sources_says_nothing_within_an_item(panel: DiagnosticReport) -> None:
    found = find(panel, "sentinels")
    assert np.isnan(found.row("source only")[1])
    assert np.isnan(found.row("reference only")[1])
    assert found.row("translation only")[0] > 0.2  # shorter is worse here, and it sees that


def test_the_order_of_the_file_does_not_matter(judgments: Path, tmp_path: Path) -> None:
    lines = judgments.read_text(encoding="utf-8").splitlines()
    turned = tmp_path / "judged.jsonl"
    turned.write_text("\n".join(lines[::-1]) + "\n", encoding="utf-8")
    one, other = (tertium.meta_evaluate(f, ["chrf"], resamples=0) for f in (judgments, turned))
    for ask in (check_bad_outputs, check_length):
        first, second = (ask(case_of(s, tertium.load_metric("chrf"))) for s in (one, other))
        assert first.values.tolist() == second.values.tolist()


def test_without_references_the_rest_is_asked(judgments: Path, tmp_path: Path) -> None:
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

    found = run_diagnostics(tertium.meta_evaluate(bare, [Free()], resamples=0))
    assert found.skipped == {"references": "there are no references"}
    assert "reference only" not in find(found, "sentinels").rows


def test_scores_in_files_are_doubted_as_far_as_they_go(
    judgments: Path, study: AgreementStudy
) -> None:
    bare = replace(study, metrics=())
    found = run_diagnostics(bare)
    assert set(found.skipped) == {"bad outputs", "references", "length", "order"}
    with pytest.raises(UsageError, match="asks about segments"):
        run_diagnostics(replace(study, level="system"))


def test_several_sets_are_averaged_or_listed() -> None:
    one = Diagnostic(
        name="x", question="?", rows=("a",), series=("m",), values=np.array([[1.0]]), label="l"
    )
    same = merge([("de", one), ("fr", replace(one, values=np.array([[3.0]])))])
    assert same.values.tolist() == [[2.0]]
    other = merge([("de", one), ("fr", replace(one, rows=("b",)))])
    assert other.rows == ("de a", "fr b")


def test_segments_are_joined_side_by_side() -> None:
    one, two = Segment("a", "A", ("x", "y")), Segment("b", "B", ("z",))
    assert join_segments([one, two]) == Segment("a b", "A B", ("x z",))
    assert join_segments([Segment("你好"), Segment("再见")]) == Segment("你好再见")


def test_the_command_prints_and_writes_the_panel(
    judgments: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    argv = ["meta", "--human", str(judgments), "-m", "chrf", "--diagnostics", "--resamples", "0"]
    assert main([*argv, "--report", str(page)]) == 0
    out = capsys.readouterr().out
    assert "sentinels: Could it agree with people without comparing anything?" in out
    assert '<section id="diagnostics"' in page.read_text(encoding="utf-8")
    assert main([*argv, "-f", "tsv"]) == 0
    assert capsys.readouterr().out.startswith("doubt\trow\tseries\tvalue\tlow\thigh\n")
    assert main([*argv, "-f", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["panel"]
    assert [doubt["doubt"] for doubt in found["doubts"]] == list(DIAGNOSTICS)


def test_comparisons_are_doubted_by_the_shares_they_won(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    rows, texts = ["segment\tjudge\tsystem_a\tsystem_b\tpreference"], []
    for n in range(40):
        reference = [str(w) for w in rng.choice(WORDS, 8)]
        outputs = {s: " ".join(reference[: 8 - 2 * k]) for k, s in enumerate("ABC")}
        texts.append({"segment": str(n), "reference": " ".join(reference), "outputs": outputs})
        rows += [f"{n}\tj\t{a}\t{b}\ta" for a, b in ("AB", "BC", "AC")]
    (tmp_path / "x.judgements.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    beside = tmp_path / "x.texts.jsonl"
    beside.write_text("".join(json.dumps(t) + "\n" for t in texts), encoding="utf-8")
    study = tertium.meta_evaluate(tmp_path / "x.judgements.tsv", ["chrf"], resamples=0)
    (judged,) = study.sets
    case = DiagnosticData(
        judged=judged, human_data=study.human_data[judged.name], metrics=(), seed=1
    )
    assert case.human.tolist() == [[1.0] * 40, [0.5] * 40, [0.0] * 40]
    found = run_diagnostics(study)
    assert find(found, "sentinels").row("chrf")[1] > 0.9
    assert "best systems" in found.skipped


def test_translations_without_systems_are_doubted(judgments: Path, tmp_path: Path) -> None:
    """One translation an item, no system named: pairs are made of any two."""
    records = [json.loads(line) for line in judgments.read_text().splitlines()]
    for n, record in enumerate(records):
        record.update(item=n, system="")
    file = tmp_path / "alone.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    found = run_diagnostics(tertium.meta_evaluate(file, ["chrf"], resamples=0))
    assert set(found.skipped) == {"best systems", "interference"}
    own, shuffled, _ = find(found, "chance").values[:, 0]
    assert own > shuffled + 0.2
    assert abs(shuffled - 0.5) < 0.1
    assert find(found, "sentinels").series == ("all translations",)


def test_every_value_that_is_left_to_chance_has_an_interval(panel: DiagnosticReport) -> None:
    for doubt in panel.diagnostics:
        low, high = doubt.intervals[..., 0], doubt.intervals[..., 1]
        if doubt.name == "order":  # nothing is drawn: the same texts are scored again
            assert np.isnan(low).all()
            continue
        known = ~np.isnan(doubt.values)
        assert (low[known] <= doubt.values[known] + 1e-9).mean() > 0.9, doubt.name
        assert (high[known] >= doubt.values[known] - 1e-9).mean() > 0.9, doubt.name
        assert doubt.records()["rows"][0]["intervals"].keys() == set(doubt.series)


def test_draws_are_those_of_a_loop(study: AgreementStudy) -> None:
    case = case_of(study)
    found = check_interference(case)
    items = [str(n) for n in range(40)]
    weights = case.weights(items)
    assert weights.sum(axis=1).tolist() == [40.0] * len(weights)
    centred = case.human - case.human.mean(axis=0)
    centred /= centred.std()
    table = case.judged.scores[0]
    gains = [centred[table[:, i] == table[:, i].max(), i].mean() for i in range(40)]
    drawn = case.weights([case.judged.items[n] for n in range(40)])
    for n in (0, 7):
        assert found.draws is not None
        assert found.draws[n, 0, -1] == pytest.approx(np.repeat(gains, drawn[n].astype(int)).mean())


def test_correlations_in_draws_are_those_of_repeated_points() -> None:
    rng = np.random.default_rng(3)
    people, scores = rng.normal(size=30), rng.normal(size=(2, 30))
    weights = rng.multinomial(30, np.full(30, 1 / 30), size=4).astype(float)
    found = weighted_correlations(scores, people, weights)
    for n, often in enumerate(weights.astype(int)):
        for m in range(2):
            expected = np.corrcoef(np.repeat(scores[m], often), np.repeat(people, often))[0, 1]
            assert found[n, m] == pytest.approx(expected)


def test_sets_without_the_same_rows_keep_their_draws_apart(panel: DiagnosticReport) -> None:
    doubt = find(panel, "domains")
    other = replace(doubt, rows=("other", *doubt.rows[1:]))
    both = merge([("a", doubt), ("b", other)])
    assert both.intervals.shape == (2 * len(doubt.rows), len(doubt.series), 2)
    assert both.intervals[0].tolist() == doubt.intervals[0].tolist()
