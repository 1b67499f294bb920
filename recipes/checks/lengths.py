"""Measure the length of translations relative to English: `python -m recipes.checks.lengths`.

For each language of FLORES (dev part), the mean and the standard deviation of
log(characters / characters in English) over parallel lines, written to
`src/tertium/checks/length_ratios.json`.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

from recipes.languages.lines import FLORES_DEV_LINES, read_flores
from tertium.core.atomic import write_text

TABLE = Path(__file__).parents[2] / "src/tertium/checks/length_ratios.json"


def measure_ratios(lines: dict[str, list[str]]) -> dict[str, tuple[float, float]]:
    """Return mean and deviation of the log length ratio to English by language."""
    english = np.log([len(line.strip()) for line in lines["en"]])
    deviations = {}
    for language, texts in sorted(lines.items()):
        ratios = np.log([len(line.strip()) for line in texts]) - english
        deviations[language] = (round(float(ratios.mean()), 3), round(float(ratios.std()), 3))
    own = float(np.median([deviation for _, deviation in deviations.values()]))
    return {**deviations, "en": (0.0, round(own, 3))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("TERTIUM_DATA"))
    args = parser.parse_args()
    ratios = measure_ratios(read_flores(args.data, slice(0, FLORES_DEV_LINES)))
    rows = (f' "{language}": {json.dumps(row)}' for language, row in ratios.items())
    write_text(TABLE, "{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
