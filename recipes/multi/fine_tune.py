r"""Fine-tune tertium-multi on human and soft scores, grouped by source.

    python -m recipes.multi.fine_tune train --packed packed/ --model MODEL --seconds 330 -o run/
    python -m recipes.multi.fine_tune evaluate run/network.*.safetensors --packed packed/ \
        --model MODEL

MODEL is the folder of the shipped model, `weights/tertium_models/tertium-multi`.
Training starts from the shipped model, which also teaches: it scores rows without labels, steadies
human scores of single raters, and its error tags are kept. Every batch holds several translations
of a source; a loss on all pairs of them teaches their order.
`evaluate` says how networks are chosen.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from recipes.multi.evaluate import forward, measure, predict, summarize
from recipes.multi.network import MultiNetwork, has_ragged_attention
from recipes.multi.sampling import SHARES, PackedRows, Step, iter_steps, prefetch

HIDDEN, LOWER_LAYERS = 384, 4
ROW_SCALE = ".row_scale"
SLOPE = 1.5  # one standard deviation of difference: 82 % of raters agree
WARMUP_SHARE, HEAD_FACTOR = 0.05, 1.0
HUMAN_WEIGHT, SOFT_WEIGHT = 0.4, 0.8  # shares of labels in targets; the rest is the teacher
TAUGHT = ("old", "da", "mqm", "esa", "qe", "rank", "outputs", "flores", "pivot")
SOFT = ("soft", "pseudo", "pivot-soft")


def dequantize(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        n: v.float() * tensors[n + ROW_SCALE][:, None] if n + ROW_SCALE in tensors else v.float()
        for n, v in tensors.items()
        if not n.endswith(ROW_SCALE)
    }


def load_shipped(folder: Path) -> MultiNetwork:
    """Return a network with the weights of a bundled model."""
    packed = load_file(folder / "weights.safetensors")
    nibbles, scales = packed["words.nibbles"], packed["words.scales"]
    values = torch.cat([nibbles & 15, nibbles >> 4], -1).float() - 8
    words = (values * scales.float()[..., None]).flatten(1)
    own = {n.removeprefix("network."): v for n, v in packed.items() if n.startswith("network.")}
    network = MultiNetwork(len(words), hidden=HIDDEN, lower_layers=LOWER_LAYERS)
    network.load_state_dict({**dequantize(own), "words.weight": words})
    return network


def prepare(network: MultiNetwork, device: str) -> MultiNetwork:
    if not device.startswith("cuda"):
        return network
    network.ragged = has_ragged_attention(device)
    head = network.head
    network.to_bfloat16()
    network.head = head.float()
    return network.to(device)


class MasterWeightAdamW:
    """AdamW on single-precision copies of the weights, with a higher rate for the head."""

    def __init__(self, network: nn.Module, rate: float, head_factor: float = 4.0) -> None:
        trainable = [(n, p) for n, p in network.named_parameters() if p.requires_grad]
        self.parameters = [p for _, p in trainable]
        self.masters = [p.detach().float().clone() for p in self.parameters]
        body = [n.startswith(("layers", "positions", "norm")) for n, _ in trainable]
        groups = []
        for is_body, factor in ((True, 1.0), (False, head_factor)):
            for matrix in (True, False):
                chosen = [
                    m
                    for m, b in zip(self.masters, body, strict=True)
                    if b == is_body and (m.ndim > 1) == matrix
                ]
                decay = 0.01 if matrix else 0.0
                groups.append({"params": chosen, "weight_decay": decay, "factor": factor})
        self.rate = rate
        fused = self.masters[0].is_cuda
        self.inner = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), eps=1e-8, fused=fused)

    def step(self, rate_factor: float) -> None:
        for group in self.inner.param_groups:
            group["lr"] = self.rate * rate_factor * group["factor"]
        updated, master_grads, grads = [], [], []
        for master, parameter in zip(self.masters, self.parameters, strict=True):
            if parameter.grad is None:  # unused in this batch
                master.grad = None
                continue
            if master.grad is None:
                master.grad = torch.empty_like(master)
            updated.append(master)
            master_grads.append(master.grad)
            grads.append(parameter.grad)
            parameter.grad = None
        torch._foreach_copy_(master_grads, grads)
        norm = nn.utils.clip_grad_norm_(updated, 1.0)
        if self.masters[0].is_cuda:  # the fused step skips batches that overflowed
            self.inner.found_inf = (~norm.isfinite()).float()  # type: ignore[attr-defined]
        self.inner.step()
        with torch.no_grad():
            torch._foreach_copy_(tuple(self.parameters), tuple(self.masters))


def losses(
    data: PackedRows,
    step: Step,
    student: tuple[Tensor, Tensor, Tensor],
    teacher: tuple[Tensor, Tensor, Tensor],
    kinds: NDArray[np.int64],
    offsets: Tensor,
    soft_weight: float,
) -> dict[str, Tensor]:
    """Return the losses of a step: scores, order within a source, and tags."""
    device = student[0].device
    label, within = (
        torch.from_numpy(data.columns[name][step.rows]).to(device) for name in ("score", "within")
    )
    kind = torch.from_numpy(kinds[step.rows]).to(device)  # 0 taught, 1 soft, 2 pairs only
    scores, taught = student[0], teacher[0]
    human = taught + HUMAN_WEIGHT * (label.clamp(-3, 3) - taught)
    soft = SOFT_WEIGHT * label.clamp(-3.5, 3) + offsets[torch.from_numpy(step.mode).to(device)]
    target = torch.where(label.isnan(), taught, torch.where(kind == 1, soft, human))
    weight = torch.where(kind == 2, 0.05, torch.where(kind == 1, soft_weight, 1.0))
    error = F.smooth_l1_loss(scores, target, reduction="none", beta=0.5)
    result = {"score": (error * weight).sum() / weight.sum().clamp(min=1)}
    pairs = torch.from_numpy(step.pairs).to(device)
    left, right = pairs[:, 0], pairs[:, 1]
    difference = within[left] - within[right]
    has_order = (~difference.isnan()).float() * (difference.abs() > 1e-3).float()
    share = torch.sigmoid(SLOPE * torch.nan_to_num(difference))
    order = F.binary_cross_entropy_with_logits(
        SLOPE * (scores[left] - scores[right]), share, reduction="none"
    )
    result["within"] = (order * has_order).sum() / has_order.sum().clamp(min=1)
    tags, taught_tags, mask = student[1], teacher[1], teacher[2].float()
    total = scores.new_zeros(())
    for begin, end in ((0, 3), (3, 6), (6, 8), (8, tags.shape[-1])):
        goal = taught_tags[..., begin:end].softmax(-1)
        total = total - (goal * tags[..., begin:end].log_softmax(-1)).sum(-1)
    result["tags"] = (total * mask).sum() / mask.sum()
    return result


def fit(
    args: argparse.Namespace, network: MultiNetwork, teacher: MultiNetwork, data: PackedRows
) -> None:
    shares = dict(SHARES)
    for change in args.share:
        kind, value = change.split("=")
        shares[kind] = (float(value), shares[kind][1])
    names = [name.split("/")[0] for name in data.names]
    kind_of_set = np.array([0 if n in TAUGHT else 1 if n in SOFT else 2 for n in names])
    kinds = kind_of_set[data.columns["set"]]
    offsets = soft_offsets(teacher, data)
    print("offsets", offsets.tolist(), flush=True)
    optimizer = MasterWeightAdamW(network, args.rate, HEAD_FACTOR)
    steps = prefetch(iter_steps(data, shares, args.budget, args.seed))
    network.train()
    sums: dict[str, Tensor] = {}
    begin, number, pieces = time.monotonic(), 0, 0
    while True:
        progress = (
            (time.monotonic() - begin) / args.seconds if not args.steps else number / args.steps
        )
        if progress >= 1:
            break
        step = next(steps)
        batch, surface, mode = forward(data, step.rows, step.mode)
        with torch.no_grad():
            goal = teacher.score(batch, surface, mode)
        parts = losses(
            data, step, network.score(batch, surface, mode), goal, kinds, offsets, args.soft
        )
        total = parts["score"] + args.within * parts["within"] + 0.2 * parts["tags"]
        total.backward()
        optimizer.step(min(progress / WARMUP_SHARE, 1) * (1 - progress))
        number, pieces = number + 1, pieces + batch.size
        for name, value in parts.items():
            sums[name] = sums.get(name, torch.zeros_like(value)) + value.detach()
        if number % 100 == 0 or number == 5:
            count = 100 if number > 5 else 5
            means = {name: round(float(v) / count, 4) for name, v in sums.items()}
            speed = round(pieces / (time.monotonic() - begin))
            print(number, f"{progress:.3f}", speed, means, flush=True)
            sums = {}
        if torch.cuda.is_available() and number == 3000:
            torch.cuda.empty_cache()


@torch.no_grad()
def soft_offsets(teacher: MultiNetwork, data: PackedRows) -> Tensor:
    """Return the mean score of the teacher on soft-labeled rows, for each input mode."""
    rng = np.random.default_rng(5)
    means = []
    for mode, kind in ((0, "soft"), (1, "pseudo"), (2, "pseudo")):
        numbers = [n for n, name in enumerate(data.names) if name.startswith(f"{kind}/")]
        rows = data.rows_of(numbers)
        rows = rng.choice(rows, min(1024, len(rows)), replace=False) if len(rows) else rows
        if not len(rows):
            means.append(0.0)
            continue
        scores = predict(teacher, data, rows, mode)
        means.append(float(np.mean(scores)))
    return torch.tensor(means, device=data.pool.device)


def save(network: MultiNetwork, path: Path) -> None:
    """Save all weights except word embeddings, matrices as int8 rows, in files below 15 MiB."""
    compact: dict[str, Tensor] = {}
    for name, value in network.state_dict().items():
        weight = value.detach().float().cpu().contiguous()
        if name == "words.weight":
            continue
        if weight.ndim == 2 and not name.startswith(
            ("head.last", "head.mean", "head.scale", "roles")
        ):
            scale = weight.abs().amax(1).clamp(min=1e-12) / 127
            compact[name] = (weight / scale[:, None]).round().to(torch.int8)
            compact[name + ROW_SCALE] = scale
        else:
            compact[name] = weight
    files: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, value in compact.items():
        count = value.numel() * value.element_size()
        if size + count > 15 * 2**20:
            files.append({})
            size = 0
        files[-1][name] = value
        size += count
    for n, part in enumerate(files):
        save_file(part, path.with_suffix(f".{n}.safetensors"))


def load_trained(folder: Path, files: Sequence[Path]) -> MultiNetwork:
    """Return the network of files written by `save`, or the mean of several."""
    network = load_shipped(folder)
    networks: dict[str, dict[str, Tensor]] = {}
    for file in files:
        networks.setdefault(file.name.split(".")[0], {}).update(load_file(file))
    states = [dequantize(tensors) for tensors in networks.values()]
    mean = {n: torch.stack([state[n] for state in states]).mean(0) for n in states[0]}
    missing, unknown = network.load_state_dict(mean, strict=False)
    assert missing == ["words.weight"], missing
    assert not unknown, unknown
    return network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["train", "evaluate"])
    parser.add_argument("weights", type=Path, nargs="*", help="weights to start from")
    parser.add_argument("--packed", type=Path, required=True, help="output of recipes.multi.groups")
    parser.add_argument("--model", type=Path, required=True, help="folder of the shipped model")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--steps", type=int, default=0, help="steps instead of seconds")
    parser.add_argument("--rate", type=float, default=6e-5)
    parser.add_argument("--within", type=float, default=1.0, help="weight of the pair loss")
    parser.add_argument("--soft", type=float, default=0.1, help="weight of soft scores")
    parser.add_argument("--share", nargs="*", default=[], help="kind=share of rows")
    parser.add_argument("--budget", type=int, default=65_536, help="pieces per batch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--name", default="network")
    parser.add_argument("-o", "--out", type=Path, default=Path("run"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed)
    begin = time.monotonic()
    data = PackedRows.open(args.packed, args.model / "encoder/tokenizer.json", args.device)
    print("data", round(time.monotonic() - begin), "s", data.pool.count, "texts", flush=True)
    start = load_trained(args.model, args.weights) if args.weights else load_shipped(args.model)
    network = prepare(start, args.device)
    if args.task == "train":
        teacher = prepare(load_shipped(args.model), args.device).eval()
        fit(args, network, teacher, data)
    save(network, args.out / args.name)
    begin = time.monotonic()
    figures = measure(network, data)
    summary = summarize(figures)
    print(json.dumps(summary, indent=0), round(time.monotonic() - begin), "s", flush=True)
    (args.out / f"{args.name}.json").write_text(json.dumps({"summary": summary, "sets": figures}))


if __name__ == "__main__":
    main()
