"""The pods of a ModelServing's roles."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kthena_components.core import naming
from kthena_components.core.objects.gang import Gang
from kthena_components.core.objects.kinds import MODEL_SERVING, VOLCANO
from kthena_components.core.objects.object import PodSet, copies_in, pod_set
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.display import display
from kthena_components.core.values.read import count, mapping, text
from kthena_components.core.values.unknown import MaybeInt
from kthena_components.systems.kthena.view import Role, Serving

_ANY = re.compile(".*")
_HASHES = (naming.REVISION, naming.ROLE_TEMPLATE_HASH)
_LWS = "leaderworkerset.sigs.k8s.io/"
_LWS_LABELS = ("name", "group-index", "group-key", "worker-index")


def pods(view: Serving) -> Iterator[PodSet]:
    """Return the entry pods and the worker pods of each role."""
    groups = copies_in(view.spec.get("replicas"), 1)
    for role in view.roles:
        engines = product(groups, copies_in(role.fields.get("replicas"), 1))
        yield from (made for made, _ in _of_role(view, role, engines))


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


def _added(view: Serving, role: Role, *, is_entry: bool) -> Mapping[str, object] | None:
    """Return the labels that Kthena adds to those of a template; those of the template win.

    Source: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go createBasePod, and
    plugins/lws_labels_plugin.go.
    """
    if view.object.group_kind != MODEL_SERVING:
        return None  # a ModelInfer, whose controller adds others
    added: dict[str, object] = {naming.NAME: view.name, naming.ROLE: role.name}
    for key, name in ((naming.GROUP_NAME, view.name), (naming.ROLE_ID, role.name)):
        known = isinstance(name, str)
        added[key] = re.compile(rf"{re.escape(str(name))}-[0-9]+") if known else name
    if is_entry:
        added[naming.ENTRY] = "true"
    added |= dict.fromkeys(_HASHES, _ANY)
    if view.spec.get("plugins"):
        added |= {f"{_LWS}{name}": _ANY for name in _LWS_LABELS}
    return added
