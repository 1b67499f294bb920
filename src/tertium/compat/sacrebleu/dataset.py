"""Test sets of `sacrebleu.dataset`."""

from sacrebleu.dataset import *  # noqa: F403
