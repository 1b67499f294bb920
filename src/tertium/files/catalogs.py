"""Read a localization file as a catalog of units; the suffix and the content tell its format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tertium.core.errors import DataError
from tertium.text.language_codes import LANGUAGE_CODES

if TYPE_CHECKING:
    from tertium.files.units import Catalog, Languages, Units

XLIFF_SUFFIXES = frozenset({".xlf", ".xliff", ".xlf2", ".sdlxliff", ".mqxliff", ".mxliff"})
PO_SUFFIXES = frozenset({".po", ".pot"})
SGML_SUFFIXES = (".sgm", ".sgml")  # of WMT's test sets
LOCALE_FOLDERS = frozenset("locales locale _locales i18n l10n lang languages translations".split())
_LANGUAGE = re.compile(r"(?:.*[._-])?([a-z]{2})(?:[-_](?:r?[A-Z]{2}|[A-Z][a-z]{3}))*")
# The module of each format and its reader, by suffix; it is imported when a file needs it.
_BILINGUAL: Mapping[str, str] = {
    **dict.fromkeys(XLIFF_SUFFIXES, "xliff:read_xliff"),
    **dict.fromkeys(PO_SUFFIXES, "po:read_po"),
    ".tmx": "tmx:read_tmx",
    ".xcstrings": "trees:read_xcstrings",
}
_READERS: Mapping[str, str] = {
    **_BILINGUAL,
    ".json": "trees:read_json",
    ".arb": "trees:read_json",
    ".yml": "trees:read_yaml",
    ".yaml": "trees:read_yaml",
    ".stringsdict": "trees:read_stringsdict",
    ".strings": "plain_formats:read_strings",
    ".properties": "plain_formats:read_properties",
    ".ftl": "plain_formats:read_fluent",
    ".xml": "plain_formats:read_android",
    ".srt": "plain_formats:read_subtitles",
    ".vtt": "plain_formats:read_subtitles",
}
SUFFIXES = frozenset(_READERS)


def suffix_of(path: str | Path) -> str:
    """Return the suffix in lower case, without `.gz`."""
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix


def is_sgml(path: str | None) -> bool:
    """Tell whether the name of a file ends in `.sgm` or `.sgml`."""
    return path is not None and suffix_of(path) in SGML_SUFFIXES


def is_localization_file(path: str | Path) -> bool:
    """Tell whether a file is one of the formats of this package.

    JSON and XML files of other kinds exist: their content decides.
    """
    suffix = suffix_of(path)
    if suffix not in (".json", ".xml"):
        return suffix in SUFFIXES
    if not Path(path).is_file():
        return False
    if suffix == ".json":
        from tertium.files.trees import is_message_file

        return is_message_file(str(path))
    from tertium.files.xml_elements import root_element

    return root_element(str(path)).local == "resources"


def read_units(path: str | Path, catalog: Catalog | None = None) -> Units:
    """Yield the units of a file one by one, and complete the languages of a catalog on the way.

    XML files are read in parts: memory does not grow with their size. Units of formats with one
    language have a target only.
    """
    from tertium.files.units import Catalog

    suffix = suffix_of(path)
    if suffix not in _READERS:
        raise DataError(f"{path}: not a localization file; known are {', '.join(sorted(SUFFIXES))}")
    module, reader = _READERS[suffix].split(":")
    read = getattr(import_module(f"tertium.files.{module}"), reader)
    units: Units = read(catalog or Catalog(str(path)))
    return units


def read_catalog(path: str | Path, languages: Languages | None = None) -> Catalog:
    """Read a localization file of any format; `languages` are those wanted of it."""
    from tertium.files.units import Catalog, Languages

    wanted = Languages(*languages) if languages else Languages()
    catalog = Catalog(str(path), wanted, version=file_version(path))
    catalog.units = tuple(read_units(path, catalog))
    if suffix_of(path) not in _BILINGUAL:
        catalog.languages.target = catalog.languages.target or language_in_path(path)
    return catalog


def file_version(path: str | Path) -> tuple[int, ...]:
    """Return what changes when a file is written; nothing if it does not exist."""
    try:
        status = Path(path).stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def language_in_path(path: str | Path) -> str:
    """Return the language in the name of a file or of its folder, where it is usual, or nothing.

    >>> [language_in_path(p) for p in ("res/values-de-rDE/strings.xml", "app_pt_BR.arb", "de.json")]
    ['de', 'pt', 'de']
    >>> [language_in_path(p) for p in ("fr.lproj/Main.strings", "locales/ja/a.ftl", "my/app.json")]
    ['fr', 'ja', '']
    """
    file = Path(path)
    folder = file.parent.name
    names = [file.name.removesuffix(".gz").rpartition(".")[0]]
    if folder.endswith(".lproj") or folder.startswith("values-"):
        names.append(folder.removesuffix(".lproj"))
    elif file.parent.parent.name in LOCALE_FOLDERS:
        names.append(folder)
    matches = filter(None, map(_LANGUAGE.fullmatch, names))
    return next((match[1] for match in matches if match[1] in LANGUAGE_CODES), "")
