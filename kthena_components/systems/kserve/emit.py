"""Writes an InferenceService or an LLMInferenceService of KServe, and reads back its facts.

Source: kserve v0.20.0; docs/backends/kserve.md lists every field.

The readers of facts.py read one object by itself, whose runtime may state anything. The emitted
object and its runtime are both known here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.objects.object import Object, read_object
from kthena_components.core.plan.facts import facts_without_groups
from kthena_components.core.plan.manifest import BUDGETS, SERVICES, Manifest, Resource
from kthena_components.core.plan.serving_plan import (
    RolePlan,
    ScrapeTargets,
    ServingPlan,
    Unit,
    entry_labels,
    only_with_pods,
)
from kthena_components.core.values.read import mapping, sequence, text
from kthena_components.systems.emitter import FOR_ALL, IDLE_WORKERS, Emitter
from kthena_components.systems.kserve.convert import CONVERTER
from kthena_components.systems.kserve.emit_objects import (
    CONFIG,
    LLM,
    MAIN,
    RUNTIME,
    VERSION,
    KserveOptions,
    emit_llm,
    emit_service,
    is_llm,
    leader_labels,
    service_name,
    split_roles,
)
from kthena_components.systems.kserve.emit_objects import entry_labels as llm_labels
from kthena_components.systems.kserve.limits import LIMITS, names, refuse
from kthena_components.systems.kserve.nodes import RayNodes
from kthena_components.systems.kserve.templates import HEAD, OWN_ENV, WORKER, named, named_role
from kthena_components.systems.kserve.view import (
    GPU_TYPES,
    GROUP,
    SERVICE,
    LlmService,
    LlmWorkload,
    MultiNode,
    Service,
    read_llm_service,
    read_service,
)
from kthena_components.systems.kubernetes.backends import emit_front

Body = Mapping[str, Any]
SIZES = (naming.GROUP_SIZE, naming.LWS_GROUP_SIZE)
_OF_KSERVE = frozenset({"modelFormat", "runtime", "storageUri"})
_NOT_OF_PODS = frozenset({"model", "workerSpec", "minReplicas", "deploymentStrategy"})


def planned(plan: ServingPlan) -> list[ServingFacts]:
    """Return the facts of a plan without ServingGroups and gangs, with KServe's container names."""
    roles = tuple(_as_main(role) if is_llm(plan) else named_role(role) for role in plan.roles)
    found = facts_without_groups(replace(plan, roles=roles), SIZES)
    return [replace(found, gang_expected=False)]


def _as_main(role: RolePlan) -> RolePlan:
    worker = None if role.worker is None else named(role.worker, MAIN)
    return replace(role, entry=named(role.entry, MAIN), worker=worker)


def read_back(bodies: Sequence[Body]) -> list[ServingFacts]:
    """Read the services of both kinds among some objects, each with its runtime."""
    found = [read_object(body) for body in bodies]
    runtimes = {one.name: one for one in found if one.group_kind == (GROUP, "ServingRuntime")}
    services = (one for one in found if one.group_kind == (GROUP, SERVICE))
    read = [fact for one in services for fact in _facts(read_service(one), runtimes)]
    llms = (read_llm_service(one) for one in found if one.group_kind == (GROUP, LLM))
    return read + [fact for one in llms for fact in _llm_facts(one)]


def _llm_facts(view: LlmService) -> Iterator[ServingFacts]:
    """Read the pods of an LLMInferenceService that no preset changes."""
    name = text(mapping(view.object.metadata.get("labels")).get(naming.NAME))
    if isinstance(name, str):
        engines = tuple(_workload(view, workload) for workload in view.workloads)
        yield ServingFacts(path=view.object.at("spec"), name=name, engines=engines)


