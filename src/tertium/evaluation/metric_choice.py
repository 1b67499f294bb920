"""Choose metrics for a test set, and their settings for its languages."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from tertium.core.errors import MissingInputError, TertiumError, UsageError
from tertium.core.extras import install_command, is_installed
from tertium.core.options import Option, Specs
from tertium.core.runtime import current_runtime, resolve_device
from tertium.data.testset import TestSet
from tertium.files.text_inputs import InputTexts
from tertium.metrics.base.loading import load_metric, load_metrics, replace_fields
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.scorer import HOW_TO_PROVIDE

if TYPE_CHECKING:
    from tertium.metrics.base.ranker import Ranker

COMPANIONS = ("bleu", "chrf")  # shown with the recommended metric in comparisons and reports

logger = logging.getLogger(__name__)


def load_metrics_for(
    texts: Sequence[str], metrics: str | Metric | Sequence[str | Metric]
) -> list[Metric]:
    """Load metrics for texts in the target language.

    Specs without a tokenizer get that of the language, if they need one. Metric objects stay as
    they are.
    """
    if isinstance(metrics, Iterable) and not isinstance(metrics, str):
        metrics = list(metrics)  # an iterator can be read once
    loaded = load_metrics(metrics)
    specs = [metrics] if isinstance(metrics, str | Metric) else metrics
    return set_all_languages(loaded, specs, texts=texts)


def set_all_languages(
    metrics: Sequence[Metric],
    specs: Sequence[str | Metric],
    source: str = "",
    target: str = "",
    texts: Sequence[str] = (),
) -> list[Metric]:
    """Set the languages of metrics as `set_languages`, unless two metrics became equal."""
    chosen = [
        set_languages(*pair, source, target, texts) for pair in zip(metrics, specs, strict=True)
    ]
    counts = Counter(metric.spec for metric in chosen)
    pairs = zip(chosen, metrics, strict=True)  # both may have been given: bleu, bleu:tokenize=zh
    return [own if counts[own.spec] == 1 else metric for own, metric in pairs]


def set_languages(
    metric: Metric,
    spec: str | Metric,
    source: str = "",
    target: str = "",
    texts: Sequence[str] = (),
) -> Metric:
    """Set the languages of a metric unless its spec names them; the source may be unknown.

    BLEU and NIST get sacrebleu's tokenizer for the target language, if it is installed. If the
    target language is unknown, it is that of the texts.
    """
    if isinstance(spec, Metric):
        return metric
    if source and target and getattr(metric, "lp", None) == "":
        return replace_fields(metric, {"lp": f"{source}-{target}"})
    if target and hasattr(metric, "language") and "language=" not in spec:
        return replace_fields(metric, {"language": target})
    if hasattr(metric, "tokenize") and "tokenize" not in spec:
        from tertium.metrics.base.word_tokenizers import tokenizer_for
        from tertium.text.language_identification import main_language

        language = target or main_language(texts)
        return replace_fields(metric, {"tokenize": tokenizer_for(language)})
    return metric


def describe_tokenizers(testset: TestSet, specs: Iterable[str]) -> list[str]:
    """Return a sentence for each metric that splits texts in a language with its own tokenizer."""
    sentences = []
    for spec in specs:
        with suppress(TertiumError):
            metric = load_metric(spec)
            if tokenizer := getattr(metric, "tokenize", ""):
                from tertium.metrics.base.word_tokenizers import describe_tokenizer
                from tertium.text.language_identification import main_language

                language = main_language(target_texts(testset))
                sentence = describe_tokenizer(language, tokenizer)
                sentences += [f"{metric.label}: {sentence}"] if sentence else []
    return sentences


def target_texts(testset: TestSet) -> Sequence[str]:
    """Return the first references or, without any, the translations of the first system."""
    references = [texts[0] for texts in testset.references if texts]
    return references or next(iter(testset.systems.values()))


def recommend_metric(testset: TestSet, language: str = "") -> str:
    """Return the metric with the best human agreement on such data that is installed."""
    first = [texts[0] for texts in testset.references if texts]
    return recommend_metric_for(first, sources=bool(testset.sources), language=language)


def recommend_metric_for(references: Sequence[str], *, sources: bool, language: str = "") -> str:
    """Return the recommended metric, given the first reference of each segment.

    `language` is the target language, if it is known.
    """
    if not references and not sources:
        raise MissingInputError(
            "no metric is given, and the default one (tertium-small for English references, "
            "otherwise tertium-multi) needs references, sources or both: "
            f"{HOW_TO_PROVIDE['references']}, or the source likewise"
        )
    from tertium.models.checkpoint import HOW_TO_INSTALL, has_bundled_models
    from tertium.text.language_identification import seem_english

    can_run = is_installed("torch", "tokenizers")
    if can_run and has_bundled_models():
        is_english = language == "en" if language else seem_english(references)
        return "tertium-small" if references and is_english else "tertium-multi"
    if not references:
        return "sss" if can_run else "tertium-multi"  # its error explains what to install
    logger.warning(
        "no metric is given, so chrf is used: a metric with better human agreement needs %s",
        HOW_TO_INSTALL if can_run else f"torch: {install_command('neural')}",
    )
    return "chrf"


def default_metrics(testset: TestSet, language: str = "") -> list[str]:
    """Return the default metrics of a comparison: BLEU, chrF and the recommended metric."""
    companions = COMPANIONS if testset.references else ()
    return list(dict.fromkeys([*companions, recommend_metric(testset, language)]))


@dataclass(frozen=True, kw_only=True)
class MetricOptions:
    """Which metrics score the texts.

    Attributes
    ----------
    metrics
        Metrics such as bleu or chrf:word_order=2; see `tertium list` (default: tertium-small for
        English references, otherwise tertium-multi; compare and report add bleu and chrf).
    precision
        Precision of neural metrics; auto: the fastest on this device (default: int8 for
        tertium-small, -base and -multi, fp32 for published metrics).
    """

    group: ClassVar[str] = "Metrics"
    metrics: Annotated[Specs, Option("-m", "--metrics", "--model")] = ()
    precision: Literal["auto", "fp32", "bf16", "fp16", "int8"] | None = None

    def load(
        self, texts: InputTexts, default: Callable[[TestSet, str], Sequence[str]]
    ) -> list[Metric]:
        """Load the metrics for texts; `default` names metrics for a test set and a language."""
        testset = texts.testset
        target = texts.target_language
        specs = self.metrics or default(testset, target)
        return self.load_for(specs, texts.source_language, target, target_texts(testset))

    def load_for(
        self, specs: Sequence[str], source: str = "", target: str = "", texts: Sequence[str] = ()
    ) -> list[Metric]:
        """Load metrics and set their languages; an unknown target language follows from texts."""
        if source and not target:
            raise UsageError(f"--source-language {source} needs --target-language: give both")
        return set_all_languages(self.load_specs(specs), specs, source, target, texts)

    def load_specs(self, specs: Sequence[str]) -> list[Metric]:
        """Load metrics, in the chosen precision if they have one."""
        metrics = [load_metric(spec) for spec in specs]
        has_precision = [hasattr(metric, "precision") for metric in metrics]
        precision: str | None = self.precision
        if precision is None or not any(has_precision):
            return metrics
        if precision == "auto":
            from tertium.encoders.transformer_layer import fastest_precision

            device = resolve_device(current_runtime().device)
            precision = fastest_precision(device)
            logger.warning("precision %s, the fastest on %s", precision, device)
        return [
            replace_fields(metric, {"precision": precision}) if has else metric
            for metric, has in zip(metrics, has_precision, strict=True)
        ]


def default_metric(testset: TestSet, language: str = "") -> list[str]:
    """Return the recommended metric as the only one."""
    return [recommend_metric(testset, language)]


def load_scorer(
    spec: str, source: str = "", target: str = "", texts: Sequence[str] = ()
) -> Metric | Ranker:
    """Load a ranker, or a metric whose languages are set as by `MetricOptions.load_for`."""
    from tertium.metrics.base.ranker import ScoreRanker, load_ranker

    ranker = load_ranker(spec)
    if not isinstance(ranker, ScoreRanker):
        return ranker
    [metric] = MetricOptions().load_for([spec], source, target, texts)
    return metric
