"""Train tertium-multi from packed parts, one command per stage, each with a time budget.

seed      train on comparisons, then on judgments with damage (one process per seed)
teach     score distillation rows with trained networks
student   distill these scores, and tertium-base for English, mixed with judgments and damage
mix       average the weights of networks with the same origin
start     unpack the bundled model, as a teacher or as start of a student or tagger
tags      train an error tagger on top of frozen weights
report    measure agreement on all held-out sets, error spans, paragraphs, damage
export    split weights into small files

    python -m recipes.multi.train seed --parts parts/ --run run/ --seed 1 --seconds 140 320
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from recipes.multi import evaluate, references, tables, teachers, training_loop
from recipes.multi.batching import Floats, Ints, TableSampler, TextPool, rows_table
from recipes.multi.damage import Damager
from recipes.multi.e5 import BLOCK_BYTES, Pieces, load_weights
from recipes.multi.losses import LossWeights
from recipes.multi.network import (
    MultiNetwork,
    Texts,
    has_ragged_attention,
    load_encoder,
)
from recipes.multi.packed_rows import Outputs, Shares
from recipes.multi.store import Store
from recipes.multi.tables import Parts
from tertium.metrics.flagship.row_scorer import NETWORK, WORDS

BROAD = Shares(
    {
        "wmt16/": 6,
        "mlqe": 1.7,
        "qe20": 1.5,
        "qe22": 1,
        "qe23": 0.7,
        "news20": 1.0,
        "news21": 0.8,
        "bio21": 0.6,
        "wmt21wiki": 0.5,
        "wmt20": 0.6,
        "wmt21": 0.6,
        "wmt22": 0.6,
        "wmt24": 0.9,
    }
)
# few crowd judgments of modern systems: more of them made results on older sets worse
CAREFUL = Shares(
    {
        "wmt16/": 10,
        "mlqe": 3,
        "qe20": 2,
        "qe22": 1.5,
        "qe23": 0.8,
        "news20": 0.6,
        "news21": 0.6,
        "bio21": 0.4,
        "indic": 0.6,
        "wmt21wiki": 0.3,
        "wmt20": 0.3,
        "wmt21": 0.3,
        "wmt22": 0.3,
        "wmt24": 0.6,
    }
)
HIDDEN, TAGGER = 384, "tagger."
HUMAN_WEIGHT = 0.6  # share of the human residual in the target of a judged row
CROSS_SCALE_WEIGHT = 0.2  # ... on scales without a human score
OUTPUT_PARAGRAPHS = 40_000
MAX_FILE_BYTES = 15 * 1024 * 1024


def build_network(
    args: argparse.Namespace, lower_layers: int, weights: Path | None = None
) -> MultiNetwork:
    """Build the network from the published encoder or from the weights of a stage."""
    encoder = load_weights(args.parts / "encoder")
    torch.manual_seed(args.seed)
    network = MultiNetwork(
        len(encoder["emb.word"]) // HIDDEN, hidden=HIDDEN, lower_layers=lower_layers
    )
    if len(encoder) > 1:
        load_encoder(network, encoder)
    else:  # a bundled model provides only its embedding table
        network.words.weight.data.copy_(encoder["emb.word"].view(-1, HIDDEN))
    if weights is not None:
        training_loop.load_weights_into(network, weights)
    if args.device.startswith("cuda"):
        network.ragged = has_ragged_attention(args.device)
        return network.to_bfloat16().to(args.device)
    return network


def run_stage(
    args: argparse.Namespace,
    network: MultiNetwork,
    name: str,
    sources: list[TableSampler],
    pool: TextPool,
    seconds: float,
    rate: float,
    weights: LossWeights,
) -> None:
    """Train one stage and save its weights."""
    training_loop.fit(
        network,
        sources,
        pool,
        seconds=seconds,
        rate=rate,
        weights=weights,
        seed=args.seed,
        budget=args.budget,
        log=args.run / f"{name}.log",
        steps=args.steps,
    )
    training_loop.save(network, args.run / f"{name}.safetensors")


def evaluate_sample(
    args: argparse.Namespace, network: MultiNetwork, name: str, most: int
) -> dict[str, float]:
    """Measure correlations on a sample of the development sets."""
    store = Store.open(tables.wait_for_file(args.parts / "held-out/READY").parent)
    figures = evaluate.measure_sets(
        lambda texts: evaluate.predict(network, texts, args.device), store, "dev:", most
    )
    summary = evaluate.summarize(figures)
    training_loop.log_entry(args.run / f"{name}.log", {k: round(v, 4) for k, v in summary.items()})
    (args.run / f"{name}.json").write_text(json.dumps(summary))
    return summary


def judged_targets(store: Store, teacher_means: Floats) -> Floats:
    """Return teacher scores plus a share of the human residuals."""
    targets = tables.human_targets(store)
    residual = (targets - teacher_means).clip(-3, 3)
    mean_residual = np.nanmean(residual, 1, keepdims=True)
    correction = np.where(
        np.isnan(targets), CROSS_SCALE_WEIGHT * mean_residual, HUMAN_WEIGHT * residual
    )
    return np.asarray(teacher_means + correction, np.float32)


def judged_sources(parts: Parts, shares: Shares, targets: Floats) -> list[TableSampler]:
    """Return samplers of judgments, paragraphs, comparisons and damage."""
    store, base = parts.judgments
    groups = tables.ParagraphRows.load(parts.derived("groups.npz"))
    return [
        tables.judgment_sampler(store, base, targets, shares, 0.78),
        tables.paragraph_sampler(parts.pool, store, base, targets, shares, 0.05, groups),
        replace(parts.comparisons, sampling_share=0.05),
        tables.damage_sampler(parts.pool, parts.outputs, parts.derived("damage.npz"), 0.12),
    ]


def train_seed(args: argparse.Namespace) -> None:
    """Train a network on comparisons, then on judgments."""
    network, name = build_network(args, args.lower_layers), f"seed{args.seed}"
    parts = Parts(args.parts, args.device)
    compared = [parts.comparisons]
    first, second = args.seconds
    run_stage(args, network, f"{name}-1", compared, parts.pool, first, args.rates[0], LossWeights())
    targets = tables.human_targets(parts.judgments[0])
    sources = judged_sources(parts, (BROAD, CAREFUL)[args.seed % 2], targets)
    run_stage(args, network, name, sources, parts.pool, second, args.rates[1], LossWeights())
    evaluate_sample(args, network, name, 300)


def mix(args: argparse.Namespace) -> None:
    """Write the weighted mean of networks to the file `--out`."""
    networks = [build_network(args, args.lower_layers, weights) for weights in args.weights]
    training_loop.average_networks(networks, args.shares)
    training_loop.save(networks[0], args.out)


def unpack_shipped_model(args: argparse.Namespace) -> None:
    """Unpack the folder of a bundled model: tokenizer, table and int8 weights."""
    shipped, encoder = args.weights[0], args.parts / "encoder"
    tensors = load_file(shipped / "weights.safetensors")
    nibbles, scales = (tensors[f"{WORDS}{name}"].numpy() for name in ("nibbles", "scales"))
    blocks = np.concatenate([scales[..., None].view(np.uint8), nibbles], -1)
    for folder in (encoder, args.parts / "start"):
        folder.mkdir(parents=True, exist_ok=True)
    table = blocks.reshape(-1, BLOCK_BYTES)
    np.savez(encoder / "e5.npz", allow_pickle=False, **{"emb.word": table})
    shutil.copy(shipped / "encoder/tokenizer.json", encoder)
    network = {n.removeprefix(NETWORK): v for n, v in tensors.items() if n.startswith(NETWORK)}
    save_file(network, args.parts / "start/weights.safetensors")


def train_tags(args: argparse.Namespace) -> None:
    """Train the tagger on marked errors and damage; all other weights are frozen."""
    network = build_network(args, args.lower_layers, args.weights[0])
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name.startswith(TAGGER))
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    parts = Parts(args.parts, args.device)
    targets = tables.human_targets(parts.judgments[0])
    judged_rows, joined, _, damaged = judged_sources(parts, CAREFUL, targets)
    joined.sampling_share = 0.03
    weights = LossWeights(score=0.0, pairs=0.0, margin=0.0, tags=1.0, spread=0.0, clean=0.0)
    sources = [judged_rows, joined, damaged]
    run_stage(args, network, "tags", sources, parts.pool, args.seconds[0], args.rates[0], weights)
    tagger = {n: v.float().cpu() for n, v in network.state_dict().items() if n.startswith(TAGGER)}
    save_file({n: v.contiguous() for n, v in tagger.items()}, args.run / "tagger.safetensors")


def write_teacher_scores(args: argparse.Namespace) -> None:
    """Write the scores of each teacher."""
    parts = Parts(args.parts, args.device)
    for weights in args.weights:
        network = build_network(args, args.lower_layers, weights)
        teachers.write_teacher_scores(
            network, parts, args.rows, args.run, weights.stem, args.correction
        )
        print("scored by", weights, flush=True)


def distillation_sources(
    args: argparse.Namespace, parts: Parts, rows: dict[str, Ints], teacher_means: dict[str, Floats]
) -> list[TableSampler]:
    """Return samplers of rows with teacher scores, in any input mode."""
    rng = np.random.default_rng(args.seed)
    lines, _ = parts.outputs.sample(args.rows)
    texts, teacher_scores = rows["outputs"], teacher_means["outputs"]
    pivot = parts.outputs.third_sources(texts, lines, rng)
    joined, paragraph_scores = tables.output_paragraphs(
        parts.pool, texts, teacher_scores, OUTPUT_PARAGRAPHS, rng
    )
    return [
        TableSampler(rows_table(texts, teacher_scores), 0.20, (0.5, 0.25, 0.25)),
        TableSampler(rows_table(pivot, teacher_scores), 0.06, (0.6, 0.0, 0.4)),
        TableSampler(
            rows_table(joined, paragraph_scores, weights=1.5),
            0.03 * args.paragraphs,
            (0.45, 0.3, 0.25),
        ),
        TableSampler(
            rows_table(rows["rankings"], teacher_means["rankings"]), 0.17, (0.35, 0.3, 0.35)
        ),
    ]


def train_student(args: argparse.Namespace) -> None:
    """Distill the teachers into a network, mixed with judgments and damage."""
    network = build_network(args, args.lower_layers, args.weights[0])
    parts = Parts(args.parts, args.device)
    _ = parts.comparisons, parts.judgments, parts.outputs  # load while teachers run
    rows = teachers.distillation_rows(parts, args.rows)
    teacher_means = {
        n: teachers.average_teachers(args.run, n, args.shipped, args.english) for n in rows
    }
    teacher_scores, texts = teacher_means["judgements"], rows["judgements"]
    targets = judged_targets(parts.judgments[0], teacher_scores)
    judged_rows = judged_sources(parts, CAREFUL, targets)
    for source in judged_rows:
        source.sampling_share *= 0.40
    judged_rows[1].sampling_share *= args.paragraphs
    # judged outputs again with teacher scores only, which are less noisy
    has_reference = texts[:, 2] >= 0
    relabeled = TableSampler(
        rows_table(texts[has_reference], teacher_scores[has_reference]), 0.14, (0.5, 0.25, 0.25)
    )
    name = f"student{args.seed}"
    sources = [*distillation_sources(args, parts, rows, teacher_means), relabeled, *judged_rows]
    weights = LossWeights()
    if args.references:
        labeled = {**teacher_means, "judgements": targets}
        sources += references.reference_samplers(parts, rows, labeled, args.rows, args.references)
        weights = LossWeights(pairs=1.5)  # keeps the weight of human comparisons
    run_stage(args, network, name, sources, parts.pool, args.seconds[0], args.rates[0], weights)
    if args.most != 0:
        evaluate_sample(args, network, name, args.most or 500)


def report(args: argparse.Namespace) -> None:
    """Write all figures of weights on the development sets and, with --test, on the test sets."""
    store = Store.open(tables.wait_for_file(args.parts / "held-out/READY").parent)
    outputs = Outputs(tables.wait_for_file(args.parts / "outputs/READY").parent)
    damager = Damager(Pieces(args.parts / "encoder" / "tokenizer.json").names)
    for weights in args.weights:
        network = build_network(args, args.lower_layers, weights)

        def predictor(
            texts: Sequence[Texts], *, tags: bool = False, model: MultiNetwork = network
        ) -> Any:
            return evaluate.predict(model, texts, args.device, with_tags=tags)

        raw_scores: dict[str, NDArray[np.float32]] = {}
        dev = evaluate.measure_sets(predictor, store, "dev:", args.most, raw_scores)
        np.savez_compressed(args.run / f"said-{weights.stem}.npz", allow_pickle=False, **raw_scores)
        figures: dict[str, Any] = {"dev": dev}
        figures["summary"] = evaluate.summarize(figures["dev"])
        print(weights.stem, json.dumps(figures["summary"]), flush=True)
        if args.test:
            figures["test"] = evaluate.measure_sets(predictor, store, "test:", args.most)
            figures["comparisons"] = evaluate.measure_comparisons(predictor, store, "test:")
            print(weights.stem, json.dumps(evaluate.summarize(figures["test"])), flush=True)
            print(weights.stem, json.dumps(figures["comparisons"]), flush=True)
        figures["paragraphs"] = evaluate.measure_paragraphs(predictor, store, "dev:")
        figures["damage"] = evaluate.measure_damage(predictor, outputs, damager)
        figures["spans"] = evaluate.measure_spans(lambda t: predictor(t, tags=True), store, "dev:")
        (args.run / f"report-{weights.stem}.json").write_text(json.dumps(figures))
        for name in ("paragraphs", "damage", "spans"):
            print(weights.stem, name, json.dumps(figures[name]), flush=True)


def export(args: argparse.Namespace) -> None:
    """Write half-precision weights in files below 15 MiB each."""
    args.out.mkdir(parents=True, exist_ok=True)
    for weights in args.weights:
        state = load_file(weights)
        files: list[dict[str, Any]] = [{}]
        bytes_left = MAX_FILE_BYTES
        for name, tensor in state.items():
            if tensor.numel() * 2 > bytes_left:
                files.append({})
                bytes_left = MAX_FILE_BYTES
            files[-1][name] = tensor
            bytes_left -= tensor.numel() * 2
        for n, part in enumerate(files):
            save_file(part, args.out / f"{weights.stem}.{n}.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=list(STAGES))
    parser.add_argument("weights", type=Path, nargs="*", help="weight files")
    parser.add_argument("--parts", type=Path, required=True, help="folder of packed data")
    parser.add_argument("--run", type=Path, required=True, help="folder of weights and logs")
    parser.add_argument("--out", type=Path, help="output of mix and export")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    parser.add_argument(
        "--apart",
        dest="lower_layers",
        type=int,
        default=4,
        help="layers that read texts separately",
    )
    parser.add_argument("--seconds", type=float, nargs="+", default=[140, 320], help="per stage")
    parser.add_argument("--rates", type=float, nargs="+", default=[2e-4, 1.2e-4], help="per stage")
    parser.add_argument("--steps", type=int, help="steps per stage instead of seconds")
    parser.add_argument("--rows", type=int, default=tables.DISTILLED_OUTPUTS, help="FLORES outputs")
    parser.add_argument("--most", type=int, help="evaluated rows per dataset; 0: no evaluation")
    parser.add_argument("--english", type=float, default=0.6, help="weight of tertium-base")
    parser.add_argument("--shipped", type=float, default=1.5, help="weight of the bundled model")
    parser.add_argument("--shares", type=float, nargs="+", help="weights of the networks for mix")
    parser.add_argument(
        "--references", type=float, default=0.0, help="share of references as hypotheses"
    )
    parser.add_argument("--correction", type=Path, help="folder with the correction of a teacher")
    parser.add_argument("--paragraphs", type=float, default=1.0, help="factor of their share")
    parser.add_argument("--test", action="store_true", help="also report the test sets")
    parser.add_argument("--budget", type=int, default=65_536, help="pieces per batch")
    parser.add_argument("--device", default="cuda", help="cpu or cuda (default: cuda)")
    args = parser.parse_args()
    args.run.mkdir(parents=True, exist_ok=True)
    STAGES[args.stage](args)


STAGES = {
    "seed": train_seed,
    "teach": write_teacher_scores,
    "student": train_student,
    "mix": mix,
    "start": unpack_shipped_model,
    "tags": train_tags,
    "report": report,
    "export": export,
}


if __name__ == "__main__":
    main()
