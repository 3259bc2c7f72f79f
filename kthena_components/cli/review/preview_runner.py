"""Runs `pulumi preview` on a stack of a checked-out branch, with the policies of its base.

A preview runs the program of the checkout with the rights of its caller: see docs/security.md.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.safe_text import visible
from kthena_components.rendering.programs import checkouts_around, find_program, why_missing

ALONE = "this job cannot read its state, or the stack is new. All its resources show as new."
_MARGIN = "| "
"""Prefix for each line of Pulumi or a program, so that a pipeline never reads it as a command."""


def state_of(log: Path) -> Path:
    """Return the file for the deployed state of a stack, in the folder of its preview's events."""
    return log.with_suffix(".state.json")


class NoPulumiError(Exception):
    """Pulumi is not installed. The text is for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Previewer:
    """Runs the previews of one branch."""

    tree: Path
    """The folder of the project."""
    policies: Path
    """The folder of the policy pack and its levels."""
    work: Path
    """An empty folder. Remove it afterwards: previews contain the configuration in plain text."""

    def preview(self, stack: str, file: Path, log: Path) -> str:
        """Preview a stack, write the events to a file, and return a note for the comment.

        Args:
            stack: The name of the stack.
            file: Its stack file in the tree.
            log: The file for the events. A failed preview leaves an error or incomplete events, and
                what the stack has deployed in the file `state_of(log)`.

        Raises:
            NoPulumiError: Pulumi is not installed.
        """
        log.touch()
        sys.stderr.write(f"--- stack {visible(stack)}\n")
        kept = file.read_bytes()  # Pulumi may write a salt into the stack file
        try:
            return self._preview(stack, log)
        finally:
            file.write_bytes(kept)

    def _preview(self, stack: str, log: Path) -> str:
        shown = self._pulumi({}, "stack", f"--stack={stack}", "--show-name", "--non-interactive")
        if shown == 0:
            if self._events({}, stack, log) != 0:
                # The sizes of what a stopped program did not register. Secrets stay encrypted.
                to = f"--file={state_of(log)}"
                self._pulumi({}, "stack", "export", f"--stack={stack}", to, "--non-interactive")
            return ""
        state = self.work / "state"
        state.mkdir(exist_ok=True)
        own = {"PULUMI_BACKEND_URL": state.as_uri()}
        own["PULUMI_CONFIG_PASSPHRASE"] = os.environ.get("PULUMI_CONFIG_PASSPHRASE", "")
        self._pulumi(own, "stack", "init", f"--stack={stack}", "--no-select", "--non-interactive")
        self._events(own, stack, log)
        return ALONE

    def _events(self, own: Mapping[str, str], stack: str, log: Path) -> int:
        policies = ["--policy-pack", str(self.policies)]
        levels = self.policies / "levels" / f"{stack}.json"
        policies += ["--policy-pack-config", str(levels)] if levels.is_file() else []
        # This variable enables --event-log. Pulumi's Automation API uses it, too.
        shows = {**own, "PULUMI_DEBUG_COMMANDS": "true"}
        flags = ("--non-interactive", "--color", "never", "--event-log", str(log))
        return self._pulumi(shows, "preview", f"--stack={stack}", *flags, *policies)

    def _pulumi(self, own: Mapping[str, str], *arguments: str) -> int:
        """Run Pulumi, and write its output to standard error."""
        untrusted = checkouts_around([str(self.tree)])
        program = find_program(("pulumi",), untrusted)
        if program is None:
            why = why_missing(("pulumi",), untrusted)
            raise NoPulumiError(f'{why}; run eval "$(make -s env)", or install Pulumi')
        with subprocess.Popen(
            [program, *arguments],
            cwd=self.tree,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as running:
            for line in running.stdout or ():
                text = line.decode(errors="backslashreplace").rstrip().expandtabs()
                sys.stderr.write(f"{_MARGIN}{visible(text)}\n")
                sys.stderr.flush()
        return running.returncode
