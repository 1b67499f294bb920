"""Scores and findings of units as XML elements or comments, and the edits that insert them.

An edit replaces bytes of the file. Elements that an earlier run inserted are removed with the
blanks before them, so that writing twice changes nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from tertium.localization.po import OWN_COMMENT, Message
from tertium.localization.units import OWN, InlineText, Unit
from tertium.localization.xml_elements import Element
from tertium.spans import Span

ITS = "http://www.w3.org/2005/11/its"
METADATA = "urn:oasis:names:tc:xliff:metadata:2.0"
PRIORITIES = {"critical": "1", "major": "2", "minor": "3"}
DEFAULT_PRIORITY = "5"
FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_OWN_ATTRIBUTES = re.compile(
    rf' xmlns:its="{re.escape(ITS)}" its:annotatorsRef="mt-confidence\|tertium"'
    r' its:mtConfidence="[^"]*"'
)

Edit = tuple[int, int, str]  # first byte, byte after the last, text to put there


@dataclass(frozen=True, slots=True)
class Annotation:
    """What to write about one unit: scores by metric, findings, and a confidence from 0 to 1."""

    scores: Mapping[str, float] = field(default_factory=dict)
    findings: Sequence[Span] = ()
    confidence: float | None = None


Annotated = Sequence[tuple[Unit, Annotation]]


class SourceBytes:
    """Access to parts of the file as text."""

    def __init__(self, data: bytes, encoding: str) -> None:
        self.data, self.encoding = data, encoding

    def text(self, start: int, end: int) -> str:
        return bytes(self.data[start:end]).decode(self.encoding)

    def blanks(self, start: int, end: int) -> str:
        """Return the text between two positions if it is blank, else nothing."""
        text = self.text(start, end)
        return "" if text.strip() else text

    def quote(self, text: InlineText | None, span: Span) -> str:
        """Return the marked part as the file writes it, with its markup; all of it is ""."""
        if text is None or (span.start, span.end) == (0, len(text.text)):
            return ""  # all of it
        place = text.byte_range(span.start, span.end)
        return self.text(*place) if place else text.text[span.start : span.end]


def format_score(value: float) -> str:
    """Return a score with six digits.

    >>> format_score(0.123456789), format_score(54.0)
    ('0.123457', '54')
    """
    return f"{value:.6g}"


def describe_scores(annotation: Annotation) -> str:
    """Return all scores in one line; missing ones are omitted."""
    scores = {name: score for name, score in annotation.scores.items() if not math.isnan(score)}
    return "; ".join(f"{name}: {format_score(score)}" for name, score in scores.items())


def describe_finding(span: Span, unit: Unit, file: SourceBytes) -> str:
    """Return category, severity, message and marked text of a finding in one line."""
    marked = file.quote(unit.source if span.side == "source" else unit.target, span)
    kind = f"{span.category or 'error'} ({span.severity})"
    text = f"{kind}: {span.message}" if span.message else kind
    where = "source" if span.side == "source" else "translation"
    return " ".join(f"{text} [{where}: {marked}]".split()) if marked else text


def _clean(text: str) -> str:
    return escape(FORBIDDEN.sub("\ufffd", text))


def _element(name: str, text: str, **attributes: str) -> str:
    attributes = {key.rstrip("_"): value for key, value in attributes.items()}
    tags = "".join(
        f" {key}={quoteattr(FORBIDDEN.sub('�', value))}" for key, value in attributes.items()
    )
    return f"<{name}{tags}>{_clean(text)}</{name}>"


def _prefixed(parent: Element, name: str) -> str:
    """Return a name with the prefix of another element."""
    prefix = parent.name.rpartition(":")[0]
    return f"{prefix}:{name}" if prefix else name


def _previous_end(parent: Element, child: Element) -> int:
    """Return where the element before a child ends, else where its parent's content begins."""
    before = [e for e in parent.elements() if e.start < child.start]
    return before[-1].end if before else parent.inner_start


