"""Shells in which tests follow the pages: a real one, and one that runs the command in-process."""

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import pytest

from kthena_components.cli.main import main

END = "\0"
LOOP = (
    'exec 3<&0 </dev/null; while IFS= read -r -u 3 line; do eval "$line" 3<&-; '
    r'printf "\0%s\n" "$?"; done'
)
"""No command waits for an answer, and none reads the next one."""


OF_MAKE = {"ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"}
"""Every `make` below `make test ARGS=-n2` gets these: `make up` would pass -n2 to Pulumi."""


class Shell(Protocol):
    """Runs one command after another, in the folder that the last one chose."""

    def run(self, command: str) -> tuple[int, str]:
        """Give the exit status, and what it printed to both outputs."""


class Bash:
    """A terminal of a user: variables and the folder stay from command to command."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        """Start it with these variables alone, but for those of a `make` that runs the test."""
        own = {name: text for name, text in variables.items() if name not in OF_MAKE}
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c", LOOP], cwd=folder, env=own,
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, command: str) -> tuple[int, str]:
        """Run a command of one line."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        printed = ""
        for line in self._process.stdout:
            if END in line:
                last, _, status = line.partition(END)
                return int(status), printed + last
            printed += line
        raise AssertionError(f"the shell has ended: {command}\n{printed}")


@dataclass(frozen=True)
class InProcess:
    """Runs `kthena-components` and `cd` in this process, which takes milliseconds."""

    capsys: pytest.CaptureFixture[str]

    def run(self, command: str) -> tuple[int, str]:
        """Run one of the two."""
        program, *arguments = shlex.split(command)
        if program == "cd":
            os.chdir(arguments[0])
            return 0, ""
        assert program == "kthena-components", f"needs a real shell: {command}"
        try:
            status = main(arguments)
        except SystemExit as ended:  # of the parser
            status = int(ended.code or 0)
        told: Any = self.capsys.readouterr()
        return status, told.out + told.err
