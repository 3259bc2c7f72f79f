"""How objects are described that no emitter writes like this."""

import copy
import json
from typing import Any

import pytest

from kthena_components.convert.conversion import SAME, Changes, Conversion, Kept
from kthena_components.convert.convert import convert
from kthena_components.convert.lost_fields import find_losses
from tests.support.for_each import for_each

PODS: dict[str, Any] = {"spec": {"containers": [{"name": "app", "image": "nginx:1.29"}]}}
IDLE: dict[str, Any] = {"spec": {"containers": [{"name": "app", "image": "busybox:1.37"}]}}


def serving(kind: str, version: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "chat"}, "spec": spec}


def model_serving(**template: Any) -> dict[str, Any]:
    role = {"name": "serve", "entryTemplate": PODS, "workerReplicas": 0}
    spec = {"template": {"roles": [role], **template}}
    return serving("ModelServing", "workload.serving.volcano.sh/v1alpha1", spec)


def model_infer(**template: Any) -> dict[str, Any]:
    role = {"name": "405b", "entryTemplate": PODS, "workerReplicas": 0}
    spec = {"schedulerName": "volcano", "template": {"roles": [role], **template}}
    return serving("ModelInfer", "workload.matrixinfer.ai/v1alpha1", spec)


def run(body: dict[str, Any], target: str = SAME, **arguments: Any) -> Conversion:
    return convert([body], Changes(target=target, arguments=arguments))


def losses(found: Conversion) -> list[str]:
    assert found.errors == ()
    return [str(loss) for loss in found.servings[0].losses]


