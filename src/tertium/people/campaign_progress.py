"""The manager's view: progress, speed, attention checks and agreement of each rater.

Names and scores of systems are left out until the campaign is unblinded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from statistics import fmean, median, pstdev
from typing import Any

import numpy as np

from tertium.meta.correlation import pearson
from tertium.people.campaign import Campaign
from tertium.people.rater_answers import RaterAnswer, judgment_rows
from tertium.people.rater_quality import count_checks
from tertium.people.reliability import krippendorff_alpha
from tertium.people.state import CampaignState, RaterState

MIN_ANSWERS = 5  # before a rater is called suspicious
MIN_OVERLAP = 5  # common answers for a correlation
FAST_SHARE = 1 / 3  # of the median time of all raters
MIN_SPREAD = 1.0  # standard deviation of scores
MIN_CORRELATION = 0.1

Cell = tuple[str, str]  # item and system
Scores = Mapping[str, Mapping[Cell, float]]  # by rater


def describe_progress(state: CampaignState) -> dict[str, Any]:
    """Return the progress of a campaign as JSON."""
    campaign = state.campaign
    with state.lock:
        answers = state.answers()
        rows = [_describe_rater(rater, own) for rater, own in state.raters.items()]
    scores = scores_by_rater(answers, campaign)
    checks = count_checks(campaign, answers)
    seconds = {rater: _seconds(answers, rater) for rater in state.raters}
    usual = median([s for own in seconds.values() for s in own] or [math.nan])
    for row in rows:
        rater = row["rater"]
        passed, total = checks.get(rater, (0, 0))
        row["seconds"] = round(median(seconds[rater]), 1) if seconds[rater] else None
        row["checks"] = {"passed": passed, "failed": total - passed}
        row["agreement"] = correlate_with_others(rater, scores)
        row["suspicions"] = _suspicions(row, scores.get(rater, {}), usual)
    return {
        "name": campaign.name,
        "protocol": campaign.protocol,
        "is_stopped": state.is_stopped,
        "is_unblinded": state.is_unblinded,
        "raters": rows,
        "alpha": compute_alpha(scores),
        "systems": system_means(answers, campaign) if state.is_unblinded else None,
    }


def scores_by_rater(answers: Sequence[RaterAnswer], campaign: Campaign) -> Scores:
    """Return the scores of all complete answers, without attention checks and tutorials."""
    scores: dict[str, dict[Cell, float]] = {}
    for row in judgment_rows(answers, campaign):
        scores.setdefault(row["rater"], {})[row["segment"], row["system"]] = row["score"]
    return scores


def correlate_with_others(rater: str, scores: Scores) -> float | None:
    """Correlate a rater with the mean of the others on outputs that both judged (Pearson's r)."""
    pairs = []
    for cell, score in scores.get(rater, {}).items():
        other_scores = [own[cell] for name, own in scores.items() if name != rater and cell in own]
        if other_scores:
            pairs.append((score, fmean(other_scores)))
    if len(pairs) < MIN_OVERLAP:
        return None
    left, right = zip(*pairs, strict=True)
    if pstdev(left) == 0 or pstdev(right) == 0:
        return None
    return round(float(pearson(left, right)), 3)


def compute_alpha(scores: Scores) -> float | None:
    """Compute Krippendorff's alpha (interval) on outputs that several raters judged."""
    units = sorted({cell for own in scores.values() for cell in own})
    matrix = np.array([[own.get(cell, np.nan) for cell in units] for own in scores.values()])
    if not units or np.isfinite(matrix).sum(axis=0).max() < 2:
        return None
    alpha = krippendorff_alpha(matrix)
    return round(alpha, 3) if math.isfinite(alpha) else None


def system_means(answers: Sequence[RaterAnswer], campaign: Campaign) -> list[dict[str, Any]]:
    """Return the mean score of each system, best first."""
    scores: dict[str, list[float]] = {system: [] for system in campaign.systems}
    for row in judgment_rows(answers, campaign):
        scores[row["system"]].append(row["score"])
    means = [
        {"system": system, "count": len(own), "mean": round(fmean(own), 2) if own else None}
        for system, own in scores.items()
    ]
    return sorted(means, key=lambda row: (row["mean"] is None, -(row["mean"] or 0.0)))


def _describe_rater(rater: str, own: RaterState) -> dict[str, Any]:
    has_started = not math.isnan(own.last_received)
    return {
        "rater": rater,
        "tasks": len(own.tasks),
        "done": own.count("done"),
        "skipped": own.count("skipped"),
        "open": own.count("open"),
        "is_on_break": own.is_on_break,
        "idle_seconds": max(0, round(time.time() - own.last_received)) if has_started else None,
    }


def _seconds(answers: Sequence[RaterAnswer], rater: str) -> list[float]:
    own = [a for a in answers if a.rater == rater and not a.skipped]
    return [answer.seconds for answer in own if answer.seconds is not None]


def _suspicions(row: Mapping[str, Any], scores: Mapping[Cell, float], usual: float) -> list[str]:
    """Return reasons to look at a rater's answers."""
    reasons = []
    failed, passed = row["checks"]["failed"], row["checks"]["passed"]
    if failed and failed >= passed:
        reasons.append(f"failed {failed} of {failed + passed} attention checks")
    if row["done"] < MIN_ANSWERS:
        return reasons
    if row["seconds"] is not None and row["seconds"] < FAST_SHARE * usual:
        reasons.append("much faster than the others")
    if len(scores) >= MIN_ANSWERS and pstdev(scores.values()) < MIN_SPREAD:
        reasons.append("almost always the same score")
    if row["agreement"] is not None and row["agreement"] < MIN_CORRELATION:
        reasons.append("does not agree with the others")
    if row["skipped"] > row["done"]:
        reasons.append("skips most tasks")
    return reasons
