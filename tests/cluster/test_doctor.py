from dataclasses import replace
from typing import Any

import pytest

from kthena_components.backends.compiler import compile_serving
from kthena_components.cluster.access import allows
from kthena_components.cluster.doctor import judge_cluster
from kthena_components.cluster.need import (
    MODEL_SERVING,
    POD_GROUP,
    Need,
    Right,
    SecretKey,
    need_of_backends,
    need_of_stack,
)
from kthena_components.cluster.seen import Line, Mark, Seen, exit_status, render_lines
from kthena_components.core.known import Unknown
from kthena_components.core.stack import StackSpec
from tests.cluster.objects import (
    JUST_NOW,
    LONG_AGO,
    by_name,
    config,
    deployment,
    healthy,
    hyper_node,
    node,
    pod,
    pod_group,
    queue,
    racks,
    tree,
)

GENERAL = need_of_backends("default")
HIDDEN = Unknown("you may not read it")


def stack(**changes: Any) -> Need:
    """A serving of two groups, each of two pods with 8 GPUs, inside one rack."""
    serving: dict[str, Any] = {
        "name": "chat", "namespace": "serving", "replicas": 2,
        "roles": [{
            "name": "serve", "worker_replicas": 1,
            "engine": {"kind": "vllm", "image": "vllm/vllm-openai:v0.10.1", "launcher": "native",
                       "model": "m", "parallelism": {"tensor": 8, "pipeline": 2}},
            "resources": {"gpus_per_pod": 8},
        }],
        "network_topology": {"group_policy": {"mode": "hard", "highest_tier_allowed": 1}},
    }  # fmt: skip
    spec = StackSpec.model_validate({"servings": [], **changes.pop("spec", {})})
    return need_of_stack("prod", spec, [compile_serving({**serving, **changes})])


def with_rights(seen: Seen, need: Need, *refused: str) -> Seen:
    """Grant everything but some resources, and make every namespace."""
    rights = {right: right.resource not in refused for right in need.rights}
    return replace(seen, rights=rights, namespaces=dict.fromkeys(need.namespaces, True))


def said(subject: str, seen: Seen, need: Need = GENERAL) -> list[tuple[Mark, str]]:
    lines = judge_cluster(with_rights(seen, need), need)
    return [(line.mark, line.text) for line in lines if line.subject == subject]


def test_a_sound_cluster_fails_in_nothing() -> None:
    for need in (GENERAL, stack(), stack(backend="kthena")):
        lines = judge_cluster(with_rights(healthy(), need), need)
        assert {line.mark for line in lines} <= {Mark.OK, Mark.UNKNOWN}
        assert exit_status(lines) == 0


def test_lines_begin_with_their_mark() -> None:
    lines = [Line(Mark.OK, "cluster", "a"), Line(Mark.FAIL, "volcano", "b")]
    assert render_lines(lines) == "ok    cluster  a\nfail  volcano  b"
    assert exit_status(lines) == 1


def test_an_old_kubernetes_fails_for_native_alone() -> None:
    old = healthy(version="v1.27.9")
    assert said("cluster", old)[0][0] is Mark.FAIL
    assert said("cluster", old, need_of_backends("default", ["kthena"]))[0][0] is Mark.OK


def without(*groups: str) -> dict[str, Any]:
    served = {k: v for k, v in healthy().served.items() if k.partition("/")[0] not in groups}
    return {"served": served}


def test_without_volcano_its_version_to_install_is_named() -> None:
    seen = healthy(**without("scheduling.volcano.sh", "topology.volcano.sh"))
    ((mark, text),) = said("volcano", seen)
    assert mark is Mark.FAIL
    assert "no PodGroup scheduling.volcano.sh/v1beta1" in text
    assert "Install Volcano 1.14 or later" in text
    assert said("Volcano's scheduler", seen) == []


def test_another_version_of_a_kind_is_named() -> None:
    served = {**healthy().served, "workload.serving.volcano.sh/v1": ["ModelServing"]}
    del served["workload.serving.volcano.sh/v1alpha1"]
    ((mark, text),) = said("kthena", healthy(served=served), stack(backend="kthena"))
    assert mark is Mark.FAIL
    assert "no ModelServing workload.serving.volcano.sh/v1alpha1 (only v1)" in text


def test_a_volcano_without_sub_groups_is_too_old() -> None:
    schemas: dict[Any, Any] = {POD_GROUP: {"properties": {"spec": {"properties": {}}}}}
    ((mark, text),) = said("volcano", healthy(schemas=schemas))
    assert (mark, "older than 1.14" in text) == (Mark.FAIL, True)
    ((mark, _),) = said("volcano", healthy(schemas={POD_GROUP: HIDDEN}))
    assert mark is Mark.UNKNOWN


