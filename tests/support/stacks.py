"""Stacks of a few objects, checked as they are and as little as is held of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import read_demand, read_manifest, read_ports, reduce_object
from kthena_components.checker.read_cluster_objects import read_objects
from kthena_components.core.facts.serving import gpu_demand
from kthena_components.core.findings import Finding
from kthena_components.core.objects.object import PodSet, read_object
from kthena_components.core.values.unknown import MaybeInt, total
from kthena_components.systems.kubernetes.rules.gpu_budget_and_type_rwx import gpus_of_pods

Body = Mapping[str, Any]
SECRET: Body = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "hf"},
    "data": {"token": "c2VjcmV0"},
}
TOKEN = {"secretKeyRef": {"name": "hf", "key": "HF_TOKEN"}}
"""A key that SECRET does not have."""
CLAIM: Body = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "weights"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "500Gi"}}},
}
MOUNTED = {"name": "weights", "persistentVolumeClaim": {"claimName": "weights"}}
"""A volume of CLAIM."""


def together(named: Mapping[str, Body], **asked: Any) -> list[Finding]:
    """Check objects by the rules over a stack, and hold that what is held of them says the same."""
    bodies = list(named.values())
    demands = {i: demand for i, body in enumerate(bodies) if (demand := read_demand(body))}
    ports = {i: read_ports(read_object(body)) for i, body in enumerate(bodies)}
    given: dict[str, Any] = {"held": demands, "ports": ports, **asked}
    found = compare_objects(bodies, list(named), **given)
    held = compare_objects(list(map(reduce_object, bodies)), list(named), **given)
    assert list(map(str, held)) == list(map(str, found))
    return found


def said_of(rule: str, found: Iterable[Finding]) -> list[tuple[str, str, str]]:
    """Give where one rule found something, how much it weighs, and what it says."""
    return [(f.path, str(f.level), f.seen) for f in found if f.rule == rule]


def pods_in(body: Body) -> list[PodSet]:
    """Give the pods whose templates stand in an object."""
    return read_objects([body], []).pods


def gpus_by_pods(body: Body) -> MaybeInt:
    """Count the accelerators of an object by its pod templates."""
    return total(map(gpus_of_pods, pods_in(body)))


def gpus_by_facts(body: Body) -> MaybeInt:
    """Count the accelerators of an object by its engines."""
    facts = read_manifest(body)
    assert facts is not None
    return gpu_demand(facts).gpus
