"""The local engine: equal scores, every format, bad rows, exactly-once output."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from tests.corpus.samples import (
    EXAMPLES,
    example_rows,
    read_shards,
    shard_bytes,
    write_bytes,
    write_jsonl,
    write_parquet,
    write_tsv,
)
from tests.partial_metric import UNSCORED

import tertium
from tertium.cli import main
from tertium.core.errors import (
    DataError,
    TertiumError,
    UnsupportedLanguageError,
    UsageError,
)
from tertium.core.segment import Judgment, Segment
from tertium.corpus import worker
from tertium.corpus.corpus_run import RowOptions
from tertium.corpus.engines import WorkerPool, cluster
from tertium.data.record_files import read_records
from tertium.evaluation.rows import score_rows
from tertium.metrics.base.scorer import format_signature
from tertium.metrics.base.text_warnings import count_flags
from tertium.version import __version__

ROWS = example_rows()


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use one process unless a test gives a number of workers."""
    monkeypatch.setattr("tertium.corpus.engines.usable_cores", lambda: 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "rows.jsonl", ROWS)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def read_bad(out: Path, name: str = "rows") -> list[dict[str, Any]]:
    """Return the rejected rows of an input file."""
    return [json.loads(line) for line in (out / "_bad" / f"{name}.jsonl").open(encoding="utf-8")]


def scores_from_totals(rows: list[dict[str, Any]], metric: str) -> list[float]:
    """Scores of the metric on all segments at once, as `tertium score` computes them."""
    segments = [Segment(row["mt"], row["src"], (row["ref"],)) for row in rows]
    return tertium.load_metric(metric).score(segments).segments.tolist()


WRITERS = {
    "rows.jsonl": write_jsonl,
    "rows.jsonl.gz": write_jsonl,
    "rows.ndjson.zst": write_jsonl,
    "rows.tsv": write_tsv,
    "rows.tsv.gz": write_tsv,
    "rows.parquet": write_parquet,
}


def test_unsaved_metric_is_refused_before_anything_is_written(file: Path, out: Path) -> None:
    segments = [Segment(row["mt"], row["src"], (row["ref"],)) for row in ROWS[:12]]
    metric = tertium.train("bleu-r", [Judgment(s, n) for n, s in enumerate(segments)])
    with pytest.raises(UsageError, match=r"bleu-r was trained .* not saved.*metric.save\(FOLDER\)"):
        tertium.score_corpus(file, [metric], out)
    assert not out.exists()


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.tsv", "rows.parquet"])
@pytest.mark.parametrize("reference", ["Ref", "Ref1"])
def test_column_names_are_case_insensitive(name: str, reference: str, tmp_path: Path) -> None:
    names = {"mt": "MT", "src": "Source", "ref": reference}
    rows = [{names.get(key, key): value for key, value in row.items()} for row in ROWS[:5]]
    WRITERS[name](tmp_path / name, rows)
    tertium.score_corpus(tmp_path / name, "chrf", tmp_path / "out")
    written = read_shards(tmp_path / "out")
    assert [row["chrf"] for row in written] == scores_from_totals(ROWS[:5], "chrf")
    assert set(rows[0]) <= set(written[0])  # names are unchanged


@pytest.mark.parametrize("name", WRITERS)
def test_scores_are_identical_to_score(name: str, tmp_path: Path, out: Path) -> None:
    file = WRITERS[name](tmp_path / name, ROWS)
    summary = tertium.score_corpus(file, ["chrf", "bleu"], out, part_rows=40, workers=1)
    rows = read_shards(out)
    assert [row["mt"] for row in rows] == [row["mt"] for row in ROWS]
    for metric in ("chrf", "bleu"):
        assert [row[metric] for row in rows] == scores_from_totals(ROWS, metric)
    assert (summary.rows, summary.kept, dict(summary.bad)) == (len(ROWS), len(ROWS), {})
    assert summary.parts > 1


def test_several_processes_write_the_same_as_one(file: Path, tmp_path: Path) -> None:
    for workers in (1, 2):
        tertium.score_corpus(file, "chrf", tmp_path / f"{workers}", part_rows=50, workers=workers)
    assert shard_bytes(tmp_path / "1") == shard_bytes(tmp_path / "2")


def test_parquet_columns_and_types_are_preserved(tmp_path: Path, out: Path) -> None:
    import datetime

    rows = [{**row, "time": datetime.datetime(2020, 1, 1), "raw": b"\xff"} for row in ROWS]
    file = write_parquet(tmp_path / "in" / "rows.parquet", rows)
    tertium.score_corpus(tmp_path / "in", "chrf", out)
    before, after = pq.read_schema(file), pq.read_schema(out / "rows.parquet")
    assert after.names == [*before.names, "chrf", "chrf.warnings"]
    assert [after.field(n).type for n in before.names] == [
        before.field(n).type for n in before.names
    ]


