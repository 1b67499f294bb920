"""The bridge to sacrebleu: its tokenisers and match statistics, each distinct pair once.

sacrebleu computes a row of counts for a hypothesis against its references and sums the rows. We
take the rows through its own functions, so that scores are its scores, but share the work on
references and on repeated outputs among all systems of a run.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tertium.arrays import FloatArray
from tertium.errors import MissingResourceError
from tertium.metrics.base.metric import Metric
from tertium.runtime import task
from tertium.segment import Segment

TOKENISER_PACKAGES: Mapping[str, str] = {
    "ja-mecab": "sacrebleu[ja]",
    "ko-mecab": "sacrebleu[ko]",
    **dict.fromkeys(("spm", "flores101", "flores200", "spBLEU-1K"), "sentencepiece"),
}


class SacreMetric(Metric):
    """A metric whose statistics are those of a sacrebleu metric."""

    @abstractmethod
    def sacre(self) -> Any:
        """The sacrebleu metric with these settings."""

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        return match_statistics(self.sacre(), segments, self.title)


def match_statistics(sacre: Any, segments: Sequence[Segment], title: str) -> FloatArray:
    """sacrebleu's statistics of each segment, (n, k), computing each distinct segment once."""
    places: dict[tuple[str, tuple[str, ...]], int] = {}
    inverse = [places.setdefault((s.hypothesis, s.references), len(places)) for s in segments]
    by_references: dict[tuple[str, ...], list[str]] = {}
    for hypothesis, references in places:
        by_references.setdefault(references, []).append(hypothesis)
    rows: dict[tuple[str, tuple[str, ...]], list[float]] = {}
    with task(title, total=len(places)) as advance:
        for references, hypotheses in by_references.items():
            for hypothesis, row in _rows(sacre, references, hypotheses):
                rows[hypothesis, references] = row
            advance(len(hypotheses))
    table = np.array([rows[key] for key in places], dtype=np.float64)
    return table[inverse]


def _rows(
    sacre: Any, references: Sequence[str], hypotheses: Iterable[str]
) -> Iterable[tuple[str, list[float]]]:
    prepared = [sacre._preprocess_segment(reference) for reference in references]
    info = sacre._extract_reference_info(prepared)
    for hypothesis in hypotheses:
        text = sacre._preprocess_segment(hypothesis)
        yield hypothesis, sacre._compute_segment_statistics(text, info)


def load_sacre_bleu(**settings: Any) -> Any:
    """sacrebleu's BLEU, whose tokeniser may need a package or a file that is not there."""
    from sacrebleu.metrics.bleu import BLEU as SacreBLEU

    name = settings["tokenize"]
    try:
        return SacreBLEU(force=True, **settings)
    except (ImportError, RuntimeError):
        package = TOKENISER_PACKAGES.get(name, "sacrebleu")
        raise MissingResourceError(
            f"tokenize={name} needs a package that is not installed: run pip install '{package}'"
        ) from None
    except (OSError, SystemExit) as error:
        raise MissingResourceError(
            f"tokenize={name} needs a model that sacrebleu fetches from the network, which failed "
            f"({error}): run it once with a network, or choose another tokeniser"
        ) from None


def sacre_signature(sacre: Any) -> Mapping[str, str]:
    """sacrebleu's own signature without the parts that tertium prints itself."""
    sacre.num_refs = 1
    info = sacre.get_signature().info
    names = {True: "yes", False: "no"}
    fields = {
        key: names.get(value, value) if isinstance(value, bool) else str(value)
        for key, value in info.items()
        if value is not None and key not in ("nrefs", "version")
    }
    return {**fields, "sacrebleu": info["version"]}
