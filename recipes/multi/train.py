"""Trains tertium-multi from packed parts, one command a stage, each under a clock.

seed      comparisons, then judgments with damage (one process a seed)
teach     scores of the seeds on outputs nobody judged, on compared and on judged ones
student   distils these, and tertium-base for English, into a seed, judgments and damage mixed in
mix       the mean of networks that began as one
start     takes a model that ships apart, so that it can teach, or `tags` can go on from it
tags      a tagger of wrong pieces on top of given weights, which stay as they are
report    agreement on all held-out sets, spans, paragraphs, damage
export    weights in files small enough to send

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
    Ragged,
    Texts,
    attend_padded,
    attend_ragged,
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
# few crowd judgments of modern systems: where they came more often, every older set lost
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
HUMAN_WEIGHT = 0.6  # of what people said beyond the teachers is in the target of a judged row
CROSS_SCALE_WEIGHT = 0.2  # ... and on the scales they did not judge on
JOINED = 40_000  # paragraphs of taught outputs


def build_network(
    args: argparse.Namespace, lower_layers: int, weights: Path | None = None
) -> MultiNetwork:
    """The network on the device; from the published encoder, or from weights of a stage."""
    encoder = load_weights(args.parts / "encoder")
    torch.manual_seed(args.seed)
    network = MultiNetwork(
        len(encoder["emb.word"]) // HIDDEN, hidden=HIDDEN, lower_layers=lower_layers
    )
    if len(encoder) > 1:
        load_encoder(network, encoder)
    else:  # a model that shipped: its table alone
        network.words.weight.data.copy_(encoder["emb.word"].view(-1, HIDDEN))
    if weights is not None:
        training_loop.load_weights_into(network, weights)
    if args.device.startswith("cuda"):
        network.ragged = has_ragged_attention(args.device)
        return network.to_bfloat16().to(args.device)
    return network


def has_ragged_attention(device: str) -> bool:
    """Whether the kernel for ragged batches is there, and right, forwards and backwards."""
    starts = torch.tensor([0, 5, 40, 47], dtype=torch.int32, device=device)
    owner = torch.repeat_interleave(torch.arange(3, device=device), starts.diff().long())
    place = torch.arange(47, device=device) - starts.long()[owner]
    within = Ragged(starts, 35, owner, place)
    results = []
    try:
        for attend in (attend_padded, attend_ragged):
            torch.manual_seed(1)
            qkv = torch.randn(47, 3, 12, 32, device=device).bfloat16().requires_grad_()
            query, key, value = qkv.unbind(1)
            out = attend(query, key, value, within)
            out.float().square().sum().backward()
            results.append((out.float(), qkv.grad.float()))  # type: ignore[union-attr]
    except Exception as error:  # any failure of an optional kernel means the same
        print("no ragged attention:", str(error)[:200], flush=True)
        return False
    (a, b), (c, d) = results
    close = torch.allclose(a, c, atol=0.03) and torch.allclose(b, d, atol=0.1)
    print("ragged attention", close, flush=True)
    return close


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
    """Correlations on a sample of what chooses."""
    store = Store.open(tables.wait_for_file(args.parts / "held-out/READY").parent)
    figures = evaluate.measure_sets(
        lambda texts: evaluate.predict(network, texts, args.device), store, "dev:", most
    )
    summary = evaluate.summarize(figures)
    training_loop.log_entry(args.run / f"{name}.log", {k: round(v, 4) for k, v in summary.items()})
    (args.run / f"{name}.json").write_text(json.dumps(summary))
    return summary


def judged_targets(store: Store, taught: Floats) -> Floats:
    """What teachers said, and a part of what people said beyond that."""
    targets = tables.human_targets(store)
    surprise = (targets - taught).clip(-3, 3)  # of people, on the scale they judged on
    elsewhere = np.nanmean(surprise, 1, keepdims=True)
    told = np.where(np.isnan(targets), CROSS_SCALE_WEIGHT * elsewhere, HUMAN_WEIGHT * surprise)
    return np.asarray(taught + told, np.float32)


def judged_sources(parts: Parts, shares: Shares, targets: Floats) -> list[TableSampler]:
    """Judgments, paragraphs, comparisons and damage, by their shares of units."""
    store, base = parts.judgments
    groups = tables.ParagraphRows.load(parts.derived("groups.npz"))
    return [
        tables.judgments(store, base, targets, shares, 0.78),
        tables.paragraphs(parts.pool, store, base, targets, shares, 0.05, groups),
        replace(parts.comparisons, share=0.05),
        tables.damages(parts.pool, parts.outputs, parts.derived("damage.npz"), 0.12),
    ]


def train_seed(args: argparse.Namespace) -> None:
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
    """Writes the mean of networks, which count by their shares, to the file `--out`."""
    networks = [build_network(args, args.lower_layers, weights) for weights in args.weights]
    training_loop.mix(networks, args.shares)
    training_loop.save(networks[0], args.out)


def unpack_shipped_model(args: argparse.Namespace) -> None:
    """Takes the folder of a model that ships apart: tokenizer and table, and the rest in int8."""
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
    """A tagger learns from marked errors and damage; everything below it is frozen."""
    network = build_network(args, args.lower_layers, args.weights[0])
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name.startswith(TAGGER))
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    parts = Parts(args.parts, args.device)
    targets = tables.human_targets(parts.judgments[0])
    judged, joined, _, damaged = judged_sources(parts, CAREFUL, targets)
    joined.share = 0.03
    weights = LossWeights(
        score=0.0, pairs=0.0, margin=0.0, tags=1.0, fit_uncertainty=0.0, clean=0.0
    )
    sources = [judged, joined, damaged]
    run_stage(args, network, "tags", sources, parts.pool, args.seconds[0], args.rates[0], weights)
    tagger = {n: v.float().cpu() for n, v in network.state_dict().items() if n.startswith(TAGGER)}
    save_file({n: v.contiguous() for n, v in tagger.items()}, args.run / "tagger.safetensors")


def write_teacher_scores(args: argparse.Namespace) -> None:
    """Writes each teacher's scores, the mean of the views that have a reference."""
    parts = Parts(args.parts, args.device)
    for weights in args.weights:
        network = build_network(args, args.lower_layers, weights)
        teachers.write_teacher_scores(
            network, parts, args.rows, args.run, weights.stem, args.correction
        )
        print("taught by", weights, flush=True)


