"""The tables of options, and their rows for one release.

`make engine-tables` writes tables/<engine>.json from what the engine's project has published.
trtllm.json is written by hand from TensorRT-LLM's documentation. A table is loaded when a command
line of its engine is read, not before.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cache, lru_cache
from importlib import resources
from operator import attrgetter
from typing import Any

from kthena_components.core.engines.options import TITLES, Release
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Image, Version, parse_version, write_version
from kthena_components.core.values.regex import regex

_CANDIDATE = regex(r"rc[0-9]+$")
"""A release candidate is in a table if no release has its options yet."""


@dataclass(frozen=True, slots=True)
class Row:
    """One form of one option, and the releases that have it in this form."""

    names: tuple[str, ...]
    arity: str
    type: str
    choices: tuple[str, ...]
    default: Any
    off: tuple[str, ...]
    since: int
    """Index of the first release, from 0."""
    until: int
    """Index of the last release."""

    @property
    def name(self) -> str:
        """The spelling to recommend: the first long one."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that some releases take in a JSON object: an option, or a map inside of one."""

    option: str
    keys: frozenset[str]
    since: int
    """Index of the first release, from 0."""
    until: int
    """Index of the last release."""
    ignores: bool
    """Whether these releases ignore other keys; if not, they refuse them."""
    types: Mapping[str, str] = field(default_factory=dict)
    """The type of a key: int, float, bool, text, list or map. A key that is not here takes any."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words that some releases take in a key inside a JSON option, or in an option itself."""

    option: str
    key: str
    """Empty for the option itself: the words are the names in a registry."""
    words: frozenset[str]
    since: int
    """Index of the first release, from 0."""
    until: int
    """Index of the last release."""
    between: bool = False
    """Whether they are those of the releases before and after: the release itself was not read."""


@dataclass(frozen=True, slots=True)
class Table:
    """The options of all known releases of an engine."""

    engine: str
    versions: tuple[Version, ...]
    """Oldest first."""
    texts: tuple[str, ...]
    """The same, as the project writes them."""
    rows: tuple[Row, ...]
    reader: str
    """Source of the options, for messages."""
    keys: tuple[Keys, ...] = ()
    """The keys inside JSON options."""
    words: tuple[Words, ...] = ()
    """The words that some of these keys take, of the releases that were read, oldest first."""

    def is_release(self, version: Version) -> bool:
        """Return whether a known version was read from the release, not from a candidate."""
        return not _CANDIDATE.search(self.texts[self.place(version)])

    def place(self, version: Version) -> int:
        """Return the index of the newest known release up to the given one; 0 for older ones."""
        return max(0, bisect_right(self.versions, version) - 1)

    def at(self, version: Version) -> list[Row]:
        """Return the options of a release."""
        place = self.place(version)
        return [row for row in self.rows if row.since <= place <= row.until]

    def keys_in(self, option: str, version: Version) -> Keys | None:
        """Return the keys that a release takes in a JSON option; None if it takes any."""
        place = self.place(version)
        found = _keys_by_option(self.engine).get(option, ())
        return next((row for row in found if row.since <= place <= row.until), None)

    def words_in(self, option: str, key: str, version: Version) -> Words | None:
        """Return the words that a release takes in a key; None if it takes any, or is not read."""
        place = self.place(version)
        rows = [row for row in self.words if (row.option, row.key) == (option, key)]
        before = [row for row in rows if row.since <= place]
        after = [row for row in rows if row.since > place]
        if not before or (before[-1].until < place and not after):
            return None
        if before[-1].until >= place:
            return before[-1]
        both = before[-1].words | after[0].words
        return Words(option, key, both, place, place, between=True)

    def releases_with(self, option: str, key: str) -> tuple[str, str] | None:
        """Return the first and the last release that takes a key; None if none does."""
        rows = [row for row in self.keys if row.option == option and key in row.keys]
        if not rows:
            return None
        return self.texts[rows[0].since], self.texts[rows[-1].until]

    @property
    def keyed(self) -> Iterable[str]:
        """Return the options with keys, and maps inside of them, in alphabetical order."""
        return _keys_by_option(self.engine)

    @property
    def spellings(self) -> list[str]:
        """Return every spelling of every release."""
        return sorted({name for row in self.rows for name in (*row.names, *row.off)})

    def history(self, spelling: str) -> list[tuple[int, int]]:
        """Return the ranges of releases that have a spelling, oldest first, as indices."""
        spans = ((row.since, row.until) for row in rows_of(self.engine, spelling))
        joined: list[tuple[int, int]] = []
        for since, until in sorted(spans):
            if joined and since <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(until, joined[-1][1]))
            else:
                joined.append((since, until))
        return joined


