"""The command `kthena-components`. The modules of a command are imported when it is used."""

import argparse
import gc
import os
import re
import signal
import sys
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from kthena_components import __version__

SUCCESS, PROBLEM, ERROR, UNAPPROVED, INTERRUPTED = 0, 1, 2, 3, 128 + signal.SIGINT
"""The exit statuses of all commands; the help of each command says when it returns which one.

PROBLEM: the command did its work, and found a mistake or no answer. ERROR: wrong usage, or an input
cannot be read. UNAPPROVED: only `review` returns it. INTERRUPTED: shells use it for a command that
Ctrl-C ended.
"""
_NO_VALUE = re.compile(r"--[a-z-]+=")
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "new": ("new", "write a Pulumi project: a program, stacks, and policies and CI on request"),
    "check": ("check.options", "check manifests in files; needs no cluster"),
    "convert": (
        "convert.command",
        "write servings of one backend for another one, or as a program",
    ),
    "size": (
        "size.command",
        "show the ways to split a model over GPUs that fit, the cheapest first",
    ),
    "review": ("review.command", "write the comment on a pull request from Pulumi previews"),
    "policy-pack": ("policy_pack", "write the policy pack for pulumi preview --policy-pack"),
    "doctor": ("doctor", "check that a cluster has what servings need, before you deploy"),
    "fit": (
        "fit.command",
        "show whether servings fit into a cluster, and where; or why they do not",
    ),
    "inventory": ("inventory", "write what a cluster has, to answer `fit` without the cluster"),
    "status": ("status", "show where the pods of servings run, and why others wait"),
    "rights": ("rights", "print the RBAC role that a deployer needs"),
}
"""The module of each command in this package, which has `add_parser`, and its line of help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    # Modules that are loaded stay. Searching them for cycles takes a tenth of the time to start.
    gc.set_threshold(50_000, 20, 20)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - as long as the process
    if sys.stdout is None:
        return _fail("standard output is closed: redirect it to a file, or to /dev/null")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:] if arguments is None else arguments
    if "_ARGCOMPLETE" in os.environ:
        _complete(_parser(COMMANDS))
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return ERROR
    except OSError as error:
        if error.filename is None:
            _drop_output()
        return _fail(_cause(error))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED


def _run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name; return its exit status."""
    named = next((word for word in arguments if not word.startswith("-")), "")
    if named and named not in COMMANDS and arguments[0] == named:
        return _no_command(named)
    if empty := _empty(arguments):
        return _fail(empty)
    asked = _parser({named}).parse_args(arguments)
    status: int = asked.run(asked)
    return status


_MAY_BE_EMPTY = frozenset({"--project"})
"""Options whose empty value has a meaning: the root of a repository."""


def _empty(arguments: Sequence[str]) -> str:
    """Say which argument is empty, as of a shell variable that is not set; "" if none is."""
    for before, word in zip(("", *arguments), arguments, strict=False):
        named = before if not word else word[:-1] if _NO_VALUE.fullmatch(word) else None
        if named is not None and named not in _MAY_BE_EMPTY:
            whose = f"the value of {named}" if named.startswith("--") else "an argument"
            return f"{whose} is empty: write it, or leave it out; a shell variable may not be set"
    return ""


def _drop_output() -> None:
    """Write the rest to nowhere. Otherwise Python reports the same error again when it exits."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _cause(error: OSError) -> str:
    """Say which file or stream an error is about. Only a stream has no name."""
    why = error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename!s:.200}: {why}"
    try:
        Path.cwd()
    except OSError:
        return "the current folder does not exist any more: change to another one"
    return f"standard output cannot be written: {why}"


def _fail(why: str) -> int:
    """Write one sentence, if anybody can read it, and return the exit status of wrong usage."""
    from kthena_components.core.values.display import visible  # noqa: PLC0415 - only for a mistake

    with suppress(OSError):
        sys.stderr.write(f"kthena-components: {visible(why)}\n")
    return ERROR


class _Parser(argparse.ArgumentParser):
    """A parser that says what is meant by an option or a word that it does not know."""

    def parse_known_args(  # type: ignore[override] # its overloads differ in the namespace only
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse arguments. Those of a command are refused by the parser of the command."""
        asked, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(self._unknown(rest[0]))
        return asked, rest

    def _unknown(self, word: str) -> str:
        """Say which option was meant, or that there is one argument too many."""
        if not word.startswith("-"):
            return f"{word[:80]!r} is one argument too many: remove it"
        from kthena_components.core.findings import nearest  # noqa: PLC0415 - only for a mistake

        name = word.partition("=")[0]
        close = nearest(name, self._option_string_actions)
        return f"there is no option {name[:80]!r}; " + (
            f"write {close}" if close else f"'{self.prog} --help' lists all"
        )


def _no_command(name: str) -> int:
    """Name the command that is meant, or all."""
    from kthena_components.core.findings import nearest  # noqa: PLC0415 - only for a mistake

    close = nearest(name, COMMANDS)
    hint = f"write {close}" if close else f"known: {', '.join(COMMANDS)}"
    sys.stderr.write(f"kthena-components: there is no command {name!a}; {hint}\n")
    return ERROR


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that completes a command, and exit. Needs the extra `terminal`."""
    with suppress(ModuleNotFoundError):
        import argcomplete  # noqa: PLC0415

        argcomplete.autocomplete(parser)


def _parser(used: Container[str]) -> argparse.ArgumentParser:
    """Return the parser of the program.

    Args:
        used: The commands whose arguments are parsed. Of the others it has the line of help only.
    """
    parser = _Parser(
        prog="kthena-components", description="Check multi-node LLM serving on Kubernetes."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (module, help_text) in COMMANDS.items():
        if name in used:
            import_module(f"kthena_components.cli.{module}").add_parser(commands, help_text)
        else:
            commands.add_parser(name, help=help_text)
    return parser