def test_without_hyper_nodes_only_a_topology_fails() -> None:
    seen = healthy(**without("topology.volcano.sh"))
    assert said("volcano", seen)[0][0] is Mark.WARN
    assert said("volcano", seen, stack())[0][0] is Mark.FAIL


def test_without_kthena_native_still_works() -> None:
    seen = healthy(**without("workload.serving.volcano.sh"))
    ((mark, text),) = said("kthena", seen)
    assert mark is Mark.WARN
    assert "Install Kthena 1.0 with its CRDs" in text
    assert said("kthena", seen, stack()) == []
    assert said("kthena", seen, stack(backend="kthena"))[0][0] is Mark.FAIL


def test_an_older_kthena_names_the_servings_that_are_written_for_1_0() -> None:
    schemas: dict[Any, Any] = {**healthy().schemas, MODEL_SERVING: {"properties": {}}}
    ((mark, text),) = said("kthena", healthy(schemas=schemas), stack(backend="kthena"))
    assert mark is Mark.WARN
    assert "chat would be written for 1.0. Write kthena_version" in text


@pytest.mark.parametrize(
    ("subject", "label"),
    [
        ("Volcano's scheduler", ("app", "volcano-scheduler")),
        ("Volcano's controllers", ("app", "volcano-controller")),
        ("Kthena's controller", ("app.kubernetes.io/component", "kthena-controller-manager")),
    ],
)
def test_a_deployment_shows_whether_a_controller_runs(subject: str, label: Any) -> None:
    ((mark, text),) = said(subject, healthy(deployments=[deployment(*label)]))
    assert mark is Mark.OK
    assert text == f"Deployment system/{label[1]} has 1 of 1 pod ready, image {label[1]}:v1.14.1"
    assert (
        said(subject, healthy(deployments=[deployment(label[0], label[1], ready=0)]))[0][0]
        is Mark.FAIL
    )


def lease(name: str, renewed: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "volcano-system"},
            "spec": {"renewTime": renewed}}  # fmt: skip


def test_a_lease_shows_it_without_a_deployment() -> None:
    fresh = healthy(leases=[lease("volcano", "2026-01-02T11:59:57.123456Z")])
    assert said("Volcano's scheduler", fresh) == [
        (Mark.OK, "has renewed its Lease volcano-system/volcano 2 s ago")
    ]
    stale = healthy(leases=[lease("volcano", LONG_AGO)])
    assert said("Volcano's scheduler", stale) == [
        (Mark.FAIL, "has not renewed its Lease volcano-system/volcano for 3600 s. Start it")
    ]


def serving(made: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "chat", "namespace": "serving", "creationTimestamp": made},
            "spec": {"replicas": 1}, "status": status}  # fmt: skip


def test_what_only_a_controller_writes_shows_that_it_has_run() -> None:
    assert said("Volcano's scheduler", healthy())[0][0] is Mark.OK
    assert said("Kthena's controller", healthy())[0][0] is Mark.UNKNOWN
    ran = healthy(model_servings=[serving(LONG_AGO, observedGeneration=1)])
    assert said("Kthena's controller", ran)[0][0] is Mark.OK
    nothing = healthy(queues=[], deployments=HIDDEN)
    assert said("Volcano's scheduler", nothing)[0] == (
        Mark.UNKNOWN, "whether it runs cannot be told: you may not read it",
    )  # fmt: skip


def test_what_a_controller_should_have_written_shows_that_it_does_not_run() -> None:
    dead = healthy(pod_groups=[pod_group(phase="")], queues=[queue(), queue("q", "")],
                   model_servings=[serving(LONG_AGO)])  # fmt: skip
    for subject, what in (
        ("Volcano's scheduler", "PodGroup serving/chat-0 has no phase"),
        ("Volcano's controllers", "Queue q has no state"),
        ("Kthena's controller", "ModelServing serving/chat has no status"),
    ):
        ((mark, text),) = said(subject, dead)
        assert (mark, what in text) == (Mark.FAIL, True)
    young = healthy(model_servings=[serving(JUST_NOW)])
    assert said("Kthena's controller", young)[0][0] is Mark.UNKNOWN


def test_the_plugin_of_the_scheduler_is_looked_for() -> None:
    off = healthy(scheduler_config=config("gang", "binpack"))
    assert said("scheduler config", off)[0][0] is Mark.WARN
    ((mark, text),) = said("scheduler config", off, stack())
    assert (mark, "Add `- name: network-topology-aware`" in text) == (Mark.FAIL, True)
    broken = healthy(scheduler_config={"metadata": {"name": "c"}, "data": {"a": "[", "b": "x"}})
    assert "holds no scheduler config" in said("scheduler config", broken)[0][1]
    for unseen in (None, HIDDEN):
        assert said("scheduler config", healthy(scheduler_config=unseen))[0][0] is Mark.UNKNOWN


