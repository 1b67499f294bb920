"""The manager's view: progress, speed, attention checks and agreement of each rater.

Names and scores of systems are left out until the campaign is unblinded.
"""

from __future__ import annotations

import math
import time
from statistics import fmean
from typing import Any

from tertium.people.rater_answers import ScoredAnswers
from tertium.people.rater_quality import RaterQuality, describe_raters, median
from tertium.people.reliability import Ratings, krippendorff_alpha
from tertium.people.state import CampaignState, RaterState

MIN_ANSWERS = 5  # before a rater is called suspicious
MIN_OVERLAP = 5  # common answers for a correlation
FAST_SHARE = 1 / 3  # of the median time of all raters
MIN_SPREAD = 1.0  # standard deviation of scores
MIN_CORRELATION = 0.1


def describe_progress(state: CampaignState) -> dict[str, Any]:
    """Return the progress of a campaign as JSON."""
    campaign = state.campaign
    with state.lock:
        scored = ScoredAnswers(campaign, state.answers())
        rows = {rater: _describe_rater(rater, own) for rater, own in state.raters.items()}
    checks = scored.count_checks()
    for rater, row in rows.items():
        passed, total = checks.get(rater, (0, 0))
        row["checks"] = {"passed": passed, "failed": total - passed}
        if total > passed and total >= 2 * passed:
            row["suspicions"].append(f"failed {total - passed} of {total} attention checks")
    alpha = None
    if scored.answers:
        ratings = Ratings.from_judgments(scored.judgments(), seconds=scored.seconds())
        usual = median(ratings.seconds)
        for quality in describe_raters(ratings, min_shared=MIN_OVERLAP):
            row = rows[quality.rater]
            row["seconds"] = _rounded(quality.seconds, 1)
            row["agreement"] = _rounded(quality.agreement, 3)
            row["suspicions"] += _suspicions(row, quality, usual)
        alpha = _rounded(krippendorff_alpha(ratings.matrix), 3)
    return {
        "name": campaign.name,
        "protocol": campaign.protocol,
        "is_stopped": state.is_stopped,
        "is_unblinded": state.is_unblinded,
        "raters": [*rows.values()],
        "alpha": alpha,
        "systems": _describe_systems(scored) if state.is_unblinded else None,
    }


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
        "seconds": None,
        "agreement": None,
        "suspicions": [],
    }


def _rounded(value: float, decimals: int) -> float | None:
    return round(value, decimals) if math.isfinite(value) else None


def _describe_systems(scored: ScoredAnswers) -> list[dict[str, Any]]:
    """Return the mean score of each system, best first."""
    scores: dict[str, list[float]] = {system: [] for system in scored.campaign.systems}
    for answer in scored.answers:
        scores[answer.system].append(scored.scores[answer.key])
    means = []
    for system, values in scores.items():
        mean = round(fmean(values), 2) if values else None
        means.append({"system": system, "count": len(values), "mean": mean})
    return sorted(means, key=lambda row: (row["count"] == 0, -(row["mean"] or 0.0)))


def _suspicions(row: dict[str, Any], quality: RaterQuality, usual: float) -> list[str]:
    """Return reasons to look at the answers of a rater."""
    if row["done"] < MIN_ANSWERS:
        return []
    reasons = {
        "much faster than the others": quality.seconds < FAST_SHARE * usual,
        "almost always the same score": quality.judgments >= MIN_ANSWERS
        and quality.deviation < MIN_SPREAD,
        "does not agree with the others": quality.agreement < MIN_CORRELATION,
        "skips most tasks": row["skipped"] > row["done"],
    }
    return [reason for reason, is_met in reasons.items() if is_met]
