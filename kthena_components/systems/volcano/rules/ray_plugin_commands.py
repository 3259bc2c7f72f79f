"""The rule ray-plugin-commands: what Volcano's plugin ray replaces."""

from collections.abc import Iterator

from kthena_components.core.engines.options import TITLES
from kthena_components.core.facts.workload import pods_of_template
from kthena_components.core.findings import Finding, refuse
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import remove
from kthena_components.core.values.read import mapping, unknown_in, unknown_inside
from kthena_components.systems.volcano.plugins import arguments, task_names
from kthena_components.systems.volcano.view import tasks_of

_ROLES = {"head": "ray start --head", "worker": "ray start"}
"""The tasks, and their containers, that the plugin changes; its arguments may give other names."""


def ray_plugin_commands(found: Object) -> Iterator[Finding]:
    """No engine is started in a container whose command Volcano's plugin ray replaces.

    The plugin writes `ray start --head --block` into the container head of the task head, and
    `ray start --block` into the container worker of the task worker, or into those that its
    arguments name. What the containers state is lost.

    Pass: the plugin ray, and the engine as a Ray job or in another container; no plugin ray.
    Fail: the plugin ray, and vllm serve in the command of the container head.
    Level: mandatory.
    Source: Volcano v1.14.1 pkg/controllers/job/plugins/distributed-framework/ray/ray.go
    OnPodCreate.
    """
    plugins = found.spec.get("plugins")
    stated = mapping(plugins).get("ray")
    if unknown_in(plugins) or "ray" not in mapping(plugins) or unknown_inside(stated):
        return
    told = arguments(stated)
    for task, name in zip(tasks_of(found), task_names(found), strict=True):
        for role, command in _ROLES.items():
            container = told.get(f"{role}Container", role)
            if name != told.get(role, role) or unknown_in(task.template):
                continue
            for pod in pods_of_template(task.template, f"{task.path}.template", found.context):
                engine = pod.command.engine if pod.command is not None else None
                if pod.own is not None and pod.own.name == container and engine is not None:
                    seen = f"starts {TITLES.get(engine, engine)}, but the plugin ray replaces it"
                    text = "remove the plugin ray, and start Ray in the commands"
                    remedy = remove(text, at="spec.plugins.ray")
                    yield refuse(pod.command_path, f"{seen} by {command}", remedy)