def _workload(view: LlmService, workload: LlmWorkload) -> EngineFacts:
    """Read the engine of a workload that this package wrote, with KServe's group sizes."""
    at, pods, fields = view.object.at(workload.path), workload.pods, workload.fields
    metadata = {"annotations": mapping(fields.get("annotations"))}
    env = dict.fromkeys(SIZES, str(pods)) if isinstance(pods, int) else {}
    entry, worker = (
        read_pod({"metadata": metadata, "spec": fields.get(key)}, f"{at}.{key}", env)
        for key in ("template", "worker")
    )
    name = text(mapping(fields.get("labels")).get(naming.ROLE))
    return EngineFacts(
        path=at,
        name=name if isinstance(name, str) else "",
        pods=pods,
        replicas=workload.replicas,
        entry=entry,
        worker=worker,
    )


def _facts(view: Service, runtimes: Mapping[Any, Object]) -> Iterator[ServingFacts]:
    """Read the serving of an InferenceService that has this package's labels."""
    labels = mapping(view.object.metadata.get("labels"))
    name, role = text(labels.get(naming.NAME)), text(labels.get(naming.ROLE))
    if not isinstance(name, str) or not isinstance(role, str):
        return
    runtime = runtimes.get(text(mapping(view.holder.get("model")).get("runtime")))
    spec = runtime.spec if runtime else {}
    engine = _single(view, role)
    if view.many is not None:
        engine = _several(view, view.many, role, spec)
    yield ServingFacts(path=view.object.at("spec"), name=name, engines=(engine,))


def _single(view: Service, role: str) -> EngineFacts:
    pods = _template(view.holder, view.holder, sequence(view.holder.get("containers")))
    return _engine(view, role, 1, pods, None)


def _several(view: Service, many: MultiNode, role: str, runtime: Body) -> EngineFacts:
    """Read head and worker as KServe merges them, with the GPUs that it calculates."""
    nodes = many.nodes
    made = nodes if isinstance(nodes, RayNodes) else RayNodes(pods=0, worker_gpus=0, head_gpus=0)
    model = mapping(view.holder.get("model"))
    main = {key: value for key, value in model.items() if key not in _OF_KSERVE}
    beside = sequence(view.holder.get("containers"))
    head = [_with_gpus({**main, "name": HEAD}, made.head_gpus), *beside]
    listed = map(mapping, sequence(many.fields.get("containers"))[:1])
    rest = [_with_gpus({**one, "name": WORKER}, made.worker_gpus) for one in listed]
    entry = _template(view.holder, runtime, head)
    worker = _template(many.fields, mapping(runtime.get("workerSpec")), rest)
    return _engine(view, role, made.pods, entry, worker)


def _with_gpus(container: Body, gpus: int) -> Body:
    """Write calculated GPUs over the stated ones, and leave out variables that KServe sets."""
    resources = {
        kind: {
            key: str(gpus) if key in GPU_TYPES else amount
            for key, amount in mapping(stated).items()
        }
        for kind, stated in mapping(container.get("resources")).items()
    }
    env = [
        item for item in sequence(container.get("env")) if mapping(item).get("name") not in OWN_ENV
    ]
    return {**container, "resources": resources, "env": env}


def _template(fields: Body, beside: Body, containers: Sequence[Any]) -> Body:
    spec = {key: value for key, value in fields.items() if key not in _NOT_OF_PODS}
    metadata = {"annotations": mapping(beside.get("annotations"))}
    return {"metadata": metadata, "spec": {**spec, "containers": list(containers)}}


def _engine(view: Service, role: str, pods: int, entry: Body, worker: Body | None) -> EngineFacts:
    """Read an engine over pods; KServe tells each container the number of pods."""
    at, env = view.object.at(view.path), dict.fromkeys(SIZES, str(pods))
    return EngineFacts(
        path=at,
        name=role,
        pods=pods,
        replicas=view.replicas,
        entry=read_pod(entry, at, env),
        worker=None if worker is None else read_pod(worker, f"{at}.workerSpec", env),
    )


