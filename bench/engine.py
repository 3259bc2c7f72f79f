"""Runs commands of the real Pulumi CLI on a project in its own folder, and measures them."""

import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from bench.program import JOB

ROOT: Final = Path(__file__).resolve().parents[1]
STACK: Final = "bench"
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "preview": ("preview",),
    "up": ("up", "--yes", "--skip-preview"),
}
_PR_SET_CHILD_SUBREAPER: Final = 36
MAIN: Final = "from bench.program import main\n\nmain()\n"


class BenchError(Exception):
    """A command failed. The text has the command and its output."""


@dataclass(frozen=True, slots=True)
class Run:
    """One command of the CLI, in seconds and MiB."""

    seconds: float
    """Duration of the CLI."""
    total: float
    """Processor time of the CLI and of all processes that it started."""
    start: float
    """Until the first line of the program runs."""
    program: float
    """Until the program's process ends."""
    cpu: float
    """Processor time of the program's process, including its start and the import of Pulumi."""
    memory: float
    """Peak resident memory of that process."""


class Engine:
    """A project and its state in one folder, for many runs: each begins with an empty stack."""

    def __init__(self, folder: Path, project: str = "bench", config: Path | None = None) -> None:
        """Create the project with an empty stack. `config` is a stack file to copy."""
        adopt_orphans()
        self.folder = folder
        self._project = folder / "project"
        self._state, self._empty = folder / "state", folder / "empty"
        self._project.mkdir(parents=True)
        (self._project / "Pulumi.yaml").write_text(f"name: {project}\nruntime: python\n")
        (self._project / "__main__.py").write_text(MAIN)
        if config:
            shutil.copy(config, self._project / f"Pulumi.{STACK}.yaml")
        self._state.mkdir()
        self._variables = environment() | {"PULUMI_BACKEND_URL": self._state.as_uri()}
        self._pulumi("stack", "init", STACK)
        shutil.copytree(self._state, self._empty)

    def run(self, command: str, program: str, pack: Path | None = None, **job: Any) -> Run:
        """Run one command on an empty stack with one of the programs of bench/program.py.

        The policy pack runs, if there is one.
        """
        shutil.rmtree(self.folder / "rendered", ignore_errors=True)
        shutil.rmtree(self._state)
        shutil.copytree(self._empty, self._state)
        usage = self.folder / "usage.json"
        files = {"usage": str(usage), "rendered": str(self.folder / "rendered")}
        self._variables[JOB] = json.dumps({"program": program, **files, **job})
        before, began, clock = processor_time(), time.time(), time.perf_counter()
        packs = ["--policy-pack", str(pack)] if pack else []
        self._pulumi(*COMMANDS[command], "--stack", STACK, *packs)
        seconds = time.perf_counter() - clock
        said = json.loads(usage.read_text())
        return Run(
            seconds=seconds,
            total=processor_time() - before,
            start=said["began"] - began,
            program=said["ended"] - said["began"],
            cpu=said["cpu"],
            memory=said["rss_kib"] / 1024,
        )

    def recorded(self, backend: str, servings: int) -> Path:
        """Return what the package's program registers for some servings, recorded once."""
        path = self.folder / f"{backend}-{servings}.json"
        if not path.exists():
            job: dict[str, Any] = {"backend": backend, "servings": servings, "recording": str(path)}
            self.run("preview", "record", **job)
        return path

    def resources(self) -> dict[str, Any]:
        """Return the resources in the state by URN, without values that differ in every run."""
        (state,) = (self._state / ".pulumi" / "stacks").rglob(f"{STACK}.json")
        listed = json.loads(state.read_text())["checkpoint"]["latest"]["resources"]
        return {item["urn"]: _lasting(item) for item in listed}

    def _pulumi(self, *arguments: str) -> None:
        done = subprocess.run(
            [_cli(), *arguments, "--non-interactive", "--color", "never"],
            cwd=self._project, env=self._variables, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if done.returncode:
            raise BenchError(f"pulumi {' '.join(arguments)} failed:\n{done.stdout[-4000:]}")


def processor_time() -> float:
    """Return the processor seconds of all processes that were started, when they have ended."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def adopt_orphans() -> None:
    """Become the parent of all descendants whose parent ends, so that their time is counted.

    Pulumi ends its plugins, such as the one that runs policies, and does not wait for them.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


@cache
def _compiled() -> tempfile.TemporaryDirectory[str]:
    """Return the folder of the compiled modules of all measured processes, removed at the end."""
    return tempfile.TemporaryDirectory()


def environment() -> dict[str, str]:
    """Return the variables of a measured process, which finds compiled modules of earlier ones."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables | {
        "KUBECONFIG": str(Path(_compiled().name) / "no-kubeconfig"),
        "PULUMI_CONFIG_PASSPHRASE": "only for measuring",
        "PULUMI_PYTHON_CMD": sys.executable,
        "PULUMI_SKIP_CHECKPOINTS": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": _compiled().name,
    }


def _lasting(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Remove times, source positions, and random values of the provider."""
    passing = {"created", "modified", "sourcePosition", "stackTrace", "id"}
    if resource["custom"]:
        passing.add("outputs")
    kept = {key: value for key, value in resource.items() if key not in passing}
    provider = str(resource.get("provider", "")).rpartition("::")[0]
    # Pulumi's SDK collects dependencies in a set, so their order is random.
    return kept | {"provider": provider, "dependencies": sorted(resource.get("dependencies", []))}


def _cli() -> str:
    found = shutil.which("pulumi")
    if found is None:
        raise BenchError("pulumi is not on PATH. Run `make bench`, which finds or builds it.")
    return found
