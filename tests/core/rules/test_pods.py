"""Shared memory and tokens of an engine's pods; images are in test_pods_images.py."""

from collections.abc import Mapping
from typing import Any

import pytest

from kthena_components.compiler.compile import compile_serving
from kthena_components.core.facts.container import SHM_PATH
from kthena_components.core.facts.pod import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import SpecError
from kthena_components.core.rules.pods import hf_token_from_secret, shm_present
from kthena_components.core.rules.serving import Check
from kthena_components.judge.manifest import judge_manifest
from tests.support.specs import ENGINE_RAY, REMOVED, Args, changed, gpu_template
from tests.support.strategies import LATE

TOKEN = "hf_" + "aB3" * 11
VARIABLES = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HUGGING_FACE_TOKEN"]
POD = "spec.containers[0]"
MOUNT = f"{POD}.volumeMounts[0]"


def judged(
    check: Check, changes: Mapping[str, Any] | None = None, command: str = "vllm serve m -tp 8"
) -> list[str]:
    """Judge an engine of one pod of 8 GPUs, its template changed."""
    template = changed(gpu_template(command), changes)
    return said(check, template)


def said(check: Check, entry: object, worker: object = None) -> list[str]:
    engine = EngineFacts(
        path="e",
        name="e",
        pods=1 if worker is None else 2,
        replicas=1,
        entry=read_pod(entry, "t"),
        worker=None if worker is None else read_pod(worker, "w"),
    )
    return [str(f) for f in check(ServingFacts(path="", name="s", engines=(engine,)))]


def memory(seen: str) -> list[str]:
    return [
        (
            f"t.spec.containers[0]: engine 'e', container 'engine' {seen}, and its ranks exchange "
            "data through it. Mount an emptyDir with medium Memory at /dev/shm. [shm-present]"
        )
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {f"{MOUNT}.mountPath": f"{SHM_PATH}/"},
        {"spec.volumes[0]": {"name": "dshm", "hostPath": {"path": SHM_PATH}}},
        {f"{POD}.volumeMounts": REMOVED, "spec.hostIPC": True},
    ],
    ids=["empty-dir", "slash", "host-path", "host-ipc"],
)
def test_memory_at_dev_shm_is_enough(changes: Args) -> None:
    assert judged(shm_present, changes) == []


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        (
            {f"{POD}.volumeMounts": REMOVED},
            "has nothing mounted at /dev/shm and gets 64 MiB there",
        ),
        (
            {f"{MOUNT}.mountPath": f"{SHM_PATH}2"},
            "has nothing mounted at /dev/shm and gets 64 MiB there",
        ),
        (
            {"spec.volumes[0].emptyDir": {}},
            "has a volume at /dev/shm that is not in memory",
        ),
        (
            {"spec.volumes[0].name": "other"},
            "mounts a volume at /dev/shm that the pod does not have",
        ),
    ],
    ids=["no-mount", "elsewhere", "disk", "no-volume"],
)
def test_several_ranks_without_shared_memory_are_worth_a_look(changes: Args, seen: str) -> None:
    assert judged(shm_present, changes) == memory(seen)


def test_one_rank_needs_no_shared_memory() -> None:
    changes = {f"{POD}.volumeMounts": REMOVED}
    assert said(shm_present, changed(gpu_template("vllm serve m", 1), changes)) == []
    two = said(shm_present, changed(gpu_template("vllm serve m -pp 2", 1), changes))
    assert two == memory("has nothing mounted at /dev/shm and gets 64 MiB there")


def test_each_template_of_an_engine_needs_its_own_shared_memory() -> None:
    right = gpu_template("vllm serve m -tp 8 -pp 2")
    worker = changed(gpu_template("ray start --address=x"), {f"{POD}.volumeMounts": REMOVED})
    (line,) = said(shm_present, right, worker)
    assert line.startswith("w.spec.containers[0]: engine 'e', container 'engine' has nothing")


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({f"{POD}.volumeMounts": LATE}, "the volume mounts are not known yet"),
        ({"spec.volumes": LATE}, "the volumes are not known yet"),
        (
            {"spec.volumes[0].emptyDir.medium": LATE},
            "what the volume at /dev/shm is, is not known yet",
        ),
        ({f"{MOUNT}.mountPath": LATE}, "a mount path is not known yet"),
    ],
    ids=["mounts", "volumes", "medium", "place"],
)
def test_shared_memory_that_is_not_known_is_told(changes: Args, because: str) -> None:
    assert judged(shm_present, changes) == [
        f"t.spec.containers[0]: engine 'e' was not checked, because {because}. [shm-present]"
    ]


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_token_that_is_written_out_is_refused_and_never_shown(variable: str) -> None:
    env = [{"name": variable, "value": TOKEN}]
    lines = judged(hf_token_from_secret, {f"{POD}.env": env})
    assert lines == [
        (
            f"t.spec.containers[0].env[0].value: engine 'e', container 'engine' has {variable} in "
            f"plain text, and everyone who reads the manifest can use that token. Give {variable} "
            "with valueFrom.secretKeyRef, and revoke this token. [hf-token-from-secret]"
        )
    ]


