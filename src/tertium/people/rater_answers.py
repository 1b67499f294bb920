"""The answers of raters, and their conversion to judgments.

An answer file is JSONL with a line for each answer. A rater may answer again: of several revisions
of (rater, item, system), the highest counts. `ScoredAnswers` converts answers to judgments, and to
the rows that `meta`, `train`, `route fit`, `report` and `agree` read:

    lp, document, segment, system, source, reference, hypothesis, score, spans, missing, rater

The score of a row depends on the protocol; higher is always better:

    da, esa, contrastive-esa    the score that the rater gave, 0 to 100
    mqm                         minus the sum of MQM error weights
    ranking                     the share of other systems that the rater ranked lower; ties are 1/2
    post-edit                   minus 100 times the word edits per word of the edited translation
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any

from tertium.core.atomic import PathLike, write_text
from tertium.core.errors import DataError, ModelError, UnknownNameError
from tertium.core.fields import NON_NEGATIVE, POSITIVE, Rule, read_dataclass
from tertium.core.segment import Judgment, Segment
from tertium.core.spans import (
    ErrorAnnotations,
    Span,
    UnlocatedError,
    score_spans,
)
from tertium.data.judgments import JudgmentSet
from tertium.data.record_files import read_jsonl
from tertium.people.campaign import (
    PROTOCOLS_WITH_SCORES,
    PROTOCOLS_WITH_SPANS,
    Campaign,
    CampaignItem,
    to_json,
)
from tertium.text.perturbations import units
from tertium.text.ter_edits import BitTable

MAX_SCORE = 100.0
MAX_TEXT = 20_000  # characters of a comment or an edited translation
IN_SCALE = Rule(lambda value: 0 <= value <= MAX_SCORE, "a score from 0 to 100")
SHORT_TEXT = Rule(lambda value: len(value) <= MAX_TEXT, f"at most {MAX_TEXT} characters")
CHECK_RANGE = (-math.inf, 60.0)  # of the score of a check without an original answer
Key = tuple[str, str, str]  # rater, item and system
# columns of judgments that are left out if they are blank
OPTIONAL_COLUMNS = frozenset("lp document source reference seconds time edited comment".split())


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
    edited: Annotated[str, SHORT_TEXT] | None = None
    comment: str = ""
    skipped: str = ""
    seconds: Annotated[float, NON_NEGATIVE] | None = None
    time: str = ""
    revision: Annotated[int, POSITIVE] = 1

    @property
    def key(self) -> Key:
        return self.rater, self.item, self.system

    def is_complete(self, protocol: str) -> bool:
        """Tell whether the answer has what the protocol asks for."""
        if self.skipped:
            return False
        if protocol in PROTOCOLS_WITH_SCORES:
            return self.score is not None
        if protocol == "ranking":
            return self.rank is not None
        return protocol == "mqm" or bool((self.edited or "").strip())


def read_answers(path: PathLike) -> list[RaterAnswer]:
    """Read an answer file."""
    try:
        return [read_dataclass(RaterAnswer, record, where) for where, record in read_jsonl(path)]
    except ModelError as error:
        raise DataError(str(error)) from None


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
    item.check_spans(answer.system, answer.spans, where)
    return item


class ScoredAnswers:
    """The newest complete answers to a campaign, with their scores.

    `answers` are those about items, without attention checks and tutorials.
    """

    def __init__(self, campaign: Campaign, answers: Iterable[RaterAnswer]) -> None:
        latest = {answer.key: answer for answer in sorted(answers, key=attrgetter("revision"))}
        kinds = {key: check_answer(answer, campaign).kind for key, answer in latest.items()}
        complete = [a for a in latest.values() if a.is_complete(campaign.protocol)]
        self.campaign = campaign
        self.answers = [answer for answer in complete if kinds[answer.key] == "item"]
        self.scores = _score_answers(complete, campaign)

    def judgments(self) -> JudgmentSet:
        """Return the judgments in order of time."""
        campaign = self.campaign
        judgments = []
        if not self.answers:
            raise DataError(f"no complete answers to the campaign {campaign.name!r} yet")
        for answer in sorted(self.answers, key=lambda answer: answer.time):
            item = campaign.items_by_id[answer.item]
            segment = Segment(
                item.outputs[answer.system],
                item.source,
                () if item.reference is None else (item.reference,),
            )
            labels = (item.id, answer.system, answer.rater, campaign.lp, item.document)
            has_spans = campaign.protocol in PROTOCOLS_WITH_SPANS
            errors = ErrorAnnotations(answer.spans, answer.missing) if has_spans else None
            judgments.append(Judgment(segment, self.scores[answer.key], *labels, errors))
        return JudgmentSet(name=campaign.name, lp=campaign.lp, judgments=tuple(judgments))

    def seconds(self) -> dict[Key, float | None]:
        """Return the working times by rater, item and system."""
        return {answer.key: answer.seconds for answer in self.answers}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each judgment."""
        campaign = self.campaign
        for answer in self.answers:
            item = campaign.items_by_id[answer.item]
            row: dict[str, Any] = {
                "lp": campaign.lp,
                "document": item.document,
                "segment": item.id,
                "system": answer.system,
                "source": item.source,
                "reference": item.reference,
                "hypothesis": item.outputs[answer.system],
                "score": self.scores[answer.key],
            }
            if campaign.protocol in PROTOCOLS_WITH_SPANS:
                row["spans"] = _mark_rater(answer.spans, answer.rater)
                row["missing"] = _mark_rater(answer.missing, answer.rater)
            row["rater"] = answer.rater
            row |= {name: label for name, label in item.labels.items() if not row.get(name)}
            row |= {
                name: getattr(answer, name) for name in ("seconds", "time", "edited", "comment")
            }
            yield {
                name: value
                for name, value in row.items()
                if name not in OPTIONAL_COLUMNS or value not in (None, "")
            }

    def write(self, path: PathLike, exclude: Sequence[str] = ()) -> None:
        """Write the rows as JSONL, without those of some raters.

        A new file can only be read by its owner.
        """
        lines = [*self.lines(exclude)]
        if not lines:
            raise DataError(f"the campaign {self.campaign.name!r} has no complete answers yet")
        write_text(path, lines, private=True)

    def lines(self, exclude: Sequence[str] = ()) -> Iterator[str]:
        """Yield the rows as lines of JSONL."""
        for row in self.rows():
            if row["rater"] not in exclude:
                yield json.dumps(row, ensure_ascii=False) + "\n"

    def count_checks(self) -> dict[str, tuple[int, int]]:
        """Return passed and answered attention checks by rater.

        A check is passed if its score is lower than that of the original by the same rater, or
        within the expected range if there is no original answer.
        """
        counts: dict[str, tuple[int, int]] = {}
        for (rater, name, system), score in self.scores.items():
            item = self.campaign.items_by_id[name]
            if item.kind != "check" or self.campaign.protocol == "ranking":
                continue
            original = self.scores.get((rater, item.original, system))
            low, high = item.expected.get(system, CHECK_RANGE)
            is_passed = low <= score <= high if original is None else score < original
            passed, total = counts.get(rater, (0, 0))
            counts[rater] = passed + is_passed, total + 1
        return counts


