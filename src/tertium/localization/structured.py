"""Key-value files in JSON, YAML and property lists: i18next, ARB, Rails, .xcstrings, .stringsdict.

Nested keys are joined by dots. Plural forms are units of their own with a category: a table of
categories (`one: ..., other: ...`), or keys with its suffix (`files_one`, `files_other`).
"""

from __future__ import annotations

import plistlib
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from tertium.data.formats import parse_json
from tertium.data.records import HYPOTHESIS_NAMES
from tertium.errors import DataError, UsageError
from tertium.extras import explain_missing
from tertium.localization.encodings import line_at, read_bytes, read_unicode
from tertium.localization.units import InlineText, Languages, Unit, is_same_language
from tertium.text.language_codes import find_language_code

CATEGORIES = frozenset({"zero", "one", "two", "few", "many", "other"})
_SUFFIX = re.compile(rf"(.+)_({'|'.join(sorted(CATEGORIES))})")
MAX_DEPTH = 100


def is_message_file(path: str) -> bool:
    """Tell whether a `.json` file is one object of messages rather than records, one per line."""
    try:
        content = parse_json(read_unicode(path), path)
    except DataError:
        return False
    is_record = isinstance(content, dict) and any(
        isinstance(content.get(name), str) for name in HYPOTHESIS_NAMES
    )
    return isinstance(content, dict) and not is_record


def read_json(path: str, languages: Languages) -> Iterator[Unit]:
    """Read messages of i18next and similar tools, of browser extensions, or an ARB file."""
    text = read_unicode(path)
    content = parse_json(text, path)
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected an object of messages")
    if Path(path).suffix == ".arb":
        languages.target = languages.target or str(content.get("@@locale", ""))
        return _read_arb(content)
    entries = [value for key, value in content.items() if key != "@@locale"]
    if entries and all(isinstance(v, dict) and isinstance(v.get("message"), str) for v in entries):
        return _read_extension_messages(content)
    return _read_messages(content, path, len(text))


def _read_arb(content: Mapping[str, Any]) -> Iterator[Unit]:
    for key, value in content.items():
        if not key.startswith("@") and isinstance(value, str):
            details = content.get(f"@{key}")
            note = details.get("description") if isinstance(details, dict) else ""
            yield _make_unit(key, value, note=note or "")


def _read_extension_messages(content: Mapping[str, Any]) -> Iterator[Unit]:
    for key, value in content.items():
        yield _make_unit(key, value["message"], note=str(value.get("description") or ""))


def _make_unit(key: str, text: str, plural: str = "", note: str = "", **values: Any) -> Unit:
    target = InlineText(text) if text else None
    notes = (note,) if note else ()
    return Unit(id=key, target=target, plural=plural, notes=notes, **values)


def _read_messages(content: Mapping[str, Any], path: str, size: int) -> Iterator[Unit]:
    leaves = [*islice(_flatten(content, "", path), size + 1)]
    if len(leaves) > size:
        raise DataError(f"{path}: aliases expand to more texts than the file has characters")
    keys = {key for key, _, _ in leaves}
    for key, category, text in leaves:
        match = None if category else _SUFFIX.fullmatch(key)
        if match and any(f"{match[1]}_{other}" in keys for other in CATEGORIES - {match[2]}):
            yield _make_unit(match[1], text, match[2])
        elif not category and key.endswith("_plural") and key.removesuffix("_plural") in keys:
            yield _make_unit(key.removesuffix("_plural"), text, "other")
        elif not category and f"{key}_plural" in keys:
            yield _make_unit(key, text, "one")
        else:
            yield _make_unit(key, text, category)


