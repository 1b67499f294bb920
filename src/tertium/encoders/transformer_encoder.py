"""Any Hugging Face encoder: tokens, token vectors of a layer, and pooled sentence vectors.

Texts are truncated or split into windows to fit the model, batched by length, and run once, up to
the deepest requested layer. Token vectors of several layer choices and sentence vectors come from
the same pass, also for several encoders of one model. Tokenizer and network are loaded when the
first text is computed, so a run whose vectors are all cached loads neither.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tertium.core.arrays import Float32Array, IntArray, exact_squared_norms
from tertium.core.cached_files import cached_file_hash
from tertium.core.errors import ModelError
from tertium.core.extras import require_modules
from tertium.core.runtime import LongTextPolicy, Precision, resolve_device
from tertium.encoders.encoder import Embeddings, EncoderName, offsets_from_lengths
from tertium.encoders.model_settings import (
    CONFIG_FILE,
    ModelSettings,
    concatenates_layers,
    parse_layers,
    read_optional_json,
    read_settings,
)
from tertium.encoders.tokenizer import (
    TokenizedText,
    Tokenizer,
    Window,
    certainly_fits,
    find_out_of_vocabulary,
    split_windows,
)
from tertium.encoders.weight_files import (
    TensorLoader,
    WeightFolder,
    locate_weights,
    missing_extras,
)
from tertium.text.length_limits import MAX_ENCODED_TOKENS

if TYPE_CHECKING:
    from torch import Tensor

    from tertium.encoders.encoder_network import EncoderNetwork

MAX_REMEMBERED_TEXTS = 4096  # long texts for which it is remembered whether they are truncated


@dataclass(frozen=True, kw_only=True, eq=False)
class TransformerEncoder:
    """The encoder of a model folder at a layer; encoders of equal backbones can share a pass.

    `layer` is a number (0: the embedding layer), a range such as 3-6 (their mean), a list such as
    2+4+6 or `all` (concatenated). Sentence vectors do not depend on it. `special` keeps the special
    tokens around a text as rows of their own, whose tokens are empty strings.
    """

    name: str
    weights: WeightFolder
    settings: ModelSettings
    layer: str
    precision: Precision
    long: LongTextPolicy
    device: str
    special: bool = False
    _is_truncated: dict[str, bool] = field(default_factory=dict, init=False, repr=False)

    @property
    def backbone(self) -> tuple[object, ...]:
        """Everything that decides the states of a text: equal backbones share a pass."""
        load_tensors = self.weights.load_tensors
        model = (self.weights.folder, load_tensors, self.settings)
        return (*model, self.precision, self.long, self.device)

    @property
    def tokenizer(self) -> Tokenizer:
        settings = self.settings
        return _load_tokenizer(self.weights.folder, settings.pooling.lowercase, settings.prefix)

    @property
    def network(self) -> EncoderNetwork:
        weights = self.weights
        return _load_network(weights.folder, self.device, self.precision, weights.load_tensors)

    @property
    def dim(self) -> int:
        return self._token_dim(self.layer)

    @property
    def sentence_dim(self) -> int:
        return self.settings.pooling.width(self.settings.hidden)

    @property
    def layers(self) -> int:
        return self.dim // self.settings.hidden

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
    def window_size(self) -> int:
        """The number of tokens that fit between the special tokens."""
        return self.max_length - self.tokenizer.special_count

    @property
    def max_tokens(self) -> int:
        """The number of tokens of a text that are read, in one window or several."""
        is_truncated = self.long == "truncate"
        return self.window_size if is_truncated else max(self.window_size, MAX_ENCODED_TOKENS)

    def encode(
        self, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
    ) -> Embeddings:
        rows: dict[str, int] = {}
        order = [rows.setdefault(text, len(rows)) for text in texts]
        states = self._run_pass(list(rows), [self.layer] if tokens else [], sentences)
        distinct = states.make_embeddings(self.layer if tokens else None, self.dim)
        return distinct if len(rows) == len(texts) else distinct.take(order)

    def encode_requests(
        self, texts: Sequence[str], requests: Sequence[tuple[TransformerEncoder, str]]
    ) -> list[Embeddings]:
        layers = [encoder.layer if part == "tokens" else None for encoder, part in requests]
        choices = [layer for layer in dict.fromkeys(layers) if layer]
        states = self._run_pass(texts, choices, sentences=None in layers)
        return [states.make_embeddings(layer, self.dim) for layer in layers]

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of the tokens of texts that have vectors."""
        return [ids[: self.max_tokens] for ids in self.tokenizer.encode_ids(texts)]

    def hidden_states(self, texts: Sequence[Sequence[int]], layers: str) -> tuple[Tensor, Tensor]:
        """Compute the states of texts, given as at most `window_size` token ids, on the device.

        Returns states (layers, texts, positions, d) and a mask (texts, positions) that is True for
        tokens and False for special tokens and padding.
        """
        import torch

        start = len(self.tokenizer.prefix_ids)
        states, _ = self.network(self._add_special_tokens(texts), self._numbers(layers), None)
        ends = torch.tensor([start + len(ids) for ids in texts])[:, None]  # (texts, 1)
        position = torch.arange(states[0].shape[1])[None]  # (1, positions)
        mask = (position >= start) & (position < ends)
        return torch.stack(states), mask.to(states[0].device)

    def tokenize(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        return [self._token_names(text) for text in self._read_tokens(texts)]

    def find_truncated(self, texts: Sequence[str]) -> set[str]:
        limit = self.max_length if self.long == "truncate" else MAX_ENCODED_TOKENS
        limit -= len(self.settings.prefix.encode())
        candidates = [text for text in texts if not certainly_fits(text, limit)]
        new = [text for text in dict.fromkeys(candidates) if text not in self._is_truncated]
        if len(self._is_truncated) + len(new) > MAX_REMEMBERED_TEXTS:
            self._is_truncated.clear()
            new = list(dict.fromkeys(candidates))
        if new:
            ids, limit = self.tokenizer.encode_ids(new), self.max_tokens
            self._is_truncated.update((t, len(i) > limit) for t, i in zip(new, ids, strict=True))
        return {text for text in candidates if self._is_truncated[text]}

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
        return {**fields, "long": "window"} if self.long == "window" else fields

    def _settings_suffix(self) -> str:
        """Return a hash of config, tokenizer and pooling, unless they are those of the card."""
        card, folder = self.weights.card, self.weights.folder
        if card and all(
            (folder / name).is_file() and cached_file_hash(folder / name) == digest
            for name, digest in card.settings.items()
        ):
            return ""
        return f"+{self.settings.hash[:8]}"

    def with_special_tokens(self) -> TransformerEncoder:
        return self if self.special else replace(self, special=True)

    def fingerprint(self, part: str) -> str:
        layer = self.layer if part == "tokens" else "pooled"
        is_truncated = self.long == "truncate"
        length_policy = self.long if is_truncated else f"{self.long}-{MAX_ENCODED_TOKENS}"
        choices = (self.settings.hash, layer, self.precision, str(self.max_length), length_policy)
        return ":".join(["transformer-4", self.weights_hash, part, *choices])

    def _numbers(self, layers: str) -> tuple[int, ...]:
        return parse_layers(layers, self.settings.depth, self.name)

    def _token_dim(self, layer: str) -> int:
        """Return the size of a token vector for a layer choice."""
        count = len(self._numbers(layer)) if concatenates_layers(layer) else 1
        return self.settings.hidden * count

    def _read_tokens(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Return the tokens of texts that have vectors."""
        return [text.truncate(self.max_tokens) for text in self.tokenizer(texts)]

    def _special_counts(self, text: TokenizedText) -> tuple[int, int]:
        """Return how many special tokens are kept before and after a text."""
        if not self.special or not len(text):
            return 0, 0
        return len(self.tokenizer.prefix_ids), len(self.tokenizer.suffix_ids)

    def _token_names(self, text: TokenizedText) -> tuple[str, ...]:
        """Return a text's tokens, with empty strings for the special tokens kept around it."""
        before, after = self._special_counts(text)
        return ("",) * before + text.tokens + ("",) * after

    def _add_special_tokens(self, rows: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        before, after = self.tokenizer.prefix_ids, self.tokenizer.suffix_ids
        return [(*before, *ids, *after) for ids in rows]

    def _run_pass(self, texts: Sequence[str], layers: Sequence[str], sentences: bool) -> _Pass:
        """Compute all requested vectors of distinct texts in one pass."""
        complete = self.tokenizer(texts)
        result = _Pass(self, complete, layers, sentences)
        lengths = [len(job.ids) + self.tokenizer.special_count for job in result.jobs]

        def run(batch: IntArray) -> None:
            result.run([result.jobs[i] for i in batch])

        for _ in self.network.map_batches(run, lengths):
            pass
        result.average_windows()
        return result


class _Job(NamedTuple):
    """A window of text number `text`, and the ids of its tokens."""

    text: int
    window: Window
    ids: tuple[int, ...]


class _Pass:
    """One pass over distinct texts, whose vectors are filled in place.

    `tokens` are token vectors by layer choice, `sentences` sentence vectors, `jobs` the windows to
    compute. An empty text has only a sentence vector.
    """

    def __init__(
        self,
        encoder: TransformerEncoder,
        complete: Sequence[TokenizedText],
        layers: Sequence[str],
        sentences: bool,
    ) -> None:
        self._encoder = encoder
        max_tokens, window_size = encoder.max_tokens, encoder.window_size
        self._texts = [text.truncate(max_tokens) for text in complete]
        self._truncated = np.array([len(text) > max_tokens for text in complete], dtype=np.bool_)
        self._names = tuple(map(encoder._token_names, self._texts))
        self._offsets = offsets_from_lengths([len(names) for names in self._names])
        count = int(self._offsets[-1])
        self._tokens = {
            layer: np.zeros((count, encoder._token_dim(layer)), dtype=np.float32)
            for layer in layers
        }
        width = encoder.sentence_dim * sentences
        self._sentences = np.zeros((len(complete), width), dtype=np.float32)
        self._window_vectors: dict[_Job, Float32Array] = {}
        self.jobs = [
            _Job(number, window, text.ids[window.start : window.stop])
            for number, text in enumerate(self._texts)
            if len(text) or (sentences and encoder.tokenizer.special_count)
            for window in split_windows(len(text), window_size)
        ]

    def make_embeddings(self, layer: str | None, dim: int) -> Embeddings:
        """Return the embeddings of a layer choice, or only sentence vectors if it is None."""
        n = len(self._texts)
        return Embeddings(
            vectors=self._tokens[layer] if layer else np.zeros((0, dim), dtype=np.float32),
            offsets=self._offsets if layer else np.zeros(n + 1, dtype=np.int64),
            tokens=self._names if layer else ((),) * n,
            sentences=self._sentences,
            truncated=self._truncated,
        )

    def run(self, jobs: Sequence[_Job]) -> None:
        """Run the network on a batch of windows."""
        encoder = self._encoder
        needed = sorted({number for choice in self._tokens for number in encoder._numbers(choice)})
        pooling = encoder.settings.pooling if self._sentences.shape[1] else None
        rows = encoder._add_special_tokens([job.ids for job in jobs])
        states, pooled = encoder.network(rows, needed, pooling)
        by_layer = dict(zip(needed, states, strict=True))
        for choice in self._tokens:
            chosen = [by_layer[number] for number in encoder._numbers(choice)]
            self._write_tokens(choice, jobs, _combine_layers(chosen, concatenates_layers(choice)))
        if pooled is not None:
            self._window_vectors.update(zip(jobs, pooled.cpu().numpy(), strict=True))

    def _write_tokens(self, layer: str, jobs: Sequence[_Job], states: Tensor) -> None:
        """Write the token vectors that each job keeps; states are (jobs, positions, d)."""
        import torch

        keep = np.zeros(states.shape[:2], dtype=np.bool_)
        rows = []
        for number, job in enumerate(jobs):
            first, last, row = self._text_positions(job)
            keep[number, first:last] = True
            rows.append(np.arange(row, row + last - first))
        token_states = states[torch.from_numpy(keep).to(states.device)]
        self._tokens[layer][np.concatenate(rows)] = token_states.cpu().numpy()

    def _text_positions(self, job: _Job) -> tuple[int, int, int]:
        """Return the positions first:last of a job's text, and the row of its first vector."""
        text, (start, _, first, last) = self._texts[job.text], job.window
        before, after = self._encoder._special_counts(text)
        row = int(self._offsets[job.text]) + before + first
        shift = len(self._encoder.tokenizer.prefix_ids) - start
        leading = before if first == 0 else 0
        trailing = after if last == len(text) else 0
        return shift + first - leading, shift + last + trailing, row - leading

    def average_windows(self) -> None:
        """Set each sentence vector to the mean over its windows, added up from left to right."""
        for job in self.jobs:
            if job in self._window_vectors:
                self._sentences[job.text] += self._window_vectors[job]
        counts = np.bincount([job.text for job in self.jobs], minlength=len(self._sentences))
        several = counts > 1
        if not self._sentences.shape[1] or not several.any():
            return
        self._sentences[several] /= counts[several, None]
        if self._encoder.settings.pooling.normalize:
            norms = np.sqrt(exact_squared_norms(self._sentences[several]))[:, None]
            self._sentences[several] /= norms.astype(np.float32)


def _combine_layers(states: Sequence[Tensor], concatenate: bool) -> Tensor:
    """Concatenate or average the states of layers, each (jobs, positions, d)."""
    import torch

    if len(states) == 1:
        return states[0]
    return torch.cat(list(states), dim=-1) if concatenate else torch.stack(list(states)).mean(dim=0)


@lru_cache(maxsize=8)
def _load_tokenizer(folder: Path, lowercase: bool, prompt: str) -> Tokenizer:
    tokenizer = Tokenizer(folder, lowercase=lowercase, prompt=prompt)
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
    from tertium.encoders.bert import BertModel, read_bert_config

    target = resolve_device(device)
    config = read_bert_config(folder)
    if config is not None:
        return BertModel(folder, config, load_tensors, precision=precision, device=target)
    from tertium.encoders.transformers_model import TransformersModel

    return TransformersModel(folder, load_tensors, precision=precision, device=target)


_load_network = lru_cache(maxsize=4)(open_network)


def load(
    name: EncoderName, *, precision: Precision, long: LongTextPolicy, special: bool, device: str
) -> TransformerEncoder:
    """Load the encoder of a name such as minilm@4, hf/NAME@9 or dir/PATH."""
    require_modules("torch", "tokenizers", purpose=f"encoder {name}", also=missing_extras(name))
    if precision == "fp16" or device not in ("auto", "cpu"):
        from tertium.encoders.linear_layers import check_precision

        check_precision(precision, resolve_device(device))
    weights = locate_weights(name)
    return build_encoder(
        name, weights, precision=precision, long=long, special=special, device=device
    )


def build_encoder(
    name: EncoderName,
    weights: WeightFolder,
    *,
    precision: Precision,
    long: LongTextPolicy = "truncate",
    special: bool = False,
    device: str,
) -> TransformerEncoder:
    """Build an encoder from weights that were located and checked."""
    settings = read_settings(weights.folder, weights.card.prefix if weights.card else "")
    recommended = weights.card.layer if weights.card else None
    layer = name.layer or str(settings.depth if recommended is None else recommended)
    parse_layers(layer, settings.depth, str(name))
    return TransformerEncoder(
        name=str(EncoderName(name.family, name.path, layer)),
        weights=weights,
        settings=settings,
        layer=layer,
        precision=precision,
        long=long,
        device=device,
        special=special,
    )
