"""Which rows of a table no other outperforms significantly: what papers print in bold.

Williams' test of all pairs of rows in each column, one-sided at .05, as in Mathur et al. (2019).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from papers.ledger import Ledger
from papers.table import PaperTable, Row, model_of
from tertium.arrays import FloatArray
from tertium.data.collection import Collection
from tertium.errors import MissingResourceError
from tertium.meta.significance import williams
from tertium.runtime import task

LEVEL = 0.05


def unbeaten(human: FloatArray, scores: Mapping[str, FloatArray]) -> dict[str, bool]:
    """Of each row whether no other has a significantly higher correlation with people.

    >>> human = np.arange(20.0)
    >>> noise = np.random.default_rng(0).normal(size=20)
    >>> unbeaten(human, {"good": human + noise, "bad": noise})
    {'good': True, 'bad': False}
    """
    p = williams(human, np.stack([*scores.values()]))  # [i, j] is small where i beats j
    beaten = np.nan_to_num(p, nan=1.0) < LEVEL
    return {label: not beaten[:, place].any() for place, label in enumerate(scores)}


def mark_winners(table: PaperTable, collection: Collection, ledger: Ledger) -> None:
    """Score all rows again, and keep beside their figures which are unbeaten.

    Rows that are trained for the table are read from where they were kept, or trained anew; where
    there are several seeds, the first is tested.
    """
    rows = [
        row
        for row in table.rows
        if row.model is not None and hasattr(row.experiment or table.experiment, "both_scores")
    ]
    built: dict[str, Any] = {}
    columns = table.experiment.columns
    with task(f"{table.paper} table {table.number}, tests", total=len(columns)) as advance:
        for column in columns:
            human, scores = _column(table, rows, collection, column, built)
            if len(scores) > 1:
                ledger.mark(table, column, unbeaten(human, scores))
            advance(1)


def _column(
    table: PaperTable, rows: list[Row], collection: Collection, column: str, built: dict[str, Any]
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """People's scores in a column, and those of each row that can be scored here."""
    human, scores = np.zeros(0), dict[str, FloatArray]()
    for row in rows:
        experiment: Any = row.experiment or table.experiment
        try:
            model = model_of(row, collection, column, built)
        except MissingResourceError:
            continue
        human, scores[row.label] = experiment.both_scores(collection, model, column)
    return human, scores
