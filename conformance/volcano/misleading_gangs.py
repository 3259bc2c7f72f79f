"""Misleading hand-written gangs, each with a corrected form.

For each trap, this checks the scheduler's behavior, and that our rule of that name reports it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.support.cluster import NAMESPACE, PODGROUP, Scene
from conformance.validation.cases import VERSIONS
from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import check_manifest
from kthena_components.cluster.client import ClusterError
from kthena_components.core import naming
from kthena_components.core.findings import Level
from sandbox.cluster import Size
from sandbox.nodes import hyper_nodes, node, nodes

GANG = "gang"
APP = "app"
KEY = "engine"
Spec = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """Equal pods."""

    number: int
    task: str = "serve"
    gpus: int = 8
    engine: str = "0"
    node: str | None = None
    """The only node on which they may run. With a missing node, they never run."""
    requests: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """One PodGroup and its pods."""

    title: str
    rule: str
    spec: Spec
    pods: tuple[Pods, ...]
    placed: int
    """Number of pods that get a node."""
    mended: Spec = field(default_factory=dict)
    """The corrected spec of the PodGroup."""
    mended_pods: tuple[Pods, ...] = ()
    mended_placed: int
    beside: tuple[Mapping[str, Any], ...] = ()
    """Further HyperNodes. The corrected form does not have them."""


def _hard(**more: Any) -> Spec:
    return {"networkTopology": {"mode": "hard", **more}}


def _pinned(number: int, **more: Any) -> tuple[Pods, ...]:
    """Return pods that may run on one node each, with the nodes in different racks.

    Each pod is its own task: if one pod of a task fits nowhere, Volcano does not try the others.
    """
    return tuple(
        Pods(number=1, task=f"serve-{i}", node=f"rack-{i}-node-0", **more) for i in range(number)
    )


def _policy(name: str, least: int, **more: Any) -> Spec:
    selector = {"matchLabels": {APP: GANG}}
    return {"name": name, "labelSelector": selector, "subGroupSize": 2, "minSubGroups": least,
            "matchLabelKeys": [KEY], **more}  # fmt: skip


_NOBODY = "no-such-node"
_APART = _pinned(2)
_POLICY_WITHOUT_KEYS = {k: v for k, v in _policy("serve", 1).items() if k != "matchLabelKeys"}
_PAIR = (Pods(number=2),)
_TWO_ROLES = (
    Pods(number=2, task="prefill", engine="prefill-0"),
    Pods(number=2, task="decode", engine="decode-0", node=_NOBODY),
)


def _of(role: str) -> Spec:
    return {"labelSelector": {"matchLabels": {"task": role}}}


_SECOND_PARENT = {
    "apiVersion": "topology.volcano.sh/v1alpha1",
    "kind": "HyperNode",
    "metadata": {"name": "spine-1"},
    "spec": {
        "tier": 2,
        "members": [{"type": "HyperNode", "selector": {"exactMatch": {"name": "rack-0"}}}],
    },
}
TRAPS: tuple[Trap, ...] = (
    Trap(title="hard without a cap is dropped", rule="topology-cap-stated",
         spec={"minMember": 2, **_hard()}, pods=_APART, placed=2,
         mended={"minMember": 2, **_hard(highestTierAllowed=1)}, mended_placed=0),
    Trap(title="a cap below the closest tier is never met", rule="topology-cap-reachable",
         spec={"minMember": 2, **_hard(highestTierAllowed=0)}, pods=_PAIR, placed=0,
         mended={"minMember": 2, **_hard(highestTierAllowed=1)}, mended_placed=2),
    Trap(title="a tier name that no HyperNode has is dropped", rule="topology-tier-exists",
         spec={"minMember": 2, **_hard(highestTierName="rack")}, pods=_APART, placed=2,
         mended={"minMember": 2, **_hard(highestTierAllowed=1)}, mended_placed=0),
    Trap(title="a cap above the top tier reaches nodes outside every HyperNode",
         rule="topology-tier-exists",
         spec={"minMember": 2, **_hard(highestTierAllowed=3)},
         pods=(*_pinned(1), Pods(number=1, task="lone", node="lone-node-0")), placed=2,
         mended={"minMember": 2, **_hard(highestTierAllowed=2)}, mended_placed=0),
    Trap(title="pods without requests are placed anywhere", rule="gang-requests",
         spec={"minMember": 2, **_hard(highestTierAllowed=1)},
         pods=_pinned(2, requests=False), placed=2,
         mended_pods=_APART, mended_placed=0),
    Trap(title="minTaskMember names a task that no pod has", rule="gang-task-exists",
         spec={"minMember": 2, "minTaskMember": {"leader": 1}}, pods=_PAIR, placed=0,
         mended={"minMember": 2, "minTaskMember": {"serve": 1}}, mended_placed=2),
    Trap(title="minTaskMember beyond minMember is ignored", rule="task-minimum",
         spec={"minMember": 2, "minTaskMember": {"serve": 2, "worker": 1}}, pods=_PAIR, placed=2,
         mended={"minMember": 2, "minTaskMember": {"serve": 1, "worker": 1}}, mended_placed=0),
    Trap(title="minResources beyond the minimum, within no HyperNode", rule="gang-resources",
         spec={"minMember": 2, "minResources": {"nvidia.com/gpu": "24"},
               **_hard(highestTierAllowed=1)},
         pods=(Pods(number=3),), placed=0,
         mended={"minMember": 2, "minResources": {"nvidia.com/gpu": "16"},
                 **_hard(highestTierAllowed=1)}, mended_placed=2),
    Trap(title="minResources of more pods than minMember", rule="min-resources-within-minimum",
         spec={"minMember": 2, "minResources": {"nvidia.com/gpu": "24", "pods": "3"},
               **_hard(highestTierAllowed=1)},
         pods=(Pods(number=3),), placed=0,
         mended={"minMember": 2, "minResources": {"nvidia.com/gpu": "16", "pods": "2"},
                 **_hard(highestTierAllowed=1)}, mended_placed=2),
    Trap(title="a subgroup without matchLabelKeys", rule="subgroup-match-label-keys",
         spec={"minMember": 2, "subGroupPolicy": [_POLICY_WITHOUT_KEYS]}, pods=_PAIR, placed=0,
         mended={"minMember": 2, "subGroupPolicy": [_policy("serve", 1)]}, mended_placed=2),
    Trap(title="a subgroup that its pods do not fill", rule="subgroup-has-pods",
         spec={"minMember": 2, "subGroupPolicy": [_policy("serve", 2)]}, pods=_PAIR, placed=0,
         mended={"minMember": 2, "subGroupPolicy": [_policy("serve", 1)]}, mended_placed=2),
    Trap(title="two subgroups of one name share a minimum", rule="subgroup-names-unique",
         spec={"minMember": 2, "subGroupPolicy": [
             _policy("server", 1, **_of("prefill")), _policy("server", 1, **_of("decode"))]},
         pods=_TWO_ROLES, placed=2,
         mended={"minMember": 2, "subGroupPolicy": [
             _policy("prefill", 1, **_of("prefill")), _policy("decode", 1, **_of("decode"))]},
         mended_placed=0),
    Trap(title="minMember below its subgroups", rule="subgroup-minimum",
         spec={"minMember": 2, "subGroupPolicy": [_policy("serve", 2)]},
         pods=(Pods(number=2), Pods(number=2, task="other", engine="1", node=_NOBODY)), placed=0,
         mended={"minMember": 2, "subGroupPolicy": [_policy("serve", 1)]},
         mended_placed=2),
    Trap(title="minMember 0 is not a gang", rule="gang-minimum-stated",
         spec={}, pods=(Pods(number=1), Pods(number=1, task="other", node=_NOBODY)), placed=1,
         mended={"minMember": 2}, mended_placed=0),
    Trap(title="a HyperNode with two parents stops every topology", rule="hypernode-two-parents",
         spec={"minMember": 2, **_hard(highestTierAllowed=1)}, pods=_PAIR, placed=0,
         beside=(_SECOND_PARENT,), mended_placed=2),
    Trap(title="more is needed than there are pods", rule="gang-has-pods",
         spec={"minMember": 3}, pods=_PAIR, placed=0,
         mended={"minMember": 2}, mended_placed=2),
)  # fmt: skip


def hold(scene: Scene, size: Size) -> None:
    """Try every trap and its corrected form, and what Volcano's webhook rejects."""
    cluster = [*nodes(size.racks, size.nodes, size.gpus), *hyper_nodes(size.racks)]
    lone = node("lone-node-0", "none", size.gpus)
    scene.api.create(lone)
    for trap in TRAPS:
        pods = _pods(trap.pods)
        group = _group(trap.spec)
        with scene.of(trap.title):
            found = rules_of([*cluster, lone, *trap.beside, group, *pods])
            scene.check("our rule reports it", holds=trap.rule in found, seen=found)
            _place(scene, [*trap.beside, group, *pods], trap.placed)
        group = _group(trap.mended or trap.spec)
        pods = _pods(trap.mended_pods or trap.pods)
        with scene.of(f"{trap.title}, corrected"):
            found = rules_of([*cluster, lone, group, *pods])
            scene.check("our rule accepts it", holds=trap.rule not in found, seen=found)
            _place(scene, [group, *pods], trap.mended_placed)
        scene.part.count("traps, each with its corrected form")
    scene.api.delete(lone)
    with scene.of("a tier and its name at once"):
        _refused(scene)


