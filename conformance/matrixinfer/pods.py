"""Compares the pods, Services and gangs of a ModelInfer with the plan."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.support.observe import Pod
from conformance.support.serving_lives import Body, Check, Life, arrives, env_of, same_container
from kthena_components.core import naming
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.systems.matrixinfer.emit import ApiGroup
from kthena_components.systems.volcano.emit import SCHEDULING, render_topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """One controller that creates the pods of a ModelInfer."""

    name: str
    group: ApiGroup
    labels: str
    """Prefix of its labels."""
    written: Callable[[Body], Body] = lambda body: body
    may_stall: bool = True
    """Whether updates may stall. MatrixInfer's UpdateModelInferStatus can mark a group as running
    that the same reconciliation has begun to delete; nothing creates its pods again then."""
    has_tasks: bool = True
    """Whether its PodGroups have minTaskMember. Kthena 1.0 writes subGroupPolicy."""


def compared(life: Life, controller: Controller) -> Iterator[Check]:
    """Compare pods, Services, gangs and the status with the plan."""
    plan, found = life.compiled().plan, life.pods()
    services = {body["metadata"]["name"] for body in life.api.list("v1", "Service", life.space)}
    wanted: set[str] = set()
    for role in plan.roles:
        engines: Counter[str] = Counter()
        for pod in found:
            labels = pod["metadata"]["labels"]
            if labels.get(f"{controller.labels}role") != role.name:
                continue
            group, identity = (
                labels[f"{controller.labels}{key}"] for key in ("group-name", "role-id")
            )
            engine = f"{group}-{identity}"
            engines[engine] += 1
            for what, holds, seen in _differences(pod, role, engine, plan):
                yield what, holds, (pod["metadata"]["name"], seen)
        names = {
            naming.instance_name(plan.name, group, role.name, number)
            for group in range(plan.groups)
            for number in range(role.replicas)
        }
        fits = dict(engines) == dict.fromkeys(names, role.pods)
        yield "engines have the planned pods", fits, (role.name, dict(engines))
        wanted |= {f"{name}-0" for name in names} if role.worker else set()
    wanted |= {plan.name} if plan.expose else set()
    yield "Services are the planned ones", services == wanted, (sorted(services), sorted(wanted))
    yield from _gangs(life, plan, controller)
    yield arrives(life)


def _differences(pod: Pod, role: RolePlan, engine: str, plan: ServingPlan) -> Iterator[Check]:
    """Compare a pod with its template."""
    index = int(pod["metadata"]["name"].removeprefix(f"{engine}-"))
    template = role.worker if index and role.worker else role.entry
    for what, wanted, seen in same_container(pod, template):
        yield what, wanted == seen, (wanted, seen)
    told = {
        naming.GROUP_SIZE: str(role.pods),
        naming.ENTRY_ADDRESS: f"{engine}-0.{plan.namespace}",
        naming.WORKER_INDEX: str(index),
    }
    planned = template["spec"]["containers"][0].get("env") or []
    own = {each["name"]: each.get("value") for each in planned if each["name"] not in told}
    env = list(env_of(pod).items())
    yield (
        "its own variables, then those of the controller",
        env == [*own.items(), *told.items()],
        env,
    )
    spec = {key: value for key, value in template["spec"].items() if "ontainers" not in key}
    yield "fields of the pod", within(spec, pod["spec"]), spec
    yield "Volcano schedules it", pod["spec"]["schedulerName"] == plan.scheduler, pod["spec"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    yield "labels", within(labels, pod["metadata"]["labels"]), pod["metadata"]["labels"]


def within(planned: Any, made: Any) -> bool:
    """Return whether everything that is planned was made; the API server may add to it."""
    if isinstance(planned, Mapping):
        return isinstance(made, Mapping) and all(
            key in made and within(value, made[key]) for key, value in planned.items()
        )
    if isinstance(planned, (list, tuple)):
        return isinstance(made, list) and all(
            any(within(each, other) for other in made) for each in planned
        )
    return bool(planned == made)


def _gangs(life: Life, plan: ServingPlan, controller: Controller) -> Iterator[Check]:
    gangs = {
        body["metadata"]["name"]: body["spec"]
        for body in life.api.list(SCHEDULING, "PodGroup", life.space)
    }
    names = {naming.group_name(plan.name, group) for group in range(plan.groups)}
    yield "each group is a gang", set(gangs) == names, sorted(gangs)
    tasks = {
        naming.role_id(role.name, number): role.pods
        for role in plan.roles
        for number in range(role.gang_replicas)
    }
    topology = render_topology(plan.group_topology) if plan.group_topology else None
    for name, spec in gangs.items():
        yield "minMember", spec.get("minMember", 0) == plan.min_member, (name, spec)
        amounts = {
            key: parse_quantity(str(each)) for key, each in (spec.get("minResources") or {}).items()
        }
        yield (
            "minResources",
            +Counter(amounts) == +Counter(plan.min_resources),
            (amounts, plan.min_resources),
        )
        if controller.has_tasks:
            yield "minTaskMember", spec.get("minTaskMember", {}) == tasks, (spec, tasks)
        yield "topology", within(topology or {}, spec.get("networkTopology") or {}), (name, spec)
