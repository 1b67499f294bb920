"""Small sets of human scores for experiments, with results that are easy to compute by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.builders import write_jsonl, write_tsv

COMPARISONS = "segment judge system_a system_b preference"


def write_assessments(root: Path, name: str, scores: Sequence[float]) -> None:
    """Write cs-en judgments of translations with 1, 2, 3, ... letters."""
    rows = [
        {"system": "A", "segment": str(n), "hypothesis": "x" * n, "reference": "r", "score": score}
        for n, score in enumerate(scores, 1)
    ]
    write_jsonl(root / "da" / name / "cs-en.jsonl", rows)


def write_rankings(
    root: Path, outputs: Mapping[str, str], comparisons: Sequence[str], segment: str = "1"
) -> Path:
    """Write comparisons of one cs-en segment, such as `A B a`; return the folder."""
    folder = root / "rankings" / "mine"
    texts = {"segment": segment, "source": "s", "reference": "r", "outputs": dict(outputs)}
    write_jsonl(folder / "cs-en.texts.jsonl", [texts])
    rows = [(segment, "j", *comparison.split()) for comparison in comparisons]
    write_tsv(folder / "cs-en.judgements.tsv", COMPARISONS, rows)
    return folder
