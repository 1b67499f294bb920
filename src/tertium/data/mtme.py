"""The folders and score files of mt-metrics-eval.

    sources/en-de.txt                       references/en-de.refA.txt
    documents/en-de.docs                    DOMAIN DOCUMENT, a line for each segment
    system-outputs/en-de/SYSTEM.txt
    human-scores/en-de.mqm.seg.score        SYSTEM<TAB>SCORE, `None` for missing
    human-scores/en-de.mqm.seg.rating       SYSTEM<TAB>JSON of errors<TAB>RATER, or `None`
    metric-scores/en-de/BLEU-refA.seg.score

A segment file has a block of scores for each system, in the order of the segments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tertium.data.formats import LANGUAGE_PAIR, PathLike, parse_json, read_lines
from tertium.data.markings import markings_from
from tertium.data.records import read_score
from tertium.data.testset import TestSet
from tertium.errors import DataError, LengthError, UnknownNameError
from tertium.scores import ScoreMatrix
from tertium.segment import Segment
from tertium.spans import Markings, merge_markings

ENDINGS = frozenset(
    {"tsv", "csv", "txt", "jsonl", "ndjson", "parquet", "score", "seg", "sys", "doc"}
)


def read_score_file(path: PathLike, name: str = "") -> ScoreMatrix:
    """A score file as systems x segments; one column where it has one score a system.

    Every system must have as many scores as the others.
    """
    blocks: dict[str, list[float]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        cells, where = line.split(), f"{path}, line {number}"
        if not cells:
            continue
        if len(cells) != 2:
            raise DataError(f"{where}: expected SYSTEM and SCORE, got {len(cells)} fields")
        blocks.setdefault(cells[0], []).append(read_score(cells[1], where))
    if not blocks:
        raise DataError(f"{path} holds no scores")
    first = next(iter(blocks))
    for system, scores in blocks.items():
        if len(scores) != len(blocks[first]):
            raise LengthError(
                f"{path}: {len(scores)} scores of {system!r}, but {len(blocks[first])} of {first!r}"
            )
    items = tuple(str(n) for n in range(1, len(blocks[first]) + 1))
    values = np.array(list(blocks.values()))
    return ScoreMatrix(name or metric_of(path), tuple(blocks), values, items)


def read_rating_file(
    path: PathLike, segments: Mapping[str, Sequence[Segment]]
) -> dict[tuple[str, str], Markings]:
    """The errors of a rating file by system and item, checked against the texts that are known.

    A block of lines for each system, in the order of the segments; `None` where nobody looked.
    """
    marked: dict[tuple[str, str], Markings] = {}
    seen: Counter[str] = Counter()
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}, line {number}"
        system, _, rest = line.partition("\t")
        rating, _, rater = rest.partition("\t")
        seen[system] += 1
        if not rating or rating.strip() == "None":
            continue
        texts = segments.get(system, ())
        if system in segments and seen[system] > len(texts):
            raise LengthError(f"{where}: more ratings of {system!r} than its {len(texts)} segments")
        segment = texts[seen[system] - 1] if texts else Segment("")
        record = parse_json(rating, where)
        if not isinstance(record, dict) or not isinstance(record.get("errors"), list):
            raise DataError(f"{where}: expected SYSTEM and an object with a list of errors")
        errors = [{"rater": rater, **error} for error in record["errors"]]
        found = markings_from({"errors": errors}, segment, where)
        if found is not None:
            marked[system, str(seen[system])] = found
    return marked


def metric_of(path: PathLike) -> str:
    """The metric that a score file is named after, without endings and language pair.

    >>> metric_of("de-en/BLEU-refA.seg.score"), metric_of("chrf.de-en.tsv"), metric_of("m.csv.gz")
    ('BLEU-refA', 'chrf', 'm')
    """
    words = Path(path).name.removesuffix(".gz").split(".")
    while len(words) > 1 and (words[-1] in ENDINGS or LANGUAGE_PAIR.fullmatch(words[-1])):
        words.pop()
    if len(words) > 1 and LANGUAGE_PAIR.fullmatch(words[0]):
        words = words[1:]
    return ".".join(words)


@dataclass(frozen=True, kw_only=True)
class EvalSet:
    """One language pair of one mt-metrics-eval folder; files are read when asked for."""

    folder: Path
    lp: str

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems whose outputs are there, human references among them."""
        found = sorted((self.folder / "system-outputs" / self.lp).glob("*.txt"))
        if not found:
            raise DataError(f"{self.folder}: no system-outputs/{self.lp}/*.txt")
        return tuple(file.stem for file in found)

    @property
    def references(self) -> tuple[str, ...]:
        """The names of the references."""
        files = sorted((self.folder / "references").glob(f"{self.lp}.*.txt"))
        return tuple(file.name.split(".")[-2] for file in files)

    @property
    def human_scores(self) -> tuple[str, ...]:
        """Names of human scores with their level, e.g. `mqm.seg`."""
        files = sorted((self.folder / "human-scores").glob(f"{self.lp}.*.score"))
        return tuple(file.name.removeprefix(f"{self.lp}.").removesuffix(".score") for file in files)

    @property
    def metric_scores(self) -> tuple[str, ...]:
        """Names of metric scores with their level, e.g. `BLEU-refA.seg`."""
        files = sorted((self.folder / "metric-scores" / self.lp).glob("*.score"))
        return tuple(file.name.removesuffix(".score") for file in files)

    def testset(self, *references: str) -> TestSet:
        """The texts with the references named, by default all; those are no systems then."""
        chosen = references or self.references
        for name in chosen:
            if name not in self.references:
                raise UnknownNameError("reference", name, self.references)
        systems = [system for system in self.systems if system not in chosen]
        documents = self.folder / "documents" / f"{self.lp}.docs"
        testset = TestSet.read(
            [self.folder / "system-outputs" / self.lp / f"{system}.txt" for system in systems],
            [self.folder / "references" / f"{self.lp}.{name}.txt" for name in chosen],
            self.folder / "sources" / f"{self.lp}.txt",
            documents if documents.is_file() else None,
            names=systems,
        )
        domains = [line.split()[:-1] for line in testset.documents]
        if not domains or not all(domains):
            return testset
        return replace(testset, columns={"domain": tuple(" ".join(words) for words in domains)})

    def human(self, name: str) -> ScoreMatrix:
        """Human scores by name and level, e.g. `mqm.seg`."""
        if name not in self.human_scores:
            raise UnknownNameError("human scores", name, self.human_scores)
        return read_score_file(self.folder / "human-scores" / f"{self.lp}.{name}.score", name)

    def markings(self, name: str) -> dict[tuple[str, str], Markings]:
        """The errors that were marked beside human scores, by system and item; maybe none.

        Several raters have a file each, which begins with the name of the scores.
        """
        kind = name.removesuffix(".seg")
        files = sorted((self.folder / "human-scores").glob(f"{self.lp}.{kind}*.rating"))
        segments = {s: self.testset().segments(s) for s in self.testset().systems} if files else {}
        marked: dict[tuple[str, str], list[Markings]] = {}
        for file in files:
            for key, found in read_rating_file(file, segments).items():
                marked.setdefault(key, []).append(found)
        return {key: merge_markings(found) for key, found in marked.items()}


def eval_sets(folder: PathLike) -> tuple[EvalSet, ...]:
    """The language pairs of one test set's folder; none where it is not such a folder."""
    root = Path(folder)
    if not (root / "human-scores").is_dir() or not (root / "system-outputs").is_dir():
        return ()
    pairs = sorted(path.name for path in (root / "system-outputs").iterdir() if path.is_dir())
    return tuple(EvalSet(folder=root, lp=lp) for lp in pairs)
