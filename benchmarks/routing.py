"""Precision that a route promises, and precision on judged rows of WMT24 that it reaches."""

from __future__ import annotations

from functools import lru_cache

from tertium.arrays import make_rng
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.formats import read_records

TRAIN, DEV = "modern/train/esa", "modern/dev/esa"
HUMAN_PREFIXES = ("ref", "human")  # system names of human translations start with these
SAMPLE_SIZE = {TRAIN: 400, DEV: 1200}  # judged rows of each language pair
SEED = 2025


@lru_cache(maxsize=2)
def read_sample(folder: str) -> dict[str, list[dict[str, object]]]:
    """Return judged rows of systems, drawn at random, by language pair."""
    rng, sample = make_rng(SEED), {}
    for path in sorted((DatasetFolder.open().root / folder).rglob("*.jsonl.gz")):
        rows = [
            record
            for _, record in read_records(path)
            if record.get("reference") and not record["system"].lower().startswith(HUMAN_PREFIXES)
        ]
        numbers = sorted(rng.choice(len(rows), min(SAMPLE_SIZE[folder], len(rows)), replace=False))
        sample[rows[0]["lp"]] = [rows[n] for n in numbers]
    return sample
