"""Find the segment of a test set that a human judgment is about."""

from __future__ import annotations

from collections.abc import Callable

from tertium.core.segment import Segment
from tertium.data.testset import TestSet

NO_SEGMENT = "no matching segment"
UNKNOWN_SYSTEM = "unknown system"
SegmentLookup = Callable[[str, str, str], Segment | str]  # item, system, document


def build_segment_lookup(testset: TestSet) -> SegmentLookup:
    """Return a function from (item, system, document) to a segment or the reason for its absence.

    `document` may be empty. If the items of the test set are words, a number is a line number from
    1. A line number never matches an item of another document, or a name that several segments
    share. For a joint system `a+b` the text of `a` is used, because both texts are equal.
    """
    segments = {system: testset.segments(system) for system in testset.systems}
    rows = {item: n for n, item in enumerate(testset.items)}
    has_word_items = not any(map(str.isdecimal, rows))
    lines = {str(n + 1): n for n in range(len(testset))} if has_word_items else {}
    shared_names = {item.rpartition("#")[0] for item in rows} - {""}
    documents = {*testset.documents}

    def find_row(item: str, document: str) -> int | None:
        names = (f"{document}:{item}", item, item.lstrip("0"))  # 007 is 7
        row = next((rows[name] for name in names if name in rows), None)
        if row is None and shared_names.isdisjoint(names):
            row = lines.get(names[-1])
        if row is None or document not in documents or testset.documents[row] == document:
            return row
        return None

    def find_segment(item: str, system: str, document: str) -> Segment | str:
        for name in (system, *system.split("+")):
            if name in segments:
                row = find_row(item, document)
                return NO_SEGMENT if row is None else segments[name][row]
        return UNKNOWN_SYSTEM

    return find_segment
