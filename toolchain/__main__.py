"""Find or build Pulumi and run stacks, for `make toolchain`, `make env` and `make up`."""

import argparse
import os
import shlex
import signal
import sys

from toolchain import local_stack
from toolchain.locate import ensure, ensure_languages, ensure_rendering, ensure_sandbox, exports
from toolchain.programs import ROOT, ToolchainError


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Progress goes to stderr, because `eval "$(… env)"` reads stdout."""
    signal.signal(signal.SIGTERM, _leave)
    options = _parser().parse_args(arguments)
    try:
        match options.command:
            case "ensure":
                ensure(os.environ, _say)
            case "ensure-sandbox":
                for purpose in options.parts or ["sandbox"]:
                    ensure_sandbox(os.environ, _say, purpose)
            case "ensure-rendering":
                for purpose in ("rendering", "alerts"):
                    ensure_rendering(os.environ, _say, purpose)
            case "ensure-languages":
                ensure_languages(os.environ, _say)
                ensure_rendering(os.environ, _say, "generators")
            case "env":
                _print_exports(stacks=options.stacks)
            case action:
                local_stack.run(action, options.stack, options.arguments, _say)
    except ToolchainError as error:
        _say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m toolchain", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("ensure", help="find Pulumi and its Kubernetes provider, or build them")
    sandbox = commands.add_parser("ensure-sandbox", help="build the programs of the sandbox")
    sandbox.add_argument(
        "parts", nargs="*", help="parts of conformance, for the programs that only they need"
    )
    commands.add_parser("ensure-rendering", help="find helm, kustomize and promtool, or build them")
    commands.add_parser(
        "ensure-languages",
        help="find Pulumi's language hosts and generators of SDKs, or build them",
    )
    env = commands.add_parser("env", help="print the shell variables that put them on PATH")
    env.add_argument(
        "--stacks", action="store_true", help="and those with which pulumi finds the local stacks"
    )
    for action in local_stack.ACTIONS:
        command = commands.add_parser(
            action, help=f"run `pulumi {action}` with the state in .state/"
        )
        command.add_argument("--stack", default="dev", help="default: dev")
        command.add_argument("arguments", nargs="*", help="more arguments for pulumi, after --")
    return parser


def _print_exports(*, stacks: bool) -> None:
    """Print the variables for `pulumi` and for the commands of this checkout's packages."""
    variables = exports(os.environ, _say)
    if stacks:
        variables |= local_stack.shell_variables({**os.environ, **variables}, _say)
    path = variables.get("PATH", os.environ.get("PATH", os.defpath)).split(os.pathsep)
    own = str(ROOT / ".venv" / "bin")
    # Last, so that it hides none of the user's programs. If it is on PATH already, it stays there.
    variables["PATH"] = os.pathsep.join(path if own in path else [*path, own])
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _leave(number: int, _frame: object) -> None:
    """Turn a signal into an exception, so that a build stops its `go` process."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
