"""The allowed differences between the two backends, as data, and the search for others.

A difference that is not listed here is a failure, and so is an entry that is never needed.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.support import random_servings
from kthena_components.core import naming
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.values.quantity import parse_quantity

Objects = dict[str, dict[str, Any]]
"""Flattened objects: value by path, by `kind key`."""
NOTHING = "(nothing)"
NATIVE, KTHENA, VALUE, ANY = "native", "kthena", "value", "any"
LABEL = r"metadata\.labels\."


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """One documented difference in a field of an object of both backends."""

    where: str
    """Regular expression for `kind path`."""
    how: str
    """`native` or `kthena`: only this side has it. `value`: both have other values. Or `any`."""
    why: str


def _at(kinds: str, path: str) -> str:
    return rf"({kinds}) {path}"


ALLOWED = (
    Allowed(
        where=_at(".*", r"metadata\.(uid|resourceVersion|creationTimestamp|generation)"),
        how=ANY, why="given by the API server",
    ),
    Allowed(
        where=_at(".*", r"metadata\.managedFields.*"), how=ANY,
        why="the API server's record of who wrote what",
    ),
    Allowed(
        where=_at("Pod", r"metadata\.ownerReferences\[0\]\.(uid|name|kind|apiVersion)"), how=VALUE,
        why="StatefulSets own the pods; Kthena's belong to the ModelServing",
    ),
    Allowed(
        where=_at("Service|PodGroup", r"metadata\.ownerReferences.*"), how=KTHENA,
        why="Pulumi deletes what it made; Kthena leaves that to garbage collection",
    ),
    Allowed(
        where=_at("Pod", r"metadata\.generateName"), how=NATIVE, why="set by StatefulSets"
    ),
    Allowed(
        where=_at("Pod", LABEL + r"(statefulset\.kubernetes\.io/pod-name|"
                  r"apps\.kubernetes\.io/pod-index|controller-revision-hash)"),
        how=NATIVE, why="set by StatefulSets",
    ),
    Allowed(
        where=_at("Pod", LABEL + naming.WORKER), how=NATIVE,
        why="a second StatefulSet needs its own selector",
    ),
    Allowed(
        where=_at("Pod", LABEL + re.escape(naming.REVISION)), how=KTHENA,
        why="with RoleRollingUpdate a change in one role must leave the other roles' pods alone",
    ),
    Allowed(
        where=_at("Pod", r"spec\.(hostname|subdomain)"), how=NATIVE,
        why="StatefulSets name their pods in DNS; Kthena's workers have no name there",
    ),
    Allowed(
        where=_at("PodGroup", r"metadata\.annotations\.pulumi\.com/patchForce"),
        how=NATIVE,
        why="for Pulumi: Volcano's scheduler writes the sub groups of a role's tier by name",
    ),
    Allowed(
        where=_at("Pod", r"spec\.nodeName"), how=VALUE, why="the scheduler's choice"
    ),
    Allowed(
        where=_at("Service", r"spec\.(clusterIP|clusterIPs\[0\])"), how=VALUE,
        why="an address of the front Service, given by the API server",
    ),
)  # fmt: skip
ENTRY_SERVICE = "the entry has a Service even where a role has no worker template"
INSTANCE_SERVICE = "a headless Service gives each pod of an instance a DNS name"
WORKER_NAME = "worker pods are called `…-w-<n>`: two StatefulSets cannot share a name"
WORKER_INDEX = "WORKER_INDEX of workers is the label pod-index: one template serves them all"
HASHES = "the two hashes are our own: equal where Kthena's are equal, numbered here in order"
ACCOUNT_VOLUME = "the volume of the service account's token has a random name"
ZEROS = "Kthena writes 0 into minResources for what only optional engines request"
TIER_NAME = "Volcano's scheduler writes a tier's number over its name; Kthena writes the name again"
LEVELLED = (WORKER_NAME, WORKER_INDEX, HASHES, ACCOUNT_VOLUME, ZEROS, TIER_NAME)
"""Differences that `level` normalizes before the comparison."""
DOCUMENTED = len(ALLOWED) + len(LEVELLED) + len((ENTRY_SERVICE, INSTANCE_SERVICE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference that is not allowed."""

    where: str
    native: Any
    kthena: Any

    @property
    def sort(self) -> str:
        """The same text for the same path in any object."""
        kind = self.where.partition(" ")[0]
        return f"{kind} {self.where.rpartition(': ')[2]}" if ": " in self.where else kind

    def __str__(self) -> str:
        """Write both sides."""
        return f"{self.where}: native {self.native!r}, Kthena {self.kthena!r}"


def level(bodies: list[dict[str, Any]], namespace: str, used: Counter[str]) -> Objects:
    """Flatten and normalize the objects of one side."""
    found: Objects = {}
    for body in bodies:
        if body["kind"] == "Pod":
            _worker_like_kthenas(body, used)
        if body["kind"] == "PodGroup":
            _without_zeros(body["spec"], used)
            _tiers_by_number(body["spec"], used)
        kept = {key: value for key, value in body.items() if key != "status"}
        found[f"{body['kind']} {body['metadata']['name']}"] = {
            path: _text(value, namespace, used) for path, value in _flat("", kept)
        }
    for label in (naming.ROLE_TEMPLATE_HASH, naming.REVISION):
        _number(found, f"metadata.labels.{label}", used)
    return found


