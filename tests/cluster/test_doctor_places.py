"""HyperNodes, GPUs and room, as doctor tells them."""

from dataclasses import replace
from typing import Any

import pytest

from kthena_components.cluster.snapshot import Status
from tests.cluster.doctored import HIDDEN, said, stack
from tests.cluster.objects import by_name, healthy, hyper_node, node, pod, racks, tree


def test_hyper_nodes_are_checked_as_a_tree() -> None:
    assert said("HyperNodes", healthy()) == [
        (Status.OK, "2 of tier 1 with 4 nodes each, 1 of tier 2 with 8 nodes")
    ]
    second = hyper_node("spine-2", 2, by_name("r0", "HyperNode"))
    found = said("HyperNodes", healthy(hyper_nodes=[*tree(2), second]))
    assert [mark for mark, _ in found] == [Status.FAIL]
    assert found[0][1].startswith("spine-2: 'r0' is a child of 'spine' and of 'spine-2'")
    unknown = hyper_node("far", 2, by_name("none", "HyperNode"))
    assert any("[hypernode-unknown-child]" in text
               for _, text in said("HyperNodes", healthy(hyper_nodes=[unknown])))  # fmt: skip


def test_no_hyper_node_fails_a_hard_topology_alone() -> None:
    assert said("HyperNodes", healthy(hyper_nodes=[]))[0][0] is Status.WARN
    assert said("HyperNodes", healthy(hyper_nodes=[]), stack())[0][0] is Status.FAIL
    assert said("HyperNodes", healthy(hyper_nodes=HIDDEN))[0][0] is Status.UNKNOWN
    assert said("HyperNodes", healthy(nodes=HIDDEN))[-1][0] is Status.UNKNOWN


def test_nodes_outside_and_empty_hyper_nodes_are_told() -> None:
    found = said("HyperNodes", healthy(nodes=[*racks(1, 4), node("lost")]))
    assert found[0] == (
        Status.WARN,
        "r1 contains no node of this cluster. Compare their selectors with `kubectl get nodes`",
    )
    assert found[1][1].startswith("1 of 5 nodes with GPUs, lost, is in none")


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ({"highest_tier_allowed": 3}, "allows tier 3, but the highest is 2"),
        ({"highest_tier_allowed": 0}, "allows tier 0, but the lowest is 1"),
        ({"highest_tier_name": "rack"}, "names tier 'rack', which no HyperNode has"),
    ],
)
def test_tiers_that_bind_nothing_fail(policy: dict[str, Any], text: str) -> None:
    asked = stack()
    plan = asked.plans[0]
    assert plan.group_topology is not None
    bare = {"highest_tier_allowed": None, "highest_tier_name": None, **policy}
    topology = plan.group_topology.model_copy(update=bare)
    asked = replace(asked, plans=(replace(plan, group_topology=topology),))
    ((mark, seen),) = said("topology", healthy(), asked)
    assert (mark, text in seen) == (Status.FAIL, True)


def test_gpus_are_counted() -> None:
    held = [pod("a", node="n-0-0"), pod("b", node="n-0-1", phase="Succeeded")]
    seen = healthy(pods=held, nodes=[*racks(2, 4)[:-1], node("n-1-3", "r1", unschedulable=True)])
    assert said("GPUs", seen) == [
        (Status.OK, "64 on 8 nodes (8 × 8 nvidia.com/gpu), 48 free; 1 node not ready or cordoned")
    ]
    assert said("GPUs", healthy(nodes=[node("n", gpus=0)]))[0][0] is Status.WARN
    assert said("GPUs", healthy(nodes=[node("n", gpus=0)]), stack())[0][0] is Status.FAIL
    assert said("GPUs", healthy(nodes=HIDDEN))[0][0] is Status.UNKNOWN
    assert "is not known" in said("GPUs", healthy(pods=HIDDEN))[0][1]
    full = [pod(f"p{i}", "other-0", node=n["metadata"]["name"]) for i, n in enumerate(racks(2, 4))]
    assert said("GPUs", healthy(pods=full))[0][0] is Status.WARN


def test_room_is_checked_inside_one_rack() -> None:
    assert said("room", healthy(), stack()) == [
        (Status.OK, ("serving/chat: a group is 2 pods of 8 nvidia.com/gpu; HyperNodes of tier 1 "
         "have room for 4 now, and the stack needs 2"))
    ]  # fmt: skip
    small = healthy(nodes=racks(2, 1))
    (mark, text), _ = said("room", small, stack())
    assert mark is Status.FAIL
    assert "the largest HyperNode of tier 1, r0, has room for 1 when it is empty" in text
    anywhere = stack(network_topology={"group_policy": {"mode": "soft"}})
    assert said("room", small, anywhere)[0][0] is Status.WARN


