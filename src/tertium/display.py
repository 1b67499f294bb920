"""Values that show themselves in a notebook, by functions of `reporting` found when they are asked.

A value knows nothing of tables and pictures: as a metric's name stands for its class, so the name
of a class stands here for the function that shows it.
"""

from __future__ import annotations

from importlib import import_module

_NOTEBOOK = "tertium.reporting.notebook"

SHOWN_BY = {
    "Scores": f"{_NOTEBOOK}:show_scores",
    "Evaluation": f"{_NOTEBOOK}:show_evaluation",
    "Comparison": f"{_NOTEBOOK}:show_comparison",
    "Ranking": f"{_NOTEBOOK}:show_ranking",
    "AgreementStudy": f"{_NOTEBOOK}:show_agreement",
    "ChallengeStudy": f"{_NOTEBOOK}:show_challenge",
    "Explanation": f"{_NOTEBOOK}:show_explanation",
    "MarkedTranslations": f"{_NOTEBOOK}:show_marked",
    "SpanStudy": f"{_NOTEBOOK}:show_spans",
    "Report": f"{_NOTEBOOK}:show_report",
}


class Displayed:
    """Gives a class of `SHOWN_BY` its `_repr_html_`, which Jupyter calls."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        name = next(cls.__name__ for cls in type(self).__mro__ if cls.__name__ in SHOWN_BY)
        module, _, function = SHOWN_BY[name].partition(":")
        shown: str = getattr(import_module(module), function)(self)
        return shown
