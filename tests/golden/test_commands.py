"""Commands print and write what was recorded: each command with its main outputs, and its help.

`transcripts` says what is compared, `python -m tests.golden.record` records again. The commands of
the documentation are recorded by `tests/docs/test_pages.py`.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.decisions import judged_files
from tests.docs.cli_reference import command_parsers
from tests.golden.store import FOLDER, is_recording
from tests.golden.transcripts import Transcript

from tertium.cli import main
from tertium.data.testset import TestSet

ROOT = FOLDER.parents[1]
EXAMPLES = ROOT / "examples"
LINES = 6  # of each example file
TEXT = "-t a.txt b.txt c.txt -r r1.txt r2.txt"
ALL_TEXT = f"-s src.txt {TEXT} --documents docs.txt"
GATE = "--baseline a.txt --candidate b.txt -r r1.txt"
STORED = "gate --baseline stored.json --candidate b.txt -s src.txt -r r1.txt"
FORMATS = "-f {text,tsv,json,md,latex}"
HELP_VERSION = (3, 11)  # of Python, whose argparse wrote the help

# `{a,b}` stands for one command with each.
SCRIPTS: dict[str, str] = {
    "score": f"""
        score {TEXT} -m bleu chrf {FORMATS}
        score {TEXT} -m bleu chrf -sl --with-texts -f {{text,tsv,json,md,latex,csv}}
        score {ALL_TEXT} -m chrf -dl {FORMATS}
        score {TEXT} -m bleu chrf ter nist meteor chrf++ -b
        score {TEXT} -m bleu chrf -w 1 --names x y z -q
        score {TEXT} -m bleu chrf --confidence {FORMATS}
        score {ALL_TEXT} -m chrf bleu --by document length -f {{text,json}}
        score {TEXT} -m chrf --paired-bs --resamples 100
        score {TEXT} -m chrf --paired-ar --resamples 100 -f json
        score {TEXT} -m chrf -f csv -sl
        score {ALL_TEXT} -m bleu chrf -o all.json
        score {TEXT} -m bleu chrf -o system.json --only-system
        score {TEXT} -m bleu chrf -o scores.{{tsv,csv,jsonl,parquet}}
        score {TEXT} -m bleu chrf -o scores.xlsx
        score {ALL_TEXT} -m bleu chrf -o report.html --by document
        score -s src.txt -t a.txt c.txt -m checks -o spans:spans.{{jsonl,tsv}}
        score -t systems.jsonl -m chrf -sl -f tsv
        score -t systems.jsonl -m tertium-small tertium-multi
        score -s src.txt -t c.txt -m tertium-multi -sl -o spans:errors.jsonl
        score -s src.txt -t c.txt -r r1.txt -m bertscore -sl -f json
        score -t app.xliff -m checks --write-back scored.xliff -sl
        score -t a.txt -r r1.txt -m chrf --dry-run
        score -t a.txt -r r1.txt -m bluu
        score -t a.txt -m chrf
        score -t a.txt -r short.txt -m chrf
        score -t missing.txt -r r1.txt
        score -t a.txt -r r1.txt -m chrf:word_order=x
        score -t a.txt -r r1.txt --no-such-option
        score -s src.txt -t a.txt -m checks -o errors.jsonl
        score -t a.txt -r r1.txt -m chrf --to-json scores.json
    """,
    "compare": f"""
        compare {TEXT} -m bleu chrf {FORMATS}
        compare {TEXT} -m chrf --paired-bs --resamples 200 {FORMATS}
        compare {TEXT} -m chrf --paired-ar --resamples 200 --pairs
        compare {TEXT} -m chrf ter --pairs {FORMATS}
        compare {ALL_TEXT} -m chrf --by document -f {{text,json}}
        compare {TEXT} -m chrf bleu -o compared.json
        compare {TEXT} -m chrf -o compared.html
        compare -t systems.jsonl -m tertium-small chrf
        compare -t a.txt -r r1.txt -m chrf
    """,
    "rank": f"""
        rank {TEXT} -m chrf {FORMATS}
        rank {TEXT} -m chrf -sl -f {{text,tsv,json}}
        rank {TEXT} -sl -o ranked.json
        rank {TEXT} -m chrf -o ranked.{{tsv,html}}
        rank -s src.txt -t a.txt b.txt -m tertium-multi
        rank candidates candidates.jsonl -m chrf -f {{text,tsv,json}}
        rank candidates candidates.jsonl -m chrf -o sorted.jsonl -q
        rank -t a.txt -r r1.txt -m chrf
        rank --nbest -t candidates.jsonl -m chrf
        rank {TEXT} --to-json ranked.json
    """,
    "check": f"""
        check -s src.txt -t c.txt {FORMATS}
        check -t app.xliff {FORMATS}
        check -t app.xliff --summary {FORMATS}
        check -t app.xliff -o found.{{xlsx,html,sarif,tsv,csv,jsonl,parquet}} -q
        check -t app.xliff --write-back checked.xliff
        check -t app.xliff --write-back both.xliff -o both.sarif --fail-on minor
        check -t app.po --fail-on critical --write-back checked.po
        check -s en.json -t de.json --source-language en --target-language de
        check -s src.txt -t a.txt b.txt --select numbers --max-length 80
        check -s src.txt -t a.txt --ignore numbers --terms terms.csv --do-not-translate names.txt
        check app.xliff --summary -q
        check --list-checks
        check -t a.txt
        check -s src.txt -t a.txt --select nothing
    """,
    "explain": """
        explain -m {tertium-small,bertscore,wmd,sentsim,mt-rte-r} -t c.txt -r r1.txt --segment 3
        explain -m tertium-multi -s src.txt -t c.txt --segment 3
        explain -m tertium-small -t c.txt -r r1.txt r2.txt --segment 3 -f {json,tsv,md}
        explain -m pairwise -t a.txt c.txt -r r1.txt --segment 2
        explain -m chrf -t a.txt c.txt -r r1.txt --segment 2 -f json
        explain --text -r "The blue car stopped." -t "The red car stopped."
        explain -m chrf -t a.txt -r r1.txt --segment 3
        explain -m bertscore -t a.txt -r r1.txt --segment 99
    """,
    "report": f"""
        report {ALL_TEXT} -m bleu chrf -o one.html
        report {ALL_TEXT} -m chrf --human ratings.csv --names good fair poor -o human.html
        report {ALL_TEXT} -m chrf tertium-small --count 3 -o explained.html
        report {TEXT} -m chrf bleu --ranker chrf -o ranker.html
        report -t a.txt
    """,
    "corpus": """
        corpus systems.jsonl -m chrf -o scored
        corpus systems.jsonl -m chrf -o scored --resume -f {json,tsv,md}
        corpus systems.jsonl -m chrf bleu -o again --keep 'chrf >= 50' -q
        corpus systems.jsonl -m chrf -o again
        corpus systems.jsonl -m chrf -o broken --keep 'chrf >='
        corpus missing.jsonl -m chrf -o none
    """,
    "gate": f"""
        gate {GATE} -m chrf --margin chrf=5 -f {{text,tsv,json,md}}
        gate --baseline b.txt --candidate a.txt -r r1.txt -m chrf bleu --margin chrf=5 bleu=5
        gate --baseline a.txt --candidate same.txt -r r1.txt r2.txt -m chrf --margin chrf=1
        gate {GATE} -m chrf --margin chrf=5 -o gate.json gate.html
        gate {GATE} -m chrf --margin chrf=5 -o gate.xml gate.md
        gate {GATE} -s src.txt -m checks --margin checks=1 -o gate.sarif
        gate {GATE} -m chrf --margin chrf=5 --min chrf=40 --max empty=0
        gate {GATE} -m chrf --margin chrf=5 --by document --documents docs.txt
        gate {GATE} -m tertium-small --margin human=5%
        gate {GATE} -m chrf --margin chrf=9 --undecided {{pass,fail}}
        score -s src.txt -t a.txt -r r1.txt -m chrf checks -o stored.json -q
        {STORED} -m checks --margin checks=5
        {STORED} -m chrf --margin chrf=5
        gate calibrate --baseline long-a.txt --candidate long-b.txt -r long-r.txt -m chrf bleu
        gate {GATE} -m chrf
    """,
    "worst": f"""
        worst {ALL_TEXT} -m chrf {FORMATS}
        worst {ALL_TEXT} -m chrf -n 4 -o worst.{{xlsx,csv,jsonl,html}}
        worst -s src.txt -t b.txt c.txt -m tertium-multi -n 5
        worst -t a.txt
    """,
    "route": """
        route fit --human judged.jsonl -m chrf --target-precision 0.6 -o route.json
        route fit --human judged.jsonl -m chrf --target-precision 0.6 -o other.json -f {tsv,json,md}
        route apply route.json -t few.jsonl -o labeled.jsonl
        route apply route.json -t few.jsonl -o labeled.csv -f {tsv,json,md}
        route apply route.json -t systems.jsonl -o labeled.xlsx
        route fit --human few.jsonl -m chrf -o none.json
        route
        route apply route.json -t few.jsonl -m chrf
    """,
    "train": """
        train bleu-r --train judgments.jsonl -o models/bleu-r -q
        train svr:encoders=toy --train judgments.jsonl --folds 2 --c 1 --gamma 0.1 -o models/svr
        score -t a.txt -r r1.txt -m models/bleu-r
        list models/bleu-r
        train bleu-r --train judgments.jsonl -o models/bleu-r
        train pairwise:features=bleucomp+chrf --train pairs.jsonl -o models/ranker
        train pairwise:features=bleucomp+chrf --train preferences.tsv -o models/none
        train blend:metrics=chrf+bleu --train judgments.jsonl -o models/blend
        train chrf --train judgments.jsonl -o models/chrf
        train bleu-r -o models/none
        train bleu-r --train judgments.jsonl -o models/none --epochs 3
    """,
    "meta": """
        meta --human judgments.jsonl -m bleu chrf {FORMATS}
        meta --human judgments.jsonl -m bleu chrf --statistic pearson kendall --grouping item
        meta --human judgments.jsonl -m bleu chrf --level segment system --pairs -f {text,tsv}
        meta --human judgments.jsonl -m bleu chrf --confidence --resamples 100 --standardize
        meta --human judgments.jsonl -m chrf bleu -o meta.json meta.svg
        meta --human judgments.jsonl -m chrf bleu -o meta.html
        meta diagnostics --human judgments.jsonl -m chrf bleu
        meta thresholds --human judgments.jsonl -m chrf bleu
        meta decisions --good-score 70 --human judgments.jsonl -m chrf bleu
        meta --human ratings.csv --scores scores.tsv
        meta --human missing.csv -m chrf
        meta challenge damage -m chrf bleu --lps de-en {FORMATS}
        meta challenge damage -m chrf --lps de-en --select number negation
        meta challenge damage -m chrf bleu --lps en-de -o chart.svg
        meta challenge damage -m chrf --lps xx-yy
        meta disagreement --human judgments.jsonl -m bleu chrf {FORMATS}
        meta disagreement --human judgments.jsonl -m bleu chrf --count 2
        meta disagreement --human judgments.jsonl -m bleu
        challenge damage -m chrf
        analyse judgments.jsonl -m bleu chrf
    """.replace("{FORMATS}", FORMATS),
    "plan": """
        plan --protocol esa --difference 3 {FORMATS}
        plan --protocol mqm --time 8h
        plan --protocol da --difference 2 -o power.svg --systems 3
        plan -s src.txt -t a.txt b.txt --segments 4 --raters x y -o campaign.json
        plan -s src.txt -t a.txt b.txt --segments 4 --raters 2 --protocol mqm -o mqm.json -q
        plan -s src.txt -t a.txt b.txt --segments 4 --raters 2 --choose stratified -o s.json -q
        plan convert campaign.json --as {pearmut,appraise,label-studio} -o converted.json
        plan --protocol nothing
    """.replace("{FORMATS}", FORMATS),
    "agree": """
        agree ratings.csv {FORMATS}
        agree ratings.csv --exclude annotator-1 --resamples 100 -o agree.json
        agree missing.csv
    """.replace("{FORMATS}", FORMATS),
    "annotate": """
        plan -s src.txt -t a.txt b.txt --segments 4 --raters x y -o campaign.json -q
        annotate campaign.json -o judgments.jsonl
        agree campaign.json -o judgments.jsonl
        annotate missing.json
    """,
    "list": """
        list {FORMATS}
        list all {FORMATS}
        list chrf {FORMATS}
        list {bleu,tertium-multi,pairwise,judge,blend}
        list nothing
        list checks {FORMATS}
        list citations bleu
        list citations chrf meteor pairwise tertium-multi
        list citations nothing
        list data --data human {FORMATS}
        list data da/wmt16 --data human -f {text,json}
        list data da/wmt99 --data human
        {cite,data,models} chrf
    """.replace("{FORMATS}", FORMATS),
    "setup": """
        setup install nothing
        setup cache
        setup cache limit 1G
        setup cache clear rows
        setup cache clear
        setup cache limit nothing
        cache clear
    """,
    "general": """
        --version
        scor
        score
    """,
}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write small files and enter their folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("TERTIUM_DATA", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    names = {
        "a": "system-good.en", "b": "system-fair.en", "c": "system-poor.en", "src": "source.de",
        "r1": "reference-a.en", "r2": "reference-b.en", "docs": "documents",
    }  # fmt: skip
    for short, name in names.items():
        copy_lines(EXAMPLES / f"{name}.txt", Path(f"{short}.txt"), LINES)
    copy_lines(Path("r1.txt"), Path("short.txt"), 2)
    shutil.copy("a.txt", "same.txt")
    for short in ("a", "b", "r1"):
        shutil.copy(EXAMPLES / f"{names[short]}.txt", f"long-{short[0]}.txt")
    localization = {"app.xliff": "app.de.xliff", "app.po": "app.pl.po"}
    for name in ("app.xliff", "app.po", "de.json", "en.json"):
        shutil.copy(EXAMPLES / "localization" / localization.get(name, name), name)
    shutil.copy(EXAMPLES / "ratings.csv", "ratings.csv")
    shutil.copy(EXAMPLES / "preferences.tsv", "preferences.tsv")
    Path("terms.csv").write_text("source,target\nMarkt,market\n")
    Path("names.txt").write_text("Berlin\nYıldız\n")
    testset = TestSet.read(["a.txt", "b.txt", "c.txt"], ["r1.txt", "r2.txt"], "src.txt", "docs.txt")
    testset.write("systems.jsonl")
    write_judgments()
    return tmp_path


def copy_lines(path: Path, copy: Path, count: int) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()[:count]
    copy.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_judgments() -> None:
    """Write human judgments with texts, of the example and of `judged_files`."""
    ratings = Path("ratings.csv").read_text(encoding="utf-8").splitlines()
    kept_ratings = [line for line in ratings[1:] if int(line.split(",")[1]) <= LINES]
    Path("ratings.csv").write_text("\n".join([ratings[0], *kept_ratings]) + "\n")
    testset = TestSet.from_records("systems.jsonl")
    names = {"good": "a.txt", "fair": "b.txt", "poor": "c.txt"}
    systems = {name: testset.segments(file) for name, file in names.items()}
    rows = []
    for line in kept_ratings:
        system, segment, annotator, score = line.split(",")
        texts = systems[system][int(segment) - 1]
        rows.append(
            {
                "lp": "de-en",
                "system": system,
                "segment": segment,
                "annotator": annotator,
                "score": float(score),
                "src": texts.source,
                "ref": texts.references[0],
                "mt": texts.hypothesis,
                "domain": "news" if int(segment) % 2 else "sport",
            }
        )
    judged_files.write_rows(Path("judgments.jsonl"), rows)
    judged_files.write_rows(Path("judged.jsonl"), judged_files.make_rows(120))
    judged_files.write_rows(Path("few.jsonl"), judged_files.make_rows(20))
    folder = Path("human/da/wmt16")
    folder.mkdir(parents=True)
    judged_files.write_rows(folder / "de-en.jsonl", rows)
    scores = [f"{row['system']}\t{row['segment']}\t{len(str(row['mt']))}" for row in rows]
    lines = ["system\tsegment\tscore", *dict.fromkeys(scores)]
    Path("scores.tsv").write_text("\n".join(lines) + "\n")
    candidates = [
        {"candidates": [segments[n].hypothesis for segments in systems.values()],
         "references": [testset.references[n][0]]}
        for n in range(LINES)
    ]  # fmt: skip
    judged_files.write_rows(Path("candidates.jsonl"), candidates)
    pairs = []
    for number, candidate in enumerate(candidates):
        for left, right in ((0, 1), (1, 2), (2, 0)):
            row = {"segment": str(number), "system_a": [*systems][left]}
            row |= {"system_b": [*systems][right], "preference": "a" if left < right else "b"}
            row |= {"hypothesis_a": candidate["candidates"][left]}
            row |= {"hypothesis_b": candidate["candidates"][right]}
            pairs.append(row | {"judge": "x", "reference": candidate["references"][0]})
    judged_files.write_rows(Path("pairs.jsonl"), pairs)


def expand(script: str) -> Iterator[str]:
    """Yield the commands of a script; braces stand for one command with each of their words."""
    for line in script.strip().splitlines():
        found = re.search(r"\{([^}]*)\}", line)
        words = found[1].split(",") if found else [""]
        for word in words:
            yield (line.replace(found[0], word) if found else line).strip()


def run(arguments: Sequence[str], shown: dict[str, str]) -> None:
    """Run a command and note what it prints and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([*arguments])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    shown.update({"stdout": out.getvalue(), "stderr": err.getvalue()})
    shown["exit code"] = str(code) if code else ""


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("name", SCRIPTS)
def test_output_of_commands(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if name == "setup":  # an empty cache
        monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path_factory.mktemp("empty-cache")))
    transcript = Transcript()
    for command in expand(SCRIPTS[name]):
        with transcript.step(f"tertium {command}") as shown:
            run(shlex.split(command), shown)
    transcript.check(FOLDER / "commands" / f"{name}.txt.gz")


def test_help_of_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.version_info[:2] != HELP_VERSION:
        pytest.skip("argparse formats help differently in each version of Python")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    transcript = Transcript()
    trainings = [f"train {name}" for name in ("esim", "svr", "blend", "pairwise", "tertium-multi")]
    for command in ("", *command_parsers(), *trainings):
        with transcript.step(f"tertium {command} --help") as shown:
            run([*command.split(), "--help"], shown)
    transcript.check(FOLDER / "commands" / "help.txt.gz")


def test_every_command_is_recorded() -> None:
    assert {*SCRIPTS} - {"general"} == {name.split()[0] for name in command_parsers()}
    recorded = {path.name.partition(".")[0] for path in (FOLDER / "commands").iterdir()}
    assert is_recording() or recorded == {*SCRIPTS, "help"}


def test_braces_stand_for_one_command_with_each_word() -> None:
    assert [*expand(" a -f {x,y}\n b ")] == ["a -f x", "a -f y", "b"]
