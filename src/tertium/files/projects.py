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
from tertium.core.findings import FileLocation
from tertium.core.spans import Side
from tertium.data.testset import TestSet, name_systems
from tertium.files.catalogs import read_catalog
from tertium.files.units import Catalog, Languages, Unit, Units, is_same_language

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

    def locate(self, system: str, segment: int, side: Side) -> FileLocation:
        """Return the file and line of the unit of a segment."""
        place = [*self.testset.systems].index(system)
        if self.rows:
            unit = self.rows[segment][place]
            return FileLocation(unit.file, unit.line or None)
        return FileLocation(self.paths[place if place < len(self.paths) else 0])


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
    catalogs = files = [read_catalog(path, languages) for path in translations]
    if sources is not None:
        source_language = Languages(target=languages.source if languages else "")
        source = read_catalog(sources, source_language)
        catalogs = [align_with_source(catalog, source) for catalog in files]
    for catalog in catalogs:
        _check_duplicates(catalog)
    declared = _common_languages(catalogs, languages)
    columns = [[*filter(is_wanted, catalog)] for catalog in catalogs]
    strings = [[(u.id, u.plural, u.source) for u in units] for units in columns]
    is_project = strings.count(strings[0]) < len(strings)
    systems = (names or [PROJECT]) if is_project else name_systems(translations, names)
    if is_project and len(systems) > 1:
        raise UsageError("--names: files with different strings are one system: give one name")
    columns = [
        [*_label_documents(units, catalog.path, is_project)]
        for units, catalog in zip(columns, catalogs, strict=True)
    ]
    if is_project:
        columns = [[unit for units in columns for unit in units]]
    rows = [*zip(*columns, strict=True)]
    if not keep_untranslated:
        rows = _drop_untranslated(rows)
    if not rows:
        raise DataError(f"{', '.join(map(str, translations))}: no translated strings")
    targets = [read_catalog(path, languages) for path in references]
    testset = _make_testset(rows, systems, targets)
    return Project(testset, declared, tuple(map(str, translations)), tuple(files), tuple(rows))


def align_with_source(catalog: Catalog, source: Catalog) -> Catalog:
    """Give units the source texts of another file with the same keys, in the order of that file.

    Keys that the translation lacks become units without a target. Keys that the source lacks are
    dropped with a warning.
    """
    for file in (source, catalog):
        _check_duplicates(file, is_aligned=True)
    forms = _group_forms(catalog)
    source_forms = _group_forms(source)
    if not forms.keys() & source_forms.keys():
        raise DataError(f"{catalog.path} and {source.path} have no keys in common")
    _warn_about_keys(catalog.path, "not in the source file", forms.keys() - source_forms.keys())
    missing = [
        key
        for key in source_forms.keys() - forms.keys()
        if all(unit.is_translatable for unit in source_forms[key])
    ]
    _warn_about_keys(catalog.path, "missing", missing)
    units = [
        unit
        for key, sources in source_forms.items()
        for unit in _align_key(forms.get(key, []), sources)
    ]
    languages = Languages(source.languages.target, catalog.languages.target)
    return replace(catalog, units=tuple(units), languages=languages)


def _group_forms(catalog: Catalog) -> dict[str, list[Unit]]:
    """Return the units of each key: its plural forms."""
    forms: dict[str, list[Unit]] = {}
    for unit in catalog:
        forms.setdefault(unit.id, []).append(unit)
    return forms


def _align_key(units: Sequence[Unit], sources: Sequence[Unit]) -> Units:
    """Pair the forms of one key; a form that the source lacks is paired with `other`."""
    by_form = {unit.plural: unit for unit in sources}
    default = by_form.get("other") or sources[0]
    for unit in units or [replace(unit, target=None, state="") for unit in sources]:
        source = by_form.get(unit.plural, default)
        yield replace(
            unit,
            source=str(source.target or ""),  # its positions are those of another file
            notes=unit.notes or source.notes,
            max_length=unit.max_length or source.max_length,
            is_translatable=unit.is_translatable and source.is_translatable,
        )


