"""Read an engine's arguments: every flag to its value, and everything that is wrong with them.

What a field means for the engine is in that engine's module. Nothing here raises, whatever the
words are.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from kthena_components.core.engines.facts import CommandFacts, Problem
from kthena_components.core.engines.files import read_yaml
from kthena_components.core.engines.options import (
    Dialect,
    Kind,
    Meaning,
    Option,
    probably,
    understand,
)
from kthena_components.core.engines.values import Refused, convert
from kthena_components.core.engines.words import Scope, has_gap
from kthena_components.core.known import Unknown

_NEGATIVE = re.compile(r"-[0-9]+|-[0-9]*\.[0-9]+")
_PIECES = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+")
_LATER_FLAG = re.compile(r"\s--?[A-Za-z]")
_SWITCH_LIKE = ("--no-", "--enable-", "--disable-")
MAX_PROBLEMS = 50
"""Problems that one command line can have. Nobody would read the rest."""
_MAX_LISTED = 6


@dataclass(slots=True)
class Reading:
    """The arguments of one engine command."""

    dialect: Dialect
    scope: Scope
    values: dict[str, Any] = field(default_factory=dict)
    """Field to value: int, float, str, bool, a tuple of str, None or Unknown."""
    where: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    """Words that belong to no flag."""
    flags: list[tuple[str, Option]] = field(default_factory=list)
    """Each flag that states something, as written."""
    hidden: Unknown | None = None
    """Why a value that is not stated may be stated all the same, out of sight."""
    doubts: dict[str, Unknown] = field(default_factory=dict)
    _given: dict[str, dict[str, str]] = field(default_factory=dict)
    _guesses: int = 0

    def read(self, words: Sequence[str]) -> "Reading":
        """Read all arguments."""
        self._items(words, lines=not self.scope.in_shell)
        for name, given in self._given.items():
            self._repeated(name, list(given.values()))
        return self

    def _items(self, items: Sequence[str], *, lines: bool) -> None:
        at = 0
        while at < len(items):
            word = items[at]
            at += 1
            if word == "--":
                self.bare += items[at:]
                break
            if lines and _is_line(word):
                self._line(word)
            elif is_flag(word):
                at = self._flag(word, items, at)
            else:
                self.bare.append(word)

    def _line(self, word: str) -> None:
        """Read an item that holds a whole line of flags, as people write them without a shell."""
        shown = self.scope.show(word)
        text = f"the list item '{shown}' holds several words, and no shell splits it"
        remedy = "give each word an item of its own"
        self._problem(word.split(maxsplit=1)[0], text, remedy, hard=False)
        self._items([_unquoted(piece) for piece in _PIECES.findall(word)], lines=False)

    def get(self, name: str, default: Any) -> Any:
        """Give a field's value, or its default when nothing can have stated it."""
        for values in (self.values, self.doubts):
            if name in values:
                return values[name]
        return default if self.hidden is None else self.hidden

    def hide(self, because: str) -> None:
        """Note that values may be stated out of sight."""
        self.hidden = self.hidden or Unknown(because)

    def config_file(self, name: str = "config", *, wins: bool = False) -> Mapping[Any, Any] | None:
        """Give the map of the file that a flag names, None where the flag is not given.

        None too where the file cannot be read; then it hides what the command line leaves open,
        or all but the model when it wins over the command line.
        """
        if name not in self.values:
            return None
        path = self.values[name]
        text = self.scope.file(path) if isinstance(path, str) else None
        config = read_yaml(text) if isinstance(text, str) else text
        if config is not None and not isinstance(config, Unknown):
            return config
        because = f"the file of {self.where[name]} "
        because += "cannot be read" if isinstance(text, str) else "is not at hand"
        because += ", and it wins" if wins else ""
        self.hide(because if config is None else f"{because}: {config.because}")
        if wins:
            self.values = {key: value for key, value in self.values.items() if key == "model"}
        return None

    def add_file(self, words: Sequence[str], name: str = "config", *, wins: bool = False) -> None:
        """Take in what a config file states, written as words.

        Args:
            words: The file as flags and values.
            name: The field of the flag that names the file.
            wins: Whether the file wins over the command line. Else it gives way.
        """
        path = self.scope.show(str(self.values.get(name)))
        file = Reading(self.dialect, Scope({}, {}, in_shell=True)).read(words)
        where = {key: f"{written} in {path}" for key, written in file.where.items()}
        first, last = (self, file) if wins else (file, self)
        self.doubts = {**first.doubts, **last.doubts}
        if wins:
            stated = {key: value for key, value in self.values.items() if key not in file.doubts}
            self.values, self.where = {**stated, **file.values}, {**self.where, **where}
        else:
            self.values, self.where = {**file.values, **self.values}, {**where, **self.where}
        told = (replace(problem, text=f"in {path}, {problem.text}") for problem in file.problems)
        self.problems += list(told)[: MAX_PROBLEMS - len(self.problems)]

    def take_model(self, *, positional: bool) -> None:
        """Take the model from the bare words, and note those that may hold flags."""
        rest = self.bare
        if positional and rest and not (has_gap(rest[0]) and "model" in self.values):
            self.values["model"] = self.scope.read(rest[0])
            self.where["model"] = self.scope.show(rest[0])
            rest = rest[1:]
        opaque = next((word for word in rest if has_gap(word)), None)
        if opaque is not None:
            self.hide(f"{self.scope.show(opaque)} may hold any flag")

    def facts(self, engine: str) -> CommandFacts:
        """Give what the flags of this dialect can state; the rest has its default."""
        stated = {"model", *(option.field for option in self.dialect.options.values())}
        values = {f.name: self.get(f.name, f.default) for f in fields(CommandFacts)}
        return CommandFacts(
            engine=engine,
            problems=tuple(self.problems),
            where=MappingProxyType(dict(self.where)),
            **{name: value for name, value in values.items() if name in stated},
        )

    def _flag(self, word: str, items: Sequence[str], at: int) -> int:
        """Read one flag and its value; give the place behind them."""
        head, equals, value = word.partition("=")
        if has_gap(head):
            self.hide(f"{self.scope.show(word)} may be any flag")
            return at
        meaning = understand(head, self.dialect)
        option = meaning.option
        follows = at < len(items) and not is_flag(items[at])
        if option is None:
            self._not_accepted(head, meaning)
            alone = equals or meaning.value or head.startswith(_SWITCH_LIKE)
            return at + (follows and not alone and not _is_line(items[at]))
        if meaning.candidates and option.field:
            self._abbreviated(head, option)
        if option.kind is Kind.SWITCH:
            self._switch(option, head, value if equals else None)
            return at
        given = value if equals else meaning.value
        if given is None and follows:
            given, at = items[at], at + 1
        while option.kind is Kind.MANY and at < len(items) and not is_flag(items[at]):
            at += 1
        if option.field:
            self._value(option, head, given, word if equals or meaning.value else "")
        return at

    def _value(self, option: Option, head: str, given: str | None, written: str) -> None:
        """Note the value of a flag that takes one."""
        if given is None:
            text, remedy = f"{head} has no value", f"write {head} and its value"
            value: Any = self._problem(head, text, remedy, hard=True)
            self._state(option, head, value, head)
            return
        shown = self.scope.show(given)
        value = convert(option, shown, self.scope.read(given), in_shell=self.scope.in_shell)
        if isinstance(value, Refused):
            value = self._problem(head, value.text, value.remedy, hard=value.hard)
        self._state(option, head, value, written or f"{head} {given}", shown)

    def _switch(self, option: Option, head: str, given: str | None) -> None:
        value: Any = not option.off
        if given is not None and option.field:
            text = f"{head} is a switch and takes no value, but has '{self.scope.show(given)}'"
            value = self._problem(head, text, f"write {head} alone", hard=True)
        if option.field:
            self._state(option, head, value, head)

    def _state(self, option: Option, head: str, value: Any, written: str, shown: str = "") -> None:
        self.flags.append((head, option))
        self.values[option.field] = value
        self.where[option.field] = self.scope.show(written)
        self._given.setdefault(option.field, {})[repr(value)] = shown or head

    def _problem(self, flag: str, text: str, remedy: str, *, hard: bool) -> Unknown:
        """Note a problem. Gives the value that a flag with a problem has."""
        if len(self.problems) < MAX_PROBLEMS:
            flag = self.scope.show(flag)
            self.problems.append(Problem(flag=flag, text=text, remedy=remedy, hard=hard))
        return Unknown(text)

    def _not_accepted(self, head: str, meaning: Meaning) -> None:
        """Note a flag that the engine refuses or cannot tell from others."""
        shown, engine = self.scope.show(head), self.dialect.engine
        if meaning == Meaning() and self._guesses < MAX_PROBLEMS:
            self._guesses += 1
            meaning = probably(head, self.dialect)
        names = [name for name in (*meaning.candidates, meaning.instead) if name]
        meant = [self.dialect.options[name] for name in names]
        if meaning.candidates:
            text = f"'{shown}' can mean {_listed(meaning.candidates)}, and {engine} does not guess"
            unknown = self._problem(head, text, "write the flag in full", hard=True)
        elif meaning.refused:
            text = f"{engine} has no flag '{shown}' and does not start with it"
            remedy = " ".join(filter(None, ("write", meaning.instead, meaning.value)))
            unknown = self._problem(head, text, remedy, hard=True)
        elif meaning.instead:
            text = f"{engine} is not known to have a flag '{shown}'"
            unknown = self._problem(head, text, f"write {meaning.instead}", hard=False)
        else:
            return
        self.flags += [(head, option) for option in meant if option.field]
        self.doubts.update((option.field, unknown) for option in meant if option.field)

    def _abbreviated(self, head: str, option: Option) -> None:
        full = option.name if not option.off else f"--no-{option.name[2:]}"
        text = f"'{head}' is short for {full}, and any new flag can make it ambiguous"
        self._problem(head, text, f"write {full}", hard=False)

    def _repeated(self, name: str, given: list[str]) -> None:
        if len(given) > 1:
            flag = next(option.name for _, option in self.flags if option.field == name)
            text = f"{flag} is given different values ({_listed(given, ', ')}); the last one counts"
            self._problem(flag, text, "keep one", hard=False)


def is_flag(word: str) -> bool:
    """Tell a flag from a value as argparse does: `-1` and `-a b` are values."""
    if not word.startswith("-") or len(word) == 1 or _NEGATIVE.fullmatch(word):
        return False
    return " " not in word.partition("=")[0]


def _is_line(word: str) -> bool:
    """Tell `--a 1 --b 2` in one item from one flag whose value has blanks."""
    first, *rest = word.split(maxsplit=1) or [""]
    if not rest or not word.startswith("-"):
        return False
    if "=" not in first:
        return True
    return not any(mark in first for mark in "{['\"") and _LATER_FLAG.search(word) is not None


def _unquoted(piece: str) -> str:
    for mark in "'\"":
        if len(piece) > 1 and piece[0] == piece[-1] == mark:
            return piece[1:-1]
    return piece


def _listed(names: Sequence[str], joint: str = " or ") -> str:
    """List names for a message: `a, b or c`."""
    if len(names) > _MAX_LISTED:
        return ", ".join([*names[:_MAX_LISTED], f"… {len(names) - _MAX_LISTED} more"])
    return joint.join(filter(None, (", ".join(names[:-1]), names[-1])))
