"""Clusters and services of KubeRay become engines, and one wrong number is found."""

from typing import Any

import pytest

from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import check_manifest, read_manifest, reduce_object
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Level
from kthena_components.core.values.unknown import Unknown
from tests.rules.cases import documents, judge
from tests.support.peers import GPU, LATE
from tests.support.specs import changed

HEAD = "spec.headGroupSpec.template.spec.containers[0]"
GROUPS = "spec.workerGroupSpecs"
ONE_GROUP = documents("raycluster")[0]["spec"]["workerGroupSpecs"][:1]
Changes = dict[str, Any]


def engine(changes: Changes | None = None, base: str = "raycluster") -> EngineFacts:
    facts = read_manifest(changed(documents(base)[0], changes))
    assert facts is not None
    (found,) = facts.engines
    return found


def refused(changes: Changes | None = None, base: str = "raycluster") -> list[str]:
    return [str(found) for found in judge(base, changes or {}) if found.level is Level.MANDATORY]


@pytest.mark.parametrize("base", ["raycluster", "rayservice"])
def test_a_right_one_is_let_by(base: str) -> None:
    assert refused(base=base) == []


def test_the_head_and_all_workers_are_the_engine() -> None:
    found = engine()
    assert (found.name, found.pods, found.replicas) == ("llama", 3, 1)
    assert (found.entry.gpus, found.worker and found.worker.gpus) == (8, 8)
    assert found.entry.command is not None
    assert (found.entry.command.engine, found.entry.command.ray_role) == ("vllm", "head")


def test_one_worker_too_many_is_found() -> None:
    assert refused({f"{GROUPS}[1].replicas": 2}) == [
        (
            f"{HEAD}.args: engine 'llama' starts tensor 8 × pipeline 3 = 24 ranks, but its 4 "
            "pods × 8 "
            "GPUs hold 32. Set pipeline to 4, or give the engine 3 pods. [world-size-equals-gpus]"
        )
    ]


@pytest.mark.parametrize(
    ("changes", "pods"),
    [
        ({f"{GROUPS}[0].numOfHosts": 2}, 4),
        ({f"{GROUPS}[0].replicas": None}, 3),
        ({f"{GROUPS}[0].minReplicas": 3}, 5),
        ({f"{GROUPS}[0].replicas": 9}, 6),
        ({f"{GROUPS}[0].suspend": True}, 2),
        ({GROUPS: []}, 1),
        ({f"{GROUPS}[0].replicas": LATE}, Unknown("replicas is not known yet")),
        ({GROUPS: LATE}, Unknown("the groups of workers are not known yet")),
        ({f"{GROUPS}[0]": LATE}, Unknown("the groups of workers are not known yet")),
        (
            {"spec.enableInTreeAutoscaling": LATE},
            Unknown("enableInTreeAutoscaling is not known yet"),
        ),
    ],
)
def test_pods_are_counted_as_kuberay_makes_them(changes: Changes, pods: object) -> None:
    assert engine(changes).pods == pods


@pytest.mark.parametrize(("least", "most", "pods"), [(0, 4, 3), (0, 2, 3), (0, 1, 2), (3, 4, 4)])
def test_the_autoscaler_adds_workers_until_the_ranks_have_gpus(
    least: int, most: int, pods: int
) -> None:
    scaled = {
        "spec.enableInTreeAutoscaling": True,
        GROUPS: ONE_GROUP,
        f"{GROUPS}[0].minReplicas": least,
        f"{GROUPS}[0].maxReplicas": most,
    }
    found = engine(scaled)
    assert found.pods == pods
    assert bool(refused(scaled)) == (pods != 3)


def test_workers_without_gpus_hold_no_ranks() -> None:
    assert engine({f"{GROUPS}[1].template.spec.containers[0].resources": {}}).pods == 2


def test_a_command_that_is_left_alone_is_read_as_it_is() -> None:
    own = {"ray.io/overwrite-container-cmd": "true"}
    changes = {
        "spec.headGroupSpec.template.metadata": {"annotations": own},
        f"{HEAD}.args": ["vllm serve m -tp 8 &"],
    }
    command = engine(changes).entry.command
    assert command is not None
    assert (command.tensor, command.ray_role) == (8, None)


def test_unknown_containers_of_the_head_are_said() -> None:
    told = [str(found) for found in judge("raycluster", {f"{HEAD}.args": LATE})]
    assert any("not known yet" in text and "[world-size-equals-gpus]" in text for text in told)


def test_a_cluster_that_starts_no_engine_is_for_other_work() -> None:
    facts = read_manifest(changed(documents("raycluster")[0], {f"{HEAD}.args": ["sleep 1"]}))
    assert facts is not None
    assert facts.engines == ()


def test_a_job_has_its_cluster_too() -> None:
    cluster = documents("raycluster")[0]
    job = {**cluster, "kind": "RayJob", "spec": {"rayClusterSpec": cluster["spec"]}}
    assert not [f for f in check_manifest(job) if f.level is Level.MANDATORY]
    wrong = changed(job, {"spec.rayClusterSpec.workerGroupSpecs[0].replicas": 3})
    (found,) = [f for f in check_manifest(wrong) if f.level is Level.MANDATORY]
    assert found.path == "spec.rayClusterSpec.headGroupSpec.template.spec.containers[0].args"


