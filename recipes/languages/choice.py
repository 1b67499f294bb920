"""Choose how translations are compared with their sources: layer, directions, weights, penalty.

    python -m recipes.languages.choice DATA e5 7 8 9 --segments 100

reads da/wmt15, da/wmt16 and the development part of qe/wmt20, and nothing else of judgments. Means
and directions are made of parallel lines at every layer as the stored ones are. Prints, set by set,
the average Pearson over language pairs of every metric at every layer, of SentSim under several
weights, and of each where output in another language than asked for goes a share of the way from
its score to that of unrelated texts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from recipes.languages import directions as recipe
from recipes.languages.lines import DEV, flores, lines
from recipes.languages.means import sample
from tertium.arrays import BoolArray, Float32Array, FloatArray, round_to_grid
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
HOW_TO_PROVIDE = ("as they are", "less means", "in directions")
COLUMNS = ("sss", "bertscore", "bertr", "smd", "wmd")
SIGNS = np.array([1, 1, 1, -1, -1])
UNRELATED = np.array([0.0, 0.0, 0.0, 2.0, 2.0])
WEIGHTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)  # of SSS in SentSim, the rest being BERTScore's
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0)
WORST = 0.5  # per cent of translations beyond a bound


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """A pair's human scores (n,), values (n, layers x ways, columns), and what went astray (n,)."""

    human: FloatArray
    values: FloatArray
    astray: BoolArray


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("encoder", help="a name without a layer, such as e5")
    parser.add_argument("layers", type=int, nargs="+")
    parser.add_argument("--segments", type=int, help="of each pair (default: all)")
    parser.add_argument("--lines", type=int, default=recipe.LINES, help="of each language")
    args = parser.parse_args(arguments)
    encoder = load_encoder(f"{args.encoder}@{'+'.join(map(str, args.layers))}")
    collection = DatasetFolder.open(args.data)
    lps = {lp for name, _ in SETS for lp in collection.find(name).lps}
    ways = prepare(encoder, args.data, {code for lp in lps for code in lp.split("-")}, args.lines)
    for name, part in SETS:
        judged = [collection.judgments(name, lp, part) for lp in collection.find(name).lps]
        samples = [measure(encoder, one, ways, args.segments) for one in judged]
        for layer, number in enumerate(args.layers):
            for way, label in enumerate(HOW_TO_PROVIDE):
                report(
                    f"{name}, layer {number}, {label}", samples, layer * len(HOW_TO_PROVIDE) + way
                )


def prepare(
    encoder: Encoder, data: Path, codes: set[str], count: int
) -> list[LanguageCentering | None]:
    """The ways to compare at each layer, layer after layer."""
    some = {code: sample(found)[:count] for code, found in lines(data).items() if code in codes}
    centres = {code: split(encoder, texts) for code, texts in some.items()}
    parallel = flores(data, slice(0, DEV))
    lined = [split(encoder, parallel[c][:count]) for c in ("en", *recipe.LANGUAGES)]
    found: list[LanguageCentering | None] = []
    for layer in range(encoder.layers):
        means = {code: parts[layer].vectors.mean(axis=0) for code, parts in centres.items()}
        stored = LanguageMeans(means, np.mean(list(means.values()), axis=0))
        rows = make_directions([parts[layer] for parts in lined])
        aligned = TranslationDirections(round_to_grid(rows), recipe.TOKENS, recipe.SENTENCES)
        found += [None, LanguageCentering(stored), LanguageCentering(stored, directions=aligned)]
    return found


def split(encoder: Encoder, texts: list[str]) -> list[Embeddings]:
    """The vectors of texts, layer by layer; sentence vectors are the encoder's own."""
    whole = embed_texts(encoder, texts)
    parts = np.split(whole.vectors, encoder.layers, axis=1)
    return [replace(whole, vectors=np.ascontiguousarray(part)) for part in parts]


