"""Start and stop a local cluster with fake GPU nodes (`make sandbox`, `make sandbox-down`)."""

import argparse
import signal
import sys
import time
from pathlib import Path

from kthena_components.cluster.client import ClusterError
from kthena_components.core.findings import count_of
from sandbox.cluster import Size, deployed, down, require_free, up
from sandbox.layout import FOLDER, make
from sandbox.processes import SandboxError
from toolchain.programs import ToolchainError

MIB = 2**20
OWN_PROJECT = "kthena-components"
"""The project of this repository, which `make up` deploys."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Progress goes to stderr, and the line for the shell to stdout."""
    signal.signal(signal.SIGTERM, _leave)
    options = _parser().parse_args(arguments)
    try:
        if options.command == "down":
            _down(options.folder)
        else:
            _up(options)
    except (SandboxError, ToolchainError, ClusterError) as error:
        _say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def _down(folder: Path) -> None:
    stacks = deployed(folder)
    _say(f"stopped {', '.join(down(folder)) or 'nothing: no program was running'}")
    for stack, objects in sorted(stacks.items()):
        project, _, name = stack.rpartition("/")
        ours = project.endswith(f"/{OWN_PROJECT}")
        command = f"make up STACK={name} ARGS=" if ours else f"pulumi up --stack {name} "
        _say(
            f"{stack} was still deployed, with {count_of(objects, 'object')}. Its state still has "
            "them, so on another cluster an update would change nothing. "
            f"There, run `{command}--refresh`"
        )


def _up(options: argparse.Namespace) -> None:
    size = Size(racks=options.racks, nodes=options.nodes, gpus=options.gpus)
    require_free(options.folder)
    _say(f"starting a cluster of {size}, about 10 seconds")
    began = time.monotonic()
    sandbox = up(options.folder, size, _say)
    taken, held = time.monotonic() - began, sandbox.processes.memory() // MIB
    end = make("sandbox-down", options.folder)
    count = count_of(len(sandbox.processes.running()), "program")
    _say(f"ready after {taken:.0f} s: {count}, {held} MiB. Stop it with {end}")
    print(f"export KUBECONFIG={sandbox.layout.kubeconfig}")  # noqa: T201 - for the shell


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser("up", help="start a cluster, and print the KUBECONFIG line")
    ending = commands.add_parser("down", help="stop the cluster, and remove its folder")
    for command in (starting, ending):
        command.add_argument("--folder", type=Path, default=FOLDER, help=f"default: {FOLDER}")
    for name, default in (("racks", 4), ("nodes", 4), ("gpus", 8)):
        of = {"racks": "racks", "nodes": "nodes per rack", "gpus": "GPUs per node"}[name]
        starting.add_argument(
            f"--{name}", type=_count, default=default, help=f"number of {of}; default: {default}"
        )
    return parser


def _count(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) <= len("9999") else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 9999")
    return number


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _leave(number: int, _frame: object) -> None:
    """Turn a signal into an exception, so that the started programs are stopped."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
