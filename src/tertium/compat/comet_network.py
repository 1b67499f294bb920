"""The networks of COMET's estimators: layer mix, pooling and a feed-forward regressor.

    e(t) = pool(gamma sum_k s_k norm(h_k(t))),  s = softmax or sparsemax of one weight a layer
    y = f([mt; ref; mt*ref; |mt-ref|; mt*src; |mt-src|])      regression (Rei et al. 2020)
    y = f([mt; src; mt*src; |mt-src|])                        without references
    y = f(e(mt </s></s> src ...)), the first state            unified (Rei et al. 2022)

f is a feed-forward network. With three inputs a unified metric is the mean of mt+src, mt+ref and
all three. Verified against unbabel-comet 2.2.7 on tiny models; no code is taken from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from tertium.compat.comet_checkpoint import Hyperparameters
from tertium.core.arrays import FloatArray, IntArray
from tertium.core.errors import ModelError
from tertium.core.fields import check_value, read_json_object
from tertium.core.runtime import Precision, progress_task
from tertium.encoders.batching import map_on_threads
from tertium.encoders.encoder_network import build_network, check_tensors
from tertium.encoders.model_settings import read_settings
from tertium.encoders.tokenizer import Tokenizer, find_out_of_vocabulary
from tertium.encoders.transformer_encoder import open_network
from tertium.encoders.weight_files import read_tensor_file
from tertium.metrics.base.text_warnings import OUT_OF_VOCABULARY_TEXT, TRUNCATED_TEXT

TokenIds = tuple[int, ...]
MAX_POSITIONS_KEY = "max_position_embeddings"
ENCODER_PREFIX = "encoder.model."
LAYER_MIX_PREFIX = "layerwise_attention."
HEAD_PREFIX = "estimator."
ACTIVATIONS = {"tanh": nn.Tanh, "sigmoid": nn.Sigmoid}


class Estimator:
    """A COMET model on a device."""

    def __init__(
        self,
        hparams: Hyperparameters,
        weights: Path,
        encoder: Path,
        *,
        precision: Precision,
        device: str,
    ) -> None:
        tensors = read_tensor_file(weights)
        self.hparams = hparams
        encoder_tensors = partial(_select_tensors, tensors, ENCODER_PREFIX)
        self.network = open_network(encoder, device, precision, encoder_tensors)
        self.tokenizer = Tokenizer(encoder)
        config = encoder / "config.json"
        max_positions = read_json_object(config).get(MAX_POSITIONS_KEY)
        # COMET subtracts XLM-R's two special positions for every encoder
        self.positions: int = check_value(int, max_positions, config, MAX_POSITIONS_KEY) - 2
        mix_tensors = _select_tensors(tensors, LAYER_MIX_PREFIX)
        self.mix, self.gamma = _read_layer_mix(hparams, mix_tensors, self.network.depth, weights)
        width = self._feature_count * read_settings(encoder).hidden
        head_tensors = _select_tensors(tensors, HEAD_PREFIX)
        head = build_network(partial(_make_head, hparams, width), head_tensors, weights)
        self.head = head["ff"].to(self.network.device)

    @property
    def _feature_count(self) -> int:
        return 1 if self.hparams.is_unified else 6 if "ref" in self.hparams.inputs else 4

    def predict(self, rows: Sequence[tuple[str, ...]]) -> FloatArray:
        """Score rows of texts, given in the order of `inputs`."""
        encoded = self._encode(rows)
        vectors = self._embed(sorted({ids for row in encoded for ids in row}))
        if not self.hparams.is_unified:
            features = [self._make_features(*(vectors[ids] for ids in row)) for row in encoded]
            return self._apply_head(features)
        scores = dict(zip(vectors, self._apply_head([*vectors.values()]), strict=True))
        return np.array([np.mean([scores[ids] for ids in row]) for row in encoded])

    def find_truncated(self, rows: Sequence[tuple[str, ...]]) -> set[tuple[str, ...]]:
        """Return the truncated inputs: rows of texts for a unified metric, else single texts."""
        ids = self._tokenize(rows)
        separator = 2 * len(self.tokenizer.suffix_ids)
        truncated = set()
        for row in {*rows} if self.hparams.is_unified else {(text,) for text in ids}:
            lengths = [len(ids[text]) for text in row]
            joined = sum(lengths) + separator * (len(row) - 1) + self.tokenizer.special_count
            if max(lengths) > self._max_tokens or joined > self.positions:
                truncated.add(row)
        return truncated

    def flag_inputs(self, rows: Sequence[tuple[str, ...]]) -> dict[str, list[bool]]:
        """Flag rows with a truncated input, and with a text of unknown tokens only, (rows,)."""
        truncated = self.find_truncated(rows)
        unknown = find_out_of_vocabulary([*{text for row in rows for text in row}], self.tokenizer)
        inputs_of_row = [{row, *((text,) for text in row)} for row in rows]
        return {
            TRUNCATED_TEXT: [not truncated.isdisjoint(inputs) for inputs in inputs_of_row],
            OUT_OF_VOCABULARY_TEXT: [not unknown.isdisjoint(row) for row in rows],
        }

    @property
    def _max_tokens(self) -> int:
        return self.positions - 2 - self.tokenizer.special_count

    @property
    def _input_groups(self) -> list[tuple[int, ...]]:
        """The texts of a row that are encoded together; a unified metric averages their scores."""
        count = len(self.hparams.inputs)
        if not self.hparams.is_unified:
            return [(n,) for n in range(count)]
        return [(0, 1), (0, 2), (0, 1, 2)] if count == 3 else [(0, 1)]

    def _tokenize(self, rows: Sequence[tuple[str, ...]]) -> dict[str, list[int]]:
        texts = [*dict.fromkeys(text for row in rows for text in row)]
        return dict(zip(texts, self.tokenizer.encode_ids(texts), strict=True))

    def _encode(self, rows: Sequence[tuple[str, ...]]) -> list[list[TokenIds]]:
        """Return the token ids of the inputs of each row, truncated as COMET does."""
        ids = {text: ids[: self._max_tokens] for text, ids in self._tokenize(rows).items()}
        encoded = []
        for row in rows:
            groups = [[ids[row[n]] for n in group] for group in self._input_groups]
            encoded.append([self._join(group) for group in groups])
        return encoded

    def _join(self, texts: Sequence[list[int]]) -> TokenIds:
        """Concatenate texts with special tokens, separated by two end tokens."""
        end = self.tokenizer.suffix_ids
        joined = [*self.tokenizer.prefix_ids, *texts[0]]
        for ids in texts[1:]:
            joined += [*end, *end, *ids]
        return (*joined, *end)[: self.positions]

    def _embed(self, rows: Sequence[TokenIds]) -> dict[TokenIds, Tensor]:
        batches = self.network.plan_batches([len(row) for row in rows])
        vectors: dict[TokenIds, Tensor] = {}
        work = partial(self._pool_batch, rows)
        run = map_on_threads if self.network.device == "cpu" else map
        with progress_task("encoding", total=len(rows)) as advance:
            for batch in run(work, batches):
                vectors.update(batch)
                advance(len(batch))
        return vectors

    def _pool_batch(self, rows: Sequence[TokenIds], indices: IntArray) -> dict[TokenIds, Tensor]:
        batch = [rows[index] for index in indices]
        layer = self.hparams.layer
        layers = range(self.network.depth + 1) if layer == "mix" else [int(layer)]
        states, _ = self.network(batch, layers, None)
        with torch.inference_mode():
            return {
                row: self._pool(torch.stack([state[i, : len(row)] for state in states]))
                for i, row in enumerate(batch)
            }

    def _pool(self, states: Tensor) -> Tensor:
        """Pool the states of a text into one vector, (layers, positions, d) -> (d,)."""
        mixed = states[0]
        if self.mix is not None:
            if self.hparams.layer_norm:
                mean = states.mean(dim=(1, 2), keepdim=True)
                variance = ((states - mean) ** 2).mean(dim=(1, 2), keepdim=True)
                states = (states - mean) / torch.sqrt(variance + 1e-12)  # COMET's epsilon
            weights = self.mix.to(states.device)[:, None, None]
            mixed = self.gamma * (weights * states).sum(dim=0)
        if self.hparams.pool == "cls":
            return mixed[0]
        return mixed.mean(dim=0) if self.hparams.pool == "avg" else mixed.max(dim=0).values

    def _make_features(self, mt: Tensor, src: Tensor, ref: Tensor | None = None) -> Tensor:
        if ref is None:
            return torch.cat([mt, src, mt * src, (mt - src).abs()])
        return torch.cat([mt, ref, mt * ref, (mt - ref).abs(), mt * src, (mt - src).abs()])

    def _apply_head(self, features: Sequence[Tensor]) -> FloatArray:
        """Score feature vectors one by one: in a batch, the last bits depend on the other rows."""

        def score_vector(vector: Tensor) -> float:
            with torch.inference_mode():
                return float(self.head(vector[None]))

        run = map_on_threads if self.network.device == "cpu" else map
        return np.array(list(run(score_vector, features)))


def _select_tensors(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors with a name prefix, as float32 and without the prefix."""
    part = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    return {name: t.float() if t.is_floating_point() else t for name, t in part.items()}


