"""Hugging Face evaluate's `load(name).compute(...)`, with its arguments and its dictionaries.

Replace `import evaluate` by `from tertium.compat import evaluate`. `sacrebleu`, `chrf` and `ter`
give the same numbers; `bertscore` and `comet` the same keys, under encoders and metrics that are
here. Any other name is a metric of tertium.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tertium.compat import comet, sacrebleu
from tertium.errors import LengthError, UnknownNameError, UsageError
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.peers import arrange
from tertium.segment import check_texts

Compute = Callable[..., dict[str, Any]]
ROWS = ("predictions", "references", "sources")
REFUSED: Mapping[str, str] = {
    "bleu": "evaluate's bleu counts other tokens than sacrebleu's: take 'sacrebleu' and its scale",
    "google_bleu": "it is another metric than BLEU: take 'sacrebleu'",
    "meteor": "evaluate's meteor is NLTK's: take tertium.load_metric('meteor'), METEOR 1.5",
    "bleurt": "its weights are not here: take 'tertium-small' or 'esim'",
    "rouge": "it is made for summaries, and is not here",
}


class EvaluationModule:
    """What `load` gives: `compute`, or `add` and `add_batch` first."""

    def __init__(self, name: str, compute: Compute) -> None:
        self.name = name
        self._compute = compute
        self._rows: dict[str, list[Any]] = {}

    def add(self, **row: Any) -> None:
        """Add one prediction: `add(prediction=..., reference=..., source=...)`."""
        self.add_batch(**{_plural(key): [value] for key, value in row.items()})

    def add_batch(self, **rows: Sequence[Any]) -> None:
        """Add several predictions with their references (and sources)."""
        for key, values in rows.items():
            self._rows.setdefault(_plural(key), []).extend(values)

    def compute(self, **arguments: Any) -> dict[str, Any]:
        """The scores of what was added before and of what is given here, together."""
        rows = {key: arguments[key] for key in ROWS if arguments.get(key) is not None}
        if self._rows:
            self.add_batch(**rows)
            rows = self._rows
        given = {**arguments, **rows}
        self._rows = {}
        for key in _required_arguments(self._compute):
            if given.get(key) is None:
                raise UsageError(f"{self.name}: no {key}; give {key}=[...]")
        check_texts(given["predictions"], "predictions", "prediction")
        count = len(given["predictions"])
        for key in ("references", "sources"):
            if given.get(key) is not None and len(given[key]) != count:
                raise LengthError(f"{len(given[key])} {key} for {count} predictions")
        try:
            return self._compute(**given)
        except TypeError as error:
            if "unexpected keyword" not in str(error):
                raise
            raise UsageError(f"{self.name}: {str(error).partition(') ')[2] or error}") from None


def load(path: str, config_name: str | None = None, **ignored: Any) -> EvaluationModule:
    """The module of a name; `config_name` is the model of `comet`.

    >>> load("chrf").compute(predictions=["a cat sat"], references=[["a cat sat"]])["score"]
    100.0
    """
    unknown = set(ignored) - {"module_type", "experiment_id", "keep_in_memory", "seed"}
    if unknown:
        raise UsageError(f"load has no {', '.join(sorted(unknown))} here")
    if path in REFUSED:
        raise UsageError(f"evaluate's {path!r} is not stood in for: {REFUSED[path]}")
    known: dict[str, Compute] = {
        "sacrebleu": _sacrebleu,
        "chrf": _chrf,
        "ter": _ter,
        "bertscore": _bertscore,
    }
    if path == "comet":
        return EvaluationModule(path, _comet(config_name))
    if config_name is not None:
        raise UsageError(f"{path} has no configurations; {config_name!r} was given")
    return EvaluationModule(path, known[path] if path in known else load_metric(path).compute)


def _sacrebleu(
    predictions: Sequence[str], references: Sequence[Any], **options: Any
) -> dict[str, Any]:
    found = sacrebleu.corpus_bleu(predictions, _streams(references), **options)
    keys = ("counts", "totals", "precisions", "bp", "sys_len", "ref_len")
    return {"score": found.score, **{key: found.details[key] for key in keys}}


def _chrf(predictions: Sequence[str], references: Sequence[Any], **options: Any) -> dict[str, Any]:
    return _scores_of(sacrebleu.CHRF(**options), predictions, references)


def _ter(
    predictions: Sequence[str],
    references: Sequence[Any],
    normalized: bool = False,
    ignore_punct: bool = False,
    support_zh_ja_chars: bool = False,
    case_sensitive: bool = False,
) -> dict[str, Any]:
    scorer = sacrebleu.TER(normalized, ignore_punct, support_zh_ja_chars, case_sensitive)
    return _scores_of(scorer, predictions, references)


def _scores_of(
    scorer: sacrebleu.CHRF | sacrebleu.TER, predictions: Sequence[str], references: Sequence[Any]
) -> dict[str, Any]:
    found = scorer.corpus_score(predictions, _streams(references))
    return {"score": found.score, **found.details}


def _bertscore(
    predictions: Sequence[str],
    references: Sequence[Any],
    lang: str | None = None,
    model_type: str | None = None,
    num_layers: int | None = None,
    idf: bool = False,
    rescale_with_baseline: bool = False,
    device: str | None = None,
    batch_size: int | None = None,
    nthreads: int = 4,
    verbose: bool = False,
    use_fast_tokenizer: bool = True,
) -> dict[str, Any]:
    """`model_type` is an encoder of tertium; without it `minilm` for English, `use` for others."""
    from tertium.runtime import runtime

    if lang is None and model_type is None:
        raise UsageError("bertscore: say lang='en' or model_type='minilm', as evaluate asks for")
    encoder = model_type or ("minilm" if lang and lang.lower() == "en" else "use")
    if num_layers is not None:
        encoder = f"{encoder}@{num_layers}"
    changes = {"device": device, "batch_size": batch_size}
    segments = arrange(predictions, references, layout="segments")
    fields = {"encoder": encoder, "idf": idf, "rescale": rescale_with_baseline}
    with runtime(**{key: value for key, value in changes.items() if value is not None}):
        try:
            scores = load_metric("bertscore", **fields).score(segments)
        except UnknownNameError as error:
            raise UsageError(f"{error}; a model of Hugging Face is 'hf/{encoder}'") from None
    parts = {
        name: scores.statistics[:, scores.columns.index(name)].tolist()
        for name in ("precision", "recall", "f1")
    }
    return {**parts, "hashcode": scores.signature}


def _comet(model: str | None) -> Compute:
    loaded = comet.load_from_checkpoint(comet.download_model(model or "tertium-small"))

    def compute(
        predictions: Sequence[str],
        references: Sequence[str],
        sources: Sequence[str],
        gpus: int | None = None,
        progress_bar: bool = False,
    ) -> dict[str, Any]:
        rows = zip(sources, predictions, references, strict=True)
        samples = [{"src": src, "mt": mt, "ref": ref} for src, mt, ref in rows]
        found = loaded.predict(samples, gpus=gpus)
        return {"mean_score": found.system_score, "scores": found.scores}

    return compute


def _streams(references: Sequence[Any]) -> list[list[str]]:
    """References per prediction, as evaluate has them, as streams; all need the same number."""
    rows = [[row] if isinstance(row, str) else list(row) for row in references]
    if len({len(row) for row in rows}) > 1:
        raise LengthError("every prediction needs the same number of references here")
    return [list(stream) for stream in zip(*rows, strict=True)]


def _required_arguments(compute: Compute) -> list[str]:
    """The arguments that a module cannot do without."""
    parameters = inspect.signature(compute).parameters.values()
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in kinds]


def _plural(key: str) -> str:
    return key if key.endswith("s") else f"{key}s"
