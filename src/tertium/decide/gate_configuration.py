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
from typing import Any, Literal, TypeVar

from tertium.core.errors import ModelError, UsageError
from tertium.core.fields import read_dataclass
from tertium.core.result import field_values
from tertium.data.toml_tables import read_toml
from tertium.files.text_inputs import InputFiles

FILES = ("baseline", "candidate", "sources", "documents")
RULES = ("margin", "max", "min")
Files = TypeVar("Files", bound="PairFiles")


@dataclass(frozen=True, kw_only=True)
class PairFiles(InputFiles):
    """Files and rules of one language pair, or of all of them."""

    baseline: str = ""
    candidate: str = ""
    metrics: tuple[str, ...] = ()
    margin: Mapping[str, Any] = field(default_factory=dict)
    max: Mapping[str, Any] = field(default_factory=dict)
    min: Mapping[str, Any] = field(default_factory=dict)
    by: tuple[str, ...] = ()

    def merge(self, general: PairFiles) -> PairFiles:
        """Fill fields that are not set from general settings; rules are combined by name."""
        fields = {
            name: value or getattr(general, name) for name, value in field_values(self).items()
        }
        rules = {name: {**getattr(general, name), **getattr(self, name)} for name in RULES}
        return PairFiles(**{**fields, **rules})


@dataclass(frozen=True, kw_only=True)
class GateSettings(PairFiles):
    """The table `[gate]`."""

    alpha: float = 0.05
    undecided: Literal["", "pass", "fail"] = ""
    pairs: Mapping[str, PairFiles] = field(default_factory=dict)

    def merge_pairs(self, options: PairFiles) -> dict[str, PairFiles]:
        """Return complete settings by language pair; those of the command line come first.

        A single pair without a table of its own has an empty name.
        """
        pairs = {} if options.baseline or options.candidate else self.pairs
        pairs = pairs or {"": PairFiles()}
        merged = {name: options.merge(pair).merge(self) for name, pair in pairs.items()}
        for name, pair in merged.items():
            systems = {"--baseline": pair.baseline, "--candidate": pair.candidate}
            missing = [option for option, file in systems.items() if not file]
            if missing:
                place = f" in gate.pairs.{name}" if name else ""
                raise UsageError(
                    f"{' and '.join(missing)} missing{place}: give files, or name them in the "
                    "table [gate] of tertium.toml"
                )
        return merged


def read_gate_settings(path: str | Path) -> GateSettings:
    """Read the table `[gate]` of a TOML file; its files are relative to the folder of the file."""
    table = read_toml(path).get("gate", {})
    try:
        settings = read_dataclass(GateSettings, table, str(path), "gate")
    except ModelError as error:
        raise UsageError(str(error)) from None
    folder = Path(path).parent
    pairs = {name: _resolve_files(pair, folder) for name, pair in settings.pairs.items()}
    return replace(_resolve_files(settings, folder), pairs=pairs)


def _resolve_files(settings: Files, folder: Path) -> Files:
    files = {name: getattr(settings, name) for name in FILES}
    changes: dict[str, Any] = {name: str(folder / file) for name, file in files.items() if file}
    for name in ("translations", "references"):
        changes[name] = tuple(str(folder / file) for file in getattr(settings, name))
    labels = [column.partition("=") for column in settings.by]
    changes["by"] = tuple(
        f"{name}={folder / file}" if equals else name for name, equals, file in labels
    )
    return replace(settings, **changes)