def _read_layer_mix(
    hparams: Hyperparameters, tensors: Mapping[str, Tensor], depth: int, where: Path
) -> tuple[Tensor | None, float]:
    """Return the weight of each layer and the scale of their sum; None for a single layer."""
    if hparams.layer != "mix":
        if not hparams.layer.isdecimal() or int(hparams.layer) > depth:
            raise ModelError(f"{where}: hparams.yaml requires layer {hparams.layer} of {depth}")
        return None, 1.0
    names = [f"scalar_parameters.{layer}" for layer in range(depth + 1)]
    expected = {name: torch.zeros(1) for name in ("gamma", *names)}
    learned = {name: t for name, t in tensors.items() if not name.startswith("dropout_")}
    check_tensors(learned, expected, where)
    weights = torch.cat([tensors[name] for name in names])
    sparse = hparams.layer_transformation == "sparsemax"
    return sparsemax(weights) if sparse else weights.softmax(dim=0), float(tensors["gamma"])


def sparsemax(weights: Tensor) -> Tensor:
    """Project weights onto the probability simplex (Martins, Astudillo 2016), (n,) -> (n,).

    >>> sparsemax(torch.tensor([0.5, 0.0, -2.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    ordered = weights.sort(descending=True).values
    counts = torch.arange(1, len(weights) + 1)
    sums = ordered.cumsum(dim=0) - 1
    support = int((counts * ordered > sums).sum())
    return (weights - sums[support - 1] / support).clamp(min=0)


def _make_head(hparams: Hyperparameters, width: int) -> nn.ModuleDict:
    sizes = (width, *hparams.hidden_sizes)
    modules: list[nn.Module] = []
    for before, after in pairwise(sizes):
        modules += [nn.Linear(before, after), _activation(hparams.activations), nn.Dropout()]
    modules.append(nn.Linear(sizes[-1], 1))
    modules += [_activation(hparams.final_activation)] if hparams.final_activation else []
    return nn.ModuleDict({"ff": nn.Sequential(*modules)})


def _activation(name: str) -> nn.Module:
    if name.lower() not in ACTIVATIONS:
        raise ModelError(f"hparams.yaml: unknown activation {name!r}, expected Tanh or Sigmoid")
    return ACTIVATIONS[name.lower()]()
