"""Reads the engines and pods of RoleBasedGroups: single pods, leaders with workers, components.

Source: sgl-project/rbg api/workloads/v1alpha2, v1alpha1, and pkg/discovery/env_builder.go.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kthena_components.core import naming
from kthena_components.core.facts.engine_grouping import EngineTemplate, engines_of
from kthena_components.core.facts.network import states_host_name
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, NameFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests, is_serving, relocated
from kthena_components.core.objects.cluster_objects import Gang
from kthena_components.core.objects.object import (
    VOLCANO,
    PodSet,
    as_copies,
    copies_in,
    pod_set,
    read_object,
)
from kthena_components.core.objects.retained_fields import kept_pods, kept_spec
from kthena_components.core.templates import HIDDEN
from kthena_components.core.values.read import (
    count_from_one,
    count_or_unknown,
    mapping,
    name_of,
    sequence,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, product
from kthena_components.systems.kubernetes.backends import leader_names
from kthena_components.systems.rbg.view import (
    COMPONENTS,
    LEADER_WORKER,
    PREFIX,
    RBG_SET,
    RbgRole,
    RbgTemplate,
    RbgView,
    components_of,
    places_of,
    read_rbg,
    template_of,
)
from kthena_components.systems.system import Body

GROUP_SIZE = "RBG_LWP_GROUP_SIZE"
"""Variable in every container of a leader and its workers; the leader counts."""


def facts(view: RbgView) -> ServingFacts:
    """Read the facts of a RoleBasedGroup or a RoleBasedGroupSet."""
    base, name = view.object.at(view.path), name_of(view.object.body)
    engines = [engine for role in view.roles for engine in _engines(view, role)]
    if view.gap:
        engines.append(_hidden(view, base, name))
    # The system's own rules check the gang: they name its annotation.
    return ServingFacts(
        path=base,
        name=name,
        engines=tuple(engines),
        gang_expected=True,
        copies=count_or_unknown(view.replicas, "replicas", 1),
        names=tuple(made for role in view.roles for made in _names(view, role)),
        unnamed_in="" if _names_pods(view) else view.object.stated_namespace,
    )


def _names_pods(view: RbgView) -> bool:
    """Return whether a template may give its pods names in DNS."""
    return view.gap is not None or any(
        states_host_name(body)
        for role in view.roles
        for field in ("leaderTemplatePatch", "workerTemplatePatch")
        for template in (template_of(view, role, field),)
        for body in (template.body, *(patch for _, patch in template.patches))
    )


def _names(view: RbgView, role: RbgRole) -> Iterator[NameFacts]:
    """Return the longest name of a role's workload or of its instances.

    RBG cuts the name of a workload to 63 characters. The name of an instance is a label of its
    pods. The default workload of v1alpha1 is a StatefulSet.

    Source: sgl-project/rbg api/workloads/v1alpha2/helper.go GetWorkloadName,
    pkg/reconciler/roleinstanceset/statefulmode getInstanceName and
    pkg/reconciler/roleinstance/utils GetSelectorMatchLabels.
    """
    name, replicas = view.object.metadata.get("name"), role.replicas
    if not isinstance(name, str) or not isinstance(role.name, str):
        return
    of = f"{name}-0" if view.object.group_kind == RBG_SET else name
    path, made = view.object.at(f"{role.path}.name"), f"{of}-{role.name}"
    kind = text(mapping(role.fields.get("workload")).get("kind"), "StatefulSet")
    if role.legacy and kind == "StatefulSet":
        limit = naming.STATEFUL_SET_NAME
        yield NameFacts(path=path, name=made, limit=limit, what="StatefulSet")
    elif role.legacy and kind == "LeaderWorkerSet":
        pods = role.pods
        workers = pods - 1 if isinstance(pods, int) else pods
        yield from leader_names(path, made, as_copies(replicas), workers)
    elif not role.legacy or kind in {"RoleInstanceSet", "InstanceSet"}:
        last = max(replicas - 1, 0) if isinstance(replicas, int) else 0
        limit = naming.DNS_LABEL
        yield NameFacts(path=path, name=f"{made}-{last}", limit=limit, what="instance")


def _hidden(view: RbgView, path: str, name: str) -> EngineFacts:
    pods = Unknown("the roles are not known yet")
    entry = read_pod(HIDDEN, f"{path}.roles", context=view.object.context)
    return EngineFacts(path=path, name=name, pods=pods, replicas=1, entry=entry, worker=None)


def _engines(view: RbgView, role: RbgRole) -> Iterator[EngineFacts]:
    """Read the engines of a role: a leader with workers, or those among its components."""
    at, replicas = (
        view.object.at(role.path),
        count_from_one(role.fields.get("replicas"), "replicas"),
    )
    if role.pattern == LEADER_WORKER:
        yield _leader_worker(view, role, replicas)
        return
    for engine in engines_of(parts_of(view, role), replicas):
        several = role.pattern == COMPONENTS
        yield replace(engine, path=at, name=f"{_name(role)}-{engine.name}") if several else engine


def _name(role: RbgRole) -> str:
    return role.name if isinstance(role.name, str) else "?"


def _leader_worker(view: RbgView, role: RbgRole, replicas: MaybeInt) -> EngineFacts:
    """Describe an engine of one leader and workers, with patches of the shared template."""
    pods = role.pods
    env = {GROUP_SIZE: str(pods)} if isinstance(pods, int) else {}
    worker = _pod(view, template_of(view, role, "workerTemplatePatch"), env)
    return EngineFacts(
        path=view.object.at(role.path),
        name=_name(role),
        pods=pods,
        replicas=replicas,
        entry=_pod(view, template_of(view, role, "leaderTemplatePatch"), env),
        worker=None if pods == 1 else worker,
    )


def parts_of(view: RbgView, role: RbgRole) -> Iterator[EngineTemplate]:
    """Return the templates of a role without a leader; commands decide which form an engine."""
    if role.pattern != COMPONENTS:
        at, template = view.object.at(role.path), template_of(view, role)
        yield EngineTemplate(
            path=at, name=_name(role), count=1, template=template.body, pod=_pod(view, template)
        )
        return
    for component in components_of(role):
        name = component.name
        yield EngineTemplate(
            path=view.object.at(component.path),
            name=name if isinstance(name, str) else "?",
            count=count_from_one(component.size, "size"),
            template=component.template.body,
            pod=_pod(view, component.template),
        )


def _pod(view: RbgView, template: RbgTemplate, env: Mapping[str, str] | None = None) -> PodFacts:
    """Read a template as the controller makes it, with paths to where its parts are written."""
    found, written = view.object, places_of(template)
    if written is None:
        at = found.at(template.path)
        return fill_requests(read_pod(template.body, at, env, context=found.context))
    pod = fill_requests(read_pod(template.body, "", env, context=found.context))
    return relocated(pod, lambda path: found.at(written(path)))


# The pods of a RoleBasedGroup's roles, and the part of it that is kept to read them again.


_ROLES = Unknown("the roles are not known yet")
_CONTAINERS = Unknown("the containers are not known yet")


def pods_of_roles(view: RbgView) -> Iterator[PodSet]:
    """Return the pods of each role, from templates as the controller creates them."""
    yield from _pods_of(view, copies_in(view.replicas, 1))


def _pods_of(view: RbgView, groups: MaybeInt) -> Iterator[PodSet]:
    """Return the pods of each role in a number of equal groups."""
    found = view.object
    if view.gap:
        number = product(groups, _ROLES)
        yield pod_set(found, f"{view.path}.roles", _ROLES, number, by_controller=True)
    for role in view.roles:
        instances = product(groups, copies_in(role.fields.get("replicas"), 1))
        made = zip(_templates_of(view, role), _spread(view, role), strict=False)
        for (template, each), spread in made:
            number, written = product(instances, each), places_of(template)
            path, body = template.path, _CONTAINERS if unknown_in(template.body) else template.body
            if body is not None:
                made_of = pod_set(
                    found, path, body, number, by_controller=True, spread=spread, written=written
                )
                yield replace(made_of, name=role.name if isinstance(role.name, str) else "")


_GANG = f"{PREFIX}group-gang-scheduling"
_QUEUE = f"{_GANG}-volcano-queue"
_ONE_OF_INSTANCE = Unknown("RBG counts one pod of each instance with several components")


def gangs_of_group(view: RbgView) -> Iterator[Gang]:
    """Return all pods of a group that Volcano schedules together, in the queue that it names.

    Each group of a set is a gang. In v1alpha1 podGroupPolicy asks for it, later the annotations do.
    Without a queue there, it is Volcano's if Volcano schedules all pods. RBG leaves schedulerName
    as the templates state it.

    Source: sgl-project/rbg v0.4.0 to v0.6.0 pkg/scheduler/podgroup_manager.go; v0.8.0-alpha.5
    pkg/scheduler/volcano/manager.go (createOrUpdate), api/workloads/v1alpha2/helper.go
    (GetGroupSize) and api/workloads/v1alpha1/rolebasedgroup_conversion.go.
    """
    policy = mapping(mapping(view.spec.get("podGroupPolicy")).get("volcanoScheduling"))
    queue, path = policy.get("queue"), f"{view.path}.podGroupPolicy.volcanoScheduling.queue"
    asked = "volcanoScheduling" in mapping(view.spec.get("podGroupPolicy"))
    if not asked:
        asked = view.annotations.get(_GANG) == "true"
        queue, path = view.annotations.get(_QUEUE), f"{view.annotations_path}.{_QUEUE}"
    if not asked or view.gap:
        return
    pods = list(_pods_of(view, 1))
    sure = all(pod.spec.get("schedulerName") == VOLCANO for pod in pods)
    if "podGroupPolicy" not in path and queue is None and not sure:
        return
    in_parts = any(len(list(components_of(role))) > 1 for role in view.roles)
    yield Gang(
        owner=view.object,
        title="each group" if view.object.group_kind == RBG_SET else "the group",
        pods=tuple((one, _ONE_OF_INSTANCE if in_parts else as_copies(one.count)) for one in pods),
        queue=text(queue, ""),
        queue_path=path,
        sure=sure,
    )


def _templates_of(view: RbgView, role: RbgRole) -> Iterator[tuple[RbgTemplate, MaybeInt]]:
    """Return the templates of a role, and the pods of each in an instance."""
    if role.pattern == LEADER_WORKER:
        rest = role.pods if isinstance(role.pods, Unknown) else role.pods - 1
        yield template_of(view, role, "leaderTemplatePatch"), 1
        if rest != 0:
            yield template_of(view, role, "workerTemplatePatch"), rest
    elif role.pattern == COMPONENTS:
        for component in components_of(role):
            yield component.template, copies_in(component.size, 1)
    else:
        yield template_of(view, role), 1


def _spread(view: RbgView, role: RbgRole) -> list[bool]:
    """Return for each template of a role whether its pods form engines of several pods."""
    if role.pattern == LEADER_WORKER:
        return [role.pods != 1] * 2
    parts = list(parts_of(view, role))
    engines = engines_of(parts)
    wide = {e.path for e in engines if isinstance(e.pods, int) and e.pods > 1}
    joined = bool(wide) and len(engines) == 1
    return [part.path in wide or (joined and is_serving(part.pod)) for part in parts]


def kept_roles(body: Body) -> Body:
    """Keep what the rules over a stack compare; everything if the pods need more than that.

    A patch is merged by names and directives outside of it, and whether the pods that share a claim
    are one engine depends on their command lines.
    """
    view = read_rbg(read_object(body))
    templates = (made for role in view.roles for made, _ in _templates_of(view, role))
    return kept_spec(body) if any(map(_needs_all, templates)) else kept_pods(body)


def _needs_all(template: RbgTemplate) -> bool:
    volumes = sequence(mapping(mapping(template.body).get("spec")).get("volumes"))
    shared = any("persistentVolumeClaim" in mapping(volume) for volume in volumes)
    return shared or any(patch is not None for _, patch in template.patches)
