"""Reading and writing files: encodings, line endings, tables, records, error locations."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sacrebleu.utils import smart_open
from tests.builders import write_file

import tertium
from tertium.core.atomic import write_text
from tertium.core.errors import DataError, UsageError
from tertium.data.record_files import read_jsonl, read_records, write_jsonl
from tertium.data.tables import csv_lines, read_table, tsv_lines
from tertium.data.text_files import read_lines


def test_lone_carriage_return_is_text_and_counted(tmp_path, caplog):
    file = tmp_path / "text"
    file.write_bytes(b"a\rb\r\nc\n")
    lines = read_lines(file)
    with smart_open(str(file)) as stream:  # sacrebleu reads the same number of lines
        assert lines == [line.rstrip() for line in stream] == ["a\rb", "c"]
    assert "carriage returns (\\r) inside lines: 1; they are kept as text" in caplog.text


@pytest.mark.parametrize(
    ("name", "text"), [("x.tsv", "mt\tref\r\na\rb\tc\r\n"), ("x.csv", 'mt,ref\n"a\rb",c\n')]
)
def test_lone_carriage_return_in_tables(tmp_path, caplog, name, text):
    rows = [row for _, row in read_table(write_file(tmp_path / name, text))]
    assert rows == [{"mt": "a\rb", "ref": "c"}]
    assert ("carriage returns (\\r) inside lines: 1" in caplog.text) == (name == "x.tsv")


@pytest.mark.parametrize(
    "data",
    [
        b"a\nb\n\nc\n",
        b"a\nb\n\nc",
        b"\xef\xbb\xbfa\nb\n\nc\n",
        b"a\r\nb\r\n\r\nc\r\n",
        gzip.compress(b"a\nb\n\nc\n"),
    ],
    ids=["plain", "no last newline", "byte-order mark", "CRLF", "gzip"],
)
def test_lines_are_read_in_every_encoding_variant(tmp_path, data):
    file = tmp_path / "text"
    file.write_bytes(data)
    assert read_lines(file) == ["a", "b", "", "c"]


@pytest.mark.parametrize(("data", "message"), [
    (b"", "is empty"),
    (b"good\nbad \xff\n", "line 2: not UTF-8 .*0xff"),
    (b"\xef\xbb\xbfgood\nbad \xff\n", "line 2: not UTF-8 .*0xff"),
    ("gut\n".encode("utf-16"), "not UTF-8 .*iconv -f UTF-16 -t UTF-8"),
    ("gut\n".encode("utf-32"), "not UTF-8 .*iconv -f UTF-32 -t UTF-8"),
    ("grün\n".encode("latin-1"), "line 1: not UTF-8 .*iconv -f LATIN1 -t UTF-8"),
    ("gut\n".encode("utf-16-le"), "NUL byte.*iconv -f UTF-16LE"),
    (b"a\nb\0c\n", "line 2: NUL byte"),
    (gzip.compress(b"hello")[:-6], "damaged gzip"),
    (b"\x1f\x8bnot gzip at all", "damaged gzip"),
    (lzma.compress(b"a\n"), "a xz file; expected plain text or gzip"),
    (bz2.compress(b"a\n"), "a bzip2 file; expected plain text or gzip"),
    (None, "no such file"),
])  # fmt: skip
def test_invalid_bytes_raise_with_line(tmp_path, data, message):
    file = tmp_path / "text"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_lines(file)
    with pytest.raises(DataError, match="is a directory"):
        read_lines(tmp_path)


@pytest.mark.parametrize(("name", "text", "message"), [
    ("a.tsv", "a\tb\n1\t2\t3\n", "line 2: 3 fields, but the header has 2"),
    ("a.tsv", "a\ta\n1\t2\n", "'a' occurs more than once"),
    ("a.tsv", "", "is empty"),
    ("a.csv", "mt;ref\na;b\n", r"separated by semicolons \(mt;ref\); expected commas"),
    ("a.csv", "mt\tref\na\tb\n", "separated by tabs"),
    ("a.tsv", "mt,ref\na,b\n", r"separated by commas \(mt,ref\); expected tabs"),
    ("a.csv", 'mt,ref\na,a\nb,"b\nc,c\nd,d\n', "a.csv, lines 3 to 5: a quote is not closed"),
    ("a.csv", 'mt,ref\na,a\n"A "dog" barks",b\nc,c\n', "a.csv, line 3: .*double the quotes"),
    ("x.csv", "mt,ref\na\rb,c\n", r"x\.csv, line 2: a carriage return outside quotes"),
])  # fmt: skip
def test_invalid_tables_raise(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        list(read_table(write_file(tmp_path / name, text)))


@pytest.mark.parametrize("first", ["mt\tref", "MT\tRef "])
def test_header_row_with_fields_raises(tmp_path, first):
    file = write_file(tmp_path / "a.tsv", f"{first}\na cat\ta dog\n")
    with pytest.raises(UsageError, match=r"a\.tsv: the first line is a header .*--fields"):
        list(read_table(file, ["mt", "ref"]))


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_lines_and_files_that_are_too_large_raise(name, tmp_path, monkeypatch):
    file = tmp_path / name
    data = b"short\n\n" + b"x" * ((1 << 24) + 1) + b"\n"
    file.write_bytes(gzip.compress(data, 1) if name.endswith("gz") else data)
    with pytest.raises(DataError, match=rf"{name}, line 3: more than 16 MB in one line"):
        read_lines(file)
    json_file = tmp_path / name.replace(".txt", ".json")  # one value, perhaps on one line
    json_file.write_bytes(file.read_bytes())
    assert len(read_lines(json_file)) == 3
    monkeypatch.setattr("tertium.data.text_files.MAX_FILE_BYTES", 1 << 20)
    monkeypatch.setattr("tertium.data.text_files.MAX_LINE_BYTES", 1 << 30)
    with pytest.raises(DataError, match=r"GiB of text; split the file, or score it with"):
        read_lines(file)


def test_a_small_archive_of_a_huge_line_needs_little_memory(tmp_path):
    file = tmp_path / "bomb.txt.gz"
    with gzip.open(file, "wb", 1) as stream:
        for _ in range(120):
            stream.write(b"a" * (1 << 20))
    tracemalloc.start()
    with pytest.raises(DataError, match="line 1: more than 16 MB"):
        read_lines(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 << 20


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0"))))
@example(["a\x0cb\u2028c\u0085d\x1ce", "f"])  # only line endings split lines
def test_lines_round_trip(tmp_path_factory, lines):
    file = tmp_path_factory.mktemp("lines") / "text.gz"
    file.write_bytes(gzip.compress("\n".join([*lines, "end", ""]).encode()))
    assert read_lines(file) == [*lines, "end"]


def test_quotes_of_tables(tmp_path):
    tsv = write_file(tmp_path / "a.tsv", 'src\tmt\n"Ja\tyes "\n')
    assert list(read_table(tsv)) == [(f"{tsv}, line 2", {"src": '"Ja', "mt": 'yes "'})]
    assert next(row for _, row in read_table(tsv, ["a", "b"])) == {"a": "src", "b": "mt"}
    table = write_file(tmp_path / "a.csv", 'src,mt\n"one, two","line\nbreak"\n')
    row = {"src": "one, two", "mt": "line\nbreak"}
    assert list(read_table(table)) == [(f"{table}, line 3", row)]
    file = write_file(tmp_path / "a.csv", 'mt,ref\nA 5" disk,"A 5"" disk"\n')
    assert [{*row.values()} for _, row in read_table(file)] == [{'A 5" disk'}]


def test_csv_quotes_in_a_tsv_give_a_warning(tmp_path, caplog):
    """pandas writes such files with sep="\\t"; the quotes would be scored."""
    text = 'mt\tref\n"She said ""no""."\tNo.\n"No."\t"a ""b"""\n'
    (_, first), _ = read_table(write_file(tmp_path / "a.tsv", text))
    assert first["mt"] == '"She said ""no""."'
    assert "a.tsv: fields quoted as in CSV: 2; quotes are literal in TSV" in caplog.text
    caplog.clear()
    file = write_file(tmp_path / "a.tsv", 'mt\tref\n"No."\t""No""\n')
    assert len(list(read_table(file))) == 1
    assert caplog.text == ""


