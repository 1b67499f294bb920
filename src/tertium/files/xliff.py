"""XLIFF 1.0 to 2.2: units, which may be divided into segments."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tertium.core.errors import DataError
from tertium.core.spans import Span
from tertium.files.annotations import (
    Annotated,
    FileEdits,
    format_element,
    format_score,
    format_tag,
    prefixed,
    previous_end,
)
from tertium.files.inline_markup import InlineReader, Kind
from tertium.files.units import OWN, Catalog, Unit
from tertium.files.xml_elements import XML_LANGUAGE, Element, XmlFile

ITS = "http://www.w3.org/2005/11/its"
METADATA = "urn:oasis:names:tc:xliff:metadata:2.0"
PRIORITIES = {"critical": "1", "major": "2", "minor": "3"}
DEFAULT_PRIORITY = "5"
CODES_1: Mapping[str, Kind] = {
    "g": "pair",
    "x": "single",
    "ph": "single",
    "it": "single",
    "bx": "open",
    "bpt": "open",
    "ex": "close",
    "ept": "close",
}
CODES_2: Mapping[str, Kind] = {
    "ph": "single",
    "pc": "pair",
    "sc": "open",
    "ec": "close",
    "cp": "character",
    "sm": "nothing",
    "em": "nothing",
}
_DECLARATION = f' xmlns:mda="{METADATA}"'
_OWN_ATTRIBUTES = re.compile(
    rf' xmlns:its="{re.escape(ITS)}" its:annotatorsRef="mt-confidence\|tertium"'
    r' its:mtConfidence="[^"]*"'
)


def read_xliff(catalog: Catalog) -> Iterator[Unit]:
    """Read the segments of all units."""
    file = XmlFile(catalog.path, ("trans-unit", "bin-unit", "unit"), text_depth=2)
    languages = catalog.languages
    document, version = "", ""
    translate = ["yes"]  # of the elements around a unit
    for event, element in file.events():
        if event == "end":
            translate.pop()
        elif event == "start":
            translate.append(element.get("translate") or translate[-1])
            if not version:
                version = _check_version(element, catalog.path)
                catalog.encoding = file.encoding
            source = element.get("srcLang") or element.get("source-language")
            target = element.get("trgLang") or element.get("target-language")
            languages.source = languages.source or source
            languages.target = languages.target or target
            if element.local == "file":
                fallback = element.get("id") if version == "2" else document
                document = element.get("original") or fallback
        elif version == "2" and element.local == "unit":
            is_open = (element.get("translate") or translate[-1]) != "no"
            yield from _read_unit(element, catalog.keep(element), file, document, is_open)
        elif version == "1" and element.local == "trans-unit":
            is_open = "no" not in (*translate, element.get("translate"))
            if not languages.target and (translation := element.first("target")):
                languages.target = translation.get(XML_LANGUAGE)
            yield from _read_trans_unit(element, catalog.keep(element), file, document, is_open)
        if event == "unit" and catalog.has_places:
            element.drop_texts(2)


def _check_version(root: Element, path: str) -> str:
    """Return `1` or `2`."""
    if root.local != "xliff":
        raise DataError(f"{path}, line {root.line}: expected <xliff>, found <{root.local}>")
    version = root.get("version", "1.2")
    if version[:2] not in ("1.", "2."):
        raise DataError(f"{path}: XLIFF version {version!r}: expected 1.x or 2.x")
    return version[0]


def _code_id_1(element: Element) -> str:
    is_paired = CODES_1[element.local] in ("open", "close")
    pair = element.get("rid") if is_paired else ""
    return pair or element.get("id")


def _read_trans_unit(
    element: Element, place: Any, file: XmlFile, document: str, is_translatable: bool
) -> Sequence[Unit]:
    """Return the unit of a `trans-unit`, or one for each of its segments."""
    reader = InlineReader(CODES_1, _code_id_1, file)
    source, target = element.first("source"), element.first("target")
    state = target.get("state") if target is not None else ""
    if not state and element.get("approved") == "yes":
        state = "final"
    limit = element.get("maxwidth")
    is_in_characters = limit.isdecimal() and element.get("size-unit") == "char"  # else in pixels
    contexts = []
    for group in element.elements("context-group"):
        contexts += [context.text().strip() for context in group.elements("context")]
    unit = Unit(
        id=element.get("id") or element.get("resname"),
        source=reader.read(source),
        target=reader.read(target),
        notes=_read_notes(element, "from"),
        state=state,
        context=" ".join(contexts),
        document=document,
        max_length=int(limit) if is_in_characters else 0,
        is_translatable=is_translatable,
        line=element.line,
        place=place,
    )
    sources = _find_segments(element.first("seg-source"))
    targets = _find_segments(target)
    is_undivided = not targets and unit.target is not None and bool(unit.target.text.strip())
    if not sources or is_undivided:
        return [unit]
    states = {}
    for child in element.descendants():
        if child.local == "seg-defs":
            for segment in child.elements("seg"):
                states[segment.get("id")] = segment.get("conf")
    is_one = len(sources) == 1
    return [
        replace(
            unit,
            id=unit.id if is_one else f"{unit.id}:{mid}",
            source=reader.read(segment),
            target=reader.read(targets.get(mid)),
            state=states.get(mid) or unit.state,
            max_length=unit.max_length if is_one else 0,
            line=segment.line,
        )
        for mid, segment in sources.items()
    ]


def _find_segments(element: Element | None) -> dict[str, Element]:
    """Return the segments of a source or target by name, or by number."""
    segments: dict[str, Element] = {}
    for mark in element.descendants() if element is not None else ():
        if mark.local == "mrk" and mark.get("mtype") == "seg":
            segments[mark.get("mid", str(len(segments)))] = mark
    return segments


def _read_notes(element: Element, author: str) -> tuple[str, ...]:
    """Return the notes of others; an attribute names the author."""
    notes = [note for note in element.elements("note") if note.get(author) != OWN]
    return tuple(text for note in notes if (text := note.text().strip()))


def _code_id_2(element: Element) -> str:
    return element.get("startRef") or element.get("id")


def _read_unit(
    element: Element, place: Any, file: XmlFile, document: str, is_translatable: bool
) -> Iterator[Unit]:
    """Yield the segments of a `unit`."""
    reader = InlineReader(CODES_2, _code_id_2, file)
    segments = element.elements("segment")
    is_one = len(segments) == 1
    # `25` or `10,25`; `*` is no limit
    limit = element.get_local("sizeRestriction").rpartition(",")[2].strip()
    notes: list[str] = []
    for group in element.elements("notes"):
        notes += _read_notes(group, "category")
    for number, segment in enumerate(segments, start=1):
        name = element.get("id")
        yield Unit(
            id=name if is_one else f"{name}:{segment.get('id') or number}",
            source=reader.read(segment.first("source")),
            target=reader.read(segment.first("target")),
            notes=tuple(notes),
            state=segment.get("subState") or segment.get("state"),
            context=element.get("name"),
            document=document,
            max_length=int(limit) if is_one and limit.isdecimal() else 0,
            is_translatable=is_translatable,
            line=segment.line,
            place=place,
        )


def annotate(element: Element, annotated: Annotated, edits: FileEdits) -> None:
    """Replace our notes and scores of a unit."""
    if element.local == "unit":
        _annotate_unit(element, annotated, edits)
    else:
        _annotate_trans_unit(element, annotated, edits)


def _annotate_trans_unit(element: Element, annotated: Annotated, edits: FileEdits) -> None:
    """Add `note`s after the target of a `trans-unit`, and ITS `mtConfidence` to the target."""
    for note in element.elements("note"):
        if note.get("from") == OWN:
            edits.remove(element, note)
    target = element.first("target")
    anchor = target or element.first("seg-source") or element.first("source")
    if anchor is None:
        return
    gap = edits.blanks_before(element, anchor)
    name = prefixed(element, "note")

    def add_note(text: str, priority: str, side: str) -> None:
        attributes = {"from": OWN, "priority": priority, "annotates": side}
        edits.insert(anchor.end, gap + format_element(name, text, attributes))

    for unit, annotation in annotated:
        label = _segment_label(unit, annotated)
        for scores in annotation.describe_scores():
            add_note(label + scores, DEFAULT_PRIORITY, "general")
        for span in annotation.findings:
            add_note(label + edits.describe(span, unit), _priority(span), _side(span))
    if target is not None:
        _annotate_target(target, annotated, edits)


def _segment_label(unit: Unit, annotated: Annotated) -> str:
    """Return the name of a segment with a colon, if its unit has several."""
    return f"{unit.id.rpartition(':')[2]}: " if len(annotated) > 1 else ""


def _priority(span: Span) -> str:
    return PRIORITIES.get(span.severity, DEFAULT_PRIORITY)


def _side(span: Span) -> str:
    return "source" if span.side == "source" else "target"


def _annotate_target(target: Element, annotated: Annotated, edits: FileEdits) -> None:
    """Replace the confidence of a target: the mean of its segments."""
    encoding = edits.encoding
    position = target.start + len(f"<{target.name}".encode(encoding))
    tag = edits.text(target.start, target.inner_start)
    if old := _OWN_ATTRIBUTES.search(tag):
        edits.replace(position, position + len(old[0].encode(encoding)))
    elif "its:mtConfidence" in target.attributes:
        return  # of another tool
    confidences = [annotation.confidence for _, annotation in annotated]
    numbers = [value for value in confidences if value is not None and not math.isnan(value)]
    if numbers:
        value = format_score(sum(numbers) / len(numbers))
        reference = f'its:annotatorsRef="mt-confidence|{OWN}"'
        edits.insert(position, f' xmlns:its="{ITS}" {reference} its:mtConfidence="{value}"')


def _annotate_unit(element: Element, annotated: Annotated, edits: FileEdits) -> None:
    """Add scores as metadata and findings as notes to a `unit`."""
    content = element.elements("originalData", "segment", "ignorable")
    if not content:
        return
    metadata = element.first("metadata")
    members = metadata.elements() if metadata else []
    has_others = any(member.get("category") != OWN for member in members)
    groups = _format_metadata(annotated, _DECLARATION if has_others else "")
    after_modules = (element.elements("notes") or content)[0]
    tags = f"<mda:metadata{_DECLARATION}>", "</mda:metadata>"
    _replace_members(element, "metadata", groups, tags, after_modules, edits)
    notes = []
    for unit, annotation in annotated:
        for span in annotation.findings:
            text = _segment_label(unit, annotated) + edits.describe(span, unit)
            attributes = {"category": OWN, "appliesTo": _side(span), "priority": _priority(span)}
            notes.append(format_element(prefixed(element, "note"), text, attributes))
    name = prefixed(element, "notes")
    _replace_members(element, "notes", notes, (f"<{name}>", f"</{name}>"), content[0], edits)


def _format_metadata(annotated: Annotated, declaration: str) -> list[str]:
    """Return one group with all scores, nothing if there are none."""
    content = ""
    for unit, annotation in annotated:
        scores = annotation.format_scores().items()
        metas = [format_element("mda:meta", score, {"type": name}) for name, score in scores]
        if metas and len(annotated) > 1:
            attributes = {"category": f"segment {unit.id.rpartition(':')[2]}"}
            metas = [format_tag("mda:metaGroup", attributes), *metas, "</mda:metaGroup>"]
        content += "".join(metas)
    opening = f'<mda:metaGroup{declaration} category="{OWN}">'
    return [f"{opening}{content}</mda:metaGroup>"] if content else []


def _replace_members(
    parent: Element,
    name: str,
    added: Sequence[str],
    tags: tuple[str, str],
    before: Element,
    edits: FileEdits,
) -> None:
    """Replace our members of a container; create it before an element, remove it when empty."""
    container = parent.first(name)
    members = container.elements() if container else []
    own = [member for member in members if member.get("category") == OWN]
    if container and len(own) < len(members):
        for member in own:
            edits.remove(container, member)
        gap = edits.blanks_before(container, members[-1])
        edits.insert(members[-1].end, "".join(gap + member for member in added))
        return
    if container and (own or added):
        edits.remove(parent, container)
    if added:
        gap = edits.blanks_before(parent, before)
        inner = gap + _indentation(parent, edits) if gap else ""
        content = "".join(inner + member for member in added)
        edits.insert(previous_end(parent, before), gap + tags[0] + content + gap + tags[1])


def _indentation(element: Element, edits: FileEdits) -> str:
    """Return the blanks that a child has more than its parent's end tag."""
    children = element.elements()
    inner = edits.blanks(element.inner_start, children[0].start)
    outer = edits.blanks(children[-1].end, element.inner_end)
    return inner.removeprefix(outer) if inner.startswith(outer) else ""
