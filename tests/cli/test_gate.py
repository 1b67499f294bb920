"""`tertium gate`: exit codes, settings, baselines and files for other programs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from lxml import etree  # type: ignore[import-untyped]
from tests.builders import EXAMPLES, SYSTEMS, write_jsonl
from tests.cli.conftest import Run
from tests.docs.workspace import parse_command
from tests.output.test_sarif import check_structure

SCHEMA = Path(__file__).parents[1] / "output" / "junit.xsd"
RULES = "-m chrf --margin chrf=1"
UNCLEAR = "-m chrf --margin chrf=11.4"
WORSE = "gate --baseline good.txt --candidate fair.txt -r reference.txt"
BETTER = "gate --baseline fair.txt --candidate good.txt -r reference.txt"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SYSTEMS:
        shutil.copy(EXAMPLES / f"system-{name}.en.txt", tmp_path / f"{name}.txt")
    shutil.copy(EXAMPLES / "source.de.txt", tmp_path / "source.txt")
    shutil.copy(EXAMPLES / "reference-a.en.txt", tmp_path / "reference.txt")
    monkeypatch.chdir(tmp_path)


def validate(path: str) -> etree._ElementTree:
    document = etree.parse(path)
    etree.XMLSchema(etree.parse(str(SCHEMA))).assertValid(document)
    return document


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (f"{BETTER} {RULES}", 0),
        (f"{WORSE} {RULES}", 1),
        (f"{WORSE} {UNCLEAR}", 3),
        (f"{WORSE} {UNCLEAR} --undecided pass", 0),
        (f"{WORSE} {UNCLEAR} --undecided fail", 1),
    ],
)
def test_exit_codes(command: str, code: int, run: Run) -> None:
    record = run(f"{command} -f json", code).json
    assert record["exit_code"] == code
    assert record["tests"][0]["margin"] == float(command.partition("chrf=")[2].split()[0])


def test_the_verdict_comes_first(run: Run) -> None:
    sentence = "Worse: fair.txt is worse than good.txt by more"
    for quiet in ("", "-q"):
        assert run(f"{WORSE} {RULES} {quiet}", code=1).out.startswith(sentence)
    table = run(f"{WORSE} {RULES} -f tsv", code=1)
    assert table.rows[0][:2] == ["metric", "segments"]
    assert "Worse: fair.txt" in table.err


def test_settings_with_language_pairs(run: Run) -> None:
    Path("project").mkdir()
    Path("project/pyproject.toml").write_text(
        '[tool.tertium.gate]\nmetrics = ["chrf"]\nsources = "../source.txt"\n'
        'references = ["../reference.txt"]\nmargin = {chrf = 1}\nmax = {empty = 0}\n'
        '[tool.tertium.gate.pairs.de-en]\nbaseline = "../fair.txt"\ncandidate = "../good.txt"\n'
        '[tool.tertium.gate.pairs.x]\nbaseline = "../good.txt"\ncandidate = "../poor.txt"\n'
        'margin = {chrf = 50}\nmax = {empty = "5%"}\n'
    )
    record = run("gate --config project/pyproject.toml -f json").json
    assert [(t["pair"], t["verdict"], t["margin"]) for t in record["tests"]] == [
        ("de-en", "better", 1),
        ("x", "pass", 50),
    ]
    assert [c["bound"] for c in record["conditions"]] == ["0", "5 %"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("[gate]\nmargins = {chrf = 1}\n", "unknown key 'margins': did you mean 'margin'"),
        (
            '[gate.pairs.de-en]\ncandidate = "good.txt"\n',
            "--baseline missing in gate.pairs.de-en",
        ),
    ],
)
def test_settings_of_the_folder_are_checked(settings: str, message: str, run: Run) -> None:
    Path("tertium.toml").write_text(settings)
    assert message in run("gate", code=2).err


def test_settings_of_the_folder_are_read(run: Run) -> None:
    Path("tertium.toml").write_text('[gate]\nmetrics = ["chrf"]\nmargin = {chrf = 1}\n')
    run(f"{BETTER} -q")


def test_a_baseline_stored_by_score(run: Run) -> None:
    spec = "bertr:encoder=toy"
    run(f"score -t fair.txt -r reference.txt -o main.json -m chrf {spec}")
    stored = BETTER.replace("fair.txt", "main.json")
    run(f"{stored} -m {spec} --margin {spec}=1")
    error = run(f"{stored} -m chrf++ --margin chrf++=1", code=2).err
    assert "main.json has no scores of chrf:word_order=2" in error
    assert "give the translations of the baseline" in run(f"{stored} {RULES}", code=2).err


def test_margins_are_calibrated(run: Run) -> None:
    printed = run(f"{WORSE.replace('gate', 'gate calibrate', 1)} -m chrf bleu").out
    assert "use: --margin chrf=16 bleu=26" in printed
    pair = 'baseline = "good.txt"\ncandidate = "fair.txt"\nreferences = ["reference.txt"]\n'
    Path("tertium.toml").write_text(
        f'[gate]\nmetrics = ["chrf"]\n[gate.pairs.a]\n{pair}[gate.pairs.b]\n{pair}'
    )
    records = run("gate calibrate -f json").json
    pairs = [(record["pair"], record["spec"]) for record in records]
    assert pairs == [("a", "chrf"), ("b", "chrf")]


def test_files_for_other_programs(run: Run) -> None:
    """JUnit and SARIF follow their schemas, and findings are located among other systems."""
    files = "-t good.txt fair.txt poor.txt -s source.txt -r reference.txt"
    options = f"{RULES} --max empty=0 'wrong language=0' --by length -o g.xml g.sarif -q"
    run(f"gate {files} --baseline good.txt --candidate poor.txt {options}", code=1)
    suite = validate("g.xml").find("testsuite")
    assert suite is not None
    cases = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert cases["chrF"] == cases["max empty"] == ["failure"]
    assert suite.get("tests") == str(len(cases))
    (result,) = check_structure(json.loads(Path("g.sarif").read_text()))
    place = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], place["artifactLocation"]["uri"]) == ("empty", "poor.txt")
    assert place["region"]["startLine"] == 24


def test_junit_replaces_characters_that_xml_forbids(run: Run) -> None:
    records = [
        {"system": system, "mt": text, "ref": "a b c", "domain": "news\ufffe\x07"}
        for system, text in (("old", "a b"), ("new", "a b c"))
        for _ in range(60)
    ]
    write_jsonl("systems.jsonl", records)
    names = "--baseline old --candidate new --by domain -o g.xml"
    run(f"gate -t systems.jsonl {names} {RULES} -q")
    cases = [case.get("name") for case in validate("g.xml").iter("testcase")]
    assert "chrF in domain news\ufffd␇" in cases


def test_junit_of_undecided_tests(run: Run) -> None:
    for option, code, count in (("fail", 1, "failures"), ("pass", 0, "skipped")):
        run(f"{WORSE} {UNCLEAR} -o g.xml --undecided {option}", code)
        assert validate("g.xml").find("testsuite").get(count) == "1"
    run(f"{WORSE} {UNCLEAR} -o g.xml", code=3)
    assert validate("g.xml").find("testsuite").get("failures") == "1"


def test_the_bundled_example_passes(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(EXAMPLES / "gate")
    assert "Better: system-good.en.txt is better" in run("gate").out


def test_the_workflow_and_the_hook_run_the_command() -> None:
    import yaml

    workflow = yaml.safe_load((EXAMPLES / "gate" / "workflow.yml").read_text())
    lines = [step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step]
    (hook,) = yaml.safe_load((EXAMPLES.parent / ".pre-commit-hooks.yaml").read_text())
    for line in (lines[-1], hook["entry"]):
        assert line.startswith("tertium gate")
        parse_command(line)
