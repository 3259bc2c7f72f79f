"""Runs the `run:` steps of a workflow or a composite action with bash, as the runner does.

Steps with `uses` belong to others; a test brings about what they leave behind. Of GitHub's
expressions only those that occur are evaluated: a value that the test states, and an output.
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
    variables: Mapping[str, str]
    values: dict[str, str] = field(default_factory=dict)
    """The value of each expression; outputs of steps are added."""

    def run(
        self, steps: Sequence[Mapping[str, Any]]
    ) -> dict[str, subprocess.CompletedProcess[str]]:
        """Run the steps in their order, also after one that fails; give the results by name."""
        return {step["name"]: self._step(step) for step in steps if "run" in step}

    def _step(self, step: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        output, summary = self.folder / "GITHUB_OUTPUT", self.folder / "GITHUB_STEP_SUMMARY"
        output.write_text("")
        own = {name: self._value(str(text)) for name, text in step.get("env", {}).items()}
        own |= {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
        ran = subprocess.run(
            [*SHELL, self._value(step["run"])],
            cwd=self.folder,
            env={**self.variables, **own},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        for name, value in _outputs(output.read_text()):
            self.values[f"steps.{step['id']}.outputs.{name}"] = value
        return ran

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
