"""The command `kthena-components`. The modules of a command are imported when it is used."""

import argparse
import os
import signal
import sys
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Final

from kthena_components import __version__

WRONG = 2
INTERRUPTED = 128 + signal.SIGINT
"""Exit status that shells use for a command that Ctrl-C ended."""
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
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:] if arguments is None else arguments
    if "_ARGCOMPLETE" in os.environ:
        _complete(_parser(COMMANDS))
    try:
        named = next((word for word in arguments if not word.startswith("-")), "")
        if named and named not in COMMANDS and arguments[0] == named:
            return _no_command(named)
        asked = _parser({named}).parse_args(arguments)
        status: int = asked.run(asked)
    except BrokenPipeError:
        # The reader has closed the pipe. Without this, Python reports that again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return WRONG
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    return status


def _no_command(name: str) -> int:
    """Name the command that is meant, or all."""
    from kthena_components.core.findings import nearest  # noqa: PLC0415 - only for a mistake

    close = nearest(name, COMMANDS)
    hint = f"write {close}" if close else f"known: {', '.join(COMMANDS)}"
    sys.stderr.write(f"kthena-components: there is no command {name!a}; {hint}\n")
    return WRONG


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
    parser = argparse.ArgumentParser(
        prog="kthena-components", description="Check multi-node LLM serving on Kubernetes."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (module, told) in COMMANDS.items():
        if name in used:
            import_module(f"kthena_components.cli.{module}").add_parser(commands, told)
        else:
            commands.add_parser(name, help=told)
    return parser
