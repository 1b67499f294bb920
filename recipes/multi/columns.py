"""What the frozen tertium-multi sees in rows, as columns that a combination learns from.

    python -m recipes.multi.columns parts/ -o columns/ --device cuda

Rows are samples of packed parts (`recipes.multi.pack`): judgements that train, sets that choose and
test, paragraphs of neighbours, damaged outputs beside whole ones. Columns are what the network says
in each view, how pieces match at several of its layers, and what the texts alone tell.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from recipes.multi.damage import Damager
from recipes.multi.e5 import BLOCK_BYTES, Pieces, unpack_blocks
from recipes.multi.evaluate import LONGEST, cut, draw_damage, hide, set_rows
from recipes.multi.examples import VIEWS, Documents, Outputs, row_texts
from recipes.multi.network import (
    HYPOTHESIS,
    REFERENCE,
    SOURCE,
    Batch,
    Judgement,
    Multi,
    Texts,
    _padded,
    lay_out,
    send_batch,
)
from recipes.multi.store import Store, prepare, read_lines, write_pieces
from recipes.multi.tables import find_groups
from tertium.metrics.flagship.packaged import Packaged, load_packaged
from tertium.metrics.flagship.surface import NAMES, surface_features
from tertium.metrics.lexical.chrf import ChrF
from tertium.segment import Segment
from tertium.text.identification import identify

Floats = NDArray[np.float32]
Strings = tuple[str, str | None, str | None]
APART = (-1, 0, 2, 4)  # -1: word vectors by themselves, 0: with position and role
JOINT = (6, 12)
CENTRED = (2, 4)
MEASURES = ("P", "R", "qP", "qR", "cos", "order")
ROLES = {SOURCE: "s", REFERENCE: "r"}


@dataclass
class Rows:
    """Rows of one kind: their set, people's score, texts by pieces and as strings."""

    names: list[str] = field(default_factory=list)
    human: list[float] = field(default_factory=list)
    texts: list[Texts] = field(default_factory=list)
    strings: list[Strings] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)  # the row of the store, or the pair of damage

    def add(self, name: str, human: float, texts: Texts, strings: Strings, key: int) -> None:
        self.names.append(name)
        self.human.append(human)
        self.texts.append(cut(texts))
        self.strings.append(strings)
        self.keys.append(key)


class Looking(Multi):
    """The network that ships, and how well pieces match at its layers."""

    def __init__(self, model: Packaged) -> None:
        words = load_words(model)
        super().__init__(len(words), apart=4, dropout=0.0)
        every = model.restore_tensors("network.")
        weights = {name: w for name, w in every.items() if not name.startswith("readout.")}
        self.head.last = nn.Linear(512, len(weights["head.last.bias"]))
        self.load_state_dict({**weights, "words.weight": words})
        self.centres: dict[tuple[int, int], Tensor] = {}
        self.hidden = torch.zeros(0)  # what the last layer of the head was given
        self.head.last.register_forward_pre_hook(self._keep)

    def _keep(self, _: nn.Module, given: tuple[Tensor, ...]) -> None:
        self.hidden = given[0]

    def look(self, batch: Batch) -> tuple[Judgement, dict[int, Tensor]]:
        """What is said, and the states behind every layer that is looked at."""
        bare = self.words(batch.ids)
        states = bare + self.positions(batch.positions.clamp(max=511))
        states = self.norm(states + F.one_hot(batch.roles, 3).to(states.dtype) @ self.roles.weight)
        seen = {-1: bare, 0: states}
        for number, layer in enumerate(self.layers, 1):
            within = batch.texts if number <= self.apart else batch.rows
            states = layer(states, within, False)
            seen[number] = states
        shares = self.mix.softmax(0)
        mixed = sum(seen[n] * share for n, share in zip((4, 6, 8, 10, 11, 12), shares, strict=True))
        return self._judge(batch, mixed, [seen[3], seen[6], seen[12]]), seen

    def matches(self, batch: Batch, seen: dict[int, Tensor], names: Sequence[str]) -> Tensor:
        """(rows, names): NaN where a text is absent."""
        found = torch.full((batch.count, len(names)), float("nan"), device=seen[0].device)
        for role, mark in ROLES.items():
            which = batch.with_role[role]
            if not len(which):
                continue
            for layer in (*APART, *JOINT):
                for centred in (False, True)[: 1 + (layer in CENTRED)]:
                    where = [
                        (n, MEASURES.index(m))
                        for m in MEASURES
                        for n in [_find(names, f"{mark}{layer}{'c' * centred}{m}")]
                        if n >= 0
                    ]
                    if where:
                        states = (
                            seen[layer] - self._centre(layer, batch) if centred else seen[layer]
                        )
                        measured = self._match(batch, states, role)
                        for n, m in where:
                            found[which, n] = measured[:, m]
        return found

    def _centre(self, layer: int, batch: Batch) -> Tensor:
        table = torch.stack([self.centres[layer, role] for role in range(3)])
        return table[batch.roles]

    def _match(self, batch: Batch, states: Tensor, role: int) -> Tensor:
        which = batch.with_role[role]
        own, in_own = (x[which] for x in _padded(states, batch, HYPOTHESIS))
        other, in_other = _padded(states, batch, role)
        return measure(own, other, in_own, in_other)


