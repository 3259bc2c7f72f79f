"""Runs the `run:` steps of a workflow or a composite action with bash, as the runner does.

Steps with `uses` belong to others; a test brings about what they leave behind. Of GitHub's
expressions only those that occur are evaluated: a value that the test states, and an output. A step
starts in the workspace, or in its working-directory.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
"""Source: GitHub's documentation, workflow syntax, `shell: bash`."""
_EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


@dataclass(slots=True)
class Runner:
    """A machine that runs the steps of one job."""

    folder: Path
    """The workspace. The files of the runner itself are beside it."""
    variables: Mapping[str, str]
    values: dict[str, str] = field(default_factory=dict)
    """The value of each expression; outputs of steps are added."""

    def run(
        self, steps: Sequence[Mapping[str, Any]]
    ) -> dict[str, subprocess.CompletedProcess[str]]:
        """Run the steps in their order, also after one that fails; give the results by name."""
        return {step["name"]: self._step(step) for step in steps if "run" in step}

    def _step(self, step: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        own = Path(f"{self.folder}-files")
        own.mkdir(exist_ok=True)
        output, summary = own / "GITHUB_OUTPUT", own / "GITHUB_STEP_SUMMARY"
        output.write_text("")
        env = {name: self._value(str(text)) for name, text in step.get("env", {}).items()}
        env |= {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
        env |= {"GITHUB_WORKSPACE": str(self.folder)}
        ran = subprocess.run(
            [*SHELL, self._value(step["run"])],
            cwd=self.folder / self._value(step.get("working-directory", "")),
            env={**self.variables, **env},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        for name, value in _outputs(output.read_text()):
            self.values[f"steps.{step['id']}.outputs.{name}"] = value
        return ran

    @property
    def summary(self) -> str:
        """The text that the steps have added to the summary of the job."""
        return Path(f"{self.folder}-files", "GITHUB_STEP_SUMMARY").read_text()

    def _value(self, text: str) -> str:
        return _EXPRESSION.sub(lambda found: self.values[found[1]], text)


def _outputs(text: str) -> list[tuple[str, str]]:
    """Read `name=value` and `name<<END`, lines, `END`."""
    found, lines = [], iter(text.splitlines())
    for line in lines:
        name, _, end = line.partition("<<")
        if end and "=" not in name:
            value = "\n".join(iter(lambda: next(lines), end))
            found.append((name, value))
        else:
            name, _, value = line.partition("=")
            found.append((name, value))
    return found
