"""The network of tertium-multi: hypothesis, source and reference in one pass, any subset of them.

Every text is `<s> pieces </s>` with positions that start anew, as the encoder met texts when it was
made (and as XLM's translation modeling aligned them); role embeddings that start at zero tell them
apart. The lower `lower_layers` layers read each text for itself, the upper ones all texts together. On
top: a mix of layers, means, and a late comparison of the hypothesis with each other text, which
judges the whole (three scales, their spread, no error at all) and every piece (error spans).

Pieces of a batch lie one behind the other without padding; only attention sees a padded view,
where the kernel for ragged batches is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from recipes.multi.e5 import END, START

HYPOTHESIS, SOURCE, REFERENCE = range(3)
SCALES = ("da", "mqm", "esa")  # quality estimation is judged on the scale of direct assessment
MIXED_LAYERS = (4, 6, 8, 10, 11, 12)  # layers that are mixed, as in the study
MATCHED_LAYERS = (3, 6, 12)  # layers whose pieces are matched greedily
COMPARISON_DIM = 128
TAGS = 3 + 3 + 2 + 7  # MQM and ESA: ok, minor, major; word tags: ok, bad; categories and none


@dataclass
class Ragged:
    """Where the sequences of a flat batch begin, for attention within each."""

    starts: Tensor  # (sequences + 1,) int32
    longest: int
    owner: Tensor  # (pieces,) the sequence of each piece
    place: Tensor  # (pieces,) its place in there


@dataclass
class Batch:
    """Texts of several rows, flat, with where those of each role lie and in which rows."""

    ids: Tensor  # (pieces,)
    positions: Tensor  # (pieces,)
    roles: Tensor  # (pieces,)
    rank: Tensor  # (pieces,) the number of its text among those of its role
    texts: Ragged
    rows: Ragged
    text_starts: dict[int, Tensor]  # role -> (rows with it,) first flat place
    text_sizes: dict[int, Tensor]  # role -> (rows with it,)
    with_role: dict[int, Tensor]  # role -> (rows with it,) row numbers
    widest: dict[int, int]
    count: int

    @property
    def size(self) -> int:
        return int(self.ids.shape[0])


Layout = dict[str, NDArray[np.int64]]
Texts = tuple[NDArray[np.int32] | None, ...]


def make_layout(rows: Sequence[Texts]) -> Layout:
    """The arrays of a batch of (hypothesis, source, reference) pieces; None where one is absent."""
    there = [
        (number, role, text)
        for number, row in enumerate(rows)
        for role, text in enumerate(row)
        if text is not None
    ]
    sizes = np.array([len(text) + 2 for _, _, text in there])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    text_of = np.repeat(np.arange(len(there)), sizes)
    place = np.arange(starts[-1]) - starts[text_of]
    ids = np.full(starts[-1], START, np.int64)
    inner = (place > 0) & (place < sizes[text_of] - 1)
    ids[inner] = np.concatenate([text for _, _, text in there])
    ids[starts[1:] - 1] = END
    owner, role_of = (np.array([t[n] for t in there]) for n in (0, 1))
    row_starts = np.concatenate([[0], np.cumsum(np.bincount(owner, sizes, len(rows)))])
    row_of = owner[text_of]
    layout = {
        "ids": ids,
        "positions": place,
        "roles": role_of[text_of],
        "text_starts": starts,
        "text_of": text_of,
        "row_of": row_of,
        "row_starts": row_starts.astype(np.int64),
        "place_in_row": np.arange(len(ids)) - row_starts.astype(np.int64)[row_of],
    }
    rank = np.zeros(len(there), np.int64)
    for role in range(3):
        which = np.flatnonzero(role_of == role)
        rank[which] = np.arange(len(which))
        layout[f"first{role}"], layout[f"size{role}"] = starts[which], sizes[which]
        layout[f"rows{role}"] = owner[which]
    layout["rank"] = rank[text_of]
    return layout


def move_batch(layout: Layout, device: str) -> Batch:
    """A laid out batch on the device that computes."""

    def send(name: str) -> Tensor:
        tensor = torch.from_numpy(layout[name])
        if device.startswith("cuda"):
            return tensor.pin_memory().to(device, non_blocking=True)
        return tensor

    def ragged(starts: str, owner: str, place: str) -> Ragged:
        longest = int(np.diff(layout[starts]).max())
        return Ragged(send(starts).int(), longest, send(owner), send(place))

    return Batch(
        send("ids"),
        send("positions"),
        send("roles"),
        send("rank"),
        ragged("text_starts", "text_of", "positions"),
        ragged("row_starts", "row_of", "place_in_row"),
        {role: send(f"first{role}") for role in range(3)},
        {role: send(f"size{role}") for role in range(3)},
        {role: send(f"rows{role}") for role in range(3)},
        {role: int(layout[f"size{role}"].max(initial=0)) for role in range(3)},
        len(layout["row_starts"]) - 1,
    )


class InvertibleGather(torch.autograd.Function):
    """Rows of a table by their numbers, where each is wanted at most once that counts.

    Then the gradient is a gather too, by the inverse numbers; the general one would sort or add
    atomically. `valid` says which rows of the table are wanted at all.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, wanted: Tensor, inverse: Tensor, valid: Tensor) -> Tensor:
        ctx.save_for_backward(inverse, valid)
        return table.index_select(0, wanted)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        inverse, valid = ctx.saved_tensors
        grad = grads[0].index_select(0, inverse)
        return grad * valid.view(-1, *[1] * (grad.ndim - 1)).to(grad.dtype), None, None, None


