"""Write scores and findings into copies of the localization files that were scored."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tertium.core.errors import UsageError, short_repr
from tertium.evaluation.checking import CheckReport
from tertium.evaluation.error_marking import MarkedTranslations, mark_errors
from tertium.evaluation.system_scores import Evaluation
from tertium.files.annotations import Annotation
from tertium.files.projects import Project
from tertium.files.write_back import annotate_files
from tertium.metrics.base.metric import Metric


def write_back(
    project: Project,
    result: Evaluation | CheckReport,
    output: str,
    *,
    metrics: Sequence[Metric] = (),
) -> list[str]:
    """Write copies of localization files with scores or findings; all other bytes stay the same.

    Parameters
    ----------
    project
        The files, from `read_project`.
    result
        What `score` or `check` returned for `project.testset`.
    output
        The name of the copy, or of a folder for several files.
    metrics
        Metrics whose error spans are written too, if they mark errors.

    Returns
    -------
    list of str
        The names of the copies.

    Examples
    --------
    >>> from tertium import check, read_project
    >>> project = read_project(["examples/localization/app.de.xliff"])
    >>> write_back(project, check(project.testset), "checked.xliff")  # doctest: +SKIP
    ['checked.xliff']
    """
    if isinstance(result, CheckReport):
        rows = {
            system: [Annotation(findings=spans) for spans in segments]
            for system, segments in result.spans.items()
        }
    elif isinstance(result, Evaluation):
        rows = _annotate_scores(result, mark_errors(result, metrics))
    else:
        raise UsageError(f"write_back takes the result of score or check, not {short_repr(result)}")
    return annotate_files(project, output, rows)


def _annotate_scores(
    evaluation: Evaluation, marked: Sequence[MarkedTranslations]
) -> dict[str, list[Annotation]]:
    rows: dict[str, list[Annotation]] = {}
    confidence_metric = _find_confidence(evaluation)
    for system in evaluation.systems:
        scores = {name: evaluation.scores[system][name].segments for name in evaluation.metrics}
        spans = [
            [entry.spans for entry in own.translations if entry.system == system] for own in marked
        ]
        rows[system] = [
            Annotation(
                {name: float(values[n]) for name, values in scores.items()},
                tuple(span for own in spans for span in own[n]),
                float(scores[confidence_metric][n]) if confidence_metric else math.nan,
            )
            for n in range(len(evaluation.testset))
        ]
    return rows


def _find_confidence(evaluation: Evaluation) -> str:
    """Return the first metric whose scores can be read as a confidence: all are from 0 to 1."""
    for name in evaluation.metrics:
        scores = [evaluation.scores[system][name] for system in evaluation.systems]
        values = np.concatenate([own.segments for own in scores])
        finite = values[~np.isnan(values)]
        is_share = finite.size > 0 and finite.min() >= 0.0 and finite.max() <= 1.0
        if is_share and all(own.higher_is_better for own in scores):
            return name
    return ""
