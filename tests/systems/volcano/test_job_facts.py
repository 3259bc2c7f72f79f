"""Volcano Jobs: which pods of their tasks make an engine, and what is said of its sizes."""
# ruff: noqa: E501 - a message stands whole on its line, to be searched for

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.manifest import check_manifest, read_manifest
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.facts.workload import ELSEWHERE, NOT_STATED
from kthena_components.core.findings import Level
from kthena_components.core.values.unknown import OfController, Unknown
from tests.support.specs import REMOVED, Args, changed, gpu_template, template
from tests.support.strategies import damaged
from tests.systems.volcano.samples import LATE, places, with_value

WORLD = "world-size-equals-gpus"
TOLD = Unknown("it is not stated which of the pods form one engine")
SERVE = "vllm serve m --tensor-parallel-size 8"
RAY_HEAD = (
    f"ray start --head && {SERVE} --pipeline-parallel-size 4 --distributed-executor-backend ray"
)
RAY_WORKER = "ray start --block --address=${VC_HEAD_HOSTS%%,*}:6379"
NODES = f"{SERVE} --pipeline-parallel-size 4 --nnodes 4 --master-addr x"
RANKED = (
    f"if [ $VC_TASK_INDEX = 0 ]; then {NODES} --node-rank 0; "
    f"else {NODES} --headless --node-rank $VC_TASK_INDEX; fi"
)


def task(name: str, command: str, replicas: Any = 1, gpus: int = 8, **fields: Any) -> Args:
    """Give a task whose pods run a command on GPUs; of their requests the Job states none."""
    at = "spec.containers[0]"
    own = {f"{at}.image": "example.com/engine:1", f"{at}.resources.requests": REMOVED}
    pod = changed(gpu_template(command, gpus), own)
    return {"name": name, "replicas": replicas, "template": pod, **fields}


