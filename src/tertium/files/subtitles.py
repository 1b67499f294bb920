"""Subtitles: SubRip (.srt) and WebVTT (.vtt); cues are aligned by their start times."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tertium.core.errors import DataError
from tertium.files.encodings import line_at, read_unicode
from tertium.files.units import Catalog, Unit, translated_unit

_BLOCK = re.compile(r"(?:^[^\n]*\S[^\n]*\n?)+", re.MULTILINE)
_TIME = r"(?:(\d+):)?(\d{2}:\d{2})[,.](\d{3})"
_CUE = re.compile(rf"(?:[^\n]*\n)?\s*{_TIME}\s*-->\s*{_TIME}[^\n]*\n?(.*)", re.DOTALL)


def read_subtitles(catalog: Catalog) -> Iterator[Unit]:
    """Read the cues of a subtitle file; the id of a cue is its start time."""
    text = read_unicode(catalog.path)
    for block in _BLOCK.finditer(text):
        line, cue = line_at(text, block.start()), _CUE.fullmatch(block[0])
        if cue is not None:
            start = f"{int(cue[1] or 0):02}:{cue[2]}.{cue[3]}"
            yield translated_unit(start, cue[7].rstrip("\n"), line=line)
        elif "-->" in block[0] or catalog.path.lower().endswith(".srt"):
            excerpt = block[0].split("\n")[0]
            raise DataError(f"{catalog.path}, line {line}: a cue without times: {excerpt[:40]!r}")
