"""The answers of raters, and their conversion to judgments.

An answer file is JSONL with a line for each answer. A rater may answer again: of several revisions
of (rater, item, system), the highest counts. `judgment_rows` converts answers to the rows that
`meta`, `train`, `route fit`, `report` and `agree` read:

    lp, document, segment, system, source, reference, hypothesis, score, spans, missing, rater

The score of a row depends on the protocol; higher is always better:

    da, esa, contrastive-esa    the score that the rater gave, 0 to 100
    mqm                         minus the sum of MQM error weights
    ranking                     the share of other systems that the rater ranked lower; ties are 1/2
    post-edit                   minus 100 times the word edits per word of the edited translation
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from tertium.core.atomic import PathLike, write_text
from tertium.core.errors import DataError, ModelError, UnknownNameError
from tertium.core.schema import NON_NEGATIVE, POSITIVE, Rule, read_dataclass
from tertium.core.spans import (
    MQM_WEIGHTS,
    Span,
    UnlocatedError,
    check_span_bounds,
    score_spans,
)
from tertium.data.record_files import read_jsonl
from tertium.people.campaign import (
    PROTOCOLS_WITH_SCORES,
    PROTOCOLS_WITH_SPANS,
    Campaign,
    CampaignItem,
    to_json,
)
from tertium.text.edit_distance import BitTable
from tertium.text.perturbations import units

logger = logging.getLogger(__name__)

MAX_SCORE = 100.0
NO_ANSWER = "answer without a score"
SKIPPED = "skipped by the rater"
NOT_COUNTED = "attention check or tutorial"
IN_SCALE = Rule(lambda value: 0 <= value <= MAX_SCORE, "a score from 0 to 100")


@dataclass(frozen=True, kw_only=True)
class RaterAnswer:
    """What a rater answered about one output of an item.

    `score` is on a scale from 0 to 100; `rank` is 1 for the best of the systems shown together, and
    equal for ties. `spans` count code points; `missing` are errors without a position, such as
    omissions. `edited` is the post-edited translation. An answer with a `skipped` reason has no
    judgment. `seconds` is the working time without breaks, and `time` the time of the answer in UTC
    (ISO 8601, such as 2026-05-04T10:00:00Z).
    """

    rater: str
    item: str
    system: str
    score: Annotated[float, IN_SCALE] | None = None
    rank: Annotated[int, POSITIVE] | None = None
    spans: tuple[Span, ...] = ()
    missing: tuple[UnlocatedError, ...] = ()
    edited: str | None = None
    comment: str = ""
    skipped: str = ""
    seconds: Annotated[float, NON_NEGATIVE] | None = None
    time: str = ""
    revision: Annotated[int, POSITIVE] = 1

    @property
    def key(self) -> tuple[str, str, str]:
        return self.rater, self.item, self.system

    def is_complete(self, protocol: str) -> bool:
        """Tell whether the answer has what the protocol asks for."""
        if self.skipped:
            return False
        if protocol in PROTOCOLS_WITH_SCORES:
            return self.score is not None
        if protocol == "ranking":
            return self.rank is not None
        return protocol == "mqm" or self.edited is not None


def read_answers(path: PathLike) -> list[RaterAnswer]:
    """Read an answer file."""
    answers = []
    for where, record in read_jsonl(path):
        try:
            answers.append(read_dataclass(RaterAnswer, record, where))
        except ModelError as error:
            raise DataError(str(error)) from None
    return answers


def check_answer(answer: RaterAnswer, campaign: Campaign) -> CampaignItem:
    """Return the item of an answer; raise an error if the answer does not fit the campaign."""
    if answer.rater not in campaign.raters:
        raise UnknownNameError("rater", answer.rater, campaign.raters)
    item = campaign.items_by_id.get(answer.item)
    if item is None:
        raise DataError(
            f"an answer of {answer.rater!r} is about the item {answer.item!r}, which is not in the "
            f"campaign {campaign.name!r}: the answers belong to another campaign"
        )
    if answer.system not in item.outputs:
        raise UnknownNameError(f"system of item {item.id!r}", answer.system, item.outputs)
    where = f"item {item.id!r}, system {answer.system!r}, rater {answer.rater!r}"
    check_span_bounds(answer.spans, item.outputs[answer.system], "hypothesis", where)
    check_span_bounds(answer.spans, item.source or "", "source", where)
    return item


def latest_answers(answers: Iterable[RaterAnswer]) -> list[RaterAnswer]:
    """Keep the highest revision of each (rater, item, system), in order of first appearance."""
    latest: dict[tuple[str, str, str], RaterAnswer] = {}
    for answer in answers:
        earlier = latest.get(answer.key)
        if earlier is None or answer.revision >= earlier.revision:
            latest[answer.key] = answer
    return list(latest.values())


def judgment_rows(
    answers: Iterable[RaterAnswer],
    campaign: Campaign,
    *,
    weights: Mapping[str, float] = MQM_WEIGHTS,
    excluded_counts: Counter[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield a judgment row for each complete answer; `excluded_counts` counts the others."""
    counts: Counter[str] = Counter() if excluded_counts is None else excluded_counts
    latest = latest_answers(answers)
    scores = _ranking_scores(latest) if campaign.protocol == "ranking" else {}
    for answer in latest:
        item = check_answer(answer, campaign)
        if item.kind != "item":
            counts[NOT_COUNTED] += 1
        elif not answer.is_complete(campaign.protocol):
            counts[SKIPPED if answer.skipped else NO_ANSWER] += 1
        else:
            score = scores.get(answer.key)
            score = score_answer(answer, campaign, weights) if score is None else score
            yield _judgment_row(answer, item, campaign, score)


