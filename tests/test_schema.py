"""Settings are converted to their declared types, or one line tells what is wrong and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from tests.builders import write_file

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


def test_a_valid_object_becomes_a_dataclass():
    settings = {**VALID, "kind": "deep", "limit": 2, "hashes": {"x": "ab" * 32}, "free": [None]}
    assert read_dataclass(Outer, settings, "f") == Outer(
        3, Inner(("a", "b")), "deep", 2.0, {"x": "ab" * 32}, [None]
    )
    assert read_dataclass(Outer, {**VALID, "limit": None}, "f").limit is None
    fields = check_fields(Outer, {"hidden": 3}, "f", without="inner")
    outer = construct(Outer, {**fields, "inner": Inner(())}, "f")
    assert outer == Outer(3, Inner(()))


@pytest.mark.parametrize(("change", "message"), [
    ({"hidden": "3"}, ": hidden is the text '3', expected a whole number"),
    ({"hidden": True}, ": hidden is true, expected a whole number"),
    ({"hidden": 3.0}, ": hidden is the number 3.0, expected a whole number"),
    ({"hidden": 0}, ": hidden is the number 0, expected above 0"),
    ({"inner": []}, ": inner is a list of 0, expected an object"),
    ({"inner": {}}, ": inner has no 'names': the file is incomplete"),
    ({"inner": {"names": "ab"}}, ": inner.names is the text 'ab', expected a list"),
    ({"inner": {"names": [1]}}, ": inner.names.0 is the number 1, expected a text"),
    ({"inner": {"names": [], "share": 2}}, ": inner: share=2.0: expected at most 1"),
    ({"kind": "deeep"}, ": kind is the text 'deeep', expected one of flat, deep"),
    ({"limit": float("nan")}, ": limit is the number nan, expected a finite number"),
    ({"limit": 10**400}, f": limit is the number 1{39 * '0'}..., expected a finite number"),
    ({"hashes": {"x": "ab"}}, ": hashes.x is the text 'ab', expected a sha256"),
    ({"hiden": 3}, " has an unknown key 'hiden': did you mean 'hidden'"),
    ({"zzz": 3}, " has an unknown key 'zzz': known: hidden, inner, kind, limit, hashes, free"),
])  # fmt: skip
def test_invalid_settings_raise_one_line_errors(change, message):
    with pytest.raises(ModelError) as caught:
        read_dataclass(Outer, {**VALID, **change}, "config.json")
    assert str(caught.value) == f"config.json{message}"


@pytest.mark.parametrize(("text", "message"), [
    *((text, r"config\.json cannot be read") for text in ("{", "[" * 100_000, "\x00", "")),
    ('{"a": {"hidden": 3, "hidden": 4}}', "the key 'hidden' occurs twice in one object"),
    ("[1]", "is a list of 1, expected an object of settings"),
], ids=range(6))  # fmt: skip
def test_invalid_json_raises_an_error(text, message, tmp_path):
    with pytest.raises(ModelError, match=message):
        read_json_object(write_file(tmp_path / "config.json", text))
