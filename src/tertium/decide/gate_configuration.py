"""Settings of `tertium gate`: the table `[gate]` of `tertium.toml`, one table per language pair.

    [gate]
    metrics = ["chrf"]
    margin = {chrf = 0.5}
    max = {empty = 0}

    [gate.pairs.en-de]
    baseline = "main.de.txt"
    candidate = "new.de.txt"
    references = ["reference.de.txt"]

Files are relative to the folder of the settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from tertium.core.errors import ModelError, UsageError
from tertium.core.schema import Rule, read_dataclass
from tertium.data.toml_tables import read_toml
from tertium.text.language_codes import check_language_code

UNDECIDED = ("pass", "fail")
FILES = ("baseline", "candidate", "sources", "references", "documents")
RULES = ("margin", "max", "min")
Files = TypeVar("Files", bound="PairFiles")
Undecided = Annotated[str, Rule(lambda v: v in ("", *UNDECIDED), "pass or fail")]


@dataclass(frozen=True, kw_only=True)
class PairFiles:
    """Files and rules of one language pair, or of all of them."""

    baseline: str = ""
    candidate: str = ""
    sources: str = ""
    references: tuple[str, ...] = ()
    documents: str = ""
    source_language: str = ""
    target_language: str = ""
    metrics: tuple[str, ...] = ()
    margin: Mapping[str, Any] = field(default_factory=dict)
    max: Mapping[str, Any] = field(default_factory=dict)
    min: Mapping[str, Any] = field(default_factory=dict)
    by: tuple[str, ...] = ()

    def merge(self, general: PairFiles) -> PairFiles:
        """Fill fields that are not set from general settings; rules are combined by name."""
        fields = {
            name: getattr(self, name) or getattr(general, name)
            for name in PairFiles.__dataclass_fields__
        }
        rules = {name: {**getattr(general, name), **getattr(self, name)} for name in RULES}
        return PairFiles(**{**fields, **rules})

    def check_languages(self, name: str) -> tuple[str, str]:
        """Return the languages for checks: those of the settings, or of a name such as en-de."""
        if self.source_language or self.target_language:
            return self.source_language, self.target_language
        source, _, target = name.partition("-")
        try:
            for code in (source, target):
                check_language_code(code)
        except UsageError:
            return "", ""
        return source, target


@dataclass(frozen=True, kw_only=True)
class GateSettings(PairFiles):
    """The table `[gate]`."""

    alpha: float = 0.05
    undecided: Undecided = ""
    pairs: Mapping[str, PairFiles] = field(default_factory=dict)

    def all_pairs(self) -> dict[str, PairFiles]:
        """Return complete settings by pair; a single pair without a table has an empty name."""
        pairs = self.pairs or ({"": PairFiles()} if self.candidate else {})
        return {name: pair.merge(self) for name, pair in pairs.items()}


def read_gate_settings(path: str | Path) -> GateSettings:
    """Read the table `[gate]` of a TOML file; its files are relative to the folder of the file."""
    table = read_toml(path).get("gate", {})
    try:
        settings = read_dataclass(GateSettings, table, str(path), "gate")
    except ModelError as error:
        raise UsageError(str(error)) from None
    folder = Path(path).parent
    pairs = {name: _resolve_files(pair, folder) for name, pair in settings.pairs.items()}
    for name, pair in pairs.items():
        merged = pair.merge(settings)
        for option in ("baseline", "candidate"):
            if not getattr(merged, option):
                raise UsageError(f"{path}: gate.pairs.{name} has no {option}: name a file")
    return replace(_resolve_files(settings, folder), pairs=pairs)


def _resolve_files(settings: Files, folder: Path) -> Files:
    changes: dict[str, Any] = {}
    for name in FILES:
        value = getattr(settings, name)
        if isinstance(value, str) and value:
            changes[name] = str(folder / value)
        elif value:
            changes[name] = tuple(str(folder / file) for file in value)
    changes["by"] = tuple(_resolve_labels(column, folder) for column in settings.by)
    return replace(settings, **changes)


def _resolve_labels(column: str, folder: Path) -> str:
    name, equals, file = column.partition("=")
    return f"{name}={folder / file}" if equals else column
