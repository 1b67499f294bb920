"""Lists of candidate translations (N-best lists): JSONL in, the same records in a new order out.

A record has `candidates` (texts), and source and references under the names every reader knows.
Whatever else it holds is kept as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tertium.data.formats import PathLike, pick, read_jsonl, references_from, source_from
from tertium.errors import DataError
from tertium.segment import Segment

CANDIDATE_NAMES = ("candidates", "nbest", "hypotheses", "translations")


@dataclass(frozen=True, kw_only=True)
class CandidateList:
    """What was proposed for one source; `key` is where the record keeps its candidates."""

    segments: tuple[Segment, ...]
    record: Mapping[str, Any]
    key: str

    def reorder(self, scores: Sequence[float]) -> dict[str, Any]:
        """The record with its candidates from best to worst, and `scores` and `order` beside them.

        `order` holds the old places, from 0. Equal scores keep their order; a lone candidate's
        score, which is missing, is null.
        """
        order = sorted(range(len(scores)), key=lambda n: -scores[n])  # stable
        given = self.record[self.key]
        return {
            **self.record,
            self.key: [given[n] for n in order],
            "scores": [scores[n] if scores[n] == scores[n] else None for n in order],
            "order": order,
        }


def read_candidates(path: PathLike) -> list[CandidateList]:
    """Read candidate lists."""
    lists = []
    for where, record in read_jsonl(path):
        given = pick(record, CANDIDATE_NAMES, where)
        if not isinstance(given, list) or not given or not all(isinstance(c, str) for c in given):
            raise DataError(f"{where}: expected a list of texts under `candidates`")
        source, references = source_from(record, where), references_from(record, where)
        segments = tuple(Segment(text, source, references) for text in given)
        key = next(name for name in CANDIDATE_NAMES if record.get(name) is not None)
        lists.append(CandidateList(segments=segments, record=record, key=key))
    if not lists:
        raise DataError(f"{path} holds no candidate lists")
    return lists
