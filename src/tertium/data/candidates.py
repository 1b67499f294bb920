"""Lists of candidate translations (N-best lists), read and put in order.

They are JSONL: a record has `candidates` (texts), and source and references under the names every
reader knows. Whatever else it holds is kept as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tertium.data.formats import PathLike, read_jsonl
from tertium.data.records import fold_names, pick, references_from, source_from
from tertium.errors import DataError, one_line
from tertium.segment import Segment

CANDIDATE_NAMES = ("candidates", "nbest", "hypotheses", "translations")
ADDED = ("scores", "order")  # what a list in its new order has beside what it had


@dataclass(frozen=True, kw_only=True)
class CandidateList:
    """What was proposed for one source; `key` is where the record keeps its candidates."""

    segments: tuple[Segment, ...]
    record: Mapping[str, Any]
    key: str

    def reorder(self, scores: Sequence[float]) -> dict[str, Any]:
        """The record with its candidates from best to worst, and `scores` and `order` beside them.

        `order` holds the old places, from 0. Equal scores keep their order; a score that is
        missing, as a lone candidate's, is null and comes last.
        """
        missing = [score != score for score in scores]
        order = sorted(range(len(scores)), key=lambda n: (missing[n], -scores[n]))  # stable
        given = self.record[self.key]
        return {
            **self.record,
            self.key: [given[n] for n in order],
            "scores": [None if missing[n] else scores[n] for n in order],
            "order": order,
        }


def read_candidates(path: PathLike) -> list[CandidateList]:
    """Read candidate lists."""
    lists = []
    for where, record in read_jsonl(path):
        key = _candidates_key(record, where)
        given = record[key]
        if not isinstance(given, list) or not given or not all(isinstance(c, str) for c in given):
            raise DataError(
                f"{where}: expected a list of at least one text under `{key}`, "
                f"found {one_line(given)}"
            )
        if taken := next((name for name in ADDED if name in record), None):
            raise DataError(
                f"{where}: there is {taken!r} already, which is to hold our own: rename or "
                f"drop it, as in jq -c 'del(.{taken})'"
            )
        folded = fold_names(record)
        source, references = source_from(folded, where), references_from(folded, where)
        segments = tuple(Segment(text, source, references) for text in given)
        lists.append(CandidateList(segments=segments, record=record, key=key))
    if not lists:
        raise DataError(f"{path} holds no candidate lists")
    return lists


def _candidates_key(record: Mapping[str, Any], where: str) -> str:
    """Where a record keeps its candidates, in whichever case."""
    given = sorted(name for name in record if record[name] is not None)  # lower case comes last
    keys = {name.lower(): name for name in given}
    if pick(keys, CANDIDATE_NAMES, where) is None:
        raise DataError(
            f"{where}: no candidates (looked for {', '.join(CANDIDATE_NAMES)}; "
            f"found {', '.join(record) or 'nothing'})"
        )
    return next(keys[name] for name in CANDIDATE_NAMES if name in keys)
