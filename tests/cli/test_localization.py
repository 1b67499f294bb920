"""Localization files as input of commands, and `--write-back`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.localization.test_projects import WMT

from tertium.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "localization"
XLIFF, PO = "app.de.xliff", "app.pl.po"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file in EXAMPLES.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def counts(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, int]:
    capsys.readouterr()
    assert main(["check", *words, "-f", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    [system] = record["systems"].values()
    found: dict[str, int] = system["counts"]
    return found


def test_check_reads_limits_languages_and_missing_translations(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = counts(capsys, "-t", XLIFF)
    expected = dict.fromkeys(("placeholders", "numbers", "empty", "untranslated", "max-length"), 1)
    assert found == expected
    main(["check", "-t", XLIFF, "-f", "json"])
    record = json.loads(capsys.readouterr().out)
    assert (record["source_language"], record["target_language"]) == ("en", "de")


def test_plural_forms_are_not_inconsistent(capsys: pytest.CaptureFixture[str]) -> None:
    assert counts(capsys, "-t", PO) == dict.fromkeys(("placeholders", "numbers", "empty"), 1)


def test_check_aligns_files_by_key(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert main(["check", "-s", "en.json", "-t", "de.json"]) == 0
    assert "placeholder {{name}} is missing" in capsys.readouterr().out
    assert "keys missing: 1 ('menu.close')" in caplog.text
    assert "keys not in the source file: 1 ('print')" in caplog.text


def test_findings_are_written_back_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "-t", XLIFF, "-o", "problems.xlsx", "problems.sarif", "--write-back", "a.xlf"]
    assert main(words) == 0
    assert Path("problems.xlsx").is_file()
    lines = Path("a.xlf").read_text().splitlines()
    added = [line for line in lines if 'from="tertium"' in line]
    assert [line for line in lines if line not in added] == Path(XLIFF).read_text().splitlines()
    assert len(added) == 5
    assert '[source: &lt;x id="count"/&gt;]' in added[0]
    [run] = json.loads(Path("problems.sarif").read_text())["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith(XLIFF)
    assert place["region"]["startLine"] == 10


def test_scores_are_written_back(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    words = ["score", "-t", XLIFF, "-r", XLIFF, "-m", "chrf", "--write-back", "a.xlf", "-sl"]
    assert main(words) == 0
    assert "editor.welcome" in capsys.readouterr().out
    assert "strings without a translation: 1 of 7" in caplog.text
    text = Path("a.xlf").read_text()
    assert text.count('annotates="general">chrf: 100</note>') == 6


def test_documents_and_states_are_slices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "-t", XLIFF, "-r", XLIFF, "-m", "chrf", "--by", "state"]) == 0
    assert "needs-review-translation" in capsys.readouterr().out
    assert main(["score", "-t", XLIFF, "-r", XLIFF, "-m", "chrf", "-dl"]) == 0
    assert "src/help.html" in capsys.readouterr().out


def test_wmt_xml_is_scored(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wmt.xml").write_text(WMT)
    assert main(["score", "-t", "wmt.xml", "-m", "chrf"]) == 0
    assert "ours" in capsys.readouterr().out
    assert main(["score", "-t", "wmt.xml", "-s", XLIFF, "-m", "chrf"]) == 2
    assert "give it alone, without other files, -s, -r" in capsys.readouterr().err


def test_wmt_sgml_is_scored_with_its_documents(capsys: pytest.CaptureFixture[str]) -> None:
    line = '<doc sysid="ours" docid="page"><seg id="1">{}</seg></doc>'
    Path("ref.sgm").write_text(f"<refset>{line.format('Hello there.')}</refset>")
    Path("out.sgm").write_text(f"<tstset>{line.format('Hello there.')}</tstset>")
    Path("out.txt").write_text("Hello {there}.\n")
    assert main(["score", "-t", "out.sgm", "-r", "ref.sgm", "-m", "chrf", "-dl"]) == 0
    assert re.search(r"ours +page +100", capsys.readouterr().out)
    assert main(["check", "-s", "ref.sgm", "-t", "out.txt", "-o", "out.sarif"]) == 0
    assert '"uri": "out.txt"' in Path("out.sarif").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-t", XLIFF, "plain.txt"], "is a localization file, plain.txt is not: give one kind"),
        (["-t", XLIFF, "--write-back", XLIFF], "is also an input file: give another name"),
        (["-t", "de.json", "--write-back", "x.json"], "scores can be written to"),
        (["-t", "plain.txt", "--write-back", "x.txt"], "scores can be written to"),
        (["-t", "missing.xliff"], "missing.xliff: no such file"),
        (["-s", "en.json", "-t", "broken.json"], "broken.json: not JSON"),
    ],
)
def test_wrong_options(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("plain.txt").write_text("a\n")
    Path("broken.json").write_text('{"a": }')
    assert main(["check", *words]) == 2
    assert message in capsys.readouterr().err
