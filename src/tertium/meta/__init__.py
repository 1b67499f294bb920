"""Agreement of metrics with human scores: statistics, tests and rankings on score matrices."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tertium.meta.accuracy import acc_eq as acc_eq
    from tertium.meta.accuracy import acc_eq_calibrated as acc_eq_calibrated
    from tertium.meta.accuracy import soft_pairwise_accuracy as soft_pairwise_accuracy
    from tertium.meta.accuracy import system_accuracy as system_accuracy
    from tertium.meta.agreement import Agreement as Agreement
    from tertium.meta.agreement import Grouping as Grouping
    from tertium.meta.agreement import pearson as pearson
    from tertium.meta.agreement import spearman as spearman
    from tertium.meta.aligned_scores import AlignedScores as AlignedScores
    from tertium.meta.metric_agreement import MetaEvaluation as MetaEvaluation
    from tertium.meta.pairwise import consistency as consistency
    from tertium.meta.pairwise import darr as darr
    from tertium.meta.pairwise import kendall_b as kendall_b
    from tertium.meta.pairwise import kendall_strict as kendall_strict
    from tertium.meta.pairwise import kendall_wmt13 as kendall_wmt13
    from tertium.meta.pairwise import kendall_wmt14 as kendall_wmt14
    from tertium.meta.tasks import Task as Task
    from tertium.meta.tasks import tasks_for as tasks_for

_PUBLIC_NAMES = {  # module: its public names, imported on first use
    "accuracy": "acc_eq acc_eq_calibrated soft_pairwise_accuracy system_accuracy",
    "agreement": "Agreement Grouping pearson spearman",
    "aligned_scores": "AlignedScores",
    "metric_agreement": "MetaEvaluation",
    "pairwise": "consistency darr kendall_b kendall_strict kendall_wmt13 kendall_wmt14",
    "tasks": "Task tasks_for",
}
_MODULE_BY_NAME = {name: home for home, names in _PUBLIC_NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'tertium.meta' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tertium.meta.{_MODULE_BY_NAME[name]}"), name)