def compare(
    native: Objects, kthena: Objects, plan: ServingPlan, used: Counter[str]
) -> Iterator[Difference]:
    """Yield the differences that are not allowed, and count the others."""
    lacking = _native_services(plan)
    for name in sorted(native.keys() | kthena.keys()):
        here, there = native.get(name), kthena.get(name)
        if here is not None and there is not None:
            yield from _fields(name, here, there, used)
        elif here is not None and name in lacking:
            used[lacking[name]] += 1
        else:
            yield Difference(where=name, native=_seen(here), kthena=_seen(there))


def unused(used: Mapping[str, int]) -> list[str]:
    """List the documented differences that never occurred."""
    known = [f"{entry.where}: {entry.why}" for entry in ALLOWED]
    known += [ENTRY_SERVICE, INSTANCE_SERVICE, *LEVELLED]
    return [text for text in known if not used.get(text)]


def _native_services(plan: ServingPlan) -> dict[str, str]:
    """Return the names of the Services that only the native backend creates."""
    found = {}
    for group in plan.group_numbers():
        for role in plan.roles:
            for instance in range(role.replicas):
                where = (plan.name, group, role.name, instance)
                found[f"Service {naming.instance_name(*where)}"] = INSTANCE_SERVICE
                if role.worker is None:
                    found[f"Service {naming.entry_name(*where)}"] = ENTRY_SERVICE
    return found


def _fields(
    name: str, here: Mapping[str, Any], there: Mapping[str, Any], used: Counter[str]
) -> Iterator[Difference]:
    kind = name.partition(" ")[0]
    for path in sorted(here.keys() | there.keys()):
        left, right = here.get(path, NOTHING), there.get(path, NOTHING)
        if left == right:
            continue
        how = KTHENA if left == NOTHING else NATIVE if right == NOTHING else VALUE
        entry = _allowed(f"{kind} {path}", how)
        if entry is None:
            yield Difference(where=f"{name}: {path}", native=left, kthena=right)
        else:
            used[f"{entry.where}: {entry.why}"] += 1


def _allowed(where: str, how: str) -> Allowed | None:
    fitting = (e for e in ALLOWED if e.how in {how, ANY} and re.fullmatch(e.where, where))
    return next(fitting, None)


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every leaf with its path. An empty map is a leaf: `{}` differs from a missing field."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(f"{path}.{key}" if path else key, inner)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _flat(f"{path}[{index}]", inner)
    else:
        yield path, value


def _worker_like_kthenas(pod: Mapping[str, Any], used: Counter[str]) -> None:
    """Rename a worker as Kthena does, and resolve WORKER_INDEX as the kubelet does."""
    metadata = pod["metadata"]
    if naming.WORKER in metadata["labels"]:
        metadata["name"] = re.sub(r"-w-(\d+)$", r"-\1", metadata["name"])
        used[WORKER_NAME] += 1
    path = f"metadata.labels['{naming.POD_INDEX}']"
    containers = (pod["spec"].get(key) or [] for key in ("initContainers", "containers"))
    for item in (entry for each in containers for c in each for entry in c.get("env") or []):
        field = (item.get("valueFrom") or {}).get("fieldRef") or {}
        if item["name"] == naming.WORKER_INDEX and field.get("fieldPath") == path:
            del item["valueFrom"]
            item["value"] = metadata["labels"].get(naming.POD_INDEX)
            used[WORKER_INDEX] += 1


def _without_zeros(spec: dict[str, Any], used: Counter[str]) -> None:
    amounts = spec.get("minResources") or {}
    asked = {key: amount for key, amount in amounts.items() if parse_quantity(amount) != 0}
    used[ZEROS] += asked != amounts
    spec["minResources"] = asked


def _tiers_by_number(spec: Mapping[str, Any], used: Counter[str]) -> None:
    for holder in (spec, *(spec.get("subGroupPolicy") or [])):
        topology = holder.get("networkTopology") or {}
        name = topology.pop("highestTierName", None)
        if name is not None:
            # If both fields are set, they stay: then the number was there before.
            numbers = [number for number, tier in random_servings.TIERS.items() if tier == name]
            topology.setdefault("highestTierAllowed", *numbers)
            used[TIER_NAME] += 1


def _number(objects: Objects, path: str, used: Counter[str]) -> None:
    """Replace hashes by numbers in the order of the pods, to compare only which ones are equal."""
    numbers: dict[Any, str] = {}
    for name in sorted(objects):
        if path in objects[name]:
            value = objects[name][path]
            objects[name][path] = numbers.setdefault(value, f"hash {len(numbers) + 1}")
            used[HASHES] += 1


def _text(value: Any, namespace: str, used: Counter[str]) -> Any:
    if not isinstance(value, str):
        return value
    plain = re.sub("kube-api-access-[a-z0-9]{5}", "kube-api-access", value)
    used[ACCOUNT_VOLUME] += plain != value
    return plain.replace(namespace, "<namespace>")


def _seen(flat: Mapping[str, Any] | None) -> str:
    return NOTHING if flat is None else "there"
