"""Checks that roles which form one engine do not wait for each other to be ready."""

from collections.abc import Iterator

from kthena_components.core.facts.engine_grouping import EngineTemplate
from kthena_components.core.facts.listening import server_port
from kthena_components.core.facts.ports import DECIDING
from kthena_components.core.findings import Finding, refuse
from kthena_components.core.remedies import remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import sequence, unknown_in
from kthena_components.systems.rbg.facts import parts_of
from kthena_components.systems.rbg.view import LEADER_WORKER, RbgRole, RbgView


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
