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
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, TertiumError, UnknownNameError
from tertium.core.segment import Judgment, Segment
from tertium.core.spans import (
    BAD,
    ErrorAnnotations,
    Side,
    Span,
    UnlocatedError,
    tags_to_spans,
    word_offsets,
)
from tertium.data.consistency import check_parallel
from tertium.data.formats import Source
from tertium.data.judgments import NO_SCORE, JudgmentCollector, JudgmentSet
from tertium.data.records import read_integer, read_score
from tertium.data.tables import read_table
from tertium.data.text_files import LANGUAGE_PAIR, language_pair_in_path, read_lines

LEADING_PAIR = re.compile(rf"{LANGUAGE_PAIR.pattern}(?=[-_.])")
WMT24_SCORES = "da_f"
SCORES = {  # with their sign; the second line in test.2022.en-de.da_score and the like
    **{"z_mean": 1.0, "da": 1.0, "mqm": 1.0, "score": 1.0, "hter": -1.0},
    **{"da_score": 1.0, "mqm_z_score": 1.0, "mqm_score.mqm": 1.0, WMT24_SCORES: 1.0},
}
TAGS: dict[Side, tuple[str, ...]] = {
    "hypothesis": ("tags", "mt_tags", "tgt_tags", "target_tags"),
    "source": ("src_tags", "source_tags"),
}
GOLD_FOLDER = "goldlabels"  # of MLQE-PE test21
WORD_TAGS: dict[Side, str] = {
    "hypothesis": "task2_wordlevel_mt.tags",
    "source": "task2_wordlevel_src.tags",
}
GAP_TAGS = "task2_wordlevel_gaps.tags"
WORD_TAG_COLUMNS = ("lp", "REFERENCE", "side", "segment", "number", "word", "tag")


def matches(source: Source) -> bool:
    return bool(find_qe_stems(source.path))


def read(source: Source) -> Iterator[JudgmentSet]:
    folder = source.path.name
    for stem in find_qe_stems(source.path):
        names = (stem.name, folder)  # en-de-dev/dev.src, en-de/en-de-dev.src
        leading = next((m[0] for name in names if (m := LEADING_PAIR.match(name))), "")
        yield read_qe(stem, gold=source.gold, lp=language_pair_in_path(stem) or leading)


def find_qe_stems(folder: PathLike) -> list[Path]:
    """Return the paths without suffix (`en-de/dev`) of all parts with tags or scores."""
    layout_suffixes = [*SCORES, *(ending for endings in TAGS.values() for ending in endings)]
    files = [*Path(folder).glob("*.mt"), *Path(folder).glob("*.tgt")]
    stems = [file.with_suffix("") for file in sorted(files) if not file.stem.endswith(".tok")]
    return [
        stem
        for stem in stems
        if _with_suffix(stem, "src").is_file()
        and (_find_word_tags(stem) or any(_find_file(stem, e) for e in layout_suffixes))
    ]


def read_qe(stem: PathLike, *, gold: str = "", lp: str = "") -> JudgmentSet:
    """Read one part (`en-de/dev`); without scores, they are minus the share of words tagged BAD."""
    path = Path(stem)
    score_files = {name: file for name in SCORES if (file := _find_file(path, name))}
    scores = list(score_files)
    if gold and gold not in scores:
        raise UnknownNameError(f"human scores of {path}", gold, scores)
    tags = _find_word_tags(path)
    is_word_per_row = bool(tags)
    for side, endings in TAGS.items():
        present = [file for e in endings if (file := _find_file(path, e))]
        tags |= {side: present[0]} if present and not is_word_per_row else {}
    chosen = gold or (scores[0] if scores else "")
    files = [_text_file(path, "src", "source" in tags), _text_file(path, "mt", bool(tags))]
    columns = [read_lines(file) for file in files]
    tag_columns = [
        _read_word_tags(file, len(columns[0])) if is_word_per_row else read_lines(file)
        for file in tags.values()
    ]
    score_column = _read_scores(score_files[chosen], chosen, len(columns[0])) if chosen else []
    check_parallel(
        [*files, *tags.values(), *([score_files[chosen]] if chosen else [])],
        [*columns, *tag_columns, *([score_column] if chosen else [])],
    )
    gaps = _count_bad_gaps(path) if is_word_per_row else {}
    collector = JudgmentCollector()
    for number, (source, hypothesis) in enumerate(zip(*columns, strict=True), start=1):
        segment = Segment(hypothesis, source)
        lines = dict(zip(tags.items(), (own[number - 1] for own in tag_columns), strict=True))
        lines = {key: line for key, line in lines.items() if line or not is_word_per_row}
        try:
            place = f"{'segment' if is_word_per_row else 'line'} {number}"
            annotations = _read_tag_errors(segment, lines, place)
        except DataError as error:
            if not is_word_per_row:
                raise
            collector.exclude_unreadable(error)
            continue
        if annotations is not None and gaps.get(number):
            missing = (UnlocatedError("bad", "gap"),) * gaps[number]
            annotations = replace(annotations, missing=missing)
        score = math.nan
        if chosen:
            where = f"{score_files[chosen]}, line {number}"
            score = SCORES[chosen] * read_score(score_column[number - 1], where)
        elif lines:
            words = next(iter(lines.values())).split()
            score = -words.count(BAD) / max(len(words), 1)
        if score == score:
            judgment = Judgment(segment, score, str(number), "", "", lp, "", annotations)
            collector.add_judgment(judgment)
        else:
            collector.excluded_counts[NO_SCORE] += 1
    return collector.build(path.name, lp)


