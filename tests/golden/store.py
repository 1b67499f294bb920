"""Read, compare and record golden files: what the package gave when they were recorded.

Golden files freeze today's behavior. A test that fails here shows what a change does to users. If
the change is on purpose, record again and review the printed differences:

    python -m tests.golden.record            # everything
    python -m tests.golden.record NAME...    # tests whose names contain a NAME (pytest -k)

Processors differ. Integer products of tertium-* are exact everywhere, but the rest of their
networks is computed in fp32, which rounds differently on another processor, and a state may then
round to another integer (docs/reference/reliability.md). So each golden file has a rule:

- "exact": equal to the last bit on every machine (metrics without a network);
- "fp32": numbers may differ by `FP32_TOLERANCE`, absolute or relative (published networks and what
  is computed from word vectors or trained);
- "int8": equal to the last bit on the kind of machine that recorded the file, `machine.json`;
  on others, numbers may differ by `INT8_TOLERANCE`, which is that of docs tests; one row in ten may
  differ more, by up to `MAX_INT8_DIFFERENCE`, and one in five may have other error spans.

Measured by switching off AVX512 on a Xeon with AMX: "exact" and "fp32" hold, and of 232 scores of
tertium-multi two differ by more than `INT8_TOLERANCE`, the largest by .035. Metrics trained on
scores of tertium-* are compared on the kind of machine that recorded them only.

Recording keeps stored values that a new value matches, so that differences are those of a change.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).parent
MACHINE = FOLDER / "machine.json"
RECORDING = "TERTIUM_RECORD_GOLDEN"  # environment variable that makes tests write golden files
FP32_TOLERANCE = 1e-5
INT8_TOLERANCE = 0.03
# on another kind of machine
MAX_INT8_DIFFERENCE = 0.15
MAX_DIFFERENT_ROWS = 0.1
MAX_ROWS_WITH_OTHER_SPANS = 0.2
SHOWN_DIFFERENCES = 20

Rule = Literal["exact", "fp32", "int8"]


@cache
def describe_machine() -> dict[str, str]:
    """Return what decides how fp32 sums round: the processor's vector units and libraries."""
    import numpy as np
    import torch

    try:
        flags = Path("/proc/cpuinfo").read_text().split()
    except OSError:
        flags = []
    units = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_tile")
    return {
        "architecture": platform.machine(),
        "vector units": " ".join(unit for unit in units if unit in flags),
        "torch": torch.__version__.partition("+")[0],
        "torch kernels": torch.backends.cpu.get_cpu_capability(),
        "numpy": np.__version__,
    }


@cache
def is_recording_machine() -> bool:
    """Return whether this machine is of the kind that recorded the golden files."""
    return describe_machine() == json.loads(MACHINE.read_text(encoding="utf-8"))


def is_recording() -> bool:
    return bool(os.environ.get(RECORDING))


def file_name(name: str) -> str:
    """Return a name for a file, such as that of a spec."""
    return re.sub(r"[^\w.+=,-]", "_", name)


