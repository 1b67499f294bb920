"""Hugging Face evaluate's `load(name).compute(...)`, with its arguments and its dictionaries.

Replace `import evaluate` by `from tertium.compat import evaluate`. `sacrebleu`, `chrf` and `ter`
give the same numbers; `bertscore` and `comet` the same keys, under encoders and metrics that are
here. Any other name is a metric of tertium.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from tertium.compat import bert_score, comet, sacrebleu
from tertium.errors import DataError, LengthError, UnknownNameError, UsageError
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.peers import listed
from tertium.segment import check_texts

Compute = Callable[..., dict[str, Any]]
ROWS = ("predictions", "references", "sources")
NAMES = {"chrf": "chr_f", "bertscore": "bert_score"}  # evaluate takes them from its classes' names
REFUSED: Mapping[str, str] = {
    "bleu": "evaluate's bleu counts other tokens than sacrebleu's: take 'sacrebleu' and its scale",
    "google_bleu": "it is another metric than BLEU: take 'sacrebleu'",
    "meteor": "evaluate's meteor is NLTK's: take tertium.load_metric('meteor'), METEOR 1.5",
    "bleurt": "its weights are not here: take 'tertium-small' or 'esim'",
    "rouge": "it is made for summaries, and is not here",
}


class EvaluationModule:
    """What `load` gives: `compute`, or `add` and `add_batch` first."""

    def __init__(self, path: str, compute: Compute) -> None:
        self.path = path
        self.name = NAMES.get(path, path)
        self._compute = compute
        self._rows: dict[str, list[Any]] = {}
        self._parameters = inspect.signature(compute).parameters

    def __len__(self) -> int:
        """How many predictions were added."""
        return len(self._rows.get("predictions", ()))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The rows that it takes: predictions, references, sources."""
        return tuple(key for key in ROWS if key in self._parameters)

    def add(self, *, prediction: Any = None, reference: Any = None, **others: Any) -> None:
        """Add one prediction: `add(prediction=..., reference=..., source=...)`."""
        self.add_batch(**_batch_of({"prediction": prediction, "reference": reference, **others}))

    def add_batch(self, *, predictions: Any = None, references: Any = None, **others: Any) -> None:
        """Add several predictions with their references (and sources)."""
        batch = {"predictions": predictions, "references": references, **others}
        for key, texts in self._listed(batch).items():
            self._rows.setdefault(key, []).extend(texts)

    def compute(self, **arguments: Any) -> dict[str, Any]:
        """The scores of what was added before and of what is given here, together."""
        unknown = next((key for key in arguments if key not in self._parameters), None)
        if unknown is not None:
            raise UnknownNameError(f"argument of {self.path}", unknown, self._parameters)
        rows = self._listed({key: arguments.get(key) for key in self.inputs})
        rows = {key: [*self._rows.get(key, ()), *rows.get(key, ())] for key in rows | self._rows}
        given = {**arguments, **rows}
        for key, parameter in self._parameters.items():
            if parameter.default is parameter.empty and given.get(key) is None:
                raise UsageError(f"{self.path}: no {key}; give {key}=[...]")
        if not rows["predictions"]:
            raise DataError(f"{self.path}: there is nothing to score (no predictions)")
        check_texts(rows["predictions"], "predictions", "prediction")
        _check_lengths(rows)
        scores = self._compute(**given)
        self._rows = {}
        return scores

    def _listed(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """The lists of a batch, which fit together."""
        rows = {key: listed(texts, key) for key, texts in batch.items() if texts is not None}
        unknown = next((key for key in rows if key not in self.inputs), None)
        if unknown is not None:
            raise UnknownNameError(f"input of {self.path}", unknown, self.inputs)
        if rows and "predictions" not in rows:
            raise UsageError(f"{self.path}: no predictions; give predictions=[...]")
        _check_lengths(rows)
        return rows


class CombinedEvaluations:
    """Several modules under one call; a key that two of them have begins with the module's name."""

    def __init__(
        self,
        evaluation_modules: Sequence[str | EvaluationModule] | Mapping[str, str | EvaluationModule],
        force_prefix: bool = False,
    ) -> None:
        names: list[str] = []
        modules = evaluation_modules
        if isinstance(modules, Mapping):
            names, modules = list(modules), list(modules.values())
        if not isinstance(modules, list | tuple) or not modules:
            raise UsageError('combine takes a list of modules, such as ["sacrebleu", "chrf"]')
        self.evaluation_modules = [
            module if isinstance(module, EvaluationModule) else load(module) for module in modules
        ]
        self.evaluation_module_names = names or [m.name for m in self.evaluation_modules]
        self.force_prefix = force_prefix

    def add(self, prediction: Any = None, reference: Any = None, **others: Any) -> None:
        """Add one prediction to every module."""
        self.add_batch(**_batch_of({"prediction": prediction, "reference": reference, **others}))

    def add_batch(self, predictions: Any = None, references: Any = None, **others: Any) -> None:
        """Add several predictions, to each module what it takes of their texts."""
        batch = {"predictions": predictions, "references": references, **others}
        for module, taken in self._shared(batch):
            module.add_batch(**taken)

    def compute(
        self, predictions: Any = None, references: Any = None, **arguments: Any
    ) -> dict[str, Any]:
        """The scores of all modules; options go to every one."""
        given = {"predictions": predictions, "references": references, **arguments}
        results = [module.compute(**taken) for module, taken in self._shared(given)]
        keys = Counter(chain.from_iterable(results))
        return {
            f"{name}_{key}" if self.force_prefix or keys[key] > 1 else key: value
            for name, scores in zip(self._prefixes(), results, strict=True)
            for key, value in scores.items()
        }

    def _shared(
        self, given: Mapping[str, Any]
    ) -> Iterator[tuple[EvaluationModule, dict[str, Any]]]:
        """Each module with what is for it: rows of another one are kept from it."""
        anywhere = {key for module in self.evaluation_modules for key in module.inputs}
        for module in self.evaluation_modules:
            foreign = anywhere - set(module.inputs)
            yield module, {key: value for key, value in given.items() if key not in foreign}

    def _prefixes(self) -> list[str]:
        """The names of modules, numbered where two are the same."""
        names = self.evaluation_module_names
        return [
            f"{name}_{names[:place].count(name)}" if names.count(name) > 1 else name
            for place, name in enumerate(names)
        ]


def combine(
    evaluations: Sequence[str | EvaluationModule] | Mapping[str, str | EvaluationModule],
    force_prefix: bool = False,
) -> CombinedEvaluations:
    """Several modules as one, by their names or loaded; a mapping says what to call them.

    >>> scores = combine(["chrf", "ter"]).compute(predictions=["a cat"], references=["a cat"])
    >>> scores["chr_f_score"], scores["ter_score"], scores["num_edits"]
    (100.0, 0.0, 0)
    """
    return CombinedEvaluations(evaluations, force_prefix)


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
    """The module of a name; `config_name` is the model of `comet`.

    What is added waits in memory, so `cache_dir`, `experiment_id` and `keep_in_memory` have nothing
    to change; nor has `seed`, since nothing is drawn.

    >>> load("chrf").compute(predictions=["a cat sat"], references=[["a cat sat"]])["score"]
    100.0
    """
    unknown = sorted(key for key, value in options.items() if value is not None)
    if unknown:
        raise UsageError(f"load has no {', '.join(unknown)} here")
    if (process_id, num_process) != (0, 1):
        raise UsageError("modules score in one process here: give all rows to one of them")
    if module_type not in (None, "metric"):
        raise UsageError(f"module_type={module_type!r}: there are only metrics here")
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
    predictions: Sequence[str],
    references: Sequence[Any],
    smooth_method: str = "exp",
    smooth_value: float | None = None,
    force: bool = False,
    lowercase: bool = False,
    tokenize: str | None = None,
    use_effective_order: bool = False,
) -> dict[str, Any]:
    found = sacrebleu.corpus_bleu(
        predictions,
        _streams(references),
        smooth_method,
        smooth_value,
        force,
        lowercase,
        tokenize or sacrebleu.BLEU.TOKENIZER_DEFAULT,
        use_effective_order,
    )
    keys = ("score", "counts", "totals", "precisions", "bp", "sys_len", "ref_len")
    return {key: getattr(found, key) for key in keys}


