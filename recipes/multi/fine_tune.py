r"""Fine-tune tertium-multi on human and soft scores, grouped by source.

    python -m recipes.multi.fine_tune train --packed packed/ --model MODEL --seconds 330 -o run/
    python -m recipes.multi.fine_tune evaluate run/network.*.safetensors --packed packed/ \
        --model MODEL

MODEL is the folder of the shipped model, `weights/tertium_models/tertium-multi`.
Training starts from the shipped model, which also teaches: it scores rows without labels, steadies
human scores of single raters, and its error tags are kept. Every batch holds several translations
of a source; a loss on all pairs of them teaches their order.

A network is chosen by one value: the mean of r, accuracy within a source and accuracy of systems,
over the groups of `CHOICE_SETS` and over the three input modes (`choice_value`).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from recipes.multi.batching import MAX_PIECES, TextPool, build_batch, rows_table, send
from recipes.multi.network import Batch, MultiNetwork, has_ragged_attention

HIDDEN, LOWER_LAYERS, SURFACE, UNITS = 384, 4, 8, 512
MODES = ("source", "reference", "both")
ROW_SCALE = ".row_scale"
MAX_GROUP_ROWS, GROUPS_PER_POOL = 6, 6_000
SLOPE = 1.5  # one standard deviation of difference: 82 % of raters agree
MAX_DEVIATIONS, NEUTRAL_CHRF = 6.0, 0.55
WARMUP_SHARE, HEAD_FACTOR = 0.05, 1.0
HUMAN_WEIGHT, SOFT_WEIGHT = 0.4, 0.8  # shares of labels in targets; the rest is the teacher
# Share of rows by kind of set, and the shares of input modes where source and reference exist.
SHARES: dict[str, tuple[float, tuple[float, float, float]]] = {
    "old": (0.05, (0.3, 0.35, 0.35)),
    "da": (0.13, (0.4, 0.25, 0.35)),
    "mqm": (0.09, (0.4, 0.25, 0.35)),
    "esa": (0.10, (0.4, 0.25, 0.35)),
    "qe": (0.10, (1.0, 0.0, 0.0)),
    "rank": (0.08, (0.3, 0.35, 0.35)),
    "outputs": (0.08, (0.4, 0.3, 0.3)),
    "soft": (0.17, (0.5, 0.25, 0.25)),
    "pseudo": (0.10, (0.0, 0.5, 0.5)),
    "strings": (0.04, (1.0, 0.0, 0.0)),
    "commands": (0.01, (1.0, 0.0, 0.0)),
    "flores": (0.05, (0.4, 0.3, 0.3)),
}
TAUGHT = ("old", "da", "mqm", "esa", "qe", "rank", "outputs", "flores")  # by the shipped model
CHOICE_SETS = {
    "wmt22": ("dev:da/wmt22/uk-en",),
    "wmt24": ("dev:esa/wmt24/",),
    "wmt25": ("dev:soft/",),  # scores of an LLM judge stand in for people
}
OLDER_SETS = {
    "wmt15": ("dev:da/wmt15/",),
    "livonian": ("dev:da/wmt22liv/", "dev:da/wmt22/liv"),
    "mqm": ("dev:mqm/ted21/", "dev:mqm/qe22dev"),
    "qe20": ("dev:qe/mlqe-dev/", "dev:qe/mlqe-test20", "dev:qe/mlqe-test21"),
    "qe22": ("dev:qe/qe22",),
    "qe24": ("dev:qe/qe24",),
}


SURFACE_MEAN = (0.4, 0.0, 0.01, 0.0, 0.0, 0.95, 0.98, 0.0)
SURFACE_DEVIATION = (0.3, 0.06, 0.09, 0.2, 0.5, 0.2, 0.12, 0.05)


class SurfaceHead(nn.Module):
    """Score of each input mode from pooled states x and surface features f.

    y = last(standardize([gelu(inner([norm(x); f])); x; f]))
    """

    def __init__(self, features: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.mean: Tensor
        self.scale: Tensor
        shape = len(MODES), UNITS + features + SURFACE
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("scale", torch.zeros(shape))
        self.norm, self.dropout = nn.LayerNorm(features), nn.Dropout(dropout)
        self.inner = nn.Linear(features + SURFACE, UNITS)
        self.last = nn.Linear(UNITS + features + SURFACE, len(MODES))

    def forward(self, states: Tensor, surface: Tensor, mode: Tensor) -> Tensor:
        states, surface = states.float(), surface.float()
        normed = self.dropout(self.norm(states))
        f = (surface - self.mean[0, -SURFACE:]) * self.scale[0, -SURFACE:]
        hidden = F.gelu(self.inner(torch.cat([normed, f], -1)))
        parts = torch.cat([hidden, states, surface], -1)
        x = (parts - self.mean[mode]) * self.scale[mode]
        x = self.dropout(x.clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS))
        return (x * self.last.weight[mode]).sum(-1) + self.last.bias[mode]

    @torch.no_grad()
    def start_from(
        self,
        state: Mapping[str, Tensor],
        readouts: Mapping[str, Tensor],
        corrections: Mapping[str, Mapping[str, float]],
    ) -> None:
        """Start from the head, the linear readouts and the corrections of the older model."""
        states = self.norm.normalized_shape[0]
        self.norm.weight.copy_(state["head.norm.weight"])
        self.norm.bias.copy_(state["head.norm.bias"])
        self.inner.weight.zero_()
        self.inner.weight[:, :states].copy_(state["head.inner.weight"])
        self.inner.bias.copy_(state["head.inner.bias"])
        width = (states - 2 * HIDDEN) // 2
        own, source, reference = (
            range(2 * HIDDEN),
            range(2 * HIDDEN, 2 * HIDDEN + width),
            range(2 * HIDDEN + width, states),
        )
        self.last.weight.zero_()
        for number, (name, roles) in enumerate(
            zip(MODES, ((source,), (reference,), (source, reference)), strict=True)
        ):
            states_of_mode = [*own, *(n for role in roles for n in role)]
            columns = torch.tensor([*range(UNITS), *(UNITS + n for n in states_of_mode)])
            r = {
                n.split(".", 2)[2]: v
                for n, v in readouts.items()
                if n.startswith(f"readouts.{number}.")
            }
            c, score = corrections[name], state["head.last.weight"][0]
            self.mean[number, columns], self.scale[number, columns] = r["mean"], r["scale"]
            self.mean[number, -SURFACE:] = torch.tensor(SURFACE_MEAN)
            self.scale[number, -SURFACE:] = 1 / torch.tensor(SURFACE_DEVIATION)
            weight = r["straight.weight"][0].clone()
            has_scale = r["scale"][:UNITS] > 0
            weight[:UNITS] += torch.where(
                has_scale, c["share"] * score / r["scale"][:UNITS].clamp(min=1e-6), 0.0
            )
            self.last.weight[number, columns] = weight
            bias = r["straight.bias"][0] + c["share"] * (
                state["head.last.bias"][0] + (score * r["mean"][:UNITS]).sum()
            )
            copied = -0.5 if name != "reference" else 0.0
            for n, factor in enumerate((c["letters"], c["strange_letters"], copied)):
                at = UNITS + states + n
                self.last.weight[number, at] = factor / self.scale[number, at]
                bias = bias + factor * self.mean[number, at]
            self.last.bias[number] = bias


class SurfaceNetwork(MultiNetwork):
    """The network of tertium-multi with a head that also reads surface features."""

    def __init__(self, words: int, **settings: Any) -> None:
        super().__init__(words, **settings)
        self.head: Any = SurfaceHead(
            self.head.norm.normalized_shape[0], settings.get("dropout", 0.1)
        )

    def score(self, batch: Batch, surface: Tensor, mode: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return scores (rows,), tag logits of pieces and the mask of pieces."""
        features, pieces, is_piece = self.pooled_states(batch)
        return self.head(features, surface, mode), self.tagger(pieces).float(), is_piece


