"""Any Hugging Face encoder: pieces, token vectors of a layer, and pooled sentence vectors.

One class for all architectures. What encoders of one model share is its `Body`: tokenizer, network,
and one pass for all they ask.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tertium.encoders.body import Body, names_of, width_of
from tertium.encoders.encoder import Embeddings, EncoderName
from tertium.encoders.pieces import count_opaque, surely_fits
from tertium.encoders.settings import ModelSettings, parse_layers, read_settings
from tertium.encoders.weights import WeightFolder, locate, missing_extras
from tertium.extras import require
from tertium.runtime import Long, Precision, choose_device
from tertium.text.bounds import ENCODED_PIECES

MOST_KNOWN = 4096  # long texts of which it is remembered whether they are too long


@dataclass(frozen=True, kw_only=True, eq=False)
class Transformer:
    """The encoder of a model folder at a layer; encoders of equal bodies can share a pass.

    `layer` is a number (0: the embeddings), a range such as 3-6 (their mean), a list such as 2+4+6
    or `all` (side by side, for learners that weigh them). Sentence vectors do not depend on it.
    `special` keeps the special tokens around a text as rows of their own, with empty pieces.
    """

    name: str
    weights: WeightFolder
    body: Body
    layer: str
    special: bool = False
    _known: dict[str, bool] = field(default_factory=dict, repr=False)

    @property
    def settings(self) -> ModelSettings:
        return self.body.settings

    @property
    def dim(self) -> int:
        return width_of(self.layer, self.settings)

    @property
    def sentence_dim(self) -> int:
        return self.settings.pooling.width(self.settings.hidden)

    @property
    def layers(self) -> int:
        return self.dim // self.settings.hidden

    @property
    def languages(self) -> frozenset[str] | None:
        return (self.weights.card.languages or None) if self.weights.card else None

    @property
    def weights_hash(self) -> str:
        return self.weights.hash

    @property
    def max_length(self) -> int:
        """How many positions the model has, special tokens included."""
        return self.settings.max_length

    def encode(
        self, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
    ) -> Embeddings:
        places: dict[str, int] = {}
        order = [places.setdefault(text, len(places)) for text in texts]
        results = self.body.encode(
            list(places),
            layers=[self.layer] if tokens else [],
            sentences=sentences,
            special=self.special,
        )
        found = results.of(self.layer if tokens else None, self.dim)
        return found if len(places) == len(texts) else found.take(order)

    def encode_together(
        self, texts: Sequence[str], needs: Sequence[tuple[Transformer, str]]
    ) -> list[Embeddings]:
        """What encoders of this body need of distinct texts, from one pass."""
        layers = [encoder.layer if part == "tokens" else None for encoder, part in needs]
        results = self.body.encode(
            texts,
            layers=[layer for layer in dict.fromkeys(layers) if layer],
            sentences=None in layers,
            special=self.special,
        )
        return [results.of(layer, self.dim) for layer in layers]

    def pieces(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        around = self.body.count_around(self.special)
        return [names_of(text, around) for text in self.body.pieces(texts)]

    def count_truncated(self, texts: Sequence[str]) -> int:
        most = self.max_length if self.body.long == "truncate" else ENCODED_PIECES
        room = most - len(self.settings.prefix.encode())
        doubtful = [text for text in texts if not surely_fits(text, room)]
        unknown = [text for text in dict.fromkeys(doubtful) if text not in self._known]
        if len(self._known) + len(unknown) > MOST_KNOWN:
            self._known.clear()  # a corpus has no end
            unknown = list(dict.fromkeys(doubtful))
        if unknown:
            found, most = self.body.tokenizer(unknown), self.body.most
            self._known.update((t, len(p) > most) for t, p in zip(unknown, found, strict=True))
        return sum(self._known[text] for text in doubtful)

    def count_opaque(self, texts: Sequence[str]) -> int:
        return count_opaque(texts, self.body.pieces)

    def signature_fields(self) -> Mapping[str, str]:
        stem = self.name.rpartition("@")[0].replace(":", "_").replace("|", "_")
        told = "" if self.weights.card else f"+{self.settings.hash[:8]}"  # which a card fixes
        fields = {
            "model": f"{stem}@{self.weights_hash[:8]}{told}",
            "layer": self.layer,
            "prec": self.body.precision,
            "maxlen": str(self.max_length),
        }
        if self.settings.prefix:
            fields["prefix"] = re.sub(r"\W+", "_", self.settings.prefix).strip("_")
        return {**fields, "long": "window"} if self.body.long == "window" else fields

    def with_special(self) -> Transformer:
        """This encoder keeping special tokens: what memory and disk hold, whoever asks."""
        return self if self.special else replace(self, special=True)

    def fingerprint(self, part: str) -> str:
        layer = self.layer if part == "tokens" else "pooled"
        # what is read of a long text decides its vectors, too
        long, precision = self.body.long, self.body.precision
        reading = long if long == "truncate" else f"{long}-{ENCODED_PIECES}"
        choices = (self.settings.hash, layer, precision, str(self.max_length), reading)
        return ":".join(["transformer-4", self.weights_hash, part, *choices])


def load(
    name: EncoderName, *, precision: Precision, long: Long, special: bool, device: str
) -> Transformer:
    """The transformer of a name such as minilm@4, hf/NAME@9 or dir/PATH."""
    also = missing_extras(name)
    require("torch", "tokenizers", purpose=f"encoder {name}", also=also)
    if precision == "fp16" or device not in ("auto", "cpu"):
        from tertium.encoders.products import check_precision

        check_precision(precision, choose_device(device))
    return of_weights(
        name, locate(name), precision=precision, long=long, special=special, device=device
    )


def of_weights(
    name: EncoderName,
    weights: WeightFolder,
    *,
    precision: Precision,
    long: Long = "truncate",
    special: bool = False,
    device: str,
) -> Transformer:
    """The transformer of weights that were found and checked."""
    settings = read_settings(weights.folder, weights.card.prefix if weights.card else "")
    recommended = weights.card.layer if weights.card else None
    layer = name.layer or str(settings.depth if recommended is None else recommended)
    parse_layers(layer, settings.depth, str(name))
    body = Body(
        folder=weights.folder,
        settings=settings,
        precision=precision,
        long=long,
        device=device,
        tensors=weights.tensors,
    )
    full = str(EncoderName(name.family, name.rest, layer))
    return Transformer(name=full, weights=weights, body=body, layer=layer, special=special)
