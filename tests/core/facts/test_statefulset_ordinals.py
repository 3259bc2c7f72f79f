"""The pods of a StatefulSet, each with what its own name says."""

from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.engine_grouping import is_over_ray
from kthena_components.core.facts.members import _pod, with_siblings
from kthena_components.core.facts.workload import read_template
from kthena_components.core.values.unknown import Unknown

LABELS = "metadata.labels['apps.kubernetes.io/pod-index']"


def template(*argv: str, gpus: int = 8, **fields: Any) -> dict[str, Any]:
    index = {"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": LABELS}}}
    resources = {"limits": {"nvidia.com/gpu": gpus}, "requests": {"nvidia.com/gpu": gpus}}
    container = {"name": "engine", "image": "own:1", "command": [*argv], "env": [index]}
    return {"spec": {"containers": [{**container, "resources": resources}], **fields}}


def ranks(made: dict[str, Any], spec: dict[str, Any], name: str = "llama") -> list[Any]:
    engines = read_template(made, "", name, spec)
    siblings = with_siblings(engines, made, spec, name=name)[0].siblings
    assert siblings is not None
    return [command.node_rank for command in siblings.commands]


def test_each_pod_reads_its_rank_from_its_ordinal() -> None:
    made = template("vllm", "serve", "m", "--nnodes", "3", "--node-rank", "$(INDEX)")
    assert ranks(made, {"replicas": 3}) == [0, 1, 2]
    assert ranks(made, {"replicas": 2, "ordinals": {"start": 1}}) == [1, 2]


def test_pods_of_another_kind_have_no_ordinals() -> None:
    made = template("vllm", "serve", "m", "--nnodes", "3", "--node-rank", "$(INDEX)")
    assert ranks(made, {"replicas": 3}, name="") == []


def test_a_literal_rank_is_that_of_all_pods() -> None:
    made = template("vllm", "serve", "m", "--nnodes", "3", "--node-rank", "0")
    assert ranks(made, {"replicas": 3}) == []


def test_a_number_of_pods_that_is_not_known_adds_nothing() -> None:
    made = template("vllm", "serve", "m", "--nnodes", "3", "--node-rank", "$(INDEX)")
    spec = {"replicas": "many"}
    engines = read_template(made, "", "llama", spec)
    assert with_siblings(engines, made, spec, name="llama")[0].siblings is None


def test_a_pod_in_its_nodes_network_has_its_nodes_host_name() -> None:
    def names(made: dict[str, Any]) -> list[str]:
        return [e["name"] for e in _pod(made, "llama-1", "1")["spec"]["containers"][0]["env"]]

    assert names(template("vllm")) == ["HOSTNAME", "INDEX"]
    assert names(template("vllm", hostNetwork=True)) == ["INDEX"]


def over_ray(script: str, replicas: int) -> Any:
    made = template("sh", "-c", script)
    engines = read_template(made, "", "llama", {})
    return with_siblings(engines, made, {"replicas": replicas}, name="llama")[0].pods


def test_the_workers_of_a_ray_head_may_be_in_another_object() -> None:
    script = "ray start --head && vllm serve m --distributed-executor-backend ray -tp 16"
    assert isinstance(over_ray(script, 1), Unknown)
    assert isinstance(over_ray(script, 2), Unknown)


def test_a_ray_head_that_the_other_pods_join_is_an_engine_over_all() -> None:
    made = template(
        "sh", "-c", "ray start --head && vllm serve m --distributed-executor-backend ray"
    )
    engine = read_template(made, "", "llama", {})[0]
    head, joins = engine.entry.command, CommandFacts(ray_role="worker")
    assert head is not None

    assert is_over_ray(engine, [head, joins, joins])
    assert not is_over_ray(engine, [head, joins, head])
