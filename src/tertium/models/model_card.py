"""Write the model card (`README.md`) of a saved model: settings, training data, licenses.

A card without the marker line was written by hand and is not overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tertium.core.atomic import write_text
from tertium.models.checkpoint import Checkpoint

CARD = "README.md"
MARKER = "<!-- generated when the model was saved; delete this line to keep your own edits -->"
MAX_SETTING_CHARACTERS = 200

CARD_TEXT = """\
{mark}
# {title}

A trained {kind} of tertium, `{name}`. Use it with the path of this folder:
`tertium {command} -m FOLDER`, or `tertium.load_{kind}("FOLDER")` in Python.

## Settings
{settings}

## Training data
{data}

## License
The weights in `weights.safetensors` were learned from the data above. If you distribute them, the
licenses of these data and of the encoders apply.{encoders}
"""


def card_text(title: str, checkpoint: Checkpoint) -> str:
    encoders = [f"- `{name}`, sha256 {sha}" for name, sha in checkpoint.encoders.items()]
    return CARD_TEXT.format(
        mark=MARKER,
        title=title,
        kind=checkpoint.kind,
        name=checkpoint.name,
        command="rank" if checkpoint.kind == "ranker" else "score",
        settings=_bullets({**checkpoint.config, **checkpoint.fields}),
        data=_bullets(checkpoint.training),
        encoders="\n\nRequired encoders (not included):\n" + "\n".join(encoders)
        if encoders
        else "",
    )


def write_card(folder: Path, title: str, checkpoint: Checkpoint) -> None:
    """Write the card of a folder, unless it was written by hand."""
    file = folder / CARD
    if not file.is_file() or file.read_text(encoding="utf-8").startswith(MARKER):
        write_text(file, card_text(title, checkpoint))


def _bullets(values: Mapping[str, Any]) -> str:
    """Format settings as a list; empty values are left out, long ones refer to `config.json`.

    >>> print(_bullets({"hidden": 300, "data": {"mine": 12}, "settings": {}}))
    - hidden: 300
    - data: mine 12
    """
    texts = {key: _format(value) for key, value in values.items()}
    rows = [
        f"- {key}: {text if len(text) <= MAX_SETTING_CHARACTERS else 'see config.json'}"
        for key, text in texts.items()
        if text
    ]
    return "\n".join(rows) or "- none"


def _format(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_format(entry)}" for key, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_format, value))
    return str(value)
