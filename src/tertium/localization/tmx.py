"""TMX 1.1 to 1.4b: translation units with variants in two or more languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tertium.errors import DataError, UsageError
from tertium.localization.inline_markup import InlineReader, Kind, PlaceholderNames
from tertium.localization.units import Languages, Unit, is_same_language
from tertium.localization.xml_elements import XML_LANGUAGE, Element, XmlFile

WANTED = ("tu",)
STRUCTURE = frozenset({"tu", "tuv"})
CODES: Mapping[str, Kind] = {
    "ph": "single",
    "it": "single",
    "ut": "single",
    "bpt": "open",
    "ept": "close",
}
ALL_LANGUAGES = "*all*"


def read_groups(file: XmlFile, languages: Languages) -> Iterator[tuple[Element, list[Unit]]]:
    """Yield every `tu` with its unit; the first variant in the target language is the target.

    The source language is that of the header. The target language is the wanted one, or the only
    other one.
    """
    wanted = Languages(languages.source, languages.target)
    for number, (event, element) in enumerate(file.elements()):
        if element.local == "header" and event == "start":
            declared = element.get("srclang")
            languages.source = wanted.source or ("" if declared == ALL_LANGUAGES else declared)
        if event == "unit":
            reader = InlineReader(CODES, _code_id, file)
            unit = _read_unit(element, reader, languages, bool(wanted.target))
            name = element.get("tuid") or _property(element, "id") or f"tu{number}"
            yield element, [] if unit is None else [replace(unit, id=name)]


def _code_id(element: Element) -> str:
    is_paired = CODES[element.local] in ("open", "close")
    return element.get("i") if is_paired else element.get("x")


def language_of(variant: Element) -> str:
    """Return the language of a variant (`tuv`)."""
    return variant.attributes.get(XML_LANGUAGE) or variant.get("lang")


def _property(element: Element, kind: str) -> str:
    return next((p.text().strip() for p in element.elements("prop") if p.get("type") == kind), "")


def _read_unit(
    element: Element, reader: InlineReader, languages: Languages, is_wanted: bool
) -> Unit | None:
    variants = [(language_of(v), seg) for v in element.elements("tuv") if (seg := v.first("seg"))]
    source_language = element.get("srclang").replace(ALL_LANGUAGES, "") or languages.source
    if not source_language and variants:
        source_language = languages.source = variants[0][0]
    source = next((seg for code, seg in variants if is_same_language(code, source_language)), None)
    translations = [(code, seg) for code, seg in variants if seg is not source]
    if not is_wanted:
        _find_target(translations, languages, source_language, reader.file.path, element.line)
    targets = [seg for code, seg in translations if is_same_language(code, languages.target)]
    if source is None or not languages.target:
        return None
    names = PlaceholderNames()
    texts = [reader.read(seg, names) for seg in (source, *targets)]
    return Unit(
        id="",
        source=texts[0],
        target=texts[1] if targets else None,
        alternatives=tuple(text.text for text in texts[2:]),
        notes=tuple(note.text().strip() for note in element.elements("note")),
        line=element.line,
    )


def _find_target(
    translations: list[tuple[str, Element]], languages: Languages, source: str, path: str, line: int
) -> None:
    for code, _ in translations:
        if is_same_language(code, source):
            continue
        languages.target = languages.target or code
        if not is_same_language(code, languages.target):
            raise UsageError(
                f"{path}, line {line}: translations into {languages.target} and {code}: choose one "
                "with --target-language"
            )


def check_version(element: Element, path: str) -> None:
    """Raise an error if the root element is not `tmx`."""
    if element.local != "tmx":
        raise DataError(f"{path}: expected a TMX file, found <{element.local}>")
