"""The network of tertium-multi: hypothesis, source and reference in one encoder.

The source or the reference may be missing. Every text is `<s> pieces </s>` with its own positions
and a role embedding. Lower layers read each text separately, so a source or reference shared by
many systems is encoded once. Upper layers read all texts of a row jointly. On top of them: a mix of
layers, means, a soft alignment of the hypothesis with each other text in both directions (as in
`LateInteraction`), greedy matches at three layers, and two heads, one for the row and one for each
piece of the hypothesis. The head of the row also reads surface features (`row_scorer`). Features
of a missing text are zeros with a flag.

On a CPU, texts and rows are concatenated without padding; comparisons run row by row
(`row_alignment`). With int8 layers, products are exact (`int8_linear`), so the output of a row
depends on its own texts only, to the last bit. In other precisions, and on a GPU, where texts are
padded, the rest of the batch may change the last bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.core.arrays import Float32Array
from tertium.encoders import transformer_layer
from tertium.encoders.transformer_layer import linear_gelu
from tertium.metrics.bundled.input_rows import HYPOTHESIS, REFERENCE, SOURCE
from tertium.metrics.bundled.row_alignment import CONTEXT_ROLES, RowAlignment, join_products

MIXED_LAYERS = (4, 6, 8, 10, 11, 12)  # their weighted mean is pooled and aligned
MATCHED_LAYERS = (3, 6, 12)  # their pieces are matched greedily
INPUT_ROLES = ((SOURCE,), (REFERENCE,), CONTEXT_ROLES)  # the other texts of each input mode
MAX_DEVIATIONS = 6.0  # the head clips standardized values here
MEANS = [0, 2]  # of the best matches of both sides
BLOCK = 32  # weights that share a scale in a row of the embedding table
EPSILON = 1e-12  # of the encoder's layer norms, as published
MIN_POOLED = -10.0  # lower bound of max pooling, as in training


LayerStates = Mapping[int, Tensor]  # by layer: the states of a text, (pieces, hidden)
RowStates = Mapping[int, LayerStates]  # the texts of a row by role
RowPlaces = Sequence[Mapping[int, slice]]  # positions of the texts of each row by role


class RowOutput(NamedTuple):
    """Network output for a row: raw score, values of the head, and the tags of its pieces."""

    score: Tensor
    values: Tensor
    tags: Tensor


class PackedEmbedding(nn.Module):
    """Embedding table with 4 bits per weight; rows are unpacked on lookup.

    A block of 32 weights has one scale; byte k of a block holds weight k in its low half and weight
    k + 16 in its high half, each as value + 8.
    """

    def __init__(self, words: int, hidden: int) -> None:
        super().__init__()
        self.nibbles: Tensor
        self.scales: Tensor
        shape = words, hidden // BLOCK, BLOCK // 2
        self.register_buffer("nibbles", torch.zeros(shape, dtype=torch.uint8))
        self.register_buffer("scales", torch.zeros(shape[:2], dtype=torch.float16))

    def forward(self, ids: Tensor) -> Tensor:
        packed = self.nibbles[ids]  # (pieces, blocks, 16)
        values = torch.cat([packed & 15, packed >> 4], dim=-1).float() - 8
        return (values * self.scales[ids].float()[..., None]).flatten(1)  # (pieces, hidden)


class SoftComparison(nn.Module):
    """Soft alignment of hypotheses with one other text in both directions, and its features."""

    def __init__(self, hidden: int, compared: int) -> None:
        super().__init__()
        self.project = nn.Linear(hidden, compared)
        self.sharpness = nn.Parameter(torch.tensor(10.0))
        self.forth, self.back = (nn.Linear(4 * compared, compared) for _ in range(2))

    def forward(self, states: Tensor, alignment: RowAlignment, role: int) -> tuple[Tensor, Tensor]:
        """Compare hypotheses with the texts of a role, given the states of a batch.

        Returns features of rows, (rows, 4 compared), and of pieces, (pieces, compared).
        """
        projected = self.project(states)
        own, other = (alignment.pieces(projected, side) for side in (HYPOTHESIS, role))
        similarities = alignment.similarities(F.normalize(projected, dim=-1), role)
        weights = [similarity * self.sharpness for similarity in similarities]
        partners, partners_back = alignment.align(weights, own, other, role)
        features = linear_gelu(self.forth, join_products(own, partners))
        features_back = linear_gelu(self.back, join_products(other, partners_back))
        pooled = []
        for values, side in ((features, HYPOTHESIS), (features_back, role)):
            means, maxima = alignment.pool(values, side)
            pooled += [means, maxima.clamp(min=MIN_POOLED)]
        return torch.cat(pooled, dim=1), features


class JointHead(nn.Module):
    """Score of a row from its pooled states x and surface features f.

        y = w . standardize([h; x; f]) + bias      h = gelu(inner([norm(x); f]))

    Each input mode has its own weights, means and scales; standardized values are clipped. States
    that an input mode does not have, and states that never vary, have scale 0.
    """

    def __init__(self, states: int, features: int, inner: int) -> None:
        super().__init__()
        self.mean: Tensor
        self.scale: Tensor
        self.features = features
        shape = len(INPUT_ROLES), inner + states + features
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("scale", torch.zeros(shape))
        self.norm = nn.LayerNorm(states)
        self.inner = nn.Linear(states + features, inner)
        self.last = nn.Linear(shape[1], len(INPUT_ROLES))

    def forward(self, states: Tensor, features: Tensor, mode: int) -> Tensor:
        """Return the standardized values, (rows, inner + states + features)."""
        f = (features - self.mean[mode, -self.features :]) * self.scale[mode, -self.features :]
        hidden = linear_gelu(self.inner, torch.cat([self.norm(states), f], dim=1))
        x = torch.cat([hidden, states, features], dim=1)
        return ((x - self.mean[mode]) * self.scale[mode]).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)

    def score(self, x: Tensor, mode: int) -> Tensor:
        """Return the raw score of standardized values, (..., values) -> (...)."""
        return (x * self.last.weight[mode]).sum(-1) + self.last.bias[mode]


class JointNetwork(nn.Module):
    """The complete network: `encode_texts` runs the lower layers, `score_rows` all others.

    `lower_layers` is the number of layers that read each text separately. `tags` is the number of
    logits per piece. With `padded`, all sequences of a batch are padded
    to the longest, for a GPU.
    """

    def __init__(
        self,
        *,
        words: int,
        positions: int,
        hidden: int,
        layers: int,
        heads: int,
        inner: int,
        lower_layers: int,
        compared: int,
        judging: int,
        features: int,
        tags: int,
    ) -> None:
        super().__init__()
        self.lower_layers = lower_layers
        self.compared = compared
        self.padded = False
        self.words = PackedEmbedding(words, hidden)
        self.positions = nn.Embedding(positions, hidden)
        self.roles = nn.Embedding(3, hidden)
        self.norm = nn.LayerNorm(hidden, EPSILON)
        self.layers = nn.ModuleList(
            transformer_layer.TransformerLayer(hidden, heads, inner, EPSILON) for _ in range(layers)
        )
        self.mix = nn.Parameter(torch.zeros(len(MIXED_LAYERS)))
        self.comparisons = nn.ModuleList(SoftComparison(hidden, compared) for _ in CONTEXT_ROLES)
        self.role_features = 3 * hidden + 4 * compared + 2 * len(MATCHED_LAYERS) + 1
        states = 2 * hidden + len(CONTEXT_ROLES) * self.role_features
        self.head = JointHead(states, features, judging)
        piece_states = hidden + len(CONTEXT_ROLES) * compared
        self.tagger = nn.Sequential(
            nn.Linear(piece_states, compared), nn.GELU(), nn.Linear(compared, tags)
        )

    def encode_texts(self, texts: Sequence[tuple[int, Sequence[int]]]) -> Sequence[LayerStates]:
        """Run texts, each a role and its ids with special tokens, through the lower layers."""
        lengths = [len(ids) for _, ids in texts]
        tokens = np.concatenate([ids for _, ids in texts])
        places = np.concatenate([np.arange(length) for length in lengths])
        roles = np.repeat([role for role, _ in texts], lengths)
        ids = torch.from_numpy(np.stack([tokens, places, roles])).to(self.mix.device)
        states = self.words(ids[0]) + self.positions(ids[1]) + self.roles(ids[2])
        layout = self._make_layout(lengths)
        states = layout.arrange(self.norm(states))
        layers = self._run_layers(states, layout, 0, self.lower_layers)
        lower = [{n: state[at] for n, state in layers.items()} for at in layout.slices]
        if self.padded:
            return lower
        # a view would keep the states of the whole batch in memory
        return [{n: state.clone() for n, state in text.items()} for text in lower]

    def score_rows(self, rows: Sequence[tuple[RowStates, Float32Array]]) -> list[RowOutput]:
        """Compute the outputs of rows of encoded texts with their surface features.

        All rows have the same input mode.
        """
        roles = sorted(rows[0][0])
        mode = INPUT_ROLES.index(tuple(roles[1:]))
        texts = [row[role] for row, _ in rows for role in roles]
        sizes = np.array([len(text[self.lower_layers]) for text in texts]).reshape(len(rows), -1)
        layout = self._make_layout(sizes.sum(axis=1).tolist())
        places = []
        for row_sizes, at in zip(sizes.tolist(), layout.slices, strict=True):
            slices = transformer_layer.consecutive_slices(row_sizes, at.start)
            places.append(dict(zip(roles, slices, strict=True)))
        layers = {n: layout.arrange(torch.cat([text[n] for text in texts])) for n in texts[0]}
        lower = layers[self.lower_layers]
        layers |= self._run_layers(lower, layout, self.lower_layers, len(self.layers))
        layers = {n: state.float() for n, state in layers.items()}
        features = torch.from_numpy(np.stack([values for _, values in rows])).to(self.mix.device)
        inner = [{role: without_specials(at) for role, at in row.items()} for row in places]
        alignment = RowAlignment(inner, self.mix.device, padded=self.padded)
        row_states, piece_states = self._pool_states(layers, places, alignment, INPUT_ROLES[mode])
        values = self.head(row_states, features, mode)
        scores = alignment.map_rows(partial(self.head.score, mode=mode), values).cpu()
        pieces = [row[HYPOTHESIS] for row in inner]
        tags = self._tag(piece_states).cpu()
        piece_tags = torch.split(tags, [at.stop - at.start for at in pieces])
        return list(map(RowOutput, scores, values.cpu(), piece_tags))

    def _run_layers(
        self, states: Tensor, layout: transformer_layer.BatchLayout, first: int, last: int
    ) -> dict[int, Tensor]:
        """Return the states of those layers that features use, and of the last one."""
        layers = {}
        for number, layer in enumerate(self.layers[first:last], start=first + 1):
            states = layer(states, layout)
            if number in MIXED_LAYERS or number in MATCHED_LAYERS or number == last:
                layers[number] = states
        return layers

    def _pool_states(
        self,
        layers: LayerStates,
        places: RowPlaces,
        alignment: RowAlignment,
        roles: Sequence[int],
    ) -> tuple[Tensor, Tensor]:
        """Return the states of rows that the head reads, (rows, states), and those of pieces."""
        shares = zip(MIXED_LAYERS, self.mix.softmax(0), strict=True)
        weighted = [layers[layer] * share for layer, share in shares]
        mixed = sum(weighted, torch.zeros_like(weighted[0]))
        directions = torch.stack([F.normalize(layers[n], dim=-1) for n in MATCHED_LAYERS])
        own = alignment.pieces(mixed, HYPOTHESIS)
        means, _ = alignment.pool(own, HYPOTHESIS)
        firsts = mixed[[row[HYPOTHESIS].start for row in places]]
        row_states = [firsts, means]
        piece_features = [own]
        for role, comparison in zip(CONTEXT_ROLES, self.comparisons, strict=True):
            if role not in roles:
                row_states.append(means.new_zeros(len(means), self.role_features))
                piece_features.append(means.new_zeros(len(own), self.compared))
                continue
            pooled, compared = comparison(mixed, alignment, role)
            theirs, _ = alignment.pool(alignment.pieces(mixed, role), role)
            row_states += [theirs, (means - theirs).abs(), means * theirs, pooled]
            similarities = alignment.similarities(directions, role)
            matches = alignment.greedy_matches(similarities, role)[..., MEANS]
            row_states.append(matches.flatten(1))
            row_states.append(means.new_ones(len(means), 1))
            piece_features.append(compared)
        return torch.cat(row_states, dim=1), torch.cat(piece_features, dim=1)

    def _tag(self, pieces: Tensor) -> Tensor:
        """Return the tag logits of pieces, (pieces, features) -> (pieces, tags)."""
        weight, bias = self.tagger[2].parameters()
        inner = linear_gelu(self.tagger[0], pieces)
        return (inner[:, None] * weight).sum(-1) + bias  # each sum on its own

    def _make_layout(self, lengths: Sequence[int]) -> transformer_layer.ConcatenatedLayout:
        if self.padded:
            return transformer_layer.PaddedLayout(lengths, self.mix.device)
        return transformer_layer.ConcatenatedLayout(lengths)


def without_specials(place: slice) -> slice:
    """Return the pieces of a text without special tokens; of an empty text its </s>.

    >>> without_specials(slice(5, 9)), without_specials(slice(0, 2))
    (slice(6, 8, None), slice(1, 2, None))
    """
    return slice(place.start + 1, max(place.stop - 1, place.start + 2))
