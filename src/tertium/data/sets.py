"""What can be learned from: judged translations and comparisons of any source, as sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tertium.data.evidence import read_evidence
from tertium.data.formats import PathLike
from tertium.data.judgements import JudgementSet
from tertium.data.people import ComparedTranslations, Evidence, ScoredTranslations
from tertium.data.preferences import RankingSet
from tertium.errors import DataError


def read_sets(sources: Iterable[PathLike]) -> list[JudgementSet | RankingSet]:
    """The sets of files, folders or named sets, by language pair and named after their place."""
    return [_set_of(entry, source) for source in sources for entry in read_evidence(source)]


def read_scored_sets(sources: Iterable[PathLike]) -> list[JudgementSet]:
    """The same where only translations with scores will do."""
    sets = read_sets(sources)
    scored = [one for one in sets if isinstance(one, JudgementSet)]
    if len(scored) < len(sets):
        raise DataError("comparisons were given where translations with scores are needed")
    return scored


def _set_of(entry: Evidence, source: PathLike) -> JudgementSet | RankingSet:
    name = "/".join(Path(source).parts[-3:-1]) or entry.name  # da/wmt16/cs-en.jsonl.gz: da/wmt16
    match entry:
        case ScoredTranslations():
            return replace(entry.judgements, name=name, lp=entry.lp)
        case ComparedTranslations() if entry.comparisons.has_texts:
            return replace(entry.comparisons, name=name, lp=entry.lp)
    raise DataError(
        f"{source}: no texts; expected translations with their scores, or comparisons with columns "
        "hypothesis_a and hypothesis_b or a file X.texts.jsonl beside X.judgements.tsv"
    )
