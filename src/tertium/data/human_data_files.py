"""Read human data of any supported format; the format is detected from the file.

CSV, TSV or JSONL of scores           judgments, a set for each language pair
CSV, TSV or JSONL of comparisons      with texts from columns, or from `X.texts.jsonl` next to
                                      `X.judgements.tsv`
WMT ranking CSV                       comparisons of up to five systems per row
MQM table                             error annotations, raters averaged
ESA or Appraise campaign              scores and error spans, raters averaged
Pearmut, Label Studio, factgenie      exports of annotation tools, raters averaged
NAME.seg.score, NAME.sys.score        human scores of mt-metrics-eval
folder                                mt-metrics-eval, metrics task, or WMT quality estimation
name of a dataset                     in the data folder
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as Container
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from tertium.atomic import PathLike
from tertium.data.dataset_folder import DatasetFolder, read_system_scores, read_texts
from tertium.data.formats import annotation_tools, esa, mqm
from tertium.data.formats.metrics_task import MetricsTask, is_metrics_task, read_rankings
from tertium.data.formats.mt_metrics_eval import EvalSet, find_eval_sets, read_score_file
from tertium.data.formats.preferences import LEFT_NAMES, VERDICT_NAMES, read_preferences
from tertium.data.formats.wmt_quality_estimation import find_qe_stems, read_gold_labels, read_qe
from tertium.data.human_data import HumanData
from tertium.data.human_score_tables import HumanScoreTable
from tertium.data.judgments import JudgmentSet, read_judgments
from tertium.data.rankings import ItemTexts, RankingSet
from tertium.data.ratings import average_ratings
from tertium.data.record_files import RECORD_SUFFIXES, read_records
from tertium.data.testset import TestSet
from tertium.data.text_files import LANGUAGE_PAIR, language_pair_in_path, read_first_lines
from tertium.errors import DataError, UnknownNameError, UsageError, short_repr
from tertium.frames import is_frame
from tertium.scores import ScoreMatrix
from tertium.text.language_codes import normalize_language_pair

logger = logging.getLogger(__name__)

LEADING_PAIR = re.compile(rf"{LANGUAGE_PAIR.pattern}(?=[-_.])")


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
        return [entry for entry in _by_pair(judgment_set, "") if not lps or entry.lp in lps]
    if not isinstance(source, str | os.PathLike):
        raise UsageError(
            f"expected a file, a dataset or a frame of judgments, got {short_repr(source)}: to use "
            'Judgment objects, create JudgmentSet(name="mine", judgments=...)'
        )
    path = Path(source)
    if path.is_file():
        sets = list(_from_file(path, level, gold))
    elif path.is_dir():
        sets = list(_from_folder(path, level, gold, lps))
    else:
        sets = list(_from_dataset(str(source), level, gold, data, lps))
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
        sets = [*_from_file(Path(path), "segment", "", combine=lambda ratings: ratings)]
    judgments = [entry for entry in sets if isinstance(entry, JudgmentSet)]
    return [entry for entry in judgments if not pairs or entry.lp in pairs]


def _from_file(
    path: Path,
    level: str,
    gold: str,
    *,
    combine: Callable[[JudgmentSet], JudgmentSet] = average_ratings,
) -> Iterator[HumanData]:
    lp = language_pair_in_path(path)
    if ".score" in path.suffixes:
        _refuse_gold(path, gold)
        yield HumanScoreTable(name=path.name.split(".score")[0], lp=lp, table=read_score_file(path))
        return
    if ".csv" in path.suffixes and esa.is_appraise(path):
        _refuse_gold(path, gold)
        yield from _by_pair(combine(esa.read_appraise(path)), lp)
        return
    if ".txt" in path.suffixes and esa.is_span_task_submission(path):
        _refuse_gold(path, gold)
        yield from _by_pair(combine(esa.read_esa(path)), lp)
        return
    if ".tsv" in path.suffixes and mqm.is_average_score_file(path):
        _refuse_gold(path, gold)
        lp = lp or mqm.mqm_language_pair(path)
        yield mqm.read_average_scores(path, lp=lp)
        return
    if reader := annotation_tools.find_reader(path):
        _refuse_gold(path, gold)
        yield from _by_pair(combine(reader(path)), lp)
        return
    if gold:  # the score column of a table of any layout
        yield from _by_pair(read_judgments(path, score=gold), lp)
        return
    columns = _columns(path)
    if columns & set(VERDICT_NAMES) and columns & set(LEFT_NAMES):
        yield read_preferences(path, texts=_read_adjacent_texts(path), lp=lp)
    elif "system1rank" in columns:
        yield from read_rankings(path).values()
    elif columns in (set(esa.SCORE_LABELS), set(esa.TAG_LABELS)):
        yield from _by_pair(read_gold_labels(path), lp)
    elif any(layout <= columns for layout in esa.ESA_LAYOUTS):
        lp = lp or mqm.mqm_language_pair(path)
        yield from _by_pair(combine(esa.read_esa(path)), lp)
    elif {"severity", "category"} <= columns:
        lp = lp or mqm.mqm_language_pair(path)
        yield combine(mqm.read_mqm(path, lp=lp))
    elif level == "system" and columns <= {"system", "score", "lp"}:
        for pair, scores in read_system_scores(path).items():
            yield _system_evidence(path.name.split(".")[0], pair, scores)
    else:
        yield from _by_pair(read_judgments(path), lp)


def _by_pair(judgment_set: JudgmentSet, lp: str) -> Iterator[HumanData]:
    excluded_counts = judgment_set.excluded_counts  # reported once, with the first language pair
    for pair, part in judgment_set.split_by_language_pair().items():
        yield replace(part, lp=pair or lp, excluded_counts=excluded_counts)
        excluded_counts = {}


def _columns(path: Path) -> set[str]:
    if ".tsv" in path.suffixes:  # the header, because the first row may be unreadable
        if names := esa.find_omitted_header(path):
            return set(names)
        header, *rows = read_first_lines(path, 2)
        if any(rows):
            return {name.strip().lower() for name in header.split("\t")}
    first = next(iter(read_records(path)), None)
    if first is None:
        raise DataError(f"{path} contains no judgments")
    return {str(name).lower() for name in first[1]}


def _read_adjacent_texts(path: Path) -> Mapping[str, ItemTexts] | None:
    stem = path.name.split(".judgements.")[0]
    candidates = [path.with_name(f"{stem}.texts.jsonl{suffix}") for suffix in ("", ".gz")]
    file = next((f for f in candidates if f.is_file() and stem != path.name), None)
    return read_texts(file) if file else None


def _system_evidence(
    name: str,
    lp: str,
    scores: Mapping[str, float],
    testset: TestSet | None = None,
    excluded_counts: Mapping[str, int] | None = None,
) -> HumanScoreTable:
    table = ScoreMatrix("human", tuple(scores), np.array([*scores.values()], float)[:, None])
    return HumanScoreTable(
        name=name, lp=lp, table=table, testset=testset, excluded_counts=excluded_counts or {}
    )


def _refuse_gold(name: PathLike, gold: str) -> None:
    if gold:
        raise UsageError(f"--gold {gold}: {name} has only one kind of scores; omit --gold")


def _from_folder(path: Path, level: str, gold: str, lps: Sequence[str]) -> Iterator[HumanData]:
    if is_metrics_task(path):
        _refuse_gold(path, gold)
        yield from _from_task(MetricsTask.open(path), level, lps)
        return
    if sets := find_eval_sets(path):
        for entry in sets:
            if not lps or normalize_language_pair(entry.lp) in lps:
                yield from _from_eval_set(entry, level, gold)
        return
    stems = find_qe_stems(path)
    for stem in stems:
        names = (stem.name, path.name)  # en-de-dev/dev.src, en-de/en-de-dev.src
        leading = next((m[0] for name in names if (m := LEADING_PAIR.match(name))), "")
        yield read_qe(stem, gold=gold, lp=language_pair_in_path(stem) or leading)
    if not stems:
        raise DataError(
            f"{path}: expected a folder of mt-metrics-eval, a WMT metrics task or WMT quality "
            "estimation; give the files in it instead"
        )


def _from_task(task: MetricsTask, level: str, lps: Sequence[str]) -> Iterator[HumanData]:
    pairs = task.system_level if level == "system" else task.segment_level
    for lp in pairs:
        if lps and lp not in lps:
            continue
        testset = task.testset(lp) if lp in task.with_outputs else None
        if level == "system":
            human = task.system_scores(lp)
            yield _system_evidence(task.name, lp, human.scores, testset, human.excluded_counts)
        elif testset is not None:
            yield task.judgments(lp, testset)
        else:
            logger.warning("%s: %s has no system outputs; skipped", task.name, lp)


def _from_eval_set(entry: EvalSet, level: str, gold: str) -> Iterator[HumanData]:
    ending = ".sys" if level == "system" else ".seg"
    wanted = gold + ending
    kinds = [kind for kind in entry.human_scores if kind.endswith(ending)]
    if not gold and len(kinds) > 1:
        names = ", ".join(kind.rpartition(".")[0] for kind in kinds)
        raise UsageError(
            f"{entry.folder}, {entry.lp}: several human scores ({names}); choose one with --gold"
        )
    if gold and wanted not in kinds:
        raise UnknownNameError(f"human scores of {entry.lp}", gold, [k[:-4] for k in kinds])
    if not kinds:
        return
    kind = wanted if gold else kinds[0]
    yield HumanScoreTable(
        name=entry.folder.name,
        lp=normalize_language_pair(entry.lp),
        table=entry.human(kind),
        testset=entry.testset(),
        files=entry.score_files(),
        read_annotations=partial(entry.error_annotations, kind),
    )


def _is_path(name: str) -> bool:
    path = Path(name)
    ends = {*RECORD_SUFFIXES, ".gz", ".score", ".txt"}
    return path.is_absolute() or name[:1] in (".", "~") or not ends.isdisjoint(path.suffixes)


def _from_dataset(
    name: str, level: str, gold: str, data: PathLike | None, lps: Sequence[str]
) -> Iterator[HumanData]:
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
    if entry.kind in ("metrics task", "rankings"):
        _refuse_gold(name, gold)
    if entry.kind == "metrics task":
        yield from _from_task(folder.metrics_task(name), level, lps)
        return
    if entry.kind == "mt-metrics-eval":
        yield from _from_folder(entry.path, level, gold, lps)
        return
    if entry.kind == "sentence pairs":
        raise UsageError(f"{name} contains sentence pairs, not human scores of translations")
    for lp in entry.lps:
        if lps and lp not in lps:
            continue
        if entry.kind == "rankings":
            has_scores = (lp, "systems") in entry.files
            systems = folder.system_scores(name, lp).scores if has_scores else {}
            yield replace(folder.rankings(name, lp), published_scores=systems)
            continue
        parts = sorted(part for pair, part in entry.files if pair == lp)
        for part in ["test"] if "test" in parts else parts:
            judgment_set = folder.judgments(name, lp, part, score=gold or None)
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
