"""Choose the thresholds of error spans of tertium-multi and measure what they mark.

    python -m recipes.multi.spans --data DIR [--each 600] [--each-tagged 250] [--write]

Thresholds are chosen on modern/dev for each annotation scheme (MQM, ESA, word tags) and input mode,
`precise` and `major` also for each family of target languages. The family `other` stands for all
languages without a choice set.

wrong     all suspected errors: the best mean character F1 over the datasets
precise   what is shown by default: the lowest threshold at which annotators confirm at least half
          of what is marked, by characters and by spans, over all datasets of the family (minus a
          standard error), in each dataset with enough spans, and on the half of the rows that did
          not choose it; None if there is no such threshold, and for `other`
major     severity: as many confirmed spans are major as the annotators say

Reported next to it: the F1 of marking everything, and of marking as many characters at random.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipes.flagship.ship import write_config
from recipes.multi.judgments import read_rows
from recipes.multi.ship import select_mode
from tertium.core.segment import Against
from tertium.core.spans import Span
from tertium.data.dataset_folder import DatasetFolder
from tertium.encoders.tokenizer import TokenOffsets
from tertium.meta.span_scores import match_spans, micro
from tertium.metrics.bundled.input_rows import INPUT_MODES
from tertium.metrics.bundled.row_scorer import piece_errors
from tertium.metrics.bundled.scales import (
    LOGITS,
    MAJOR,
    OTHER_FAMILIES,
    WRONG,
    AnnotationScheme,
    SpanThresholds,
    extend_to_words,
    extract_spans,
    find_runs,
)
from tertium.metrics.bundled.tertium_multi import TertiumMulti
from tertium.models.checkpoint import bundled_models_folder
from tertium.text.language_codes import language_family

Mask = NDArray[np.bool_]
FOLDERS: dict[AnnotationScheme, str] = {"mqm": "mqm", "esa": "esa", "words": "qe"}
GRID = tuple(round(0.02 * n, 2) for n in range(1, 50))
NO_ERROR = ("neutral", "no-error")
MIN_ROWS = 100
EXCLUDED_SETS = ("mlqe-test20",)  # the test set of qe/wmt20
MIN_PRECISION = 0.5  # of spans that are shown by default
MIN_SPANS = 30  # marked in a family, below which a precision is not trusted
MIN_SPANS_OF_SET = 10  # marked in one dataset
MIN_CONFIRMED_SPANS = 50  # to calibrate severities
MAJOR_NAMES = ("major", "critical")


@dataclass(frozen=True)
class MarkedSet:
    """Annotated translations with the piece probabilities of the network."""

    name: str
    rows: list[dict[str, Any]]
    places: list[TokenOffsets]
    piece_probabilities: list[NDArray[np.float32]]

    @property
    def family(self) -> str:
        return language_family(self.name.rpartition("-")[2]) or OTHER_FAMILIES

    def spans(self, scheme: AnnotationScheme, thresholds: SpanThresholds) -> list[tuple[Span, ...]]:
        """Return the spans that the metric would mark."""
        texts = [row["hypothesis"] for row in self.rows]
        parts = zip(texts, self.places, self.piece_probabilities, strict=True)
        return [
            extract_spans(text, at, token_logits, scheme, thresholds)
            for text, at, token_logits in parts
        ]

    def annotated_masks(self, severities: Sequence[str] = ()) -> list[Mask]:
        """Return which characters of each text annotators marked, with any severity or these."""
        masks = []
        for row in self.rows:
            mask = np.zeros(len(row["hypothesis"]), bool)
            for span in row["spans"]:
                is_counted = span["severity"] in severities or not severities
                is_error = span["side"] == "hypothesis" and span["severity"] not in NO_ERROR
                if is_counted and is_error:
                    mask[span["start"] : span["end"]] = True
            masks.append(mask)
        return masks

    def annotated_mask(self) -> Mask:
        """Return which characters of all texts annotators marked."""
        return np.concatenate(self.annotated_masks())


def marked_sets(
    metric: TertiumMulti, data: Path, scheme: AnnotationScheme, mode: Against, limit: int
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
        places = metric.reader.tokenizer.token_offsets([row["hypothesis"] for row in sample])
        sets.append(MarkedSet(f"{file.parent.name}/{pair}", sample, places, piece_probabilities))
    return sets


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Characters that annotators and the metric mark in each row, and its spans."""

    annotated: NDArray[np.int64]  # (rows,)
    marked: NDArray[np.int64]
    confirmed: NDArray[np.int64]
    shares: NDArray[np.float64]  # of each span, the share of its characters that is confirmed
    owners: NDArray[np.int64]  # the row of each span

    @property
    def precision(self) -> float:
        """The lower of the precision by characters and the mean share of spans."""
        if not len(self.shares):
            return math.nan
        return min(self.confirmed.sum() / self.marked.sum(), float(self.shares.mean()))

    @property
    def cautious_precision(self) -> float:
        """The precision minus its standard error, because the best of many thresholds is chosen."""
        return self.precision - float(self.shares.std()) / max(len(self.shares), 1) ** 0.5

    @property
    def recall(self) -> float:
        return float(self.confirmed.sum() / max(self.annotated.sum(), 1))

    @property
    def f1(self) -> float:
        total = self.annotated.sum() + self.marked.sum()
        return float(2 * self.confirmed.sum() / max(total, 1))

    def half(self, number: int) -> Counts:
        """Return every second row, starting with the first or the second."""
        rows = slice(number, None, 2)
        is_in_half = self.owners % 2 == number
        return Counts(
            annotated=self.annotated[rows],
            marked=self.marked[rows],
            confirmed=self.confirmed[rows],
            shares=self.shares[is_in_half],
            owners=self.owners[is_in_half] // 2,
        )


