"""mt-metrics-eval: folders of test sets with human scores, and files of scores.

    sources/en-de.txt                       references/en-de.refA.txt
    documents/en-de.docs                    DOMAIN DOCUMENT, one line per segment
    system-outputs/en-de/SYSTEM.txt
    human-scores/en-de.mqm.seg.score        SYSTEM<TAB>SCORE, `None` if missing
    human-scores/en-de.mqm.seg.rating       SYSTEM<TAB>JSON of errors<TAB>RATER, or `None`
    metric-scores/en-de/BLEU-refA.seg.score

A segment file has a block of scores for each system, in segment order.
"""

from __future__ import annotations

import codecs
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, LengthError, TertiumError, UnknownNameError, UsageError
from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Segment
from tertium.core.spans import ErrorAnnotations, merge_annotations
from tertium.data.error_annotations import read_error_annotations
from tertium.data.formats import Source
from tertium.data.human_data import UnreadableRows
from tertium.data.human_score_tables import HumanScoreTable
from tertium.data.record_files import parse_json
from tertium.data.records import read_object, read_object_list, read_score
from tertium.data.testset import TestSet
from tertium.data.text_files import LANGUAGE_PAIR, read_lines
from tertium.text.language_codes import normalize_language_pair

logger = logging.getLogger(__name__)

SCORE_LEVELS = (".seg.score", ".sys.score")
SCORE_FILE_SUFFIXES = frozenset(
    {"tsv", "csv", "txt", "jsonl", "ndjson", "parquet", "score", "seg", "sys", "doc"}
)


def matches(source: Source) -> bool:
    return source.path.is_file() or bool(find_eval_sets(source.path))


def read(source: Source) -> Iterator[HumanScoreTable]:
    path, gold = source.path, source.gold
    if path.is_file():
        source.refuse_gold()
        name = path.name.split(".score")[0]
        yield HumanScoreTable(name=name, lp=source.lp, table=read_score_file(path))
        return
    ending = ".sys" if source.level == "system" else ".seg"
    for entry in find_eval_sets(path):
        lp = normalize_language_pair(entry.lp)
        kinds = [k.removesuffix(ending) for k in entry.human_scores if k.endswith(ending)]
        if source.lps and lp not in source.lps:
            continue
        if not gold and len(kinds) > 1:
            names = ", ".join(kinds)
            raise UsageError(
                f"{path}, {entry.lp}: several human scores ({names}); choose one with --gold"
            )
        if gold and gold not in kinds:
            raise UnknownNameError(f"human scores of {entry.lp}", gold, kinds)
        for kind in [gold] if gold else kinds:
            yield HumanScoreTable(
                name=path.name,
                lp=lp,
                table=entry.human(kind + ending),
                testset=entry.testset(),
                files=entry.score_files(),
                read_annotations=partial(entry.error_annotations, kind),
            )


