"""`tertium score` and `compare`: tables, machine-readable output, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from tests.docs.cli_reference import command_parsers
from tests.partial_metric import UNSCORED

from tertium.cli import main
from tertium.evaluation.metric_choice import MetricOptions
from tertium.metrics.base import word_tokenizers
from tertium.metrics.base.word_tokenizers import TOKENIZERS_BY_LANGUAGE

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SYSTEMS = [str(EXAMPLES / f"system-{name}.en.txt") for name in ("good", "fair", "poor")]
REFERENCES = [str(EXAMPLES / f"reference-{name}.en.txt") for name in ("a", "b")]
SOURCE = str(EXAMPLES / "source.de.txt")
INPUTS = ["-t", *SYSTEMS, "-r", *REFERENCES, "-s", SOURCE, "--names", "good", "fair", "poor"]


def lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def test_the_table_shows_systems_metrics_and_signatures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *INPUTS, "-m", "bleu", "chrf++"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert ["system", "BLEU", "↑", "chrF++", "↑"] in rows
    assert {"good", "fair", "poor"} <= {row[0] for row in rows if row}
    assert "BLEU|nrefs:2|case:mixed" in out


def test_json_has_the_fields_of_sacrebleu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "-t", SYSTEMS[0], "-r", *REFERENCES, "-m", "bleu", "-f", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    peer = SacreBLEU().corpus_score(lines(SYSTEMS[0]), [lines(r) for r in REFERENCES])
    assert record["name"] == "BLEU"
    assert record["score"] == peer.score
    assert record["verbose_score"] == peer._verbose


def test_several_systems_are_a_list_with_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *INPUTS, "-m", "bleu", "chrf", "-f", "json", "-sl"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [r["system"] for r in records] == ["good", "good", "fair", "fair", "poor", "poor"]
    assert all(len(r["segments"]) == len(lines(SOURCE)) for r in records)


def test_segment_tsv_has_full_precision(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *INPUTS, "-m", "chrf", "-sl", "-f", "tsv"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split("\t") == ["system", "segment", "chrF ↑"]
    assert len(rows) == 3 * len(lines(SOURCE))
    assert any(len(row.split("\t")[2]) > 10 for row in rows)


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("md", "| system | BLEU ↑ |"),
        ("latex", r"system & BLEU $\uparrow$ \\"),
        ("tsv", "system\tBLEU"),
    ],
)
def test_other_formats(capsys: pytest.CaptureFixture[str], style: str, expected: str) -> None:
    assert main(["score", *INPUTS, "-m", "bleu", "-f", style]) == 0
    assert expected in capsys.readouterr().out


def test_documents_score_only_and_width(capsys: pytest.CaptureFixture[str]) -> None:
    documents = ["--documents", str(EXAMPLES / "documents.txt")]
    assert main(["score", *INPUTS, *documents, "-m", "bleu", "-dl", "-f", "tsv"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 1 + 3 * len(set(lines(str(EXAMPLES / "documents.txt"))))
    assert main(["score", *INPUTS, "-m", "bleu", "chrf", "-b", "-w", "1"]) == 0
    printed = [row.split("\t") for row in capsys.readouterr().out.splitlines()]
    assert [len(row) for row in printed] == [2, 2, 2]
    assert all(len(value.split(".")[1]) == 1 for row in printed for value in row)
    for level, count in (("-sl", 48), ("-dl", 12)):  # -b also works with levels
        arguments = [*INPUTS, *documents, "-m", "bleu", "chrf", level, "-w", "1"]
        assert main(["score", *arguments]) == 0
        table = capsys.readouterr().out.splitlines()[3:-1]
        assert main(["score", *arguments, "-b"]) == 0
        bare = capsys.readouterr().out.splitlines()
        assert [row.split("\t") for row in bare] == [row.split()[-2:] for row in table]
        assert len(bare) == 3 * count


def test_a_system_without_a_score_is_a_dash(
    tmp_path: Path, partial: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_text(f"{UNSCORED}\n")
    both = ["-t", str(tmp_path / "texts.txt"), "-r", str(tmp_path / "texts.txt")]
    assert main(["score", *both, "-m", "chrf", partial, "-b"]) == 0
    assert capsys.readouterr().out == "100.00\t–\n"
    # TSV and JSON have their own marks for missing values
    assert main(["score", *both, "-m", partial, "-f", "tsv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split("\t")[1] == "nan"
    assert main(["score", *both, "-m", partial, "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["score"] is None


def test_json_files_hold_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scores.json"
    assert main(["score", *INPUTS, "-m", "bleu", "--confidence", "-o", str(file)]) == 0
    records = json.loads(file.read_text(encoding="utf-8"))
    assert len(records[0]["segments"]) == len(lines(SOURCE))
    assert records[0]["confidence_var"] > 0
    assert "± " in capsys.readouterr().out


def test_confidence_is_seeded(capsys: pytest.CaptureFixture[str]) -> None:
    def printed(seed: str) -> str:
        sampling = ["--confidence", "--confidence-n", "50", "--seed", seed]
        main(["score", *INPUTS, "-m", "bleu", *sampling])
        return capsys.readouterr().out

    assert printed("0") == printed("0") != printed("1")


def test_records_are_read_from_jsonl_and_tsv(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "-t", str(EXAMPLES / "examples.jsonl"), "-m", "bleu", "-b"]) == 0
    from_jsonl = capsys.readouterr().out
    assert main(["score", *INPUTS[:7], "-m", "bleu", "-b"]) == 0
    assert sorted(capsys.readouterr().out.split()) == sorted(from_jsonl.split())


def test_a_json_file_holds_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ours.json"
    file.write_text('{"mt": "a cat", "ref": "a cat"}\n')
    assert main(["score", "-t", str(file), "-m", "chrf", "-b"]) == 0
    assert capsys.readouterr().out == "100.00\n"


@pytest.mark.parametrize("flag", ["--paired-bs", "--paired-ar"])
def test_compare_prints_p_values_and_ranks(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    small = [f"{flag}-n", "300"]
    assert main(["compare", *INPUTS, "-m", "chrf", flag, *small, "--pairs"]) == 0
    out = capsys.readouterr().out
    assert "good (baseline)" in out
    assert "p-values of all pairs" in out
    assert main(["score", *INPUTS, "-m", "chrf", flag, *small, "-f", "json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert records[2]["p_value"] < 0.05
    assert [r["cluster"] for r in records][-1] > records[0]["cluster"]


@pytest.mark.parametrize("name", ["--resamples", "--paired-bs-n", "--confidence-n"])
def test_unused_number_of_resamples_is_an_error(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", *INPUTS, "-m", "chrf", name, "9"]) == 2
    message = "--resamples needs --confidence, --paired-bs or --paired-ar: give one"
    assert message in capsys.readouterr().err


def test_identical_systems_share_a_rank(capsys: pytest.CaptureFixture[str]) -> None:
    two = ["-t", SYSTEMS[0], SYSTEMS[0], "--names", "a", "b", "-r", *REFERENCES]
    assert main(["compare", *two, "-m", "bleu", "-f", "json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert records[1]["p_value"] == 1.0
    assert [r["cluster"] for r in records] == [1, 1]


def test_one_segment_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "h").write_text("a b c d e\n", encoding="utf-8")
    (tmp_path / "r").write_text("a b c d e\n", encoding="utf-8")
    arguments = ["-t", str(tmp_path / "h"), "-r", str(tmp_path / "r"), "-m", "bleu", "-b"]
    assert main(["score", *arguments, "--confidence"]) == 0
    assert float(capsys.readouterr().out) == pytest.approx(100)


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (1, "warning: one segment: nothing to resample; intervals have no width"),
        (29, "warning: 29 segments: intervals are unreliable below 30 segments"),
        (30, ""),
    ],
)
def test_intervals_of_few_segments_cause_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int, message: str
) -> None:
    file = tmp_path / "text"
    file.write_text("".join(f"the {n}. line\n" for n in range(count)))
    call = ["score", "-t", str(file), "-r", str(file), "-m", "chrf"]
    assert main([*call, "--confidence", "--confidence-n", "20"]) == 0
    printed = capsys.readouterr().out
    assert message in printed
    assert ("warning" in printed) == bool(message)
    assert main(call) == 0
    assert "warning" not in capsys.readouterr().out


def test_blank_line_separates_tables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    compared = ["compare", *INPUTS, "-m", "chrf", "--paired-bs-n", "20", "--pairs"]
    assert main([*compared, "--by", "length", "--paired-ar-n", "20"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for title in ("p-values of all pairs, chrF", "by length"):
        assert lines[lines.index(title) - 1] == ""
        assert lines[lines.index(title) - 2] != ""
    assert main([*compared, "--by", "length", "-f", "tsv"]) == 2  # TSV has one table
    assert "give either --pairs or --by" in capsys.readouterr().err


def faulty(folder: Path, data: bytes) -> str:
    (folder / "bad.txt").write_bytes(data)
    return str(folder / "bad.txt")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"one line\n", "lines but"),
        (b"", "is empty"),
        (b"\xff\xfe\n" * 48, "not UTF-8"),
        (b"a\0b\n" * 48, "NUL byte"),
    ],
    ids=["length", "empty", "encoding", "NUL"],
)
def test_invalid_files_are_one_line_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, message: str
) -> None:
    assert main(["score", "-t", faulty(tmp_path, data), "-r", *REFERENCES, "-m", "bleu"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-t", SYSTEMS[0], "-m", "bleu"], "bleu needs references, and segment 1 has none"),
        (["-t", str(EXAMPLES / "missing.txt"), "-r", REFERENCES[0]], "no such file"),
        (["-t", str(EXAMPLES), "-r", REFERENCES[0]], "is a directory"),
        (["-t", SYSTEMS[0], "-r", REFERENCES[0], "-m", "blue"], "did you mean 'bleu'"),
        (["-t", SYSTEMS[0], "-r", REFERENCES[0], "-m", "bleu:smoth=exp"], "unknown field of bleu"),
        (["-t", SYSTEMS[0], "-r", REFERENCES[0], "-m", "bleu", "-dl"], "needs document ids"),
        (
            ["-t", SYSTEMS[0], "-r", REFERENCES[0], "--fields", "a,b"],
            "--fields is for a file of records, such as .jsonl or .tsv",
        ),
        (
            ["-t", f"{EXAMPLES}/examples.jsonl", "--fields", "a,b"],
            "--fields is for a .tsv or .csv file",
        ),
        (["-t", SYSTEMS[0], "-r", REFERENCES[0], "-o", "/no/such/dir/x.json"], "does not exist"),
        (
            ["-t", SYSTEMS[0], "-r", REFERENCES[0], "--device", "cpu", "--gpus", "1"],
            "given twice, 'cpu' and 'cuda'",
        ),
        (["-t", SYSTEMS[0], "-r", REFERENCES[0], "--device", "tpu"], "unknown device 'tpu'"),
        (["-t", SYSTEMS[0], "-r", REFERENCES[0], "--device", "cuda:x"], "unknown device 'cuda:x'"),
        (["-t", SYSTEMS[0], "-r", REFERENCES[0], "--paired-bs"], "at least two systems"),
    ],
)
def test_invalid_calls_are_one_line_errors(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["score", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scor"], "unknown command 'scor': did you mean 'score'"),
        ([], "no command: write `tertium COMMAND [OPTIONS]` (see `tertium --help`)"),
        (["score"], "-t is missing: give system outputs"),
        (["score", "-t", "x", "-f", "xml"], "-f/--format: invalid choice: 'xml'"),
        (
            ["score", "-t", "x", "--widht", "3"],
            "unrecognized arguments: --widht 3; did you mean --wi",
        ),
        (
            ["train", "bleu-r", "mine.tsv", "-o", "m"],
            "mine.tsv; give it after an option (",
        ),
        (["score", "-t", "x", "--xyzzy"], "unrecognized argument: --xyzzy (see `tertium score"),
        (
            ["score", "-t", "x", "-m", "chrf", "-b", "bleu"],
            "unrecognized argument: bleu; give it after an option (",
        ),
        (["score", "-t", "x", "-m", "chrf", "-b", "bleu"], "--metrics"),
        (
            ["meta", "challenge", "x", "-q", "y", "-m", "chrf", "ter"],
            "unrecognized argument: y; give all of SET together, before",
        ),
        (["train", "esim", "-o", "x", "--epohcs", "3"], "--epohcs 3; did you mean --epochs"),
        (["score", "-t", "x", "-s", "a", "--sources", "b"], "-s/--sources: given twice, 'a' and"),
        (["rank", "-t", "x", "-w", "4", "-w", "2"], "-w/--width: given twice, 4 and 2"),
        (["train", "pairwise", "-o", "x", "--choose-on", "3", "--choose_on", "4"], "given twice"),
        (["score", "-t", "x", "-o", ""], "-o/--output: the value is empty"),
        (["meta", "challenge", "damage", "--output="], "--output: the value is empty"),
        (["list", ""], "METRIC: the value is empty"),
    ],
)
def test_unparsable_calls_are_one_line_errors(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_same_value_given_twice_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["-t", SYSTEMS[0], "-r", REFERENCES[0], "-m", "chrf", "-b", "-w", "1"]
    assert main(["score", *options, "--width", "1"]) == 0
    assert len(capsys.readouterr().out.split(".")[1].strip()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pipe of Linux or macOS")
def test_closed_pipe_is_not_an_error() -> None:
    inputs = f"-t {SYSTEMS[0]} -r {REFERENCES[0]}"
    command = f"{sys.executable} -m tertium score {inputs} -m bleu -sl | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_list_and_cite(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert "bleu" in capsys.readouterr().out
    assert main(["list", "chrf++"]) == 0
    assert "word_order" in capsys.readouterr().out
    assert main(["list", "bleuu"]) == 2
    assert main(["list", "citations", "bleu"]) == 0
    assert "papineni" in capsys.readouterr().out


def test_every_metric_has_its_own_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "all", "-f", "json"]) == 0
    listed = {r["metric"]: r["summary"] for r in json.loads(capsys.readouterr().out)}
    assert all(listed.values())
    assert len(set(listed.values())) == len(listed)
    assert listed["ter-r"].startswith("TERR: Ridge regression on the components of TER")


def test_rankers_are_listed_and_cited_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "all", "-f", "json"]) == 0
    kinds = {r["metric"]: r["kind"] for r in json.loads(capsys.readouterr().out)}
    assert kinds["pairwise"] == "ranker"
    assert kinds["chrf"] == "metric"
    assert main(["list", "pairwise"]) == 0
    assert "hidden" in capsys.readouterr().out
    assert main(["list", "citations", "pairwise", "chrf++"]) == 0
    cited = capsys.readouterr().out
    assert "guzman-etal-2015" in cited
    assert "popovic" in cited


def test_every_metric_and_ranker_has_a_citation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "all", "-f", "json"]) == 0
    names = [record["metric"] for record in json.loads(capsys.readouterr().out)]
    assert main(["list", "citations", *names]) == 0
    assert capsys.readouterr().err == ""


def test_every_command_has_help_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in command_parsers():
        with pytest.raises(SystemExit) as caught:
            main([*command.split(), "--help"])
        assert caught.value.code == 0
        assert "examples:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--seed", "-1"], "seed=-1: expected a whole number of at least 0"),
        (["--alpha", "7"], "must be a number between 0 and 1, got 7.0"),
        (["-w", "-1"], "number of decimals"),
    ],
)
def test_invalid_numbers_of_compare_are_errors(
    extra: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *INPUTS, "-m", "chrf", *extra]) == 2
    assert message in capsys.readouterr().err


def test_width_zero_prints_whole_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "-t", SYSTEMS[0], "-r", *REFERENCES, "-m", "chrf", "-b", "-w", "0"]) == 0
    assert capsys.readouterr().out.strip().isdecimal()


def test_few_segments_cause_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("a", "the cat"), ("b", "a dog ran"), ("r", "the cat sat")):
        (tmp_path / f"{name}1").write_text(f"{text}\n")
        (tmp_path / f"{name}9").write_text(f"{text}\n" * 9)
    for count, message in (("1", "p is undefined"), ("9", "9 segments: tests")):
        files = ["-t", str(tmp_path / f"a{count}"), str(tmp_path / f"b{count}")]
        assert main(["compare", *files, "-r", str(tmp_path / f"r{count}"), "-m", "chrf"]) == 0
        out = capsys.readouterr().out
        assert message in out
        assert ("*-" in out) == (count == "9")
    assert main(["compare", *INPUTS, "-m", "chrf"]) == 0
    assert "unreliable" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--paired-bs", "-sl"], "-b, -sl, -dl, --only-system, --confidence and --write-back are"),
        (["--paired-ar", "--confidence"], "not available with a paired test: omit them"),
        (["--paired-bs", "--only-system"], "not available with a paired test: omit them"),
        (["--paired-bs", "--paired-ar"], "--paired-bs and --paired-ar: give only one of them"),
        (["-sl", "-dl"], "--sentence-level and --document-level: give only one of them"),
        (["--by", "length", "-sl"], "--by prints scores of slices: omit -b, -sl and -dl"),
        (["-sl", "--confidence"], "--confidence: -sl and -dl show no intervals"),
        (
            ["--confidence", "--confidence-n", "0"],
            "resamples must be an integer from 1 to 1,000,000, got 0",
        ),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    extra: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", *INPUTS, "-m", "chrf", *extra]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["score", "compare"])
@pytest.mark.parametrize("style", ["text", "md", "tsv", "json"])
def test_warnings_are_printed_once_and_not_when_quiet(
    command: str, style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command_line = [command, *INPUTS, "-m", "chrf", "-f", style]
    assert main(command_line) == 0
    printed = capsys.readouterr()
    below = style in ("text", "md")
    assert printed.out.count("warning: empty hypothesis") == (1 if below else 0)
    assert printed.err.count("warning: empty hypothesis") == (0 if below else 1)
    assert main([*command_line, "-q"]) == 0
    quiet = capsys.readouterr()
    assert "warning:" not in quiet.out + quiet.err


def test_tsv_has_columns_for_intervals_and_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *INPUTS, "-m", "chrf", "-f", "tsv"]) == 0
    header, first, second, _ = capsys.readouterr().out.splitlines()
    assert header.split("\t")[:5] == ["system", "baseline", "chrF ↑", "chrF ↑ low", "chrF ↑ high"]
    assert first.split("\t")[:2] == ["good", "1"]
    assert second.split("\t")[:2] == ["fair", "0"]
    low, high = map(float, first.split("\t")[3:5])
    assert low < float(first.split("\t")[2]) < high
    assert main(["compare", *INPUTS, "-m", "chrf", "bleu", "-f", "tsv", "--pairs"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["metric", "system", "other", "p", "human agreement"]
    assert len(rows) == 1 + 2 * 6


def test_markdown_tables_are_separated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *INPUTS, "-m", "chrf", "--pairs", "-f", "md"]) == 0
    assert "\n\n**p-values of all pairs" in capsys.readouterr().out


def test_metric_description_has_all_formats(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list", "chrf", "-f", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["metric"] == "chrf"
    beta = {"field": "beta", "type": "int|float, from 0 to 1000", "default": "2"}
    assert beta in record["fields"]
    assert main(["list", "bertscore", "-f", "tsv"]) == 0
    assert "\nprecision\tfp32|bf16|fp16|int8\tfp32\n" in capsys.readouterr().out
    assert main(["list", "chrf", "-f", "tsv"]) == 0
    assert capsys.readouterr().out.startswith("field\ttype\tdefault\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--source-language", "de"], "--source-language de needs --target-language"),
        (
            ["--source-language", "de", "--target-language", "klingon"],
            "'klingon' is not an ISO 639-1 language code",
        ),
    ],
)
def test_invalid_languages_are_errors(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t").write_text("a\n")
    (tmp_path / "s").write_text("b\n")
    files = ["-s", str(tmp_path / "s"), "-t", str(tmp_path / "t")]
    assert main(["score", *files, "-m", "sss:encoder=toy", *options]) == 2
    assert message in capsys.readouterr().err


def test_languages_are_passed_to_metrics() -> None:
    specs = [
        "sss:encoder=toy",
        "sss:encoder=toy,lp=fi-en",
        "chrf",
        "meteor:synonyms=false",
        "meteor:synonyms=false,language=cs",
    ]
    metrics = MetricOptions().load_for(specs, "en", "de")
    assert [getattr(m, "lp", None) for m in metrics[:3]] == ["en-de", "fi-en", None]
    assert [getattr(m, "language", None) for m in metrics[3:]] == ["de", "cs"]


def test_bleu_and_nist_use_sacrebleus_tokenizer_for_a_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sacrebleu.metrics.bleu import BLEU

    hypotheses = ["他昨天在车站附近买了两本书。", "我们明天不去。"]
    references = ["他昨天在火车站旁边买了两本书。", "我们明天不去了。"]
    for name, texts in (("t", hypotheses), ("r", references)):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    files = ["-t", str(tmp_path / "t"), "-r", str(tmp_path / "r"), "-f", "json", "--only-system"]
    for language in ("zh", "de"):
        pair = ["--source-language", "en", "--target-language", language]
        assert main(["score", *files, "-q", "-m", "bleu", *pair]) == 0
        wanted = BLEU(trg_lang=language).corpus_score(hypotheses, [references]).score
        assert json.loads(capsys.readouterr().out)["score"] == wanted
    specs = ["bleu", "bleu:lowercase=true", "bleu:tokenize = 13a", "nist", "nist:tokenize=13a"]
    for name, is_installed in (("ko-mecab", True), ("char", False)):
        monkeypatch.setattr(word_tokenizers, "is_installed", lambda *m, i=is_installed: i or not m)
        metrics = MetricOptions().load_for(specs, "en", "ko")
        tokenizers = [getattr(metric, "tokenize", None) for metric in metrics]
        assert tokenizers == [name, name, "13a", name, "13a"]
    assert BLEU._TOKENIZER_MAP == TOKENIZERS_BY_LANGUAGE
