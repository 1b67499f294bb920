"""How often humans agree with a difference of two systems, from judged pairs of systems.

`recipes/differences.py` fitted the bundled scales; `tertium meta thresholds` fits others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files

from tertium.core.errors import TertiumError
from tertium.evaluation.metric_choice import describe_tokenizers
from tertium.evaluation.system_scores import Evaluation, find_unfit_metrics
from tertium.meta.difference_scales import (
    ALL_DIRECTIONS,
    INTO_ENGLISH,
    NOT_INTO_ENGLISH,
    DifferenceScale,
)
from tertium.metrics.base.capabilities import find_inputs, scale_spec
from tertium.metrics.base.loading import load_metric, replace_fields
from tertium.metrics.base.metric import Metric
from tertium.text.language_identification import (
    MAX_OTHER_LANGUAGE_SHARE,
    are_english,
    identify_language,
    is_clearly_not_english,
    is_too_short,
)

SCALES_FILE = "differences.json"


@cache
def load_bundled_scales() -> tuple[DifferenceScale, ...]:
    """Load the difference scales that come with the package."""
    text = files("tertium.evaluation").joinpath(SCALES_FILE).read_text(encoding="utf-8")
    return tuple(DifferenceScale.from_record(record) for record in json.loads(text)["scales"])


def scale_name(metric: Metric) -> str:
    """Return the spec under which the scales of a metric are stored, whatever inputs it reads."""
    if getattr(type(metric), "against", "") == "auto":
        metric = replace_fields(metric, {"against": "auto"})
    return scale_spec(metric)


def find_scale(spec: str | Metric, direction: str, inputs: str) -> DifferenceScale | None:
    """Return the scale of a metric that was fitted with the same inputs and models, or None."""
    metric = load_metric(spec)
    name, models = scale_name(metric), tuple(metric.model_ids)
    scales = {
        scale.direction: scale
        for scale in load_bundled_scales()
        if (scale.metric, scale.inputs, scale.learned) == (name, inputs, models)
    }
    return scales.get(direction) or scales.get(ALL_DIRECTIONS)


def find_scales(evaluation: Evaluation) -> dict[str, DifferenceScale]:
    """Return the scale of each metric for its inputs and the language direction of the systems.

    A metric has none if it was fitted with another tokenizer or other inputs, or if words cannot be
    split.
    """
    testset = evaluation.testset
    segments = testset.segments(evaluation.systems[0])
    direction = find_direction([(*s.references, s.hypothesis)[0] for s in segments])
    unfit = find_unfit_metrics(evaluation)
    scales = {}
    for spec in evaluation.metrics:
        with suppress(TertiumError):  # scores of a metric that is not installed
            metric = load_metric(spec)
            scale = find_scale(metric, direction, find_inputs(metric, segments))
            if scale and spec not in unfit and not describe_tokenizers(testset, [spec]):
                scales[spec] = scale
    return scales


def find_direction(texts: Sequence[str]) -> str:
    """Return the language direction of texts; all directions if English and other texts are mixed.

    >>> find_direction(["The train to the coast leaves at seven in the morning, rain or shine."])
    'into English'
    """
    if are_english(texts):
        direction, others, count = INTO_ENGLISH, sum(map(is_clearly_not_english, texts)), len(texts)
    else:
        languages = [identify_language(text) for text in texts if not is_too_short(text)]
        direction, others, count = NOT_INTO_ENGLISH, languages.count("en"), len(languages)
    return direction if others <= MAX_OTHER_LANGUAGE_SHARE * count else ALL_DIRECTIONS