def distillation_sources(
    args: argparse.Namespace, parts: Parts, rows: dict[str, Ints], taught: dict[str, Floats]
) -> list[TableSampler]:
    """Rows with the scores of teachers, in any view."""
    rng = np.random.default_rng(args.seed)
    lines, _ = parts.outputs.sample(args.rows)
    texts, said = rows["outputs"], taught["outputs"]
    third = parts.outputs.third_sources(texts, lines, rng)
    joined, joined_said = tables.output_paragraphs(parts.pool, texts, said, JOINED, rng)
    return [
        TableSampler(rows_table(texts, said), 0.20, (0.5, 0.25, 0.25)),
        TableSampler(rows_table(third, said), 0.06, (0.6, 0.0, 0.4)),
        TableSampler(
            rows_table(joined, joined_said, weights=1.5), 0.03 * args.paragraphs, (0.45, 0.3, 0.25)
        ),
        TableSampler(rows_table(rows["rankings"], taught["rankings"]), 0.17, (0.35, 0.3, 0.35)),
    ]


def train_student(args: argparse.Namespace) -> None:
    network = build_network(args, args.lower_layers, args.weights[0])
    parts = Parts(args.parts, args.device)
    _ = parts.comparisons, parts.judgments, parts.outputs  # while teachers still speak
    rows = teachers.distillation_rows(parts, args.rows)
    taught = {n: teachers.average_teachers(args.run, n, args.shipped, args.english) for n in rows}
    said, texts = taught["judgements"], rows["judgements"]
    targets = judged_targets(parts.judgments[0], said)
    judged = judged_sources(parts, CAREFUL, targets)
    for source in judged:
        source.share *= 0.40
    judged[1].share *= args.paragraphs
    # judged outputs once more as if nobody had: news into many languages, teachers less noisy
    whole = texts[:, 2] >= 0
    unjudged = TableSampler(rows_table(texts[whole], said[whole]), 0.14, (0.5, 0.25, 0.25))
    name = f"student{args.seed}"
    sources = [*distillation_sources(args, parts, rows, taught), unjudged, *judged]
    weights = LossWeights()
    if args.references:
        told = {**taught, "judgements": targets}
        sources += references.sources(parts, rows, told, args.rows, args.references)
        weights = LossWeights(pairs=1.5)  # what people compared is to count as before
    run_stage(args, network, name, sources, parts.pool, args.seconds[0], args.rates[0], weights)
    if args.most != 0:
        evaluate_sample(args, network, name, args.most or 500)


