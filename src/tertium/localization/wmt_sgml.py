"""Test sets of WMT until 2020 in SGML: sources, references and outputs in separate files.

The files are not XML: attributes are repeated, and `&` stands for itself. Segments of several files
are matched by document and number, plain text by its order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import unescape

from tertium.data.consistency import check_plain_text, name_systems
from tertium.data.testset import TestSet
from tertium.data.text_files import read_lines, read_text
from tertium.errors import DataError, UsageError
from tertium.localization.catalogs import SUFFIXES, is_sgml, suffix_of
from tertium.localization.units import Languages

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
        place, name = tag.end(), tag[1].lower()
        # of a repeated attribute, the first one counts
        attributes = {key.lower(): "".join(v) for key, *v in _ATTRIBUTE.findall(tag[2])[::-1]}
        if name == "doc":
            document = attributes.get("docid", "")
            languages.source = languages.source or attributes.get("origlang", "")
            texts = by_system.setdefault(attributes.get("sysid", ""), {})
        elif name == "seg":
            end, key = _END.search(content, place), (document, attributes.get("id", ""))
            if end is None or not all(key) or key in texts:
                problem = "of its document twice" if all(key) else "without docid or id"
                line = content.count("\n", 0, tag.start()) + 1
                problem = problem if end else "without </seg>"
                raise DataError(f"{path}, line {line}: a segment {problem}: {tag[0]}")
            text = content[place : end.start()].replace("\n", " ")
            texts[key], place = unescape(text.strip(), _QUOTES), end.end()
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
    files = [*filter(None, (sources, *references, *translations))]
    sets = {file: read_sgml(file, languages) for file in files if is_sgml(file)}
    first = next(iter(sets))
    order = next(iter(sets[first].values()))

    def read(file: str) -> dict[str, list[str]]:
        if file in sets:
            return {name: _select(texts, order, file) for name, texts in sets[file].items()}
        check_plain_text(file)
        if suffix_of(file) in SUFFIXES:
            raise UsageError(f"{file} with {first}: expected files in SGML or plain text")
        lines = read_lines(file)
        if len(lines) != len(order):
            raise DataError(f"{file} has {len(lines)} lines, {first} {len(order)} segments")
        return {"": lines}

    outputs = [(file, *entry) for file in translations for entry in read(file).items()]
    systems: Sequence[str] = [name for _, name, _ in outputs]
    if names or not all(systems) or len({*systems}) < len(systems):
        systems = name_systems([file for file, _, _ in outputs], names)
    columns = [texts for file in references for texts in read(file).values()]
    return TestSet(
        systems=dict(zip(systems, (texts for _, _, texts in outputs), strict=True)),
        sources=next(iter(read(sources).values())) if sources else (),
        references=[[*row] for row in zip(*columns, strict=True)],
        documents=[document for document, _ in order],
        columns={"id": [number for _, number in order]},
    )


def _select(texts: Texts, order: Texts, path: str) -> list[str]:
    """Return the texts of the same segments as in another file."""
    if texts.keys() != order.keys():
        document, number = next(iter(texts.keys() ^ order.keys()))
        has = "has an unknown" if (document, number) in texts else "lacks"
        raise DataError(f"{path} {has} segment {number!r} of document {document!r}")
    return [texts[key] for key in order]
