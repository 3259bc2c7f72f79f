"""The command `kthena-components`."""

import argparse
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from kthena_components import __version__
from kthena_components.cli.check import CheckOptions, check
from kthena_components.cli.context import ModelConfigError, read_shapes
from kthena_components.cli.levels import read_settings
from kthena_components.cli.reports import (
    GithubReport,
    JsonReport,
    MarkdownReport,
    Report,
    TextReport,
    Write,
)
from kthena_components.cli.results import Summary
from kthena_components.cli.rules import UnknownRuleError, explain, find_rule, list_rules
from kthena_components.cli.sarif import SarifReport
from kthena_components.cli.stack import StackOptions
from kthena_components.cli.terminal import Progress, paint
from kthena_components.core.findings import count_of
from kthena_components.core.schema.versions import NAMED, TITLES, VERSIONS
from kthena_components.core.values.visible import visible
from kthena_components.judge.levels import SettingError, parse_releases
from kthena_components.reading.files import Unreadable

CLEAN, FOUND, WRONG = 0, 1, 2
INTERRUPTED = 128 + signal.SIGINT
"""What shells return for a command that Ctrl-C ended."""
_DIGITS = 9
_OBJECTS = 50_000
FORMATS: dict[str, Callable[[Write], Report]] = {
    "text": lambda write: TextReport(write, lambda word: paint(word, sys.stdout)),
    "json": JsonReport,
    "sarif": SarifReport,
    "markdown": MarkdownReport,
    "github": GithubReport,
}
_EXITS = """exit status:
  0  no mandatory findings
  1  at least one mandatory finding
  2  wrong usage, a file that you named and that cannot be read, or a rule that failed
     (rule-fault); everything else is still checked, and 2 takes precedence over 1"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:] if arguments is None else arguments
    parser, checking = _parsers(alone=list(arguments[:1]) == ["check"])
    if "_ARGCOMPLETE" in os.environ:
        _complete(parser)
    asked = parser.parse_args(arguments)
    try:
        return _check(asked, checking) if asked.command == "check" else asked.run(asked)
    except BrokenPipeError:
        # The reader has closed the pipe. Without this, Python reports that again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return WRONG
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that completes a command, and exit. Needs the extra `terminal`."""
    with suppress(ModuleNotFoundError):
        import argcomplete  # noqa: PLC0415

        argcomplete.autocomplete(parser)


