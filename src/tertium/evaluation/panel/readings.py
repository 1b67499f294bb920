"""One sentence for each doubt: what its numbers say of the metrics, good or bad."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tertium.evaluation.panel.case import Doubt


def _each(doubt: Doubt, say: Callable[[int], str]) -> str:
    return "; ".join(f"{name} {say(n)}" for n, name in enumerate(doubt.series)) + "."


def _chance(doubt: Doubt) -> str:
    own, shuffled, _ = doubt.values
    tied = f"One score for all gets {doubt.values[2, 0]:.3f} where ties are calibrated: "
    return tied + _each(doubt, lambda n: f"is {own[n] - shuffled[n]:+.3f} above its own shuffled")


def _sentinels(doubt: Doubt) -> str:
    found = []
    for n, series in enumerate(doubt.series):
        own = doubt.values[:, n]
        only = [r for r, row in enumerate(doubt.rows) if row.endswith(" only")]
        known = [r for r in only if own[r] == own[r]]
        if known:
            best = max(known, key=lambda r: own[r])
            beaten = [
                doubt.rows[r] for r in range(len(own)) if r not in only and not own[r] > own[best]
            ]
            more = f", no less than {', '.join(beaten)}" if beaten else ", less than every metric"
            found.append(f"{series}: {doubt.rows[best]} reaches r = {own[best]:.3f}{more}")
    return "; ".join(found) + "."


def _length(doubt: Doubt) -> str:
    last = doubt.values[-1]
    return f"With {doubt.rows[-1]}, " + _each(
        doubt, lambda n: f"moves by {last[n]:+.2f} standard deviations"
    )


def _bad_outputs(doubt: Doubt) -> str:
    worst = doubt.values.argmax(axis=0)
    return "What gets by most easily: " + _each(
        doubt,
        lambda n: f"rates {doubt.rows[worst[n]]} above {doubt.values[worst[n], n]:.0%} of outputs",
    )


def _references(doubt: Doubt) -> str:
    first, last = doubt.values[0], doubt.values[-1]
    return "With another segment's reference, " + _each(
        doubt, lambda n: f"agrees by r = {last[n]:.3f} instead of {first[n]:.3f}"
    )


def _order(doubt: Doubt) -> str:
    moved = [name for n, name in enumerate(doubt.series) if np.nanmax(doubt.values[:, n]) > 0]
    if not moved:
        return "Every score is the same to the last bit, whatever stands beside it."
    return f"Scores change with their neighbours under {', '.join(moved)}."


def _domains(doubt: Doubt) -> str:
    def spread(n: int) -> str:
        own = doubt.values[:, n]
        if np.isnan(own).all():
            return "is undefined everywhere"
        low, high = int(np.nanargmin(own)), int(np.nanargmax(own))
        least, most = (f"{doubt.rows[r]} ({own[r]:.3f})" for r in (low, high))
        return f"agrees least on {least}, most on {most}"

    return _each(doubt, spread)


def _best_systems(doubt: Doubt) -> str:
    first, last = doubt.values[0], doubt.values[-1]
    return f"From {doubt.rows[0]} to {doubt.rows[-1]}, " + _each(
        doubt, lambda n: f"goes from {first[n]:.0%} to {last[n]:.0%} of pairs"
    )


def _interference(doubt: Doubt) -> str:
    parts = []
    for n, row in enumerate(doubt.rows):
        own, people = doubt.values[n, n], doubt.values[n, -1]
        parts.append(f"{row}: {own:+.2f} under itself, {people:+.2f} under people")
    return "; ".join(parts) + "."


READINGS: Mapping[str, Callable[[Doubt], str]] = {
    "chance": _chance,
    "sentinels": _sentinels,
    "length": _length,
    "bad outputs": _bad_outputs,
    "references": _references,
    "order": _order,
    "domains": _domains,
    "best systems": _best_systems,
    "interference": _interference,
}
