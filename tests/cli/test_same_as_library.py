"""The command line prints what the library functions return."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tertium
from tertium.cli import main
from tertium.evaluation.significance_options import SignificanceTests

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("good", "fair", "poor")
SYSTEMS = [str(EXAMPLES / f"system-{name}.en.txt") for name in NAMES]
REFERENCE = str(EXAMPLES / "reference-a.en.txt")
INPUTS = ["-t", *SYSTEMS, "-r", REFERENCE, "--names", *NAMES, "-q"]
RATINGS = str(EXAMPLES / "ratings.csv")


@pytest.fixture
def systems() -> tertium.TestSet:
    return tertium.TestSet.read(SYSTEMS, [REFERENCE], names=NAMES)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def run(*arguments: str) -> Any:
        assert main([*arguments, "-f", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_score(systems: tertium.TestSet, printed: Callable[..., Any]) -> None:
    records = tertium.score(systems, ["bleu", "chrf"]).records(segments=True)
    assert printed("score", *INPUTS, "-sl", "-m", "bleu", "chrf") == plain(records)


def test_compare(systems: tertium.TestSet, printed: Callable[..., Any]) -> None:
    comparison = tertium.compare(systems, "chrf", resamples=100, seed=3)
    options = ["--paired-bs-n", "100", "--seed", "3", "-m", "chrf"]
    assert printed("compare", *INPUTS, *options) == plain(comparison.records())


def test_rank(systems: tertium.TestSet, printed: Callable[..., Any]) -> None:
    ranking = tertium.rank(systems, "chrf")
    assert [record["system"] for record in ranking.records()] == ["good", "fair", "poor"]
    assert printed("rank", *INPUTS, "-m", "chrf") == plain(ranking.records())
    with_segments = plain(ranking.records(segments=True))
    assert printed("rank", *INPUTS, "-m", "chrf", "-sl") == with_segments
    assert "win probability" in ranking._repr_html_()


SCORED = "segment\tsystem\tscore\tmt\tref\n" + "".join(
    f"{n}\t{system}\t{n * n % 5 + len(system)}\t{text}\tthe cat {n}\n"
    for n in range(8)
    for system, text in (("a", f"a cat {n}"), ("bb", f"dog {n * n}"), ("ccc", "it is the cat"))
)
COMPARED = "segment\tsystem_a\tsystem_b\tpreference\thypothesis_a\thypothesis_b\tref\n" + "".join(
    f"{n}\tA\tB\t{'ab'[n % 2]}\ta cat {n}\tdog {n * n}\tthe cat {n}\n" for n in range(8)
)


@pytest.mark.parametrize(("text", "statistic"), [(SCORED, "pearson"), (COMPARED, "tau-strict")])
def test_meta_evaluate(
    text: str, statistic: str, tmp_path: Path, printed: Callable[..., Any]
) -> None:
    human = str(tmp_path / "human.tsv")
    Path(human).write_text(text)
    agreement = tertium.meta_evaluate(human, ["chrf", "ter"], resamples=20)
    assert agreement.statistics == (statistic,)
    options = ["--human", human, "-m", "chrf", "ter", "--resamples", "20", "-q"]
    assert printed("meta", *options) == plain(agreement.records())
    assert "chrf" in agreement._repr_html_()


def test_meta_evaluate_reads_metric_scores(tmp_path: Path, printed: Callable[..., Any]) -> None:
    rows = [(s, n, 50 * n + len(s)) for s in NAMES for n in range(1, 13)]
    text = "".join(f"{system}\t{n}\t{value % 7}\n" for system, n, value in rows)
    scores = tmp_path / "mine.tsv"
    scores.write_text(f"system\tsegment\tscore\n{text}")
    agreement = tertium.meta_evaluate(
        RATINGS, scores=scores, statistic=["kendall", "pearson"], lower_better=["mine"], resamples=0
    )
    assert agreement.lower_better == ("mine",)
    command = ["--human", RATINGS, "--scores", str(scores), "--statistic", "kendall", "pearson"]
    printed_records = printed("meta", *command, "--lower-better", "mine", "--resamples", "0", "-q")
    assert printed_records == json.loads(json.dumps(agreement.records()).replace("NaN", "null"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda systems: tertium.explain("a text"), "expected a Segment, got 'a text'"),
        (lambda systems: tertium.report("set.jsonl"), "expected a TestSet, got 'set.jsonl'"),
        (lambda systems: tertium.compare("set.jsonl"), "expected a TestSet, got 'set.jsonl'"),
        (
            lambda systems: tertium.load_metric("chrf").score(systems),
            "expects segments, got a test set: pass",
        ),
    ],
)
def test_wrong_argument_types_are_errors(
    call: Callable[[tertium.TestSet], Any], message: str, systems: tertium.TestSet
) -> None:
    with pytest.raises(tertium.TertiumError, match=message):
        call(systems)


def test_unsupported_statistics_are_errors() -> None:
    with pytest.raises(tertium.TertiumError, match="acc-eq"):
        tertium.meta_evaluate(RATINGS, "chrf", statistic="acc-eq", level="system")
    with pytest.raises(tertium.TertiumError, match="did you mean 'pearson'"):
        tertium.meta_evaluate(RATINGS, "chrf", statistic="person")
    with pytest.raises(tertium.TertiumError, match="no metric to evaluate"):
        tertium.meta_evaluate(RATINGS)


def test_report(systems: tertium.TestSet, tmp_path: Path) -> None:
    report = tertium.report(
        systems,
        ["chrf", "bertscore:encoder=toy"],
        human=RATINGS,
        explain=2,
        tests=SignificanceTests(resamples=50),
        title="Mine",
    )
    assert isinstance(report, tertium.Report)
    assert {e.title for e in report.explained} == {"BERTScore"}
    report.write(tmp_path / "library.html")
    page = tmp_path / "command.html"
    command = [
        "report",
        *INPUTS,
        "-m",
        "chrf",
        "bertscore:encoder=toy",
        "--human",
        RATINGS,
        "--count",
        "2",
        "--resamples",
        "50",
    ]
    assert main([*command, "--title", "Mine", "-o", str(page)]) == 0
    assert page.read_text() == (tmp_path / "library.html").read_text()
