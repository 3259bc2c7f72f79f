"""GPUs that pods take by resource claims: counted where all is read, and else said not to be."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from kthena_components.placement.anonymous import without_names
from kthena_components.placement.answer import answer, ask
from kthena_components.placement.inventory import parse_inventory
from kthena_components.placement.inventory_write import write_inventory
from kthena_components.placement.model import Cluster, Outcome, Verdict
from tests.cluster.objects import node
from tests.placement.test_inventory import of_kind
from tests.support.for_each import for_each

Body = dict[str, Any]
API = "resource.k8s.io/v1"
HAND = {"apiVersion": "kthena-components/v1", "kind": "Inventory", "gpus": 8, "product": "H200",
        "cpu": 64, "memory": "1Ti", "racks": [{"nodes": 2}]}  # fmt: skip
H200, H100 = (
    f"device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].productName == '{n}'"
    for n in ("NVIDIA H200", "NVIDIA-H100-80GB-HBM3")
)


def template(name: str = "gpus", **exactly: Any) -> Body:
    asked = {"deviceClassName": "gpu.nvidia.com", "count": 8, **exactly}
    devices = {"requests": [{"name": "gpu", "exactly": asked}]}
    return {"apiVersion": API, "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": "serving"},
            "spec": {"spec": {"devices": devices}}}  # fmt: skip


def selecting(expression: str) -> list[Body]:
    return [{"cel": {"expression": expression}}]


def workload(replicas: int = 2, claim: Mapping[str, str] | None = None, **spec: Any) -> Body:
    entry = {"name": "g", **(claim or {"resourceClaimTemplateName": "gpus"})}
    container = {"name": "e", "image": "e", "resources": {"claims": [{"name": "g"}]}}
    pod = {"containers": [container], "resourceClaims": [entry], **spec}
    labels = {"app": "chat"}
    return {
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {"replicas": replicas, "serviceName": "chat", "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": pod}},
    }  # fmt: skip


def inventory(**more: Any) -> Cluster:
    return parse_inventory(yaml.safe_dump({**HAND, **more}))


def dump(*objects: Body) -> Cluster:
    """Read objects, write the inventory, and read that."""
    return parse_inventory(write_inventory(parse_inventory(yaml.safe_dump_all(objects))))


def outcome(cluster: Cluster, *objects: Body) -> Outcome:
    (found,) = answer(ask(cluster, objects))
    return found


def test_claims_count_as_the_gpus_of_an_inventory() -> None:
    found = outcome(inventory(), template(), workload(2))
    assert found.verdict is Verdict.FITS
    assert found.placement is not None
    assert set(found.placement.nodes) == {"rack-1-node-1", "rack-1-node-2"}
    assert outcome(inventory(), template(), workload(3)).verdict is Verdict.PARTLY
    used = inventory(racks=[{"nodes": 2, "used": {"gpus": 4}}])
    assert outcome(used, template(), workload(2)).verdict is Verdict.WAITS


def test_this_is_told() -> None:
    (note,) = ask(inventory(), [template(), workload()]).drawn.notes
    assert note.startswith("no ResourceSlices with devices of the class gpu.nvidia.com are listed")


def test_a_selected_product_is_compared() -> None:
    (h200, h100) = (template(selectors=selecting(each)) for each in (H200, H100))
    assert outcome(inventory(), h200, workload()).verdict is Verdict.FITS
    other = outcome(inventory(), h100, workload())
    assert (other.verdict, [str(each.cause) for each in other.obstacles]) == (
        Verdict.NEVER,
        ["gpu product"],
    )


TYPE = "device.attributes['gpu.nvidia.com'].type == 'gpu'"
BIG = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"
UNKNOWN: list[tuple[str, list[Body], str]] = [
    ("a selector that is not read", [template(selectors=selecting(BIG)), workload()],
     "request 'gpu' of ResourceClaimTemplate 'gpus' selects devices by"),
    ("one that is read in part", [template(selectors=selecting(f"{TYPE} && {BIG}")), workload()],
     'selects devices by "device.capacity'),
    ("alternatives in parentheses",
     [template(selectors=selecting(f"{TYPE} && ({H200} || {H100})")), workload()],
     "which is not read"),
    ("the selector of a class", [
        template(), workload(),
        {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"},
         "spec": {"selectors": selecting(BIG)}},
    ], "selects devices by"),
    ("no template", [workload()],
     "ResourceClaimTemplate 'gpus' is not among the objects that are checked"),
    ("another class", [template(deviceClassName="rdma.example.com"), workload()],
     "is of the class 'rdma.example.com', whose devices are not known"),
    ("parts of GPUs", [template(deviceClassName="mig.nvidia.com"), workload()],
     "is of the class 'mig.nvidia.com', which is not counted"),
    ("all devices of a node", [template(allocationMode="All", count=None), workload()],
     "takes all devices of a node that match"),
    ("a claim that pods share", [
        {"apiVersion": API, "kind": "ResourceClaim",
         "metadata": {"name": "one", "namespace": "serving"},
         "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {
             "deviceClassName": "gpu.nvidia.com"}}]}}},
        workload(claim={"resourceClaimName": "one"}),
    ], "several pods may share ResourceClaim 'one'"),
    ("a Volcano that allocates no claims", [template(), workload(schedulerName="volcano")],
     "which Volcano v1.14.1 allocates only with"),
]  # fmt: skip


@for_each("case", UNKNOWN, ids=[name for name, _, _ in UNKNOWN])
def test_what_is_not_read_is_not_known(case: tuple[str, list[Body], str]) -> None:
    _, objects, why = case
    found = outcome(inventory(), *objects)
    assert found.verdict is Verdict.UNKNOWN
    assert found.group.unknown is not None
    assert why in found.group.unknown.because


@for_each("case", [
    ({"gpus": 0, "racks": [{"nodes": 2}], "product": None}, "lists neither ResourceSlices"),
    ({"queues": [{"name": "default", "capability": {"nvidia.com/gpu": 64}}]}, "the queue default"),
    ({"quotas": [{"namespace": "serving", "name": "q", "hard": {
        "gpu.nvidia.com.deviceclass.resource.k8s.io/devices": 8}}]}, "the quota q"),
    ({"unknown_devices": "a claim is not listed"}, "a claim is not listed"),
])  # fmt: skip
def test_what_a_cluster_does_not_say_is_not_known(case: tuple[Body, str]) -> None:
    more, why = case
    cluster = parse_inventory(yaml.safe_dump(
        {key: value for key, value in {**HAND, **more}.items() if value not in (None, 0)}
    ))  # fmt: skip
    found = outcome(cluster, template(), workload())
    assert found.group.unknown is not None, more
    assert why in found.group.unknown.because


@pytest.mark.parametrize("scheduler", [
    {"version": "v1.15.0"},
    {"arguments": {"predicates": {"predicate.DynamicResourceAllocationEnable": "true"}}},
])  # fmt: skip
def test_a_volcano_that_allocates_claims_is_modelled(scheduler: Body) -> None:
    cluster = inventory(scheduler=scheduler, queues=[{"name": "default"}])
    found = outcome(cluster, template(), workload(schedulerName="volcano"))
    assert found.verdict is Verdict.FITS


# What a cluster lists of devices.


def bare(name: str) -> Body:
    """Return a node whose GPUs no device plugin offers."""
    body = node(name)
    del body["status"]["allocatable"]["nvidia.com/gpu"]
    return {"apiVersion": "v1", "kind": "Node", **body}


def devices(name: str, number: int = 8, generation: int = 1, **more: Any) -> Body:
    listed = [{"name": f"gpu-{n}", "attributes": {"type": {"string": "gpu"}}, **more}
              for n in range(number)]  # fmt: skip
    pool = {"name": name, "generation": generation, "resourceSliceCount": 1}
    return {"apiVersion": API, "kind": "ResourceSlice",
            "metadata": {"name": f"{name}-{generation}"},
            "spec": {"driver": "gpu.nvidia.com", "nodeName": name, "pool": pool,
                     "devices": listed}}  # fmt: skip


def claim(name: str, *held: str, pool: str = "a") -> Body:
    results = [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": pool, "device": each}
               for each in held]  # fmt: skip
    asked = {"deviceClassName": "gpu.nvidia.com", "count": max(1, len(held))}
    allocated = {"allocation": {"devices": {"results": results}}, "reservedFor": [{}]}
    return {"apiVersion": API, "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "serving"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": asked}]}},
            "status": allocated if held else {}}  # fmt: skip


def pod(name: str, on: str, made: str) -> Body:
    owner = {"kind": "StatefulSet", "name": "chat", "apiVersion": "apps/v1", "controller": True,
             "uid": "u"}  # fmt: skip
    container = {"name": "e", "resources": {"claims": [{"name": "g"}]}}
    spec = {"containers": [container],
            "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpus"}]}  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "serving", "ownerReferences": [owner]},
        "spec": {**spec, **({"nodeName": on} if on else {})},
        "status": {"phase": "Running" if on else "Pending",
                   "resourceClaimStatuses": [{"name": "g", "resourceClaimName": made}]},
    }  # fmt: skip


ALL = [f"gpu-{n}" for n in range(8)]


def test_the_devices_of_slices_count() -> None:
    cluster = dump(bare("a"), bare("b"), devices("a"), devices("b"))
    assert outcome(cluster, template(), workload(2)).verdict is Verdict.FITS
    assert outcome(cluster, template(), workload(3)).verdict is Verdict.PARTLY
    assert ask(cluster, [template(), workload()]).drawn.notes == ()


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    cluster = dump(bare("a"), devices("a", 8, 1), devices("a", 4, 2))
    assert outcome(cluster, template(), workload(1)).verdict is Verdict.NEVER


def test_tainted_devices_do_not_count() -> None:
    taint = [{"key": "broken", "effect": "NoSchedule"}]
    cluster = dump(bare("a"), devices("a", taints=taint))
    assert outcome(cluster, template(), workload(1)).verdict is Verdict.NEVER


def test_allocated_devices_are_taken_and_come_back_with_their_pods() -> None:
    other = {**pod("other-0", "a", "held"), "metadata": {"name": "other-0", "namespace": "other"}}
    held = claim("held", *ALL)
    elsewhere = {**held, "metadata": {"name": "held", "namespace": "other"}}
    taken = dump(bare("a"), devices("a"), elsewhere, other)
    assert outcome(taken, template(), workload(1)).verdict is Verdict.WAITS
    own = dump(bare("a"), devices("a"), held, pod("chat-0", "a", "held"))
    found = outcome(own, template(count=4), workload(2))  # replaces what runs
    assert found.verdict is Verdict.FITS


def test_a_claim_that_is_not_listed_makes_devices_unknown() -> None:
    cluster = dump(bare("a"), devices("a"), pod("x-0", "a", "gone"))
    found = outcome(cluster, template(count=1), workload(1))
    assert found.group.unknown is not None
    assert found.group.unknown.because == "a claim of the pod serving/x-0 is not listed"
    hidden = without_names(cluster).unknown_devices
    assert hidden
    assert "serving" not in hidden
    part = claim("part", "mig-1")
    mig = dump(bare("a"), devices("a"), part, pod("x-0", "a", "part"))
    assert "holds the device mig-1" in mig.unknown_devices


def test_a_pod_that_waits_asks_for_its_claims() -> None:
    first = {**pod("early-0", "", "asked")}
    first["metadata"] = {"name": "early-0", "namespace": "serving"}
    cluster = dump(bare("a"), devices("a"), claim("asked"), first)
    (waiting,) = cluster.waiting
    assert waiting.pods[0].requests == {"deviceclass/gpu.nvidia.com": 1}
    assert outcome(cluster, template(), workload(1)).verdict is Verdict.WAITS


def test_nodes_with_both_keep_their_own_counts() -> None:
    both = dump(*of_kind("Node", [node("a")]), devices("a", 4))
    assert outcome(both, template(), workload(1)).verdict is Verdict.NEVER
    assert outcome(both, template(count=4), workload(1)).verdict is Verdict.FITS
