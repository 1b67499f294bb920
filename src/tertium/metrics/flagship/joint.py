"""Joint reading: hypothesis, source and reference in one encoder, any subset of the last two.

Every text is `<s> pieces </s>` with positions of its own and a vector that says its role. The lower
layers read each text apart, so that a source or reference costs them once however many systems
translated it; the upper ones read all texts together. On top: a mix of layers, means, a soft
alignment of the hypothesis with each other text both ways (as in `late`), greedy matches at three
layers, and two heads, one for the row and one for each piece of the hypothesis. What was not given
is zeros with a flag.

On a CPU texts and rows lie one behind the other without padding. Layers and the products behind
them take them by blocks of few shapes (`apart.in_blocks`), everything else goes text by text and
row by row (`meeting`), so that a row's numbers depend on its own texts alone, to the last bit;
`keeps_apart` tries it. On a GPU they are padded, and neighbors may change the last bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tertium.encoders.apart import (
    BLOCK_ROWS,
    Sizes,
    fill_blocks,
    in_blocks,
    in_filled_blocks,
    shared_sizes,
)
from tertium.encoders.layers import (
    PaddedSequences,
    PassLayout,
    SequenceLayout,
    TransformerLayer,
    slices_of,
)
from tertium.encoders.products import HalfLinear, gelu_of
from tertium.metrics.flagship.meeting import (
    HYPOTHESIS,
    OTHERS,
    REFERENCE,
    SOURCE,
    Meeting,
    PaddedRows,
    RowByRow,
)

MIXED = (4, 6, 8, 10, 11, 12)  # layers whose mix is pooled and aligned
MATCHED = (3, 6, 12)  # layers whose pieces are matched greedily
READOUTS = ((SOURCE,), (REFERENCE,), OTHERS)  # the texts beside a hypothesis, each with its own
FARTHEST = 6.0  # deviations from a mean, beyond which a readout takes a number for strange
BLOCK = 32  # weights that share a scale in a row of the embedding table
EPSILON = 1e-12  # of the encoder's norms, as published
LEAST = -10.0  # of a maximum over pieces, as in training
TRIED_LENGTHS = (2, 5, 31, 64, 130)  # texts within a block, and over its edges


class Lower(NamedTuple):
    """A text behind the lower layers: its last states, and all that are looked at again, by layer.

    Each is (pieces, hidden), <s> and </s> among the pieces.
    """

    states: Tensor
    seen: Mapping[int, Tensor]


Texts = Mapping[int, Lower]  # of a row, by role


class Together(NamedTuple):
    """Rows behind the upper layers: states of all their pieces by layer, and where texts lie."""

    seen: Mapping[int, Tensor]
    places: Sequence[Mapping[int, slice]]  # of each row, by role


class Found(NamedTuple):
    """What is said of a row: its raw score, the logit of no error and what is read of the head's
    hidden layer and input, (3,); and of each piece of the hypothesis the logits of tags,
    (pieces, tags)."""

    scores: Tensor
    tags: Tensor


class PackedWords(nn.Module):
    """The embedding table at 4 bits a weight: rows are unpacked where they are looked up.

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
    """Hypotheses, each against one other text: soft alignment both ways, each piece compared."""

    def __init__(self, hidden: int, compared: int) -> None:
        super().__init__()
        self.project = nn.Linear(hidden, compared)
        self.sharpness = nn.Parameter(torch.tensor(10.0))
        self.forth, self.back = (nn.Linear(4 * compared, compared) for _ in range(2))

    def forward(
        self, states: Tensor, meeting: Meeting, role: int, sizes: Sizes
    ) -> tuple[Tensor, Tensor]:
        """What was found for texts of this role that meet a hypothesis in states, (pass, hidden).

        Pooled, (rows, 4 compared), and at the pieces of hypotheses, (pieces, compared).
        """
        projected = in_blocks(self.project, states, sizes=sizes)
        directions = F.normalize(projected, dim=-1)
        own, other = (meeting.pieces(projected, one) for one in (HYPOTHESIS, role))
        likeness = [like * self.sharpness for like in meeting.likeness(directions, role)]
        partners, partners_back = meeting.align(likeness, own, other, role)
        found = _compare(self.forth, own, partners, sizes)
        found_back = _compare(self.back, other, partners_back, sizes)
        pooled = [
            side
            for at, one in ((found, HYPOTHESIS), (found_back, role))
            for side in (meeting.means(at, one), meeting.maxima(at, one).clamp(min=LEAST))
        ]
        return torch.cat(pooled, dim=1), found


