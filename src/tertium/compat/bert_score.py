"""bert-score's `score` and `BERTScorer`, with the same arguments and tensors.

Replace `from bert_score import ...` by `from tertium.compat.bert_score import ...`. `model_type` is
an encoder of tertium or a model of the Hugging Face hub; its default layer is bert-score's. With
`lang` alone, the encoder is one that tertium has, not bert-score's default: a warning and the hash
name it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tertium.core.arrays import FloatArray
from tertium.core.atomic import write_text
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.extras import explain_missing
from tertium.core.runtime import runtime
from tertium.core.segment import check_texts
from tertium.encoders.encoder import ENCODERS, EncoderName
from tertium.encoders.weight_files import MODEL_CARDS
from tertium.metrics.base.compatibility_calls import References, Texts, make_segments
from tertium.metrics.base.loading import load_metric, replace_fields
from tertium.text.language_codes import check_language_code

if TYPE_CHECKING:
    import torch

    Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

__all__ = ["BERTScorer", "score"]

SCORE_NAMES = ("precision", "recall", "f1")
DEFAULT_ENCODERS = ("minilm", "use", "e5")  # the first one that supports the language is used
# From bert-score's `model2layers`: its default models per language and the most used others.
DEFAULT_LAYERS: Mapping[str, int] = {
    "albert-base-v2": 9,
    "allenai/scibert_scivocab_uncased": 8,
    "bert-base-chinese": 8,
    "bert-base-multilingual-cased": 9,
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "dbmdz/bert-base-turkish-cased": 10,
    "distilbert-base-uncased": 5,
    "distilroberta-base": 5,
    "microsoft/deberta-base-mnli": 9,
    "microsoft/deberta-large-mnli": 18,
    "microsoft/deberta-v3-large": 12,
    "microsoft/deberta-xlarge-mnli": 40,
    "microsoft/mdeberta-v3-base": 10,
    "microsoft/mpnet-base": 8,
    "roberta-base": 10,
    "roberta-large": 17,
    "roberta-large-mnli": 19,
    "xlm-roberta-base": 9,
    "xlm-roberta-large": 17,
}
# From bert-score's `lang2model`; other languages have the multilingual model.
DEFAULT_MODELS: Mapping[str, str] = {
    "en": "roberta-large",
    "en-sci": "allenai/scibert_scivocab_uncased",
    "tr": "dbmdz/bert-base-turkish-cased",
    "zh": "bert-base-chinese",
}
MULTILINGUAL_MODEL = "bert-base-multilingual-cased"

logger = logging.getLogger(__name__)


def score(
    cands: Texts,
    refs: References,
    model_type: str | None = None,
    num_layers: int | None = None,
    verbose: bool = False,
    idf: bool = False,
    device: Any = None,
    batch_size: int = 64,
    nthreads: int = 4,
    all_layers: bool = False,
    lang: str | None = None,
    return_hash: bool = False,
    rescale_with_baseline: bool = False,
    baseline_path: str | None = None,
    use_fast_tokenizer: bool = False,
) -> Any:
    """Return precision, recall and F1 as tensors (texts,), and the signature with `return_hash`.

    A candidate has one reference or a list of references; the best one counts.

    >>> p, r, f1 = score(["the cat sat"], ["the cat sat down"], model_type="toy")
    >>> round(f1.item(), 3)
    0.897
    """
    scorer = BERTScorer(
        model_type,
        num_layers,
        batch_size,
        nthreads,
        all_layers,
        idf,
        device=device,
        lang=lang,
        rescale_with_baseline=rescale_with_baseline,
        baseline_path=baseline_path,
        use_fast_tokenizer=use_fast_tokenizer,
    )
    return scorer.score(cands, refs, verbose, batch_size, return_hash)


class BERTScorer:
    """Equivalent of `bert_score.BERTScorer`; `verbose`, `nthreads` and the like have no effect."""

    def __init__(
        self,
        model_type: str | None = None,
        num_layers: int | None = None,
        batch_size: int = 64,
        nthreads: int = 4,
        all_layers: bool = False,
        idf: bool = False,
        idf_sents: Sequence[str] | None = None,
        device: Any = None,
        lang: str | None = None,
        rescale_with_baseline: bool = False,
        baseline_path: str | None = None,
        use_fast_tokenizer: bool = False,
    ) -> None:
        if all_layers or baseline_path is not None:
            raise UsageError(
                "bertscore: all_layers and baseline_path are not supported; choose a layer with "
                "num_layers"
            )
        if not isinstance(idf, bool):
            raise UsageError(
                "bertscore: a dictionary as idf is not supported: give idf=True and the texts as "
                "BERTScorer(idf_sents=...)"
            )
        self.lang = lang
        self.idf = idf
        self.batch_size = batch_size
        self.device = device
        self.rescale_with_baseline = rescale_with_baseline
        self.encoder = choose_encoder(model_type, num_layers, lang)
        if model_type is None:
            _warn_about_encoder(str(lang).lower(), self.encoder)
        self.metric = load_metric(
            "bertscore", encoder=self.encoder, idf=idf, rescale=rescale_with_baseline
        )
        if idf_sents is not None:
            self.compute_idf(idf_sents)

    def compute_idf(self, sents: Sequence[str]) -> None:
        """Take IDF weights from these texts instead of the scored references; needs `idf=True`."""
        check_texts(sents, "idf_sents", "text")
        if not len(sents):
            raise UsageError("bertscore: idf_sents: expected at least one text, got none")
        if self.idf:
            self._folder = TemporaryDirectory(prefix="tertium-idf-")  # as long as this scorer
            file = Path(self._folder.name, "idf_texts.txt")
            write_text(file, (f"{' '.join(text.split())}\n" for text in sents))
            self.metric = replace_fields(self.metric, {"idf_texts": str(file)})

    def score(
        self,
        cands: Texts,
        refs: References,
        verbose: bool = False,
        batch_size: int | None = None,
        return_hash: bool = False,
    ) -> Any:
        """Return precision, recall and F1 of each candidate, like the function `score`."""
        with explain_missing("tensors of bert-score"):
            import torch

        values, signature = self.score_array(cands, refs, batch_size)
        precision, recall, f1 = torch.from_numpy(values.T.copy()).float()
        scores: Triple = (precision, recall, f1)
        return (scores, signature) if return_hash else scores

    def score_array(
        self, cands: Texts, refs: References, batch_size: int | None = None
    ) -> tuple[FloatArray, str]:
        """Return precision, recall and F1 as an array (texts, 3), and the signature."""
        segments = make_segments(cands, refs, layout="segments")
        size = self.batch_size if batch_size is None else batch_size
        settings: dict[str, Any] = {"batch_size": size}
        if self.device is not None:
            settings["device"] = str(self.device)
        with runtime(**settings):
            scores = self.metric.score(segments)
        indices = [scores.columns.index(name) for name in SCORE_NAMES]
        values: FloatArray = scores.statistics[:, indices]
        return values, scores.signature


def choose_encoder(model_type: str | None, num_layers: int | None, lang: str | None) -> str:
    """Return the name of the encoder for a model or a language.

    >>> choose_encoder("roberta-large", None, None), choose_encoder("minilm", 3, "en")
    ('hf/roberta-large@17', 'minilm@3')
    >>> [choose_encoder(None, None, code) for code in ("en", "de", "is")]
    ['minilm', 'use', 'e5']
    """
    if lang is None and model_type is None:
        raise UsageError("bertscore: no encoder: give lang='en' or model_type='minilm'")
    code = str(lang or "en").lower()
    check_language_code(code, "bertscore: lang=")
    supported = (n for n in DEFAULT_ENCODERS if code in MODEL_CARDS[n].languages)
    name = str(model_type or next(supported, DEFAULT_ENCODERS[-1]))
    layer = "" if num_layers is None else f"@{num_layers}"
    if EncoderName.parse(name).family in ENCODERS:
        return f"{name}{layer}"
    if not layer and name not in DEFAULT_LAYERS:
        unknown = UnknownNameError("encoder", name, ENCODERS)
        raise UsageError(f"{unknown}; for a model of the Hugging Face hub also give num_layers=N")
    return f"hf/{name}{layer or f'@{DEFAULT_LAYERS[name]}'}"


@cache
def _warn_about_encoder(lang: str, encoder: str) -> None:
    """Warn once for each language that its default model is another one than bert-score's."""
    model = DEFAULT_MODELS.get(lang, MULTILINGUAL_MODEL)
    logger.warning(
        "bertscore: lang=%r uses tertium's encoder %s, not bert-score's %s, so scores differ: give "
        "model_type=%r for bert-score's scores, or model_type=%r to accept this encoder",
        *(lang, encoder, model, model, encoder),
    )
