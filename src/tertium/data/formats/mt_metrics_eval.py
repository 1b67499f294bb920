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

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, LengthError, UnknownNameError, UsageError
from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Judgment, Segment
from tertium.data.formats import Source
from tertium.data.human_data import HumanData
from tertium.data.judgments import Annotations, JudgmentSet, Row, collect_published
from tertium.data.record_files import parse_json
from tertium.data.records import read_object, read_score
from tertium.data.testset import TestSet
from tertium.data.text_files import LANGUAGE_PAIR, read_lines
from tertium.text.language_codes import normalize_language_pair

SCORE_LEVELS = (".seg.score", ".sys.score")
SCORE_FILE_SUFFIXES = frozenset(
    {"tsv", "csv", "txt", "jsonl", "ndjson", "parquet", "score", "seg", "sys", "doc"}
)


def is_eval_set(source: Source) -> bool:
    return source.path.is_file() or bool(find_eval_sets(source.path))


def read_eval_set(source: Source) -> Iterator[HumanData]:
    path = source.path
    gold = source.gold
    if path.is_file():
        yield _human_data(read_score_file(path), name=path.name.split(".score")[0], lp=source.lp)
        return
    ending = ".sys" if source.level == "system" else ".seg"
    for entry in find_eval_sets(path):
        lp = normalize_language_pair(entry.lp)
        if source.lps and lp not in source.lps:
            continue
        kinds = entry.human_scores
        files = {k.removesuffix(ending): f for k, f in kinds.items() if k.endswith(ending)}
        if not gold and len(files) > 1:
            names = ", ".join(files)
            raise UsageError(
                f"{path}, {entry.lp}: several human scores ({names}); choose one with --gold"
            )
        if gold and gold not in files:
            raise UnknownNameError(f"human scores of {entry.lp}", gold, files)
        for kind in [gold] if gold else files:
            table = read_score_file(files[kind])
            yield _human_data(table, entry, kind, name=path.name, lp=lp)


def _human_data(
    table: ScoreMatrix, entry: EvalSet | None = None, kind: str = "", *, name: str, lp: str
) -> HumanData:
    """Return the scores of systems, or of all outputs, with NaN for those that were not judged."""
    testset, files = (entry.testset, entry.score_files) if entry else (None, ())
    if table.values.shape[1] == 1:
        scores = {s: score for (s, _), score in table.cells().items() if score == score}
        return HumanData(name=name, lp=lp, files=files, testset=testset, system_scores=scores)
    if testset and len(testset) != len(table.items):
        raise LengthError(f"{name}: {len(table.items)} scores for {len(testset)} segments")
    outputs = {s: testset.segments(s) for s in testset.systems} if testset else {}
    unknown = [Segment("")] * len(table.items)
    judgments = [
        Judgment(segment, score, item, system, lp=lp)
        for system, scores in zip(table.systems, table.values.tolist(), strict=True)
        for item, segment, score in zip(
            table.items, outputs.get(system, unknown), scores, strict=True
        )
    ]
    return JudgmentSet(
        name=name,
        lp=lp,
        files=files,
        testset=testset,
        judgments=tuple(judgments),
        read_annotations=cache(partial(entry.error_annotations, kind)) if entry else None,
    )


