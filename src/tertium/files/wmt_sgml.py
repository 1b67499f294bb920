"""Test sets of WMT until 2020 in SGML: sources, references and outputs in separate files.

The files are not XML: attributes are repeated, and `&` stands for itself. Segments of several files
are matched by document and number, plain text by its order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import unescape

from tertium.core.errors import DataError, UsageError
from tertium.data.consistency import check_plain_text, name_systems
from tertium.data.testset import TestSet
from tertium.data.text_files import read_lines, read_text
from tertium.files.catalogs import SUFFIXES, is_sgml, suffix_of
from tertium.files.encodings import line_at
from tertium.files.units import Languages

_TAG = re.compile(r"<(srcset|refset|tstset|doc|seg)\b([^>]*)>", re.IGNORECASE)
_END = re.compile(r"</seg\s*>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"([\w:]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_QUOTES = {"&quot;": '"', "&apos;": "'"}
Texts = dict[tuple[str, str], str]  # by document and number of the segment


def read_sgml(path: str, languages: Languages) -> dict[str, Texts]:
    """Return the texts of each system or reference; `languages` are completed from the file."""
    content, document, place = read_text(path), "", 0
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
            segment = document, attributes.get("id", "")
            problem = ""
            if end is None:
                problem = "without </seg>"
            elif not all(segment):
                problem = "without docid or id"
            elif segment in texts:
                problem = "of its document twice"
            if end is None or problem:
                where = f"{path}, line {line_at(content, tag.start())}"
                raise DataError(f"{where}: a segment {problem}: {tag[0]}")
            text = content[place : end.start()].replace("\n", " ")
            texts[segment] = unescape(text.strip(), _QUOTES)
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
    sets = {}
    for file in (sources, *references, *translations):
        if file and is_sgml(file):
            sets[file] = read_sgml(file, languages)
    first = next(iter(sets))
    segments = [*next(iter(sets[first].values()))]

    def read(file: str) -> dict[str, list[str]]:
        """Return the texts of each system in the order of the first file."""
        if file in sets:
            return {name: _select(texts, segments, file) for name, texts in sets[file].items()}
        check_plain_text(file)
        if suffix_of(file) in SUFFIXES:
            raise UsageError(f"{file} with {first}: expected files in SGML or plain text")
        lines = read_lines(file)
        if len(lines) != len(segments):
            raise DataError(f"{file} has {len(lines)} lines, {first} {len(segments)} segments")
        return {"": lines}

    files = []
    systems: Sequence[str] = []
    outputs = []
    for file in translations:
        for system, texts in read(file).items():
            files.append(file)
            systems = [*systems, system]
            outputs.append(texts)
    if names or not all(systems) or len({*systems}) < len(systems):
        systems = name_systems(files, names)
    columns = [texts for file in references for texts in read(file).values()]
    return TestSet(
        systems=dict(zip(systems, outputs, strict=True)),
        sources=next(iter(read(sources).values())) if sources else (),
        references=[*zip(*columns, strict=True)],
        documents=[document for document, _ in segments],
        columns={"id": [number for _, number in segments]},
    )


def _select(texts: Texts, segments: Sequence[tuple[str, str]], path: str) -> list[str]:
    """Return the texts of the same segments as in another file."""
    for document, number in texts.keys() ^ {*segments}:
        has = "has an unknown" if (document, number) in texts else "lacks"
        raise DataError(f"{path} {has} segment {number!r} of document {document!r}")
    return [texts[segment] for segment in segments]
