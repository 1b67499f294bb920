"""Agreement of metrics with human scores: statistics, tests and rankings on score matrices."""

from tertium.meta.accuracy import acc_eq, acc_eq_calibrated
from tertium.meta.agreement import Agreement, Grouping
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.correlation import pearson, spearman
from tertium.meta.evaluation import MetaEvaluation
from tertium.meta.pairwise import (
    consistency,
    darr,
    kendall_b,
    kendall_strict,
    kendall_wmt13,
    kendall_wmt14,
)
from tertium.meta.systems import soft_pairwise_accuracy, system_accuracy, tie_aware_spearman
from tertium.meta.tasks import Task, tasks_for

__all__ = [
    "Agreement",
    "AlignedScores",
    "Grouping",
    "MetaEvaluation",
    "Task",
    "acc_eq",
    "acc_eq_calibrated",
    "consistency",
    "darr",
    "kendall_b",
    "kendall_strict",
    "kendall_wmt13",
    "kendall_wmt14",
    "pearson",
    "soft_pairwise_accuracy",
    "spearman",
    "system_accuracy",
    "tasks_for",
    "tie_aware_spearman",
]
