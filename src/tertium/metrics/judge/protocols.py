"""What a judge is asked for: the JSON schema of its answer under each protocol, and its score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tertium.core.spans import Severity

ProtocolName = Literal["esa", "da", "mqm"]
MIN_SCORE, MAX_SCORE = 0.0, 100.0
MAX_MQM_POINTS = 25.0  # a segment is not worse than a text that is not a translation


@dataclass(frozen=True, kw_only=True)
class JudgeProtocol:
    """Parts of an answer under a protocol.

    `severities` are allowed for errors, none if errors are not listed. `has_score` says whether the
    model gives the score; otherwise it follows from the errors. `answer_tokens` is the usual length
    of an answer, for estimates of the cost.
    """

    name: ProtocolName
    prompt: str
    severities: tuple[Severity, ...]
    has_score: bool
    answer_tokens: int
    worst_score: float
    best_score: float

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of an answer, in the subset that servers enforce strictly."""
        parts: dict[str, Any] = {}
        if self.severities:
            parts["errors"] = {"type": "array", "items": _object(self._error_fields())}
        else:
            parts["reason"] = {"type": "string"}
        if self.has_score:
            parts["score"] = {"type": "number"}
        return _object(parts)

    def _error_fields(self) -> dict[str, Any]:
        text = {"type": "string"}
        return {
            "quote": text,
            "before": text,
            "side": {"type": "string", "enum": ["translation", "source"]},
            "severity": {"type": "string", "enum": list(self.severities)},
            "category": text,
            "reason": text,
        }


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


PROTOCOLS: Mapping[ProtocolName, JudgeProtocol] = {
    "esa": JudgeProtocol(
        name="esa",
        prompt="esa.v1",
        severities=("minor", "major"),
        has_score=True,
        answer_tokens=120,
        worst_score=MIN_SCORE,
        best_score=MAX_SCORE,
    ),
    "da": JudgeProtocol(
        name="da",
        prompt="da.v1",
        severities=(),
        has_score=True,
        answer_tokens=30,
        worst_score=MIN_SCORE,
        best_score=MAX_SCORE,
    ),
    "mqm": JudgeProtocol(
        name="mqm",
        prompt="mqm.v1",
        severities=("minor", "major", "critical"),
        has_score=False,
        answer_tokens=110,
        worst_score=-MAX_MQM_POINTS,
        best_score=0.0,
    ),
}
