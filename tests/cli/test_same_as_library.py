"""The command line prints what the library functions return."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.builders import EXAMPLES, SYSTEMS, write_tsv
from tests.cli.conftest import Run

import tertium
from tertium.evaluation.paired_tests import SignificanceTests

FILES = [str(EXAMPLES / f"system-{name}.en.txt") for name in SYSTEMS]
REFERENCE = str(EXAMPLES / "reference-a.en.txt")
INPUTS = f"-t {' '.join(FILES)} -r {REFERENCE} --names {' '.join(SYSTEMS)} -q"
RATINGS = str(EXAMPLES / "ratings.csv")


@pytest.fixture
def systems() -> tertium.TestSet:
    return tertium.TestSet.read(FILES, [REFERENCE], names=SYSTEMS)


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value).replace("NaN", "null"))


def test_score(systems: tertium.TestSet, run: Run) -> None:
    records = tertium.score(systems, ["bleu", "chrf"]).records(segments=True)
    assert run(f"score {INPUTS} -sl -m bleu chrf -f json").json == plain(records)


def test_compare(systems: tertium.TestSet, run: Run) -> None:
    comparison = tertium.compare(systems, "chrf", resamples=100, seed=3)
    options = "--paired-bs-n 100 --seed 3 -m chrf -f json"
    assert run(f"compare {INPUTS} {options}").json == plain(comparison.records())


def test_rank(systems: tertium.TestSet, run: Run) -> None:
    ranking = tertium.rank(systems, "chrf")
    assert [record["system"] for record in ranking.records()] == ["good", "fair", "poor"]
    assert run(f"rank {INPUTS} -m chrf -f json").json == plain(ranking.records())
    with_segments = plain(ranking.records(segments=True))
    assert run(f"rank {INPUTS} -m chrf -sl -f json").json == with_segments
    assert "win probability" in ranking._repr_html_()


SCORED = [
    (n, system, n * n % 5 + len(system), text, f"the cat {n}")
    for n in range(8)
    for system, text in (("a", f"a cat {n}"), ("bb", f"dog {n * n}"), ("ccc", "it is the cat"))
]
COMPARED = [
    (n, "A", "B", "ab"[n % 2], f"a cat {n}", f"dog {n * n}", f"the cat {n}") for n in range(8)
]


@pytest.mark.parametrize(
    ("header", "rows", "statistic"),
    [
        ("segment system score mt ref", SCORED, "pearson"),
        (
            "segment system_a system_b preference hypothesis_a hypothesis_b ref",
            COMPARED,
            "tau-strict",
        ),
    ],
)
def test_meta_evaluate(
    header: str, rows: list[Any], statistic: str, tmp_path: Path, run: Run
) -> None:
    human = write_tsv(tmp_path / "human.tsv", header, rows)
    agreement = tertium.meta_evaluate(human, ["chrf", "ter"], resamples=20)
    assert agreement.statistics == (statistic,)
    printed = run(f"meta --human {human} -m chrf ter --resamples 20 -q -f json").json
    assert printed == plain(agreement.records())
    assert "chrf" in agreement._repr_html_()


def test_meta_evaluate_reads_metric_scores(tmp_path: Path, run: Run) -> None:
    rows = [(s, n, (50 * n + len(s)) % 7) for s in SYSTEMS for n in range(1, 13)]
    scores = write_tsv(tmp_path / "mine.tsv", "system segment score", rows)
    agreement = tertium.meta_evaluate(
        RATINGS, scores=scores, statistic=["kendall", "pearson"], lower_better=["mine"], resamples=0
    )
    assert agreement.lower_better == ("mine",)
    options = f"--scores {scores} --statistic kendall pearson --lower-better mine --resamples 0"
    assert run(f"meta --human {RATINGS} {options} -q -f json").json == plain(agreement.records())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: tertium.explain("a text"), "expected a Segment, got 'a text'"),
        (lambda _: tertium.report("set.jsonl"), "expected a TestSet, got 'set.jsonl'"),
        (lambda _: tertium.compare("set.jsonl"), "expected a TestSet, got 'set.jsonl'"),
        (tertium.load_metric("chrf").score, "expects segments, got a test set: pass"),
        (lambda _: tertium.meta_evaluate(RATINGS), "no metric to evaluate"),
    ],
)
def test_wrong_arguments_are_errors(
    call: Callable[[tertium.TestSet], Any], message: str, systems: tertium.TestSet
) -> None:
    with pytest.raises(tertium.TertiumError, match=message):
        call(systems)


def test_report(systems: tertium.TestSet, tmp_path: Path, run: Run) -> None:
    report = tertium.report(
        systems,
        ["chrf", "bertscore:encoder=toy"],
        human=RATINGS,
        explain=2,
        tests=SignificanceTests(resamples=50),
    )
    assert isinstance(report, tertium.Report)
    assert {e.title for e in report.explained} == {"BERTScore"}
    report.write(tmp_path / "library.html")
    page = tmp_path / "command.html"
    options = f"--human {RATINGS} --count 2 --resamples 50 -o {page}"
    run(f"report {INPUTS} -m chrf bertscore:encoder=toy {options}")
    assert page.read_text() == (tmp_path / "library.html").read_text()
