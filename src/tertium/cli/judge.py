"""Options for the server of an LLM judge and its cost, and the preview of a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tertium.cli.parser import CommandParser
from tertium.errors import UsageError
from tertium.execution import JudgeOptions

if TYPE_CHECKING:
    from tertium.data.testset import TestSet
    from tertium.metrics.base.metric import Metric
    from tertium.metrics.judge.usage import RequestPlan


def add_judge(parser: CommandParser) -> None:
    """Add the options for the server of the metric `judge`."""
    group = parser.groups["Runtime"]
    group.add_argument(
        "--judge-url",
        metavar="URL",
        help="server of the metric judge, such as http://localhost:8080/v1 (default: "
        "$OPENAI_BASE_URL; the key is $OPENAI_API_KEY)",
    )
    group.add_argument(
        "--concurrency",
        type=int,
        metavar="N",
        help="requests to the server at the same time (default: 8)",
    )
    group.add_argument(
        "--request-timeout",
        type=float,
        metavar="X",
        help="seconds for one request to the server (default: 120)",
    )
    group.add_argument(
        "--price",
        type=_parse_price,
        metavar="IN,OUT",
        help="prices of a million input and output tokens (default: unknown)",
    )
    group.add_argument(
        "--budget",
        type=float,
        metavar="X",
        help="stop before the requests of this run cost more; needs --price (default: no limit)",
    )
    group.add_argument(
        "--allow-http",
        action="store_true",
        help="send texts and key unencrypted to a server on another machine",
    )
    group.add_argument(
        "--use-proxy",
        action="store_true",
        help="connect to the server through the proxy of the environment",
    )


def add_dry_run(parser: CommandParser) -> None:
    """Add --dry-run."""
    parser.groups["Runtime"].add_argument(
        "--dry-run",
        action="store_true",
        help="only print how many requests the metric judge would send, and what they may cost",
    )


def judge_options(args: argparse.Namespace) -> JudgeOptions:
    """Return the options for the server."""
    options = {
        "url": args.judge_url,
        "concurrency": args.concurrency,
        "timeout": args.request_timeout,
        "price": args.price,
        "budget": args.budget,
        "allow_http": args.allow_http or None,
        "use_proxy": args.use_proxy or None,
    }
    return JudgeOptions(**{name: value for name, value in options.items() if value is not None})


def _parse_price(text: str) -> tuple[float, float]:
    try:
        price_in, price_out = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected two numbers, such as 2,8 for a million input and output tokens"
        ) from None
    return price_in, price_out


def print_plan(args: argparse.Namespace, testset: TestSet, metrics: Sequence[Metric]) -> int:
    """Print the requests that the judges among the metrics would send; return the exit code."""
    from tertium.cli.output import show
    from tertium.core.result import Column, Table
    from tertium.metrics.judge.metric import Judge
    from tertium.metrics.regression.blend import Blend

    parts = [part for m in metrics for part in (m.parts if isinstance(m, Blend) else (m,))]
    judges = [metric for metric in parts if isinstance(metric, Judge)]
    if not judges:
        raise UsageError("--dry-run is for the metric judge: give -m judge:model=NAME, or omit it")
    segments = [segment for system in testset.systems for segment in testset.segments(system)]
    plans = {judge.spec: judge.plan(segments) for judge in judges}
    records = [_plan_record(spec, plan, args.price) for spec, plan in plans.items()]
    columns = [
        Column("metric"),
        Column("answers", decimals=0),
        Column("cached", decimals=0),
        Column("requests", decimals=0),
        Column("input tokens", "prompt_tokens", 0),
        Column("output tokens", "completion_tokens", 0),
    ]
    if args.price:
        columns.append(Column("cost", decimals=4))
    notes = ["nothing was sent; tokens and cost are estimates, retries cost extra"]
    if getattr(args, "format", "csv") == "csv":  # a report has no format
        args.format = "text"
    show(args, Table(columns, records, notes=notes), records=records)
    return 0


def _plan_record(spec: str, plan: RequestPlan, price: tuple[float, float] | None) -> dict[str, Any]:
    record = {
        "metric": spec,
        "answers": plan.questions,
        "cached": plan.questions - plan.requests,
        "requests": plan.requests,
        "prompt_tokens": plan.prompt_tokens,
        "completion_tokens": plan.completion_tokens,
    }
    return {**record, "cost": plan.cost(price)} if price else record