def test_any_text_is_a_token_where_one_belongs() -> None:
    assert len(judged(hf_token_from_secret, {f"{POD}.env": [{"name": "HF_TOKEN", "value": "x"}]}))


@pytest.mark.parametrize(
    "item",
    [
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "k"}}},
        {"name": "HF_TOKEN", "value": "$(HUGGING_FACE_HUB_TOKEN)"},
        {"name": "HF_TOKEN", "value": ""},
        {"name": "HF_TOKEN"},
        {"name": "HF_HUB_ENABLE_HF_TRANSFER", "value": "1"},
        {"name": "CACHE", "value": "/data/hf_transfer_cache_directory_of_the_team"},
    ],
    ids=["secret", "reference", "empty", "nothing", "switch", "no-token"],
)
def test_what_holds_no_token_is_let_by(item: Args) -> None:
    assert judged(hf_token_from_secret, {f"{POD}.env": [item]}) == []


def test_a_token_from_a_config_map_is_refused() -> None:
    source = {"configMapKeyRef": {"name": "hf", "key": "token"}}
    env = [{"name": "HF_TOKEN", "valueFrom": source}]
    assert judged(hf_token_from_secret, {f"{POD}.env": env}) == [
        (
            "t.spec.containers[0].env[0].valueFrom: engine 'e', container 'engine' takes HF_TOKEN "
            "from a ConfigMap, which is not kept secret. Give HF_TOKEN with "
            "valueFrom.secretKeyRef, and revoke this token. [hf-token-from-secret]"
        )
    ]


def test_a_token_in_a_command_line_is_refused_and_never_shown() -> None:
    lines = judged(hf_token_from_secret, command=f"vllm serve m -tp 8 --hf-token {TOKEN}")
    assert lines == [
        (
            "t.spec.containers[0].command[2]: engine 'e', container 'engine' has a text in its "
            "command line that looks like a Hugging Face token (hf_…), and everyone who reads the "
            "manifest can use it. Give HF_TOKEN with valueFrom.secretKeyRef, and revoke this "
            "token. [hf-token-from-secret]"
        )
    ]


def test_a_token_of_an_init_container_or_a_sidecar_is_refused() -> None:
    open_env = [{"name": "URL", "value": f"https://user:{TOKEN}@huggingface.co"}]
    other = {"name": "fetch", "image": "busybox:1.37", "env": open_env}
    lines = judged(
        hf_token_from_secret, {"spec.initContainers": [other], "spec.containers[1]": other}
    )
    assert [line.partition(":")[0] for line in lines] == [
        "t.spec.containers[1].env[0].value",
        "t.spec.initContainers[0].env[0].value",
    ]
    assert "has a text in variable URL that looks like a Hugging Face token (hf_…)" in lines[0]


@pytest.mark.parametrize(
    ("env", "because"),
    [
        (LATE, "the variables of container 'engine' are not known yet"),
        ([{"name": "HF_TOKEN", "value": LATE}], "the value of HF_TOKEN is not known yet"),
        ([{"name": "HF_TOKEN", "valueFrom": LATE}], "the value of HF_TOKEN is not known yet"),
    ],
    ids=["all", "value", "source"],
)
def test_a_token_that_is_not_known_is_told(env: object, because: str) -> None:
    assert judged(hf_token_from_secret, {f"{POD}.env": env}) == [
        (
            f"t.spec.containers[0]: engine 'e' was not checked, because {because}. "
            "[hf-token-from-secret]"
        )
    ]


@pytest.mark.parametrize(
    ("overlay", "path"),
    [
        (
            {"spec": {"containers": [{"name": "engine", "env": [{"name": "X", "value": TOKEN}]}]}},
            "roles[0].overlay",
        ),
        (None, "roles[0].engine.extra_args"),
    ],
    ids=["overlay", "extra-args"],
)
def test_a_token_of_an_engine_is_refused_where_the_user_wrote_it(
    overlay: Args | None, path: str
) -> None:
    change = {"roles[0].overlay": overlay} if overlay else {}
    words = [] if overlay else ["--hf-token", TOKEN]
    args = changed(ENGINE_RAY, {**change, "roles[0].engine.extra_args": words})
    with pytest.raises(SpecError) as refused:
        compile_serving(args)
    (finding,) = refused.value.findings
    assert (finding.path, finding.rule) == (path, "hf-token-from-secret")
    assert TOKEN not in str(refused.value)


def deployment(template: object) -> Args:
    spec = {"template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "c"}, "spec": spec}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({f"{POD}.volumeMounts": REMOVED}, "shm-present"),
        ({f"{POD}.env": [{"name": "HF_TOKEN", "value": TOKEN}]}, "hf-token-from-secret"),
        ({f"{POD}.image": "vllm/vllm-openai"}, "image-pinned"),
    ],
    ids=["memory", "token", "image"],
)
def test_a_manifest_of_anyone_is_judged(changes: Args, rule: str) -> None:
    right = gpu_template("vllm serve Qwen/Qwen3-32B -tp 8")
    assert judge_manifest(deployment(right)) == []
    (finding,) = judge_manifest(deployment(changed(right, changes)))
    assert finding.rule == rule