CountsByThreshold = dict[float, list[Counts]]  # of each dataset


def count_all(sets: Sequence[MarkedSet], scheme: AnnotationScheme) -> CountsByThreshold:
    """Count what each threshold marks in each dataset."""
    prepared = [
        [
            (row["hypothesis"], at, extend_to_words(row["hypothesis"], at, own[:, WRONG[scheme]]))
            for row, at, own in zip(
                dataset.rows, dataset.places, dataset.piece_probabilities, strict=True
            )
        ]
        for dataset in sets
    ]
    masks = [dataset.annotated_masks() for dataset in sets]
    return {
        wrong: [_count(rows, own, wrong) for rows, own in zip(prepared, masks, strict=True)]
        for wrong in GRID
    }


def _count(
    rows: Sequence[tuple[str, TokenOffsets, NDArray[np.float32]]],
    masks: Sequence[Mask],
    wrong: float,
) -> Counts:
    marked, confirmed = np.zeros((2, len(rows)), dtype=np.int64)
    shares, owners = [], []
    for n, (text, places, probabilities) in enumerate(rows):
        for start, end, _ in find_runs(text, places, probabilities >= wrong):
            hits = int(masks[n][start:end].sum())
            marked[n] += end - start
            confirmed[n] += hits
            shares.append(hits / (end - start))
            owners.append(n)
    return Counts(
        annotated=np.array([mask.sum() for mask in masks], dtype=np.int64),
        marked=marked,
        confirmed=confirmed,
        shares=np.array(shares, dtype=np.float64),
        owners=np.array(owners, dtype=np.int64),
    )


def add_counts(counts: Sequence[Counts]) -> Counts:
    """Return the counts of several datasets together."""
    parts = {
        field.name: np.concatenate([getattr(own, field.name) for own in counts])
        for field in fields(Counts)
    }
    return Counts(**parts)


def choose_precise(counts: CountsByThreshold, share_of_rows: float = 1.0) -> float | None:
    """Return the lowest threshold whose spans are confirmed often enough, or None."""
    for wrong, own in counts.items():
        total = add_counts(own)
        if len(total.shares) < MIN_SPANS * share_of_rows:
            return None
        large = [part for part in own if len(part.shares) >= MIN_SPANS_OF_SET * share_of_rows]
        is_precise = all(part.precision >= MIN_PRECISION for part in large)
        if is_precise and total.cautious_precision >= MIN_PRECISION:
            return wrong
    return None


