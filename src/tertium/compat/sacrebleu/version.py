"""The version of sacrebleu, of `sacrebleu.version`."""

from sacrebleu.version import *  # noqa: F403
