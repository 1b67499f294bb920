"""The command `list data`: the sets of human judgments in a folder, or one of them."""

from __future__ import annotations

import math
from typing import Annotated, Any

from tertium.core.errors import DataError
from tertium.core.options import Option
from tertium.core.result import Column, Listing, Table, format_number
from tertium.core.runtime import track_progress
from tertium.data.dataset_folder import Dataset, DatasetFolder
from tertium.data.formats.mt_metrics_eval import find_eval_sets
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.data.text_files import read_lines

Record = dict[str, Any]


def list_datasets(
    name: Annotated[str | None, Option(metavar="SET")] = None,
    /,
    *,
    data: Annotated[str | None, Option(metavar="DIR", group="Input")] = None,
) -> Listing:
    """List the sets of human judgments in a folder, or describe one of them.

    Parameters
    ----------
    name
        Set to describe (default: list all).
    data
        Folder of human judgments (default: $TERTIUM_DATA).

    Examples
    --------
    tertium list data --data judgments/
    tertium list data rankings/wmt12
    tertium list data da/wmt17 -f json
    """
    folder = DatasetFolder.open(data)
    if not folder.sets:
        raise DataError(
            f"{folder.root}: no sets of human judgments found; see "
            "docs/meta-evaluation/human-judgments.md for the expected files"
        )
    if name:
        entry = folder.find(name.rstrip("/"))
        records = describe_dataset(folder, entry)
        title = f"{entry.name} ({entry.kind})"
    else:
        sets = track_progress(folder.sets, "reading")
        records = [summarize_dataset(folder, entry) for entry in sets]
        title = f"{len(records)} set{'s' * (len(records) != 1)} in {folder.root}"
    columns = [_make_column(*item) for item in records[0].items()] if records else []
    return Listing(table=Table(columns, records, title), json=records)


def summarize_dataset(folder: DatasetFolder, entry: Dataset) -> Record:
    """Return the language pairs and the number of human judgments of a dataset; NaN if unknown."""
    files = [path for (_, part), path in entry.files.items() if part not in ("texts", "systems")]
    lps, rows = entry.lps, sum(map(_count_rows, files)) or math.nan
    if entry.kind == "metrics task":
        task = folder.metrics_task(entry.name)
        groups = [*task.segment_rows.values(), *task.system_rows.values()]
        lps, rows = task.lps, sum(map(len, groups))
    elif entry.kind == "mt-metrics-eval":
        lps = tuple(part.lp for part in find_eval_sets(entry.path))
    return {"name": entry.name, "kind": entry.kind, "lps": lps, "rows": rows}


def _count_rows(path: Any) -> int:
    headers = 0 if ".jsonl" in path.suffixes else 1
    return sum(bool(line.strip()) for line in read_lines(path)) - headers


def describe_dataset(folder: DatasetFolder, entry: Dataset) -> list[Record]:
    """Return a record for each language pair (and part) of a dataset, which is read in full."""
    if entry.kind == "metrics task":
        task = folder.metrics_task(entry.name)
        return [
            {
                "lp": lp,
                "outputs": len(task.outputs(lp)),
                "judged systems": len(task.system_rows.get(lp, ())),
                "judged segments": len(task.segment_rows.get(lp, ())),
            }
            for lp in task.lps
        ]
    if entry.kind == "mt-metrics-eval":
        return [
            {
                "lp": part.lp,
                "systems": len(part.testset.systems),
                "references": ", ".join(part.references),
                "human scores": ", ".join(part.human_scores),
                "metric scores": len(part.score_files),
            }
            for part in find_eval_sets(entry.path)
        ]
    if entry.kind == "rankings":
        return [describe_judgments(folder.rankings(entry.name, lp)) for lp in entry.lps]
    if entry.kind == "sentence pairs":
        files = sorted(entry.files.items())
        return [{"part": part, "rows": _count_rows(path)} for (_, part), path in files]
    return [
        describe_judgments(folder.judgments(entry.name, lp, part), part)
        for lp, part in sorted(entry.files)
    ]


def describe_judgments(entry: JudgmentSet | RankingSet, part: str = "") -> Record:
    """Return the statistics of scores or comparisons."""
    systems = len(entry.systems) if any(entry.systems) else math.nan
    record: Record = {"lp": entry.lp, **({"part": part} if part else {}), "rows": len(entry)}
    record |= {"segments": len(entry.items), "systems": systems}
    if isinstance(entry, JudgmentSet):
        record["joint"] = sum("+" in judgment.system for judgment in entry.judgments)
        record["lowest"] = float(entry.scores.min())
        record["mean"] = float(entry.scores.mean())
        record["highest"] = float(entry.scores.max())
    else:
        record |= {"ties": entry.ties, "judges": len(entry.judges)}
    return record | {"left out": sum(entry.excluded_counts.values())}


def _make_column(name: str, example: Any) -> Column:
    """Return a column of records: text aligned left, numbers right."""

    def get(record: Record) -> Any:
        value = record[name]
        return " ".join(value) if isinstance(value, list | tuple) else value

    def text(record: Record, _: int) -> str:
        value = get(record)
        if isinstance(value, float):
            return format_number(value, 3)
        return f"{value:,}" if isinstance(value, int) else str(value)

    return Column(name, get, 0 if isinstance(example, int | float) else None, text=text)
