"""`tertium plan`: how many segments and raters a human evaluation needs, and its campaign file."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.campaigns.campaign import PROTOCOLS
from tertium.campaigns.sampling import METHODS
from tertium.cli import inputs, output
from tertium.cli.parser import CommandParser, add_list
from tertium.cli.runtime import add_runtime, progress_bars, runtime_of
from tertium.cli.significance import add_alpha, add_seed
from tertium.errors import UsageError

if TYPE_CHECKING:
    from tertium.campaigns.campaign import Campaign
    from tertium.campaigns.power import PowerPlan
    from tertium.data.testset import TestSet

SECONDS_BY_UNIT = {"h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0}
TOOLS = ("tertium", "pearmut")

DESCRIPTION = (
    "Compute how many segments and raters a difference between systems needs, choose the segments, "
    "and write a campaign for raters."
)
EPILOG = """\
examples:
  tertium plan --protocol esa --difference 3
  tertium plan --protocol mqm --budget 8h
  tertium plan -s source.txt -t a.txt b.txt --segments 200 --choose stratified \\
    --raters 3 --checks 10 -o campaign.json
  tertium plan --from campaign.json --as pearmut -o pearmut.json

`tertium annotate campaign.json` opens the campaign for raters, and `tertium agree` evaluates their
answers. Differences are in points from 0 to 100 (da, esa, contrastive-esa), in MQM points (mqm), or
in the share of comparisons won minus lost (ranking).
"""


def add_arguments(parser: CommandParser) -> None:
    inputs.add_inputs(parser, required=False)
    group = parser.groups["Input"]
    group.add_argument("--pilot", metavar="FILE", help="judgments to estimate the variance from")
    group.add_argument(
        "--from",
        dest="campaign",
        metavar="FILE",
        help="convert a campaign (ours or Pearmut) with --as and -o",
    )
    _add_statistics(parser)
    _add_campaign(parser)
    output.add_format(parser)
    group = parser.groups["Output"]
    group.add_argument("-o", "--output", metavar="FILE", help="write the campaign (.json)")
    group.add_argument(
        "--as",
        dest="tool",
        choices=TOOLS,
        default="tertium",
        help="format of the campaign (default: tertium)",
    )
    group.add_argument("--plot", metavar="FILE", help="also write the power curve (.svg)")
    output.add_quiet(parser)
    inputs.add_languages(parser)
    add_runtime(parser, judge=False)


def _add_statistics(parser: CommandParser) -> None:
    group = parser.groups["Statistics"]
    group.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        help="what raters do (default: esa, or that of --from)",
    )
    group.add_argument(
        "--difference", type=float, metavar="X", help="difference between systems to find"
    )
    group.add_argument(
        "--budget",
        type=parse_duration,
        metavar="TIME",
        help="working time of all raters together, such as 8h or 90m, instead of --difference",
    )
    group.add_argument(
        "--power",
        type=float,
        default=0.8,
        metavar="X",
        help="probability to find the difference (default: 0.8)",
    )
    add_alpha(parser)
    group.add_argument(
        "--raters-per-segment",
        type=int,
        default=1,
        metavar="N",
        help="raters who judge each segment (default: 1)",
    )
    group.add_argument(
        "--systems", type=int, metavar="N", help="number of systems (default: those of -t, or 2)"
    )
    group.add_argument(
        "--seconds",
        type=float,
        metavar="X",
        help="seconds for one judgment (default: by protocol)",
    )
    add_seed(parser)


def _add_campaign(parser: CommandParser) -> None:
    group = parser.groups["Input"]
    add_list(
        group, "--raters", metavar="NAME", help="names of raters, or one number (default: rater-1)"
    )
    group.add_argument(
        "--segments",
        type=int,
        metavar="N",
        help="segments to judge (default: by --difference or --budget)",
    )
    group.add_argument(
        "--choose", choices=METHODS, default="random", help="how to choose (default: random)"
    )
    add_list(
        group,
        "--stratify",
        metavar="COLUMN",
        help="strata of --choose stratified: document, length or a field of the records",
    )
    group.add_argument(
        "--common", type=int, default=0, metavar="N", help="segments for all raters (default: 0)"
    )
    group.add_argument(
        "--checks", type=int, default=0, metavar="N", help="attention checks (default: 0)"
    )
    group.add_argument("--tutorials", action="store_true", help="start with two tutorial items")
    group.add_argument("--show-reference", action="store_true", help="show raters the reference")
    group.add_argument(
        "--context", type=int, default=0, metavar="N", help="neighbors to show (default: 0)"
    )
    group.add_argument(
        "--suspicions", metavar="METRIC", help="mark errors of a metric or judge in advance"
    )
    group.add_argument("--instructions", metavar="FILE", help="instructions for raters, as text")
    group.add_argument(
        "--terms", metavar="FILE", help="glossary to show: .csv, .tsv (source, target) or .tbx"
    )
    group.add_argument("--name", metavar="NAME", help="name of the campaign (default: by -o)")


def parse_duration(text: str) -> float:
    """Parse a time such as 8h, 90m or 1h30m into seconds.

    >>> parse_duration("1h30m"), parse_duration("2.5h")
    (5400.0, 9000.0)
    """
    duration = text.strip().lower()
    part = r"(\d+(?:\.\d+)?)\s*(h|min|m|s)\s*"
    if not re.fullmatch(f"({part})+", duration):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; expected 8h, 90m or 1h30m")
    return sum(float(n) * SECONDS_BY_UNIT[unit] for n, unit in re.findall(part, duration))


def run(args: argparse.Namespace) -> int:
    output.check_outputs(args)
    if args.plot and not args.plot.endswith(".svg"):
        raise UsageError(f"--plot {args.plot}: expected a file that ends in .svg")
    plan: PowerPlan | None = None
    campaign: Campaign | None
    if args.campaign:
        campaign = _read_campaign(args)
    else:
        testset = inputs.read_inputs(args) if args.translations else None
        plan = _plan_power(args, testset)
        campaign = _make_campaign(args, testset, plan) if args.output else None
    if campaign is not None:
        from tertium.campaigns.exchange import write_any_campaign

        write_any_campaign(campaign, args.output, args.tool)
    elif plan is None:
        raise UsageError("nothing to plan: give --difference, --budget, or -t with -o FILE")
    if args.plot and plan is not None:
        plan.write(args.plot)
    results = [result for result in (plan, campaign) if result is not None]
    record = {} if plan is None else plan.records()
    if campaign is not None:
        record |= {"campaign": campaign.id, "file": args.output}
    output.show(args, *(results[:1] if args.format == "tsv" else results), records=[record])
    return 0


def _plan_power(args: argparse.Namespace, testset: TestSet | None) -> PowerPlan | None:
    from tertium.evaluation.campaign_planning import plan_power

    if args.difference is None and args.budget is None:
        return None
    systems = args.systems or (len(testset.systems) if testset is not None else 2)
    documents = testset.documents if testset is not None and args.choose == "documents" else ()
    return plan_power(
        args.difference,
        budget=args.budget,
        protocol=args.protocol or "esa",
        systems=systems,
        raters=args.raters_per_segment,
        pilot=args.pilot,
        documents=documents,
        power=args.power,
        alpha=args.alpha,
        seconds=args.seconds,
    )


def _make_campaign(
    args: argparse.Namespace, testset: TestSet | None, plan: PowerPlan | None
) -> Campaign:
    from tertium.evaluation.campaign_planning import plan_campaign

    if testset is None:
        raise UsageError("-o needs the texts of the campaign: give -t and -s")
    if plan is None and args.segments is None:
        raise UsageError("how many segments? give --difference, --budget or --segments")
    count = args.segments or (plan.segments if plan is not None else len(testset))
    if count > len(testset) and not args.quiet:
        detail = ""
        if plan is not None:
            detail = f"; their power is {100 * float(plan.power(len(testset))):.0f} %"
        print(
            f"tertium: warning: {count} segments are planned, but there are {len(testset)}{detail}",
            file=sys.stderr,
        )
    with progress_bars(args.quiet), runtime_of(args):
        return plan_campaign(
            testset,
            count,
            protocol=args.protocol or "esa",
            raters=_rater_names(args),
            choose=args.choose,
            strata=args.stratify,
            suspicions=args.suspicions,
            seed=args.seed,
            overlap=args.raters_per_segment,
            common=args.common,
            checks=args.checks,
            tutorials=args.tutorials,
            show_reference=args.show_reference,
            context_size=args.context,
            instructions=Path(args.instructions).read_text("utf-8") if args.instructions else "",
            glossary=_read_glossary(args),
            name=args.name or Path(args.output).stem,
            source_language=args.source_language or "",
            target_language=args.target_language or "",
        )


def _rater_names(args: argparse.Namespace) -> list[str]:
    names: list[str] = args.raters or ["1"]
    if len(names) == 1 and names[0].isdecimal():
        return [f"rater-{n + 1}" for n in range(int(names[0]))]
    return names


def _read_glossary(args: argparse.Namespace) -> list[Any]:
    from tertium.campaigns.campaign import GlossaryTerm
    from tertium.checks.configuration import read_terms

    if not args.terms:
        return []
    terms = read_terms(args.terms, args.source_language or "", args.target_language or "")
    return [
        GlossaryTerm(source=term.source, target=" | ".join(term.targets), note="")
        for term in terms
        if term.targets
    ]


def _read_campaign(args: argparse.Namespace) -> Campaign:
    from tertium.campaigns.exchange import read_any_campaign

    if not args.output:
        raise UsageError("--from needs -o FILE, and --as for another format")
    return read_any_campaign(args.campaign, protocol=args.protocol)
