"""Benchmark texts from TERTIUM_DATA: WMT17 de-en, 11 systems x 3,004 segments.

For larger benchmarks: the outputs of all language pairs into English, 150,000 texts.
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tertium.data.testset import TestSet

ARCHIVE = "wmt17-metrics-task.tar.xz"
OUTPUTS = "wmt17-metrics-task/system-outputs/newstest2017/de-en/newstest2017."
REFERENCE = "wmt17-metrics-task/references/newstest2017-deen-ref.en"


@cache
def wmt17(limit: int | None = None) -> TestSet:
    """Return WMT17 de-en, or its first `limit` segments, read from the archive."""
    systems: dict[str, tuple[str, ...]] = {}
    references: tuple[str, ...] = ()
    with tarfile.open(archive_path()) as archive:
        for member in archive:
            if not (member.name.startswith(OUTPUTS) or member.name == REFERENCE):
                continue
            file = archive.extractfile(member)
            assert file is not None
            lines = tuple(file.read().decode("utf-8").splitlines()[:limit])
            if member.name == REFERENCE:
                references = lines
            else:
                systems[member.name.removeprefix(OUTPUTS).removesuffix(".de-en")] = lines
    ordered = {name: systems[name] for name in sorted(systems)}
    return TestSet(systems=ordered, references=[(line,) for line in references], name="wmt17 de-en")


def into_english() -> Iterator[tuple[str, str]]:
    """Yield each distinct pair of hypothesis and reference into English once."""
    outputs: dict[str, list[list[str]]] = {}
    references: dict[str, list[str]] = {}
    with tarfile.open(archive_path()) as archive:
        for member in archive:
            output = re.search(r"newstest2017/(..)-en/newstest2017\.", member.name)
            reference = re.search(r"references/newstest2017-(..)en-ref\.en$", member.name)
            file = archive.extractfile(member) if output or reference else None
            if file is None:
                continue
            lines = file.read().decode("utf-8").splitlines()
            if output:
                outputs.setdefault(output[1], []).append(lines)
            elif reference:
                references[reference[1]] = lines
    for language in sorted(outputs):
        pairs = (zip(lines, references[language], strict=True) for lines in outputs[language])
        yield from dict.fromkeys(pair for system in pairs for pair in system)


def archive_path() -> Path:
    """Return the path of the WMT17 archive; exit if it is missing."""
    folder = os.environ.get("TERTIUM_DATA")
    if not folder or not (Path(folder) / ARCHIVE).is_file():
        sys.exit(f"set TERTIUM_DATA to the folder that holds {ARCHIVE}")
    return Path(folder) / ARCHIVE
