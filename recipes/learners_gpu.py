"""Train the BiLSTM, attention and ESIM heads: reported runs and bundled models.

    python -m recipes.learners_gpu report    --data DIR --encoder minilm --head esim -o OUT
    python -m recipes.learners_gpu published --data DIR --encoder minilm --head esim -o OUT
    python -m recipes.learners_gpu ship      --data DIR --encoder minilm --head esim -o OUT

`report` trains each head with three seeds on da/wmt16, with and without pretraining on preferences.
The epoch is chosen on da/wmt15; da/wmt17 and rankings/wmt12 are test sets. `published` trains on
da/wmt16 with the published settings, then changes one setting at a time to ours; it uses no
rankings and keeps all encoder states on the device. Both save the scores on da/wmt17 for
significance tests. `ship` trains on preferences, then on da/wmt15 and da/wmt16; the epoch is
chosen on a held-out tenth. Ranking segments whose reference occurs in a development or test set
are dropped. `--jobs` runs several jobs on one GPU in parallel.
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

from tertium.core.runtime import Precision
from tertium.core.segment import Judgment, Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.data.train_test_overlap import drop_overlap
from tertium.encoders.encoder import load_encoder
from tertium.encoders.model_cards import MODEL_CARDS
from tertium.metrics.heads.bilstm import PaddedSequences
from tertium.metrics.heads.config import Difference, HeadConfig
from tertium.metrics.heads.encoder_states import LiveStates
from tertium.metrics.heads.head_options import OURS, PUBLISHED
from tertium.metrics.heads.head_training import HeadTraining, agreement_on_scores, all_scores
from tertium.metrics.heads.networks import PairNetwork, make_network
from tertium.models.checkpoint import Checkpoint, round_to_half, write_checkpoint
from tertium.models.training_examples import (
    ComparedPairs,
    ScoredPairs,
    TextIds,
    average_pearson,
    number_compared_pairs,
    number_scored_pairs,
    strict_tau,
)
from tertium.models.training_options import Epoch, TrainingOptions

ON_SCORES, AFTER_COMPARISONS = (OURS.options.on_scores(after) for after in (False, True))
ON_COMPARISONS = OURS.options.on_comparisons
AS_PUBLISHED = PUBLISHED.options.on_scores(False)
PREFERENCES = ("wmt11", "wmt13", "wmt15", "wmt16")
HEADS = ("bilstm", "bilstm-attention", "esim")
# With the published 300 units ESIM costs more than half as much as minilm. Of 240 and 256 units
# with two and three epochs of comparisons, this was best on the held-out tenth.
SHIPPED: Mapping[str, Mapping[str, Any]] = {
    "esim": {"hidden": 256, "comparisons": replace(ON_COMPARISONS, epochs=3, patience=3)}
}


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedPairs:
    """Judgments as text pairs, with the language pair of each."""

    data: ScoredPairs
    groups: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Corpus:
    """Training, development and test data over one table of texts."""

    states: LiveStates
    encoder: str
    encoder_hash: str
    train: JudgedPairs
    dev: JudgedPairs
    preferences: ComparedPairs | None
    test: JudgedPairs
    test_rankings: Mapping[str, ComparedPairs] = field(default_factory=dict)
    excluded_counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Job:
    """Settings of one training run.

    `save` is the path of its checkpoint; `keep` adds the scores on da/wmt17 to its results.
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


class PrecomputedStates(LiveStates):
    """Encoder states of all texts, computed once and kept on the device in half precision."""

    def __call__(self, texts: Any) -> PaddedSequences:
        flat, starts = self.all_states
        lengths = self.lengths[texts]
        places = starts[texts][:, None] + np.arange(max(1, int(lengths.max())))
        is_inside = np.arange(places.shape[1]) < lengths[:, None]
        rows = torch.from_numpy(np.where(is_inside, places, len(flat) - 1)).to(flat.device)
        return PaddedSequences(flat[rows].float(), torch.from_numpy(lengths))

    @cached_property
    def all_states(self) -> tuple[torch.Tensor, Any]:
        """All tokens (tokens + 1, layers, d), the last one zero, and text starts."""
        order, parts = np.argsort(self.lengths, kind="stable"), []
        with torch.no_grad():
            for at in range(0, len(order), 256):
                part = super().__call__(order[at : at + 256])
                parts += [part.values[n, :length] for n, length in enumerate(part.lengths)]
            padding = torch.zeros_like(parts[-1][:1])
            flat = torch.cat([part.half() for part in (*parts, padding)])
        starts = np.zeros(len(order), dtype=np.int64)
        starts[order] = np.concatenate([[0], np.cumsum(self.lengths[order])[:-1]])
        return flat, starts


def english_judgments(collection: DatasetFolder, name: str) -> list[JudgmentSet]:
    lps = [lp for lp in collection.find(name).lps if lp.endswith("-en")]
    return [collection.judgments(name, lp) for lp in lps]


