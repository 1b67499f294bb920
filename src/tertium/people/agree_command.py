"""The command `agree`: agreement between raters, rater quality, and human scores of systems."""

from __future__ import annotations

from typing import Annotated

from tertium.core.errors import UsageError
from tertium.core.options import (
    FileKind,
    InFile,
    LanguagePairs,
    Names,
    Option,
    Output,
    Significance,
)
from tertium.core.result import View, field_values
from tertium.people.campaign import is_campaign_file
from tertium.people.rater_agreement import RaterStudies, agree, score_campaign

FILES = {
    "judgments": FileKind(RaterStudies, (".jsonl",)),
    "results": FileKind.of(RaterStudies, ".jsonl"),
}


def agree_on_files(
    human: Annotated[InFile, Option(metavar="HUMAN")],
    /,
    tests: Significance,
    output: Output,
    *,
    answers: Annotated[InFile | None, Option(group="Input")] = None,
    exclude: Annotated[Names, Option(metavar="RATER", group="Input")] = (),
    lps: Annotated[LanguagePairs, Option(group="Input")] = (),
    pass_mark: Annotated[float | None, Option(group="Statistics")] = None,
) -> View:
    """Measure how well raters agree, describe each rater, and rank systems by human scores.

    Parameters
    ----------
    human
        Judgments with raters, or a campaign.
    answers
        Answers to a campaign: the database of `tertium annotate` or .jsonl (default: the database
        next to the campaign).
    exclude
        Raters to leave out.
    lps
        Only these language pairs (default: all).
    pass_mark
        MQM points per 1,000 words up to which a system passes (default: no result).

    Examples
    --------
    tertium agree ratings.csv
    tertium agree campaign.json
    tertium agree campaign.json --answers answers.jsonl -o judgments.jsonl
    tertium agree ratings.csv --exclude rater-3 -o agreement.json

    Notes
    -----
    HUMAN is a campaign that raters answered in `tertium annotate`, or judgments with rater names:
    TSV, CSV or JSONL, MQM, ESA, Appraise, Pearmut, Label Studio. -o FILE.jsonl writes the judgments
    of a campaign, also while its server is running; meta, train, route and report read them.
    """
    files = output.split(FILES)
    scored = score_campaign(human, answers) if is_campaign_file(human) else None
    if files["judgments"] and scored is None:
        raise UsageError(f"-o {files['judgments'][0]} holds judgments of a campaign: give one")
    studies = agree(
        human if scored is None else scored,
        answers=None if scored else answers,
        exclude=exclude,
        lps=lps,
        pass_mark=pass_mark,
        **field_values(tests),
    )
    if scored is not None:
        for path in files["judgments"]:
            scored.write(path, exclude)
    result = RaterStudies(tuple(studies))
    records = result.records()
    return View(
        result=result,
        json=records[0] if len(records) == 1 else records,
        files=[(result, path) for path in files["results"]],
    )
