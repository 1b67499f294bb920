"""Any Hugging Face encoder: tokens, token vectors of a layer, and pooled sentence vectors.

Encoders of the same model share its `Backbone` (tokenizer and network), and compute vectors of
several layers in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tertium.cache.cached_files import cached_file_hash
from tertium.encoders.backbone import Backbone, token_dim, token_names
from tertium.encoders.encoder import Embeddings, EncoderName
from tertium.encoders.model_settings import ModelSettings, parse_layers, read_settings
from tertium.encoders.tokenizer import certainly_fits, find_out_of_vocabulary
from tertium.encoders.weight_files import WeightFolder, locate_weights, missing_extras
from tertium.execution import LongTextPolicy, Precision, resolve_device
from tertium.extras import require_modules
from tertium.text.length_limits import MAX_ENCODED_TOKENS

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
    backbone: Backbone
    layer: str
    special: bool = False
    _is_truncated: dict[str, bool] = field(default_factory=dict, repr=False)

    @property
    def settings(self) -> ModelSettings:
        return self.backbone.settings

    @property
    def dim(self) -> int:
        return token_dim(self.layer, self.settings)

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

    def encode(
        self, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
    ) -> Embeddings:
        rows: dict[str, int] = {}
        order = [rows.setdefault(text, len(rows)) for text in texts]
        results = self.backbone.encode(
            list(rows),
            layers=[self.layer] if tokens else [],
            sentences=sentences,
            special=self.special,
        )
        distinct = results.make_embeddings(self.layer if tokens else None, self.dim)
        return distinct if len(rows) == len(texts) else distinct.take(order)

    def encode_requests(
        self, texts: Sequence[str], requests: Sequence[tuple[TransformerEncoder, str]]
    ) -> list[Embeddings]:
        layers = [encoder.layer if part == "tokens" else None for encoder, part in requests]
        results = self.backbone.encode(
            texts,
            layers=[layer for layer in dict.fromkeys(layers) if layer],
            sentences=None in layers,
            special=self.special,
        )
        return [results.make_embeddings(layer, self.dim) for layer in layers]

    def tokenize(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        special_counts = self.backbone.count_special_tokens(self.special)
        return [token_names(text, special_counts) for text in self.backbone.tokenize(texts)]

    def find_truncated(self, texts: Sequence[str]) -> set[str]:
        limit = self.max_length if self.backbone.long == "truncate" else MAX_ENCODED_TOKENS
        limit -= len(self.settings.prefix.encode())
        candidates = [text for text in texts if not certainly_fits(text, limit)]
        new = [text for text in dict.fromkeys(candidates) if text not in self._is_truncated]
        if len(self._is_truncated) + len(new) > MAX_REMEMBERED_TEXTS:
            self._is_truncated.clear()
            new = list(dict.fromkeys(candidates))
        if new:
            ids, limit = self.backbone.tokenizer.encode_ids(new), self.backbone.max_tokens
            self._is_truncated.update((t, len(i) > limit) for t, i in zip(new, ids, strict=True))
        return {text for text in candidates if self._is_truncated[text]}

    def find_out_of_vocabulary(self, texts: Sequence[str]) -> set[str]:
        return find_out_of_vocabulary(texts, self.backbone.tokenize)

    def signature_fields(self) -> Mapping[str, str]:
        stem = self.name.rpartition("@")[0].replace(":", "_").replace("|", "_")
        fields = {
            "model": f"{stem}@{self.weights_hash[:8]}{self._settings_suffix()}",
            "layer": self.layer,
            "prec": self.backbone.precision,
            "maxlen": str(self.max_length),
        }
        if self.settings.prefix:
            fields["prefix"] = re.sub(r"\W+", "_", self.settings.prefix).strip("_")
        return {**fields, "long": "window"} if self.backbone.long == "window" else fields

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
        long, precision = self.backbone.long, self.backbone.precision
        length_policy = long if long == "truncate" else f"{long}-{MAX_ENCODED_TOKENS}"
        choices = (self.settings.hash, layer, precision, str(self.max_length), length_policy)
        return ":".join(["transformer-4", self.weights_hash, part, *choices])


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
    backbone = Backbone(
        folder=weights.folder,
        settings=settings,
        precision=precision,
        long=long,
        device=device,
        load_tensors=weights.load_tensors,
    )
    full_name = str(EncoderName(name.family, name.path, layer))
    return TransformerEncoder(
        name=full_name, weights=weights, backbone=backbone, layer=layer, special=special
    )
