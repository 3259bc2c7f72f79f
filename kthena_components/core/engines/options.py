"""Options of an engine's release as data, and the lookup of a flag.

A dialect is what one release of one engine accepts. Values are read in `values.py`. argparse's
rules are those of CPython's Lib/argparse.py `_parse_optional` and `_get_option_tuples`, which vLLM
and SGLang use unchanged.
"""

import difflib
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version, write_version
from kthena_components.core.values.regex import regex

_ATTACHED = regex(r"(-[a-z]{2,3})([0-9]+)")
_CAPITAL = regex(r"(?<=[a-z0-9])(?=[A-Z])")
"""Where the next word of a name such as `maxModelLen` begins."""
_NEAR = 0.8
"""Minimum similarity of a misspelt flag and its suggestion (difflib's ratio)."""
MAX_FLAG = 64
"""Maximum length of a flag that gets a suggestion."""


@dataclass(frozen=True, slots=True)
class Use:
    """What an option sets."""

    field: str
    """A field of CommandFacts or a word of the engine's module."""
    least: int | None = None
    """Smallest number that the engine accepts. None: any."""
    key: str = ""
    """The key of a JSON object that is read."""
    item: type = str
    """Type of that key: int, str, or list (of strings)."""
    counted: bool = False
    """Whether the package sets it when it writes the command."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of an engine."""

    name: str
    """The spelling to recommend."""
    arity: str = "1"
    """Number of values: 0 (a switch), 1 or another number, ? (none or one), + or *."""
    type: str = "text"
    """Type of the values: text, int, float, bool, json, object (of JSON), size (an integer that
    may have a unit), size-auto (which may be `auto`). A trailing ? also accepts `None`. Others are
    not read."""
    choices: tuple[str, ...] = ()
    """Accepted values. Empty: any."""
    use: Use | None = None
    """What it sets, if that is read here. None: nothing."""
    off: bool = False
    """Whether this spelling turns a switch off."""

    @property
    def field(self) -> str:
        """What it sets: a field of CommandFacts, or the option's own name."""
        return self.use.field if self.use else self.name

    @property
    def counted(self) -> bool:
        """Whether the package sets it when it writes the command."""
        return self.use is not None and self.use.counted


# The release by which a command line is read, and whether it is certain.


TITLES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The release by whose options and rules a command line is checked."""

    engine: str
    """vllm, sglang or trtllm."""
    version: Version
    """The release that is assumed: the image's, or else the newest known."""
    text: str = ""
    """The release as its project writes it: 0.8.5.post1. Empty: the numbers joined by dots."""
    because: str = ""
    """Why it may be another one: "the image states no release of vLLM". Empty: certain."""

    @property
    def sure(self) -> bool:
        """Whether the image states this very release."""
        return not self.because

    @property
    def title(self) -> str:
        """The engine and its release: vLLM 0.10.1."""
        text = self.text or write_version(self.version)
        return f"{TITLES.get(self.engine, self.engine)} {text}"

    @property
    def note(self) -> str:
        """What to add to a finding that depends on an uncertain release. Empty if it is certain."""
        return f" (checked against {self.title}, because {self.because})" if self.because else ""


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """The options that one release of an engine accepts, and how it parses them."""

    engine: str
    """The engine's name as its users write it: vLLM."""
    options: Mapping[str, Option]
    """Options by spelling."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Spellings of other engines that this one rejects, and what to write."""
    underscores: bool = False
    """Whether `_` may stand for `-` in a flag (vllm/utils/argparse_utils.py)."""
    abbreviates: bool = True
    """Whether a prefix that fits one flag only is accepted (argparse; not Click)."""
    dotted: bool = False
    """Whether `--a.b v` is the key b of the JSON object of --a."""
    firsts: frozenset[str] = frozenset()
    """Fields whose first value counts, if the line gives several."""
    complete: bool = False
    """Whether these are all options of the program."""
    table: str = ""
    """The engine whose other releases may have more options. Empty: none."""
    release: Release | None = None
    """The release with these options."""
    meanings: Mapping[str, "Meaning"] = field(default_factory=dict)
    """What each spelling stands for when it is written in full."""
    ordered: tuple[str, ...] = ()
    """The spellings, sorted: those with a common prefix are adjacent."""
    fields: frozenset[str] = frozenset()
    """Fields that its options can set."""


