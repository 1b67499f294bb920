"""Test sets: parallel files, records, documents and invalid input."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.builders import write_file

from tertium.core.errors import (
    DataError,
    LengthError,
    MissingInputError,
    TertiumError,
    UnknownNameError,
    UsageError,
)
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.evaluation.ranking import rank
from tertium.evaluation.scoring import score
from tertium.metrics import load_metric

ABC = TestSet(systems={"A": ("a", "b", "c")})


def read_records(folder: Path, text: str, name: str = "set.jsonl") -> TestSet:
    return TestSet.from_records(write_file(folder / name, text))


def test_parallel_files_become_segments(tmp_path):
    contents = {"a": "x\n\n", "b": "y\nz\n", "r": "1\n2\n", "q": "3\n4\n", "s": "u\nv\n"}
    f = {name: write_file(tmp_path / f"{name}.txt", text) for name, text in contents.items()}
    documents = write_file(tmp_path / "d.txt", "d1\nd1\n")
    testset = TestSet.read([f["a"], f["b"]], [f["r"], f["q"]], f["s"], documents)
    assert list(testset.systems) == ["a.txt", "b.txt"]
    expected = [Segment("x", "u", ("1", "3")), Segment("", "v", ("2", "4"))]
    assert testset.segments("a.txt") == expected
    assert testset.documents == ("d1", "d1")
    longer = write_file(tmp_path / "r.txt", "1\n2\n3\n")
    with pytest.raises(LengthError, match=r"a\.txt has 2 lines but .*r\.txt has 3"):
        TestSet.read([f["a"]], [longer])


@pytest.mark.parametrize("name", ["ref.jsonl", "ref.json.gz"])
def test_records_are_not_scored_as_plain_text(tmp_path, name):
    """Otherwise a reference would be scored with its braces and keys."""
    ours = write_file(tmp_path / "ours.txt", "a\n")
    with pytest.raises(UsageError, match=f"{name} contains records; expected plain text"):
        TestSet.read([ours], [write_file(tmp_path / name, '{"ref": "a"}\n')])


def test_records_in_a_file_without_suffix_raise(tmp_path):
    """Standard input has no suffix that identifies records."""
    piped = write_file(tmp_path / "0", '{"MT": "a", "ref": "b"}\n')
    plain = write_file(tmp_path / "plain.txt", '{"name": "a setting, translated"}\n')
    with pytest.raises(DataError, match=r"0: line 1 is a JSON record .* name ends in .jsonl"):
        TestSet.read([piped], [plain])
    assert len(TestSet.read([plain], [plain])) == 1


def test_systems_with_equal_file_names_are_distinguished(tmp_path):
    files = [write_file(tmp_path / folder / "out.txt", "x\n") for folder in ("one", "two")]
    assert list(TestSet.read(files).systems) == ["one/out.txt", "two/out.txt"]
    assert list(TestSet.read(files, names=["A", "B"]).systems) == ["A", "B"]
    with pytest.raises(DataError, match="two systems are named 'A'"):
        TestSet.read(files, names=["A", "A"])
    with pytest.raises(LengthError, match="1 names for 2"):
        TestSet.read(files, names=["A"])


def test_records_with_varying_references_round_trip(tmp_path):
    testset = TestSet(
        systems={"a": ("x", ""), "b": ("y", "z")},
        references=(("r",), ("r", "q", "p")),
        sources=("s", "t"),
        documents=("d", "e"),
    )
    testset.write(tmp_path / "set.jsonl.gz")
    assert TestSet.from_records(tmp_path / "set.jsonl.gz") == testset


def test_names_of_records(tmp_path):
    rows = [f'{{"mt":"{n}","system":"{"xy"[n // 3]}","id":{n}}}\n' for n in range(6)]
    testset = read_records(tmp_path, "".join(rows))
    assert testset.items == ("1", "2", "3")
    assert testset.systems["y"] == ("3", "4", "5")
    text = '{"mt":"a","system":0,"doc":0}\n{"mt":"b","system":1,"doc":0}\n'
    testset = read_records(tmp_path, text)
    assert list(testset.systems) == ["0", "1"]
    assert testset.documents == ("0",)
    testset = read_records(tmp_path, "src\tmt\tref\na\tb\tc\n", "ours.tsv")
    assert testset.segments("ours") == [Segment("b", "a", ("c",))]


@pytest.mark.parametrize(
    ("columns", "documents", "items"),
    [
        ({}, (), ("1", "2", "3")),
        ({"segment": ("0", "1", "2")}, (), ("0", "1", "2")),
        ({"id": ("x", "y", "z"), "seg_id": ("7", "8", "9")}, (), ("7", "8", "9")),  # the first name
        ({"segment": ("1", "2", "1")}, ("a", "a", "b"), ("a:1", "a:2", "b:1")),
        ({"segment": ("1", "2", "3")}, ("a", "a", "b"), ("1", "2", "3")),
        ({"segment": ("1", "1", "1")}, ("a", "a", "b"), ("1", "2", "3")),  # not distinct
        ({"segment": ("7", "", "9")}, (), ("7", "#2", "9")),
        ({"segment": ("", "", "9")}, (), ("1", "2", "3")),
    ],
)
def test_item_names_come_from_the_file(columns, documents, items):
    testset = replace(ABC, documents=documents, columns=columns)
    assert testset.items == items
    assert testset.match_item_names(["x", *items[:1]]) == items
    assert testset.match_item_names(["none of these"]) == ("1", "2", "3")


def test_repeated_names_are_numbered_within_their_document():
    testset = TestSet(
        systems={"A": tuple("abcdefg")},
        documents=("x",) * 5 + ("y",) * 2,
        columns={"segment": ("1", "2", "3", "3", "4", "1", "2")},
    )
    assert testset.items == ("x:1", "x:2", "x:3#1", "x:3#2", "x:4", "y:1", "y:2")


def test_judgments_of_one_document_may_omit_its_name():
    documents, columns = ("x", "x", "y", "y"), {"segment": ("1", "2", "1", "2")}
    testset = TestSet(systems={"A": tuple("abcd")}, documents=documents, columns=columns)
    assert testset.match_item_names(["1", "2"], {"1": "y", "2": "y"}) == ("x:1", "x:2", "1", "2")
    assert testset.match_item_names(["1", "2"], {"1": "z", "2": "z"}) == ("1", "2", "3", "4")


def test_line_numbers_do_not_match_another_document():
    systems = {"A": ("a", "b", "c"), "B": ("d", "e", "f")}
    testset = TestSet(systems=systems, documents=("x", "y", "y"))
    assert testset.match_item_names(["1", "2"], {"1": "y", "2": "y"}) == ("x:1", "2", "3")
    assert testset.match_item_names(["1", "2"], {"1": "z", "2": "y"}) == ("1", "2", "3")


def test_integral_floats_are_names(tmp_path):
    """pandas stores integers with missing values as floats."""
    text = '{"mt":"a","system":"A","id":0.0}\n{"mt":"b","system":"A","id":1.0}\n'
    testset = read_records(tmp_path, text)
    assert testset.items == ("0", "1")


def test_spaces_around_names_are_ignored(tmp_path):
    """For example in a CSV file with a space after each comma."""
    text = "mt, system, doc, segment\na, A, x, 0\nb, A, x, 1\n"
    testset = read_records(tmp_path, text, "set.csv")
    assert (list(testset.systems), testset.documents) == (["A"], ("x", "x"))
    assert testset.items == ("0", "1")


def test_columns_of_frames_and_arrow_are_read_in_their_order():
    arrow = pytest.importorskip("pyarrow")
    texts = pd.Series(["a", "b", "c"], index=[2, 0, 1])
    references = texts.map(lambda text: [text])
    testset = TestSet({"A": texts}, references, texts.str.upper(), columns={"segment": texts})
    chosen = testset.subset([0, 2]).segments("A")
    assert chosen == [Segment("a", "A", ("a",)), Segment("c", "C", ("c",))]
    assert testset.items == ("a", "b", "c")
    texts, references = arrow.array(["a", "b"]), arrow.array([["a"], ["b", "c"]])
    columns = {"kind": arrow.chunked_array([["x"], ["y"]])}
    testset = TestSet(systems={"A": texts}, references=references, columns=columns)
    assert testset == TestSet(
        systems={"A": ["a", "b"]}, references=[["a"], ["b", "c"]], columns={"kind": ["x", "y"]}
    )


def test_testset_copies_its_lists():
    outputs, references = ["a", "b"], [["a"], ["b"]]
    testset = TestSet(systems={"ours": outputs}, references=references)
    assert testset == TestSet(systems={"ours": ("a", "b")}, references=(("a",), ("b",)))
    outputs[0] = "c"
    references[1].append("d")
    references.pop()
    assert testset.segments("ours") == [Segment("a", None, ("a",)), Segment("b", None, ("b",))]


ZERO = replace(ABC, columns={"segment": ("0", "1", "2")})


@pytest.mark.parametrize(
    ("testset", "items", "message"),
    [
        (ABC, "012", r"segment 0 and none of 3, but .* numbered from 1 to 3"),
        (ABC, ("000", "001", "002"), r"segment 0 and none of 3"),
        (ZERO, "123", r"segment 3 and none of 0, but .* numbered from 0 to 2"),
    ],
)
def test_names_with_another_first_number_raise(testset, items, message):
    with pytest.raises(DataError, match=message):
        testset.match_item_names(items)


def test_numbers_of_a_longer_set_are_not_another_base():
    with pytest.raises(DataError, match="numbered from 1 to 3"):
        ABC.match_item_names(["0", "2"])
    assert ABC.match_item_names(["0", "3"]) == ("1", "2", "3")
    assert ZERO.match_item_names(["1", "3", "0"]) == ("0", "1", "2")
    assert ZERO.match_item_names(["1", "3", "7"]) == ("0", "1", "2")


@pytest.mark.parametrize(("rows", "message"), [
    ('{"mt":"a","system":"x","ref":"r"}\n{"mt":"a","system":"y","ref":"q"}\n', "another list"),
    ('{"mt":"a","system":"x","src":"s","ref":"r"}\n{"mt":"r","system":"y","src":"s"}\n',
     "segment 1 of system 'y' has another list of references than that of 'x'; sort"),
    ('{"mt":"a","system":"x"}\n{"mt":"a","system":"y"}\n{"mt":"b","system":"y"}\n', "2 .*; every"),
    ('{"mt":"a","src":"s"}\n{"mt":"b"}\n', "some have none"),
    ('{"mt":"a","doc":"d"}\n{"mt":"b"}\n', "segment 2 has no document"),
    ('{"mt":"a","system":0,"doc":0}\n{"mt":"a","system":1,"doc":1}\n', "has another document"),
    ('{"mt":"a","system":["x"]}\n', r"line 1: system is \['x'\]; expected a name"),
    ('{"mt":"a","doc":{"x":1}}\n', "line 1: document is .*; expected a name"),
    ('{"mt":"a","system":"x","id":0}\n{"mt":"b","system":"x","id":1}\n'
     '{"mt":"b","system":"y","id":1}\n{"mt":"a","system":"y","id":0}\n',
     "the rows of system 'y' have another id than those of 'x'; sort the rows"),
    ("\n", "contains no segments"),
])  # fmt: skip
def test_inconsistent_records_raise(tmp_path, rows, message):
    with pytest.raises(DataError, match=message):
        read_records(tmp_path, rows)


@pytest.mark.parametrize(("parts", "message"), [
    ({"systems": {}}, "at least one system"),
    ({"systems": {"a": ("x",)}, "references": (("r",), ("q",))},
     "references has 2 segments, but a has 1"),
    ({"references": ("the cat", "hi")}, "segment 1: .* got the one text 'the cat'; wrap it in"),
    ({"references": (("a",), (None,))}, "references of segment 2: reference 1 is None"),
    ({"references": (("a",), 3)}, "references of segment 2: expected a list of texts, got int"),
    ({"references": iter([["a"], ["b"]])}, "for each segment, got a list_iterator"),
    ({"references": {("a",), ("b",)}}, "for each segment, got a set"),
    ({"references": None}, "references: .* got a NoneType"),
    ({"columns": None}, "columns: got None; omit it"),
    ({"references": pd.DataFrame({"ref": ["a"]})}, "references: .* got a DataFrame"),
    ({"sources": ("a", 7)}, "sources: segment 2 is 7, not a text"),
    ({"sources": "ab"}, "sources: expected a list of texts, got the one text 'ab'"),
    ({"documents": (1, 2)}, "documents: segment 1 is 1, not a text"),
    ({"systems": [["a"]]}, "^systems: expected"),
    ({"systems": {"a": "ab"}}, "system 'a': expected a list of texts, got the one text 'ab'"),
    ({"systems": {"a": ("x", None)}}, "system 'a': segment 2 is None, not a text"),
    ({"systems": {0: ("x", "y")}}, "the system name 0 is not"),
])  # fmt: skip
def test_values_that_are_not_texts_raise_with_position(parts, message):
    with pytest.raises((DataError, UsageError), match=message):
        TestSet(**{"systems": {"a": ("x", "y")}, **parts})


SEGMENT = Segment("a", None, ("b",))
WRONG_CALLS: dict[type[TertiumError], dict[str, Callable[[], object]]] = {
    LengthError: {
        "references has 2 segments, but": lambda: TestSet.from_lists(["a"], references=["x", "y"]),
    },
    DataError: {
        "the hypothesis of a segment is None": lambda: Segment(None),
        "the source of a segment is 3": lambda: Segment("a", 3),
        "references of a segment: reference 2 is None": lambda: Segment("a", None, ("b", None)),
        "^row 2: no translation": lambda: TestSet.from_records([{"mt": "a"}, {"ref": "hi"}]),
        "rows of 3 segments: index 3 is out of bounds": lambda: ABC.subset([3]),
        "rows of 3 segments: boolean index did not match": lambda: ABC.subset([True, False]),
        "rows of 3 segments: .*of integer": lambda: ABC.subset(["a"]),
    },
    UnknownNameError: {
        "did you mean 'online-A'": lambda: TestSet({"online-A": ("x",)}).segments("onlineA")
    },
    UsageError: {
        "^translations: expected a list of files, .*got 'a.txt'": lambda: TestSet.read("a.txt"),
        "^translations: expected a list .*got {'a': 'a": lambda: TestSet.read({"a": "a.txt"}),
        "^references: .*got <list_iter": lambda: TestSet.read(["a.txt"], iter(["r.txt"])),
        "^names: 'ours' is a single name; give a list": lambda: TestSet.read(["a"], names="ours"),
        "expected a TestSet, got 3; create one with TestSet.read": lambda: score(3, "chrf"),
        "expected a TestSet, got 'a'; create one with": lambda: score("a", "chrf"),
        "expected a TestSet, got 'b'; create one with": lambda: rank("b", "chrf"),
        r"expected a spec such as 'pairwise', got \['chrf'\]": lambda: rank(ABC, ["chrf"]),
        "^chrf expects segments, got 'b'": lambda: load_metric("chrf").score([SEGMENT, "b"]),
        "^chrf expects a list of .* <generator": lambda: load_metric("chrf").score(s for s in "a"),
        "references of a segment: .* wrap it in": lambda: Segment("a", None, "the cat"),
        "references: .* got the text 'x'; wrap it": lambda: TestSet.from_lists(
            ["a"], references="x"
        ),
        "system 'system': expected a list of texts, got the one": lambda: TestSet.from_lists("a"),
        "references: .* got a generator": lambda: TestSet.from_lists(
            ["a"], references=(t for t in "")
        ),
        "expected a pandas, polars or Arrow table, got": lambda: TestSet.from_frame([{"mt": "a"}]),
        "^expected records, .* not 3": lambda: TestSet.from_records(3),
    },
}


@pytest.mark.parametrize(
    ("error", "message"),
    [(error, message) for error in WRONG_CALLS for message in WRONG_CALLS[error]],
)
def test_wrong_values_are_named(error, message):
    with pytest.raises(error, match=message):
        WRONG_CALLS[error][message]()


def test_records_in_memory_equal_their_file(tmp_path):
    records = [
        {"System": "B", "mt": "hello", "Ref1": "hi", "Ref2": "hey", "domain": "talk"},
        {"System": "A", "mt": "good", "Ref1": "hi", "Ref2": "hey", "domain": "talk"},
    ]
    frame = pd.DataFrame(records)
    frame.to_csv(tmp_path / "a.csv", index=False)
    expected = TestSet.from_records(tmp_path / "a.csv")
    assert expected.references == (("hi", "hey"),)  # uppercase columns are references
    assert TestSet.from_records(frame) == TestSet.from_records(records) == expected
    assert TestSet.from_frame(frame) == expected
    polars = pytest.importorskip("polars")
    assert TestSet.from_frame(polars.from_dict(frame.to_dict(orient="list"))) == expected


def test_subset_by_indices_masks_and_slices():
    """A boolean mask must not be read as indices 0 and 1."""
    testset = replace(ABC, sources=("A", "B", "C"))
    for rows in ([0, 2], [True, False, True], np.array([0, -1]), slice(0, 3, 2)):
        assert testset.subset(rows).sources == ("A", "C")
    assert not testset.subset([]).sources


def test_references_of_records(tmp_path):
    with pytest.raises(DataError, match=r"line 2: the reference is a list written as text"):
        read_records(tmp_path, 'mt\tref\na\t["x", "y"]\n', "ours.tsv")
    text = 'mt\tref\na\t["x, y]\nb\t[1, 2]\nc\t["x"] and "y"]\n'
    references = read_records(tmp_path, text, "ours.tsv").references
    assert references == (('["x, y]',), ("[1, 2]",), ('["x"] and "y"]',))
    text = "mt\tref1\tref2\na\tx\ty\nb\t\tz\nc\t\t\n"
    testset = read_records(tmp_path, text, "ours.tsv")
    assert testset.references == (("x", "y"), ("z",), ())
    with pytest.raises(MissingInputError, match="segment 3 has none"):
        load_metric("chrf").score(testset.segments("ours"))


def test_undecodable_file_names_are_printable(tmp_path):
    files = [Path(os.fsdecode(os.fsencode(tmp_path) + name)) for name in (b"/a\xff", b"/b")]
    for file in files:
        file.write_text("x\n")
    assert list(TestSet.read(files).systems) == ["a\ufffd", "b"]
    with pytest.raises(DataError, match=r"the name .* not UTF-8 \(byte 0xff\)"):
        TestSet.read(files, names=["\udcff", "b"])


def test_from_lists_accepts_one_or_several_systems_and_references():
    systems, references = {"system": ["a", "b"]}, [["x"], ["y"]]
    expected = TestSet(systems=systems, references=references, sources=["A", "B"])
    assert TestSet.from_lists(["a", "b"], ["A", "B"], ["x", "y"]) == expected
    assert TestSet.from_lists(("a", "b"), ("A", "B"), [["x"], ("y",)]) == expected
    column = pd.Series(["a", "b"], index=[7, 8])
    assert TestSet.from_lists(column, ["A", "B"], pd.Series(["x", "y"])) == expected
    several = TestSet.from_lists({"one": ["a"], "two": ["b"]}, references=[["x", "y"]])
    assert several == TestSet(systems={"one": ["a"], "two": ["b"]}, references=[["x", "y"]])
    assert TestSet.from_lists(["a"]).references == ()


def give_input(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_one_file_may_be_standard_input(tmp_path, monkeypatch):
    reference = write_file(tmp_path / "ref.txt", "x\ny\n")
    give_input(monkeypatch, "ä\nb\n")
    testset = TestSet.read(["-"], [reference])
    assert testset.systems == {"stdin": ("ä", "b")}
    assert testset.references == (("x",), ("y",))
    give_input(monkeypatch, "a\n")
    with pytest.raises(LengthError, match=r"standard input has 1 lines but .*ref.txt has 2"):
        TestSet.read(["-"], [reference])
    give_input(monkeypatch, "a\n")
    with pytest.raises(UsageError, match="given twice: it can be read only once"):
        TestSet.read(["-"], ["-"])


def test_arrays_without_a_dimension_or_with_masked_texts_are_refused():
    single: Any = np.array("a")
    masked: Any = np.ma.array(["a", "b"], mask=[False, True])
    for systems, more in (({"x": single}, {}), (["a"], {"sources": single})):
        with pytest.raises(UsageError, match="expected a list of texts, got ndarray"):
            TestSet.from_lists(systems, **more)
    with pytest.raises(UsageError, match="expected a list of references for each segment"):
        TestSet.from_lists({"x": ["a"]}, references=single)
    with pytest.raises(DataError, match="system 'x': segment 2 is masked, not a text"):
        TestSet.from_lists({"x": masked})
    with pytest.raises(UsageError, match="references of segment 2: expected a list of texts, got"):
        TestSet.from_lists({"x": ["a", "b"]}, references=masked)
    with pytest.raises(UsageError, match="references of a segment: expected a list of texts"):
        Segment("a", references=single)
    with pytest.raises(UsageError, match="hypotheses must be a list of texts"):
        load_metric("chrf").corpus_score(single, [["a"]])
    unmasked: Any = np.ma.array(["a", "b"], mask=[False, False])
    assert TestSet.from_lists({"x": unmasked}).systems["x"] == ("a", "b")


def test_derived_test_sets_share_segments_and_check_names():
    testset = TestSet.from_lists({"a": ["x", "y"], "b": ["z", "y"]}, references=["x", "y"])
    chosen = testset.with_systems(["b"]).with_columns({"domain": ["news", "talks"]})
    assert [*chosen.systems] == ["b"]
    assert [*map(id, chosen.segments("b"))] == [*map(id, testset.segments("b"))]
    with pytest.raises(UnknownNameError, match="did you mean"):
        testset.with_systems(["aa"])
    with pytest.raises(LengthError, match="domain"):
        testset.with_columns({"domain": ["news"]})
