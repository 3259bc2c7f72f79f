"""Follows the remedies of a finding literally, and tells where they lead."""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import Change, Fix
from tests.support.fixes import apply, at_path

_STATED = re.compile(
    r"(?:^|[ ,])(?:write|add) (--[a-z-]+) (?!(?:as|in|to|with)\b)(\S+?)(?=[,;.]?(?: (?!with)|$))"
)
_COMPUTED = re.compile(r"in a shell with (--[a-z-]+) (\$\(\(.*?\)\))")
_BY_LABEL = re.compile(r"set (\w+) in env from the label ([\w./-]+)")
_BESIDE = {"add the plugin env: []": Change(path="spec.plugins.env", value=[])}
"""What a remedy changes beside a command line that a shell computes."""
_REPLICAS = re.compile(r"\bwrite replicas: (\d+), and start")
_CONTAINER = re.compile(r"(.*containers\[\d+\])\.(?:command|args)$")
Judge = Callable[[Any], list[Finding]]
_SILENT = (Level.UNKNOWN, Level.WAIVED)


def faults(findings: Sequence[Finding]) -> list[Finding]:
    """Give the findings that say that something is wrong."""
    return [finding for finding in findings if finding.level not in _SILENT]


@dataclass(frozen=True)
class Followed:
    """What a fix leads to."""

    tree: Any
    findings: list[Finding]
    left: list[Finding]
    """Findings of the same rule at the same path."""
    new: list[Finding]
    """Mandatory findings of the same field, or of the same rule, that were not there before."""


def follow(judge: Judge, tree: Any, before: list[Finding], found: Finding, fix: Fix) -> Followed:
    """Apply one fix of a finding, and check the result."""
    made = apply(tree, fix)
    after = faults(judge(made))
    known = {(each.rule, each.path, each.seen) for each in before}
    places = [found.path, *(change.path or "" for change in fix)]
    had = {(each.rule, each.path) for each in before}
    left, new = [], []
    for each in after:
        here = (each.rule, each.path)
        if here == (found.rule, found.path):
            if each.seen == found.seen or (*here, each.seen) not in known:
                left.append(each)
        elif (
            each.level is Level.MANDATORY
            and here not in had
            and (each.rule == found.rule or any(_near(each.path, place) for place in places))
        ):
            new.append(each)
    return Followed(made, after, left, new)


def in_words(found: Finding, tree: Any) -> list[Fix]:
    """Read the options that the text of a remedy without a fix gives a value.

    A value that a shell computes needs a shell: the fix then writes the command line as a script.
    """
    text = found.remedy or ""
    if found.fixes or not (held := _CONTAINER.match(found.path)):
        return []
    body, computed = at_path(tree, held[1]), _COMPUTED.search(text)
    env, label = list(body.get("env") or ()), _BY_LABEL.search(text)
    if label is not None:
        field = {"fieldPath": f"metadata.labels['{label[2]}']"}
        env.append({"name": label[1], "valueFrom": {"fieldRef": field}})
    if computed is None:
        told = Change(path=f"{held[1]}.env", value=env)
        return [
            (Change(path=found.path, option=option, value=value), told)
            for option, value in _STATED.findall(text)
        ]
    words = [*(body.get("command") or ()), *(body.get("args") or ())]
    (words,) = (apply([words], (Change(path="[0]", option=computed[1], value=computed[2]),)),)
    script = " ".join(w if "$(" in w else shlex.quote(w) for w in words[0])
    made = {**body, "command": ["sh", "-c", f"exec {script}"], "env": env}
    made.pop("args", None)
    beside = [change for said, change in _BESIDE.items() if said in text]
    if (more := _REPLICAS.search(text)) is not None:
        beside.append(Change(path="spec.replicas", value=int(more[1])))
    return [(Change(path=held[1], value=made), *beside)]


def wrong_way(judge: Judge, tree: Any, before: list[Finding], found: Finding, fix: Fix) -> str:
    """Say how a fix misleads; empty if it does not.

    A fix may uncover something else about the same field, if a fix of that leads out, and the first
    one does not lead back.
    """
    done = follow(judge, tree, before, found, fix)
    if done.left:
        return f"is still there: {done.left[0]}"
    if not done.new:
        return ""
    other = done.new[0]
    for number, further in enumerate(other.fixes):
        last = follow(judge, done.tree, done.findings, other, further)
        back = [each for each in last.findings if _same(each, found)]
        if number == 0 and back:
            return f"leads back: {other}"
        if not (back or last.left or last.new):
            return ""
    return f"leads to: {other}"


def _same(one: Finding, other: Finding) -> bool:
    return (one.rule, one.path, one.seen) == (other.rule, other.path, other.seen)


def _near(path: str, place: str) -> bool:
    """Tell whether one of two paths is the other, or below it."""
    longer, shorter = max(path, place, key=len), min(path, place, key=len)
    return longer == shorter or longer.startswith((f"{shorter}.", f"{shorter}["))
