"""Texts that come through the API are checked as those in files are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tertium import TestSet, load_metric
from tertium.errors import DataError, LengthError, UsageError
from tertium.segment import Judgment, Preference, Segment, attach_context

WRONG = {
    0xD800: r"U\+D800 is half of a surrogate pair",
    0xDFFF: r"U\+DFFF is half of a surrogate pair",
    0xDCE9: "not UTF-8 .byte 0xe9.",
}
PLACES: dict[str, Callable[[str], object]] = {
    "the hypothesis of a segment": lambda text: Segment(text),
    "the source of a segment": lambda text: Segment("a", text),
    "the references of a segment: reference 2": lambda text: Segment("a", None, ("b", text)),
    "system 'x': segment 2": lambda text: TestSet(systems={"x": ("a", text)}),
    "the name '.*' of a system": lambda text: TestSet(systems={text: ("a",)}),
    "sources: segment 1": lambda text: TestSet(systems={"x": ("a",)}, sources=(text,)),
    "documents: segment 1": lambda text: TestSet(systems={"x": ("a",)}, documents=(text,)),
    "references of segment 1: reference 1": lambda text: TestSet(
        systems={"x": ("a",)}, references=((text,),)
    ),
}


@pytest.mark.parametrize("code", WRONG, ids=hex)
@pytest.mark.parametrize("place", PLACES)
def test_what_no_file_could_hold_is_refused_by_its_place(position: str, code: int) -> None:
    with pytest.raises(DataError, match=f"^{position}.*: {WRONG[code]}") as caught:
        PLACES[place](f"grüße {chr(code)} und mehr")
    assert "\n" not in str(caught.value)
    str(caught.value).encode()  # the message itself can be printed


@pytest.mark.parametrize("text", ["", "grüße", "😀", "\ue000", "\ufffd", "\u2028", "\x01", "\0"])
def test_every_other_text_is_taken(text: str) -> None:
    assert Judgment(Segment(text, text, (text,)), 1.0).segment.hypothesis == text


def test_a_list_of_references_is_as_good_as_a_tuple() -> None:
    listed, given = Segment("a", None, ["a b", "a"]), Segment("a", None, ("a b", "a"))  # type: ignore[arg-type]
    assert listed == given
    scores = load_metric("chrf").score([listed, given]).segments
    assert scores[0] == scores[1] == 100


def test_context_is_no_part_of_a_segment() -> None:
    segments = [Segment("One."), Segment("Two."), Segment("Three."), Segment("One.")]
    placed = attach_context(segments, ["a", "a", "a", "b"])
    assert placed == segments
    assert len(set(placed)) == 3
    assert repr(placed[0]) == repr(segments[0])
    second = placed[1].context
    assert second is not None
    assert (second.document.name, second.position) == ("a", 1)
    assert (second.before(9), second.after(9)) == ((segments[0],), (segments[2],))
    assert second.before(0) == ()
    assert placed[3].context != placed[0].context


def test_documents_of_another_length_are_refused() -> None:
    with pytest.raises(LengthError, match="1 document names for 2 segments"):
        attach_context([Segment("a"), Segment("b")], ["x"])


def test_people_judge_segments_not_texts() -> None:
    for made in (
        lambda: Judgment("a cat", 1.0),  # type: ignore[arg-type]
        lambda: Preference(Segment("a dog"), "a cat", 1.0),  # type: ignore[arg-type]
    ):
        with pytest.raises(
            UsageError, match="a judgment needs a segment, not 'a cat': write Segment"
        ):
            made()
