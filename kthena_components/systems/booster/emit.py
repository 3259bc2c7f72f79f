"""Writes one ModelBooster. Kthena creates a ModelServing, a ModelServer and a ModelRoute of it.

Source: Kthena v1.0.0 pkg/model-booster-controller.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts, NameFacts, PodFacts, ServingFacts
from kthena_components.core.objects.object import read_object
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.plan.manifest import (
    BACKGROUND,
    BUDGETS,
    SERVICES,
    WAIT_FOR,
    Manifest,
    Resource,
)
from kthena_components.core.plan.serving_plan import (
    RolePlan,
    ScrapeTargets,
    ServingPlan,
    targets_of_groups,
)
from kthena_components.core.spec.enums import KthenaVersion
from kthena_components.systems.booster.limits import (
    LIMITS,
    MODEL_NAME,
    PAIR,
    Variables,
    config_of,
    env_of,
    refuse,
)
from kthena_components.systems.emitter import FOR_ALL, Emitter
from kthena_components.systems.kthena.limits import names as kthena_names
from kthena_components.systems.kthena.view import MODEL_BOOSTER, SKIPS_INSTALL, read_booster
from kthena_components.systems.kubernetes.backends import emit_front

API_VERSION = f"{MODEL_BOOSTER[0]}/v1alpha1"
_BACKEND = "vllm"
"""Name of the only backend, which Kthena adds to the name of the ModelServing."""


def serving_name(plan: ServingPlan) -> str:
    """Name the ModelServing that Kthena creates."""
    return f"{plan.name}-{_BACKEND}"


def emit(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write the ModelBooster and, if the serving is exposed, its front Service."""
    annotations = dict(BACKGROUND)  # otherwise its ModelServing would be deleted like Pulumi's
    if plan.pods:
        annotations[WAIT_FOR] = "condition=Active"
    metadata = {"name": plan.name, "namespace": plan.namespace, "annotations": annotations}
    body = {
        "apiVersion": API_VERSION,
        "kind": MODEL_BOOSTER[1],
        "metadata": metadata,
        "spec": {"backend": _backend(plan)},
    }
    made = Manifest(body=body, delete_first=True, timeout_seconds=plan.ready_timeout_seconds)
    labels = {naming.NAME: serving_name(plan), naming.ENTRY: "true"}
    if plan.expose is not None and plan.expose.role is not None:
        labels[naming.ROLE] = plan.expose.role
    front = emit_front(plan, labels)
    return (made, front) if front else (made,)


def _backend(plan: ServingPlan) -> dict[str, Any]:
    """Write the one backend of a ModelBooster; Kthena makes all pods from it."""
    first, is_pair = plan.roles[0].stated, plan.roles[0].name in PAIR
    backend: dict[str, Any] = {
        "name": _BACKEND,
        "type": "vLLMDisaggregated" if is_pair else "vLLM",
        "modelURI": f"hf://{first.engine.model if first.engine else ''}",
        "cacheURI": _cache_uri(plan.roles[0]),
        "replicas": plan.groups,
        "schedulerName": plan.scheduler,
        "workers": [_worker(role) for role in plan.roles],
    }
    env = _env(plan)
    if env:
        backend["env"] = env
    if first.hugging_face_token is not None:
        backend["envFrom"] = [{"secretRef": {"name": first.hugging_face_token.name}}]
    return backend


def _cache_uri(role: RolePlan) -> str:
    cache = role.stated.cache
    claim = None if cache is None else cache.claim
    path = None if cache is None else cache.host_path
    return f"pvc://{claim}" if claim is not None else f"hostpath://{path}"


def _worker(role: RolePlan) -> dict[str, Any]:
    """Write a worker: its image, counts, resources, and the options of its engine."""
    container = role.entry["spec"]["containers"][0]
    return {
        "type": role.name if role.name in PAIR else "server",
        "image": container["image"],
        "replicas": role.replicas,
        "pods": role.pods,
        "resources": container["resources"],
        "config": config_of(role),
    }


def _env(plan: ServingPlan) -> list[dict[str, Any]]:
    """Return the variables of all roles: a backend gives its variables to all its pods."""
    skip = {"name": SKIPS_INSTALL, "value": "true"}
    found: Variables = {SKIPS_INSTALL: skip} if plan.roles[0].name in PAIR else {}
    for role in plan.roles:
        found |= env_of(role)
    return [dict(each) for each in found.values()]


