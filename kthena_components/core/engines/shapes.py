"""Finds words in a shape that no release of an engine reads, and the option that was meant.

An option starts with one or two ASCII hyphens, is written in the parser's own case, and is a word
of its own. Text editors that write dashes for hyphens change that, and so do list items that
contain a whole line. Source: CPython's Lib/argparse.py `_parse_optional`, which compares strings as
they are.
"""

import re
from collections.abc import Sequence

from kthena_components.core.engines.argv import pieces
from kthena_components.core.engines.facts import Problem
from kthena_components.core.engines.options import Dialect, understand
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.engines.programs import (
    SHELLS,
    Program,
    base_name,
    find_program,
    shell_operand,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
"""Characters that look like a hyphen: dashes, the minus sign, and their full-width forms."""
_HYPHENS = str.maketrans(_DASHES, "-" * len(_DASHES))
_NAMES = {"\u2011": "a non-breaking hyphen", "\u2013": "an en dash", "\u2014": "an em dash"}
_NAMES |= {"\u2212": "a minus sign"}
_QUOTES = "'\""
_LONG = 2


@dataclass(frozen=True, slots=True)
class Meant:
    """The option that a word would be in another shape."""

    flag: str
    """The option, in full."""
    why: str
    """Why it is not read as it is. A clause, no full stop."""
    remedy: str


def meant_option(word: str, dialect: Dialect, *, after_hyphens: bool = False) -> Meant | None:
    """Return the option that a word looks like and is not; None for any other word.

    Args:
        word: A word that argparse does not read as an option of the dialect.
        after_hyphens: Whether the word `--` stands before it.
    """
    plain = word.strip().strip(_QUOTES).strip().translate(_HYPHENS).partition("=")[0]
    if not plain.startswith("-") or not plain.isascii():
        return None
    name = plain.lstrip("-")
    # A text editor makes one dash of two hyphens, so that one may stand for both.
    for flag in dict.fromkeys((plain, f"--{name}", plain.lower(), f"--{name.lower()}")):
        meaning = understand(flag, dialect)
        if len(name) < _LONG or meaning.option is None or meaning.value is not None:
            continue
        full = flag if flag in dialect.options else meaning.option.name
        why = _why(word, plain, flag, after_hyphens=after_hyphens)
        remedy = f"write {full} in front of '--'" if after_hyphens else f"write {full}"
        return Meant(full, why, remedy) if why else None
    return None


def _why(word: str, plain: str, flag: str, *, after_hyphens: bool) -> str:
    """Say why a word that resembles a flag is none: dashes, quotes, blanks, hyphens or capitals."""
    dash = next((mark for mark in word.partition("=")[0] if mark in _DASHES), "")
    if dash:
        called = f"{_NAMES.get(dash, 'a dash')} (U+{ord(dash):04X})"
        return f"contains {called}, and an option starts with ASCII hyphens"
    if word.strip()[:1] in _QUOTES:
        return "contains quotes, which only a shell removes"
    if word != word.strip():
        return "has a blank around the option, which is then no option"
    if after_hyphens:
        return "stands behind the word '--', where options are not read"
    if plain.startswith("---"):
        return f"starts with {len(plain) - len(plain.lstrip('-'))} hyphens, and an option with two"
    other_case = plain != flag and plain.lower() == flag
    return f"is not read as {flag}, because its letters are in another case" * other_case


@dataclass(frozen=True, slots=True)
class Split:
    """A container's command as its author meant it, and why the container cannot start it."""

    words: tuple[str, ...]
    problem: Problem


def split_command(argv: Sequence[str]) -> Split | None:
    """Return the command that a list of words means, if no program gets it in that form.

    The kernel looks for a program whose name is the whole first item, and a shell passes the words
    after a script to the script. Both are frequent mistakes: `["vllm serve M"]` and
    `["sh", "-c", "vllm", "serve", "M"]`.
    """
    if not argv or find_program(argv) is None:
        return _in_one_item(argv) if argv else None
    at, is_text = shell_operand(argv, 1) if base_name(argv[0]) in SHELLS else (0, False)
    if not is_text or at + 1 >= len(argv) or "$" in argv[at]:
        return None
    words = (*pieces(argv[at]), *argv[at + 1 :])
    if find_program(argv[at : at + 1]) or find_program(pieces(argv[at])) or not find_program(words):
        return None
    text = f"the words after '{argv[at]}' are parameters of the script, which does not read them"
    remedy = "write the whole command in the item after -c, or leave the shell out"
    return Split(words, Problem(flag="-c", text=text, remedy=remedy, hard=True, option=True))


def never_ends(argv: Sequence[str]) -> bool:
    """Return whether a command is an engine's server itself: a shell or a wrapper may end it."""
    start = find_program(argv)
    if start is None or start.at or start.program in _HELPERS:
        return False
    return _ENDING.isdisjoint(argv) and not any(map(_may_be_option, argv))


_PAUSE = r"(?:exec\s+)?(?:\S*/)?(?:sleep\s+(?:infinity|inf|\d+[smhd]?)|tail\s+-f\s+/dev/null)"
_QUIET = r"(?:echo|printf|set|export|date|hostname|trap|:)\b(?:(?!\$\()[^;&|\n`<>])*"
_DOES_NOTHING = regex(
    rf"(?:{_QUIET}(?:;|\n|&&)\s*)*"
    rf"(?:{_PAUSE}|while\s+(?:true|:)\s*[;\n]\s*do\s+(?:{_QUIET}[;\n]\s*)*{_PAUSE}\s*[;\n]\s*done"
    rf"|echo\b(?:(?!\$\()[^;&|\n`<>])*)"
    r"(?:\s*&\s*[;\n]?\s*wait(?:\s+\$!)?)?\s*;?"
)
"""Scripts that only pause, or write a string and end."""


def idle_command(argv: Sequence[str]) -> str:
    """Return a command that does nothing for an engine, as one string; else an empty one."""
    words = tuple(argv)
    script = " ".join(words)
    if words and base_name(words[0]) in SHELLS:
        at, is_text = shell_operand(words, 1)
        script = words[at].strip() if is_text and at == len(words) - 1 else ""
    shown = script.removeprefix("exec ")
    found = len(script) <= _MOST_IDLE and _DOES_NOTHING.fullmatch(script) is not None
    return (shown if len(shown) <= _MOST else f"{shown[:_MOST]}…") if found else ""


_BRANCHES = regex(
    rf"(?:{_QUIET}(?:;|\n|&&)\s*)*if\s[^\n;]+[;\n]\s*then\s(.*)\selse\s(.*)[;\s]fi\s*;?", re.DOTALL
)
_KEYWORDS = regex(r"\b(?:if|elif|else|fi|case)\b")
_OF_ONE_TEST = 3


def idle_branch(argv: Sequence[str]) -> str:
    """Return what does nothing in one of the two branches of which a script consists."""
    words = tuple(argv)
    if not words or base_name(words[0]) not in SHELLS:
        return ""
    at, is_text = shell_operand(words, 1)
    script = words[at].strip() if is_text and at == len(words) - 1 else ""
    found = _BRANCHES.fullmatch(script) if len(script) <= _MOST_BRANCHED else None
    if found is None or len(_KEYWORDS.findall(script)) != _OF_ONE_TEST:
        return ""
    idle = (idle_command(["sh", "-c", branch.strip().rstrip(";")]) for branch in found.groups())
    return next(filter(None, idle), "")


_MOST_IDLE = 1000
_MOST_BRANCHED = 10_000


def _may_be_option(word: str) -> bool:
    """Return whether a word may be any option, because a variable or an output sets it."""
    return word.startswith(("$(", "${")) or has_gap(word)


_HELPERS = frozenset({Program.SHELL, Program.RAY, Program.RAY_SCRIPT})
_ENDING = frozenset({"-h", "--help", "-v", "--version"})


def _in_one_item(argv: Sequence[str]) -> Split | None:
    """Find a command that is written as one list item, which no shell splits."""
    for last, item in enumerate(argv[:_FIRST]):
        words = (*(w for i in argv[: last + 1] for w in pieces(i)), *argv[last + 1 :])
        start = find_program(words)
        if " " not in item.strip() or start is None or (last and start.at):
            continue
        remedy = "write each word as its own item"
        if not _OPERATORS.isdisjoint(words):
            words, remedy = ("sh", "-c", *argv[last:]), 'write ["sh", "-c"] in front of it'
        shown = item if len(item) <= _MOST else f"{item[:_MOST]}…"
        text = f"the list item '{shown}' contains several words, and no shell splits it"
        return Split(words, Problem(flag="-c", text=text, remedy=remedy, hard=True, option=True))
    return None


_FIRST = 3
"""Items in which a program may be named: `python3`, `-m`, `sglang.launch_server`."""
_OPERATORS = frozenset({"&&", "||", ";", "|", "&"})
_MOST = 80
"""Maximum characters of an item in a message."""