def _removals(parent: Element, own: Sequence[Element], file: SourceBytes) -> Iterator[Edit]:
    for child in own:
        start = _previous_end(parent, child)
        blanks = file.blanks(start, child.start)
        yield (start if blanks else child.start), child.end, ""


def _blanks_before(parent: Element, child: Element | None, file: SourceBytes) -> str:
    return file.blanks(_previous_end(parent, child), child.start) if child is not None else ""


def annotate_xliff1(element: Element, annotated: Annotated, file: SourceBytes) -> Iterator[Edit]:
    """Add `note`s after the target of a `trans-unit`, and ITS `mtConfidence` to the target."""
    own = [n for n in element.elements("note") if n.get("from") == OWN]
    yield from _removals(element, own, file)
    anchor = element.first("target") or element.first("seg-source") or element.first("source")
    if anchor is None:
        return
    blanks = _blanks_before(element, anchor, file)
    notes = []
    for unit, annotation in annotated:
        label = _segment_label(unit, annotated)
        if scores := describe_scores(annotation):
            notes.append(("general", DEFAULT_PRIORITY, label + scores))
        for span in annotation.findings:
            side = "source" if span.side == "source" else "target"
            text = label + describe_finding(span, unit, file)
            notes.append((side, PRIORITIES.get(span.severity, DEFAULT_PRIORITY), text))
    name = _prefixed(element, "note")
    added = "".join(
        blanks + _element(name, text, from_=OWN, priority=priority, annotates=side)
        for side, priority, text in notes
    )
    if added:
        yield anchor.end, anchor.end, added
    target = element.first("target")
    if target is not None:
        yield from _confidence_edits(target, [a.confidence for _, a in annotated], file)


def _confidence_edits(
    target: Element, confidences: Sequence[float | None], file: SourceBytes
) -> Iterator[Edit]:
    tag = file.text(target.start, target.inner_start)
    width = len("<".encode(file.encoding))
    position = target.start + width * len(f"<{target.name}")
    if old := _OWN_ATTRIBUTES.search(tag):
        yield position, position + len(old[0].encode(file.encoding)), ""
    elif "its:mtConfidence" in target.attributes:
        return  # of another tool
    numbers = [value for value in confidences if value is not None and not math.isnan(value)]
    if numbers:
        value = format_score(sum(numbers) / len(numbers))
        yield (
            position,
            position,
            f' xmlns:its="{ITS}" its:annotatorsRef="mt-confidence|{OWN}" '
            f'its:mtConfidence="{value}"',
        )


def annotate_xliff2(element: Element, annotated: Annotated, file: SourceBytes) -> Iterator[Edit]:
    """Add scores as metadata and findings as notes to a `unit`."""
    content = element.elements("originalData", "segment", "ignorable")
    if not content:
        return
    after_modules = (element.elements("notes") or content)[0]
    tags = f'<mda:metadata xmlns:mda="{METADATA}">', "</mda:metadata>"
    metadata = element.first("metadata")
    is_new = metadata is None or all(m.get("category") == OWN for m in metadata.elements())
    groups = _metadata_groups(annotated, has_prefix=is_new)
    yield from _container_edits(element, "metadata", groups, tags, after_modules, file)
    notes = [
        _element(
            _prefixed(element, "note"),
            _segment_label(unit, annotated) + describe_finding(span, unit, file),
            category=OWN,
            appliesTo="source" if span.side == "source" else "target",
            priority=PRIORITIES.get(span.severity, DEFAULT_PRIORITY),
        )
        for unit, annotation in annotated
        for span in annotation.findings
    ]
    name = _prefixed(element, "notes")
    tags = f"<{name}>", f"</{name}>"
    yield from _container_edits(element, "notes", notes, tags, content[0], file)


def _segment_label(unit: Unit, annotated: Annotated) -> str:
    return f"{unit.id.rpartition(':')[2]}: " if len(annotated) > 1 else ""


