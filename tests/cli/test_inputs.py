"""Input files of several commands: records with columns of any name, localization, settings."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.builders import EXAMPLES, write_jsonl, write_lines
from tests.cli.conftest import Run

ROWS: list[dict[str, Any]] = [
    {"input": "ein Hund", "output": "a dog", "gold": "the dog", "topic": "pets"},
    {"input": "eine Katze", "output": "a cat", "gold": "a cat", "topic": "pets"},
    {"input": "ein Auto", "output": "a car", "gold": "one car", "topic": "cars"},
]
FIELDS = "--fields hypothesis=output source=input reference=gold"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=[".jsonl", ".tsv", ".csv", ".parquet", ".xlsx"])
def records(request: pytest.FixtureRequest) -> str:
    path = Path(f"ours{request.param}")
    table = [[*ROWS[0]], *([*row.values()] for row in ROWS)]
    if path.suffix == ".jsonl":
        write_jsonl(path, ROWS)
    elif path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        pytest.importorskip("pandas").DataFrame(ROWS).to_parquet(path)
    elif path.suffix == ".xlsx":
        sheet = (workbook := pytest.importorskip("openpyxl").Workbook()).active
        for values in table:
            sheet.append(values)
        workbook.save(path)
    else:
        with path.open("w", newline="") as file:
            csv.writer(file, delimiter="," if path.suffix == ".csv" else "\t").writerows(table)
    return str(path)


def test_fields_are_read_from_columns_of_any_name(records: str, run: Run) -> None:
    header, *lines = run(f"score -t {records} {FIELDS} -m chrf -sl --with-texts -f tsv").rows
    assert header[:5] == ["system", "segment", "source", "translation", "reference"]
    texts = [[row["input"], row["output"], row["gold"]] for row in ROWS]
    assert [line[2:5] for line in lines] == texts
    assert {line[0] for line in lines} == {"ours"}
    # other columns keep their names
    assert "cars" in run(f"score -t {records} {FIELDS} -m chrf --by topic").out
    error = run(f"score -t {records} --fields hypothesis=outputs -m chrf", code=2).err
    assert "no column 'outputs' (--fields); columns are input, output, gold, topic" in error
    assert error.count("\n") == 1


def test_a_field_is_read_from_its_column_only(run: Run) -> None:
    write_jsonl("ours.jsonl", [{**row, "mt": "nothing alike", "ref": "x"} for row in ROWS])
    both = "--fields hypothesis=output reference=output"
    assert run(f"score -t ours.jsonl {both} -m chrf -b").out == "100.00\n"


def test_settings_file_of_the_folder_is_read(run: Run) -> None:
    write_lines("source.txt", ["You have {count} files."])
    write_lines("ours.txt", ["Sie haben {n} Dateien."])
    command = "check -s source.txt -t ours.txt --target-language de --fail-on"
    run(f"{command} critical", code=1)
    Path("tertium.toml").write_text('[check.severity]\nplaceholders = "minor"\n')
    run(f"{command} major")
    Path("tertium.toml").write_text("[check.suppress]\nplaceholders = [1]\n")
    run(f"{command} minor")


@pytest.fixture
def strings() -> None:
    for file in (EXAMPLES / "localization").iterdir():
        shutil.copy(file, ".")


@pytest.mark.usefixtures("strings")
def test_limits_languages_and_plural_forms_are_read(run: Run) -> None:
    """Plural forms of one string are not inconsistent."""
    record = run("check -t app.de.xliff -f json").json
    expected = dict.fromkeys(("placeholders", "numbers", "empty", "untranslated", "max-length"), 1)
    assert record["systems"]["app.de.xliff"]["counts"] == expected
    assert (record["source_language"], record["target_language"]) == ("en", "de")
    [system] = run("check -t app.pl.po -f json").json["systems"].values()
    assert system["counts"] == dict.fromkeys(("placeholders", "numbers", "empty"), 1)


@pytest.mark.usefixtures("strings")
def test_files_are_aligned_by_key(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    printed = run("check -s en.json -t de.json").out
    assert "placeholder {{name}} is missing" in printed
    assert "keys missing: 1 ('menu.close')" in caplog.text
    assert "keys not in the source file: 1 ('print')" in caplog.text


@pytest.mark.usefixtures("strings")
def test_findings_are_written_back_and_listed(run: Run) -> None:
    run("check -t app.de.xliff -o problems.xlsx problems.sarif --write-back a.xlf")
    assert Path("problems.xlsx").is_file()
    lines = Path("a.xlf").read_text().splitlines()
    added = [line for line in lines if 'from="tertium"' in line]
    original = Path("app.de.xliff").read_text().splitlines()
    assert [line for line in lines if line not in added] == original
    assert len(added) == 5
    assert '[source: &lt;x id="count"/&gt;]' in added[0]
    [report] = json.loads(Path("problems.sarif").read_text())["runs"]
    place = report["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("app.de.xliff")
    assert place["region"]["startLine"] == 10


@pytest.mark.usefixtures("strings")
def test_scores_are_written_back(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    command = "score -t app.de.xliff -r app.de.xliff -m chrf --write-back a.xlf -sl"
    assert "editor.welcome" in run(command).out
    assert "strings without a translation: 1 of 7" in caplog.text
    assert Path("a.xlf").read_text().count('annotates="general">chrf: 100</note>') == 6
