"""Metrics and rankers: one published metric per module, imported on first use.

    from tertium.metrics import BLEU, CHRF, BERTScore, TertiumMulti

Each class is a frozen dataclass whose constructor arguments are its configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric, SegmentMetric
from tertium.registry import METRICS, RANKERS, resolve_scorer

if TYPE_CHECKING:
    from tertium.metrics.embedding.bertr import BERTR as BERTR
    from tertium.metrics.embedding.bertscore import BERTScore as BERTScore
    from tertium.metrics.embedding.sentsim import SentSim as SentSim
    from tertium.metrics.embedding.smd import SMD as SMD
    from tertium.metrics.embedding.sss import SSS as SSS
    from tertium.metrics.embedding.wmd import WMD as WMD
    from tertium.metrics.embedding.wmdo import WMDO as WMDO
    from tertium.metrics.flagship.tertium_base import TertiumBase as TertiumBase
    from tertium.metrics.flagship.tertium_multi import TertiumMulti as TertiumMulti
    from tertium.metrics.flagship.tertium_small import TertiumSmall as TertiumSmall
    from tertium.metrics.heads.metric import ESIM as ESIM
    from tertium.metrics.heads.metric import BiLSTM as BiLSTM
    from tertium.metrics.heads.metric import BiLSTMAttention as BiLSTMAttention
    from tertium.metrics.lexical.bleu import BLEU as BLEU
    from tertium.metrics.lexical.chrf import CHRF as CHRF
    from tertium.metrics.lexical.meteor import METEOR as METEOR
    from tertium.metrics.lexical.nist import NIST as NIST
    from tertium.metrics.lexical.ter import TER as TER
    from tertium.metrics.pairwise.ranker import Pairwise as Pairwise
    from tertium.metrics.regression.regressions import BLEUR as BLEUR
    from tertium.metrics.regression.regressions import METEORR as METEORR
    from tertium.metrics.regression.regressions import MTR as MTR
    from tertium.metrics.regression.regressions import MTRTER as MTRTER
    from tertium.metrics.regression.regressions import NISTR as NISTR
    from tertium.metrics.regression.regressions import RTER as RTER
    from tertium.metrics.regression.regressions import TERR as TERR
    from tertium.metrics.regression.svr import SVR as SVR

_SPEC_NAMES = {
    path.partition(":")[2]: name for name, path in {**METRICS.builtin, **RANKERS.builtin}.items()
}
__all__ = ["Metric", "SegmentMetric", "load_metric", *sorted(_SPEC_NAMES)]


def __getattr__(name: str) -> Any:
    if name not in _SPEC_NAMES:
        raise AttributeError(f"module 'tertium.metrics' has no attribute {name!r}")
    return resolve_scorer(_SPEC_NAMES[name])


def __dir__() -> list[str]:
    return sorted(__all__)
