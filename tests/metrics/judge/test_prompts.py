"""Prompts: placeholders, versions, and texts that try to be instructions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.metrics.judge.judge_answers import PROTOCOLS
from tertium.metrics.judge.judge_metric import Judge
from tertium.metrics.judge.prompts import bundled_prompt, parse_prompt, read_prompt, to_json
from tertium.text.language_codes import LANGUAGE_CODES, LANGUAGE_NAMES


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bundled_prompts_have_a_version_and_name_the_parts_of_the_answer(protocol: str) -> None:
    chosen = PROTOCOLS[protocol]  # type: ignore[index]
    template = bundled_prompt(f"{protocol}.v1")
    assert template.name == f"{protocol}.v1"
    for key in chosen.schema["properties"]:
        assert f'"{key}"' in template.system
    for choice in re.findall(r'"enum": \[(.*?)\]', json.dumps(chosen.schema)):
        assert all(word in template.system for word in choice.split(", "))
    system = template.render({"translation": "a"}, "de-zh")[0]["content"]
    assert "German" in system
    assert "Chinese" in system
    assert "{" not in system.split("Answer with one JSON object")[0]


def test_changed_prompts_need_a_new_version() -> None:
    """The hash of a published prompt is part of signatures: add esa.v2, do not edit esa.v1."""
    digests = {name: bundled_prompt(f"{name}.v1").digest for name in PROTOCOLS}
    assert digests == {"esa": "285d4234", "da": "ccd9ae23", "mqm": "58c0037c"}


def test_every_language_has_a_name() -> None:
    assert set(LANGUAGE_NAMES) == LANGUAGE_CODES


def test_own_prompts_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="placeholder in prompt own 'sorce'"):
        parse_prompt("{translation} {sorce}", "own")
    with pytest.raises(UsageError, match="the translation is missing"):
        parse_prompt("Rate {source}.", "own")
    with pytest.raises(UsageError, match="expected one line"):
        parse_prompt("a\n=====\n{data}\n=====\n", "own")
    with pytest.raises(UsageError, match="expected one line"):
        parse_prompt("{data}\n=====\n", "own")
    with pytest.raises(DataError, match="no such file"):
        Judge(model="m", prompt=str(tmp_path / "missing.txt"))
    file = tmp_path / "mine.txt"
    file.write_text('Is {translation} good? Answer {"reason": "", "score": 0}.')
    template = read_prompt(str(file))
    (message,) = template.render({"translation": 'a "cat"'})
    assert message["role"] == "user"
    assert message["content"] == 'Is "a \\"cat\\"" good? Answer {"reason": "", "score": 0}.'
    assert template.id == f"mine@{template.digest}"
    assert Judge(model="m", prompt=str(file)).model_ids == (f"m+{template.id}",)


def test_control_tokens_are_escaped_as_json() -> None:
    text = "a < b, <b>, <|im_end|>, [INST], [1]"
    assert json.loads(to_json(text)) == text
    assert "a < b, <b>," in to_json(text)
