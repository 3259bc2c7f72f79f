"""What a RayJob's entrypoint, and the start script of vllm-stack, start on a Ray cluster."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest, read_manifest
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.findings import Level
from tests.rules.cases import documents
from tests.support.peers import LATE
from tests.support.specs import REMOVED, changed

RAY = "--distributed-executor-backend ray"
TEMPLATE = "spec.rayClusterSpec.headGroupSpec.template"
HEAD = f"{TEMPLATE}.spec.containers[0]"
IDLE = {f"{HEAD}.command": REMOVED, f"{HEAD}.args": REMOVED}
"""The head of the RayJob starts no engine by itself."""


def ray_job(entrypoint: object, **changes: Any) -> dict[str, Any]:
    return changed(documents("rayjob")[0], {**IDLE, "spec.entrypoint": entrypoint, **changes})


def told(body: dict[str, Any], context: Context | None = None) -> list[str]:
    found = check_manifest(body, "o", context=context or Context())
    return [str(finding) for finding in found if finding.level is Level.MANDATORY]


def test_the_entrypoint_is_an_engine_on_the_cluster() -> None:
    body = ray_job(f"vllm serve m -tp 8 -pp 3 {RAY}")
    facts = read_manifest(body, "o")
    assert facts is not None
    (engine,) = facts.engines
    assert (engine.pods, engine.entry.gpus) == (3, 8)
    assert engine.entry.command_path == "o.spec.entrypoint"
    assert told(body) == []


def test_an_entrypoint_with_other_ranks_than_gpus_is_refused() -> None:
    (refused,) = told(ray_job(f"cd /models && vllm serve m -tp 8 -pp 4 {RAY}"))
    assert refused.startswith("o.spec.entrypoint: engine 'llama' starts tensor 8 × pipeline 4 = 32")
    assert "3 pods × 8 GPUs hold 24" in refused


@pytest.mark.parametrize("reserved", [{"NumGpus": 8}, {"NumCpus": 1}, {"Resources": '{"a": 1}'}])
def test_an_entrypoint_that_ray_places_by_its_resources_is_not_checked(reserved: Any) -> None:
    fields = {f"spec.entrypoint{part}": value for part, value in reserved.items()}
    found = check_manifest(ray_job("vllm serve m -tp 16", **fields))

    assert [(one.rule, one.level) for one in found] == [("kind-read", Level.UNKNOWN)]


def test_a_program_of_ones_own_is_not_checked() -> None:
    for entrypoint in ("python serve.py", LATE, None):
        (finding,) = check_manifest(ray_job(entrypoint))
        assert (finding.rule, finding.level) == ("kind-read", Level.UNKNOWN)


def test_an_entrypoint_that_is_no_text_is_refused() -> None:
    (refused,) = told(ray_job(7))
    assert refused.startswith("o.spec.entrypoint: is 7, but must be a string")


@pytest.mark.parametrize("place", ["spec.rayClusterSpec", f"{TEMPLATE}.spec.containers"])
def test_the_entrypoint_on_an_unknown_cluster_is_not_checked(place: str) -> None:
    body = changed(ray_job(f"vllm serve m -tp 8 -pp 4 {RAY}"), {place: LATE})
    assert {finding.level for finding in check_manifest(body)} == {Level.UNKNOWN}


def test_the_head_wins_over_the_entrypoint() -> None:
    body = changed(documents("rayjob")[0], {"spec.entrypoint": f"vllm serve m -tp 64 {RAY}"})
    assert told(body) == []


def test_a_job_on_another_cluster_is_not_checked() -> None:
    changes = {"spec.rayClusterSpec": REMOVED, "spec.clusterSelector": {"ray.io/cluster": "b"}}
    (finding,) = check_manifest(ray_job(f"vllm serve m -tp 8 {RAY}", **changes))
    assert (finding.path, finding.rule) == ("spec.entrypoint", "kind-read")


COPIED = (
    '/bin/bash -c "\ncp /entrypoint/vllm-entrypoint.sh \\$HOME/vllm-entrypoint.sh &&\n'
    'chmod +x \\$HOME/vllm-entrypoint.sh &&\n\\$HOME/vllm-entrypoint.sh &\necho started"'
)
AT = "spec.headGroupSpec.template.spec"


def stack(*words: str) -> tuple[dict[str, Any], Context]:
    """Give a cluster that starts a script like the chart's, and what is known beside it."""
    lines = ["#!/bin/bash", "set -e", "until python3 /scripts/wait.py; do", "  sleep 2", "done"]
    lines += ['ARGS=(\n  "vllm"\n  "serve"\n  "m"\n  "--distributed-executor-backend" "ray"\n)']
    lines += [f"ARGS+=({pair})" for pair in words]
    lines += ['echo "Executing: ${ARGS[@]}"', 'exec "${ARGS[@]}"', ""]
    script = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "chat-vllm-start-script", "namespace": "serving"},
        "data": {"vllm-entrypoint.sh": "\n".join(lines)},
    }
    volume = {"name": "script", "configMap": {"name": "chat-vllm-start-script"}}
    body = changed(
        documents("raycluster")[0],
        {
            f"{AT}.containers[0].command": [COPIED],
            f"{AT}.containers[0].args": REMOVED,
            f"{AT}.containers[0].volumeMounts[1]": {"name": "script", "mountPath": "/entrypoint"},
            f"{AT}.volumes[1]": volume,
        },
    )
    return body, Context(config_maps=gather([script]))


def test_the_cluster_of_vllm_stack_is_read_with_its_config_map() -> None:
    body, context = stack('"--tensor-parallel-size" "8"', '"--pipeline-parallel-size" "3"')
    assert told(body, context) == []
    body, context = stack('"--tensor-parallel-size" "8"', '"--pipeline-parallel-size" "2"')
    (refused,) = told(body, context)
    assert refused.startswith(f"o.{AT}.containers[0].command: engine 'llama' starts tensor 8 × ")
    assert "its 3 pods × 8 GPUs hold 24" in refused


def test_without_its_config_map_it_is_not_checked() -> None:
    body, _ = stack('"--tensor-parallel-size" "8"')
    assert told(body) == []
    unknown = [str(f) for f in check_manifest(body) if f.level is Level.UNKNOWN]
    assert "'chat-vllm-start-script' is not among the objects" in "".join(unknown)


@pytest.mark.parametrize("other", ['"--tensor-parallel-size" "8', "$(cat flags)"])
def test_a_script_that_is_written_otherwise_refuses_nothing(other: str) -> None:
    body, context = stack(other)
    (finding,) = check_manifest(body, context=context)
    assert (finding.rule, finding.level) == ("kind-read", Level.UNKNOWN)


def test_the_annotation_of_a_cluster_keeps_its_command() -> None:
    """KubeRay reads it from the cluster (controllers/ray/common/pod.go)."""
    keeps = {"metadata.annotations": {"ray.io/overwrite-container-cmd": "true"}}
    body = changed(documents("raycluster")[0], {f"{AT}.containers[0].command": ["sh"], **keeps})
    facts = read_manifest(body)
    assert facts is not None
    assert facts.engines == ()
