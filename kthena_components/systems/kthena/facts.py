"""Read a ModelServing: each role is an engine, with its entry and its workers.

Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1 and pkg/model-serving-controller; for earlier
versions the tags v0.1.0 to v0.4.0. Field by field in docs/backends.md.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.pod import read_pod
from kthena_components.core.facts.serving import EngineFacts, GangFacts, ServingFacts
from kthena_components.core.facts.workload import NO_SCHEDULER
from kthena_components.core.objects.kinds import MODEL_SERVING
from kthena_components.core.values.read import as_count, as_list, as_map, group_kind
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of a ModelServing; None for anything else."""
    if group_kind(body) != MODEL_SERVING:
        return None
    base = f"{path}.spec" if path else "spec"
    spec = as_map(body.get("spec"))
    template = as_map(spec.get("template"))
    roles = [as_map(role) for role in as_list(template.get("roles"))]
    engines = tuple(
        _read_role(role, f"{base}.template.roles[{index}]") for index, role in enumerate(roles)
    )
    scheduler = spec.get("schedulerName", "volcano")
    volcano_places = scheduler == "volcano"
    return ServingFacts(
        path=base,
        name=str(as_map(body.get("metadata")).get("name", "")),
        engines=engines,
        gang=_read_gang(template, engines, base) if volcano_places else None,
        gang_expected=NO_SCHEDULER if is_unresolved(scheduler) else volcano_places,
    )


def _read_role(role: Mapping[str, Any], path: str) -> EngineFacts:
    workers = as_count(role.get("workerReplicas"), "workerReplicas", 0)
    pods = workers if isinstance(workers, Unknown) else workers + 1
    env = {} if isinstance(pods, Unknown) else {naming.GROUP_SIZE: str(pods)}
    worker = role.get("workerTemplate") if workers != 0 else None
    return EngineFacts(
        path=path,
        name=str(role.get("name", "")),
        pods=pods,
        replicas=as_count(role.get("replicas"), "replicas", 1),
        entry=read_pod(role.get("entryTemplate"), f"{path}.entryTemplate", env),
        worker=None if worker is None else read_pod(worker, f"{path}.workerTemplate", env),
    )


def _read_gang(
    template: Mapping[str, Any], engines: tuple[EngineFacts, ...], base: str
) -> GangFacts:
    """Work out the gang that the controller will ask for; it always holds whole engines."""
    stated = as_map(as_map(template.get("gangPolicy")).get("minRoleReplicas"))
    minima: dict[str, MaybeInt] = {}
    member: MaybeInt = 0
    for engine in engines:
        wanted = as_count(stated.get(engine.name), f"minRoleReplicas.{engine.name}", -1)
        minimum = engine.replicas if wanted == -1 else wanted
        if isinstance(minimum, int) and isinstance(engine.replicas, int):
            minimum = min(minimum, engine.replicas)
        minima[engine.name] = minimum
        for value in (minimum, engine.pods):
            member = value if isinstance(value, Unknown) else member
        if isinstance(member, int) and isinstance(minimum, int) and isinstance(engine.pods, int):
            member += minimum * engine.pods
    return GangFacts(path=f"{base}.template.gangPolicy", min_member=member, minima=minima)
