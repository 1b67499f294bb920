"""Trains tertium-multi from packed parts, one command a stage, each under a clock.

seed      comparisons, judgements, a short stage that favours old sets (one process a seed)
soup      the mean of the seeds' weights
teach     scores of the seeds, and of tertium-small for English, on outputs nobody judged
student   distils these into the mean's weights, judgements and damage mixed in
start     takes a model that ships apart, so that `tags` can go on from it
tags      a tagger of wrong pieces on top of given weights, which stay as they are
report    agreement on all held-out sets, spans, paragraphs, damage
export    weights in files small enough to send

python -m recipes.multi.train seed --parts parts/ --run run/ --seed 1 --seconds 120 240 60
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from recipes.multi import evaluate, fit
from recipes.multi.damage import Damager
from recipes.multi.e5 import BLOCK_BYTES, Pieces, load_weights
from recipes.multi.examples import (
    Comparisons,
    Damages,
    Judgements,
    Outputs,
    Shares,
    Source,
    Taught,
    row_texts,
)
from recipes.multi.losses import Weights
from recipes.multi.network import Multi, Ragged, Texts, attend_padded, attend_ragged, load_encoder
from recipes.multi.store import Store
from tertium.metrics.flagship.rows import NETWORK, WORDS

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
OLD = Shares(
    {
        "wmt16/": 25,
        "mlqe": 4,
        "qe20": 3,
        "qe23": 0.7,
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
BALANCED = Shares(
    {
        "wmt16/": 12,
        "mlqe": 2.2,
        "qe20": 2,
        "qe23": 0.8,
        "news20": 1.2,
        "news21": 1.0,
        "bio21": 0.6,
        "wmt21wiki": 0.4,
        "wmt20": 0.4,
        "wmt21": 0.4,
        "wmt22": 0.4,
        "wmt24": 1.2,
    }
)
TEACHERS_ROWS = 260_000
WAIT, HIDDEN, TAGGER = 600, 384, "tagger."


def build(given: argparse.Namespace, apart: int, weights: Path | None = None) -> Multi:
    """The network on the device; from the published encoder, or from weights of a stage."""
    encoder = load_weights(given.parts / "encoder")
    torch.manual_seed(given.seed)
    network = Multi(len(encoder["emb.word"]) // HIDDEN, hidden=HIDDEN, apart=apart)
    if len(encoder) > 1:
        load_encoder(network, encoder)
    else:  # a model that shipped: its table alone
        network.words.weight.data.copy_(encoder["emb.word"].view(-1, HIDDEN))
    if weights is not None:
        fit.restore(network, weights)
    if given.device.startswith("cuda"):
        network.ragged = ragged_works(given.device)
        return network.to_half().to(given.device)
    return network


def ragged_works(device: str) -> bool:
    """Whether the kernel for ragged batches is there, and right, forwards and backwards."""
    starts = torch.tensor([0, 5, 40, 47], dtype=torch.int32, device=device)
    owner = torch.repeat_interleave(torch.arange(3, device=device), starts.diff().long())
    place = torch.arange(47, device=device) - starts.long()[owner]
    within = Ragged(starts, 35, owner, place)
    results = []
    try:
        for attend in (attend_padded, attend_ragged):
            torch.manual_seed(1)
            given = torch.randn(47, 3, 12, 32, device=device).bfloat16().requires_grad_()
            query, key, value = given.unbind(1)
            out = attend(query, key, value, within)
            out.float().square().sum().backward()
            results.append((out.float(), given.grad.float()))  # type: ignore[union-attr]
    except Exception as error:  # any failure of an optional kernel means the same
        print("no ragged attention:", str(error)[:200], flush=True)
        return False
    (a, b), (c, d) = results
    close = torch.allclose(a, c, atol=0.03) and torch.allclose(b, d, atol=0.1)
    print("ragged attention", close, flush=True)
    return close


def wait_for(folder: Path) -> Path:
    for _ in range(WAIT):
        if (folder / "READY").exists():
            return folder
        time.sleep(1)
    raise TimeoutError(f"{folder} was not prepared")


def run_stage(
    given: argparse.Namespace,
    network: Multi,
    name: str,
    sources: Sequence[tuple[float, Source]],
    seconds: float,
    rate: float,
    weights: Weights,
) -> None:
    fit.fit(
        network,
        sources,
        seconds=seconds,
        rate=rate,
        weights=weights,
        device=given.device,
        seed=given.seed,
        budget=given.budget,
        workers=given.workers,
        log=given.run / f"{name}.log",
        steps=given.steps,
    )
    fit.save(network, given.run / f"{name}.safetensors")


def quick_look(given: argparse.Namespace, network: Multi, name: str, most: int) -> dict[str, float]:
    """Correlations on a sample of what chooses."""
    store = Store.open(wait_for(given.parts / "held-out"))
    figures = evaluate.measure_sets(
        lambda texts: evaluate.judge(network, texts, given.device), store, "dev:", most
    )
    summary = evaluate.summarise(figures)
    fit.note(given.run / f"{name}.log", {k: round(v, 4) for k, v in summary.items()})
    return summary


def sources_of(given: argparse.Namespace, shares: Shares) -> list[tuple[float, Source]]:
    """Judgements, comparisons and damage, by their shares of units."""
    judged = Judgements(Store.open(wait_for(given.parts / "judgements")), shares)
    ranked = Comparisons(Store.open(given.parts / "rankings"))
    outputs = Outputs(wait_for(given.parts / "outputs"))
    damager = Damager(Pieces(given.parts / "encoder" / "tokenizer.json").names)
    return [(0.8, judged), (0.02, ranked), (0.18, Damages(outputs, damager))]


def train_seed(given: argparse.Namespace) -> None:
    network = build(given, given.apart)
    name = f"seed{given.seed}"
    first, second, third = given.seconds
    ranked = Comparisons(Store.open(wait_for(given.parts / "rankings")))
    run_stage(given, network, f"{name}-1", [(1.0, ranked)], first, given.rates[0], Weights())
    summary = quick_look(given, network, f"{name}-1", 300)
    if second:
        broad = sources_of(given, BROAD)
        run_stage(given, network, f"{name}-2", broad, second, given.rates[1], Weights())
        summary = quick_look(given, network, f"{name}-2", 300)
    if third:
        old = sources_of(given, OLD)
        run_stage(given, network, f"{name}-3", old, third, given.rates[2], Weights())
        summary = quick_look(given, network, f"{name}-3", 300)
    (given.run / f"{name}.json").write_text(json.dumps({"apart": given.apart, **summary}))


def make_start(given: argparse.Namespace) -> None:
    """Takes the folder of a model that ships apart: tokenizer and table, and the rest in int8."""
    shipped, encoder = given.weights[0], given.parts / "encoder"
    tensors = load_file(shipped / "weights.safetensors")
    nibbles, scales = (tensors[f"{WORDS}{name}"].numpy() for name in ("nibbles", "scales"))
    blocks = np.concatenate([scales[..., None].view(np.uint8), nibbles], -1)
    for folder in (encoder, given.parts / "start"):
        folder.mkdir(parents=True, exist_ok=True)
    table = blocks.reshape(-1, BLOCK_BYTES)
    np.savez(encoder / "e5.npz", allow_pickle=False, **{"emb.word": table})
    shutil.copy(shipped / "encoder/tokenizer.json", encoder)
    network = {n.removeprefix(NETWORK): v for n, v in tensors.items() if n.startswith(NETWORK)}
    save_file(network, given.parts / "start/weights.safetensors")


def train_tags(given: argparse.Namespace) -> None:
    """A tagger learns from marked errors and damage; everything below it is frozen."""
    network = build(given, given.apart, given.weights[0])
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name.startswith(TAGGER))
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    (_, judged), _, (_, damaged) = sources_of(given, BALANCED)
    weights = Weights(score=0.0, pairs=0.0, margin=0.0, tags=1.0, spread=0.0, clean=0.0)
    sources = [(0.86, judged), (0.14, damaged)]
    run_stage(given, network, "tags", sources, given.seconds[0], given.rates[0], weights)
    tagger = {n: v.float().cpu() for n, v in network.state_dict().items() if n.startswith(TAGGER)}
    save_file({n: v.contiguous() for n, v in tagger.items()}, given.run / "tagger.safetensors")


def make_soup(given: argparse.Namespace) -> None:
    fit.average(given.weights, given.run / "soup.safetensors")
    network = build(given, given.apart, given.run / "soup.safetensors")
    quick_look(given, network, "soup", 300)


def teach(given: argparse.Namespace) -> None:
    """Writes each teacher's scores, the mean of the two views that have a reference."""
    outputs = Outputs(wait_for(given.parts / "outputs"))
    ranked = Store.open(given.parts / "rankings")
    sample = outputs.sample(given.rows, np.random.default_rng(5))
    used = np.unique(ranked.columns["comparisons"][:, :2])
    used = np.random.default_rng(5).permutation(used)[: given.rows // 2]
    jobs: dict[str, list[Texts]] = {
        "outputs": [outputs.texts(int(line), int(system)) for line, system in sample],
        "rankings": [row_texts(ranked, int(row)) for row in used],
    }
    np.save(given.run / f"outputs-rows-{given.seed}.npy", sample)
    np.save(given.run / f"rankings-rows-{given.seed}.npy", used)
    for weights in given.weights:
        network = build(given, given.apart, weights)
        for name, texts in jobs.items():
            said = [
                evaluate.judge(network, [evaluate.hide(t, view) for t in texts], given.device)  # type: ignore[misc]
                for view in ("reference", "both")
            ]
            scores = (said[0].scores + said[1].scores) / 2
            np.save(given.run / f"{name}-scores-{weights.stem}.npy", scores.astype(np.float32))
        print("taught by", weights, flush=True)


def blend_english(
    scores: NDArray[np.float32], rows: NDArray[np.int64], folder: Path, share: float
) -> int:
    """Mixes tertium-small's scores into the DA scale where there are any; returns how many."""
    if not (folder / "rows.npy").exists():
        return 0
    known_rows = np.load(folder / "rows.npy")
    parts = sorted(folder.glob("part-*.npy"))
    place = {tuple(np.atleast_1d(row).tolist()): n for n, row in enumerate(rows)}
    mine, theirs = [], []
    for path in parts:
        begin = int(path.stem.split("-")[1])
        for row, value in zip(known_rows[begin:], np.load(path), strict=False):
            number = place.get(tuple(np.atleast_1d(row).tolist()))
            if number is not None and np.isfinite(value):
                mine.append(number)
                theirs.append(value)
    if len(mine) < 1000:
        return 0
    known, own = np.array(theirs), scores[mine, 0]
    fitted = (known - known.mean()) / known.std() * own.std() + own.mean()
    scores[mine, 0] = (1 - share) * own + share * fitted
    return len(mine)


def train_student(given: argparse.Namespace) -> None:
    network = build(given, given.apart, given.weights[0])
    outputs = Outputs(given.parts / "outputs")
    ranked = Store.open(given.parts / "rankings")
    taught = {}
    for name in ("outputs", "rankings"):
        rows = np.load(next(given.run.glob(f"{name}-rows-*.npy")))
        each = [np.load(path) for path in sorted(given.run.glob(f"{name}-scores-*.npy"))]
        scores = np.asarray(np.mean(each, 0), np.float32)
        found = blend_english(scores, rows, given.run / f"english-{name}", given.english)
        print(name, len(rows), "rows,", found, "with the English teacher", flush=True)
        taught[name] = (rows, scores)
    lines, used = taught["outputs"][0], taught["rankings"][0]
    sources: list[tuple[float, Source]] = [
        (0.30, Taught(lambda n: outputs.texts(*map(int, lines[n])), taught["outputs"][1])),
        (
            0.22,
            Taught(
                lambda n: row_texts(ranked, int(used[n])),
                taught["rankings"][1],
                shares=(0.3, 0.35, 0.35),
            ),
        ),
        *((0.48 * share, source) for share, source in sources_of(given, OLD)),
    ]
    name = f"student{given.seed}"
    run_stage(given, network, name, sources, given.seconds[0], given.rates[0], Weights())
    quick_look(given, network, name, 300)


def report(given: argparse.Namespace) -> None:
    """All figures of one file of weights, on what chooses and (with --test) on what tests."""
    store = Store.open(wait_for(given.parts / "held-out"))
    outputs = Outputs(wait_for(given.parts / "outputs"))
    damager = Damager(Pieces(given.parts / "encoder" / "tokenizer.json").names)
    for weights in given.weights:
        network = build(given, given.apart, weights)

        def say(texts: Sequence[Texts], *, tags: bool = False, of: Multi = network) -> Any:
            return evaluate.judge(of, texts, given.device, with_tags=tags)

        figures: dict[str, Any] = {"dev": evaluate.measure_sets(say, store, "dev:", given.most)}
        figures["summary"] = evaluate.summarise(figures["dev"])
        print(weights.stem, json.dumps(figures["summary"]), flush=True)
        if given.test:
            figures["test"] = evaluate.measure_sets(say, store, "test:", given.most)
            figures["comparisons"] = evaluate.measure_comparisons(say, store, "test:")
            print(weights.stem, json.dumps(evaluate.summarise(figures["test"])), flush=True)
            print(weights.stem, json.dumps(figures["comparisons"]), flush=True)
        figures["paragraphs"] = evaluate.measure_paragraphs(say, store, "dev:")
        figures["damage"] = evaluate.measure_damage(say, outputs, damager)
        figures["spans"] = evaluate.measure_spans(lambda t: say(t, tags=True), store, "dev:")
        (given.run / f"report-{weights.stem}.json").write_text(json.dumps(figures))
        for name in ("paragraphs", "damage", "spans"):
            print(weights.stem, name, json.dumps(figures[name]), flush=True)


def export(given: argparse.Namespace) -> None:
    """Half-precision weights in files below 15 MiB each."""
    given.out.mkdir(parents=True, exist_ok=True)
    for weights in given.weights:
        state = load_file(weights)
        files: list[dict[str, Any]] = [{}]
        room = LARGEST
        for name, tensor in state.items():
            if tensor.numel() * 2 > room:
                files.append({})
                room = LARGEST
            files[-1][name] = tensor
            room -= tensor.numel() * 2
        for n, part in enumerate(files):
            save_file(part, given.out / f"{weights.stem}.{n}.safetensors")


LARGEST = 15 * 1024 * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=list(STAGES))
    parser.add_argument("weights", type=Path, nargs="*")
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--apart", type=int, default=0)
    parser.add_argument("--seconds", type=float, nargs="+", default=[120, 240, 60])
    parser.add_argument("--rates", type=float, nargs="+", default=[2e-4, 1.2e-4, 5e-5])
    parser.add_argument("--steps", type=int, help="steps a stage instead of seconds")
    parser.add_argument("--rows", type=int, default=TEACHERS_ROWS)
    parser.add_argument("--most", type=int, help="rows of a set in a report")
    parser.add_argument("--english", type=float, default=0.5, help="share of the English teacher")
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--budget", type=int, default=49_152, help="pieces of a batch")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    given.run.mkdir(parents=True, exist_ok=True)
    STAGES[given.stage](given)


STAGES = {
    "seed": train_seed,
    "soup": make_soup,
    "teach": teach,
    "student": train_student,
    "start": make_start,
    "tags": train_tags,
    "report": report,
    "export": export,
}


if __name__ == "__main__":
    main()
