"""Trees of keys and texts in JSON, YAML and property lists.

i18next, browser extensions, ARB, Rails, .stringsdict and .xcstrings. Nested keys are joined by
dots. Plural forms are units of their own with a category: a table of categories (`one: ..., other:
...`), or keys with its suffix (`files_one`, `files_other`).
"""

from __future__ import annotations

import plistlib
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from tertium.core.errors import DataError, UsageError
from tertium.core.extras import explain_missing
from tertium.data.record_files import parse_json
from tertium.data.records import HYPOTHESIS_NAMES
from tertium.data.text_files import read_data
from tertium.files.units import (
    Catalog,
    Languages,
    Units,
    is_same_language,
    line_at,
    read_unicode,
    translated_unit,
)
from tertium.text.language_codes import find_language_code

CATEGORIES = frozenset({"zero", "one", "two", "few", "many", "other"})
_SUFFIX = re.compile(rf"(.+)_({'|'.join(sorted(CATEGORIES))})")
MAX_DEPTH = 100
_YAML_TAG = "tag:yaml.org,2002:"
Tree = Mapping[str, Any]


def is_message_file(path: str) -> bool:
    """Tell whether a `.json` file is one object of messages rather than records, one per line."""
    try:
        content = _read_json_object(path)
    except DataError:
        return False
    return not any(isinstance(content.get(name), str) for name in HYPOTHESIS_NAMES)


def _read_json_object(path: str) -> dict[str, Any]:
    content = parse_json(read_unicode(path), path)
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected an object of messages")
    return content


def read_json(catalog: Catalog) -> Units:
    """Read messages of i18next and similar tools, of browser extensions, or of Flutter.

    In Flutter, `@key` describes the message `key`.
    """
    content = _read_json_object(catalog.path)
    languages = catalog.languages
    languages.target = languages.target or str(content.pop("@@locale", ""))
    details = {key: value for key, value in content.items() if isinstance(value, dict)}
    messages = {key: value.get("message") for key, value in details.items()}
    if len(details) < len(content) or not all(isinstance(m, str) for m in messages.values()):
        hidden = [key for key in details if key.startswith("@")]
        messages = {key: value for key, value in content.items() if key not in hidden}
        details = {key.removeprefix("@"): details[key] for key in hidden}
    for unit in _read_messages(messages, catalog.path):
        note = details.get(unit.id, {}).get("description")
        yield replace(unit, notes=(str(note),)) if note else unit


def _read_messages(tree: Any, path: str, max_texts: int | None = None) -> Units:
    """Read nested messages and their plural forms; `max_texts` are too many."""
    leaves = [*islice(_flatten(tree, path), max_texts)]
    if len(leaves) == max_texts:
        raise DataError(f"{path}: aliases expand to more texts than the file has characters")
    keys = {key for key, _, _ in leaves}
    for key, category, text in leaves:
        if not category:
            key, category = _split_suffix(key, keys)
        yield translated_unit(key, text, category)


def _split_suffix(key: str, keys: Container[str]) -> tuple[str, str]:
    """Return a key without its plural suffix, and the plural category, if it has other forms."""
    match = _SUFFIX.fullmatch(key)
    if match and any(f"{match[1]}_{other}" in keys for other in CATEGORIES - {match[2]}):
        return match[1], match[2]
    return key, ""


