"""Hugging Face evaluate's `load(name).compute(...)`, with the same arguments and dictionaries.

Replace `import evaluate` by `from tertium.compat import evaluate`. `sacrebleu`, `chrf` and `ter`
give the same numbers; `bertscore` and `comet` the same keys, with tertium's encoders and metrics.
Any other name is a metric of tertium. `compute` takes all texts at once: there is no `add`,
`add_batch` or `combine`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tertium.compat import bert_score, comet, sacrebleu
from tertium.core.errors import DataError, LengthError, UnknownNameError, UsageError
from tertium.core.segment import check_texts
from tertium.metrics.base.compatibility_calls import as_text_list
from tertium.metrics.base.loading import load_metric

Compute = Callable[..., dict[str, Any]]
INPUT_NAMES = ("predictions", "references", "sources")
MODULE_NAMES = {"chrf": "chr_f", "bertscore": "bert_score"}  # evaluate derives them from classes
# of a module of sacrebleu: the class, evaluate's names of its arguments, and the keys of the result
SACREBLEU_MODULES: Mapping[str, tuple[Any, Mapping[str, str], Sequence[str]]] = {
    "sacrebleu": (
        sacrebleu.BLEU,
        {"effective_order": "use_effective_order"},
        ("score", "counts", "totals", "precisions", "bp", "sys_len", "ref_len"),
    ),
    "chrf": (sacrebleu.CHRF, {}, ("score", "char_order", "word_order", "beta")),
    "ter": (
        sacrebleu.TER,
        {"no_punct": "ignore_punct", "asian_support": "support_zh_ja_chars"},
        ("score", "num_edits", "ref_length"),
    ),
}
UNSUPPORTED: Mapping[str, str] = {
    "bleu": "evaluate's bleu tokenizes differently: use 'sacrebleu' (scale 0 to 100)",
    "google_bleu": "GLEU is a different metric: use 'sacrebleu'",
    "meteor": "evaluate's meteor is NLTK's: use tertium.load_metric('meteor'), METEOR 1.5",
    "bleurt": "its weights are not available: use 'tertium-small' or 'esim'",
    "rouge": "it is a metric for summaries",
}


class EvaluationModule:
    """The result of `load`: call `compute` with all predictions.

    `options` are the arguments that `compute` takes besides those of its signature.
    """

    def __init__(self, path: str, compute: Compute, options: Iterable[str] = ()) -> None:
        self.path = path
        self.name = MODULE_NAMES.get(path, path)
        self._compute = compute
        parameters = inspect.signature(compute).parameters.values()
        explicit = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
        self._required = [p.name for p in explicit if p.default is p.empty]
        self._names = [*(p.name for p in explicit), *options]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs of this module: predictions, references, sources."""
        return tuple(key for key in INPUT_NAMES if key in self._names)

    def compute(self, **arguments: Any) -> dict[str, Any]:
        """Score predictions: `compute(predictions=[...], references=[...])`."""
        for key in arguments:
            if key not in self._names:
                raise UnknownNameError(f"argument of {self.path}", key, self._names)
        for key in self._required:
            if arguments.get(key) is None:
                raise UsageError(f"{self.path}: no {key}; give {key}=[...]")
        inputs = [key for key in self.inputs if arguments.get(key) is not None]
        rows = {key: as_text_list(arguments[key], key) for key in inputs}
        count = len(rows["predictions"])
        if not count:
            raise DataError(f"{self.path}: nothing to score (no predictions)")
        check_texts(rows["predictions"], "predictions", "prediction")
        for key, texts in rows.items():
            if len(texts) != count:
                raise LengthError(f"{len(texts)} {key} for {count} predictions")
        return self._compute(**{**arguments, **rows})


