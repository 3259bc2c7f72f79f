"""The pods of an engine are read one by one whatever kind they are of, and their ranks counted."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import Level, SpecError
from tests.rules.cases import documents
from tests.support.for_each import for_each
from tests.support.specs import REMOVED, changed

Body = dict[str, Any]
COPIES = 4
INDEX = "batch.kubernetes.io/job-completion-index"


def pod(rank: str, *words: str, gpus: int = 1, env: Any = ()) -> Body:
    """Return a pod template with one whole copy of four."""
    options = words or (f"--data-parallel-rank={rank}",)
    command = ["vllm", "serve", "m", f"-dp={COPIES}", *options]
    container: Body = {"name": "engine", "image": "own:1", "command": command, "env": [*env]}
    container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    return {"spec": {"containers": [container]}}


def field(path: str) -> list[Body]:
    return [{"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}}]


def lws(pods: int, rank: str, *words: str, **more: Any) -> Body:
    group = {"size": pods, "workerTemplate": pod(rank, *words, **more)}
    changes = {"spec.leaderWorkerTemplate": group, "spec.replicas": 1}
    return changed(documents("lws")[0], changes)


def lws_of_two(pods: int, rank: str) -> Body:
    two = {"leaderTemplate": pod("0"), "workerTemplate": pod(rank)}
    return changed(documents("lws")[0], {"spec.leaderWorkerTemplate": {"size": pods, **two}})


def serving(base: str, pods: int, rank: str, *words: str) -> Body:
    made = pod(rank, *words)
    role: Body = {"name": "serve", "replicas": 1, "workerReplicas": pods - 1, "entryTemplate": made}
    if pods > 1:
        role["workerTemplate"] = made
    return changed(documents(base)[0], {"spec.template.roles": [role]})


def llm(pods: int, rank: str) -> Body:
    spec = pod(rank)["spec"]
    sizes = {"tensor": 1, "data": pods, "dataLocal": 1}
    changes = {"spec.parallelism": sizes, "spec.template": spec, "spec.worker": spec}
    return changed(documents("llm-inference-service")[0], changes)


def llmaz(pods: int, rank: str) -> Body:
    group = {"size": pods, "workerTemplate": pod(rank)}
    return changed(documents("llmaz-service")[0], {"spec.workloadTemplate": group})


def role_set(pods: int, rank: str) -> Body:
    role = {"name": "a", "replicas": 1, "stateful": True, "podGroupSize": pods}
    return changed(documents("role-set")[0], {"spec.roles": [{**role, "template": pod(rank)}]})


def rbg(pods: int, rank: str) -> Body:
    group = {"size": pods, "template": pod(rank)}
    role = {"name": "a", "replicas": 2, "leaderWorkerPattern": group}
    return changed(documents("rbg")[0], {"spec.roles": [role], "spec.roleTemplates": REMOVED})


def job(pods: int, rank: str) -> Body:
    path = f"metadata.annotations['{INDEX}']"
    changes = {"spec.parallelism": pods, "spec.completions": pods, "spec.completionMode": "Indexed",
               "spec.template": pod(rank, env=field(path))}  # fmt: skip
    return changed(documents("job")[0], changes)


def job_set(pods: int, rank: str) -> Body:
    inner = job(pods, rank)["spec"]
    return changed(documents("job-set")[0], {"spec.replicatedJobs[0].template.spec": inner})


def volcano_job(pods: int, rank: str) -> Body:
    tasks = [{"name": "a", "replicas": pods, "template": pod(rank)}]
    spec = {"minAvailable": pods, "plugins": {"env": []}, "tasks": tasks}
    return {**documents("volcano-job")[0], "spec": spec}


def grove(pods: int, rank: str) -> Body:
    clique = {
        "name": "a",
        "spec": {"roleName": "a", "replicas": pods, "podSpec": pod(rank)["spec"]},
    }
    template = {"cliques": [clique]}
    return changed(documents("grove")[0], {"spec.template": template})


def stateful_set(pods: int, rank: str) -> Body:
    env = field("metadata.labels['apps.kubernetes.io/pod-index']")
    changes = {"spec.replicas": pods, "spec.template": pod(rank, env=env)}
    return changed(documents("stateful-set")[0], changes)


KINDS = {
    "StatefulSet": (stateful_set, "$(INDEX)"),
    "LeaderWorkerSet": (lws, "$(LWS_WORKER_INDEX)"),
    "LeaderWorkerSet of two templates": (lws_of_two, "$(LWS_WORKER_INDEX)"),
    "LLMInferenceService": (llm, "$(LWS_WORKER_INDEX)"),
    "llmaz": (llmaz, "$(LWS_WORKER_INDEX)"),
    "ModelServing": (lambda *of: serving("kthena", *of), "$(WORKER_INDEX)"),
    "ModelInfer": (lambda *of: serving("model-infer", *of), "$(WORKER_INDEX)"),
    "RoleSet": (role_set, "$(POD_GROUP_INDEX)"),
    "RoleBasedGroup": (rbg, "$(RBG_LWP_WORKER_INDEX)"),
    "Job": (job, "$(INDEX)"),
    "Job by its variable": (job, "$(JOB_COMPLETION_INDEX)"),
    "JobSet": (job_set, "$(INDEX)"),
    "Volcano Job": (volcano_job, "$(VC_TASK_INDEX)"),
    "PodCliqueSet": (grove, "$(GROVE_PCLQ_POD_INDEX)"),
}


def said(body: Body, rule: str = "pod-ranks", level: Level = Level.MANDATORY) -> list[str]:
    """Return what is found by one rule."""
    return [f.seen for f in check_manifest(body) if f.rule == rule and f.level is level]


@for_each("pods", [2, 3, 4, 5])
@for_each("kind", KINDS)
def test_there_is_a_pod_for_each_copy(kind: str, pods: int) -> None:
    of, rank = KINDS[kind]
    found = said(of(pods, rank))
    assert bool(found) is (pods != COPIES), (found, list(map(str, check_manifest(of(pods, rank)))))
    needs = f"--data-parallel-size {COPIES} needs 4 pods with 0, 1, 2, 3"
    assert all(f"has {pods} pods with --data-parallel-rank 0, 1" in text for text in found)
    assert all(needs in text for text in found)


@pytest.mark.parametrize(
    "kind", ["LeaderWorkerSet", "ModelServing", "ModelInfer", "LLMInferenceService"]
)
def test_a_rank_that_all_pods_state_repeats(kind: str) -> None:
    (found,) = said(KINDS[kind][0](COPIES, "1"))
    assert "has 4 pods with --data-parallel-rank 1, 1, 1, 1" in found


HYBRID = ("--data-parallel-size-local=2", "--data-parallel-hybrid-lb")


@pytest.mark.parametrize(
    ("pods", "rank", "wrong"),
    [(2, "$((LWS_WORKER_INDEX * 2))", ""), (3, "$((LWS_WORKER_INDEX * 2))", "0, 2, 4"),
     (2, "$LWS_WORKER_INDEX", "0, 1"), (2, "0", "0, 0")],
)  # fmt: skip
def test_a_pod_of_several_copies_starts_at_a_multiple(pods: int, rank: str, wrong: str) -> None:
    options = " ".join(HYBRID)
    script = f"vllm serve m -dp {COPIES} {options} --data-parallel-start-rank {rank}"
    body = lws(pods, rank, gpus=2)
    container = body["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]
    container["command"] = ["sh", "-c", script]
    found = said(body)
    assert bool(found) is bool(wrong)
    assert all(f"with --data-parallel-start-rank {wrong}, but" in text for text in found)


def test_ranks_that_repeat_evenly_are_several_engines_in_a_group() -> None:
    body = lws(COPIES, "")
    container = body["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]
    script = "vllm serve m -dp 2 --data-parallel-rank $((LWS_WORKER_INDEX % 2))"
    container["command"] = ["sh", "-c", script]
    assert said(body) == []


@pytest.mark.parametrize(("address", "wrong"), [("chat", True), ("127.0.0.1", False)])
@pytest.mark.parametrize("kind", ["LeaderWorkerSet", "ModelServing"])
def test_replicas_of_one_pod_that_all_state_a_rank_meet(
    kind: str, address: str, *, wrong: bool
) -> None:
    """Groups of one pod each: no variable numbers them."""
    words = ("--data-parallel-rank=0", f"--data-parallel-address={address}")
    if kind == "ModelServing":
        body = changed(serving("kthena", 1, "", *words), {"spec.template.roles[0].replicas": 3})
    else:
        body = changed(lws(1, "", *words), {"spec.replicas": 3})
    found = said(body)
    assert bool(found) is wrong
    assert all("has 3 pods, and each states --data-parallel-rank 0" in text for text in found)


def test_a_number_that_is_not_known_is_compared_with_nothing() -> None:
    body = changed(lws(2, "$(LWS_WORKER_INDEX)"), {"spec.leaderWorkerTemplate.size": None})
    assert said(changed(body, {"spec.leaderWorkerTemplate.size": "x"})) == []
    assert said(lws(2, "$(ELSEWHERE)")) == []


def test_a_component_counts_the_ranks_of_its_own_templates() -> None:
    own = pod("$(WORKER_INDEX)")
    role = {"name": "serve", "worker_replicas": 2, "entry_template": own, "worker_template": own}
    with pytest.raises(SpecError) as refused:
        compile_serving({"name": "chat", "backend": "kthena", "roles": [role]})
    assert "has 3 pods with --data-parallel-rank 0, 1, 2" in str(refused.value)
    compile_serving(
        {"name": "chat", "backend": "kthena", "roles": [{**role, "worker_replicas": 3}]}
    )


HEADLESS = ("-tp=8", "--headless", "--data-parallel-address=chat")


@for_each(
    ("words", "gpus", "wrong"),
    [
        (("--data-parallel-size-local=2", "--data-parallel-start-rank=2"), 8, "16 ranks"),
        (("--data-parallel-size-local=1", "--data-parallel-start-rank=3"), 8, ""),
        (("--data-parallel-size-local=2", "--data-parallel-start-rank=2"), 16, ""),
        (("--data-parallel-size-local=1", "--data-parallel-start-rank=3"), 16, "8 ranks"),
        ((), 8, "32 ranks"),
        (("--data-parallel-size-local=2", "--data-parallel-backend=ray"), 8, ""),
        (("--data-parallel-size-local=$(LATER)",), 8, ""),
    ],
)
@for_each("base", ["deployment", "stateful-set", "job", "pod"])
def test_a_headless_pod_in_an_object_of_its_own_has_a_gpu_for_each_rank(
    base: str, words: tuple[str, ...], gpus: int, wrong: str
) -> None:
    made = pod("", *HEADLESS, *words, gpus=gpus)
    at = {"spec": made["spec"]} if base == "pod" else {"spec.template": made}
    found = said(changed(documents(base)[0], at), "world-size-equals-gpus")
    assert bool(found) is bool(wrong), found
    assert all(wrong in text and f"has {gpus} GPUs" in text for text in found)


def test_headless_pods_of_a_stateful_set_continue_an_engine() -> None:
    """The first pods are in another object: ranks that repeat, or are too high, are reported."""

    def of(start: str) -> Body:
        options = f"--headless --data-parallel-size-local 1 --data-parallel-start-rank {start}"
        body = stateful_set(3, "")
        container = body["spec"]["template"]["spec"]["containers"][0]
        container["command"] = ["sh", "-c", f"vllm serve m -dp {COPIES} {options}"]
        return body

    assert said(of("$((INDEX + 1))")) == []
    (found,) = said(of("$((INDEX + 2))"))
    assert "--data-parallel-start-rank 2, 3, 4" in found
