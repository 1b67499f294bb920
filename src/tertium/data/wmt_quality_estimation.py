"""Read folders of the WMT quality estimation tasks: parallel files of texts, tags and scores.

dev.src  dev.mt                     sources and translations, tokenized
dev.tags                            OK or BAD for each word (and gap, and the end) of dev.mt
dev.src_tags, dev.source_tags       the same for dev.src
dev.da, dev.z_mean, dev.mqm         human scores, higher is better
dev.hter                            edits per word, lower is better

In WMT22, the names of tags and scores contain the language pair (test.2022.en-de.tags), and tags
belong to tokenized texts (test.2022.mt_tok).
"""

from __future__ import annotations

from pathlib import Path

from tertium.data.consistency import check_parallel
from tertium.data.formats import PathLike
from tertium.data.judgments import NO_SCORE, JudgmentCollector, JudgmentSet
from tertium.data.records import read_score
from tertium.data.text_files import LANGUAGE_PAIR, read_lines
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

SCORES = {  # with their sign; the second line in test.2022.en-de.da_score and the like
    **{"z_mean": 1.0, "da": 1.0, "mqm": 1.0, "score": 1.0, "hter": -1.0},
    **{"da_score": 1.0, "mqm_z_score": 1.0, "mqm_score.mqm": 1.0},
}
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
        if _with_suffix(stem, "src").is_file() and any(_find_file(stem, e) for e in layout_suffixes)
    ]


def read_qe(stem: PathLike, *, gold: str = "", lp: str = "") -> JudgmentSet:
    """Read one part (`en-de/dev`); without scores, they are minus the share of words tagged BAD."""
    path = Path(stem)
    score_files = {name: file for name in SCORES if (file := _find_file(path, name))}
    scores = list(score_files)
    if gold and gold not in scores:
        raise UnknownNameError(f"human scores of {path}", gold, scores)
    tags: dict[Side, Path] = {}
    for side, endings in TAGS.items():
        present = [file for e in endings if (file := _find_file(path, e))]
        tags |= {side: present[0]} if present else {}
    chosen = gold or (scores[0] if scores else "")
    files = [_text_file(path, "src", "source" in tags), _text_file(path, "mt", bool(tags))]
    files += [*tags.values(), *([score_files[chosen]] if chosen else [])]
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


def _find_file(stem: Path, ending: str) -> Path | None:
    """Return STEM.ENDING or STEM.LP.ENDING, or None."""
    matching_files = [
        f for f in sorted(stem.parent.glob(f"{stem.name}.*.{ending}")) if _has_pair(f, stem)
    ]
    return next(
        (file for file in (_with_suffix(stem, ending), *matching_files) if file.is_file()), None
    )


def _has_pair(file: Path, stem: Path) -> bool:
    words = file.name.removeprefix(f"{stem.name}.").split(".")
    return LANGUAGE_PAIR.fullmatch(words[0]) is not None


def _text_file(stem: Path, ending: str, is_tagged: bool) -> Path:
    """Return the file of texts; tags belong to the tokenized texts, if there are any.

    The tokenized texts of WMT22 en-yo have another stem (test2022.mt_tok), so that the only such
    file of a folder is taken.
    """
    tokenized = _with_suffix(stem, f"{ending}_tok")
    tokenized_files = [*stem.parent.glob(f"*.{ending}_tok")]
    present = (
        [tokenized] if tokenized.is_file() else tokenized_files if len(tokenized_files) == 1 else []
    )
    return present[0] if is_tagged and present else _with_suffix(stem, ending)
