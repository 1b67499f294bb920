"""XLIFF 2.0 to 2.2: units with one or more segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tertium.localization.inline_markup import InlineReader, Kind, PlaceholderNames
from tertium.localization.units import OWN, Languages, Unit
from tertium.localization.xml_elements import Element, XmlFile

WANTED = ("unit",)
STRUCTURE = frozenset(
    {
        "unit",
        "segment",
        "ignorable",
        "notes",
        "originalData",
        "metadata",
        "metaGroup",
        "matches",
        "match",
    }
)
CODES: Mapping[str, Kind] = {
    "ph": "single",
    "pc": "pair",
    "sc": "open",
    "ec": "close",
    "cp": "character",
    "sm": "nothing",
    "em": "nothing",
}


def read_groups(file: XmlFile, languages: Languages) -> Iterator[tuple[Element, list[Unit]]]:
    """Yield every `unit` element with its units, one for each segment."""
    document = ""
    translate = ["yes"]
    for event, element in file.elements():
        if event == "start":
            if element.local == "xliff":
                languages.source = languages.source or element.get("srcLang")
                languages.target = languages.target or element.get("trgLang")
            elif element.local == "file":
                document = element.get("original") or element.get("id")
            translate.append(element.get("translate") or translate[-1])
        elif event == "end":
            translate.pop()
        else:
            reader = InlineReader(CODES, _code_id, file)
            is_translatable = (element.get("translate") or translate[-1]) != "no"
            yield element, [*_read_unit(element, reader, document, is_translatable)]


def _code_id(element: Element) -> str:
    return element.get("startRef") or element.get("id")


def _read_unit(
    element: Element, reader: InlineReader, document: str, is_translatable: bool
) -> Iterator[Unit]:
    segments = element.elements("segment")
    notes = tuple(
        text
        for group in element.elements("notes")
        for note in group.elements("note")
        if note.get("category") != OWN and (text := note.text().strip())
    )
    names = PlaceholderNames()
    for number, segment in enumerate(segments, start=1):
        source, target = segment.first("source"), segment.first("target")
        yield Unit(
            id=segment_name(element, segment, number, len(segments)),
            source=reader.read(source, names) if source is not None else None,
            target=reader.read(target, names) if target is not None else None,
            alternatives=tuple(_read_alternatives(element, reader)) if len(segments) == 1 else (),
            notes=notes,
            state=segment.get("subState") or segment.get("state"),
            context=element.get("name"),
            document=document,
            max_length=_read_limit(element) if len(segments) == 1 else 0,
            is_translatable=is_translatable,
            line=segment.line,
        )


def segment_name(unit: Element, segment: Element, number: int, count: int) -> str:
    """Return the id of a unit, with that of the segment if there are several."""
    own = segment.get("id") or str(number)
    return unit.get("id") if count == 1 else f"{unit.get('id')}:{own}"


def _read_alternatives(element: Element, reader: InlineReader) -> Iterator[str]:
    for matches in element.elements("matches"):
        for match in matches.elements("match"):
            for target in match.elements("target"):
                yield reader.read(target, PlaceholderNames()).text


def _read_limit(element: Element) -> int:
    """Return the maximum of `slr:sizeRestriction`: `25` or `10,25`; `*` is no limit."""
    limit = element.get_local("sizeRestriction").rpartition(",")[2].strip()
    return int(limit) if limit.isdecimal() else 0
