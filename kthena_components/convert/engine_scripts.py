"""Finds commands in scripts of engines that a description leaves out. Pure.

A script is one field. So each of its commands, and each word of the one that starts the engine, is
left out in turn: what changes nothing is not kept.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.convert.engine_pods import EnginePod
from kthena_components.convert.lost_fields import Loss, Steps, leaves, replaced
from kthena_components.core.engines.bash.tree import Span, commands_of
from kthena_components.core.findings import path_of
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, name_of, sequence

Body = Mapping[str, Any]
_SCRIPT = re.compile(r"[\s;&|]")
_HOLDERS = frozenset({"command", "args", "entrypoint"})
_LAUNCH = re.compile(
    r"(exec\s+)?(ray\s|mpirun\b|mpiexec\b|srun\b)|\bray start\b|multi-node-serving\.sh"
    r"|KUBERAY_GEN_RAY_START_CMD|wait_for_ray|wait-for-ray"
)
"""Commands that join pods. The package's own launcher replaces them."""
_LAUNCHERS = frozenset({"ray", "trtllm-llmapi-launch"})
_IDLE = re.compile(r"(sleep|echo|printf|set|wait|true|:|exit|date|chmod)\b|:$|\[|test\b")
"""Commands that leave nothing behind for the engine."""
_WRAPPERS = frozenset({"exec", "nohup"})
_SHELLS = re.compile(r"(/[\w/]*/)?(ba|da|)sh|-[a-z]*c|--|-[a-z]+")
_LONGEST = 4096
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script of an object, and how the object is described with another one in its place."""

    name: str
    """The field that holds it, as a loss names it."""
    text: str
    meaning: Callable[[str], object]
    """Describes the object with another text as the script."""


def scripts_of(body: Mapping[str, Any], meaning: Callable[[Body], object]) -> Iterator[Script]:
    """Yield the scripts in the fields of an object.

    Args:
        body: The object.
        meaning: Describes the object again when its fields change.
    """
    for steps, value in leaves(body):
        held = bool(_HOLDERS & set(map(str, steps[-2:])))
        if held and isinstance(value, str) and _SCRIPT.search(value.strip()):

            def put(text: str, at: Steps = steps) -> object:
                return meaning(replaced(body, at, text))

            yield Script(name=path_of(steps), text=value, meaning=put)


def mounted_scripts(
    pods: Iterable[EnginePod],
    objects: Sequence[Body],
    meaning: Callable[[Sequence[Body]], object],
) -> Iterator[Script]:
    """Yield the texts of the ConfigMaps that pods mount.

    Args:
        pods: The pods.
        objects: The objects beside theirs.
        meaning: Describes the object of the pods again when these objects change.
    """
    volumes = [v for pod in pods for v in map(mapping, sequence(pod.set.spec.get("volumes")))]
    names = {mapping(volume.get("configMap")).get("name") for volume in volumes}
    for index, body in enumerate(objects):
        if body.get("kind") != "ConfigMap" or name_of(body) not in names:
            continue
        for key, text in mapping(body.get("data")).items():

            def put(other: str, at: int = index, key: str = str(key)) -> object:
                changed = replaced(objects[at], ("data", key), other)
                return meaning([*objects[:at], changed, *objects[at + 1 :]])

            if isinstance(text, str):
                yield Script(name=f"ConfigMap/{name_of(body)}.data.{key}", text=text, meaning=put)


def find_lost_commands(
    scripts: Iterable[Script], usual: object, files: Sequence[str]
) -> Iterator[Loss]:
    """Yield the commands of scripts that a description does not depend on.

    Args:
        scripts: The scripts.
        usual: The description of the object of the pods as it is.
        files: Names of scripts that others run, and that are looked at themselves.
    """
    for script in scripts:
        # A script without which all is the same is a loss itself, or the launcher's.
        if script.meaning("") == usual:
            continue
        if len(script.text) > _LONGEST:
            seen = f"has {len(script.text)} characters: what it does besides is not known"
            yield Loss(name=script.name, seen=seen)
            continue

        def lost(part: Span, of: Script = script) -> bool:
            return of.meaning(part.removed(of.text)) == usual

        for text in _lost(script.text, commands_of(script.text), files, lost):
            yield Loss(name=script.name, seen=f"{display(text)} is not kept")


def joins_pods(steps: Steps, value: object) -> bool:
    """Return whether a field only holds a script that joins pods, or the shell that runs it."""
    if not _HOLDERS & set(map(str, steps[-2:])) or not isinstance(value, str):
        return False
    if not _SCRIPT.search(value.strip()):
        return _SHELLS.fullmatch(value) is not None or value in _LAUNCHERS
    said = [each.text(value) for each in commands_of(value)] if len(value) <= _LONGEST else []
    return bool(said) and all(_LAUNCH.search(text) or _IDLE.match(text) for text in said)


def _lost(
    script: str, commands: Sequence[Span], files: Sequence[str], lost: Callable[[Span], bool]
) -> Iterator[str]:
    for command in commands[:_MOST]:
        text = command.text(script)
        for word in command.words:
            yield from _lost(script, word.inner, files, lost)
        if any(file in text for file in files):
            continue
        if not lost(command):
            yield from _lost_words(script, command.words[:_MOST], lost)
        elif not _LAUNCH.search(text) and not _IDLE.match(text):
            yield text


def _lost_words(script: str, words: Sequence[Span], lost: Callable[[Span], bool]) -> Iterator[str]:
    """Yield the lost words; words that follow each other are one text."""
    together = list[str]()
    for word in words:
        text = word.text(script)
        if not word.inner and text not in _WRAPPERS and lost(word):
            together.append(text)
        elif together:
            yield " ".join(together)
            together = []
    if together:
        yield " ".join(together)