def test_pods_of_others_take_room_and_own_ones_do_not() -> None:
    nodes = [item["metadata"]["name"] for item in racks(2, 4)][:6]
    others = [pod(f"p{i}", "other-0", node=name) for i, name in enumerate(nodes)]
    ((mark, text),) = said("room", healthy(pods=others), stack())
    assert (mark, "room for 1 now, and the stack needs 2" in text) == (Status.WARN, True)
    own = [pod(f"p{i}", "chat-0", node=name) for i, name in enumerate(nodes)]
    assert said("room", healthy(pods=own), stack())[0][0] is Status.OK
    assert said("room", healthy(nodes=HIDDEN), stack())[0][0] is Status.UNKNOWN


def test_servings_of_a_stack_need_room_beside_one_another() -> None:
    one = stack()
    both = replace(one, plans=(one.plans[0], replace(one.plans[0], name="talk")))
    assert said("room", healthy(), both)[-1] == (
        Status.OK, "all servings together request 64 GPUs, and 64 are not used by others",
    )  # fmt: skip
    taken = [pod("p", "other-0", node="n-0-0")]
    assert said("room", healthy(pods=taken), both)[-1][0] is Status.WARN


@pytest.mark.parametrize("servings", [1, 2])
def test_more_gpus_than_the_cluster_has_fail(servings: int) -> None:
    one = stack(network_topology=None)
    plans = tuple(replace(one.plans[0], name=f"chat-{n}") for n in range(servings))
    who = "the serving requests" if servings == 1 else "all servings together request"
    small = healthy(nodes=racks(1, 4 * servings - 1))
    assert said("room", small, replace(one, plans=plans))[-1] == (
        Status.FAIL,
        (
            f"{who} {32 * servings} GPUs, and the nodes have only {32 * servings - 8}, so some "
            "pods never start. Add nodes, or request fewer"
        ),
    )


TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
OTHERS = {"key": "team", "value": "research", "effect": "NoSchedule"}


def overlaid(**spec: Any) -> Any:
    return stack(overlay={"spec": spec})


def tainted(*taints: dict[str, str], nodes: int = 8) -> list[dict[str, Any]]:
    found = racks(2, 4)
    for body in found[:nodes]:
        body["spec"]["taints"] = list(taints)
    return found


def test_a_taint_that_no_pod_tolerates_fails_with_the_toleration_to_write() -> None:
    assert said("nodes", healthy(nodes=tainted(OTHERS)), stack()) == [
        (Status.FAIL, ("serving/chat: no node accepts a pod of serve: of 8 nodes large enough, "
         "8 with "
         "the taint team=research:NoSchedule. Write {key: team, operator: Exists} into the role's "
         "`overlay.spec.tolerations`"))
    ]  # fmt: skip
    assert said("room", healthy(nodes=tainted(OTHERS)), stack()) == []
    tolerating = overlaid(tolerations=[{"key": "team", "operator": "Exists"}])
    assert said("nodes", healthy(nodes=tainted(OTHERS)), tolerating) == []
    assert said("nodes", healthy(nodes=tainted(OTHERS, nodes=7)), stack()) == []


def test_a_taint_of_the_gpus_may_be_tolerated_by_the_api_server() -> None:
    ((mark, text),) = said("nodes", healthy(nodes=tainted(TAINT)), stack())
    assert (mark, "ExtendedResourceToleration" in text) == (Status.WARN, True)
    assert said("room", healthy(nodes=tainted(TAINT)), stack())[0][0] is Status.OK
    ((mark, text),) = said("nodes", healthy(nodes=tainted(TAINT, OTHERS)), stack())
    assert mark is Status.FAIL
    assert "{key: nvidia.com/gpu, operator: Exists}, {key: team, operator: Exists}" in text


def test_room_counts_the_nodes_that_take_the_pods() -> None:
    chosen = overlaid(nodeSelector={"rack": "r0"})
    assert said("nodes", healthy(), chosen) == []
    assert said("room", healthy(), chosen) == [
        (
            Status.OK,
            (
                "serving/chat: a group is 2 pods of 8 nvidia.com/gpu, which 4 of 8 nodes accept; "
                "HyperNodes of tier 1 have room for 2 now, and the stack needs 2"
            ),
        )
    ]
    ((mark, text),) = said("nodes", healthy(), overlaid(nodeSelector={"rack": "r9"}))
    assert mark is Status.FAIL
    assert "8 without the label rack=r9. Compare its nodeSelector" in text
    few = said("room", healthy(nodes=tainted(OTHERS, nodes=7)), stack())
    assert [mark for mark, _ in few] == [Status.FAIL]


def test_nodes_that_are_too_small_do_not_count() -> None:
    small = [node(f"small-{n}", "r0", gpus=4) for n in range(3)]
    ((mark, text),) = said("nodes", healthy(nodes=[*tainted(OTHERS), *small]), stack())
    assert (mark, "of 8 nodes large enough" in text) == (Status.FAIL, True)
    assert said("nodes", healthy(nodes=small), stack()) == []


def test_a_serving_of_no_group_needs_no_node() -> None:
    assert said("nodes", healthy(nodes=tainted(OTHERS)), stack(replicas=0)) == []
