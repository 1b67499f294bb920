"""Reading and writing files: encodings, line endings, tables, records, error locations."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.utils import smart_open

import tertium
from tertium.core.atomic import write_text
from tertium.core.errors import DataError, UsageError
from tertium.data.record_files import read_jsonl, read_records, write_jsonl
from tertium.data.tables import csv_lines, read_table, tsv_lines
from tertium.data.text_files import read_lines


def test_lone_carriage_return_is_text_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "text"
    file.write_bytes(b"a\rb\r\nc\n")
    lines = read_lines(file)
    with smart_open(str(file)) as stream:  # sacrebleu reads the same number of lines
        assert lines == [line.rstrip() for line in stream] == ["a\rb", "c"]
    assert "carriage returns (\\r) inside lines: 1; they are kept as text" in caplog.text


def test_lone_carriage_return_in_tables(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "x.tsv"
    file.write_bytes(b"mt\tref\r\na\rb\tc\r\n")
    assert [row for _, row in read_table(file)] == [{"mt": "a\rb", "ref": "c"}]
    assert "carriage returns (\\r) inside lines: 1" in caplog.text
    file = tmp_path / "x.csv"
    file.write_bytes(b'mt,ref\n"a\rb",c\n')
    assert [row for _, row in read_table(file)] == [{"mt": "a\rb", "ref": "c"}]
    file.write_bytes(b"mt,ref\na\rb,c\n")
    with pytest.raises(DataError, match=r"x\.csv, line 2: a carriage return outside quotes"):
        list(read_table(file))


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
def test_lines_are_read_in_every_encoding_variant(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "text"
    file.write_bytes(data)
    assert read_lines(file) == ["a", "b", "", "c"]


def test_only_line_endings_split_lines(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text("a\x0cb\u2028c\u0085d\x1ce\nf\n", encoding="utf-8")
    assert read_lines(file) == ["a\x0cb\u2028c\u0085d\x1ce", "f"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
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
    ],
    ids=[
        "empty",
        "bad byte",
        "bad byte after BOM",
        "UTF-16",
        "UTF-32",
        "Latin-1",
        "UTF-16 without BOM",
        "NUL",
        "cut gzip",
        "fake gzip",
    ],
)
def test_invalid_bytes_raise_with_line(tmp_path: Path, data: bytes, message: str) -> None:
    file = tmp_path / "text"
    file.write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_lines(file)


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_lines_and_files_that_are_too_large_raise(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_small_archive_of_a_huge_line_needs_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "bomb.txt.gz"
    with gzip.open(file, "wb", 1) as stream:
        for _ in range(300):
            stream.write(b"a" * (1 << 20))
    tracemalloc.start()
    with pytest.raises(DataError, match="line 1: more than 16 MB"):
        read_lines(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 << 20


@pytest.mark.parametrize(("compress", "kind"), [(lzma.compress, "xz"), (bz2.compress, "bzip2")])
def test_other_compressions_are_named(
    compress: Callable[[bytes], bytes], kind: str, tmp_path: Path
) -> None:
    file = tmp_path / "text"
    file.write_bytes(compress(b"a\n"))
    with pytest.raises(DataError, match=f"a {kind} file; expected plain text or gzip"):
        read_lines(file)


def test_missing_files_and_folders_raise(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_lines(tmp_path / "nothing")
    with pytest.raises(DataError, match="is a directory"):
        read_lines(tmp_path)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0"))))
def test_lines_round_trip(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    file = tmp_path_factory.mktemp("lines") / "text.gz"
    file.write_bytes(gzip.compress("\n".join([*lines, "end", ""]).encode()))
    assert read_lines(file) == [*lines, "end"]


def test_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text("old\n", encoding="utf-8")

    def interrupted() -> object:
        yield {"a": 1}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_jsonl(file, interrupted())  # type: ignore[arg-type]
    assert read_lines(file) == ["old"]
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_full_disk_raises_data_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = os.fsync

    def full(handle: int) -> None:
        real(handle)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="No space left on device"):
        write_jsonl(tmp_path / "text", [{"a": 1}])
    assert list(tmp_path.iterdir()) == []


def test_tables_with_headers_fields_and_quotes(tmp_path: Path) -> None:
    tsv = tmp_path / "a.tsv"
    tsv.write_text('src\tmt\n"Ja\tyes "\n', encoding="utf-8")
    assert list(read_table(tsv)) == [(f"{tsv}, line 2", {"src": '"Ja', "mt": 'yes "'})]
    assert next(row for _, row in read_table(tsv, ["a", "b"])) == {"a": "src", "b": "mt"}
    table = tmp_path / "a.csv"
    table.write_text('src,mt\n"one, two","line\nbreak"\n', encoding="utf-8")
    assert list(read_table(table)) == [
        (f"{table}, line 3", {"src": "one, two", "mt": "line\nbreak"})
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\n1\t2\t3\n", "line 2: 3 fields, but the header has 2"),
        ("a\ta\n1\t2\n", "'a' occurs more than once"),
        ("", "is empty"),
    ],
)
def test_ragged_tables_raise(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.tsv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(read_table(file))


@pytest.mark.parametrize("first", ["mt\tref", "MT\tRef "])
def test_header_row_with_fields_raises(tmp_path: Path, first: str) -> None:
    (tmp_path / "a.tsv").write_text(f"{first}\na cat\ta dog\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"a\.tsv: the first line is a header .*--fields"):
        list(read_table(tmp_path / "a.tsv", ["mt", "ref"]))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('a,a\nb,"b\nc,c\nd,d\n', "a.csv, lines 3 to 5: a quote is not closed"),
        ('a,a\n"A "dog" barks",b\nc,c\n', "a.csv, line 3: .*double the quotes"),
    ],
)
def test_unclosed_or_undoubled_csv_quotes_raise(tmp_path: Path, rows: str, message: str) -> None:
    """Four rows were read as two, and a text lost its first quote."""
    (tmp_path / "a.csv").write_text(f"mt,ref\n{rows}", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(read_table(tmp_path / "a.csv"))
    (tmp_path / "a.csv").write_text('mt,ref\nA 5" disk,"A 5"" disk"\n', encoding="utf-8")
    assert [{*row.values()} for _, row in read_table(tmp_path / "a.csv")] == [{'A 5" disk'}]


@pytest.mark.parametrize(
    ("name", "header", "message"),
    [
        ("a.csv", "mt;ref", "separated by semicolons (mt;ref); expected commas"),
        ("a.csv", "mt\tref", "separated by tabs"),
        ("a.tsv", "mt,ref", "separated by commas (mt,ref); expected tabs"),
    ],
)
def test_other_delimiters_raise(tmp_path: Path, name: str, header: str, message: str) -> None:
    (tmp_path / name).write_text(f"{header}\n{header}\n", encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(message)):
        list(read_table(tmp_path / name))


def test_csv_quotes_in_a_tsv_give_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """pandas writes such files with sep="\\t"; the quotes would be scored."""
    rows = ['"She said ""no""."\tNo.', '"No."\t"a ""b"""']
    (tmp_path / "a.tsv").write_text("\n".join(["mt\tref", *rows]) + "\n", encoding="utf-8")
    result = [record for _, record in read_table(tmp_path / "a.tsv")]
    assert result[0]["mt"] == '"She said ""no""."'
    assert "a.tsv: fields quoted as in CSV: 2; quotes are literal in TSV" in caplog.text
    caplog.clear()
    (tmp_path / "a.tsv").write_text('mt\tref\n"No."\t""No""\n', encoding="utf-8")
    assert len(list(read_table(tmp_path / "a.tsv"))) == 1
    assert caplog.text == ""


