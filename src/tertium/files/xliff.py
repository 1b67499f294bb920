"""XLIFF 1.0 to 2.2: units, which may be divided into segments."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tertium.core.errors import DataError
from tertium.files.annotations import (
    Annotated,
    FileEdits,
    Place,
    blanks_and_element,
    escape_xml,
    short_name,
)
from tertium.files.units import OWN, Catalog, Unit, Units
from tertium.files.xml_elements import XML_LANGUAGE, Element, InlineReader, XmlFile

ITS = "http://www.w3.org/2005/11/its"
METADATA = "urn:oasis:names:tc:xliff:metadata:2.0"
_NOTE_1 = (
    f'<{{0}}note from="{OWN}" priority="{{{{priority}}}}" annotates="{{{{side}}}}">{{{{text}}}}'
    "</{0}note>"
)
_NOTE_2 = (
    f'<{{0}}note category="{OWN}" appliesTo="{{{{side}}}}" priority="{{{{priority}}}}">'
    "{{text}}</{0}note>"
)
_DECLARATION = f' xmlns:mda="{METADATA}"'
_METADATA_TAGS = f"<mda:metadata{_DECLARATION}>", "</mda:metadata>"
_CONFIDENCE = f' xmlns:its="{ITS}" its:annotatorsRef="mt-confidence|{OWN}" its:mtConfidence="{{}}"'
_OWN_CONFIDENCE = re.compile(re.escape(_CONFIDENCE).replace(r"\{\}", '[^"]*'))
_OTHER_ITS = re.compile(r"\s(xmlns:its|its:(annotatorsRef|mtConfidence))\s*=")
# name, source, target, state and line
_Segment = tuple[str, Element | None, Element | None, str, int]


@dataclass(frozen=True, slots=True)
class _ConfidencePlace(Place):
    """The attributes of a target, for the mean confidence in its segments."""

    tag_end: int = 0

    def format(self, annotated: Annotated, edits: FileEdits) -> Iterator[str]:
        """Yield the attributes, and remove those of an earlier run; other tools keep theirs."""
        tag = edits.text(self.position, self.tag_end)
        if match := _OWN_CONFIDENCE.match(tag):
            edits.replace(self.position, self.position + len(match[0].encode(edits.encoding)))
        elif _OTHER_ITS.search(tag):
            return
        values = [annotation.confidence for _, annotation in annotated]
        numbers = [value for value in values if not math.isnan(value)]
        if numbers:
            yield self.template.format(f"{sum(numbers) / len(numbers):.6g}")


class _MetadataPlace(Place):
    """The `mda:metadata` of a unit of XLIFF 2."""

    __slots__ = ()

    def format(self, annotated: Annotated, edits: FileEdits) -> Iterator[str]:
        """Yield one group with all scores."""
        content = ""
        for unit, annotation in annotated:
            metas = ""
            for name, score in annotation.format_scores().items():
                metas += f'<mda:meta type="{_quote(name)}">{score}</mda:meta>'
            if metas and len(annotated) > 1:
                name = _quote(short_name(unit))
                metas = f'<mda:metaGroup category="segment {name}">{metas}</mda:metaGroup>'
            content += metas
        if content:
            declaration = "" if any(self.tags) else _DECLARATION
            yield f'<mda:metaGroup{declaration} category="{OWN}">{content}</mda:metaGroup>'


def _quote(text: str) -> str:
    """Return a text as an XML attribute writes it."""
    return escape_xml(text).replace('"', "&quot;")


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
    place = _find_place(element, file.encoding)
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


def _find_place(element: Element, encoding: str) -> Place | None:
    """Return the place of the notes of a unit, with that of scores for translation tools."""
    prefix = element.name.removesuffix(element.local)
    if element.local == "trans-unit":
        target = element.first("target")
        anchor = target or element.first("seg-source") or element.first("source")
        if not anchor:
            return None
        removed = blanks_and_element(filter(_is_own, element.elements("note")))
        template = _NOTE_1.format(prefix)
        notes = Place(anchor.end, template, removed, anchor.blanks, label="{}: ")
        if not target:
            return notes
        position = target.start + len(f"<{target.name}".encode(encoding))
        confidence = _ConfidencePlace(position, _CONFIDENCE, tag_end=target.inner_start)
        return replace(notes, scores=confidence)
    content = element.elements("originalData", "segment", "ignorable")
    if not content:
        return None
    containers = element.elements("notes")
    metadata = element.elements("metadata")
    after_metadata = (*containers, *content)[0]
    scores = _find_end(_MetadataPlace, metadata, after_metadata, "", _METADATA_TAGS)
    tags = f"<{prefix}notes>", f"</{prefix}notes>"
    notes = _find_end(Place, containers, content[0], _NOTE_2.format(prefix), tags)
    return replace(notes, has_scores=False, scores=scores)


def _find_end(
    create: Callable[..., Place],
    containers: Sequence[Element],
    before: Element,
    template: str,
    tags: tuple[str, str],
) -> Place:
    """Return the place after the members of other tools, or a new container before an element."""
    members = [member for container in containers for member in container.elements()]
    removed = blanks_and_element(filter(_is_own, members))
    if len(removed) < len(members):
        last = members[-1]
        return create(last.end, template, removed, last.blanks, label="{}: ")
    removed = blanks_and_element(containers)
    inner = (*before.elements(), before)[0].blanks
    outer = before.blanks
    return create(outer[0], template, removed, inner, tags, outer, label="{}: ")