def read_score_file(path: PathLike, name: str = "") -> ScoreMatrix:
    """Read a score file as systems x segments; one column if it has one score per system."""
    blocks: dict[str, list[float]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        cells, where = line.split(), f"{path}, line {number}"
        if not cells:
            continue
        if len(cells) != 2:
            raise DataError(f"{where}: expected SYSTEM and SCORE, got {len(cells)} fields")
        blocks.setdefault(cells[0], []).append(read_score(cells[1], where))
    if not blocks:
        raise DataError(f"{path} contains no scores")
    first = next(iter(blocks))
    for system, scores in blocks.items():
        if len(scores) != len(blocks[first]):
            raise LengthError(
                f"{path}: {len(scores)} scores for {system!r}, but {len(blocks[first])} for "
                f"{first!r}"
            )
    items = tuple(str(n) for n in range(1, len(blocks[first]) + 1))
    values = np.array(list(blocks.values()))
    return ScoreMatrix(name or metric_name_from_path(path), tuple(blocks), values, items)


def read_rating_file(
    path: PathLike, segments: Mapping[str, Sequence[Segment]]
) -> dict[tuple[str, str], ErrorAnnotations]:
    """Read the errors of a rating file by system and item; offsets are checked if texts are known.

    The file has a block of lines for each system, in segment order, with `None` for segments that
    were not annotated. Ratings that cannot be read are skipped, and spans without a length become
    errors without a position; a warning counts both.
    """
    annotated: dict[tuple[str, str], ErrorAnnotations] = {}
    row_counts: Counter[str] = Counter()
    unreadable, empty_spans, rated = UnreadableRows(), 0, 0
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}, line {number}"
        system, _, cells = line.partition("\t")
        rating, _, rater = cells.partition("\t")
        row_counts[system] += 1
        if not rating or rating.strip() == "None":
            continue
        texts = segments.get(system, ())
        if system in segments and row_counts[system] > len(texts):
            raise LengthError(f"{where}: more ratings of {system!r} than {len(texts)} segments")
        segment = texts[row_counts[system] - 1] if texts else Segment("")
        rated += 1
        try:
            record = read_object(parse_json(rating, where), "the rating", where)
            entries = read_object_list(record.get("errors"), "errors", where)
            errors = [{"rater": rater, **_unlocate_empty_span(entry)} for entry in entries]
            annotations = read_error_annotations({"errors": errors}, segment, where)
        except TertiumError as error:
            unreadable.add(error)
            continue
        empty_spans += sum(1 for entry in entries if _is_empty_span(entry))
        if annotations is not None:
            annotated[system, str(row_counts[system])] = annotations
    unreadable.report(str(path), rated)
    if empty_spans:
        logger.warning(
            "warning: %s: spans without a length: %d; read as errors without a position",
            path, empty_spans,
        )  # fmt: skip
    return annotated


def _is_empty_span(entry: Mapping[str, Any]) -> bool:
    return entry.get("start") is not None and entry.get("start") == entry.get("end")


