"""N-grams of `sacrebleu.metrics.helpers`."""

from sacrebleu.metrics.helpers import *  # noqa: F403
