"""ESA (Kocmi et al. 2024): JSONL of raters who mark errors, then give a score from 0 to 100.

`langs line_id src tgt doc_id esa_spans esa_score system annotator`    a line for each rating
`doc_id src_text tgt_text scores`    all systems of a segment in one line; `scores` has a list of
                                     ratings for each system or, in WMT25, an object of `human1
                                     errors1 annotator1 human2 ...`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tertium.core.errors import DataError
from tertium.data.formats import Source
from tertium.data.formats.mqm import mqm_language_pair
from tertium.data.judgments import JudgmentSet, Row, collect_published
from tertium.data.record_files import read_jsonl
from tertium.data.records import (
    Record,
    read_object,
    read_object_list,
)

LAYOUTS = ({"esa_spans", "tgt"}, {"scores", "tgt_text"})
ALIASES = {"langs": "lp", "line_id": "item", "tgt": "mt", "esa_score": "score"}
NUMBERED = {"human": "score", "errors": "errors", "annotator": "annotator"}


def matches(source: Source) -> bool:
    return any(layout <= source.columns for layout in LAYOUTS)


def read(source: Source) -> Iterator[JudgmentSet]:
    """Yield a judgment for each rater and translation."""
    path = source.path
    yield collect_published(path, read_jsonl(path), _convert, mqm_language_pair(path))


def _convert(record: Record, where: str) -> Iterator[Row]:
    """Yield a row for each system and rater.

    `doc_id` is DOCUMENT_#_LINE, or LANGUAGES_#_DOMAIN_#_DOCUMENT_#_LINE.
    """
    if "tgt_text" not in record:
        yield {ALIASES.get(name.lower(), name.lower()): value for name, value in record.items()}
        return
    document, _, line = str(record.get("doc_id", "")).rpartition("_#_")
    shared = {"item": line, "doc": document, "src": record.get("src_text")}
    if document.count("_#_") == 2:
        shared |= dict(zip(("lp", "domain", "doc"), document.split("_#_"), strict=True))
    texts = read_object(record["tgt_text"], "tgt_text", where)
    references = {name for name in texts if re.fullmatch(r"ref[A-Z]?", name)}
    for system, ratings in read_object(record.get("scores"), "scores", where).items():
        place = f"{where}, {system}"
        shared |= {
            "system": system,
            "mt": texts.get(system),
            "ref": [text for name, text in texts.items() if name in references - {system}],
        }
        if isinstance(ratings, Mapping):
            ratings = _numbered_ratings(ratings, place)
        for rating in read_object_list(ratings, "scores", place):
            yield {name: rating.get(name) for name in NUMBERED.values()} | shared


def _numbered_ratings(ratings: Record, where: str) -> list[dict[str, Any]]:
    """Return the ratings of `human1 errors1 annotator1 human2 ...`, an object of WMT25."""
    numbered: dict[str, dict[str, Any]] = {}
    for key, value in ratings.items():
        match = re.fullmatch(rf"({'|'.join(NUMBERED)})([0-9]+)", key)
        if match is None:
            raise DataError(f"{where}: {key!r}: expected human1, errors1, annotator1, ...")
        numbered.setdefault(match[2], {})[NUMBERED[match[1]]] = value
    return [*numbered.values()]
