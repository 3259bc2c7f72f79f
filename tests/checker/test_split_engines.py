"""An engine whose head and workers are objects of their own is compared as within one object."""

from functools import partial
from typing import Any

from kthena_components.checker.check_cluster_objects import (
    check_objects_together,
    check_split_engines,
)
from kthena_components.checker.manifest import check_manifest
from kthena_components.checker.members import read_engine_part_of
from kthena_components.core.findings import Level
from kthena_components.core.values.unknown import Unknown
from tests.rules.cases import TODAY
from tests.support.for_each import for_each
from tests.support.peers import LATE

PORTS = "leader-ports-agree"
JOINED, WORLD, GPUS, SIZES, NNODES = (
    "pods-joined",
    "world-size-equals-gpus",
    "leader-worker-same-gpus",
    "leader-worker-same-parallelism",
    "nnodes-equals-group",
)
Body = dict[str, Any]


def workload(name: str, command: object, **stated: Any) -> Body:
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.20.0",
        "command": command,
        "resources": {"limits": {"nvidia.com/gpu": stated.get("gpus", 8)}},
    }
    spec = {
        "replicas": stated.get("replicas", 1),
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
    }
    if stated.get("kind", "StatefulSet") == "StatefulSet":
        spec["serviceName"] = f"{name}-svc"
    metadata = {"name": name, "namespace": stated.get("namespace", "m")}
    kind = stated.get("kind", "StatefulSet")
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def pod(name: str, command: object) -> Body:
    template = workload(name, command)["spec"]["template"]
    metadata = {"name": name, "namespace": "m", **template["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def groups(command: object, **stated: Any) -> Body:
    """Give a LeaderWorkerSet with one group of one pod."""
    template = workload("worker", command, **stated)["spec"]["template"]
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "worker", "namespace": "m"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 1, "workerTemplate": template}},
    }


def rollout(command: object) -> Body:
    made = workload("worker", command, kind="Deployment")
    return {**made, "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}


def vllm(rank: int | str, *, at: str = "head-0.head-svc", tp: int = 8, nodes: int = 2) -> list[str]:
    more = ["--headless"] if rank else []
    sizes = [f"-tp={tp}", f"-pp={nodes}", f"--nnodes={nodes}", f"--node-rank={rank}"]
    return ["vllm", "serve", "m", *sizes, f"--master-addr={at}", *more]


def copies(*words: str) -> list[str]:
    start = ["vllm", "serve", "m", "--data-parallel-size=8"]
    return [*start, "--data-parallel-address=head-0.head-svc", *words]


BEHIND = ("--headless", "--data-parallel-size-local=2", "--data-parallel-start-rank=4")


def sglang(rank: int, tp: int = 16) -> list[str]:
    start = ["python3", "-m", "sglang.launch_server", "--model-path", "m", f"--tp={tp}"]
    return [*start, "--nnodes=2", f"--node-rank={rank}", "--dist-init-addr=tcp://head:5000"]


def ray(words: str, more: str = "") -> list[str]:
    return ["sh", "-c", f"ray start {words}{more}"]


SERVE = "; vllm serve m -tp 8 -pp 2 --distributed-executor-backend ray"
RAY_HEAD = ray("--head --port=6379", SERVE)
SERVICE: Body = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "llm", "namespace": "m"},
    "spec": {"selector": {"app": "head"}},
}
HEAD, WORKER = workload("head", vllm(0)), workload("worker", vllm(1))
LATE_COUNT = Unknown("it is not known yet")

