"""The commands `gate` and `gate calibrate`: may a candidate replace a baseline?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from tertium.checks.check_settings import CheckSettings
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.options import Compute, InFile, Option
from tertium.data.toml_tables import find_configuration
from tertium.decide.baselines import read_baseline
from tertium.decide.gate import GateSet, gate_sets
from tertium.decide.gate_configuration import GateSettings, PairFiles, read_gate_settings
from tertium.decide.gate_result import GateResult
from tertium.decide.gate_rules import GateRules, split_rules
from tertium.decide.margins import SuggestedMargins, suggest_margins
from tertium.evaluation.metric_choice import MetricOptions, default_metric
from tertium.evaluation.scoring import score
from tertium.files.text_inputs import InputFiles, InputTexts, column_names
from tertium.metrics.base.metric import Metric
from tertium.metrics.judge.server_options import JudgeServer
from tertium.metrics.judge.usage import current_usage

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

    def pairs(self, settings: GateSettings) -> dict[str, PairFiles]:
        """Return the files of each language pair: those of the options, or of the settings."""
        pairs = {} if self.baseline or self.candidate else settings.all_pairs()
        if pairs:
            return pairs
        missing = [name for name in ("baseline", "candidate") if not getattr(self, name)]
        if missing:
            options = " and ".join(f"--{name}" for name in missing)
            raise UsageError(
                f"{options} missing: give files, or name them in the table [gate] of tertium.toml"
            )
        general = replace(settings, baseline=self.baseline, candidate=self.candidate)
        return {"": PairFiles().merge(general)}


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

    def merge(self, pair: PairFiles) -> GateRules:
        """Return the rules of the options and of a language pair; those of the options win."""
        margin, maximum, minimum = (
            {**getattr(pair, name), **split_rules(f"--{name}", getattr(self, name))}
            for name in ("margin", "max", "min")
        )
        by = tuple(column_names(self.by or pair.by))
        return GateRules.from_values(margin, maximum, minimum, by)


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
    sets: list[GateSet] = []
    for name, files in pair.pairs(settings).items():
        texts = _read_texts(inputs, files, by=rules.by or files.by)
        loaded = _load_metrics(metrics, files, texts)
        has_names = bool(inputs.translations)  # --baseline and --candidate are systems of -t
        sets.append(_make_set(name, files, texts, loaded, rules.merge(files), has_names))
    judge.stop_dry_run(*((own.testset, own.metrics) for own in sets))
    result = gate_sets(sets, alpha=settings.alpha)
    return replace(
        result,
        undecided=rules.undecided or settings.undecided,
        lacks_answers=current_usage().has_too_few_answers,
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
    margins = []
    for name, files in pair.pairs(settings).items():
        texts = _read_texts(inputs, files)
        evaluation = score(texts.testset, _load_metrics(metrics, files, texts))
        suggested = suggest_margins(evaluation, alpha=settings.alpha)
        margins += [replace(margin, pair=name) for margin in suggested.margins]
    return SuggestedMargins(margins=tuple(margins), alpha=settings.alpha)


def _is_stored(files: PairFiles) -> bool:
    return Path(files.baseline).suffix == ".json"


def _read_texts(inputs: InputFiles, files: PairFiles, *, by: Sequence[str] = ()) -> InputTexts:
    """Read the files of one pair; options of the command line come first."""
    systems = (files.candidate,) if _is_stored(files) else (files.baseline, files.candidate)
    merged = replace(
        inputs,
        translations=inputs.translations or systems,
        sources=inputs.sources or files.sources or None,
        references=inputs.references or files.references,
        documents=inputs.documents or files.documents or None,
        source_language=inputs.source_language or files.source_language or None,
        target_language=inputs.target_language or files.target_language or None,
    )
    return merged.read(by=by)


def _load_metrics(options: MetricOptions, files: PairFiles, texts: InputTexts) -> list[Metric]:
    return replace(options, metrics=options.metrics or files.metrics).load(texts, default_metric)


def _make_set(
    name: str,
    files: PairFiles,
    texts: InputTexts,
    metrics: Sequence[Metric],
    rules: GateRules,
    has_names: bool,
) -> GateSet:
    systems = [*texts.testset.systems]
    baseline, candidate = systems[0], systems[-1]
    if has_names:
        baseline, candidate = files.baseline, files.candidate
    chosen = [candidate] if _is_stored(files) else [baseline, candidate]
    for system in chosen:
        if system not in systems:
            raise UnknownNameError("system", system, systems)
    source, target = files.check_languages(name)
    return GateSet(
        testset=texts.testset.with_systems(chosen),
        baseline=read_baseline(files.baseline) if _is_stored(files) else baseline,
        candidate=candidate,
        metrics=metrics,
        rules=rules,
        name=name,
        checks=CheckSettings(
            source_language=texts.source_language or source,
            target_language=texts.target_language or target,
        ),
        locate=texts.locate(),
    )
