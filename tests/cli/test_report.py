"""`tertium report`, and the pages of score, compare and meta."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from tertium.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SYSTEMS = [str(EXAMPLES / f"system-{name}.en.txt") for name in ("good", "fair", "poor")]
INPUTS = [
    "-s",
    str(EXAMPLES / "source.de.txt"),
    "-t",
    *SYSTEMS,
    "-r",
    str(EXAMPLES / "reference-a.en.txt"),
    "--names",
    "good",
    "fair",
    "poor",
]


def data_of(page: Path) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8")
    packed = re.search(r'id="data">([^<]*)<', text)
    assert packed is not None
    matches: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed[1])))
    return matches


def test_report_has_scores_human_scores_and_explanations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    code = main(
        [
            "report",
            *INPUTS,
            "-m",
            "chrf",
            "ter",
            "bertscore:encoder=toy",
            "--human",
            str(EXAMPLES / "ratings.csv"),
            "--count",
            "2",
            "-o",
            str(page),
            "--title",
            "Mine & yours",
        ]
    )
    assert code == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "wrote" in captured.err
    text = page.read_text(encoding="utf-8")
    assert "<title>Mine &amp; yours</title>" in text
    assert not re.search(r'(src|href)="(?!#)', text)  # no external resources
    data = data_of(page)
    assert [c["name"] for c in data["columns"]] == ["chrF", "TER", "BERTScore"]
    assert data["human"]["values"][0] is not None
    explained = {(item, title) for item, _, title, _ in data["explanations"]}
    assert len({item for item, _ in explained}) == 2
    assert {title for _, title in explained} == {"BERTScore"}


def test_agreement_uses_seed_and_alpha(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    people = ["--human", str(EXAMPLES / "ratings.csv"), "--count", "0", "-o", str(page)]
    options = ["-m", "chrf", "ter", "--seed", "7", "--alpha", "0.01", "--paired-bs-n", "100"]
    assert main(["report", *INPUTS, *options, *people]) == 0
    agreement = page.read_text(encoding="utf-8").partition('id="agreement-with-human-scores"')[2]
    assert "p &lt; 0.01 one-sided, 1000 resamples, seed 7" in agreement


def test_warnings_can_be_filtered(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    texts = [f"line {n}" for n in range(9)]
    texts[4] = "это не по-английски"
    (tmp_path / "out.txt").write_text("\n".join(texts))
    (tmp_path / "ref.txt").write_text("\n".join(f"line {n}" for n in range(9)))
    page = tmp_path / "page.html"
    main(
        [
            "score",
            "-t",
            str(tmp_path / "out.txt"),
            "-r",
            str(tmp_path / "ref.txt"),
            "-m",
            "bertscore:encoder=minilm",
            "-o",
            str(page),
            "-q",
        ]
    )
    data = data_of(page)
    bit = 1 << data["warnings"].index("language unknown to minilm")
    assert [n for n, bits in enumerate(data["warningBits"]) if bits & bit] == [4]


def test_preferences_count_as_human_scores(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    main(
        [
            "report",
            *INPUTS,
            "-m",
            "chrf",
            "-o",
            str(page),
            "-q",
            "--human",
            str(EXAMPLES / "preferences.tsv"),
        ]
    )
    values = data_of(page)["human"]["values"]
    assert len([v for v in values if v is not None]) == 3 * 48
    assert max(values) == 1000  # shares of comparisons won, three decimals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "no/such/folder/page.html"], "the folder no/such/folder does not exist"),
        (["--count", "-1"], "expected zero or more"),
        (["--human", str(EXAMPLES / "documents.txt")], ""),
        (["--ranker", "chrf"], "--ranker was removed: use `tertium rank`"),
        (["--curves", "x.json"], "--curves was removed: reports show no learning curves"),
    ],
)
def test_invalid_report_options_are_errors(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *INPUTS, "-m", "chrf", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "paired randomization, two-sided, 10000 trials"),
        (["--paired-ar", "--paired-ar-n", "50"], "paired randomization, two-sided, 50 trials"),
        (["--paired-ar-n", "50"], "paired randomization, two-sided, 50 trials"),
        (["--paired-bs", "--paired-bs-n", "60"], "paired bootstrap, 60 resamples"),
    ],
)
def test_slices_use_the_requested_test(arguments: list[str], message: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    options = ["--by", "length", "--count", "0", *arguments, "-q", "-o", str(page)]
    assert main(["report", *INPUTS, "-m", "chrf", *options]) == 0
    sliced = page.read_text(encoding="utf-8").partition("by length")[2]
    assert f"p: difference to good, {message}" in sliced


def test_slices_of_score_are_tested_on_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    options = ["--by", "length", "-q", "-o", str(page)]
    assert main(["score", *INPUTS, "-m", "chrf", *options]) == 0
    sliced = page.read_text(encoding="utf-8").partition("by length")[2]
    assert "p: difference to good, paired randomization, two-sided" in sliced


def test_metric_without_support_is_left_out_of_challenge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """tertium-small knows English alone, and `damage` has ten languages' pairs."""
    page = tmp_path / "page.html"
    call = ["report", *INPUTS, "--challenge", "damage", "--count", "0", "-o", str(page)]
    assert main([*call, "--paired-bs-n", "20", "-m", "chrf", "tertium-small"]) == 0
    assert "tertium-small cannot score challenge set damage: tertium-small needs" in caplog.text
    section = page.read_text(encoding="utf-8").partition('id="challenge-study"')[2]
    assert "chrF %" in section
    assert "tertium-small %" not in section
    assert main([*call, "--paired-bs-n", "20", "-m", "tertium-small"]) == 2
    assert "--challenge damage: no metric can score it" in capsys.readouterr().err


