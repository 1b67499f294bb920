"""Choose the probability threshold of error spans of tertium-multi and report their F1.

    python -m recipes.multi.spans --data DIR [--each 400] [--write]

There is one threshold for each annotation scheme (MQM, ESA, word tags) and input mode: the one with
the best mean character F1 over the datasets of modern/dev. Reported next to it: the F1 of marking
everything, and of marking as many characters at random.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipes.flagship.ship import write_config
from recipes.multi.pack import read_rows
from recipes.multi.ship import select_mode
from tertium.data.dataset_folder import DatasetFolder
from tertium.encoders.tokenizer import TokenOffsets
from tertium.metrics.flagship.error_spans import (
    LOGITS,
    AnnotationScheme,
    SpanThresholds,
    extract_spans,
)
from tertium.metrics.flagship.row_scorer import piece_errors
from tertium.metrics.flagship.tertium_multi import INPUT_MODES, InputMode, TertiumMulti
from tertium.models.checkpoint import bundled_models_folder
from tertium.spans import Span, span_mask

Mask = NDArray[np.bool_]
FOLDERS: dict[AnnotationScheme, str] = {"mqm": "mqm", "esa": "esa", "words": "qe"}
GRID = tuple(round(0.02 * n, 2) for n in range(1, 50))
NO_ERROR = ("neutral", "no-error")
MIN_ROWS = 100
EXCLUDED_SETS = ("mlqe-test20",)  # the test set of qe/wmt20


@dataclass(frozen=True)
class MarkedSet:
    """Annotated translations with the piece probabilities of the network."""

    name: str
    rows: list[dict[str, Any]]
    places: list[TokenOffsets]
    piece_probabilities: list[NDArray[np.float32]]

    def spans(self, scheme: AnnotationScheme, thresholds: SpanThresholds) -> list[tuple[Span, ...]]:
        """Return the spans that the metric would mark."""
        texts = [row["hypothesis"] for row in self.rows]
        parts = zip(texts, self.places, self.piece_probabilities, strict=True)
        return [
            extract_spans(text, at, token_logits, scheme, thresholds)
            for text, at, token_logits in parts
        ]

    def predicted_mask(self, spans: list[tuple[Span, ...]]) -> Mask:
        """Return which characters of all texts lie in spans."""
        pairs = zip(spans, self.rows, strict=True)
        return np.concatenate([span_mask(own, len(row["hypothesis"])) for own, row in pairs])

    def annotated_mask(self) -> Mask:
        """Return which characters annotators marked."""
        masks = []
        for row in self.rows:
            mask = np.zeros(len(row["hypothesis"]), bool)
            for span in row["spans"]:
                if span["side"] == "hypothesis" and span["severity"] not in NO_ERROR:
                    mask[span["start"] : span["end"]] = True
            masks.append(mask)
        return np.concatenate(masks)


def marked_sets(
    metric: TertiumMulti, data: Path, scheme: AnnotationScheme, mode: InputMode, limit: int
) -> list[MarkedSet]:
    """Return the datasets of modern/dev with this annotation scheme and input mode."""
    sets = []
    languages = frozenset(metric.settings.languages)
    for file in sorted((data / "modern/dev" / FOLDERS[scheme]).glob("*/*.gz")):
        pair = file.name.split(".")[0]
        if not languages.issuperset(pair.split("-")) or file.parent.name in EXCLUDED_SETS:
            continue
        rows = [r for r in read_rows(file) if r.get("spans") is not None and select_mode(r, mode)]
        sample = [rows[n] for n in np.random.default_rng(4).permutation(len(rows))[:limit]]
        if len(sample) < MIN_ROWS:
            continue
        outputs = metric.raw_outputs([texts for row in sample if (texts := select_mode(row, mode))])
        piece_probabilities = [piece_errors(output) for output in outputs]
        places = metric.piece_offsets([row["hypothesis"] for row in sample])
        sets.append(MarkedSet(f"{file.parent.name}/{pair}", sample, places, piece_probabilities))
    return sets


def f1(predicted: Mask, annotated: Mask) -> float:
    """Return the F1 of a character mask."""
    return float(2 * (predicted & annotated).sum() / max(predicted.sum() + annotated.sum(), 1))


def choose_threshold(sets: list[MarkedSet], scheme: AnnotationScheme) -> float:
    """Return the threshold with the best mean F1.

    Only thresholds that beat marking everything on as many datasets as possible are considered.
    """
    truth_masks = [dataset.annotated_mask() for dataset in sets]

    def evaluate(wrong: float) -> tuple[int, float]:
        thresholds = SpanThresholds(wrong=wrong)
        figures = [
            (
                f1(dataset.predicted_mask(dataset.spans(scheme, thresholds)), annotated_mask),
                f1(np.ones_like(annotated_mask), annotated_mask),
            )
            for dataset, annotated_mask in zip(sets, truth_masks, strict=True)
        ]
        wins = sum(own > baseline for own, baseline in figures)
        return wins, float(np.mean([own for own, _ in figures]))

    return max(GRID, key=evaluate)


def report(
    sets: list[MarkedSet], scheme: AnnotationScheme, mode: InputMode, thresholds: SpanThresholds
) -> None:
    """Print the F1 of each dataset and of both baselines."""
    for dataset in sets:
        annotated = dataset.annotated_mask()
        predicted = dataset.predicted_mask(dataset.spans(scheme, thresholds))
        rate, share = annotated.mean(), predicted.mean()
        print(
            f"{scheme:6}{mode:10}{dataset.name:20}F1 {f1(predicted, annotated):.3f}  everything "
            f"{2 * rate / (1 + rate):.3f}  at random {2 * rate * share / (rate + share):.3f}  "
            f"wrong {rate:.3f}  marked {share:.3f}",
            flush=True,
        )


def choose(
    metric: TertiumMulti, data: Path, scheme: AnnotationScheme, mode: InputMode, limit: int
) -> dict[str, float]:
    """Choose and report the thresholds of an annotation scheme and input mode."""
    sets = marked_sets(metric, data, scheme, mode, limit)
    if not sets:
        return {}
    thresholds = SpanThresholds(wrong=choose_threshold(sets, scheme))
    report(sets, scheme, mode, thresholds)
    return asdict(thresholds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    parser.add_argument(
        "--each", type=int, default=400, help="translations per dataset (default: 400)"
    )
    parser.add_argument("--write", action="store_true", help="write into the bundled config.json")
    args = parser.parse_args()
    data, metric = DatasetFolder.open(args.data).root, TertiumMulti()
    chosen = {
        scheme: {mode: choose(metric, data, scheme, mode, args.each) for mode in INPUT_MODES}
        for scheme in LOGITS
    }
    for modes in chosen.values():  # word-tag datasets have no references
        for mode in INPUT_MODES:
            modes[mode] = modes[mode] or modes["source"]
    print(json.dumps(chosen, indent=1))
    if args.write:
        folder = bundled_models_folder() / TertiumMulti.name
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        write_config(folder, {**config, "spans": chosen})


if __name__ == "__main__":
    main()