def test_json_values_have_a_column_type_in_parquet(tmp_path: Path, out: Path) -> None:
    values: list[tuple[str, list[Any], list[Any]]] = [
        ("object", [{"x": 1}, {"y": [2]}], ['{"x": 1}', '{"y": [2]}']),
        ("list", [[1, "a"], []], ['[1, "a"]', "[]"]),
        ("mixed", [1, "one"], ["1", '"one"']),
        ("flags", [True, 1], ["true", "1"]),
        ("texts", [["a"], []], [["a"], []]),
        ("number", [1, 2.5], [1.0, 2.5]),
        ("whole", [1, None], [1, None]),
        ("flag", [None, True], [None, True]),
        ("huge", [2**70, 2**71], [str(2**70), str(2**71)]),
        ("empty", [None, None], [None, None]),
        ("ref", ["a", ["b", "c"]], [["a"], ["b", "c"]]),
    ]
    rows = [{"mt": "a", **{name: value[n] for name, value, _ in values}} for n in range(2)]
    file = write_jsonl(tmp_path / "rows.jsonl", rows)
    tertium.score_corpus(file, "chrf", out)
    written = read_shards(out)
    for name, _, expected in values:
        assert [row[name] for row in written] == expected


def test_marked_errors_are_written_on_request(tmp_path: Path, out: Path) -> None:
    rows = [{"src": "Hi {name}!", "mt": "Hallo {n}!"}, {"src": "Hi!", "mt": "Hallo!"}]
    file = write_jsonl(tmp_path / "rows.jsonl", rows)
    summary = tertium.score_corpus(file, "checks", out, spans=True, keep="checks < 100")
    assert summary.records()["metrics"]["checks"]["errors"] == {"placeholders": 1}  # rows
    [row] = [record for _, record in read_records(out / "rows.parquet")]
    [lost, added] = json.loads(row["checks.spans"])
    assert (lost["side"], lost["start"], lost["end"]) == ("source", 3, 9)
    assert added["message"] == "placeholder {n} is not in the source"
    with pytest.raises(UsageError, match="other settings"):
        tertium.score_corpus(file, "checks", out, resume=True)


def test_quoted_csv_and_fields_without_a_header(tmp_path: Path, out: Path) -> None:
    table = write_bytes(tmp_path / "a.csv", b'mt,ref\n"a cat,\nsat","a cat,\nsat"\n')
    tertium.score_corpus(table, "chrf", tmp_path / "one")
    assert read_shards(tmp_path / "one")[0]["chrf"] == 100.0
    bare, options = write_bytes(tmp_path / "b.tsv", b"a cat\ta dog\n"), RowOptions(fields="mt,ref")
    tertium.score_corpus(bare, "chrf", out, rows=options)
    assert read_shards(out)[0]["ref"] == "a dog"
    write_bytes(bare, b"mt\tref\na cat\ta dog\n")
    with pytest.raises(UsageError, match="the first line is a header"):
        tertium.score_corpus(bare, "chrf", tmp_path / "three", rows=options)


def test_strings_of_localization_files_are_rows(tmp_path: Path, out: Path) -> None:
    files = [EXAMPLES / "localization" / name for name in ("app.de.xliff", "app.pl.po")]
    tmx = (
        '<tmx version="1.4"><header srclang="en"/><body><tu tuid="a"><tuv xml:lang="en"><seg>Yes'
        '</seg></tuv><tuv xml:lang="de"><seg>Ja</seg></tuv></tu></body></tmx>'
    )
    files.append(write_bytes(tmp_path / "memory.tmx", tmx.encode()))
    summary = tertium.score_corpus(files, ["checks"], out, spans=True)
    assert (summary.rows, summary.bad) == (15, {"no translation": 2})
    rows = read_shards(out)
    assert (rows[1]["id"], rows[1]["checks"]) == ("editor.unsaved", 0)
    assert rows[-1] == {**dict.fromkeys(("doc", "state", "note"), ""), "id": "a", "src": "Yes"} | {
        "mt": "Ja",
        "checks": 100.0,
        "checks.warnings": "",
        "checks.spans": "[]",
    }
    bad = (out / "_bad" / "app.pl.jsonl").read_text()
    assert "no translation (Restore)" in bad


GOOD = b'{"mt": "a", "ref": "a"}\n'


