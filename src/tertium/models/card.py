"""The card of a saved model, its `README.md`: settings, what it learned from, what licenses ask.

A card that somebody wrote by hand is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tertium.atomic import write_text
from tertium.models.checkpoint import Checkpoint

CARD = "README.md"
WRITTEN = "<!-- written when the model was saved; without this line it is yours, and stays -->"
LONGEST = 200  # characters of a setting that a card repeats

CARD_TEXT = """\
{mark}
# {title}

A trained {kind} of tertium, `{name}`. Use it by the path of this folder:
`tertium {command} -m FOLDER`, or `tertium.load_{kind}("FOLDER")` in Python.

## What it is
{settings}

## What it learned from
{data}

## License
The numbers in `weights.safetensors` were learned from the data above; whoever passes them on passes
on what the licenses of these data and of the encoders ask for.{encoders}
"""


def card_text(title: str, checkpoint: Checkpoint) -> str:
    """The card of a checkpoint."""
    encoders = [f"- `{name}`, sha256 {sha}" for name, sha in checkpoint.encoders.items()]
    return CARD_TEXT.format(
        mark=WRITTEN,
        title=title,
        kind=checkpoint.kind,
        name=checkpoint.name,
        command="rank" if checkpoint.kind == "ranker" else "score",
        settings=_bullets({**checkpoint.config, **checkpoint.fields}),
        data=_bullets(checkpoint.training),
        encoders="\n\nIt reads vectors of encoders that are not part of it:\n" + "\n".join(encoders)
        if encoders
        else "",
    )


def write_card(folder: Path, title: str, checkpoint: Checkpoint) -> None:
    """Write the card of a folder, unless somebody wrote one by hand."""
    file = folder / CARD
    if not file.is_file() or file.read_text(encoding="utf-8").startswith(WRITTEN):
        write_text(file, card_text(title, checkpoint))


def _bullets(values: Mapping[str, Any]) -> str:
    """Settings as a list, what is too long to read left to `config.json`, what is empty left out.

    >>> print(_bullets({"hidden": 300, "data": {"mine": 12}, "settings": {}}))
    - hidden: 300
    - data: mine 12
    """
    said = {key: _plain(value) for key, value in values.items()}
    rows = [f"- {key}: {text}" for key, text in said.items() if text]
    long = "see config.json"
    short = [row if len(row) <= LONGEST else f"{row.split(':')[0]}: {long}" for row in rows]
    return "\n".join(short) or "- nothing beside its weights"


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return str(value)
