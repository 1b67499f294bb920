"""Choose how to compare translations with sources: layer, directions, weights, penalty.

    python -m recipes.languages.choice DATA e5 7 8 9 --segments 100

Uses da/wmt15, da/wmt16 and the development part of qe/wmt20. Language means and directions are
computed from parallel lines at every layer. Prints, for each dataset, the mean Pearson over
language pairs of every metric and layer, of SentSim with several weights, and of each with several
penalties for output in the wrong language.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from recipes.languages import directions as recipe
from recipes.languages.lines import FLORES_DEV_LINES, language_lines, read_flores
from recipes.languages.means import sample_lines
from tertium.core.arrays import BoolArray, Float32Array, FloatArray, round_to_grid
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet
from tertium.encoders import Chunk, Embeddings, Encoder, embed_texts, load_encoder
from tertium.meta.correlation import pearson
from tertium.metrics.base.greedy_matching import match_greedily
from tertium.metrics.embedding.bertscore import with_f1
from tertium.metrics.embedding.language_centering import (
    LanguageCentering,
    LanguageMeans,
    TranslationDirections,
)
from tertium.metrics.embedding.optimal_transport import map_distances
from tertium.metrics.embedding.smd import mean_distances
from tertium.metrics.embedding.sss import sentence_cosines
from tertium.metrics.embedding.wmd import WMD
from tertium.text.language_identification import flag_other_language

SETS = (("da/wmt15", ""), ("da/wmt16", ""), ("qe/wmt20", "dev"))
VARIANTS = ("raw", "centered", "in directions")
COLUMNS = ("sss", "bertscore", "bertr", "smd", "wmd")
SIGNS = np.array([1, 1, 1, -1, -1])
UNRELATED = np.array([0.0, 0.0, 0.0, 2.0, 2.0])
WEIGHTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)  # of SSS in SentSim; BERTScore gets the rest
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0)
BOUND_PERCENTILE = 0.5  # percentage of translations beyond a bound


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """Human scores (n,), values (n, layers x variants, columns), and wrong-language flags (n,)."""

    human: FloatArray
    values: FloatArray
    is_other_language: BoolArray


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder of human judgments")
    parser.add_argument("encoder", help="encoder name without a layer, such as e5")
    parser.add_argument("layers", type=int, nargs="+", help="layers to compare")
    parser.add_argument("--segments", type=int, help="segments per language pair (default: all)")
    parser.add_argument(
        "--lines", type=int, default=recipe.LINES_PER_LANGUAGE, help="lines per language"
    )
    args = parser.parse_args(arguments)
    encoder = load_encoder(f"{args.encoder}@{'+'.join(map(str, args.layers))}")
    collection = DatasetFolder.open(args.data)
    lps = {lp for name, _ in SETS for lp in collection.find(name).lps}
    variants = prepare_variants(
        encoder, args.data, {code for lp in lps for code in lp.split("-")}, args.lines
    )
    for name, part in SETS:
        datasets = [collection.judgments(name, lp, part) for lp in collection.find(name).lps]
        samples = [measure(encoder, dataset, variants, args.segments) for dataset in datasets]
        for layer, number in enumerate(args.layers):
            for variant, label in enumerate(VARIANTS):
                report(f"{name}, layer {number}, {label}", samples, layer * len(VARIANTS) + variant)


def prepare_variants(
    encoder: Encoder, data: Path, codes: set[str], count: int
) -> list[LanguageCentering | None]:
    """Return the centering variants of each layer, layer by layer."""
    samples_by_language = {
        code: sample_lines(lines)[:count]
        for code, lines in language_lines(data).items()
        if code in codes
    }
    language_embeddings = {
        code: encode_layers(encoder, texts) for code, texts in samples_by_language.items()
    }
    parallel = read_flores(data, slice(0, FLORES_DEV_LINES))
    parallel_embeddings = [
        encode_layers(encoder, parallel[c][:count]) for c in ("en", *recipe.LANGUAGES)
    ]
    variants_by_layer: list[LanguageCentering | None] = []
    for layer in range(encoder.layers):
        means = {
            code: parts[layer].vectors.mean(axis=0) for code, parts in language_embeddings.items()
        }
        stored = LanguageMeans(means, np.mean(list(means.values()), axis=0))
        rows = compute_directions([parts[layer] for parts in parallel_embeddings])
        aligned = TranslationDirections(
            round_to_grid(rows), recipe.TOKEN_DIRECTIONS, recipe.SENTENCE_DIRECTIONS
        )
        variants_by_layer += [
            None,
            LanguageCentering(stored),
            LanguageCentering(stored, directions=aligned),
        ]
    return variants_by_layer


def encode_layers(encoder: Encoder, texts: list[str]) -> list[Embeddings]:
    """Return the embeddings of texts, split by layer."""
    embeddings = embed_texts(encoder, texts)
    parts = np.split(embeddings.vectors, encoder.layers, axis=1)
    return [replace(embeddings, vectors=np.ascontiguousarray(part)) for part in parts]


def compute_directions(texts: Sequence[Embeddings]) -> Float32Array:
    """Return the directions of `recipes.languages.directions` from parallel texts."""
    english, *other_languages = (
        [vectors - part.vectors.mean(axis=0) for vectors in part] for part in texts
    )
    gaps = [
        gap for other in other_languages for gap in map(recipe.nearest_differences, other, english)
    ]
    spread = [text for part in (english, *other_languages) for text in part]
    within = recipe.covariance(np.concatenate(gaps))
    rows = recipe.principal_directions(within, recipe.covariance(np.concatenate(spread)))
    return (
        rows[: max(recipe.TOKEN_DIRECTIONS, recipe.SENTENCE_DIRECTIONS)]
        .astype("<f2")
        .astype(np.float32)
    )


def measure(
    encoder: Encoder,
    dataset_: JudgmentSet,
    variants: Sequence[LanguageCentering | None],
    limit: int | None,
) -> Sample:
    """Return the metric values of a sample of a dataset for every variant."""
    step = max(1, len(dataset_.segments) // limit) if limit else 1
    pairs = [(s.source or "", s.hypothesis) for s in dataset_.segments[::step]]
    order = sorted(range(len(pairs)), key=lambda n: pairs[n][0])  # groups by source
    right, left = zip(*(pairs[n] for n in order), strict=True)
    places = {text: n for n, text in enumerate(dict.fromkeys([*right, *left]))}
    source, target = dataset_.lp.split("-")
    layers, values = encode_layers(encoder, list(places)), []
    for n, variant in enumerate(variants):
        chunk = Chunk(
            pairs=np.arange(len(left)),
            left=np.array([places[text] for text in left]),
            right=np.array([places[text] for text in right]),
            embeddings=layers[n // len(VARIANTS)],
        )
        change = variant and replace(variant, source=source, target=target)
        values.append(compute_scores(change(chunk, left, right) if change else chunk))
    return Sample(
        human=dataset_.scores[::step][order],
        values=np.stack(values, axis=1),
        is_other_language=flag_other_language(left, target),
    )


def compute_scores(chunk: Chunk) -> FloatArray:
    """Return every metric column for the pairs of a chunk, (m, columns)."""
    matched = match_greedily(chunk, special=False)
    costs = np.array(map_distances(chunk, WMD().distance))
    means = mean_distances(chunk)
    f1, recall = with_f1(matched)[:, 2], matched[:, 1]
    return np.column_stack([sentence_cosines(chunk), f1, recall, means, costs])


def report(label: str, samples: Sequence[Sample], variant: int) -> None:
    """Print the correlations of a variant for each penalty and SentSim weight."""
    values = np.concatenate([dataset.values[:, variant] for dataset in samples])
    worst = np.where(SIGNS > 0, BOUND_PERCENTILE, 100 - BOUND_PERCENTILE)
    bounds = np.array([np.nanpercentile(v, w) for v, w in zip(values.T, worst, strict=True)])
    print(f"{label}; bounds", *(f"{name} {v:.4f}" for name, v in zip(COLUMNS, bounds, strict=True)))
    for share in SHARES:
        scores = [
            dataset.values[:, variant] + wrong_language_shift(dataset, variant, share)
            for dataset in samples
        ]
        columns = np.array(
            [[float(pearson(o.human, s)) for s in v.T] for o, v in zip_samples(samples, scores)]
        )
        sums = [
            np.mean(
                [
                    float(pearson(o.human, sentsim(v, bounds, w)))
                    for o, v in zip_samples(samples, scores)
                ]
            )
            for w in WEIGHTS
        ]
        variants_by_layer = dict(zip(COLUMNS, columns.mean(axis=0) * SIGNS, strict=True))
        variants_by_layer |= {f"sentsim {w}": r for w, r in zip(WEIGHTS, sums, strict=True)}
        print(
            f"  {share:.1f}: ",
            ", ".join(f"{name} {r:.4f}" for name, r in variants_by_layer.items()),
        )
    print(flush=True)


def zip_samples(
    samples: Sequence[Sample], scores: Sequence[FloatArray]
) -> Iterator[tuple[Sample, FloatArray]]:
    return zip(samples, scores, strict=True)


def wrong_language_shift(dataset: Sample, variant: int, share: float) -> FloatArray:
    """Return the score change of wrong-language rows, (n, columns)."""
    return share * dataset.is_other_language[:, None] * (UNRELATED - dataset.values[:, variant])


def sentsim(values: FloatArray, bounds: FloatArray, weight: float) -> FloatArray:
    """Return w e^A + (1 - w) e^B of SSS and BERTScore, rescaled by their bounds, (n,)."""
    similar = (values[:, :2] - bounds[:2]) / (1 - bounds[:2])
    result: FloatArray = np.exp(similar) @ np.array([weight, 1 - weight])
    return result


if __name__ == "__main__":
    main()
