"""Says why a preview failed, from an error of Pulumi or of a program.

Pulumi writes `[secret]` in place of the secrets that it knows. An exception may quote others, so
words that look like one are hidden, too. A provider's error may quote the inputs of its resource,
so only the name of the resource is shown.
"""

import os
import re
from collections.abc import Iterable, Mapping

from kthena_components.core.values.display import SECRET
from kthena_components.core.values.regex import regex

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
        message: An error of Pulumi or of the program, without colors.
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
    """Hide values that a text quotes, such as those of variables of the environment."""
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, SECRET)
    return text


def _remedy(operation: str | None) -> str:
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