ROWS: dict[str, tuple[list[Body], set[str]]] = {
    "passes": ([HEAD, WORKER], set()),
    "other sizes": ([HEAD, workload("worker", vllm(1, tp=4))], {SIZES}),
    "other GPUs": ([HEAD, workload("worker", vllm(1), gpus=4)], {GPUS, WORLD}),
    "another --nnodes": ([HEAD, workload("worker", vllm(1, nodes=3))], {SIZES}),
    "the rank of the head": ([HEAD, workload("worker", [*vllm(0), "--headless"])], {SIZES}),
    "a Deployment, and a Service that selects its pods": (
        [
            SERVICE,
            workload("head", vllm(0, at="llm"), kind="Deployment"),
            workload("worker", vllm(1, at="llm.m.svc", tp=4)),
        ],
        {SIZES},
    ),
    "a Service of other pods": (
        [
            {**SERVICE, "spec": {"selector": {"app": "other"}}},
            workload("head", vllm(0, at="llm"), kind="Deployment"),
            workload("worker", vllm(1, at="llm", tp=4)),
        ],
        set(),
    ),
    "SGLang": ([workload("head", sglang(0)), workload("worker", sglang(1))], set()),
    "another port of the head": (
        [HEAD, workload("worker", [*vllm(1), "--master-port=29600"])],
        {PORTS},
    ),
    "SGLang with another port of the head": (
        [
            workload("head", [*sglang(0)[:-1], "--dist-init-addr=0.0.0.0:5001"]),
            workload("worker", sglang(1)),
        ],
        {PORTS},
    ),
    "Ray with another port of the head": (
        [
            workload("head", ray("--head --port=6380", SERVE)),
            workload("worker", ray("--address=head-svc:6379 --block")),
        ],
        {PORTS},
    ),
    "SGLang with another size": (
        [workload("head", sglang(0)), workload("worker", sglang(1, tp=8))],
        {SIZES},
    ),
    "Ray": (
        [workload("head", RAY_HEAD), workload("worker", ray("--address=head-svc:6379 --block"))],
        set(),
    ),
    "Ray with too few workers' GPUs": (
        [
            workload("head", RAY_HEAD),
            workload("worker", ray("--block --address head:6379"), gpus=4),
        ],
        {GPUS, WORLD},
    ),
    "Ray with too many workers": (
        [
            workload("head", RAY_HEAD, kind="Deployment"),
            workload("worker", ray("--address='head:6379' --block"), kind="Deployment", replicas=2),
        ],
        {WORLD},
    ),
    "Ray with a worker that ends": (
        [workload("head", RAY_HEAD), workload("worker", ray("--address=head:6379"))],
        {JOINED},
    ),
    "Ray with a worker that goes on": (
        [workload("head", RAY_HEAD), workload("worker", ray("--address=head:6379", "; sleep inf"))],
        set(),
    ),
    "Pods": ([SERVICE, pod("head", vllm(0, at="llm")), pod("worker", vllm(1, at="llm"))], set()),
    "Pods with other sizes": (
        [SERVICE, pod("head", vllm(0, at="llm")), pod("worker", vllm(1, at="llm", tp=4))],
        {SIZES},
    ),
    "a Deployment, and workers of a ReplicaSet": (
        [
            SERVICE,
            workload("head", vllm(0, at="llm"), kind="Deployment"),
            workload("worker", vllm(1, at="llm", tp=4), kind="ReplicaSet"),
        ],
        {SIZES},
    ),
    "workers of a LeaderWorkerSet": ([HEAD, groups(vllm(1))], set()),
    "workers of a LeaderWorkerSet, with other sizes": ([HEAD, groups(vllm(1, tp=4))], {SIZES}),
    "workers of a LeaderWorkerSet, with other GPUs": (
        [HEAD, groups(vllm(1), gpus=4)],
        {GPUS, WORLD},
    ),
    "workers of a Rollout": ([HEAD, rollout(vllm(1, tp=4))], {SIZES}),
    "workers of another head": (
        [workload("head", RAY_HEAD), workload("worker", ray("--address=other:6379"), gpus=4)],
        set(),
    ),
    "workers of two kinds": (
        [
            workload("head", RAY_HEAD),
            workload("a", ray("--address=head:6379"), gpus=4),
            workload("b", ray("--address=head:6379"), gpus=4),
        ],
        set(),
    ),
    "three pods in three objects": (
        [
            workload("head", vllm(0, nodes=3)),
            workload("first", vllm(1, nodes=3)),
            workload("second", vllm(2, nodes=3)),
        ],
        set(),
    ),
    "three of four pods: others may be elsewhere": (
        [workload("head", vllm(0, nodes=4)), workload("worker", vllm(1, nodes=4, tp=4))],
        set(),
    ),
    "another namespace": ([HEAD, workload("worker", vllm(1, tp=4), namespace="n")], set()),
    "no workers yet": ([HEAD, workload("worker", vllm(1, tp=4), replicas=0)], set()),
    "their number is not known": (
        [HEAD, workload("worker", vllm(1, tp=4), replicas=LATE_COUNT)],
        set(),
    ),
    "the size is not known": (
        [HEAD, workload("worker", [LATE if w == "-tp=8" else w for w in vllm(1)])],
        set(),
    ),
    "the address is not known": ([HEAD, workload("worker", vllm(1, at=LATE, tp=4))], set()),
    "the address is a variable": ([HEAD, workload("worker", vllm(1, at="$(HEAD)", tp=4))], set()),
    "an object that is not a map": ([HEAD, {**WORKER, "spec": 3, "metadata": {"name": 4}}], set()),
    "one object alone": ([HEAD], set()),
}


