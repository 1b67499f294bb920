"""Records: column aliases and invalid values."""

from __future__ import annotations

import pytest

from tertium.core.errors import DataError
from tertium.core.segment import Segment
from tertium.data.records import segment_from_record


@pytest.mark.parametrize("source", ["src", "source"])
@pytest.mark.parametrize(
    "hypothesis", ["mt", "hyp", "hypothesis", "translation", "candidate", "prediction"]
)
@pytest.mark.parametrize("reference", ["ref", "refs", "reference", "references"])
def test_records_are_read_under_every_alias(source, hypothesis, reference):
    record = {source: "s", hypothesis: "h", reference: ["r", "q"]}
    assert segment_from_record(record, "here") == Segment("h", "s", ("r", "q"))


@pytest.mark.parametrize(("record", "message"), [
    ({"src": "s"}, "here: no translation .looked for mt, .*; found src"),
    ({"text " * 20: "s"}, r"found (text ){8}\.{3}; if the first line is not a header, .*--fields"),
    ({"src": "s", "hyp": None}, "here: no translation .hyp is null"),
    ({"mt": "a", "hyp": "b"}, "both 'mt' and 'hyp'"),
    ({"mt": 3}, "expected text, got 3"),
    ({"mt": "a", "ref": {"x": 1}}, "references must be"),
    ({"mt": "a", "ref": [1]}, "expected text, got 1"),
    ({"mt": "a", "ref": "b", "ref2": 2}, "expected text, got 2"),
    ({"mt": "a", "ref1": "b", "ref_1": "c"}, "both 'ref1' and 'ref_1' are given"),
])  # fmt: skip
def test_invalid_records_raise(record, message):
    with pytest.raises(DataError, match=message):
        segment_from_record(record, "here")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"ref1": "a", "ref2": "b"}, ("a", "b")),
        ({f"ref{n}": f"r{n}" for n in range(12, 0, -1)}, tuple(f"r{n}" for n in range(1, 13))),
        ({"ref2": "b", "ref": "a"}, ("a", "b")),
        ({"reference-2": "c", "reference": ["a", "b"]}, ("a", "b", "c")),
        ({"ref1": "a", "ref2": "", "ref3": "c"}, ("a", "c")),
        ({"ref": "", "ref2": "b"}, ("b",)),
        ({"ref1": "", "ref2": " "}, ()),
        ({"ref": ""}, ("",)),  # a single empty reference is one
        ({"ref1": None, "ref2": "b"}, ("b",)),
        ({"ref1st": "a"}, ()),  # no number
    ],
)
def test_numbered_reference_columns_are_collected(columns, expected):
    assert segment_from_record({"mt": "h", **columns}, "here").references == expected