def test_queues_must_be_there_and_open() -> None:
    asked = stack(queue="llm")
    assert said("queue", healthy(queues=[queue("llm")]), asked) == [(Mark.OK, "llm is open")]
    ((mark, text),) = said("queue", healthy(queues=[queue("lmm")]), asked)
    assert (mark, "llm does not exist. Write 'lmm'" in text) == (Mark.FAIL, True)
    ((mark, text),) = said("queue", healthy(queues=[queue("llm", "Closed")]), asked)
    assert (mark, "llm is Closed" in text) == (Mark.FAIL, True)
    assert said("queue", healthy(queues=HIDDEN), asked)[0][0] is Mark.UNKNOWN
    made = stack(queue="llm", spec={"queues": [{"name": "llm"}]})
    assert said("queue", healthy(queues=[]), made) == []


def test_hyper_nodes_are_judged_as_a_tree() -> None:
    assert said("HyperNodes", healthy()) == [
        (Mark.OK, "2 of tier 1 with 4 nodes each, 1 of tier 2 with 8 nodes")
    ]
    second = hyper_node("spine-2", 2, by_name("r0", "HyperNode"))
    found = said("HyperNodes", healthy(hyper_nodes=[*tree(2), second]))
    assert [mark for mark, _ in found] == [Mark.FAIL]
    assert found[0][1].startswith("spine-2: 'r0' is a child of 'spine' and of 'spine-2'")
    unknown = hyper_node("far", 2, by_name("none", "HyperNode"))
    assert any("[hypernode-unknown-child]" in text
               for _, text in said("HyperNodes", healthy(hyper_nodes=[unknown])))  # fmt: skip


def test_no_hyper_node_fails_a_hard_topology_alone() -> None:
    assert said("HyperNodes", healthy(hyper_nodes=[]))[0][0] is Mark.WARN
    assert said("HyperNodes", healthy(hyper_nodes=[]), stack())[0][0] is Mark.FAIL
    assert said("HyperNodes", healthy(hyper_nodes=HIDDEN))[0][0] is Mark.UNKNOWN
    assert said("HyperNodes", healthy(nodes=HIDDEN))[-1][0] is Mark.UNKNOWN


