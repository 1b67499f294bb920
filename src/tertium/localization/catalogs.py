"""Read a localization file as a catalog of units; the suffix and the content tell its format."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.errors import DataError
from tertium.localization.units import Catalog, Languages, Unit
from tertium.text.language_codes import LANGUAGE_CODES

if TYPE_CHECKING:
    from tertium.localization.po import PoFile
    from tertium.localization.xml_elements import Element, XmlFile

XLIFF_SUFFIXES = frozenset({".xlf", ".xliff", ".xlf2", ".sdlxliff", ".mqxliff", ".mxliff"})
PO_SUFFIXES = frozenset({".po", ".pot"})
SGML_SUFFIXES = (".sgm", ".sgml")  # of WMT's test sets
LOCALE_FOLDERS = frozenset("locales locale _locales i18n l10n lang languages translations".split())
_LANGUAGE = re.compile(r"(?:.*[._-])?([a-z]{2})(?:[-_](?:r?[A-Z]{2}|[A-Z][a-z]{3}))*")
Group = tuple[Any, list[Unit]]  # an element or message of the file, and its units

_READERS: Mapping[str, str] = {  # "module:function" by suffix, imported when a file needs it
    ".json": "structured:read_json",
    ".arb": "structured:read_json",
    ".yml": "structured:read_yaml",
    ".yaml": "structured:read_yaml",
    ".xcstrings": "structured:read_xcstrings",
    ".stringsdict": "structured:read_stringsdict",
    ".strings": "plain_formats:read_strings",
    ".properties": "plain_formats:read_properties",
    ".ftl": "plain_formats:read_fluent",
    ".xml": "android:read_android",
    ".srt": "subtitles:read_subtitles",
    ".vtt": "subtitles:read_subtitles",
}
BILINGUAL_SUFFIXES = XLIFF_SUFFIXES | PO_SUFFIXES | {".tmx", ".xcstrings"}
SUFFIXES = BILINGUAL_SUFFIXES | {*_READERS}


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
    if suffix == ".json":
        from tertium.localization.structured import is_message_file

        return Path(path).is_file() and is_message_file(str(path))
    if suffix == ".xml":
        return Path(path).is_file() and root_element(str(path)).local == "resources"
    return suffix in SUFFIXES


def root_element(path: str) -> Element:
    """Return the root element of an XML file without its content."""
    from tertium.localization.xml_elements import XmlFile

    for _, element in XmlFile(path, ()).elements():
        return element
    raise DataError(f"{path}: not XML: no element")


def open_groups(path: str | Path, languages: Languages) -> tuple[XmlFile | PoFile, Iterator[Group]]:
    """Open a file that scores can be written to: return it and its groups of units."""
    from tertium.localization.xml_elements import XmlFile

    name, suffix = str(path), suffix_of(path)
    if suffix in PO_SUFFIXES:
        from tertium.localization import po

        file = po.PoFile(name)
        return file, po.read_groups(file, languages)
    root = root_element(name)
    if suffix == ".tmx":
        from tertium.localization import tmx

        tmx.check_version(root, name)
        xml = XmlFile(name, tmx.WANTED, structure=tmx.STRUCTURE)
        return xml, tmx.read_groups(xml, languages)
    if root.local != "xliff":
        raise DataError(f"{name}, line {root.line}: expected <xliff>, found <{root.local}>")
    version = root.get("version", "1.2")
    if version[:2] not in ("1.", "2."):
        raise DataError(f"{name}: XLIFF version {version!r}: expected 1.x or 2.x")
    module = importlib.import_module(f"tertium.localization.xliff{version[0]}")
    xml = XmlFile(name, module.WANTED, structure=module.STRUCTURE)
    return xml, module.read_groups(xml, languages)


def read_units(path: str | Path, languages: Languages | None = None) -> Iterator[Unit]:
    """Yield the units of a file one by one; `languages` are wanted ones, completed on the way.

    XML files are read in parts: memory does not grow with their size. Units of formats with one
    language have a target only.
    """
    languages = languages or Languages()
    suffix = suffix_of(path)
    if suffix in _READERS:
        module, function = _READERS[suffix].split(":")
        read = getattr(importlib.import_module(f"tertium.localization.{module}"), function)
        yield from read(str(path), languages)
    elif suffix in SUFFIXES:
        for _, units in open_groups(path, languages)[1]:
            yield from units
    else:
        raise DataError(f"{path}: not a localization file; known are {', '.join(sorted(SUFFIXES))}")


def read_catalog(path: str | Path, languages: Languages | None = None) -> Catalog:
    """Read a localization file.

    Parameters
    ----------
    path
        A file of any format of this package.
    languages
        The languages wanted of a file with several; others are those that the file declares.
    """
    declared = Languages(languages.source, languages.target) if languages else Languages()
    units = tuple(read_units(path, declared))
    if suffix_of(path) not in BILINGUAL_SUFFIXES:
        declared.target = declared.target or language_in_path(path)
    return Catalog(str(path), units, declared)


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
