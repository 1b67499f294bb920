"""XLIFF 1.0 to 1.2: `trans-unit`s, also divided into segments (`mrk mtype="seg"`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tertium.localization.inline_markup import InlineReader, Kind, PlaceholderNames
from tertium.localization.units import OWN, Languages, Unit
from tertium.localization.xml_elements import XML_LANGUAGE, Element, XmlFile

WANTED = ("trans-unit", "bin-unit")
STRUCTURE = frozenset({"trans-unit", "bin-unit", "alt-trans", "context-group"})
CODES: Mapping[str, Kind] = {
    "g": "pair",
    "x": "single",
    "ph": "single",
    "it": "single",
    "bx": "open",
    "bpt": "open",
    "ex": "close",
    "ept": "close",
}


def read_groups(file: XmlFile, languages: Languages) -> Iterator[tuple[Element, list[Unit]]]:
    """Yield every `trans-unit` with its units, one for each segment."""
    document, closed_groups = "", 0
    for event, element in file.elements():
        if element.local == "file" and event == "start":
            document = element.get("original") or document
            languages.source = languages.source or element.get("source-language")
            languages.target = languages.target or element.get("target-language")
        if element.local == "group" and element.get("translate") == "no":
            closed_groups += 1 if event == "start" else -1
        if event == "unit" and element.local == "trans-unit":
            reader = InlineReader(CODES, _code_id, file)
            units = _read_unit(element, reader, document, is_closed=closed_groups > 0)
            target = element.first("target")
            if target is not None and not languages.target:
                languages.target = target.attributes.get(XML_LANGUAGE, "")
            yield element, units


def _code_id(element: Element) -> str:
    is_paired = CODES[element.local] in ("open", "close")
    return (element.get("rid") if is_paired else "") or element.get("id")


def _read_unit(
    element: Element, reader: InlineReader, document: str, *, is_closed: bool
) -> list[Unit]:
    source, target = element.first("source"), element.first("target")
    names = PlaceholderNames()
    name = element.get("id") or element.get("resname")
    unit = Unit(
        id=name,
        source=reader.read(source, names) if source is not None else None,
        target=reader.read(target, names) if target is not None else None,
        alternatives=tuple(_read_alternatives(element, reader)),
        notes=tuple(
            text
            for note in element.elements("note")
            if note.get("from") != OWN and (text := note.text().strip())
        ),
        state=_read_state(element, target),
        context=" ".join(
            context.text().strip()
            for group in element.elements("context-group")
            for context in group.elements("context")
        ),
        document=document,
        max_length=_read_limit(element),
        is_translatable=not is_closed and element.get("translate") != "no",
        line=element.line,
    )
    return _read_segments(element, unit, reader, names) or [unit]


def _read_alternatives(element: Element, reader: InlineReader) -> Iterator[str]:
    for alternative in element.elements("alt-trans"):
        for target in alternative.elements("target"):
            yield reader.read(target, PlaceholderNames()).text


def _read_state(element: Element, target: Element | None) -> str:
    """Return the state of the target, `final` if the unit is approved without a state."""
    state = target.get("state") if target is not None else ""
    return state or ("final" if element.get("approved") == "yes" else "")


def _read_limit(element: Element) -> int:
    """Return `maxwidth` if it counts characters; its default unit is pixels."""
    limit = element.get("maxwidth")
    return int(limit) if limit.isdecimal() and element.get("size-unit") == "char" else 0


def _read_segments(
    element: Element, unit: Unit, reader: InlineReader, names: PlaceholderNames
) -> list[Unit]:
    """Return a unit for each segment; nothing if source or target are not divided."""
    sources = _segments(element.first("seg-source"))
    targets = _segments(element.first("target"))
    if not sources or (not targets and unit.target is not None and unit.target.text.strip()):
        return []
    states = {
        segment.get("id"): segment.get("conf")
        for child in element.descendants()
        if child.local == "seg-defs"
        for segment in child.elements("seg")
    }
    units = []
    for mid, source in sources.items():
        target = targets.get(mid)
        units.append(
            Unit(
                id=f"{unit.id}:{mid}" if len(sources) > 1 else unit.id,
                source=reader.read(source, names),
                target=reader.read(target, names) if target is not None else None,
                alternatives=unit.alternatives if len(sources) == 1 else (),
                notes=unit.notes,
                state=states.get(mid) or unit.state,
                context=unit.context,
                document=unit.document,
                max_length=unit.max_length if len(sources) == 1 else 0,
                is_translatable=unit.is_translatable,
                line=source.line,
            )
        )
    return units


def _segments(element: Element | None) -> dict[str, Element]:
    if element is None:
        return {}
    marks = (e for e in element.descendants() if e.local == "mrk" and e.get("mtype") == "seg")
    return {mark.get("mid", str(number)): mark for number, mark in enumerate(marks)}
