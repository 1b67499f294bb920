"""Paired tests of `sacrebleu.significance`; they call tertium's metrics if these are given."""

from sacrebleu.significance import *  # noqa: F403