def read_score_file(path: PathLike) -> ScoreMatrix:
    """Read a score file as systems x segments; one column if it has one score per system."""
    blocks: dict[str, list[float]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split()
        where = f"{path}, line {number}"
        if cells and len(cells) != 2:
            raise DataError(f"{where}: expected SYSTEM and SCORE, got {len(cells)} fields")
        if cells:
            blocks.setdefault(cells[0], []).append(read_score(cells[1], where))
    if not blocks:
        raise DataError(f"{path} contains no scores")
    first, count = next((system, len(scores)) for system, scores in blocks.items())
    for system, scores in blocks.items():
        if len(scores) != count:
            raise LengthError(
                f"{path}: {len(scores)} scores for {system!r}, but {count} for {first!r}"
            )
    items = tuple(str(n) for n in range(1, count + 1))
    values = np.array(list(blocks.values()))
    return ScoreMatrix(metric_name_from_path(path), tuple(blocks), values, items)


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
    def references(self) -> dict[str, Path]:
        """The files of references by name."""
        files = sorted((self.folder / "references").glob(f"{self.lp}.*.txt"))
        return {file.name.split(".")[-2]: file for file in files}

    @property
    def human_scores(self) -> dict[str, Path]:
        """The files of human scores by name and level, e.g. `mqm.seg`."""
        files = sorted((self.folder / "human-scores").glob(f"{self.lp}.*.score"))
        return {f.name.removeprefix(f"{self.lp}.").removesuffix(".score"): f for f in files}

    @property
    def score_files(self) -> tuple[Path, ...]:
        """The files of metric scores of segments and systems; other levels are left out."""
        files = sorted((self.folder / "metric-scores" / self.lp).glob("*.score"))
        return tuple(file for file in files if file.name.endswith(SCORE_LEVELS))

    @cached_property
    def testset(self) -> TestSet:
        """The texts with all references; references are not systems."""
        outputs = sorted((self.folder / "system-outputs" / self.lp).glob("*.txt"))
        files = {file.stem: file for file in outputs if file.stem not in self.references}
        if not files:
            raise DataError(f"{self.folder}: no system-outputs/{self.lp}/*.txt")
        documents = self.folder / "documents" / f"{self.lp}.docs"
        testset = TestSet.read(
            [*files.values()],
            [*self.references.values()],
            self.folder / "sources" / f"{self.lp}.txt",
            documents if documents.is_file() else None,
            names=[*files],
        )
        domains = [" ".join(line.split()[:-1]) for line in testset.documents]
        return testset.with_columns({"domain": domains}) if all(domains) and domains else testset

    def error_annotations(self, kind: str) -> Annotations:
        """Read the errors annotated with the given human scores, by system and item."""
        files = sorted((self.folder / "human-scores").glob(f"{self.lp}.{kind}*.rating"))
        rows = [row for file in files for row in _rating_rows(file)]
        if not rows:
            return {}
        outputs = {s: self.testset.segments(s) for s in self.testset.systems}

        def convert(row: Mapping[str, str], where: str) -> Iterator[Row]:
            rating = read_object(parse_json(row["json"], where), "the rating", where)
            texts = outputs.get(row["system"], ())
            number = int(row["item"])
            if texts and number > len(texts):
                raise LengthError(f"{where}: more ratings of {row['system']!r} than segments")
            segment = texts[number - 1] if texts else Segment("")
            record: dict[str, Any] = {
                **row,
                "errors": rating.get("errors", ""),
                "src": segment.source,
            }
            yield record | ({"mt": segment.hypothesis} if texts else {})

        return collect_published(files[0], rows, convert, self.lp, repeats=True).error_annotations()


def _rating_rows(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the annotated rows of a file: a block of lines for each system, in segment order."""
    counts: Counter[str] = Counter()
    for number, line in enumerate(read_lines(path), start=1):
        system, rating, rater = [*line.split("\t"), "", ""][:3]
        counts[system] += 1
        if rating.strip() not in ("", "None"):
            row = {"system": system, "item": str(counts[system]), "rater": rater}
            yield f"{path}, line {number}", row | {"json": rating}


def find_eval_sets(folder: PathLike) -> tuple[EvalSet, ...]:
    """Return the language pairs of an mt-metrics-eval folder; empty for other folders."""
    root = Path(folder)
    if not (root / "human-scores").is_dir() or not (root / "system-outputs").is_dir():
        return ()
    pairs = sorted(path.name for path in (root / "system-outputs").iterdir() if path.is_dir())
    return tuple(EvalSet(folder=root, lp=lp) for lp in pairs)
