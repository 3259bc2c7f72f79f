"""Read RoleBasedGroup and RoleBasedGroupSet: single pods, a leader and its workers, or components.

Source: sgl-project/rbg api/workloads/v1alpha2, v1alpha1, and pkg/discovery/env_builder.go.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.assembly import EngineTemplate, engines_of
from kthena_components.core.facts.pod import DeviceFacts, PodFacts, read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests
from kthena_components.core.findings import join_path
from kthena_components.core.templates.patches import HIDDEN
from kthena_components.core.values.read import (
    as_count,
    as_list,
    as_map,
    group_kind,
    mapping,
    name_of,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved
from kthena_components.systems.rbg.view import (
    COMPONENTS,
    LEADER_WORKER,
    RBG,
    RBG_SET,
    RbgRole,
    RbgTemplate,
    RbgView,
    read_rbg,
    template_of,
)

KINDS = frozenset({RBG, RBG_SET})
GROUP_SIZE = "RBG_LWP_GROUP_SIZE"
"""Put into every container of a leader and its workers; the leader counts."""
_SHAPELESS = Unknown("the size of the instance is not a count of 1 or more")


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of a RoleBasedGroup or a RoleBasedGroupSet; None for anything else."""
    if group_kind(body) not in KINDS:
        return None
    view = read_rbg(body)
    base = join_path(path, view.path)
    engines = [engine for role in view.roles for engine in _engines(view, role, path)]
    if _is_hidden(body):
        engines.append(_hidden(base, name_of(body)))
    # Whether a gang places the pods is judged by the system's own rules, which name its annotation.
    several = as_map(body.get("spec")).get("replicas") if group_kind(body) == RBG_SET else 1
    return ServingFacts(
        path=base,
        name=name_of(body),
        engines=tuple(engines),
        gang_expected=True,
        copies=as_count(several, "replicas", 1),
    )


def _is_hidden(body: Mapping[str, Any]) -> bool:
    """Tell whether the roles, or what they are in, are not known yet."""
    place: object = body
    for key in ("spec", "groupTemplate", "template", "spec", "roles"):
        place = as_map(place).get(key, place)
    return is_unresolved(place)


def _hidden(path: str, name: str) -> EngineFacts:
    pods, entry = Unknown("the roles are not known yet"), read_pod(HIDDEN, f"{path}.roles")
    return EngineFacts(path=path, name=name, pods=pods, replicas=1, entry=entry, worker=None)


def _engines(view: RbgView, role: RbgRole, path: str) -> Iterator[EngineFacts]:
    name = role.name if isinstance(role.name, str) else "?"
    at, replicas = join_path(path, role.path), _count(role.fields.get("replicas"), "replicas")
    if role.pattern == LEADER_WORKER:
        yield _leader_worker(view, role, path, name, replicas)
    elif role.pattern == COMPONENTS:
        for engine in engines_of(_components(role, path), replicas):
            yield replace(engine, path=at, name=f"{name}-{engine.name}")
    else:
        template = template_of(view, role)
        pod = _pod(template, path)
        part = EngineTemplate(path=at, name=name, count=1, template=template.body, pod=pod)
        yield from engines_of([part], replicas)


def _count(value: object, what: str) -> MaybeInt:
    return value if isinstance(value, Unknown) else as_count(value, what, 1)


def _leader_worker(
    view: RbgView, role: RbgRole, path: str, name: str, replicas: MaybeInt
) -> EngineFacts:
    size = role.size
    pods: MaybeInt = _SHAPELESS if size is None or size == 0 else size
    pods = _SHAPELESS if isinstance(pods, int) and pods < 1 else pods
    env = {GROUP_SIZE: str(pods)} if isinstance(pods, int) else {}
    worker = _pod(template_of(view, role, "workerTemplatePatch"), path, env)
    return EngineFacts(
        path=join_path(path, role.path),
        name=name,
        pods=pods,
        replicas=replicas,
        entry=_pod(template_of(view, role, "leaderTemplatePatch"), path, env),
        worker=None if pods == 1 else worker,
    )


def _components(role: RbgRole, path: str) -> Iterator[EngineTemplate]:
    for index, item in enumerate(as_list(role.held.get("components"))):
        fields, at = as_map(item), f"{role.at}.components[{index}]"
        template = HIDDEN if is_unresolved(item) else fields.get("template")
        name = fields.get("name")
        yield EngineTemplate(
            path=join_path(path, at),
            name=name if isinstance(name, str) and not is_unresolved(name) else "?",
            count=_count(fields.get("size"), "size"),
            template=template,
            pod=_pod(RbgTemplate(body=template, path=f"{at}.template"), path),
        )


def _pod(template: RbgTemplate, path: str, env: Mapping[str, str] | None = None) -> PodFacts:
    """Read a template as it is made, and say of its command and GPUs where they are written."""
    pod = fill_requests(read_pod(template.body, join_path(path, template.path), env))
    for at, patch in template.patches:
        containers = as_list(as_map(mapping(patch).get("spec")).get("containers"))
        for index, container in enumerate(map(as_map, containers)):
            stated, place = container.get("name"), join_path(path, f"{at}.spec.containers[{index}]")
            if stated != pod.container:
                continue
            key = next((key for key in ("args", "command") if key in container), None)
            if key is not None:
                pod = replace(pod, command_path=f"{place}.{key}")
            if "resources" in container:
                moved = (_moved(device, place, pod.container) for device in pod.devices)
                pod = replace(pod, gpus_path=f"{place}.resources", devices=tuple(moved))
    return pod


def _moved(device: DeviceFacts, place: str, container: str | None) -> DeviceFacts:
    same = device.container == container
    return replace(device, path=f"{place}.resources") if same else device
