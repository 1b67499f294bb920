"""Turn localization files into a test set: one file, several files, or files aligned by key.

Files with source and translation are read alone. Files in one language are aligned with a source
file by key, plural forms with the form `other` where the source has no such form.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tertium.core.errors import DataError, UsageError
from tertium.core.findings import FileLocation, Locate
from tertium.core.spans import Side
from tertium.data.consistency import name_systems
from tertium.data.testset import TestSet
from tertium.files.catalogs import read_catalog
from tertium.files.units import Catalog, InlineText, Languages, Unit, is_same_language

logger = logging.getLogger(__name__)

PROJECT = "project"  # name of the system that several files with different strings belong to
MAX_NAME_LENGTH = 60
MAX_SHOWN_KEYS = 5
Row = tuple[Unit, ...]  # the unit of each system


@dataclass(frozen=True, slots=True)
class Project:
    """The test set of localization files.

    `languages` are those that the files declare. `catalogs` are the files as they were read, and
    `rows` have the unit of each system for each segment.
    """

    testset: TestSet
    languages: Languages
    paths: tuple[str, ...]
    catalogs: tuple[Catalog, ...] = field(default=(), repr=False)
    rows: tuple[Row, ...] = field(default=(), repr=False)


def read_project(
    translations: Sequence[str | Path],
    sources: str | Path | None = None,
    references: Sequence[str | Path] = (),
    *,
    names: Sequence[str] | None = None,
    languages: Languages | None = None,
    keep_untranslated: bool = False,
    for_write_back: bool = True,
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
    for_write_back
        Keep the places of the strings in the files, which `write_back` needs.

    Returns
    -------
    Project
        `project.testset` is what `score` and `check` take.

    Examples
    --------
    >>> read_project(["examples/localization/app.de.xliff"]).testset
    <TestSet of 6 segments: app.de.xliff>
    """
    files = [read_catalog(path, languages, has_places=for_write_back) for path in translations]
    catalogs = files
    if sources is not None:
        source_language = Languages(target=languages.source if languages else "")
        source_catalog = read_catalog(sources, source_language, has_places=False)
        catalogs = [align_with_source(catalog, source_catalog) for catalog in files]
    for catalog in catalogs:
        warn_about_duplicates(catalog)
    declared = _common_languages(catalogs, languages)
    catalogs = [replace(c, units=tuple(filter(is_wanted, c))) for c in catalogs]
    strings = [[(u.id, u.plural, u.source and u.source.text) for u in c] for c in catalogs]
    if strings.count(strings[0]) == len(strings):
        systems = name_systems(translations, names)
        path = catalogs[0].path
        columns = zip(*catalogs, strict=True)
        rows = [(units, document_label(units[0], path, False)) for units in columns]
    else:
        systems = names or [PROJECT]
        if len(systems) > 1:
            raise UsageError("--names: files with different strings are one system: give one name")
        rows = [((unit,), document_label(unit, c.path, True)) for c in catalogs for unit in c]
    if not keep_untranslated:
        rows = _drop_untranslated(rows)
    if not rows:
        raise DataError(f"{', '.join(map(str, translations))}: no translated strings")
    targets = [read_catalog(path, languages, has_places=False) for path in references]
    documents = [document for _, document in rows]
    units = [row for row, _ in rows]
    testset = _make_testset(units, documents, systems, targets)
    return Project(testset, declared, tuple(map(str, translations)), tuple(files), tuple(units))


