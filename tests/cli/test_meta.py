"""`tertium meta`: figures by hand and of scipy, directories of other tools, published figures.

What it prints is recorded in `tests/golden`; wrong calls are in `test_errors`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.builders import write_jsonl, write_lines, write_tsv
from tests.cli.conftest import Run

import tertium
from tertium.data.testset import TestSet
from tertium.evaluation.paired_tests import SignificanceTests

SYSTEMS = ("A", "B", "C")
COLUMNS = "item system score"
FAST = "--resamples 20 -f json"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Human scores of two language pairs, a good and a bad metric on each."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    human: list[tuple[object, ...]] = []
    for lp in ("de-en", "fi-en"):
        truth = np.array([[1.0], [0.5], [0.0]]) + rng.normal(size=(3, 30))
        noisy = {"good": truth + rng.normal(0, 0.3, truth.shape), "bad": rng.normal(size=(3, 30))}
        cells = [(s, i) for s in range(3) for i in range(30)]
        human += [(lp, i + 1, SYSTEMS[s], truth[s, i]) for s, i in cells]
        for name, values in noisy.items():
            rows = [(i + 1, SYSTEMS[s], values[s, i]) for s, i in cells]
            write_tsv(f"{name}.{lp}.tsv", COLUMNS, rows)
    write_tsv("human.tsv", f"lp {COLUMNS}", human)


ALL = "meta --human human.tsv --scores good.de-en.tsv bad.de-en.tsv good.fi-en.tsv bad.fi-en.tsv"
ONE = "meta --human human.tsv --scores good.de-en.tsv --lps de-en"


def read_column(path: str, column: int, lp: str = "") -> list[float]:
    rows = [line.split("\t") for line in Path(path).read_text().splitlines()[1:]]
    return [float(row[column]) for row in rows if lp in (row[0], "")]


@pytest.mark.usefixtures("files")
def test_figures_equal_scipy(run: Run) -> None:
    result = run(f"{ALL} --resamples 100 -f json").json
    human = read_column("human.tsv", 3, "fi-en")
    expected = stats.pearsonr(human, read_column("good.fi-en.tsv", 2))[0]
    record = next(r for r in result["tasks"] if (r["metric"], r["sets"]) == ("good", ["fi-en"]))
    assert record["value"] == pytest.approx(expected)
    assert record["interval"][0] < record["value"] < record["interval"][1]
    assert (record["judged"], record["left_out"]) == (90, 0)
    assert result["average"][0]["average_rank"] == 1.0


@pytest.mark.usefixtures("files")
def test_p_values_and_intervals_in_files(run: Run) -> None:
    pairs = run(f"{ALL} --resamples 50 --pairs -f tsv").rows
    assert pairs[0] == ["metric", "other", "statistic", "set", "p"]
    assert pairs[1] == ["good", "bad", "pearson", "de-en", str(1 / 51)]
    header, one, _ = run(f"{ALL} --resamples 50 --confidence --lps de-en -f tsv").rows
    assert header == ["metric", "de-en", "de-en low", "de-en high", "rank"]
    assert 0.8 < float(one[2]) < float(one[1]) < float(one[3])


@pytest.mark.usefixtures("files")
def test_direction_and_exclusion(run: Run) -> None:
    up = run(f"{ONE} {FAST}").json["tasks"][0]["value"]
    down = run(f"{ONE} {FAST} --lower-better good").json["tasks"][0]["value"]
    assert down == pytest.approx(-up)
    assert run(f"{ONE} {FAST} --exclude C").json["tasks"][0]["judged"] == 60


@pytest.mark.usefixtures("files")
def test_translations_without_counterpart_are_counted(run: Run) -> None:
    rows = [(1, "A", 1.0), (2, "A", 2.0), (3, "A", 1.5), (1, "Q", 5)]
    write_tsv("part.de-en.tsv", COLUMNS, rows)
    command = "meta --human human.tsv --lps de-en --scores part.de-en.tsv -o out.json"
    printed = run(f"{command} --resamples 20").out
    counts = {
        "scored system without human judgments": 1,
        "judged system without a metric score": 2,
    }
    for reason, count in counts.items():
        assert f"de-en: {reason}: {count} (part)" in printed
    written = json.loads(Path("out.json").read_text())
    assert written["tasks"][0]["left_out"] == 87
    assert written["left_out"]["de-en"]["part"] == counts


@pytest.mark.usefixtures("files")
def test_a_protocol_ranks_metrics_as_a_shared_task(run: Run) -> None:
    record = run(ALL.replace("meta", "meta protocol wmt24") + f" {FAST}").json
    assert [(t["sets"], t["statistic"]) for t in record["tasks"][::2]] == [
        (["de-en"], "spa"),
        (["de-en"], "acc-eq*"),
        (["fi-en"], "spa"),
        (["fi-en"], "acc-eq*"),
    ]
    assert {r["metric"]: r["rank"] for r in record["average"]} == {"good": 1, "bad": 2}
    assert record["missing"] == ["en-de", "en-es", "ja-zh"]


def test_an_excluded_system_need_not_be_in_every_set(tmp_path: Path, run: Run) -> None:
    rows = [(n, s, 10.0 * n + m) for n in range(1, 5) for m, s in enumerate("ABCD")]
    files: dict[str, list[str]] = {"human": [], "mine": []}
    for lp, systems in (("de-en", "ABC"), ("fi-en", "BCD")):
        chosen = [row for row in rows if row[1] in systems]
        with_pair = [(lp, *row) for row in chosen]
        files["human"].append(write_tsv(tmp_path / f"{lp}.tsv", f"lp {COLUMNS}", with_pair))
        files["mine"].append(write_tsv(tmp_path / f"mine.{lp}.tsv", COLUMNS, chosen))
    command = f"meta --human {' '.join(files['human'])} --scores {' '.join(files['mine'])}"
    tasks = run(f"{command} --exclude A {FAST}").json["tasks"]
    assert [task["judged"] for task in tasks] == [8, 12]
    error = run(f"{command} --exclude Z", code=2).err
    assert "unknown system of de-en, fi-en 'Z' (known: A, B, C, D)" in error


def test_ratings_can_be_standardized(tmp_path: Path, run: Run) -> None:
    """A strict and a lenient annotator of equal judgment: z-scores make them agree."""
    rows = [
        (n + 1, "A", annotator, 20 * shift + 10 * value)
        for n, value in enumerate([1, 2, 3, 4])
        for annotator, shift in (("x", 0), ("y", n % 2 + 1))
    ]
    human = write_tsv(tmp_path / "raw.tsv", "item system annotator score", rows)
    scores = write_tsv(tmp_path / "m.tsv", COLUMNS, [(n, "A", n) for n in range(1, 5)])
    [task] = run(f"meta --human {human} --scores {scores} --standardize {FAST}").json["tasks"]
    assert task["used"] == 4
    assert task["value"] > 0.9


def test_a_metric_where_lower_is_better_is_negated(tmp_path: Path, run: Run) -> None:
    texts = {"a b c d e f": 1.0, "a b c d": 0.6, "a b x y": 0.1, "x y z": -1.0, "a b c d e": 0.9}
    rows = [
        {"lp": "de-en", "segment": n, "system": "AABBA"[n], "hypothesis": text, "score": score}
        | {"reference": "a b c d e f"}
        for n, (text, score) in enumerate(texts.items())
    ]
    human = write_jsonl(tmp_path / "da.jsonl", rows)
    tasks = run(f"meta --human {human} -m chrf ter {FAST}").json["tasks"]
    assert all(task["value"] > 0.9 for task in tasks)
    [task] = run(f"meta --human {human} -m chrf --statistic accuracy {FAST}").json["tasks"]
    assert task["value"] == 1.0


@pytest.mark.parametrize(
    "name",
    [
        lambda n: {"segment": n},  # from nought: a number is no line
        lambda n: {"id": f"talk-{n}"},
        lambda n: {"segment": n % 10, "doc": f"talk {n // 10}"},
    ],
)
def test_written_scores_match_the_judged_segments(name: Any, tmp_path: Path, run: Run) -> None:
    """A file with translations and human scores gives aligned scores."""
    rng = np.random.default_rng(6)
    words = [f"word{k}" for k in range(12)]
    rows = []
    for system in range(3):
        for n in range(30):
            is_right = rng.random(12) > 0.2 * system
            text = " ".join(word for word, right in zip(words, is_right, strict=True) if right)
            fields = {"system": SYSTEMS[system], "mt": text, "score": float(is_right.sum())}
            rows.append({**name(n), "ref": " ".join(words), **fields})
    both, scores = write_jsonl(tmp_path / "set.jsonl", rows), tmp_path / "scores.tsv"
    run(f"score -t {both} -m chrf -q -o {scores}")
    [computed] = run(f"meta --human {both} -m chrf {FAST}").json["tasks"]
    [read] = run(f"meta --human {both} --scores {scores} {FAST}").json["tasks"]
    assert computed["value"] == pytest.approx(read["value"], abs=1e-12)
    assert computed["value"] > 0.9
    tests = SignificanceTests(resamples=2)
    testset = TestSet.from_records(both)
    grid = tertium.report(testset, "chrf", human=both, explain=0, tests=tests).grid
    assert np.corrcoef(grid.human, grid.columns[0].values)[0, 1] == pytest.approx(computed["value"])


def test_comparisons_use_tau_strict_by_default(tmp_path: Path, run: Run) -> None:
    rows = [
        (1, "A", "B", "a", "the cat sat", "a dog", "the cat sat"),
        (1, "B", "C", "tie", "a dog", "the dog", "the cat sat"),
        (2, "A", "B", "b", "no", "yes indeed", "yes indeed"),
    ]
    header = "item system_a system_b preference hypothesis_a hypothesis_b reference"
    human = write_tsv(tmp_path / "pairs.tsv", header, rows)
    task = run(f"meta --human {human} -m chrf {FAST}").json["tasks"][0]
    assert (task["statistic"], task["value"], task["judged"]) == ("tau-strict", 1.0, 2)


def test_a_folder_of_mt_metrics_eval(tmp_path: Path, run: Run) -> None:
    """Three systems, four segments, MQM, one metric's scores."""
    right = ["das ist gut", "ein Haus", "zwei Hunde", "so ist es"]
    outputs = {
        "A": right,
        "B": ["das ist gut", "ein Hund", "zwei Hunde", "so ist er"],
        "C": ["was nun", "kein Hund", "drei", "so"],
    }
    mqm = {"A": "0 0 0 0", "B": "0 -5 0 -1", "C": "-25 -6 -5 None"}
    files = {
        "sources/en-de.txt": "1234",
        "references/en-de.refA.txt": right,
        **{f"system-outputs/en-de/{name}.txt": texts for name, texts in outputs.items()},
        "human-scores/en-de.mqm.seg.score": [f"{s}\t{v}" for s in mqm for v in mqm[s].split()],
        "human-scores/en-de.mqm.sys.score": ["A\t0", "B\t-1.5", "C\t-12"],
        "metric-scores/en-de/poor-refA.seg.score": [f"{s}\t{n}" for s in "ABC" for n in "1234"],
    }
    for name, lines in files.items():
        write_lines(tmp_path / "wmt99" / name, lines)
    command = f"meta --human {tmp_path}/wmt99 {FAST}"
    [stored] = run(f"{command} --statistic acc-eq").json["tasks"]
    assert (stored["metric"], stored["judged"], stored["groups"]) == ("poor-refA", 10, 4)
    # By hand: A and B tie on segments 1 and 3, which the constant metric gets right: 2 ties of
    # 3 pairs each make 1/3, nothing on 2 and 4; the mean over four segments is 1/6.
    assert stored["value"] == pytest.approx(1 / 6)
    for statistic, count in (("acc-eq*", 10), ("accuracy", 3), ("spa", 3)):
        [task] = run(f"{command} -m chrf --statistic {statistic}").json["tasks"]
        assert task["judged"] == count
        assert statistic == "spa" or task["value"] == 1.0