def test_a_flat_topology_is_that_of_kthena_0_1() -> None:
    topology = {"mode": "hard", "highestTierAllowed": 2}
    body = model_serving(networkTopology=topology, gangPolicy={"minRoleReplicas": {"serve": 1}})
    pods = copy.deepcopy(PODS)
    pods["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    body["spec"]["template"]["roles"][0]["entryTemplate"] = pods
    found = run(body)
    assert losses(found) == []
    args = found.servings[0].args
    assert args["kthena_version"] == "0.1"
    assert args["network_topology"] == {"group_policy": {"mode": "hard", "highest_tier_allowed": 2}}


def test_a_refused_default_is_told_to_be_one_and_its_remedy_works() -> None:
    """Otherwise the author looks for the field in the file."""
    (error,) = run(model_serving(), "native").errors
    assert "that failed (by default: the object does not state it). Remove it" in str(error)
    stated = model_serving()
    stated["spec"]["recoveryPolicy"] = "RoleRecreate"
    (error,) = run(stated, "native").errors
    assert "that failed (spec.recoveryPolicy of the object). Remove it" in str(error)
    for body in (model_serving(), stated):
        assert losses(run(body, "native", recovery_policy=None)) == []


def test_an_older_release_of_kthena_is_told_where_it_is_stated() -> None:
    body = model_serving()
    body["spec"]["template"]["roles"][0]["name"] = "405b"
    note = "states kthena_version: '0.2', the newest release that accepts the object"
    assert run(body).servings[0].notes == (note,)
    assert run(body, kthena_version="0.2").servings[0].notes == ()
    assert run(model_serving()).servings[0].notes == ()


def test_a_field_of_an_older_release_is_lost() -> None:
    body = model_serving()
    body["spec"]["topologySpreadConstraints"] = [{"maxSkew": 1}]
    assert losses(run(body, "native", recovery_policy=None)) == [
        "spec.topologySpreadConstraints: is not kept"
    ]


def test_a_role_that_begins_with_a_digit_is_described_and_refused_by_new_kthena_only() -> None:
    assert losses(run(model_infer(gangSchedule={}), "lws")) == []
    (error,) = run(model_infer(gangSchedule={}), "kthena").errors
    assert "roles[0].name: is '405b'" in str(error)
    fixed = run(model_infer(gangSchedule={}), "kthena", **{"roles[0].name": "serve"})
    assert losses(fixed) == []


def test_a_gang_that_the_object_did_not_ask_for_is_told() -> None:
    notes = run(model_infer()).servings[0].notes
    assert "adds spec.template.gangSchedule" in notes
    assert "adds spec.template.roles[0].entryTemplate.spec.schedulerName" in notes
    assert not any("gang" in note for note in run(model_infer(gangSchedule={})).servings[0].notes)


def test_a_disaggregated_set_of_an_older_release_is_read() -> None:
    engine = {"replicas": 2, "leaderWorkerTemplate": {"size": 1, "workerTemplate": PODS}}
    roles = [{"name": "prefill", **engine}, {"name": "decode", **engine}]
    body = serving("DisaggregatedSet", "disaggregatedset.x-k8s.io/v1", {"roles": roles})
    found = run(body, "kthena")
    assert losses(found) == []
    written = found.servings[0].compiled.manifests[0].body["spec"]["template"]["roles"]
    assert [(role["name"], role["replicas"]) for role in written] == [("prefill", 2), ("decode", 2)]


def test_a_set_keeps_its_name_if_it_stays_a_set() -> None:
    group = {"size": 2, "workerTemplate": PODS, "subGroupPolicy": {"subGroupSize": 2}}
    body = serving(
        "LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", {"leaderWorkerTemplate": group}
    )
    found = run(body)
    assert losses(found) == []
    subgroups = {"serve": {"size": 2, "type": "LeaderWorker"}}
    options = {"subgroups": subgroups, "set_name": "chat"}
    assert found.servings[0].args["backend_options"] == options
    body["metadata"]["name"] = "llama-70b-chat"
    found = run(body)
    assert losses(found) == []
    plan = found.servings[0].compiled.plan
    assert (plan.name, [role.name for role in plan.roles]) == ("llama-70b", ["chat"])
    options = {"subgroups": {"chat": {"size": 2, "type": "LeaderWorker"}}}
    assert found.servings[0].args["backend_options"] == options
    ours = {"modelserving.volcano.sh/name": "a-b", "modelserving.volcano.sh/role": "serve"}
    labelled = {**body, "metadata": {"name": "a-b-serve", "labels": ours}}
    assert losses(run(labelled)) == []
    labelled["metadata"]["name"] = "elsewhere"
    found = run(labelled)
    assert losses(found) == []
    assert found.servings[0].args["backend_options"]["set_name"] == "elsewhere"
    del group["subGroupPolicy"]
    assert run(body, "kthena").servings[0].compiled.plan.name == "llama-70b-chat"


def test_a_budget_that_is_not_whole_groups_is_lost() -> None:
    rolling = {"rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 1}}
    engine = {
        "replicas": 2,
        "rolloutStrategy": {"type": "RollingUpdate", **rolling},
        "leaderWorkerTemplate": {"size": 1, "workerTemplate": PODS},
    }
    roles = [{"name": name, "spec": engine} for name in ("prefill", "decode")]
    body = serving("DisaggregatedSet", "disaggregatedset.x-k8s.io/v1", {"roles": roles})
    at = "rolloutStrategy.rollingUpdateConfiguration.maxSurge"
    assert losses(run(body, "native", recovery_policy=None)) == [
        f"spec.roles[{index}].spec.{at}: 1 becomes 0" for index in (0, 1)
    ]


def test_a_variable_that_a_container_sets_itself_is_left_alone() -> None:
    script = "echo $LWS_LEADER_ADDRESS $LWS_GROUP_SIZE"
    container = {
        "name": "app",
        "image": "nginx:1.29",
        "command": ["sh", "-c", script],
        "env": [{"name": "LWS_LEADER_ADDRESS", "value": "chat.example"}],
        "lifecycle": {"preStop": {"exec": {"command": ["leave", "$LWS_WORKER_INDEX"]}}},
    }
    template = {"size": 1, "workerTemplate": {"spec": {"containers": [container]}}}
    body = serving(
        "LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", {"leaderWorkerTemplate": template}
    )
    found = run(body, "kthena")
    assert losses(found) == []
    (role,) = found.servings[0].args["roles"]
    (written,) = role["entry_template"]["spec"]["containers"]
    assert written["command"] == ["sh", "-c", "echo $LWS_LEADER_ADDRESS $GROUP_SIZE"]
    assert written["lifecycle"]["preStop"]["exec"]["command"] == ["leave", "$WORKER_INDEX"]


def test_an_object_that_names_a_lost_label_of_the_pods_says_so() -> None:
    """A ModelServer pairs pods by their group, which only Kthena writes on them."""
    prefix = "modelserving.volcano.sh"
    selector = {
        "matchLabels": {f"{prefix}/name": "chat", f"{prefix}/entry": "true"},
        "pdGroup": {"groupKey": f"{prefix}/group-name"},
    }
    server = serving(
        "ModelServer", "networking.serving.volcano.sh/v1alpha1", {"workloadSelector": selector}
    )
    *_, kept = convert([model_serving(), server], Changes(target="lws")).parts
    assert [str(loss) for loss in kept.losses] == [
        f"ModelServer/chat: names the label {prefix}/group-name, which no pod has with lws"
    ]
    *_, same = convert([model_serving(), server], Changes(target=SAME)).parts
    assert same.losses == ()


@for_each(
    ("kind", "version", "known"),
    [
        ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v2", "leaderworkerset.x-k8s.io/v1"),
        ("ModelServing", "workload.serving.volcano.sh/v1", "workload.serving.volcano.sh/v1alpha1"),
        ("ModelInfer", "workload.matrixinfer.ai/v1", "workload.matrixinfer.ai/v1alpha1"),
        ("ModelInfer", "workload.volcano.sh/v1", "workload.volcano.sh/v1alpha1"),
        ("InferenceService", "serving.kserve.io/v1", "serving.kserve.io/v1beta1"),
        ("Workspace", "kaito.sh/v1", "kaito.sh/v1alpha1"),
        ("RayCluster", "ray.io/v2", "ray.io/v1"),
        ("RoleBasedGroup", "workloads.x-k8s.io/v1", "workloads.x-k8s.io/v1alpha1"),
    ],
)
@for_each("target", [SAME, "kthena", "lws"])
def test_an_unknown_version_is_refused_with_the_known_ones(
    kind: str, version: str, known: str, target: str
) -> None:
    engine = {"name": "app", "image": "vllm/vllm-openai:v0.33.0", "command": ["vllm", "serve", "m"]}
    template = {"spec": {"containers": [engine]}}
    head = {"rayStartParams": {}, "template": template}
    spec = {"headGroupSpec": head, "roles": [{"name": "a", "replicas": 1, "template": template}]}
    found = run(serving(kind, version, spec), target)
    (error,) = found.errors
    (finding,) = error.findings
    assert (found.parts, finding.path) == ((), "apiVersion")
    assert finding.seen == f"is '{version}', in which no known release serves {kind}"
    assert known in finding.remedy


@pytest.mark.parametrize(
    ("target", "arguments", "lost"),
    [
        ("native", {"recovery_policy": None}, True),
        ("kserve", {}, True),
        ("kaito", {"recovery_policy": None, "backend_options.label_selector": {"a": "b"}}, True),
        ("lws", {}, False),
        ("matrixinfer", {}, False),
        (SAME, {}, False),
    ],
)
def test_a_template_of_workers_that_no_pod_has_is_written_or_a_loss(
    target: str, arguments: dict[str, Any], lost: bool
) -> None:
    amounts = {"cpu": "1", "memory": "1Gi"}
    entry = copy.deepcopy(PODS)
    entry["spec"]["containers"][0] |= {
        "ports": [{"containerPort": 80}],
        "resources": {"limits": amounts, "requests": amounts},
    }
    body = model_serving()
    role = {"name": "serve", "entryTemplate": entry, "workerReplicas": 0, "workerTemplate": IDLE}
    body["spec"]["template"]["roles"] = [role]
    found = run(body, target, **arguments)
    said = f"roles[0].worker_template: is of no pod, and {target} does not write it"
    assert losses(found) == ([said] if lost else [])
    written = json.dumps([m.body for m in found.servings[0].compiled.manifests], default=str)
    assert ("busybox" in written) is not lost


def test_a_leader_of_its_own_is_described_with_the_workers_that_it_may_get() -> None:
    both = {"size": 1, "leaderTemplate": PODS, "workerTemplate": IDLE}
    spec = {"leaderWorkerTemplate": both}
    found = run(serving("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", spec))
    assert losses(found) == []
    (role,) = found.servings[0].args["roles"]
    assert role["worker_template"] == IDLE


def test_labels_of_the_object_are_kept_with_every_backend() -> None:
    body = model_serving()
    body["metadata"]["labels"] = {"team": "chat"}
    found = run(body, "native", recovery_policy=None)
    assert losses(found) == []
    for manifest in found.servings[0].compiled.manifests:
        assert manifest.body["metadata"]["labels"]["team"] == "chat"


def test_annotations_for_pulumi_alone_are_no_loss() -> None:
    written = {"metadata": {"annotations": {"pulumi.com/patchForce": "true"}}}
    assert list(find_losses(written, {"metadata": {}})) == []
    own = {"metadata": {"annotations": {"pulumi.com/patchForce": "true", "team": "chat"}}}
    assert [loss.name for loss in find_losses(own, {"metadata": {}})] == ["metadata.annotations"]


def test_a_budget_of_evictions_selects_the_pods_as_they_are_now() -> None:
    spec = {
        "minAvailable": 3,
        "selector": {"matchLabels": {"modelserving.volcano.sh/name": "chat"}},
    }
    budget = serving("PodDisruptionBudget", "policy/v1", spec)
    *_, kept = convert([model_serving(), budget], Changes(target="lws")).parts
    assert kept.losses == ()
    lws = serving(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io/v1",
        {"leaderWorkerTemplate": {"workerTemplate": PODS}},
    )
    budget = copy.deepcopy(budget)
    budget["spec"]["selector"]["matchLabels"] = {"leaderworkerset.sigs.k8s.io/name": "chat"}
    *_, kept = convert([lws, budget], Changes(target="kthena")).parts
    assert isinstance(kept, Kept)
    assert kept.body["spec"] == spec


def _odd_infer() -> dict[str, Any]:
    body = model_infer(gangSchedule={"minRoleReplicas": {"405b": 1}})
    body["spec"]["template"]["roles"][0]["name"] = []
    return body


def _odd_claims() -> dict[str, Any]:
    container = {"name": "app", "image": "nginx:1.29", "resources": {"claims": [{"name": {}}]}}
    claims = [{"name": [], "resourceClaimTemplateName": "gpus"}]
    pods: dict[str, Any] = {"metadata": {"labels": {"app": "chat"}}}
    pods |= {"spec": {"containers": [container], "resourceClaims": claims}}
    spec = {"selector": {"matchLabels": {"app": "chat"}}, "template": pods}
    return serving("Deployment", "apps/v1", spec)


def _odd_variables() -> dict[str, Any]:
    container = {"name": "app", "image": "nginx:1.29", "env": [{"name": [], "value": "1"}]}
    template = {"size": 2, "workerTemplate": {"spec": {"containers": [container]}}}
    spec = {"replicas": 1, "leaderWorkerTemplate": template}
    return serving("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", spec)


@pytest.mark.parametrize("made", [_odd_infer, _odd_claims, _odd_variables])
@pytest.mark.parametrize("target", [SAME, "native", "kthena", "lws"])
def test_a_name_that_is_no_text_is_no_fault(made: Any, target: str) -> None:
    found = run(made(), target)
    assert found.errors or found.servings or found.parts
