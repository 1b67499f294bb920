"""Modules that take seconds of every process that imports them, so that scoring imports none."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec

import pytest

HEAVY = ("transformers", "torch._dynamo", "torch._inductor", "torch.distributed.tensor", "sympy")
IMPORTED = pytest.StashKey[list[str]]()  # those that were imported until every metric had scored
# what references of the tests import, a compiler among it
REFERENCES = ("torch._dynamo", "transformers.models.xlm_roberta.modeling_xlm_roberta")


def tell_imported(config: pytest.Config) -> None:
    """Keep which heavy modules collecting and scoring imported, for the test that asks."""
    config.stash[IMPORTED] = [name for name in HEAVY if name in sys.modules]


def import_references() -> None:
    """Import once what processes would import for themselves."""
    for name in REFERENCES:
        if find_spec(name.partition(".")[0]):
            importlib.import_module(name)
