"""Statistics of datasets with human judgments: per dataset, or per language pair."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from tertium.data.dataset_folder import Dataset, DatasetFolder
from tertium.data.formats.mt_metrics_eval import find_eval_sets
from tertium.data.formats.preferences import read_texts
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.data.record_files import read_records
from tertium.data.records import SYSTEM_NAMES, get_text, lowercase_known_columns
from tertium.data.text_files import read_lines
from tertium.data.win_rates import annotator_agreement

Record = dict[str, Any]


def summarize_dataset(folder: DatasetFolder, entry: Dataset) -> Record:
    """Return the statistics of one dataset without parsing every row; NaN if unknown.

    `rows` counts human judgments: scores of translations, comparisons, or scores of systems. A
    system is counted once for each language pair, and not at all if systems have no names.
    """
    lps, rows, systems = entry.lps, 0, 0
    if entry.kind == "metrics task":
        task = folder.metrics_task(entry.name)
        lps = task.lps
        records = [describe_task(folder, entry.name, lp) for lp in lps]
        rows = sum(r["judged segments"] + r["judged systems"] for r in records)
        systems = sum(r["judged systems"] for r in records)
    elif entry.kind == "mt-metrics-eval":
        sets = find_eval_sets(entry.path)
        lps, systems = tuple(s.lp for s in sets), sum(len(s.systems) for s in sets)
    for (lp, part), path in entry.files.items():
        if part == "judgements":
            texts = read_texts(entry.file(lp, "texts")).values()
            rows += _count_rows(path)
            systems += len({system for item in texts for system in item.outputs})
        elif entry.kind != "rankings":
            names = [
                get_text(lowercase_known_columns(record), SYSTEM_NAMES)
                for _, record in read_records(path)
            ]
            rows += len(names)
            systems += len({part for name in names for part in name.split("+") if part})
    counts = {"lps": lps, "rows": rows or math.nan, "systems": systems or math.nan}
    return {"name": entry.name, "kind": entry.kind, **counts}


def _count_rows(path: Path) -> int:
    """Count the rows of a file by its lines, about ten times faster than parsing them."""
    headers = 0 if ".jsonl" in path.suffixes else 1
    return sum(bool(line.strip()) for line in read_lines(path)) - headers


def describe_dataset(folder: DatasetFolder, entry: Dataset) -> list[Record]:
    """Return a record for each language pair (and part) of a dataset, which is read in full."""
    if entry.kind == "metrics task":
        task = folder.metrics_task(entry.name)
        return [describe_task(folder, entry.name, lp) for lp in task.lps]
    if entry.kind == "mt-metrics-eval":
        return [
            {
                "lp": s.lp,
                "systems": len(s.systems),
                "references": ", ".join(s.references),
                "human scores": ", ".join(s.human_scores),
                "metric scores": len(s.metric_scores),
            }
            for s in find_eval_sets(entry.path)
        ]
    if entry.kind == "rankings":
        return [describe_judgments(folder.rankings(entry.name, lp)) for lp in entry.lps]
    if entry.kind == "sentence pairs":
        return [
            {"part": part, "rows": len(labels), "labelled": sum(map(bool, labels))}
            for (_, part), path in sorted(entry.files.items())
            for labels in [[record.get("label") for _, record in read_records(path)]]
        ]
    return [
        describe_judgments(folder.judgments(entry.name, lp, part), part)
        for lp, part in sorted(entry.files)
    ]


def describe_judgments(entry: JudgmentSet | RankingSet, part: str = "") -> Record:
    """Return the statistics of scores or comparisons, with annotator agreement if it is known."""
    record = {"lp": entry.lp, **({"part": part} if part else {}), "rows": len(entry)}
    record["segments"] = len(entry.items)
    record["systems"] = len(entry.systems) if any(entry.systems) else math.nan
    if isinstance(entry, JudgmentSet):
        record["joint"] = sum("+" in judgment.system for judgment in entry.judgments)
        record["lowest"] = float(entry.scores.min())
        record["mean"] = float(entry.scores.mean())
        record["highest"] = float(entry.scores.max())
    else:
        record["ties"], record["judges"] = entry.ties, len(entry.judges)
        kappas = (math.nan, math.nan)
        if entry.judges:
            inter, intra = annotator_agreement(entry)
            kappas = inter.kappa, intra.kappa
        record["kappa"], record["own kappa"] = kappas
    return record | {"left out": sum(entry.excluded_counts.values())}


def describe_task(folder: DatasetFolder, name: str, lp: str) -> Record:
    """Return the statistics of one language pair of a metrics task."""
    task = folder.metrics_task(name)
    outputs = lp in task.with_outputs
    judged_systems = task.system_scores(lp).table.systems if lp in task.system_level else ()
    return {
        "lp": lp,
        "outputs": len(task.testset(lp).systems) if outputs else 0,
        "judged systems": len(judged_systems),
        "judged segments": task.count_segments(lp),
    }
