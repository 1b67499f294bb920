"""Trains the BiLSTM, attention and ESIM heads: reported runs, shipped ones, a learning curve.

    python -m recipes.learners_gpu report    --data DIR --encoder minilm --head esim -o OUT
    python -m recipes.learners_gpu published --data DIR --encoder minilm --head esim -o OUT
    python -m recipes.learners_gpu ship      --data DIR --encoder minilm --head esim -o OUT

`report`: each head three times on da/wmt16, and three times on preferences first; the epoch chosen
on da/wmt15; da/wmt17 and rankings/wmt12 only looked at. `published`: each head three times on
da/wmt16 under the published recipe, and with one thing after the other done as in ours; reads no
rankings, and holds the encoder's states of all texts on the device. Both write down the scores on
da/wmt17, for tests of significance. `ship`: preferences, then da/wmt15 and da/wmt16 but for a tenth
of their items, on which the epoch is chosen. Ranking segments whose reference occurs in a set used
for choosing or testing are dropped. Runs on whatever device there is; `--jobs` of them go side by
side on one GPU.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.data.train_test_overlap import drop_overlap
from tertium.encoders.encoder import load_encoder
from tertium.encoders.model_cards import MODEL_CARDS
from tertium.execution import Precision
from tertium.metrics.heads.bilstm import PaddedSequences
from tertium.metrics.heads.config import Difference, HeadConfig
from tertium.metrics.heads.encoder_states import LiveStates
from tertium.metrics.heads.networks import PairNetwork, make_network
from tertium.metrics.heads.options import OURS, PUBLISHED
from tertium.metrics.heads.training import HeadTraining, agreement_on_scores, all_scores
from tertium.models.checkpoint import Checkpoint, round_to_half, write_checkpoint
from tertium.models.training_examples import (
    ComparedPairs,
    Pairs,
    ScoredPairs,
    TextIds,
    average_pearson,
    number_compared_pairs,
    number_scored_pairs,
    strict_tau,
)
from tertium.models.training_options import Epoch, TrainingOptions
from tertium.segment import Judgment, Segment

ON_SCORES, AFTER_COMPARISONS = (OURS.options.on_scores(after) for after in (False, True))
ON_COMPARISONS = OURS.options.on_comparisons
AS_PUBLISHED = PUBLISHED.options.on_scores(False)
PREFERENCES = ("wmt11", "wmt13", "wmt15", "wmt16")
HEADS = ("bilstm", "bilstm-attention", "esim")
# Over minilm the published 300 units make ESIM cost more than half of what the encoder does; of
# 240 and 256 units after two and three epochs of comparisons this was best on the held-out tenth.
SHIPPED: Mapping[str, Mapping[str, Any]] = {
    "esim": {"hidden": 256, "comparisons": replace(ON_COMPARISONS, epochs=3, patience=3)}
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """Judgments of several language pairs as pairs of texts, with the language pair of each."""

    data: ScoredPairs
    groups: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Corpus:
    """All that is trained on, chosen on and tested on, over one table of texts."""

    states: LiveStates
    encoder: str
    encoder_hash: str
    train: Judged
    dev: Judged
    preferences: ComparedPairs | None
    test: Judged
    test_rankings: Mapping[str, ComparedPairs] = field(default_factory=dict)
    excluded_counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run: which head, from what, with which settings; `save` is where its checkpoint goes,
    `keep` asks for its scores on da/wmt17 beside its figures.
    """

    head: str
    seed: int
    preferences: bool
    scores: TrainingOptions
    comparisons: TrainingOptions = ON_COMPARISONS
    hidden: int = 300
    dropout: float = 0.5
    input_dropout: float = 0.0
    difference: Difference = "absolute"
    keep: bool = False
    save: str = ""
    note: str = ""


class HeldStates(LiveStates):
    """States of all texts, computed once and held on the device in half precision."""

    def __call__(self, texts: Any) -> PaddedSequences:
        flat, starts = self._all
        lengths = self.lengths[texts]
        places = starts[texts][:, None] + np.arange(max(1, int(lengths.max())))
        inside = np.arange(places.shape[1]) < lengths[:, None]
        rows = torch.from_numpy(np.where(inside, places, len(flat) - 1)).to(flat.device)
        return PaddedSequences(flat[rows].float(), torch.from_numpy(lengths))

    @cached_property
    def _all(self) -> tuple[torch.Tensor, Any]:
        """All tokens, (tokens + 1, layers, d), the last of them zero, and where texts begin."""
        order, parts = np.argsort(self.lengths, kind="stable"), []
        with torch.no_grad():
            for at in range(0, len(order), 256):
                part = super().__call__(order[at : at + 256])
                parts += [part.values[n, :length] for n, length in enumerate(part.lengths)]
            nothing = torch.zeros_like(parts[-1][:1])
            flat = torch.cat([part.half() for part in (*parts, nothing)])
        starts = np.zeros(len(order), dtype=np.int64)
        starts[order] = np.concatenate([[0], np.cumsum(self.lengths[order])[:-1]])
        return flat, starts


