"""Modules that take seconds to import; scoring must not import them."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec

import pytest

HEAVY = ("transformers", "torch._dynamo", "torch._inductor", "torch.distributed.tensor", "sympy")
IMPORTED = pytest.StashKey[list[str]]()  # heavy modules imported by the time all metrics had scored
# imported by the reference implementations of the tests
REFERENCES = ("torch._dynamo", "transformers.models.xlm_roberta.modeling_xlm_roberta")


def record_heavy_imports(config: pytest.Config) -> None:
    """Record which heavy modules collecting and scoring imported, for the test that checks them."""
    config.stash[IMPORTED] = [name for name in HEAVY if name in sys.modules]


def import_references() -> None:
    """Import reference implementations once, before processes are forked."""
    for name in REFERENCES:
        if find_spec(name.partition(".")[0]):
            importlib.import_module(name)
