"""Test sets: parallel files, records, documents and invalid input."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tertium.core.errors import (
    DataError,
    LengthError,
    MissingInputError,
    UnknownNameError,
    UsageError,
)
from tertium.core.segment import Segment
from tertium.data.formats.preferences import read_preferences
from tertium.data.judgments import read_judgments
from tertium.data.testset import TestSet
from tertium.evaluation.ranking import rank
from tertium.evaluation.scoring import score
from tertium.metrics import load_metric


def write(folder: Path, **texts: str) -> dict[str, Path]:
    files = {}
    for name, text in texts.items():
        files[name] = folder / f"{name}.txt"
        files[name].write_text(text, encoding="utf-8")
    return files


def test_parallel_files_become_segments(tmp_path: Path) -> None:
    f = write(tmp_path, a="x\n\n", b="y\nz\n", r="1\n2\n", q="3\n4\n", s="u\nv\n", d="d1\nd1\n")
    testset = TestSet.read([f["a"], f["b"]], [f["r"], f["q"]], f["s"], f["d"])
    assert list(testset.systems) == ["a.txt", "b.txt"]
    expected = [Segment("x", "u", ("1", "3")), Segment("", "v", ("2", "4"))]
    assert testset.segments("a.txt") == expected
    assert testset.documents == ("d1", "d1")


@pytest.mark.parametrize("name", ["ref.jsonl", "ref.json.gz"])
def test_records_are_not_scored_as_plain_text(tmp_path: Path, name: str) -> None:
    """Otherwise a reference would be scored with its braces and keys."""
    (tmp_path / "ours.txt").write_text("a\n", encoding="utf-8")
    (tmp_path / name).write_text('{"ref": "a"}\n', encoding="utf-8")
    with pytest.raises(UsageError, match=f"{name} contains records; expected plain text"):
        TestSet.read([tmp_path / "ours.txt"], [tmp_path / name])


def test_records_in_a_file_without_suffix_raise(tmp_path: Path) -> None:
    """Standard input has no suffix that identifies records."""
    piped, plain = tmp_path / "0", tmp_path / "plain.txt"
    piped.write_text('{"MT": "a", "ref": "b"}\n', encoding="utf-8")
    plain.write_text('{"name": "a setting, translated"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"0: line 1 is a JSON record .* name ends in .jsonl"):
        TestSet.read([piped], [plain])
    assert len(TestSet.read([plain], [plain])) == 1


def test_different_lengths_raise_with_files_and_counts(tmp_path: Path) -> None:
    f = write(tmp_path, a="x\ny\n", r="1\n2\n3\n")
    with pytest.raises(LengthError, match=r"a\.txt has 2 lines but .*r\.txt has 3"):
        TestSet.read([f["a"]], [f["r"]])


def test_systems_with_equal_file_names_are_distinguished(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = write(tmp_path / "one", out="x\n")["out"], write(tmp_path / "two", out="y\n")["out"]
    assert list(TestSet.read([one, two]).systems) == ["one/out.txt", "two/out.txt"]
    assert list(TestSet.read([one, two], names=["A", "B"]).systems) == ["A", "B"]
    with pytest.raises(DataError, match="two systems are named 'A'"):
        TestSet.read([one, two], names=["A", "A"])
    with pytest.raises(LengthError, match="1 names for 2"):
        TestSet.read([one, two], names=["A"])


def test_records_with_varying_references_round_trip(tmp_path: Path) -> None:
    testset = TestSet(
        systems={"a": ("x", ""), "b": ("y", "z")},
        references=(("r",), ("r", "q", "p")),
        sources=("s", "t"),
        documents=("d", "e"),
    )
    file = tmp_path / "set.jsonl.gz"
    testset.write(file)
    assert TestSet.from_records(file) == testset


def test_records_without_a_system_are_named_by_their_file(tmp_path: Path) -> None:
    file = tmp_path / "ours.tsv"
    file.write_text("src\tmt\tref\na\tb\tc\n", encoding="utf-8")
    assert TestSet.from_records(file).segments("ours") == [Segment("b", "a", ("c",))]


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
def test_item_names_come_from_the_file(
    columns: dict[str, tuple[str, ...]], documents: tuple[str, ...], items: tuple[str, ...]
) -> None:
    testset = TestSet(systems={"A": ("a", "b", "c")}, documents=documents, columns=columns)
    assert testset.items == items
    assert testset.match_item_names(["x", *items[:1]]) == items
    assert testset.match_item_names(["none of these"]) == ("1", "2", "3")


@pytest.mark.parametrize(
    ("names", "called"),
    [
        (("0", "1", "2"), ("0", "1", "2")),  # a number is an item, not a line
        (("x", "y", "z"), ("x", "y", "z")),
        (("x", "y", "z"), ("1", "2", "3")),  # line numbers, because no item is a number
        ((), ("1", "2", "3")),
        ((), ("001", "002", "003")),
    ],
)
def test_judgments_find_their_segment(
    tmp_path: Path, names: tuple[str, ...], called: tuple[str, ...]
) -> None:
    columns = {"segment": names} if names else {}
    testset = TestSet(systems={"A": ("a", "b", "c"), "B": ("d", "e", "f")}, columns=columns)
    rated, compared = tmp_path / "rated.csv", tmp_path / "compared.csv"
    rated.write_text("item,system,score\n" + "".join(f"{item},A,1\n" for item in called))
    result = read_judgments(rated, testset=testset)
    assert [segment.hypothesis for segment in result.segments] == ["a", "b", "c"]
    if called[0] != "001":
        rows = "".join(f"{item},A,B,a\n" for item in called)
        compared.write_text("item,system_a,system_b,preference\n" + rows)
        won = read_preferences(compared, texts=testset)
        assert [p.left.hypothesis + p.right.hypothesis for p in won] == ["ad", "be", "cf"]
    rated.write_text("item,system,score\n7,A,1\n2,A,1\n1,A,1\n")
    assert read_judgments(rated, testset=testset).excluded_counts == {"no matching segment": 1}


@pytest.mark.parametrize("names", [("1", "2", "1", "2"), ()])
def test_judgments_find_their_segment_in_its_document(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    columns = {"segment": names} if names else {}
    testset = TestSet(
        systems={"A": ("a", "b", "c", "d")}, documents=("x", "x", "y", "y"), columns=columns
    )
    rated = tmp_path / "rated.csv"
    called = names or ("1", "2", "3", "4")
    rows = [f"{home},{item},A,1\n" for home, item in zip("xxyy", called, strict=True)]
    rated.write_text("doc,item,system,score\n" + "".join(rows))
    result = read_judgments(rated, testset=testset)
    assert [segment.hypothesis for segment in result.segments] == ["a", "b", "c", "d"]
    pairs = [f"{home},{item},A,B,a\n" for home, item in zip("xxyy", called, strict=True)]
    compared = replace(testset, systems={**testset.systems, "B": ("e", "f", "g", "h")})
    for first in (0, 2):  # both documents, and only the second
        rated.write_text("doc,item,system_a,system_b,preference\n" + "".join(pairs[first:]))
        won = read_preferences(rated, texts=compared)
        both = [p.left.hypothesis + p.right.hypothesis for p in won]
        assert both == ["ae", "bf", "cg", "dh"][first:]
    rated.write_text("doc,item,system,score\nz,2,A,1\nx,4,A,1\ny,7,A,1\n")  # z is unknown
    result = read_judgments(rated, testset=testset)
    assert [segment.hypothesis for segment in result.segments] == ["b"]
    assert result.excluded_counts == {"no matching segment": 2}


def test_shared_name_matches_no_segment(tmp_path: Path) -> None:
    columns = {"segment": ("0", "1", "1", "2", "3")}
    testset = TestSet(systems={"A": ("a", "b", "c", "d", "e")}, columns=columns)
    assert testset.items == ("0", "1#1", "1#2", "2", "3")
    rated = tmp_path / "rated.csv"
    rated.write_text("item,system,score\n" + "".join(f"{n},A,{n}\n" for n in range(4)))
    result = read_judgments(rated, testset=testset)
    assert [(j.item, j.segment.hypothesis) for j in result.judgments] == [
        ("0", "a"),
        ("2", "d"),
        ("3", "e"),
    ]
    assert result.excluded_counts == {"no matching segment": 1}


def test_judgments_of_one_document_may_omit_its_name() -> None:
    testset = TestSet(
        systems={"A": ("a", "b", "c", "d")},
        documents=("x", "x", "y", "y"),
        columns={"segment": ("1", "2", "1", "2")},
    )
    assert testset.match_item_names(["1", "2"], {"1": "y", "2": "y"}) == ("x:1", "x:2", "1", "2")
    assert testset.match_item_names(["1", "2"], {"1": "z", "2": "z"}) == ("1", "2", "3", "4")


def test_integral_floats_are_names(tmp_path: Path) -> None:
    """pandas stores integers with missing values as floats."""
    file, rated = tmp_path / "set.jsonl", tmp_path / "rated.jsonl"
    file.write_text('{"mt":"a","system":"A","id":0.0}\n{"mt":"b","system":"A","id":1.0}\n')
    testset = TestSet.from_records(file)
    assert testset.items == ("0", "1")
    rated.write_text('{"id":1,"system":"A","score":1}\n{"id":0.0,"system":"A","score":1}\n')
    result = read_judgments(rated, testset=testset)
    assert [segment.hypothesis for segment in result.segments] == ["b", "a"]


def test_spaces_around_an_item_name_are_ignored(tmp_path: Path) -> None:
    """For example in a CSV file with a space after each comma."""
    file = tmp_path / "set.csv"
    file.write_text("mt, segment\na, 0\nb, 1\n")
    testset = TestSet.from_records(file)
    file.write_text("system, segment, score\nset, 0, 1\nset, 1, 1\n")
    result = read_judgments(file, testset=testset)
    assert [segment.hypothesis for segment in result.segments] == ["a", "b"]


def test_columns_of_a_frame_are_read_in_their_order() -> None:
    pandas = pytest.importorskip("pandas")
    texts = pandas.Series(["a", "b", "c"], index=[2, 0, 1])
    testset = TestSet(
        systems={"A": texts},
        references=texts.map(lambda text: [text]),
        sources=texts.str.upper(),
        columns={"segment": texts},
    )
    assert testset.subset([0, 2]).segments("A") == [
        Segment("a", "A", ("a",)),
        Segment("c", "C", ("c",)),
    ]
    assert testset.items == ("a", "b", "c")


def test_columns_of_arrow_are_texts() -> None:
    arrow = pytest.importorskip("pyarrow")
    texts, references = arrow.array(["a", "b"]), arrow.array([["a"], ["b", "c"]])
    labels = arrow.chunked_array([["x"], ["y"]])
    testset = TestSet(systems={"A": texts}, references=references, columns={"kind": labels})
    assert testset == TestSet(
        systems={"A": ["a", "b"]}, references=[["a"], ["b", "c"]], columns={"kind": ["x", "y"]}
    )


def test_testset_copies_its_lists() -> None:
    outputs, references = ["a", "b"], [["a"], ["b"]]
    testset = TestSet(systems={"ours": outputs}, references=references)
    assert testset == TestSet(systems={"ours": ("a", "b")}, references=(("a",), ("b",)))
    outputs[0] = "c"
    references[1].append("d")
    references.pop()
    assert testset.segments("ours") == [Segment("a", None, ("a",)), Segment("b", None, ("b",))]


def test_judgments_numbered_from_0_raise(tmp_path: Path) -> None:
    testset = TestSet(systems={"A": ("a", "b", "c")})
    rated = tmp_path / "rated.csv"
    rated.write_text("item,system,score\n0,A,1\n1,A,2\n2,A,3\n")
    with pytest.raises(DataError, match=r"segment 0 and none of 3, but .* numbered from 1 to 3"):
        read_judgments(rated, testset=testset)
    with pytest.raises(DataError, match="numbered from 1 to 3"):
        testset.match_item_names(["0", "2"])
    assert testset.match_item_names(["0", "3"]) == (
        "1",
        "2",
        "3",
    )  # a longer set, not another base


def test_spaces_around_system_and_document_names_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "set.csv"
    file.write_text("mt, system, doc\na, A, x\nb, A, x\n")
    testset = TestSet.from_records(file)
    assert (list(testset.systems), testset.documents) == (["A"], ("x", "x"))
    file.write_text("system, doc, item, score\nA, x, 1, 5\n")
    assert read_judgments(file, testset=testset).segments == (Segment("a"),)


def test_name_repeated_in_a_document_matches_no_segment(tmp_path: Path) -> None:
    """Item names repeat across documents here."""
    testset = TestSet(
        systems={"A": tuple("abcdefg")},
        documents=("x",) * 5 + ("y",) * 2,
        columns={"segment": ("1", "2", "3", "3", "4", "1", "2")},
    )
    assert testset.items == ("x:1", "x:2", "x:3#1", "x:3#2", "x:4", "y:1", "y:2")
    rated = tmp_path / "rated.csv"
    rated.write_text("doc,item,system,score\nx,4,A,1\nx,3,A,1\ny,2,A,1\n")
    result = read_judgments(rated, testset=testset)
    assert [segment.hypothesis for segment in result.segments] == ["e", "g"]
    assert result.excluded_counts == {"no matching segment": 1}


def test_line_numbers_do_not_match_another_document(tmp_path: Path) -> None:
    testset = TestSet(
        systems={"A": ("a", "b", "c"), "B": ("d", "e", "f")}, documents=("x", "y", "y")
    )
    assert testset.match_item_names(["1", "2"], {"1": "y", "2": "y"}) == ("x:1", "2", "3")
    assert testset.match_item_names(["1", "2"], {"1": "z", "2": "y"}) == ("1", "2", "3")
    compared = tmp_path / "compared.csv"
    compared.write_text("doc,item,system_a,system_b,preference\ny,1,A,B,a\ny,2,A,B,a\n")
    result = read_preferences(compared, texts=testset)
    assert [p.left.hypothesis + p.right.hypothesis for p in result] == ["be"]
    assert result.excluded_counts == {"no matching segment": 1}


def test_context_includes_segments_without_judgment(tmp_path: Path) -> None:
    testset = TestSet(systems={"A": ("a", "b", "c")}, documents=("x", "x", "x"))
    rated = tmp_path / "rated.csv"
    rated.write_text("doc,item,system,score\nx,3,A,1\nx,1,A,1\n")
    last, first = read_judgments(rated, testset=testset).segments
    assert last.context is not None
    assert first.context is not None
    assert [s.hypothesis for s in last.context.before(2)] == ["a", "b"]
    assert [s.hypothesis for s in first.context.after(2)] == ["b", "c"]


def test_judgments_numbered_from_1_raise_if_items_start_at_0(
    tmp_path: Path,
) -> None:
    testset = TestSet(systems={"A": ("a", "b", "c")}, columns={"segment": ("0", "1", "2")})
    rated = tmp_path / "rated.csv"
    rated.write_text("item,system,score\n1,A,1\n2,A,2\n3,A,3\n")
    with pytest.raises(DataError, match=r"segment 3 and none of 0, but .* numbered from 0 to 2"):
        read_judgments(rated, testset=testset)
    assert testset.match_item_names(["1", "3", "0"]) == ("0", "1", "2")
    assert testset.match_item_names(["1", "3", "7"]) == ("0", "1", "2")  # a longer set
    padded = TestSet(systems={"A": ("a", "b", "c")})
    rated.write_text("item,system,score\n000,A,1\n001,A,2\n002,A,3\n")
    with pytest.raises(DataError, match=r"segment 0 and none of 3"):
        read_judgments(rated, testset=padded)


def test_uppercase_column_names_are_known(
    tmp_path: Path,
) -> None:
    file = tmp_path / "set.tsv"
    rows = [f"{system}\t{n}\t{system}{n}\tr{n}\t{n}\n" for system in "AB" for n in range(2)]
    file.write_text("System\tSegment\tMT\tRef\tscore\n" + "".join(rows))
    testset = TestSet.from_records(file)
    assert testset.systems == {"A": ("A0", "A1"), "B": ("B0", "B1")}
    assert testset.items == ("0", "1") == read_judgments(file).items
    assert testset.references == (("r0",), ("r1",))


def test_row_ids_are_not_item_names(tmp_path: Path) -> None:
    file = tmp_path / "set.jsonl"
    rows = [f'{{"mt":"{n}","system":"{"xy"[n // 3]}","id":{n}}}\n' for n in range(6)]
    file.write_text("".join(rows))
    testset = TestSet.from_records(file)
    assert testset.items == ("1", "2", "3")
    assert testset.systems["y"] == ("3", "4", "5")


def test_system_or_document_may_be_named_0(tmp_path: Path) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text('{"mt":"a","system":0,"doc":0}\n{"mt":"b","system":1,"doc":0}\n')
    testset = TestSet.from_records(file)
    assert list(testset.systems) == ["0", "1"]
    assert testset.documents == ("0",)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('{"mt":"a","system":"x","ref":"r"}\n{"mt":"a","system":"y","ref":"q"}\n', "other ref"),
        (  # as in published sets with human translations
            '{"mt":"a","system":"x","src":"s","ref":"r"}\n{"mt":"r","system":"y","src":"s"}\n',
            "segment 1 of system 'y' has no reference, unlike that of 'x'; give a segment the same",
        ),
        (
            '{"mt":"a","system":"x"}\n{"mt":"a","system":"y"}\n{"mt":"b","system":"y"}\n',
            "2 .*; every",
        ),
        ('{"mt":"a","src":"s"}\n{"mt":"b"}\n', "some have none"),
        ('{"mt":"a","doc":"d"}\n{"mt":"b"}\n', "segment 2 has no document"),
        ('{"mt":"a","system":0,"doc":0}\n{"mt":"a","system":1,"doc":1}\n', "document '0' .*'1'"),
        ('{"mt":"a","system":["x"]}\n', r"line 1: system is \['x'\]; expected a name"),
        ('{"mt":"a","doc":{"x":1}}\n', "line 1: document is .*; expected a name"),
        (
            '{"mt":"a","system":"x","id":0}\n{"mt":"b","system":"x","id":1}\n'
            '{"mt":"b","system":"y","id":1}\n{"mt":"a","system":"y","id":0}\n',
            "the rows of system 'y' have another id than those of 'x'; sort the rows",
        ),
        ("\n", "contains no segments"),
    ],
)
def test_inconsistent_records_raise(tmp_path: Path, rows: str, message: str) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text(rows, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        TestSet.from_records(file)


def test_unknown_systems_get_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'online-A'"):
        TestSet(systems={"online-A": ("x",)}).segments("onlineA")


def test_testset_needs_a_system_and_parallel_lists() -> None:
    with pytest.raises(DataError, match="at least one system"):
        TestSet(systems={})
    with pytest.raises(LengthError, match="references has 2 segments, but a has 1"):
        TestSet(systems={"a": ("x",)}, references=(("r",), ("q",)))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"references": ("the cat", "hi")}, "segment 1 has the text 'the cat'.* wrap each in"),
        ({"references": (("a",), (None,))}, "references of segment 2: reference 1 is None"),
        ({"references": (("a",), 3)}, "references of segment 2: expected a list of texts, got int"),
        ({"references": iter([["a"], ["b"]])}, "for each segment, got a list_iterator"),
        ({"references": {("a",), ("b",)}}, "for each segment, got a set"),
        ({"sources": ("a", 7)}, "sources: segment 2 is 7, not a text"),
        ({"sources": "ab"}, "sources: expected a list of texts, got the one text 'ab'"),
        ({"documents": (1, 2)}, "documents: segment 1 is 1, not a text"),
        ({"systems": {"a": "ab"}}, "system 'a': expected a list of texts, got the one text 'ab'"),
        ({"systems": {"a": ("x", None)}}, "system 'a': segment 2 is None, not a text"),
        ({"systems": {0: ("x", "y")}}, "the system name 0 is not"),
    ],
)
def test_values_that_are_not_texts_raise_with_position(parts: dict[str, Any], message: str) -> None:
    with pytest.raises((DataError, UsageError), match=message):
        TestSet(**{"systems": {"a": ("x", "y")}, **parts})


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((None,), "the hypothesis of a segment is None"),
        (("a", 3), "the source of a segment is 3"),
        (("a", None, "the cat"), "references of a segment: .* wrap it in"),
        (("a", None, ("b", None)), "references of a segment: reference 2 is None"),
    ],
)
def test_segment_rejects_values_that_are_not_texts(parts: tuple[Any, ...], message: str) -> None:
    with pytest.raises((DataError, UsageError), match=message):
        Segment(*parts)


def test_single_file_instead_of_a_list_raises() -> None:
    with pytest.raises(UsageError, match=r"^translations: expected a list of files, .*got 'a.txt'"):
        TestSet.read("a.txt")
    with pytest.raises(UsageError, match=r"^references: expected a list of files, .*r.txt"):
        TestSet.read(["a.txt"], Path("r.txt"))  # type: ignore[arg-type]
    with pytest.raises(
        UsageError, match=r"^translations: expected a list of files, .*got {'a': 'a"
    ):
        TestSet.read({"a": "a.txt"})  # type: ignore[arg-type]
    with pytest.raises(
        UsageError, match=r"^references: expected a list of files, .*got <list_iter"
    ):
        TestSet.read(["a.txt"], iter(["r.txt"]))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^sources_and_documents: \['s.txt'\] is not a path"):
        TestSet.read(["a.txt"], sources=["s.txt"])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^names: 'ours' is a single name; give a list"):
        TestSet.read(["a.txt"], names="ours")


def test_records_in_memory_equal_their_file(tmp_path: Path) -> None:
    records = [
        {"System": "B", "mt": "hello", "Ref1": "hi", "Ref2": "hey", "domain": "talk"},
        {"System": "A", "mt": "good", "Ref1": "hi", "Ref2": "hey", "domain": "talk"},
    ]
    frame = pd.DataFrame(records)
    frame.to_csv(tmp_path / "a.csv", index=False)
    expected = TestSet.from_records(tmp_path / "a.csv")
    assert expected.references == (("hi", "hey"),)  # uppercase columns are references
    assert TestSet.from_records(frame) == TestSet.from_records(records) == expected
    with pytest.raises(UsageError, match=r"^expected records, .* not 3"):
        TestSet.from_records(3)
    with pytest.raises(DataError, match=r"^row 2: no translation"):
        TestSet.from_records([records[0], {"ref": "hi"}])


def test_subset_by_indices_masks_and_slices() -> None:
    """A boolean mask must not be read as indices 0 and 1."""
    testset = TestSet(systems={"ours": ("a", "b", "c")}, sources=("A", "B", "C"))
    for rows in ([0, 2], [True, False, True], np.array([0, -1]), slice(0, 3, 2)):
        assert testset.subset(rows).sources == ("A", "C")
    assert not testset.subset([]).sources
    with pytest.raises(LengthError, match="a mask of 2 rows for 3 segments"):
        testset.subset([True, False])
    with pytest.raises(DataError, match="no row 3: 3 segments are counted from 0"):
        testset.subset([3])
    with pytest.raises(UsageError, match="expected a slice, a mask or a list"):
        testset.subset(["a"])


def test_none_and_tables_instead_of_lists_raise() -> None:
    for part in ("references", "columns"):
        with pytest.raises(UsageError, match=f"{part}: got None; omit it"):
            TestSet(systems={"ours": ["a"]}, **{part: None})
    with pytest.raises(UsageError, match=r"references: .* got a table"):
        TestSet(systems={"ours": ["a"]}, references=pd.DataFrame({"ref": ["a"]}))


def test_wrong_argument_types_raise() -> None:
    with pytest.raises(
        UsageError, match=r"expected a TestSet, got 3; create one with TestSet.read"
    ):
        score(3, "chrf")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^chrf expects segments, got 'b'"):
        load_metric("chrf").score([Segment("a", None, ("b",)), "b"])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"expected a spec such as 'pairwise', got \['chrf'\]"):
        rank(TestSet(systems={"a": ["a"], "b": ["b"]}), ["chrf"])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^systems: expected"):
        TestSet(systems=[["a"]])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^chrf expects a list of segments, got <generator"):
        load_metric("chrf").score(s for s in [Segment("a", None, ("b",))])  # type: ignore[arg-type]


def test_path_instead_of_testset_raises() -> None:
    for call in (score, rank):
        with pytest.raises(
            UsageError, match=r"expected a TestSet, got 'a.jsonl'; create one with TestSet.read"
        ):
            call("a.jsonl", "chrf")  # type: ignore[operator]
    for texts in ("a cat", ["a cat"]):
        with pytest.raises(UsageError, match=r"chrf expects segments, got 'a.*texts to corpus_sc"):
            load_metric("chrf").score(texts)  # type: ignore[arg-type]


def test_json_list_in_a_reference_column_raises(tmp_path: Path) -> None:
    file = tmp_path / "ours.tsv"
    file.write_text('mt\tref\na\t["x", "y"]\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"line 2: the reference is a list written as text"):
        TestSet.from_records(file)
    file.write_text('mt\tref\na\t["x, y]\nb\t[1, 2]\nc\t["x"] and "y"]\n', encoding="utf-8")
    assert TestSet.from_records(file).references == (('["x, y]',), ("[1, 2]",), ('["x"] and "y"]',))


def test_empty_numbered_reference_is_absent(tmp_path: Path) -> None:
    file = tmp_path / "ours.tsv"
    file.write_text("mt\tref1\tref2\na\tx\ty\nb\t\tz\nc\t\t\n", encoding="utf-8")
    testset = TestSet.from_records(file)
    assert testset.references == (("x", "y"), ("z",), ())
    with pytest.raises(MissingInputError, match="segment 3 has none"):
        load_metric("chrf").score(testset.segments("ours"))


def test_undecodable_file_names_are_printable(tmp_path: Path) -> None:
    files = [Path(os.fsdecode(os.fsencode(tmp_path) + name)) for name in (b"/a\xff", b"/b")]
    for file in files:
        file.write_text("x\n")
    assert list(TestSet.read(files).systems) == ["a\ufffd", "b"]
    with pytest.raises(DataError, match=r"the name .* not UTF-8 \(byte 0xff\)"):
        TestSet.read(files, names=["\udcff", "b"])


def test_from_lists_accepts_one_or_several_systems_and_references() -> None:
    expected = TestSet(
        systems={"system": ["a", "b"]}, references=[["x"], ["y"]], sources=["A", "B"]
    )
    assert TestSet.from_lists(["a", "b"], ["A", "B"], ["x", "y"]) == expected
    assert TestSet.from_lists(("a", "b"), ("A", "B"), [["x"], ("y",)]) == expected
    column = pd.Series(["a", "b"], index=[7, 8])
    assert TestSet.from_lists(column, ["A", "B"], pd.Series(["x", "y"])) == expected
    several = TestSet.from_lists({"one": ["a"], "two": ["b"]}, references=[["x", "y"]])
    assert several == TestSet(systems={"one": ["a"], "two": ["b"]}, references=[["x", "y"]])
    assert TestSet.from_lists(["a"]).references == ()


def test_from_lists_rejects_wrong_types_and_lengths() -> None:
    with pytest.raises(UsageError, match=r"references: .* got the text 'x'; wrap it"):
        TestSet.from_lists(["a"], references="x")
    with pytest.raises(UsageError, match="system 'system': expected a list of texts, got the one"):
        TestSet.from_lists("a")
    with pytest.raises(LengthError, match="references has 2 segments, but system has 1"):
        TestSet.from_lists(["a"], references=["x", "y"])
    with pytest.raises(UsageError, match=r"references: .* got a generator"):
        TestSet.from_lists(["a"], references=(text for text in ["x"]))  # type: ignore[arg-type]


def test_from_frame_reads_the_columns_of_records() -> None:
    frame = pd.DataFrame({"System": ["A"], "hypothesis": ["a"], "source": ["s"], "ref1": ["r"]})
    expected = TestSet(systems={"A": ["a"]}, references=[["r"]], sources=["s"])
    assert TestSet.from_frame(frame) == expected
    with pytest.raises(UsageError, match=r"expected a pandas, polars or Arrow table, got \["):
        TestSet.from_frame([{"mt": "a"}])
    polars = pytest.importorskip("polars")
    assert TestSet.from_frame(polars.from_dict(frame.to_dict(orient="list"))) == expected


def test_one_file_may_be_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = write(tmp_path, ref="x\ny\n")["ref"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("ä\nb\n".encode())))
    testset = TestSet.read(["-"], [reference])
    assert testset.systems == {"stdin": ("ä", "b")}
    assert testset.references == (("x",), ("y",))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    with pytest.raises(LengthError, match=r"standard input has 1 lines but .*ref.txt has 2"):
        TestSet.read(["-"], [reference])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    with pytest.raises(UsageError, match="given twice: it can be read only once"):
        TestSet.read(["-"], ["-"])


@pytest.mark.parametrize("text", ['{"mt": "a", "ref": "x"}\n', "mt\tref\na\tx\n"])
def test_records_from_standard_input(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    expected = TestSet(systems={"system": ["a"]}, references=[["x"]])
    assert TestSet.from_records("-") == expected


def test_nul_is_not_written(tmp_path):
    with pytest.raises(DataError, match="record 1: a text contains NUL"):
        TestSet.from_lists(["a\0b"]).write(tmp_path / "x.jsonl")
    assert not (tmp_path / "x.jsonl").exists()


@pytest.mark.parametrize("path", [1, None, b"a.txt", ["a.txt"]])
def test_values_that_are_no_paths_are_refused(path: Any) -> None:
    with pytest.raises(UsageError, match=r"translations: .* is not a path; give str or Path"):
        TestSet.read([path])
    with pytest.raises(UsageError, match=r"references: .* is not a path; give str or Path"):
        TestSet.read(["a.txt"], [path])


def test_arrays_without_a_dimension_or_with_masked_texts_are_refused() -> None:
    single: Any = np.array("a")
    masked: Any = np.ma.array(["a", "b"], mask=[False, True])
    for sources in (None, single):
        with pytest.raises(UsageError, match="expected a list of texts, got array"):
            TestSet.from_lists({"x": single if sources is None else ["a"]}, sources)
    with pytest.raises(UsageError, match="expected a list of references for each segment"):
        TestSet.from_lists({"x": ["a"]}, references=single)
    with pytest.raises(DataError, match="system 'x': segment 2 is masked, not a text"):
        TestSet.from_lists({"x": masked})
    with pytest.raises(
        UsageError, match="references of segment 2: expected a list of texts, got m"
    ):
        TestSet.from_lists({"x": ["a", "b"]}, references=masked)
    with pytest.raises(UsageError, match="references of a segment: expected a list of texts"):
        Segment("a", references=single)
    with pytest.raises(UsageError, match="hypotheses must be a list of texts"):
        load_metric("chrf").corpus_score(single, [["a"]])
    whole: Any = np.ma.array(["a", "b"], mask=[False, False])
    assert TestSet.from_lists({"x": whole}).systems["x"] == ("a", "b")


def test_derived_test_sets_share_segments_and_check_names() -> None:
    testset = TestSet.from_lists({"a": ["x", "y"], "b": ["z", "y"]}, references=["x", "y"])
    chosen = testset.with_systems(["b"]).with_columns({"domain": ["news", "talks"]})
    assert [*chosen.systems] == ["b"]
    assert [*map(id, chosen.segments("b"))] == [*map(id, testset.segments("b"))]
    with pytest.raises(UnknownNameError, match="did you mean"):
        testset.with_systems(["aa"])
    with pytest.raises(LengthError, match="domain"):
        testset.with_columns({"domain": ["news"]})