@for_each("name", ROWS)
def test_the_pods_of_an_engine_are_compared_over_objects(name: str) -> None:
    bodies, rules = ROWS[name]
    named = {f"o{number}": body for number, body in enumerate(bodies)}
    found = check_objects_together(named)
    known = {JOINED, WORLD, GPUS, SIZES, NNODES, PORTS}
    assert {each.rule for each in found if each.rule in known} == rules
    assert all(each.path.startswith("o") for each in found)


ALONE = "no object has"
DATABASE = workload("db", ["postgres"], gpus=0, kind="Deployment")
DATABASE["spec"]["template"]["spec"]["containers"][0]["resources"] = {}
POOL: Body = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "pool", "namespace": "m"},
    "spec": {},
}
INCOMPLETE: dict[str, tuple[list[Body], str]] = {
    "a first pod alone": ([HEAD, DATABASE], "but no object has its other ranks"),
    "a head of Ray alone": ([workload("head", RAY_HEAD)], "but no object has its other ranks"),
    "workers alone": ([WORKER], "looks for its first rank at 'head-0.head-svc', but no object has"),
    "both": ([HEAD, WORKER], ""),
    "workers that are not read": ([HEAD, workload("other", ["bash", "/start.sh"])], ""),
    "workers without pods yet": ([HEAD, workload("worker", vllm(1), replicas=0)], ""),
    "workers of another kind": ([HEAD, POOL], ""),
    "a first pod elsewhere": ([workload("worker", vllm(1, at="head.example.com"))], ""),
    "a Pod alone": ([pod("head", vllm(0))], "but no object has its other ranks"),
    "a Pod that is not read": ([HEAD, pod("worker", ["bash", "/start.sh"])], ""),
    "workers of a namespace": ([workload("worker", vllm(1, at="head.n.svc"))], ""),
    "a first pod of copies alone": (
        [workload("head", copies("--data-parallel-size-local=4"), gpus=4)],
        "which counts more copies than its pod starts, but no object has its other ranks",
    ),
    "a first pod with all copies": (
        [workload("head", copies("--data-parallel-size-local=8"), gpus=8)],
        "",
    ),
    "workers of copies alone": (
        [workload("worker", copies("--data-parallel-size-local=4", "--headless"), gpus=4)],
        "looks for its first rank at 'head-0.head-svc', but no object has it",
    ),
    "a first pod of copies that is not clear": (
        [
            workload("head", copies("--data-parallel-size-local=$(LOCAL)"), gpus=4),
            workload("worker", copies(*BEHIND, "--data-parallel-size-local=4"), gpus=4),
        ],
        "",
    ),
    "a worker of copies that is not clear": (
        [
            workload("head", copies("--data-parallel-size-local=4"), gpus=4),
            workload("worker", copies("--headless", "--data-parallel-size-local=$(N)"), gpus=4),
        ],
        "",
    ),
    "an engine in one pod": ([workload("head", ["vllm", "serve", "m", "-tp=8"])], ""),
}