def make_directions(texts: Sequence[Embeddings]) -> Float32Array:
    """The directions of `recipes.languages.directions`, of English and of other lines."""
    english, *others = ([one - part.vectors.mean(axis=0) for one in part] for part in texts)
    gaps = [gap for other in others for gap in map(recipe.differences, other, english)]
    spread = [text for part in (english, *others) for text in part]
    within = recipe.covariance(np.concatenate(gaps))
    rows = recipe.directions(within, recipe.covariance(np.concatenate(spread)))
    return rows[: max(recipe.TOKENS, recipe.SENTENCES)].astype("<f2").astype(np.float32)


def measure(
    encoder: Encoder,
    judged: JudgmentSet,
    ways: Sequence[LanguageCentering | None],
    limit: int | None,
) -> Sample:
    """The values of a pair's translations in every way, of so many of them."""
    step = max(1, len(judged.segments) // limit) if limit else 1
    pairs = [(s.source or "", s.hypothesis) for s in judged.segments[::step]]
    order = sorted(range(len(pairs)), key=lambda n: pairs[n][0])  # a source with its translations
    right, left = zip(*(pairs[n] for n in order), strict=True)
    places = {text: n for n, text in enumerate(dict.fromkeys([*right, *left]))}
    source, target = judged.lp.split("-")
    layers, values = split(encoder, list(places)), []
    for n, way in enumerate(ways):
        chunk = Chunk(
            pairs=np.arange(len(left)),
            left=np.array([places[text] for text in left]),
            right=np.array([places[text] for text in right]),
            embeddings=layers[n // len(HOW_TO_PROVIDE)],
        )
        change = way and replace(way, source=source, target=target)
        values.append(formulas(change(chunk, left, right) if change else chunk))
    return Sample(
        human=judged.scores[::step][order],
        values=np.stack(values, axis=1),
        astray=flag_other_language(left, target),
    )


def formulas(chunk: Chunk) -> FloatArray:
    """Every column for each comparison of a chunk, (m, columns)."""
    matched = match_greedily(chunk, special=False)
    costs = np.array(map_distances(chunk, WMD().distance))
    means = mean_distances(chunk)
    f1, recall = with_f1(matched)[:, 2], matched[:, 1]
    return np.column_stack([sentence_cosines(chunk), f1, recall, means, costs])


def report(label: str, samples: Sequence[Sample], way: int) -> None:
    """Print what a way is worth on a set: under each penalty, and under each weight of SentSim."""
    values = np.concatenate([one.values[:, way] for one in samples])
    worst = np.where(SIGNS > 0, WORST, 100 - WORST)
    far = np.array([np.nanpercentile(v, w) for v, w in zip(values.T, worst, strict=True)])
    print(f"{label}; bounds", *(f"{name} {v:.4f}" for name, v in zip(COLUMNS, far, strict=True)))
    for share in SHARES:
        scores = [one.values[:, way] + strays(one, way, share) for one in samples]
        columns = np.array(
            [[float(pearson(o.human, s)) for s in v.T] for o, v in scored(samples, scores)]
        )
        sums = [
            np.mean(
                [float(pearson(o.human, sentsim(v, far, w))) for o, v in scored(samples, scores)]
            )
            for w in WEIGHTS
        ]
        found = dict(zip(COLUMNS, columns.mean(axis=0) * SIGNS, strict=True))
        found |= {f"sentsim {w}": r for w, r in zip(WEIGHTS, sums, strict=True)}
        print(f"  {share:.1f}: ", ", ".join(f"{name} {r:.4f}" for name, r in found.items()))
    print(flush=True)


def scored(
    samples: Sequence[Sample], scores: Sequence[FloatArray]
) -> Iterator[tuple[Sample, FloatArray]]:
    return zip(samples, scores, strict=True)


def strays(one: Sample, way: int, share: float) -> FloatArray:
    """What is added to the values of a pair, (n, columns)."""
    return share * one.astray[:, None] * (UNRELATED - one.values[:, way])


def sentsim(values: FloatArray, far: FloatArray, weight: float) -> FloatArray:
    """w e^A + (1 - w) e^B of SSS and BERTScore, brought to [0, 1] by bounds, (n,)."""
    similar = (values[:, :2] - far[:2]) / (1 - far[:2])
    result: FloatArray = np.exp(similar) @ np.array([weight, 1 - weight])
    return result


if __name__ == "__main__":
    main()