def _flatten(
    value: Any, path: str, prefix: str = "", depth: int = 0
) -> Iterator[tuple[str, str, str]]:
    """Yield key, plural category and text of all texts; numbers and other values are no texts."""
    if depth > MAX_DEPTH:
        raise DataError(f"{path}: nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        yield prefix, "", value
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _flatten(item, path, f"{prefix}[{number}]", depth + 1)
    elif isinstance(value, dict):
        is_plural = bool(prefix) and "other" in value and {*value} <= CATEGORIES
        for key, item in value.items():
            if is_plural and isinstance(item, str):
                yield prefix, key, item
            else:
                yield from _flatten(item, path, _join(prefix, key), depth + 1)


def _join(name: str, other: str) -> str:
    """Return two names with a dot between them, or the one that is not empty."""
    return ".".join(filter(None, (name, other)))


def read_yaml(catalog: Catalog) -> Units:
    """Read messages in YAML; the top key of a Rails file is its language."""
    with explain_missing("a YAML file"):
        import yaml
    path = catalog.path
    languages = catalog.languages
    text = read_unicode(path)
    try:
        content = _yaml_loader(text).get_single_data()
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
        if find_language_code(key) and isinstance(value, dict):
            languages.target = languages.target or key
            content = value
    yield from _read_messages(content, path, len(text) + 1)


def _yaml_loader(text: str) -> Any:
    """Return a loader that leaves keys such as `no` as they are written.

    Dates, `=` and `<<` are texts, numbers and other values become None.
    """
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Reads mappings at once, since `<<` copies the keys of one that was read before."""

        def read_mapping(self, node: Any) -> Tree:
            keys = set()
            for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
                is_text = isinstance(key, yaml.ScalarNode)
                if not is_text or key.value in keys:
                    problem = (
                        f"the key {key.value!r} is given twice"
                        if is_text
                        else "a key is not a text"
                    )
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                keys.add(key.value)
                if key.value != "<<":
                    key.tag = f"{_YAML_TAG}str"
            mapping: Tree = self.construct_mapping(node, deep=True)
            return mapping

    for kind in ("bool", "int", "float", "null", "binary"):
        Loader.add_constructor(_YAML_TAG + kind, lambda *_: None)
    for kind in ("timestamp", "value", "merge"):
        Loader.add_constructor(_YAML_TAG + kind, Loader.construct_scalar)
    Loader.add_constructor(f"{_YAML_TAG}map", Loader.read_mapping)
    return Loader(text)


def read_xcstrings(catalog: Catalog) -> Units:
    """Read a string catalog of Xcode in the wanted target language, or in the only one."""
    content = _read_json_object(catalog.path)
    path = catalog.path
    languages = catalog.languages
    entries = content.get("strings")
    if not isinstance(entries, dict):
        raise DataError(f"{path}: expected a string catalog with the field strings")
    languages.source = str(content.get("sourceLanguage", ""))
    codes = {code: None for entry in entries.values() for code in entry.get("localizations", {})}
    codes.pop(languages.source, None)
    target = languages.target
    if not target and len(codes) > 1:
        raise UsageError(
            f"{path}: translations into {', '.join(codes)}: choose one with --target-language"
        )
    matches = [code for code in codes if not target or is_same_language(code, target)]
    languages.target = matches[0] if matches else target
    for key, entry in entries.items():
        yield from _read_entry(key, entry, languages)


def _read_entry(key: str, entry: Tree, languages: Languages) -> Units:
    """Pair the variants of a string; one that the source lacks is paired with `other`."""
    translations = entry.get("localizations", {})
    sources, targets = (dict(_read_variants(translations.get(code, {}))) for code in languages)
    default = sources.get(("", "")) or sources.get(("", "other")) or (key, "")
    is_translatable = entry.get("shouldTranslate", True) is not False
    for name, plural in targets or sources or [("", "")]:
        source, _ = sources.get((name, plural)) or sources.get((name, "other")) or default
        text, state = targets.get((name, plural), ("", ""))
        unit = translated_unit(_join(key, name), text, plural, str(entry.get("comment") or ""))
        yield replace(
            unit,
            source=source,
            state=state,
            is_translatable=is_translatable and bool(source),
        )


def _read_variants(
    node: Tree, name: str = "", plural: str = ""
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield ((device or substitution, plural category), (text, state))."""
    unit = node.get("stringUnit")
    if isinstance(unit, dict) and isinstance(unit.get("value"), str):
        yield (name, plural), (unit["value"], str(unit.get("state", "")))
    variations = {**node.get("variations", {}), "substitutions": node.get("substitutions", {})}
    for kind, variants in variations.items():
        for label, child in variants.items():
            if kind == "plural":
                yield from _read_variants(child, name, label)
            else:
                yield from _read_variants(child, _join(name, label), plural)


def read_stringsdict(catalog: Catalog) -> Units:
    """Read plural forms of iOS; every variable of a format is a key of its own."""
    path = catalog.path
    try:
        content = plistlib.loads(read_data(path))
    except Exception as error:  # Expat, plistlib and codecs have no common base
        raise DataError(f"{path}: not a property list ({error})") from None
    messages: dict[str, Any] = {}
    for key, entry in content.items() if isinstance(content, dict) else ():
        messages[key] = entry.get("NSStringLocalizedFormatKey")
        for name, forms in entry.items():
            if isinstance(forms, dict):
                messages[_join(key, name)] = {c: forms[c] for c in forms if c in CATEGORIES}
    return _read_messages(messages, path)