@pytest.mark.parametrize(
    ("name", "data", "count", "bad", "reason"),
    [
        (
            "rows.csv",
            b'mt,ref\na,a\n"A "dog",b\nc,c\nd,"d\ne,e\n',
            2,
            {"not a row": 2},
            "(lines 5 to 6: a quote is not closed",
        ),
        (
            "rows.tsv",
            b"mt\tref\na\ta\na\n\xff\tb\nb\tb\n",
            2,
            {"wrong number of fields": 1, "not UTF-8": 1},
            "",
        ),
        (
            "rows.tsv",
            b'mt\tref\na\t["a", "b"]\nb\t["b"]\nc\tc\n',
            1,
            None,
            "a list written as text",
        ),
        ("rows.jsonl", GOOD + b'"' + b"x" * 5000 + b'"\n' + GOOD, 2, {"too long": 1}, ""),
    ],
)
def test_bad_rows_do_not_affect_others(
    name: str,
    data: bytes,
    count: int,
    bad: dict[str, int] | None,
    reason: str,
    tmp_path: Path,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit of a line is lowered; a very long one is not read completely."""
    monkeypatch.setattr("tertium.data.text_files.MAX_LINE_BYTES", 1000)
    summary = tertium.score_corpus(write_bytes(tmp_path / name, data), "chrf", out)
    assert summary.kept == count
    assert bad is None or dict(summary.bad) == bad
    rejected = (out / "_bad" / "rows.jsonl").read_text()
    assert reason in rejected
    assert max(map(len, rejected.splitlines())) < 600


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.tsv", b"a text " * 9 + b"\tb\nc\td\n", "found a text a text .*--fields"),
        ("a.tsv", b"one\ttwo\nc\td\n", "found one, two"),
        ("a.tsv", b"text\tref\nc\td\n", "found text, ref"),
        ("a.csv", b"mt;ref\na;b\n", "separated by semicolons"),
        ("a.json", b'[{"mt": "a", "ref": "b"}]\n', r"row 1: expected an object.*jq -c '\.\[\]'"),
        ("a.json", b'[\n {\n  "mt": "a"\n }\n]\n', r"row 1: not JSON.*jq -c '\.\[\]'"),
        ("a.json", b'[\n{"mt": "a"},\n{"mt": "a", "ref": "b"}\n]\n', r"row 1: not JSON.*jq -c"),
        ("a.json", b'\n[{"mt": "a"},\n{"mt": "a", "ref": "b"}]\n', r"row 2: not JSON.*jq -c"),
        ("a.json", b'{"mt": "a"},\n{"mt": "a", "ref": "b"}\n', "row 1: .*without commas"),
        ("a.jsonl", b"\n", "there are no rows"),
    ],
)
def test_a_file_without_scorable_rows_gives_the_reason(
    tmp_path: Path, name: str, data: bytes, message: str, out: Path
) -> None:
    file = write_bytes(tmp_path / name, data)
    with pytest.raises(TertiumError, match=message):
        tertium.score_corpus(file, "chrf", out)
    assert not out.exists()


def test_quotes_of_a_csv_writer_give_a_warning(
    tmp_path: Path, out: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write_bytes(tmp_path / "a.tsv", b'mt\tref\n"a ""b"""\t"a ""b"""\na\tb\n')
    tertium.score_corpus(file, "chrf", out)
    assert "a.tsv: fields quoted as in CSV: 2" in caplog.text


def test_bad_rows_are_written_with_file_row_and_reason(tmp_path: Path) -> None:
    good = json.dumps({"mt": "a cat", "ref": "the cat"}).encode()
    lines = [
        good,
        b'{"ref": "no translation"}',
        b'{"mt": 5, "ref": "not text"}',
        b'{"mt": "caf\xe9", "ref": "not UTF-8"}',
        json.dumps({"mt": "x" * 2000, "ref": "long"}).encode(),
        b'{"mt": "cut',
        b'{"mt": "no reference"}',
        b"[1, 2]",
        b"",
        b'{"mt": "half \\ud800", "ref": "surrogate"}',
        good,
    ]
    file = write_bytes(tmp_path / "rows.jsonl", b"\n".join(lines))
    summary = tertium.score_corpus(file, "chrf", tmp_path / "out", rows=RowOptions(max_length=1000))
    aside = [
        json.loads(line) for line in (tmp_path / "out/_bad/rows.jsonl").read_text().splitlines()
    ]
    assert [(row["file"], row["row"]) for row in aside] == [
        (str(file), n) for n in (2, 3, 4, 5, 6, 7, 8, 10)
    ]
    starts = ("no translation", "expected text", "not UTF-8", "too long", "not JSON")
    assert all(row["reason"].startswith(start) for row, start in zip(aside, starts, strict=False))
    assert "needs references" in aside[5]["reason"]
    assert (summary.rows, summary.kept, sum(summary.bad.values())) == (10, 2, 8)
    with pytest.raises(TertiumError, match=r"rows.jsonl, row 2: no translation"):
        tertium.score_corpus(file, "chrf", tmp_path / "strict", rows=RowOptions(strict=True))


def test_rows_that_do_not_fit_are_bad_rows(tmp_path: Path) -> None:
    """Regression: 2.7 was written as 2, true as 1.0 and a text as a list of its letters."""
    usual: dict[str, Any] = {"mt": "a", "ref": "a", "n": 1, "x": 0.5, "tags": ["a"]}
    changes: list[dict[str, Any]] = [
        {"n": "one"},
        {"new": 1},
        {"n": 2.7},
        {"x": True},
        {"tags": "abc"},
    ]
    rows = [*[usual] * 1000, *({**usual, **change} for change in changes), {**usual, "x": 2}]
    file = write_jsonl(tmp_path / "rows.jsonl", rows)
    summary = tertium.score_corpus(file, "chrf", tmp_path / "out")
    assert dict(summary.bad) == {
        "another type than in the first rows": 4,
        "key 'new' is not in the first rows": 1,
    }
    assert read_shards(tmp_path / "out")[-1]["x"] == 2.0
    bad = [json.loads(line) for line in (tmp_path / "out/_bad/rows.jsonl").open()]
    assert bad[0] == {"file": str(file), "row": 1001, "reason": mock.ANY}
    assert "column 'n': expected integer, got 'one'" in bad[0]["reason"]


def test_bad_utf8_in_parquet_is_an_error(tmp_path: Path, out: Path) -> None:
    texts = pa.array([b"caf\xe9", b"a cat"], pa.binary()).view(pa.string())
    table = pa.table({"mt": texts, "ref": ["a cat", "a cat"]})
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"rows\.parquet: not a Parquet file, or .*UTF8"):
        tertium.score_corpus(tmp_path / "rows.parquet", "chrf", out)