def test_paths_begin_where_the_caller_says() -> None:
    wrong = changed(
        documents("raycluster")[0],
        {f"{GROUPS}[0].replicas": 2, f"{GROUPS}[0].rayStartParams": {"num-gpus": "9"}},
    )
    paths = {found.path for found in check_manifest(wrong, "[3]")}
    assert paths
    assert all(path.startswith("[3].spec.") for path in paths)


def test_a_model_of_serve_is_an_engine_on_what_ray_reserves() -> None:
    found = engine(base="rayservice")
    assert (found.name, found.pods, found.entry.gpus) == ("chat", 2, 8)
    assert found.entry.command is not None
    assert found.entry.command.model == "org/model"
    assert found.entry.own is not None
    assert str(found.entry.own.image).startswith("rayproject/ray-llm")


@pytest.mark.parametrize(
    ("arguments", "pods", "gpus"),
    [
        ("{tensor_parallel_size: 2}", 1, 2),
        ("{}", 1, 1),
        ("{tensor_parallel_size: 4, pipeline_parallel_size: 3}", 2, 6),
        (
            "{tensor_parallel_size: 3, pipeline_parallel_size: 3}",
            2,
            Unknown("Ray distributes the ranks itself"),
        ),
    ],
)
def test_a_replica_has_the_gpus_of_its_ranks(arguments: str, pods: int, gpus: object) -> None:
    found = engine({"spec.serveConfigV2": serve(arguments)}, "rayservice")
    assert (found.pods, found.entry.gpus) == (pods, gpus)


def serve(arguments: str, rest: str = "") -> str:
    return (
        "applications: [{import_path: 'ray.serve.llm:build_openai_app', args: {llm_configs: "
        f"[{{model_loading_config: {{model_id: m}}, engine_kwargs: {arguments}{rest}}}]}}}}]"
    )


def test_what_a_replica_reserves_may_be_said_apart() -> None:
    config = serve("{tensor_parallel_size: 2}", ", placement_group_config: {bundles: [{GPU: 4}]}")
    told = [str(found) for found in judge("rayservice", {"spec.serveConfigV2": config})]
    assert any("placement_group_config decides what a replica reserves" in text for text in told)


def test_prefill_and_decode_are_added_up() -> None:
    one = "{model_loading_config: {model_id: m}, engine_kwargs: {tensor_parallel_size: 16}}"
    config = (
        "applications: [{import_path: 'ray.serve.llm:build_pd_openai_app', args: "
        f"{{prefill_config: {one}, decode_config: {one}}}}}]"
    )
    (text,) = refused({"spec.serveConfigV2": config}, "rayservice")
    assert "1 replica of tensor 16 × pipeline 1 + 1 replica of tensor 16 × pipeline 1 = 32" in text


def test_engines_on_cpus_need_no_gpus() -> None:
    at = "spec.rayClusterConfig.workerGroupSpecs[0].template.spec.containers[0].resources"
    changes = {at: {}, "spec.serveConfigV2": serve("{}")}
    assert [f for f in judge("rayservice", changes) if f.rule == "ray-serve-gpus"] == []
    assert refused({at: {}}, "rayservice") != []


def test_limits_without_requests_are_enough() -> None:
    changes = {f"{HEAD}.resources": {"limits": {GPU: 8}}}
    assert [f for f in judge("raycluster", changes) if f.rule.startswith("gpu-requests")] == []


@pytest.mark.parametrize(("api", "kind"), [("ray.io/v1", "RayCron"), ("v1", "RayCluster")])
def test_other_kinds_are_left_alone(api: str, kind: str) -> None:
    assert read_manifest({**documents("raycluster")[0], "apiVersion": api, "kind": kind}) is None


def test_the_rules_know_the_files_that_the_facts_are_read_from() -> None:
    script = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "start", "namespace": "serving"},
        "data": {"start.sh": "vllm serve org/model -tp 8 -pp 3 &"},
    }
    body = changed(
        documents("raycluster")[0],
        {
            f"{HEAD}.command": ["bash", "/start/start.sh"],
            f"{HEAD}.args": None,
            f"{HEAD}.volumeMounts": [{"name": "start", "mountPath": "/start"}],
            "spec.headGroupSpec.template.spec.volumes": [
                {"name": "start", "configMap": {"name": "start"}}
            ],
            f"{GROUPS}[1].template.spec.containers[0].resources": {"limits": {GPU: 4}},
            f"{GROUPS}[1].rayStartParams": {},
        },
    )
    rules = ("ray-worker-groups", "ray-cluster-gpus")
    assert [f for f in check_manifest(body) if f.rule in rules] == []
    told = check_manifest(body, context=Context(config_maps=gather([script])))
    assert [f.rule for f in told if f.rule in rules] == list(rules)


def test_a_message_has_at_most_the_length_of_a_valid_name() -> None:
    wrong = {"metadata.name": "a" * 5000, f"{GROUPS}[1].replicas": 2}
    (line,) = (each for each in refused(wrong) if "world-size-equals-gpus" in each)
    assert len(line) < 1000


def test_a_name_that_a_service_elsewhere_may_have_is_advice() -> None:
    at = f"{GROUPS}[0].template.spec.containers[0].command"
    cluster = changed(
        documents("raycluster-asked")[0], {at: ["sh", "-c", "ray start --address=chat:6379"]}
    )
    for whole, level in ((True, Level.MANDATORY), (False, Level.ADVISORY)):
        found = compare_objects([reduce_object(cluster)], complete=whole)
        assert [one.level for one in found if one.rule == "ray-head-address"] == [level]
