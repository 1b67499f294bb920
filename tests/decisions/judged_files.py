"""Judged translations whose human score falls with the number of wrong words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tertium.core.resampling import make_rng

WORDS = (
    "die Katze saß auf der Matte neben dem grünen Haus und sieben Leute lasen alte Bücher".split()
)


def make_rows(
    count: int, lp: str = "en-de", seed: int = 1, noise: float = 5.0
) -> list[dict[str, Any]]:
    """Return records with texts and a score of 100 - 9 x wrong words, plus noise."""
    rng, rows = make_rng(seed), []
    for n in range(count):
        reference = [str(word) for word in rng.choice(WORDS, 12)]
        wrong = int(rng.integers(0, 8))
        hypothesis = list(reference)
        for place in rng.choice(12, wrong, replace=False):
            hypothesis[place] = "falsch"
        score = min(100.0, max(0.0, 100 - 9 * wrong + noise * float(rng.standard_normal())))
        rows.append(
            {
                "lp": lp,
                "segment": f"{lp}-{n}",
                "system": "ours",
                "src": f"a cat sat on the mat near the house, number {n}",
                "mt": " ".join(hypothesis) + f" {n}",
                "ref": " ".join(reference) + f" {n}",
                "score": score,
            }
        )
    return rows


def write_rows(path: Path, rows: list[dict[str, Any]], *, with_scores: bool = True) -> str:
    """Write records as JSONL, with human scores or without."""
    records = [{k: v for k, v in row.items() if with_scores or k != "score"} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in records), encoding="utf-8")
    return str(path)