@pytest.mark.parametrize(
    ("command", "expected", "tolerance"),
    [
        (  # data/README.md: chrF on WMT17 at segment level, as published to .003.
            "da/wmt17 -m chrf",
            {"cs": 0.517, "de": 0.531, "fi": 0.671, "lv": 0.525, "ru": 0.599, "tr": 0.607}
            | {"zh": 0.591},
            0.0006,
        ),
        # data/README.md: strict tau of sentence BLEU with effective order on WMT12.
        ("rankings/wmt12 -m bleu", {"cs": 0.157, "fr": 0.199}, 0.0006),
    ],
)
def test_published_figures(
    command: str, expected: dict[str, float], tolerance: float, human_data: Path, run: Run
) -> None:
    pairs = " ".join(f"{source}-en" for source in expected)
    result = run(f"meta --data {human_data} --human {command} --lps {pairs} {FAST}").json
    values = {task["sets"][0].partition("-")[0]: task["value"] for task in result["tasks"]}
    assert values == {lp: pytest.approx(value, abs=tolerance) for lp, value in expected.items()}


def test_a_translation_without_a_reference_has_no_score(tmp_path: Path, run: Run) -> None:
    rows = [
        {"system": s, "segment": str(n), "hypothesis": f"{s} {n} word", "score": float(n + len(s))}
        | ({} if s == "ref" else {"reference": f"b {n} word"})
        for s in ("a", "b", "ref")
        for n in range(8)
    ]
    human = write_jsonl(tmp_path / "human.jsonl", rows)
    record = run(f"meta --human {human} -m chrf bleu {FAST}").json["tasks"][0]
    assert (record["judged"], record["used"], record["left_out"]) == (24, 16, 8)


@pytest.mark.parametrize("score", ["1e308", "-1e101", "inf"])
def test_huge_scores_are_one_line_errors(score: str, tmp_path: Path, run: Run) -> None:
    rows = [(s, n) for s in "ab" for n in range(1, 5)]
    human = write_tsv(
        tmp_path / "human.tsv",
        "system item score mt ref",
        [(s, n, n % 3, "x", "y") for s, n in rows],
    )
    scored = [(s, n, score if n == 3 else n) for s, n in rows]
    scores = write_tsv(tmp_path / "scores.tsv", "system segment score", scored)
    error = run(f"meta --human {human} --scores {scores} -o {tmp_path}/page.html", code=2).err
    assert f"scores.tsv, line 4: the score '{score}' is too large" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "page.html").exists()
