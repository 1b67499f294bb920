"""`tertium train blend`: the metrics of a blend, and the report of its cross-validation."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tertium.cli.output import print_contents
from tertium.errors import DataError, UsageError
from tertium.specs import format_spec, parse_fields, split_spec

if TYPE_CHECKING:
    from tertium.data.judgments import JudgmentSet
    from tertium.evaluation.training import TrainingPlan
    from tertium.models.trained_model import TrainedModel


def combines_metrics(cls: type[TrainedModel]) -> bool:
    """Return whether a class is trained on the scores of other metrics."""
    return hasattr(cls.settings, "metrics")


def add_metrics(spec: str, metrics: Sequence[str]) -> str:
    """Return the spec of a metric to train with the metrics of -m."""
    from tertium.evaluation.training import find_trainable_class

    cls = find_trainable_class(spec)
    if not combines_metrics(cls):
        raise UsageError(f"-m is for blend, which combines metrics: omit it for {cls.name}")
    settings: Any = cls.settings
    fields = parse_fields(settings, cls.name, split_spec(spec)[1])
    if "metrics" in fields:
        raise UsageError(f"{spec} and -m both name metrics: give them once")
    return format_spec(cls.name, settings(**fields, metrics=tuple(metrics)))


def read_scored_sets(args: argparse.Namespace, settings: Mapping[str, Any]) -> list[JudgmentSet]:
    """Read the judgments of --train, and score them with the metrics of a blend."""
    from tertium.data.human_data_files import read_judgment_sets
    from tertium.evaluation.blending import attach_scores
    from tertium.metrics.regression.blend import HOW_TO_CHOOSE

    if not settings.get("metrics"):
        raise UsageError(f"blend needs the metrics to combine: {HOW_TO_CHOOSE}")
    return attach_scores(read_judgment_sets(args.train, args.gold or ""), settings["metrics"])


def print_study(metric: Any, sets: Sequence[JudgmentSet], plan: TrainingPlan) -> None:
    """Print the weights of a trained blend, and how it compares with its metrics."""
    from tertium.evaluation.blending import cross_validate_blend, weight_table

    tables = [weight_table(metric.coefficients)]
    try:
        study = cross_validate_blend(sets, **plan.settings, strengths=plan.options.strengths)
    except DataError as error:
        print_contents([*tables, f"\nnot cross-validated: {error}"], "text")
        return
    print_contents([*tables, *study.tables()], "text")