class Teacher:
    """The shipped model before fine-tuning: its corrected score and its tags."""

    def __init__(self, folder: Path, device: str) -> None:
        settings = json.loads((folder / "config.json").read_text())
        self.corrections = settings.get("corrections")
        network, state = load_shipped(folder)
        self.network = prepare(network, device).eval()
        head = {n: v.to(device) for n, v in state.items() if n.startswith("head.")}
        self.head, self.readouts = head, []
        if self.corrections:
            readouts = dequantized(folder / "readout.safetensors")
            self.readouts = [
                {
                    name.split(".", 2)[2]: value.to(device)
                    for name, value in readouts.items()
                    if name.startswith(f"readouts.{n}.")
                }
                for n in range(len(MODES))
            ]

    @torch.no_grad()
    def __call__(
        self, batch: Batch, surface: Tensor, mode: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        features, pieces, is_piece = self.network.pooled_states(batch)
        head, x = self.head, features.float()
        normed = F.layer_norm(x, x.shape[1:], head["head.norm.weight"], head["head.norm.bias"])
        hidden = F.gelu(F.linear(normed, head["head.inner.weight"], head["head.inner.bias"]))
        raw = F.linear(hidden, head["head.last.weight"], head["head.last.bias"])[:, 0]
        score = torch.zeros_like(raw)
        for number, name in enumerate(MODES):
            rows = torch.nonzero(mode == number)[:, 0]
            if len(rows):
                inputs = torch.cat([hidden[rows], self._own_features(x[rows], number)], 1)
                score[rows] = self._correct(name, number, raw[rows], inputs, surface[rows].float())
        return score, self.network.tagger(pieces).float(), is_piece

    def _own_features(self, features: Tensor, mode: int) -> Tensor:
        width = (features.shape[1] - 2 * HIDDEN) // 2
        own, source, reference = features.split([2 * HIDDEN, width, width], 1)
        return torch.cat([own, *((source,), (reference,), (source, reference))[mode]], 1)

    def _correct(self, name: str, number: int, raw: Tensor, x: Tensor, f: Tensor) -> Tensor:
        r, c = self.readouts[number], self.corrections[name]
        x = ((x - r["mean"]) * r["scale"]).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)
        inner = F.gelu(F.linear(x @ r["squeeze.weight"].T, r["inner.weight"], r["inner.bias"]))
        readout = x @ r["straight.weight"][0] + r["straight.bias"][0] + inner @ r["last.weight"][0]
        bounded = raw / torch.sqrt(1 + (raw / c["softness"]) ** 2)
        centered = f[:, 0] - NEUTRAL_CHRF
        fragmented = torch.where(centered.abs() > 1e-3, f[:, 1] / centered, 0.0)
        total = (c["share"] - c["strange_share"] * fragmented) * bounded + readout
        total = total + f[:, 2] * bounded.clamp(max=0)
        if name == "source":
            return total
        return total + c["letters"] * f[:, 0] + c["strange_letters"] * f[:, 1]