def job(*tasks: Args, **spec: Any) -> Args:
    """Give a Volcano Job, whose pods know their names and numbers unless it is said otherwise."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {"tasks": list(tasks), "plugins": {"env": [], "svc": []}, **spec},
    }


def read(body: Args) -> ServingFacts:
    """Give the facts of a Job."""
    facts = read_manifest(body, "o")
    assert facts is not None
    return facts


def engines(body: Args) -> list[tuple[object, ...]]:
    """Give the name, the pods, the replicas and the GPUs a pod of each engine."""
    return [(e.name, e.pods, e.replicas, e.entry.gpus) for e in read(body).engines]


def told(body: Args, level: Level = Level.MANDATORY) -> list[str]:
    """Give the findings of a level, and those that weigh more."""
    levels = list(Level)[: list(Level).index(level) + 1]
    return [str(finding) for finding in check_manifest(body) if finding.level in levels]


ONE = job(task("server", SERVE, 2))
RAY = job(task("head", RAY_HEAD), task("worker", RAY_WORKER, 3))
NATIVE = job(
    task("master", f"{NODES} --node-rank 0"),
    task("worker", f"{NODES} --headless --node-rank $((VC_TASK_INDEX + 1))", 3),
)
TORCH = NODES.replace("--nnodes 4", "--nnodes $WORLD_SIZE").replace(
    " x", " $MASTER_ADDR --master-port $MASTER_PORT --node-rank $RANK"
)
PYTORCH = job(
    task("head", TORCH),
    task("worker", f"{TORCH} --headless", 3),
    plugins={"pytorch": ["--master=head"]},
)
CLIENT: Args = {"name": "client", "replicas": 2, "template": template()}
RIGHT: dict[str, tuple[Args, list[tuple[object, ...]]]] = {
    "one": (ONE, [("server", 1, 2, 8)]),
    "several": (
        job(task("a", SERVE, 2), task("b", "vllm serve m -tp 4", 3, 4)),
        [("a", 1, 2, 8), ("b", 1, 3, 4)],
    ),
    "ray": (RAY, [("head", 4, 1, 8)]),
    "native": (NATIVE, [("master", 4, 1, 8)]),
    "one-template": (
        job(task("server", RANKED, 4)),
        [("server", 4, 1, 8)],
    ),
    "beside-others": (job(*RAY["spec"]["tasks"], CLIENT), [("head", 4, 1, 8)]),
    "no-workers": (
        job(task("head", f"ray start --head && {SERVE}"), task("worker", RAY_WORKER, 0)),
        [("head", 1, 1, 8)],
    ),
    "pytorch": (PYTORCH, [("head", 4, 1, 8)]),
    "pytorch-beside-others": (job(*PYTORCH["spec"]["tasks"], CLIENT, plugins={"pytorch": ["-master", "head"]}), [("head", 4, 1, 8)]),
    "pytorch-of-one-host": (changed(PYTORCH, {"spec.tasks[0].template.spec.hostname": "one"}), [("head", 4, 1, 8)]),
    "pytorch-own-rank": (changed(PYTORCH, {"spec.tasks[1].template.spec.containers[0].env": [{"name": "RANK", "value": "0"}]}), [("head", 4, 1, 8)]),
    "pytorch-port-without-value": (
        changed(PYTORCH, {"spec.plugins.pytorch": ["--master=head", "--port"], "spec.tasks[1]": task("worker", f"{TORCH} --headless".replace("$MASTER_PORT", "23456"), 3)}),
        [("head", 4, 1, 8)],
    ),
    "no-name": (job({**task("", SERVE), "name": None}), [("default0", 1, 1, 8)]),
    "no-replicas": (changed(ONE, {"spec.tasks[0].replicas": REMOVED}), [("server", 1, 1, 8)]),
}  # fmt: skip


def test_a_task_whose_pods_have_too_few_gpus_is_refused() -> None:
    (line,) = told(job(task("server", SERVE, 2, gpus=4)))
    assert line == (
        "spec.tasks[0].template.spec.containers[0].command: engine 'server' starts tensor 8 × pipeline 1 = 8 ranks, but its pod has 4 GPUs. Set tensor to 4, or give each pod 8 GPUs. [world-size-equals-gpus]"
    )


@pytest.mark.parametrize(("body", "found"), RIGHT.values(), ids=RIGHT)
def test_engines_are_read_and_checked(body: Args, found: list[tuple[object, ...]]) -> None:
    assert engines(body) == found
    assert told(body) == []


WRONG: dict[str, tuple[Args, str]] = {
    "ray-pods": (
        changed(RAY, {"spec.tasks[1].replicas": 1}),
        "starts tensor 8 × pipeline 4 = 32 ranks, but its 2 pods × 8 GPUs hold 16.",
    ),
    "ray-size": (
        changed(RAY, {"spec.tasks[0]": task("head", RAY_HEAD.replace("ray start --head", "bash /x/multi-node-serving.sh leader --ray_cluster_size=3"))}),
        "engine 'head' has 4 pods, but its Ray leader waits for 3 (ray_cluster_size)",
    ),
    "native-pods": (
        changed(NATIVE, {"spec.tasks[1].replicas": 2}),
        "engine 'master' has 3 pods, but is started with --nnodes 4.",
    ),
    "pytorch-pods": (changed(PYTORCH, {"spec.tasks[1].replicas": 2}), "starts tensor 8 × pipeline 4 = 32 ranks, but its 3 pods × 8 GPUs hold 24."),
    "pytorch-counts-others": (
        changed(PYTORCH, {"spec.plugins.pytorch": ["--master=head", "--worker=other"]}),
        "engine 'head' has 4 pods, but is started with --nnodes 1.",
    ),
    "pytorch-rank": (
        changed(PYTORCH, {"spec.tasks[1]": task("worker", f"{TORCH} --headless".replace("$RANK", "$((RANK + 1))"), 3)}),
        "has 4 pods with --node-rank 0, 2, 3, 4, but --nnodes 4 needs 4 pods with 0, 1, 2, 3",
    ),
    "pytorch-port": (
        changed(PYTORCH, {"spec.tasks[1]": task("worker", f"{TORCH} --headless".replace("$MASTER_PORT", "29500"), 3)}),
        "has its first rank at port 23456, and its workers look for it at port 29500",
    ),
    "pytorch-stated-port": (
        changed(PYTORCH, {"spec.plugins.pytorch": ["--master=head", "--port=29501"], "spec.tasks[1]": task("worker", f"{TORCH} --headless".replace("$MASTER_PORT", "29500"), 3)}),
        "has its first rank at port 29501, and its workers look for it at port 29500",
    ),
    "native-gpus": (
        changed(NATIVE, {"spec.tasks[1].template.spec.containers[0].resources.limits": {"nvidia.com/gpu": 4}}),
        "engine 'master' gives its entry pod 8 GPUs and each worker 4",
    ),
    "second-of-several": (
        job(task("a", SERVE), task("b", "vllm serve m -tp 4")),
        "spec.tasks[1].template.spec.containers[0].command: engine 'b' starts tensor 4",
    ),
    "one-template": (
        job(task("server", f"{NODES} --node-rank $VC_TASK_INDEX", 4, gpus=4)),
        "starts tensor 8 × pipeline 4 = 32 ranks, but its 4 pods × 4 GPUs hold 16.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "said"), WRONG.values(), ids=WRONG)
def test_one_wrong_number_is_found(body: Args, said: str) -> None:
    assert said in "\n".join(told(body))


def test_findings_and_facts_stand_where_the_caller_says() -> None:
    facts = read(NATIVE)
    assert (facts.path, facts.name) == ("o.spec", "chat")
    (engine,) = facts.engines
    assert engine.path == "o.spec.tasks[0].template"
    assert engine.worker is not None
    assert engine.worker.gpus_path == "o.spec.tasks[1].template.spec.containers[0].resources"
    found = check_manifest(job(task("server", SERVE, gpus=4)), "o")
    at = "o.spec.tasks[0].template.spec.containers[0].command"
    assert at in {finding.path for finding in found if finding.rule == WORLD}


def test_requests_are_filled_from_limits() -> None:
    assert [f for f in check_manifest(RAY) if f.rule == "gpu-requests-equal-limits"] == []
    (head,) = read(RAY).engines
    assert head.worker is not None
    assert {device.request for pod in (head.entry, head.worker) for device in pod.devices} == {8}


MPI = "mpirun -np 16 -host $MPI_HOST trtllm-llmapi-launch trtllm-serve m --tp_size 16"
SSHD = "mkdir -p /var/run/sshd; /usr/sbin/sshd -D"
EITHER = f"if [ $VC_TASK_INDEX = 0 ]; then {RAY_HEAD}; else {RAY_WORKER}; fi"
NOT_TOLD = OfController(
    "no env sets VC_SERVER_NUM; a plugin of a Volcano Job does in the pods that it creates",
    "VC_SERVER_NUM",
)

OPEN: dict[str, tuple[Args, Unknown]] = {
    "mpi": (job(task("master", MPI), task("worker", SSHD)), TOLD),
    "mpi-alone": (job(task("master", MPI), CLIENT), NOT_STATED),
    "one-script": (job(task("server", EITHER.replace("_HEAD_", "_SERVER_"), 4)), NOT_STATED),
    "only-workers": (
        job(task("worker", RAY_WORKER.replace("${VC_HEAD_HOSTS%%,*}", "ray-head"), 4)),
        ELSEWHERE,
    ),
    "only-headless": (job(task("worker", f"{SERVE} --headless", 4)), ELSEWHERE),
    "two-leaders": (
        job(task("a", RAY_HEAD), task("b", RAY_HEAD), task("worker", RAY_WORKER, 3)),
        TOLD,
    ),
    "two-heads": (changed(RAY, {"spec.tasks[0].replicas": 2}), TOLD),
    "gpus-of-others": (job(task("server", SERVE, gpus=4), task("train", "torchrun x.py")), TOLD),
    "plugin": (
        changed(RAY, {"spec.plugins": {"ray": []}}),
        Unknown("Volcano's plugin ray replaces the commands of the templates"),
    ),
    "late-plugins": (
        changed(RAY, {"spec.plugins": LATE}),
        Unknown("the value is known only after the deployment"),
    ),
    "late-pytorch-replicas": (
        changed(PYTORCH, {"spec.tasks[1].replicas": LATE}),
        Unknown("replicas is not known yet"),
    ),
    "late-replicas": (
        changed(RAY, {"spec.tasks[1].replicas": LATE}),
        Unknown("replicas is not known yet"),
    ),
    "late-tasks": (changed(RAY, {"spec.tasks": LATE}), Unknown("the tasks are not known yet")),
    "late-spec": (changed(RAY, {"spec": LATE}), Unknown("the tasks are not known yet")),
}


@pytest.mark.parametrize(("body", "because"), OPEN.values(), ids=OPEN)
def test_what_nothing_tells_is_not_guessed(body: Args, because: Unknown) -> None:
    assert {engine.pods for engine in read(body).engines} == {because}
    assert read(body).gang is None
    assert told(body) == []


@pytest.mark.parametrize("plugins", [{"svc": []}, {"pytorch": ["--master=server"]}])
def test_the_numbers_of_pods_that_a_plugin_tells_are_known(plugins: Args) -> None:
    command = NODES.replace("--nnodes 4", "--nnodes $(VC_THE_SERVER_NUM)")
    body = job(task("the-server", RANKED.replace(NODES, command), 4), plugins=plugins)
    assert engines(body) == [("the-server", 4, 1, 8)]
    assert told(body) == []
    (line,) = told(changed(body, {"spec.tasks[0].replicas": 3}))
    assert "starts tensor 8 × pipeline 4 = 32 ranks, but its 3 pods × 8 GPUs hold 24" in line


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.plugins.svc", ["--inject-hosts-env=false"]),
        ("spec.plugins.svc", [LATE]),
        ("spec.plugins.svc", LATE),
        ("spec.plugins", {"env": []}),
        ("spec.tasks[0].template.spec.hostname", "one"),
        ("spec.tasks[0].replicas", LATE),
        ("spec.tasks[0].name", LATE),
    ],
)
def test_a_number_that_the_plugin_does_not_tell_is_not_known(path: str, value: object) -> None:
    command = NODES.replace("--nnodes 4", "--nnodes $(VC_SERVER_NUM)")
    body = changed(job(task("server", command, 4), plugins={"svc": []}), {path: value})
    (engine,) = read(body).engines
    assert engine.pods == NOT_TOLD


def test_what_stands_in_a_config_map_is_read() -> None:
    source = {"name": "sizes", "key": "tp"}
    env = [{"name": "TP", "valueFrom": {"configMapKeyRef": source}}]
    body = job(task("server", "vllm serve m --tensor-parallel-size $TP", gpus=4))
    body = changed(body, {"spec.tasks[0].template.spec.containers[0].env": env})
    metadata = {"name": "sizes", "namespace": "serving"}
    sizes = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"tp": "8"}}
    context = Context(config_maps=gather([sizes]))
    found = check_manifest(body, context=context)
    assert "starts tensor 8 × pipeline 1 = 8 ranks" in "".join(f.seen for f in found)


# Whatever a Job holds


@pytest.mark.parametrize("body", [ONE, RAY, NATIVE], ids=["one", "ray", "native"])
def test_an_unknown_value_anywhere_refuses_nothing(body: Args) -> None:
    whole = changed(
        body, {"spec.minAvailable": 2 if body is ONE else 4, "spec.plugins": {"env": [], "svc": []}}
    )
    for place in places(whole):
        if place[0] == "spec":
            assert told(with_value(whole, place, LATE)) == [], place


@pytest.mark.property
@settings(max_examples=150, deadline=None)
@given(st.sampled_from([ONE, RAY, NATIVE]), st.data())
def test_any_damage_is_checked(body: Args, data: st.DataObject) -> None:
    whole = changed(body, {"spec.minAvailable": 4, "spec.plugins": {"svc": [], "ray": ["a"]}})
    odd = data.draw(damaged(whole))
    assert all(
        map(str, check_manifest({**odd, "apiVersion": "batch.volcano.sh/v1", "kind": "Job"}))
    )