def english(collection: DatasetFolder, name: str) -> list[JudgmentSet]:
    lps = [lp for lp in collection.find(name).lps if lp.endswith("-en")]
    return [collection.judgments(name, lp) for lp in lps]


def english_rankings(collection: DatasetFolder, name: str) -> list[RankingSet]:
    lps = [lp for lp in collection.find(name).lps if lp.endswith("-en")]
    return [collection.rankings(name, lp) for lp in lps]


def tenth(sets: Sequence[JudgmentSet]) -> tuple[list[JudgmentSet], list[JudgmentSet]]:
    """Each set without every tenth of its judgments, and those; no reference is in both."""
    held = [replace(s, judgments=s.judgments[::10]) for s in sets]
    return [drop_overlap(s, held) for s in sets], held


def references_of(sets: Sequence[JudgmentSet | RankingSet]) -> JudgmentSet:
    """One row for each distinct tuple of references, which is all that is compared for leaks."""
    references = dict.fromkeys(s.references for one in sets for s in one.segments)
    rows = tuple(Judgment(Segment("", references=texts), 0.0) for texts in references)
    return JudgmentSet(name="held out", judgments=rows)


def read_corpus(
    data: Path, encoder_name: str, *, device: str, stage: str, limit: int | None
) -> Corpus:
    """Read everything once; `limit` cuts the sets down for a trial."""
    collection, ranked = DatasetFolder.open(data), stage != "published"
    dev15, train16 = english(collection, "da/wmt15"), english(collection, "da/wmt16")
    test17 = english(collection, "da/wmt17")
    test12 = english_rankings(collection, "rankings/wmt12") if ranked else []
    train, dev = tenth([*dev15, *train16]) if stage == "ship" else (train16, dev15)
    held_out = [references_of([*dev, *test17, *test12])]
    train = [drop_overlap(one, held_out) for one in train]
    rankings = [
        drop_overlap(one, held_out)
        for year in (PREFERENCES if ranked else ())
        for one in english_rankings(collection, f"rankings/{year}")
    ]
    read: list[JudgmentSet | RankingSet] = [*train, *rankings]
    excluded_counts = {f"{one.name} {one.lp}": dict(one.excluded_counts) for one in read}
    if limit:
        train, dev, test17 = ([_first(s, limit) for s in group] for group in (train, dev, test17))
        rankings = [s.select(np.arange(len(s)) < limit) for s in rankings]
        test12 = [s.select(np.arange(len(s)) < limit) for s in test12]
    table: TextIds = {}
    against = "reference"
    parts: dict[str, Any] = {
        "train": judged(train, table),
        "dev": judged(dev, table),
        "test": judged(test17, table),
        "preferences": number_compared_pairs(rankings, against, table) if ranked else None,
        "test_rankings": {one.lp: number_compared_pairs([one], against, table) for one in test12},
    }
    encoder: Any = load_encoder(f"{encoder_name}@all")
    precision: Precision = "fp16" if device.startswith("cuda") else "fp32"
    kind = LiveStates if ranked else HeldStates
    states = kind(encoder, list(table), device=device, precision=precision)
    return Corpus(
        states=states,
        encoder=encoder.name,
        encoder_hash=encoder.weights_hash,
        excluded_counts=excluded_counts,
        **parts,
    )


def _first(one: JudgmentSet, limit: int) -> JudgmentSet:
    return replace(one, judgments=one.judgments[:limit])


def judged(sets: Sequence[JudgmentSet], table: TextIds) -> Judged:
    data = number_scored_pairs(sets, "reference", table)
    return Judged(data=data, groups=tuple(one.lp for one in sets for _ in one.judgments))