def dequantized(path: Path) -> dict[str, Tensor]:
    tensors = {n.removeprefix("network."): v for n, v in load_file(path).items()}
    return {n: v for n, v in dequantize(tensors).items() if not n.startswith("words.")}


def dequantize(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        n: v.float() * tensors[n + ROW_SCALE][:, None] if n + ROW_SCALE in tensors else v.float()
        for n, v in tensors.items()
        if not n.endswith(ROW_SCALE)
    }


def load_shipped(folder: Path) -> tuple[SurfaceNetwork, dict[str, Tensor]]:
    """Return a network with the weights of a bundled model, and all its tensors."""
    packed = load_file(folder / "weights.safetensors")
    nibbles, scales = packed["words.nibbles"], packed["words.scales"]
    values = torch.cat([nibbles & 15, nibbles >> 4], -1).float() - 8
    words = (values * scales.float()[..., None]).flatten(1)
    state = dequantized(folder / "weights.safetensors")
    if (folder / "tags.safetensors").exists():
        state |= dequantized(folder / "tags.safetensors")
    network = SurfaceNetwork(len(words), hidden=HIDDEN, lower_layers=LOWER_LAYERS)
    body = {n: v for n, v in state.items() if not n.startswith(("head.", "readouts."))}
    missing, unknown = network.load_state_dict({**body, "words.weight": words}, strict=False)
    assert not unknown, unknown
    assert all(name.startswith("head.") for name in missing), missing
    corrections = json.loads((folder / "config.json").read_text())["corrections"]
    readouts = dequantized(folder / "readout.safetensors")
    network.head.start_from(state, readouts, corrections)
    return network, state