class JointHead(nn.Module):
    """From all that was found to a hidden layer, (rows, features) -> (rows, inner).

    `last` reads the raw score and the logit of no error of it, (2,).
    """

    def __init__(self, features: int, inner: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.inner, self.last = nn.Linear(features, inner), nn.Linear(inner, 2)

    def forward(self, features: Tensor) -> Tensor:
        return gelu_of(self.inner, self.norm(features))


class Readout(nn.Module):
    """A second reading of all that the head sees and makes of it, (1,): a linear form, and a hidden
    layer that sees a few directions.

    Features come less their mean and over their spread in the rows it was learned from; those that
    said nothing there have no scale.
    """

    def __init__(self, features: int, directions: int, inner: int) -> None:
        super().__init__()
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("scale", torch.zeros(features))
        self.straight = nn.Linear(features, 1)
        self.squeeze = nn.Linear(features, directions, bias=False)
        self.inner, self.last = nn.Linear(directions, inner), nn.Linear(inner, 1, bias=False)

    def forward(self, found: Tensor) -> Tensor:
        near = ((found - self.mean) * self.scale).clamp(-FARTHEST, FARTHEST)
        read: Tensor = self.straight(near) + self.last(F.gelu(self.inner(self.squeeze(near))))
        return read


class JointNetwork(nn.Module):
    """The whole: `read` the lower layers of texts once, then `judge` rows of texts that were read.

    `tags` is how many logits are said of each piece; the tagger of a network without is empty.
    `sizes` are those of the blocks that layers read; where a pass is `padded`, all its sequences
    are as long as the longest, as a GPU wants them.
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
        apart: int,
        compared: int,
        judging: int,
        directions: int,
        reading: int,
        tags: int = 0,
    ) -> None:
        super().__init__()
        self.apart, self.compared = apart, compared
        self.sizes: Sizes = (BLOCK_ROWS,)
        self.padded = False
        self.words = PackedWords(words, hidden)
        self.positions, self.roles = nn.Embedding(positions, hidden), nn.Embedding(3, hidden)
        self.norm = nn.LayerNorm(hidden, EPSILON)
        climbed = (TransformerLayer(hidden, heads, inner, EPSILON) for _ in range(layers))
        self.layers = nn.ModuleList(climbed)
        self.mix = nn.Parameter(torch.zeros(len(MIXED)))
        self.comparisons = nn.ModuleList(SoftComparison(hidden, compared) for _ in OTHERS)
        self.told = 3 * hidden + 4 * compared + 2 * len(MATCHED) + 1
        own = 2 * hidden
        self.head = JointHead(own + len(OTHERS) * self.told, judging)
        seen = (judging + own + len(roles) * self.told for roles in READOUTS)
        self.readouts = nn.ModuleList(Readout(n, directions, reading) for n in seen)
        features = hidden + len(OTHERS) * compared
        parts = nn.Linear(features, compared), nn.GELU(), nn.Linear(compared, tags)
        self.tags, self.tagger = tags, nn.Sequential(*parts if tags else ())

    def read(self, texts: Sequence[tuple[int, Sequence[int]]]) -> list[Lower]:
        """Texts, each its role and its numbers with special ones, through the layers apart."""
        lengths = [len(ids) for _, ids in texts]
        numbers, within, roles = (
            torch.from_numpy(np.concatenate(of_pieces)).to(self.mix.device)
            for of_pieces in (
                [np.array(ids) for _, ids in texts],
                [np.arange(length) for length in lengths],
                [np.full(len(ids), role) for role, ids in texts],
            )
        )
        states = self.words(numbers) + self.positions(within) + self.roles(roles)
        layout = self._lay(lengths)
        states = layout.lay(self.norm(states))
        seen = self._climb(states, layout, 0, self.apart) or {0: states}
        lower = [{n: state[at] for n, state in seen.items()} for at in layout.places]
        if not self.padded:  # a view holds the states of all texts as long as one of them is needed
            lower = [{n: state.clone() for n, state in text.items()} for text in lower]
        return [Lower(text[self.apart], text) for text in lower]

    def judge(self, rows: Sequence[Texts]) -> list[Found]:
        """What is said of rows of texts that were read."""
        said: dict[int, Found] = {}
        for roles in READOUTS:
            where = [n for n, row in enumerate(rows) if sorted(row)[1:] == list(roles)]
            if where:
                together = self.read_together([rows[n] for n in where])
                said.update(zip(where, self._judge(together, roles), strict=True))
        return [said[n] for n in range(len(rows))]

    def read_together(self, rows: Sequence[Texts], last: int | None = None) -> Together:
        """Rows through the layers that see all of their texts, up to the last that is asked for."""
        texts = [row[role] for row in rows for role in sorted(row)]
        lengths = [[len(row[role].states) for role in sorted(row)] for row in rows]
        layout = self._lay([sum(own) for own in lengths])
        places = [
            dict(zip(sorted(row), slices_of(own, at.start), strict=True))
            for row, own, at in zip(rows, lengths, layout.places, strict=True)
        ]
        states = layout.lay(torch.cat([text.states for text in texts]))
        seen = self._climb(states, layout, self.apart, last or len(self.layers))
        for layer in texts[0].seen:
            seen[layer] = layout.lay(torch.cat([text.seen[layer] for text in texts]))
        return Together({layer: state.float() for layer, state in seen.items()}, places)

    def _climb(
        self, states: Tensor, layout: PassLayout, first: int, last: int
    ) -> dict[int, Tensor]:
        """States behind some layers: those that are looked at, and the last."""
        seen = {}
        for number, layer in enumerate(self.layers[first:last], start=first + 1):
            states = layer(states, layout)
            if number in MIXED or number in MATCHED or number == last:
                seen[number] = states
        return seen

    def _judge(self, together: Together, roles: Sequence[int]) -> list[Found]:
        """What is said of rows that have texts of these roles beside a hypothesis.

        Products are those of a pass, in blocks; what meets in a row is up to `meeting`.
        """
        shares = self.mix.softmax(0)
        mixed = sum(
            (together.seen[layer] * share for layer, share in zip(MIXED, shares, strict=True)),
            torch.zeros_like(together.seen[MIXED[0]]),
        )
        directions = torch.stack([F.normalize(together.seen[n], dim=-1) for n in MATCHED])
        inner = [{role: inside(at) for role, at in row.items()} for row in together.places]
        meeting = PaddedRows(inner, mixed.device) if self.padded else RowByRow(inner)
        own = meeting.pieces(mixed, HYPOTHESIS)
        means = meeting.means(own, HYPOTHESIS)
        firsts = mixed[[row[HYPOTHESIS].start for row in together.places]]
        features, at_pieces = [firsts, means], [own]
        there = features.copy()
        for role, comparison in zip(OTHERS, self.comparisons, strict=True):
            if role not in roles:
                features.append(means.new_zeros(len(means), self.told))
                at_pieces.append(means.new_zeros(len(own), self.compared))
                continue
            pooled, found = comparison(mixed, meeting, role, self.sizes)
            theirs = meeting.means(meeting.pieces(mixed, role), role)
            told = [theirs, (means - theirs).abs(), means * theirs, pooled]
            told.append(meeting.matches(directions, role))
            told.append(means.new_ones(len(means), 1))
            features += told
            there += told
            at_pieces.append(found)
        hidden = in_filled_blocks(self.head, torch.cat(features, dim=1), sizes=self.sizes)
        readout = self.readouts[READOUTS.index(tuple(roles))]

        def read(seen: Tensor) -> Tensor:  # of a row, or of rows
            return torch.cat([self.head.last(seen[..., : hidden.shape[1]]), readout(seen)], dim=-1)

        scores = meeting.each(read, torch.cat([hidden, *there], dim=1)).cpu()
        tags = in_filled_blocks(self.tagger, torch.cat(at_pieces, dim=1), sizes=self.sizes)
        sizes = [row[HYPOTHESIS].stop - row[HYPOTHESIS].start for row in inner]
        return list(map(Found, scores, torch.split(tags[:, : self.tags].cpu(), sizes)))

    def try_sizes(self) -> Sizes:
        """The blocks in which no large product of a row depends on its place, tried on a CPU."""
        layer: TransformerLayer = self.layers[0]  # type: ignore[assignment]
        others = (*self.comparisons[0].modules(), self.head.inner)
        linear = (one for one in others if isinstance(one, nn.Linear | HalfLinear))
        return shared_sizes([*layer.products, *linear])

    def keeps_apart(self) -> bool:
        """Whether the same is said of sequences beside others as alone, to the last bit."""
        layer: TransformerLayer = self.layers[0]  # type: ignore[assignment]
        return layer.keeps_texts_apart(TRIED_LENGTHS, self._lay) and self._judges_apart()

    def _judges_apart(self) -> bool:
        """The same of what follows upon layers, whose states are drawn here."""
        roles = HYPOTHESIS, SOURCE, REFERENCE
        generator = torch.Generator().manual_seed(1)
        width = self.roles.embedding_dim
        drawn = [
            {role: torch.randn(n + role, width, generator=generator) for role in roles}
            for n in TRIED_LENGTHS
        ]

        def run(rows: Sequence[Mapping[int, Tensor]]) -> list[Found]:
            texts = [row[role] for row in rows for role in roles]
            each = iter(slices_of([len(text) for text in texts]))
            states = fill_blocks(torch.cat(texts), self.sizes)
            places = [{role: next(each) for role in roles} for _ in rows]
            seen = dict.fromkeys((*MIXED, *MATCHED), states)
            return self._judge(Together(seen, places), OTHERS)

        alone = [found for row in drawn for found in run([row])]
        pairs = zip(run(drawn), alone, strict=True)
        return all(all(map(torch.equal, beside, found)) for beside, found in pairs)

    def _lay(self, lengths: Sequence[int]) -> SequenceLayout:
        """Sequences of these lengths, each of which sees itself alone."""
        if self.padded:
            return PaddedSequences(lengths, self.sizes, self.mix.device)
        return SequenceLayout(lengths, self.sizes)


def inside(place: slice) -> slice:
    """The true pieces of a text; of an empty one its </s>, so that means exist.

    >>> inside(slice(5, 9)), inside(slice(0, 2))
    (slice(6, 8, None), slice(1, 2, None))
    """
    return slice(place.start + 1, max(place.stop - 1, place.start + 2))


def _compare(layer: nn.Module, own: Tensor, partners: Tensor, sizes: Sizes) -> Tensor:
    """What a layer finds in pieces and their partners, (pieces, d) each."""

    def work(own: Tensor, partner: Tensor) -> Tensor:
        parts = own, partner, own * partner, (own - partner).abs()
        return gelu_of(layer, torch.cat(parts, dim=-1))

    return in_filled_blocks(work, own, partners, sizes=sizes)
