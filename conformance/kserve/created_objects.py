"""What KServe creates for servings of the kserve backend, against their plans."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.kthena.emission import namespace
from conformance.report import Part
from conformance.support import observe
from conformance.support.serving_lives import amounts
from conformance.support.waiting import wait
from kthena_components.cluster.client import Cluster
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.systems.kserve.emit_objects import (
    MAIN,
    PREFILL,
    is_llm,
    service_name,
    split_roles,
)
from kthena_components.systems.kserve.templates import HEAD
from sandbox.cluster import create
from tests.support.specs import DATA_PARALLEL, Args, changed, example_for
from tests.systems.kserve.samples import LLM, SPLIT

_PATIENCE = 300
_SETS = "leaderworkerset.x-k8s.io/v1"
_COPIES = {**LLM["backend_options"], "replaces_presets": True}
SERVINGS: dict[str, Args] = {
    "single pods": example_for("kserve", "native-8b"),
    "a pipeline": LLM,
    "copies of the model": changed(
        DATA_PARALLEL, {"backend": "kserve", "backend_options": _COPIES}
    ),
    "prefill and decode": SPLIT,
}
Seen = Iterator[tuple[str, object, object]]


def compare_created(part: Part, api: Cluster) -> None:
    """Create each serving, and compare its workloads and pods."""
    for number, (about, args) in enumerate(SERVINGS.items()):
        space = f"kserve-{number}"
        namespace(api, space)
        made = compile_serving({**args, "namespace": space})
        create(api, [manifest.body for manifest in made.manifests])
        there = wait(lambda: len(observe.pods(api, space)) == made.plan.pods, _PATIENCE)  # noqa: B023
        found = observe.pods(api, space)
        part.check(f"{about}: KServe creates the planned pods", holds=there, seen=len(found))
        for what, planned, seen in _differences(api, space, made.plan):
            part.check(f"{about}: {what}", holds=planned == seen, seen=f"{seen}, not {planned}")
        part.count("pods compared", len(found))
        for manifest in reversed(made.manifests):
            api.delete(manifest.body)
        gone = wait(lambda: not observe.pods(api, space), _PATIENCE)  # noqa: B023
        part.check(f"{about}: no pod is left", holds=gone)


def _differences(api: Cluster, space: str, plan: ServingPlan) -> Seen:
    gpus = Counter[str]()
    for pod in observe.pods(api, space):
        gpus.update(_gpus(pod["spec"]["containers"]))
    planned = Counter[str]()
    for role in plan.roles:
        number = plan.groups * role.replicas
        for template, pods in ((role.entry, 1), (role.worker, role.worker_replicas)):
            each = _gpus((template or role.entry)["spec"]["containers"])
            planned.update({name: amount * pods * number for name, amount in each.items()})
    yield "the pods have the planned GPUs", dict(planned), dict(gpus)
    yield from _of_sets(api, space, plan) if is_llm(plan) else _of_deployment(api, space, plan)


def _of_deployment(api: Cluster, space: str, plan: ServingPlan) -> Seen:
    (role,) = plan.roles
    (made,) = api.list("apps/v1", "Deployment", space)
    name = f"{service_name(plan, role)}-predictor"
    yield "the Deployment's name", name, made["metadata"]["name"]
    yield "replicas", plan.groups * role.replicas, made["spec"]["replicas"]
    yield from _container(made["spec"]["template"], role.entry, HEAD, plan.scheduler)


def _of_sets(api: Cluster, space: str, plan: ServingPlan) -> Seen:
    main, prefill = split_roles(plan)
    roles: dict[str, RolePlan] = {f"{plan.name}-kserve-mn": main}
    if prefill is not None:
        roles[f"{plan.name}-kserve-mn-{PREFILL}"] = prefill
    made = {body["metadata"]["name"]: body for body in api.list(_SETS, "LeaderWorkerSet", space)}
    yield "the LeaderWorkerSets", sorted(roles), sorted(made)
    for name in roles.keys() & made.keys():
        role, spec = roles[name], made[name]["spec"]
        group = spec["leaderWorkerTemplate"]
        yield f"{name}: engines", plan.groups * role.replicas, spec["replicas"]
        yield f"{name}: pods of an engine", role.pods, group["size"]
        yield from _container(group["leaderTemplate"], role.entry, MAIN, plan.scheduler)
        yield from _container(
            group["workerTemplate"], role.worker or role.entry, MAIN, plan.scheduler
        )


def _container(
    made: Mapping[str, Any], planned: Mapping[str, Any], name: str, scheduler: str
) -> Seen:
    """Compare what starts an engine: KServe must leave it as it is."""
    wanted = planned["spec"]["containers"][0]
    containers: list[dict[str, Any]] = made["spec"]["containers"]
    found = next((one for one in containers if one["name"] == name), {})
    for field in ("image", "command", "args"):
        yield f"{name}: {field}", wanted.get(field), found.get(field)
    for field in ("requests", "limits"):
        yield f"{name}: {field}", amounts(wanted, field), amounts(found, field)
    stated = [each["name"] for each in wanted.get("env") or []]
    kept = [each["name"] for each in found.get("env") or [] if each["name"] in stated]
    yield f"{name}: the variables of the template, in order", stated, kept
    yield f"{name}: probe", wanted.get("readinessProbe") is None, "readinessProbe" not in found
    yield f"{name}: scheduler", scheduler, made["spec"].get("schedulerName")


def _gpus(containers: list[Mapping[str, Any]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for container in containers:
        for name, amount in amounts(container, "limits").items():
            if "/" in name:
                found[name] += int(amount or 0)
    return dict(found)
