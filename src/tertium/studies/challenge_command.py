"""The command `meta challenge`: does a metric prefer the better of two translations?"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from tertium.core.errors import UsageError
from tertium.core.options import (
    Compute,
    InFiles,
    LanguagePairs,
    Names,
    Option,
)
from tertium.data.challenge_sets import join_challenges, read_challenge
from tertium.evaluation.metric_choice import default_metric
from tertium.metrics.base.judge_run import JudgeConnection
from tertium.studies.challenge import By, ChallengeStudy, challenge
from tertium.studies.meta_commands import JudgedMetrics


def challenge_metrics(
    sets: Annotated[InFiles, Option(metavar="SET")] = (),
    /,
    *,
    metrics: JudgedMetrics,
    compute: Compute,
    judge: JudgeConnection,
    select: Annotated[Names, Option(group="Input")] = (),
    lps: Annotated[LanguagePairs, Option(group="Input")] = (),
    rows: Annotated[By, Option(group="Statistics")] = "phenomenon",
) -> ChallengeStudy:
    """Count how often a metric prefers the better of two translations, by phenomenon.

    Parameters
    ----------
    sets
        Damage, or files of pairs.
    select
        Only these phenomena (default: all).
    lps
        Only these language pairs (default: all).
    rows
        Rows of the table.

    Examples
    --------
    tertium meta challenge damage -m chrf bleu
    tertium meta challenge damage -m tertium-multi --select number negation --lps en-de de-en
    tertium meta challenge aces.tsv -m chrf -o accuracy.svg

    Notes
    -----
    SET is `damage`, our own set (ten sentences in six languages with rule-based errors), or a file
    in the format of ACES (TSV or JSONL) or DEMETR (JSON). The default metric is tertium-small for
    English references, otherwise tertium-multi.
    """
    if not sets:
        raise UsageError(
            "no SET: give `damage` or files of pairs before -m, --select and --lps, which take "
            "all following words"
        )
    pairs = join_challenges([read_challenge(file) for file in sets])
    if not metrics.metrics:
        specs = default_metric(pairs.testset(), metrics.target_language or "")
        metrics = replace(metrics, metrics=tuple(specs))
    return challenge(pairs, metrics.load_judged(), by=rows, phenomena=select, lps=lps)