def measure_held_out(counts: CountsByThreshold) -> Counts | None:
    """Choose `precise` on each half of the rows and count on the other half."""
    measured = []
    for number in (0, 1):
        half = {wrong: [part.half(number) for part in own] for wrong, own in counts.items()}
        precise = choose_precise(half, 0.5)
        if precise is not None:
            measured += [part.half(1 - number) for part in counts[precise]]
    return add_counts(measured) if measured else None


def choose_confirmed(counts: CountsByThreshold) -> float | None:
    """Return `choose_precise`, or None if its spans are not confirmed on held-out rows."""
    held_out = measure_held_out(counts)
    if held_out is None or held_out.precision < MIN_PRECISION:
        return None
    return choose_precise(counts)


def calibrate_severity(
    sets: Sequence[MarkedSet], scheme: AnnotationScheme, wrong: float
) -> float | None:
    """Return the threshold at which as many confirmed spans are major as annotators say, or None.

    A span is confirmed if annotators marked a part of it; its severity is the highest of that part.
    """
    if scheme not in MAJOR:
        return None
    predicted, is_major = [], []
    for dataset in sets:
        spans = dataset.spans(scheme, SpanThresholds(wrong=wrong))
        any_masks, major_masks = dataset.annotated_masks(), dataset.annotated_masks(MAJOR_NAMES)
        for n, own in enumerate(spans):
            for span in own:
                if any_masks[n][span.start : span.end].any():
                    predicted.append(_major_share(dataset, n, span, scheme, wrong))
                    is_major.append(major_masks[n][span.start : span.end].any())
    if len(is_major) < MIN_CONFIRMED_SPANS:
        return None
    threshold = float(np.quantile(predicted, 1 - np.mean(is_major)))
    return round(min(max(threshold, 0.01), 0.99), 3)


def _major_share(
    dataset: MarkedSet, row: int, span: Span, scheme: AnnotationScheme, wrong: float
) -> float:
    """Return the highest share of major errors of the wrong pieces of a span."""
    errors = dataset.piece_probabilities[row]
    shares = [
        errors[n, MAJOR[scheme]]
        for n, (start, end) in enumerate(dataset.places[row][: len(errors)])
        if start < span.end and end > span.start and errors[n, WRONG[scheme]] >= wrong
    ]
    return float(max(shares))


def choose_threshold(counts: CountsByThreshold, sets: Sequence[MarkedSet]) -> float:
    """Return the threshold with the best mean F1.

    Only thresholds that beat marking everything on as many datasets as possible are considered.
    """
    rates = [float(dataset.annotated_mask().mean()) for dataset in sets]

    def evaluate(wrong: float) -> tuple[int, float]:
        values = [own.f1 for own in counts[wrong]]
        wins = sum(v > 2 * r / (1 + r) for v, r in zip(values, rates, strict=True))
        return wins, float(np.mean(values))

    return max(GRID, key=evaluate)


def partial_credit(
    dataset: MarkedSet, scheme: AnnotationScheme, thresholds: SpanThresholds
) -> tuple[float, float, float]:
    """Return F1 with partial credit of spans, of one span per text, and of spans moved at random.

    Moved spans keep their length and severity. Human errors of unknown severity are left out.
    """
    lengths = [len(row["hypothesis"]) for row in dataset.rows]
    human = [
        [
            Span(s["start"], s["end"], severity=s["severity"])
            for s in row["spans"]
            if s["side"] == "hypothesis" and s["severity"] in ("minor", *MAJOR_NAMES)
        ]
        for row in dataset.rows
    ]
    marked = dataset.spans(scheme, thresholds)
    covered = [[Span(0, n, severity="minor")] if n else [] for n in lengths]
    rng = np.random.default_rng(5)
    moved = []
    for spans, n in zip(marked, lengths, strict=True):
        starts = [int(rng.integers(0, n - (s.end - s.start) + 1)) for s in spans]
        moved.append(
            [
                replace(s, start=start, end=start + s.end - s.start)
                for s, start in zip(spans, starts, strict=True)
            ]
        )
    values = [micro(match_spans(human, own, lengths)).f1 for own in (marked, covered, moved)]
    return values[0], values[1], values[2]


