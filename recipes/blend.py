"""Fit the bundled blend and the constants of untrained blends: `python -m recipes.blend FILE`.

    python -m recipes.blend scores.jsonl            # score what is missing, fit, and report
    python -m recipes.blend scores.jsonl --write    # also write the constants, and the model if it
                                                    # is better than each of its metrics

Metrics score samples of the development sets with references (papers.modern: whole segments, about
1,000 translations per language pair). Scores are appended to FILE and are not computed again unless
the weights of a metric change. tertium-multi was trained on modern/train and looks better there
than elsewhere, so that chrF gets no weight on it: weights are fitted on the development sets, and
the report leaves out one set at a time. Human and metric scores are centered, and human scores
standardized, per set and language pair: a blend compares translations of one test set.

If the data contain esa/wmt25, whose rows have scores of LLM judges, blends with a strong and a weak
judge are cross-validated over documents and systems, and their weights are printed. FILE may be the
one of recipes.wmt25.

The constants of judges (`labels` in the file) are the mean of two judges of WMT25 (GEMBA-ESA with
GPT-4.1 and Command A): mean and deviation of scores within a language pair, averaged over 14 pairs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from papers.modern import HUMAN_PREFIXES, SAMPLE_SIZE, read_sample

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.atomic import write_text
from tertium.core.errors import DataError
from tertium.core.resampling import FOLDS, number_folds
from tertium.core.runtime import runtime
from tertium.data.dataset_folder import DatasetFolder
from tertium.data.judgments import JudgmentSet
from tertium.meta.agreement_results import Results
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import tasks_for
from tertium.metrics import load_metric
from tertium.metrics.base.trainable import collect_judgments, known_scores, number_documents
from tertium.metrics.blend.blend_metric import CONSTANTS, Blend
from tertium.models.blend_model import BlendModel, fit_blend, normalize
from tertium.models.checkpoint import bundled_models_folder
from tertium.output.text import render_table

DEV, SETS, JUDGED_SET = "modern/dev", ("da/wmt22", "esa/wmt24", "mqm/ted21"), "esa/wmt25"
JUDGES = {"strong": "gemba_gpt41", "weak": "gemba_commanda"}
STATISTICS = ("pearson", "acc-eq*", "spa", "accuracy")
MULTI = "tertium-multi:against=reference"
BLEND = "blend"  # its row in tables
MIN_SYSTEMS = 3  # fewer are not held out
STUDY_STATISTICS = ("pearson", "acc-eq*", "spa")
PARTS = ("chrf", MULTI)
# Known to untrained blends. Not TER: it has no bound, and a few outputs determine its deviation.
CONSTANT_METRICS = ("bleu", "chrf", "chrf:word_order=2", MULTI, "tertium-multi:against=both")
CONSTANTS_FILE = Path(__file__).parents[1] / "src/tertium/metrics/blend" / CONSTANTS
NOTE = "human scores of modern/dev (da/wmt22, esa/wmt24, mqm/ted21), standardized per language pair"


def read_sets(data: DatasetFolder, size: int) -> list[JudgmentSet]:
    """Return a sample of each language pair of the development sets."""
    sets = []
    for name in SETS:
        for path in sorted((data.root / DEV / name).glob("*.jsonl.gz")):
            lp = path.name.split(".")[0]
            judgments = [
                replace(j, lp=lp, document=j.item.rpartition(":")[0])
                for j in read_sample(path, size, True).judgments
            ]
            sets.append(JudgmentSet(name=name, lp=lp, judgments=tuple(judgments)))
    return sets


def add_scores(sets: Sequence[JudgmentSet], specs: Sequence[str], file: Path) -> list[JudgmentSet]:
    """Return the sets with the scores of metrics, from the file if possible."""
    stored = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        record = json.loads(line)
        key = (record["set"], record["metric"], *record["model_ids"])
        stored[*key, len(record["scores"])] = record["scores"]
    result = []
    for one in sets:
        scores = {}
        for metric in map(load_metric, specs):
            key = (one.title, metric.spec, *metric.model_ids, len(one))
            if key not in stored:
                stored[key] = metric.score(one.segments).segments.tolist()
                record = {"set": one.title, "metric": metric.spec, "scores": stored[key]}
                with file.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps({**record, "model_ids": metric.model_ids}) + "\n")
                print(f"scored {one.title} with {metric.spec}", flush=True)
            scores[metric.spec] = stored[key]
        rows = zip(*scores.values(), strict=True)
        judgments = [
            replace(j, metric_scores=dict(zip(scores, row, strict=True)))
            for j, row in zip(one.judgments, rows, strict=True)
        ]
        result.append(replace(one, judgments=tuple(judgments)))
    return result


def center(sets: Sequence[JudgmentSet], specs: Sequence[str]) -> list[JudgmentSet]:
    """Move the metric scores of all sets to the same mean; standardize human scores per set."""
    means = {spec: np.mean([one.metric_scores()[spec].mean() for one in sets]) for spec in specs}
    result = []
    for one in sets:
        own = {spec: one.metric_scores()[spec].mean() for spec in specs}
        judgments = [
            replace(
                j,
                score=float((j.score - one.scores.mean()) / one.scores.std()),
                metric_scores={s: j.metric_scores[s] - own[s] + means[s] for s in specs},
            )
            for j in one.judgments
        ]
        result.append(replace(one, judgments=tuple(judgments)))
    return result


def fit_weights(sets: Sequence[JudgmentSet], specs: Sequence[str]) -> BlendModel:
    """Fit a blend on sets, each of which is a group."""
    parts = [load_metric(spec) for spec in specs]
    targets = np.concatenate([one.scores for one in sets])
    groups = np.repeat(np.arange(len(sets)), [len(one) for one in sets])
    return fit_blend(specs, known_scores(parts, sets), targets, groups)


def compare(sets: Sequence[JudgmentSet], specs: Sequence[str], resamples: int) -> bool:
    """Print the agreement of a blend that was not fitted on the set, and of its metrics.

    Return whether the blend has a higher average than each metric in all of `STATISTICS`.
    """
    parts = [load_metric(spec) for spec in specs]
    aligned = []
    for n, one in enumerate(sets):
        values = known_scores(parts, [one])
        other_sets = [*sets[:n], *sets[n + 1 :]]
        equal = ((values - values.mean(axis=0)) / values.std(axis=0)).sum(axis=1)
        columns: Mapping[str, FloatArray] = {
            **dict(zip(specs, values.T, strict=True)),
            "equal weights": equal,
            "blend": fit_weights(other_sets, specs).predict(values),
        }
        matrices = [one.to_score_matrix(v, name) for name, v in columns.items()]
        aligned.append(AlignedScores.align(one.title, matrices, human=one.matrix()))
    names, is_better = [one.name for one in aligned], True
    for statistic in STATISTICS:
        tasks = tasks_for(names, statistic, resamples=resamples)
        results = MetaEvaluation(aligned).run(tasks)
        print(render_table(results.agreement_table(intervals=True), "text"), flush=True)
        averages = dict(zip(results.metrics, results.average.values.tolist(), strict=True))
        is_better &= averages["blend"] > max(averages[spec] for spec in specs)
    return is_better


def write_constants(sets: Sequence[JudgmentSet], specs: Sequence[str]) -> None:
    """Write mean and deviation of the scores of metrics within a set, for untrained blends."""
    content = json.loads(CONSTANTS_FILE.read_text(encoding="utf-8"))
    for spec in specs:
        metric = load_metric(spec)
        values = [
            s if metric.higher_is_better else -s for s in (o.metric_scores()[spec] for o in sets)
        ]
        mean = np.mean([own.mean() for own in values])
        deviation = np.sqrt(np.mean([own.var() for own in values]))
        content["specs"][spec] = {"mean": round(mean, 4), "deviation": round(deviation, 4)}
    content["specs"]["tertium-multi"] = content["specs"]["tertium-multi:against=both"]
    write_text(CONSTANTS_FILE, json.dumps(content, indent=1) + "\n")


def report_judges(data: DatasetFolder, specs: Sequence[str], file: Path, resamples: int) -> None:
    """Cross-validate blends with the judges of esa/wmt25, if the data contain it."""
    entry = next((e for e in data.sets if e.name == f"{DEV}/{JUDGED_SET}"), None)
    if entry is None:
        print(f"{DEV}/{JUDGED_SET} is not in the data: blends with judges are not fitted")
        return
    human_sets = [data.judgments(entry.name, lp).drop_without_references() for lp in entry.lps]
    scored = add_scores(human_sets, specs, file)
    for kind, judge in JUDGES.items():
        spec = f"judge:model={kind}"  # a name for the column: no server is asked
        sets = []
        for one, own in zip(human_sets, scored, strict=True):
            judgments = [
                replace(j, metric_scores={**k.metric_scores, spec: j.metric_scores[judge]})
                for j, k in zip(one.judgments, own.judgments, strict=True)
                if judge in j.metric_scores and not j.system.lower().startswith(HUMAN_PREFIXES)
            ]
            sets.append(replace(one, judgments=tuple(judgments)))
        metrics = [spec, *specs]
        centered = center(sets, metrics)
        weights = fit_weights(centered, metrics).coefficients
        print(f"{kind} judge ({judge}):", {name: round(w, 3) for name, w in weights.items()})
        study = cross_validate_blend(centered, metrics, resamples=resamples)
        for table in study.tables(intervals=True, p_values=True):
            print(render_table(table, "text"), flush=True)


def cross_validate_blend(
    sets: Sequence[JudgmentSet],
    metrics: Sequence[str],
    *,
    resamples: int = 1000,
    seed: int = 12345,
    **options: Any,
) -> Results:
    """Compare a blend with each of its metrics on human scores.

    Each translation is scored by a blend that was trained on other documents and, if there are at
    least three systems, on other systems. `options` are those of `fit_blend`.
    """
    parts, data = [load_metric(metric) for metric in metrics], collect_judgments(sets)
    values, targets = known_scores(parts, sets), np.array([one.score for one in data])
    systems = np.unique([f"{one.lp} {one.system}" for one in data], return_inverse=True)[1]
    names = [part.spec for part in parts]
    predicted = cross_validate(names, values, targets, number_documents(data), systems, **options)
    columns = dict(zip([*names, BLEND], [*values.T, predicted], strict=True))
    aligned, start = [], 0
    for judgment_set in sets:
        rows = slice(start, start := start + len(judgment_set))
        matrices = [judgment_set.to_score_matrix(v[rows], m) for m, v in columns.items()]
        aligned.append(
            AlignedScores.align(judgment_set.title, matrices, human=judgment_set.matrix())
        )
    has_systems = all(len(one.systems) > 1 for one in aligned)
    tasks = [
        task
        for statistic in STUDY_STATISTICS
        if statistic == "pearson" or has_systems
        for task in tasks_for([one.name for one in aligned], statistic, resamples=resamples)
    ]
    return MetaEvaluation(aligned, seed=seed).run(tasks)


def cross_validate(
    names: Sequence[str],
    values: FloatArray,
    targets: FloatArray,
    documents: IntArray,
    systems: IntArray,
    **options: Any,
) -> FloatArray:
    """Predict each row, up to a constant, by a blend that saw neither its document nor its system.

    `documents` and `systems` (n,) are numbers. Fewer than three systems are not held out. `options`
    are those of `fit_blend`.
    """
    if len(np.unique(documents)) < 2:
        raise DataError("cross-validation needs at least two documents or segments")
    document_folds = number_folds(documents, FOLDS)
    system_folds = np.full(len(systems), -1)
    if len(np.unique(systems)) >= MIN_SYSTEMS:
        system_folds = number_folds(systems, FOLDS)
    predicted = np.full(len(targets), np.nan)
    for document, system in product(np.unique(document_folds), np.unique(system_folds)):
        test = (document_folds == document) & (system_folds == system)
        train = (document_folds != document) & ((system_folds != system) | (system < 0))
        if not test.any():
            continue
        blend = fit_blend(names, values[train], targets[train], documents[train], **options)
        predicted[test] = _keep_ratios(blend, values).predict(values[test])
    return predicted


def _keep_ratios(blend: BlendModel, values: FloatArray) -> BlendModel:
    """Keep only the ratios of the weights, so that blends of different folds are comparable.

    Means and deviations are those of all scores. Bias and size of the weights are dropped: with the
    human scores of a fold, they would tell how good the systems are that it leaves out.
    """
    rows = normalize(values, blend.quantiles)
    deviations = np.nanstd(rows, axis=0)
    size = blend.weights.sum() or 1.0
    return replace(
        blend,
        mean=np.nanmean(rows, axis=0),
        scale=np.where(deviations > 0, deviations, 1.0),
        weights=blend.weights / size,
        bias=0.0,
        missing_biases=blend.missing_biases / size,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scores", type=Path, help="file of metric scores, which is extended")
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    parser.add_argument("--size", type=int, default=SAMPLE_SIZE, help="translations per pair")
    parser.add_argument("--parts", nargs="+", default=[*PARTS], help="metrics of the blend")
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--write", action="store_true", help="write the model and the constants")
    args = parser.parse_args()
    data = DatasetFolder.open(args.data)
    specs = list(dict.fromkeys([*args.parts, *(CONSTANT_METRICS if args.write else ())]))
    with runtime(device=args.device):
        sets = add_scores(read_sets(data, args.size), specs, args.scores)
        centered = center(sets, args.parts)
        is_better = compare(centered, args.parts, args.resamples)
        print("weights:", fit_weights(centered, args.parts).coefficients)
        print("the blend is", "better" if is_better else "not better", "than each of its metrics")
        if args.write:
            write_constants(sets, CONSTANT_METRICS)
        if args.write and is_better:
            blend = Blend.train(centered, metrics=tuple(args.parts), note=NOTE)
            blend.save(bundled_models_folder() / Blend.name)
        report_judges(data, args.parts, args.scores, args.resamples)


if __name__ == "__main__":
    main()
