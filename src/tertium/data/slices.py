"""Group segments by document, length, language, or the values of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from tertium.core.arrays import BoolArray, IntArray
from tertium.core.errors import DataError, UnknownNameError
from tertium.data.human_data import HumanData
from tertium.data.testset import TestSet
from tertium.text.language_identification import identify_language
from tertium.text.scripts import UNSPACED_SCRIPTS, main_script

LANGUAGE_NAMES = ("language", "lp", "langpair", "language_pair")
NO_LABEL = "(none)"
LENGTH_SLICES = 4  # of about equal size
SCRIPT_SAMPLE = 1000  # texts whose script is detected
LengthUnit = Literal["word", "character"]


@dataclass(frozen=True, kw_only=True)
class Slicing:
    """A label for each segment; `names` are the distinct labels in display order."""

    by: str
    labels: tuple[str, ...]
    names: tuple[str, ...]

    @cached_property
    def rows(self) -> Mapping[str, IntArray]:
        """The indices of the segments by label."""
        rows: dict[str, list[int]] = {}
        for row, label in enumerate(self.labels):
            rows.setdefault(label, []).append(row)
        return {name: np.array(rows.get(name, []), dtype=np.int64) for name in self.names}

    def mask(self, name: str) -> BoolArray:
        """Return which segments have a label, (segments,)."""
        mask = np.zeros(len(self.labels), dtype=np.bool_)
        mask[self.rows[name]] = True
        return mask


def slice_testset(testset: TestSet, by: str) -> Slicing:
    """Label the segments of a test set by document, length, language or a column.

    >>> small = TestSet(systems={"a": ["x", "y", "z"]}, columns={"domain": ["news", "law", "news"]})
    >>> slice_testset(small, "domain").names
    ('news', 'law')
    """
    documents = {"document": testset.documents} if testset.documents else {}
    texts = testset.sources or [refs[0] if refs else "" for refs in testset.references]
    return _slicing(by, {**testset.columns, **documents}, texts, testset.name or "the test set")


def slice_items(human_data: HumanData, items: Sequence[str], by: str) -> Slicing:
    """Label the given items of human data by document, length, language or a column."""
    texts: dict[str, str] = {}
    if by in ("length", *LANGUAGE_NAMES):
        for (_, item), segment in human_data.texts().items():
            texts.setdefault(item, segment.source or "".join(segment.references[:1]))
    columns = human_data.labels()
    labels = {name: [values.get(i, "") for i in items] for name, values in columns.items()}
    if human_data.lp:
        labels.setdefault("language", [human_data.lp] * len(items))
    item_texts = [texts[item] for item in items if item in texts]
    if texts and len(item_texts) < len(items):
        raise DataError(f"{human_data.title}: --by {by} needs a text for every judged item")
    return _slicing(by, labels, item_texts, human_data.title)


def _slicing(
    by: str, columns: Mapping[str, Sequence[str]], texts: Sequence[str], where: str
) -> Slicing:
    names = LANGUAGE_NAMES if by == "language" else (by,)
    column = next((columns[name] for name in names if name in columns), None)
    matches = [name for name in columns if name.lower() == by.lower()]
    if column is None and len(matches) == 1:  # columns of judgments are lowercase
        column = columns[matches[0]]
    if column is None and by in ("length", "language"):
        if not any(texts):
            raise DataError(f"{where}: --by {by} needs sources or references")
        if by == "length":
            return _by_length(texts)
        column = [identify_language(text) for text in texts]
    if column is None and by == "document":
        raise DataError(f"{where}: --by document needs document names: give --documents FILE")
    if column is None:
        raise UnknownNameError(f"column of {where}", by, {*columns, "length", "language"})
    labels = tuple(label or NO_LABEL for label in column)
    return Slicing(by=by, labels=labels, names=tuple(dict.fromkeys(labels)))


def detect_length_unit(texts: Sequence[str]) -> LengthUnit:
    """Return "character" if most texts are in a script without spaces, otherwise "word".

    >>> detect_length_unit(["two words", "some more"]), detect_length_unit(["你好。", "再见。"])
    ('word', 'character')
    """
    sample = texts[:: max(1, len(texts) // SCRIPT_SAMPLE)]
    return "character" if main_script("".join(sample)) in UNSPACED_SCRIPTS else "word"


def _by_length(texts: Sequence[str]) -> Slicing:
    """Label texts by quartile of their length in characters, which works for all scripts."""
    lengths = np.array([len(text) for text in texts])
    cuts = np.unique(np.quantile(lengths, np.arange(1, LENGTH_SLICES) / LENGTH_SLICES).astype(int))
    slices = np.searchsorted(cuts, lengths)  # a length equal to a cut belongs to the shorter slice
    names = {}
    for index in np.unique(slices):
        slice_lengths = lengths[slices == index]
        low = slice_lengths.min()
        high = slice_lengths.max()
        names[int(index)] = f"{low if low == high else f'{low}-{high}'} characters"
    labels = tuple(names[int(index)] for index in slices)
    return Slicing(by="length", labels=labels, names=tuple(names.values()))
