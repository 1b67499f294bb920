"""Tiny random transformers of several architectures on disk, with tokenizers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tertium.encoders import Encoder

VOCABULARY = "the a cat dog sat on mat barked loudly , . ! un ##seen ##s go went home house big"
WORDS = tuple(VOCABULARY.split())


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that maps a model type to the folder of a random model."""
    pytest.importorskip("transformers")
    folders: dict[str, Path] = {}

    def make(kind: str) -> Path:
        if kind not in folders:
            folders[kind] = tmp_path_factory.mktemp(kind)
            save_model(kind, folders[kind])
        return folders[kind]

    return make


def save_model(kind: str, folder: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(7)
    AutoModel.from_config(AutoConfig.for_model(kind, **_make_config(kind))).save_pretrained(folder)
    save_tokenizer(kind, folder)


def _make_config(kind: str) -> dict[str, object]:
    size = len(WORDS) + 5
    if kind == "distilbert":
        return {
            "vocab_size": size,
            "dim": 16,
            "n_layers": 3,
            "n_heads": 2,
            "hidden_dim": 32,
            "max_position_embeddings": 24,
            "pad_token_id": 1,
        }
    if kind == "t5":
        return {
            "vocab_size": size,
            "d_model": 16,
            "d_kv": 8,
            "d_ff": 32,
            "num_layers": 3,
            "num_heads": 2,
            "pad_token_id": 1,
        }
    settings: dict[str, object] = {
        "vocab_size": size,
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 24,
        "pad_token_id": 1,
    }
    return {**settings, "embedding_size": 8} if kind == "albert" else settings


def save_tokenizer(kind: str, folder: Path) -> None:
    """Save a WordPiece tokenizer that adds [CLS] and [SEP], or only [SEP] for T5."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    vocabulary = {word: token_id for token_id, word in enumerate(names)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    template = "$A [SEP]" if kind == "t5" else "[CLS] $A [SEP]"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=20,
    ).save_pretrained(folder)
    # otherwise from_pretrained would use the architecture's own class, which reads other files
    settings = folder / "tokenizer_config.json"
    values = json.loads(settings.read_text())
    values["tokenizer_class"] = "PreTrainedTokenizerFast"
    settings.write_text(json.dumps(values))


@pytest.fixture(scope="session")
def minilm() -> str:
    """The name of a small real model; skips the test if it is not installed."""
    pytest.importorskip("torch")
    from tertium.encoders.weight_files import find_installed_weights

    if find_installed_weights("minilm") is None:
        pytest.skip("the weights of minilm are not installed")
    return "minilm"


@pytest.fixture(scope="session")
def e5() -> Encoder:
    """The encoder multilingual-e5; skips the test if it is not installed."""
    pytest.importorskip("torch")
    from tertium.encoders import load_encoder
    from tertium.encoders.weight_files import find_installed_weights

    if find_installed_weights("e5") is None:
        pytest.skip("e5 is not installed: tertium setup install e5")
    return load_encoder("e5")