def english_rankings(collection: DatasetFolder, name: str) -> list[RankingSet]:
    lps = [lp for lp in collection.find(name).lps if lp.endswith("-en")]
    return [collection.rankings(name, lp) for lp in lps]


def split_tenth(sets: Sequence[JudgmentSet]) -> tuple[list[JudgmentSet], list[JudgmentSet]]:
    """Split off every tenth judgment; references do not occur on both sides."""
    dev_sets = [replace(s, judgments=s.judgments[::10]) for s in sets]
    return [drop_overlap(s, dev_sets) for s in sets], dev_sets


def unique_references(sets: Sequence[JudgmentSet | RankingSet]) -> JudgmentSet:
    """Return one row per distinct tuple of references, to detect overlap."""
    references = dict.fromkeys(s.references for dataset in sets for s in dataset.segments)
    rows = tuple(Judgment(Segment("", references=texts), 0.0) for texts in references)
    return JudgmentSet(name="held out", judgments=rows)


def read_corpus(
    data: Path, encoder_name: str, *, device: str, stage: str, limit: int | None
) -> Corpus:
    """Read all data; `limit` truncates the datasets for a test run."""
    collection, ranked = DatasetFolder.open(data), stage != "published"
    dev15, train16 = (
        english_judgments(collection, "da/wmt15"),
        english_judgments(collection, "da/wmt16"),
    )
    test17 = english_judgments(collection, "da/wmt17")
    test12 = english_rankings(collection, "rankings/wmt12") if ranked else []
    train, dev = split_tenth([*dev15, *train16]) if stage == "ship" else (train16, dev15)
    held_out = [unique_references([*dev, *test17, *test12])]
    train = [drop_overlap(dataset, held_out) for dataset in train]
    rankings = [
        drop_overlap(dataset, held_out)
        for year in (PREFERENCES if ranked else ())
        for dataset in english_rankings(collection, f"rankings/{year}")
    ]
    read: list[JudgmentSet | RankingSet] = [*train, *rankings]
    excluded_counts = {
        f"{dataset.name} {dataset.lp}": dict(dataset.excluded_counts) for dataset in read
    }
    if limit:
        train, dev, test17 = (
            [truncate_set(s, limit) for s in group] for group in (train, dev, test17)
        )
        rankings = [s.select(np.arange(len(s)) < limit) for s in rankings]
        test12 = [s.select(np.arange(len(s)) < limit) for s in test12]
    table: TextIds = {}
    against = "reference"
    parts: dict[str, Any] = {
        "train": number_judgments(train, table),
        "dev": number_judgments(dev, table),
        "test": number_judgments(test17, table),
        "preferences": number_compared_pairs(rankings, against, table) if ranked else None,
        "test_rankings": {
            dataset.lp: number_compared_pairs([dataset], against, table) for dataset in test12
        },
    }
    encoder: Any = load_encoder(f"{encoder_name}@all")
    precision: Precision = "fp16" if device.startswith("cuda") else "fp32"
    kind = LiveStates if ranked else PrecomputedStates
    states = kind(encoder, list(table), device=device, precision=precision)
    return Corpus(
        states=states,
        encoder=encoder.name,
        encoder_hash=encoder.weights_hash,
        excluded_counts=excluded_counts,
        **parts,
    )


def truncate_set(dataset: JudgmentSet, limit: int) -> JudgmentSet:
    return replace(dataset, judgments=dataset.judgments[:limit])


def number_judgments(sets: Sequence[JudgmentSet], table: TextIds) -> JudgedPairs:
    data = number_scored_pairs(sets, "reference", table)
    return JudgedPairs(
        data=data, groups=tuple(dataset.lp for dataset in sets for _ in dataset.judgments)
    )


def run(corpus: Corpus, job: Job) -> dict[str, Any]:
    """Train one network and evaluate it."""
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

    def dev_correlation() -> float:
        return agreement_on_scores(network, corpus.states, dev.data, dev.groups)

    training = HeadTraining(
        network=network, states=corpus.states, evaluate=dev_correlation, on_epoch=log.append
    )
    if job.preferences and corpus.preferences:
        options = replace(job.comparisons, seed=job.seed)
        batches = training.by_comparisons(corpus.preferences, options)
        training.run("comparisons", batches, options)
    options = replace(job.scores, seed=job.seed)
    training.run("scores", training.by_scores(corpus.train.data, options), options)
    result = {**asdict(job), **measure(corpus, network), "dev": dev_correlation()}
    if job.keep:
        scores = all_scores(network, corpus.states, corpus.test.data.pairs)
        result["scores"] = [round(float(score), 4) for score in scores]
    result["seconds"] = round(time.perf_counter() - started)
    result["log"] = [[e.stage, e.number, round(e.loss, 4), round(e.dev, 4)] for e in log]
    if job.save:
        save(corpus, network, job, result)
    return result


