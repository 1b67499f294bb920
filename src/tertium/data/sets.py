"""Files of judgements and of comparisons as sets, named after where they lie."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tertium.data.collection import read_texts
from tertium.data.judgements import JudgementSet, read_judgements
from tertium.data.preferences import RankingSet, read_preferences
from tertium.errors import DataError


def read_score_sets(files: Sequence[str | Path]) -> list[JudgementSet]:
    """The judged translations of each file."""
    return [read_judgements(file, name=_name(file), lp=_pair(file)) for file in files]


def read_ranking_sets(files: Sequence[str | Path]) -> list[RankingSet]:
    """The comparisons of each file, which finds its texts in the row or in a file beside it."""
    sets = []
    for file in files:
        beside = Path(str(file).replace(".judgements.tsv", ".texts.jsonl"))
        texts = read_texts(beside) if beside != Path(file) and beside.is_file() else None
        one = read_preferences(file, texts=texts, name=_name(file), lp=_pair(file))
        if not one.has_texts:
            raise DataError(
                f"{file}: no texts; expected columns hypothesis_a and hypothesis_b, or {beside}"
            )
        sets.append(one)
    return sets


def _name(file: str | Path) -> str:
    """A set's name from its path: `da/wmt16/cs-en.jsonl.gz` is `da/wmt16`."""
    parts = Path(file).parts
    return "/".join(parts[-3:-1]) or Path(file).name.split(".")[0]


def _pair(file: str | Path) -> str:
    found = re.search(r"(?:^|\.)([a-z]{2,3}-[a-z]{2,3})(?=\.)", Path(file).name)
    return found.group(1) if found else ""
