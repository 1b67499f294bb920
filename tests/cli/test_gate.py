"""`tertium gate`: exit codes, settings, baselines and files for other programs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from lxml import etree  # type: ignore[import-untyped]
from tests.docs.workspace import parse_command
from tests.output.test_sarif import check_structure

from tertium.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SCHEMA = Path(__file__).parents[1] / "output" / "junit.xsd"
RULES = ["-m", "chrf", "--margin", "chrf=1"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("good", "fair", "poor"):
        shutil.copy(EXAMPLES / f"system-{name}.en.txt", tmp_path / f"{name}.txt")
    shutil.copy(EXAMPLES / "source.de.txt", tmp_path / "source.txt")
    shutil.copy(EXAMPLES / "reference-a.en.txt", tmp_path / "reference.txt")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gate(baseline: str, candidate: str, *options: str) -> int:
    files = ["--baseline", baseline, "--candidate", candidate, "-r", "reference.txt"]
    return main(["gate", *files, *(options or RULES)])


def validate(path: str) -> etree._ElementTree:
    document = etree.parse(path)
    etree.XMLSchema(etree.parse(str(SCHEMA))).assertValid(document)
    return document


def test_exit_codes() -> None:
    assert gate("good.txt", "good.txt") == 2  # one system given twice
    assert gate("fair.txt", "good.txt") == 0
    assert gate("good.txt", "fair.txt") == 1
    assert gate("good.txt", "fair.txt", "-m", "chrf", "--margin", "chrf=11.4") == 3
    undecided = ["-m", "chrf", "--margin", "chrf=11.4", "--undecided"]
    assert gate("good.txt", "fair.txt", *undecided, "pass") == 0
    assert gate("good.txt", "fair.txt", *undecided, "fail") == 1


def test_usage_errors_exit_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    Path("short.txt").write_text("one line\n")
    assert gate("good.txt", "short.txt") == 2  # not 1, which means worse
    assert main(["gate"]) == 2
    assert "--baseline and --candidate missing" in capsys.readouterr().err
    assert gate("good.txt", "fair.txt", "-m", "chrf", "--margin", "chrf") == 2
    assert "--margin chrf: expected NAME=VALUE" in capsys.readouterr().err
    assert gate("good.txt", "fair.txt", "-m", "chrf") == 2
    assert "chrf has no margin" in capsys.readouterr().err


def test_the_verdict_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    gate("good.txt", "fair.txt")
    assert capsys.readouterr().out.startswith("Worse: fair.txt is worse than good.txt by more")
    gate("good.txt", "fair.txt", *RULES, "-f", "json")
    record = json.loads(capsys.readouterr().out)
    assert (record["verdict"], record["exit_code"]) == ("worse", 1)
    gate("good.txt", "fair.txt", *RULES, "-q")
    assert capsys.readouterr().out.startswith("Worse: fair.txt is worse")
    assert record["tests"][0]["margin"] == 1
    gate("good.txt", "fair.txt", *RULES, "-f", "tsv")
    output = capsys.readouterr()
    assert output.out.splitlines()[0].split("\t")[:2] == ["metric", "segments"]
    assert "Worse: fair.txt" in output.err


def test_settings_with_language_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("project").mkdir()
    Path("project/pyproject.toml").write_text(
        '[tool.tertium.gate]\nmetrics = ["chrf"]\nsources = "../source.txt"\n'
        'references = ["../reference.txt"]\nmargin = {chrf = 1}\nmax = {empty = 0}\n'
        '[tool.tertium.gate.pairs.de-en]\nbaseline = "../fair.txt"\ncandidate = "../good.txt"\n'
        '[tool.tertium.gate.pairs.x]\nbaseline = "../good.txt"\ncandidate = "../poor.txt"\n'
        'margin = {chrf = 50}\nmax = {empty = "5%"}\n'
    )
    assert main(["gate", "--config", "project/pyproject.toml", "-f", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [(t["pair"], t["verdict"], t["margin"]) for t in record["tests"]] == [
        ("de-en", "better", 1),
        ("x", "pass", 50),
    ]
    assert [c["bound"] for c in record["conditions"]] == ["0", "5 %"]


def test_settings_of_the_folder_are_read_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("tertium.toml").write_text("[gate]\nmargins = {chrf = 1}\n")
    assert main(["gate"]) == 2
    assert "unknown key 'margins': did you mean 'margin'" in capsys.readouterr().err
    Path("tertium.toml").write_text('[gate.pairs.de-en]\ncandidate = "good.txt"\n')
    assert main(["gate"]) == 2
    assert "--baseline missing in gate.pairs.de-en" in capsys.readouterr().err
    Path("tertium.toml").write_text('[gate]\nmetrics = ["chrf"]\nmargin = {chrf = 1}\n')
    assert gate("fair.txt", "good.txt", "-q") == 0


def test_a_baseline_stored_by_score(capsys: pytest.CaptureFixture[str]) -> None:
    spec, margin = "bertr:encoder=toy", "bertr:encoder=toy=1"
    score = ["score", "-t", "fair.txt", "-r", "reference.txt", "-o", "main.json"]
    assert main([*score, "-m", "chrf", spec]) == 0
    assert gate("main.json", "good.txt", "-m", spec, "--margin", margin) == 0
    assert gate("main.json", "good.txt", "-m", "chrf++", "--margin", "chrf++=1") == 2
    assert "main.json has no scores of chrf:word_order=2" in capsys.readouterr().err
    assert gate("main.json", "good.txt") == 2
    assert "give the translations of the baseline" in capsys.readouterr().err


def test_records_name_systems_and_slices(capsys: pytest.CaptureFixture[str]) -> None:
    records = str(EXAMPLES / "examples.jsonl")
    names = ["--baseline", "fair", "--candidate", "good", "--by", "length", *RULES]
    assert main(["gate", "-t", records, *names, "-f", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["tests"]) == 5
    assert main(["gate", "-t", records, "--baseline", "fair", "--candidate", "god", *RULES]) == 2
    assert "did you mean 'good'" in capsys.readouterr().err


def test_findings_are_located_if_more_systems_are_given() -> None:
    files = ["-t", "good.txt", "fair.txt", "poor.txt", "-s", "source.txt", "-r", "reference.txt"]
    names = ["--baseline", "good.txt", "--candidate", "poor.txt", *RULES, "--max", "empty=0"]
    assert main(["gate", *files, *names, "-o", "g.sarif", "-q"]) == 1
    (result,) = check_structure(json.loads(Path("g.sarif").read_text()))
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "poor.txt"


def test_margins_are_calibrated(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--baseline", "good.txt", "--candidate", "fair.txt", "-r", "reference.txt"]
    assert main(["gate", "calibrate", *files, "-m", "chrf", "bleu"]) == 0
    assert "use: --margin chrf=16 bleu=26" in capsys.readouterr().out


def test_margins_of_several_pairs_are_one_list_in_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pair = 'baseline = "good.txt"\ncandidate = "fair.txt"\nreferences = ["reference.txt"]\n'
    Path("tertium.toml").write_text(
        f'[gate]\nmetrics = ["chrf"]\n[gate.pairs.a]\n{pair}[gate.pairs.b]\n{pair}'
    )
    assert main(["gate", "calibrate", "-f", "json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [(record["pair"], record["spec"]) for record in records] == [
        ("a", "chrf"),
        ("b", "chrf"),
    ]


def test_files_for_other_programs() -> None:
    files = ["-o", "g.xml", "g.sarif", "g.md", "g.html"]
    limits = ["--max", "empty=0", "wrong language=0", "-s", "source.txt", "--by", "length"]
    assert gate("good.txt", "poor.txt", *RULES, *limits, *files, "-q") == 1
    suite = validate("g.xml").find("testsuite")
    assert suite is not None
    cases = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert cases["chrF"] == cases["max empty"] == ["failure"]
    assert suite.get("tests") == str(len(cases))
    sarif = json.loads(Path("g.sarif").read_text())
    (result,) = check_structure(sarif)
    place = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], place["artifactLocation"]["uri"]) == ("empty", "poor.txt")
    assert place["region"]["startLine"] == 24
    assert Path("g.md").read_text().startswith("Worse: poor.txt is worse than good.txt")
    page = Path("g.html").read_text()
    assert page.index("Worse: poor.txt is worse") < page.index("<table")


def test_junit_replaces_characters_that_xml_forbids() -> None:
    records = [
        {"system": system, "mt": text, "ref": "a b c", "domain": "news\ufffe\x07"}
        for system, text in (("old", "a b"), ("new", "a b c"))
        for _ in range(60)
    ]
    lines = [json.dumps(record) for record in records]
    Path("systems.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    names = ["--baseline", "old", "--candidate", "new", "--by", "domain", "-o", "g.xml"]
    assert main(["gate", "-t", "systems.jsonl", *names, *RULES, "-q"]) == 0
    cases = [case.get("name") for case in validate("g.xml").iter("testcase")]
    assert "chrF in domain news\ufffd␇" in cases


def test_junit_of_undecided_tests() -> None:
    options = ["-m", "chrf", "--margin", "chrf=11.4", "-o", "g.xml"]
    gate("good.txt", "fair.txt", *options)
    assert validate("g.xml").find("testsuite").get("failures") == "1"
    gate("good.txt", "fair.txt", *options, "--undecided", "pass")
    assert validate("g.xml").find("testsuite").get("skipped") == "1"


def test_the_bundled_example_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(EXAMPLES / "gate")
    assert main(["gate"]) == 0
    assert "Better: system-good.en.txt is better" in capsys.readouterr().out


def test_the_workflow_and_the_hook_run_the_command() -> None:
    import yaml

    workflow = yaml.safe_load((EXAMPLES / "gate" / "workflow.yml").read_text())
    lines = [step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step]
    (hook,) = yaml.safe_load((EXAMPLES.parent / ".pre-commit-hooks.yaml").read_text())
    for line in (lines[-1], hook["entry"]):
        assert line.startswith("tertium gate")
        parse_command(line)
