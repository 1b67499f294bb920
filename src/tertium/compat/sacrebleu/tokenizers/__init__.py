"""Tokenizers of `sacrebleu.tokenizers`, with all modules of that package."""

import sys
from importlib import import_module
from pkgutil import iter_modules

from sacrebleu.tokenizers import *  # noqa: F403
from sacrebleu.tokenizers import __path__ as folders

for module in iter_modules(folders):  # not imported a second time, so classes stay the same
    original = import_module(f"sacrebleu.tokenizers.{module.name}")
    globals()[module.name] = sys.modules[f"{__name__}.{module.name}"] = original