def align_with_source(catalog: Catalog, source: Catalog) -> Catalog:
    """Give units the source texts of another file with the same keys, in the order of that file.

    Keys that the translation lacks become units without a target. Keys that the source lacks are
    dropped with a warning.
    """
    for file in (source, catalog):
        for one, other in _find_duplicates(file):
            raise DataError(
                f"{file.path}: the key {one.name!r} is used twice{_lines(one, other)}; files are "
                "aligned by key: remove one"
            )
    forms, source_forms = _group_forms(catalog), _group_forms(source)
    if not forms.keys() & source_forms.keys():
        raise DataError(f"{catalog.path} and {source.path} have no keys in common")
    _warn_about_keys(catalog.path, "not in the source file", forms.keys() - source_forms.keys())
    aligned: list[Unit] = []
    missing = []
    for key, sources in source_forms.items():
        if key not in forms and all(unit.is_translatable for unit in sources):
            missing.append(key)
        aligned += _align_key(forms.get(key, []), sources)
    _warn_about_keys(catalog.path, "missing", missing)
    languages = Languages(source.languages.target, catalog.languages.target)
    return replace(catalog, units=tuple(aligned), languages=languages)


def _group_forms(catalog: Catalog) -> dict[str, list[Unit]]:
    """Return the units of each key: its plural forms."""
    forms: dict[str, list[Unit]] = {}
    for unit in catalog:
        forms.setdefault(unit.id, []).append(unit)
    return forms


def _align_key(units: Sequence[Unit], sources: Sequence[Unit]) -> Iterator[Unit]:
    """Pair the forms of one key; a form that the source lacks is paired with `other`."""
    by_form = {unit.plural: unit for unit in sources}
    default = by_form.get("other") or sources[0]
    for unit in units:
        source = by_form.get(unit.plural, default)
        yield replace(
            unit,
            source=_source_text(source),
            notes=unit.notes or source.notes,
            max_length=unit.max_length or source.max_length,
            is_translatable=unit.is_translatable and source.is_translatable,
        )
    if not units:
        for source in by_form.values():
            yield replace(source, source=_source_text(source), target=None, state="")


def _source_text(unit: Unit) -> InlineText:
    """Return the text of a source file, without positions, which are not those of this file."""
    return InlineText(unit.target.text if unit.target else "")


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
    """Yield the first unit of each name that is used again, and the other one."""
    seen: dict[tuple[str, str], Unit] = {}
    for unit in catalog:
        other = seen.setdefault((unit.document, unit.name), unit)
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
    """Return the wanted languages, else those of the first file; refuse files in several."""
    first = catalogs[0].languages
    for catalog in catalogs[1:]:
        a, b = first.target, catalog.languages.target
        if a and b and not is_same_language(a, b):
            raise UsageError(
                f"{catalogs[0].path} is in {a}, {catalog.path} in {b}: give files in one language"
            )
    options = wanted or Languages()
    return Languages(options.source or first.source, options.target or first.target)


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


def _drop_untranslated(rows: list[tuple[Row, str]]) -> list[tuple[Row, str]]:
    translated = [row for row in rows if all(map(has_translation, row[0]))]
    missing = len(rows) - len(translated)
    if missing:
        logger.warning(
            "warning: strings without a translation: %d of %d; they are not scored, `tertium "
            "check` lists them",
            missing,
            len(rows),
        )
    return translated


def has_translation(unit: Unit) -> bool:
    """Return whether a unit has a translation that is not blank."""
    return unit.target is not None and bool(unit.target.text.strip())


def _make_testset(
    rows: Sequence[Row],
    documents: Sequence[str],
    systems: Sequence[str],
    references: Sequence[Catalog],
) -> TestSet:
    firsts = [units[0] for units in rows]
    columns = {
        "id": [unit_name(unit) for unit in firsts],
        "state": [unit.state for unit in firsts],
        "context": [unit.context for unit in firsts],
        "plural": [unit.plural for unit in firsts],
        "note": [" / ".join(unit.notes) for unit in firsts],
        "max_length": [str(unit.max_length or "") for unit in firsts],
        "line": [str(unit.line or "") for unit in firsts],
    }
    translations = {}
    for system, units in zip(systems, zip(*rows, strict=True), strict=True):
        translations[system] = [unit.target.text if unit.target else "" for unit in units]
    return TestSet(
        systems=translations,
        sources=[u.source.text for u in firsts if u.source] if firsts[0].source else (),
        references=_read_references(firsts, references),
        documents=documents,
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
