"""Edit distance of `sacrebleu.metrics.lib_ter`."""

from sacrebleu.metrics.lib_ter import *  # noqa: F403
