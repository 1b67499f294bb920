"""Settings of checks from `tertium.toml`, glossaries and lists."""

from __future__ import annotations

import pytest

from tertium.checks.check import Term
from tertium.checks.check_settings import CheckSettings, read_names, read_settings, read_terms
from tertium.core.errors import DataError, TertiumError, UsageError

TBX = """<?xml version="1.0"?>
<tbx xmlns="urn:iso:std:iso:30042:ed-2"><text><body>
<conceptEntry id="1">
 <langSec xml:lang="en-US"><termSec><term>account</term></termSec></langSec>
 <langSec xml:lang="de"><termSec><term>Konto</term></termSec>
  <termSec><term>Rechnung</term>
   <termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></termSec></langSec>
</conceptEntry></body></text></tbx>
"""


def test_settings_are_read_from_toml(tmp_path):
    file = tmp_path / "tertium.toml"
    file.write_text(
        '[check]\ntarget_language = "de"\nignore = ["quotes"]\nterms = "terms.csv"\n'
        '[check.severity]\nnumbers = "critical"\n[check.suppress]\ntags = [3, "intro"]\n'
    )
    settings = CheckSettings(**read_settings(file))
    assert settings.target_language == "de"
    assert "quotes" not in settings.ids
    assert settings.terms == str(tmp_path / "terms.csv")
    assert settings.severity == {"numbers": "critical"}
    assert settings.suppress == {"tags": (3, "intro")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[check]\nignored = ["quotes"]', "unknown key 'ignored'"),
        ('[check]\nignore = "quotes"', "ignore is the text 'quotes'"),
        ('[check]\nignore = ["quote"]', "unknown check 'quote': did you mean 'quotes'"),
        ('[check.severity]\ntags = "fatal"', "fatal"),
        ('[check]\ntarget_language = "de-DE"', "write de"),
        ("[check\n", "not a TOML file"),
    ],
)
def test_bad_settings_are_named(tmp_path, text, message):
    file = tmp_path / "tertium.toml"
    file.write_text(text)
    with pytest.raises(TertiumError, match=message):
        read_settings(file)


def test_glossaries_are_read_from_tables_and_tbx(tmp_path):
    expected = (Term("account", ("Konto",), ("Rechnung",)),)
    table = tmp_path / "terms.csv"
    table.write_text("source,target,forbidden\naccount,Konto,\naccount,,Rechnung\n")
    assert read_terms(table) == expected
    tbx = tmp_path / "terms.tbx"
    tbx.write_text(TBX)
    assert read_terms(tbx, "en", "de") == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "en,de\nx,y\n", "expected columns source, target, forbidden; got en, de"),
        ("a.tsv", "source\ttarget\n\ty\n", "the source term is empty"),
        ("a.tbx", "<tbx>", "not well-formed XML"),
        ("a.tbx", '<!DOCTYPE t [<!ENTITY a "b">]><t/>', "declares entities"),
        ("a.xml", "", "ends in .csv, .tsv or .tbx"),
    ],
)
def test_bad_glossaries_are_named(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises((DataError, UsageError), match=message):
        read_terms(tmp_path / name, "en", "de")


def test_names_are_read_from_lines(tmp_path):
    (tmp_path / "names.txt").write_text("Apple\n\n Excel \n")
    assert read_names(tmp_path / "names.txt") == ("Apple", "Excel")