def _chrf(
    predictions: Sequence[str],
    references: Sequence[Any],
    char_order: int = 6,
    word_order: int = 0,
    beta: int = 2,
    lowercase: bool = False,
    whitespace: bool = False,
    eps_smoothing: bool = False,
) -> dict[str, Any]:
    scorer = sacrebleu.CHRF(char_order, word_order, beta, lowercase, whitespace, eps_smoothing)
    found = scorer.corpus_score(predictions, _streams(references))
    return {key: getattr(found, key) for key in ("score", "char_order", "word_order", "beta")}


def _ter(
    predictions: Sequence[str],
    references: Sequence[Any],
    normalized: bool = False,
    ignore_punct: bool = False,
    support_zh_ja_chars: bool = False,
    case_sensitive: bool = False,
) -> dict[str, Any]:
    scorer = sacrebleu.TER(normalized, ignore_punct, support_zh_ja_chars, case_sensitive)
    found = scorer.corpus_score(predictions, _streams(references))
    return {key: getattr(found, key) for key in ("score", "num_edits", "ref_length")}


def _bertscore(
    predictions: Sequence[str],
    references: Sequence[Any],
    lang: str | None = None,
    model_type: str | None = None,
    num_layers: int | None = None,
    verbose: bool = False,
    idf: bool = False,
    device: str | None = None,
    batch_size: int | None = None,
    nthreads: int = 4,
    all_layers: bool = False,
    rescale_with_baseline: bool = False,
    baseline_path: str | None = None,
    use_fast_tokenizer: bool = True,
) -> dict[str, Any]:
    """`model_type` and `lang` choose an encoder as `bert_score` does."""
    scorer = bert_score.BERTScorer(
        model_type,
        num_layers,
        all_layers=all_layers,
        idf=idf,
        device=device,
        lang=lang,
        rescale_with_baseline=rescale_with_baseline,
        baseline_path=baseline_path,
    )
    values, signature = scorer.columns(predictions, references, batch_size)
    parts = dict(zip(bert_score.PARTS, values.T.tolist(), strict=True))
    return {**parts, "hashcode": signature}


