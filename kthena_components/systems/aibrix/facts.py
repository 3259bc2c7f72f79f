"""The facts of a StormService or a RoleSet: an engine on each pod, or group of pods, of a role."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.facts.engine_grouping import engines_among, templates_of
from kthena_components.core.facts.pod import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests, is_serving
from kthena_components.core.templates.patches import HIDDEN
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.read import mapping, name_of, unknown_in
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.aibrix.view import GROUP_SIZE, Role, RoleSets

_STRATEGY = "schedulingStrategy"


def facts(view: RoleSets) -> ServingFacts:
    """Read the facts of all roles."""
    found = view.object
    single = [role for role in view.roles if role.size == 1]
    parts = [
        part
        for role in single
        for part in templates_of(
            role.template,
            found.at(f"{role.path}.template"),
            role.name,
            role.instances,
            found.context,
        )
    ]
    groups = [e for role in view.roles if role.size != 1 for e in _of_group(view, role)]
    alone = [_times(e, view) for e in engines_among(parts, found.context)]
    hidden = [] if view.gap is None else [_hidden(view, view.gap)]
    return ServingFacts(
        path=found.at(view.path),
        name=name_of(found.body),
        engines=(*alone, *groups, *hidden),
        gang_expected=_placed_together(view),
    )


def _times(engine: EngineFacts, view: RoleSets) -> EngineFacts:
    """Return an engine of one RoleSet with the replicas of all RoleSets."""
    return replace(engine, replicas=product(engine.replicas, view.copies))


def _of_group(view: RoleSets, role: Role) -> Iterator[EngineFacts]:
    found, at = view.object, view.object.at(f"{role.path}.template")
    env = {} if isinstance(role.size, Unknown) else {GROUP_SIZE: str(role.size)}
    pod = fill_requests(read_pod(role.template, at, env, context=found.context))
    if is_serving(pod):
        yield EngineFacts(
            path=found.at(role.path),
            name=role.name,
            pods=role.size,
            replicas=product(role.instances, view.copies),
            entry=pod,
            worker=None,
        )


def _hidden(view: RoleSets, gap: Unknown) -> EngineFacts:
    path = view.object.at(f"{view.path}.roles")
    entry = read_pod(HIDDEN, path)
    return EngineFacts(path=path, name="?", pods=gap, replicas=1, entry=entry, worker=None)


def _placed_together(view: RoleSets) -> bool:
    """Return whether a gang places the pods, by the strategy of the RoleSet or of one role."""
    stated = [view.spec.get(_STRATEGY), *(role.fields.get(_STRATEGY) for role in view.roles)]
    specs = [mapping(mapping(role.template).get("spec")) for role in view.roles]
    schedulers = [spec.get("schedulerName") for spec in specs]
    asked = any(one is not None for one in stated) or "volcano" in schedulers
    return asked or any(map(unknown_in, schedulers))
