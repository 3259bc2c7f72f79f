"""Finds the commands that a shell script runs: understands keywords and assignments.

Nothing here depends on engines. Source of the rules: POSIX.1-2024, Shell Command Language, 2.9.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.engines.shell import Lexer, UnbalancedError
from kthena_components.core.values.unknown import Unknown

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECLARERS = frozenset({"declare", "export", "local", "readonly", "typeset"})
_MAX_SOURCED = 16
"""Maximum number of files that one command sources: a file may source itself."""
_DEPTH = {"if": 1, "case": 1, "fi": -1, "esac": -1}
_LOOPS = {"do": 1, "done": -1}
_TRANSPARENT = frozenset({"!", "{", "}", "elif", "else", "then", "until", "while"})
_WHOLE = frozenset({"case", "for", "function", "select"})
_TESTS = frozenset({"[", "[[", "test"})


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command of a script."""

    words: tuple[str, ...]
    background: bool
    """Whether it runs in the background (`&`)."""
    looped: bool
    """Whether it is in a loop."""


@dataclass(slots=True)
class _Flow:
    """The reader's position in the script's branches and loops."""

    branches: int = 0
    loops: int = 0
    brackets: int = 0
    last: str = ""
    tested: bool = False

    @property
    def certain(self) -> bool:
        """Whether a command here definitely runs, as far as can be read."""
        conditional = self.last in {"||", "|"} or (self.last == "&&" and self.tested)
        return not (self.branches or self.loops or self.brackets or conditional)

    def strip(self, words: list[str]) -> list[str]:
        """Remove the keywords at the front of a command, and count what they open and close."""
        for index, word in enumerate(words):
            if word in _DEPTH:
                self.branches = max(self.branches + _DEPTH[word], 0)
            elif word in _LOOPS:
                self.loops = max(self.loops + _LOOPS[word], 0)
            elif word not in _TRANSPARENT and word not in _WHOLE:
                return words[index:]
            if word in _WHOLE:
                return []
        return []

    def step(self, words: list[str], separator: str) -> None:
        """Move past a command and its separator."""
        test = bool(words) and words[0] in _TESTS
        self.tested = test or (self.last == "&&" and self.tested)
        self.last = separator
        if separator in {"(", ")"}:
            self.brackets = max(self.brackets + (1 if separator == "(" else -1), 0)


def read_script(text: str, scope: Scope) -> tuple[list[Command], UnbalancedError | None]:
    """Return the commands of a script, in order.

    Also returns what the script leaves open at its end, if anything. The command being read is then
    the last one, as far as it goes.
    """
    lexer, commands = Lexer(text, scope), list[Command]()
    try:
        commands.extend(_run(lexer, scope))
    except UnbalancedError as error:
        commands.append(Command(tuple(lexer.words), background=False, looped=False))
        return commands, error
    return commands, None


def _run(lexer: Lexer, scope: Scope) -> Iterator[Command]:
    flow = _Flow()
    for raw, separator in lexer.commands():
        if raw[:1] in (["for"], ["select"]):
            scope.variables.update(
                (name, Unknown(f"{name} is set by a loop of the script")) for name in raw[1:2]
            )
        words = flow.strip(raw)
        first = next((i for i, word in enumerate(words) if not _ASSIGNMENT.fullmatch(word)), None)
        command = [] if first is None else words[first:]
        if first is None:
            _assign(words, scope, certain=flow.certain)
        elif command[0] in _DECLARERS:
            _assign(command[1:], scope, certain=flow.certain)
        elif command[0] == "read":
            names = (word for word in command[1:] if _NAME.fullmatch(word))
            scope.variables.update((n, Unknown(f"the script reads {n} itself")) for n in names)
        elif (sourced := _sourced(command, scope)) is not None:
            yield from _run(Lexer(sourced, scope), scope)
        else:
            yield Command(tuple(command), separator == "&", looped=flow.loops > 0)
        flow.step(command, separator)


def _sourced(command: list[str], scope: Scope) -> str | None:
    """Return the text of a mounted file that a script includes with `.` or `source`."""
    if command[0] not in {".", "source"} or len(command) == 1:
        return None
    text = scope.file(command[1])
    if not isinstance(text, str):
        return None
    scope.sourced += 1
    if scope.sourced > _MAX_SOURCED:
        scope.unread = Unknown(f"its script sources more than {_MAX_SOURCED} files")
        return None
    return text


def _assign(words: list[str], scope: Scope, *, certain: bool) -> None:
    for word in words:
        match = _ASSIGNMENT.fullmatch(word)
        if match is None:
            continue
        name, adds, value = match.groups()
        if not certain:
            scope.variables[name] = Unknown(f"{name} is set in a branch of the script")
        elif adds and scope.look_up(name) is not None:
            scope.variables[name] = scope.insert(name, f"${name}") + value
        else:
            scope.variables[name] = value
