"""Campaigns of other annotation tools: Pearmut, Appraise and Label Studio.

A campaign that was read from Pearmut is written to Pearmut as it was: fields without a counterpart
are kept in `extras`. Campaigns of ours are written with everything that Pearmut supports.

    pearmut         read and written: task-based, single-stream and dynamic
    appraise        read: a list of batches (direct assessment, ESA, MQM, pairwise)
    label-studio    read: a list of tasks
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tertium.atomic import PathLike, write_text
from tertium.campaigns import appraise, label_studio, pearmut
from tertium.campaigns.campaign import (
    FORMAT,
    PROTOCOLS,
    Campaign,
    parse_campaign,
    write_campaign,
)
from tertium.data.formats import parse_json
from tertium.data.text_files import read_text
from tertium.errors import DataError, UnknownNameError

TOOLS = ("tertium", "pearmut")


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
    if tool not in TOOLS:
        raise UnknownNameError("annotation tool", tool, TOOLS)
    if tool == "tertium":
        write_campaign(campaign, path)
    else:
        content = pearmut.make_content(campaign)
        write_text(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")