def _comet(model: str | None) -> Compute:
    if model is None:
        raise UsageError(
            "evaluate's 'comet' is wmt22-comet-da, which is not stood in for: name a metric, as in "
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
        found = loaded.predict(samples, gpus=gpus)
        return {"mean_score": found.system_score, "scores": found.scores}

    return compute


def _streams(references: Sequence[Any]) -> list[list[str]]:
    """References per prediction, as evaluate has them, as streams; all need the same number."""
    rows = [[row] if isinstance(row, str) else list(row) for row in references]
    if len({len(row) for row in rows}) > 1:
        raise LengthError("every prediction needs the same number of references here")
    return [list(stream) for stream in zip(*rows, strict=True)]


def _check_lengths(rows: Mapping[str, Sequence[Any]]) -> None:
    """Refuse rows that are not as many as the predictions."""
    count = len(rows["predictions"]) if rows else 0
    for key, texts in rows.items():
        if len(texts) != count:
            raise LengthError(f"{len(texts)} {key} for {count} predictions")


def _batch_of(row: Mapping[str, Any]) -> dict[str, list[Any]]:
    """One row as a batch, under the names of these: `prediction` is one of `predictions`."""
    given = {key.removesuffix("s"): text for key, text in row.items() if text is not None}
    return {f"{key}s": [text] for key, text in given.items()}
