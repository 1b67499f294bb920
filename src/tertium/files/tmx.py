"""TMX 1.1 to 1.4b: translation units with variants in two or more languages."""

from __future__ import annotations

from tertium.core.errors import DataError, UsageError
from tertium.files.annotations import Place, blanks_and_element
from tertium.files.units import OWN, Catalog, Unit, Units, is_same_language
from tertium.files.xml_elements import XML_LANGUAGE, Element, InlineReader, XmlFile

ALL_LANGUAGES = "*all*"
OWN_TYPE = f"x-{OWN}-"
_PROP = f'<prop type="{OWN_TYPE}{{kind}}">{{text}}</prop>'


def read_tmx(catalog: Catalog) -> Units:
    """Read a unit for every `tu`; the first variant in the target language is the target.

    The source language is that of the header. The target language is the wanted one, or the only
    other one.
    """
    file = XmlFile(catalog.path, ("header", "tu"))
    languages = catalog.languages
    has_wanted_source = bool(languages.source)
    has_wanted_target = bool(languages.target)
    elements = file.elements()
    root = next(elements)
    if root.local != "tmx":
        raise DataError(f"{catalog.path}: expected a TMX file, found <{root.local}>")
    catalog.encoding = file.encoding
    for number, element in enumerate(elements):
        if element.local == "tu":
            names = [prop.text() for prop in element.elements("prop") if prop.get("type") == "id"]
            name = element.get("tuid") or "".join(names[:1]).strip() or f"tu{number}"
            yield from _read_unit(element, name, file, catalog, has_wanted_target)
        elif not has_wanted_source:
            languages.source = _declared_language(element)


def _declared_language(element: Element) -> str:
    return element.get("srclang").replace(ALL_LANGUAGES, "")


def _read_unit(
    element: Element, name: str, file: XmlFile, catalog: Catalog, has_wanted_target: bool
) -> Units:
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
        is_source = is_same_language(code, source_language)
        if source is None and is_source:
            source = segment
            continue
        if not has_wanted_target and not is_source:
            languages.target = languages.target or code
            if not is_same_language(code, languages.target):
                raise UsageError(
                    f"{catalog.path}, line {element.line}: translations into {languages.target} "
                    f"and {code}: choose one with --target-language"
                )
        if target is None and languages.target and is_same_language(code, languages.target):
            target = segment
    if source is not None and languages.target:
        reader = InlineReader(file)
        yield Unit(
            id=name,
            source=reader.read(source),
            target=reader.read(target),
            notes=tuple(note.text().strip() for note in element.elements("note")),
            line=element.line,
            place=_find_place(element),
        )


def _find_place(element: Element) -> Place:
    """Return the position for `prop`s before the variants of a `tu`."""
    ours = [p for p in element.elements("prop") if p.get("type").startswith(OWN_TYPE)]
    blanks = element.elements()[0].blanks
    return Place(element.inner_start, _PROP, blanks_and_element(ours), blanks)
