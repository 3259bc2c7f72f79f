"""Run the real Pulumi engine on a copy of a project, with its state and output in one folder.

The copy keeps the checkout clean: `stack init` writes a salt into the stack's file, and manifests
are rendered below the project.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.forked_python import environment_folder
from toolchain.locate import exports
from toolchain.programs import cache_root

ROOT = Path(__file__).resolve().parents[2]
COMPILED = ROOT / "tests" / "support" / "compiled"
"""Where copies of the package are compiled once."""
STACK_PROGRAM = ("Pulumi.yaml", "__main__.py", "stacks")
SECONDS = 600
SECONDS_TO_CANCEL = 5
STATE_VARIABLES = {
    "PULUMI_CONFIG_PASSPHRASE": "only for tests",
    "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
    "PULUMI_SKIP_CHECKPOINTS": "true",  # the state is written once: the tests run twice as fast
    "PULUMI_SKIP_UPDATE_CHECK": "true",
    "PULUMI_DEBUG_COMMANDS": "true",  # or --event-log is not a flag
    "PYTHONPATH": f"{COMPILED}:{ROOT}",
}


_BEGUN: dict[tuple[object, ...], tuple[bytes, dict[Path, bytes]]] = {}
"""The settings and the state after `stack init`, by its input."""
_SECRET: dict[tuple[object, ...], bytes] = {}
"""The settings with another secret, by the input of `config set`, which has the salt of the key."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that the engine did to one resource."""

    op: str
    """create, update, same, delete; create-replacement, replace, delete-replaced."""
    type: str
    """Pulumi's type: `kubernetes:apps/v1:StatefulSet`."""
    name: str

    @property
    def kind(self) -> str:
        """Last part of the type."""
        return self.type.rpartition(":")[2]


@dataclass(frozen=True, slots=True)
class Run:
    """One command: how it ended, what it showed, and what it did."""

    code: int
    text: str
    """Both outputs, without colours."""
    events: list[dict[str, Any]] = field(default_factory=list, repr=False)

    @property
    def changes(self) -> dict[str, int]:
        """Resources by operation, as the engine counts them."""
        summaries = [e["summaryEvent"] for e in self.events if "summaryEvent" in e]
        return dict(summaries[-1].get("resourceChanges") or {}) if summaries else {}

    @property
    def steps(self) -> list[Step]:
        """What the engine did, in order, without what stayed the same."""
        found = (event["resourcePreEvent"]["metadata"] for event in self.events
                 if "resourcePreEvent" in event)  # fmt: skip
        return [_step(data) for data in found if data["op"] != "same"]

    @property
    def messages(self) -> list[str]:
        """What the program told the user, each once: the CLI shows the same in Diagnostics."""
        told = (event["diagnosticEvent"] for event in self.events if "diagnosticEvent" in event)
        return list(dict.fromkeys(
            item["message"].rstrip("\n") for item in told
            if item["severity"] != "debug" and not item.get("ephemeral")
        ))  # fmt: skip

    def require(self) -> None:
        """Fail the test when the command failed."""
        assert self.code == 0, self.text

    def ops(self, kind: str) -> Counter[str]:
        """Count the operations on resources of one kind."""
        return Counter(step.op for step in self.steps if step.kind == kind)


