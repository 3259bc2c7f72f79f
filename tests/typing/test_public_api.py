"""A program as users write it: mypy judges its types, and the test that it runs."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, assert_type

import pulumi
from pulumi_kubernetes.core.v1 import ContainerArgs, PodSpecArgs, PodTemplateSpecArgs

from kthena_components import (
    EngineKind,
    HyperNodeTopology,
    Launcher,
    ModelServing,
    ModelServingArgs,
    Queue,
    RefusedError,
    Role,
    RoleArgs,
    ServingGroup,
)
from kthena_components.core.findings import Finding
from kthena_components.resources import args as args_module
from kthena_components.systems import EMITTERS
from tests.support.recorder import record

Rows = Sequence[Mapping[str, Any]]


def program() -> None:
    Queue("research", {"weight": 4, "capability": {"nvidia.com/gpu": 64, "memory": "8Ti"}})
    network = HyperNodeTopology(
        "network", {"hyper_nodes": [{"name": "rack-0", "tier": 1, "nodes": ["node-0"]}]}
    )
    assert_type(network.names, pulumi.Output[Sequence[str]])
    assert_type(network.tiers, pulumi.Output[Rows])

    decode: RoleArgs = {
        "name": "decode",
        "worker_replicas": 1,
        "engine": {
            "kind": "vllm",
            "image": pulumi.Output.from_input("vllm/vllm-openai:v0.33.0"),
            "model": "meta-llama/Llama-3.1-405B-Instruct",
            "launcher": Launcher.RAY,
            "parallelism": {"tensor": 8, "pipeline": 2},
        },
        "resources": {"gpus_per_pod": 8, "memory": "1124Gi", "shm": "15Gi"},
        "hugging_face_token": {"name": pulumi.Output.from_input("hf-token")},
    }
    args: ModelServingArgs = {
        "namespace": "serving",
        "replicas": 2,
        "queue": "research",
        "roles": [decode],
        "network_topology": {"group_policy": {"mode": "hard", "highest_tier_allowed": 1}},
        "rollout_strategy": {"rolling_update_configuration": {"max_unavailable": "50%"}},
        "expose": {"port": 80},
    }
    chat = ModelServing("chat", args, pulumi.ResourceOptions(depends_on=[network]))
    assert_type(chat.name, pulumi.Output[str])
    assert_type(chat.endpoint, pulumi.Output[str | None])
    assert_type(chat.pod_count, pulumi.Output[int])
    assert_type(chat.gpu_count, pulumi.Output[int])
    assert_type(chat.shape, pulumi.Output[Rows])

    group = ServingGroup("spare", {"roles": [decode], "group": 7})
    assert_type(group.namespace, pulumi.Output[str])
    role = Role("encode", {"serving": "spare", "entry_template": pod(), "pod_group": "spare-7"})
    assert_type(role.addresses, pulumi.Output[Sequence[str]])

    typed = PodTemplateSpecArgs(
        spec=PodSpecArgs(containers=[ContainerArgs(name="app", image="nginx:1.29")])
    )
    Role("typed", {"serving": "spare-typed", "entry_template": typed})


def pod() -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "app", "image": "nginx:1.29"}]}}


def wrong() -> None:
    """Never run: every line must be an error to mypy, or the ignore itself is one."""
    Queue("research", {"weigth": 4})  # type: ignore[typeddict-unknown-key]
    ServingGroup("group", {"group": 0})  # type: ignore[typeddict-item]
    count = pulumi.Output.from_input(2)
    ModelServing("chat", {"roles": [], "replicas": count})  # type: ignore[typeddict-item]
    ModelServing("chat", {"roles": [], "kthena_version": "2.0"})  # type: ignore[typeddict-item]
    ModelServing("chat", {"roles": [], "backend": "kthna"})  # type: ignore[typeddict-item]
    role: RoleArgs = {"name": "a", "engine": {"kind": EngineKind.VLLM, "image": ""}}  # type: ignore[typeddict-item]
    assert_type(role["name"], str)


def test_the_backends_of_the_type_are_those_there_are() -> None:
    """The type is for type checkers only, so that Pulumi's analyzer does not see it."""
    text = Path(args_module.__file__).read_text()
    (words,) = re.findall(r"BackendWord = Literal\[(.*)\]", text)
    assert words.replace('"', "").split(", ") == list(EMITTERS)


def test_the_program_runs() -> None:
    seen = record(program)
    assert seen.names_of("PodGroup") == ["chat-0", "chat-1", "spare-7"]


def reasons(error: RefusedError) -> list[str]:
    assert_type(error.findings, tuple[Finding, ...])
    return [str(finding) for finding in error.findings]
