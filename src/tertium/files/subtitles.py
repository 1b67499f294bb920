"""Subtitles: SubRip (.srt) and WebVTT (.vtt); cues are aligned by their start times."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tertium.core.errors import DataError
from tertium.files.encodings import read_unicode
from tertium.files.units import Catalog, Unit, translated_unit

_TIME = r"(?:(\d+):)?(\d{2}):(\d{2})[,.](\d{3})"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}.*")
_BLOCKS = ("NOTE", "STYLE", "REGION")


def read_subtitles(catalog: Catalog) -> Iterator[Unit]:
    """Read the cues of a subtitle file; the id of a cue is its start time."""
    path = catalog.path
    lines = read_unicode(path).split("\n")
    is_vtt = path.lower().endswith(".vtt")
    if is_vtt and not lines[0].startswith("WEBVTT"):
        raise DataError(f"{path}, line 1: a WebVTT file starts with WEBVTT")
    blocks = [*_split_blocks(lines)]
    for number, block in blocks[1:] if is_vtt else blocks:
        if is_vtt and block[0].startswith(_BLOCKS):
            continue
        row = next((n for n, line in enumerate(block[:2]) if "-->" in line), None)
        if row is None:
            if is_vtt:
                continue  # a block without timing is ignored, as the standard says
            raise DataError(f"{path}, line {number}: a cue without times: {block[0][:40]!r}")
        match = _TIMING.fullmatch(block[row])
        if match is None:
            raise DataError(f"{path}, line {number + row}: not a time: {block[row][:40]!r}")
        hours, minutes, seconds, milliseconds = match.groups()[:4]
        start = f"{int(hours or 0):02}:{minutes}:{seconds}.{milliseconds}"
        yield translated_unit(start, "\n".join(block[row + 1 :]), line=number)


def _split_blocks(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield blocks of lines between blank lines, with the number of their first line."""
    block: list[str] = []
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []
