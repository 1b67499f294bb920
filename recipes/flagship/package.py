"""Stage 5: compress trained models and report the effect on da/wmt15.

    python -m recipes.flagship.package student CORPUS student1/ -o OUT/
    python -m recipes.flagship.package base CORPUS teacher1/ --rank 64 -o OUT/

Weights are written in files of at most 15 MB; `recipes.flagship.ship` joins them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from recipes.flagship.corpus import Corpus
from recipes.flagship.train import TrainingRun
from tertium.encoders.model_settings import ROW_SCALE
from tertium.metrics.bundled.bundled_model import LEFT, RIGHT, apply_weight_delta, dequantize

PART_BYTES = 15_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=("student", "base"), help="which model")
    parser.add_argument("corpus", type=Path, help="corpus folder")
    parser.add_argument("model", type=Path, help="folder of the trained model")
    parser.add_argument("--rank", type=int, default=64, help="rank of the difference (default: 64)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="output folder")
    args = parser.parse_args()
    corpus = Corpus.load(args.corpus)
    file = args.corpus / "surface.npy"
    surface = np.load(file) if file.exists() else None
    run = TrainingRun.load(corpus, args.model, surface)
    before = run.dev_correlation()
    tuned = {k: v.detach().cpu() for k, v in run.net.state_dict().items()}
    if args.kind == "student":
        compact = quantize(tuned)
        shrunk = dequantize(compact)
    else:
        published = load_file(run.folder / "model.safetensors")
        public = {f"encoder.backbone.{name}": value for name, value in published.items()}
        public = {name: value for name, value in public.items() if name in tuned}
        compact = low_rank_difference(tuned, public, rank=args.rank)
        shrunk = apply_weight_delta(public, compact)
        shrunk |= {k: v for k, v in tuned.items() if k not in shrunk}
    run.net.load_state_dict(shrunk)
    after = run.dev_correlation()
    metadata = {
        "scale": str(run.scale),
        "shift": str(run.shift),
        "model": run.model,
        "da/wmt15": f"{after:.4f}",
    }
    size = write_parts(compact, args.output, metadata)
    print(f"{args.model}: da/wmt15 {before:.4f} -> {after:.4f}, {size / 1e6:.1f} MB")


def quantize(weights: Mapping[str, Tensor], *, smallest: int = 4096) -> dict[str, Tensor]:
    """Store matrices of at least `smallest` elements as int8 rows, other tensors as float16."""
    compact: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim == 2 and weight.numel() >= smallest:
            scale = weight.float().abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127
            compact[name] = (weight.float() / scale).round().to(torch.int8).contiguous()
            compact[name + ROW_SCALE] = scale.squeeze(1).to(torch.float32)
        else:
            compact[name] = weight.to(torch.float16).contiguous()
    return compact


def low_rank_difference(
    tuned: Mapping[str, Tensor], public: Mapping[str, Tensor], *, rank: int
) -> dict[str, Tensor]:
    """Return the difference of tuned and public weights, low-rank for matrices.

    A matrix (m, n) becomes `.left` (rank, m) and `.right` (rank, n); it equals left' right.
    Unchanged weights are omitted; weights that the public model lacks are stored in full.
    """
    compact: dict[str, Tensor] = {}
    for name, weight in tuned.items():
        base = public.get(name)
        if base is None:
            compact[name] = weight.to(torch.float16).contiguous()
            continue
        delta = weight.float() - base.float()
        if not bool(delta.any()):
            continue
        if delta.ndim == 2 and min(delta.shape) > rank:
            u, s, v = torch.linalg.svd(delta, full_matrices=False)
            root = s[:rank].sqrt()[:, None]
            factors = {name + LEFT: root * u[:, :rank].T, name + RIGHT: root * v[:rank]}
            compact |= quantize(factors, smallest=0)
        else:
            compact[name] = delta.to(torch.float16).contiguous()
    return compact


def write_parts(compact: dict[str, Tensor], folder: Path, metadata: dict[str, str]) -> int:
    """Write weights in files of at most PART_BYTES; return the total size in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    parts: list[dict[str, Tensor]] = [{}]
    filled = total = 0
    for name, value in sorted(compact.items()):
        size = value.numel() * value.element_size()
        if filled + size > PART_BYTES and parts[-1]:
            parts.append({})
            filled = 0
        parts[-1][name] = value.contiguous()
        filled += size
        total += size
    for n, part in enumerate(parts, start=1):
        save_file(part, folder / f"weights-{n}.safetensors", metadata)
    return total


if __name__ == "__main__":
    main()
