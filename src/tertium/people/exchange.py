"""Campaigns as files of tertium or of Pearmut.

A campaign that was read from Pearmut is written to Pearmut as it was: fields without a counterpart
are kept in `extras`. Campaigns of ours are written with everything that Pearmut supports.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tertium.core.atomic import PathLike, write_text
from tertium.core.errors import DataError, UnknownNameError
from tertium.data.record_files import parse_json
from tertium.data.text_files import read_text
from tertium.people import pearmut
from tertium.people.campaign import (
    FORMAT,
    PROTOCOLS,
    Campaign,
    parse_campaign,
    write_campaign,
)

TOOLS = ("tertium", "pearmut")


def read_any_campaign(path: PathLike, protocol: str | None = None) -> Campaign:
    """Read a campaign of tertium or Pearmut; `protocol` replaces that of Pearmut."""
    content = parse_json(read_text(path), str(path))
    if protocol is not None and protocol not in PROTOCOLS:
        raise UnknownNameError("protocol", protocol, PROTOCOLS)
    try:
        if isinstance(content, Mapping) and content.get("format") == FORMAT:
            return parse_campaign(content, str(path))
        if isinstance(content, Mapping) and {"campaign_id", "data"} <= {*content}:
            return pearmut.read_content(content, protocol)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: the campaign is incomplete ({error!r})") from None
    raise DataError(f"{path}: not a campaign of tertium or Pearmut")


def write_any_campaign(campaign: Campaign, path: PathLike, tool: str = "tertium") -> None:
    """Write a campaign in the format of a tool."""
    if tool not in TOOLS:
        raise UnknownNameError("annotation tool", tool, TOOLS)
    if tool == "tertium":
        write_campaign(campaign, path)
    else:
        content = pearmut.make_content(campaign)
        write_text(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")
