"""XLIFF 1.0 to 2.2: units, which may be divided into segments."""

from __future__ import annotations

from collections.abc import Iterator

from tertium.core.errors import DataError
from tertium.files.annotations import Place, blanks_and_element
from tertium.files.units import OWN, Catalog, Unit, Units
from tertium.files.xml_elements import XML_LANGUAGE, Element, InlineReader, XmlFile

_NOTE_1 = (
    f'<{{0}}note from="{OWN}" priority="{{{{priority}}}}" annotates="{{{{side}}}}">{{{{text}}}}'
    "</{0}note>"
)
_NOTE_2 = (
    f'<{{0}}note category="{OWN}" appliesTo="{{{{side}}}}" priority="{{{{priority}}}}">'
    "{{text}}</{0}note>"
)
# name, source, target, state and line
_Segment = tuple[str, Element | None, Element | None, str, int]


def read_xliff(catalog: Catalog) -> Units:
    """Read the segments of all units."""
    file = XmlFile(catalog.path, ("trans-unit", "unit"))
    languages = catalog.languages
    elements = file.elements()
    root = next(elements)
    if root.local != "xliff":
        raise DataError(f"{catalog.path}, line {root.line}: expected <xliff>, got <{root.local}>")
    if root.get("version", "1.2")[:2] not in ("1.", "2."):
        raise DataError(f"{catalog.path}: XLIFF {root.get('version')}: expected version 1 or 2")
    catalog.encoding = file.encoding
    for element in elements:
        scope: dict[str, str] = {}  # attributes of all elements around it
        for parent in (*element.parents, element):
            scope |= parent.attributes
        source = scope.get("srcLang") or scope.get("source-language", "")
        target = scope.get("trgLang") or scope.get("target-language", "")
        if not target and (translation := element.first("target")):
            target = translation.get(XML_LANGUAGE)
        languages.source = languages.source or source
        languages.target = languages.target or target
        yield from _read_unit(element, scope, file)


def _read_unit(element: Element, scope: dict[str, str], file: XmlFile) -> Units:
    """Yield the segments of a unit."""
    reader = InlineReader(file)
    contexts = [element.get("name")]
    for group in element.elements("context-group"):
        contexts += [context.text().strip() for context in group.elements("context")]
    if element.get("size-unit") == "char":
        limit = element.get("maxwidth")
    else:  # `25` or `10,25`; `*` is no limit
        limit = element.get_local("sizeRestriction").rpartition(",")[2].strip()
    notes = [note.text().strip() for note in _find_notes(element) if not _is_own(note)]
    segments = [*(_find_segments if element.local == "unit" else _find_marks)(element)]
    is_one = len(segments) == 1
    name = element.get("id") or element.get("resname")
    files = [parent.get("id") for parent in element.parents if parent.local == "file"]
    place = _find_place(element)
    for suffix, source, target, state, line in segments:
        yield Unit(
            id=name if is_one else f"{name}:{suffix}",
            source=reader.read(source),
            target=reader.read(target),
            notes=tuple(filter(None, notes)),
            state=state,
            context=" ".join(filter(None, contexts)),
            document=scope.get("original") or "".join(files),
            max_length=int(limit) if is_one and limit.isdecimal() else 0,
            is_translatable=scope.get("translate") != "no",
            line=line,
            place=place,
        )


def _find_notes(element: Element) -> Iterator[Element]:
    for parent in (element, *element.elements("notes")):
        yield from parent.elements("note")


def _is_own(element: Element) -> bool:
    """Tell whether an element was inserted by an earlier run."""
    return OWN in (element.get("from"), element.get("category"))


def _find_segments(element: Element) -> Iterator[_Segment]:
    """Yield the segments of a unit of XLIFF 2."""
    for number, segment in enumerate(element.elements("segment"), start=1):
        name = segment.get("id") or str(number)
        state = segment.get("subState") or segment.get("state")
        yield name, segment.first("source"), segment.first("target"), state, segment.line


def _find_marks(element: Element) -> Iterator[_Segment]:
    """Yield the marked segments of a unit of XLIFF 1, or all of it as one."""
    source = element.first("source")
    target = element.first("target")
    state = target.get("state") if target else ""
    if not state and element.get("approved") == "yes":
        state = "final"
    sources = _read_marks(element.first("seg-source"))
    targets = _read_marks(target)
    is_undivided = target and not targets and (target.elements() or target.text().strip())
    if not sources or is_undivided:
        yield "", source, target, state, element.line
        return
    # the states of segments in files of Trados
    states = {seg.get("id"): seg.get("conf") for seg in element.descendants() if seg.local == "seg"}
    for name, mark in sources.items():
        yield name, mark, targets.get(name), states.get(name) or state, mark.line


def _read_marks(element: Element | None) -> dict[str, Element]:
    """Return the segments of a source or target by name, or by number."""
    marks: dict[str, Element] = {}
    for mark in element.descendants() if element else ():
        if mark.local == "mrk" and mark.get("mtype") == "seg":
            marks[mark.get("mid", str(len(marks)))] = mark
    return marks


def _find_place(element: Element) -> Place | None:
    """Return the place of the notes of a unit."""
    prefix = element.name.removesuffix(element.local)
    if element.local == "trans-unit":
        target = element.first("target")
        anchor = target or element.first("seg-source") or element.first("source")
        if not anchor:
            return None
        removed = blanks_and_element(filter(_is_own, element.elements("note")))
        template = _NOTE_1.format(prefix)
        return Place(anchor.end, template, removed, anchor.blanks)
    content = element.elements("originalData", "segment", "ignorable")
    if not content:
        return None
    containers = element.elements("notes")
    template = _NOTE_2.format(prefix)
    members = [note for container in containers for note in container.elements()]
    removed = blanks_and_element(filter(_is_own, members))
    if len(removed) < len(members):  # after the notes of other tools
        last = members[-1]
        return Place(last.end, template, removed, last.blanks)
    first = content[0]
    inner = (*first.elements(), first)[0].blanks
    outer = first.blanks
    tags = f"<{prefix}notes>", f"</{prefix}notes>"
    removed = blanks_and_element(containers)
    return Place(outer[0], template, removed, inner, tags, outer)
