"""Train a multilingual student of an English sentence encoder, for scores without references.

    python -m recipes.student_training student/ --teacher MPNET --start E5 --seconds 1000 -o out/

`student/` is the output of `recipes.student_texts`; MPNET and E5 are folders of encoders. The
student starts as E5 with its most frequent pieces. It learns, without human scores,

- the teacher's vector of the English side, for the text and for its English side (Reimers and
  Gurevych 2020), in the main directions of the teacher's vectors;
- the teacher's cosine of reference and output, as the cosine of source and output;
- the teacher's F1 of greedy matches of reference and output, at `LAYER`, as the F1 of source and
  output up to a linear function.

Word vectors have 4 bits in every forward pass. `out/` is written at the end.
"""

from __future__ import annotations

import argparse
import json
import lzma
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize
from transformers import AutoModel, BertConfig, BertModel

from tertium.core.resampling import make_rng

Array = NDArray[Any]
LAYER = 8  # of teacher and student, whose states are matched
LONGEST = 96  # pieces of a text
PIECES = 108_000  # of the student; `compress` keeps the more frequent ones
KEPT_PIECES = 90_000
RATE, WARMUP, WORD_FACTOR, LINE_FACTOR = 4e-4, 0.03, 0.5, 5.0
BATCH, TEACHER_BATCH = 1_536, 512  # items, texts
PAD, SPECIAL = 1, 4  # the first four pieces are special ones
BLOCK = 32  # word vectors with one scale
WORDS = "embeddings.word_embeddings"


