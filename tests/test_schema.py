"""Settings are converted to their declared types, or one line tells what is wrong and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from tertium.core.errors import ModelError, UsageError
from tertium.core.fields import (
    POSITIVE,
    Sha256,
    check_fields,
    construct,
    read_dataclass,
    read_json_object,
)


@dataclass(frozen=True)
class Inner:
    names: tuple[str, ...]
    share: float = 0.5

    def __post_init__(self) -> None:
        if self.share > 1:
            raise UsageError(f"share={self.share}: expected at most 1")


@dataclass(frozen=True)
class Outer:
    hidden: Annotated[int, POSITIVE]
    inner: Inner
    kind: Literal["flat", "deep"] = "flat"
    limit: float | None = None
    hashes: Mapping[str, Sha256] = field(default_factory=dict)
    free: Any = None


VALID: dict[str, Any] = {"hidden": 3, "inner": {"names": ["a", "b"]}}


def test_a_valid_object_becomes_a_dataclass() -> None:
    settings = {**VALID, "kind": "deep", "limit": 2, "hashes": {"x": "ab" * 32}, "free": [None]}
    assert read_dataclass(Outer, settings, "f") == Outer(
        3, Inner(("a", "b")), "deep", 2.0, {"x": "ab" * 32}, [None]
    )
    assert read_dataclass(Outer, {**VALID, "limit": None}, "f").limit is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": "3"}, "config.json: hidden is the text '3', expected a whole number"),
        ({"hidden": True}, "config.json: hidden is true, expected a whole number"),
        ({"hidden": 3.0}, "config.json: hidden is the number 3.0, expected a whole number"),
        ({"hidden": 0}, "config.json: hidden is the number 0, expected above 0"),
        ({"inner": []}, "config.json: inner is a list of 0, expected an object"),
        ({"inner": {}}, "config.json: inner has no 'names': the file is incomplete"),
        ({"inner": {"names": "ab"}}, "config.json: inner.names is the text 'ab', expected a list"),
        ({"inner": {"names": [1]}}, "config.json: inner.names.0 is the number 1, expected a text"),
        ({"inner": {"names": [], "share": 2}}, "config.json: inner: share=2.0: expected at most 1"),
        ({"kind": "deeep"}, "config.json: kind is the text 'deeep', expected one of flat, deep"),
        ({"limit": float("nan")}, "config.json: limit is the number nan, expected a finite number"),
        (
            {"limit": 10**400},
            "config.json: limit is a whole number of 1329 bits, expected a finite number",
        ),
        ({"hashes": {"x": "ab"}}, "config.json: hashes.x is the text 'ab', expected a sha256"),
        ({"hiden": 3}, "config.json has an unknown key 'hiden': did you mean 'hidden'"),
        (
            {"zzz": 3},
            "config.json has an unknown key 'zzz': known: hidden, inner, kind, limit, hashes, free",
        ),
    ],
)
def test_invalid_settings_raise_one_line_errors(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_dataclass(Outer, {**VALID, **change}, "config.json")
    assert str(caught.value) == message


def test_a_field_can_be_left_to_the_caller() -> None:
    fields = check_fields(Outer, {"hidden": 3}, "f", without="inner")
    outer = construct(Outer, {**fields, "inner": Inner(())}, "f")
    assert outer == Outer(3, Inner(()))


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\x00", ""])
def test_invalid_json_raises_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelError, match=r"config\.json cannot be read"):
        read_json_object(tmp_path / "config.json")
    (tmp_path / "config.json").write_text('{"a": {"hidden": 3, "hidden": 4}}')
    with pytest.raises(ModelError, match="the key 'hidden' occurs twice in one object"):
        read_json_object(tmp_path / "config.json")
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(ModelError, match="is a list of 1, expected an object of settings"):
        read_json_object(tmp_path / "config.json")
