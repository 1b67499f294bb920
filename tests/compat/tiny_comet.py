"""A tiny COMET checkpoint with random weights, as the published ones lie on disk."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tests.tiny_models import WORDS, save_tokenizer

SETTINGS = {
    "activations": "Tanh",
    "dropout": 0.1,
    "encoder_model": "XLM-RoBERTa",
    "hidden_sizes": [24, 8],
    "layer": "mix",
    "layer_norm": True,
    "layer_transformation": "softmax",
    "loss": "mse",
    "pool": "avg",
    "pretrained_model": "tiny",
    "keep_embeddings_frozen": True,
    "nr_frozen_epochs": 0.3,
    "optimizer": "AdamW",
    "batch_size": 4,
}
FEATURES = {"regression_metric": 6, "referenceless_regression_metric": 4, "unified_metric": 1}
HIDDEN, DEPTH = 16, 3


def save_comet(folder: Path, kind: str = "regression_metric", **changes: Any) -> Path:
    """Write hparams.yaml, model.safetensors and encoder/ of a model of a kind; its folder.

    Weights are numpy's, in the order of their names, so that they are the same everywhere.
    """
    import yaml
    from safetensors.numpy import save_file
    from transformers import AutoConfig, AutoModel

    settings = {**SETTINGS, "class_identifier": kind, **changes}
    if kind == "unified_metric":
        settings = {
            "input_segments": ["mt", "src", "ref"],
            "sent_layer": settings.pop("layer"),
            **settings,
        }
    config = AutoConfig.for_model(
        "xlm-roberta",
        vocab_size=len(WORDS) + 5,
        hidden_size=HIDDEN,
        num_hidden_layers=DEPTH,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=26,
        pad_token_id=1,
        type_vocab_size=1,
    )
    model = AutoModel.from_config(config, add_pooling_layer=False)
    shapes = {f"encoder.model.{n}": p.shape for n, p in model.named_parameters()}
    shapes |= {f"layerwise_attention.scalar_parameters.{n}": (1,) for n in range(DEPTH + 1)}
    shapes |= {"layerwise_attention.gamma": (1,)}
    sizes = [FEATURES[kind] * HIDDEN, *settings["hidden_sizes"], 1]
    for n, (before, after) in enumerate(pairwise(sizes)):
        layer = f"estimator.ff.{3 * n}"
        shapes |= {f"{layer}.weight": (after, before), f"{layer}.bias": (after,)}
    generator = np.random.default_rng(7)
    drawn = {name: generator.normal(scale=0.4, size=shapes[name]) for name in sorted(shapes)}
    weights = {n: (w + ("LayerNorm.weight" in n)).astype(np.float32) for n, w in drawn.items()}
    encoder = folder / "encoder"
    encoder.mkdir(parents=True)
    config.save_pretrained(encoder)
    save_tokenizer("xlm-roberta", encoder)
    (folder / "hparams.yaml").write_text(yaml.safe_dump(settings))
    save_file(weights, folder / "model.safetensors")
    return folder


def save_checkpoint(folder: Path) -> Path:
    """Put the weights into checkpoints/model.ckpt, as Lightning writes it; the file."""
    import torch
    from safetensors.torch import load_file

    file = folder / "checkpoints" / "model.ckpt"
    file.parent.mkdir()
    weights = load_file(folder / "model.safetensors")
    torch.save({"epoch": 1, "state_dict": weights, "hyper_parameters": {"pool": "avg"}}, file)
    (folder / "model.safetensors").unlink()
    return file