def test_all_objects_of_a_cluster_start_all_copies() -> None:
    head = workload("head", copies("--data-parallel-size-local=4"), gpus=4)
    named = {"head": head, "worker": workload("worker", copies(*BEHIND), gpus=2)}
    read = (read_engine_part_of(body, name) for name, body in named.items())
    found = [*check_split_engines([part for part in read if part], named, complete=True)]
    (told,) = [str(one) for one in found if one.rule == "pod-ranks"]
    assert "start 0 to 3, 4 to 5. Start 8 copies in all pods together, or count 6 in" in told


def test_pods_that_sleep_are_reported_once() -> None:
    head = workload("head", copies("--data-parallel-size-local=4"), gpus=4)
    named = {"head": head, "idle": workload("idle", ["sleep", "infinity"], gpus=4)}
    read = (read_engine_part_of(body, name) for name, body in named.items())
    found = check_split_engines([part for part in read if part], named, complete=True)
    (told,) = [one for one in found if one.rule == "leader-selected"]
    assert "runs `sleep infinity`" in told.seen


FEW = "needs the ranks 0 to 3, but the pods of all its objects are"
AT_FOUR = partial(vllm, nodes=4)
TOO_FEW: dict[str, tuple[list[Body], Level | None]] = {
    "two of four pods": (
        [workload("head", AT_FOUR(0)), workload("worker", AT_FOUR(1))],
        Level.MANDATORY,
    ),
    "three of four pods, in three objects": (
        [workload("head", AT_FOUR(0)), workload("a", AT_FOUR(1)), workload("b", AT_FOUR(3))],
        Level.MANDATORY,
    ),
    "all of them": (
        [workload(name, AT_FOUR(rank)) for rank, name in enumerate(("head", "a", "b", "c"))],
        None,
    ),
    "a pod that is not read": (
        [
            workload("head", AT_FOUR(0)),
            workload("worker", AT_FOUR(1)),
            workload("c", ["bash", "/x"]),
        ],
        Level.ADVISORY,
    ),
    "a kind that is not read": (
        [workload("head", AT_FOUR(0)), workload("worker", AT_FOUR(1)), POOL],
        Level.ADVISORY,
    ),
    "Pods": (
        [
            {**SERVICE, "spec": {"selector": {"app": "head"}, "clusterIP": "None"}},
            pod("head", AT_FOUR(0, at="llm")),
            pod("worker", AT_FOUR(1, at="llm")),
        ],
        Level.MANDATORY,
    ),
    "a rank that is not known": (
        [workload("head", AT_FOUR(0)), workload("worker", AT_FOUR(LATE))],
        None,
    ),
    "a rank that the engine does not have": (  # another rule reports it
        [workload("head", AT_FOUR(0)), workload("worker", AT_FOUR(5))],
        None,
    ),
    "another engine's workers": (
        [workload("head", AT_FOUR(0)), workload("worker", AT_FOUR(1, at="other-0.other"))],
        None,
    ),
    "a number that is not known": (
        [workload("head", AT_FOUR(0)), workload("worker", AT_FOUR(1), replicas=LATE_COUNT)],
        None,
    ),
}


