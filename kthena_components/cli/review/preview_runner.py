"""Runs `pulumi preview` on a stack with the policies of its base, and says why one failed.

Pulumi writes `[secret]` in place of the secrets that it knows. An exception may quote others, so
words that look like one are hidden, too. A provider's error may quote the inputs of its resource,
so only the name of the resource is shown.

A preview runs the program of the checkout with the rights of its caller: see docs/security.md.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import SECRET, visible
from kthena_components.core.values.regex import regex
from kthena_components.rendering.isolation import checkouts_around, find_program, why_missing

_MOST_READ = 20_000
_LONGEST_LINE = 1_000
_LONGEST = 300
_SHORTEST = 8
"""Characters of the shortest value of a variable that is hidden."""
_PROTECTED = regex(
    r'unable to (?P<op>replace|delete) resource "[^"\n]*"\s+as it is currently marked for protect'
    r'|resource "[^"\n]*" cannot be deleted\s+because it is protected'
)
"""Source: pulumi pkg/resource/deploy, step_generator.go and step.go."""
_TWICE = "Duplicate resource URN '"
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = regex(r'  File "(?:[^"\n]*[/\\])?(?P<file>[^"\n/\\]*)", line (?P<line>\d{1,9})')
_INSTALLED = regex(r"site-packages|dist-packages|/lib/python|<frozen")
_RAISED = regex(r"(?:<ref \*\d+> )?(?:Uncaught )?(?:[\w.]*(?:Error|Exception)\b|panic: )")
_HIDDEN = (
    re.compile(r"((?<=://))[^\s/@]*(?=@)"),
    re.compile(r"(?i)(\b(?:bearer|basic)\s)\S+"),
    re.compile(
        r"(?i)((?:passw(?:or)?d|passphrase|secret|token|key|credentials?|authorization)[\"']?"
        r"(?:\s?[:=]\s?|\s(?:is|was)\s(?=\S*\d)))(?:\"[^\"]*\"|'[^']*'|\S+)"
    ),
    re.compile(r"()(?=[A-Za-z+_=]*[0-9])(?=[0-9+_=]*[A-Za-z])[A-Za-z0-9+_=]{16,}"),
    re.compile(r"()\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"),
    re.compile(r"()-----BEGIN.*"),
)
"""Group 1 is kept: logins of URLs, values after a word such as password, long words with letters
and digits (keys, hashes, base64), UUIDs, and private keys.
"""


def reason_of(message: str, title: str) -> str:
    """Return why a preview failed, as a text without its full stop; empty if nothing may be shown.

    Args:
        message: An error of Pulumi or of the program, without colours.
        title: Kind and name of its resource; empty if it is about the program.
    """
    message = message[:_MOST_READ]
    if title and (found := _PROTECTED.search(message)):
        return f"{title} is protected, and this change {_remedy(found['op'])}"
    if title and message.startswith(_TWICE):
        return f"{title} is registered twice. Give one of the two another name"
    return f"{title}: its provider reports an error" if title else _raised(message)


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables that may be secrets of the job: all but paths that exist."""

    def is_path(value: str) -> bool:
        return all(map(os.path.exists, value.split(os.pathsep)))

    return tuple(v for v in environ.values() if len(v) >= _SHORTEST and not is_path(v))


def without_values(text: str, values: Iterable[str]) -> str:
    """Hide values that a string quotes, such as those of variables of the environment."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, SECRET)
    return text


def _remedy(operation: str | None) -> str:
    """Say how to keep a protected resource that an update would replace or delete."""
    if operation == "replace":
        return (
            "replaces it. Undo that part of the change, or remove the option protect from it in the"
            " program: then the same update replaces it"
        )
    return (
        "deletes it. Keep it in the program, or first run 'pulumi up' on a program that has it "
        "without the option protect"
    )


def _raised(message: str) -> str:
    """Return the line of an exception, after the line of the program that raised it."""
    _, traceback, last = message.rpartition(_TRACEBACK)
    lines = [line.rstrip() for line in last.splitlines() if line.strip()]
    raised = next((line for line in lines if _RAISED.match(line)), "")
    if not raised:
        # A RunError of Pulumi has no traceback.
        is_whole = not traceback and lines and not lines[0].endswith(":")
        return _shown(lines[0]) if is_whole else ""
    frames = [found for line in lines if (found := _FRAME.match(line))]
    own = [found for found in frames if not _INSTALLED.search(found[0])]
    place = f"{own[-1]['file']}:{own[-1]['line']}: " if own else ""
    return f"{place}{_shown(raised)}"


def _shown(line: str) -> str:
    text = line.strip()[:_LONGEST_LINE]
    for pattern in _HIDDEN:
        text = pattern.sub(rf"\g<1>{SECRET}", text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


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
        """Preview a stack with its own state; without access to that, with an empty one."""
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
            raise NoPulumiError(f"{why}; install Pulumi")
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
