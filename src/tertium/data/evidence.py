"""Whatever people said, in whichever file: one reader of all forms of evidence.

It looks at what it is given:

a CSV, TSV or JSONL of scores         judgments, one set for each language pair in it
one of comparisons                    with texts from its own columns, or `X.texts.jsonl` beside
                                      `X.judgments.tsv`
a ranking CSV of WMT                  comparisons of up to five systems a row
an MQM table                          error marks, raters averaged
a campaign of ESA, Appraise           scores and error spans, raters averaged
NAME.seg.score, NAME.sys.score        mt-metrics-eval's human scores
a folder                              of mt-metrics-eval, a metrics task, or WMT's quality
                                      estimation
the name of a set                     in a collection of human judgments
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection as Container
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tertium.arrays import FloatArray
from tertium.data.campaigns import (
    ESA_LAYOUTS,
    is_appraise,
    is_submission,
    read_appraise,
    read_esa,
    read_mqm,
)
from tertium.data.collection import Collection, read_system_scores, read_texts
from tertium.data.formats import LANGUAGE_PAIR, RECORD_SUFFIXES, PathLike, pair_in, read_records
from tertium.data.human import Evidence, Texts
from tertium.data.judgments import JudgmentSet, read_judgments
from tertium.data.mtme import EvalSet, eval_sets, read_score_file
from tertium.data.preferences import LEFT_NAMES, VERDICT_NAMES, read_preferences
from tertium.data.qe import qe_stems, read_qe
from tertium.data.rankings import ItemTexts, RankingSet
from tertium.data.ratings import average
from tertium.data.testset import TestSet
from tertium.data.wmt import MetricsTask, is_metrics_task, read_rankings
from tertium.errors import DataError, UnknownNameError, UsageError, one_line
from tertium.frames import is_frame
from tertium.scores import ScoreMatrix
from tertium.segment import Segment
from tertium.spans import Markings

logger = logging.getLogger(__name__)

LEADING_PAIR = re.compile(rf"{LANGUAGE_PAIR.pattern}(?=[-_.])")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScoreTable(Evidence):
    """A table of people's scores, systems x segments, or of whole systems where it has one column.

    `testset` holds the outputs where they lie beside.
    """

    table: ScoreMatrix
    testset: TestSet | None = None
    marks: Mapping[tuple[str, str], Markings] = field(default_factory=dict)

    def markings(self) -> Mapping[tuple[str, str], Markings]:
        return self.marks

    def matrix(self, level: str = "segment") -> ScoreMatrix | None:
        return self.table if self.table.values.shape[1] > 1 else None

    def system_scores(self) -> Mapping[str, float]:
        if self.matrix() is not None:
            return {}
        scores = zip(self.table.systems, self.table.values[:, 0].tolist(), strict=True)
        return {system: value for system, value in scores if value == value}

    def texts(self) -> Texts:
        if self.testset is None:
            return {}
        return {
            (system, str(n + 1)): segment
            for system in self.testset.systems
            for n, segment in enumerate(self.testset.segments(system))
        }

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        if self.testset is None:
            return {}
        documents = {"document": self.testset.documents} if self.testset.documents else {}
        return {
            name: {str(n): label for n, label in enumerate(labels, start=1)}
            for name, labels in {**self.testset.columns, **documents}.items()
        }

    def translations(self, level: str = "segment") -> list[tuple[str, Segment]]:
        return [(system, segment) for (system, _), segment in self.texts().items()]

    def arrange(self, values: FloatArray, name: str, level: str = "segment") -> ScoreMatrix:
        systems = tuple(self.testset.systems) if self.testset is not None else ()
        return ScoreMatrix(name, systems, values.reshape(len(systems), -1))


def read_evidence(
    source: PathLike,
    *,
    level: str = "segment",
    lps: Sequence[str] = (),
    gold: str = "",
    data: PathLike | None = None,
) -> list[Evidence]:
    """Everything people said in one file, folder, named set or frame of scores, by language pair.

    `lps` keeps some language pairs only (maybe none of this source's); `gold` chooses among
    several kinds of human scores in a folder of mt-metrics-eval or of quality estimation, or names
    the column of a table that holds them; `data` is the collection that a name is looked up in.
    """
    if is_frame(source):
        judged = read_judgments(source, score=gold or None)
        return [one for one in _by_pair(judged, "") if not lps or one.lp in lps]
    if not isinstance(source, str | os.PathLike):
        raise UsageError(
            f"expected a file, a set or a frame of judgments, got {one_line(source)}: of several "
            'Judgments make JudgmentSet(name="mine", judgments=...)'
        )
    path = Path(source)
    if path.is_file():
        found = list(_from_file(path, level, gold))
    elif path.is_dir():
        found = list(_from_folder(path, level, gold, lps))
    else:
        found = list(_from_collection(str(source), level, gold, data, lps))
    if not found and not lps:
        raise DataError(f"{source}: no judgments at {level} level")
    return [entry for entry in found if not lps or entry.lp in lps]


def read_people(source: PathLike, systems: Container[str]) -> Evidence:
    """What people said of the segments of some systems, from any source that holds one set."""
    sets = read_evidence(source)
    if len(sets) > 1:
        names = ", ".join(entry.lp or entry.name for entry in sets)
        raise DataError(f"{source} holds several sets ({names}): a report is about one test set")
    matrix = sets[0].segment_scores()
    if not set(matrix.systems) & set(systems):
        judged, shown = (", ".join(list(names)[:3]) for names in (matrix.systems, systems))
        raise DataError(
            f"{source}: none of the judged systems ({judged}) is among those of the report "
            f"({shown}); name them with --names"
        )
    return sets[0]


def _from_file(path: Path, level: str, gold: str) -> Iterator[Evidence]:
    lp = pair_in(path)
    if ".score" in path.suffixes:
        _refuse_gold(path, gold)
        yield ScoreTable(name=path.name.split(".score")[0], lp=lp, table=read_score_file(path))
        return
    if ".csv" in path.suffixes and is_appraise(path):
        _refuse_gold(path, gold)
        yield from _by_pair(average(read_appraise(path)), lp)
        return
    if ".txt" in path.suffixes and is_submission(path):
        _refuse_gold(path, gold)
        yield from _by_pair(average(read_esa(path)), lp)
        return
    if gold:  # a column of a table, whatever its layout
        yield from _by_pair(read_judgments(path, score=gold), lp)
        return
    columns = _columns(path)
    if columns & set(VERDICT_NAMES) and columns & set(LEFT_NAMES):
        yield read_preferences(path, texts=_texts_beside(path), lp=lp)
    elif "system1rank" in columns:
        yield from read_rankings(path).values()
    elif any(layout <= columns for layout in ESA_LAYOUTS):
        yield from _by_pair(average(read_esa(path)), lp)
    elif {"severity", "category"} <= columns:
        yield average(read_mqm(path, lp=lp))
    elif level == "system" and columns <= {"system", "score", "lp"}:
        for pair, scores in read_system_scores(path).items():
            yield _system_evidence(path.name.split(".")[0], pair, scores)
    else:
        yield from _by_pair(read_judgments(path), lp)


def _by_pair(judged: JudgmentSet, lp: str) -> Iterator[Evidence]:
    left_out = judged.left_out  # of the whole file: counted once, with its first pair
    for pair, part in judged.by_lp().items():
        yield replace(part, lp=pair or lp, left_out=left_out)
        left_out = {}


def _columns(path: Path) -> set[str]:
    """The names that the first record has, in lower case."""
    first = next(iter(read_records(path)), None)
    if first is None:
        raise DataError(f"{path} holds no judgments")
    return {str(name).lower() for name in first[1]}


def _texts_beside(path: Path) -> Mapping[str, ItemTexts] | None:
    """The texts that lie beside `X.judgments.tsv`, as `X.texts.jsonl`."""
    stem = path.name.split(".judgements.")[0]
    beside = [path.with_name(f"{stem}.texts.jsonl{end}") for end in ("", ".gz")]
    file = next((f for f in beside if f.is_file() and stem != path.name), None)
    return read_texts(file) if file else None


def _system_evidence(
    name: str,
    lp: str,
    scores: Mapping[str, float],
    testset: TestSet | None = None,
    left_out: Mapping[str, int] | None = None,
) -> ScoreTable:
    table = ScoreMatrix("human", tuple(scores), np.array([*scores.values()], float)[:, None])
    return ScoreTable(name=name, lp=lp, table=table, testset=testset, left_out=left_out or {})


def _refuse_gold(name: PathLike, gold: str) -> None:
    if gold:
        raise UsageError(f"--gold {gold}: {name} has scores of one kind; leave it out")


def _from_folder(path: Path, level: str, gold: str, lps: Sequence[str]) -> Iterator[Evidence]:
    if is_metrics_task(path):
        _refuse_gold(path, gold)
        yield from _from_task(MetricsTask.open(path), level, lps)
        return
    sets = [entry for entry in eval_sets(path) if not lps or entry.lp in lps]
    if sets:
        for entry in sets:
            yield from _from_eval_set(entry, level, gold)
        return
    stems = qe_stems(path)
    for stem in stems:
        names = (stem.name, path.name)  # en-de-dev/dev.src, en-de/en-de-dev.src
        leading = next((m[0] for name in names if (m := LEADING_PAIR.match(name))), "")
        yield read_qe(stem, gold=gold, lp=pair_in(stem) or leading)
    if not stems:
        raise DataError(
            f"{path} is no folder of mt-metrics-eval, of a metrics task or of WMT's quality "
            "estimation; name its files"
        )


def _from_task(task: MetricsTask, level: str, lps: Sequence[str]) -> Iterator[Evidence]:
    pairs = task.system_level if level == "system" else task.segment_level
    for lp in pairs:
        if lps and lp not in lps:
            continue
        testset = task.testset(lp) if lp in task.with_outputs else None
        if level == "system":
            human = task.system_scores(lp)
            yield _system_evidence(task.name, lp, human.scores, testset, human.left_out)
        elif testset is not None:
            yield task.judgments(lp, testset)
        else:
            logger.warning("%s: %s has no system outputs and is left out", task.name, lp)


def _from_eval_set(entry: EvalSet, level: str, gold: str) -> Iterator[Evidence]:
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
    files = sorted((entry.folder / "metric-scores" / entry.lp).glob("*.score"))
    yield ScoreTable(
        name=entry.folder.name,
        lp=entry.lp,
        table=entry.human(kind),
        testset=entry.testset(),
        files=tuple(files),
        marks=entry.markings(kind),
    )


def _is_path(name: str) -> bool:
    """Whether a name that is neither a file nor a set looks like that of a file or folder."""
    path = Path(name)
    ends = {*RECORD_SUFFIXES, ".gz", ".score", ".txt"}
    return path.is_absolute() or name[:1] in (".", "~") or not ends.isdisjoint(path.suffixes)


def _from_collection(
    name: str, level: str, gold: str, data: PathLike | None, lps: Sequence[str]
) -> Iterator[Evidence]:
    name = name.rstrip("/") or name  # which a shell adds to a folder
    try:
        collection = Collection.at(data)
    except UsageError:
        raise DataError(f"{name}: no such file or folder, nor any --data to find it in") from None
    if name not in {entry.name for entry in collection.sets} and _is_path(name):
        raise DataError(f"{name}: no such file or folder")
    entry = collection.find(name)
    if entry.kind in ("metrics task", "rankings"):
        _refuse_gold(name, gold)
    if entry.kind == "metrics task":
        yield from _from_task(collection.metrics_task(name), level, lps)
        return
    if entry.kind == "mt-metrics-eval":
        yield from _from_folder(entry.path, level, gold, lps)
        return
    if entry.kind == "sentence pairs":
        raise UsageError(f"{name} holds sentence pairs, not judged translations")
    for lp in entry.lps:
        if lps and lp not in lps:
            continue
        if entry.kind == "rankings":
            given = (lp, "systems") in entry.files
            systems = collection.system_scores(name, lp).scores if given else {}
            yield replace(collection.rankings(name, lp), standings=systems)
            continue
        parts = sorted(part for pair, part in entry.files if pair == lp)
        for part in ["test"] if "test" in parts else parts:
            judged = collection.judgments(name, lp, part, score=gold or None)
            yield replace(judged, name=f"{name} {part}".rstrip())


def read_sets(sources: Iterable[PathLike], gold: str = "") -> list[JudgmentSet | RankingSet]:
    """The sets of files, folders or named sets, by language pair and by name; each given once.

    `gold` chooses scores as for `read_evidence`, and stands in the names of sets.
    """
    given = [*sources]
    refuse_twice(given)
    entries = [(entry, one) for one in given for entry in read_evidence(one, gold=gold)]
    sets = [_set_of(entry, source) for entry, source in entries]
    return [replace(one, name=f"{one.name} {gold}") for one in sets] if gold else sets


def refuse_twice(sources: Iterable[PathLike]) -> None:
    """Refuse a file, folder or named set that is given twice, by whichever name."""
    places: set[str] = set()
    for source in sources:
        if (place := os.path.realpath(source)) in places:
            raise UsageError(
                f"{source} is given twice, and its judgments would count twice: give it once"
            )
        places.add(place)


def read_scored_sets(sources: Iterable[PathLike], gold: str = "") -> list[JudgmentSet]:
    """The same where only translations with scores will do."""
    sets = read_sets(sources, gold)
    scored = [one for one in sets if isinstance(one, JudgmentSet)]
    if len(scored) < len(sets):
        raise DataError("comparisons were given where translations with scores are needed")
    return scored


def _set_of(entry: Evidence, source: PathLike) -> JudgmentSet | RankingSet:
    *_, file = path = Path(source).parts
    name = entry.name  # of the file or set; da/wmt16/cs-en.jsonl.gz, named after its pair: da/wmt16
    if LANGUAGE_PAIR.fullmatch(file.partition(".")[0]):
        name = "/".join(path[-3:-1]) or name
    match entry:
        case JudgmentSet():
            return replace(entry, name=name)
        case RankingSet() if entry.has_texts:
            return replace(entry, name=name)
    raise DataError(
        f"{source}: no texts; expected translations with their scores, or comparisons with columns "
        "hypothesis_a and hypothesis_b or a file X.texts.jsonl beside X.judgements.tsv"
    )
