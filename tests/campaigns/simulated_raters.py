"""Raters who answer campaigns of the example systems as the invented ratings do, with noise."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from tertium.core.spans import Span
from tertium.people.campaign import Campaign, to_json
from tertium.people.rater_answers import RaterAnswer

EXAMPLES = Path(__file__).parents[2] / "examples"
DAMAGE_PENALTY = 40.0


def example_quality() -> dict[tuple[str, str], float]:
    """Return the mean rating of each example translation, by system and segment."""
    scores: dict[tuple[str, str], list[float]] = {}
    with (EXAMPLES / "ratings.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["system"], row["segment"]
            scores.setdefault(key, []).append(float(row["score"]))
    return {key: float(np.mean(values)) for key, values in scores.items()}


def simulate_answers(
    campaign: Campaign,
    quality: Mapping[tuple[str, str], float] | None = None,
    *,
    noise: float = 6.0,
    careless: tuple[str, ...] = (),
    seed: int = 1,
) -> list[RaterAnswer]:
    """Answer all assignments; careless raters give random scores."""
    known = example_quality() if quality is None else quality
    answers = []
    for number, rater in enumerate(campaign.raters):
        rng = np.random.default_rng([seed, number])
        bias, minutes = rng.normal(0, 4), 0.0
        for turn in campaign.assignments[rater]:
            item = campaign.items_by_id[turn.item]
            for system in turn.systems:
                truth = known.get((system_name(system), item.original or item.id), 90.0)
                truth -= DAMAGE_PENALTY * (system in item.damage)
                score = float(np.clip(truth + bias + rng.normal(0, noise), 0, 100))
                score = float(rng.uniform(0, 100)) if rater in careless else score
                seconds = float(rng.uniform(20, 60))
                minutes += seconds / 60
                day, minute = divmod(int(minutes), 480)
                answers.append(
                    RaterAnswer(
                        rater=rater,
                        item=item.id,
                        system=system,
                        score=round(score, 1),
                        spans=mark(item.outputs[system], score),
                        seconds=seconds,
                        time=f"2026-05-{4 + day:02}T{8 + minute // 60:02}:{minute % 60:02}:00Z",
                    )
                )
    return answers


def system_name(system: str) -> str:
    """Return the name of an example system in the ratings, of its file or as it is."""
    return next((name for name in ("good", "fair", "poor") if name in system), system)


def mark(text: str, score: float) -> tuple[Span, ...]:
    """Mark the first words of a translation with a low score."""
    if score > 80 or not text:
        return ()
    end = min(len(text), 4 + int(100 - score) // 8)
    return (Span(0, end, severity="major" if score < 50 else "minor"),)


def write_answers(answers: Iterable[RaterAnswer], path: Path | str) -> None:
    """Write an answer file."""
    lines = [json.dumps(to_json(answer), ensure_ascii=False) + "\n" for answer in answers]
    Path(path).write_text("".join(lines), encoding="utf-8")
