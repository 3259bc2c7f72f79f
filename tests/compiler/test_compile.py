"""The one door: what comes out of it beside manifests, and groups and roles used by themselves."""

import contextlib
import json
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kthena_components.compiler.compile import (
    Compiled,
    compile_group,
    compile_role,
    compile_serving,
)
from kthena_components.core.findings import Level, SpecError
from kthena_components.core.plan.manifest import Manifest
from kthena_components.systems import EMITTERS
from tests.support.for_each import for_each
from tests.support.specs import ALL, GROUP, GUIDE, NATIVE_8B, REMOVED, ROLE, changed, example_for
from tests.support.strategies import LATE, damaged, law


def of_kind(compiled: Compiled, kind: str) -> list[Manifest]:
    return [manifest for manifest in compiled.manifests if manifest.kind == kind]


@for_each("backend", EMITTERS)
@for_each("example", sorted(set(ALL) - {"guide"}))
def test_an_example_is_taken_without_a_remark(example: str, backend: str) -> None:
    args = example_for(backend, example)
    # Only Volcano schedules gangs.
    known = {"gang-covers-engine"} if "scheduler_name" in args else set()
    # The last vLLM whose image Kthena can start over several pods may mix up stages.
    known |= {"booster-defaults", "pp-with-ray"} if backend == "booster" else set()
    assert {finding.rule for finding in compile_serving(args).findings} <= known


@pytest.mark.parametrize("backend", sorted(set(EMITTERS) - {"booster", "kaito", "kserve"}))
def test_what_was_filled_in_is_told(backend: str) -> None:
    findings = compile_serving(changed(GUIDE, {"backend": backend})).findings
    told = [finding for finding in findings if finding.rule == "requests-mirrored"]
    assert [str(finding) for finding in told] == [
        f"roles[0].{role}_template: container '{container}': memory 1124Gi, nvidia.com/gpu 8 had "
        "limits without requests; requests now equal the limits, because Volcano and Kthena count "
        "requests only. [requests-mirrored]"
        for role, container in (("entry", "leader"), ("worker", "worker"))
    ]
    assert {finding.level for finding in told} == {Level.ADVISORY}


def test_the_guide_is_told_what_its_image_leaves_open() -> None:
    pod = "roles[0].entry_template.spec.containers[0]"
    findings = compile_serving(GUIDE).findings
    assert [str(f) for f in findings if f.rule != "requests-mirrored"] == [
        (
            f"{pod}.command: engine 'llama-405b' has 16 ranks in each replica and 8 GPUs in each "
            "pod, but "
            "connects its pods with Ray and does not state the executor, which vLLM rejects since "
            "0.11.1. Add --distributed-executor-backend ray. [executor-stated]"
        ),
        (
            f"{pod}.image: engine 'llama-405b' was not checked, because the tag latest states no "
            "version of vLLM, and its image has no Ray since 0.18. [ray-in-image]"
        ),
        *(
            f"roles[0].{pods}_template.spec.containers[0].command: engine 'llama-405b' runs "
            "/vllm-workspace/examples/online_serving/multi-node-serving.sh, and the image of the "
            "newest vLLM has it in /vllm-workspace/examples/ray_serving/ (since 0.21.0). Write "
            "/vllm-workspace/examples/ray_serving/multi-node-serving.sh. [ray-script-in-image]"
            for pods in ("entry", "worker")
        ),
        (
            f"{pod}.image: engine 'llama-405b' runs 'vllm/vllm-openai:latest', which has the tag "
            "latest, and a restarted pod may run another version. Write the tag of a release, or a "
            "digest. [image-pinned]"
        ),
    ]


def test_an_image_that_only_the_deployment_knows_is_told_and_no_more() -> None:
    args = changed(NATIVE_8B, {"roles[0].engine.image": LATE})
    assert [str(finding) for finding in compile_serving(args).findings] == [
        (
            "roles[0].engine.image: engine 'server' was not checked, because the image is known "
            "only after the deployment. [image-pinned]"
        )
    ]


def test_what_an_overlay_leaves_out_is_told_once_and_at_the_overlay() -> None:
    limits = {"limits": {"rdma/ib": 1}}
    overlay = {"spec": {"containers": [{"name": "engine", "resources": limits}]}}
    findings = compile_serving(changed(ALL["engine-ray"], {"roles[0].overlay": overlay})).findings
    assert [finding.path for finding in findings] == ["roles[0].overlay"]


def test_a_value_that_only_the_deployment_knows_is_no_reason_to_refuse() -> None:
    command = {"roles[0].entry_template.spec.containers[0].command": ["sh", "-c", LATE]}
    found = {
        finding.rule: finding.level for finding in compile_serving(changed(GUIDE, command)).findings
    }
    assert found.pop("world-size-equals-gpus") is Level.UNKNOWN
    assert set(found.values()) == {Level.ADVISORY}


