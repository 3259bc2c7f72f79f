"""Runs a stack of this project with its state, passphrase and secrets salt in `.state/`.

`pulumi stack init` writes an `encryptionsalt` into the committed stack file, so a first try would
change the checkout. Therefore this creates the stack from an empty project of the same name inside
`.state/`, where Pulumi stores the salt, and every later command reads a copy of the committed file
with that salt. It never writes the committed file. Plain `pulumi up --stack dev` works as usual:
with the user's own backend, or with these stacks after `eval "$(make -s env)"`.
"""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from toolchain.build import Report
from toolchain.locate import exports
from toolchain.programs import ROOT, ToolchainError

ACTIONS: Mapping[str, tuple[str, ...]] = {
    "up": ("--yes", "--skip-preview"),
    "preview": (),
    "destroy": ("--yes", "--skip-preview"),
}
SALT = "encryptionsalt:"


def run(action: str, stack: str, arguments: list[str], report: Report) -> NoReturn:
    """Replace this process by a Pulumi command on the local stack.

    It is not a child process, so that Ctrl-C reaches only Pulumi, which then stops cleanly.
    """
    config = committed_config(ROOT, stack)
    state = ROOT / ".state"
    state.mkdir(exist_ok=True)
    environ = {**os.environ, **exports(os.environ, report), **state_variables(state, os.environ)}
    copy = state / config.name
    copy.write_text(with_salt(config.read_text(), _salt_of(stack, state, environ)))
    os.chdir(ROOT)
    os.execvpe(
        "pulumi",
        [
            *("pulumi", action, *ACTIONS[action]),
            *("--stack", stack, "--config-file", str(copy), *arguments),
        ],
        environ,
    )


def shell_variables(environ: Mapping[str, str], report: Report) -> dict[str, str]:
    """Return the variables with which plain Pulumi finds the stacks of `make up`, and create none.

    Empty if the user has a backend: a team keeps its state where all of it finds it.
    """
    if environ.get("PULUMI_BACKEND_URL") or _logged_in(environ):
        return {}
    state = ROOT / ".state"
    state.mkdir(exist_ok=True)
    report(
        "pulumi now finds the stacks that `make up` and `make preview` made, in .state/. For your "
        "own backend: unset PULUMI_BACKEND_URL PULUMI_CONFIG_PASSPHRASE_FILE; pulumi login"
    )
    return state_variables(state, environ)


def _logged_in(environ: Mapping[str, str]) -> bool:
    """Return whether `pulumi login` has chosen a backend."""
    home = Path(environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    try:
        return bool(json.loads((home / "credentials.json").read_text()).get("current"))
    except (OSError, ValueError, AttributeError):
        return False


def committed_config(root: Path, stack: str) -> Path:
    """Return the stack's file, or raise with the list of stacks."""
    config = root / "stacks" / f"Pulumi.{stack}.yaml"
    if not config.is_file():
        known = sorted(
            path.stem.removeprefix("Pulumi.") for path in config.parent.glob("Pulumi.*.yaml")
        )
        stacks = ", ".join(known) or "none"
        raise ToolchainError(f"there is no stack {stack!r}. The stacks are: {stacks}.")
    return config


def state_variables(state: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the backend's URL and, if the user has set no passphrase, a local one."""
    # Without metadata, there is no side file. An incomplete one would make the state unreadable.
    backend = f"{state.as_uri()}?metadata=skip"
    variables = {"PULUMI_BACKEND_URL": backend, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    if not environ.keys() & {"PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"}:
        variables["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(_passphrase(state))
    return variables


def with_salt(config: str, salt: str) -> str:
    """Add the local salt to a stack file, unless it has one."""
    if any(line.startswith(SALT) for line in config.splitlines()):
        return config
    return f"{config.rstrip()}\n{salt}\n".lstrip()


def _passphrase(state: Path) -> Path:
    file = state / "passphrase"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(24))
    return file


def _salt_of(stack: str, state: Path, environ: Mapping[str, str]) -> str:
    """Return the line with the salt that Pulumi wrote. Create the stack first if necessary."""
    project = state / "init"
    project.mkdir(exist_ok=True)
    (project / "Pulumi.yaml").write_text(f"name: {_project_name()}\nruntime: python\n")
    settings = project / f"Pulumi.{stack}.yaml"
    command = ["pulumi", "stack", "select", "--create", stack, "--non-interactive"]
    subprocess.run(command, cwd=project, env=environ, check=True, stdout=sys.stderr)
    if not settings.exists():  # somebody has run `pulumi stack init`; a secret needs a salt
        command = ["pulumi", "config", "set", "--stack", stack, "--secret", "any", "value"]
        subprocess.run(command, cwd=project, env=environ, check=True, stdout=sys.stderr)
    return next(line for line in settings.read_text().splitlines() if line.startswith(SALT))


def _project_name() -> str:
    for line in (ROOT / "Pulumi.yaml").read_text().splitlines():
        if line.startswith("name:"):
            return line.removeprefix("name:").strip()
    raise ToolchainError("Pulumi.yaml has no line `name: …`")
