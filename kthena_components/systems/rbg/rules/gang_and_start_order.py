"""Checks of gangs, and that roles which form one engine do not wait for each other to be ready."""

from collections.abc import Iterator
from typing import Any

from kthena_components.core.facts.engine_grouping import EngineTemplate
from kthena_components.core.facts.listening import server_port
from kthena_components.core.facts.ports import DECIDING
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import (
    Finding,
    advise,
    count_of,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.remedies import remove, write
from kthena_components.core.rules.support.engine_pods import needs_gang
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    unknown_in,
)
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.rbg.facts import facts, parts_of, pods_of_roles
from kthena_components.systems.rbg.view import LEADER_WORKER, PREFIX, RbgRole, RbgView, template_of

_RULE = "rbg-gang"
_GANG, _INSTANCE = f"{PREFIX}group-gang-scheduling", f"{PREFIX}role-instance-gang-scheduling"
_DETAILS = ("timeout", "volcano-queue", "volcano-priority")
_APART, _HASH = f"{PREFIX}group-exclusive-topology", f"{PREFIX}group-unique-hash"


def rbg_gang(view: RbgView) -> Iterator[Finding]:
    """The pods of an instance start together, and the annotations about that have an effect.

    One annotation with the value "true" makes one gang of all pods. It excludes the annotation for
    one gang per instance; a queue, a priority or a timeout alone has no effect; and a queue of
    Volcano needs pods that Volcano schedules. Pods without GPUs and without a command line of a
    known engine, such as web servers, need no gang. With group-exclusive-topology, all releases
    that know this annotation ask for a label that the pods do not get.

    Pass: group-gang-scheduling "true" and volcano-queue research, schedulerName volcano.
    Fail: leaderWorkerPattern of size 4 and no gang; a queue and pods without schedulerName volcano;
    group-exclusive-topology.
    Level: advisory; mandatory for both annotations at once, which the controller rejects.
    Source: sgl-project/rbg pkg/scheduler/volcano/manager.go; pkg/reconciler/pod_reconciler.go and
    api/workloads/v1alpha2/helper.go of v0.7.0 to v0.8.0-alpha.5;
    internal/controller/workloads/rolebasedgroup_controller.go. Run on v0.8.0-alpha.5.
    """
    yield from _apart(view)
    at, asked = view.annotations_path, view.annotations.get(_GANG)
    each = view.annotations.get(_INSTANCE)
    require_known(f"{at}.{_GANG}", asked, each)
    if asked == "true" and each == "true":
        seen = f'is "true", as is {_INSTANCE}, and a group has 1 of the two'
        yield refuse(f"{at}.{_GANG}", seen, "remove one of them", _RULE)
        return
    if asked is not None and asked not in ("true", "false"):
        seen = f'is {display(asked)}, and only "true" makes a gang'
        yield advise(f"{at}.{_GANG}", seen, write("true", 'write "true"'), _RULE)
    gang = asked == "true" or view.spec.get("podGroupPolicy") is not None
    yield from _details(view, gang=gang)
    engines = {engine.path: engine for engine in facts(view).engines}
    for role in view.roles if not gang and each != "true" else ():
        yield from _alone(role, engines.get(view.object.at(role.path)))


@part_of_rule
def _apart(view: RbgView) -> Iterator[Finding]:
    """Report an affinity that RBG adds to the pods, and that none of them meets."""
    path, key = f"{view.annotations_path}.{_APART}", view.annotations.get(_APART)
    if key in (None, ""):
        return
    pods = list(pods_of_roles(view))
    require_known(path, key, *(one.labels.get(_HASH) for one in pods))
    if not pods or any(_HASH in one.labels for one in pods):
        return
    seen = f"is {display(key)}, but RBG 0.7.0 to 0.8.0-alpha.5 ask for pods with the label {_HASH} "
    seen += "and add no such label, so no pod ever starts"
    instead = f"and write podAffinity over the label {PREFIX}group-name in the templates"
    remedy = remove(f"remove it, {instead}")
    yield advise(path, seen, remedy, _RULE)


def _details(view: RbgView, *, gang: bool) -> Iterator[Finding]:
    """Check annotations that refine a gang, which have no effect without it."""
    for detail in _DETAILS:
        key = f"{_GANG}-{detail}"
        at, value = f"{view.annotations_path}.{key}", view.annotations.get(key)
        if value is None:
            continue
        if not gang:
            seen = f"is {display(value)}, but no gang is requested, so it has no effect"
            yield advise(at, seen, f'add {_GANG}: "true"', _RULE)
        elif detail == "volcano-queue":
            yield from _schedulers(view, at, value)


def _schedulers(view: RbgView, at: str, queue: object) -> Iterator[Finding]:
    """Check that Volcano schedules the pods: it ignores those of other schedulers."""
    names = [name for role in view.roles if (name := _scheduler(view, role)) is not None]
    others = [name for name in names if name != "volcano"]
    if any(unknown_in(name) for name in others):
        gap = Unknown("the scheduler of the pods is not known yet")
        yield not_checked(at, gap, _RULE)
    elif others:
        stated = display(others[0]) if others[0] else "not stated"
        seen = (
            f"is {display(queue)}, but schedulerName of {len(others)} of "
            f"{count_of(len(names), 'role')} is "
        )
        seen += f"{stated}, and Volcano only gang-schedules its own pods"
        yield advise(at, seen, "write schedulerName: volcano", _RULE)


