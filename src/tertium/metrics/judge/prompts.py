"""Prompt templates, and rendering of a segment as chat messages.

A template is a text file: the system message, a line `=====`, the user message. Without that line
all of it is the user message. `{data}` becomes a JSON object with the texts of a segment;
`{source}`, `{translation}`, `{references}` and `{context}` become single JSON values. Texts are
always JSON strings, so that no text can end its delimiters and continue as an instruction.
`{source_language}` and `{target_language}` are names such as German.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from tertium.core.errors import UnknownNameError, UsageError
from tertium.data.text_files import read_text
from tertium.text.language_codes import LANGUAGE_NAMES, parse_language_pair

Message = Mapping[str, str]
TEXT_PLACEHOLDERS = ("source", "translation", "references", "context")
PLACEHOLDERS = ("data", *TEXT_PLACEHOLDERS, "source_language", "target_language")
MESSAGE_SEPARATOR = re.compile(r"^=====[ \t]*\r?\n", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
# Chat templates of local servers read these as control tokens, also inside a message.
_CONTROL_TOKEN = re.compile(
    r"<(?=[|｜]|</?SYS>>|/?(?:s|bos|eos|pad|unk|mask|sop|eop|(?:start|end)_of_turn|think|"
    r"tool_call|tool_response)>)|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|"
    r"TOOL_RESULTS|g?MASK)\])"
)


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A template: `name` and `digest` identify it in signatures."""

    name: str
    digest: str
    system: str
    user: str

    @property
    def id(self) -> str:
        return f"{self.name}@{self.digest}"

    def render(self, texts: Mapping[str, Any], lp: str = "") -> list[dict[str, str]]:
        """Return the messages for the texts of one segment, and a language pair such as de-en."""
        codes = parse_language_pair(lp)
        source, target = (LANGUAGE_NAMES[code] for code in codes) if codes else ("", "")
        values = {name: to_json(texts.get(name)) for name in TEXT_PLACEHOLDERS}
        values |= {
            "data": to_json(texts),
            "source_language": source or "the source language",
            "target_language": target or "the target language",
        }
        # one pass over the template: a placeholder inside a text is not replaced
        return [
            {"role": role, "content": _PLACEHOLDER.sub(lambda match: values[match[1]], part)}
            for role, part in (("system", self.system), ("user", self.user))
            if part
        ]


def to_json(value: Any) -> str:
    """Format texts as JSON in one line, with the control tokens of chat templates escaped.

    >>> print(to_json({"translation": 'He said "no".<|im_end|>'}))
    {"translation": "He said \\"no\\".\\u003c|im_end|>"}
    """
    return escape_control_tokens(json.dumps(value, ensure_ascii=False))


def escape_control_tokens(text: str) -> str:
    """Escape the first character of control tokens as in JSON.

    >>> print(escape_control_tokens("[INST] if a < b"))
    \\u005bINST] if a < b
    """
    return _CONTROL_TOKEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


@cache
def bundled_prompt(name: str) -> Prompt:
    """Load one of the prompts of this package, such as esa.v1."""
    text = files(__package__).joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8")
    return parse_prompt(text, name)


def read_prompt(path: str) -> Prompt:
    """Read the prompt of a user from a file, and check its placeholders."""
    return parse_prompt(read_text(path), Path(path).stem)


def parse_prompt(text: str, name: str) -> Prompt:
    """Split a template into messages and check its placeholders."""
    placeholders = {*_PLACEHOLDER.findall(text)}
    for placeholder in placeholders.difference(PLACEHOLDERS):
        raise UnknownNameError(f"placeholder in prompt {name}", placeholder, PLACEHOLDERS)
    if not placeholders & {"data", "translation"}:
        raise UsageError(
            f"prompt {name}: the translation is missing; write {{data}} where the texts belong, "
            "or {translation} for the translation alone"
        )
    system, *users = MESSAGE_SEPARATOR.split(text) if MESSAGE_SEPARATOR.search(text) else ["", text]
    if len(users) != 1 or not users[0].strip():
        raise UsageError(
            f"prompt {name}: expected one line '=====', between the system and the user message"
        )
    digest = sha256(text.encode()).hexdigest()[:8]
    return Prompt(name=name, digest=digest, system=system.strip(), user=users[0].strip())
