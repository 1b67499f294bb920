"""Campaigns of other annotation tools: Pearmut, Appraise and Label Studio.

A campaign that was read from another tool is written to that tool as it was: fields without a
counterpart are kept in `extras`. Campaigns of ours are written with everything the tool supports.

    pearmut         task-based, single-stream and dynamic; a document is a list of items
    appraise        batches: a list of tasks with items (direct assessment, ESA, MQM, pairwise)
    label-studio    a list of tasks, with the labeling interface in an .xml file next to it
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tertium.atomic import PathLike, write_text
from tertium.campaigns import appraise, label_studio, pearmut
from tertium.campaigns.campaign import (
    FORMAT,
    PROTOCOLS,
    Campaign,
    parse_campaign,
    to_json,
    write_campaign,
)
from tertium.data.formats import parse_json
from tertium.data.text_files import read_text
from tertium.errors import DataError, UnknownNameError

Writer = Callable[[Campaign], Any]
WRITERS: Mapping[str, Writer] = {
    "tertium": to_json,
    "pearmut": pearmut.make_content,
    "appraise": appraise.make_content,
    "label-studio": label_studio.make_content,
}


def read_any_campaign(path: PathLike, protocol: str | None = None) -> Campaign:
    """Read a campaign of any known tool; Appraise and Label Studio do not state the protocol."""
    content, name = parse_json(read_text(path), str(path)), Path(path).stem
    if protocol is not None and protocol not in PROTOCOLS:
        raise UnknownNameError("protocol", protocol, PROTOCOLS)
    try:
        if isinstance(content, Mapping) and content.get("format") == FORMAT:
            return parse_campaign(content, str(path))
        if isinstance(content, Mapping) and {"campaign_id", "data"} <= {*content}:
            return pearmut.read_content(content, protocol)
        if isinstance(content, list) and content and isinstance(content[0], Mapping):
            if {"items", "task"} <= {*content[0]}:
                return appraise.read_content(content, name, protocol)
            if "data" in content[0]:
                return label_studio.read_content(content, name, protocol)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: the campaign is incomplete ({error!r})") from None
    raise DataError(
        f"{path}: not a campaign of tertium, Pearmut, Appraise (batches) or Label Studio (tasks)"
    )


def write_any_campaign(campaign: Campaign, path: PathLike, tool: str = "tertium") -> None:
    """Write a campaign in the format of a tool."""
    if tool not in WRITERS:
        raise UnknownNameError("annotation tool", tool, WRITERS)
    if tool == "tertium":
        write_campaign(campaign, path)
        return
    content = WRITERS[tool](campaign)
    if tool == "label-studio":
        write_text(Path(path).with_suffix(".xml"), label_studio.labeling_config(campaign))
    write_text(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")