def _place(scene: Scene, bodies: Sequence[Mapping[str, Any]], number: int) -> None:
    """Create the gang, and check how many of its pods get a node."""
    shared = [body for body in bodies if "namespace" not in body["metadata"]]
    if shared:
        scene.make(shared)
        scene.settle()
    scene.make(body for body in bodies if body not in shared)
    if number:
        scene.until(f"{number} get a node", lambda: len(scene.bound()) == number)
    else:
        scene.until("Volcano reports that it waits", lambda: scene.unschedulable(GANG))
    scene.stays(f"no more than {number} get one", lambda: len(scene.bound()) == number)


def _refused(scene: Scene) -> None:
    """The CRD accepts an object that Volcano's webhook rejects, and our rule reports it."""
    group = _group({"minMember": 1, **_hard(highestTierAllowed=1, highestTierName="rack")})
    try:
        scene.api.create(group, dry_run=True)
        said = "it was accepted"
    except ClusterError as error:
        said = str(error)
    scene.check("the webhook rejects it", holds="denied the request" in said, seen=said)
    found = rules_of([group])
    scene.check("our rule reports it", holds="topology-one-cap" in found, seen=found)


def rules_of(bodies: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names of the rules with findings in the objects, alone and together."""
    found = [finding for body in bodies for finding in check_manifest(body, versions=VERSIONS)]
    found += compare_objects(bodies, versions=VERSIONS)
    return {finding.rule for finding in found if finding.level is not Level.UNKNOWN}


def _group(spec: Spec) -> dict[str, Any]:
    metadata = {"name": GANG, "namespace": NAMESPACE}
    return {"apiVersion": PODGROUP, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def _pods(shapes: Sequence[Pods]) -> list[dict[str, Any]]:
    return [
        _pod(f"{GANG}-{i}-{number}", shape)
        for i, shape in enumerate(shapes)
        for number in range(shape.number)
    ]


def _pod(name: str, shape: Pods) -> dict[str, Any]:
    amounts = {"nvidia.com/gpu": str(shape.gpus)} if shape.requests else {}
    resources = {"limits": amounts, "requests": amounts}
    container = {"name": "serve", "image": "example/serve:1", "resources": resources}
    where = {"kubernetes.io/hostname": shape.node} if shape.node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {APP: GANG, "task": shape.task, KEY: shape.engine},
            "annotations": {naming.POD_GROUP: GANG, naming.TASK_SPEC: shape.task},
        },
        "spec": {"schedulerName": "volcano", "nodeSelector": where, "containers": [container]},
    }