def write_judgments(answers: Iterable[RaterAnswer], campaign: Campaign, path: PathLike) -> None:
    """Write the judgment rows of a campaign as JSONL; log how many answers were left out.

    A new file can only be read by its owner.
    """
    counts: Counter[str] = Counter()
    rows = [*judgment_rows(answers, campaign, excluded_counts=counts)]
    if not rows:
        raise DataError(f"the campaign {campaign.name!r} has no complete answers yet")
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_text(path, lines, private=True)
    for reason, count in counts.items():
        logger.info("%s: answers left out: %d (%s)", path, count, reason)


def score_answer(
    answer: RaterAnswer, campaign: Campaign, weights: Mapping[str, float] = MQM_WEIGHTS
) -> float:
    """Return the score of a complete answer; see the module docstring. Ranks need all systems."""
    if campaign.protocol == "mqm":
        return score_spans([*answer.spans, *answer.missing], weights=weights)
    if campaign.protocol == "post-edit":
        output = campaign.items_by_id[answer.item].outputs[answer.system]
        return 0.0 - MAX_SCORE * edit_rate(output, answer.edited or "")
    if answer.score is None:
        raise DataError(f"the answer of {answer.rater!r} about {answer.item!r} has no score")
    return answer.score


def edit_rate(translation: str, edited: str) -> float:
    """Compute word edits per word of the edited text; characters in scripts without spaces.

    >>> edit_rate("the cat sit", "the cat sat")
    0.3333333333333333
    """
    before, after = units(translation), units(edited)
    numbers = {word: n for n, word in enumerate(dict.fromkeys([*before, *after]))}
    table = BitTable(tuple(numbers[w] for w in after), tuple(numbers[w] for w in before))
    return table.distances[0] / max(1, len(after))


def mark_rater(spans: Sequence[Any], rater: str) -> list[dict[str, Any]]:
    """Convert spans or unlocated errors to JSON with the name of the rater."""
    return [{**to_json(span), "severity": span.severity, "rater": rater} for span in spans]


def _ranking_scores(answers: Sequence[RaterAnswer]) -> dict[tuple[str, str, str], float]:
    """Compute the share of other systems that each answer ranks lower, ties counting 1/2."""
    groups: dict[tuple[str, str], list[RaterAnswer]] = {}
    for answer in answers:
        if answer.rank is not None and not answer.skipped:
            groups.setdefault((answer.rater, answer.item), []).append(answer)
    scores = {}
    for group in groups.values():
        for answer in group:
            assert answer.rank is not None
            other_ranks = [other.rank for other in group if other is not answer and other.rank]
            lower = sum(rank > answer.rank for rank in other_ranks)
            ties = sum(rank == answer.rank for rank in other_ranks)
            scores[answer.key] = (lower + 0.5 * ties) / len(other_ranks) if other_ranks else 0.5
    return scores


def _judgment_row(
    answer: RaterAnswer, item: CampaignItem, campaign: Campaign, score: float
) -> dict[str, Any]:
    row: dict[str, Any] = {"lp": campaign.lp} if campaign.lp else {}
    row |= {"document": item.document} if item.document else {}
    row |= {"segment": item.id, "system": answer.system}
    row |= {"source": item.source} if item.source is not None else {}
    row |= {"reference": item.reference} if item.reference is not None else {}
    row |= {"hypothesis": item.outputs[answer.system], "score": score}
    if campaign.protocol in PROTOCOLS_WITH_SPANS:
        row["spans"] = mark_rater(answer.spans, answer.rater)
        row["missing"] = mark_rater(answer.missing, answer.rater)
    row |= {"rater": answer.rater}
    row |= {key: value for key, value in item.labels.items() if key not in row}
    row |= {"seconds": answer.seconds} if answer.seconds is not None else {}
    row |= {"time": answer.time} if answer.time else {}
    row |= {"edited": answer.edited} if answer.edited is not None else {}
    return row | ({"comment": answer.comment} if answer.comment else {})
