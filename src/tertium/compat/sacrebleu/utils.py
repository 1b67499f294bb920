"""Files and downloads of `sacrebleu.utils`."""

from sacrebleu.utils import *  # noqa: F403