@dataclass(slots=True)
class Stack:
    """A stack of a copied project."""

    project: Path
    name: str
    variables: dict[str, str]
    settings: Path
    """The copied stack file."""
    seconds: int = SECONDS
    """After which a command that has not ended is interrupted."""

    @classmethod
    def make(
        cls,
        source: Path,
        name: str,
        folder: Path,
        variables: Mapping[str, str] | None = None,
        *,
        forked: bool = True,
    ) -> "Stack":
        """Copy a project into a folder and make a stack of it.

        Args:
            source: The folder of the project.
            name: The name of the stack.
            folder: Where the copy, the state and temporary files lie.
            variables: More variables of the environment.
            forked: Whether programs are forks of one process. False where the cost of a program is
                measured, or its process is killed.
        """
        project, state, temporary = (folder / name for name in ("project", "state", "temporary"))
        usual = {**environment(), **STATE_VARIABLES}
        python = environment_folder(usual) if forked else Path(sys.prefix)
        _copy(source, project, python)
        state.mkdir()
        temporary.mkdir()  # a provider that is killed leaves its kubeconfig there
        own = {
            "PULUMI_BACKEND_URL": state.as_uri(), "KUBECONFIG": str(folder / "no-kubeconfig"),
            "TMPDIR": str(temporary), "PULUMI_PYTHON_CMD": str(python / "bin" / "python"),
        }  # fmt: skip
        merged = {**usual, **own, **(variables or {})}
        settings = project / _config_folder(project) / f"Pulumi.{name}.yaml"
        stack = cls(project, name, merged, settings)
        stack._begin(state)
        return stack

    def _begin(self, state: Path) -> None:
        """Run `stack init`, or write what it wrote for another stack with the same input.

        Each time it would draw a salt and derive a key from the passphrase in a million rounds.
        """
        variables = {**self.variables, "KUBECONFIG": "", "TMPDIR": ""}
        variables["PULUMI_BACKEND_URL"] = variables["PULUMI_BACKEND_URL"].replace(
            state.as_uri(), "state"
        )
        key = (self.name, *self._read(), *sorted(variables.items()))
        if key not in _BEGUN:
            self.pulumi("stack", "init", self.name, "--no-select").require()
            written = [path for path in state.rglob("*") if path.is_file()]
            _BEGUN[key] = (
                self.settings.read_bytes(),
                {path.relative_to(state): path.read_bytes() for path in written},
            )
            return
        settings, files = _BEGUN[key]
        self.settings.write_bytes(settings)
        for path, content in files.items():
            (state / path).parent.mkdir(parents=True, exist_ok=True)
            (state / path).write_bytes(content)

    def up(self, *flags: str) -> Run:
        """Update without a preview before it."""
        return self._with_events("up", "--yes", "--skip-preview", *flags)

    def preview(self, *flags: str) -> Run:
        """Preview."""
        return self._with_events("preview", *flags)

    def preview_with_pack(self, levels: str | Path) -> Run:
        """Preview with the policy pack of this checkout and a file of its levels."""
        pack = self.project.parent / "policies"
        if not pack.exists():
            _copy(ROOT / "policies", pack, Path(self.variables["PULUMI_PYTHON_CMD"]).parents[1])
        return self.preview("--policy-pack", str(pack), "--policy-pack-config", str(levels))

    def refresh(self) -> Run:
        """Compare the state with what is there."""
        return self._with_events("refresh", "--yes", "--skip-preview")

    def destroy(self) -> Run:
        """Take everything down."""
        return self._with_events("destroy", "--yes", "--skip-preview")

    def change(self, edit: Callable[[dict[str, Any]], object]) -> None:
        """Edit the config of the copied stack file, keys as they are written there."""
        content = yaml.safe_load(self.settings.read_text()) if self.settings.exists() else {}
        edit(content.setdefault("config", {}))
        self.settings.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))

    def set_secret(self, key: str, value: str, *flags: str) -> None:
        """Set a config value that is encrypted in the stack file; it goes in by a pipe."""
        arguments = ("config", "set", "--secret", *flags, key, "--stack", self.name)
        given = (arguments, value, self.variables.get("PULUMI_CONFIG_PASSPHRASE"), *self._read())
        if given not in _SECRET:
            self.pulumi(*arguments, stdin=value).require()
            _SECRET[given] = self.settings.read_bytes()
        self.settings.write_bytes(_SECRET[given])

    def _read(self) -> tuple[bytes, ...]:
        """Read what the CLI reads of a project: its settings, and those of the stack."""
        files = (self.project / "Pulumi.yaml", self.settings)
        return tuple(file.read_bytes() if file.exists() else b"" for file in files)

    @property
    def state_text(self) -> str:
        """The whole state as it lies on disk."""
        files = (self.project.parent / "state" / ".pulumi" / "stacks").rglob(f"{self.name}.json")
        return next(files).read_text()

    @property
    def resources(self) -> list[dict[str, Any]]:
        """Resources in the state, the stack itself left out."""
        latest = json.loads(self.state_text)["checkpoint"].get("latest") or {}
        return [r for r in latest.get("resources") or [] if r["type"] != "pulumi:pulumi:Stack"]

    @property
    def outputs(self) -> dict[str, Any]:
        """What the stack exports; secrets stay encrypted."""
        latest = json.loads(self.state_text)["checkpoint"]["latest"]
        (root,) = (r for r in latest["resources"] if r["type"] == "pulumi:pulumi:Stack")
        return dict(root.get("outputs") or {})

    def rendered(self) -> dict[str, dict[str, Any]]:
        """Manifests that were written below the project, by kind and name."""
        bodies = [yaml.safe_load(path.read_text()) for path in self._files()]
        return {f"{body['kind']}/{body['metadata']['name']}": body for body in bodies}

    def _files(self) -> Iterator[Path]:
        return self.project.glob("rendered/**/1-manifest/*.yaml")

    def _with_events(self, command: str, *flags: str) -> Run:
        log = self.project.parent / "events.jsonl"
        log.unlink(missing_ok=True)
        run = self.pulumi(command, "--stack", self.name, "--event-log", str(log), *flags)
        return replace(run, events=read_events(log.read_text() if log.exists() else ""))

    def pulumi(self, *arguments: str, stdin: str = "") -> Run:
        """Run one command of the CLI. What hangs is interrupted, so that it ends its plugins."""
        process = subprocess.Popen(
            ["pulumi", *arguments, "--non-interactive", "--color", "never"],
            cwd=self.project, env=self.variables, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            text, _ = process.communicate(stdin, self.seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            time.sleep(SECONDS_TO_CANCEL)
            process.send_signal(signal.SIGINT)  # the first asks, the second tells
            text, _ = process.communicate()
            raise AssertionError(f"no end after {self.seconds} seconds:\n{text}") from None
        return Run(process.returncode, text)


@cache
def environment() -> dict[str, str]:
    """Give the variables that the toolchain sets, without what the machine says of Pulumi."""
    found = exports(os.environ, print)
    kept = {
        key: value
        for key, value in os.environ.items()
        if key == "PULUMI_HOME" or not key.startswith(("PULUMI_", "KUBE"))
    }
    usual = {**kept, **found}
    return {**usual, "PULUMI_HOME": str(_home_without_logs(usual.get("PULUMI_HOME")))}


def _home_without_logs(usual: str | None) -> Path:
    """Make a PULUMI_HOME with the plugins of the usual one, in which no command leaves a log.

    Otherwise each command reads the names of all earlier logs, and waits until its own is on the
    disk, which can take seconds where other programs write, too. With a file in the place of the
    folder of logs it goes on without one.

    Source: Pulumi 3.259.0 pkg/logging/encrypted.go StartLogging and UpgradeToEncrypted.
    """
    home = cache_root() / "home-of-tests"
    home.mkdir(parents=True, exist_ok=True)
    (home / "logs").touch()
    plugins, target = home / "plugins", Path(usual or "~/.pulumi").expanduser() / "plugins"
    if not plugins.is_symlink() or plugins.readlink() != target:
        fresh = home / f"plugins.{os.getpid()}"
        fresh.symlink_to(target)
        fresh.replace(plugins)
    return home


def read_events(text: str) -> list[dict[str, Any]]:
    """Read a log of events; an engine that was killed may have left half a line."""
    return [json.loads(line) for line in text.rpartition("\n")[0].splitlines()]


def _step(data: Mapping[str, Any]) -> Step:
    types, _, name = str(data["urn"]).rpartition("::")
    return Step(str(data["op"]), types.rpartition("::")[2].rpartition("$")[2], name)


def _copy(source: Path, target: Path, python: Path) -> None:
    target.mkdir(parents=True)
    for name in STACK_PROGRAM if source == ROOT else [path.name for path in source.iterdir()]:
        path = source / name
        if path.is_dir():
            shutil.copytree(path, target / name)
        else:
            shutil.copy(path, target / name)
    pack = target / "PulumiPolicy.yaml"
    settings = pack if pack.exists() else target / "Pulumi.yaml"
    # A folder that is there, wherever it is: a relative path would not survive.
    own = re.sub(r"(virtualenv:).*", rf"\1 {json.dumps(str(python))}", settings.read_text())
    settings.write_text(own)


def _config_folder(project: Path) -> str:
    return str(yaml.safe_load((project / "Pulumi.yaml").read_text()).get("stackConfigDir", "."))