def gather_rows(table: Tensor, wanted: Tensor, inverse: Tensor, valid: Tensor) -> Tensor:
    result: Tensor = InvertibleGather.apply(table, wanted, inverse, valid)
    return result


def attend_padded(query: Tensor, key: Tensor, value: Tensor, within: Ragged) -> Tensor:
    """Attention within each sequence of (pieces, heads, dim), through a padded copy."""
    count, width = within.starts.shape[0] - 1, -(-within.longest // 8) * 8
    steps = torch.arange(width, device=query.device)
    first, last = within.starts[:-1, None].long(), within.starts[1:, None].long()
    where = (first + steps).clamp(max=query.shape[0] - 1).view(-1)  # (sequences * width,)
    there = (first + steps) < last
    back, every = within.owner * width + within.place, torch.ones_like(within.owner)
    padded_query, padded_key, padded_value = (
        gather_rows(x, where, back, every).view(count, width, *x.shape[1:]).transpose(1, 2)
        for x in (query, key, value)
    )  # (sequences, heads, width, dim)
    out = F.scaled_dot_product_attention(
        padded_query, padded_key, padded_value, attn_mask=there[:, None, None, :]
    )
    flat = out.transpose(1, 2).reshape(count * width, *query.shape[1:])
    return gather_rows(flat, back, where, there.view(-1))


def attend_ragged(query: Tensor, key: Tensor, value: Tensor, within: Ragged) -> Tensor:
    """The same by the kernel for ragged batches."""
    from torch.nn.attention.varlen import varlen_attn

    result = varlen_attn(
        query, key, value, within.starts, within.starts, within.longest, within.longest
    )
    return result if isinstance(result, Tensor) else result[0]


class Layer(nn.Module):
    def __init__(self, hidden: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, inner), nn.Linear(inner, hidden)
        self.norm1, self.norm2 = nn.LayerNorm(hidden, 1e-12), nn.LayerNorm(hidden, 1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, within: Ragged, ragged: bool) -> Tensor:
        pieces, hidden = states.shape
        query, key, value = self.qkv(states).view(pieces, 3, self.heads, -1).unbind(1)
        attend = attend_ragged if ragged else attend_padded
        mixed = attend(query, key, value, within).reshape(pieces, hidden)
        states = self.norm1(states + self.dropout(self.out(mixed)))
        return self.norm2(states + self.dropout(self.down(F.gelu(self.up(states)))))


class Comparison(nn.Module):
    """The hypothesis against one other text: soft alignment both ways, each piece compared."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.project = nn.Linear(hidden, COMPARISON_DIM)
        self.sharpness = nn.Parameter(torch.tensor(10.0))
        self.forth, self.back = (
            nn.Linear(4 * COMPARISON_DIM, COMPARISON_DIM),
            nn.Linear(4 * COMPARISON_DIM, COMPARISON_DIM),
        )

    def forward(
        self, left: Tensor, right: Tensor, in_left: Tensor, in_right: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Features (rows, 4 * COMPARED) and what was found at each left piece."""
        left, right = self.project(left), self.project(right)  # (rows, pieces, COMPARED)
        likeness = F.normalize(left, dim=-1) @ F.normalize(right, dim=-1).transpose(1, 2)
        likeness = likeness * self.sharpness.to(likeness.dtype)
        to_right = likeness.masked_fill(~in_right[:, None], -1e4).softmax(-1)
        to_left = likeness.masked_fill(~in_left[:, :, None], -1e4).softmax(1)
        forth = self._compare(self.forth, left, to_right @ right)
        back = self._compare(self.back, right, to_left.transpose(1, 2) @ left)
        return torch.cat([*_pool(forth, in_left), *_pool(back, in_right)], -1), forth

    def _compare(self, layer: nn.Linear, own: Tensor, aligned: Tensor) -> Tensor:
        return F.gelu(layer(torch.cat([own, aligned, own * aligned, (own - aligned).abs()], -1)))


def _pool(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and maximum over true pieces, in single precision."""
    values, weight = values.float(), mask.float()[:, :, None]
    mean = (values * weight).sum(1) / weight.sum(1).clamp(min=1)
    return mean, values.masked_fill(~mask[:, :, None], -30.0).amax(1).clamp(min=-10)


def match_greedily(left: Tensor, right: Tensor, in_left: Tensor, in_right: Tensor) -> Tensor:
    """Precision and recall of best cosines, (rows, 2)."""
    likeness = F.normalize(left, dim=-1) @ F.normalize(right, dim=-1).transpose(1, 2)
    precision = likeness.masked_fill(~in_right[:, None], -1).amax(2).float()
    recall = likeness.masked_fill(~in_left[:, :, None], -1).amax(1).float()
    shares = [
        (best * mask).sum(1) / mask.sum(1).clamp(min=1)
        for best, mask in ((precision, in_left.float()), (recall, in_right.float()))
    ]
    return torch.stack(shares, 1)


@dataclass
class Prediction:
    """What one pass says about each row, and about each piece of its hypothesis."""

    scores: Tensor  # (rows, scales)
    spreads: Tensor  # (rows, scales) logarithms of variances
    clean: Tensor  # (rows,) logit of no error at all
    tags: Tensor  # (rows, widest hypothesis, TAGS); the first place is <s>
    inside: Tensor  # (rows, widest hypothesis) true pieces


class Head(nn.Module):
    """From pooled features to judgments, in single precision: scores need more than 8 bits."""

    def __init__(self, features: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.inner, self.dropout = nn.Linear(features, 512), nn.Dropout(dropout)
        self.last = nn.Linear(512, 2 * len(SCALES) + 1)
        nn.init.normal_(self.last.weight, std=0.01)
        nn.init.zeros_(self.last.bias)

    def forward(self, features: Tensor) -> Tensor:
        hidden = F.gelu(self.inner(self.dropout(self.norm(features.float()))))
        out: Tensor = self.last(self.dropout(hidden))
        return out


def select_head_input(head_input: Tensor, mode: str, hidden: int = 384) -> Tensor:
    """Drop the columns of the head input that are zero in an input mode."""
    shown = {"source": (0,), "reference": (1,)}.get(mode, (0, 1))
    width = (head_input.shape[1] - 2 * hidden) // 2
    own, *comparisons = head_input.split([2 * hidden, width, width], 1)
    return torch.cat([own, *(comparisons[n] for n in shown)], 1)


class MultiNetwork(nn.Module):
    def __init__(
        self,
        words: int,
        *,
        hidden: int = 384,
        layers: int = 12,
        heads: int = 12,
        inner: int = 1536,
        lower_layers: int = 0,
        dropout: float = 0.1,
        ragged: bool = False,
    ) -> None:
        super().__init__()
        self.lower_layers, self.ragged = lower_layers, ragged
        self.words = nn.Embedding(words, hidden)
        self.words.weight.requires_grad_(False)
        self.positions, self.roles = nn.Embedding(512, hidden), nn.Embedding(3, hidden)
        nn.init.zeros_(self.roles.weight)
        self.norm, self.dropout = nn.LayerNorm(hidden, 1e-12), nn.Dropout(dropout)
        self.layers = nn.ModuleList(Layer(hidden, heads, inner, dropout) for _ in range(layers))
        self.mix = nn.Parameter(torch.zeros(len(MIXED_LAYERS)))
        self.comparisons = nn.ModuleList(Comparison(hidden) for _ in range(2))
        features = 2 * hidden + 2 * (3 * hidden + 4 * COMPARISON_DIM + 2 * len(MATCHED_LAYERS) + 1)
        self.head = Head(features, dropout)
        self.tagger = nn.Sequential(
            nn.Linear(hidden + 2 * COMPARISON_DIM, COMPARISON_DIM),
            nn.GELU(),
            nn.Linear(COMPARISON_DIM, TAGS),
        )

    def to_bfloat16(self) -> MultiNetwork:
        """All but the head in bfloat16."""
        head = self.head
        del self.head
        self.bfloat16()
        self.head = head.float()
        return self

    def forward(self, batch: Batch) -> Prediction:
        states = self.words(batch.ids) + self.positions(batch.positions.clamp(max=511))
        # by a product: the gradient of so small a table would be a queue of additions
        roles = F.one_hot(batch.roles, 3).to(states.dtype) @ self.roles.weight
        states = self.dropout(self.norm(states + roles))
        shares, mixed = self.mix.float().softmax(0), torch.zeros_like(states)
        matched: dict[int, Tensor] = {}
        for number, layer in enumerate(self.layers, start=1):
            within = batch.texts if number <= self.lower_layers else batch.rows
            states = layer(states, within, self.ragged)
            if number in MATCHED_LAYERS:
                matched[number] = states
            if number in MIXED_LAYERS:
                mixed = mixed + states * shares[MIXED_LAYERS.index(number)].to(states.dtype)
        return self._judge(batch, mixed, list(matched.values()))

    def _judge(self, batch: Batch, mixed: Tensor, matched: list[Tensor]) -> Prediction:
        hypothesis, inside = _padded(mixed, batch, HYPOTHESIS)
        matched_left = [_padded(states, batch, HYPOTHESIS)[0] for states in matched]
        mean = _pool(hypothesis, inside)[0]
        features = [hypothesis[:, 0].float(), mean]
        found_at = [hypothesis]
        for role, comparison in zip((SOURCE, REFERENCE), self.comparisons, strict=True):
            width = 3 * mean.shape[1] + 4 * COMPARISON_DIM + 2 * len(MATCHED_LAYERS) + 1
            told = mean.new_zeros(batch.count, width)
            at = hypothesis.new_zeros(*hypothesis.shape[:2], COMPARISON_DIM)
            which = batch.with_role[role]
            if len(which):
                other, in_other = _padded(mixed, batch, role)
                own, in_own = hypothesis[which], inside[which]
                pooled, forth = comparison(own, other, in_own, in_other)
                matches = [
                    match_greedily(left[which], _padded(right, batch, role)[0], in_own, in_other)
                    for left, right in zip(matched_left, matched, strict=True)
                ]
                theirs, ours = _pool(other, in_other)[0], mean[which]
                present = torch.ones_like(ours[:, :1])
                parts = [theirs, (ours - theirs).abs(), ours * theirs, pooled, *matches, present]
                told = told.index_copy(0, which, torch.cat(parts, -1))
                at = at.index_copy(0, which, forth)
            features.append(told)
            found_at.append(at)
        out = self.head(torch.cat(features, -1))
        count = len(SCALES)
        tags = self.tagger(torch.cat(found_at, -1)).float()
        return Prediction(out[:, :count], out[:, count : 2 * count], out[:, -1], tags, inside)


def _padded(states: Tensor, batch: Batch, role: int) -> tuple[Tensor, Tensor]:
    """States of one role's texts, (rows with it, widest, hidden), and which are true pieces.

    An empty text has its special pieces alone; its </s> then counts, so that means exist.
    """
    width = batch.widest[role]
    steps = torch.arange(width, device=states.device)
    first, sizes = batch.text_starts[role][:, None], batch.text_sizes[role][:, None]
    where = (first + steps).clamp(max=states.shape[0] - 1).view(-1)
    inside = (steps >= 1) & ((steps < sizes - 1) | ((sizes == 2) & (steps == 1)))
    mine = batch.roles == role
    back = torch.where(mine, batch.rank * width + batch.positions, 0)
    flat = gather_rows(states, where, back, mine)
    return flat.view(-1, width, states.shape[1]), inside


def load_encoder(network: MultiNetwork, weights: dict[str, Tensor]) -> None:
    """Puts the published weights into the body."""
    hidden = network.words.weight.shape[1]
    with torch.no_grad():
        network.words.weight.copy_(weights["emb.word"].view(-1, hidden))
        positions = weights["emb.pos"].view(-1, hidden) + weights["emb.type"].view(-1, hidden)[0]
        network.positions.weight.copy_(positions)
        network.norm.weight.copy_(weights["emb.ln.w"])
        network.norm.bias.copy_(weights["emb.ln.b"])
        for n, layer in enumerate(network.layers):
            assert isinstance(layer, Layer)
            for kind in ("w", "b"):
                parts = [weights[f"l{n}.{name}.{kind}"] for name in "qkv"]
                _copy(layer.qkv, kind, torch.cat(parts))
                for name, module in (
                    ("ao", layer.out),
                    ("aln", layer.norm1),
                    ("fi", layer.up),
                    ("fo", layer.down),
                    ("oln", layer.norm2),
                ):
                    _copy(module, kind, weights[f"l{n}.{name}.{kind}"])


def _copy(module: nn.Linear | nn.LayerNorm, kind: str, values: Tensor) -> None:
    target = module.weight if kind == "w" else module.bias
    target.copy_(values.view_as(target))
