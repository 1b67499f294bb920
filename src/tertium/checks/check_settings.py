"""All checks and their settings: `tertium.toml`, glossaries (CSV, TSV, TBX) and lists of names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tertium.checks import (
    language,
    length,
    markup,
    numbers,
    placeholders,
    punctuation,
    quantities,
    terminology,
)
from tertium.checks.check import Check, PairSettings, Term
from tertium.checks.terminology import CONSISTENCY
from tertium.core.errors import DataError, ModelError, UnknownNameError, UsageError
from tertium.core.fields import read_dataclass
from tertium.core.spans import Severity
from tertium.data.tables import read_table
from tertium.data.text_files import read_lines, read_toml
from tertium.files.xml_elements import XML_LANGUAGE, Element, XmlFile
from tertium.text.language_codes import check_language_code

# all checks of single segments, in the order in which findings are listed
_MODULES = placeholders, markup, numbers, quantities, language, length, punctuation, terminology
CHECKS = tuple(
    value for module in _MODULES for value in vars(module).values() if isinstance(value, Check)
)
CHECKS_BY_ID = {check.id: check for check in CHECKS}
RULES = (*(check.rule for check in CHECKS), terminology.CONSISTENCY_RULE)
CHECK_IDS = (*CHECKS_BY_ID, CONSISTENCY)


@dataclass(frozen=True, kw_only=True)
class CheckSettings:
    """What to check, and how severe findings are.

    `suppress` maps the id of a check to the segments (names or numbers from 1) in which its
    findings are dropped. `terms` is a glossary file, `do_not_translate` a list of names.
    """

    source_language: str = ""
    target_language: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    suppress: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    terms: str = ""
    do_not_translate: tuple[str, ...] = ()
    max_length: int = 0

    def __post_init__(self) -> None:
        for code in filter(None, (self.source_language, self.target_language)):
            check_language_code(code)
        for name in (*self.select, *self.ignore, *self.severity, *self.suppress):
            if name not in CHECK_IDS:
                raise UnknownNameError("check", name, CHECK_IDS)
        if self.max_length < 0:
            raise UsageError(f"max_length is {self.max_length}: expected 0 (no limit) or more")

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the checks to run, in order."""
        chosen = {*(self.select or CHECK_IDS)} - {*self.ignore}
        return tuple(name for name in CHECK_IDS if name in chosen)

    @cached_property
    def pair_settings(self) -> PairSettings:
        """The settings of single segments, with the terms of the glossary."""
        return PairSettings(
            terms=read_terms(self.terms, self.source_language, self.target_language),
            do_not_translate=self.do_not_translate,
            max_length=self.max_length,
        )


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read the table `[check]` of a TOML file as fields of `CheckSettings`, validated.

    Paths in the file are relative to its folder.
    """
    fields = read_toml(path).get("check", {})
    try:
        settings = read_dataclass(CheckSettings, fields, str(path), "check")
    except ModelError as error:
        raise UsageError(str(error)) from None
    values = {name: getattr(settings, name) for name in fields}
    if values.get("terms"):
        values["terms"] = str(Path(path).parent / values["terms"])
    return values


def read_names(path: str | Path) -> tuple[str, ...]:
    """Read a list of names, one per line; blank lines are ignored."""
    return tuple(line.strip() for line in read_lines(path) if line.strip())


def read_terms(path: str | Path, source: str = "", target: str = "") -> tuple[Term, ...]:
    """Read a glossary: CSV or TSV with columns source, target and forbidden, or TBX.

    Several translations are separated by `|`, or stand in several rows. TBX entries are read in
    the given languages; deprecated terms are forbidden. An empty path gives no terms.
    """
    if not path:
        return ()
    suffix = Path(path).suffix.lower()
    if suffix == ".tbx":
        if not source or not target:
            raise UsageError(f"{path}: a TBX glossary needs --source-language, --target-language")
        return _merge_terms(_read_tbx(Path(path), source, target))
    if suffix not in (".csv", ".tsv"):
        raise UsageError(f"{path}: expected a glossary that ends in .csv, .tsv or .tbx")
    rows = []
    for where, row in read_table(path):
        if "source" not in row or not {"target", "forbidden"} & {*row}:
            columns = ", ".join(row)
            raise DataError(f"{where}: expected columns source, target, forbidden; got {columns}")
        term = row["source"].strip()
        if not term:
            raise DataError(f"{where}: the source term is empty")
        rows.append(Term(term, _split_terms(row.get("target")), _split_terms(row.get("forbidden"))))
    return _merge_terms(rows)


def _read_tbx(path: Path, source: str, target: str) -> Iterator[Term]:
    for entry in XmlFile(str(path), ("termEntry", "conceptEntry")).units():
        terms: dict[str, list[list[str]]] = {source: [[], []], target: [[], []]}
        for section in entry.elements():
            language = section.get(XML_LANGUAGE) or section.get("lang")
            code = re.split("[-_]", language.lower())[0]
            for group in section.descendants() if code in terms else ():
                if group.local in ("tig", "ntig", "termSec"):
                    notes = _read_texts(group, "termNote")
                    is_deprecated = any(n.startswith(("deprecated", "superseded")) for n in notes)
                    terms[code][is_deprecated] += filter(None, _read_texts(group, "term")[:1])
        targets, forbidden = map(tuple, terms[target])
        for term in terms[source][0]:
            yield Term(term, targets, forbidden)


def _read_texts(group: Element, name: str) -> list[str]:
    return [own.text().strip() for own in group.descendants() if own.local == name]


def _split_terms(cell: str | None) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, (cell or "").split("|"))))


def _merge_terms(rows: Iterable[Term]) -> tuple[Term, ...]:
    merged: dict[str, Term] = {}
    for row in rows:
        earlier = merged.get(row.source, Term(row.source))
        targets = earlier.targets + row.targets
        forbidden = earlier.forbidden + row.forbidden
        merged[row.source] = Term(row.source, targets, forbidden)
    return tuple(merged.values())
