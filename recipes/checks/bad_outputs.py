"""How bad are translations with a finding? `python -m recipes.checks.bad_outputs --data DIR`.

For each check: judged translations of WMT24 (ESA, nine language pairs, without human translations)
with a finding, and the share of them with a human score below 50, with a 95 % interval. Prints the
figures of docs/guides/route.md and of `tertium.evaluation.checking.FAILED_OUTPUT`.
"""

from __future__ import annotations

import argparse

import numpy as np
from papers.number_cells import cell_table, number_cell

from tertium.core.arrays import BoolArray
from tertium.core.result import Cell
from tertium.decide.route import (
    DEFAULT_CONDITIONS,
    ESA_SCORES,
    precision_bounds,
    read_judged_rows,
)
from tertium.evaluation.checking import FAILED_OUTPUT, find_errors
from tertium.evaluation.judged import HumanInputs
from tertium.output.text import render_table

SETS = ("modern/train/esa/wmt24", "modern/dev/esa/wmt24")
HUMAN_PREFIXES = ("ref", "human")  # system names of human translations start with these
BAD_SCORE = ESA_SCORES[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", help="folder of human judgments (default: TERTIUM_DATA)")
    args = parser.parse_args()
    judged_rows = read_judged_rows(HumanInputs(human=SETS, data=args.data))
    is_system = np.array(
        [not row.system.lower().startswith(HUMAN_PREFIXES) for row in judged_rows.rows]
    )
    rows = [row for row, keep in zip(judged_rows.rows, is_system, strict=True) if keep]
    is_bad = judged_rows.scores[is_system] < BAD_SCORE
    categories = [{span.category for span in spans} for spans in find_errors(rows)]

    def line(name: str, flags: BoolArray) -> list[Cell | str]:
        count, bad = int(flags.sum()), int((flags & is_bad).sum())
        low, high = (
            float(b[0]) for b in precision_bounds(np.array([bad]), np.array([count]), 0.025)
        )
        share = bad / count if count else float("nan")
        return [name, *map(number_cell, (count, 100 * share, 100 * low, 100 * high), (0, 1, 1, 1))]

    groups = {"all translations": (), "any of these": FAILED_OUTPUT}
    groups |= {name: (name,) for name in (*FAILED_OUTPUT, *DEFAULT_CONDITIONS)}
    lines = [
        line(name, np.array([not kinds or not own.isdisjoint(kinds) for own in categories]))
        for name, kinds in groups.items()
    ]
    header = ["finding", "translations", f"below {BAD_SCORE:g} (%)", "from (%)", "to (%)"]
    print(render_table(cell_table(header, lines), "md"))


if __name__ == "__main__":
    main()
