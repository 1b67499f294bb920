"""Test sets of WMT since 2020 in XML: documents with source, references and system outputs."""

from __future__ import annotations

from tertium.core.errors import DataError
from tertium.data.testset import TestSet
from tertium.files.units import Languages
from tertium.files.xml_elements import Element, XmlFile

ROOTS = ("dataset", "collection")


def read_wmt_xml(path: str, languages: Languages) -> TestSet:
    """Read all systems of a file; `languages` are completed from it.

    A segment has every reference that its document has. Every system must have all segments.
    """
    sources: list[str] = []
    references: list[list[str]] = []
    documents: list[str] = []
    ids: list[str] = []
    systems: dict[str, list[str]] = {}
    for number, document in enumerate(XmlFile(path, ("doc",)).units(), start=1):
        source = document.first("src")
        if source is None:
            raise DataError(f"{path}, line {document.line}: a document without <src>")
        languages.source = languages.source or source.get("lang")
        segments = _read_segments(source, path)
        translations = [_read_like(segments, ref, path) for ref in document.elements("ref")]
        for output in document.elements("hyp"):
            languages.target = languages.target or output.get("language") or output.get("lang")
            system = output.get("system") or "system"
            texts = systems.setdefault(system, [])
            if len(texts) != len(sources):
                raise DataError(f"{path}, line {output.line}: system {system!r} lacks a document")
            texts += _read_like(segments, output, path)
        sources += segments.values()
        for index in range(len(segments)):
            references.append([texts[index] for texts in translations])
        documents += [document.get("id") or str(number)] * len(segments)
        ids += segments
    if not systems:
        raise DataError(f"{path}: no system outputs (<hyp>); give them as text with -t")
    return TestSet(
        systems=systems,
        sources=sources,
        references=references if any(references) else (),
        documents=documents,
        columns={"id": ids},
    )


def _read_segments(side: Element, path: str) -> dict[str, str]:
    """Return the texts of a side by the ids of their segments."""
    segments: dict[str, str] = {}
    for segment in side.descendants():
        name = segment.get("id")
        if segment.local != "seg":
            continue
        if not name or name in segments:
            problem = "twice the segment" if name else "a segment without id"
            raise DataError(f"{path}, line {segment.line}: {problem} {name}".rstrip())
        segments[name] = segment.text()
    return segments


def _read_like(segments: dict[str, str], side: Element, path: str) -> list[str]:
    """Return the texts of the same segments in a reference or output."""
    texts = _read_segments(side, path)
    for name in {**segments, **texts}:
        if name not in texts or name not in segments:
            owner = side.get("system") or side.get("translator") or side.local
            has = "has an unknown" if name in texts else "lacks"
            raise DataError(f"{path}, line {side.line}: {owner} {has} segment {name!r}")
    return [texts[name] for name in segments]
