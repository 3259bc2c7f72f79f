"""Reports fields of pod templates that KServe replaces, drops or rejects."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, join_path, refuse
from kthena_components.core.plan.model import RolePlan
from kthena_components.core.templates.overlay import Template
from kthena_components.core.values.read import mapping, sequence
from kthena_components.systems.kserve.templates import (
    HEAD,
    OWN_ENV,
    WORKER,
    containers,
    main_container,
)

_LABELS = ("app", "component", "serving.kserve.io/inferenceservice", "isvc.generation")
_NAMES = (HEAD, WORKER, "transformer-container")
_LOSS = "backend-loss"
_DEFAULTS = {"cpu": "1", "memory": "2Gi"}
"""Limits that the webhook adds, in the ConfigMap inferenceservice-config of the release."""


def refuse_pods(role: RolePlan) -> Iterator[Finding]:
    """Report what KServe does not leave as it is in either template."""
    yield from _refuse_template(role, role.entry, "entry_template")
    yield from _refuse_ports(role)
    if role.worker_replicas and role.worker is not None:
        yield from _refuse_template(role, role.worker, "worker_template")
    else:
        yield from _refuse_defaults(role)


def place(role: RolePlan, field: str) -> str:
    """Return the path of a template: with an engine, the user only wrote the overlay."""
    return join_path(role.path, "overlay" if role.engine else field)


def _refuse_template(role: RolePlan, template: Template, field: str) -> Iterator[Finding]:
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
