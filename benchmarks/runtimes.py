"""The encoder in int8 compared with onnxruntime and OpenVINO, on one thread.

    pip install onnx onnxscript onnxruntime openvino
    python -m benchmarks runtimes [--encoder minilm] [--texts 200] [--rounds 7]

The same weights are exported to ONNX and quantized by onnxruntime: weights per row, activations per
tensor and batch (tertium: per token, exact in any batch). onnxruntime and OpenVINO get token ids in
batches of similar length with little padding; tertium gets texts and also tokenizes them.
Contenders alternate; a ratio is the median over rounds of CPU seconds compared with tertium int8.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.corpus import wmt17
from benchmarks.encoding import transformers_pass
from tertium.core.arrays import IntArray
from tertium.core.runtime import runtime
from tertium.encoders import load_encoder
from tertium.encoders.batching import plan_batches
from tertium.encoders.bert import BertModel
from tertium.encoders.transformer_encoder import TransformerEncoder, open_network

PACKAGES = ("onnx", "onnxscript", "onnxruntime", "openvino")
BATCH_TOKENS, MAX_PADDING = 1024, 64  # of the batches of the others
Pass = Callable[[], Any]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", default="minilm", help="a BERT encoder; all of its layers run")
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args(arguments)
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: pip install {' '.join(missing)}")
        return
    torch.set_num_threads(1)
    plain = load_encoder(args.encoder)
    assert isinstance(plain, TransformerEncoder)
    name = f"{args.encoder}@{plain.settings.depth}"
    texts = list(next(iter(wmt17(args.texts).systems.values())))
    with tempfile.TemporaryDirectory() as folder, runtime(device="cpu", threads=1, cache=False):
        contenders = make_contenders(name, texts, Path(folder))
        seconds: dict[str, list[float]] = {label: [] for label in contenders}
        for call in contenders.values():
            call()
        for _ in range(args.rounds):
            for label, call in contenders.items():
                start = time.process_time()
                call()
                seconds[label].append(time.process_time() - start)
    base = np.array(seconds["tertium int8"])
    print(f"{name}, {len(texts)} texts, {args.rounds} rounds, CPU seconds")
    for label, values in seconds.items():
        ratio = np.median(np.array(values) / base)
        print(f"{label:20}{np.median(values):6.2f} s, least {min(values):6.2f} s {ratio:6.2f} x")


def make_contenders(name: str, texts: list[str], folder: Path) -> dict[str, Pass]:
    """Return one pass over all texts by contender."""
    plain, int8 = load_encoder(name), load_encoder(name, precision="int8")
    assert isinstance(plain, TransformerEncoder)
    batches = list(make_batches(plain, texts))
    files = export_model(plain.weights.folder, folder)
    contenders: dict[str, Pass] = {
        f"tertium {precision}": partial(encoder.encode, texts, sentences=False)
        for precision, encoder in (("fp32", plain), ("int8", int8))
    }
    contenders["transformers fp32"] = transformers_pass(plain, texts, "fp32")
    for precision, file in files.items():
        contenders[f"onnxruntime {precision}"] = onnxruntime_pass(file, batches)
        contenders[f"OpenVINO {precision}"] = openvino_pass(file, batches)
    return contenders


def make_batches(
    encoder: TransformerEncoder, texts: list[str]
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield token ids and masks, (texts, positions), of texts of similar length."""
    tokenizer = encoder.tokenizer
    before, after = tokenizer.prefix_ids, tokenizer.suffix_ids
    rows = [(*before, *ids, *after) for ids in tokenizer.encode_ids(texts)]
    for batch in plan_batches(
        [len(row) for row in rows], budget=BATCH_TOKENS, overhead=MAX_PADDING
    ):
        lengths = np.array([len(rows[n]) for n in batch])
        mask = np.arange(lengths.max()) < lengths[:, None]
        ids = np.full(mask.shape, encoder.network.pad_token_id, dtype=np.int64)
        ids[mask] = np.concatenate([rows[n] for n in batch])
        yield ids, mask.astype(np.int64)


class PlainBert(nn.Module):
    """The network of a `BertModel` in operations that exporters know."""

    def __init__(self, model: BertModel) -> None:
        super().__init__()
        self.model = model
        self.projections = nn.ModuleList(
            nn.ModuleList(split_linear(layer.qkv, 3)) for layer in cast(Any, model.layers)
        )

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.model._embed(ids).view(*ids.shape, -1)  # (texts, positions, hidden)
        bias = (1.0 - mask.float())[:, None, None, :] * -1e4
        for layer, parts in zip(cast(Any, self.model.layers), self.projections, strict=True):
            query, key, value = (
                part(x).view(*ids.shape, layer.heads, -1).transpose(1, 2)
                for part in cast(Any, parts)
            )
            scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5 + bias
            attended = (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)
            x = layer.norm1(x + layer.out(attended))
            x = layer.norm2(x + layer.down(F.gelu(layer.up(x))))
        return x


def split_linear(layer: nn.Linear, count: int) -> Iterator[nn.Linear]:
    """Yield linear layers with consecutive parts of the outputs of a layer."""
    for weight, bias in zip(layer.weight.chunk(count), layer.bias.chunk(count), strict=True):
        part = nn.Linear(weight.shape[1], weight.shape[0])
        part.load_state_dict({"weight": weight, "bias": bias})
        yield part


def export_model(source: Path, target: Path) -> dict[str, str]:
    """Write the model of a folder as ONNX in fp32 and int8; returns the files by precision."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with mock.patch("tertium.encoders.linear_layers._can_pack", return_value=False):
        model = PlainBert(cast(BertModel, open_network(source, "cpu", "fp32"))).eval()
    files = {precision: str(target / f"{precision}.onnx") for precision in ("fp32", "int8")}
    ids = torch.randint(5, 1000, (4, 20))
    sizes = {0: torch.export.Dim("texts", min=2), 1: torch.export.Dim("positions", min=2, max=512)}
    torch.onnx.export(
        model,
        (ids, torch.ones_like(ids)),
        files["fp32"],
        input_names=["ids", "mask"],
        dynamic_shapes=(sizes, sizes),
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    prepared = str(target / "prepared.onnx")
    quant_pre_process(files["fp32"], prepared, skip_symbolic_shape=True)
    quantize_dynamic(prepared, files["int8"], per_channel=True, weight_type=QuantType.QInt8)
    return files


def onnxruntime_pass(file: str, batches: Sequence[tuple[IntArray, IntArray]]) -> Pass:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda: [session.run(None, {"ids": ids, "mask": mask}) for ids, mask in batches]


def openvino_pass(file: str, batches: Sequence[tuple[IntArray, IntArray]]) -> Pass:
    import openvino

    options = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    model = openvino.Core().compile_model(file, "CPU", options)
    return lambda: [model([ids, mask]) for ids, mask in batches]


if __name__ == "__main__":
    main()
