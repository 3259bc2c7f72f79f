"""LeaderWorkerSet's variables in pod templates that other controllers run.

Where the package writes the pods, they get these variables, too. A controller that appends its own
variables to a template's env cannot provide them: Kubernetes resolves `$(NAME)` in env only for
variables before it. Source: Kubernetes documentation, Define Dependent Environment Variables;
volcano-sh/kthena v0.1.0 to v1.0.0 pkg/model-serving-controller/utils/utils.go addEnvVars.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.plan.templates import with_env
from kthena_components.core.templates import Template
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex

_COMMANDS = ("command", "args")
_EXPANDED = {name: regex(rf"(?<!\$)\$\({name}\)") for name in naming.LWS_ENV}
_USED = {name: regex(rf"(?<!\$\$\()\b{name}\b") for name in naming.LWS_ENV}
"""Any mention but an escaped one: `$NAME`, `$((NAME - 1))`, `printenv NAME`, `environ["NAME"]`."""
_OWN = {
    name: regex(rf"(?:^|[\s;&|(]){name}=(?![\"']?\$\{{?{name}\b)|\b{same}\b", re.MULTILINE)
    for name, same in naming.LWS_ENV.items()
}
"""What shows that a script sets the variable, and not to itself, or also knows the other one."""


def with_lws_names(template: Template, env: list[dict[str, Any]]) -> Template:
    """Add LeaderWorkerSet's variables to a template that mentions one of them.

    Other templates stay as they are: a changed template would replace running pods.

    Args:
        env: Kthena's variables, with the values that LeaderWorkerSet's get.
    """
    written = json.dumps(template, default=str)
    if not any(name in written for name in naming.LWS_ENV):
        return template
    own = {entry["name"]: entry for entry in env}
    aliases = [{**own[same], "name": name} for name, same in naming.LWS_ENV.items()]
    return with_env(template, aliases, first=True)


def unset_lws_names(template: Template) -> Iterator[tuple[str, str]]:
    """Find references to LeaderWorkerSet's variables that nothing in the template sets.

    A default, as in `${LWS_GROUP_SIZE:-1}`, sets nothing: it would hide that the group is larger.
    A container with envFrom is skipped, and a script that assigns the variable or also mentions
    Kthena's.

    Returns:
        The path of each string in the template, and the variable: the first one in each string.
    """
    spec = mapping(template.get("spec"))
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(map(mapping, sequence(spec.get(kind)))):
            if not container.get("envFrom"):
                for path, name in _in_container(container):
                    yield f"spec.{kind}[{index}].{path}", name


def with_kthena_names(template: Template) -> tuple[Template, list[tuple[str, str]]]:
    """Write Kthena's variables where a template's commands use LeaderWorkerSet's.

    Left as they are: containers that set the variable themselves, or also know Kthena's, and the
    env, which cannot refer to variables that a controller appends.

    Returns:
        The template, and the path of each container with the variable that was replaced.
    """
    spec, used = dict(mapping(template.get("spec"))), list[tuple[str, str]]()
    for kind in ("initContainers", "containers"):
        if not isinstance(spec.get(kind), list):
            continue
        renamed = []
        for index, container in enumerate(spec[kind]):
            names = _renamable(mapping(container))
            used += [(f"spec.{kind}[{index}]", name) for name in names]
            renamed.append(_renamed(container, names))
        spec[kind] = renamed
    return ({**template, "spec": spec} if used else template), used


def _renamable(container: Mapping[str, Any]) -> list[str]:
    """List LWS's variables that a container uses and does not set, by `env` or in its script."""
    if container.get("envFrom"):
        return []
    own = {mapping(entry).get("name") for entry in sequence(container.get("env"))}
    text = " ".join(text for _, text in _commands(container))
    return [
        name
        for name in naming.LWS_ENV
        if name not in own and _USED[name].search(text) and not _OWN[name].search(text)
    ]


def _commands(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the commands of a container, including its probes and hooks, with their paths."""
    for key, item in mapping(value).items():
        here = f"{path}.{key}" if path else str(key)
        if key in _COMMANDS:
            yield here, " ".join(map(str, sequence(item)))
        else:
            yield from _commands(item, here)


def _renamed(value: Any, names: list[str], *, is_command: bool = False) -> Any:
    """Replace names of LWS's variables in commands at any depth, as whole words."""
    if isinstance(value, Mapping):
        return {k: _renamed(v, names, is_command=k in _COMMANDS) for k, v in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names, is_command=is_command) for item in value]
    if isinstance(value, str) and is_command:
        for name in names:
            value = re.sub(rf"\b{name}\b", naming.LWS_ENV[name], value)
    return value


def _in_container(container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Find uses of LWS's variables that nothing sets: the path of each, and the variable."""
    entries = [mapping(entry) for entry in sequence(container.get("env"))]
    unset = sorted(naming.LWS_ENV.keys() - {entry.get("name") for entry in entries})
    texts = list(_commands(container))
    script = " ".join(text for _, text in texts)
    own = {name for name in unset if _OWN[name].search(script)}
    for path, text in texts:
        for name in unset:
            # The kubelet expands `$(NAME)` before any script could set it.
            if (_EXPANDED if name in own else _USED)[name].search(text):
                yield path, name
                break
    for index, entry in enumerate(entries):
        for name in unset:
            if _EXPANDED[name].search(str(entry.get("value") or "")):
                yield f"env[{index}].value", name
                break
