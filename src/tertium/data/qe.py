"""The folders of WMT's quality estimation: lines of text, and lines of tags and scores beside them.

dev.src  dev.mt                     sources and translations, words split at blanks
dev.tags                            OK and BAD for each word (and gap, and the end) of dev.mt
dev.src_tags, dev.source_tags       the same for dev.src
dev.da, dev.z_mean, dev.mqm         human scores, higher is better
dev.hter                            edits a word, lower is better
"""

from __future__ import annotations

from pathlib import Path

from tertium.data.formats import PathLike, read_lines
from tertium.data.judgments import NO_SCORE, Collector, JudgmentSet
from tertium.data.records import read_score
from tertium.data.testset import check_parallel
from tertium.errors import DataError, TertiumError, UnknownNameError
from tertium.segment import Judgment, Segment
from tertium.spans import BAD, Markings, Side, Span, Unplaced, spans_of_tags, word_places

SCORES = {"z_mean": 1.0, "da": 1.0, "mqm": 1.0, "score": 1.0, "hter": -1.0}  # and which way
TAGS: dict[Side, tuple[str, ...]] = {
    "hypothesis": ("tags", "mt_tags", "tgt_tags", "target_tags"),
    "source": ("src_tags", "source_tags"),
}


def qe_stems(folder: PathLike) -> list[Path]:
    """What the files of each part are called before their ending; none where it is no such folder.

    A folder with sources and translations alone is none.
    """
    known = [*SCORES, *(ending for endings in TAGS.values() for ending in endings)]
    stems = [file.with_suffix("") for file in sorted(Path(folder).glob("*.mt"))]
    return [
        stem
        for stem in stems
        if _beside(stem, "src").is_file() and any(_beside(stem, e).is_file() for e in known)
    ]


def read_qe(stem: PathLike, *, gold: str = "", lp: str = "") -> JudgmentSet:
    """Read one part of a folder, such as `en-de/dev`; `gold` chooses among several scores.

    Without scores a translation has minus its share of bad words.
    """
    path = Path(stem)
    scores = [name for name in SCORES if _beside(path, name).is_file()]
    if gold and gold not in scores:
        raise UnknownNameError(f"human scores of {path}", gold, scores)
    tags: dict[Side, Path] = {}
    for side, endings in TAGS.items():
        present = [file for file in (_beside(path, e) for e in endings) if file.is_file()]
        tags |= {side: present[0]} if present else {}
    chosen = gold or (scores[0] if scores else "")
    files = [_beside(path, "src"), _beside(path, "mt"), *tags.values()]
    files += [_beside(path, chosen)] if chosen else []
    columns = [read_lines(file) for file in files]
    check_parallel(files, columns)
    collector = Collector()
    for number, row in enumerate(zip(*columns, strict=True), start=1):
        segment = Segment(row[1], row[0])
        markings = _markings(segment, dict(zip(tags.items(), row[2:], strict=False)), number)
        if chosen:
            score = SCORES[chosen] * read_score(row[-1], f"{files[-1]}, line {number}")
        else:
            words = row[2].split()
            score = -words.count(BAD) / max(len(words), 1)
        if score == score:
            collector.keep(Judgment(segment, score, str(number), "", "", lp, "", markings))
        else:
            collector.left_out[NO_SCORE] += 1
    return collector.finish(path.name, lp)


def _markings(
    segment: Segment, lines: dict[tuple[Side, Path], str], number: int
) -> Markings | None:
    """Spans of words that are tagged BAD, and an error without a place for each such gap."""
    spans: list[Span] = []
    gaps = 0
    for (side, file), line in lines.items():
        tags = line.split()
        text = segment.hypothesis if side == "hypothesis" else segment.source or ""
        try:
            spans += spans_of_tags(text, tags, side)
        except TertiumError as error:
            raise DataError(f"{file}, line {number}: {error}") from None
        if len(tags) == 2 * len(word_places(text)) + 1:
            gaps += tags[::2].count(BAD)
    return Markings(tuple(spans), (Unplaced("bad", "gap"),) * gaps) if lines else None


def _beside(stem: Path, ending: str) -> Path:
    return stem.with_name(f"{stem.name}.{ending}")
