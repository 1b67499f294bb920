"""Guzmán, Joty, Màrquez, Nakov 2015, "Pairwise Neural Machine Translation Evaluation" (ACL): strict
Kendall's tau on the comparisons of WMT12.
"""

from __future__ import annotations

from math import nan

from tertium.meta.pairwise import kendall_wmt14
from tertium.reproduce.experiments import Comparisons
from tertium.reproduce.table import PaperTable, Row

COLUMNS = ("cs-en", "de-en", "es-en", "fr-en")
WMT12 = Comparisons(set="rankings/wmt12", columns=COLUMNS)
TER = (17.80, 25.31, 22.86, 21.05)

TABLES = [
    PaperTable(
        paper="guzman2015",
        number="1",
        title="WMT12 into English",
        experiment=WMT12,
        digits=2,
        rows=[
            Row(label="BLEU", published=(15.88, 18.56, 18.57, 20.83), average=18.46, model="bleu"),
            Row(label="NIST", published=(19.66, 23.09, 20.41, 22.21), average=21.34, model="nist"),
            Row(
                label="TER",
                published=TER,
                average=21.75,
                model="ter",
                note="TER counts whole edits, so it often ties, and strict tau counts a tie as "
                "wrong: plain TER cannot come near the published figure, which must be that of a "
                "variant with finer costs or of another treatment of ties",
            ),
            Row(
                label="TER, ties as zero",
                published=TER,
                average=21.75,
                model="ter",
                experiment=Comparisons(
                    set="rankings/wmt12", columns=COLUMNS, compare=kendall_wmt14,
                    statistic="Kendall's tau of WMT14 x 100: (concordant - discordant) / all",
                ),
            ),
            Row(
                label="METEOR",
                published=(20.82, 26.79, 23.81, 22.93),
                average=23.59,
                model="meteor",
            ),
            Row(label="SYNTAX25", published=(8.00, 13.03, 12.11, 7.42), average=10.14),
            Row(label="WIKI-GW25", published=(14.31, 11.49, 9.24, 4.99), average=10.01),
            Row(
                label="4METRICS, logistic regression",
                published=(23.46, 29.95, 27.49, 27.36),
                average=27.06,
            ),
            Row(label="4METRICS + SYNTAX25", published=(26.09, 30.58, 29.30, 28.07), average=28.51),
            Row(
                label="4METRICS + WIKI-GW25",
                published=(25.67, 32.50, 29.21, 28.92),
                average=29.07,
            ),
            Row(
                label="4METRICS + SYNTAX25 + WIKI-GW25",
                published=(26.30, 33.19, 30.38, 28.92),
                average=29.70,
            ),
            Row(label="DiscoTK", published=(nan, nan, nan, nan), average=30.5),
            Row(label="SPEDE07PP", published=(21.2, 27.8, 26.5, 26.0), average=25.4),
            Row(label="METEOR at WMT12", published=(21.2, 27.5, 24.9, 25.1), average=24.7),
            Row(label="Guzmán et al. 2014", published=(23.1, 25.8, 22.6, 23.2), average=23.7),
            Row(label="AMBER", published=(19.1, 24.8, 23.1, 24.5), average=22.9),
        ],
    ),
]
