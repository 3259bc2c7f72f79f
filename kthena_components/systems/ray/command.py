"""The command that KubeRay gives a group's first container, also from the chart vllm-stack.

Source: ray-project/kuberay ray-operator/controllers/ray/common/pod.go BuildPod.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from kthena_components.core.engines.files import read_file
from kthena_components.core.facts.container import read_volumes
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.files import PodVolumes, read_files
from kthena_components.core.objects.object import Object
from kthena_components.core.values.display import text_of
from kthena_components.core.values.read import inside, mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved

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


# Reads the script of the Helm chart vllm-stack, whose RayCluster has its engine in a ConfigMap.
#
# The head copies the script out of its mount and runs the copy. The script appends words to an
# array and runs it. The chart writes each line of the script from its values. Source:
# vllm-project/production-stack helm/templates/ray-cluster.yaml, chart 0.1.12.


_SCRIPT = "/entrypoint/vllm-entrypoint.sh"
_WORDS = regex(r"^\s*ARGS\+?=\(([^()]*)\)\s*$", re.MULTILINE)
_RUN = regex(r'^\s*exec "\$\{ARGS\[@\]\}"\s*$', re.MULTILINE)


def chart_command(
    container: Mapping[str, Any], spec: Mapping[str, Any], context: Context
) -> list[str] | None:
    """Return the command of the head of such a cluster; None for other containers and scripts.

    Args:
        container: The head's first container.
        spec: The spec of its pod.
        context: What is known beside the object: the ConfigMap with the script.
    """
    words = [word for word in sequence(container.get("command")) if isinstance(word, str)]
    if not any(f"cp {_SCRIPT} " in word for word in words):
        return None
    files, _ = read_files(container, PodVolumes(read_volumes(spec), context), "")
    text = read_file(files, _SCRIPT)
    # The reader of scripts reports why one is not at hand.
    return _engine(text) if isinstance(text, str) else ["bash", _SCRIPT]


def _engine(text: str) -> list[str] | None:
    """Return the command that the chart's script runs; None for other scripts."""
    parts = _WORDS.findall(text)
    if not parts or not _RUN.search(text) or text.count("ARGS") > len(parts) + 2:
        return None
    try:
        return [word for part in parts for word in shlex.split(part)]
    except ValueError:
        return None
