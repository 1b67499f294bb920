"""Check segments for metrics that read sources, references or both, whatever is available."""

from __future__ import annotations

from collections.abc import Sequence

from tertium.core.errors import MissingInputError
from tertium.core.segment import Segment
from tertium.metrics.base.scorer import HOW_TO_PROVIDE


def check_same_inputs(name: str, segments: Sequence[Segment]) -> None:
    """Raise unless all segments have the same inputs, and at least one of source and references."""
    for kind, is_missing in (
        ("references", [not s.references for s in segments]),
        ("source", [s.source is None for s in segments]),
    ):
        if any(is_missing) and not all(is_missing):
            raise MissingInputError(
                f"{name}: segment {is_missing.index(True) + 1} has no {kind}, but other "
                "segments have: choose the input with against=reference or against=source"
            )
    if not segments[0].references and segments[0].source is None:
        raise MissingInputError(
            f"{name} needs references, the source or both, but segment 1 has neither: "
            f"{HOW_TO_PROVIDE['references']}, or the source likewise"
        )
