"""The texts benchmarks run on: WMT17 de-en, 11 systems x 3,004 segments, from TERTIUM_DATA."""

from __future__ import annotations

import os
import sys
import tarfile
from functools import cache
from pathlib import Path

from tertium.data.testset import TestSet

ARCHIVE = "wmt17-metrics-task.tar.xz"
OUTPUTS = "wmt17-metrics-task/system-outputs/newstest2017/de-en/newstest2017."
REFERENCE = "wmt17-metrics-task/references/newstest2017-deen-ref.en"


@cache
def wmt17(limit: int | None = None) -> TestSet:
    """WMT17 de-en, or its first `limit` segments; read straight from the archive."""
    folder = os.environ.get("TERTIUM_DATA")
    if not folder or not (Path(folder) / ARCHIVE).is_file():
        sys.exit(f"set TERTIUM_DATA to the folder that holds {ARCHIVE}")
    systems: dict[str, tuple[str, ...]] = {}
    references: tuple[str, ...] = ()
    with tarfile.open(Path(folder) / ARCHIVE) as archive:
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
