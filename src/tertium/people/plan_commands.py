"""The commands `plan` and `plan convert`: how much people have to judge, and campaign files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from tertium.core.errors import UsageError
from tertium.core.options import Compute, InFile, Names, Option, OutFile, Output
from tertium.core.result import Result, View, field_values
from tertium.data.testset import TestSet
from tertium.files.text_inputs import InputFiles, InputTexts
from tertium.metrics.base.judge_run import JudgeConnection
from tertium.people.campaign import Campaign, Protocol
from tertium.people.pearmut import read_any_campaign, write_any_campaign
from tertium.people.planning import Method, plan_campaign, read_glossary
from tertium.people.power import PowerPlan, plan_power

SECONDS_BY_UNIT = {"h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0}
Tool = Annotated[Literal["tertium", "pearmut"], Option("--as", group="Output")]


def parse_duration(text: str) -> float:
    """Parse a time such as 8h, 90m or 1h30m into seconds.

    >>> parse_duration("1h30m"), parse_duration("2.5h")
    (5400.0, 9000.0)
    """
    duration = text.strip().lower()
    part = r"(\d+(?:\.\d+)?)\s*(h|min|m|s)\s*"
    if not re.fullmatch(f"({part})+", duration):
        raise UsageError(f"{text!r} is not a time; expected 8h, 90m or 1h30m")
    return sum(float(n) * SECONDS_BY_UNIT[unit] for n, unit in re.findall(part, duration))


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """How many judgments are needed, or possible.

    Attributes
    ----------
    protocol
        What raters do.
    difference
        Difference between systems to find.
    budget
        Working time of all raters together, such as 8h or 90m, instead of --difference.
    power
        Probability to find the difference.
    alpha
        Significance level of the test.
    raters
        Raters who judge each segment.
    systems
        Number of systems (default: those of -t, or 2).
    pilot
        Judgments to estimate the variance from.
    """

    group: ClassVar[str] = "Statistics"
    protocol: Protocol = "esa"
    difference: float | None = None
    budget: Annotated[float | None, Option("--time", metavar="TIME", type=parse_duration)] = None
    power: float = 0.8
    alpha: float = 0.05
    raters: Annotated[int, Option("--raters-per-segment")] = 1
    systems: int | None = None
    pilot: Annotated[InFile | None, Option(group="Input")] = None

    def plan(self, testset: TestSet | None, method: Method) -> PowerPlan:
        """Return the number of segments for the difference or the time."""
        return plan_power(
            documents=testset.documents if testset and method == "documents" else (),
            systems=self.systems or (len(testset.systems) if testset else 2),
            **field_values(self, "systems"),
        )


@dataclass(frozen=True, kw_only=True)
class CampaignOptions:
    """What raters judge and see.

    Attributes
    ----------
    raters
        Names of raters, or one number (default: rater-1).
    segments
        Segments to judge (default: by --difference or --time).
    choose
        How to choose.
    by
        Strata of --choose stratified: document, length or a field of the records.
    common
        Segments for all raters.
    checks
        Attention checks of each rater.
    show_reference
        Show raters the reference.
    context_size
        Neighbors to show.
    suspicions
        Mark errors of a metric or judge in advance.
    instructions
        Instructions for raters, as text.
    terms
        Glossary to show: .csv, .tsv (source, target) or .tbx.
    seed
        Random seed.
    tool
        Format of the campaign.
    """

    group: ClassVar[str] = "Input"
    raters: Names = ()
    segments: int | None = None
    choose: Method = "random"
    by: Annotated[Names, Option(metavar="COLUMN")] = ()
    common: int = 0
    checks: Annotated[int, Option("--attention-checks")] = 0
    show_reference: bool = False
    context_size: Annotated[int, Option("--context")] = 0
    suspicions: Annotated[str | None, Option(metavar="METRIC")] = None
    instructions: InFile = ""
    terms: InFile = ""
    seed: Annotated[int, Option(group="Statistics")] = 12345
    tool: Tool = "tertium"

    def make(self, texts: InputTexts, segments: int, design: DesignOptions, file: str) -> Campaign:
        """Return the campaign that is written to a file."""
        settings = field_values(self, "by", "segments", "terms", "tool")
        names = self.raters or ("1",)
        if len(names) == 1 and names[0].isdecimal():
            settings["raters"] = tuple(f"rater-{n + 1}" for n in range(int(names[0])))
        if self.instructions:
            settings["instructions"] = Path(self.instructions).read_text("utf-8")
        with JudgeConnection().applied():
            return plan_campaign(
                texts.testset,
                segments,
                protocol=design.protocol,
                strata=self.by,
                overlap=design.raters,
                glossary=read_glossary(self.terms, texts.source_language, texts.target_language),
                name=Path(file).stem,
                source_language=texts.source_language,
                target_language=texts.target_language,
                **settings,
            )


def plan_evaluation(
    inputs: InputFiles,
    design: DesignOptions,
    campaign: CampaignOptions,
    output: Output,
    compute: Compute,
) -> View:
    """Compute how many segments a difference between systems needs, and write a campaign.

    Examples
    --------
    tertium plan --protocol esa --difference 3
    tertium plan --protocol mqm --time 8h -o power.svg
    tertium plan -s source.txt -t a.txt b.txt --segments 200 --choose stratified \\
      --raters 3 --attention-checks 10 -o campaign.json

    Notes
    -----
    -o FILE.json writes a campaign, other files the power of smaller and larger campaigns.
    `tertium annotate campaign.json` opens the campaign for raters, and `tertium agree` evaluates
    their answers. Differences are in points from 0 to 100 (da, esa, contrastive-esa), in MQM points
    (mqm), or in the share of comparisons won minus lost (ranking).
    """
    paths = output.paths(PowerPlan)
    campaign_files = [path for path in paths if path.endswith(".json")]
    power_files = [path for path in paths if path not in campaign_files]
    has_goal = design.difference is not None or design.budget is not None
    if not has_goal and (power_files or not campaign_files):
        raise UsageError("nothing to plan: give --difference, --time, or -t with -o FILE.json")
    texts = inputs.read() if inputs.translations else None
    testset = texts.testset if texts else None
    plan = design.plan(testset, campaign.choose) if has_goal else None
    results: list[Result] = [] if plan is None else [plan]
    record = {} if plan is None else plan.records()
    warnings: list[str] = []
    for path in campaign_files:
        if texts is None:
            raise UsageError("-o needs the texts of the campaign: give -t and -s")
        segments = campaign.segments or (plan.segments if plan else 0)
        if not segments:
            raise UsageError("how many segments? give --difference, --time or --segments")
        new_campaign = campaign.make(texts, segments, design, path)
        write_any_campaign(new_campaign, path, campaign.tool)
        results.append(new_campaign)
        record |= {"campaign": new_campaign.id, "file": path}
        size = len(texts.testset)
        if segments > size:
            detail = f"; their power is {100 * float(plan.power(size)):.0f} %" if plan else ""
            warnings.append(
                f"warning: {segments} segments are planned, but there are {size}{detail}"
            )
    return View(
        result=results[0],
        printed=[table for result in results for table in result.tables()],
        json=record,
        warnings=warnings,
        warns_aside=True,
        files=[(plan, path) for path in power_files if plan],
    )


def convert_campaign(
    campaign: InFile,
    /,
    *,
    output: Annotated[OutFile, Option("-o", "--output", group="Output")],
    tool: Tool = "tertium",
    protocol: Annotated[Protocol | None, Option(group="Statistics")] = None,
) -> View:
    """Convert a campaign between the formats of tertium and Pearmut.

    Parameters
    ----------
    campaign
        Campaign of tertium or Pearmut.
    output
        File of the converted campaign (.json).
    tool
        Format of the converted campaign.
    protocol
        What raters do (default: that of the campaign).

    Examples
    --------
    tertium plan convert campaign.json --as pearmut -o pearmut.json
    tertium plan convert pearmut.json -o campaign.json
    """
    result = read_any_campaign(campaign, protocol=protocol)
    write_any_campaign(result, output, tool)
    return View(result=result, json={"campaign": result.id, "file": output})