def find_differences(
    expected: Any, found: Any, tolerance: float = 0.0, where: str = ""
) -> list[str]:
    """List where two values of JSON differ; numbers may differ by a tolerance."""
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = [*expected, *(key for key in found if key not in expected)]
        return [
            difference
            for key in keys
            for difference in find_differences(
                expected.get(key), found.get(key), tolerance, f"{where} {key}".strip()
            )
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [
            difference
            for number, (old, new) in enumerate(zip(expected, found, strict=True))
            for difference in find_differences(old, new, tolerance, f"{where}[{number}]")
        ]
    if is_same(expected, found, tolerance):
        return []
    return [f"{where}: {expected!r} was recorded, but it is {found!r}"]


def is_same(expected: Any, found: Any, tolerance: float) -> bool:
    """Compare two values; not-a-number equals itself."""
    if repr(expected) == repr(found):
        return True
    if not isinstance(expected, int | float) or not isinstance(found, int | float) or not tolerance:
        return False
    return abs(expected - found) <= tolerance * max(1.0, abs(expected))


def keep_recorded(expected: Any, found: Any, tolerance: float) -> Any:
    """Return the new value, with recorded numbers wherever the new ones match them."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return {
            key: keep_recorded(expected.get(key), value, tolerance) for key, value in found.items()
        }
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = zip(expected, found, strict=True)
        return [keep_recorded(old, new, tolerance) for old, new in pairs]
    return expected if is_same(expected, found, tolerance) else found


def tolerance_of(rule: Rule) -> float:
    """Return how much numbers may differ on this machine."""
    if rule == "fp32":
        return FP32_TOLERANCE
    return 0.0 if rule == "exact" or is_recording_machine() else INT8_TOLERANCE


def check_golden(path: Path, found: dict[str, Any], rule: Rule) -> None:
    """Compare a value with its golden file; write the file if tests are recording."""
    tolerance = tolerance_of(rule)
    if is_recording():
        old = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        write_file(path, format_json(keep_recorded(old, found, tolerance)))
        return
    assert path.is_file(), f"{path.name} is missing: {how_to_record(path)}"
    expected = json.loads(path.read_text(encoding="utf-8"))
    if rule == "int8" and tolerance:
        check_rows(expected, found)
    differences = find_differences(expected, found, tolerance)
    shown = "\n".join(differences[:SHOWN_DIFFERENCES])
    assert not differences, (
        f"{len(differences)} differences; if they are intended: {how_to_record(path)}\n{shown}"
    )


def check_rows(expected: dict[str, Any], found: dict[str, Any]) -> None:
    """Compare scores and spans with those of another kind of machine, and remove them from both."""
    for mode, recorded in expected.items():
        old_rows, new_rows = recorded.get("rows", []), found.get(mode, {}).get("rows", [])
        pairs = [*zip(old_rows, new_rows, strict=True)]
        other_spans = different = 0
        for old, new in pairs:
            other_spans += take_spans(old) != take_spans(new)
            old_score, new_score = take_numbers(old), take_numbers(new)
            different += bool(find_differences(old_score, new_score, INT8_TOLERANCE))
            assert not find_differences(old_score, new_score, MAX_INT8_DIFFERENCE, mode)
        count = max(10, len(pairs))
        assert different <= MAX_DIFFERENT_ROWS * count, f"{mode}: {different} other scores"
        assert other_spans <= MAX_ROWS_WITH_OTHER_SPANS * count, (
            f"{mode}: {other_spans} other spans"
        )


def take_numbers(row: dict[str, Any]) -> list[float]:
    """Remove and return the score and the uncertainty of a row."""
    return [row.pop("score"), row.pop("uncertainty", 0.0)]


def take_spans(row: dict[str, Any]) -> list[list[Any]]:
    """Remove and return the places of error spans in a row."""
    return [span[:3] for span in row.pop("spans", [])]


def how_to_record(path: Path) -> str:
    return f"python -m tests.golden.record '{path.name.partition('.')[0]}'"


def read_file(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def write_file(path: Path, text: str) -> None:
    """Write a file if its text is new; a compressed one has no date."""
    if path.is_file() and read_file(path) == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def format_json(value: dict[str, Any]) -> str:
    """Format as JSON with one line for each row."""
    lines = ["{"]
    for mode, recorded in value.items():
        lines.append(f" {dump(mode)}: {{")
        for key, content in recorded.items():
            if isinstance(content, list):
                lines.append(f"  {dump(key)}: [")
                lines += [f"   {dump(row)}," for row in content]
                lines[-1] = lines[-1].removesuffix(",")
                lines.append("  ],")
            else:
                lines.append(f"  {dump(key)}: {dump(content)},")
        lines[-1] = lines[-1].removesuffix(",")
        lines.append(" },")
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join([*lines, "}"]) + "\n"


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