@for_each("name", TOO_FEW)
def test_fewer_pods_than_an_engine_counts_are_reported(name: str) -> None:
    bodies, level = TOO_FEW[name]
    named = {f"o{number}": body for number, body in enumerate(bodies)}
    read = (read_engine_part_of(body, name) for name, body in named.items())
    parts = [part for part in read if part is not None]
    for complete in (True, False):
        found = check_split_engines(parts, named, complete=complete)
        told = [each for each in found if each.rule == "pod-ranks" and FEW in str(each)]
        expected = level if complete or level is None else Level.ADVISORY
        assert [each.level for each in told] == ([expected] if level else [])


@for_each("name", INCOMPLETE)
def test_all_objects_of_a_cluster_have_all_ranks(name: str) -> None:
    bodies, says = INCOMPLETE[name]
    named = {f"o{number}": body for number, body in enumerate(bodies)}
    read = (read_engine_part_of(body, name) for name, body in named.items())
    parts = [part for part in read if part is not None]
    found = [str(one) for one in check_split_engines(parts, named, complete=True)]
    told = [text for text in found if ALONE in text]
    assert len(told) == bool(says)
    assert says in "".join(told)
    some = [*check_split_engines(parts, named)]
    assert not [one for one in some if ALONE in str(one) and one.level is not Level.UNKNOWN]
    late = [
        str(one) for one in some if one.level is Level.UNKNOWN and one.rule == "leader-selected"
    ]
    assert bool(late) == says.startswith("looks for its first rank")


def test_a_waiver_of_a_rule_over_several_objects_is_used() -> None:
    waiver = {"waive.kthena-components/world-size-equals-gpus": "2026-12-31 smaller GPUs for now"}
    worker = workload("worker", vllm(1), gpus=4)
    worker["metadata"]["annotations"] = waiver
    alone = check_manifest(WORKER | {"metadata": worker["metadata"]}, today=TODAY)
    assert not [found for found in alone if found.rule == "waiver"]
    database = DATABASE | {"metadata": {**DATABASE["metadata"], "annotations": waiver}}
    assert [found for found in check_manifest(database, today=TODAY) if found.rule == "waiver"]


RANKS = ["vllm", "serve", "m", "--data-parallel-size=2", "--data-parallel-rank=0"]
TWICE = {
    "two first pods": [workload(name, vllm(0, nodes=3)) for name in ("head", "second")],
    "two copies of one rank": [
        workload(name, [*RANKS, "--data-parallel-address=head-0.head-svc"], gpus=1)
        for name in ("head", "second")
    ],
    "two kinds of one name": [
        workload("head", [*RANKS, "--data-parallel-address=head-0.head-svc"], gpus=1, kind=kind)
        for kind in ("StatefulSet", "Deployment")
    ],
}


@for_each("option", ["--data-parallel-multi-port-external-lb", "--api-server-count=2"])
def test_a_pod_that_may_start_other_copies_than_its_rank_is_not_compared(option: str) -> None:
    words = [*RANKS, "--data-parallel-address=head-0.head-svc", option]
    named = {name: workload(name, words, gpus=1) for name in ("head", "second")}
    parts = list(filter(None, (read_engine_part_of(body, at) for at, body in named.items())))
    found = check_split_engines(parts, named, complete=True, files={})
    assert len(parts) == len(named)
    assert [each for each in found if each.rule == "pod-ranks"] == []


@for_each("name", TWICE)
def test_files_may_be_alternatives(name: str) -> None:
    named = {f"o{number}": body for number, body in enumerate(TWICE[name])}
    read = (read_engine_part_of(body, path) for path, body in named.items())
    parts = [part for part in read if part is not None]
    two = {path: f"{path}.yaml" for path in named}
    one = dict.fromkeys(named, "a.yaml")

    def levels(files: dict[str, str], *, complete: bool) -> list[Level]:
        found = check_split_engines(parts, named, complete=complete, files=files)
        known = {"pod-ranks", "leader-selected"}
        return [each.level for each in found if each.rule in known and ALONE not in each.seen]

    assert levels(two, complete=False) == [Level.ADVISORY]
    assert levels(one, complete=False) == levels(two, complete=True) == [Level.MANDATORY]