def _made(plan: ServingPlan) -> ServingPlan:
    """Return the plan with the name of the ModelServing, after which Kthena names the pods."""
    return replace(plan, name=serving_name(plan))


def _names(plan: ServingPlan) -> Iterator[NameFacts]:
    return kthena_names(_made(plan))


def _targets(plan: ServingPlan) -> ScrapeTargets:
    return targets_of_groups(_made(plan))


def _pods(plan: ServingPlan) -> Mapping[str, str]:
    return {naming.NAME: serving_name(plan)}


def _planned(plan: ServingPlan) -> list[ServingFacts]:
    return [comparable(facts_from_plan(plan))]


def _read_back(bodies: Sequence[Mapping[str, Any]]) -> list[ServingFacts]:
    # It loads a reader of YAML, and only checks of what is written read it back.
    from kthena_components.systems.kthena import model_booster  # noqa: PLC0415

    found = map(read_object, bodies)
    boosters = (one for one in found if one.group_kind == MODEL_BOOSTER)
    return [comparable(model_booster.facts(read_booster(one))) for one in boosters]


def comparable(facts: ServingFacts) -> ServingFacts:
    """Return what a ModelBooster decides of the facts.

    Not the container around the engine, the script that joins the pods, and where the model is:
    they are those of Kthena's templates. Source: docs/backends/booster.md.
    """
    engines = tuple(map(_comparable_engine, facts.engines))
    return ServingFacts(path="", name="", engines=engines, gang_expected=facts.gang_expected)


def _comparable_engine(engine: EngineFacts) -> EngineFacts:
    worker = None if engine.worker is None else _comparable_pod(engine.worker)
    name = "leader" if engine.name == "server" else engine.name
    return replace(engine, name=name, entry=_comparable_pod(engine.entry), worker=worker)


def _comparable_pod(pod: PodFacts) -> PodFacts:
    command = pod.command
    if command is not None:
        options = _options(command)
        command = replace(command, options=options, ray_script=None, ray_gpus=None, where={})
    devices = tuple(replace(device, container=MODEL_BOOSTER[1]) for device in pod.devices)
    return PodFacts(devices=devices, command=command, gpus_path="", command_path="", gpu=pod.gpu)


def _options(command: CommandFacts) -> Mapping[str, Any]:
    """Return the options with the name that requests use, and without the path of the model."""
    if command.engine is None:
        return command.options
    named = {f"--{MODEL_NAME}": (command.model,)} | dict(command.options)
    return {flag: value for flag, value in named.items() if flag != "--model"}


# What each argument becomes in the booster backend, for docs/backends.md.


WRITTEN = {
    "replicas": "`backend.replicas`",
    "roles[].replicas": "`workers[].replicas`",
    "roles[].worker_replicas": "`workers[].pods`",
    "gang_policy": "nothing: Kthena's templates ask for all engines",
    "scheduler_name": "`backend.schedulerName`",
    "rollout_strategy.type": "nothing: the default",
    "rollout_strategy…max_unavailable": "nothing: the default",
    "recovery_policy": "nothing: the default",
    "restart_grace_period_seconds": "nothing: Kthena's templates have it",
    "ready_timeout_seconds": "how long `up` waits for `Active`",
    **FOR_ALL,
}
PROVEN = (
    "Facts, pods, GPUs and gangs of what the controller of Kthena 1.0 makes of random servings, "
    "and that it reports `Active`."
)


EMITTER = Emitter(
    emit=emit,
    limits=LIMITS,
    refuse=refuse,
    names=_names,
    resources=(
        Resource(api_version=API_VERSION, kind=MODEL_BOOSTER[1], plural="modelboosters"),
        SERVICES,
        BUDGETS,
    ),
    read_back=_read_back,
    planned=_planned,
    controller_env=None,
    pods=_pods,
    is_counted=False,
    stays_from=None,
    kthena_versions=(KthenaVersion.V1_0,),
    targets=_targets,
    install="Install Kthena 1.0 or later with its CRDs and the controller modelbooster",
    written=WRITTEN,
    proven=PROVEN,
)