def measure(corpus: Corpus, network: PairNetwork) -> dict[str, Any]:
    """Return Pearson on da/wmt17 and strict tau on rankings/wmt12 by language pair."""
    human, groups = corpus.test.data.targets, corpus.test.groups
    scores = all_scores(network, corpus.states, corpus.test.data.pairs)
    rows = {lp: np.array([group == lp for group in groups]) for lp in dict.fromkeys(groups)}
    pearson = {
        lp: average_pearson(scores[rows_of_lp], human[rows_of_lp], [lp] * int(rows_of_lp.sum()))
        for lp, rows_of_lp in rows.items()
    }
    tau = {
        lp: strict_tau(
            score_pairs(corpus, network, dataset.pairs),
            dataset.better,
            dataset.worse,
            dataset.weights,
        )
        for lp, dataset in corpus.test_rankings.items()
    }
    averages = {
        "r17": float(np.mean([*pearson.values()])),
        "t12": float(np.mean([*tau.values()])) if tau else float("nan"),
    }
    return {**averages, "pearson": pearson, "tau": tau}


def score_pairs(corpus: Corpus, network: PairNetwork, pairs: Any) -> Any:
    return all_scores(network, corpus.states, pairs)


def save(corpus: Corpus, network: PairNetwork, job: Job, result: Mapping[str, Any]) -> None:
    """Save a checkpoint that names the published encoder, also for a half-precision copy."""
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
            "judgments": ["da/wmt15", "da/wmt16"],
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
    """Return jobs with the published settings, with ours, and with single changes."""
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
    slowest_first = [*reversed(heads)]
    return [replace(job, head=head) for job in jobs for head in slowest_first]


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
    """Run jobs in parallel processes; print and save each result when it is ready."""
    global _corpus
    _corpus = corpus
    results: list[dict[str, Any]] = []

    def collect(result: dict[str, Any]) -> None:
        results.append(print_result(result))
        file.write_text(json.dumps({"left_out": corpus.excluded_counts, "runs": results}))

    file.parent.mkdir(parents=True, exist_ok=True)
    if workers == 1:
        for job in jobs:
            collect(_run(job))
        return results
    with multiprocessing.get_context("fork").Pool(workers, maxtasksperchild=1) as pool:
        for result in pool.imap_unordered(_run, jobs):
            collect(result)
    return results


def print_result(result: dict[str, Any]) -> dict[str, Any]:
    print(
        f"{result['head']:17} pref={int(result['preferences'])} seed={result['seed']} "
        f"{result['note']} "
        f"dev {result['dev']:.3f}  r17 {result['r17']:.3f}  t12 {result['t12']:.3f}  "
        f"{result['seconds']} s, {len(result['log'])} epochs",
        flush=True,
    )
    return result


def summary(results: Sequence[Mapping[str, Any]]) -> str:
    """Return mean and standard deviation over seeds."""
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
    parser.add_argument("stage", choices=("report", "published", "ship"), help="what to train")
    parser.add_argument("--data", type=Path, required=True, help="folder of human judgments")
    parser.add_argument("--encoder", default="minilm", help="minilm, mpnet, dir/PATH ...")
    parser.add_argument("--head", nargs="+", default=list(HEADS), choices=HEADS, help="heads")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="random seeds")
    parser.add_argument("--hidden", type=int, default=300, help="units (report)")
    parser.add_argument("--only", nargs="+", metavar="NOTE", help="only runs with these notes")
    parser.add_argument("--jobs", type=int, default=1, help="parallel runs")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, mps")
    parser.add_argument("--limit", type=int, help="rows per file, for a test run")
    parser.add_argument("--epochs", type=int, help="fewer epochs, for a test run")
    parser.add_argument("-o", "--out", type=Path, required=True, help="output folder")
    args = parser.parse_args(arguments)
    started = time.perf_counter()
    corpus = read_corpus(
        args.data, args.encoder, device=args.device, stage=args.stage, limit=args.limit
    )
    compared = corpus.preferences
    comparison_count = f"{int(compared.weights.sum()) if compared else 0} comparisons"
    print(
        f"{len(corpus.states.lengths)} texts, {comparison_count}, "
        f"{len(corpus.train.data)} judgments, {len(corpus.dev.data)} development judgments; "
        f"read in {time.perf_counter() - started:.0f} s",
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
        jobs = [limit_epochs(job, args.epochs) for job in jobs]
    name = f"{args.stage}-{args.encoder.rpartition('/')[2]}.json"
    print(summary(run_all(corpus, jobs, args.jobs, args.out / name)), flush=True)


def limit_epochs(job: Job, epochs: int) -> Job:
    return replace(
        job,
        scores=replace(job.scores, epochs=epochs),
        comparisons=replace(job.comparisons, epochs=epochs),
    )


if __name__ == "__main__":
    main()
