"""The command that KubeRay gives the first container of a group.

Source: ray-project/kuberay ray-operator/controllers/ray/common/pod.go BuildPod.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kthena_components.core.objects.object import Object
from kthena_components.core.values.display import text_of
from kthena_components.core.values.read import inside, mapping, sequence
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.systems.ray.chart import chart_command

_OVERWRITE = "ray.io/overwrite-container-cmd"
"""With this annotation KubeRay leaves the container's command as it is."""
_SHELL = ("/bin/bash", "-lc", "--")


def with_ray_start(group: object, start: str, found: Object) -> object:
    """Give a group's template with the command that KubeRay would give its first container.

    The container's own command comes first, then `ray start`: where the latter stands in it
    already, nothing is added. The annotation that keeps the command stands on the cluster or on the
    template (controllers/ray/common/pod.go).
    """
    template = inside(group, "template")
    spec = mapping(template).get("spec")
    containers = mapping(spec).get("containers")
    holders = (mapping(template).get("metadata"), found.metadata)
    own = any(_keeps_command(mapping(holder)) for holder in holders)
    if own or not sequence(containers) or any(map(is_unresolved, (spec, *sequence(containers)))):
        return template
    first = mapping(sequence(containers)[0])
    script = chart_command(first, mapping(spec), found.context)
    if script is not None:
        return with_command(template, script)
    return _changed(template, _command(first, start))


def _keeps_command(metadata: Mapping[str, Any]) -> bool:
    return str(mapping(metadata.get("annotations")).get(_OVERWRITE, "")).lower() == "true"


def with_command(template: object, command: Sequence[str]) -> object:
    """Give a template whose first container runs something else."""
    return _changed(template, {"command": list(command)})


def _changed(template: object, words: Mapping[str, Any]) -> object:
    """Give a template whose first container has the command and the args that are given, if any."""
    spec = mapping(mapping(template).get("spec"))
    containers = sequence(spec.get("containers"))
    if not containers:
        return template
    first, *rest = containers
    kept = {key: item for key, item in mapping(first).items() if key != "args" or not words}
    return {"spec": {**spec, "containers": [{**kept, **words}, *rest]}}


def _command(container: Mapping[str, Any], start: str) -> dict[str, Any]:
    words = [container.get("command"), container.get("args")]
    listed = [item for part in words for item in _items(part)]
    if any(map(is_unresolved, (*words, *listed))):
        return {}
    given = " ".join(text_of(word) for word in listed)
    if "ray start" in given:
        return {}
    script = f"{given} && {start}" if given else start
    if container.get("args") is not None:
        return {"command": list(_SHELL), "args": [script]}
    return {"command": [*_SHELL, script]}


def _items(part: object) -> Sequence[object]:
    return [item for item in sequence(part) if isinstance(item, str | int | float)]