def run(corpus: Corpus, job: Job) -> dict[str, Any]:
    """Train one network and measure it."""
    started = time.perf_counter()
    torch.manual_seed(job.seed)
    encoder: Any = load_encoder(corpus.encoder)
    config = HeadConfig(
        hidden=job.hidden,
        dropout=job.dropout,
        input_dropout=job.input_dropout,
        difference=job.difference,
    )
    network = make_network(job.head, config, encoder).to(corpus.states.device)
    log: list[Epoch] = []
    dev = corpus.dev

    def choose() -> float:
        return agreement_on_scores(network, corpus.states, dev.data, dev.groups)

    training = HeadTraining(
        network=network, states=corpus.states, evaluate=choose, on_epoch=log.append
    )
    if job.preferences and corpus.preferences:
        options = replace(job.comparisons, seed=job.seed)
        batches = training.by_comparisons(corpus.preferences, options)
        training.run("comparisons", batches, options)
    options = replace(job.scores, seed=job.seed)
    training.run("scores", training.by_scores(corpus.train.data, options), options)
    result = {**asdict(job), **measure(corpus, network), "dev": choose()}
    if job.keep:
        scores = all_scores(network, corpus.states, corpus.test.data.pairs)
        result["scores"] = [round(float(score), 4) for score in scores]
    result["seconds"] = round(time.perf_counter() - started)
    result["log"] = [[e.stage, e.number, round(e.loss, 4), round(e.dev, 4)] for e in log]
    if job.save:
        save(corpus, network, job, result)
    return result


def measure(corpus: Corpus, network: PairNetwork) -> dict[str, Any]:
    """Pearson on da/wmt17 and strict tau on rankings/wmt12, for each pair and averaged."""
    human, groups = corpus.test.data.targets, corpus.test.groups
    scores = all_scores(network, corpus.states, corpus.test.data.pairs)
    rows = {lp: np.array([group == lp for group in groups]) for lp in dict.fromkeys(groups)}
    pearson = {
        lp: average_pearson(scores[own], human[own], [lp] * int(own.sum()))
        for lp, own in rows.items()
    }
    tau = {
        lp: strict_tau(_scores(corpus, network, one.pairs), one.better, one.worse, one.weights)
        for lp, one in corpus.test_rankings.items()
    }
    averages = {
        "r17": float(np.mean([*pearson.values()])),
        "t12": float(np.mean([*tau.values()])) if tau else float("nan"),
    }
    return {**averages, "pearson": pearson, "tau": tau}


def _scores(corpus: Corpus, network: PairNetwork, pairs: Pairs) -> Any:
    return all_scores(network, corpus.states, pairs)


def save(corpus: Corpus, network: PairNetwork, job: Job, result: Mapping[str, Any]) -> None:
    """A checkpoint that names the published encoder, also where a half-precision copy served."""
    stem = corpus.encoder.removesuffix("@all").rpartition("/")[2]
    name, digest = corpus.encoder, corpus.encoder_hash
    if stem in MODEL_CARDS:
        name, digest = f"{stem}@all", next(iter(MODEL_CARDS[stem].files.values()))
    config = HeadConfig(
        encoder=name.removesuffix("@all"),
        hidden=job.hidden,
        dropout=job.dropout,
        input_dropout=job.input_dropout,
        difference=job.difference,
    )
    checkpoint = Checkpoint(
        name=job.head,
        config=asdict(config),
        encoders={name: digest},
        arrays=round_to_half({key: t.cpu().numpy() for key, t in network.state_dict().items()}),
        training={
            "comparisons": [f"rankings/{year}" for year in PREFERENCES],
            "judgements": ["da/wmt15", "da/wmt16"],
            **{key: result[key] for key in ("dev", "r17", "t12", "pearson", "tau", "log")},
        },
    )
    write_checkpoint(Path(job.save), checkpoint)


def report_jobs(heads: Sequence[str], seeds: Sequence[int], hidden: int) -> list[Job]:
    return [
        Job(
            head=head,
            seed=seed,
            preferences=preferences,
            hidden=hidden,
            scores=AFTER_COMPARISONS if preferences else ON_SCORES,
            keep=True,
            note="comparisons first" if preferences else "judgments alone",
        )
        for preferences in (True, False)
        for head in heads
        for seed in seeds
    ]


def published_jobs(heads: Sequence[str], seeds: Sequence[int]) -> list[Job]:
    """As published, as ours, then with one thing at a time as in ours."""
    published = Job(
        head="", seed=0, preferences=False, scores=AS_PUBLISHED, input_dropout=0.5,
        difference="signed", keep=True, note="published",
    )  # fmt: skip
    ours = replace(
        published, scores=ON_SCORES, input_dropout=0.0, difference="absolute", note="ours"
    )
    single = (
        replace(published, difference="absolute", note="absolute"),
        replace(published, input_dropout=0.0, note="whole"),
        replace(published, input_dropout=0.0, difference="absolute", note="absolute, whole"),
        replace(published, scores=ON_SCORES, note="falling"),
    )
    jobs = [replace(job, seed=seed) for job in (published, ours) for seed in seeds]
    jobs += [replace(job, seed=seeds[0]) for job in single]
    dearest_first = [*reversed(heads)]
    return [replace(job, head=head) for job in jobs for head in dearest_first]


