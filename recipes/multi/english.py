"""tertium-base as the teacher for English: what it says of outputs that nobody judged.

python -m recipes.multi.english pack -o parts/
python -m recipes.multi.english score --parts parts/ --run run/ --device cuda

`pack` writes its full weights (public encoder plus difference) as int8 rows in `english-N/`, small
enough to send one by one, with a few scores by which `score` checks what it put together again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from recipes.multi.store import ARCHIVE, read_lines, read_outputs
from tertium.metrics.flagship.compact import quantise, restore
from tertium.metrics.flagship.cross import CrossHead, judge

FOLDERS = 3
LONGEST = 250  # pieces of either text
KNOWN = (
    ("The house is on fire.", "The house is burning."),
    ("A cat sits in the garden.", "The minister resigned on Friday."),
    ("He did not come to the meeting yesterday.", "He did not come to yesterday's meeting."),
)
TOLERANCE = 0.05  # bf16 and int8 rows; scores have a spread of about 1
Floats = NDArray[np.float32]


def pack(folder: Path) -> None:
    from transformers import AutoModel

    from tertium.metrics.flagship.base import TertiumBase

    teacher = TertiumBase()
    inner = teacher._judge
    encoder = AutoModel.from_pretrained(inner._weights.folder)
    inner._tune(encoder)
    weights = {f"encoder.{n}": v for n, v in encoder.state_dict().items()}
    weights |= {f"head.{n}": v for n, v in inner._head.state_dict().items()}
    compact = quantise({n: v for n, v in weights.items() if v.is_floating_point()})
    told = {
        "scale": teacher.settings.scale,
        "shift": teacher.settings.shift,
        "known": teacher.judge(*map(list, zip(*KNOWN, strict=True))).tolist(),
    }
    files: list[dict[str, torch.Tensor]] = [{} for _ in range(FOLDERS)]
    for name in sorted(compact, key=lambda name: -compact[name].nbytes):
        lightest = min(files, key=lambda file: sum(tensor.nbytes for tensor in file.values()))
        lightest[name] = compact[name]
    for n, file in enumerate(files):
        part = folder / f"english-{n}"
        part.mkdir(parents=True, exist_ok=True)
        save_file(file, part / "weights.safetensors")
        (part / "english.json").write_text(json.dumps(told))
        for name in ("config.json", "tokenizer.json"):
            shutil.copy(inner._weights.folder / name, part)


class Teacher:
    """tertium-base put together again on a device, in bfloat16."""

    def __init__(self, parts: Path, device: str) -> None:
        from tokenizers import Tokenizer
        from transformers import AutoConfig, AutoModel

        folders = [parts / f"english-{n}" for n in range(FOLDERS)]
        told = json.loads((folders[0] / "english.json").read_text())
        compact = {n: v for f in folders for n, v in load_file(f / "weights.safetensors").items()}
        weights, self.device = restore(compact), device
        self.scale, self.shift = told["scale"], told["shift"]
        settings = AutoConfig.from_pretrained(folders[0])
        self.encoder: Any = AutoModel.from_config(settings)
        self.head = CrossHead(settings.hidden_size, dropout=0.0)
        for prefix, module in (("encoder.", self.encoder), ("head.", self.head)):
            mine = {n.removeprefix(prefix): v for n, v in weights.items() if n.startswith(prefix)}
            missing, unknown = module.load_state_dict(mine, strict=False)
            if unknown or any(not name.endswith("position_ids") for name in missing):
                raise ValueError(f"tertium-base does not fit: {missing}, {unknown}")
            module.to(device).eval()
        if device != "cpu":
            self.encoder.bfloat16()
        self.tokenizer = Tokenizer.from_file(str(folders[0] / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        said = self(*map(list, zip(*KNOWN, strict=True)))
        print("tertium-base says", said, "and said", told["known"], flush=True)
        if np.abs(said - told["known"]).max() > TOLERANCE:
            raise ValueError("tertium-base is not what it was")

    def __call__(self, hypotheses: Sequence[str], references: Sequence[str]) -> Floats:
        """Raw scores of pairs, in batches of similar length."""
        start, end = (self.tokenizer.token_to_id(t) for t in ("<s>", "</s>"))
        left, right = (
            [
                e.ids[:LONGEST]
                for e in self.tokenizer.encode_batch(list(t), add_special_tokens=False)
            ]
            for t in (references, hypotheses)
        )
        rows = [[start, *a, end, end, *b, end] for a, b in zip(left, right, strict=True)]
        order = np.argsort([len(row) for row in rows], kind="stable")
        scores, at = np.zeros(len(rows), np.float32), 0
        while at < len(rows):
            size = min(max(1, 40_000 // len(rows[order[min(at + 64, len(rows) - 1)]])), len(rows))
            chosen = order[at : at + size]
            scores[chosen] = self._run([rows[n] for n in chosen])
            at += size
        return scores

    @torch.no_grad()
    def _run(self, rows: list[list[int]]) -> Floats:
        width = max(map(len, rows))
        ids = torch.ones(len(rows), width, dtype=torch.long)  # 1 is the padding of mpnet
        for n, row in enumerate(rows):
            ids[n, : len(row)] = torch.tensor(row)
        mask = torch.arange(width) < torch.tensor([len(row) for row in rows])[:, None]
        ids, mask = ids.to(self.device), mask.to(self.device)
        states = self.encoder(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        raw = judge(self.head, states.float(), mask) * self.scale + self.shift
        return raw.cpu().numpy()


def ranking_pairs(parts: Path, most: int) -> tuple[NDArray[np.int64], list[tuple[str, str]]]:
    """Outputs into English that were compared: rows of `rankings`, hypothesis and reference."""
    names = json.loads((parts / "rankings/names.json").read_text())
    into_english = np.array([name.endswith("-en") for name in names])
    with np.load(parts / "rankings/rows.npz") as stored:
        rows = np.unique(stored["comparisons"][:, :2])
        hypothesis, reference = stored["hypothesis"], stored["reference"]
        rows = rows[into_english[stored["set"][rows]]]
    rows = np.random.default_rng(3).permutation(rows)[:most]
    lines = read_lines(parts / "rankings/texts.xz")
    return rows, [(lines[hypothesis[row]], lines[reference[row]]) for row in rows]


def output_pairs(parts: Path, most: int) -> tuple[NDArray[np.int64], list[tuple[str, str]]]:
    """Outputs into English of FLORES, those first that `train teach` takes: one seed."""
    from recipes.multi.examples import Outputs

    outputs = Outputs(parts / "outputs")
    english = {n for n, (*_, to) in enumerate(outputs.systems) if outputs.names[to] == "en"}
    sample = outputs.sample(10**9, np.random.default_rng(5))
    rows = np.array([r for r in sample.tolist() if r[1] in english][:most])
    names, blocks = read_outputs(parts / "outputs" / ARCHIVE)
    texts = []
    for line, system in rows.tolist():
        own, _, target = outputs.systems[system]
        texts.append((blocks[names[own]][line], blocks[names[target]][line]))
    return rows, texts


def score(parts: Path, run: Path, device: str, most: Sequence[int]) -> None:
    teacher, begin = Teacher(parts, device), time.monotonic()
    for name, pairs, count in (
        ("rankings", ranking_pairs, most[0]),
        ("outputs", output_pairs, most[1]),
    ):
        rows, texts = pairs(parts, count)
        scores = teacher([h for h, _ in texts], [r for _, r in texts])
        folder = run / f"english-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "rows.npy", rows)
        np.save(folder / "scores.npy", scores)
        print(name, len(rows), "rows in", round(time.monotonic() - begin), "s", flush=True)
    (run / "english-outputs" / "DONE").touch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=("pack", "score"))
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--parts", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--most", type=int, nargs=2, default=[400_000, 250_000])
    given = parser.parse_args()
    if given.stage == "pack":
        pack(given.out)
    else:
        score(given.parts, given.run, given.device, given.most)


if __name__ == "__main__":
    main()
