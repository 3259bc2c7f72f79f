"""Kthena ModelServings, ours or anyone's: ranks, names, and what the cluster would not let in."""

import copy

from tests.policies.objects import (
    GPU,
    MODEL_SERVING,
    Args,
    advice,
    container,
    model_serving,
    pod,
    refusals,
    silent,
)
from tests.support.specs import GUIDE_ENTRY

ENTRY = "spec.template.roles[0].entryTemplate.spec.containers[0]"
WORKER = "spec.template.roles[0].workerTemplate.spec.containers[0]"
BOTH = {"limits": {GPU: 8}, "requests": {GPU: 8}}


ENTRY_SCRIPT = f"{GUIDE_ENTRY} --distributed-executor-backend ray"


def guide(workers: int = 1) -> Args:
    """Give Kthena's multi-node guide with tensor 8 × pipeline 2, its requests stated."""
    leader = container("leader", resources=BOTH, command=["sh", "-c", ENTRY_SCRIPT])
    join = ["ray", "start", "--address=$(ENTRY_ADDRESS):6379", "--block"]
    worker = container("worker", resources=copy.deepcopy(BOTH), command=join)
    return model_serving({"spec": pod(leader)["spec"]}, {"spec": pod(worker)["spec"]}, workers)


def test_an_engine_over_as_many_pods_as_it_needs_is_let_by() -> None:
    assert silent(MODEL_SERVING, guide())


def test_an_engine_over_one_pod_too_many_is_refused() -> None:
    assert refusals(MODEL_SERVING, guide(workers=2)) == (
        f"{ENTRY}.command: engine 'decode' starts tensor 8 × pipeline 2 = 16 ranks, but its 3 pods "
        "× 8 GPUs hold 24. Set pipeline to 3, or give the engine 2 pods. [world-size-equals-gpus]\n"
        f"{ENTRY}.command: engine 'decode' has 3 pods, but its Ray leader waits for 2 "
        "(ray_cluster_size). Write --ray_cluster_size=3, or $(GROUP_SIZE). "
        "[ray-cluster-size-equals-group]"
    )


def test_workers_with_other_gpus_are_refused_at_the_workers() -> None:
    wrong = guide()
    worker = wrong["spec"]["template"]["roles"][0]["workerTemplate"]["spec"]["containers"][0]
    worker["resources"] = {"limits": {GPU: 4}, "requests": {GPU: 4}}
    assert refusals(MODEL_SERVING, wrong).splitlines()[1] == (
        f"{WORKER}.resources: engine 'decode' gives its entry pod 8 GPUs and each worker 4, and an "
        "engine distributes its ranks evenly. Write 8 in both. "
        "[leader-worker-same-gpus]"
    )


def test_limits_alone_are_advice_because_a_gang_is_sized_by_requests() -> None:
    props = guide()
    leader = props["spec"]["template"]["roles"][0]["entryTemplate"]["spec"]["containers"][0]
    del leader["resources"]["requests"]
    assert refusals(MODEL_SERVING, props) == ""
    assert advice(MODEL_SERVING, props) == (
        f"{ENTRY}.resources: engine 'decode', container 'leader' states nvidia.com/gpu with a "
        "limit of 8 and no request; the pods get both, but a gang is sized by requests. "
        "Write 8 in both. [gpu-requests-equal-limits]"
    )


def test_what_the_webhook_would_refuse_is_refused_at_preview() -> None:
    wrong = guide()
    wrong["spec"]["template"]["roles"][0]["name"] = "405b"
    (refused,) = refusals(MODEL_SERVING, wrong).splitlines()
    assert refused.startswith("spec.template.roles[0].name: ")
    assert "405b" in refused
    assert "[kthena-" in refused


def test_a_missing_worker_template_is_refused_at_preview() -> None:
    wrong = guide()
    del wrong["spec"]["template"]["roles"][0]["workerTemplate"]
    assert "spec.template.roles[0].workerTemplate" in refusals(MODEL_SERVING, wrong)
