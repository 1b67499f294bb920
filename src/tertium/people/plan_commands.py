"""The commands `plan` and `plan convert`: how much people have to judge, and campaign files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from tertium.checks.check_settings import read_terms
from tertium.core.errors import UsageError
from tertium.core.options import Compute, FileKind, InFile, Names, Option, OutFile, Output
from tertium.core.result import Result, View, field_values
from tertium.data.testset import TestSet
from tertium.files.text_inputs import InputFiles, InputTexts
from tertium.metrics.base.judge_run import JudgeConnection
from tertium.people.campaign import (
    Campaign,
    GlossaryTerm,
    Protocol,
    read_campaign,
    write_campaign,
)
from tertium.people.pearmut import write_pearmut
from tertium.people.planning import Method, plan_campaign
from tertium.people.power import PowerPlan, plan_power

SECONDS_BY_UNIT = {"h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0}
FILES = {
    "campaign": FileKind(Campaign, (".json",)),
    "results": FileKind.of(PowerPlan, ".json", ".jsonl"),
}
Tool = Annotated[Literal["tertium", "pearmut"], Option("--as", group="Output")]
OtherTool = Annotated[Literal["pearmut"], Option("--as", group="Output")]
WRITERS = {"tertium": write_campaign, "pearmut": write_pearmut}


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
    time
        Working time of all raters together, such as 8h or 90m, instead of --difference.
    power
        Probability to find the difference.
    alpha
        Significance level of the test.
    raters_per_segment
        Raters who judge each segment.
    systems
        Number of systems (default: those of -t, or 2).
    seconds
        Seconds for one judgment (default: by protocol).
    pilot
        Judgments to estimate the variance from.
    """

    group: ClassVar[str] = "Statistics"
    protocol: Protocol = "esa"
    difference: float | None = None
    time: Annotated[float | None, Option(metavar="TIME", type=parse_duration)] = None
    power: float = 0.8
    alpha: float = 0.05
    raters_per_segment: int = 1
    systems: int | None = None
    seconds: float | None = None
    pilot: Annotated[InFile | None, Option(group="Input")] = None

    @property
    def has_goal(self) -> bool:
        """Whether a difference or a time is given."""
        return self.difference is not None or self.time is not None

    def plan(self, testset: TestSet | None, method: Method) -> PowerPlan:
        """Return the number of segments for the difference or the time."""
        return plan_power(
            budget=self.time,
            systems=self.systems or (len(testset.systems) if testset else 2),
            raters=self.raters_per_segment,
            documents=testset.documents if testset and method == "documents" else (),
            **field_values(self, "time", "systems", "raters_per_segment"),
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
    stratify
        Strata of --choose stratified: document, length or a field of the records.
    common
        Segments for all raters.
    attention_checks
        Attention checks of each rater.
    show_reference
        Show raters the reference.
    context
        Neighbors to show.
    suspicions
        Mark errors of a metric or judge in advance.
    instructions
        Instructions for raters, as text.
    terms
        Glossary to show: .csv, .tsv (source, target) or .tbx.
    title
        Name of the campaign (default: by -o).
    seed
        Random seed.
    tool
        Format of the campaign.
    """

    group: ClassVar[str] = "Input"
    raters: Names = ()
    segments: int | None = None
    choose: Method = "random"
    stratify: Annotated[Names, Option(metavar="COLUMN")] = ()
    common: int = 0
    attention_checks: int = 0
    show_reference: bool = False
    context: int = 0
    suspicions: Annotated[str | None, Option(metavar="METRIC")] = None
    instructions: InFile | None = None
    terms: InFile | None = None
    title: Annotated[str, Option(metavar="TEXT")] = ""
    seed: Annotated[int, Option(group="Statistics")] = 12345
    tool: Tool = "tertium"

    def make(self, texts: InputTexts, segments: int, design: DesignOptions, file: str) -> Campaign:
        """Return the campaign that is written to a file."""
        raters = self.raters or ("1",)
        if len(raters) == 1 and raters[0].isdecimal():
            raters = tuple(f"rater-{n + 1}" for n in range(int(raters[0])))
        instructions = Path(self.instructions).read_text("utf-8") if self.instructions else ""
        terms = read_terms(self.terms or "", texts.source_language, texts.target_language)
        with JudgeConnection().applied():
            return plan_campaign(
                texts.testset,
                segments,
                protocol=design.protocol,
                raters=raters,
                choose=self.choose,
                strata=self.stratify,
                suspicions=self.suspicions,
                seed=self.seed,
                overlap=design.raters_per_segment,
                common=self.common,
                checks=self.attention_checks,
                show_reference=self.show_reference,
                context_size=self.context,
                instructions=instructions,
                glossary=[
                    GlossaryTerm(source=term.source, target=" | ".join(term.targets))
                    for term in terms
                    if term.targets
                ],
                name=self.title or Path(file).stem,
                source_language=texts.source_language,
                target_language=texts.target_language,
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
    files = output.split(FILES)
    if not design.has_goal and (files["results"] or not files["campaign"]):
        raise UsageError("nothing to plan: give --difference, --time, or -t with -o FILE.json")
    texts = inputs.read() if inputs.translations else None
    testset = texts.testset if texts else None
    plan = design.plan(testset, campaign.choose) if design.has_goal else None
    results: list[Result] = [] if plan is None else [plan]
    record = {} if plan is None else plan.records()
    warnings: list[str] = []
    for path in files["campaign"]:
        if texts is None:
            raise UsageError("-o needs the texts of the campaign: give -t and -s")
        segments = campaign.segments or (plan.segments if plan else 0)
        if not segments:
            raise UsageError("how many segments? give --difference, --time or --segments")
        new_campaign = campaign.make(texts, segments, design, path)
        WRITERS[campaign.tool](new_campaign, path)
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
        files=[(plan, path) for path in files["results"] if plan],
    )


def convert_campaign(
    campaign: InFile,
    /,
    *,
    output: Annotated[OutFile, Option("-o", "--output", group="Output")],
    tool: OtherTool = "pearmut",
) -> View:
    """Convert a campaign to the format of Pearmut.

    Parameters
    ----------
    campaign
        Campaign of `tertium plan`.
    output
        File of the converted campaign (.json).
    tool
        Format of the converted campaign.

    Examples
    --------
    tertium plan convert campaign.json --as pearmut -o pearmut.json
    """
    result = read_campaign(campaign)
    WRITERS[tool](result, output)
    return View(result=result, json={"campaign": result.id, "file": output})
