"""The training network of tertium-multi: one pass over hypothesis, source and reference.

Any subset of source and reference can be missing. Every text is `<s> pieces </s>` with positions
that restart at zero; role embeddings, initialized to zero, mark its role. The first `lower_layers`
layers attend within each text, the others within the row. A head predicts the human score of a row
from a mix of layers, means, a soft alignment of the hypothesis with the other texts, and surface
features. A tagger predicts error spans for each piece.

Batches are stored without padding. Attention uses a padded copy where the kernel for ragged
batches is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

HYPOTHESIS, SOURCE, REFERENCE = range(3)
MIXED_LAYERS = (4, 6, 8, 10, 11, 12)  # layers that are mixed, as in the study
MATCHED_LAYERS = (3, 6, 12)  # layers whose pieces are matched greedily
COMPARISON_DIM = 128
MODES = ("source", "reference", "both")  # each has its own weights in the last layer
SURFACE, UNITS = 8, 512  # surface features, hidden units of the head
MAX_DEVIATIONS = 6.0  # standardized values are clipped here
TAGS = 3 + 3 + 2 + 7  # MQM and ESA: ok, minor, major; word tags: ok, bad; categories and none


@dataclass
class Ragged:
    """Boundaries of the sequences in a flat batch."""

    starts: Tensor  # (sequences + 1,) int32
    longest: int
    owner: Tensor  # (pieces,) the sequence of each piece
    place: Tensor  # (pieces,) its place in there


@dataclass
class Batch:
    """Texts of several rows, concatenated, with the location of each text role."""

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


class InvertibleGather(torch.autograd.Function):
    """Gather rows by index where every source row is used at most once.

    The gradient is then also a gather, by the inverse index, which is faster than sorting or atomic
    additions. `valid` marks the rows of the table that are used.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor, inverse: Tensor, valid: Tensor) -> Tensor:
        ctx.save_for_backward(inverse, valid)
        return table.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        inverse, valid = ctx.saved_tensors
        grad = grads[0].index_select(0, inverse)
        return grad * valid.view(-1, *[1] * (grad.ndim - 1)).to(grad.dtype), None, None, None


def gather_rows(table: Tensor, index: Tensor, inverse: Tensor, valid: Tensor) -> Tensor:
    result: Tensor = InvertibleGather.apply(table, index, inverse, valid)
    return result