def report(
    sets: Sequence[MarkedSet],
    counts: CountsByThreshold,
    thresholds: SpanThresholds,
    scheme: AnnotationScheme,
    title: str,
) -> None:
    """Print what the thresholds mark, in each dataset and together."""
    for dataset, own in zip(sets, counts[thresholds.wrong], strict=True):
        size = sum(len(row["hypothesis"]) for row in dataset.rows)
        rate, share = own.annotated.sum() / size, own.marked.sum() / size
        print(
            f"{title} {dataset.name:20}F1 {own.f1:.3f}  everything {2 * rate / (1 + rate):.3f}  "
            f"at random {2 * rate * share / (rate + share):.3f}  wrong {rate:.3f}  "
            f"marked {share:.3f}",
            flush=True,
        )
        if scheme in MAJOR:
            credit = partial_credit(dataset, scheme, thresholds)
            own_f1, everything, random = (f"{value:.3f}" for value in credit)
            print(f"  partial credit: F1 {own_f1}  everything {everything}  at random {random}")
    rows = sum(len(dataset.rows) for dataset in sets)
    kinds: list[tuple[str, Counts | None]] = [("all", add_counts(counts[thresholds.wrong]))]
    if thresholds.precise is not None:
        kinds.append(("precise", add_counts(counts[thresholds.precise])))
        kinds.append(("held out", measure_held_out(counts)))
    else:
        totals = [add_counts(own) for own in counts.values()]
        enough = [total for total in totals if len(total.shares) >= MIN_SPANS]
        kinds.append(("highest precision", max(enough, key=lambda total: total.precision)))
    for kind, total in kinds:
        if total is not None:
            print(
                f"{title} {kind}: precision {total.precision:.3f}  recall {total.recall:.3f}  "
                f"{len(total.shares)} spans in {rows} translations",
                flush=True,
            )


def choose(
    sets: Sequence[MarkedSet], scheme: AnnotationScheme, mode: Against
) -> dict[str, dict[str, float | None]]:
    """Choose and report the thresholds of an annotation scheme and input mode by family."""
    if not sets:
        return {}
    counts = count_all(sets, scheme)
    wrong = choose_threshold(counts, sets)
    pooled = SpanThresholds(wrong=wrong, major=calibrate_severity(sets, scheme, wrong) or 0.5)
    chosen = {OTHER_FAMILIES: pooled}
    for family in sorted({dataset.family for dataset in sets} - {OTHER_FAMILIES}):
        members = [n for n, dataset in enumerate(sets) if dataset.family == family]
        own_sets = [sets[n] for n in members]
        own = {limit: [parts[n] for n in members] for limit, parts in counts.items()}
        major = calibrate_severity(own_sets, scheme, wrong) or pooled.major
        chosen[family] = replace(pooled, major=major, precise=choose_confirmed(own))
        report(own_sets, own, chosen[family], scheme, f"{scheme} {mode} {family}")
    return {
        family: asdict(own)
        for family, own in chosen.items()
        if family == OTHER_FAMILIES or own != pooled
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    parser.add_argument(
        "--each", type=int, default=600, help="translations per dataset (default: 600)"
    )
    parser.add_argument(
        "--each-tagged", type=int, default=250, help="the same with word tags (default: 250)"
    )
    parser.add_argument("--write", action="store_true", help="write into the bundled config.json")
    args = parser.parse_args()
    data, metric = DatasetFolder.open(args.data).root, TertiumMulti()
    limits = {"mqm": args.each, "esa": args.each, "words": args.each_tagged}
    chosen = {
        scheme: {
            mode: choose(marked_sets(metric, data, scheme, mode, limits[scheme]), scheme, mode)
            for mode in INPUT_MODES
        }
        for scheme in LOGITS
    }
    for modes in chosen.values():  # word-tag datasets have no references
        for mode in INPUT_MODES:
            modes[mode] = modes[mode] or {OTHER_FAMILIES: modes["source"][OTHER_FAMILIES]}
    print(json.dumps(chosen, indent=1))
    if args.write:
        folder = bundled_models_folder() / TertiumMulti.name
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        write_config(folder, {**config, "spans": chosen})


if __name__ == "__main__":
    main()
