"""Read N-best lists of candidate translations and sort them by score.

The files are JSONL. A record has `candidates` (a list of texts) and optionally a source and
references. All its other fields are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, short_repr
from tertium.core.segment import Segment
from tertium.data.record_files import read_jsonl
from tertium.data.records import (
    Record,
    get_unique_alias,
    lowercase_known_columns,
    read_references,
    read_source,
)

CANDIDATE_NAMES = ("candidates", "nbest", "hypotheses", "translations")
OUTPUT_FIELDS = ("scores", "order")  # added by `CandidateList.reorder`


@dataclass(frozen=True, kw_only=True)
class CandidateList:
    """The candidates for one source; `key` is the field of `record` that contains them."""

    segments: tuple[Segment, ...]
    record: Record
    key: str

    def reorder(self, scores: Sequence[float]) -> dict[str, Any]:
        """Return the record with its candidates sorted from best to worst, `scores` and `order`.

        `order` contains the original indices, from 0. A missing score is null and comes last.
        """
        missing = [score != score for score in scores]
        order = sorted(range(len(scores)), key=lambda n: (missing[n], -scores[n]))  # stable
        candidates = self.record[self.key]
        return {
            **self.record,
            self.key: [candidates[n] for n in order],
            "scores": [None if missing[n] else scores[n] for n in order],
            "order": order,
        }


def read_candidates(path: PathLike) -> list[CandidateList]:
    """Read candidate lists from a JSONL file."""
    lists = []
    for where, record in read_jsonl(path):
        key = _candidates_key(record, where)
        candidates = record[key]
        if (
            not isinstance(candidates, list)
            or not candidates
            or not all(isinstance(c, str) for c in candidates)
        ):
            raise DataError(
                f"{where}: `{key}` must be a list of at least one text, got "
                f"{short_repr(candidates)}"
            )
        if existing_field := next((name for name in OUTPUT_FIELDS if name in record), None):
            raise DataError(
                f"{where}: the field {existing_field!r} exists, but the output uses this name: "
                f"rename it, or remove it with jq -c 'del(.{existing_field})'"
            )
        folded = lowercase_known_columns(record)
        source = read_source(folded, where)
        references = read_references(folded, where)
        segments = tuple(Segment(text, source, references) for text in candidates)
        lists.append(CandidateList(segments=segments, record=record, key=key))
    if not lists:
        raise DataError(f"{path} contains no candidate lists")
    return lists


def _candidates_key(record: Record, where: str) -> str:
    names = sorted(name for name in record if record[name] is not None)  # lower case comes last
    keys = {name.lower(): name for name in names}
    key: str | None = get_unique_alias(keys, CANDIDATE_NAMES, where)
    if key is None:
        raise DataError(
            f"{where}: no candidates (looked for {', '.join(CANDIDATE_NAMES)}; "
            f"found {', '.join(record) or 'nothing'})"
        )
    return key
