"""Slices: the segments of one domain, document, length or language, or of one value of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tertium.arrays import BoolArray
from tertium.data.human import Evidence
from tertium.data.testset import TestSet
from tertium.errors import DataError, UnknownNameError
from tertium.text.language_identification import identify
from tertium.text.scripts import WITHOUT_BLANKS, main_script

LANGUAGE_NAMES = ("language", "lp", "langpair", "language_pair")
NO_LABEL = "(none)"
PARTS = 4  # of about equal size that lengths are cut into
SAMPLED = 1000  # texts whose script is looked at
LengthUnit = Literal["word", "character"]


@dataclass(frozen=True, kw_only=True)
class Slicing:
    """A label for each segment; `names` are the labels in the order in which they are shown."""

    by: str
    labels: tuple[str, ...]
    names: tuple[str, ...]

    def mask(self, name: str) -> BoolArray:
        """Which segments have a label, (segments,)."""
        return np.array([label == name for label in self.labels])


def slice_testset(testset: TestSet, by: str) -> Slicing:
    """The segments of a test set by their document, length, language or a column.

    >>> small = TestSet(systems={"a": ["x", "y", "z"]}, columns={"domain": ["news", "law", "news"]})
    >>> slice_testset(small, "domain").names
    ('news', 'law')
    """
    documents = {"document": testset.documents} if testset.documents else {}
    texts = testset.sources or [refs[0] if refs else "" for refs in testset.references]
    return _slicing(by, {**testset.columns, **documents}, texts, testset.name or "the test set")


def slice_items(people: Evidence, items: Sequence[str], by: str) -> Slicing:
    """The items that people judged in the same way; `items` are those that are wanted."""
    texts: dict[str, str] = {}
    if by in ("length", *LANGUAGE_NAMES):
        for (_, item), segment in people.texts().items():
            texts.setdefault(item, segment.source or "".join(segment.references[:1]))
    labels = {name: [own.get(i, "") for i in items] for name, own in people.labels().items()}
    if people.lp:
        labels.setdefault("language", [people.lp] * len(items))
    known = [texts[item] for item in items if item in texts]
    if texts and len(known) < len(items):
        raise DataError(f"{people.title}: some of the judged items have no text to measure")
    return _slicing(by, labels, known, people.title)


def _slicing(
    by: str, columns: Mapping[str, Sequence[str]], texts: Sequence[str], where: str
) -> Slicing:
    names = LANGUAGE_NAMES if by == "language" else (by,)
    column = next((columns[name] for name in names if name in columns), None)
    alike = [name for name in columns if name.lower() == by.lower()]
    if column is None and len(alike) == 1:  # those of judgments are read in lower case
        column = columns[alike[0]]
    if column is None and by in ("length", "language"):
        if not any(texts):
            raise DataError(f"{where}: --by {by} reads sources or references, and there are none")
        if by == "length":
            return _by_length(texts)
        column = [identify(text) for text in texts]
    if column is None and by == "document":
        raise DataError(f"{where}: --by document needs them named: give --documents FILE")
    if column is None:
        raise UnknownNameError(f"column of {where}", by, {*columns, "length", "language"})
    labels = tuple(label or NO_LABEL for label in column)
    return Slicing(by=by, labels=labels, names=tuple(dict.fromkeys(labels)))


def length_unit(texts: Sequence[str]) -> LengthUnit:
    """What most of these texts are measured by: characters where their script has no blanks.

    >>> length_unit(["two words", "some more"]), length_unit(["你好。", "再见。"])
    ('word', 'character')
    """
    some = texts[:: max(1, len(texts) // SAMPLED)]
    return "character" if main_script("".join(some)) in WITHOUT_BLANKS else "word"


def _by_length(texts: Sequence[str]) -> Slicing:
    """Quarters by the characters of a text: words are no measure where a script has no blanks."""
    lengths = np.array([len(text) for text in texts])
    cuts = np.unique(np.quantile(lengths, np.arange(1, PARTS) / PARTS).astype(int))
    places = np.searchsorted(cuts, lengths)  # a length at a cut belongs to the shorter ones
    names = {}
    for place in np.unique(places):
        own = lengths[places == place]
        low, high = own.min(), own.max()
        names[int(place)] = f"{low if low == high else f'{low}-{high}'} characters"
    labels = tuple(names[int(place)] for place in places)
    return Slicing(by="length", labels=labels, names=tuple(names.values()))
