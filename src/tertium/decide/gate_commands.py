"""The commands `gate` and `gate calibrate`: may a candidate replace a baseline?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from tertium.checks.check_settings import CheckSettings
from tertium.core.options import Compute, InFile, Option
from tertium.core.result import field_values
from tertium.data.toml_tables import find_configuration
from tertium.decide.baselines import read_baseline
from tertium.decide.gate import GateSet, gate_sets
from tertium.decide.gate_configuration import (
    RULES,
    GateSettings,
    PairFiles,
    read_gate_settings,
)
from tertium.decide.gate_result import GateResult
from tertium.decide.gate_rules import GateRules, split_rules
from tertium.decide.margins import SuggestedMargins, suggest_margins
from tertium.evaluation.metric_choice import MetricOptions, default_metric
from tertium.evaluation.rows import split_pair
from tertium.evaluation.scoring import score
from tertium.files.text_inputs import InputFiles, column_names
from tertium.metrics.base.judge_options import JudgeServer
from tertium.metrics.base.judge_run import current_run

Rules = Annotated[tuple[str, ...], Option(metavar="NAME=X")]


@dataclass(frozen=True, kw_only=True)
class GatePair:
    """The systems to compare, and settings from a file.

    Attributes
    ----------
    baseline
        Output of the current system, or its stored scores (.json); with -t, its name.
    candidate
        Output of the new system; with -t, its name.
    config
        Settings in the table [gate] (default: tertium.toml or pyproject.toml).
    alpha
        Largest probability of a wrong pass, and of a wrong worse (default: 0.05).
    """

    group: ClassVar[str] = "Input"
    baseline: InFile = ""
    candidate: InFile = ""
    config: InFile | None = None
    alpha: Annotated[float | None, Option(group="Statistics")] = None

    def settings(self) -> GateSettings:
        """Return the settings of the file, with the alpha of the option."""
        path = self.config or find_configuration("gate")
        settings = read_gate_settings(path) if path else GateSettings()
        return settings if self.alpha is None else replace(settings, alpha=self.alpha)


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """Rules of the gate, in addition to those of the settings.

    Attributes
    ----------
    margin
        How much worse the candidate may be, in units of the metric; human=5% is a difference that
        humans confirm in at most 55% of system pairs.
    max
        Largest number or share of segments with a finding of a check: empty=0, truncated=1%; or the
        largest score of a metric where lower is better.
    min
        Smallest score of the candidate.
    by
        Also test slices: document, length, language, domain or any field of the records; NAME=FILE
        reads one label per segment.
    undecided
        Exit with 0 or 1 instead of 3 if the verdict is undecided.
    """

    group: ClassVar[str] = "Statistics"
    margin: Rules = ()
    max: Rules = ()
    min: Rules = ()
    by: Annotated[tuple[str, ...], Option(metavar="COLUMN", file="read")] = ()
    undecided: Literal["pass", "fail"] | None = None


def gate_files(
    inputs: InputFiles,
    pair: GatePair,
    metrics: MetricOptions,
    rules: GateOptions,
    compute: Compute,
    judge: JudgeServer,
) -> GateResult:
    """Decide whether a candidate is worse than a baseline by more than a margin.

    Examples
    --------
    tertium gate --baseline main.txt --candidate new.txt -r ref.txt -m chrf --margin chrf=0.5
    tertium gate --baseline main.txt --candidate new.txt -s src.txt -r ref.txt \\
      --margin human=5% --max "empty=0" "wrong language=0" "truncated=1%" --min chrf=50
    tertium gate -t systems.jsonl --baseline main --candidate new --margin human=5% --by domain
    tertium gate -o gate.html junit.xml findings.sarif -f md >> $GITHUB_STEP_SUMMARY

    Notes
    -----
    Without files, settings and language pairs are read from the table [gate] of tertium.toml (or
    [tool.tertium.gate] of pyproject.toml).

    Exit codes: 0 pass or better, 1 worse or a failed condition, 2 usage, 3 undecided or too few
    valid answers of an LLM judge
    """
    settings = pair.settings()
    sets = _read_sets(settings, inputs, pair, metrics, rules)
    judge.stop_dry_run(*((own.testset, own.metrics) for own in sets))
    return replace(
        gate_sets(sets, alpha=settings.alpha),
        undecided=rules.undecided or settings.undecided,
        lacks_answers=bool(current_run().usage.shortfalls()),
    )


def calibrate_gate(
    inputs: InputFiles,
    pair: GatePair,
    metrics: MetricOptions,
    compute: Compute,
    judge: JudgeServer,
) -> SuggestedMargins:
    """Suggest margins from two runs of one system, such as two random seeds.

    Examples
    --------
    tertium gate calibrate --baseline run1.txt --candidate run2.txt -r ref.txt -m chrf
    """
    settings = pair.settings()
    sets = _read_sets(settings, inputs, pair, metrics, GateOptions())
    judge.stop_dry_run(*((own.testset, own.metrics) for own in sets))
    evaluations = {own.name: score(own.testset, own.metrics) for own in sets}
    return suggest_margins(evaluations, alpha=settings.alpha)


def _read_sets(
    settings: GateSettings,
    inputs: InputFiles,
    pair: GatePair,
    metrics: MetricOptions,
    rules: GateOptions,
) -> list[GateSet]:
    """Read the files of each language pair; options of the command line come first."""
    shared = field_values(inputs)
    for name in RULES:
        shared[name] = split_rules(f"--{name}", getattr(rules, name))
    options = PairFiles(
        baseline=pair.baseline,
        candidate=pair.candidate,
        metrics=metrics.metrics,
        by=rules.by,
        **shared,
    )
    pairs = settings.merge_pairs(options)
    return [_read_set(name, files, metrics) for name, files in pairs.items()]


def _read_set(name: str, files: PairFiles, metrics: MetricOptions) -> GateSet:
    is_stored = Path(files.baseline).suffix == ".json"
    systems = (files.candidate,) if is_stored else (files.baseline, files.candidate)
    texts = replace(files, translations=files.translations or systems).read(by=files.by)
    testset = texts.testset
    if files.translations:  # --baseline and --candidate are systems of -t
        testset = testset.with_systems(systems)
    names = [*testset.systems]
    source, target = split_pair(name)
    return GateSet(
        testset=testset,
        baseline=read_baseline(files.baseline) if is_stored else names[0],
        candidate=names[-1],
        metrics=replace(metrics, metrics=files.metrics).load(texts, default_metric),
        rules=GateRules.from_values(files.margin, files.max, files.min, column_names(files.by)),
        name=name,
        checks=CheckSettings(
            source_language=texts.source_language or source,
            target_language=texts.target_language or target,
        ),
        locate=texts.locate(),
    )
