"""Reads a ModelServing: its engines, its pods, and what rules over all objects read of it.

Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1 and pkg/model-serving-controller; for earlier
versions the tags v0.1.0 to v0.4.0. docs/backends/kthena.md lists every field.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from kthena_components.core import naming
from kthena_components.core.facts.network import states_host_name
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, GangFacts, ServingFacts
from kthena_components.core.facts.workload import NO_SCHEDULER
from kthena_components.core.objects.cluster_objects import Gang
from kthena_components.core.objects.object import MODEL_SERVING, VOLCANO, PodSet, copies_in, pod_set
from kthena_components.core.values.caches import cached_last
from kthena_components.core.values.dataclass import replace
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    count,
    count_or_unknown,
    mapping,
    text,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, Unknown, product
from kthena_components.systems.kthena.view import Role, Serving

_TEMPLATES = ("entryTemplate", "workerTemplate")


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
        copies=count_or_unknown(view.spec.get("replicas"), "replicas", 1),
        unnamed_in="" if _names_pods(view) else view.object.stated_namespace,
    )


def _names_pods(view: Serving) -> bool:
    """Return whether a template may give its pods names in DNS."""
    each = (mapping(role.fields) for role in view.roles)
    return any(states_host_name(f.get(key)) for f in each for key in _TEMPLATES)


def _read_role(view: Serving, role: Role) -> EngineFacts:
    """Read the engine of a role: the entry and workerReplicas pods beside it."""
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


# The pods of a ModelServing's roles.


_ANY = re.compile(".*")
_HASHES = (naming.REVISION, naming.ROLE_TEMPLATE_HASH)
_LWS_LABELS = ("name", "group-index", "group-key", "worker-index")


@cached_last
def pods(view: Serving) -> tuple[PodSet, ...]:
    """Return the entry pods and the worker pods of each role."""
    groups, found = copies_in(view.spec.get("replicas"), 1), list[PodSet]()
    for role in view.roles:
        engines = product(groups, copies_in(role.fields.get("replicas"), 1))
        found += (made for made, _ in _of_role(view, role, engines))
    return tuple(found)


def _of_role(view: Serving, role: Role, engines: MaybeInt) -> Iterator[tuple[PodSet, MaybeInt]]:
    """Return the entry pods and the worker pods of some engines of a role, and their numbers."""
    each = copies_in(role.fields.get("workerReplicas"), 0)
    for name, number in (("entryTemplate", engines), ("workerTemplate", product(engines, each))):
        template = role.fields.get(name)
        if template is not None:
            at, several = f"{role.path}.{name}", each != 0
            made = pod_set(view.object, at, template, number, by_controller=True, spread=several)
            added = _added(view, role, is_entry=name == "entryTemplate")
            yield replace(made, added=added), number


def gangs(view: Serving) -> Iterator[Gang]:
    """Return the pods of a ServingGroup that start together, and those of each role's engine.

    Source: Kthena v1.0.0 pkg/model-serving-controller/podgroupmanager/manager.go
    calculateRequirements and syncPodGroupNetworkTopology.
    """
    scheduler = text(view.spec.get("schedulerName"), VOLCANO)
    if scheduler != VOLCANO:
        return
    minima = mapping(mapping(view.template.get("gangPolicy")).get("minRoleReplicas"))
    policies, at = mapping(view.template.get("networkTopology")), "spec.template.networkTopology"
    found: list[tuple[PodSet, MaybeInt]] = []
    for role in view.roles:
        replicas = copies_in(role.fields.get("replicas"), 1)
        least = count(minima.get(role.name) if isinstance(role.name, str) else None)
        if isinstance(replicas, int) and isinstance(least, int):
            replicas = min(replicas, least)
        found += _of_role(view, role, replicas)
        if replicas != 0:
            yield Gang(
                owner=view.object,
                title=f"each engine of role {display(role.name)}",
                pods=tuple(_of_role(view, role, 1)),
                topology=mapping(policies.get("rolePolicy")),
                topology_path=f"{at}.rolePolicy",
            )
    yield Gang(
        owner=view.object,
        title="each ServingGroup",
        pods=tuple(found),
        queue=text(mapping(view.object.metadata.get("annotations")).get(naming.QUEUE_NAME), ""),
        queue_path=f"metadata.annotations.{naming.QUEUE_NAME}",
        topology=mapping(policies.get("groupPolicy")),
        topology_path=f"{at}.groupPolicy",
    )


@lru_cache(maxsize=64)
def _numbered(name: str) -> re.Pattern[str]:
    """Return the pattern of names with a number behind them. Few selectors ask for it."""
    return regex(rf"{re.escape(name)}-[0-9]+")


def _added(view: Serving, role: Role, *, is_entry: bool) -> Mapping[str, object] | None:
    """Return the labels that Kthena adds to a template's labels, which take precedence.

    Source: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go createBasePod, and
    plugins/lws_labels_plugin.go.
    """
    if view.object.group_kind != MODEL_SERVING:
        return None  # a ModelInfer, whose controller adds others
    added: dict[str, object] = {naming.NAME: view.name, naming.ROLE: role.name}
    for key, name in ((naming.GROUP_NAME, view.name), (naming.ROLE_ID, role.name)):
        added[key] = _numbered(name) if isinstance(name, str) else name
    if is_entry:
        added[naming.ENTRY] = "true"
    added |= dict.fromkeys(_HASHES, _ANY)
    if view.spec.get("plugins"):
        added |= {f"{naming.LWS_LABELS}{name}": _ANY for name in _LWS_LABELS}
    return added