def load(
    path: str,
    config_name: str | None = None,
    module_type: str | None = None,
    process_id: int = 0,
    num_process: int = 1,
    cache_dir: str | None = None,
    experiment_id: str | None = None,
    keep_in_memory: bool = False,
    *,
    seed: int | None = None,
    **options: Any,
) -> EvaluationModule:
    """Load a module by name; `config_name` is the model of `comet`.

    Predictions are kept in memory, so `cache_dir`, `experiment_id` and `keep_in_memory` have no
    effect; neither has `seed`, since nothing is random.

    >>> load("chrf").compute(predictions=["a cat sat"], references=[["a cat sat"]])["score"]
    100.0
    """
    unknown = sorted(key for key, value in options.items() if value is not None)
    if unknown:
        raise UsageError(f"load does not support {', '.join(unknown)}")
    if (process_id, num_process) != (0, 1):
        raise UsageError(
            "several processes are not supported: give all rows to one call of compute"
        )
    if module_type not in (None, "metric"):
        raise UsageError(f"module_type={module_type!r}: expected 'metric'")
    if path in UNSUPPORTED:
        raise UsageError(f"evaluate's {path!r} is not supported: {UNSUPPORTED[path]}")
    if path == "comet":
        return EvaluationModule(path, _comet(config_name))
    if config_name is not None:
        raise UsageError(f"{path} has no configurations, got {config_name!r}")
    if path in SACREBLEU_MODULES:
        return _load_sacrebleu(path)
    if path == "bertscore":
        names = inspect.signature(bert_score.BERTScorer).parameters
        return EvaluationModule(path, _bertscore, names)
    return EvaluationModule(path, load_metric(path).compute)


def _load_sacrebleu(path: str) -> EvaluationModule:
    scorer, their_names, keys = SACREBLEU_MODULES[path]
    names = [name for name in inspect.signature(scorer).parameters if name != "references"]
    our_names = {their_names.get(name, name): name for name in names}

    def compute(
        predictions: Sequence[str], references: Sequence[Any], **options: Any
    ) -> dict[str, Any]:
        settings = {our_names[key]: value for key, value in options.items() if value is not None}
        result = scorer(**settings).corpus_score(predictions, _streams(references))
        return {key: getattr(result, key) for key in keys}

    return EvaluationModule(path, compute, our_names)


def _bertscore(
    predictions: Sequence[str],
    references: Sequence[Any],
    batch_size: int | None = None,
    verbose: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """Compute BERTScore; `model_type` and `lang` choose the encoder as in `bert_score`."""
    scorer = bert_score.BERTScorer(**options)
    values, signature = scorer.score_array(predictions, references, batch_size)
    scores = dict(zip(bert_score.SCORE_NAMES, values.T.tolist(), strict=True))
    return {**scores, "hashcode": signature}


def _comet(model: str | None) -> Compute:
    if model is None:
        raise UsageError(
            "evaluate's 'comet' is wmt22-comet-da, which is not included: name a metric, as in "
            'load("comet", "tertium-small"), or the folder of a checkpoint'
        )
    loaded = comet.load_from_checkpoint(comet.download_model(model))

    def compute(
        predictions: Sequence[str],
        references: Sequence[str],
        sources: Sequence[str],
        gpus: int | None = None,
        progress_bar: bool = False,
    ) -> dict[str, Any]:
        rows = zip(sources, predictions, references, strict=True)
        samples = [{"src": src, "mt": mt, "ref": ref} for src, mt, ref in rows]
        prediction = loaded.predict(samples, gpus=gpus)
        return {"mean_score": prediction.system_score, "scores": prediction.scores}

    return compute


def _streams(references: Sequence[Any]) -> list[list[str]]:
    """Transpose references per prediction (evaluate's layout) to streams (sacrebleu's)."""
    rows = [[row] if isinstance(row, str) else list(row) for row in references]
    if len({len(row) for row in rows}) > 1:
        raise LengthError("every prediction needs the same number of references")
    return [list(stream) for stream in zip(*rows, strict=True)]