def _scheduler(view: RbgView, role: RbgRole) -> Any:
    """Return the scheduler of a role's pods: empty if not stated, None without pods."""
    if role.held.get("components") is not None:
        return None
    body = template_of(view, role).body
    if unknown_in(body):
        return body
    return mapping(mapping(body).get("spec")).get("schedulerName", "")


@part_of_rule
def _alone(role: RbgRole, engine: EngineFacts | None) -> Iterator[Finding]:
    """Advise a gang for a leader with workers that need each other to start."""
    own = mapping(role.fields.get("annotations")).get(_INSTANCE)
    size = role.size
    if role.pattern != LEADER_WORKER or size == 1 or own == "true" or size is None:
        return
    require_known(role.path, own, size)
    if not isinstance(size, int) or size <= 1 or (engine is not None and not needs_gang(engine)):
        return
    if engine is not None and (gap := _unread(engine)):
        yield not_checked(role.path, gap, _RULE)
        return
    seen = f"creates {count_of(size, 'pod')} that must start together, but requests no gang"
    yield advise(role.path, seen, f'annotate {_GANG}: "true"', _RULE)


def _unread(engine: EngineFacts) -> Unknown | None:
    """Return why it is not known whether the pods have GPUs, unless they start an engine."""
    pods = (engine.entry, engine.worker or engine.entry)
    starts = any(pod.command is not None and pod.command.engine for pod in pods)
    return None if starts else first_unknown(*(pod.gpus for pod in pods))


def rbg_start_order(view: RbgView) -> Iterator[Finding]:
    """No role with workers of an engine depends on the role with its first pod.

    RBG creates the pods of a role when the roles in its dependencies are ready. An engine over the
    pods of two roles answers requests when all of them have joined it. So its first pod never
    becomes ready if it has a readinessProbe or a startupProbe on the port of the server, and RBG
    never creates the workers.

    Pass: the workers of Ray without dependencies; a head without probes; decode depends on prefill.
    Fail: role worker with `ray start --address`, which depends on role head with `ray start --head`
    and `vllm serve` over the GPUs of both, with a readinessProbe on port 8000.
    Level: mandatory.
    Source: sgl-project/rbg v0.5.0 to v0.8.0-alpha.5 pkg/dependency/dependency.go
    CheckDependencyReady and internal/controller/workloads/rolebasedgroup_controller.go;
    vllm/v1/engine/utils.py wait_for_engine_startup; sglang/srt/entrypoints/engine.py.
    """
    apart = {role.name: role for role in view.roles if role.pattern != LEADER_WORKER}
    for role in apart.values():
        listed = sequence(role.fields.get("dependencies"))
        if any(map(unknown_in, listed)) or not any(map(_joins, parts_of(view, role))):
            continue
        for index, name in enumerate(listed):
            first = apart.get(name) if isinstance(name, str) else None
            if first is not None and first is not role:
                path = view.object.at(f"{role.path}.dependencies")
                yield from _waits(view, first, role, (path, index, listed))


def _joins(part: EngineTemplate) -> bool:
    """Return whether the pods of a template only join the engine of others."""
    command = part.pod.command
    if command is None:
        return False
    by_ray = command.engine is None and command.ray_role == "worker"
    later = isinstance(command.node_rank, int) and command.node_rank > 0
    return by_ray or later or command.headless is True


def _waits(
    view: RbgView, first: RbgRole, role: RbgRole, stated: tuple[str, int, object]
) -> Iterator[Finding]:
    """Report a role that waits until another is ready, which needs the first to become so."""
    path, index, listed = stated
    for part in parts_of(view, first):
        command, own = part.pod.command, part.pod.own
        port = server_port(command) if command is not None and _needs_others(part) else None
        if port is None or own is None:
            continue
        probe = next((p for p in own.ports.probes if p.kind in DECIDING and p.port == port), None)
        if probe is None:
            continue
        seen = (
            f"is {display(first.name)}, whose engine answers on {port} only when the pods of role "
            f"{display(role.name)} have joined, and its {probe.kind} (port {port}) waits for that"
        )
        rest = [name for at, name in enumerate(sequence(listed)) if at != index]
        remedy = write(rest, "remove it", at=path) if rest else remove(at=path)
        yield refuse(f"{path}[{index}]", seen, remedy)
        return


def _needs_others(part: EngineTemplate) -> bool:
    """Return whether the engine of a template needs more than its own pods."""
    command, gpus = part.pod.command, part.pod.gpus
    if command is None or command.hidden or command.engine is None:
        return False
    if isinstance(command.nnodes, int) and command.nnodes > 1:
        return True
    world = command.world
    return isinstance(world, int) and isinstance(gpus, int) and 0 < gpus < world
