"""Run `pulumi preview` on a stack of a checked-out branch, with the policies of its base.

A preview runs the program that is checked out, as whoever runs it. See docs/security.md.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kthena_components.core.values.visible import visible

ALONE = (
    "this job has no state of it, because it is new or out of reach here. All of it shows as new."
)
_MARGIN = "| "
"""Begins each line that Pulumi or a program writes, so that no pipeline takes it for a command."""


class NoPulumiError(Exception):
    """Pulumi cannot be run. Its text is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Previewer:
    """What the previews of one branch share."""

    tree: Path
    """Folder of the project that is previewed."""
    policies: Path | None
    """Folder of the policy pack, and of its levels."""
    work: Path
    """An empty folder. Previews hold the configuration in plain text, so it must be removed."""

    def preview(self, stack: str, file: Path, log: Path) -> str:
        """Write the events of a stack's preview to a file; give what has to be said of it.

        Args:
            stack: Its name.
            file: Its stack file, in the tree.
            log: Where the events go. What fails is in them, or they come to no end.

        Raises:
            NoPulumiError: there is no Pulumi.
        """
        log.touch()
        sys.stderr.write(f"--- stack {visible(stack)}\n")
        shown = self._pulumi({}, "stack", f"--stack={stack}", "--show-name", "--non-interactive")
        if shown == 0:
            self._events({}, stack, log)
            return ""
        # Making a stack writes into its file.
        kept = file.read_bytes()
        state = self.work / "state"
        state.mkdir(exist_ok=True)
        own = {"PULUMI_BACKEND_URL": state.as_uri()}
        own["PULUMI_CONFIG_PASSPHRASE"] = os.environ.get("PULUMI_CONFIG_PASSPHRASE", "")
        try:
            self._pulumi(
                own, "stack", "init", f"--stack={stack}", "--no-select", "--non-interactive"
            )
            self._events(own, stack, log)
        finally:
            file.write_bytes(kept)
        return ALONE

    def _events(self, own: Mapping[str, str], stack: str, log: Path) -> None:
        policies: list[str] = []
        if self.policies is not None:
            policies = ["--policy-pack", str(self.policies)]
            levels = self.policies / "levels" / f"{stack}.json"
            policies += ["--policy-pack-config", str(levels)] if levels.is_file() else []
        # --event-log is one of the flags that this variable shows; Pulumi's Automation API uses it.
        shows = {**own, "PULUMI_DEBUG_COMMANDS": "true"}
        flags = ("--non-interactive", "--color", "never", "--event-log", str(log))
        self._pulumi(shows, "preview", f"--stack={stack}", *flags, *policies)

    def _pulumi(self, own: Mapping[str, str], *arguments: str) -> int:
        """Run Pulumi, and write what it says to standard error."""
        program = shutil.which("pulumi")
        if program is None:
            raise NoPulumiError(
                'there is no pulumi on PATH; run eval "$(make -s env)", or install Pulumi'
            )
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
