"""What COMET's estimators compute: layers mixed, texts pooled, their features judged.

    e(t) = pool(gamma sum_k s_k norm(h_k(t))),  s = softmax or sparsemax of one weight a layer
    y = f([mt; ref; mt*ref; |mt-ref|; mt*src; |mt-src|])      regression (Rei et al. 2020)
    y = f([mt; src; mt*src; |mt-src|])                        without references
    y = f(e(mt </s></s> src ...)), the first state            unified (Rei et al. 2022)

f is a feed-forward network. With three inputs a unified metric is the mean of mt+src, mt+ref and
all three. Compared with unbabel-comet 2.2.7 on tiny models; no code is taken from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from tertium.arrays import FloatArray, IntArray
from tertium.encoders.apart import each_on_one_thread
from tertium.encoders.encoder import TRUNCATED
from tertium.encoders.network import Network
from tertium.encoders.pieces import Tokenizer, count_opaque
from tertium.encoders.settings import read_settings
from tertium.errors import ModelError
from tertium.models.checkpoint import check_tensors, load_into
from tertium.runtime import Precision, choose_device, task
from tertium.schema import read_json, read_value

if TYPE_CHECKING:
    from tertium.compat.comet_metric import Hyperparameters

Row = tuple[int, ...]
POSITIONS = "max_position_embeddings"
ENCODER = "encoder.model."
MIX = "layerwise_attention."
HEAD = "estimator."
ACTIVATIONS = {"tanh": nn.Tanh, "sigmoid": nn.Sigmoid}


class Estimator:
    """A COMET model on a device: texts in, scores out."""

    def __init__(
        self,
        told: Hyperparameters,
        weights: Path,
        encoder: Path,
        *,
        precision: Precision,
        device: str,
    ) -> None:
        from safetensors.torch import load_file

        try:
            tensors = load_file(weights)
        except Exception as error:  # the reader's own type, or that of the system
            raise ModelError(f"{weights} is damaged or was cut short: {error}") from None
        self.told = told
        self.network = Network(
            encoder,
            device=choose_device(device),
            precision=precision,
            tensors=lambda: _part(tensors, ENCODER),
        )
        self.tokenizer = Tokenizer(encoder)
        config = encoder / "config.json"
        most = read_value(int, read_json(config).get(POSITIONS), config, POSITIONS)
        self.positions: int = most - 2  # of any encoder, as XLM-R counts them
        self.mix, self.gamma = _read_mix(told, _part(tensors, MIX), self.network.depth, weights)
        width = self._count_features() * read_settings(encoder).hidden
        head = load_into(partial(_make_head, told, width), _part(tensors, HEAD), weights)
        self.head = head["ff"].to(self.network.device)

    def _count_features(self) -> int:
        return 1 if self.told.unified else 6 if "ref" in self.told.inputs else 4

    def predict(self, rows: Sequence[tuple[str, ...]]) -> FloatArray:
        """The score of each row of texts, in the order of `inputs`."""
        texts = self._tokenize([text for row in rows for text in row])
        named = [dict(zip(self.told.inputs, (texts[t] for t in row), strict=True)) for row in rows]
        if not self.told.unified:
            vectors = self._embed(sorted(set(texts.values())))
            return self._judge(
                [self._features({k: vectors[v] for k, v in row.items()}) for row in named]
            )
        asked = [
            [self._join([row[name] for name in group]) for group in self._groups()] for row in named
        ]
        vectors = self._embed(sorted({one for joined in asked for one in joined}))
        scores = dict(zip(vectors, self._judge(list(vectors.values())), strict=True))
        return np.array([np.mean([scores[one] for one in joined]) for joined in asked])

    def count_unread(self, rows: Sequence[tuple[str, ...]]) -> dict[str, int]:
        """How many texts are cut or have no known piece; where texts are read together, rows."""
        texts = list(dict.fromkeys(text for row in rows for text in row))
        sizes = dict(zip(texts, map(len, self.tokenizer(texts)), strict=True))
        read = set(rows) if self.told.unified else [(text,) for text in texts]
        counts = {
            TRUNCATED: sum(self._is_cut([sizes[text] for text in row]) for row in read),
            "text of unknown pieces only": count_opaque(texts, self.tokenizer),
        }
        return {kind: count for kind, count in counts.items() if count}

    def _is_cut(self, sizes: Sequence[int]) -> bool:
        """Whether a row of texts of so many pieces is cut: one of them, or what they make."""
        between = 2 * len(self.tokenizer.suffix) * (len(sizes) - 1)
        joined = sum(sizes) + between + self.tokenizer.specials
        return max(sizes) > self._room or joined > self.positions

    @property
    def _room(self) -> int:
        """How many pieces of one text COMET reads."""
        return self.positions - 2 - self.tokenizer.specials

    def _groups(self) -> tuple[tuple[str, ...], ...]:
        """Which texts are read together: with three inputs in three ways, as COMET does."""
        inputs = self.told.inputs
        return (("mt", "src"), ("mt", "ref"), inputs) if len(inputs) == 3 else (inputs,)

    def _tokenize(self, texts: Sequence[str]) -> dict[str, Row]:
        """The numbers of each text's pieces with special tokens, cut where COMET cuts."""
        before, after = self.tokenizer.prefix, self.tokenizer.suffix
        distinct = list(dict.fromkeys(texts))
        cut = [pieces.ids[: self._room] for pieces in self.tokenizer(distinct)]
        return {t: (*before, *ids, *after) for t, ids in zip(distinct, cut, strict=True)}

    def _join(self, rows: Sequence[Row]) -> Row:
        """Several texts as one row, an end and another end between them."""
        before, after = self.tokenizer.prefix, self.tokenizer.suffix
        bare = [row[len(before) : len(row) - len(after)] for row in rows]
        joined = (*before, *bare[0], *(n for row in bare[1:] for n in (*after, *after, *row)))
        return (*joined, *after)[: self.positions]

    def _embed(self, rows: Sequence[Row]) -> dict[Row, Tensor]:
        """The pooled vector of each distinct row."""
        batches = self.network.plan([len(row) for row in rows])
        found: dict[Row, Tensor] = {}
        work = partial(self._pool_batch, rows)
        run = each_on_one_thread if self.network.device == "cpu" else map
        with task("encoding", total=len(rows)) as advance:
            for part in run(work, batches):
                found.update(part)
                advance(len(part))
        return found

    def _pool_batch(self, rows: Sequence[Row], places: IntArray) -> dict[Row, Tensor]:
        chosen = [rows[place] for place in places]
        layer = self.told.layer
        layers = range(self.network.depth + 1) if layer == "mix" else [int(layer)]
        states, _ = self.network(chosen, layers, None)
        with torch.inference_mode():
            return {
                row: self._pool(torch.stack([state[i, : len(row)] for state in states]))
                for i, row in enumerate(chosen)
            }

    def _pool(self, states: Tensor) -> Tensor:
        """One vector of a text's states, (layers, positions, d) -> (d,)."""
        mixed = states[0]
        if self.mix is not None:
            if self.told.layer_norm:
                mean = states.mean(dim=(1, 2), keepdim=True)
                variance = ((states - mean) ** 2).mean(dim=(1, 2), keepdim=True)
                states = (states - mean) / torch.sqrt(variance + 1e-12)  # COMET's guard against 0
            weights = self.mix.to(states.device)[:, None, None]
            mixed = self.gamma * (weights * states).sum(dim=0)
        if self.told.pool == "cls":
            return mixed[0]
        return mixed.mean(dim=0) if self.told.pool == "avg" else mixed.max(dim=0).values

    def _features(self, texts: Mapping[str, Tensor]) -> Tensor:
        """What the feed-forward network reads, in the order it learned, (features * d,)."""
        mt, src = texts["mt"], texts["src"]
        if "ref" not in texts:
            return torch.cat([mt, src, mt * src, (mt - src).abs()])
        ref = texts["ref"]
        return torch.cat([mt, ref, mt * ref, (mt - ref).abs(), mt * src, (mt - src).abs()])

    def _judge(self, features: Sequence[Tensor]) -> FloatArray:
        """The score of each vector of features; one by one, since rows of a product may mix."""

        def judge(one: Tensor) -> float:
            with torch.inference_mode():
                return float(self.head(one[None]))

        run = each_on_one_thread if self.network.device == "cpu" else map
        return np.array(list(run(judge, features)))


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, as float32 and without it."""
    part = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    return {name: t.float() if t.is_floating_point() else t for name, t in part.items()}


def _read_mix(
    told: Hyperparameters, tensors: Mapping[str, Tensor], depth: int, where: Path
) -> tuple[Tensor | None, float]:
    """The weight of each layer and the factor of their sum; None where one layer is taken."""
    if told.layer != "mix":
        if not told.layer.isdecimal() or int(told.layer) > depth:
            raise ModelError(f"{where}: its hparams.yaml asks for layer {told.layer} of {depth}")
        return None, 1.0
    names = [f"scalar_parameters.{layer}" for layer in range(depth + 1)]
    wanted = {name: torch.zeros(1) for name in ("gamma", *names)}
    kept = {name: t for name, t in tensors.items() if not name.startswith("dropout_")}
    check_tensors(kept, wanted, where)
    weights = torch.cat([tensors[name] for name in names])
    sparse = told.layer_transformation == "sparsemax"
    return sparsemax(weights) if sparse else weights.softmax(dim=0), float(tensors["gamma"])


def sparsemax(weights: Tensor) -> Tensor:
    """The point of the simplex nearest to some weights (Martins, Astudillo 2016), (n,) -> (n,).

    >>> sparsemax(torch.tensor([0.5, 0.0, -2.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    ordered = weights.sort(descending=True).values
    counts = torch.arange(1, len(weights) + 1)
    sums = ordered.cumsum(dim=0) - 1
    support = int((counts * ordered > sums).sum())
    return (weights - sums[support - 1] / support).clamp(min=0)


def _make_head(told: Hyperparameters, width: int) -> nn.ModuleDict:
    """The feed-forward network, with the names of its weights in a checkpoint."""
    sizes = (width, *told.hidden_sizes)
    modules: list[nn.Module] = []
    for before, after in pairwise(sizes):
        modules += [nn.Linear(before, after), _activation(told.activations), nn.Dropout()]
    modules.append(nn.Linear(sizes[-1], 1))
    modules += [_activation(told.final_activation)] if told.final_activation else []
    return nn.ModuleDict({"ff": nn.Sequential(*modules)})


def _activation(name: str) -> nn.Module:
    if name.lower() not in ACTIVATIONS:
        raise ModelError(f"hparams.yaml names the activation {name!r}, expected Tanh or Sigmoid")
    return ACTIVATIONS[name.lower()]()
