"""The section of a page that shows metrics on a challenge set: a picture and the counts."""

from __future__ import annotations

from tertium.evaluation.challenge import ChallengeStudy
from tertium.reporting.charts.pictures import figure
from tertium.reporting.markup import Markup, element, join
from tertium.reporting.tables.challenges import challenge_chart, challenge_table
from tertium.reporting.tables.html import html_table


def challenge_contents(study: ChallengeStudy) -> Markup:
    """A sentence, the picture, and the table folded below it."""
    picture = element("div", figure(challenge_chart(study), study.challenge.name), class_="figures")
    table = html_table(challenge_table(study))
    numbers = element("details", element("summary", "Numbers"), table)
    return join([element("p", _reading(study)), picture, numbers])


def _reading(study: ChallengeStudy) -> str:
    """Each metric's mean over groups, and where it is weakest."""
    said = []
    for m, name in enumerate(study.names):
        worst = int(study.accuracy[m].argmin())
        share = 100 * study.accuracy[m, worst]
        said.append(
            f"{name} puts {100 * study.mean[m]:.0f} % right, "
            f"{share:.0f} % where it is weakest ({study.groups[worst]})"
        )
    return (
        "Of pairs of a better and a worse translation, in the mean over "
        f"{len(study.groups)} groups, {'; '.join(said)}. A coin gets 50 %."
    )
