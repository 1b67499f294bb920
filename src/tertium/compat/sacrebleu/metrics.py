"""sacrebleu's metric classes and the scores that they give, as in `sacrebleu.metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tertium.arrays import FloatArray
from tertium.errors import UsageError
from tertium.metrics.base.featurizer import brevity_penalty
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.peers import arrange
from tertium.metrics.lexical.bleu import BLEU as BleuMetric
from tertium.metrics.lexical.chrf import ChrF
from tertium.metrics.lexical.sacre import TOKENISERS_BY_LANGUAGE
from tertium.metrics.lexical.ter import TER as TerMetric
from tertium.segment import Segment, check_texts

Streams = Sequence[Sequence[str | None]]


@dataclass(frozen=True, repr=False)
class Score:
    """A score with a name; prints as sacrebleu's do, e.g. `BLEU = 66.87 80.0/75.0/66.7/50.0 ...`.

    The counts behind it are attributes as in sacrebleu: `precisions`, `bp`, `sys_len`, `ref_len`,
    `counts`, `totals` of BLEU; `char_order`, `word_order`, `beta` of chrF; `num_edits`,
    `ref_length` of TER.
    """

    name: str
    score: float
    verbose: str = ""
    signature: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        known = self.__dict__  # empty while the score is being copied or unpickled
        if name.startswith("_") or name not in known.get("details", {}):
            raise AttributeError(f"a score of {known.get('name', 'a metric')} has no {name!r}")
        return known["details"][name]

    def format(self, width: int = 2, score_only: bool = False) -> str:
        """The score as text, rounded."""
        number = f"{self.score:.{width}f}"
        return number if score_only else f"{self.name} = {number} {self.verbose}".rstrip()

    def __repr__(self) -> str:
        return self.format()


class _Scorer:
    """What sacrebleu's metric classes share; `metric` scores corpora, `single` one sentence."""

    metric: Metric

    def __init__(self, references: Streams | None) -> None:
        self._references = references
        self._signature = ""

    def corpus_score(
        self, hypotheses: Sequence[str], references: Streams | None, n_bootstrap: int = 1
    ) -> Score:
        """The score of a corpus; `references` are streams: one list for each reference set."""
        if n_bootstrap > 1:
            raise UsageError(
                "n_bootstrap is not here: use tertium.score(testset, metrics, confidence=1000)"
            )
        streams = self._references if references is None else references
        if streams is None:
            raise UsageError("no references: give streams, or references=... to the constructor")
        check_texts(hypotheses, "hypotheses", "hypothesis")
        if any(isinstance(stream, str) for stream in streams):
            raise UsageError(
                "references are streams, one list for each set of references, not texts: "
                "give [references]"
            )
        return self._score(arrange(hypotheses, streams, layout="streams"))  # type: ignore[arg-type]

    def sentence_score(self, hypothesis: str, references: Sequence[str | None]) -> Score:
        """The score of one sentence against its references; None is one that is missing."""
        if isinstance(references, str):
            raise UsageError("references must be a list of texts, not one text: wrap it in [...]")
        given = tuple(reference for reference in references if reference is not None)
        return self._score([Segment(hypothesis, None, given)])

    def get_signature(self) -> str:
        """tertium's signature of the last score."""
        if not self._signature:
            raise UsageError("score something first: the signature counts the references")
        return self._signature

    def _score(self, segments: Sequence[Segment]) -> Score:
        scores = self.metric.score(segments)
        self._signature = scores.signature
        totals = scores.statistics.sum(axis=0)
        return Score(
            name=self._name(),
            score=scores.system,
            verbose=scores.verbose if isinstance(self, BLEU) else "",
            signature=scores.signature,
            details=self._details(totals),
        )

    def _name(self) -> str:
        return self.metric.title

    def _details(self, totals: FloatArray) -> dict[str, Any]:
        raise NotImplementedError


class BLEU(_Scorer):
    """As `sacrebleu.metrics.BLEU`; `force` is accepted, since tertium never warns of tokens."""

    metric: BleuMetric

    def __init__(
        self,
        lowercase: bool = False,
        force: bool = False,
        tokenize: str | None = None,
        smooth_method: str = "exp",
        smooth_value: float | None = None,
        max_ngram_order: int = 4,
        effective_order: bool = False,
        trg_lang: str = "",
        references: Streams | None = None,
    ) -> None:
        super().__init__(references)
        self.metric = BleuMetric(
            lowercase=lowercase,
            tokenize=tokenize or TOKENISERS_BY_LANGUAGE.get(trg_lang, "13a"),
            smooth_method=smooth_method,  # type: ignore[arg-type]
            smooth_value=smooth_value,
            max_ngram_order=max_ngram_order,
            effective_order=effective_order,
        )

    def _details(self, totals: FloatArray) -> dict[str, Any]:
        order = self.metric.max_ngram_order
        hypothesis, reference = int(totals[0]), int(totals[1])
        return {
            "counts": [int(n) for n in totals[2 : 2 + order]],
            "totals": [int(n) for n in totals[2 + order :]],
            "precisions": self.metric.precisions(totals).tolist(),
            "bp": float(brevity_penalty(totals)),
            "sys_len": hypothesis,
            "ref_len": reference,
            "ratio": hypothesis / reference if reference else 0.0,
        }


class CHRF(_Scorer):
    """As `sacrebleu.metrics.CHRF`; `word_order=2` is chrF++."""

    metric: ChrF

    def __init__(
        self,
        char_order: int = 6,
        word_order: int = 0,
        beta: int = 2,
        lowercase: bool = False,
        whitespace: bool = False,
        eps_smoothing: bool = False,
        references: Streams | None = None,
    ) -> None:
        super().__init__(references)
        self.metric = ChrF(
            char_order=char_order,
            word_order=word_order,
            beta=beta,
            lowercase=lowercase,
            whitespace=whitespace,
            eps_smoothing=eps_smoothing,
        )

    def _name(self) -> str:
        return f"chrF{self.metric.beta}" + "+" * self.metric.word_order

    def _details(self, totals: FloatArray) -> dict[str, Any]:
        chosen = self.metric
        return {
            "char_order": chosen.char_order,
            "word_order": chosen.word_order,
            "beta": chosen.beta,
        }


class TER(_Scorer):
    """As `sacrebleu.metrics.TER`."""

    def __init__(
        self,
        normalized: bool = False,
        no_punct: bool = False,
        asian_support: bool = False,
        case_sensitive: bool = False,
        references: Streams | None = None,
    ) -> None:
        super().__init__(references)
        self.metric = TerMetric(
            normalized=normalized,
            no_punct=no_punct,
            asian_support=asian_support,
            case_sensitive=case_sensitive,
        )

    def _details(self, totals: FloatArray) -> dict[str, Any]:
        return {"num_edits": float(totals[0]), "ref_length": float(totals[1])}
