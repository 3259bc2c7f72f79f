"""`kthena-components policy-pack`: writes the folder that `pulumi preview --policy-pack` takes."""

import argparse
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from kthena_components import __version__
from kthena_components.checker.levels import ENVIRONMENTS
from kthena_components.cli.main import ERROR, SUCCESS
from kthena_components.core.values.display import visible
from kthena_components.reading.files import unwritten

FOLDER, SETTINGS, START, LEVELS = "policies", "PulumiPolicy.yaml", "__main__.py", "levels"
MISSING = "pulumi-policy is not installed: pip install 'kthena-components[policy]'"
"""pip takes the extra from the metadata of the installed wheel, and asks no index for the wheel."""
_PROGRAM = '''\
"""Starts the policy pack when Pulumi runs this folder. The policies are in the package."""

import gc
import sys
from pathlib import Path

# What is loaded stays, and what a check makes is freed at once: the collector hardly finds any.
gc.set_threshold(50_000, 20, 20)
# A package beside this folder takes precedence over an installed one: a review passes both from
# the base of a branch.
beside = Path(__file__).resolve().parent.parent
if (beside / "kthena_components" / "core").is_dir():
    sys.path.insert(0, str(beside))

from pulumi_policy import PolicyPack

from kthena_components.policies.pack import POLICIES

if __name__ == "__main__":
    gc.freeze()
    PolicyPack(name="kthena-components", policies=POLICIES)
'''


class PackError(Exception):
    """The policies cannot run. The text is for the user."""


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", help_text: str
) -> None:
    """Add the command to the parser of `kthena-components`."""
    parser = commands.add_parser(
        "policy-pack",
        help=help_text,
        description="Write a folder for `pulumi preview --policy-pack FOLDER`, and the levels of "
        "each environment for `--policy-pack-config FOLDER/levels/prod.json`. Files of levels that "
        "exist already stay as they are.",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="such as policies")
    parser.set_defaults(run=lambda asked: run(asked, parser))


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the folder, and name it."""
    if not can_run():
        parser.exit(ERROR, f"{parser.prog}: {MISSING}\n")
    try:
        problem = (
            "" if _is_free(asked.folder) else f"{asked.folder} has another policy pack or program"
        )
        if not problem:
            write_pack(asked.folder)
    except OSError as error:
        problem = unwritten(asked.folder, error)
    if problem:
        parser.exit(ERROR, f"{parser.prog}: {visible(problem)}\n")
    sys.stdout.write(f"wrote {visible(str(asked.folder))}\n")
    return SUCCESS


def _is_free(folder: Path) -> bool:
    """Return whether the pack may be written: no other pack or program is in the folder."""
    if not (folder / START).exists():
        return not (folder / SETTINGS).exists()
    return "kthena_components" in (folder / START).read_text(errors="replace")


def can_run() -> bool:
    """Return whether the interpreter of this command can run the policies."""
    return find_spec("pulumi_policy") is not None


def write_pack(folder: Path, virtualenv: str | None = None) -> None:
    """Write the pack, with levels if there are none yet.

    Args:
        folder: Where to write it.
        virtualenv: The environment that runs it. Default: the environment of this command.

    Raises:
        OSError: The folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SETTINGS).write_text(_settings(virtualenv or virtualenv_from(folder)))
    (folder / START).write_text(_PROGRAM)
    if not (folder / LEVELS).exists():
        (folder / LEVELS).mkdir()
        for environment in ENVIRONMENTS:
            (folder / LEVELS / f"{environment}.json").write_text(levels_of(environment))


def complete(judge: Path, *, runs: bool) -> None:
    """Add what the checks of a base need and its files lack: a pack, levels, an environment.

    Args:
        runs: Whether the policies will run.

    Raises:
        PackError: They will run, and pulumi-policy is not installed.
    """
    own = judge / ".venv"
    try:
        if not (judge / FOLDER / SETTINGS).is_file():
            if runs and not can_run():
                raise PackError(MISSING)
            write_pack(judge / FOLDER)
        if sys.prefix != sys.base_prefix and not own.exists():
            own.symlink_to(sys.prefix)
    except OSError as error:
        raise PackError(f"the policies of the base: {unwritten(judge, error)}") from error


def virtualenv_from(folder: Path) -> str | None:
    """Return the virtual environment of this command: a relative path if both share a parent.

    None outside of a virtual environment. Pulumi then starts the first python3 on PATH.
    """
    if sys.prefix == sys.base_prefix:
        return None
    beside, own = Path(os.path.abspath(folder)).parent, Path(sys.prefix)  # noqa: PTH100 - keeps links
    return f"../{own.name}" if own.parent == beside else str(own)


def levels_of(environment: str) -> str:
    """Write the config of the policies for an environment.

    The levels themselves are in the package, so the config has only the name.
    """
    named = {"enforcementLevel": "mandatory", "environment": environment}
    config = {
        "serving-rules": named,
        "serving-advice": "advisory",
        "serving-groups": named,
        "serving-groups-advice": "advisory",
    }
    lines = (f"  {json.dumps(policy)}: {json.dumps(config[policy])}" for policy in config)
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _settings(virtualenv: str | None) -> str:
    options = "" if virtualenv is None else f"    virtualenv: {json.dumps(virtualenv)}\n"
    return (
        "description: Checks multi-node LLM serving, in components and in any manifest, during a "
        f"preview\nversion: {__version__}\n"
        f"runtime:\n  name: python\n  options:\n    toolchain: pip\n{options}"
    )