def test_keep_filters_and_counts(file: Path, out: Path) -> None:
    keep = ["chrf++ >= 60", "bleu < 90"]
    summary = tertium.score_corpus(file, ["chrf++", "bleu"], out, keep=keep)
    pairs = zip(scores_from_totals(ROWS, "chrf++"), scores_from_totals(ROWS, "bleu"), strict=True)
    expected = [n for n, (chrf, bleu) in enumerate(pairs) if chrf >= 60 and bleu < 90]
    assert [row["id"] for row in read_shards(out)] == expected
    assert summary.kept < summary.rows == len(ROWS)


def test_rows_without_a_score_are_not_kept(partial: str, tmp_path: Path) -> None:
    rows = [*ROWS[:3], {"mt": UNSCORED, "src": "x", "ref": "y"}]
    file = write_jsonl(tmp_path / "rows.jsonl", rows)
    for keep, expected in ((["partial >= 0"], 3), ([], 4)):
        out = tmp_path / str(expected)
        summary = tertium.score_corpus(file, partial, out, keep=keep)
        assert (summary.kept, summary.metrics[partial].missing) == (expected, 1)
    assert read_shards(tmp_path / "4")[3][partial] is None


def test_tokenizer_follows_the_language_of_the_rows(tmp_path: Path, out: Path) -> None:
    """The condition names the metric as it was given, without its tokenizer."""
    texts = ["今天公园里天气很好，我们去散步。", "他昨天去了北京。"]
    file = write_jsonl(tmp_path / "rows.jsonl", [{"mt": t, "ref": t} for t in texts])
    summary = tertium.score_corpus(file, "bleu", out, keep="bleu > 50", workers=1)
    assert ([*summary.metrics], summary.kept) == (["bleu:tokenize=zh"], 2)
    assert main(["corpus", str(file), "-m", "bleu", "-o", str(tmp_path / "two"), "-q"]) == 0
    assert "tok:zh" in (tmp_path / "two" / "_manifest.json").read_text()


def test_warnings_are_per_row(tmp_path: Path) -> None:
    rows = [dict(row) for row in ROWS]
    rows[3]["mt"], rows[90]["mt"], rows[91]["mt"] = "", rows[90]["src"], " "
    file = write_parquet(tmp_path / "rows.parquet", rows)
    summary = tertium.score_corpus(file, "chrf", tmp_path / "out")
    flags = {n: row["chrf.warnings"] for n, row in enumerate(read_shards(tmp_path / "out"))}
    assert {n: flags[n] for n in (3, 90, 91)} == {
        3: "empty hypothesis",
        90: "hypothesis equals source",
        91: "empty hypothesis",
    }
    segments = [Segment(r["mt"], r["src"], (r["ref"],)) for r in rows]
    assert dict(summary.metrics["chrf"].warnings) == count_flags(
        tertium.load_metric("chrf").flags(segments)
    )