def test_tables_round_trip(tmp_path: Path) -> None:
    for name, lines in (("a.tsv", tsv_lines), ("a.csv", csv_lines)):
        write_text(tmp_path / name, lines({"a": ['"x" y', "ü"], "b": [1.5, 2]}))
        rows = [row for _, row in read_table(tmp_path / name)]
        assert rows == [{"a": '"x" y', "b": "1.5"}, {"a": "ü", "b": "2"}]
    write_text(tmp_path / "b.csv", csv_lines({"a": ["two\nlines"]}))
    assert [row for _, row in read_table(tmp_path / "b.csv")] == [{"a": "two\nlines"}]
    assert [*tsv_lines({"a": ["x\ty", "two\nlines", "\r"]})] == [
        "a\n",
        "x y\n",
        "two lines\n",
        " \n",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": \n', "line 2: not JSON"),
        ("[1]\n", "line 1: expected an object, .*jq -c"),
        ('[\n{"a": 1}\n]\n', "line 1: not JSON .*jq -c"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}\n", "line 1: the JSON is nested too deep"),
        ('{"a": ' + "1" * 5000 + "}\n", "line 1: the JSON cannot be read"),
        ("{}\n" r'{"a": ["\ud83d\ude00", "bad \ud800 here"]}', r"line 2: U\+D800 is half"),
        (r'{"a": {"b\u0000": 1}}', "line 1: NUL byte"),
        (r'{"a": "\udcff"}', "line 1: not UTF-8 .byte 0xff"),
    ],
    ids=["cut", "no object", "a list", "deep", "a long number", "surrogate", "NUL", "byte"],
)
def test_invalid_json_lines_raise_with_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(read_jsonl(file))


def test_dash_is_standard_input_and_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_records_of_standard_input_raise_with_line(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    with pytest.raises(DataError, match=message):
        list(read_records("-"))


def test_records_of_standard_input_with_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x\ty\n")))
    assert list(read_records("-", ["a", "b"])) == [("standard input, line 1", {"a": "x", "b": "y"})]


def test_unused_parquet_columns_are_not_read(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    when = arrow.array([2**62], arrow.timestamp("us"))  # after the year 9999
    columns = {"mt": ["a"], "score": [1.0], "when": when, "id": arrow.array([b"x"])}
    columns["history"] = arrow.array([[2**62]], arrow.list_(arrow.timestamp("us")))
    parquet.write_table(arrow.table(columns), tmp_path / "x.parquet")
    records = [record for _, record in read_records(tmp_path / "x.parquet")]
    assert records == [{"mt": "a", "score": 1.0}]


def test_damaged_parquet_file_raises_in_one_line(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "x.parquet"
    parquet.write_table(arrow.table({"mt": ["a"], "score": [1.0]}), file)
    data = file.read_bytes()
    damaged_page = data[:4] + b"\xff" + data[5:]  # pyarrow explains it in two lines
    for content in (damaged_page, b"", b"text"):
        file.write_bytes(content)
        with pytest.raises(DataError, match="not a Parquet file") as error:
            list(read_records(file))
        assert "\n" not in str(error.value)


def test_records_with_nul_are_not_written(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    with pytest.raises(DataError, match="record 2: a text contains NUL"):
        write_jsonl(file, [{"mt": "a"}, {"mt": "b\0"}])
    assert not file.exists()
    write_jsonl(file, [{"mt": "literal \\u0000"}])
    assert [record for _, record in read_jsonl(file)] == [{"mt": "literal \\u0000"}]


def test_a_file_that_changes_while_it_is_read_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("one\ntwo\n",))
    writer.start()
    assert read_lines(pipe) == ["one", "two"]
    writer.join()