def test_tables_round_trip(tmp_path):
    for name, lines in (("a.tsv", tsv_lines), ("a.csv", csv_lines)):
        write_text(tmp_path / name, lines({"a": ['"x" y', "ü"], "b": [1.5, 2]}))
        rows = [row for _, row in read_table(tmp_path / name)]
        assert rows == [{"a": '"x" y', "b": "1.5"}, {"a": "ü", "b": "2"}]
    write_text(tmp_path / "b.csv", csv_lines({"a": ["two\nlines"]}))
    assert [row for _, row in read_table(tmp_path / "b.csv")] == [{"a": "two\nlines"}]
    written = [*tsv_lines({"a": ["x\ty", "two\nlines", "\r"]})]
    assert written == ["a\n", "x y\n", "two lines\n", " \n"]


@pytest.mark.parametrize(("text", "message"), [
    ('{"a": 1}\n{"a": \n', "line 2: not JSON"),
    ("[1]\n", "line 1: expected an object, .*jq -c"),
    ('[\n{"a": 1}\n]\n', "line 1: not JSON .*jq -c"),
    ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}\n", "line 1: the JSON is nested too deep"),
    ('{"a": ' + "1" * 5000 + "}\n", "line 1: the JSON cannot be read"),
    ("{}\n" r'{"a": ["\ud83d\ude00", "bad \ud800 here"]}', r"line 2: U\+D800 is half"),
    (r'{"a": {"b\u0000": 1}}', "line 1: NUL byte"),
    (r'{"a": "\udcff"}', "line 1: not UTF-8 .byte 0xff"),
], ids=["cut", "no object", "a list", "deep", "number", "surrogate", "NUL", "byte"])  # fmt: skip
def test_invalid_json_lines_raise_with_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        list(read_jsonl(write_file(tmp_path / "a.jsonl", text)))


