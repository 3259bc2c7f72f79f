"""`kthena-components doctor`: checks before an update that a cluster has everything it needs."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kthena_components.cli.main import ERROR
from kthena_components.cli.shared_options import add_cluster, opened
from kthena_components.cli.terminal import Progress, paint
from kthena_components.core.values.display import visible, visible_lines

if TYPE_CHECKING:
    from kthena_components.cluster.stack_servings import ReadStack

_EXITS = """exit status:
  0  nothing failed
  1  a check failed: an update would fail, or its pods would never run
  2  wrong usage, or the cluster cannot be read

Each line begins with ok, warn, fail, or unknown if the result could not be determined."""


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", help_text: str
) -> None:
    """Add the command to the parser of `kthena-components`."""
    parser = commands.add_parser(
        "doctor",
        help=help_text,
        description="Check a cluster: Volcano and Kthena with their versions and controllers, "
        "the scheduler's plugins, queues, HyperNodes, GPUs and your RBAC permissions. This "
        "changes nothing in the cluster.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--stack",
        metavar="STACK",
        help="check what this stack of the project in the current folder needs",
    )
    add_cluster(parser)
    parser.add_argument(
        "--allow-exec",
        action="store_true",
        help="allow a kubeconfig that the stack file names to run its login program and to send "
        "its token file; a kubeconfig that you name yourself may always do so",
    )
    parser.set_defaults(run=lambda asked: run(asked, parser))


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write one line for each check, and return the exit status."""
    # Imported here because most commands do not need it.
    from kthena_components.cluster.requirements import DEFAULT, requirements_of_backends  # noqa: PLC0415
    from kthena_components.cluster.stack_servings import (  # noqa: PLC0415
        StackFileError,
        read_stack_file,
        usable_kubeconfig,
    )

    need = requirements_of_backends(DEFAULT)
    stack: ReadStack | None = None
    if asked.stack is not None:
        try:
            stack = read_stack_file(Path(), asked.stack)
            asked.context = asked.context or stack.spec.context
            if asked.kubeconfig is None:
                allowed = asked.allow_exec
                asked.kubeconfig = usable_kubeconfig(stack, asked.context, allow_exec=allowed)
        except StackFileError as error:
            parser.exit(ERROR, f"{parser.prog}: {visible(str(error))}\n")
        need = stack.need
    with opened(asked, parser) as (cluster, version):
        from kthena_components.cluster.doctor import check_stack_file, diagnose  # noqa: PLC0415
        from kthena_components.cluster.fetch import fetch  # noqa: PLC0415
        from kthena_components.cluster.snapshot import exit_status, render_lines  # noqa: PLC0415

        with Progress(sys.stderr, "reading the cluster"):
            seen = fetch(cluster, version, need)
        lines = [*check_stack_file(stack), *diagnose(seen, need)]
        sys.stdout.write(f"{_painted(visible_lines(render_lines(lines)))}\n")
        sys.stdout.flush()
        return exit_status(lines)


def _painted(text: str) -> str:
    """Return lines whose first word has its colour."""
    split = (line.partition(" ") for line in text.split("\n"))
    return "\n".join(f"{paint(word, sys.stdout)}{gap}{rest}" for word, gap, rest in split)
