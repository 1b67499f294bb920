"""Read human data of any format, which is detected from the file or folder.

`formats` has the published formats. Other tables have scores of translations, or of systems. A name
that is no path is that of a dataset in the data folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Collection as Container
from dataclasses import replace
from pathlib import Path

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UsageError, short_repr
from tertium.core.frames import is_frame
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.formats import Source, find_format
from tertium.data.human_data import HumanData
from tertium.data.human_score_tables import read_system_scores
from tertium.data.judgments import JudgmentSet, read_judgments
from tertium.data.rankings import RankingSet
from tertium.data.ratings import average_ratings
from tertium.data.record_files import RECORD_SUFFIXES
from tertium.data.text_files import LANGUAGE_PAIR
from tertium.text.language_codes import normalize_language_pair


def read_human_data(
    source: PathLike,
    *,
    level: str = "segment",
    lps: Sequence[str] = (),
    gold: str = "",
    data: PathLike | None = None,
) -> list[HumanData]:
    """Read the human data of a file, folder, named dataset or frame, a set for each language pair.

    Parameters
    ----------
    source
        A file, folder, dataset name, or frame of judgments.
    level
        "segment" or "system".
    lps
        The language pairs to keep, such as en-de, eng-deu or ende; by default all. The result may
        be empty.
    gold
        The kind of human scores if there are several, or the score column of a table.
    data
        The folder in which dataset names are looked up.
    """
    lps = [normalize_language_pair(lp) for lp in lps]
    if is_frame(source):
        judgment_set = read_judgments(source, score=gold or None)
        return [entry for entry in _split(judgment_set) if not lps or entry.lp in lps]
    if not isinstance(source, str | os.PathLike):
        raise UsageError(
            f"expected a file, a dataset or a frame of judgments, got {short_repr(source)}: to use "
            'Judgment objects, create JudgmentSet(name="mine", judgments=...)'
        )
    place = Source(Path(source), level=level, gold=gold, lps=lps)
    sets = [*(_read(place) if place.path.exists() else _read_dataset(str(source), place, data))]
    if not sets and not lps:
        raise DataError(f"{source}: no judgments at {level} level")
    return [entry for entry in sets if not lps or entry.lp in lps]


def read_human_segment_scores(source: PathLike, systems: Container[str]) -> HumanData:
    """Read the human data of one test set, and check that they include one of the systems."""
    sets = read_human_data(source)
    if len(sets) > 1:
        names = ", ".join(entry.lp or entry.name for entry in sets)
        raise DataError(f"{source} contains several sets ({names}); a report needs one test set")
    matrix = sets[0].segment_scores()
    if not set(matrix.systems) & set(systems):
        first, expected = (", ".join(list(names)[:3]) for names in (matrix.systems, systems))
        raise DataError(
            f"{source}: no judged system ({first}) is in the report ({expected}); "
            "name the systems with --names"
        )
    return sets[0]


def read_rater_judgments(path: PathLike, *, lps: Sequence[str] = ()) -> list[JudgmentSet]:
    """Read the judgments of single raters, where `read_human_data` averages them."""
    pairs = [normalize_language_pair(lp) for lp in lps]
    if not isinstance(path, str | os.PathLike) or not Path(path).is_file():
        sets = read_human_data(path, lps=lps)
    else:
        sets = [*_read(Source(Path(path)), combine=lambda ratings: ratings)]
    judgments = [entry for entry in sets if isinstance(entry, JudgmentSet)]
    return [entry for entry in judgments if not pairs or entry.lp in pairs]


def _read(
    source: Source, combine: Callable[[JudgmentSet], JudgmentSet] = average_ratings
) -> Iterator[HumanData]:
    """Read a file or folder; `combine` is applied to the ratings of published files."""
    reader = find_format(source)
    if source.path.is_dir():
        if reader is None:
            raise DataError(
                f"{source.path}: expected a folder of mt-metrics-eval, a WMT metrics task or WMT "
                "quality estimation; give the files in it instead"
            )
        yield from reader.read(source)
        return
    for entry in _read_table(source) if reader is None else reader.read(source):
        if isinstance(entry, JudgmentSet):
            yield from _split(entry if reader is None else combine(entry), source.lp)
        else:
            yield entry


def _read_table(source: Source) -> Sequence[HumanData]:
    """Read scores of systems if they are asked for, or scores of translations."""
    has_system_scores = bool(source.columns) and source.columns <= {"system", "score", "lp"}
    if source.level == "system" and has_system_scores:
        return read_system_scores(source.path)
    return [read_judgments(source.path, score=source.gold or None)]


def _split(judgment_set: JudgmentSet, lp: str = "") -> Iterator[HumanData]:
    """Yield a set for each language pair, by default `lp`."""
    excluded_counts = judgment_set.excluded_counts  # reported once, with the first language pair
    for pair, part in judgment_set.split_by_language_pair().items():
        part_lp = pair or judgment_set.lp or lp
        yield replace(part, lp=part_lp, excluded_counts=excluded_counts)
        excluded_counts = {}


def _is_path(name: str) -> bool:
    path = Path(name)
    ends = {*RECORD_SUFFIXES, ".gz", ".score", ".txt"}
    return path.is_absolute() or name[:1] in (".", "~") or not ends.isdisjoint(path.suffixes)


def _read_dataset(name: str, source: Source, data: PathLike | None) -> Iterator[HumanData]:
    name = name.rstrip("/") or name  # shells append / to folders
    try:
        folder = DatasetFolder.open(data)
    except UsageError:
        raise DataError(
            f"{name}: no such file or folder; to use a dataset name, give --data"
        ) from None
    if name not in {entry.name for entry in folder.sets} and _is_path(name):
        raise DataError(f"{name}: no such file or folder")
    entry = folder.find(name)
    if entry.kind in ("metrics task", "mt-metrics-eval"):
        yield from _read(Source(entry.path, level=source.level, gold=source.gold, lps=source.lps))
        return
    if entry.kind == "sentence pairs":
        raise UsageError(f"{name} contains sentence pairs, not human scores of translations")
    for lp in entry.lps:
        if source.lps and lp not in source.lps:
            continue
        if entry.kind == "rankings":
            source.refuse_gold()
            has_scores = (lp, "systems") in entry.files
            scores = folder.system_scores(name, lp).system_scores() if has_scores else {}
            yield replace(folder.rankings(name, lp), published_scores=scores)
            continue
        parts = sorted(part for pair, part in entry.files if pair == lp)
        for part in ["test"] if "test" in parts else parts:
            judgment_set = folder.judgments(name, lp, part, score=source.gold or None)
            yield replace(judgment_set, name=f"{name} {part}".rstrip())


def read_sets_with_texts(
    sources: Iterable[PathLike], gold: str = ""
) -> list[JudgmentSet | RankingSet]:
    """Read sets with texts, for training, from distinct sources; `gold` as in `read_human_data`."""
    paths = [*sources]
    reject_duplicate_sources(paths)
    sets = [
        _with_texts(entry, path) for path in paths for entry in read_human_data(path, gold=gold)
    ]
    return [replace(entry, name=f"{entry.name} {gold}") for entry in sets] if gold else sets


def reject_duplicate_sources(sources: Iterable[PathLike]) -> None:
    """Raise an error if a file, folder or dataset is given twice, under any name."""
    places: set[str] = set()
    for source in sources:
        if (place := os.path.realpath(source)) in places:
            raise UsageError(
                f"{source} is given twice, so its judgments would count twice: give it once"
            )
        places.add(place)


def read_judgment_sets(sources: Iterable[PathLike], gold: str = "") -> list[JudgmentSet]:
    """Read sets as `read_sets_with_texts`, and raise an error if one contains comparisons."""
    sets = read_sets_with_texts(sources, gold)
    judgment_sets = [entry for entry in sets if isinstance(entry, JudgmentSet)]
    if len(judgment_sets) < len(sets):
        raise DataError("expected translations with scores, got comparisons")
    return judgment_sets


def _with_texts(entry: HumanData, source: PathLike) -> JudgmentSet | RankingSet:
    *_, file = path = Path(source).parts
    name = entry.name
    if LANGUAGE_PAIR.fullmatch(file.partition(".")[0]):  # da/wmt16/cs-en.jsonl.gz -> da/wmt16
        name = "/".join(path[-3:-1]) or name
    match entry:
        case JudgmentSet():
            return replace(entry, name=name)
        case RankingSet() if entry.has_texts:
            return replace(entry, name=name)
    raise DataError(
        f"{source}: no texts; expected translations with scores, or comparisons with columns "
        "hypothesis_a and hypothesis_b or a file X.texts.jsonl next to X.judgements.tsv"
    )
