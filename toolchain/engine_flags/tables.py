"""Combines the options of all releases: one row for each form of an option."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeAlias

from toolchain.engine_flags.flags import Flag

_USUAL: Mapping[str, object] = {"arity": "1", "type": "text"}
"""The defaults of a row: most options accept one word of any kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The distribution from which the options of a release were read."""

    version: str
    file: str
    sha256: str


Release: TypeAlias = tuple[Source, Sequence[Flag]]
Keys: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""By release and option, the keys inside its JSON, whether the release ignores others, their types,
and the words that some keys take, if they were read. Words of the key "" are the option's own."""


def write(engine: str, reader: str, releases: Sequence[Release], keys: Keys | None = None) -> str:
    """Write a table as JSON, with one release or one row per line.

    Args:
        engine: The name of the engine.
        reader: The source of its options, in words.
        releases: Oldest first.
        keys: The keys inside its JSON options.
    """
    sources = ",\n".join(f"  {json.dumps(asdict(source))}" for source, _ in releases)
    rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in merge(releases))
    head = f' "engine": {json.dumps(engine)},\n "reader": {json.dumps(reader)},\n'
    inside = ",\n".join(f"  {json.dumps(row)}" for row in _merge_keys(releases, keys or {}))
    told = f',\n "keys": [\n{inside}\n ]' if inside else ""
    chosen = ",\n".join(f"  {json.dumps(row)}" for row in _merge_words(releases, keys or {}))
    told += f',\n "words": [\n{chosen}\n ]' if chosen else ""
    return f'{{\n{head} "releases": [\n{sources}\n ],\n "options": [\n{rows}\n ]{told}\n}}\n'


def _merge_keys(releases: Sequence[Release], keys: Keys) -> list[dict[str, Any]]:
    """Return a row for each option and the releases that take the same keys in it."""
    rows: list[dict[str, Any]] = []
    versions = [source.version for source, _ in releases]
    for option in sorted({option for found in keys.values() for option in found}):
        last: dict[str, Any] | None = None
        for version in versions:
            given = keys.get(version, {}).get(option)
            found = _stated(given) if given and "keys" in given else None
            if last is not None and (found is None or found != _stated(last)):
                last = None
            if found is not None and last is None:
                last = {"option": option, "since": version, "until": version, **found}
                rows.append(last)
            elif last is not None:
                last["until"] = version
    return rows


def _merge_words(releases: Sequence[Release], keys: Keys) -> list[dict[str, Any]]:
    """Return a row for each key and the releases that take the same words in it.

    A release that was not read is in a row if those around it take the same.
    """
    rows: list[dict[str, Any]] = []
    for source, _ in releases:
        for option, found in sorted(keys.get(source.version, {}).items()):
            for key, words in sorted(found.get("words", {}).items()):
                name = {"option": option, "key": key}
                own = [row for row in rows if name.items() <= row.items()]
                if own and own[-1]["words"] == words:
                    own[-1]["until"] = source.version
                else:
                    at = {"since": source.version, "until": source.version}
                    rows.append({**name, **at, "words": words})
    return sorted(rows, key=lambda row: (row["option"], row["key"]))


def _stated(row: Mapping[str, Any]) -> dict[str, Any]:
    return {field: row[field] for field in ("keys", "ignores", "types") if field in row}


def keys_of(table: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Read the keys of a table back, by release and option."""
    versions = [source["version"] for source in table["releases"]]
    found: dict[str, dict[str, dict[str, Any]]] = {version: {} for version in versions}
    for row in table.get("keys", ()):
        for version in versions[versions.index(row["since"]) : versions.index(row["until"]) + 1]:
            found[version][row["option"]] = _stated(row)
    for row in table.get("words", ()):
        for version in versions[versions.index(row["since"]) : versions.index(row["until"]) + 1]:
            held = found[version].setdefault(row["option"], {})
            held.setdefault("words", {})[row["key"]] = row["words"]
    return found


def merge(releases: Sequence[Release]) -> list[dict[str, Any]]:
    """Return the rows of a table: each form of each option.

    A row has the first and the last release with the option in this form. It has no last release if
    the newest one has the option. An option that was removed and added again has several rows.
    """
    rows: list[tuple[Flag, int, int]] = []
    for number, (_, flags) in enumerate(releases):
        before = {_form(flag): at for at, (flag, _, last) in enumerate(rows) if last == number - 1}
        for flag in flags:
            if _form(flag) in before:
                at = before[_form(flag)]
                rows[at] = (flag, rows[at][1], number)
            else:
                rows.append((flag, number, number))
    rows.sort(key=lambda row: (row[0].names[0].lstrip("-"), row[1]))
    newest, versions = len(releases) - 1, [source.version for source, _ in releases]
    return [
        {**_written(flag), "since": versions[first]}
        | ({"until": versions[last]} if last < newest else {})
        for flag, first, last in rows
    ]


def _form(flag: Flag) -> str:
    """Return the key of a form. It distinguishes the defaults 0 and False, unlike Python."""
    return repr(flag)


def _written(flag: Flag) -> dict[str, Any]:
    plain = {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(flag).items()}
    stated = {key: value for key, value in plain.items() if value is not None and value != []}
    return {key: value for key, value in stated.items() if _USUAL.get(key) != value}


def releases_of(table: Mapping[str, Any]) -> list[Release]:
    """Read a table back: the options of each of its releases. The inverse of `write`."""
    sources = [Source(**source) for source in table["releases"]]
    number = {source.version: at for at, source in enumerate(sources)}
    found: list[list[Flag]] = [[] for _ in sources]
    for row in table["options"]:
        last = number[row["until"]] if "until" in row else len(sources) - 1
        flag = _flag(row)
        for at in range(number[row["since"]], last + 1):
            found[at].append(flag)
    return list(zip(sources, found, strict=True))


def _flag(row: Mapping[str, Any]) -> Flag:
    stated = {**_USUAL, **row}
    values: dict[str, Any] = {
        field.name: tuple(value) if isinstance(value := stated[field.name], list) else value
        for field in fields(Flag)
        if field.name in stated
    }
    return Flag(**values)