def emit(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write the objects and, if the serving is exposed, its front Service."""
    if is_llm(plan):
        made, front = emit_llm(plan), emit_front(plan, llm_labels(plan))
    else:
        made, front = emit_service(plan), emit_front(plan)
    return (*made, front) if front else made


# What each argument becomes in the kserve backend, for docs/backends.md.


WRITTEN = {
    "replicas": "`minReplicas` or `replicas`, times `roles[].replicas`",
    "roles[].replicas": "the same product",
    "roles[].worker_replicas": "sizes, from which KServe calculates the pods",
    "gang_policy": "nothing",
    "priority_class": "`priorityClassName` of the pods",
    "scheduler_name": "`schedulerName` of the pods",
    "rollout_strategy.type": "nothing: KServe updates pods or engines",
    "rollout_strategy…max_unavailable": "`deploymentStrategy`",
    "rollout_strategy…max_surge": "`maxSurge`",
    "roles[].max_unavailable": "`maxUnavailable`",
    "recovery_policy": "nothing: KServe has its own",
    "ready_timeout_seconds": "how long `up` waits for `PredictorReady`, or `Ready`",
    **FOR_ALL,
}
PROVEN = (
    "Verdicts of the webhooks of KServe 0.20 on random objects. Deployments, LeaderWorkerSets and "
    "pods of four servings equal the plan. Nodes and GPUs of a workerSpec equal those of KServe "
    "0.19; such engines are not run."
)


# How Prometheus finds the pods of a serving on KServe.
#
# The pods of an InferenceService are those of Deployments, whose names have random ends: together
# they are one unit. Those of an LLMInferenceService are in a LeaderWorkerSet per role. Source:
# kserve v0.20.0 pkg/constants/constants.go and
# pkg/controller/v1alpha2/llmisvc/workload_multi_node.go.


def targets(plan: ServingPlan) -> ScrapeTargets:
    """Return the pods of each role."""
    if is_llm(plan):
        entries = {role.name: leader_labels(plan, role) for role in plan.roles}
        units = tuple(_engines(plan, role) for role in plan.roles)
    else:
        entries, units = entry_labels(plan), tuple(_deployed(plan, role) for role in plan.roles)
    return ScrapeTargets(entries=entries, units=only_with_pods(units))


def _engines(plan: ServingPlan, role: RolePlan) -> Unit:
    prefill = "" if role is split_roles(plan)[0] else "-prefill"
    return Unit(
        roles=(role.name,),
        pods=f"({plan.name}-kserve-mn{prefill}-[0-9]+)(?:-[0-9]+)?",
        size=role.pods,
        number=plan.groups * role.replicas,
    )


def _deployed(plan: ServingPlan, role: RolePlan) -> Unit:
    return Unit(
        roles=(role.name,),
        # The API server cuts long names of ReplicaSets before it adds the random end.
        pods=f"({service_name(plan, role)})-predictor-(?:worker-)?[a-z0-9]+(?:-[a-z0-9]{{5}})?",
        size=plan.groups * role.replicas * role.pods,
        number=1,
    )


EMITTER = Emitter(
    emit=emit,
    limits=LIMITS,
    refuse=refuse,
    names=names,
    resources=(
        Resource(api_version=f"{GROUP}/v1beta1", kind=SERVICE, plural="inferenceservices"),
        Resource(api_version=f"{GROUP}/v1alpha1", kind=RUNTIME, plural="servingruntimes"),
        Resource(api_version=VERSION, kind=LLM, plural="llminferenceservices"),
        Resource(api_version=VERSION, kind=CONFIG, plural="llminferenceserviceconfigs"),
        SERVICES,
        BUDGETS,
    ),
    read_back=read_back,
    targets=targets,
    install="Install KServe 0.20 or later with its CRDs",
    sizes=SIZES,
    controller_env=None,
    options=KserveOptions,
    stays_from=None,
    drops=(IDLE_WORKERS,),
    planned=planned,
    written=WRITTEN,
    proven=PROVEN,
    converter=CONVERTER,
)
