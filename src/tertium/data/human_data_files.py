"""Read human data of any format, which is detected from the file or folder.

`formats` has the published formats. Other tables have scores of translations, or of systems. A name
that is no path is that of a dataset in the data folder.
"""

from __future__ import annotations

import os
from collections.abc import Collection as Container
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UnknownNameError, UsageError, short_repr
from tertium.core.result import is_frame
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.formats import Source, find_reader
from tertium.data.human_data import HumanData, read_system_scores
from tertium.data.judgments import JudgmentSet, read_judgments
from tertium.data.rankings import RankingSet
from tertium.data.ratings import average_ratings
from tertium.data.text_files import LANGUAGE_PAIR
from tertium.text.language_codes import normalize_language_pair


def read_human_data(
    source: PathLike,
    *,
    level: str = "segment",
    lps: Sequence[str] = (),
    gold: str = "",
    data: PathLike | None = None,
    average: bool = True,
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
    average
        Whether the ratings of published files are averaged over raters.
    """
    lps = [normalize_language_pair(lp) for lp in lps]
    if is_frame(source):
        sets: list[HumanData] = [*_split(read_judgments(source, score=gold or None))]
    elif isinstance(source, str | os.PathLike):
        place = Source(Path(source), level=level, gold=gold, lps=lps)
        is_path = place.path.exists()
        sets = [*(_read(place, average) if is_path else _read_dataset(str(source), place, data))]
    else:
        raise UsageError(
            f"expected a file, a dataset or a frame of judgments, got {short_repr(source)}: to use "
            'Judgment objects, create JudgmentSet(name="mine", judgments=...)'
        )
    if not sets and not lps:
        raise DataError(f"{source}: no judgments at {level} level")
    return [entry for entry in sets if not lps or entry.lp in lps]


def read_human_segment_scores(source: PathLike, systems: Container[str]) -> HumanData:
    """Read the human data of one test set, and check that they include one of the systems."""
    sets = read_human_data(source)
    if len(sets) > 1:
        names = ", ".join(entry.lp or entry.name for entry in sets)
        raise DataError(f"{source} contains several sets ({names}); a report needs one test set")
    judged_systems = sets[0].segment_scores().systems
    if not {*judged_systems} & {*systems}:
        first, expected = (", ".join(list(names)[:3]) for names in (judged_systems, systems))
        raise DataError(
            f"{source}: no judged system ({first}) is in the report ({expected}); "
            "name the systems with --names"
        )
    return sets[0]


def read_rater_judgments(path: PathLike, *, lps: Sequence[str] = ()) -> list[JudgmentSet]:
    """Read the judgments of single raters, where `read_human_data` averages them."""
    sets = read_human_data(path, lps=lps, average=False)
    return [entry for entry in sets if isinstance(entry, JudgmentSet) and entry.testset is None]


def _read(source: Source, average: bool = True) -> Iterator[HumanData]:
    reader = find_reader(source)
    if reader is not None:
        entries: Iterable[HumanData] = reader(source)
    elif source.path.is_dir():
        raise DataError(
            f"{source.path}: expected a folder of mt-metrics-eval, a WMT metrics task or WMT "
            "quality estimation; give the files in it instead"
        )
    elif (
        source.level == "system" and source.columns and source.columns <= {"system", "score", "lp"}
    ):
        entries = read_system_scores(source.path)
    else:
        entries = [read_judgments(source.path, score=source.gold or None)]
    for entry in entries:
        if isinstance(entry, JudgmentSet) and source.path.is_file() and entry.testset is None:
            is_averaged = reader is not None and average
            yield from _split(average_ratings(entry) if is_averaged else entry, source.lp)
        else:
            yield entry


def _split(judgment_set: JudgmentSet, lp: str = "") -> Iterator[JudgmentSet]:
    """Yield a set for each language pair, by default `lp`."""
    for pair, part in judgment_set.split_by_language_pair().items():
        yield replace(part, lp=pair or judgment_set.lp or lp)


def _read_dataset(name: str, source: Source, data: PathLike | None) -> Iterator[HumanData]:
    try:
        folder = DatasetFolder.open(data)
    except UsageError:
        raise DataError(
            f"{name}: no such file or folder; to use a dataset name, give --data"
        ) from None
    try:
        entry = folder.find(name.rstrip("/"))  # shells append / to folders
    except UnknownNameError as error:
        raise DataError(f"{name}: no such file or folder; {error}") from None
    if not entry.files:
        yield from _read(Source(entry.path, level=source.level, gold=source.gold, lps=source.lps))
    for lp in (lp for lp in entry.lps if not source.lps or lp in source.lps):
        if entry.kind == "rankings":
            source.refuse_gold()
            yield folder.rankings(entry.name, lp)
            continue
        parts = entry.parts(lp)
        for part in ["test"] if "test" in parts else parts:
            judgment_set = folder.judgments(entry.name, lp, part, score=source.gold or None)
            yield replace(judgment_set, name=f"{entry.name} {part}".rstrip())


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
    if entry.testset is None and (isinstance(entry, JudgmentSet) or entry.has_texts):
        assert isinstance(entry, JudgmentSet | RankingSet)
        return replace(entry, name=name)
    raise DataError(
        f"{source}: no texts; expected translations with scores, or comparisons with columns "
        "hypothesis_a and hypothesis_b or a file X.texts.jsonl next to X.judgements.tsv"
    )