def _find(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else -1


def measure(left: Tensor, right: Tensor, in_left: Tensor, in_right: Tensor) -> Tensor:
    """`MEASURES` of padded texts, (rows, 6)."""
    likeness = F.normalize(left, dim=-1) @ F.normalize(right, dim=-1).transpose(1, 2)
    precision, where = likeness.masked_fill(~in_right[:, None], -1).max(2)
    recall = likeness.masked_fill(~in_left[:, :, None], -1).amax(1)
    found = []
    for best, mask in ((precision, in_left), (recall, in_right)):
        weight = mask.float()
        size = weight.sum(1).clamp(min=1)
        found.append(
            (
                (best * weight).sum(1) / size,
                (((1 - best) ** 2 * weight).sum(1) / size).sqrt(),
            )
        )
    means = [
        (x * m[:, :, None]).sum(1) / m.sum(1, keepdim=True).clamp(min=1)
        for x, m in ((left, in_left), (right, in_right))
    ]
    m, n = (mask.sum(1, keepdim=True).clamp(min=1).float() for mask in (in_left, in_right))
    steps = torch.arange(left.shape[1], device=left.device)[None] - 1
    gap = ((steps + 0.5) / m - (where - 1 + 0.5) / n).abs() * in_left
    (p, qp), (r, qr) = found
    cos = F.cosine_similarity(means[0], means[1], dim=-1)
    return torch.stack([p, r, qp, qr, cos, gap.sum(1) / m[:, 0]], 1)


def load_words(model: Packaged) -> Tensor:
    """The embedding table that ships, unpacked."""
    nibbles = model.weights["words.nibbles"].numpy()
    scales = model.weights["words.scales"].numpy().astype("<f2")
    blocks = np.concatenate([scales[..., None].view(np.uint8), nibbles], axis=-1)
    return torch.from_numpy(unpack_blocks(blocks.reshape(-1, BLOCK_BYTES))).view(len(scales), -1)


LOWER = [
    name
    for role in ROLES.values()
    for name in (
        *(f"{role}{layer}{m}" for layer in APART for m in MEASURES),
        *(f"{role}{layer}c{m}" for layer in CENTRED for m in MEASURES[:2]),
    )
]
UPPER = {
    view: [f"{role}{layer}{m}" for role in roles for layer in JOINT for m in MEASURES[:2]]
    for view, roles in (("source", "s"), ("reference", "r"), ("both", "sr"))
}
WAYS = ("mqm", "esa", "word", "mqmmajor", "esamajor")
TAGGED = tuple(f"{how}{way}" for how in ("mean", "max") for way in WAYS)


def tag_columns(logits: Tensor, inside: Tensor) -> Tensor:
    """Mean and maximum over pieces of each chance of an error, and of a major one, (rows, 10)."""
    graded = [logits[..., first : first + 3].softmax(-1) for first in (0, 3)]
    bad = 1 - logits[..., 6:8].softmax(-1)[..., 0]
    chances = torch.stack([*(1 - g[..., 0] for g in graded), bad, *(g[..., 2] for g in graded)], -1)
    chances = chances * inside[..., None]
    mean = chances.sum(1) / inside.sum(1, keepdim=True).clamp(min=1)
    return torch.cat([mean, chances.amax(1)], 1)


def batches(texts: Sequence[Texts], budget: int) -> Iterator[NDArray[np.int64]]:
    cost = np.array([sum(len(t) + 2 for t in row if t is not None) for row in texts])
    wide = np.array([max(len(t) for t in row if t is not None) + 2 for row in texts])
    order, at = np.argsort(-wide, kind="stable"), 0
    while at < len(order):
        size = max(1, min(budget // int(3 * wide[order[at]]), len(order) - at))
        yield order[at : at + size]
        at += size
    assert cost.min() > 0


@torch.no_grad()
def fit_centres(network: Looking, texts: Sequence[Texts], device: str, budget: int) -> None:
    """The mean of each role's states, from some rows with all three texts."""
    full = [t for t in texts if all(x is not None for x in t)]
    full = full[:: -(-len(full) // max(20, budget // 300))]
    batch = send_batch(lay_out(full), device)
    _, seen = network.look(batch)
    for layer in CENTRED:
        for role in range(3):
            network.centres[layer, role] = seen[layer][batch.roles == role].mean(0)


class Readouts:
    """Ridge regressions of people's scores on the head's hidden layer, by view and kind of set.

    Normal equations of each kind are kept, sets weighing alike; `solve` then makes columns.
    """

    def __init__(self, device: str) -> None:
        self.sums: dict[tuple[str, str], Tensor] = {}
        self.device, self.solved = device, dict[str, Tensor]()

    def learn(
        self, view: str, hidden: Tensor, human: Floats, kinds: Sequence[str], often: Floats
    ) -> None:
        target, weight = (torch.from_numpy(x).to(self.device).double() for x in (human, often))
        ones = torch.ones_like(target)[:, None]
        row = torch.cat([hidden.double(), ones, target[:, None].clamp(-4, 3)], 1)
        for kind in set(kinds):
            mine = torch.tensor([k == kind for k in kinds], device=self.device)
            some = row[mine] * weight[mine, None]
            empty = torch.zeros(row.shape[1], row.shape[1], device=self.device, dtype=torch.double)
            self.sums[view, kind] = self.sums.get((view, kind), empty) + some.T @ row[mine]

    def solve(self) -> None:
        for view in VIEWS:
            found = []
            for kinds in READ:
                total = sum(self.sums[view, k] for k in kinds if (view, k) in self.sums)
                if isinstance(total, int):
                    found.append(torch.zeros(513, device=self.device).double())
                    continue
                left, right = total[:-1, :-1].clone(), total[:-1, -1]
                left.diagonal()[:-1] += RIDGE * left.diagonal()[:-1].mean()
                found.append(torch.linalg.solve(left, right))
            self.solved[view] = torch.stack(found, 1).float()

    def read(self, view: str, hidden: Tensor) -> Tensor:
        weights = self.solved[view]
        return hidden @ weights[:-1] + weights[-1]

    def save(self, path: Path) -> None:
        stored = {
            f"{view} {kind}": total.float().cpu().numpy()
            for (view, kind), total in self.sums.items()
        }
        np.savez_compressed(path, allow_pickle=False, **stored)


READ = (("da",), ("mqm",), ("esa",), ("da", "mqm", "esa", "qe", "old"), ("old", "qe"))
RIDGE = 1e-3


@torch.no_grad()
def learn_readouts(
    network: Looking, readouts: Readouts, rows: Rows, device: str, budget: int
) -> None:
    """Passes over rows that train, for the normal equations alone."""
    count = dict(zip(*np.unique(rows.names, return_counts=True), strict=True))
    often = np.array([1 / count[name] for name in rows.names], np.float32)
    human, kinds = np.array(rows.human, np.float32), [kind_of(name) for name in rows.names]
    for view in VIEWS:
        shown = [hide(t, view) for t in rows.texts]
        there = np.array([n for n, t in enumerate(shown) if t is not None])
        for some in batches([shown[n] for n in there], budget):
            chosen = there[some]
            network.look(send_batch(lay_out([shown[n] for n in chosen]), device))
            readouts.learn(
                view, network.hidden, human[chosen], [kinds[n] for n in chosen], often[chosen]
            )


def kind_of(name: str) -> str:
    start = name.split("/")[0]
    if start == "wmt16":
        return "old"
    if start.startswith(("mlqe", "qe2")):
        return "qe"
    return "esa" if start == "wmt24" else "da" if start.startswith("wmt") else "mqm"


@torch.no_grad()
def look_at(
    network: Looking, readouts: Readouts, rows: Rows, device: str, budget: int, views: Sequence[str]
) -> dict[str, Any]:
    """Columns of the network: of texts apart once, of each view what it says."""
    count = len(rows.texts)
    lower = np.full((count, len(LOWER)), np.nan, np.float16)
    result: dict[str, Any] = {"lower": lower}
    for view in views:
        shown = [hide(t, view) for t in rows.texts]
        there = np.array([n for n, t in enumerate(shown) if t is not None], np.int64)
        said = np.full((count, 2), np.nan, np.float32)
        more = np.full((count, len(TAGGED) + len(UPPER[view]) + len(READ)), np.nan, np.float16)
        for some in batches([shown[n] for n in there], budget) if len(there) else ():
            chosen = there[some]
            batch = send_batch(lay_out([shown[n] for n in chosen]), device)
            judged, seen = network.look(batch)
            said[chosen] = torch.stack([judged.scores[:, 0], judged.clean], 1).cpu().numpy()
            parts = [
                tag_columns(judged.tags, judged.inside),
                network.matches(batch, seen, UPPER[view]),
            ]
            if readouts.solved:
                parts.append(readouts.read(view, network.hidden))
            found = torch.cat(parts, 1)
            more[chosen, : found.shape[1]] = found.cpu().numpy()
            fresh = network.matches(batch, seen, LOWER).cpu().numpy()
            lower[chosen] = np.where(np.isnan(lower[chosen]), fresh, lower[chosen])
        result[f"said_{view}"], result[f"more_{view}"] = said, more
    return result


TEXT = (
    *(f"r.{name}" for name in ("chrf", "chrP", "chrR", "chrf++", "chrf2", "chrf4", *NAMES)),
    *(f"s.{name}" for name in ("chrf", *NAMES)),
    *("chars h", "chars s", "chars r", "same language", "h unknown"),
)


def text_columns(some: Sequence[Strings]) -> Floats:
    """What texts tell without a network, a row each; NaN where one is absent."""
    table = np.full((len(some), len(TEXT)), np.nan, np.float32)
    at = {name: n for n, name in enumerate(TEXT)}
    for role, mark in ((1, "s"), (2, "r")):
        there = [n for n, row in enumerate(some) if row[role] is not None]
        if not there:
            continue
        left, right = [some[n][0] for n in there], [some[n][role] or "" for n in there]
        segments = [Segment(a, None, (b,)) for a, b in zip(left, right, strict=True)]
        metric = ChrF(word_order=2)
        counts = metric.statistics(segments)
        hyp, ref, hits = (counts[:, part::3] for part in range(3))
        table[there, at[f"{mark}.chrf"]] = ChrF().reduce(counts[:, :18]) / 100
        if mark == "r":
            present = ((hyp > 0) & (ref > 0))[:, :6]
            for name, below in (("chrP", hyp), ("chrR", ref)):
                share = np.where(present, hits[:, :6] / np.maximum(below[:, :6], 1), 0)
                table[there, at[f"r.{name}"]] = share.sum(1) / np.maximum(present.sum(1), 1)
            table[there, at["r.chrf++"]] = metric.reduce(counts) / 100
            table[there, at["r.chrf2"]] = ChrF(char_order=2).reduce(counts[:, :6]) / 100
            table[there, at["r.chrf4"]] = ChrF(char_order=4).reduce(counts[:, :12]) / 100
        first = at[f"{mark}.{NAMES[0]}"]
        table[np.ix_(there, range(first, first + len(NAMES)))] = surface_features(left, right)
    for n, (h, s, r) in enumerate(some):
        lengths = [np.log1p(len(t)) if t is not None else np.nan for t in (h, s, r)]
        tongue = identify(h)
        same = np.nan if s is None else float(tongue != "" and tongue == identify(s))
        table[n, -5:] = [*lengths, same, float(tongue == "")]
    return table


def compute_text(rows: Rows, processes: int) -> Floats:
    parts = [rows.strings[n : n + 2000] for n in range(0, len(rows.strings), 2000)]
    if processes < 2:
        return np.concatenate([text_columns(part) for part in parts])
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return np.concatenate(pool.map(text_columns, parts, chunksize=1))


def strings_of(store: Store, lines: list[str], rows: Sequence[int]) -> Strings:
    """The texts of a row, or of neighbours joined."""
    found = []
    for column in ("hypothesis", "source", "reference"):
        numbers = store.columns[column][list(rows)]
        found.append(None if (numbers < 0).any() else " ".join(lines[n] for n in numbers))
    return tuple(found)  # type: ignore[return-value]


def sample_sets(store: Store, lines: list[str], part: str, most: int) -> Rows:
    rows = Rows()
    compared = set(store.columns["comparisons"][:, 2].tolist())
    for number, name in enumerate(store.names):
        if name.startswith(part) and number not in compared:
            for row in set_rows(store, number, most):
                human = float(store.columns["score"][row])
                rows.add(
                    name, human, row_texts(store, row), strings_of(store, lines, [row]), int(row)
                )
    return rows


def sample_comparisons(store: Store, lines: list[str], most: int) -> tuple[Rows, NDArray[np.int64]]:
    """Rows of some strict comparisons, and these: left, right (places in rows), set, outcome."""
    every = store.columns["comparisons"]
    every = every[every[:, 3] != 0]
    rng, rows, place, kept = np.random.default_rng(5), Rows(), dict[int, int](), []
    for number in np.unique(every[:, 2]):
        for left, right, which, outcome in rng.permutation(every[every[:, 2] == number])[:most]:
            for row in (left, right):
                if int(row) not in place:
                    place[int(row)] = len(rows.names)
                    strings = strings_of(store, lines, [row])
                    rows.add(store.names[which], 0.0, row_texts(store, row), strings, int(row))
            kept.append((place[int(left)], place[int(right)], which, outcome))
    return rows, np.array(kept)


def sample_paragraphs(store: Store, lines: list[str], part: str, most: int) -> Rows:
    """Neighbours joined as `measure_paragraphs` does for sets that choose."""
    documents, rows = Documents(store), Rows()
    for number, name in enumerate(store.names):
        if not name.startswith(part):
            continue
        own = [r for r in set_rows(store, number, None) if store.columns["document"][r] >= 0]
        done, count = set[int](), 0
        for row in sorted(own, key=lambda r: documents.rank[r]):
            if row in done or count == most:
                continue
            group = documents.neighbours(int(row), 10)
            done.update(group)
            if len(group) > 2:
                texts, human = documents.join(group)
                rows.add(name, human, texts, strings_of(store, lines, group), int(row))
                count += 1
    return rows


def sample_training_paragraphs(store: Store, lines: list[str], most: int) -> Rows:
    groups, rows, documents = (
        find_groups(store, most, np.random.default_rng(3)),
        Rows(),
        Documents(store),
    )
    for first, last in zip(groups.starts, groups.starts[1:], strict=False):
        group = groups.rows[first:last].tolist()
        texts, human = documents.join(group)
        name = store.names[store.columns["set"][group[0]]]
        rows.add(name, human, texts, strings_of(store, lines, group), int(group[0]))
    return rows


def sample_damage(parts: Path, pieces: Pieces, each: int) -> Rows:
    """Damaged copies of outputs, each behind the whole: the last lines of FLORES."""
    outputs, damager = Outputs(parts / "outputs"), Damager(pieces.names)
    rows, count = Rows(), Counter[str]()

    def write(text: NDArray[np.int32] | None) -> str:
        return "".join(pieces.names[n] for n in text).replace("▁", " ").strip()  # type: ignore[union-attr]

    for kind, whole, broken in draw_damage(outputs, damager, each):
        for texts in (whole, broken):
            rows.add(kind, 0.0, texts, tuple(write(t) for t in texts), count[kind])  # type: ignore[arg-type]
        count[kind] += 1
    return rows


def open_part(folder: Path, pieces: Pieces) -> tuple[Store, list[str]]:
    """A packed part with its lines, in pieces the first time."""
    lines = read_lines(folder / "texts.xz")
    if not (folder / "offsets.npy").exists():
        write_pieces(folder, lines, pieces)
    return Store.open(folder), lines


def published_rows(data: str | None, segments: int) -> Iterator[tuple[str, str, Strings]]:
    """Which rows the tables of the documentation, calibration and differences ask for, by view.

    (what for, view, texts), in an order that is always the same.
    """
    from papers.modern import TABLES, Modern, WithoutReference, read_sample

    from recipes.differences import is_fit_for, judged_sets
    from recipes.multi.ship import direct_assessments, in_view, wmt18_rows
    from tertium.data.collection import Collection
    from tertium.data.formats import read_records
    from tertium.metrics.flagship.multi import TertiumMulti

    collection = Collection.at(data)
    root = collection.root
    samples = dict[tuple[Path, int, bool], None]()
    for table in TABLES:
        asked = table.experiment
        if isinstance(asked, Modern):
            for name, lp in map(str.split, asked.columns):
                path = root / "modern/dev" / asked.kind / name / f"{lp}.jsonl.gz"
                samples[path, asked.rows, True] = None
        elif isinstance(asked, WithoutReference):
            for name in asked.columns:
                for path in sorted((root / "modern/dev/qe" / name).glob("*.jsonl.gz")):
                    samples[path, asked.rows, False] = None
    for path, rows, references in samples:
        for judged in read_sample(path, rows, references).judgements:
            s = judged.segment
            texts = s.hypothesis, s.source, s.references[0] if references else None
            for view in VIEWS if references else ("source",):
                yield "modern", view, texts
    for path in sorted((root / "da/wmt17").glob("*-en.jsonl.gz")):
        for _, r in read_records(path):
            yield "wmt17", "both", (r["hypothesis"], r["source"], r["reference"])
    for record, _ in direct_assessments(root, 160):
        for view in VIEWS:
            if in_view(record, view):  # type: ignore[arg-type]
                yield (
                    "calibration",
                    view,
                    (record["hypothesis"], record["source"], record.get("reference")),
                )
    for row in wmt18_rows(collection, 3):
        for view in VIEWS:
            yield "percentiles", view, row
    metric = TertiumMulti()
    for judged_set in judged_sets(collection):
        if is_fit_for(metric, judged_set) and len(judged_set.people) > 3:
            for _, s in judged_set.draw(segments):
                yield "differences", "both", (s.hypothesis, s.source, s.references[0])


def sample_published(data: str | None, segments: int, pieces: Pieces) -> dict[str, Rows]:
    """The distinct rows of each view that fit in one window; the key is their hash."""
    found = {view: Rows() for view in VIEWS}
    seen = set[tuple[str, Strings]]()
    wanted = list(published_rows(data, segments))
    texts = list(dict.fromkeys(t for _, _, row in wanted for t in row if t is not None))
    numbers = dict[str, NDArray[np.int32]]()
    for n in range(0, len(texts), 50_000):
        some = texts[n : n + 50_000]
        numbers |= dict(
            zip(some, (np.array(i, np.int32) for i in pieces.encode(some)), strict=True)
        )
    for why, view, row in wanted:
        with_source, with_reference = VIEWS[view]
        shown = row[0], row[1] if with_source else None, row[2] if with_reference else None
        coded = tuple(None if t is None else numbers[t] for t in shown)
        if (view, shown) in seen or max(len(t) for t in coded if t is not None) > LONGEST:
            continue
        seen.add((view, shown))
        found[view].add(why, 0.0, coded, shown, hash_row(shown))
    return found


def hash_row(row: Strings) -> int:
    """A number of 62 bits for the texts of a row."""
    text = json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 2


def gather(
    parts: Path, most: dict[str, int], pieces: Pieces
) -> Iterator[tuple[str, Rows, dict[str, Any]]]:
    store, lines = open_part(parts / "judgements", pieces)
    if most["read"]:
        yield "read", sample_sets(store, lines, "", most["read"]), {}
    held, held_lines = open_part(parts / "held-out", pieces)
    yield "dev", sample_sets(held, held_lines, "dev:", most["dev"]), {}
    yield "train", sample_sets(store, lines, "", most["train"]), {}
    yield "dev-paragraphs", sample_paragraphs(held, held_lines, "dev:", most["paragraphs"]), {}
    yield "train-paragraphs", sample_training_paragraphs(store, lines, most["joined"]), {}
    if most["damage"]:
        if not (parts / "outputs/READY").exists():
            prepare(parts / "outputs", pieces)
        yield "damage", sample_damage(parts, pieces, most["damage"]), {}
    if most["segments"]:
        for view, rows in sample_published(None, most["segments"], pieces).items():
            yield f"published-{view}", rows, {}
    yield "test", sample_sets(held, held_lines, "test:", 10**9), {}
    rows, comparisons = sample_comparisons(held, held_lines, most["compared"])
    yield "test-compared", rows, {"comparisons": comparisons}


MOST = {
    "read": 3000,
    "dev": 3000,
    "train": 1000,
    "paragraphs": 1500,
    "joined": 12_000,
    "damage": 100,
    "segments": 250,
    "compared": 1500,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--budget", type=int, default=0, help="pieces of a batch, padding included")
    parser.add_argument("--only", nargs="*", default=())
    for name, many in MOST.items():
        parser.add_argument(f"--{name}", type=int, default=many)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    model = load_packaged("tertium-multi")
    pieces = Pieces(model.folder / "encoder/tokenizer.json")
    network = Looking(model).to(given.device).eval()
    budget = given.budget or (250_000 if given.device.startswith("cuda") else 6_000)
    readouts = Readouts(given.device)
    told = {"lower": LOWER, "upper": UPPER, "tagged": TAGGED, "read": READ, "text": TEXT}
    (given.out / "names.json").write_text(json.dumps(told))
    for name, rows, more in gather(given.parts, vars(given), pieces):
        if given.only and name not in given.only:
            continue
        begin = time.monotonic()
        # what is only learned from may be a little rougher, and twice as fast
        torch.set_float32_matmul_precision("high" if name in ("read", "train") else "highest")
        if not network.centres:
            fit_centres(network, rows.texts, given.device, budget)
            centres = {f"{n} {role}": c.cpu().numpy() for (n, role), c in network.centres.items()}
            np.savez(given.out / "centres.npz", allow_pickle=False, **centres)
        if name == "read":
            learn_readouts(network, readouts, rows, given.device, budget)
            readouts.solve()
            readouts.save(given.out / "readouts.npz")
            print(name, len(rows.names), f"{time.monotonic() - begin:.0f} s", flush=True)
            continue
        views = (
            [name.removeprefix("published-")]
            if "published" in name
            else ["both", "source", "reference"]
        )
        columns = look_at(network, readouts, rows, given.device, budget, views)
        middle = time.monotonic()
        if "published" not in name:
            columns["text"] = compute_text(rows, given.processes).astype(np.float16)
        sizes = np.array(
            [[-1 if t is None else len(t) for t in row] for row in rows.texts], np.int16
        )
        kinds = list(dict.fromkeys(rows.names))
        np.savez_compressed(
            given.out / f"{name}.npz",
            names=np.array(kinds),
            set=np.array([kinds.index(n) for n in rows.names], np.int16),
            human=np.array(rows.human, np.float32),
            key=np.array(rows.keys, np.int64),
            sizes=sizes,
            **columns,
            **more,
        )
        print(
            name,
            len(rows.names),
            f"{middle - begin:.0f} s network, {time.monotonic() - middle:.0f} s texts",
            flush=True,
        )


if __name__ == "__main__":
    main()
