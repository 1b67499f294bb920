"""`tertium list`: recommended metrics, all metrics and rankers, or the fields of one."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tertium.cli.output import add_format, show
from tertium.cli.parser import CommandParser
from tertium.core.result import Column, Table
from tertium.errors import MissingResourceError, UsageError
from tertium.metrics.base.loading import is_model_folder
from tertium.models.checkpoint import has_bundled_models, read_config
from tertium.registry import ALIASES, METRICS, RANKERS, resolve_scorer
from tertium.specs import describe_fields, format_value, parse_fields, split_spec

# Recommended metrics, and when to use each.
RECOMMENDED: Mapping[str, str] = {
    "tertium-multi": "about 100 languages; with source, reference or both; marks error spans",
    "tertium-small": "English references; fast on a CPU",
    "tertium-base": "English references; slower than tertium-small and more accurate",
    "chrf": "any language with references; needs no model",
    "bleu": "comparison with published BLEU scores",
    "bertscore": "similarity of token embeddings; not trained on human scores",
    "sentsim": "without references; not trained on human scores",
    "judge": "a language model on a server, local or hosted; marks error spans",
    "blend": "a weighted sum of other metrics, trained on your human scores",
    "comet": "a COMET checkpoint that you have on disk",
}
DESCRIPTION = "List the recommended metrics, or show one metric with its fields."
EPILOG = """\
examples:
  tertium list
  tertium list --all
  tertium list bleu
  tertium list models/mine
"""


def add_arguments(parser: CommandParser) -> None:
    group = parser.groups["Metrics"]
    group.add_argument("metric", nargs="?", metavar="METRIC", help="metric or ranker to describe")
    group.add_argument("--all", action="store_true", help="list all metrics and rankers")
    add_format(parser)


def run(args: argparse.Namespace) -> int:
    if args.metric and args.all:
        raise UsageError(f"--all lists all metrics: omit it, or omit {args.metric}")
    if args.metric:
        return _show_metric(args)
    if args.all:
        records = [_describe(name) for name in (*METRICS, *RANKERS)]
        notes = [f"{alias} is an alias of {spec}" for alias, spec in ALIASES.items()]
        notes.append("rankers compare two translations: tertium rank -m NAME")
    else:
        names = [name for name in RECOMMENDED if name in METRICS]
        records = [{**_describe(name), "summary": RECOMMENDED[name]} for name in names]
        total = len([*METRICS, *RANKERS])
        notes = [f"`tertium list --all` shows all {total} metrics and rankers"]
    columns = [
        Column("metric"),
        Column("needs"),
        Column("better"),
        Column("summary" if args.all else "use it for", "summary"),
    ]
    show(args, Table(columns, records, notes=notes), records=records)
    return 0


def _describe(name: str) -> dict[str, str]:
    is_ranker = name not in METRICS
    record = {"metric": name, "kind": "ranker" if is_ranker else "metric"}
    try:
        cls = resolve_scorer(name)
        better = "ranks" if is_ranker else "higher" if cls.higher_is_better else "lower"
        return {**record, "needs": _needs(cls), "better": better, "summary": _summarize(cls)}
    except Exception as error:  # a broken plugin must not hide the others
        if name in METRICS.builtin or name in RANKERS.builtin:
            raise
        reason = str(error).partition("\n")[0]
        return {**record, "needs": "", "better": "", "summary": f"cannot be loaded: {reason}"}


def _needs(cls: Any) -> str:
    try:
        return " + ".join(sorted(cls().required_inputs)) or "references or source"
    except MissingResourceError:
        return "training" if has_bundled_models() else "tertium-models"


def _summarize(cls: Any) -> str:
    """Return the first line of the module's docstring, or of the class if it shares a module."""
    if sum(target.startswith(f"{cls.__module__}:") for target in METRICS.values()) > 1:
        return f"{cls.title}: {_first_line(cls.__doc__)}"
    return _first_line(getattr(inspect.getmodule(cls), "__doc__", None))


def _first_line(text: str | None) -> str:
    return (text or "").split("\n")[0].rstrip(".")


def resolve_spec(spec: str) -> tuple[str, Any]:
    """Return name and class of a metric or ranker; invalid fields are an error."""
    name = _scorer_name(spec)
    cls = resolve_scorer(name)
    fields = parse_fields(cls, name, {} if is_model_folder(spec) else split_spec(spec)[1])
    if fields:
        cls(**fields)  # checks values, such as the name of a tokenizer
    return name, cls


def _scorer_name(spec: str) -> str:
    """Return the name of a metric or ranker, given a spec, an alias or a folder."""
    name = spec if is_model_folder(spec) else split_spec(spec)[0]
    if is_model_folder(name):
        config = read_config(Path(name))
        return str(config.get("metric") or config.get("ranker"))
    if "/" in name:
        raise UsageError(f"{name}: not the folder of a saved metric (no config.json)")
    return split_spec(ALIASES.get(name, name))[0]


def _show_metric(args: argparse.Namespace) -> int:
    name, cls = resolve_spec(args.metric)
    about, types = inspect.getdoc(cls), describe_fields(cls)
    fields = [
        {"field": field.name, "type": types[field.name], "default": format_value(field.default)}
        for field in dataclasses.fields(cls)
        if field.init
    ]
    table = Table([Column("field"), Column("type"), Column("default")], fields)
    heading = f"{cls.title} ({name})\n\n{about}"
    record = {**_describe(name), "about": about, "fields": fields}
    show(args, heading, table, records=[record])
    return 0