def _flatten(value: Any, prefix: str, path: str, depth: int = 0) -> Iterator[tuple[str, str, str]]:
    """Yield key, plural category and text of all texts; numbers and other values are no texts."""
    if depth > MAX_DEPTH:
        raise DataError(f"{path}: nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        yield prefix, "", value
    elif isinstance(value, dict):
        is_plural = bool(prefix) and "other" in value and {*value} <= CATEGORIES
        for key, item in value.items():
            if is_plural and isinstance(item, str):
                yield prefix, key, item
            else:
                yield from _flatten(
                    item, f"{prefix}.{key}" if prefix else str(key), path, depth + 1
                )
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _flatten(item, f"{prefix}[{number}]", path, depth + 1)


def read_yaml(path: str, languages: Languages) -> Iterator[Unit]:
    """Read messages in YAML; the top key of a Rails file is its language."""
    with explain_missing("a YAML file"):
        import yaml
    try:
        text = read_unicode(path)
        content = yaml.load(text, Loader=_text_loader())
    except yaml.reader.ReaderError as error:
        where = f"{path}, line {line_at(text, error.position)}"
        raise DataError(f"{where}: not YAML (U+{error.character:04X} is not allowed)") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise DataError(f"{path}{line}: not YAML ({error.problem})") from None
    except RecursionError:
        raise DataError(f"{path}: nested too deeply") from None
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a mapping of messages")
    if len(content) == 1:
        [(key, value)] = content.items()
        if is_language(str(key)) and isinstance(value, dict):
            languages.target = languages.target or str(key)
            content = value
    return _read_messages(content, path, len(text))


def _text_loader() -> Any:
    """Return a safe loader that keeps keys such as `no` as written and refuses duplicate keys.

    Dates, `=` and `<<` are texts, too. Numbers, truth values and null become `None`.
    """
    import yaml

    class TextLoader(yaml.SafeLoader):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            if not isinstance(node, yaml.MappingNode):
                raise yaml.MarkedYAMLError(
                    problem="expected a mapping", problem_mark=node.start_mark
                )
            seen = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise yaml.MarkedYAMLError(
                        problem="a key is not a text", problem_mark=key.start_mark
                    )
                if key.value in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"the key {key.value!r} is given twice",
                        problem_mark=key.start_mark,
                    )
                seen.add(key.value)
            self.flatten_mapping(node)
            return {key.value: self.construct_object(item, deep=True) for key, item in node.value}

    TextLoader.add_constructor(
        "tag:yaml.org,2002:map", lambda loader, node: loader.construct_mapping(node)
    )
    for kind in ("str", "timestamp", "value", "merge"):
        TextLoader.add_constructor(
            f"tag:yaml.org,2002:{kind}", lambda loader, node: loader.construct_scalar(node)
        )
    for kind in ("int", "float", "bool", "null"):
        TextLoader.add_constructor(f"tag:yaml.org,2002:{kind}", lambda loader, node: None)
    return TextLoader


def is_language(code: str) -> bool:
    """Tell whether a key is a language code, with or without region.

    >>> is_language("zh-CN"), is_language("errors")
    (True, False)
    """
    return bool(find_language_code(code))


def read_xcstrings(path: str, languages: Languages) -> Iterator[Unit]:
    """Read a string catalog of Xcode in the wanted target language, or in the only one."""
    content = parse_json(read_unicode(path), path)
    if not isinstance(content, dict) or not isinstance(content.get("strings"), dict):
        raise DataError(f"{path}: expected a string catalog with the field strings")
    languages.source = str(content.get("sourceLanguage", ""))
    codes = {
        code: None
        for entry in content["strings"].values()
        for code in entry.get("localizations", {})
        if code != languages.source
    }
    target = languages.target
    if not target and len(codes) > 1:
        raise UsageError(
            f"{path}: translations into {', '.join(codes)}: choose one with --target-language"
        )
    matches = [code for code in codes if not target or is_same_language(code, target)]
    languages.target = matches[0] if matches else target
    for key, entry in content["strings"].items():
        yield from _read_catalog_entry(key, entry, languages)


def _read_catalog_entry(key: str, entry: Mapping[str, Any], languages: Languages) -> Iterator[Unit]:
    localizations = entry.get("localizations", {})
    sources = dict(_read_variants(localizations.get(languages.source, {})))
    targets = dict(_read_variants(localizations.get(languages.target, {})))
    default = next((sources[k] for k in (("", ""), ("", "other")) if k in sources), (key, ""))
    for variant in targets or dict.fromkeys(sources) or {("", ""): None}:
        part, plural = variant
        source = sources.get(variant) or sources.get((part, "other")) or default
        text, state = targets.get(variant, ("", ""))
        yield _make_unit(
            f"{key}.{part}" if part else key,
            text,
            plural,
            str(entry.get("comment") or ""),
            source=InlineText(source[0]),
            state=state,
            is_translatable=entry.get("shouldTranslate", True) is not False and bool(source[0]),
        )


def _read_variants(
    node: Mapping[str, Any], part: str = "", plural: str = ""
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield ((device or substitution, plural category), (text, state))."""
    unit = node.get("stringUnit")
    if isinstance(unit, dict) and isinstance(unit.get("value"), str):
        yield (part, plural), (unit["value"], str(unit.get("state", "")))
    for kind, variants in node.get("variations", {}).items():
        for name, child in variants.items():
            is_plural = kind == "plural"
            own_part = part if is_plural else ".".join(filter(None, (part, name)))
            yield from _read_variants(child, own_part, name if is_plural else plural)
    for name, child in node.get("substitutions", {}).items():
        yield from _read_variants(child, ".".join(filter(None, (part, name))), plural)


def read_stringsdict(path: str, languages: Languages) -> Iterator[Unit]:
    """Read plural forms of iOS; every variable of a format is a key of its own."""
    try:
        content = plistlib.loads(read_bytes(path))
    except Exception as error:  # Expat, plistlib and codecs have no common base
        raise DataError(f"{path}: not a property list ({error})") from None
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a dictionary of formats")
    for key, entry in content.items():
        variables = {name: v for name, v in entry.items() if isinstance(v, dict)}
        if isinstance(text := entry.get("NSStringLocalizedFormatKey"), str):
            yield _make_unit(key, text)
        for name, forms in variables.items():
            for category, text in forms.items():
                if category in CATEGORIES and isinstance(text, str):
                    yield _make_unit(f"{key}.{name}", text, category)