def test_the_summary_agrees_with_the_scores(file: Path, out: Path) -> None:
    summary = tertium.score_corpus(file, "chrf", out, part_rows=30, workers=1)
    scores = scores_from_totals(ROWS, "chrf")
    tally = summary.metrics["chrf"]
    assert tally.mean == pytest.approx(sum(scores) / len(scores), rel=1e-12)
    assert (tally.low, tally.high) == (min(scores), max(scores))
    segments = [Segment(r["mt"], r["src"], (r["ref"],)) for r in ROWS]
    assert tally.signature_text() == format_signature(tertium.load_metric("chrf"), segments)
    stored = json.loads((out / "_summary.json").read_text())
    assert stored["metrics"]["chrf"]["mean"] == tally.mean


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metrics": ["chrf", "nist"]}, r"needs the whole corpus.*bleu for nist"),
        ({"inputs": "texts.jsonl"}, "chrf needs references"),
        ({"keep": "id > 3"}, "a metric of this run "),
        ({"spans": True}, "chrf cannot mark errors"),
        ({"inputs": "nothing://x/y"}, "pyarrow cannot open this URL"),
        ({"inputs": "none/*.jsonl"}, "no files found"),
        ({"inputs": "folder"}, "no files found"),
        ({"inputs": "half.jsonl.gz"}, "half.jsonl.gz: cannot be read"),
        ({"inputs": "bytes.parquet"}, "not a Parquet file"),
        ({"inputs": "wide.jsonl"}, "UTF-16"),
        ({"inputs": "twice.parquet"}, r"twice\.parquet: column 'ref' occurs more than once"),
        ({"output": "rows.jsonl"}, "is a file; expected a folder for the shards"),
        ({"output": "folder", "resume": True}, r"not empty \(thesis.tex\)"),
        ({"workers": "2"}, "workers='2': expected a whole number"),
        ({"workers": 2.5}, "workers=2.5: expected a whole number"),
        ({"part_rows": "5"}, "part_rows='5': expected a whole number"),
        ({"inputs": b"rows.tsv"}, "expected files, folders or globs, got b'rows.tsv'"),
        ({"inputs": ["rows.tsv", None]}, "expected files, folders or globs"),
    ],
)
def test_wrong_calls_write_nothing(
    given: dict[str, Any],
    message: str,
    file: Path,
    out: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "texts.jsonl", [{"mt": "a"}] * 3)
    write_bytes(tmp_path / "folder" / "thesis.tex", b"years of work")
    whole = write_jsonl(tmp_path / "half.jsonl.gz", ROWS).read_bytes()
    (tmp_path / "half.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    write_bytes(tmp_path / "bytes.parquet", b"PAR1 nothing")
    (tmp_path / "wide.jsonl").write_text("{}", encoding="utf-16")
    twice = pa.table([pa.array(["a"])] * 3, names=["mt", "ref", "ref"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    run: dict[str, Any] = {"inputs": file, "metrics": "chrf", "output": out, **given}
    with pytest.raises(TertiumError, match=message) as error:
        tertium.score_corpus(**run)
    assert "\n" not in str(error.value)
    assert not out.exists()


def test_a_score_of_the_input_is_not_replaced(tmp_path: Path, out: Path) -> None:
    file = write_jsonl(tmp_path / "rows.jsonl", [{**row, "chrf": 1.0} for row in ROWS])
    with pytest.raises(TertiumError, match="already has a column 'chrf'"):
        tertium.score_corpus(file, "chrf", out)
    tertium.score_corpus(write_jsonl(file, ROWS), "chrf", out)  # not blocked


def test_columns_are_those_of_the_first_rows_however_files_are_cut(tmp_path: Path) -> None:
    """Regression: small parts saw fewer keys and rejected other rows."""
    rows = [{**row, "late": number} if number > 5 else row for number, row in enumerate(ROWS)]
    file = write_jsonl(tmp_path / "rows.jsonl", rows)
    for part_rows in (1000, 3):
        out = tmp_path / str(part_rows)
        summary = tertium.score_corpus(file, "chrf", out, part_rows=part_rows, workers=1)
        assert (summary.kept, summary.bad) == (len(rows), {})


@pytest.mark.parametrize("part_rows", [1000, 3])
def test_rows_are_not_rejected_for_the_language_of_others(
    tmp_path: Path, part_rows: int, out: Path
) -> None:
    """Regression: rows were rejected because of the language of other rows."""
    pytest.importorskip("torch")
    english = "The cat is sitting on the mat, and the dog has been in front of the door for days."
    german = "Die Katze sitzt seit Tagen auf der Matte, und der Hund liegt im Garten vor der Tür."
    texts = [f"{text} {n}" for text in (english, german) for n in range(6)]
    file = write_jsonl(tmp_path / "rows.jsonl", [{"mt": text, "ref": text} for text in texts])
    run = {"metrics": "tertium-small", "part_rows": part_rows, "workers": 1}
    summary = tertium.score_corpus(file, output=out, **run)
    assert (summary.kept, summary.bad) == (12, {})
    assert summary.metrics["tertium-small"].warnings == {"reference not English": 6}
    write_jsonl(file, [{"mt": text, "ref": text} for text in texts[6:]])
    with pytest.raises(UnsupportedLanguageError, match="needs English references"):
        tertium.score_corpus(file, output=tmp_path / "two", **run)
    assert not (tmp_path / "two").exists()


class Killed(BaseException):
    """Simulates a kill: not caught by any handler."""


def test_finished_parts_stay_and_others_are_done_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    run = {"metrics": "chrf", "part_rows": 20, "workers": 1}
    tertium.score_corpus(file, output=tmp_path / "whole", **run)
    done: list[str] = []
    process = worker.PartWorker.process

    def dying(self: worker.PartWorker, part: Any, advance: Any) -> Any:
        if len(done) == 3:
            raise Killed
        done.append(part.name)
        return process(self, part, advance)

    monkeypatch.setattr(worker.PartWorker, "process", dying)
    with pytest.raises(Killed):
        tertium.score_corpus(file, output=tmp_path / "out", **run)
    with pytest.raises(UsageError, match=r"already holds a run.*--resume"):
        tertium.score_corpus(file, output=tmp_path / "out", **run)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.parquet")}
    assert len(before) == 3
    monkeypatch.setattr(worker.PartWorker, "process", process)
    summary = tertium.score_corpus(file, output=tmp_path / "out", resume=True, **run)
    assert summary.rows == len(ROWS)
    assert summary.scored == len(ROWS) - 60
    assert shard_bytes(tmp_path / "out") == shard_bytes(tmp_path / "whole")
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"metrics": "bleu"}, "metrics was ['chrf'] and is now ['bleu']"),
        ({"metrics": ["chrf", "bleu"]}, "metrics was ['chrf'] and is now ['chrf', 'bleu']"),
        ({"keep": "chrf > 3"}, "keep was [] and is now ['chrf > 3']"),
        ({"part_rows": 50}, "part_rows was 100000 and is now 50"),
    ],
)
def test_runs_with_other_settings_are_refused(
    change: dict[str, Any], named: str, tmp_path: Path, file: Path, out: Path
) -> None:
    run: dict[str, Any] = {"metrics": "chrf", "output": out}
    tertium.score_corpus(file, **run)
    before = shard_bytes(out)
    with pytest.raises(UsageError) as caught:
        tertium.score_corpus(file, **{**run, **change}, resume=True)
    assert named in str(caught.value)
    assert shard_bytes(out) == before


