"""Language pairs of the test sets, in the order of the tables."""

from __future__ import annotations

from collections.abc import Mapping

INTO_ENGLISH: Mapping[str, tuple[str, ...]] = {
    "da/wmt15": ("cs-en", "de-en", "fi-en", "ru-en"),
    "da/wmt16": ("cs-en", "de-en", "fi-en", "ro-en", "ru-en", "tr-en"),
    "da/wmt17": ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en"),
    "rankings/wmt08": ("cs-en", "de-en", "es-en", "fr-en"),
    "rankings/wmt11": ("cs-en", "de-en", "es-en", "fr-en"),
    "rankings/wmt12": ("cs-en", "de-en", "es-en", "fr-en"),
    "rankings/wmt13": ("cs-en", "de-en", "es-en", "fr-en"),
    "rankings/wmt15": ("cs-en", "de-en", "fi-en", "fr-en", "ru-en"),
    "rankings/wmt16": ("cs-en", "de-en", "fi-en", "ro-en", "ru-en", "tr-en"),
    "wmt17-metrics-task": ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en"),
    "wmt18-metrics-task": ("cs-en", "de-en", "et-en", "fi-en", "ru-en", "tr-en", "zh-en"),
}
QE_WMT20 = ("ne-en", "en-de", "et-en", "en-zh", "ro-en", "si-en", "ru-en")
MULTI30K = ("en-de", "en-fr")
