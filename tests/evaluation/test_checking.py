"""`tertium.check`: findings of all systems, detected languages, suppression."""

from __future__ import annotations

import pytest

import tertium
from tertium.core.errors import UnknownNameError

SOURCES = ["You have {count} files.", "He was born in 1947.", "Open", "Open"]
GOOD = ["Sie haben {count} Dateien.", "Er wurde 1947 geboren.", "Öffnen", "Öffnen"]
BAD = ["Sie haben Dateien.", "Er wurde 1974 geboren.", "Öffnen", "Offen"]


def test_findings_are_spans_by_system_and_segment():
    report = tertium.check({"good": GOOD, "bad": BAD}, sources=SOURCES, target_language="de")
    assert report.settings.source_language == "en"
    assert report.counts("good") == {}
    assert report.counts("bad") == {"placeholders": 1, "numbers": 1, "consistency": 1}
    assert report.clean_share("good") == 1.0
    assert report.clean_share("bad") == 0.25
    assert report.penalty("bad") == (10 + 5 + 1) / 4  # one critical, major and minor finding
    assert [*report.finding_table().records()[1].values()] == [
        *("bad", 2, "numbers", "major", "hypothesis", 9, 13, "1974"),
        "1947 in the source, 1974 in the translation",
    ]
    assert report.has_severity("critical")


def test_findings_are_suppressed_by_id_and_segment():
    report = tertium.check(
        BAD,
        sources=SOURCES,
        target_language="de",
        suppress={"placeholders": (1,), "numbers": (1,)},
        ignore=["consistency"],
        severity={"numbers": "minor"},
    )
    assert report.counts("system") == {"numbers": 1}
    assert not report.has_severity("major")


def test_languages_and_settings_of_checks():
    report = tertium.check(["Er wurde (1974 geboren."], target_language="de")
    assert report.counts("system") == {"brackets": 1}
    texts = ["The train to Hamburg leaves at seven o'clock.", "Nobody knows when it arrives."]
    report = tertium.check(texts, sources=texts)
    assert report.settings.target_language == ""
    assert report.counts("system") == {"untranslated": 2}
    with pytest.raises(UnknownNameError, match="unknown setting 'ignored': did you mean 'ignore'"):
        tertium.check(["a"], ignored=["tags"])
    with pytest.raises(UnknownNameError, match="did you mean 'tags'"):
        tertium.check(["a"], select=["tag"])
