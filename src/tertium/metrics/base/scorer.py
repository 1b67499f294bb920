"""The interface of metrics and rankers: name, configuration, input checks, signature.

A scorer is a frozen keyword-only dataclass. Its constructor arguments are its configuration:
`repr`, equality, the spec string and the command-line options are derived from its fields.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any, ClassVar, Self

from tertium.core.arrays import BoolArray
from tertium.core.errors import DataError, MissingInputError, PluginError, UsageError, short_repr
from tertium.core.fields import check_ranges, check_types, format_spec
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.metrics.base.capabilities import HasSettings
from tertium.metrics.base.text_warnings import (
    Flags,
    flag_distorting_texts,
    flag_empty_translations,
)
from tertium.version import __version__

REFERENCES = frozenset({"references"})
HOW_TO_PROVIDE = {
    "references": "give -r, a column ref in a file of records, or references= in Python",
    "source": "give -s, a column src in a file of records, or a source in Python",
    "context": "give --documents FILE, a column doc in a file of records, or documents in Python",
}
INPUT_NAMES = {"references": "references", "source": "the source", "context": "the document"}


class Scorer(ABC):
    """Common interface of metrics and rankers: name, configuration, input checks, signature.

    A subclass is a frozen keyword-only dataclass. It sets `name` (used in specs) and `title`
    (shown in tables), and may set `citation` (a BibTeX entry).
    """

    name: ClassVar[str]
    title: ClassVar[str]

    def __new__(cls, *args: Any, **fields: Any) -> Self:
        instance = super().__new__(cls)  # raises for abstract classes
        _check_class(cls)
        check_ranges(cls, fields)
        check_types(cls, fields)
        return instance

    @property
    def label(self) -> str:
        """Name in tables and signatures; a preset with its own published name overrides it."""
        return self.title

    @property
    def required_inputs(self) -> frozenset[str]:
        """Inputs every segment must have, from "references", "source" and "context"."""
        return REFERENCES

    def check(self, segments: Sequence[Segment]) -> None:
        """Raise if there are no segments or one lacks a required input; name the first one."""
        check_segment_types(self.name, segments)
        if not segments:
            raise DataError(f"{self.name}: no segments to score")
        _check_required_inputs(self, segments)

    def flags(self, segments: Sequence[Segment]) -> Flags:
        """Flag segments with conditions that affect how to read the score, by kind of warning."""
        return flag_distorting_texts(segments)

    @property
    def spec(self) -> str:
        """Spec string that rebuilds this object: `load_metric(metric.spec) == metric`."""
        return format_spec(self.name, self)


def check_segment_types(name: str, segments: Sequence[Segment]) -> None:
    """Raise unless `segments` is a sequence of `Segment` objects."""
    if isinstance(segments, TestSet):
        raise UsageError(
            f"{name} expects segments, got a test set: pass testset.segments(system), "
            "or pass the test set to tertium.score"
        )
    if not isinstance(segments, Sequence):
        is_single = isinstance(segments, Segment)
        hint = "wrap it in [...]" if is_single else "predict accepts a data frame or records"
        raise UsageError(f"{name} expects a list of segments, got {short_repr(segments)}: {hint}")
    if not all(isinstance(segment, Segment) for segment in segments):
        other = next(s for s in segments if not isinstance(s, Segment))
        raise UsageError(
            f"{name} expects segments, got {short_repr(other)}: pass "
            'Segment("a translation", references=["a reference"]), or texts to corpus_score'
        )


def _check_required_inputs(scorer: Scorer, segments: Sequence[Segment]) -> None:
    """Raise for the first segment that lacks a required input."""
    required = scorer.required_inputs
    if not {*required} <= {*HOW_TO_PROVIDE}:
        raise PluginError(
            f"{scorer.name}: required_inputs is {short_repr(required)}: expected a set with "
            f"any of {', '.join(HOW_TO_PROVIDE)}"
        )
    for kind, name in INPUT_NAMES.items():
        missing = find_missing(segments, kind) if kind in required else []
        if any(missing):
            hint = HOW_TO_PROVIDE[kind]
            if kind == "references":
                hint += (
                    "; or choose a metric that reads only the source (`tertium list` shows the "
                    "inputs of each)"
                )
            number = missing.index(True) + 1
            raise MissingInputError(
                f"{scorer.spec} needs {name}, and segment {number} has none: {hint}"
            )


def find_missing(segments: Sequence[Segment], kind: str) -> list[bool]:
    """Say for each segment whether an input (references, source or context) is missing."""
    return [getattr(segment, kind) in (None, ()) for segment in segments]


def check_same_inputs(name: str, segments: Sequence[Segment]) -> None:
    """Raise unless all segments have the same inputs, and at least one of source and references."""
    for kind in ("references", "source"):
        is_missing = find_missing(segments, kind)
        if any(is_missing) and not all(is_missing):
            raise MissingInputError(
                f"{name}: segment {is_missing.index(True) + 1} has no {kind}, but other "
                "segments have: choose the input with against=reference or against=source"
            )
    if not segments[0].references and segments[0].source is None:
        raise MissingInputError(
            f"{name} needs references, the source or both, but segment 1 has neither: "
            f"{HOW_TO_PROVIDE['references']}, or the source likewise"
        )


def flag_empty(scorer: Scorer, segments: Sequence[Segment]) -> BoolArray:
    """Flag blank translations of texts that are not blank, (n,).

    These texts are the references; the source, if references are missing or not read.
    """
    return flag_empty_translations(segments, source_only=reads_source_only(scorer))


def reads_source_only(scorer: Scorer) -> bool:
    """Whether a scorer reads the source and no reference."""
    return scorer.required_inputs == {"source"}


def format_signature(scorer: Scorer, segments: Sequence[Segment]) -> str:
    """Return the string to publish with a score: `BLEU|nrefs:1|case:mixed|...|version:0.1`."""
    parts = {"nrefs": count_references(segments)}
    if isinstance(scorer, HasSettings):
        parts |= scorer.signature_fields(segments)
    parts["version"] = __version__
    return "|".join([scorer.label, *(f"{key}:{value}" for key, value in parts.items())])


def _check_class(cls: type[Scorer]) -> None:
    """Raise `PluginError` if a subclass is not a dataclass or lacks a name or title."""
    if not is_dataclass(cls):
        raise PluginError(
            f"{cls.__name__} is not a dataclass: decorate it with "
            "@dataclass(frozen=True, kw_only=True)"
        )
    for attribute, use in {"name": "used in specs", "title": "shown in tables"}.items():
        if not hasattr(cls, attribute):
            raise PluginError(
                f'{cls.__name__} has no {attribute} ({use}): add {attribute}: ClassVar[str] = "..."'
            )


def count_references(segments: Sequence[Segment]) -> str:
    """Format the number of references for signatures: a number, or `var` if it varies."""
    counts = {len(segment.references) for segment in segments}
    return str(counts.pop()) if len(counts) == 1 else "var"
