"""Reports engines and pod templates that KServe would not create as planned.

Source: kserve v0.20.0 pkg/controller/v1beta1/inferenceservice/components/predictor.go; each rule
names its function.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, count_of, join_path, refuse
from kthena_components.core.plan.limits import loss, wrong_option
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import elsewhere, remove
from kthena_components.core.spec.enums import EngineKind
from kthena_components.core.templates import Template
from kthena_components.core.values.read import mapping, sequence
from kthena_components.systems.kserve.emit_objects import options_of
from kthena_components.systems.kserve.nodes import RayNodes
from kthena_components.systems.kserve.templates import (
    HEAD,
    OWN_ENV,
    WORKER,
    containers,
    main_container,
    mentions,
    read_sizes,
    spellings,
)
from kthena_components.systems.kserve.view import EXECUTOR, GPU_TYPES, PLAIN


def refuse_engine(plan: ServingPlan, role: RolePlan) -> Iterator[Finding]:
    """Report what an InferenceService with a workerSpec does not support."""
    yield from _refuse_options(plan, role)
    yield from _refuse_sizes(role)
    yield from _refuse_variables(role)
    yield from _refuse_fields(role)


def _refuse_options(plan: ServingPlan, role: RolePlan) -> Iterator[Finding]:
    """Reject what 0.20.0 accepts and never runs, and what its webhook rejects.

    Source: kserve issue 6113, reconcileCanaryDeployments; validateMultiNodeVariables.
    """
    options = options_of(plan)
    if not options.keeps_workers:
        yield wrong_option(
            "keeps_workers",
            "is false, and KServe 0.20.0 deletes the "
            f"{count_of(role.worker_replicas, 'worker')} of an engine again and again (issue 6113)",
            elsewhere("install a KServe with pull request 5899 and write true"),
        )
    if options.storage_uri is None:
        yield wrong_option(
            "storage_uri",
            f"is missing, but KServe accepts an engine of {count_of(role.pods, 'pod')} "
            "only with a model from "
            "a volume or an image",
            "write pvc://claim/path, with a claim that is ReadWriteMany, or oci://image",
        )


def _refuse_sizes(role: RolePlan) -> Iterator[Finding]:
    """Reject sizes from which KServe calculates other pods: computeRayNodeAndGPUs."""
    sizes = read_sizes(role)
    if sizes is None:
        at = join_path(role.path, "resources.gpus_per_pod" if role.engine else "entry_template")
        yield loss(
            at,
            f"must request GPUs in the head and in the workers, of one of the types "
            f"{', '.join(GPU_TYPES)}: KServe calculates the {count_of(role.pods, 'pod')} from them",
            elsewhere("request them"),
        )
    elif sizes.head_gpus != sizes.worker_gpus:
        yield loss(
            join_path(role.path, "entry_template"),
            f"has {count_of(sizes.head_gpus, 'GPU')} in the head and {sizes.worker_gpus} in each "
            "worker, but KServe starts an engine that is divided evenly",
            elsewhere("request the same in both"),
        )
    elif not sizes.fit(role.pods):
        made = sizes.made
        pods = count_of(made.pods, "pod") if isinstance(made, RayNodes) else "no pods"
        yield loss(
            join_path(role.path, "engine.parallelism" if role.engine else "entry_template"),
            f"starts tensor {sizes.tensor} × pipeline {sizes.pipeline}, for which KServe creates "
            f"{pods}, not {role.pods}: it divides tensor × pipeline by the GPUs of a worker, "
            f"{sizes.worker_gpus}",
            elsewhere("divide the engine by tensor and pipeline alone"),
        )


def _refuse_variables(role: RolePlan) -> Iterator[Finding]:
    """Reject variables without an equivalent: pods of a Deployment have no index."""
    if role.worker is None:
        return
    ray = "write launcher: ray, whose workers need no number"
    launched = role.engine is not None and role.engine.kind is EngineKind.VLLM
    index = _used(role.worker, naming.WORKER_INDEX)
    if role.worker_replicas > 1 and index:
        yield loss(
            join_path(role.path, "engine.launcher" if role.engine else "worker_template"),
            f"uses {index}, but KServe does not number the "
            f"{count_of(role.worker_replicas, 'worker')} of an engine",
            elsewhere(ray if launched else ""),
        )
    main = main_container(role.worker)
    beside = [one for one in containers(role.worker, "initContainers") if one is not main]
    address = _used(beside, naming.ENTRY_ADDRESS)
    if address:
        yield loss(
            join_path(place(role, "worker_template"), "spec.initContainers"),
            f"uses {address}, but KServe sets the head's address only in the "
            "container of the engine",
            elsewhere("connect from that container"),
        )


def _used(part: object, name: str) -> str | None:
    """Return a variable as the user spells it: as Kthena's, or as LeaderWorkerSet's."""
    return next((one for one in spellings(name) if mentions(part, one)), None)


def _refuse_fields(role: RolePlan) -> Iterator[Finding]:
    """Reject fields that KServe drops, rewrites or rejects in one of both pods."""
    if f"-{role.name}".endswith("-predictor"):
        yield loss(
            join_path(role.path, "name"),
            f"is {role.name}, and KServe then looks for the head under another name than "
            "its Service",
            "rename the role",
        )
    if "{{" in json.dumps(main_container(role.entry), default=str):
        yield loss(
            place(role, "entry_template"),
            "contains '{{', which KServe expands as a template of its own",
            elsewhere("put the text into a ConfigMap and mount it"),
        )
    yield from _refuse_template(role, role.entry, "entry_template")
    if role.worker is None:
        return
    yield from _refuse_template(role, role.worker, "worker_template")
    if len(containers(role.worker)) > 1:
        yield loss(
            join_path(place(role, "worker_template"), "spec.containers"),
            f"has {count_of(len(containers(role.worker)), 'container')}, but KServe "
            "accepts one in a worker",
            elsewhere("make the others initContainers with restartPolicy: Always"),
        )


def _refuse_template(role: RolePlan, template: Template, field: str) -> Iterator[Finding]:
    """Reject other resources than GPUs, and the annotation that changes the arithmetic."""
    at = place(role, field)
    resources = main_container(template).get("resources") or {}
    keys = [key for kind in ("limits", "requests") for key in resources.get(kind) or {}]
    for key in dict.fromkeys(keys):
        if key not in PLAIN and key not in GPU_TYPES:
            yield loss(
                join_path(at, "spec.containers[0].resources"),
                f"names {key}, but with workers KServe accepts {', '.join(sorted(PLAIN))} and "
                f"{', '.join(GPU_TYPES)}",
                elsewhere("remove it"),
            )
    if EXECUTOR in ((template.get("metadata") or {}).get("annotations") or {}):
        yield loss(
            join_path(at, "metadata.annotations"),
            f"has {EXECUTOR}, with which KServe calculates other numbers of pods",
            remove(),
        )


# Reports fields of pod templates that KServe replaces, drops or rejects.


_LABELS = ("app", "component", "serving.kserve.io/inferenceservice", "isvc.generation")
_NAMES = (HEAD, WORKER, "transformer-container")
_LOSS = "backend-loss"
_DEFAULTS = {"cpu": "1", "memory": "2Gi"}
"""Limits that the webhook adds, in the ConfigMap inferenceservice-config of the release."""


def refuse_pods(role: RolePlan) -> Iterator[Finding]:
    """Report what KServe would change in the templates of the entry and the workers."""
    yield from _refuse_pods(role, role.entry, "entry_template")
    yield from _refuse_ports(role)
    if role.worker_replicas and role.worker is not None:
        yield from _refuse_pods(role, role.worker, "worker_template")
    else:
        yield from _refuse_defaults(role)


def place(role: RolePlan, field: str) -> str:
    """Return the path of a template: with an engine, the user only wrote the overlay."""
    return join_path(role.path, "overlay" if role.engine else field)


def _refuse_pods(role: RolePlan, template: Template, field: str) -> Iterator[Finding]:
    """Refuse labels, variables and container names that KServe overwrites or takes for its own."""
    at, main = place(role, field), main_container(template)
    labels = (template.get("metadata") or {}).get("labels") or {}
    for key in _LABELS:
        if key in labels:
            seen = f"has the label {key}, which KServe overwrites"
            yield refuse(join_path(at, "metadata.labels"), seen, "rename it", _LOSS)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(containers(template, kind)):
            where = join_path(at, f"spec.{kind}[{index}]")
            yield from _refuse_env(container, where)
            if container is not main and container.get("name") in _NAMES:
                seen = f"is {container['name']}, a name by which KServe finds another container"
                yield refuse(f"{where}.name", seen, "rename it", _LOSS)


def _refuse_env(container: Mapping[str, Any], where: str) -> Iterator[Finding]:
    """Refuse variables that KServe's controller sets, and PYTHONPATH, which it forbids."""
    for index, item in enumerate(sequence(container.get("env"))):
        name, at = mapping(item).get("name"), f"{where}.env[{index}]"
        if name in OWN_ENV:
            seen = f"sets {name}, which KServe overwrites"
            yield refuse(at, seen, "remove it: KServe sets it itself", _LOSS)
        elif name == "PYTHONPATH":
            seen = "sets PYTHONPATH, which KServe forbids"
            yield refuse(at, seen, "remove it, and put the modules into the image", _LOSS)