def test_dash_is_standard_input_and_is_read_once(monkeypatch):
    data = gzip.compress("ä\n\nb\n".encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert read_lines("-") == ["ä", "", "b"]
    with pytest.raises(UsageError, match=r"standard input.* is given twice"):
        read_lines("-")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(DataError, match="standard input is empty"):
        read_lines(Path("-"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": \n', "standard input, line 2: not JSON"),
        ("a\tb\n1\n", "standard input, line 2: 1 fields, but the header has 2"),
        ("a,b\n1,2\n", "standard input: the columns are separated by commas"),
    ],
)
def test_records_of_standard_input_raise_with_line(text, message, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    with pytest.raises(DataError, match=message):
        list(read_records("-"))


def test_records_of_parquet_files(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    when = arrow.array([2**62], arrow.timestamp("us"))  # after the year 9999
    columns = {"mt": ["a"], "score": [1.0], "when": when, "id": arrow.array([b"x"])}
    columns["history"] = arrow.array([[2**62]], arrow.list_(arrow.timestamp("us")))
    parquet.write_table(arrow.table(columns), tmp_path / "x.parquet")
    records = [record for _, record in read_records(tmp_path / "x.parquet")]
    assert records == [{"mt": "a", "score": 1.0}]
    file = tmp_path / "x.parquet"
    parquet.write_table(arrow.table({"mt": ["a"], "score": [1.0]}), file)
    data = file.read_bytes()
    damaged_page = data[:4] + b"\xff" + data[5:]  # pyarrow explains it in two lines
    for content in (damaged_page, b"", b"text"):
        file.write_bytes(content)
        with pytest.raises(DataError, match="not a Parquet file") as error:
            list(read_records(file))
        assert "\n" not in str(error.value)


def test_records_with_nul_are_not_written(tmp_path):
    file = tmp_path / "x.jsonl"
    with pytest.raises(DataError, match="record 2: a text contains NUL"):
        write_jsonl(file, [{"mt": "a"}, {"mt": "b\0"}])
    assert not file.exists()
    write_jsonl(file, [{"mt": "literal \\u0000"}])
    assert [record for _, record in read_jsonl(file)] == [{"mt": "literal \\u0000"}]


def test_a_file_that_changes_while_it_is_read_raises(tmp_path, monkeypatch):
    """Regression: the last line was cut, or lines of two versions were mixed."""
    file = tmp_path / "growing.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")
    get_status = os.fstat

    def get_status_and_append(descriptor: int) -> os.stat_result:
        status = get_status(descriptor)
        with file.open("a", encoding="utf-8") as stream:
            stream.write("thr")
        return status

    monkeypatch.setattr(os, "fstat", get_status_and_append)
    for read in (read_lines, lambda path: tertium.TestSet.read([path])):
        with pytest.raises(
            DataError, match=r"growing\.txt changed while it was read \(from 8 bytes"
        ):
            read(file)
        file.write_text("one\ntwo\n", encoding="utf-8")
    monkeypatch.undo()
    assert read_lines(file) == ["one", "two"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("one\ntwo\n",))
    writer.start()
    assert read_lines(pipe) == ["one", "two"]
    writer.join()