def test_a_changed_input_or_version_is_refused(
    monkeypatch: pytest.MonkeyPatch, file: Path, out: Path
) -> None:
    tertium.score_corpus(file, "chrf", out)
    os.utime(file, ns=(0, 0))  # another time and the same content
    tertium.score_corpus(file, "chrf", out, resume=True)  # nothing left to score
    file.write_bytes(file.read_bytes().replace(b"a", b"e", 1))  # of the same size and time
    os.utime(file, ns=(0, 0))
    state = r"rows: [\d,]+ bytes, [0-9a-f]{20,}"
    with pytest.raises(UsageError, match=rf"input .*rows.jsonl was '{state}.* and is now '{state}"):
        tertium.score_corpus(file, "chrf", out, resume=True)
    monkeypatch.setattr("tertium.corpus.corpus_run.__version__", "9.9")
    message = rf"other settings: version was '{re.escape(__version__)}' and is now '9\.9'"
    with pytest.raises(UsageError, match=message):
        tertium.score_corpus(file, "chrf", out, resume=True)


def test_two_processes_do_not_write_to_one_folder(
    monkeypatch: pytest.MonkeyPatch, file: Path, out: Path
) -> None:
    """Regression: the process that finished first removed files of the other."""
    messages: list[str] = []

    def meanwhile(*args: Any, **options: Any) -> Any:
        with pytest.raises(UsageError) as caught:
            tertium.score_corpus(file, "chrf", out, part_rows=20, resume=True)
        messages.append(str(caught.value))
        return score_rows(*args, **options)

    monkeypatch.setattr("tertium.corpus.worker.score_rows", meanwhile)
    tertium.score_corpus(file, "chrf", out, part_rows=20)
    assert len(messages) == 8
    assert all("another process is writing to" in text for text in messages)
    assert not (out / "_lock").exists()


def test_a_run_without_output_can_be_replaced(tmp_path: Path) -> None:
    """Regression: a run that failed before its first part left a folder that blocked others."""
    rows = [*ROWS, {"mt": 5}]
    file, out = write_jsonl(tmp_path / "rows.jsonl", rows), tmp_path / "out"
    with pytest.raises(TertiumError, match="row 146: expected text"):
        tertium.score_corpus(file, "chrf", out, rows=RowOptions(strict=True))
    assert tertium.score_corpus(file, "chrf", out, keep="chrf > 5").kept
    with pytest.raises(UsageError, match="already holds a run"):
        tertium.score_corpus(file, "chrf", out, keep="chrf > 5")


