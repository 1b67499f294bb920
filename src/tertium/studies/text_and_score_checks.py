"""Run all diagnostics on the data of a meta-evaluation.

study = tertium.meta_evaluate("judgments.jsonl", ["chrf", "tertium-small"])
for diagnostic in run_diagnostics(study).diagnostics:
    print(diagnostic.question, diagnostic.summary)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from tertium.core.errors import UsageError
from tertium.core.result import Column, Result, Section, Table
from tertium.core.runtime import track_progress
from tertium.studies import score_checks, text_checks
from tertium.studies.diagnostic import (
    Diagnostic,
    DiagnosticData,
    NotApplicableError,
    merge,
)
from tertium.studies.meta_evaluation import AgreementStudy


def _summarize_each(result: Diagnostic, say: Callable[[int], str]) -> str:
    return "; ".join(f"{name} {say(n)}" for n, name in enumerate(result.series)) + "."


def _summarize_chance(result: Diagnostic) -> str:
    own, shuffled, _ = result.values
    tied = f"A constant score reaches {result.values[2, 0]:.3f} with calibrated ties: "
    return tied + _summarize_each(
        result, lambda n: f"is {own[n] - shuffled[n]:+.3f} above its shuffled scores"
    )


def _summarize_single_text_models(result: Diagnostic) -> str:
    sentences = []
    for n, series in enumerate(result.series):
        own = result.values[:, n]
        only = [r for r, row in enumerate(result.rows) if row.endswith(" only")]
        defined = [r for r in only if own[r] == own[r]]
        if defined:
            best = max(defined, key=lambda r: own[r])
            beaten = [
                result.rows[r] for r in range(len(own)) if r not in only and not own[r] > own[best]
            ]
            more = (
                f"at least as high as {', '.join(beaten)}" if beaten else "less than every metric"
            )
            sentences.append(f"{series}: {result.rows[best]} reaches r = {own[best]:.3f}, {more}")
    return "; ".join(sentences) + "."


def _summarize_length(result: Diagnostic) -> str:
    last = result.values[-1]
    return f"With {result.rows[-1]}, " + _summarize_each(
        result, lambda n: f"changes by {last[n]:+.2f} standard deviations"
    )


def _summarize_bad_outputs(result: Diagnostic) -> str:
    worst = result.values.argmax(axis=0)
    return "Highest-ranked bad output: " + _summarize_each(
        result,
        lambda n: (
            f"rates {result.rows[worst[n]]} above {result.values[worst[n], n]:.0%} of outputs"
        ),
    )


def _summarize_references(result: Diagnostic) -> str:
    first, last = result.values[0], result.values[-1]
    return "With another segment's reference, " + _summarize_each(
        result, lambda n: f"reaches r = {last[n]:.3f} instead of {first[n]:.3f}"
    )


def _summarize_order(result: Diagnostic) -> str:
    moved = [name for n, name in enumerate(result.series) if np.nanmax(result.values[:, n]) > 0]
    if not moved:
        return "No score depends on the other segments of the batch."
    return f"Scores depend on the other segments of the batch under {', '.join(moved)}."


def _summarize_domains(result: Diagnostic) -> str:
    def spread(n: int) -> str:
        own = result.values[:, n]
        if np.isnan(own).all():
            return "is undefined everywhere"
        low, high = int(np.nanargmin(own)), int(np.nanargmax(own))
        least, most = (f"{result.rows[r]} ({own[r]:.3f})" for r in (low, high))
        return f"agrees least on {least}, most on {most}"

    return _summarize_each(result, spread)


def _summarize_best_systems(result: Diagnostic) -> str:
    first, last = result.values[0], result.values[-1]
    return f"From {result.rows[0]} to {result.rows[-1]}, " + _summarize_each(
        result, lambda n: f"goes from {first[n]:.0%} to {last[n]:.0%} of pairs"
    )


def _summarize_interference(result: Diagnostic) -> str:
    parts = []
    for n, row in enumerate(result.rows):
        own, human = result.values[n, n], result.values[n, -1]
        parts.append(f"{row}: {own:+.2f} under itself, {human:+.2f} under human scores")
    return "; ".join(parts) + "."


# name: check, and how its result is summarized
DIAGNOSTICS: Mapping[
    str, tuple[Callable[[DiagnosticData], Diagnostic], Callable[[Diagnostic], str]]
] = {
    "sentinels": (score_checks.check_single_text_models, _summarize_single_text_models),
    "chance": (score_checks.check_chance, _summarize_chance),
    "bad outputs": (text_checks.check_bad_outputs, _summarize_bad_outputs),
    "references": (text_checks.check_references, _summarize_references),
    "length": (text_checks.check_length, _summarize_length),
    "order": (text_checks.check_order, _summarize_order),
    "domains": (score_checks.check_domains, _summarize_domains),
    "best systems": (score_checks.check_best_systems, _summarize_best_systems),
    "interference": (score_checks.check_interference, _summarize_interference),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class DiagnosticReport(Result):
    """The diagnostics that could be run, and the reasons why others were skipped."""

    diagnostics: tuple[Diagnostic, ...]
    skipped: Mapping[str, str]

    def records(self) -> dict[str, Any]:
        """Return all diagnostics as plain values, for JSON."""
        return {
            "doubts": [diagnostic.records() for diagnostic in self.diagnostics],
            "not_asked": dict(self.skipped),
        }

    def tables(self, *, chart: bool = False) -> list[Table]:
        """Return one table per diagnostic, with `chart` as `Diagnostic.table` draws it."""
        return [diagnostic.table(chart=chart) for diagnostic in self.diagnostics]

    def sections(self) -> list[Section]:
        """Return each diagnostic with its chart, then those that were skipped."""
        contents: list[Any] = []
        for diagnostic in self.diagnostics:
            contents += [diagnostic.table(), diagnostic.chart()]
        return [Section("Diagnostics", [*contents, self.skipped_lines()])]

    def file_table(self, suffix: str = "") -> Table:
        """Return one row per value."""
        rows = []
        for diagnostic in self.diagnostics:
            for record in diagnostic.records()["rows"]:
                for series, (low, high) in record["intervals"].items():
                    rows.append((diagnostic.name, record["row"], series, record[series], low, high))
        names = "diagnostic row series value low high".split()
        return Table([Column(name, itemgetter(n)) for n, name in enumerate(names)], rows)

    def skipped_lines(self) -> list[str]:
        """Return one line per diagnostic that the data did not allow."""
        return [f"{name}: skipped: {reason}" for name, reason in self.skipped.items()]


def run_diagnostics(study: AgreementStudy, *, seed: int = 12345) -> DiagnosticReport:
    """Run every diagnostic on every judged set; results of several sets are merged if possible."""
    if study.level != "segment":
        raise UsageError(
            "diagnostics need the segment level: leave out --level and system-level statistics"
        )
    sets = {
        aligned.name: DiagnosticData(
            aligned=aligned,
            human_data=study.human_data[aligned.name],
            metrics=study.metrics,
            seed=seed,
        )
        for aligned in study.sets
    }
    diagnostics, skipped = [], {}
    for name in track_progress(list(DIAGNOSTICS), "diagnostics"):
        check, summarize = DIAGNOSTICS[name]
        results, reasons = _run_check(check, sets)
        if results:
            merged = merge(results)
            diagnostics.append(replace(merged, summary=summarize(merged)))
        else:
            skipped[name] = reasons[0]
    return DiagnosticReport(diagnostics=tuple(diagnostics), skipped=skipped)


def _run_check(
    check: Callable[[DiagnosticData], Diagnostic], sets: Mapping[str, DiagnosticData]
) -> tuple[list[tuple[str, Diagnostic]], list[str]]:
    """Run one check on each set; return the results, and the reasons why others were skipped."""
    results, reasons = [], []
    for label, data in sets.items():
        try:
            if np.isnan(data.human).all():
                raise NotApplicableError("there are only system scores")
            results.append((label, check(data)))
        except NotApplicableError as reason:
            reasons.append(str(reason))
    return results, reasons
