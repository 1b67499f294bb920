"""The command `worst`: the translations most in need of attention."""

from __future__ import annotations

from typing import Annotated

from tertium.core.errors import UsageError
from tertium.core.options import Compute, InFiles, Option
from tertium.decide.worst import WorstSegments, worst
from tertium.evaluation.metric_choice import MetricOptions, default_metric
from tertium.files.text_inputs import InputFiles
from tertium.metrics.base.judge_options import JudgeServer


def parse_limit(text: str) -> tuple[str, int]:
    """Parse a value of --per.

    >>> parse_limit("language=20")
    ('language', 20)
    """
    name, _, count = text.partition("=")
    if name not in ("language", "document") or not count.isdecimal():
        raise UsageError(f"{text}: expected language=N or document=N")
    return name, int(count)


Limit = Annotated[tuple[str, int], Option(metavar="NAME=N", type=parse_limit)]


def worst_of_files(
    inputs: InputFiles,
    metrics: MetricOptions,
    compute: Compute,
    judge: JudgeServer,
    *,
    human: Annotated[InFiles, Option(group="Input")] = (),
    count: Annotated[int, Option("-n", "--count", group="Output")] = 50,
    per: Annotated[tuple[Limit, ...], Option(group="Output")] = (),
) -> WorstSegments:
    """List the translations most in need of attention, over systems and languages.

    Parameters
    ----------
    human
        Human scores of other translations, to fit the chance of a serious error.
    count
        Translations.
    per
        At most N translations of each language pair (language=20) or document (document=5).

    Examples
    --------
    tertium worst -s source.txt -t a.txt b.txt -r reference.txt -o worst.xlsx
    tertium worst -t systems.jsonl -m tertium-multi -n 100 --per language=20 -o worst.html
    tertium worst -t systems.jsonl -m chrf --human ratings.jsonl -o worst.csv worst.jsonl

    Notes
    -----
    Outputs that are not a translation come first: empty, in the wrong language, copied, cut off.
    Then come critical findings of `tertium check`, then the highest chances of a serious error. A
    column lp (en-de) gives each row its own language pair.
    """
    texts = inputs.read()
    specs = metrics.metrics or default_metric(texts.testset, texts.target_language)
    loaded = metrics.load_specs(specs)
    judge.stop_dry_run((texts.testset, loaded))
    return worst(
        texts.testset,
        [metric.spec for metric in loaded],
        count=count,
        per=dict(per),
        lp=inputs.language_pair,
        human=human or None,
    )
