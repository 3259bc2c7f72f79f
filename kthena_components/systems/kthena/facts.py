"""Reads a ModelServing: each role is an engine, with its entry and its workers.

Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1 and pkg/model-serving-controller; for earlier
versions the tags v0.1.0 to v0.4.0. docs/backends/kthena.md lists every field.
"""

from kthena_components.core import naming
from kthena_components.core.facts.pod import read_pod
from kthena_components.core.facts.serving import EngineFacts, GangFacts, ServingFacts
from kthena_components.core.facts.workload import NO_SCHEDULER
from kthena_components.core.values.read import (
    count_or_unknown,
    mapping,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.kthena.view import Role, Serving


def facts(view: Serving) -> ServingFacts:
    """Read the facts of a ModelServing."""
    engines = tuple(_read_role(view, role) for role in view.roles)
    scheduler = view.spec.get("schedulerName", "volcano")
    volcano_places = scheduler == "volcano"
    name = view.object.metadata.get("name")
    return ServingFacts(
        path=view.object.at("spec"),
        name=name if isinstance(name, str) else "",
        engines=engines,
        gang=_read_gang(view, engines) if volcano_places else None,
        gang_expected=NO_SCHEDULER if unknown_in(scheduler) else volcano_places,
        unread=unknown_inside(view.template.get("roles")),
    )


def _read_role(view: Serving, role: Role) -> EngineFacts:
    # Roles that are not known yet are skipped here: the rules over roles report them.
    fields, path, context = role.fields or {}, view.object.at(role.path), view.object.context
    workers = count_or_unknown(fields.get("workerReplicas"), "workerReplicas", 0)
    pods = workers if isinstance(workers, Unknown) else workers + 1
    env = {} if isinstance(pods, Unknown) else {naming.GROUP_SIZE: str(pods)}
    entry, worker = fields.get("entryTemplate"), fields.get("workerTemplate")
    if workers == 0:
        worker = None
    return EngineFacts(
        path=path,
        name=str(fields.get("name", "")),
        pods=pods,
        replicas=count_or_unknown(fields.get("replicas"), "replicas", 1),
        entry=read_pod(entry, f"{path}.entryTemplate", env, context=context),
        worker=None
        if worker is None
        else read_pod(worker, f"{path}.workerTemplate", env, context=context),
    )


def _read_gang(view: Serving, engines: tuple[EngineFacts, ...]) -> GangFacts:
    """Calculate the gang that the controller will request; it always covers whole engines."""
    stated = mapping(mapping(view.template.get("gangPolicy")).get("minRoleReplicas"))
    minima: dict[str, MaybeInt] = {}
    member: MaybeInt = 0
    for engine in engines:
        wanted = count_or_unknown(stated.get(engine.name), f"minRoleReplicas.{engine.name}", -1)
        minimum = engine.replicas if wanted == -1 else wanted
        if isinstance(minimum, int) and isinstance(engine.replicas, int):
            minimum = min(minimum, engine.replicas)
        minima[engine.name] = minimum
        for value in (minimum, engine.pods):
            member = value if isinstance(value, Unknown) else member
        if isinstance(member, int) and isinstance(minimum, int) and isinstance(engine.pods, int):
            member += minimum * engine.pods
    path = view.object.at("spec.template.gangPolicy")
    return GangFacts(path=path, min_member=member, minima=minima)