def _refuse_ports(role: RolePlan) -> Iterator[Finding]:
    """Reject a head that KServe would probe on a port of its own, or whose Service is invalid.

    Source: kserve v0.20.0 pkg/controller/v1beta1/inferenceservice/reconcilers deployment
    setDefaultPodSpec and service createDefaultSvc.
    """
    main, at = main_container(role.entry), place(role, "entry_template")
    ports = list(sequence(main.get("ports")))
    where = join_path(at, "spec.containers[0]")
    if not ports and main.get("readinessProbe") is None:
        seen = "has neither ports nor a readinessProbe, and KServe would wait for port 8080"
        yield refuse(where, seen, "state the port that the engine listens on", _LOSS)
    if len(ports) > 1 and not all(mapping(port).get("name") for port in ports):
        seen = f"has {len(ports)} ports, not all with a name, and KServe puts them into one Service"
        yield refuse(f"{where}.ports", seen, "name each port", _LOSS)


def _refuse_defaults(role: RolePlan) -> Iterator[Finding]:
    """Reject single pods without limits: KServe's webhook adds its own, too low for an engine.

    Source: kserve v0.20.0 pkg/apis/serving/v1beta1/predictor_custom.go Default and
    config/configmap/inferenceservice.yaml.
    """
    limits = (main_container(role.entry).get("resources") or {}).get("limits") or {}
    for name, amount in _DEFAULTS.items():
        if name not in limits:
            at = f"{role.path}.resources.{name}"
            if role.engine is None:
                at = join_path(role.path, "entry_template.spec.containers[0].resources.limits")
            seen = f"has no limit of {name}, and KServe would add one of {amount}"
            yield refuse(at, seen, f"state the {name} that the engine needs", _LOSS)
