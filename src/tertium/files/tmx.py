"""TMX 1.1 to 1.4b: translation units with variants in two or more languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tertium.core.errors import DataError, UsageError
from tertium.files.annotations import Annotated, FileEdits, format_element
from tertium.files.inline_markup import InlineReader, Kind
from tertium.files.units import OWN, Catalog, Unit, is_same_language
from tertium.files.xml_elements import XML_LANGUAGE, Element, XmlFile

CODES: Mapping[str, Kind] = {
    "ph": "single",
    "it": "single",
    "ut": "single",
    "bpt": "open",
    "ept": "close",
}
ALL_LANGUAGES = "*all*"


def read_tmx(catalog: Catalog) -> Iterator[Unit]:
    """Read a unit for every `tu`; the first variant in the target language is the target.

    The source language is that of the header. The target language is the wanted one, or the only
    other one.
    """
    file, languages = XmlFile(catalog.path, ("tu",), text_depth=2), catalog.languages
    has_wanted_source, has_wanted_target = bool(languages.source), bool(languages.target)
    for number, (event, element) in enumerate(file.events()):
        if number == 0 and element.local != "tmx":
            raise DataError(f"{catalog.path}: expected a TMX file, found <{element.local}>")
        if element.local == "header" and event == "start" and not has_wanted_source:
            languages.source = _declared_language(element)
        if event == "unit":
            catalog.encoding = file.encoding
            names = [prop.text() for prop in element.elements("prop") if prop.get("type") == "id"]
            name = element.get("tuid") or "".join(names[:1]).strip() or f"tu{number}"
            yield from _read_unit(element, name, file, catalog, has_wanted_target)
            if catalog.has_places:
                element.drop_texts(1)


def _declared_language(element: Element) -> str:
    return element.get("srclang").replace(ALL_LANGUAGES, "")


def _code_id(element: Element) -> str:
    is_paired = CODES[element.local] in ("open", "close")
    return element.get("i" if is_paired else "x")


def _read_unit(
    element: Element, name: str, file: XmlFile, catalog: Catalog, has_wanted_target: bool
) -> Iterator[Unit]:
    """Yield the unit of a `tu`, if it has the source language."""
    languages = catalog.languages
    variants = []
    for variant in element.elements("tuv"):
        if segment := variant.first("seg"):
            variants.append((variant.get(XML_LANGUAGE) or variant.get("lang"), segment))
    source_language = _declared_language(element) or languages.source
    if not source_language and variants:
        source_language = languages.source = variants[0][0]
    source = target = None
    for code, segment in variants:
        if source is None and is_same_language(code, source_language):
            source = segment
            continue
        if not has_wanted_target and not is_same_language(code, source_language):
            languages.target = languages.target or code
            if not is_same_language(code, languages.target):
                raise UsageError(
                    f"{catalog.path}, line {element.line}: translations into {languages.target} "
                    f"and {code}: choose one with --target-language"
                )
        if target is None and languages.target and is_same_language(code, languages.target):
            target = segment
    if source is not None and languages.target:
        reader = InlineReader(CODES, _code_id, file)
        yield Unit(
            id=name,
            source=reader.read(source),
            target=reader.read(target),
            notes=tuple(note.text().strip() for note in element.elements("note")),
            line=element.line,
            place=catalog.keep(element),
        )


def annotate(element: Element, annotated: Annotated, edits: FileEdits) -> None:
    """Add scores and findings of a `tu` as `prop`s before its variants."""
    for prop in element.elements("prop"):
        if prop.get("type").startswith(f"x-{OWN}-"):
            edits.remove(element, prop)
    position = element.inner_start
    gap = edits.blanks(position, element.elements()[0].start)

    def add_property(name: str, text: str) -> None:
        edits.insert(position, gap + format_element("prop", text, {"type": f"x-{OWN}-{name}"}))

    for unit, annotation in annotated:
        for name, score in annotation.format_scores().items():
            add_property(name, score)
        for span in annotation.findings:
            add_property("finding", edits.describe(span, unit))
