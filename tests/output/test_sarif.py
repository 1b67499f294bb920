"""SARIF logs: their structure, places in files, and the findings of checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tertium
from tertium.checks.check_settings import CHECKS
from tertium.cli import main
from tertium.output.files import file_uri, make_log

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}


# the parts of the schema of SARIF 2.1.0 (OASIS, errata 01) that the logs use
# the parts of the schema of SARIF 2.1.0 (OASIS, errata 01) that the logs use
SCHEMA = json.loads((Path(__file__).parent / "sarif_schema.json").read_text("utf-8"))


def check_structure(log: dict[str, Any]) -> list[dict[str, Any]]:
    """Validate a log; return its results, whose rules are in the log."""
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft7Validator(SCHEMA).validate(log)
    (run,) = log["runs"]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(ids[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    return run["results"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_check(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    command = ["check", *arguments, "--target-language", "de", "-q", "-o", "found.sarif"]
    assert main(command) == 0
    return check_structure(json.loads(Path("found.sarif").read_text(encoding="utf-8")))


def place_of(location: dict[str, Any]) -> tuple[Any, ...]:
    place = location["physicalLocation"]
    region = place.get("region", {})
    names = ("startLine", "startColumn", "endColumn")
    return (place["artifactLocation"]["uri"], *(region.get(name) for name in names))


def test_findings_have_file_line_and_columns_in_code_points(folder, capsys):
    Path("source texts.txt").write_text("Yes.\n😀 You have {count} files.\n", encoding="utf-8")
    Path("ours.txt").write_text("Ja.\n😀 Sie haben {n} Dateien.\n", encoding="utf-8")
    missing, added = run_check(capsys, "-s", "source texts.txt", "-t", "ours.txt")
    assert missing["ruleId"] == "placeholders"
    assert missing["level"] == "error"
    # the translation is wrong, the source shows what is missing
    assert place_of(missing["locations"][0]) == ("ours.txt", 2, None, None)
    assert place_of(missing["relatedLocations"][0]) == ("source%20texts.txt", 2, 12, 19)
    assert place_of(added["locations"][0]) == ("ours.txt", 2, 13, 16)
    assert added["locations"][0]["physicalLocation"]["region"]["snippet"] == {"text": "{n}"}
    assert missing["partialFingerprints"] != added["partialFingerprints"]


def test_findings_in_records_are_in_the_line_of_their_record(folder, capsys):
    row = {"src": "In 1947", "mt": "Im Jahr 1974", "system": "a", "id": "year"}
    escaped = {"src": "In 1948", "mt": 'Im "Jahr" 1984', "system": "a", "id": "quote"}
    text = "\n".join(json.dumps(record) for record in (row, escaped))
    Path("texts.jsonl").write_text(f"\n{text}\n")
    first, second = run_check(capsys, "-t", "texts.jsonl")
    assert place_of(first["locations"][0]) == ("texts.jsonl", 2, 35, 39)
    assert first["locations"][0]["logicalLocations"] == [{"name": "year", "kind": "segment"}]
    # the text is escaped in the file: columns would be wrong
    assert place_of(second["locations"][0]) == ("texts.jsonl", 3, None, None)
    Path("texts.tsv").write_text("src\tmt\nIn 1947\tIm Jahr 1974\n")
    assert place_of(run_check(capsys, "-t", "texts.tsv")[0]["locations"][0]) == (
        *("texts.tsv", 2),
        *(17, 21),
    )


def test_rules_describe_every_check():
    log = make_log(tertium.check([""]))
    check_structure(log)
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [*(check.id for check in CHECKS), "consistency"]
    first = rules[0]
    assert first["shortDescription"]["text"].startswith("Every placeholder")
    assert first["defaultConfiguration"] == {"level": "error"}
    assert "Wrong: '%d files in {folder}'" in first["help"]["text"]


def test_findings_of_texts_in_memory_have_no_file(tmp_path, folder):
    report = tertium.check(["Im Jahr 1974"], sources=["In 1947"], target_language="de")
    path = tmp_path / "f.sarif"
    report.write(path)
    (result,) = check_structure(json.loads(path.read_text()))
    assert result["locations"] == [{"logicalLocations": [{"name": "1", "kind": "segment"}]}]
    assert file_uri("./a b/ö.txt") == "a%20b/%C3%B6.txt"
    assert file_uri("../x.txt") == (folder.parent / "x.txt").as_uri()


def test_consistency_is_a_rule(folder, capsys):
    Path("source.txt").write_text("Open\nOpen\n")
    Path("ours.txt").write_text("Öffnen\nOffen\n", encoding="utf-8")
    (result,) = run_check(capsys, "-s", "source.txt", "-t", "ours.txt")
    assert result["ruleId"] == "consistency"
    report = tertium.check(["Öffnen", "Offen"], sources=["Open", "Open"], target_language="de")
    assert report.counts("system") == {"consistency": 1}
