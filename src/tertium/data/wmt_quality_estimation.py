"""Read folders of the WMT quality estimation tasks: parallel files of texts, tags and scores.

dev.src  dev.mt                     sources and translations, tokenized
dev.tags                            OK or BAD for each word (and gap, and the end) of dev.mt
dev.src_tags, dev.source_tags       the same for dev.src
dev.da, dev.z_mean, dev.mqm         human scores, higher is better
dev.hter                            edits per word, lower is better
"""

from __future__ import annotations

from pathlib import Path

from tertium.data.consistency import check_parallel
from tertium.data.formats import PathLike, read_lines
from tertium.data.judgments import NO_SCORE, JudgmentCollector, JudgmentSet
from tertium.data.records import read_score
from tertium.errors import DataError, TertiumError, UnknownNameError
from tertium.segment import Judgment, Segment
from tertium.spans import (
    BAD,
    ErrorAnnotations,
    Side,
    Span,
    UnlocatedError,
    tags_to_spans,
    word_offsets,
)

SCORES = {"z_mean": 1.0, "da": 1.0, "mqm": 1.0, "score": 1.0, "hter": -1.0}  # with their sign
TAGS: dict[Side, tuple[str, ...]] = {
    "hypothesis": ("tags", "mt_tags", "tgt_tags", "target_tags"),
    "source": ("src_tags", "source_tags"),
}


def find_qe_stems(folder: PathLike) -> list[Path]:
    """Return the paths without suffix (`en-de/dev`) of all parts with tags or scores."""
    layout_suffixes = [*SCORES, *(ending for endings in TAGS.values() for ending in endings)]
    stems = [file.with_suffix("") for file in sorted(Path(folder).glob("*.mt"))]
    return [
        stem
        for stem in stems
        if _with_suffix(stem, "src").is_file()
        and any(_with_suffix(stem, e).is_file() for e in layout_suffixes)
    ]


def read_qe(stem: PathLike, *, gold: str = "", lp: str = "") -> JudgmentSet:
    """Read one part (`en-de/dev`); without scores, they are minus the share of words tagged BAD."""
    path = Path(stem)
    scores = [name for name in SCORES if _with_suffix(path, name).is_file()]
    if gold and gold not in scores:
        raise UnknownNameError(f"human scores of {path}", gold, scores)
    tags: dict[Side, Path] = {}
    for side, endings in TAGS.items():
        present = [file for file in (_with_suffix(path, e) for e in endings) if file.is_file()]
        tags |= {side: present[0]} if present else {}
    chosen = gold or (scores[0] if scores else "")
    files = [_with_suffix(path, "src"), _with_suffix(path, "mt"), *tags.values()]
    files += [_with_suffix(path, chosen)] if chosen else []
    columns = [read_lines(file) for file in files]
    check_parallel(files, columns)
    collector = JudgmentCollector()
    for number, row in enumerate(zip(*columns, strict=True), start=1):
        segment = Segment(row[1], row[0])
        lines = dict(zip(tags.items(), row[2:], strict=False))
        annotations = _read_tag_errors(segment, lines, number)
        if chosen:
            score = SCORES[chosen] * read_score(row[-1], f"{files[-1]}, line {number}")
        else:
            words = row[2].split()
            score = -words.count(BAD) / max(len(words), 1)
        if score == score:
            judgment = Judgment(segment, score, str(number), "", "", lp, "", annotations)
            collector.add_judgment(judgment)
        else:
            collector.excluded_counts[NO_SCORE] += 1
    return collector.build(path.name, lp)


def _read_tag_errors(
    segment: Segment, lines: dict[tuple[Side, Path], str], number: int
) -> ErrorAnnotations | None:
    """Return the spans of words tagged BAD, and an unlocated error for each gap tagged BAD."""
    spans: list[Span] = []
    gaps = 0
    for (side, file), line in lines.items():
        tags = line.split()
        text = segment.hypothesis if side == "hypothesis" else segment.source or ""
        try:
            spans += tags_to_spans(text, tags, side)
        except TertiumError as error:
            raise DataError(f"{file}, line {number}: {error}") from None
        if len(tags) == 2 * len(word_offsets(text)) + 1:
            gaps += tags[::2].count(BAD)
    return ErrorAnnotations(tuple(spans), (UnlocatedError("bad", "gap"),) * gaps) if lines else None


def _with_suffix(stem: Path, ending: str) -> Path:
    return stem.with_name(f"{stem.name}.{ending}")