def prepare(network: SurfaceNetwork, device: str) -> SurfaceNetwork:
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


@dataclass
class PackedRows:
    """The rows of `recipes.multi.groups`, with all texts tokenized on the device."""

    pool: TextPool
    columns: dict[str, NDArray[Any]]
    names: list[str]

    @classmethod
    def open(cls, folder: Path, tokenizer: Path, device: str) -> PackedRows:
        import lzma

        from tokenizers import Tokenizer

        pool, stored_pieces = TextPool(device), folder / "pieces.npz"
        if not stored_pieces.exists():
            lines = lzma.decompress((folder / "texts.xz").read_bytes()).decode().split("\n")
            encoder = Tokenizer.from_file(str(tokenizer))
            pieces, sizes = [], []
            for start in range(0, len(lines), 50_000):
                part = encoder.encode_batch(lines[start : start + 50_000], add_special_tokens=False)
                pieces += [np.array(text.ids[:MAX_PIECES], np.int32) for text in part]
            sizes = [len(text) for text in pieces]
            np.savez(stored_pieces, pieces=np.concatenate(pieces), sizes=np.array(sizes))
        with np.load(stored_pieces) as stored:
            pool.add(stored["pieces"], stored["sizes"])
        with np.load(folder / "rows.npz") as stored:
            columns = {name: stored[name] for name in stored.files}
        columns["texts"] = np.stack(
            [columns[role] for role in ("hypothesis", "source", "reference")], 1
        ).astype(np.int64)
        return cls(pool, columns, json.loads((folder / "names.json").read_text()))

    def rows_of(self, numbers: Sequence[int]) -> NDArray[np.int64]:
        return np.flatnonzero(np.isin(self.columns["set"], list(numbers)))

    def texts_of(self, rows: NDArray[np.int64], mode: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return text numbers of rows, without the texts that their modes do not use."""
        texts = self.columns["texts"][rows].copy()
        texts[mode == 0, 2] = -1
        texts[mode == 1, 1] = -1
        return texts

    def surface(self, rows: NDArray[np.int64], mode: NDArray[np.int64]) -> NDArray[np.float32]:
        values = self.columns["features_both"][rows].astype(np.float32)
        values[mode == 0] = self.columns["features_source"][rows[mode == 0]]
        values[mode == 1, 2] = 0.0  # copied
        values[mode == 1, 4] = 0.0  # length against the source
        return values


class Groups:
    """Groups of the sets of one kind, to sample from."""

    def __init__(self, data: PackedRows, kind: str) -> None:
        numbers = [n for n, name in enumerate(data.names) if name.startswith(f"{kind}/")]
        rows = data.rows_of(numbers)
        group = data.columns["group"][rows]
        order = np.argsort(group, kind="stable")
        self.rows = rows[order]
        _, self.starts, self.sizes = np.unique(group[order], return_index=True, return_counts=True)
        sets = data.columns["set"][self.rows[self.starts]]
        set_sizes = np.bincount(sets, self.sizes)
        weights = 1 / np.sqrt(set_sizes[sets])  # rows of a set count with the root of its size
        if kind in ("soft", "pseudo", "mqm", "da", "esa", "rank", "outputs"):
            weights = weights * np.minimum(self.sizes, MAX_GROUP_ROWS)
        self.cumulative = np.cumsum(weights / weights.sum())
        self.has_reference = data.columns["reference"][self.rows[self.starts]] >= 0

    def sample(self, count: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        chosen = np.searchsorted(self.cumulative, rng.random(count) * 0.999999)
        return [
            self.rows[self.starts[n] : self.starts[n] + self.sizes[n]]
            if self.sizes[n] <= MAX_GROUP_ROWS
            else self.rows[
                self.starts[n] + rng.choice(self.sizes[n], MAX_GROUP_ROWS, replace=False)
            ]
            for n in chosen
        ]


@dataclass
class Step:
    """One batch: rows, their modes, the group of each, and pairs of rows of one group."""

    rows: NDArray[np.int64]
    mode: NDArray[np.int64]
    pairs: NDArray[np.int64]  # (pairs, 2) positions in `rows`


def iter_steps(
    data: PackedRows, shares: Mapping[str, tuple[float, tuple[float, ...]]], budget: int, seed: int
) -> Iterator[Step]:
    """Yield batches of about `budget` pieces; groups of similar length share a batch."""
    rng = np.random.default_rng(seed)
    groups = {kind: Groups(data, kind) for kind in shares}
    groups = {kind: own for kind, own in groups.items() if len(own.rows)}
    mean_rows = {
        kind: np.mean([len(rows) for rows in own.sample(200, rng)]) for kind, own in groups.items()
    }
    weights = np.array([shares[kind][0] / mean_rows[kind] for kind in groups])
    lengths, reference = data.pool.lengths, data.columns["reference"]
    while True:
        counts = rng.multinomial(GROUPS_PER_POOL, weights / weights.sum())
        units: list[NDArray[np.int64]] = []
        modes: list[int] = []
        for (kind, own), count in zip(groups.items(), counts, strict=True):
            sampled = own.sample(count, rng)
            drawn = rng.choice(3, count, p=shares[kind][1])
            units += sampled
            modes += [
                0 if (reference[rows] < 0).any() else int(mode)
                for rows, mode in zip(sampled, drawn, strict=True)
            ]
        sizes = []
        for rows, mode in zip(units, modes, strict=True):
            texts = data.texts_of(rows, np.full(len(rows), mode))
            sizes.append(int((np.where(texts >= 0, lengths[texts] + 2, 0)).sum()))
        longest = np.array(sizes) / [len(rows) for rows in units]
        order = np.argsort(longest, kind="stable")
        batch_of = np.cumsum(np.array(sizes)[order]) // budget
        batches = np.unique(batch_of)
        for n in rng.permutation(batches[: max(len(batches) - 1, 1)]):
            chosen = order[batch_of == n]
            yield make_step([units[i] for i in chosen], [modes[i] for i in chosen])


def prefetch(steps: Iterator[Step], size: int = 60) -> Iterator[Step]:
    """Prepare steps on another thread."""
    queue: Queue[Step] = Queue(size)

    def fill() -> None:
        for step in steps:
            queue.put(step)

    Thread(target=fill, daemon=True).start()
    while True:
        yield queue.get()


def make_step(units: Sequence[NDArray[np.int64]], modes: Sequence[int]) -> Step:
    counts = [len(rows) for rows in units]
    starts = np.cumsum([0, *counts])[:-1]
    pairs = [
        np.stack(np.triu_indices(count, 1), 1) + start
        for count, start in zip(counts, starts, strict=True)
        if count > 1
    ]
    return Step(
        np.concatenate(units),
        np.repeat(np.array(modes), counts),
        np.concatenate([np.zeros((0, 2), np.int64), *pairs]),
    )


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


def forward(
    data: PackedRows, rows: NDArray[np.int64], mode: NDArray[np.int64]
) -> tuple[Batch, Tensor, Tensor]:
    """Return the batch, the surface features and the modes of rows, on the device."""
    texts = data.texts_of(rows, mode)
    batch = build_batch(rows_table(texts, np.zeros((len(rows), 3), np.float32)), data.pool)
    device = data.pool.device
    return batch, send(data.surface(rows, mode), device), send(mode, device)


def fit(
    args: argparse.Namespace, network: SurfaceNetwork, teacher: Teacher, data: PackedRows
) -> None:
    shares = dict(SHARES)
    for change in args.share:
        kind, value = change.split("=")
        shares[kind] = (float(value), shares[kind][1])
    names = [name.split("/")[0] for name in data.names]
    kind_of_set = np.array(
        [0 if n in TAUGHT else 1 if n in ("soft", "pseudo") else 2 for n in names]
    )
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
        goal = teacher(batch, surface, mode)
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
def soft_offsets(teacher: Teacher, data: PackedRows) -> Tensor:
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


@torch.no_grad()
def predict(
    scorer: Any, data: PackedRows, rows: NDArray[np.int64], mode: int, budget: int = 120_000
) -> NDArray[np.float64]:
    """Return the scores of rows in one input mode."""
    call: Any = scorer.score if isinstance(scorer, nn.Module) else scorer
    modes = np.full(len(rows), mode)
    texts = data.texts_of(rows, modes)
    sizes = np.where(texts >= 0, data.pool.lengths[texts] + 2, 0).sum(1)
    order = np.argsort(-sizes, kind="stable")
    result, at = np.zeros(len(rows)), 0
    while at < len(rows):
        count = max(1, min(budget // int(sizes[order[at]]), len(rows) - at))
        chosen = order[at : at + count]
        result[chosen] = call(*forward(data, rows[chosen], modes[chosen]))[0].float().cpu().numpy()
        at += count
    return result


def pair_accuracy(human: NDArray[Any], metric: NDArray[Any], groups: NDArray[Any]) -> float:
    """Return the share of pairs within groups in the order of people; ties of people left out."""
    right = total = 0.0
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        if len(rows) > 1:
            h = np.sign(human[rows][:, None] - human[rows][None])
            m = np.sign(metric[rows][:, None] - metric[rows][None])
            upper = np.triu(h != 0, 1)
            total += int(upper.sum())
            right += float(((h == m) & upper).sum() + 0.5 * ((m == 0) & upper).sum())
    return right / total if total else float("nan")


def measure(scorer: Any, data: PackedRows) -> dict[str, dict[str, list[float]]]:
    """Return r, accuracy within a source and accuracy of systems, by set and input mode."""
    if isinstance(scorer, nn.Module):
        scorer.eval()
    figures: dict[str, dict[str, list[float]]] = {}
    sets: dict[str, list[int]] = {}
    for number, name in enumerate(data.names):
        if name.startswith("dev:"):
            merged = name.startswith(("dev:strings", "dev:commands", "dev:flores"))
            sets.setdefault(name.split("/")[0] if merged else name, []).append(number)
    for name, numbers in sets.items():
        rows = data.rows_of(numbers)
        figures[name] = {}
        for mode, title in enumerate(MODES):
            chosen = rows if mode == 0 else rows[data.columns["reference"][rows] >= 0]
            if len(chosen) < 4 or (mode and name.startswith(("dev:strings", "dev:commands"))):
                continue
            scores = predict(scorer, data, chosen, mode)
            human = data.columns["within"][chosen].astype(float)
            groups, system = data.columns["group"][chosen], data.columns["system"][chosen]
            labels = data.columns["score"][chosen]
            r = float("nan") if np.isnan(labels).any() else float(np.corrcoef(labels, scores)[0, 1])
            figures[name][title] = [
                r,
                pair_accuracy(human, scores, groups),
                system_accuracy(human, scores, system, groups),
            ]
    if isinstance(scorer, nn.Module):
        scorer.train()
    return figures


def system_accuracy(human: Any, metric: Any, system: Any, groups: Any) -> float:
    """Return the share of pairs of systems in the order of people, on sources of both."""
    names, index = np.unique(system, return_inverse=True)
    sources, column = np.unique(groups, return_inverse=True)
    if len(names) < 3 or len(sources) < 10:
        return float("nan")
    tables = []
    for values in (human, metric):
        table = np.full((len(names), len(sources)), np.nan)
        table[index, column] = values
        tables.append(table)
    right = total = 0.0
    for a in range(len(names)):
        for b in range(a):
            shared = ~np.isnan(tables[0][a] + tables[0][b])
            if shared.sum() < 10:
                continue
            h, m = (np.sign(np.mean(t[a][shared] - t[b][shared])) for t in tables)
            total += 1
            right += float(h == m)
    return right / total if total else float("nan")


def summarize(figures: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, Any]:
    """Return means over the sets of each group, by input mode, and the value to choose by."""
    summary: dict[str, Any] = {}
    for title, groups in (("choice", CHOICE_SETS), ("older", OLDER_SETS)):
        for group, prefixes in groups.items():
            for mode in MODES:
                own = [f[mode] for n, f in figures.items() if n.startswith(prefixes) and mode in f]
                if own:
                    with np.errstate(all="ignore"):
                        means = np.nanmean(np.array(own, float), 0)
                    summary[f"{title} {group} {mode}"] = [round(float(v), 4) for v in means]
    unseen = [
        figures[f"dev:soft/{pair}"]["source"]
        for pair in ("en-sv", "en-th")
        if f"dev:soft/{pair}" in figures
    ]
    if unseen:
        summary["unseen pairs source"] = [round(float(v), 4) for v in np.mean(unseen, 0)]
    for kind in ("strings", "commands", "flores"):
        for mode in MODES:
            shares = [
                f[mode][1] for n, f in figures.items() if n.startswith(f"dev:{kind}") and mode in f
            ]
            if shares:
                summary[f"{kind} {mode}"] = round(float(np.nanmean(shares)), 4)
    summary["value"] = choice_value(summary)
    old = {
        m: [v[0] for k, v in summary.items() if k.startswith("older") and k.endswith(m)]
        for m in MODES
    }
    summary["older r"] = {m: round(float(np.nanmean(v)), 4) for m, v in old.items() if v}
    return summary


def choice_value(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean of the three figures over the modern groups, by input mode and overall."""
    by_mode = {}
    for mode in MODES:
        own = [v for k, v in summary.items() if k.startswith("choice") and k.endswith(mode)]
        if own:
            by_mode[mode] = round(float(np.nanmean(np.array(own))), 4)
    return {**by_mode, "all": round(float(np.mean(list(by_mode.values()))), 4)}


def save(network: SurfaceNetwork, path: Path) -> None:
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


def load_trained(folder: Path, files: Sequence[Path]) -> SurfaceNetwork:
    """Return the network of files written by `save`, or the mean of several."""
    network, _ = load_shipped(folder)
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
    parser.add_argument("task", choices=["train", "evaluate", "teacher"])
    parser.add_argument("weights", type=Path, nargs="*", help="trained weights to evaluate")
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
    if args.task == "train":
        teacher = Teacher(args.model, args.device)
        network = prepare(
            load_trained(args.model, args.weights) if args.weights else load_shipped(args.model)[0],
            args.device,
        )
        fit(args, network, teacher, data)
        save(network, args.out / args.name)
        scorer: Any = network
    elif args.task == "evaluate":
        scorer = load_trained(args.model, args.weights)
        save(scorer, args.out / args.name)
        scorer = prepare(scorer, args.device)
    else:
        scorer = Teacher(args.model, args.device)
    begin = time.monotonic()
    figures = measure(scorer, data)
    summary = summarize(figures)
    print(json.dumps(summary, indent=0), round(time.monotonic() - begin), "s", flush=True)
    (args.out / f"{args.name}.json").write_text(json.dumps({"summary": summary, "sets": figures}))


if __name__ == "__main__":
    main()