def _unlocate_empty_span(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {**entry, "start": "missing"} if _is_empty_span(entry) else dict(entry)


def metric_name_from_path(path: PathLike) -> str:
    """Return the metric name in a score file name, without suffixes and language pair.

    >>> metric_name_from_path("de-en/BLEU-refA.seg.score"), metric_name_from_path("chrf.de-en.tsv")
    ('BLEU-refA', 'chrf')
    >>> metric_name_from_path("m.csv.gz")
    'm'
    """
    words = Path(path).name.removesuffix(".gz").split(".")
    while len(words) > 1 and (
        words[-1] in SCORE_FILE_SUFFIXES or LANGUAGE_PAIR.fullmatch(words[-1])
    ):
        words.pop()
    if len(words) > 1 and LANGUAGE_PAIR.fullmatch(words[0]):
        words = words[1:]
    return ".".join(words)


@dataclass(frozen=True, kw_only=True)
class EvalSet:
    """One language pair of an mt-metrics-eval folder; files are read on access."""

    folder: Path
    lp: str

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems with outputs, including human references."""
        files = sorted((self.folder / "system-outputs" / self.lp).glob("*.txt"))
        if not files:
            raise DataError(f"{self.folder}: no system-outputs/{self.lp}/*.txt")
        return tuple(file.stem for file in files)

    @property
    def references(self) -> tuple[str, ...]:
        """The names of the references."""
        files = sorted((self.folder / "references").glob(f"{self.lp}.*.txt"))
        return tuple(file.name.split(".")[-2] for file in files)

    @property
    def human_scores(self) -> tuple[str, ...]:
        """The names of human scores with their level, e.g. `mqm.seg`."""
        files = sorted((self.folder / "human-scores").glob(f"{self.lp}.*.score"))
        return tuple(file.name.removeprefix(f"{self.lp}.").removesuffix(".score") for file in files)

    @property
    def metric_scores(self) -> tuple[str, ...]:
        """The names of metric scores with their level, e.g. `BLEU-refA.seg`."""
        files = sorted((self.folder / "metric-scores" / self.lp).glob("*.score"))
        return tuple(file.name.removesuffix(".score") for file in files)

    def score_files(self) -> tuple[Path, ...]:
        """The files of metric scores of segments and systems; other levels are left out."""
        files = sorted((self.folder / "metric-scores" / self.lp).glob("*.score"))
        return tuple(file for file in files if file.name.endswith(SCORE_LEVELS))

    def testset(self, *references: str) -> TestSet:
        """Read the texts with the given references, by default all; references are not systems."""
        selected = references or self.references
        for name in selected:
            if name not in self.references:
                raise UnknownNameError("reference", name, self.references)
        systems = [system for system in self.systems if system not in selected]
        documents = self.folder / "documents" / f"{self.lp}.docs"
        testset = TestSet.read(
            [self.folder / "system-outputs" / self.lp / f"{system}.txt" for system in systems],
            [self.folder / "references" / f"{self.lp}.{name}.txt" for name in selected],
            self.folder / "sources" / f"{self.lp}.txt",
            documents if documents.is_file() else None,
            names=systems,
        )
        domains = [line.split()[:-1] for line in testset.documents]
        if not domains or not all(domains):
            return testset
        return testset.with_columns({"domain": [" ".join(words) for words in domains]})

    def human(self, name: str) -> ScoreMatrix:
        """Read human scores by name and level, e.g. `mqm.seg`."""
        if name not in self.human_scores:
            raise UnknownNameError("human scores", name, self.human_scores)
        return read_score_file(self.folder / "human-scores" / f"{self.lp}.{name}.score", name)

    def error_annotations(self, name: str) -> dict[tuple[str, str], ErrorAnnotations]:
        """Read the errors annotated with the given human scores, by system and item."""
        kind = name.removesuffix(".seg")
        files = sorted((self.folder / "human-scores").glob(f"{self.lp}.{kind}*.rating"))
        testset = self.testset() if files else None
        segments = {s: testset.segments(s) for s in testset.systems} if testset else {}
        marked = [system for system in segments if self._has_byte_order_mark(system)]
        for system in marked:
            first, *_ = segments[system]
            segments[system][0] = replace(first, hypothesis=f"\ufeff{first.hypothesis}")
        annotated: dict[tuple[str, str], list[ErrorAnnotations]] = {}
        for file in files:
            for key, errors in read_rating_file(file, segments).items():
                annotated.setdefault(key, []).append(errors)
        merged = {key: merge_annotations(group) for key, group in annotated.items()}
        for key in [(system, "1") for system in marked if (system, "1") in merged]:
            merged[key] = _skip_byte_order_mark(merged[key])
        return merged

    def _has_byte_order_mark(self, system: str) -> bool:
        path = self.folder / "system-outputs" / self.lp / f"{system}.txt"
        with path.open("rb") as stream:
            return stream.read(3) == codecs.BOM_UTF8


def _skip_byte_order_mark(annotations: ErrorAnnotations) -> ErrorAnnotations:
    """Shift the spans of a translation whose raters counted the byte-order mark of its file."""
    spans = (
        replace(span, start=max(span.start - 1, 0), end=max(span.end - 1, 1))
        if span.side == "hypothesis"
        else span
        for span in annotations.spans
    )
    return replace(annotations, spans=tuple(spans))


def find_eval_sets(folder: PathLike) -> tuple[EvalSet, ...]:
    """Return the language pairs of an mt-metrics-eval folder; empty for other folders."""
    root = Path(folder)
    if not (root / "human-scores").is_dir() or not (root / "system-outputs").is_dir():
        return ()
    pairs = sorted(path.name for path in (root / "system-outputs").iterdir() if path.is_dir())
    return tuple(EvalSet(folder=root, lp=lp) for lp in pairs)