def _check_duplicates(catalog: Catalog, *, is_aligned: bool = False) -> None:
    """Warn about ids that are used twice in a file, which is an error in files that are aligned."""
    first_units: dict[tuple[str, str], Unit] = {}
    pairs = [(first_units.setdefault((u.document, u.name), u), u) for u in catalog]
    duplicates = [(first, unit) for first, unit in pairs if first is not unit]
    if not duplicates:
        return
    first, other = duplicates[0]
    lines = f" (lines {first.line} and {other.line})" if other.line else ""
    problem = (
        f"{catalog.path}: ids that are used twice: {len(duplicates)}; the first is "
        f"{first.name!r}{lines}"
    )
    if is_aligned:
        raise DataError(f"{problem}; files are aligned by id: remove one")
    logger.warning("warning: %s", problem)


def _warn_about_keys(path: str, problem: str, keys: Iterable[str]) -> None:
    names = sorted(keys)
    if names:
        examples = ", ".join(map(repr, names[:MAX_SHOWN_KEYS]))
        more = ", ..." if len(names) > MAX_SHOWN_KEYS else ""
        logger.warning("warning: %s: keys %s: %d (%s%s)", path, problem, len(names), examples, more)


def is_wanted(unit: Unit) -> bool:
    """Return whether a unit has something to translate."""
    has_text = unit.source is None or bool(unit.source.strip())
    return unit.is_translatable and (has_text or unit.target is not None)


def _common_languages(catalogs: Sequence[Catalog], wanted: Languages | None) -> Languages:
    """Return the wanted languages, else those of the first file; refuse files in several."""
    first = catalogs[0].languages
    for catalog in catalogs[1:]:
        a = first.target
        b = catalog.languages.target
        if a and b and not is_same_language(a, b):
            raise UsageError(
                f"{catalogs[0].path} is in {a}, {catalog.path} in {b}: give files in one language"
            )
    options = wanted or Languages()
    return Languages(options.source or first.source, options.target or first.target)


def _label_documents(units: Iterable[Unit], path: str, is_project: bool) -> Units:
    """Yield units with their file, and with the document that it names, else the file."""
    name = Path(path).name
    for unit in units:
        document = unit.document or name
        if is_project and unit.document:
            document = f"{name}:{unit.document}"
        yield replace(unit, document=document, file=path)


def unit_name(unit: Unit) -> str:
    """Return the name of a unit in tables: its id, cut if it is long, as PO ids are.

    >>> unit_name(Unit(id="menu.open")), unit_name(Unit(id="a " * 40, line=7))[-9:]
    ('menu.open', ' (line 7)')
    """
    name = " ".join(unit.name.split())
    if len(name) <= MAX_NAME_LENGTH:
        return name or f"line {unit.line}"
    return f"{name[: MAX_NAME_LENGTH - 20].rstrip()}… (line {unit.line})"


def _drop_untranslated(rows: list[Row]) -> list[Row]:
    translated = [row for row in rows if all(map(has_translation, row))]
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
    return bool((unit.target or "").strip())


def _make_testset(
    rows: Sequence[Row], systems: Sequence[str], references: Sequence[Catalog]
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
        translations[system] = [str(unit.target or "") for unit in units]
    return TestSet(
        systems=translations,
        sources=[] if firsts[0].source is None else [str(unit.source or "") for unit in firsts],
        references=[*zip(*(_read_references(firsts, file) for file in references), strict=True)],
        documents=[unit.document for unit in firsts],
        columns={name: values for name, values in columns.items() if any(values)},
    )


def _read_references(units: Iterable[Unit], catalog: Catalog) -> Iterator[str]:
    """Yield the translations of another file for each unit; a missing one is an error."""
    by_key = {(unit.id, unit.plural): unit.target for unit in catalog}
    for unit in units:
        target = by_key.get((unit.id, unit.plural))
        if target is None:
            raise DataError(f"{catalog.path}: no reference for the string {unit_name(unit)!r}")
        yield str(target)