def report(args: argparse.Namespace) -> None:
    """All figures of one file of weights, on what chooses and (with --test) on what tests."""
    store = Store.open(tables.wait_for_file(args.parts / "held-out/READY").parent)
    outputs = Outputs(tables.wait_for_file(args.parts / "outputs/READY").parent)
    damager = Damager(Pieces(args.parts / "encoder" / "tokenizer.json").names)
    for weights in args.weights:
        network = build_network(args, args.lower_layers, weights)

        def say(texts: Sequence[Texts], *, tags: bool = False, of: MultiNetwork = network) -> Any:
            return evaluate.predict(of, texts, args.device, with_tags=tags)

        said: dict[str, NDArray[np.float32]] = {}
        dev = evaluate.measure_sets(say, store, "dev:", args.most, said)
        np.savez_compressed(args.run / f"said-{weights.stem}.npz", allow_pickle=False, **said)
        figures: dict[str, Any] = {"dev": dev}
        figures["summary"] = evaluate.summarize(figures["dev"])
        print(weights.stem, json.dumps(figures["summary"]), flush=True)
        if args.test:
            figures["test"] = evaluate.measure_sets(say, store, "test:", args.most)
            figures["comparisons"] = evaluate.measure_comparisons(say, store, "test:")
            print(weights.stem, json.dumps(evaluate.summarize(figures["test"])), flush=True)
            print(weights.stem, json.dumps(figures["comparisons"]), flush=True)
        figures["paragraphs"] = evaluate.measure_paragraphs(say, store, "dev:")
        figures["damage"] = evaluate.measure_damage(say, outputs, damager)
        figures["spans"] = evaluate.measure_spans(lambda t: say(t, tags=True), store, "dev:")
        (args.run / f"report-{weights.stem}.json").write_text(json.dumps(figures))
        for name in ("paragraphs", "damage", "spans"):
            print(weights.stem, name, json.dumps(figures[name]), flush=True)


def export(args: argparse.Namespace) -> None:
    """Half-precision weights in files below 15 MiB each."""
    args.out.mkdir(parents=True, exist_ok=True)
    for weights in args.weights:
        state = load_file(weights)
        files: list[dict[str, Any]] = [{}]
        room = MAX_FILE_BYTES
        for name, tensor in state.items():
            if tensor.numel() * 2 > room:
                files.append({})
                room = MAX_FILE_BYTES
            files[-1][name] = tensor
            room -= tensor.numel() * 2
        for n, part in enumerate(files):
            save_file(part, args.out / f"{weights.stem}.{n}.safetensors")


MAX_FILE_BYTES = 15 * 1024 * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=list(STAGES))
    parser.add_argument("weights", type=Path, nargs="*")
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--apart", dest="lower_layers", type=int, default=4)
    parser.add_argument("--seconds", type=float, nargs="+", default=[140, 320])
    parser.add_argument("--rates", type=float, nargs="+", default=[2e-4, 1.2e-4])
    parser.add_argument("--steps", type=int, help="steps a stage instead of seconds")
    parser.add_argument("--rows", type=int, default=tables.DISTILLED_OUTPUTS)
    parser.add_argument("--most", type=int, help="rows of a set in a report; 0: no look")
    parser.add_argument("--english", type=float, default=0.6, help="share of the English teacher")
    parser.add_argument("--shipped", type=float, default=1.5, help="share of the model that ships")
    parser.add_argument("--shares", type=float, nargs="+", help="for mix, one a network")
    parser.add_argument(
        "--references", type=float, default=0.0, help="share of them as hypotheses of a student"
    )
    parser.add_argument("--correction", type=Path, help="what corrects who teaches: a folder")
    parser.add_argument("--paragraphs", type=float, default=1.0, help="times as many of them")
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--budget", type=int, default=65_536, help="pieces of a batch")
    parser.add_argument("--device", default="cuda")
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