class Meaning(NamedTuple):
    """The result of looking up a flag."""

    option: Option | None = None
    candidates: tuple[str, ...] = ()
    """Spellings that an abbreviation matches."""
    value: str | None = None
    """A value attached to a one-letter flag: the 2 of `-n2`."""
    instead: str = ""
    """What to write if the engine rejects the flag or does not know it."""
    refused: bool = False
    """Whether the engine definitely rejects it. False with `instead`: it is probably misspelt."""
    key: str = ""
    """The key of a JSON object that a dotted flag sets."""


def build_dialect(
    engine: str, options: Iterable[tuple[Option, tuple[str, ...], tuple[str, ...]]], **how: Any
) -> Dialect:
    """Index options by every spelling: those that set an option and those that switch it off.

    `how` are further fields of the dialect.
    """
    spellings: dict[str, Option] = {}
    for option, names, off in options:
        spellings.update(dict.fromkeys(names, option))
        if off:
            spellings.update(dict.fromkeys(off, replace(option, off=True)))
    return Dialect(
        engine=engine,
        options=spellings,
        meanings={name: Meaning(option) for name, option in spellings.items()},
        ordered=tuple(sorted(spellings)),
        fields=frozenset(option.field for option in spellings.values()),
        **how,
    )


def understand(flag: str, dialect: Dialect) -> Meaning:
    """Look up a flag. `flag` is the part before any `=`."""
    if flag in dialect.meanings:
        return dialect.meanings[flag]
    head, dot, tail = flag.partition(".")
    if dialect.underscores and flag.startswith("--"):
        head = head.replace("_", "-")
    exact = dialect.meanings.get(head + dot + tail)
    if exact is not None:
        return exact
    if dot and dialect.dotted:
        return _dotted(head, tail, dialect)
    candidates = _starting_with(head, dialect) if dialect.abbreviates and not dot else ()
    refused = _refused(head, dialect)
    if refused is not None and len(candidates) != 1:
        return refused
    letter = dialect.options.get(flag[:2])
    if letter is not None and letter.arity != "0" and not flag.startswith("--"):
        return Meaning(letter, value=flag[2:])
    meant = list(dict.fromkeys(dialect.options[name] for name in candidates))
    # argparse counts spellings, not options: two spellings of one option are ambiguous, too.
    only = meant[0] if len(candidates) == 1 else None
    return Meaning(only, candidates=candidates, instead=refused.instead if refused else "")


def _refused(flag: str, dialect: Dialect) -> Meaning | None:
    """Find the option that was meant by a flag that the engine definitely rejects."""
    instead = dialect.refused.get(flag)
    if instead is not None and instead.partition(" ")[0] in dialect.options:
        return Meaning(instead=instead, refused=True)
    attached = _ATTACHED.fullmatch(flag)
    if attached is not None:
        short = dialect.refused.get(attached[1], attached[1])
        if short in dialect.options:
            return Meaning(value=attached[2], instead=short, refused=True)
    words = _CAPITAL.sub("-", flag).lower() if _CAPITAL.search(flag) else flag
    for other in (words.replace("_", "-"), "--" + words[2:].replace("-", "_")):
        if flag.startswith("--") and other != flag and other in dialect.options:
            return Meaning(instead=other, refused=True)
    return None


def probably(flag: str, dialect: Dialect) -> Meaning:
    """Find the option that was meant by a flag that the engine is not known to have."""
    near = difflib.get_close_matches(flag[:MAX_FLAG], dialect.ordered, n=1, cutoff=_NEAR)
    return Meaning(instead="".join(near))


def _dotted(head: str, tail: str, dialect: Dialect) -> Meaning:
    """Read `--speculative-config.num_speculative_tokens` as a key of the JSON object.

    vLLM puts `--speculative-config JSON` in its place, so that it may be abbreviated.
    """
    meaning = understand(head, dialect)
    return meaning if meaning.refused or meaning.value else meaning._replace(key=tail)


def _starting_with(prefix: str, dialect: Dialect) -> tuple[str, ...]:
    start = bisect_left(dialect.ordered, prefix)
    end = start
    while end < len(dialect.ordered) and dialect.ordered[end].startswith(prefix):
        end += 1
    return dialect.ordered[start:end]
