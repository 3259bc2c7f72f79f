"""Pod templates as KServe needs them: the names of containers, and Kthena's variables.

KServe finds a container by its name, and takes the first one of a pod for the model's. Source:
kserve v0.20.0 pkg/constants/constants.go and
pkg/controller/v1beta1/inferenceservice/components/predictor.go.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.plan.read_back import without_env
from kthena_components.core.plan.serving_plan import RolePlan
from kthena_components.core.plan.templates import with_env
from kthena_components.core.templates import Template
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.systems.kserve.nodes import RayNodes, Shortage, compute_ray_nodes
from kthena_components.systems.kserve.view import GPU_TYPES

HEAD, WORKER = "kserve-container", "worker-container"
ADDRESS = "HEAD_SVC"
OWN_ENV = (
    ADDRESS,
    "INFERENCE_SERVICE_NAME",
    "ISVC_NAME",
    "MODEL_DIR",
    "MODEL_NAME",
    "PIPELINE_PARALLEL_SIZE",
    "RAY_NODE_COUNT",
    "REQUEST_GPU_COUNT",
    "TENSOR_PARALLEL_SIZE",
    "WORKER_SVC",
)
"""Variables that KServe sets in the containers of an engine, over those in the object."""
_SAME = {same: name for name, same in naming.LWS_ENV.items()}
"""LeaderWorkerSet's name of each of Kthena's variables."""


def containers(template: Template, kind: str = "containers") -> Sequence[Mapping[str, Any]]:
    """Return the containers of a template, or its initContainers."""
    return (template.get("spec") or {}).get(kind) or []


def main_container(template: Template) -> Mapping[str, Any]:
    """Return the container that starts the engine, or else the first one."""
    listed, name = containers(template), read_pod(template, "").container
    return next((one for one in listed if name is not None and one.get("name") == name), listed[0])


def named(template: Template, name: str) -> Template:
    """Return a template with the container of the engine first, under the name for KServe."""
    main = main_container(template)
    rest = [one for one in containers(template) if one is not main]
    spec = {**template["spec"], "containers": [{**main, "name": name}, *rest]}
    return {**template, "spec": spec}


def named_role(role: RolePlan) -> RolePlan:
    """Return a role whose templates have KServe's names."""
    worker = role.worker if role.worker_replicas else None
    entry = named(role.entry, HEAD)
    return replace(role, entry=entry, worker=None if worker is None else named(worker, WORKER))


def mentions(part: object, *names: str) -> bool:
    """Return whether a template contains one of these names of variables."""
    words = "|".join(map(re.escape, names))
    return re.search(rf"(?<!\w)(?:{words})(?!\w)", json.dumps(part, default=str)) is not None


def spellings(name: str) -> tuple[str, str]:
    """Return the names of one of Kthena's variables: Kthena's own, and LeaderWorkerSet's."""
    return name, _SAME[name]


def with_variables(template: Template, role: RolePlan, *, worker: bool) -> Template:
    """Add the variables of Kthena that the template uses, so that it runs unchanged.

    The head's address is its own; workers get it from KServe, which sets the value of HEAD_SVC and
    leaves its place in the list. An engine of two pods has one worker, with the index 1.
    """
    address: dict[str, Any] = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    values: dict[str, dict[str, Any]] = {
        naming.GROUP_SIZE: {"value": str(role.pods)},
        naming.ENTRY_ADDRESS: {"value": f"$({ADDRESS})"} if worker else address,
        naming.WORKER_INDEX: {"value": "1" if worker else "0"},
    }
    env: list[dict[str, Any]] = []
    for name, value in values.items():
        used = (one for one in spellings(name) if mentions(template, one))
        env += [{"name": one, **value} for one in used]
    if not env:
        return template
    if worker:
        env.insert(0, {"name": ADDRESS, "value": ""})
    return with_env(template, env, first=True)


def without_variables(template: Template, env: Sequence[Mapping[str, Any]]) -> Template:
    """Remove variables that `with_variables` adds again, because the template still uses them."""
    for entry in env:
        rest = without_env(template, [entry])
        if mentions(rest, str(entry["name"])):
            template = rest
    return template


# The sizes in a workerSpec from which KServe calculates exactly the pods of a plan.


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """An engine's GPUs, and the parallel sizes that describe it to KServe."""

    head_gpus: int
    worker_gpus: int
    tensor: int
    pipeline: int

    @property
    def made(self) -> RayNodes | Shortage:
        """The pods that KServe creates for them."""
        total = self.tensor * self.pipeline
        return compute_ray_nodes(total, self.worker_gpus, self.head_gpus)

    def fit(self, pods: int) -> bool:
        """Return whether KServe creates this number of pods, with these GPUs."""
        wanted = RayNodes(pods=pods, worker_gpus=self.worker_gpus, head_gpus=self.head_gpus)
        return self.made == wanted


def gpus_of(template: Template) -> int | None:
    """Count the GPUs that the engine's container requests; None without a count of one type."""
    amounts = (main_container(template).get("resources") or {}).get("requests") or {}
    stated = [parse_quantity(amounts[name]) for name in GPU_TYPES if name in amounts]
    if len(stated) != 1 or stated[0] is None or stated[0] != stated[0].to_integral_value():
        return None
    return int(stated[0])


def read_sizes(role: RolePlan) -> Sizes | None:
    """Return the sizes of the engine's command, or some that fit if it does not state them.

    None without GPUs in both pods: KServe would give each pod one.
    """
    head, worker = gpus_of(role.entry), gpus_of(role.worker or {"spec": {"containers": [{}]}})
    if not head or not worker:
        return None
    command = read_pod(role.entry, "").command
    if command is not None and command.engine is not None:
        tensor, pipeline = command.tensor, command.pipeline
        if isinstance(tensor, int) and isinstance(pipeline, int):
            return Sizes(head_gpus=head, worker_gpus=worker, tensor=tensor, pipeline=pipeline)
    ranks = head + worker * role.worker_replicas
    tensor = worker if ranks % worker == 0 else 1
    return Sizes(head_gpus=head, worker_gpus=worker, tensor=tensor, pipeline=ranks // tensor)


def sizes_of(role: RolePlan) -> tuple[int, int] | None:
    """Return tensorParallelSize and pipelineParallelSize."""
    sizes = read_sizes(role)
    return None if sizes is None else (sizes.tensor, sizes.pipeline)
