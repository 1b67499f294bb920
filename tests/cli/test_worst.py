"""`tertium worst`: files, formats and options."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tertium.cli import main

SOURCES = ["The train leaves at noon.", "Hi {name}!", "We met 5 < 6 there."]
OUTPUTS = ["", "Hallo {n}!", "Wir trafen 5 < 6 dort."]
REFERENCES = ["Der Zug fährt mittags.", "Hallo {name}!", "Wir haben 5 < 6 getroffen."]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    texts = {"src.txt": SOURCES, "ours.txt": OUTPUTS, "ref.txt": REFERENCES}
    for name, lines in texts.items():
        Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ["--source-language", "en", "--target-language", "de", "-m", "chrf"]
    return ["-s", "src.txt", "-t", "ours.txt", "-r", "ref.txt", *options]


def test_table_and_files(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    outputs = ["w.csv", "w.xlsx", "w.jsonl", "w.html"]
    assert main(["worst", *files, "-o", *outputs]) == 0
    assert "3 of 3 translations" in capsys.readouterr().out
    [first, second, _] = [json.loads(line) for line in Path("w.jsonl").read_text().splitlines()]
    assert (first["reason"], second["reason"]) == ("empty", "placeholders")
    rows = [*csv.reader(Path("w.csv").read_text(encoding="utf-8-sig").splitlines())]
    assert rows[0][:3] == ["rank", "reason", "chance"]
    assert rows[1][rows[0].index("warnings")] == "empty hypothesis"
    page = Path("w.html").read_text(encoding="utf-8")
    assert "placeholder {name} is missing in the translation" in page
    assert "Wir trafen 5 &lt; 6 dort." in page


def test_workbook_has_texts_scores_and_errors(files: list[str]) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    assert main(["worst", *files, "-o", "w.xlsx", "-n", "2", "-q"]) == 0
    sheet = openpyxl.load_workbook("w.xlsx").active
    header, _, second = ([cell.value for cell in row] for row in sheet.iter_rows())
    row = dict(zip(header, second, strict=True))
    assert (row["source"], row["translation"]) == ("Hi {name}!", "Hallo {n}!")
    assert isinstance(row["chrF"], float)
    assert row["errors"].startswith('critical placeholders: "{name}"')


def test_formats(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["worst", *files, "-f", "json"])
    assert [r["rank"] for r in json.loads(capsys.readouterr().out)] == [1, 2, 3]
    main(["worst", *files, "-f", "tsv", "-n", "1"])
    assert capsys.readouterr().out.splitlines()[1].startswith("1\tempty")


def test_wrong_options(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worst", *files, "-o", "w.txt"]) == 2
    assert "w.txt: expected a name that ends in .json, .jsonl, .tsv" in capsys.readouterr().err
    assert main(["worst", *files, "--per", "document=2"]) == 2
    assert "needs document names" in capsys.readouterr().err
    assert main(["worst", *files, "-o", "src.txt"]) == 2
