"""Agreement between raters, their quality, and human scores of systems: `tertium.agree`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Annotated, Any

from tertium.core.arrays import FloatArray
from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.core.options import InFile, LanguagePairs, Names, Option, Output, Significance
from tertium.core.resampling import check_resamples, make_rng
from tertium.core.result import (
    Column,
    Result,
    Table,
    View,
    bound_columns,
    count_column,
    field_values,
    format_number,
)
from tertium.data.human_data_files import read_rater_judgments
from tertium.data.judgments import JudgmentSet
from tertium.people.campaign import is_campaign_file, read_campaign
from tertium.people.rater_answers import ScoredAnswers, read_answers
from tertium.people.reliability import (
    CEILING,
    RaterQuality,
    Ratings,
    Statistic,
    describe_raters,
    measure_agreement,
)
from tertium.people.state import AnnotationSession, default_database
from tertium.people.system_ratings import (
    Scorecard,
    SystemScore,
    make_scorecards,
    score_systems,
)

DATABASE_SUFFIX = ".db"
SEVERITIES = ("critical", "major", "minor", "bad", "neutral")


@dataclass(frozen=True, kw_only=True, eq=False)
class RaterStudy(Result):
    """Agreement of raters and scores of systems in one set, as returned by `tertium.agree`.

    Attributes
    ----------
    name
        The set of judgments.
    ratings
        The judgments as arrays.
    statistics
        Agreement statistics with 95 % intervals.
    raters
        Quality of each rater, with reasons to leave one out.
    systems, p_values
        Systems from best to worst with intervals and clusters, and p-values of all pairs.
    scorecards
        MQM points per 1,000 words, if errors were marked.
    """

    name: str
    ratings: Ratings = field(repr=False)
    statistics: tuple[Statistic, ...]
    raters: tuple[RaterQuality, ...] = field(repr=False)
    systems: tuple[SystemScore, ...] = field(repr=False)
    p_values: FloatArray = field(repr=False)
    scorecards: tuple[Scorecard, ...] = field(repr=False)
    excluded_counts: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Statistic:
        return next(entry for entry in self.statistics if entry.name == name)

    def records(self) -> dict[str, Any]:
        """Return all results as plain values, for JSON."""
        return {
            "set": self.name,
            "judgments": len(self.ratings),
            "statistics": [vars(entry) for entry in self.statistics],
            "raters": [vars(rater) for rater in self.raters],
            "systems": [vars(score) for score in self.systems],
            "p_values": self.p_values.tolist(),
            "scorecards": [vars(card) for card in self.scorecards],
            "left_out": dict(self.excluded_counts),
        }

    def tables(self) -> list[Table]:
        """Return agreement, raters, systems and, if errors were marked, MQM scorecards."""
        tables = [self.agreement_table(), self.rater_table(), self.system_table()]
        return tables + ([self.scorecard_table()] if self.scorecards else [])

    def file_table(self, suffix: str = "") -> Table:
        """Return the human scores of systems."""
        return self.system_table()

    def agreement_table(self) -> Table:
        """Return the agreement statistics with intervals."""
        columns = [
            Column("statistic", "name"),
            Column("value", decimals=3),
            *_interval_columns(3),
            count_column("judged", "count"),
        ]
        notes = [
            "judged: translations of two or more raters; pairs of ratings for Pearson and kappa"
        ]
        if not self.statistics:
            notes = ["no translation was judged by two raters: agreement cannot be measured"]
        if any(entry.name == CEILING for entry in self.statistics):
            notes.append(
                f"{CEILING}: the highest Pearson correlation with the mean of the raters to expect"
            )
        notes += [f"left out: {reason}: {n}" for reason, n in self.excluded_counts.items()]
        title = f"Agreement of raters ({len(self.raters)}): {self.name}"
        return Table(columns, self.statistics, title, notes)

    def rater_table(self) -> Table:
        """Return one row per rater; raters to leave out are marked."""
        columns = [
            Column("rater", mark=lambda rater: "bad" if rater.reasons else ""),
            count_column("judgments"),
            Column("mean", decimals=1),
            Column("sd", "deviation", 1),
            Column("bias", decimals=1),
            Column("r with others", "agreement", 2),
            Column("drift / 100", "drift", 1, text=_format_drift),
            Column("alpha without", "alpha_without", 3),
        ]
        if any(not math.isnan(rater.seconds) for rater in self.raters):
            columns.append(Column("seconds", decimals=0))
        if any(rater.checks for rater in self.raters):
            columns.append(Column("checks", "checks_passed", 0, text=_format_checks))
        notes = [
            "bias: mean difference to other raters on the same translations; drift / 100: its "
            "change over 100 judgments, * if larger than two standard errors"
        ]
        for rater in self.raters:
            if rater.reasons:
                reasons = "; ".join(rater.reasons)
                notes.append(f"consider leaving out {rater.rater}: {reasons} (--exclude)")
        return Table(columns, self.raters, "Raters", notes)

    def system_table(self) -> Table:
        """Return systems from best to worst."""
        columns = [
            Column("system"),
            Column("mean", decimals=2),
            *_interval_columns(2),
            Column("z", "standardized", 3),
            count_column("judgments"),
            Column("cluster", decimals=0),
        ]
        notes = [
            "intervals and clusters: bootstrap of raters and documents; z: standardized by rater"
        ]
        return Table(columns, self.systems, "Systems by human score", notes)

    def scorecard_table(self) -> Table:
        """Return MQM points per 1,000 words by system."""
        columns = [
            Column("system"),
            Column("points", decimals=1),
            *_interval_columns(1),
            count_column("words"),
        ]
        marked = {severity for card in self.scorecards for severity in card.errors}
        columns += [_severity_column(name) for name in SEVERITIES if name in marked]
        if any(card.passed is not None for card in self.scorecards):
            columns.append(
                Column(
                    "result",
                    lambda card: "pass" if card.passed else "fail",
                    0,
                    mark=lambda card: "good" if card.passed else "bad",
                )
            )
        notes = ["words: of the source, once per judgment; characters in scripts without spaces"]
        return Table(columns, self.scorecards, "MQM scorecard: points per 1,000 words", notes)


@dataclass(frozen=True)
class RaterStudies(Result):
    """The studies of several sets of judgments."""

    studies: tuple[RaterStudy, ...]

    def tables(self) -> list[Table]:
        """Return the tables of all sets."""
        return [table for study in self.studies for table in study.tables()]

    def file_table(self, suffix: str = "") -> Table:
        """Return the human scores of systems; of several sets, with their names."""
        if len(self.studies) == 1:
            return self.studies[0].file_table(suffix)
        rows = []
        for study in self.studies:
            rows += [{"set": study.name, **row} for row in study.file_table(suffix).records()]
        return Table([Column(name, itemgetter(name)) for name in rows[0]], rows)

    def records(self) -> list[dict[str, Any]]:
        """Return the results of each set, for JSON."""
        return [study.records() for study in self.studies]


def _interval_columns(decimals: int) -> list[Column]:
    """Return an interval as text, and its bounds for files."""

    def text(row: Any) -> str:
        if math.isnan(row.low) or math.isnan(row.high):
            return ""
        return f"{row.low:z.{decimals}f} to {row.high:z.{decimals}f}"

    interval = Column("95 % interval", text, 0, text=lambda row, _: text(row) or "–")
    return [interval, *bound_columns("", attrgetter("low", "high"))]


def _severity_column(severity: str) -> Column:
    return count_column(severity, lambda card: card.errors.get(severity, 0))


def _format_drift(rater: RaterQuality, decimals: int) -> str:
    star = "* " if abs(rater.drift) > 2 * rater.drift_error else ""
    return star + format_number(rater.drift, decimals)


def _format_checks(rater: RaterQuality, _: int) -> str:
    return f"{rater.checks_passed} of {rater.checks}" if rater.checks else "–"


def agree(
    judgments: PathLike | JudgmentSet | ScoredAnswers,
    *,
    answers: PathLike | None = None,
    exclude: Sequence[str] = (),
    lps: Sequence[str] = (),
    pass_mark: float | None = None,
    resamples: int = 1000,
    alpha: float = 0.05,
    seed: int = 12345,
) -> list[RaterStudy]:
    """Measure how well raters agree, and rank systems by their judgments.

    Parameters
    ----------
    judgments
        A campaign of `tertium plan`, a file of judgments with raters in any known format, a
        `JudgmentSet`, or scored answers.
    answers
        The file of answers to a campaign. By default, the database next to it.
    exclude
        Raters to leave out.
    lps
        Language pairs to keep. By default, all.
    pass_mark
        MQM points per 1,000 words up to which a system passes.
    resamples, seed
        Number of bootstrap samples, and their seed.
    alpha
        Significance level of clusters.

    Returns
    -------
    list of RaterStudy
        A study for each language pair.

    Examples
    --------
    >>> [study] = agree("examples/ratings.csv", resamples=50)
    >>> len(study.raters) > 1
    True
    """
    check_resamples(resamples)
    checks = None
    seconds = None
    if not isinstance(judgments, JudgmentSet | ScoredAnswers):
        if is_campaign_file(judgments):
            judgments = score_campaign(judgments, answers)
        elif answers is not None:
            raise UsageError(f"--answers is for a campaign, but {judgments} is not one")
    if isinstance(judgments, ScoredAnswers):
        checks = judgments.count_checks()
        seconds = judgments.seconds()
        sets = [judgments.judgments()]
    elif isinstance(judgments, JudgmentSet):
        sets = [*judgments.split_by_language_pair().values()]
    else:
        sets = read_rater_judgments(judgments, lps=lps)
        if not sets:
            raise DataError(f"{judgments}: no scores of translations by raters")
    names = {judgment.annotator for entry in sets for judgment in entry.judgments} - {""}
    if unknown := [name for name in exclude if name not in names]:
        raise UnknownNameError("rater", unknown[0], names)
    studies = []
    for entry in sets:
        ratings = Ratings.from_judgments(entry, seconds=seconds, exclude=exclude)
        rng = make_rng(seed)
        raters = describe_raters(ratings, checks)
        systems, p_values = score_systems(ratings, resamples=resamples, rng=rng, alpha=alpha)
        scorecards = make_scorecards(ratings, resamples=resamples, rng=rng, pass_mark=pass_mark)
        study = RaterStudy(
            name=ratings.name,
            ratings=ratings,
            statistics=tuple(measure_agreement(ratings, resamples, make_rng(seed, 1))),
            raters=tuple(raters),
            systems=tuple(systems),
            p_values=p_values,
            scorecards=tuple(scorecards),
            excluded_counts=dict(entry.excluded_counts),
        )
        studies.append(study)
    return studies


def score_campaign(campaign: PathLike, answers: PathLike | None = None) -> ScoredAnswers:
    """Score the answers to a campaign, by default those of the database next to it."""
    path = Path(answers or default_database(campaign))
    if not path.is_file():
        raise DataError(
            f"{campaign} is a campaign: give the answers of its raters (--answers); {path} does "
            "not exist"
        )
    content = read_campaign(campaign)
    if path.suffix != DATABASE_SUFFIX:
        return ScoredAnswers(content, read_answers(path))
    with closing(AnnotationSession(content, path)) as session:
        return ScoredAnswers(content, session.state.answers())


def agree_on_files(
    human: Annotated[InFile, Option(metavar="HUMAN")],
    /,
    tests: Significance,
    output: Output,
    *,
    answers: Annotated[InFile | None, Option(group="Input")] = None,
    exclude: Annotated[Names, Option(metavar="RATER", group="Input")] = (),
    lps: Annotated[LanguagePairs, Option(group="Input")] = (),
    pass_mark: Annotated[float | None, Option(group="Statistics")] = None,
) -> View:
    """Measure how well raters agree, describe each rater, and rank systems by human scores.

    Parameters
    ----------
    human
        Judgments with raters, or a campaign.
    answers
        Answers to a campaign: the database of `tertium annotate` or .jsonl (default: the database
        next to the campaign).
    exclude
        Raters to leave out.
    lps
        Only these language pairs (default: all).
    pass_mark
        MQM points per 1,000 words up to which a system passes (default: no result).

    Examples
    --------
    tertium agree ratings.csv
    tertium agree campaign.json
    tertium agree campaign.json --answers answers.jsonl -o judgments.jsonl
    tertium agree ratings.csv --exclude rater-3 -o agreement.json

    Notes
    -----
    HUMAN is a campaign that raters answered in `tertium annotate`, or judgments with rater names:
    TSV, CSV or JSONL, MQM, ESA, Appraise, Pearmut, Label Studio. -o FILE.jsonl writes the judgments
    of a campaign, also while its server is running; meta, train, route and report read them.
    """
    paths = output.paths(RaterStudies)
    judgment_files = [path for path in paths if path.endswith(".jsonl")]
    scored = score_campaign(human, answers) if is_campaign_file(human) else None
    if judgment_files and scored is None:
        raise UsageError(f"-o {judgment_files[0]} holds judgments of a campaign: give one")
    studies = agree(
        human if scored is None else scored,
        answers=None if scored else answers,
        exclude=exclude,
        lps=lps,
        pass_mark=pass_mark,
        **field_values(tests),
    )
    if scored is not None:
        for path in judgment_files:
            scored.write(path, exclude)
    result = RaterStudies(tuple(studies))
    records = result.records()
    return View(
        result=result,
        json=records[0] if len(records) == 1 else records,
        files=[(result, path) for path in paths if path not in judgment_files],
    )
