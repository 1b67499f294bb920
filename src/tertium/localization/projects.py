"""Turn localization files into a test set: one file, several files, or files aligned by key.

Files with source and translation are read alone. Files in one language are aligned with a source
file by key, plural forms with the form `other` where the source has no such form.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tertium.core.findings import FileLocation, Locate
from tertium.data.consistency import name_systems
from tertium.data.testset import TestSet
from tertium.errors import DataError, UsageError
from tertium.localization.catalogs import read_catalog
from tertium.localization.units import Catalog, InlineText, Languages, Unit, is_same_language
from tertium.spans import Side

logger = logging.getLogger(__name__)

PROJECT = "project"  # name of the system that several files with different strings belong to
MAX_NAME_LENGTH = 60
MAX_SHOWN_KEYS = 5


@dataclass(frozen=True, slots=True)
class Project:
    """The test set of localization files.

    `languages` are those that the files declare, `wanted` those that were read from files with
    several.
    """

    testset: TestSet
    languages: Languages
    paths: tuple[str, ...]
    wanted: Languages = field(default_factory=Languages)


def read_project(
    translations: Sequence[str | Path],
    sources: str | Path | None = None,
    references: Sequence[str | Path] = (),
    *,
    names: Sequence[str] | None = None,
    languages: Languages | None = None,
    keep_untranslated: bool = False,
) -> Project:
    """Read localization files as translations.

    Parameters
    ----------
    translations
        Files with the same strings are outputs of several systems. Files with different strings
        are the documents of one system.
    sources
        A file with the source texts, for formats with one language per file.
    references
        Files with other translations of the same strings.
    names
        Names of the systems.
    languages
        The languages to read from files with several.
    keep_untranslated
        Keep strings without a translation as empty translations; otherwise they are dropped with a
        warning.

    Returns
    -------
    Project
        `project.testset` is what `score` and `check` take.

    Examples
    --------
    >>> read_project(["examples/localization/app.de.xliff"]).testset
    <TestSet of 6 segments: app.de.xliff>
    """
    catalogs = [read_catalog(path, languages) for path in translations]
    if sources is not None:
        own_language = Languages(target=languages.source if languages else "")
        source_catalog = read_catalog(sources, own_language)
        catalogs = [align_with_source(catalog, source_catalog) for catalog in catalogs]
    for catalog in catalogs:
        warn_about_duplicates(catalog)
    declared = _common_languages(catalogs, languages)
    catalogs = [replace(c, units=tuple(filter(is_wanted, c.units))) for c in catalogs]
    if len(catalogs) == 1 or _have_same_strings(catalogs):
        systems = name_systems(translations, names)
        rows = _parallel_rows(catalogs)
    else:
        systems = names or [PROJECT]
        if len(systems) > 1:
            raise UsageError("--names: files with different strings are one system: give one name")
        rows = [((unit,), document_label(unit, c.path, True)) for c in catalogs for unit in c.units]
    if not keep_untranslated:
        rows = _drop_untranslated(rows)
    if not rows:
        raise DataError(f"{', '.join(map(str, translations))}: no translated strings")
    targets = [read_catalog(path, languages) for path in references]
    testset = _make_testset(rows, systems, targets)
    return Project(testset, declared, tuple(map(str, translations)), languages or Languages())


Row = tuple[tuple[Unit, ...], str]  # the unit of each system, and the label of its document


def align_with_source(catalog: Catalog, source: Catalog) -> Catalog:
    """Give units the source texts of another file with the same keys, in the order of that file.

    Keys that the translation lacks become units without a target. Keys that the source lacks are
    dropped with a warning.
    """
    for own in (source, catalog):
        _check_unique(own)
    by_id: dict[str, list[Unit]] = {}
    for unit in catalog:
        by_id.setdefault(unit.id, []).append(unit)
    forms: dict[str, dict[str, Unit]] = {}
    for unit in source:
        forms.setdefault(unit.id, {})[unit.plural] = unit
    if not by_id.keys() & forms.keys():
        raise DataError(f"{catalog.path} and {source.path} have no keys in common")
    _warn_about_keys(catalog.path, "not in the source file", by_id.keys() - forms.keys())
    missing = {
        name
        for name, units in forms.items()
        if name not in by_id and all(unit.is_translatable for unit in units.values())
    }
    _warn_about_keys(catalog.path, "missing", missing)
    aligned = [unit for name, own in forms.items() for unit in _align_key(by_id.get(name, []), own)]
    languages = Languages(source.languages.target, catalog.languages.target)
    return Catalog(catalog.path, tuple(aligned), languages)


def _align_key(units: Sequence[Unit], sources: dict[str, Unit]) -> Iterator[Unit]:
    """Pair the forms of one key; a form that the source lacks is paired with `other`."""
    default = sources.get("other") or next(iter(sources.values()))
    for unit in units:
        source = sources.get(unit.plural, default)
        yield replace(
            unit,
            source=source.target or InlineText(""),
            notes=unit.notes or source.notes,
            max_length=unit.max_length or source.max_length,
            is_translatable=unit.is_translatable and source.is_translatable,
        )
    if not units:
        for source in sources.values():
            yield replace(source, source=source.target or InlineText(""), target=None, state="")


def _check_unique(catalog: Catalog) -> None:
    first = next(_find_duplicates(catalog), None)
    if first is not None:
        one, other = first
        raise DataError(
            f"{catalog.path}: the key {one.name!r} is used twice{_lines(one, other)}; files are "
            "aligned by key: remove one"
        )


def warn_about_duplicates(catalog: Catalog) -> None:
    """Name ids that are used twice in a file."""
    duplicates = [*_find_duplicates(catalog)]
    if duplicates:
        one, other = duplicates[0]
        logger.warning(
            "warning: %s: ids that are used twice: %d; the first is %r%s",
            catalog.path,
            len(duplicates),
            one.name,
            _lines(one, other),
        )


def _find_duplicates(catalog: Catalog) -> Iterator[tuple[Unit, Unit]]:
    seen: dict[tuple[str, str, str], Unit] = {}
    for unit in catalog:
        other = seen.setdefault(unit.key, unit)
        if other is not unit:
            yield other, unit


def _lines(one: Unit, other: Unit) -> str:
    return f" (lines {one.line} and {other.line})" if one.line and other.line else ""


def _warn_about_keys(path: str, problem: str, keys: Iterable[str]) -> None:
    names = sorted(keys)
    if names:
        examples = ", ".join(map(repr, names[:MAX_SHOWN_KEYS]))
        more = ", ..." if len(names) > MAX_SHOWN_KEYS else ""
        logger.warning("warning: %s: keys %s: %d (%s%s)", path, problem, len(names), examples, more)


def is_wanted(unit: Unit) -> bool:
    """Return whether a unit has something to translate."""
    has_text = unit.source is None or bool(unit.source.text.strip())
    return unit.is_translatable and (has_text or unit.target is not None)


def _common_languages(catalogs: Sequence[Catalog], wanted: Languages | None) -> Languages:
    first = catalogs[0].languages
    for catalog in catalogs[1:]:
        a, b = first.target, catalog.languages.target
        if a and b and not is_same_language(a, b):
            raise UsageError(
                f"{catalogs[0].path} is in {a}, {catalog.path} in {b}: give files in one language"
            )
    options = wanted or Languages()
    return Languages(options.source or first.source, options.target or first.target)


def _have_same_strings(catalogs: Sequence[Catalog]) -> bool:
    strings = [
        [(unit.id, unit.plural, unit.source and unit.source.text) for unit in catalog]
        for catalog in catalogs
    ]
    return all(own == strings[0] for own in strings[1:])


def _parallel_rows(catalogs: Sequence[Catalog]) -> list[Row]:
    path = catalogs[0].path
    units = zip(*(catalog.units for catalog in catalogs), strict=True)
    return [(own, document_label(own[0], path, False)) for own in units]


def document_label(unit: Unit, path: str, is_project: bool) -> str:
    """Return the document of a unit: the one that its file names, else the file.

    >>> document_label(Unit(id="a", document="app.html"), "de/app.xlf", True)
    'app.xlf:app.html'
    """
    name = Path(path).name
    if not is_project:
        return unit.document or name
    return f"{name}:{unit.document}" if unit.document else name


def unit_name(unit: Unit) -> str:
    """Return the name of a unit in tables: its id, cut if it is long, as PO ids are.

    >>> unit_name(Unit(id="menu.open")), unit_name(Unit(id="a " * 40, line=7))[-9:]
    ('menu.open', ' (line 7)')
    """
    name = " ".join(unit.name.split())
    if len(name) <= MAX_NAME_LENGTH:
        return name or f"line {unit.line}"
    return f"{name[: MAX_NAME_LENGTH - 20].rstrip()}… (line {unit.line})"


def _drop_untranslated(rows: Sequence[Row]) -> list[Row]:
    translated = [row for row in rows if all(has_translation(unit) for unit in row[0])]
    if len(translated) < len(rows):
        logger.warning(
            "warning: strings without a translation: %d of %d; they are not scored, `tertium "
            "check` lists them",
            len(rows) - len(translated),
            len(rows),
        )
    return translated


def has_translation(unit: Unit) -> bool:
    """Return whether a unit has a translation that is not blank."""
    return unit.target is not None and bool(unit.target.text.strip())


def _make_testset(
    rows: Sequence[Row], systems: Sequence[str], references: Sequence[Catalog]
) -> TestSet:
    firsts = [units[0] for units, _ in rows]
    columns = {
        "id": [unit_name(unit) for unit in firsts],
        "state": [unit.state for unit in firsts],
        "context": [unit.context for unit in firsts],
        "plural": [unit.plural for unit in firsts],
        "note": [" / ".join(unit.notes) for unit in firsts],
        "max_length": [str(unit.max_length or "") for unit in firsts],
        "line": [str(unit.line or "") for unit in firsts],
    }
    return TestSet(
        systems={
            name: [units[n].target.text if units[n].target else "" for units, _ in rows]  # type: ignore[union-attr]
            for n, name in enumerate(systems)
        },
        sources=[u.source.text for u in firsts if u.source] if firsts[0].source else (),
        references=_read_references(firsts, references),
        documents=[label for _, label in rows],
        columns={name: values for name, values in columns.items() if any(values)},
    )


def locate_units(paths: Sequence[str], testset: TestSet) -> Locate:
    """Locate the segments of localization files by the lines of their units."""
    systems = [*testset.systems]
    by_name = {Path(path).name: path for path in paths}
    lines = testset.columns.get("line", ())

    def locate(system: str, segment: int, _side: Side) -> FileLocation:
        if len(paths) == len(systems):  # the lines are those of the first file
            path = paths[systems.index(system)]
            has_line = bool(lines) and system == systems[0]
        else:
            path = by_name.get(testset.documents[segment].partition(":")[0], paths[0])
            has_line = bool(lines)
        line = int(lines[segment] or 0) if has_line else 0
        return FileLocation(path, line or None)

    return locate


def _read_references(units: Sequence[Unit], catalogs: Sequence[Catalog]) -> list[list[str]]:
    """Return the translations of other files for each unit; a missing one is an error."""
    rows: list[list[str]] = [[] for _ in units] if catalogs else []
    for catalog in catalogs:
        by_key = {(unit.id, unit.plural): unit for unit in catalog}
        for row, unit in zip(rows, units, strict=True):
            other = by_key.get((unit.id, unit.plural))
            if other is None or other.target is None:
                raise DataError(f"{catalog.path}: no reference for the string {unit_name(unit)!r}")
            row.append(other.target.text)
    return rows
