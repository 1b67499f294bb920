"""Chooses from which chance on the shipped model marks a piece, and says what that is worth.

    python -m recipes.multi.spans --data DIR [--each 400] [--write]

Thresholds belong to a way of marking (MQM, ESA, word tags) and a view, and are those with the best
mean character F1 over the sets of modern/dev that are marked so. Beside each set's F1 stand that of
marking everything, and that of marking as many characters at random.
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
LEAST_ROWS = 100
COPIES = ("mlqe-test20",)  # the test of qe/wmt20, which must not choose


@dataclass(frozen=True)
class MarkedSet:
    """Translations with what people marked and what the network found at their pieces."""

    name: str
    rows: list[dict[str, Any]]
    places: list[TokenOffsets]
    findings: list[NDArray[np.float32]]

    def spans(self, way: AnnotationScheme, thresholds: SpanThresholds) -> list[tuple[Span, ...]]:
        """What the metric would mark."""
        texts = [row["hypothesis"] for row in self.rows]
        parts = zip(texts, self.places, self.findings, strict=True)
        return [extract_spans(text, at, found, way, thresholds) for text, at, found in parts]

    def marked(self, spans: list[tuple[Span, ...]]) -> Mask:
        """Which characters of all texts lie in spans."""
        pairs = zip(spans, self.rows, strict=True)
        return np.concatenate([span_mask(own, len(row["hypothesis"])) for own, row in pairs])

    def truth(self) -> Mask:
        """Which characters people marked."""
        masks = []
        for row in self.rows:
            mask = np.zeros(len(row["hypothesis"]), bool)
            for span in row["spans"]:
                if span["side"] == "hypothesis" and span["severity"] not in NO_ERROR:
                    mask[span["start"] : span["end"]] = True
            masks.append(mask)
        return np.concatenate(masks)


def marked_sets(
    metric: TertiumMulti, data: Path, way: AnnotationScheme, mode: InputMode, each: int
) -> list[MarkedSet]:
    """The sets of modern/dev that are marked in this way and can be seen in this view."""
    found = []
    known = frozenset(metric.settings.languages)
    for file in sorted((data / "modern/dev" / FOLDERS[way]).glob("*/*.gz")):
        pair = file.name.split(".")[0]
        if not known.issuperset(pair.split("-")) or file.parent.name in COPIES:
            continue
        rows = [r for r in read_rows(file) if r.get("spans") is not None and select_mode(r, mode)]
        some = [rows[n] for n in np.random.default_rng(4).permutation(len(rows))[:each]]
        if len(some) < LEAST_ROWS:
            continue
        said = metric.raw_outputs([texts for row in some if (texts := select_mode(row, mode))])
        findings = [piece_errors(one) for one in said]
        places = metric.piece_offsets([row["hypothesis"] for row in some])
        found.append(MarkedSet(f"{file.parent.name}/{pair}", some, places, findings))
    return found


def f1(marked: Mask, truth: Mask) -> float:
    return float(2 * (marked & truth).sum() / max(marked.sum() + truth.sum(), 1))


def choose_wrong(sets: list[MarkedSet], way: AnnotationScheme) -> float:
    """Of the thresholds that beat marking everything on most sets, the one of the best mean F1."""
    truths = [one.truth() for one in sets]

    def worth(wrong: float) -> tuple[int, float]:
        thresholds = SpanThresholds(wrong=wrong)
        figures = [
            (f1(one.marked(one.spans(way, thresholds)), truth), f1(np.ones_like(truth), truth))
            for one, truth in zip(sets, truths, strict=True)
        ]
        return sum(own > all_ for own, all_ in figures), float(np.mean([own for own, _ in figures]))

    return max(GRID, key=worth)


def report(
    sets: list[MarkedSet], way: AnnotationScheme, mode: InputMode, thresholds: SpanThresholds
) -> None:
    for one in sets:
        truth, marked = one.truth(), one.marked(one.spans(way, thresholds))
        rate, share = truth.mean(), marked.mean()
        print(
            f"{way:6}{mode:10}{one.name:20}F1 {f1(marked, truth):.3f}  everything "
            f"{2 * rate / (1 + rate):.3f}  at random {2 * rate * share / (rate + share):.3f}  "
            f"wrong {rate:.3f}  marked {share:.3f}",
            flush=True,
        )


def choose(
    metric: TertiumMulti, data: Path, way: AnnotationScheme, mode: InputMode, each: int
) -> dict[str, float]:
    sets = marked_sets(metric, data, way, mode, each)
    if not sets:
        return {}
    thresholds = SpanThresholds(wrong=choose_wrong(sets, way))
    report(sets, way, mode, thresholds)
    return asdict(thresholds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="the human judgments (default: TERTIUM_DATA)")
    parser.add_argument("--each", type=int, default=400, help="translations of each set")
    parser.add_argument("--write", action="store_true", help="into the shipped config.json")
    args = parser.parse_args()
    data, metric = DatasetFolder.open(args.data).root, TertiumMulti()
    chosen = {
        way: {mode: choose(metric, data, way, mode, args.each) for mode in INPUT_MODES}
        for way in LOGITS
    }
    for modes in chosen.values():  # word tags come without references
        for mode in INPUT_MODES:
            modes[mode] = modes[mode] or modes["source"]
    print(json.dumps(chosen, indent=1))
    if args.write:
        folder = bundled_models_folder() / TertiumMulti.name
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        write_config(folder, {**config, "spans": chosen})


if __name__ == "__main__":
    main()
