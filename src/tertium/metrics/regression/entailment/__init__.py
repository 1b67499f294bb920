"""Entailment features: about a hundred per direction between translation and reference.

`features.tsv` lists the features: their group, sign and sentence; whether they block entailment;
and whether explanations report them. A number ranks the features of an unaligned word: only the
one with the lowest number is reported. `feature_rules` has the rule of each feature.
To add a feature, add a line to the table and a rule.
(Pado, Galley, Jurafsky and Manning 2009; MacCartney et al. 2006.)
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from importlib.resources import files

from tertium.metrics.regression.entailment.feature_rules import (
    COMPATIBILITY_RULES,
    STRUCTURE_RULES,
    WORD_RULES,
)
from tertium.metrics.regression.entailment.feature_types import Feature, Rule

RULES: Mapping[str, Rule] = {**WORD_RULES, **COMPATIBILITY_RULES, **STRUCTURE_RULES}


def _read_features() -> list[Feature]:
    table = files(__name__).joinpath("features.tsv").read_text("utf-8").splitlines()
    return [
        Feature(
            name=row["feature"],
            group=row["group"],
            is_positive=row["sign"] == "+",
            blocks_entailment=row["blocks"] == "blocks",
            is_reported=row["report"] != "no",
            rank=int(row["report"]) if row["report"].isdigit() else 0,
            template=row["sentence"],
            rule=RULES[row["feature"]],
        )
        for row in csv.DictReader(table, delimiter="\t")
    ]


FEATURES: Mapping[str, Feature] = {feature.name: feature for feature in _read_features()}
GROUPS = tuple(dict.fromkeys(feature.group for feature in FEATURES.values()))