def test_a_refusal_counts_its_problems_below_the_subject() -> None:
    with pytest.raises(SpecError) as refusal:
        compile_serving(changed(NATIVE_8B, {"replicas": -1, "queue": "Q"}), "ModelServing 'small'")
    assert str(refusal.value) == (
        "ModelServing 'small': 2 problems\n"
        "  queue: is 'Q', but must be lower-case letters, digits, dashes and dots, with a letter "
        "or digit at both ends of each part. Write, for example, 'q'. [pattern]\n"
        "  replicas: is -1, but must be at least 0. Write at least 0. [range]"
    )


@pytest.mark.parametrize("field", ["image", "model"])
def test_free_text_may_come_from_an_output(field: str) -> None:
    compiled = compile_serving(changed(NATIVE_8B, {f"roles[0].engine.{field}": LATE}))
    assert {finding.rule for finding in compiled.findings} <= {"image-pinned"}
    (stateful_set,) = of_kind(compiled, "StatefulSet")
    assert LATE in json.dumps(stateful_set.body, ensure_ascii=False)


def test_a_group_by_itself_has_its_own_number() -> None:
    keys = [manifest.key for manifest in compile_group(GROUP).manifests]
    assert keys == [
        "Service/chat-3-decode-0-0",
        "Service/chat-3-decode-0",
        "PodGroup/chat-3",
        "StatefulSet/chat-3-decode-0-w",
        "StatefulSet/chat-3-decode-0",
    ]


@pytest.mark.parametrize(
    ("pod_group", "annotations"),
    [
        ("shared", {"scheduling.k8s.io/group-name": "shared", "volcano.sh/task-spec": "decode-0"}),
        (REMOVED, None),
    ],
    ids=["joins", "alone"],
)
def test_a_role_by_itself_joins_a_gang_but_makes_none(
    pod_group: object, annotations: dict[str, str] | None
) -> None:
    made = compile_role(changed(ROLE, {"pod_group": pod_group}))
    assert of_kind(made, "PodGroup") == []
    for stateful_set in of_kind(made, "StatefulSet"):
        metadata = stateful_set.body["spec"]["template"]["metadata"]
        assert metadata.get("annotations") == annotations


@pytest.mark.property
@pytest.mark.parametrize("backend", EMITTERS)
@law
@given(st.data())
def test_whatever_is_asked_for_is_compiled_or_refused(backend: str, data: st.DataObject) -> None:
    example = ALL[data.draw(st.sampled_from(sorted(ALL)))]
    args = data.draw(damaged(changed(example, {"backend": backend})))
    roles = args["roles"] if isinstance(args.get("roles"), list) else []
    counts = [args.get("replicas"), *(r.get("replicas") for r in roles if isinstance(r, dict))]
    assume(all(count < 20 for count in counts if isinstance(count, int)))
    with contextlib.suppress(SpecError):
        compile_serving(args)


@pytest.mark.parametrize("backend", EMITTERS)
def test_labels_are_on_every_object_and_replace_none(backend: str) -> None:
    args = example_for(backend, next(name for name in ALL if takes(backend, name)))
    before = compile_serving(args).manifests
    after = compile_serving({**args, "labels": {"team": "chat"}}).manifests
    for old, new in zip(before, after, strict=True):
        labels = {"team": "chat", **old.body["metadata"].get("labels", {})}
        metadata = {**old.body["metadata"], "labels": labels}
        assert new == replace(old, body={**old.body, "metadata": metadata})


def takes(backend: str, name: str) -> bool:
    try:
        compile_serving(example_for(backend, name))
    except SpecError:
        return False
    return True


@pytest.mark.parametrize("fills", [True, False])
def test_limits_without_requests_are_told_once_for_entry_and_worker(fills: bool) -> None:
    entry = GUIDE["roles"][0]["worker_template"]
    same = changed(GUIDE, {"roles[0].entry_template": entry, "fill_requests": fills})
    told = [f for f in compile_serving(same).findings if "requests" in f.rule]
    (finding,) = told
    assert finding.path == "roles[0].entry_template"
    assert "memory 1124Gi, nvidia.com/gpu 8, also in worker_template, ha" in finding.seen


def test_a_request_below_a_limit_is_still_told() -> None:
    """requests-mirrored is about limits without requests only."""
    low = {"roles[0].entry_template.spec.containers[0].resources.requests": {"nvidia.com/gpu": 4}}
    with pytest.raises(SpecError, match="gpu-requests-equal-limits"):
        compile_serving(changed(GUIDE, low | {"fill_requests": False}))