def ship_jobs(heads: Sequence[str], out: Path) -> list[Job]:
    return [
        Job(
            head=head,
            seed=1,
            preferences=True,
            scores=AFTER_COMPARISONS,
            save=str(out / head),
            **SHIPPED.get(head, {}),
        )
        for head in heads
    ]


_corpus: Corpus | None = None


def _run(job: Job) -> dict[str, Any]:
    assert _corpus is not None
    if _corpus.states.device == "cuda":
        torch.set_num_threads(1)
        torch.set_float32_matmul_precision("high")
    return run(_corpus, job)


def run_all(corpus: Corpus, jobs: Sequence[Job], workers: int, file: Path) -> list[dict[str, Any]]:
    """Run jobs, several processes at a time; shows and writes down each as it ends."""
    global _corpus
    _corpus = corpus
    results: list[dict[str, Any]] = []

    def take(result: dict[str, Any]) -> None:
        results.append(_show(result))
        file.write_text(json.dumps({"left_out": corpus.excluded_counts, "runs": results}))

    file.parent.mkdir(parents=True, exist_ok=True)
    if workers == 1:
        for job in jobs:
            take(_run(job))
        return results
    with multiprocessing.get_context("fork").Pool(workers, maxtasksperchild=1) as pool:
        for result in pool.imap_unordered(_run, jobs):
            take(result)
    return results


def _show(result: dict[str, Any]) -> dict[str, Any]:
    print(
        f"{result['head']:17} pref={int(result['preferences'])} seed={result['seed']} "
        f"{result['note']} "
        f"dev {result['dev']:.3f}  r17 {result['r17']:.3f}  t12 {result['t12']:.3f}  "
        f"{result['seconds']} s, {len(result['log'])} epochs",
        flush=True,
    )
    return result


def summary(results: Sequence[Mapping[str, Any]]) -> str:
    """Mean and standard deviation over seeds."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in results:
        key = (row["head"], row["preferences"], row["note"])
        groups.setdefault(key, []).append(row)
    lines = []
    for key, rows in groups.items():
        cells = [
            f"{name} {np.mean([r[name] for r in rows]):.3f} ± {np.std([r[name] for r in rows]):.3f}"
            for name in ("dev", "r17", "t12")
        ]
        lines.append(f"{' '.join(map(str, key)):40} n={len(rows)}  " + "  ".join(cells))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("stage", choices=("report", "published", "ship"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", default="minilm", help="minilm, mpnet, dir/PATH ...")
    parser.add_argument("--head", nargs="+", default=list(HEADS), choices=HEADS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--hidden", type=int, default=300, help="units (report)")
    parser.add_argument("--only", nargs="+", metavar="NOTE", help="runs with one of these notes")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, mps")
    parser.add_argument("--limit", type=int, help="a trial on this many rows of each file")
    parser.add_argument("--epochs", type=int, help="fewer epochs, for a trial")
    parser.add_argument("-o", "--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    started = time.perf_counter()
    corpus = read_corpus(
        args.data, args.encoder, device=args.device, stage=args.stage, limit=args.limit
    )
    compared = corpus.preferences
    counted = f"{int(compared.weights.sum()) if compared else 0} comparisons"
    print(
        f"{len(corpus.states.lengths)} texts, {counted}, {len(corpus.train.data)} judgments, "
        f"{len(corpus.dev.data)} to choose on; {time.perf_counter() - started:.0f} s to read",
        flush=True,
    )
    jobs = {
        "report": lambda: report_jobs(args.head, args.seeds, args.hidden),
        "published": lambda: published_jobs(args.head, args.seeds),
        "ship": lambda: ship_jobs(args.head, args.out),
    }[args.stage]()
    if args.only:
        jobs = [job for job in jobs if job.note in args.only]
    if args.epochs:
        jobs = [_shortened(job, args.epochs) for job in jobs]
    name = f"{args.stage}-{args.encoder.rpartition('/')[2]}.json"
    print(summary(run_all(corpus, jobs, args.jobs, args.out / name)), flush=True)


def _shortened(job: Job, epochs: int) -> Job:
    return replace(
        job,
        scores=replace(job.scores, epochs=epochs),
        comparisons=replace(job.comparisons, epochs=epochs),
    )


if __name__ == "__main__":
    main()