def test_files_found_by_another_path_are_not_taken_as_done(tmp_path: Path) -> None:
    """Otherwise a file would be written under the name of another file."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_jsonl(tmp_path / folder / "rows.jsonl", ROWS[:3])
    one, two, out = tmp_path / "a/rows.jsonl", tmp_path / "b/rows.jsonl", tmp_path / "out"
    tertium.score_corpus([one, two], ["chrf", "bleu"], out)
    (out / "rows-2.parquet").unlink()
    before = shard_bytes(out)
    for inputs, metrics, named in (
        ([two, one], ["chrf", "bleu"], "was 'rows: .* and is now 'rows-2: "),
        ([one, two], ["bleu", "chrf"], r"metrics was \['chrf', 'bleu'\]"),
        ([str(tmp_path / "[ab]/*.jsonl")], ["chrf", "bleu"], "was 'rows: .* and is now 'a/rows: "),
    ):
        with pytest.raises(TertiumError, match=named):
            tertium.score_corpus(inputs, metrics, out, resume=True)
        assert shard_bytes(out) == before
    assert tertium.score_corpus([one, two], ["chrf", "bleu"], out, resume=True).rows == 6


def test_a_file_that_grows_while_it_is_read_is_not_done(
    monkeypatch: pytest.MonkeyPatch, file: Path, out: Path
) -> None:
    """Regression: new rows were not read, and the summary did not mention it."""

    def growing(*args: Any, **options: Any) -> Any:
        with file.open("ab") as stream:
            stream.write(b'{"mt": "late", "ref": "late"}\n')
        return score_rows(*args, **options)

    monkeypatch.setattr("tertium.corpus.worker.score_rows", growing)
    with pytest.raises(TertiumError, match=r"rows\.jsonl changed while it was read"):
        tertium.score_corpus(file, "chrf", out, part_rows=20, workers=1)
    assert not list(out.glob("*.parquet"))


def test_strict_refuses_to_resume_with_bad_rows(tmp_path: Path, out: Path) -> None:
    file = write_jsonl(tmp_path / "rows.jsonl", [*ROWS, {"mt": 5, "ref": ""}])
    tertium.score_corpus(file, "chrf", out)
    with pytest.raises(DataError, match=r"_bad: the earlier run rejected rows"):
        tertium.score_corpus(file, "chrf", out, resume=True, rows=RowOptions(strict=True))
    tertium.score_corpus(file, "chrf", out, resume=True)


def test_a_file_by_two_paths_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert tertium.score_corpus(["rows.jsonl", file], "chrf", "out").rows == len(ROWS)


@pytest.mark.parametrize("pattern", ["", "**/*.parquet", "*.parquet", "*", "**"])
@pytest.mark.parametrize("output", ["out", "deep/out", "out.parquet", "_out"])
def test_shards_in_the_input_folder_are_not_input(
    tmp_path: Path, pattern: str, output: str
) -> None:
    """Otherwise --resume would find shards among its inputs and refuse to continue."""
    corpus = tmp_path / "corpus"
    write_parquet(corpus / "a.parquet", ROWS[:3])
    write_parquet(corpus / "deep" / "b.parquet", ROWS[:3])
    scheme = "file://" if output == "deep/out" else ""
    run = {"inputs": scheme + str(corpus / pattern), "metrics": "ter", "output": corpus / output}
    first = tertium.score_corpus(**run)
    again = tertium.score_corpus(**run, resume=True)
    assert (again.rows, again.scored) == (first.rows, 0)


def test_a_missing_or_damaged_shard_is_written_again(file: Path, out: Path) -> None:
    tertium.score_corpus(file, "chrf", out, part_rows=30)
    before = shard_bytes(out)
    _, missing, short, flipped, _ = sorted(out.glob("*.parquet"))
    missing.unlink()
    short.write_bytes(short.read_bytes()[:100])
    content = bytearray(flipped.read_bytes())
    content[len(content) // 2] ^= 1
    flipped.write_bytes(content)
    summary = tertium.score_corpus(file, "chrf", out, part_rows=30, resume=True)
    assert shard_bytes(out) == before
    assert (summary.kept, summary.scored) == (len(ROWS), 90)


def test_a_run_killed_at_the_start_can_be_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path, out: Path
) -> None:
    """Before its manifest is written, a run leaves only a partial file and a lock."""
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", mock.Mock(side_effect=Killed))
        patch.setattr(Path, "unlink", mock.Mock())
        with pytest.raises(Killed):
            tertium.score_corpus(file, "chrf", out)
    assert [path.suffix for path in out.iterdir() if path.name != "_lock"] == [".part"]
    tertium.score_corpus(file, "chrf", out, resume=True)
    assert not [*out.glob("*.part")]
    tertium.score_corpus(file, "chrf", tmp_path / "whole")
    assert shard_bytes(out) == shard_bytes(tmp_path / "whole")


def test_folders_and_globs_keep_their_shape(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "in" / "de" / "a.jsonl", ROWS[:3])
    write_tsv(tmp_path / "in" / "fr" / "a.tsv.gz", ROWS[3:5])
    write_jsonl(tmp_path / "in" / "_done" / "x.jsonl", ROWS[:3])
    (tmp_path / "in" / "README.md").write_text("no data")
    tertium.score_corpus(tmp_path / "in", "chrf", tmp_path / "out")
    shards = sorted(p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*.parquet"))
    assert [str(path) for path in shards] == ["de/a.parquet", "fr/a.parquet"]
    tertium.score_corpus(str(tmp_path / "in" / "*" / "a.*"), "chrf", tmp_path / "again")
    assert sorted(p.name for p in (tmp_path / "again").rglob("*.parquet")) == ["a.parquet"] * 2


def test_folders_that_a_glob_matches_are_read(tmp_path: Path) -> None:
    """Regression: folders that match `*.parquet` were silently skipped."""
    write_parquet(tmp_path / "in" / "a.parquet" / "part-0.parquet", ROWS[:3])
    write_parquet(tmp_path / "in" / "b.parquet", ROWS[3:7])
    for number, given in enumerate(("*.parquet", "*", "**", "**/*.parquet")):
        out = tmp_path / str(number)
        assert tertium.score_corpus(str(tmp_path / "in" / given), "chrf", out).rows == 7
        assert (out / "a.parquet" / "part-0.parquet").exists()


def test_two_files_never_write_one_shard(tmp_path: Path, out: Path) -> None:
    write_jsonl(tmp_path / "in" / "a.jsonl", ROWS)
    write_jsonl(tmp_path / "in" / "a-00001.jsonl", ROWS[:3])
    write_tsv(tmp_path / "in" / "a-00001.tsv", ROWS[:3])
    summary = tertium.score_corpus(tmp_path / "in", "chrf", out, part_rows=50)
    assert len(read_shards(out)) == summary.rows == len(ROWS) + 6


def test_files_without_rows_are_shards_without_rows(tmp_path: Path, out: Path) -> None:
    write_tsv(tmp_path / "in" / "a.tsv", ROWS[:3])
    write_bytes(tmp_path / "in" / "b.tsv", b"mt\tref\n")
    summary = tertium.score_corpus(tmp_path / "in", "chrf", out)
    assert (summary.rows, summary.parts) == (3, 2)
    assert pq.read_table(out / "b.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ([], "{"),
        (["shard"], None),
        (["tally", "rows"], "2"),
        (["tally", "bad"], {"not UTF-8": "one"}),
        (["tally", "metrics", "chrf", "total"], float("inf")),
        (["tally", "metrics", "chrf", "signature"], {"nrefs": 1}),
    ],
)
def test_a_part_with_a_damaged_record_is_done_again(
    tmp_path: Path, keys: list[str], value: Any
) -> None:
    file, out = write_jsonl(tmp_path / "rows.jsonl", ROWS[:2]), tmp_path / "out"
    tertium.score_corpus(file, "chrf", out)
    note = out / "_done" / "rows.json"
    before = note.read_text()
    record = place = json.loads(before)
    for key in keys[:-1]:
        place = place[key]
    if keys:
        assert keys[-1] in place
        place[keys[-1]] = value
    note.write_text(json.dumps(record) if keys else value)
    assert tertium.score_corpus(file, "chrf", out, resume=True).scored == 2
    assert note.read_text() == before


def test_ctrl_c_stops_workers_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    """Each row takes a second, so that a batch would take far longer than the command may."""
    for n in range(2):
        write_jsonl(tmp_path / "in" / f"{n}.jsonl", ROWS * 20)
    (tmp_path / "slow_metric.py").write_text(SLOW_METRIC)
    info = tmp_path / "slow_metric-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-metric\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[tertium.metrics]\nslow = slow_metric:Slow\n")
    arguments = ["corpus", "in", "-m", "slow", "-o", "out", "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tertium", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a shell starts background jobs with Ctrl-C ignored, which processes inherit
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        wait_until(lambda: len([*tmp_path.glob("started-*")]) >= 2, 120)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=40)  # 60 rows of a second each are left
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in errors


SLOW_METRIC = """
import os, time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from tertium.metrics.base.metric import SegmentMetric