def attend_padded(query: Tensor, key: Tensor, value: Tensor, within: Ragged) -> Tensor:
    """Attend within each sequence of (pieces, heads, dim), using a padded copy."""
    count, width = within.starts.shape[0] - 1, -(-within.longest // 8) * 8
    steps = torch.arange(width, device=query.device)
    first, last = within.starts[:-1, None].long(), within.starts[1:, None].long()
    where = (first + steps).clamp(max=query.shape[0] - 1).view(-1)  # (sequences * width,)
    mask = (first + steps) < last
    back, every = within.owner * width + within.place, torch.ones_like(within.owner)
    padded_query, padded_key, padded_value = (
        gather_rows(x, where, back, every).view(count, width, *x.shape[1:]).transpose(1, 2)
        for x in (query, key, value)
    )  # (sequences, heads, width, dim)
    out = F.scaled_dot_product_attention(
        padded_query, padded_key, padded_value, attn_mask=mask[:, None, None, :]
    )
    flat = out.transpose(1, 2).reshape(count * width, *query.shape[1:])
    return gather_rows(flat, back, where, mask.view(-1))


def attend_ragged(query: Tensor, key: Tensor, value: Tensor, within: Ragged) -> Tensor:
    """Attend within each sequence, using the kernel for ragged batches."""
    from torch.nn.attention.varlen import varlen_attn

    result = varlen_attn(
        query, key, value, within.starts, within.starts, within.longest, within.longest
    )
    return result if isinstance(result, Tensor) else result[0]


def has_ragged_attention(device: str) -> bool:
    """Return whether the ragged attention kernel works, forward and backward."""
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
    except Exception as error:  # the kernel is optional
        print("no ragged attention:", str(error)[:200], flush=True)
        return False
    (a, b), (c, d) = results
    close = torch.allclose(a, c, atol=0.03) and torch.allclose(b, d, atol=0.1)
    print("ragged attention", close, flush=True)
    return close


class Layer(nn.Module):
    """A transformer layer with post-norm."""

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
    """Compare the hypothesis with one other text by soft alignment in both directions."""

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
        """Return features (rows, 4 * COMPARISON_DIM) and the result for each left piece."""
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
    """Return mean and maximum over real pieces, in single precision."""
    values, weight = values.float(), mask.float()[:, :, None]
    mean = (values * weight).sum(1) / weight.sum(1).clamp(min=1)
    return mean, values.masked_fill(~mask[:, :, None], -30.0).amax(1).clamp(min=-10)


def match_greedily(left: Tensor, right: Tensor, in_left: Tensor, in_right: Tensor) -> Tensor:
    """Return precision and recall of the best cosines, (rows, 2)."""
    likeness = F.normalize(left, dim=-1) @ F.normalize(right, dim=-1).transpose(1, 2)
    precision = likeness.masked_fill(~in_right[:, None], -1).amax(2).float()
    recall = likeness.masked_fill(~in_left[:, :, None], -1).amax(1).float()
    shares = [
        (best * mask).sum(1) / mask.sum(1).clamp(min=1)
        for best, mask in ((precision, in_left.float()), (recall, in_right.float()))
    ]
    return torch.stack(shares, 1)


class Head(nn.Module):
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


class MultiNetwork(nn.Module):
    """The trainable network; word embeddings are frozen."""

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
        """Convert everything except the head to bfloat16."""
        head = self.head
        del self.head
        self.bfloat16()
        self.head = head.float()
        return self

    def score(self, batch: Batch, surface: Tensor, mode: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return scores (rows,), tag logits of pieces and the mask of pieces."""
        features, pieces, is_piece = self.pooled_states(batch)
        return self.head(features, surface, mode), self.tagger(pieces).float(), is_piece

    def pooled_states(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return features of rows, features of hypothesis pieces, and the mask of pieces."""
        states = self.words(batch.ids) + self.positions(batch.positions.clamp(max=511))
        # a matrix product: the gradient of a lookup in so small a table is slow
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
        return self._pool(batch, mixed, list(matched.values()))

    def _pool(
        self, batch: Batch, mixed: Tensor, matched: list[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        hypothesis, is_piece = _pad_role(mixed, batch, HYPOTHESIS)
        matched_left = [_pad_role(states, batch, HYPOTHESIS)[0] for states in matched]
        mean = _pool(hypothesis, is_piece)[0]
        features = [hypothesis[:, 0].float(), mean]
        piece_inputs = [hypothesis]
        for role, comparison in zip((SOURCE, REFERENCE), self.comparisons, strict=True):
            width = 3 * mean.shape[1] + 4 * COMPARISON_DIM + 2 * len(MATCHED_LAYERS) + 1
            comparison_features = mean.new_zeros(batch.count, width)
            piece_features = hypothesis.new_zeros(*hypothesis.shape[:2], COMPARISON_DIM)
            positions = batch.with_role[role]
            if len(positions):
                other, in_other = _pad_role(mixed, batch, role)
                own, in_own = hypothesis[positions], is_piece[positions]
                pooled, forth = comparison(own, other, in_own, in_other)
                matches = [
                    match_greedily(
                        left[positions], _pad_role(right, batch, role)[0], in_own, in_other
                    )
                    for left, right in zip(matched_left, matched, strict=True)
                ]
                other_mean, own_mean = _pool(other, in_other)[0], mean[positions]
                is_present = torch.ones_like(own_mean[:, :1])
                parts = [
                    other_mean,
                    (own_mean - other_mean).abs(),
                    own_mean * other_mean,
                    pooled,
                    *matches,
                    is_present,
                ]
                comparison_features = comparison_features.index_copy(
                    0, positions, torch.cat(parts, -1)
                )
                piece_features = piece_features.index_copy(0, positions, forth)
            features.append(comparison_features)
            piece_inputs.append(piece_features)
        return torch.cat(features, -1), torch.cat(piece_inputs, -1), is_piece


def _pad_role(states: Tensor, batch: Batch, role: int) -> tuple[Tensor, Tensor]:
    """Return the states of one role's texts, (rows, widest, hidden), and the mask of pieces.

    Special tokens are masked. An empty text keeps its </s>, so that means are defined.
    """
    width = batch.widest[role]
    steps = torch.arange(width, device=states.device)
    first, sizes = batch.text_starts[role][:, None], batch.text_sizes[role][:, None]
    where = (first + steps).clamp(max=states.shape[0] - 1).view(-1)
    is_piece = (steps >= 1) & ((steps < sizes - 1) | ((sizes == 2) & (steps == 1)))
    has_role = batch.roles == role
    back = torch.where(has_role, batch.rank * width + batch.positions, 0)
    flat = gather_rows(states, where, back, has_role)
    return flat.view(-1, width, states.shape[1]), is_piece
