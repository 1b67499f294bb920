"""Data of the pages of report, score, compare and meta; their texts are in transcripts."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.builders import EXAMPLES, SYSTEMS, write_jsonl, write_lines, write_tsv
from tests.cli.conftest import Run

from tertium.core.registry import METRICS, resolve

FILES = " ".join(f"{EXAMPLES}/system-{name}.en.txt" for name in SYSTEMS)
INPUTS = (
    f"-s {EXAMPLES}/source.de.txt -t {FILES} -r {EXAMPLES}/reference-a.en.txt "
    f"--names {' '.join(SYSTEMS)}"
)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.html"


def read_data(page: Path) -> dict[str, Any]:
    """Return the data of the segment browser."""
    text = page.read_text(encoding="utf-8")
    packed = re.search(r'id="data">([^<]*)<', text)
    assert packed is not None
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed[1])))
    return data


def test_report_has_scores_human_scores_and_explanations(page: Path, run: Run) -> None:
    command = f"report {INPUTS} -m chrf ter bertscore:encoder=toy --count 2"
    printed = run(f"{command} --human {EXAMPLES}/ratings.csv -o {page}")
    assert printed.out == ""
    assert "wrote" in printed.err
    text = page.read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(?!#)', text)  # no external resources
    data = read_data(page)
    assert [c["name"] for c in data["columns"]] == ["chrF", "TER", "BERTScore"]
    assert data["human"]["values"][0] is not None
    explained = {(item, title) for item, _, title, _ in data["explanations"]}
    assert len({item for item, _ in explained}) == 2
    assert {title for _, title in explained} == {"BERTScore"}


def test_warnings_can_be_filtered(tmp_path: Path, page: Path, run: Run) -> None:
    pytest.importorskip("torch")
    texts = [f"line {n}" for n in range(9)]
    reference = write_lines(tmp_path / "ref.txt", texts)
    texts[4] = "это не по-английски"
    system = write_lines(tmp_path / "out.txt", texts)
    run(f"score -t {system} -r {reference} -m bertscore:encoder=minilm -o {page} -q")
    data = read_data(page)
    bit = 1 << data["warnings"].index("language unknown to minilm")
    assert [n for n, bits in enumerate(data["warningBits"]) if bits & bit] == [4]


def test_preferences_count_as_human_scores(page: Path, run: Run) -> None:
    run(f"report {INPUTS} -m chrf -o {page} -q --human {EXAMPLES}/preferences.tsv --count 0")
    values = read_data(page)["human"]["values"]
    assert len([v for v in values if v is not None]) == 3 * 48
    assert max(values) == 1000  # shares of comparisons won, three decimals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "paired randomization, two-sided, 10000 trials"),
        ("--paired-ar --paired-ar-n 50", "paired randomization, two-sided, 50 trials"),
        ("--paired-bs --paired-bs-n 60", "paired bootstrap, 60 resamples"),
    ],
)
def test_slices_use_the_requested_test(options: str, message: str, page: Path, run: Run) -> None:
    run(f"report {INPUTS} -m chrf --by length --count 0 {options} -q -o {page}")
    sliced = page.read_text(encoding="utf-8").partition("by length")[2]
    assert f"p: difference to good, {message}" in sliced


@pytest.mark.parametrize("command", ["score", "compare"])
def test_score_and_compare_also_write_the_report(command: str, page: Path, run: Run) -> None:
    assert run(f"{command} {INPUTS} -m chrf -f tsv -o {page}").out.startswith("system\t")
    assert "Ranking of systems" in page.read_text()
    assert len(read_data(page)["items"]) == 48


def test_report_of_one_system_has_intervals(page: Path, run: Run) -> None:
    reference = f"{EXAMPLES}/reference-a.en.txt"
    run(f"score -t {EXAMPLES}/system-good.en.txt -r {reference} -m chrf -o {page} -q")
    assert re.search(r"range\">\(μ = \d+\.\d\d ± \d\.\d\d\)</span>", page.read_text())


def test_meta_report_has_translations_and_the_direction_of_metrics(
    tmp_path: Path, page: Path, run: Run
) -> None:
    words = "one two three four five six seven eight".split()
    rows = [
        {
            "system": system,
            "item": str(n),
            "score": 10 * n + (system == "A"),
            "hypothesis": " ".join(words[:n] + [f"<{system}>"] * (8 - n)),
            "references": [" ".join(words)],
            "source": f"sagt {n}",
        }
        for system in "ABC"
        for n in range(1, 9)
    ]
    human = write_jsonl(tmp_path / "judged.jsonl", rows)
    statistics = "--statistic pearson kendall --resamples 50"
    run(f"meta --human {human} -m chrf ter {statistics} -o {page} -q")
    text, data = page.read_text(), read_data(page)
    translations = [f"one <{system}>" + f" <{system}>" * 6 for system in "ABC"]
    assert data["items"][0][2:] == ["sagt 1", [" ".join(words)], translations]
    chrf, ter = data["columns"]
    names = chrf["name"], ter["name"], ter["higherIsBetter"], ter["decimals"]
    assert names == ("chrf", "ter", False, 2)
    assert ter["values"][0] == 8750  # seven of eight words are wrong
    for shown in (
        "Pearson r, segment level",
        "Kendall tau-b, segment level",
        "Metrics against human scores",
        "ter: lower is better",
        "TER|nrefs:1|",
        "ter: r = -",  # the picture shows people against TER itself
    ):
        assert shown in text


def test_lower_better_scores_are_negated_and_named_so(tmp_path: Path, page: Path, run: Run) -> None:
    human = write_tsv(tmp_path / "human.tsv", "system score", [("A", 1), ("B", 2), ("C", 3)])
    mine = [("A", 0.3), ("B", 0.2), ("C", 0.1)]
    scores = write_tsv(tmp_path / "mine.tsv", "system score", mine)
    options = f"--scores {scores} --level system --resamples 0 -o {page} -q"
    run(f"meta --human {human} {options} --lower-better mine")
    for shown in ("mine: lower is better", "−mine", "r = 1.000, n = 3", "Each dot is a system."):
        assert shown in page.read_text()


def test_help_names_metrics_that_can_explain(capsys: pytest.CaptureFixture[str], run: Run) -> None:
    with pytest.raises(SystemExit):
        run("report --help")
    listed = re.search(r"score\s+\((.*?)\s+and\s+others\)", capsys.readouterr().out, re.DOTALL)
    assert listed is not None
    for name in listed[1].split(", "):
        assert hasattr(resolve(METRICS, name, "metric"), "explain_segment"), name
