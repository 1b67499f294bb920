"""Tables of agreement between raters, of their quality, and of human scores of systems."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tertium.core.result import Table
from tertium.evaluation.rater_agreement import CEILING, RaterStudy
from tertium.output.tables.table import Cell, cell_table, number_cell

SEVERITIES = ("critical", "major", "minor", "bad", "neutral")


def agreement_statistics_table(study: RaterStudy, decimals: int = 3) -> Table:
    """Return the agreement statistics with intervals."""
    rows: list[list[Cell | str]] = [
        [
            entry.name,
            number_cell(entry.value, decimals),
            _interval_cell(entry.low, entry.high, decimals),
            Cell(f"{entry.count:,}", entry.count),
        ]
        for entry in study.statistics
    ]
    notes = [
        "judged: translations of two or more raters; pairs of ratings for Pearson, Kendall, kappa"
    ]
    if not rows:
        notes = ["no translation was judged by two raters: agreement cannot be measured"]
    if any(entry.name == CEILING for entry in study.statistics):
        notes.append(
            f"{CEILING}: the highest Pearson correlation with the mean of the raters to expect"
        )
    excluded = [f"left out: {reason}: {count}" for reason, count in study.excluded_counts.items()]
    return cell_table(
        ["statistic", "value", "95 % interval", "judged"],
        rows,
        title=f"Agreement of raters ({len(study.raters)}): {study.name}",
        notes=[*notes, *excluded],
    )


def rater_table(study: RaterStudy, decimals: int = 1) -> Table:
    """Return one row per rater."""
    has_seconds = any(not math.isnan(rater.seconds) for rater in study.raters)
    has_checks = any(rater.checks for rater in study.raters)
    header = ["rater", "judgments", "mean", "sd", "bias", "r with others", "drift / 100"]
    header += ["alpha without"] + ["seconds"] * has_seconds + ["checks"] * has_checks
    rows: list[list[Cell | str]] = []
    for rater in study.raters:
        name = Cell(rater.rater, rater.rater, "bad" if rater.should_leave_out else "")
        row: list[Cell | str] = [name, Cell(f"{rater.judgments:,}", rater.judgments)]
        row += [number_cell(v, decimals) for v in (rater.mean, rater.deviation, rater.bias)]
        row.append(number_cell(rater.agreement, 2))
        drift = number_cell(rater.drift, decimals)
        if abs(rater.drift) > 2 * rater.drift_error:
            drift = Cell(f"* {drift.text}", drift.value)
        row += [drift, number_cell(rater.alpha_without, 3)]
        row += [number_cell(rater.seconds, 0)] if has_seconds else []
        passed = f"{rater.checks_passed} of {rater.checks}" if rater.checks else "–"
        row += [Cell(passed, rater.checks_passed)] if has_checks else []
        rows.append(row)
    notes = [
        "bias: mean difference to other raters on the same translations; drift / 100: its change "
        "over 100 judgments, * if larger than two standard errors",
        *_leave_out_notes(study),
    ]
    return cell_table(header, rows, title="Raters", notes=notes)


def _leave_out_notes(study: RaterStudy) -> list[str]:
    names = [rater for rater in study.raters if rater.should_leave_out]
    lines = [
        f"consider leaving out {rater.rater}: {'; '.join(rater.reasons)} (--exclude)"
        for rater in names
    ]
    if study.without:
        lines.append(
            f"without {', '.join(rater.rater for rater in names)}: alpha "
            f"{study.without['alpha']:.3f}, order of systems "
            + ("unchanged" if study.without["order"] == 1 else f"tau {study.without['order']:.2f}")
        )
    return lines


def human_score_table(study: RaterStudy, decimals: int = 2) -> Table:
    """Return systems from best to worst."""
    rows: list[list[Cell | str]] = [
        [
            score.system,
            number_cell(score.mean, decimals),
            _interval_cell(score.low, score.high, decimals),
            number_cell(score.standardized, 3),
            Cell(f"{score.judgments:,}", score.judgments),
            Cell(str(score.cluster), score.cluster),
        ]
        for score in study.systems
    ]
    return cell_table(
        ["system", "mean", "95 % interval", "z", "judgments", "cluster"],
        rows,
        title="Systems by human score",
        notes=[
            "intervals and clusters: bootstrap of raters and documents; z: standardized by rater"
        ],
    )


def scorecard_table(study: RaterStudy) -> Table:
    """Return MQM points per 1,000 words by system."""
    severities = [s for s in SEVERITIES if any(card.errors.get(s) for card in study.scorecards)]
    is_graded = any(card.passed is not None for card in study.scorecards)
    rows: list[list[Cell | str]] = []
    for card in study.scorecards:
        row: list[Cell | str] = [
            card.system,
            number_cell(card.points, 1),
            _interval_cell(card.low, card.high, 1),
            Cell(f"{card.words:,}", card.words),
        ]
        row += [Cell(f"{card.errors.get(s, 0):,}", card.errors.get(s, 0)) for s in severities]
        if is_graded:
            text = "pass" if card.passed else "fail"
            row.append(Cell(text, text, "good" if card.passed else "bad"))
        rows.append(row)
    header = ["system", "points", "95 % interval", "words", *severities]
    return cell_table(
        header + ["result"] * is_graded,
        rows,
        title="MQM scorecard: points per 1,000 words",
        notes=["words: of the source, once per judgment; characters in scripts without spaces"],
    )


def study_tables(study: RaterStudy) -> list[Table]:
    """Return all tables of a study."""
    tables = [agreement_statistics_table(study), rater_table(study), human_score_table(study)]
    return tables + ([scorecard_table(study)] if study.scorecards else [])


def _interval_cell(low: float, high: float, decimals: int) -> Cell:
    """Return an interval; TSV has its bounds in columns of their own."""
    if math.isnan(low) or math.isnan(high):
        return Cell("–", "", extra_columns={"low": math.nan, "high": math.nan})
    bounds: Sequence[str] = [f"{value:z.{decimals}f}" for value in (low, high)]
    return Cell(" to ".join(bounds), " to ".join(bounds), extra_columns={"low": low, "high": high})