def _metadata_groups(annotated: Annotated, *, has_prefix: bool) -> list[str]:
    content = ""
    for unit, annotation in annotated:
        metas = "".join(
            _element("mda:meta", format_score(score), type=name)
            for name, score in annotation.scores.items()
            if not math.isnan(score)
        )
        if metas and len(annotated) > 1:
            segment = quoteattr(f"segment {unit.id.rpartition(':')[2]}")
            metas = f"<mda:metaGroup category={segment}>{metas}</mda:metaGroup>"
        content += metas
    declaration = "" if has_prefix else f' xmlns:mda="{METADATA}"'
    opening = f'<mda:metaGroup{declaration} category="{OWN}">'
    return [f"{opening}{content}</mda:metaGroup>"] if content else []


def _indentation(element: Element, file: SourceBytes) -> str:
    """Return the blanks that a child has more than its parent's end tag."""
    children = element.elements()
    if not children:
        return ""
    inner = file.blanks(element.inner_start, children[0].start)
    outer = file.blanks(children[-1].end, element.inner_end)
    return inner.removeprefix(outer) if inner.startswith(outer) else ""


def _container_edits(
    parent: Element,
    name: str,
    added: Sequence[str],
    tags: tuple[str, str],
    before: Element,
    file: SourceBytes,
) -> Iterator[Edit]:
    """Replace our members of a container; create it before an element, remove it when empty."""
    container = parent.first(name)
    members = container.elements() if container is not None else []
    own = [member for member in members if member.get("category") == OWN]
    if container is not None and own and len(own) == len(members):
        yield from _removals(parent, [container], file)
        container = None
    elif container is not None:
        yield from _removals(container, own, file)
    if not added:
        return
    if container is None:
        position = _previous_end(parent, before)
        gap = file.blanks(position, before.start)
        inner = gap + _indentation(parent, file) if gap else ""
        content = "".join(inner + member for member in added)
        yield position, position, gap + tags[0] + content + gap + tags[1]
    elif container.is_empty_tag:
        yield container.start, container.end, tags[0] + "".join(added) + tags[1]
    else:
        last = members[-1] if members else None
        gap = _blanks_before(container, last, file)
        position = last.end if last is not None else container.inner_start
        yield position, position, "".join(gap + member for member in added)


def annotate_tmx(element: Element, annotated: Annotated, file: SourceBytes) -> Iterator[Edit]:
    """Add scores and findings of a `tu` as `prop`s before its variants."""
    own = [p for p in element.elements("prop") if p.get("type").startswith(f"x-{OWN}-")]
    yield from _removals(element, own, file)
    children = element.elements()
    if not children:
        return
    blanks = file.blanks(element.inner_start, children[0].start)
    texts = []
    for unit, annotation in annotated:
        for name, score in annotation.scores.items():
            if not math.isnan(score):
                texts.append(_element("prop", format_score(score), type=f"x-{OWN}-{name}"))
        for span in annotation.findings:
            text = describe_finding(span, unit, file)
            texts.append(_element("prop", text, type=f"x-{OWN}-finding"))
    if texts:
        yield element.inner_start, element.inner_start, "".join(blanks + text for text in texts)


def annotate_po(message: Message, annotated: Annotated, file: SourceBytes) -> Iterator[Edit]:
    """Add a comment for the scores and one for each finding before a message."""
    for start, end in message.own:
        yield start, _line_end(file.data, end), ""
    lines = []
    for unit, annotation in annotated:
        label = f"[{unit.plural}] " if unit.plural else ""
        if scores := describe_scores(annotation):
            lines.append(label + scores)
        lines += [label + describe_finding(span, unit, file) for span in annotation.findings]
    line_end = (
        "\r\n" if file.data[_line_end(file.data, message.start) - 2 :][:2] == b"\r\n" else "\n"
    )
    if lines:
        text = "".join(OWN_COMMENT + FORBIDDEN.sub("�", line) + line_end for line in lines)
        yield message.start, message.start, text


def _line_end(data: bytes, position: int) -> int:
    end = data.find(b"\n", position)
    return len(data) if end < 0 else end + 1