def _score_answers(answers: Sequence[RaterAnswer], campaign: Campaign) -> dict[Key, float]:
    """Return the scores of complete answers; see the module docstring."""
    if campaign.protocol == "ranking":
        return _score_ranks(answers)
    scores = {}
    for answer in answers:
        if campaign.protocol == "mqm":
            score = score_spans([*answer.spans, *answer.missing])
        elif campaign.protocol == "post-edit":
            output = campaign.items_by_id[answer.item].outputs[answer.system]
            score = 0.0 - MAX_SCORE * edit_rate(output, answer.edited or "")
        else:
            score = answer.score or 0.0
        scores[answer.key] = score
    return scores


def _score_ranks(answers: Sequence[RaterAnswer]) -> dict[Key, float]:
    """Compute the share of other systems that each answer ranks lower, ties counting 1/2."""
    ranks: dict[tuple[str, str], list[int]] = {}
    for answer in answers:
        ranks.setdefault((answer.rater, answer.item), []).append(answer.rank or 0)
    scores = {}
    for answer in answers:
        together = ranks[answer.rater, answer.item]
        rank = answer.rank or 0
        points = sum((other > rank) + (other >= rank) for other in together) - 1  # without itself
        scores[answer.key] = points / 2 / (len(together) - 1) if len(together) > 1 else 0.5
    return scores


def edit_rate(translation: str, edited: str) -> float:
    """Compute word edits per word of the edited text; characters in scripts without spaces.

    >>> edit_rate("the cat sit", "the cat sat")
    0.3333333333333333
    """
    before = units(translation)
    after = units(edited)
    numbers = {word: n for n, word in enumerate(dict.fromkeys([*before, *after]))}
    table = BitTable(tuple(numbers[w] for w in after), tuple(numbers[w] for w in before))
    return table.distances[0] / max(1, len(after))


def _mark_rater(errors: Sequence[Any], rater: str) -> list[dict[str, Any]]:
    """Convert spans or unlocated errors to JSON with the name of the rater."""
    return [{**to_json(error), "severity": error.severity, "rater": rater} for error in errors]
