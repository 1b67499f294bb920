"""Any Hugging Face encoder: tokens, token vectors of a layer, and pooled sentence vectors.

Texts are truncated to fit the model, batched by length, and run once, up to the deepest requested
layer. Token vectors of several layer choices and sentence vectors come from
the same pass, also for several encoders of one model. Tokenizer and network are loaded when the
first text is computed, so a run whose vectors are all cached loads neither.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tertium.core.arrays import IntArray
from tertium.core.errors import ModelError
from tertium.core.extras import require_modules
from tertium.core.runtime import Precision, resolve_device
from tertium.core.store import cached_file_hash
from tertium.encoders.encoder import Embeddings, EncoderName, offsets_from_lengths
from tertium.encoders.model_settings import (
    CONFIG_FILE,
    ModelSettings,
    parse_layers,
    read_optional_json,
    read_settings,
)
from tertium.encoders.tokenizer import (
    TokenizedText,
    Tokenizer,
    certainly_fits,
    find_longer,
    find_out_of_vocabulary,
)
from tertium.encoders.weight_files import (
    TensorLoader,
    WeightFolder,
    locate_weights,
    missing_extras,
)

if TYPE_CHECKING:
    from torch import Tensor

    from tertium.encoders.encoder_network import EncoderNetwork


@dataclass(frozen=True, kw_only=True, eq=False)
class TransformerEncoder:
    """The encoder of a model folder at a layer; encoders of equal backbones can share a pass.

    `layer` is a number (0: the embedding layer), a list such as 2+4+6 or `all` (concatenated).
    Sentence vectors do not depend on it. `special` keeps the special tokens around a text as rows
    of their own, whose tokens are empty strings.
    """

    name: str
    weights: WeightFolder
    settings: ModelSettings
    layer: str
    precision: Precision
    device: str
    special: bool = False

    @property
    def backbone(self) -> tuple[object, ...]:
        """Everything that decides the states of a text: equal backbones share a pass."""
        weights = self.weights
        settings = self.settings
        model = weights.folder, weights.load_tensors, settings
        return (*model, self.precision, self.device, self.special)

    @property
    def tokenizer(self) -> Tokenizer:
        return _load_tokenizer(self.weights.folder, self.settings.prefix)

    @property
    def network(self) -> EncoderNetwork:
        weights = self.weights
        return _load_network(weights.folder, self.device, self.precision, weights.load_tensors)

    @property
    def dim(self) -> int:
        return self.settings.hidden * self.layers

    @property
    def sentence_dim(self) -> int:
        return self.settings.pooling.width(self.settings.hidden)

    @property
    def layers(self) -> int:
        return len(self._numbers(self.layer))

    @property
    def languages(self) -> frozenset[str] | None:
        return self.weights.card.languages if self.weights.card else None

    @property
    def weights_hash(self) -> str:
        return self.weights.hash

    @property
    def max_length(self) -> int:
        """The number of positions of the model, special tokens included."""
        return self.settings.max_length

    @property
    def max_tokens(self) -> int:
        """The number of tokens of a text that are read, between the special tokens."""
        return self.max_length - self.tokenizer.special_count

    def encode(
        self, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
    ) -> Embeddings:
        [result] = self._run_pass(texts, [self.layer if tokens else ""], sentences)
        return result

    def encode_requests(
        self, texts: Sequence[str], requests: Sequence[tuple[Any, str]]
    ) -> list[Embeddings]:
        layers = [encoder.layer if part == "tokens" else "" for encoder, part in requests]
        return self._run_pass(texts, layers, sentences="" in layers)

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of the tokens of texts that have vectors."""
        return [ids[: self.max_tokens] for ids in self.tokenizer.encode_ids(texts)]

    def hidden_states(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """Compute the states of texts, given as at most `max_tokens` token ids, on the device.

        Returns states (layers, texts, positions, d), with those of special tokens and padding.
        """
        import torch

        rows = self._add_special_tokens(texts)
        states, _ = self.network(rows, self._numbers(self.layer), None)
        return torch.stack(states)

    def tokenize(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        return list(self._name_tokens(self._read_tokens(texts)))

    def find_truncated(self, texts: Sequence[str]) -> set[str]:
        limit = self.max_length - len(self.settings.prefix.encode())
        candidates = [text for text in texts if not certainly_fits(text, limit)]
        return find_longer(candidates, self.max_tokens, self.tokenizer) if candidates else set()

    def find_out_of_vocabulary(self, texts: Sequence[str]) -> set[str]:
        return find_out_of_vocabulary(texts, self._read_tokens)

    def signature_fields(self) -> Mapping[str, str]:
        stem = self.name.rpartition("@")[0].replace(":", "_").replace("|", "_")
        fields = {
            "model": f"{stem}@{self.weights_hash[:8]}{self._settings_suffix()}",
            "layer": self.layer,
            "prec": self.precision,
            "maxlen": str(self.max_length),
        }
        if self.settings.prefix:
            fields["prefix"] = re.sub(r"\W+", "_", self.settings.prefix).strip("_")
        return fields

    def _settings_suffix(self) -> str:
        """Return a hash of config, tokenizer and pooling, unless they are those of the card."""
        card = self.weights.card
        folder = self.weights.folder
        if card and all(
            (folder / name).is_file() and cached_file_hash(folder / name) == digest
            for name, digest in card.settings.items()
        ):
            return ""
        return f"+{self.settings.hash[:8]}"

    def fingerprint(self, part: str) -> str:
        layer = "pooled"
        if part == "tokens":
            layer = self.layer if self.special else f"{self.layer} without special tokens"
        choices = (self.settings.hash, layer, self.precision, str(self.max_length), "truncate")
        return ":".join(["transformer-4", self.weights_hash, part, *choices])

    def _numbers(self, layers: str) -> tuple[int, ...]:
        return parse_layers(layers, self.settings.depth, self.name)

    def _read_tokens(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Return the tokens of texts that have vectors."""
        return [text.truncate(self.max_tokens) for text in self.tokenizer(texts)]

    def _add_special_tokens(self, rows: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        before = self.tokenizer.prefix_ids
        after = self.tokenizer.suffix_ids
        return [(*before, *ids, *after) for ids in rows]

    def _run_pass(
        self, texts: Sequence[str], choices: Sequence[str], sentences: bool
    ) -> list[Embeddings]:
        """Compute texts in one pass, with the token vectors of each choice of layers.

        A choice may be "", for embeddings without tokens. An empty text has only a sentence vector.
        """
        import torch

        complete = self.tokenizer(texts)
        read = [text.truncate(self.max_tokens) for text in complete]
        names = self._name_tokens(read)
        offsets = offsets_from_lengths([len(text_names) for text_names in names])
        layers = {choice: self._numbers(choice) for choice in choices if choice}
        needed = sorted({*chain(*layers.values())})
        hidden = self.settings.hidden
        vectors = {
            choice: np.zeros((offsets[-1], hidden * len(numbers)), dtype=np.float32)
            for choice, numbers in layers.items()
        }
        summaries = np.zeros((len(texts), self.sentence_dim * sentences), dtype=np.float32)
        pools_empty_text = sentences and self.tokenizer.special_count > 0
        used = np.array([n for n, text in enumerate(read) if text.ids or pools_empty_text], int)
        start = 0 if self.special else len(self.tokenizer.prefix_ids)

        def run(batch: IntArray) -> None:
            numbers = used[batch]
            states, pooled = self.network(
                self._add_special_tokens([read[n].ids for n in numbers]),
                needed,
                self.settings.pooling if sentences else None,
            )
            by_layer = dict(zip(needed, states, strict=True))
            for choice, output in vectors.items():
                combined = torch.cat([by_layer[number] for number in layers[choice]], dim=-1)
                for n, text_states in zip(numbers, combined.cpu().numpy(), strict=True):
                    first = offsets[n]
                    last = offsets[n + 1]
                    output[first:last] = text_states[start : start + last - first]
            if pooled is not None:
                summaries[numbers] = pooled.cpu().numpy()

        lengths = [len(read[n]) + self.tokenizer.special_count for n in used]
        for _ in self.network.map_batches(run, lengths):
            pass
        empty = np.zeros((0, self.dim), dtype=np.float32)
        return [
            Embeddings(
                vectors=vectors.get(choice, empty),
                offsets=offsets if choice else np.zeros_like(offsets),
                tokens=names if choice else ((),) * len(texts),
                sentences=summaries,
                truncated=np.array([len(text) > self.max_tokens for text in complete], np.bool_),
            )
            for choice in choices
        ]

    def _name_tokens(self, texts: Sequence[TokenizedText]) -> tuple[tuple[str, ...], ...]:
        """Return the names of the tokens that have vectors, by text."""
        tokenizer = self.tokenizer
        before = ("",) * len(tokenizer.prefix_ids) if self.special else ()
        after = ("",) * len(tokenizer.suffix_ids) if self.special else ()
        return tuple((*before, *text.tokens, *after) if text.ids else () for text in texts)


@lru_cache(maxsize=8)
def _load_tokenizer(folder: Path, prompt: str) -> Tokenizer:
    tokenizer = Tokenizer(folder, prompt=prompt)
    rows = read_optional_json(folder / CONFIG_FILE).get("vocab_size")
    if isinstance(rows, int) and tokenizer.largest_id >= rows:
        raise ModelError(
            f"the tokenizer of {folder} has ids up to {tokenizer.largest_id}, but the model has "
            f"only {rows} embeddings: tokenizer and weights are of different models"
        )
    return tokenizer


def open_network(
    folder: Path, device: str, precision: str, load_tensors: TensorLoader | None = None
) -> EncoderNetwork:
    """Read the network of a model folder; `load_tensors` replaces the weights in the folder."""
    from tertium.encoders.bert import load_bert, read_bert_config
    from tertium.encoders.transformer_layer import check_precision

    options = {"precision": precision, "device": resolve_device(device)}
    check_precision(**options)
    config = read_bert_config(folder)
    if config is not None:
        return load_bert(folder, config, load_tensors, **options)
    from tertium.encoders.encoder_network import TransformersModel

    return TransformersModel(folder, load_tensors, **options)


_load_network = lru_cache(maxsize=4)(open_network)


def load(name: EncoderName, **options: Any) -> TransformerEncoder:
    """Load the encoder of a name such as minilm@4, hf/NAME@9 or dir/PATH."""
    require_modules("torch", "tokenizers", purpose=f"encoder {name}", also=missing_extras(name))
    return build_encoder(name, locate_weights(name), **options)


def build_encoder(name: EncoderName, weights: WeightFolder, **options: Any) -> TransformerEncoder:
    """Build an encoder from weights that were located and checked.

    `options` are `precision`, `device` and `special`, as in `load_encoder`.
    """
    settings = read_settings(weights.folder, weights.card.prefix if weights.card else "")
    recommended = weights.card.layer if weights.card else None
    layer = name.layer or str(settings.depth if recommended is None else recommended)
    parse_layers(layer, settings.depth, str(name))
    return TransformerEncoder(
        name=str(EncoderName(name.family, name.path, layer)),
        weights=weights,
        settings=settings,
        layer=layer,
        **options,
    )
