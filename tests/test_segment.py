"""Texts given to the Python API are checked like those in files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tertium import TestSet, load_metric
from tertium.core.errors import DataError, LengthError, UsageError
from tertium.core.segment import Judgment, Preference, Segment, attach_context

INVALID = {
    0xD800: r"U\+D800 is half of a surrogate pair",
    0xDFFF: r"U\+DFFF is half of a surrogate pair",
    0xDCE9: "not UTF-8 .byte 0xe9.",
}
MAKERS_BY_LOCATION: dict[str, Callable[[str], object]] = {
    "the hypothesis of a segment": lambda text: Segment(text),
    "the source of a segment": lambda text: Segment("a", text),
    "the references of a segment: reference 2": lambda text: Segment("a", None, ("b", text)),
    "system 'x': segment 2": lambda text: TestSet(systems={"x": ("a", text)}),
    "the system name '.*'": lambda text: TestSet(systems={text: ("a",)}),
    "sources: segment 1": lambda text: TestSet(systems={"x": ("a",)}, sources=(text,)),
    "documents: segment 1": lambda text: TestSet(systems={"x": ("a",)}, documents=(text,)),
    "references of segment 1: reference 1": lambda text: TestSet(
        systems={"x": ("a",)}, references=((text,),)
    ),
}


@pytest.mark.parametrize("code", INVALID, ids=hex)
@pytest.mark.parametrize("location", MAKERS_BY_LOCATION)
def test_lone_surrogates_raise_an_error_with_the_location(location, code):
    with pytest.raises(DataError, match=f"^{location}.*: {INVALID[code]}") as caught:
        MAKERS_BY_LOCATION[location](f"grüße {chr(code)} und mehr")
    assert "\n" not in str(caught.value)
    str(caught.value).encode()  # the message itself can be printed


@pytest.mark.parametrize("text", ["", "grüße", "😀", "\ue000", "\ufffd", "\u2028", "\x01", "\0"])
def test_any_other_text_is_accepted(text):
    assert Judgment(Segment(text, text, (text,)), 1.0).segment.hypothesis == text


def test_references_and_context_of_segments():
    from_list, from_tuple = Segment("a", None, ["a b", "a"]), Segment("a", None, ("a b", "a"))
    assert from_list == from_tuple
    scores = load_metric("chrf").score([from_list, from_tuple]).segments
    assert scores[0] == scores[1] == 100
    segments = [Segment("One."), Segment("Two."), Segment("Three."), Segment("One.")]
    in_documents = attach_context(segments, ["a", "a", "a", "b"])
    assert in_documents == segments
    assert len(set(in_documents)) == 3
    assert repr(in_documents[0]) == repr(segments[0])
    second = in_documents[1].context
    assert (second.document.name, second.position) == ("a", 1)
    assert (second.before(9), second.after(9)) == ((segments[0],), (segments[2],))
    assert second.before(0) == ()
    assert in_documents[3].context != in_documents[0].context


def test_judgments_need_segments():
    with pytest.raises(LengthError, match="1 document names for 2 segments"):
        attach_context([Segment("a"), Segment("b")], ["x"])
    with pytest.raises(UsageError, match="a judgment needs a segment, not 'a cat': write Segment"):
        Judgment("a cat", 1.0)
    with pytest.raises(UsageError, match="a judgment needs a segment, not 'a cat': write Segment"):
        Preference(Segment("a dog"), "a cat", 1.0)
