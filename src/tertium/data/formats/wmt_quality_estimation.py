"""WMT quality estimation: folders of parallel files of texts, tags and scores.

dev.src  dev.mt                     sources and translations, tokenized
dev.tags                            OK or BAD for each word (and gap, and the end) of dev.mt
dev.src_tags, dev.source_tags       the same for dev.src
dev.da, dev.z_mean, dev.mqm         human scores, higher is better
dev.hter                            edits per word, lower is better

In WMT22, the names of tags and scores contain the language pair (test.2022.en-de.tags), and tags
belong to tokenized texts (test.2022.mt_tok; test.ende.final.tok.mt in WMT23, where gold labels are
in tables, see `quality_estimation_tables`). In WMT24, translations are in WMT24_enhi.tgt, and
test_wmt24.enhi.da_f has three lines of numbers, then a row with index and score for each segment.
In MLQE-PE test21, the folder `goldlabels` has the scores, and tags with a row for each word: pair,
REFERENCE, side, segment, number, word, tag.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, TertiumError, UnknownNameError
from tertium.core.segment import Segment
from tertium.core.spans import (
    BAD,
    ErrorAnnotations,
    Side,
    Span,
    UnlocatedError,
    tags_to_spans,
    word_offsets,
)
from tertium.data.formats import Source
from tertium.data.judgments import NO_SCORE, JudgmentSet, Row, collect_published
from tertium.data.records import read_integer, read_score
from tertium.data.testset import check_parallel
from tertium.data.text_files import LANGUAGE_PAIR, language_pair_in_path, read_lines

LEADING_PAIR = re.compile(rf"{LANGUAGE_PAIR.pattern}(?=[-_.])")
SCORES = {  # with their sign; the second line in test.2022.en-de.da_score and the like
    **{"z_mean": 1.0, "da": 1.0, "mqm": 1.0, "score": 1.0, "hter": -1.0},
    **{"da_score": 1.0, "mqm_z_score": 1.0, "mqm_score.mqm": 1.0, "da_f": 1.0},
}
TAGS: dict[str, Side | None] = {  # of words of a text, or of gaps
    **dict.fromkeys(("tags", "mt_tags", "tgt_tags", "target_tags"), "hypothesis"),
    **dict.fromkeys(("src_tags", "source_tags"), "source"),
    "task2_wordlevel_mt.tags": "hypothesis",
    "task2_wordlevel_src.tags": "source",
    "task2_wordlevel_gaps.tags": None,
}
# Files whose rows name their segment: lines before the rows, and fields of a row. The fourth field
# is the segment from 0, the last one a score or the tag of a word.
NUMBERED = {"da_f": (3, 5)} | {name: (0, 7) for name in TAGS if "." in name}
GOLD_FOLDER = "goldlabels"


def is_parallel_tags(source: Source) -> bool:
    return bool(find_qe_stems(source.path))


def read_parallel_tags(source: Source) -> Iterator[JudgmentSet]:
    for stem in find_qe_stems(source.path):
        names = (stem.name, source.path.name)  # en-de-dev/dev.src, en-de/en-de-dev.src
        leading = next((m[0] for name in names if (m := LEADING_PAIR.match(name))), "")
        yield read_qe(stem, gold=source.gold, lp=language_pair_in_path(stem) or leading)


def find_qe_stems(folder: PathLike) -> list[Path]:
    """Return the paths without suffix (`en-de/dev`) of all parts with tags or scores."""
    files = [*Path(folder).glob("*.mt"), *Path(folder).glob("*.tgt")]
    stems = [file.with_suffix("") for file in sorted(files) if not file.stem.endswith(".tok")]
    return [
        stem
        for stem in stems
        if stem.with_name(f"{stem.name}.src").is_file() and _find_files(stem, (*SCORES, *TAGS))
    ]


def read_qe(stem: PathLike, *, gold: str = "", lp: str = "") -> JudgmentSet:
    """Read one part (`en-de/dev`); without scores, they are minus the share of words tagged BAD."""
    path = Path(stem)
    scores = _find_files(path, SCORES)
    tags = _find_files(path, TAGS)
    if gold and gold not in scores:
        raise UnknownNameError(f"human scores of {path}", gold, scores)
    chosen = gold or next(iter(scores), "")
    texts = {
        "src": _text_file(path, "src", "source" in {TAGS[name] for name in tags}),
        "mt": _text_file(path, "mt", bool(tags)),
    }
    files = texts | tags | ({chosen: scores[chosen]} if chosen else {})
    count = len(read_lines(texts["src"]))
    columns = {name: _read_column(file, name, count) for name, file in files.items()}
    check_parallel([*files.values()], [*columns.values()])

    def convert(cells: tuple[str, ...], where: str) -> Iterator[Row]:
        number = int(where.rpartition(" ")[2])
        row = dict(zip(columns, cells, strict=True))
        record: dict[str, Any] = {"mt": row["mt"], "src": row["src"], "item": number, "lp": lp}
        lines = {name: row[name].split() for name in tags if row[name]}
        if lines:
            record["spans"] = _read_tags(Segment(row["mt"], row["src"]), lines, files, number)
            words = next(iter(lines.values()))
            record["score"] = -words.count(BAD) / max(len(words), 1)
        if chosen:
            record["score"] = SCORES[chosen] * read_score(row[chosen], where)
        is_judged = not math.isnan(record.get("score", math.nan))
        yield record if is_judged else NO_SCORE

    place = files[chosen or "mt"]
    rows = enumerate(zip(*columns.values(), strict=True), start=1)
    segments = ((f"{place}, line {number}", cells) for number, cells in rows)
    return replace(collect_published(path, segments, convert, lp), name=path.name)


def _read_column(file: Path, name: str, count: int) -> list[str]:
    """Return the cell of each segment: a line of a file, or rows that name the segment."""
    lines = read_lines(file)
    if name not in NUMBERED:
        return lines
    skipped, width = NUMBERED[name]
    column = [""] * count
    for number, line in enumerate(lines[skipped:], start=skipped + 1):
        cells = line.split("\t")
        where = f"{file}, line {number}"
        if len(cells) != width:
            raise DataError(f"{where}: {len(cells)} fields; expected {width}")
        segment = read_integer(cells[3], "segment", where)
        if not 0 <= segment < count:
            raise DataError(f"{where}: segment {segment}, but the texts have {count} lines")
        column[segment] = f"{column[segment]} {cells[-1]}"
    return column


def _read_tags(
    segment: Segment, lines: Mapping[str, list[str]], files: Mapping[str, Path], number: int
) -> ErrorAnnotations:
    """Return the spans of words tagged BAD, and an unlocated error for each gap tagged BAD."""
    spans: list[Span] = []
    gaps = 0
    for name, tags in lines.items():
        side = TAGS[name]
        try:
            spans += tags_to_spans(segment.text_of(side), tags, side) if side else ()
        except TertiumError as error:
            raise DataError(f"{files[name]}, line {number}: {error}") from None
        has_gaps = side and len(tags) == 2 * len(word_offsets(segment.text_of(side))) + 1
        gaps += tags[::2].count(BAD) if has_gaps else 0
        gaps += tags.count(BAD) if side is None else 0
    return ErrorAnnotations(tuple(spans), (UnlocatedError("bad", "gap"),) * gaps)


def _find_files(stem: Path, endings: Iterable[str]) -> dict[str, Path]:
    """Return the file of each ending that exists: STEM.ENDING, also in the folder of gold labels.

    Names may have the language pair (STEM.en-de.tags; WMT24_enhi and test_wmt24.enhi.da_f), or be
    the same for all parts (task2_wordlevel_mt.tags).
    """
    pair = stem.name.rpartition("_")[2]
    start = rf"({re.escape(stem.name)}\.({LANGUAGE_PAIR.pattern}\.)?|\w+\.{re.escape(pair)}\.)?"
    places = [*sorted(stem.parent.glob("*")), *sorted(stem.parent.glob(f"{GOLD_FOLDER}/*"))]
    files: dict[str, Path] = {}
    for ending in endings:
        name = re.compile(start + re.escape(ending))
        matching = [file for file in places if name.fullmatch(file.name)]
        files |= {ending: matching[0]} if matching else {}
    return files


def _text_file(stem: Path, ending: str, is_tagged: bool) -> Path:
    """Return the file of texts; tags belong to the tokenized texts, if there are any.

    The tokenized texts of WMT22 en-yo have another stem (test2022.mt_tok), so that the only such
    file of a folder is taken.
    """
    tokenized = [
        stem.with_name(f"{stem.name}.{name}") for name in (f"{ending}_tok", f"tok.{ending}")
    ]
    tokenized_files = [*stem.parent.glob(f"*.{ending}_tok")]
    tokenized += tokenized_files if len(tokenized_files) == 1 else []
    plain = [stem.with_name(f"{stem.name}.{name}") for name in (ending, "tgt")]
    files = [*(tokenized if is_tagged else ()), *plain]
    return next((file for file in files if file.is_file()), plain[0])