def _find_word_tags(stem: Path) -> dict[Side, Path]:
    """Return the files of MLQE-PE test21 with a row for each word."""
    files = {side: stem.parent / GOLD_FOLDER / name for side, name in WORD_TAGS.items()}
    return {side: file for side, file in files.items() if file.is_file()}


def _read_word_tags(file: Path, count: int) -> list[str]:
    """Return the tags of each segment, separated by blanks; empty for a segment without tags."""
    tags: list[list[str]] = [[] for _ in range(count)]
    for where, row in read_table(file, WORD_TAG_COLUMNS):
        segment = read_integer(row["segment"], "segment", where)
        if not 0 <= segment < count:
            raise DataError(f"{where}: segment {segment}, but the texts have {count} lines")
        if read_integer(row["number"], "number", where) != len(tags[segment]):
            raise DataError(f"{where}: number {row['number']}; expected {len(tags[segment])}")
        tags[segment].append(row["tag"])
    return [" ".join(own) for own in tags]


def _count_bad_gaps(stem: Path) -> dict[int, int]:
    """Count the gaps tagged BAD by line number."""
    file = stem.parent / GOLD_FOLDER / GAP_TAGS
    counts: Counter[int] = Counter()
    for where, row in read_table(file, WORD_TAG_COLUMNS) if file.is_file() else ():
        counts[1 + read_integer(row["segment"], "segment", where)] += row["tag"] == BAD
    return counts


def _read_scores(file: Path, kind: str, count: int) -> list[str]:
    """Return the score of each line; in WMT24 files, rows name their segment."""
    lines = read_lines(file)
    if kind != WMT24_SCORES:
        return lines
    scores = [""] * count
    for number, line in enumerate(lines[3:], start=4):  # three sizes
        cells, where = line.split("\t"), f"{file}, line {number}"
        if len(cells) != 5:
            expected = "expected pair, task, gold, index, score"
            raise DataError(f"{where}: {len(cells)} fields; {expected}")
        index = read_integer(cells[3], "index", where)
        if not 0 <= index < count:
            raise DataError(f"{where}: index {index}, but the texts have {count} lines")
        scores[index] = cells[4]
    return scores


def _read_tag_errors(
    segment: Segment, lines: Mapping[tuple[Side, Path], str], place: str
) -> ErrorAnnotations | None:
    """Return the spans of words tagged BAD, and an unlocated error for each gap tagged BAD."""
    spans: list[Span] = []
    gaps = 0
    for (side, file), line in lines.items():
        tags = line.split()
        text = segment.text_of(side)
        try:
            spans += tags_to_spans(text, tags, side)
        except TertiumError as error:
            raise DataError(f"{file}, {place}: {error}") from None
        if len(tags) == 2 * len(word_offsets(text)) + 1:
            gaps += tags[::2].count(BAD)
    return ErrorAnnotations(tuple(spans), (UnlocatedError("bad", "gap"),) * gaps) if lines else None


def _with_suffix(stem: Path, ending: str) -> Path:
    return stem.with_name(f"{stem.name}.{ending}")


def _find_file(stem: Path, ending: str) -> Path | None:
    """Return STEM.ENDING, STEM.LP.ENDING, goldlabels/STEM.ENDING or that of WMT24, or None."""
    candidates = [
        _with_suffix(stem, ending),
        *(f for f in sorted(stem.parent.glob(f"{stem.name}.*.{ending}")) if _has_pair(f, stem)),
        _with_suffix(stem.parent / GOLD_FOLDER / stem.name, ending),
    ]
    if ending == WMT24_SCORES:  # WMT24_enhi and test_wmt24.enhi.da_f
        pair = stem.name.rpartition("_")[2]
        candidates += stem.parent.glob(f"*.{pair}.{ending}")
    return next((file for file in candidates if file.is_file()), None)


def _has_pair(file: Path, stem: Path) -> bool:
    words = file.name.removeprefix(f"{stem.name}.").split(".")
    return LANGUAGE_PAIR.fullmatch(words[0]) is not None


def _text_file(stem: Path, ending: str, is_tagged: bool) -> Path:
    """Return the file of texts; tags belong to the tokenized texts, if there are any.

    The tokenized texts of WMT22 en-yo have another stem (test2022.mt_tok), so that the only such
    file of a folder is taken.
    """
    plain = _with_suffix(stem, ending)
    if ending == "mt" and not plain.is_file():
        plain = _with_suffix(stem, "tgt")
    tokenized = [_with_suffix(stem, f"{ending}_tok"), _with_suffix(stem, f"tok.{ending}")]
    tokenized_files = [*stem.parent.glob(f"*.{ending}_tok")]
    tokenized += tokenized_files if len(tokenized_files) == 1 else []
    present = [file for file in tokenized if file.is_file()]
    return present[0] if is_tagged and present else plain
