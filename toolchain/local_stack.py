"""Run a stack of this project with its state, passphrase and secrets salt in `.state/`.

`pulumi stack init` writes an `encryptionsalt` into the stack's file, which is committed: merely
trying the project would change the checkout. So the stack is made from an empty project of the
same name inside `.state/`, where Pulumi leaves the salt, and every later command reads a copy of
the committed file with that salt added. The committed file is never written, and plain
`pulumi up --stack dev` with a backend of the user's own works as anywhere else.
"""

import os
import secrets
import subprocess
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
    """Become one Pulumi command on the local stack.

    This process is replaced, not a parent: Ctrl-C must reach Pulumi alone, which ends in order.
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


def committed_config(root: Path, stack: str) -> Path:
    """Return the stack's file, or say which stacks there are."""
    config = root / "stacks" / f"Pulumi.{stack}.yaml"
    if not config.is_file():
        known = sorted(
            path.stem.removeprefix("Pulumi.") for path in config.parent.glob("Pulumi.*.yaml")
        )
        raise ToolchainError(f"there is no stack {stack!r}. Known: {', '.join(known) or 'none'}.")
    return config


def state_variables(state: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the backend's address and, if the user chose no passphrase, one of this checkout."""
    # Without metadata there is no side file, whose half-written copy would hide the whole state.
    backend = f"{state.as_uri()}?metadata=skip"
    variables = {"PULUMI_BACKEND_URL": backend, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    if not environ.keys() & {"PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"}:
        variables["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(_passphrase(state))
    return variables


def with_salt(config: str, salt: str) -> str:
    """Add the local salt to a stack's file, unless the user has already given it one."""
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
    """Return the line that Pulumi wrote when it made the stack, making the stack if need be."""
    project = state / "init"
    project.mkdir(exist_ok=True)
    (project / "Pulumi.yaml").write_text(f"name: {_project_name()}\nruntime: python\n")
    command = ["pulumi", "stack", "select", "--create", stack, "--non-interactive"]
    subprocess.run(command, cwd=project, env=environ, check=True)
    settings = project / f"Pulumi.{stack}.yaml"
    return next(line for line in settings.read_text().splitlines() if line.startswith(SALT))


def _project_name() -> str:
    for line in (ROOT / "Pulumi.yaml").read_text().splitlines():
        if line.startswith("name:"):
            return line.removeprefix("name:").strip()
    raise ToolchainError("Pulumi.yaml has no line `name: …`.")