@dataclass(frozen=True, kw_only=True)
class Slow(SegmentMetric):
    name: ClassVar[str] = "slow"
    title: ClassVar[str] = "slow"

    def segment_scores(self, segments):
        if len(segments) > 1:
            Path(f"started-{os.getpid()}").touch()
        time.sleep(len(segments) - 1)
        return np.zeros(len(segments))
"""


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_row_without_the_usual_inputs_is_bad_for_flexible_metrics(
    tmp_path: Path, out: Path
) -> None:
    pytest.importorskip("torch")
    rows: list[dict[str, Any]] = [dict(row) for row in ROWS[:4]]
    del rows[2]["ref"]
    file = write_jsonl(tmp_path / "rows.jsonl", rows)
    summary = tertium.score_corpus(file, "bertscore:encoder=toy", out)
    assert dict(summary.bad) == {"missing field": 1}


def test_a_remote_file_system_is_read_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder stands for the bucket: only local paths are known to be local."""

    class Bucket:
        @staticmethod
        def from_uri(address: str) -> tuple[Any, str]:
            system = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
            return system, address.partition("://")[2]

    write_parquet(tmp_path / "in" / "a.parquet", ROWS)
    write_jsonl(tmp_path / "in" / "deep" / "b.jsonl.gz", ROWS)
    tertium.score_corpus(tmp_path / "in" / "a.parquet", "chrf", tmp_path / "here")
    monkeypatch.setattr(fs, "FileSystem", Bucket)
    run = {"inputs": "s3://in", "output": "s3://out", "workers": 1}
    summary = tertium.score_corpus(metrics="chrf", **run)
    assert (summary.rows, summary.parts) == (2 * len(ROWS), 2)
    (tmp_path / "out" / "_done" / "a.json").unlink()
    again = tertium.score_corpus(metrics="chrf", resume=True, **run)
    assert (again.rows, again.scored) == (2 * len(ROWS), len(ROWS))
    with pytest.raises(TertiumError, match="holds a run with other settings"):
        tertium.score_corpus(metrics="bleu", resume=True, **run)
    shards = [tmp_path / folder / "a.parquet" for folder in ("here", "out")]
    assert shards[0].read_bytes() == shards[1].read_bytes()
    assert (tmp_path / "out" / "deep" / "b.parquet").is_file()


def test_a_worker_that_cannot_start_gives_the_reason(
    tmp_path: Path, partial: str, out: Path
) -> None:
    """Regression: spawned workers lack the metric registered here and seemed to be killed."""
    file = write_jsonl(tmp_path / "rows.jsonl", ROWS[:4])
    with pytest.raises(TertiumError, match="unknown metric 'partial'"):
        tertium.score_corpus(file, partial, out, part_rows=2, workers=2)


def test_actors_fit_on_single_nodes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: nodes without a GPU cannot host an actor with one, and the run waited forever."""
    ray = pytest.importorskip("ray", reason="needs tertium[ray]")
    nodes = [{"Alive": True, "Resources": {"CPU": 1.0}}] * 4
    nodes += [
        {"Alive": True, "Resources": {"CPU": 4.0, "GPU": 1.0}},
        {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}},
    ]
    monkeypatch.setattr(ray, "nodes", lambda: nodes)
    for gpus, count in {0: 8, 0.25: 4}.items():
        assert WorkerPool(engine="ray", gpus=gpus).count_actors() == count
    assert WorkerPool(engine="ray", gpus=2, workers=3).count_actors() == 3
    assert "no node of the cluster has a CPU and 2 GPUs for a worker" in caplog.text
    with pytest.raises(UsageError, match="no node of the cluster has a CPU and 2 GPUs"):
        WorkerPool(engine="ray", gpus=2).count_actors()


def test_an_unreachable_cluster_gives_a_one_line_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray reports a missing token and a missing cluster in the same way."""
    ray = pytest.importorskip("ray")
    refusal = ConnectionError("Failed to connect to Ray cluster at 127.0.0.1\nand more")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", mock.Mock(side_effect=refusal))
    with pytest.raises(TertiumError) as caught, cluster("127.0.0.1:9"):
        pass
    assert str(caught.value) == (
        "no Ray cluster at 127.0.0.1:9: Failed to connect to Ray cluster at 127.0.0.1 "
        "(if it requires a token: set RAY_AUTH_MODE=token)"
    )
