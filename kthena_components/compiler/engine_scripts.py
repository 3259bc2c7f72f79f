"""Finds what scripts of engines do that a description does not have. Pure.

A script is one field. So each of its commands, and each word of the one that starts the engine, is
left out in turn: what changes nothing is not kept.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.compiler.leaves import NOTHING, Steps, leaves, replaced
from kthena_components.compiler.losses import Loss
from kthena_components.core.engines.bash.spans import Span, commands_of
from kthena_components.core.findings import path_of
from kthena_components.core.values.display import display

_SCRIPT = re.compile(r"[\s;&|]")
_HOLDERS = frozenset({"command", "args", "entrypoint"})
_LAUNCH = re.compile(
    r"(exec\s+)?(ray\s|mpirun\b|mpiexec\b|srun\b)|\bray start\b|multi-node-serving\.sh"
    r"|KUBERAY_GEN_RAY_START_CMD|wait_for_ray|wait-for-ray"
)
"""Commands that join pods. The package's own launcher replaces them."""
_LAUNCHERS = frozenset({"ray", "trtllm-llmapi-launch"})
_IDLE = re.compile(r"(sleep|echo|printf|set|wait|true|:|exit|date)\b|:$|\[|test\b")
"""Commands that leave nothing behind for the engine."""
_WRAPPERS = frozenset({"exec", "nohup"})
_SHELLS = re.compile(r"(/[\w/]*/)?(ba|da|)sh|-[a-z]*c|--|-[a-z]+")
_LONGEST = 4096
_MOST = 200


def find_lost_commands(
    body: Mapping[str, Any], meaning: Callable[[Mapping[str, Any]], object]
) -> Iterator[Loss]:
    """Yield the commands of an object's scripts that its description does not depend on.

    Args:
        body: The object.
        meaning: What the result has of an object.
    """
    usual = meaning(body)
    for steps, value in leaves(body):
        if not _is_script(steps, value):
            continue
        script = str(value)

        def lost(part: Span, at: Steps = steps, script: str = script) -> bool:
            return meaning(replaced(body, at, part.removed(script))) == usual

        if meaning(replaced(body, steps, NOTHING)) == usual:
            continue  # the whole field is a loss, or the launcher's
        for text in _lost(script, lost):
            yield Loss(name=path_of(steps), seen=f"{display(text)} is not kept")


def joins_pods(steps: Steps, value: object) -> bool:
    """Return whether a field only holds a script that joins pods, or the shell that runs it."""
    if not _HOLDERS & set(map(str, steps[-2:])) or not isinstance(value, str):
        return False
    if not _SCRIPT.search(value.strip()):
        return _SHELLS.fullmatch(value) is not None or value in _LAUNCHERS
    said = [each.text(value) for each in commands_of(value[:_LONGEST])]
    return bool(said) and all(_LAUNCH.search(text) or _IDLE.match(text) for text in said)


def _is_script(steps: Steps, value: object) -> bool:
    held = bool(_HOLDERS & set(map(str, steps[-2:])))
    fits = isinstance(value, str) and len(value) <= _LONGEST and _SCRIPT.search(value.strip())
    return held and bool(fits)


def _lost(script: str, lost: Callable[[Span], bool]) -> Iterator[str]:
    for command in commands_of(script)[:_MOST]:
        text = command.text(script)
        if lost(command):
            if not _LAUNCH.search(text) and not _IDLE.match(text):
                yield text
            continue
        yield from _lost_words(script, command.words[:_MOST], lost)


def _lost_words(script: str, words: Sequence[Span], lost: Callable[[Span], bool]) -> Iterator[str]:
    """Yield the words that are lost, those that follow each other as one text."""
    together = list[str]()
    for word in words:
        text = word.text(script)
        if text not in _WRAPPERS and lost(word):
            together.append(text)
        elif together:
            yield " ".join(together)
            together = []
    if together:
        yield " ".join(together)