@cache
def load(engine: str) -> Table:
    """Read an engine's table: vllm, sglang, trtllm or ray."""
    path = resources.files(__package__).joinpath("tables", f"{engine}.json")
    table = json.loads(path.read_text(encoding="utf-8"))
    texts = tuple(release["version"] for release in table["releases"])
    place = {text: at for at, text in enumerate(texts)}
    rows = tuple(_row(row, place) for row in table["options"])
    keys = tuple(_keys(row, place) for row in table.get("keys", ()))
    words = tuple(_words(row, place) for row in table.get("words", ()))
    return Table(engine, tuple(map(_version, texts)), texts, rows, table["reader"], keys, words)


def rows_of(engine: str, spelling: str) -> tuple[Row, ...]:
    """Return all forms of an option in its history, by one of its spellings."""
    return _by_spelling(engine).get(spelling, ())


@cache
def _by_spelling(engine: str) -> Mapping[str, tuple[Row, ...]]:
    found: dict[str, tuple[Row, ...]] = {}
    for row in load(engine).rows:
        for name in dict.fromkeys((*row.names, *row.off)):
            found[name] = (*found.get(name, ()), row)
    return found


@cache
def _keys_by_option(engine: str) -> Mapping[str, tuple[Keys, ...]]:
    found: dict[str, tuple[Keys, ...]] = {}
    for row in sorted(load(engine).keys, key=attrgetter("option")):
        found[row.option] = (*found.get(row.option, ()), row)
    return found


def _version(text: str) -> Version:
    version = parse_version(_CANDIDATE.sub("", text))
    if version is None:
        raise ValueError(f"'{text}' is not a release")
    return version


def _keys(row: Mapping[str, Any], place: Mapping[str, int]) -> Keys:
    names, since, until = frozenset(row["keys"]), place[row["since"]], place[row["until"]]
    types = {key: kind for kind, keys in row.get("types", {}).items() for key in keys}
    return Keys(row["option"], names, since, until, row.get("ignores", False), types)


def _words(row: Mapping[str, Any], place: Mapping[str, int]) -> Words:
    words, since, until = frozenset(row["words"]), place[row["since"]], place[row["until"]]
    return Words(row["option"], row["key"], words, since, until)


def _row(row: Mapping[str, Any], place: Mapping[str, int]) -> Row:
    """Read a row of the table; its first and last release become positions in `place`."""
    return Row(
        names=tuple(row["names"]),
        arity=row.get("arity", "1"),
        type=row.get("type", "text"),
        choices=tuple(row.get("choices", ())),
        default=row.get("default"),
        off=tuple(row.get("off", ())),
        since=place[row["since"]],
        until=place[row["until"]] if "until" in row else len(place) - 1,
    )


@lru_cache(maxsize=256)
def release_for(engine: str, image: Image | None) -> Release:
    """Choose the release by which a command line is read: the image's, or else the newest known.

    For a third party's image with the engine's name, it is the one in the tag if it is known. For
    a candidate, it is the release that follows it.

    Args:
        engine: vllm, sglang or trtllm.
        image: The container's image. None: unknown.
    """
    table, title = load(engine), TITLES[engine]
    changed = image is not None and image.may_replace(engine)
    stated = image.release_of(engine) if image else None
    if image is not None and changed:
        stated = image.built_release_of(engine)
    if stated in table.versions and table.is_release(stated):
        because = f"the container installs {title} or a package for it" if changed else ""
        return _release(table, stated, because)
    if image is None:
        because = "the image is not known"
    elif stated is None:
        probable = image.probable_release_of(engine)
        if probable in table.versions and table.is_release(probable):
            stated = probable
        because = f"the image is not {title}'s own, and may contain another release"
        if image.is_own(engine):
            which = "no release of" if stated is None else "a candidate, no release, of"
            because = f"the image's tag states {which} {title}"
    elif stated in table.versions:
        because = f"only a candidate of {title} {write_version(stated)} is known"
    else:
        newer, older = stated > table.versions[-1], stated < table.versions[0]
        known = "newer than" if newer else "older than" if older else "none of"
        because = f"{title} {write_version(stated)} is {known} the known releases"
    at = table.versions[-1] if stated is None else table.versions[table.place(stated)]
    return _release(table, at, because)


def _release(table: Table, version: Version, because: str = "") -> Release:
    text = table.texts[table.versions.index(version)]
    return Release(engine=table.engine, version=version, text=text, because=because)