def _parsers(*, alone: bool) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """Return the parsers of the program and of `check`.

    Args:
        alone: Leave out the other commands: loading them takes a tenth of a second.
    """
    parser = argparse.ArgumentParser(
        prog="kthena-components", description="Check multi-node LLM serving on Kubernetes."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser(
        "check",
        help="check manifests in files; needs no cluster",
        description="Check Kubernetes manifests: each engine must start as many ranks as its pods "
        "request GPUs, and each object must satisfy its CRD and the admission rules that --rules "
        "lists.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    checking.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="a YAML or JSON file, a folder of such files, or - for standard input",
    )
    checking.add_argument(
        "--format", choices=FORMATS, default="text", help="output format; default: text"
    )
    checking.add_argument(
        "--level",
        metavar="dev|staging|prod|FILE",
        help="the level of each rule: that of an environment, or from FILE, a JSON file that maps "
        "rules (* for all others) to mandatory, advisory or disabled, or a config of the policy "
        "pack",
    )
    _releases(checking)
    _together(checking)
    _models_and_rules(checking)
    if not alone:
        _add_others(commands)
    return parser, checking


def _releases(checking: argparse.ArgumentParser) -> None:
    for system in NAMED:
        known = VERSIONS[system]
        checking.add_argument(
            f"--{system}-version",
            metavar="VERSION",
            help=f"the {TITLES[system]} release to check its objects against, such as {known[-2]}; "
            f"default: the one in FILE, or {known[-1]}",
        )
    checking.add_argument(
        "--release",
        metavar="SYSTEM=VERSION",
        action="append",
        default=[],
        help="the release of another system to check its objects against, such as lws=0.9; can be "
        f"repeated; default: the newest that is known ({_newest()})",
    )


def _models_and_rules(checking: argparse.ArgumentParser) -> None:
    checking.add_argument(
        "--model-config",
        metavar="MODEL=PATH",
        action="append",
        default=[],
        help="the config.json of a model that is not in the built-in table, or its folder; can be "
        "repeated",
    )
    checking.add_argument("--rules", action="store_true", help="list all rules and exit")
    checking.add_argument("--explain", metavar="RULE", help="print a rule's documentation and exit")


def _reading(checking: argparse.ArgumentParser) -> None:
    """Add the options for files that are found."""
    checking.add_argument(
        "--render",
        action=argparse.BooleanOptionalAction,
        help="render Helm charts and kustomizations in folders, with helm, kustomize or kubectl on "
        "PATH, and check the result; default: as far as possible; with --render, it is an error "
        "if something is not rendered",
    )
    checking.add_argument(
        "--strict-read",
        action="store_true",
        help="exit with 2 for everything in folders that cannot be read or rendered",
    )


def _newest() -> str:
    others = (system for system in VERSIONS if system not in NAMED)
    return ", ".join(f"{system} {VERSIONS[system][-1]}" for system in others)


def _add_others(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    from kthena_components.cli import (  # noqa: PLC0415
        convert,
        doctor,
        policy_pack,
        review,
        rights,
        status,
    )

    for command in (convert, review, policy_pack, doctor, status, rights):
        command.add_parser(commands)


def _together(checking: argparse.ArgumentParser) -> None:
    """Add the options for all files and for all objects together."""
    _reading(checking)
    checking.add_argument(
        "--whole",
        action="store_true",
        help="the paths contain all objects of one cluster: report missing objects, and count an "
        "object in two files twice",
    )
    checking.add_argument(
        "--gpu-budget",
        metavar="N",
        type=_number,
        help="the maximum number of GPUs that all pods together may request",
    )
    checking.add_argument(
        "--gpu-types",
        metavar="NAME,NAME",
        default="",
        help="the GPU resources (nvidia.com/gpu) and products (NVIDIA-H100-80GB-HBM3) that pods "
        "may request",
    )


def _check(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    try:
        named = {system: getattr(asked, f"{system}_version") for system in NAMED}
        others = dict(word.partition("=")[::2] for word in asked.release)
        versions = {**parse_releases(others), **{k: v for k, v in named.items() if v is not None}}
        settings = read_settings(asked.level, versions)
        told = explain(find_rule(asked.explain)) if asked.explain is not None else None
        shapes = read_shapes(asked.model_config)
    except (ModelConfigError, SettingError, UnknownRuleError) as error:
        parser.exit(WRONG, f"{parser.prog}: {visible(str(error))}\n")
    if asked.rules:
        told = list_rules()
    if told is not None:
        sys.stdout.write(f"{told}\n")
        return CLEAN
    if not asked.paths:
        parser.error("give a file, a folder, or - for standard input")
    # Almost all objects are freed with their document and none is in a cycle, so the collector
    # would waste a tenth of the time.
    gc.set_threshold(_OBJECTS, 20, 20)
    types = tuple(word.strip() for word in asked.gpu_types.split(",") if word.strip())
    given = CheckOptions(
        settings=settings,
        # In UTC, so that a waiver expires for everybody at the same time.
        today=datetime.now(UTC).date(),
        asked=StackOptions(
            whole=asked.whole,
            budget=settings.gpu_budget if asked.gpu_budget is None else asked.gpu_budget,
            gpu_types=types or settings.gpu_types,
            versions=settings.versions,
        ),
        shapes=shapes,
        render=asked.render,
        strict_read=asked.strict_read,
    )
    return _run(asked.paths, given, FORMATS[asked.format](sys.stdout.write))


def _number(text: str) -> int:
    """Parse a number of GPUs.

    Raises:
        argparse.ArgumentTypeError: It is not a number.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is not a number of GPUs")
    return int(text)


def _run(paths: Sequence[str], given: CheckOptions, report: Report) -> int:
    summary = Summary()
    with Progress(sys.stderr, lambda: f"checked {count_of(summary.objects, 'object')}") as progress:
        for result in check(paths, given, summary):
            with progress.pause():
                if isinstance(result, Unreadable):
                    sys.stderr.write(f"{visible(str(result))}\n")
                    report.skip(result)
                else:
                    report.add(result)
    report.close(summary)
    sys.stdout.flush()
    if summary.unreadable or summary.faults:
        return WRONG
    return FOUND if summary.mandatory else CLEAN
