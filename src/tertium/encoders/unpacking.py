"""Write a packed multilingual-e5 as the model folder that every encoder is read from.

The folder is what `transformers` would save: weights in safetensors under BERT's names, its
config, and the tokenizer that the file describes. What is written depends on the file alone, so
that the hash of the weights can be a card's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tertium.encoders.charsmap import compile_replacements
from tertium.encoders.packed import PackedModel, read_packed
from tertium.encoders.sentencepiece import SPACE

MASK = "<mask>"
LAYER_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


def unpack_model(packed: Path, folder: Path) -> None:
    """Write the weights, the config and the tokenizer of a packed model into a folder."""
    from safetensors.numpy import save_file

    model = read_packed(packed)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(dict(_tensors(model)), folder / "model.safetensors", metadata={"format": "pt"})
    _tokenizer(model).save(str(folder / "tokenizer.json"))
    names = _special_names(model)
    settings = {
        "config.json": _config(model),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": model.sizes.positions,
            **names,
        },
        "special_tokens_map.json": names,
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling",
             "type": "sentence_transformers.models.Pooling"},
            {"idx": 2, "name": "2", "path": "2_Normalize",
             "type": "sentence_transformers.models.Normalize"},
        ],
        "1_Pooling/config.json": {
            "word_embedding_dimension": model.sizes.hidden,
            "pooling_mode_mean_tokens": True,
        },
        "sentence_bert_config.json": {
            "max_seq_length": model.sizes.positions, "do_lower_case": False
        },
    }  # fmt: skip
    for name, values in settings.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(values, indent=2) + "\n")


def _tensors(model: PackedModel) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """The tensors of a BERT by the names that transformers gives them."""
    sizes = model.sizes
    d, wide = sizes.hidden, sizes.feed_forward
    yield "embeddings.word_embeddings.weight", model.tensor("emb.word", sizes.vocabulary, d)
    yield "embeddings.position_embeddings.weight", model.tensor("emb.pos", sizes.positions, d)
    yield "embeddings.token_type_embeddings.weight", model.tensor("emb.type", sizes.token_types, d)
    yield "embeddings.LayerNorm.weight", model.tensor("emb.ln.w", d)
    yield "embeddings.LayerNorm.bias", model.tensor("emb.ln.b", d)
    shapes = {"fi": (wide, d), "fo": (d, wide), "aln": (d,), "oln": (d,)}
    for layer in range(sizes.layers):
        for part, name in LAYER_PARTS.items():
            shape = shapes.get(part, (d, d))
            home = f"encoder.layer.{layer}.{name}"
            yield f"{home}.weight", model.tensor(f"l{layer}.{part}.w", *shape)
            yield f"{home}.bias", model.tensor(f"l{layer}.{part}.b", shape[0])


def _config(model: PackedModel) -> dict[str, Any]:
    sizes = model.sizes
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "attention_probs_dropout_prob": 0.1,
        "hidden_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_size": sizes.hidden,
        "initializer_range": 0.02,
        "intermediate_size": sizes.feed_forward,
        "layer_norm_eps": float(f"{sizes.epsilon:.6g}"),
        "max_position_embeddings": sizes.positions,
        "num_attention_heads": sizes.heads,
        "num_hidden_layers": sizes.layers,
        "pad_token_id": model.specials["pad"],
        "position_embedding_type": "absolute",
        "type_vocab_size": sizes.token_types,
        "vocab_size": sizes.vocabulary,
        "dtype": "float32",
    }


def _special_names(model: PackedModel) -> dict[str, str]:
    names = {f"{role}_token": model.pieces[number] for role, number in model.specials.items()}
    names |= {"cls_token": names["bos_token"], "sep_token": names["eos_token"]}
    return names | ({"mask_token": MASK} if MASK in model.pieces else {})


def _tokenizer(model: PackedModel) -> Any:
    """XLM-R's way from text to pieces: normalise, cut at blanks, mark beginnings, best pieces."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
    from tokenizers.processors import TemplateProcessing

    scored = list(zip(model.pieces, map(float, model.scores), strict=True))
    tokenizer = Tokenizer(models.Unigram(scored, model.specials["unk"], False))
    table = compile_replacements(model.normal_form)
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),  # the map knows single code points only
            normalizers.Precompiled(table),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always"),
        ]
    )
    names = _special_names(model)
    tokenizer.add_special_tokens(
        [AddedToken(name, special=True, normalized=False) for name in dict.fromkeys(names.values())]
    )
    first, last = names["bos_token"], names["eos_token"]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} {last} $B {last}",
        special_tokens=[(first, model.specials["bos"]), (last, model.specials["eos"])],
    )
    return tokenizer
