"""Error rates and power of the non-inferiority test of `tertium gate` on WMT data.

Level: 1,000 draws for each row, from systems of WMT17. *Halves*: random halves of the output of one
system. *Equal*: two systems whose outputs are swapped at random. *Margin*: two systems, with their
difference on all segments as the margin, so that every "pass" and every "worse" is wrong. Power:
pairs of systems of WMT22 and WMT24 that human scores separate (paired t-test, p < .05).

    python -m benchmarks gate level
    python -m benchmarks gate power
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.stats import t as student
from scipy.stats import ttest_rel

from tertium.core.arrays import FloatArray
from tertium.core.resampling import make_rng
from tertium.core.scores import Scores
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.record_files import read_records
from tertium.data.testset import TestSet
from tertium.decide.gate import choose_verdict
from tertium.decide.gate_rules import GateRules, resolve_margins
from tertium.evaluation.metric_choice import load_metrics_for, target_texts
from tertium.evaluation.paired_tests import measure_difference
from tertium.evaluation.scoring import score
from tertium.evaluation.system_scores import Evaluation

TASK, PAIRS = "wmt17-metrics-task", ("de-en", "en-cs", "en-tr", "zh-en")
HUMAN_SETS = ("da/wmt22/uk-en", "esa/wmt24/cs-uk", "esa/wmt24/en-is")
HUMAN_PREFIXES = ("ref", "human")
SIZES, ALPHA, SEED = (50, 100, 200, 500), 0.05, 2026
SYSTEMS = 5  # of each language pair
Draw = tuple[Scores, Scores, float]


def draw(
    evaluations: Sequence[Evaluation], metric: str, design: str, size: int, rng: np.random.Generator
) -> Draw:
    """Return the scores of a candidate and a baseline, and the margin at their true difference."""
    evaluation = evaluations[int(rng.integers(len(evaluations)))]
    names = rng.choice(evaluation.systems, 2, replace=False)
    first, second = (evaluation.scores[name][metric] for name in names)
    count = len(first)
    if design == "halves":
        rows = rng.permutation(count)
        return first.subset(rows[:size]), first.subset(rows[size : 2 * size]), 0.0
    rows = rng.integers(0, count, size)
    if design == "equal":
        swap = rng.random(size)[:, None] < 0.5
        one, two = first.statistics[rows], second.statistics[rows]
        mixed = np.where(swap, two, one), np.where(swap, one, two)
        parts = (first.subset(rows), second.subset(rows))
        return *(replace_statistics(s, m) for s, m in zip(parts, mixed, strict=True)), 0.0  # type: ignore[return-value]
    if first.system > second.system:
        first, second = second, first
    return first.subset(rows), second.subset(rows), second.system - first.system


def replace_statistics(scores: Scores, statistics: FloatArray) -> Scores:
    """Return scores of other segments."""
    return replace(scores, statistics=statistics)


def measure_level(
    evaluations: Sequence[Evaluation], metric: str, design: str, size: int, draws: int
) -> list[float]:
    """Return shares of wrong "pass" and "worse" of the gate and of the plain t-test."""
    rng, wrong = make_rng(SEED), []
    for _ in range(draws):
        candidate, baseline, margin = draw(evaluations, metric, design, size, rng)
        own = measure_difference(candidate, baseline)
        ratio = (own.center + margin) / own.standard_error
        p_values = [own.p_greater(-margin), own.p_less(-margin)]
        p_values += [float(student.sf(ratio, size - 1)), float(student.cdf(ratio, size - 1))]
        wrong.append(np.array(p_values) <= ALPHA)
    return [float(share) for share in np.mean(wrong, axis=0)]


def print_levels(evaluations: Sequence[Evaluation], draws: int) -> None:
    """Print a row for each metric, design and number of segments."""
    print("| metric | design | segments | gate | jackknife t-test |")
    print("| --- | --- | ---: | --- | --- |")
    for metric in evaluations[0].metrics:
        for design in ("halves", "equal", "margin"):
            for size in SIZES:
                shares = measure_level(evaluations, metric, design, size, draws)
                cells = [
                    f"{a:.3f} / {b:.3f}" for a, b in zip(shares[::2], shares[1::2], strict=True)
                ]
                print(f"| {metric} | {design} | {size} | {' | '.join(cells)} |", flush=True)


def read_judged(path: Path) -> tuple[TestSet, Mapping[str, FloatArray]]:
    """Return the outputs that all systems have, and human scores by system."""
    rows: dict[str, dict[str, dict[str, object]]] = {}
    for _, record in read_records(path):
        if record.get("reference") and not str(record["system"]).lower().startswith(HUMAN_PREFIXES):
            item = f"{record.get('doc')}:{record['segment']}"
            rows.setdefault(str(record["system"]), {})[item] = record
    items = sorted(set.intersection(*(set(own) for own in rows.values())))
    systems = {s: [str(own[i]["hypothesis"]) for i in items] for s, own in rows.items()}
    first = next(iter(rows.values()))
    references = [str(first[i]["reference"]) for i in items]
    human = {s: np.array([float(str(own[i]["score"])) for i in items]) for s, own in rows.items()}
    return TestSet.from_lists(systems, references=references), human


def separated_pairs(human: Mapping[str, FloatArray]) -> Iterator[tuple[str, str]]:
    """Yield the better and the worse of systems that human scores separate."""
    for one, two in combinations(human, 2):
        if ttest_rel(human[one], human[two]).pvalue < ALPHA:
            is_first = human[one].mean() > human[two].mean()
            yield (one, two) if is_first else (two, one)


def print_power(root: Path, specs: Sequence[str]) -> None:
    """Print the verdicts on the worse of two systems, and on the better one."""
    print("| set | metric | segments | margin | pairs | candidate is worse | candidate is better |")
    print("| --- | --- | ---: | ---: | ---: | --- | --- |")
    rules = GateRules.from_values({"human": "5%"})
    for name in HUMAN_SETS:
        testset, human = read_judged(root / "modern" / "dev" / f"{name}.jsonl.gz")
        pairs = [*separated_pairs(human)]
        metrics = load_metrics_for(target_texts(testset), list(specs))
        evaluation, margins = score(testset, metrics), resolve_margins(rules, metrics, testset)
        for metric, margin in margins.items():
            verdicts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
            for better, worse in pairs:
                low, high = (evaluation.scores[system][metric] for system in (worse, better))
                verdicts[0][judge(low, high, margin)] += 1
                verdicts[1][judge(high, low, margin)] += 1
            cells = [describe_verdicts(counts, len(pairs)) for counts in verdicts]
            row = f"| {name} | {metric} | {len(testset)} | {margin:.3g} | {len(pairs)} |"
            print(f"{row} {' | '.join(cells)} |", flush=True)


def judge(candidate: Scores, baseline: Scores, margin: float) -> str:
    """Return the verdict of the gate on two systems."""
    own = measure_difference(candidate, baseline)
    return choose_verdict(own.p_greater(-margin), own.p_less(-margin), own.p_greater(0), ALPHA)


def describe_verdicts(counts: Counter[str], total: int) -> str:
    """Return verdicts with their shares."""
    return ", ".join(f"{name} {100 * count / total:.0f} %" for name, count in counts.most_common())


def score_task() -> list[Evaluation]:
    """Score some systems of each language pair of WMT17."""
    task = DatasetFolder.open().metrics_task(TASK)
    evaluations = []
    for lp in PAIRS:
        testset = task.testset(lp)
        names = [*testset.systems][:SYSTEMS]
        chosen = replace(testset, systems={name: testset.systems[name] for name in names})
        evaluations.append(score(chosen, ["chrf", "bleu"]))
    return evaluations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", default="level", choices=("level", "power"))
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--metrics", nargs="+", default=["chrf", "bleu"])
    args = parser.parse_args()
    if args.part == "level":
        print(f"wrong pass / wrong worse at alpha = {ALPHA}, {args.draws:,} draws\n")
        print_levels(score_task(), args.draws)
    else:
        print("verdicts on pairs that human scores separate, margin human=5%\n")
        print_power(DatasetFolder.open().root, args.metrics)