def test_nodes_outside_and_empty_hyper_nodes_are_told() -> None:
    found = said("HyperNodes", healthy(nodes=[*racks(1, 4), node("lost")]))
    assert found[0] == (
        Mark.WARN,
        "r1 holds no node of this cluster. Compare their selectors with `kubectl get nodes`",
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
    assert (mark, text in seen) == (Mark.FAIL, True)


def test_gpus_are_counted() -> None:
    held = [pod("a", node="n-0-0"), pod("b", node="n-0-1", phase="Succeeded")]
    seen = healthy(pods=held, nodes=[*racks(2, 4)[:-1], node("n-1-3", "r1", unschedulable=True)])
    assert said("GPUs", seen) == [
        (Mark.OK, "64 on 8 nodes (8 × 8 nvidia.com/gpu), 48 free; 1 node not ready or cordoned")
    ]
    assert said("GPUs", healthy(nodes=[node("n", gpus=0)]))[0][0] is Mark.WARN
    assert said("GPUs", healthy(nodes=[node("n", gpus=0)]), stack())[0][0] is Mark.FAIL
    assert said("GPUs", healthy(nodes=HIDDEN))[0][0] is Mark.UNKNOWN
    assert "is not known" in said("GPUs", healthy(pods=HIDDEN))[0][1]
    full = [pod(f"p{i}", "other-0", node=n["metadata"]["name"]) for i, n in enumerate(racks(2, 4))]
    assert said("GPUs", healthy(pods=full))[0][0] is Mark.WARN


def test_room_is_judged_inside_one_rack() -> None:
    assert said("room", healthy(), stack()) == [
        (Mark.OK, ("serving/chat: a group is 2 pods of 8 nvidia.com/gpu; HyperNodes of tier 1 have "
         "room for 4 now, and 2 asked for"))
    ]  # fmt: skip
    small = healthy(nodes=racks(2, 1))
    ((mark, text),) = said("room", small, stack())
    assert mark is Mark.FAIL
    assert "the largest HyperNode of tier 1, r0, has room for 1 when it is empty" in text
    anywhere = stack(network_topology={"group_policy": {"mode": "soft"}})
    assert said("room", small, anywhere)[0][0] is Mark.WARN


def test_pods_of_others_take_room_and_own_ones_do_not() -> None:
    nodes = [item["metadata"]["name"] for item in racks(2, 4)][:6]
    others = [pod(f"p{i}", "other-0", node=name) for i, name in enumerate(nodes)]
    ((mark, text),) = said("room", healthy(pods=others), stack())
    assert (mark, "room for 1 now, and 2 asked for" in text) == (Mark.WARN, True)
    own = [pod(f"p{i}", "chat-0", node=name) for i, name in enumerate(nodes)]
    assert said("room", healthy(pods=own), stack())[0][0] is Mark.OK
    assert said("room", healthy(nodes=HIDDEN), stack())[0][0] is Mark.UNKNOWN


def test_servings_of_a_stack_need_room_beside_one_another() -> None:
    one = stack()
    both = replace(one, plans=(one.plans[0], replace(one.plans[0], name="talk")))
    assert said("room", healthy(), both)[-1] == (
        Mark.OK, "all servings together ask for 64 GPUs, and 64 are free of others",
    )  # fmt: skip
    assert said("room", healthy(nodes=racks(2, 3)), both)[-1][0] is Mark.WARN


def test_a_missing_namespace_is_told_with_the_command_that_makes_it() -> None:
    asked = stack()
    seen = replace(with_rights(healthy(), asked), namespaces={"serving": False})
    lines = [line for line in judge_cluster(seen, asked) if line.subject == "namespace"]
    assert [(line.mark, "`kubectl create namespace serving`" in line.text) for line in lines] == [
        (Mark.FAIL, True)
    ]


@pytest.mark.parametrize(
    ("keys", "mark", "text"),
    [
        (frozenset({"token"}), Mark.OK, "serving/hf has the key 'token'"),
        (frozenset({"tokens"}), Mark.FAIL, "has no key 'token', and pods that take it do not"),
        (None, Mark.FAIL, "kubectl create secret generic hf -n serving --from-file=token=FILE"),
        (HIDDEN, Mark.UNKNOWN, "cannot be told, you may not read it"),
    ],
)
def test_secrets_must_have_their_keys(keys: Any, mark: Mark, text: str) -> None:
    role = {**_ROLE, "hugging_face_token": {"name": "hf", "key": "token"}}
    asked = stack(roles=[role])
    assert asked.secrets == (SecretKey("serving", "hf", "token"),)
    ((seen, told),) = said("secret", healthy(secrets={("serving", "hf"): keys}), asked)
    assert (seen, text in told) == (mark, True)


_ROLE: dict[str, Any] = {
    "name": "serve", "resources": {"gpus_per_pod": 8},
    "engine": {"kind": "vllm", "image": "i:1", "model": "m", "parallelism": {"tensor": 8}},
}  # fmt: skip


def test_a_secret_of_the_stack_need_not_be_there() -> None:
    role = {**_ROLE, "hugging_face_token": {"name": "hf", "key": "token"}}
    secret = {"name": "hf", "namespace": "serving", "data": {"token": "hf_token"}}
    assert stack(roles=[role], spec={"secrets": [secret]}).secrets == ()


def test_rights_that_are_missing_are_listed_by_resource() -> None:
    asked = stack()
    lines = judge_cluster(with_rights(healthy(), asked, "podgroups"), asked)
    ((mark, text),) = [(line.mark, line.text) for line in lines if line.subject == "rights"]
    assert mark is Mark.FAIL
    assert "you may not create, delete, get, list, patch, watch podgroups in serving" in text
    lines = judge_cluster(replace(with_rights(healthy(), asked), rights={}), asked)
    assert [line.mark for line in lines if line.subject == "rights"] == [Mark.UNKNOWN]


@pytest.mark.parametrize(
    ("rule", "granted"),
    [
        ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, True),
        ({"verbs": ["create"], "apiGroups": ["apps"], "resources": ["statefulsets"]}, True),
        ({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["statefulsets"]}, False),
        ({"verbs": ["create"], "apiGroups": [""], "resources": ["statefulsets"]}, False),
        ({"verbs": ["create"], "apiGroups": ["apps"], "resources": ["deployments"]}, False),
        ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["a"]}, False),
        ({}, False),
    ],
)
def test_rules_are_read_as_kubernetes_does(rule: dict[str, Any], granted: bool) -> None:
    assert allows([rule], Right("default", "apps", "statefulsets", "create")) is granted


def test_a_stack_asks_only_for_what_it_applies() -> None:
    kinds = {kind[1] for _, kind in stack(backend="kthena").kinds}
    assert kinds == {"ModelServing"}
    assert {right.resource for right in stack().rights} == {
        "podgroups", "pods", "services", "statefulsets",
    }  # fmt: skip
