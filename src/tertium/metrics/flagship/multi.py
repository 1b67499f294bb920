"""tertium-multi: one small network for a hundred languages, with a source, a reference or both.

A fine-tuned multilingual-e5-small whose upper layers read all texts together (`joint`), judged on
the scale of direct assessment. Its embedding table stays at the 4 bits it was published in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import ClassVar, Literal

import numpy as np

from tertium.arrays import BoolArray, Float32Array, FloatArray, IntArray
from tertium.encoders.pieces import Places
from tertium.errors import NeedsError, UsageError
from tertium.metrics.base.explanation import Explanation, TextComparison
from tertium.metrics.base.metric import NOTHING, WAYS, over_references
from tertium.metrics.flagship.assessment import (
    Assessment,
    are_missing,
    expected_points,
    name_rows,
)
from tertium.metrics.flagship.combination import Row, asked_for
from tertium.metrics.flagship.rows import (
    READ,
    MultiSettings,
    RowJudge,
    findings_of,
    load_judge,
)
from tertium.metrics.flagship.scales import ExpertScale, HumanScale, NoErrors
from tertium.metrics.flagship.tagging import Way, mark_errors
from tertium.models.options import NEEDS
from tertium.runtime import current_runtime
from tertium.segment import Segment
from tertium.spans import Span
from tertium.text.language_codes import parse_pair
from tertium.text.language_identification import (
    STRAYS,
    are_in_other_language,
    count_strays,
    identify,
)
from tertium.text.scripts import is_foreign, scripts_of

MODEL, READOUT = "tertium-multi", "readout.safetensors"
View = Literal["source", "reference", "both"]
VIEWS: tuple[View, ...] = ("source", "reference", "both")
# What a translation into another language loses, in standard deviations of people's scores: a
# source does not say which language was asked for, so the network cannot know.
WRONG_LANGUAGE = 2.5


@dataclass(frozen=True, kw_only=True)
class Assessed:
    """What is said of some translations, an array of each: the `score`, how far people's scores lie
    from such a one, its percentile among WMT's systems, and the chance that nobody marks an error.
    """

    score: FloatArray
    uncertainty: FloatArray
    percentile: FloatArray
    clean: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class TertiumMulti(Assessment):
    """Expected direct assessment of a translation, 0 to 1, in about a hundred languages.

    `against` says what it is judged by: the source, references, both, or (auto) all that is there.
    Each view has a monotone map of its own from the network's output to the scale of standardised
    human scores; a hypothesis equal to its reference scores 1, and nothing else does. `scale` is
    whose scores are expected: what crowds say of a text (da), or what experts leave of it who add
    up its errors (mqm), 1 less the points they take over 25. `references` takes the best or the
    mean over several. `lp` names the languages (de-en): a translation into another one than asked
    for is counted, and loses as much as one that says something else. `marks` is whose way to mark
    errors `spans` follows: experts under MQM, annotators under ESA, or those who mark the words
    that an editor would change.

    Relatives: `tertium-small` is closer to people where references are English, and faster.
    """

    name: ClassVar[str] = MODEL
    title: ClassVar[str] = "tertium-multi"

    against: Literal["auto", "source", "reference", "both"] = "auto"
    lp: str = ""
    marks: Way = "mqm"

    def __post_init__(self) -> None:
        parse_pair(self.lp)

    @property
    def needs(self) -> frozenset[str]:
        return NOTHING if self.against == "auto" else NEEDS[self.against]

    @property
    def settings(self) -> MultiSettings:
        return self.model.settings(MultiSettings)

    @property
    def beside(self) -> str:
        readout, config = self.settings.parts[READOUT], self.model.config
        scales = config["experts" if self.scale == "mqm" else "scales"]
        parts = ("calibration", "errors") if self.scale == "mqm" else ("calibration",)
        maps = [scales[view][part] for part in parts for view in VIEWS]
        said = config["corrections"], readout, maps
        return f"+{sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:8]}"

    @property
    def reader(self) -> RowJudge:
        return load_judge(self.model, self.precision, current_runtime().device)

    def check(self, segments: Sequence[Segment]) -> None:
        super().check(segments)
        if self.against != "auto":
            return
        for name, lacks in (
            ("references", [not s.references for s in segments]),
            ("source", [s.source is None for s in segments]),
        ):
            if any(lacks) and not all(lacks):
                raise NeedsError(
                    f"{self.name}: segment {lacks.index(True) + 1} has no {name} and others have; "
                    "say with against=reference or against=source what to judge by"
                )
        if not segments[0].references and segments[0].source is None:
            raise NeedsError(
                f"{self.name} needs references, the source or both, and segment 1 has neither: "
                f"{WAYS['references']}, or the source likewise"
            )

    def view(self, segments: Sequence[Segment]) -> View:
        """What these segments are judged by; of none, what most test sets have."""
        if self.against != "auto":
            return self.against
        if not segments or segments[0].references:
            return "reference" if segments and segments[0].source is None else "both"
        return "source"

    def human_scale(self, view: View) -> HumanScale:
        """How people score what the network says in a view."""
        views = self.settings.experts if self.scale == "mqm" else self.settings.scales
        scale: HumanScale = getattr(views, view)
        return scale

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        view = self.view(segments)
        owners, rows = rows_of(segments, view)
        return over_references(self.scores(rows, view), owners, self.references)

    def uncertainty(self, scores: FloatArray, segments: Sequence[Segment] = ()) -> FloatArray:
        return self.human_scale(self.view(segments)).deviation(scores)

    def assess(self, segments: Sequence[Segment]) -> Assessed:
        """All that the model says of each segment; of several references the best or the mean."""
        self.check(segments)
        view = self.view(segments)
        owners, rows = rows_of(segments, view)
        score, clean = (
            over_references(values, owners, self.references)
            for values in self._scores_and_chances(rows, view)
        )
        scale = self.human_scale(view)
        return Assessed(
            score=score,
            uncertainty=scale.deviation(score),
            percentile=scale.percent(score),
            clean=clean,
        )

    def _scores_and_chances(self, rows: Sequence[Row], view: View) -> tuple[FloatArray, FloatArray]:
        """The calibrated score of each row, and the chance that it has no error, (rows,) each."""
        strays = self._strays(rows)
        raw = self.raw_scores(rows) - WRONG_LANGUAGE * strays
        chance: NoErrors = getattr(self.settings.clean, view)
        chances = chance(self._add_up(rows, view, raw, strays))
        return self._calibrate(rows, view, raw, strays), chances

    def scores(self, rows: Sequence[Row], view: View) -> FloatArray:
        """The calibrated score of each row of texts, (rows,)."""
        strays = self._strays(rows)
        raw = self.raw_scores(rows) - WRONG_LANGUAGE * strays
        return self._calibrate(rows, view, raw, strays)

    def _calibrate(
        self, rows: Sequence[Row], view: View, raw: FloatArray, strays: BoolArray
    ) -> FloatArray:
        """Raw scores of rows on the scale of human scores, copies of a reference at its end."""
        placed = self._add_up(rows, view, raw, strays) if self.scale == "mqm" else raw
        scores = self.human_scale(view).calibrate(placed)
        same = np.array([hypothesis == reference for hypothesis, _, reference in rows], dtype=bool)
        return np.where(same, 1.0, scores)

    def _add_up(
        self, rows: Sequence[Row], view: View, raw: FloatArray, strays: BoolArray
    ) -> FloatArray:
        """Less the sum of errors of each row, (rows,).

        Experts take all points for what is no translation: no text, or another language.
        """
        experts: ExpertScale = getattr(self.settings.experts, view)
        missing = are_missing([row[0] for row in rows], [asked_for(row) for row in rows])
        return experts.errors(raw, self.reader.count_pieces(rows), missing | strays)

    def _strays(self, rows: Sequence[Row]) -> BoolArray:
        """Which translations are clearly in another language than `lp` asks for, (rows,)."""
        return are_in_other_language([row[0] for row in rows], *parse_pair(self.lp)[1:])

    def raw_scores(self, rows: Sequence[Row]) -> FloatArray:
        """The score before calibration, by network and correction, (rows,)."""
        heads = [all_said[: READ.stop] for all_said in self.all_said(rows)]
        said = np.array(heads, dtype=np.float64).reshape(len(rows), READ.stop)
        raw, views = said[:, 0].copy(), [view_of(row) for row in rows]
        for view in VIEWS:
            where = [n for n, its in enumerate(views) if its == view]
            correct = getattr(self.settings.corrections, view)
            if where:
                some = [rows[n] for n in where]
                strange = self.reader.strange_words(some)
                raw[where] = correct(some, raw[where], said[where, READ.start], strange)
        return raw

    def all_said(self, rows: Sequence[Row]) -> list[Float32Array]:
        """All that one pass says of each row, as `RowJudge` gives it."""
        keys = [
            " ".join("-" if text is None else str(len(text)) for text in row)
            + "".join(text or "" for text in row)
            for row in rows
        ]
        return self.recall_or_judge(5, keys, lambda some: self.reader([rows[n] for n in some]))

    @property
    def gives_spans(self) -> bool:
        return bool(self.settings.shape.tags) and self.settings.spans is not None

    def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        """The errors of each translation, from the pass that scores it.

        Beside several references they are those of the best one; a copy of it has none.
        """
        self.check(segments)
        if not self.gives_spans:
            raise UsageError(
                f"{self.learned[0]} marks no errors: its weights have no tags; tertium explain "
                "shows which pieces of a translation found a partner"
            )
        view = self.view(segments)
        thresholds = getattr(getattr(self.settings.spans, self.marks), view)
        owners, rows = rows_of(segments, view)
        best = self._best_rows(owners, rows, view)
        said = self.all_said([rows[n] for n in best])
        places = self.piece_places([s.hypothesis for s in segments])
        found = []
        for n, at, one in zip(best, places, said, strict=True):
            hypothesis, _, reference = rows[n]
            marked = mark_errors(hypothesis, at, findings_of(one), self.marks, thresholds)
            found.append(() if hypothesis == reference else marked)
        return found

    def piece_places(self, texts: Sequence[str]) -> list[Places]:
        """Where the pieces of texts stand in them, in code points."""
        return self.reader.places(texts)

    def _best_rows(self, owners: IntArray, rows: Sequence[Row], view: View) -> list[int]:
        """Of each segment the first of its rows that scores highest."""
        scores = self.scores(rows, view) if len(set(owners.tolist())) < len(rows) else None
        best: dict[int, int] = {}
        for n, owner in enumerate(owners.tolist()):
            if owner not in best or (scores is not None and scores[n] > scores[best[owner]]):
                best[owner] = n
        return [best[owner] for owner in sorted(best)]

    def explain(self, segment: Segment) -> Explanation:
        """The score and what is known of it, and each piece's best partner in the other texts."""
        self.check([segment])
        view = self.view([segment])
        owners, rows = rows_of([segment], view)
        scores, chances = self._scores_and_chances(rows, view)
        scale = self.human_scale(view)
        values = name_rows(
            {
                "score": scores,
                "uncertainty": scale.deviation(scores),
                "percentile": scale.percent(scores),
                "no error": chances,
                "MQM points": expected_points(replace(self, scale="mqm").scores(rows, view)),
            }
        )
        found: list[TextComparison] = []
        for number, (row, said) in enumerate(zip(rows, values, strict=True)):
            compared = self.reader.comparisons(row, said)
            found += [part for part in compared if number == 0 or part.side == "reference"]
        score = float(over_references(scores, owners, self.references)[0])
        return Explanation(metric=self.spec, score=score, comparisons=tuple(found))

    def texts(self, segments: Sequence[Segment]) -> list[str]:
        _, rows = rows_of(segments, self.view(segments))
        return list(dict.fromkeys(text for row in rows for text in row if text is not None))

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        view = self.view(segments)
        strange = self._count_foreign(segments, view)
        blank = sum(not (s.source or "").strip() for s in segments) if view != "reference" else 0
        _, rows = rows_of(segments, "source")
        windowed, truncated = self.reader.count_longer(self.texts(segments))
        counts = {
            f"language unknown to {self.name}": strange,
            "empty source": blank,
            "long text, read in windows": windowed - truncated,
            f"translation not in {self.lp.rpartition('-')[2]}": int(self._strays(rows).sum()),
            STRAYS: 0 if self.lp else count_strays([row[0] for row in rows]),
        }
        return super().warnings(segments) | {kind: n for kind, n in counts.items() if n}

    def _count_foreign(self, segments: Sequence[Segment], view: View) -> int:
        """How many segments have a text in a language that the encoder was not made for."""
        known = frozenset(self.settings.languages)
        involved = parse_pair(self.lp)[1 if view == "reference" else 0 :]
        if not known.issuperset(involved):
            return len(segments)
        scripts = scripts_of(known)

        def is_strange(text: str) -> bool:
            return is_foreign(text, scripts) or identify(text) not in known | {""}

        return sum(
            is_strange(s.hypothesis) or (view != "reference" and is_strange(s.source or ""))
            for s in segments
        )

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        view = self.view(segments)
        fields = {"against": {"both": "source+reference"}.get(view, view)}
        fields |= super().signature_fields(segments)
        if self.lp:
            fields["lp"] = self.lp
        if view == "source":
            fields.pop("refs", None)
        return fields


def view_of(row: Row) -> View:
    """What a row is judged by."""
    if row[2] is None:
        return "source"
    return "reference" if row[1] is None else "both"


def rows_of(segments: Sequence[Segment], view: View) -> tuple[IntArray, list[Row]]:
    """Which segment each row belongs to, and the texts it is judged by.

    >>> rows_of([Segment("a", "A", ("x", "y"))], "both")
    (array([0, 0]), [('a', 'A', 'x'), ('a', 'A', 'y')])
    >>> rows_of([Segment("a", "A", ("x", "y"))], "source")[1]
    [('a', 'A', None)]
    """
    found = [
        (number, (s.hypothesis, None if view == "reference" else s.source or "", reference))
        for number, s in enumerate(segments)
        for reference in (s.references if view != "source" else (None,))
    ]
    return np.array([owner for owner, _ in found], dtype=np.int64), [row for _, row in found]
