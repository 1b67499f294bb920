"""Measure the layer, the bounds and the baseline that are stored for an encoder.

    python -m recipes.calibrate_encoder minilm@all --data DIR

It reads da/wmt15 and da/wmt16, or `--sets`. For each layer it prints the agreement of each formula
with human scores (average Pearson over language pairs) and the values in
`embedding/baseline_calibration.py`: the score that one translation in 200 does not reach, and
BERTScore of randomly paired sentences.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import get_args

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.data.dataset_folder import DatasetFolder
from tertium.encoders import Chunk, Encoder, compare_pairs, load_encoder
from tertium.meta.agreement import pearson
from tertium.metrics.base.greedy_matching import match_greedily
from tertium.metrics.base.metric import Side, pair_texts
from tertium.metrics.embedding.bertscore import with_f1
from tertium.metrics.embedding.embedding_metric import Centre, LanguageCentering
from tertium.metrics.embedding.optimal_transport import WMD, map_distances, mean_distances
from tertium.metrics.embedding.sentsim import SSS, sentence_cosines

SETS = ("da/wmt15", "da/wmt16")
COLUMNS = ("precision", "recall", "f1", "bertr", "wmd", "smd", "sss")
DISTANCES = ("wmd", "smd")
ALL_SEGMENTS = slice(None)
BOUND_PERCENTILE = 0.5  # percent of translations beyond the bound


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """Judgments of one language pair: human scores (n,) and metric values (n, layers, columns)."""

    human: FloatArray
    values: FloatArray
    unrelated: FloatArray  # (n, layers, 3): BERTScore with the reference of another segment


def formulas(chunk: Chunk, layers: int, center: LanguageCentering | None) -> FloatArray:
    """Return all columns of all layers for each pair of a chunk, (m, layers * columns)."""
    chunk = center(chunk) if center else chunk
    sentences = sentence_cosines(chunk)
    width = chunk.embeddings.vectors.shape[1] // layers
    columns_by_layer: list[FloatArray] = []
    for layer in range(layers):
        part = _layer(chunk, layer * width, width)
        costs = np.array(map_distances(part, WMD().distance))
        plain = match_greedily(part, special=False)[:, 1]
        scores = with_f1(match_greedily(part))
        columns_by_layer.append(
            np.column_stack([scores, plain, costs, mean_distances(part), sentences])
        )
    return np.concatenate(columns_by_layer, axis=1)


def layer_scores(chunk: Chunk, layers: int, center: LanguageCentering | None) -> FloatArray:
    """Return BERTScore at all layers for each pair of a chunk, (m, layers * 3)."""
    chunk = center(chunk) if center else chunk
    width = chunk.embeddings.vectors.shape[1] // layers
    parts = [_layer(chunk, layer * width, width) for layer in range(layers)]
    return np.concatenate([with_f1(match_greedily(part)) for part in parts], axis=1)


def _layer(chunk: Chunk, start: int, width: int) -> Chunk:
    vectors = np.ascontiguousarray(chunk.embeddings.vectors[:, start : start + width])
    return dataclasses.replace(
        chunk, embeddings=dataclasses.replace(chunk.embeddings, vectors=vectors)
    )


def measure(
    encoder: Encoder,
    datasets: DatasetFolder,
    side: Side,
    *,
    sets: Sequence[str] = SETS,
    centre: Centre = "auto",
    selection: slice = ALL_SEGMENTS,
) -> Iterator[Sample]:
    """Yield the samples of all layers for every language pair that the encoder supports."""
    layers = encoder.layers
    for name in sets:
        for lp in datasets.find(name).lps:
            languages_read = set(lp.split("-")[0 if side == "source" else 1 :])
            if encoder.languages is not None and not languages_read <= encoder.languages:
                continue
            judgment_set = datasets.judgments(name, lp)
            _, left, right = pair_texts(judgment_set.segments[selection], side)
            center = SSS(lp=lp, centre=centre).centering(encoder, side)
            values = compare_pairs(
                encoder,
                left,
                right,
                partial(formulas, layers=layers, center=center),
                sentences=center is None,
            )
            unrelated_texts = np.roll(np.array(right, dtype=object), len(right) // 2).tolist()
            yield Sample(
                human=judgment_set.scores[selection],
                values=values.reshape(len(left), layers, len(COLUMNS)),
                unrelated=compare_pairs(
                    encoder,
                    left,
                    unrelated_texts,
                    partial(layer_scores, layers=layers, center=center),
                ).reshape(len(left), layers, 3),
            )


def agreement(samples: Sequence[Sample], layer: int) -> dict[str, float]:
    """Return the average Pearson of each column and of SentSim over language pairs."""
    rows = [_agreement(sample.human, sample.values[:, layer]) for sample in samples]
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def _agreement(human: FloatArray, values: FloatArray) -> dict[str, float]:
    columns = dict(zip(COLUMNS, values.T, strict=True))
    similar = {k: 1 - _unit(v) if k in DISTANCES else _unit(v) for k, v in columns.items()}
    joint = {
        f"{a}+{b}": np.exp(similar[a]) + np.exp(similar[b])
        for a in ("sss", "smd")
        for b in ("f1", "wmd")
    }
    return {key: float(pearson(human, column)) for key, column in {**similar, **joint}.items()}


def _unit(values: FloatArray) -> FloatArray:
    minimum, maximum = np.nanmin(values), np.nanmax(values)
    result: FloatArray = (values - minimum) / (maximum - minimum)
    return result


def bounds(samples: Sequence[Sample], layer: int) -> dict[str, float]:
    """Return the value of each column that 0.5 % of all translations do not reach."""
    values = np.concatenate([sample.values[:, layer] for sample in samples])
    return {
        key: float(
            np.nanpercentile(
                column, 100 - BOUND_PERCENTILE if key in DISTANCES else BOUND_PERCENTILE
            )
        )
        for key, column in zip(COLUMNS, values.T, strict=True)
    }


def baseline(samples: Sequence[Sample], layer: int) -> FloatArray:
    """Return precision, recall and F1 of BERTScore for randomly paired sentences, (3,)."""
    values = np.concatenate([sample.unrelated[:, layer] for sample in samples])
    result: FloatArray = np.nanmean(values, axis=0)
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="recipes.calibrate_encoder")
    parser.add_argument("encoder", help="an encoder, such as minilm@all, minilm@3+4 or use")
    parser.add_argument("--side", choices=("reference", "source"), default="reference")
    parser.add_argument("--limit", type=int, help="number of segments per language pair")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="use every Nth segment")
    parser.add_argument("--sets", nargs="+", default=SETS, help=f"default: {' '.join(SETS)}")
    parser.add_argument("--centre", choices=get_args(Centre), default="auto")
    parser.add_argument("--data", help="folder of human judgments")
    options = parser.parse_args(arguments)
    encoder = load_encoder(options.encoder, special=True)
    datasets = DatasetFolder.open(options.data)
    selection = slice(None, options.limit, options.every)
    choices = {"sets": options.sets, "centre": options.centre, "selection": selection}
    samples = list(measure(encoder, datasets, options.side, **choices))
    for layer in range(encoder.layers):
        figures = {
            "agreement": agreement(samples, layer),
            "bounds": bounds(samples, layer),
            "baseline": dict(zip(COLUMNS, baseline(samples, layer), strict=False)),
        }
        print(f"{options.encoder} against {options.side}, layer {layer + 1} of {encoder.layers}")
        for kind, values in figures.items():
            print(f"  {kind}: ", ", ".join(f"{key} {value:.4f}" for key, value in values.items()))


if __name__ == "__main__":
    main()