def test_human_scores_of_other_systems_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renamed = [*INPUTS[:-3], "a", "b", "c"]
    assert main(["report", *renamed, "-m", "chrf", "--human", str(EXAMPLES / "ratings.csv")]) == 2
    assert "--names" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["score", "compare"])
def test_score_and_compare_also_write_the_report(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main([command, *INPUTS, "-m", "chrf", "-f", "tsv", "-o", str(page)]) == 0
    assert capsys.readouterr().out.startswith("system\t")
    assert "Ranking of systems" in page.read_text()
    assert len(data_of(page)["items"]) == 48


def test_report_of_one_system_has_intervals(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    main(
        [
            "score",
            "-t",
            SYSTEMS[0],
            "-r",
            str(EXAMPLES / "reference-a.en.txt"),
            "-m",
            "chrf",
            "-o",
            str(page),
            "-q",
        ]
    )
    assert re.search(r"range\">\(μ = \d+\.\d\d ± \d\.\d\d\)</span>", page.read_text())


def test_rank_names_what_writes_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rank", *INPUTS, "-m", "chrf", "--report", "x.html"]) == 2
    advice = "--report was removed: use -o FILE.html"
    assert advice in capsys.readouterr().err


SYSTEM_LEVEL = ("--level", "system", "--resamples", "0")  # no resampling at system level


def meta_page(page: Path, human: Path, *more: object) -> str:
    """The report of `tertium meta`."""
    message = ["meta", "--human", human, *more, "-o", page, "-q"]
    assert main([*map(str, message)]) == 0
    return page.read_text()


def test_meta_report_has_agreement_and_translations(tmp_path: Path) -> None:
    human = tmp_path / "judged.jsonl"
    rows = [
        {
            "system": system,
            "item": str(n),
            "score": 50 + n * (1 if system == "A" else -1),
            "hypothesis": f"{system} says <{n}>",
            "references": [f"says {n}"],
            "source": f"sagt {n}",
        }
        for system in "AB"
        for n in range(12)
    ]
    human.write_text("\n".join(json.dumps(row) for row in rows))
    page = tmp_path / "page.html"
    text = meta_page(
        page, human, "-m", "chrf", "bleu", "--resamples", "20", "--statistic", "pearson", "kendall"
    )
    assert "Pearson r, segment level" in text
    assert "Kendall tau-b, segment level" in text
    assert "Metrics against human scores" in text
    data = data_of(page)
    assert data["items"][3][2:] == ["sagt 3", ["says 3"], ["A says <3>", "B says <3>"]]
    assert data["human"]["values"][:2] == [500, 500]


def test_meta_report_shows_direction_of_metrics(tmp_path: Path) -> None:
    human = tmp_path / "judged.jsonl"
    words = "one two three four five six seven eight".split()
    rows = [
        {
            "system": system,
            "item": str(n),
            "score": 10 * n + (system == "A"),
            "hypothesis": " ".join(words[:n] + [system] * (8 - n)),
            "references": [" ".join(words)],
        }
        for system in "ABC"
        for n in range(1, 9)
    ]
    human.write_text("\n".join(json.dumps(row) for row in rows))
    page = tmp_path / "page.html"
    text = meta_page(page, human, "-m", "chrf", "ter", "--resamples", "50")
    chrf, ter = data_of(page)["columns"]
    assert (chrf["name"], ter["name"], ter["higherIsBetter"], ter["decimals"]) == (
        "chrf",
        "ter",
        False,
        2,
    )
    assert ter["values"][0] == 8750  # seven of eight words are wrong
    assert "ter: lower is better" in text
    assert "TER|nrefs:1|" in text
    assert "ter: r = -" in text  # the picture shows people against TER itself


def test_lower_better_scores_are_negated_and_named_so(tmp_path: Path) -> None:
    human, scores = tmp_path / "human.tsv", tmp_path / "mine.tsv"
    human.write_text("system\tscore\nA\t1\nB\t2\nC\t3\n")
    scores.write_text("system\tscore\nA\t0.3\nB\t0.2\nC\t0.1\n")
    page = tmp_path / "page.html"
    text = meta_page(page, human, *SYSTEM_LEVEL, "--scores", scores, "--lower-better", "mine")
    assert "mine: lower is better" in text
    assert "−mine" in text
    assert "r = 1.000, n = 3" in text


def test_system_level_report_has_dots_of_systems(tmp_path: Path) -> None:
    human, scores = tmp_path / "human.tsv", tmp_path / "mine.tsv"
    human.write_text("system\tscore\nA\t1\nB\t2\nC\t3\n")
    scores.write_text("system\tscore\nA\t0.1\nB\t0.3\nC\t0.2\n")
    page = tmp_path / "page.html"
    text = meta_page(page, human, *SYSTEM_LEVEL, "--scores", scores)
    assert "Each dot is a system." in text


def test_help_names_metrics_that_can_explain(capsys: pytest.CaptureFixture[str]) -> None:
    from tertium.core.registry import METRICS, resolve

    with pytest.raises(SystemExit):
        main(["report", "--help"])
    text = capsys.readouterr().out
    listed = re.search(r"score\s+\((.*?)\s+and\s+others\)", text, re.DOTALL)
    assert listed is not None
    for name in listed[1].split(", "):
        assert hasattr(resolve(METRICS, name, "metric"), "explain_segment"), name
