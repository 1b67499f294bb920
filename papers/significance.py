"""Mark the rows that no other row of a table outperforms significantly (bold in the papers).

Williams' test on all pairs of rows in each column, one-sided at .05, as in Mathur et al. (2019).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from papers.experiments import Correlation
from papers.ledger import Ledger
from papers.table import PaperTable, Row, build_model
from tertium.core.arrays import FloatArray
from tertium.core.errors import MissingResourceError
from tertium.core.runtime import progress_task
from tertium.data.dataset_folder import DatasetFolder
from tertium.meta.replicates import williams

SIGNIFICANCE_LEVEL = 0.05


def find_best_rows(human: FloatArray, scores: Mapping[str, FloatArray]) -> dict[str, bool]:
    """Return for each row whether no other row has a significantly higher correlation.

    >>> human = np.arange(20.0)
    >>> noise = np.random.default_rng(0).normal(size=20)
    >>> find_best_rows(human, {"good": human + noise, "bad": noise})
    {'good': True, 'bad': False}
    """
    p = williams(human, np.stack([*scores.values()]))  # [i, j] is small if i beats j
    beats = np.nan_to_num(p, nan=1.0) < SIGNIFICANCE_LEVEL
    return {label: not beats[:, n].any() for n, label in enumerate(scores)}


def mark_best_rows(table: PaperTable, datasets: DatasetFolder, ledger: Ledger) -> None:
    """Score all rows again and store which are best; with several seeds, test the first."""
    rows = [
        row
        for row in table.rows
        if row.model is not None and isinstance(table.experiment_of(row), Correlation)
    ]
    metrics: dict[str, Any] = {}
    columns = table.experiment.columns
    with progress_task(f"{table.paper} table {table.number}, tests", total=len(columns)) as advance:
        for column in columns:
            human, scores = _score_column(table, rows, datasets, column, metrics)
            if len(scores) > 1:
                ledger.mark_best(table, column, find_best_rows(human, scores))
            advance(1)


def _score_column(
    table: PaperTable,
    rows: list[Row],
    datasets: DatasetFolder,
    column: str,
    metrics: dict[str, Any],
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return the human scores of a column, and the scores of each row that is available."""
    human, scores = np.zeros(0), dict[str, FloatArray]()
    for row in rows:
        experiment: Any = table.experiment_of(row)
        try:
            model = build_model(row, datasets, column, metrics)
        except MissingResourceError:
            continue
        human, scores[row.label], *_ = experiment.read_scores(datasets, model, column)
    return human, scores
