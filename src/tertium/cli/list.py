"""`tertium list`: the metrics there are, what they need and what can be set."""

from __future__ import annotations

import argparse
import dataclasses
import inspect

from tertium.cli.output import FORMATS, print_records, print_table
from tertium.errors import MissingResourceError, UnknownNameError
from tertium.registry import ALIASES, METRICS, print_value, resolve, split_spec
from tertium.report.tables import Table

EPILOG = """\
examples:
  tertium list
  tertium list bleu
"""


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        "list",
        help="list metrics, or explain one",
        description="List the metrics, or show one with its fields.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("metric", nargs="?", help="a metric to explain")
    parser.add_argument("-f", "--format", choices=FORMATS, default="text")
    return parser


def run(args: argparse.Namespace) -> int:
    if args.metric:
        return _explain(args.metric)
    records = [_describe(name) for name in METRICS]
    if args.format == "json":
        print_records(records)
        return 0
    rows = [[r["metric"], r["needs"], r["better"], r["summary"]] for r in records]
    notes = [f"{alias} is short for {spec}" for alias, spec in ALIASES.items()]
    table = Table(["metric", "needs", "better", "what"], rows, notes=notes,
                  left=frozenset(range(4)))  # fmt: skip
    print_table(table, args.format)
    return 0


def _describe(name: str) -> dict[str, str]:
    cls = resolve(METRICS, name, "metric")
    try:
        needs = " + ".join(sorted(cls().needs)) or "references or source"
    except MissingResourceError:
        needs = "to be trained"
    return {
        "metric": name,
        "needs": needs,
        "better": "higher" if cls.higher_is_better else "lower",
        "summary": (inspect.getmodule(cls).__doc__ or "").split("\n")[0].rstrip("."),
    }


def _explain(spec: str) -> int:
    name, _ = split_spec(spec)
    name, _ = split_spec(ALIASES.get(name, name))
    if name not in METRICS:
        raise UnknownNameError("metric", name, [*METRICS, *ALIASES])
    cls = resolve(METRICS, name, "metric")
    print(f"{cls.title} ({name})\n")
    print(inspect.getdoc(cls))
    rows = [
        [field.name, str(field.type), print_value(field.default)]
        for field in dataclasses.fields(cls)
        if field.init
    ]
    print_table(Table(["field", "type", "default"], rows, left=frozenset(range(3))), "text")
    return 0