@dataclass(frozen=True)
class Pieces:
    """Pieces of texts, one after another."""

    ids: Array
    starts: Array
    lengths: Array

    @classmethod
    def join(cls, texts: Sequence[Array]) -> Pieces:
        lengths = np.array([len(text) for text in texts])
        return cls(np.concatenate(texts), lengths.cumsum() - lengths, lengths)

    def pad(self, numbers: Array) -> tuple[Tensor, Tensor]:
        """Return ids and mask of some texts, as matrices."""
        lengths = self.lengths[numbers]
        places = np.arange(-(-int(lengths.max()) // 8) * 8)
        mask = places < lengths[:, None]
        ids = np.full(mask.shape, PAD, np.int64)
        ids[mask] = self.ids[(self.starts[numbers][:, None] + places)[mask]]
        return torch.from_numpy(ids), torch.from_numpy(mask)


def tokenize(tokenizer: Tokenizer, texts: Sequence[str]) -> Pieces:
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    encoded = (
        encoding.ids
        for start in range(0, len(texts), 50_000)
        for encoding in tokenizer.encode_batch(texts[start : start + 50_000])
    )
    return Pieces.join([np.array(ids, np.int32) for ids in encoded])


def keep_frequent(folder: Path, texts: Sequence[str], size: int) -> tuple[Tokenizer, Array]:
    """Return a tokenizer of frequent pieces and all single characters, and their old numbers."""
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    old = Tokenizer.from_file(str(folder / "tokenizer.json"))
    counts = np.bincount(tokenize(old, texts).ids, minlength=len(vocabulary)).astype(float)
    counts[: len(vocabulary)][[len(piece.strip("▁")) <= 1 for piece, _ in vocabulary]] = np.inf
    counts[:SPECIAL] = np.inf
    piece_numbers = np.sort(np.argsort(-counts, kind="stable")[:size])
    content["model"]["vocab"] = [vocabulary[number] for number in piece_numbers]
    content["added_tokens"] = [t for t in content["added_tokens"] if t["id"] < SPECIAL]
    return Tokenizer.from_str(json.dumps(content)), piece_numbers


def match(first: Tensor, first_mask: Tensor, second: Tensor, second_mask: Tensor) -> Tensor:
    """Return the F1 of greedy cosine matches of pieces that are not special."""

    def without_ends(mask: Tensor) -> Tensor:
        inner = mask.clone()
        inner[:, 0] = False
        inner[torch.arange(len(mask), device=mask.device), mask.sum(1) - 1] = False
        return inner

    rows, columns = without_ends(first_mask), without_ends(second_mask)
    cosines = F.normalize(first.float(), dim=-1) @ F.normalize(second.float(), dim=-1).mT
    cosines = cosines.masked_fill(~(rows[:, :, None] & columns[:, None]), -1e4)
    precision = (cosines.amax(2).clamp(min=-1) * rows).sum(1) / rows.sum(1).clamp(min=1)
    recall = (cosines.amax(1).clamp(min=-1) * columns).sum(1) / columns.sum(1).clamp(min=1)
    return 2 * precision * recall / (precision + recall).clamp(min=1e-3)


def encode(
    network: nn.Module, pieces: Pieces, numbers: Array, device: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Return unit vectors of texts, states of `LAYER` and the mask."""
    ids, mask = (tensor.to(device, non_blocking=True) for tensor in pieces.pad(numbers))
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        output = network(input_ids=ids, attention_mask=mask.long(), output_hidden_states=True)
    states = output.hidden_states
    sums = (states[-1].float() * mask[..., None]).sum(1)
    return F.normalize(sums / mask.sum(1, keepdim=True), dim=-1), states[LAYER], mask


@dataclass
class TeacherOutputs:
    """Outputs of the teacher: vectors of English texts, F1 of references and outputs."""

    vectors: Tensor
    matches: Array
    unrelated: float  # the mean F1 of unrelated texts


@torch.inference_mode()
def teach(
    folder: Path, texts: Sequence[str], items: Array, width: int, device: str
) -> TeacherOutputs:
    """Ask the teacher about all English texts, and about items with an output."""
    teacher: Any = AutoModel.from_pretrained(folder, add_pooling_layer=False).to(device).eval()
    pieces = tokenize(Tokenizer.from_file(str(folder / "tokenizer.json")), texts)
    english = np.unique(items[:, 1:])
    english = english[english >= 0]
    vectors = torch.zeros(len(texts), teacher.config.hidden_size, dtype=torch.float16)
    by_length = english[np.argsort(pieces.lengths[english], kind="stable")]
    for start in range(0, len(by_length), TEACHER_BATCH):
        numbers = by_length[start : start + TEACHER_BATCH]
        vectors[torch.from_numpy(numbers).long()] = (
            encode(teacher, pieces, numbers, device)[0].half().cpu()
        )

    def compare(left: Array, right: Array) -> Array:
        values = np.zeros(len(left), np.float32)
        longest = np.maximum(pieces.lengths[left], pieces.lengths[right])
        order = np.argsort(longest, kind="stable")
        for start in range(0, len(order), TEACHER_BATCH):
            rows = order[start : start + TEACHER_BATCH]
            sides = [encode(teacher, pieces, side[rows], device)[1:] for side in (left, right)]
            values[rows] = match(*sides[0], *sides[1]).cpu().numpy()
        return values

    has_output = items[:, 2] >= 0
    matches = np.zeros(len(items), np.float32)
    matches[has_output] = compare(items[has_output, 1], items[has_output, 2])
    sample = items[:: max(1, len(items) // 10_000), 1]
    unrelated = float(compare(sample, np.roll(sample, 1)).mean())
    directions = torch.linalg.svd(vectors[torch.from_numpy(english[::20]).long()].float())[2]
    projected = F.normalize(vectors.float() @ directions[:width].T, dim=-1)
    return TeacherOutputs(projected.half().to(device), matches, unrelated)


def to_blocks(words: Tensor) -> tuple[Tensor, Tensor]:
    """Return word vectors as whole numbers from -8 to 7 and the scales of their blocks."""
    blocks = words.view(len(words), -1, BLOCK)
    scales = blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True)) / -8
    scales = torch.where(scales == 0, torch.ones_like(scales), scales)
    return (blocks / scales).round().clamp(-8, 7), scales


class RoundedWords(nn.Module):
    """Word vectors of 4 bits whose gradient passes to the exact ones."""

    def forward(self, words: Tensor) -> Tensor:
        numbers, scales = to_blocks(words.detach())
        return words + ((numbers * scales).view_as(words) - words).detach()


def make_student(folder: Path, piece_numbers: Array) -> BertModel:
    """Return the network of a folder with some of its pieces."""
    weights = load_file(folder / "model.safetensors")
    weights[f"{WORDS}.weight"] = weights[f"{WORDS}.weight"][torch.from_numpy(piece_numbers).long()]
    config = BertConfig.from_pretrained(
        folder,
        vocab_size=len(piece_numbers),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    network = BertModel(config, add_pooling_layer=False)
    network.load_state_dict({n: w.float() for n, w in weights.items()}, strict=False)
    return network


def iterate_batches(items: Array, lengths: Array, seed: int) -> Iterator[Array]:
    """Yield rows of items of similar length, forever."""
    generator = make_rng(seed)
    size = min(BATCH, len(items))
    while True:
        near = lengths + generator.integers(0, 6, len(items))
        order = np.lexsort((generator.random(len(items)), near))
        for batch in generator.permutation(len(items) // size):
            yield order[batch * size : (batch + 1) * size]


def compute_loss(
    network: nn.Module,
    line: Tensor,
    pieces: Pieces,
    items: Array,
    targets: TeacherOutputs,
    rows: Array,
) -> Tensor:
    """Return the loss of a batch of items."""
    device = line.device.type
    foreign, english, output = items[rows].T
    target = targets.vectors[torch.from_numpy(english).long().to(device)].float()
    vector, states, mask = encode(network, pieces, foreign, device)
    english_vector, english_states, english_mask = encode(network, pieces, english, device)
    loss = ((vector - target) ** 2).sum(1).mean()
    loss = loss + 0.5 * ((english_vector - target) ** 2).sum(1).mean()
    near = F.log_softmax(20 * target @ target.T, -1)
    guessed = F.log_softmax(20 * vector @ target.T, -1)
    loss = loss + 0.1 * F.kl_div(guessed, near, log_target=True, reduction="batchmean")
    has_output = np.flatnonzero(output >= 0)
    if len(has_output):
        place = torch.from_numpy(has_output).to(device)
        taught = targets.vectors[torch.from_numpy(output[has_output]).long().to(device)].float()
        output_vector, output_states, output_mask = encode(
            network, pieces, output[has_output], device
        )
        loss = loss + 0.5 * ((output_vector - taught) ** 2).sum(1).mean()
        cosines = (vector[place] * output_vector).sum(1)
        loss = loss + 10 * ((cosines - (target[place] * taught).sum(1)) ** 2).mean()
        matches = match(states[place], mask[place], output_states, output_mask)
        wanted = torch.from_numpy(targets.matches[rows[has_output]]).to(device)
        loss = loss + 10 * ((line[0] * matches + line[1] - wanted) ** 2).mean()
        signs = (wanted - wanted.roll(1)).sign()
        loss = loss + 0.2 * F.softplus(-30 * signs * (matches - matches.roll(1))).mean()
    quarter = torch.arange(0, len(rows), 4, device=device)
    for shift, wanted_match, weight in ((1, targets.unrelated, 2.5), (0, 1.0, 1.0)):
        partner = (quarter + shift) % len(rows)
        matches = match(
            states[quarter], mask[quarter], english_states[partner], english_mask[partner]
        )
        loss = loss + weight * ((line[0] * matches + line[1] - wanted_match) ** 2).mean()
    return loss


def train(
    network: BertModel,
    pieces: Pieces,
    items: Array,
    targets: TeacherOutputs,
    seconds: float,
    device: str,
) -> None:
    """Train for some seconds; the rate falls to 0."""
    network.to(device).train()
    embeddings: Any = network.embeddings.word_embeddings
    parametrize.register_parametrization(embeddings, "weight", RoundedWords(), unsafe=True)
    words = embeddings.parametrizations.weight.original
    body = [parameter for parameter in network.parameters() if parameter is not words]
    line = nn.Parameter(torch.tensor([1.0, 0.0], device=device))
    groups = [{"params": body}, {"params": [words]}, {"params": [line]}]
    optimizer = torch.optim.AdamW(groups, RATE, betas=(0.9, 0.98), weight_decay=0.01)
    longest = pieces.lengths[np.where(items >= 0, items, items[:, :1])].max(1)
    waiting: queue.Queue[Array] = queue.Queue(12)

    def fill() -> None:
        for rows in iterate_batches(items, longest, seed=1):
            waiting.put(rows)

    threading.Thread(target=fill, daemon=True).start()
    start, steps = time.monotonic(), 0
    while (done := (time.monotonic() - start) / seconds) < 1:
        rate = RATE * min(1.0, (done + 1e-4) / WARMUP) * (1 - done)
        for group, factor in zip(
            optimizer.param_groups, (1.0, WORD_FACTOR, LINE_FACTOR), strict=True
        ):
            group["lr"] = rate * factor
        loss = compute_loss(network, line, pieces, items, targets, waiting.get())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(body, 1.0)
        optimizer.step()
        steps += 1
        if steps % 100 == 0:
            print(f"{done:4.0%} step {steps} loss {float(loss):.3f}", flush=True)
    parametrize.remove_parametrizations(embeddings, "weight")


def compress(weights: dict[str, Tensor], piece_numbers: Array) -> dict[str, Tensor]:
    """Return word vectors of some pieces in 4 bits, other matrices in 8 bits."""
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if name == f"{WORDS}.weight":
            numbers, scales = to_blocks(weight[torch.from_numpy(piece_numbers).long()])
            nibbles = (numbers + 8).to(torch.uint8)
            packed[f"{WORDS}.nibbles"] = nibbles[..., ::2] | (nibbles[..., 1::2] << 4)
            packed[f"{WORDS}.scales"] = scales.squeeze(-1).half()
        elif weight.ndim == 2 and weight.shape[0] * weight.shape[1] > 100_000 and "encoder" in name:
            scales = weight.abs().amax(1, keepdim=True) / 127
            packed[name] = (weight / scales).round().to(torch.int8)
            packed[f"{name}.row_scale"] = scales.squeeze(1)
        else:
            packed[name] = weight.half()
    return {name: tensor.contiguous() for name, tensor in packed.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=1_000)
    parser.add_argument("--items", type=int, help="use a sample of the items")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with lzma.open(arguments.texts / "texts.txt.xz", "rt", encoding="utf-8") as file:
        texts = file.read().split("\n")
    with lzma.open(arguments.texts / "items.npy.xz") as file:
        items = np.load(file)
    if arguments.items:
        items = make_rng(1).choice(items, arguments.items, replace=False)
        used, places = np.unique(items, return_inverse=True)
        texts = [texts[number] for number in used if number >= 0]
        items = places.reshape(items.shape) - int(used[0] < 0)
    tokenizer, piece_numbers = keep_frequent(arguments.start, texts[::4], PIECES)
    network = make_student(arguments.start, piece_numbers)
    targets = teach(arguments.teacher, texts, items, network.config.hidden_size, device)
    train(network, tokenize(tokenizer, texts), items, targets, arguments.seconds, device)
    arguments.output.mkdir(parents=True, exist_ok=True)
    tokenizer.no_truncation()
    tokenizer.save(str(arguments.output / "tokenizer.json"))
    small, numbers = keep_frequent(arguments.output, texts[::8], KEPT_PIECES)
    small.save(str(arguments.output / "tokenizer.json"))
    weights = {name: weight.detach().cpu() for name, weight in network.state_dict().items()}
    save_file(compress(weights, numbers), arguments.output / "weights.safetensors")


if __name__ == "__main__":
    main()
