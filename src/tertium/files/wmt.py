"""Test sets of WMT: in XML, and until 2020 in SGML with sources, references and outputs apart.

Files in SGML are not XML: attributes are repeated, and `&` stands for itself. Their segments are
matched by document and number, those of plain text by their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import unescape

from tertium.core.errors import DataError
from tertium.data.testset import TestSet, check_plain_text, name_systems
from tertium.data.text_files import read_lines, read_text
from tertium.files.catalogs import is_sgml
from tertium.files.units import Languages, line_at
from tertium.files.xml_elements import XmlFile

XML_ROOTS = ("dataset", "collection")
_TAG = re.compile(r"<(srcset|refset|tstset|doc|seg)\b([^>]*)>", re.IGNORECASE)
_END = re.compile(r"</seg\s*>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([\w:]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_QUOTES = {"&quot;": '"', "&apos;": "'"}
Texts = dict[tuple[str, str], str]  # by document and id of the segment


def read_wmt_xml(path: str, languages: Languages) -> TestSet:
    """Read all systems of a file; `languages` are completed from it.

    A segment has every reference that its document has. Every system must have all segments.
    """
    sources: Texts = {}
    references: dict[str, Texts] = {}
    systems: dict[str, Texts] = {}
    for number, document in enumerate(XmlFile(path, ("doc",)).units(), start=1):
        name = document.get("id") or str(number)
        for place, side in enumerate(document.elements("src", "ref", "hyp")):
            if side.local == "src":
                texts = sources
                languages.source = languages.source or side.get("lang")
            elif side.local == "ref":
                texts = references.setdefault(side.get("translator") or str(place), {})
            else:
                texts = systems.setdefault(side.get("system") or "system", {})
                languages.target = languages.target or side.get("language") or side.get("lang")
            for segment in side.descendants():
                if segment.local == "seg":
                    where = f"{path}, line {segment.line}"
                    _add_segment(texts, name, segment.get("id"), segment.text(), where)
    if not systems:
        raise DataError(f"{path}: no system outputs (<hyp>); give them as text with -t")
    rows = [[texts[key] for texts in references.values() if key in texts] for key in sources]
    outputs = {name: _select(texts, sources, name) for name, texts in systems.items()}
    return _make_testset(outputs, sources, [*sources.values()], rows)


def _add_segment(texts: Texts, document: str, name: str, text: str, where: str) -> None:
    if not document or not name or (document, name) in texts:
        raise DataError(f"{where}: a segment needs a document and an id that are not used twice")
    texts[document, name] = text


def _select(texts: Texts, segments: Iterable[tuple[str, str]], name: str) -> list[str]:
    """Return the texts of the same segments as in another file or system."""
    for document, number in texts.keys() ^ {*segments}:
        has = "has an unknown" if (document, number) in texts else "lacks"
        raise DataError(f"{name} {has} segment {number!r} of document {document!r}")
    return [texts[segment] for segment in segments]


def _make_testset(
    systems: dict[str, list[str]],
    segments: Iterable[tuple[str, str]],
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
) -> TestSet:
    documents, ids = zip(*segments, strict=True)
    return TestSet(
        systems=systems,
        sources=sources,
        references=references if any(references) else (),
        documents=documents,
        columns={"id": ids},
    )


def read_sgml(path: str, languages: Languages) -> dict[str, Texts]:
    """Return the texts of each system or reference; `languages` are completed from the file."""
    content = read_text(path)
    document = ""
    place = 0
    by_system: dict[str, Texts] = {}
    texts: Texts = {}
    while tag := _TAG.search(content, place):
        place = tag.end()
        name = tag[1].lower()
        attributes: dict[str, str] = {}
        for key, *values in _ATTRIBUTE.findall(tag[2]):
            attributes.setdefault(key.lower(), "".join(values))
        if name == "doc":
            document = attributes.get("docid", "")
            languages.source = languages.source or attributes.get("origlang", "")
            texts = by_system.setdefault(attributes.get("sysid", ""), {})
        elif name == "seg":
            end = _END.search(content, place)
            where = f"{path}, line {line_at(content, tag.start())}"
            if end is None:
                raise DataError(f"{where}: a segment without </seg>")
            text = unescape(content[place : end.start()].replace("\n", " ").strip(), _QUOTES)
            _add_segment(texts, document, attributes.get("id", ""), text, where)
            place = end.end()
        elif attributes.get("trglang", "any") != "any":
            languages.target = languages.target or attributes["trglang"]
    if not any(by_system.values()):
        raise DataError(f"{path}: not a test set of WMT in SGML: it has no <seg>")
    return by_system


def read_wmt_sgml(
    translations: Sequence[str],
    sources: str | None,
    references: Sequence[str],
    names: Sequence[str] | None,
    languages: Languages,
) -> TestSet:
    """Read a test set of which at least one file is SGML; `languages` are completed from it."""
    files = dict.fromkeys(filter(is_sgml, (sources, *references, *translations)))
    sets = {file: read_sgml(file, languages) for file in files if file}
    first = next(iter(sets))
    segments = [*next(iter(sets[first].values()))]

    def read(file: str) -> dict[str, list[str]]:
        """Return the texts of each system in the order of the first file."""
        if file in sets:
            return {name: _select(texts, segments, file) for name, texts in sets[file].items()}
        check_plain_text(file)
        lines = read_lines(file)
        if len(lines) != len(segments):
            raise DataError(f"{file} has {len(lines)} lines, {first} {len(segments)} segments")
        return {"": lines}

    outputs = [(file, *output) for file in translations for output in read(file).items()]
    systems: Sequence[str] = [system for _, system, _ in outputs]
    if names or not all(systems) or len({*systems}) < len(systems):
        systems = name_systems([file for file, _, _ in outputs], names)
    columns = [texts for file in references for texts in read(file).values()]
    return _make_testset(
        dict(zip(systems, [texts for _, _, texts in outputs], strict=True)),
        segments,
        next(iter(read(sources).values())) if sources else (),
        [*zip(*columns, strict=True)],
    )
