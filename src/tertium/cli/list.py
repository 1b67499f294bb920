"""`tertium list`: the metrics and rankers there are, what they need and what can be set."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
from pathlib import Path
from typing import Any

from tertium.cli.output import FORMATS, print_records, print_result, print_table
from tertium.errors import MissingResourceError, UsageError
from tertium.metrics.base.loading import is_folder
from tertium.models.checkpoint import are_installed, read_config
from tertium.registry import ALIASES, METRICS, RANKERS, resolve_scorer
from tertium.reporting.tables.table import Table
from tertium.specs import describe_fields, print_value, read_fields, split_spec

HELP = "list metrics and rankers, or explain one"
DESCRIPTION = "List the metrics and rankers, or show one with its fields."
EPILOG = """\
examples:
  tertium list
  tertium list bleu
  tertium list pairwise
  tertium list models/mine
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("metric", nargs="?", help="a metric or ranker to explain")
    parser.add_argument("-f", "--format", choices=FORMATS, default="text")


def run(args: argparse.Namespace) -> int:
    if args.metric:
        return _explain(args.metric, args.format)
    records = [_describe(name) for name in (*METRICS, *RANKERS)]
    rows = [[r["metric"], r["needs"], r["better"], r["summary"]] for r in records]
    notes = [f"{alias} is short for {spec}" for alias, spec in ALIASES.items()]
    notes.append("what ranks compares two translations: tertium rank -m NAME")
    header = ["metric", "needs", "better", "what"]
    table = Table(header, rows, notes=notes, left=frozenset(range(4)))
    print_result(records, table, args.format)
    return 0


def _describe(name: str) -> dict[str, str]:
    ranks = name not in METRICS
    described = {"metric": name, "kind": "ranker" if ranks else "metric"}
    try:
        cls = resolve_scorer(name)
        higher = "ranks" if ranks else "higher" if cls.higher_is_better else "lower"
        return {**described, "needs": _needs(cls), "better": higher, "summary": _summary(cls)}
    except Exception as error:  # what is not ours may fail in any way, and the rest is listed
        if name in METRICS.builtin or name in RANKERS.builtin:
            raise
        said = str(error).partition("\n")[0]
        return {**described, "needs": "", "better": "", "summary": f"cannot be used: {said}"}


def _needs(cls: Any) -> str:
    try:
        return " + ".join(sorted(cls().needs)) or "references or source"
    except MissingResourceError:
        return "to be trained" if are_installed() else "tertium-models"


def _summary(cls: Any) -> str:
    """The first line of its module; of the class, where a module holds several."""
    if sum(place.startswith(f"{cls.__module__}:") for place in METRICS.values()) > 1:
        return f"{cls.title}: {_first_line(cls.__doc__)}"
    return _first_line(getattr(inspect.getmodule(cls), "__doc__", None))


def _first_line(text: str | None) -> str:
    return (text or "").split("\n")[0].rstrip(".")


def named_scorer(spec: str) -> tuple[str, Any]:
    """The name and class of a metric or ranker; fields that it cannot have are refused."""
    name = _scorer_name(spec)
    cls = resolve_scorer(name)
    fields = read_fields(cls, name, {} if is_folder(spec) else split_spec(spec)[1])
    if fields:
        cls(**fields)  # checks what its types do not tell, such as the name of a tokenizer
    return name, cls


def _scorer_name(spec: str) -> str:
    """The name of a metric or ranker by its spec, by an alias, or by the folder it was saved to."""
    name = spec if is_folder(spec) else split_spec(spec)[0]
    if is_folder(name):
        config = read_config(Path(name))
        return str(config.get("metric") or config.get("ranker"))
    if "/" in name:
        raise UsageError(f"{name}: no folder that a metric was saved to (no config.json there)")
    return split_spec(ALIASES.get(name, name))[0]


def _explain(spec: str, style: Any) -> int:
    name, cls = named_scorer(spec)
    takes = describe_fields(cls)
    rows = [
        [field.name, takes[field.name], print_value(field.default)]
        for field in dataclasses.fields(cls)
        if field.init
    ]
    header = ["field", "type", "default"]
    if style == "json":
        fields = [dict(zip(header, row, strict=True)) for row in rows]
        print_records([{**_describe(name), "about": inspect.getdoc(cls), "fields": fields}])
        return 0
    if style == "text":
        print(f"{cls.title} ({name})\n")
        print(inspect.getdoc(cls))
    print_table(Table(header, rows, left=frozenset(range(3))), style)
    return 0
