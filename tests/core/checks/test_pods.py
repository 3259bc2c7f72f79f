"""Shared memory, tokens and images of an engine's pods."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.backends.compiler import compile_serving
from kthena_components.backends.readers import judge_manifest
from kthena_components.core.checks import Check, run_checks
from kthena_components.core.checks.pods import hf_token_from_secret, image_pinned, shm_present
from kthena_components.core.container_facts import SHM_PATH
from kthena_components.core.facts import EngineFacts, ServingFacts, read_pod
from kthena_components.core.findings import SpecError
from tests.support.specs import ENGINE_RAY, REMOVED, Args, changed, gpu_template
from tests.support.strategies import LATE, law

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
            "has a volume at /dev/shm that is no memory",
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
            f"t.spec.containers[0].env[0].value: engine 'e', container 'engine' has {variable} "
            "written out, and everyone who reads the manifest can use that token. Give "
            f"{variable} with valueFrom.secretKeyRef, and revoke the token that stands here. "
            "[hf-token-from-secret]"
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
            "valueFrom.secretKeyRef, "
            "and revoke the token that stands here. [hf-token-from-secret]"
        )
    ]


def test_a_token_in_a_command_line_is_refused_and_never_shown() -> None:
    lines = judged(hf_token_from_secret, command=f"vllm serve m -tp 8 --hf-token {TOKEN}")
    assert lines == [
        (
            "t.spec.containers[0].command[2]: engine 'e', container 'engine' has in its command "
            "line what looks like a Hugging Face token (hf_…), and everyone who reads the manifest "
            "can "
            "use it. Give HF_TOKEN with valueFrom.secretKeyRef, and revoke the token that stands "
            "here. [hf-token-from-secret]"
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
    assert "has in variable URL what looks like a Hugging Face token (hf_…)" in lines[0]


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


@pytest.mark.parametrize(
    "image",
    ["a/b:v1", "localhost:5000/a/b:1", "b@sha256:0a", "b:latest@sha256:0a"],
    ids=["tag", "port", "digest", "latest-with-digest"],
)
def test_a_pinned_image_is_right(image: str) -> None:
    assert judged(image_pinned, {f"{POD}.image": image}) == []


@pytest.mark.parametrize(
    ("image", "stated"),
    [
        ("vllm/vllm-openai:latest", "the tag latest"),
        ("localhost:5000/b", "no tag, which means latest"),
    ],
    ids=["latest", "port-is-no-tag"],
)
def test_an_image_that_moves_is_worth_a_look(image: str, stated: str) -> None:
    assert judged(image_pinned, {f"{POD}.image": image}) == [
        (
            f"t.spec.containers[0].image: engine 'e' runs '{image}', which has {stated}, and a "
            "restarted pod may run another version. Write the tag of a release, or a digest. "
            "[image-pinned]"
        )
    ]


def pair(entry: str, worker: str) -> list[str]:
    """Judge an engine whose entry and worker run these images."""
    templates = (gpu_template("vllm serve m -tp 8 -pp 2"), gpu_template("ray start --address=x"))
    images = ({f"{POD}.image": entry}, {f"{POD}.image": worker})
    return said(image_pinned, *(changed(t, i) for t, i in zip(templates, images, strict=True)))


@pytest.mark.parametrize(
    ("entry", "worker"),
    [
        ("a:v1", "a:v1"),
        ("docker.io/a/b:v1", "a/b:v1"),
        ("a:v1@sha256:0a", "mirror/a@sha256:0a"),
    ],
    ids=["same", "docker-hub", "digest"],
)
def test_entry_and_workers_of_one_build_are_right(entry: str, worker: str) -> None:
    assert pair(entry, worker) == []


def test_entry_and_workers_of_two_versions_are_refused() -> None:
    assert pair("vllm/vllm-openai:v0.10.1", "vllm/vllm-openai:v0.10.2") == [
        (
            "w.spec.containers[0].image: engine 'e' runs 'vllm/vllm-openai:v0.10.2' in its workers "
            "and 'vllm/vllm-openai:v0.10.1' in its entry, and two versions never form one engine. "
            "Write 'vllm/vllm-openai:v0.10.1' in both. [image-pinned]"
        )
    ]


@pytest.mark.parametrize(("entry", "worker"), [(LATE, "a:v1"), ("a:v1", LATE), (LATE, LATE)])
def test_an_image_that_is_not_known_is_told_once(entry: str, worker: str) -> None:
    assert pair(entry, worker) == [
        (
            "t.spec.containers[0].image: engine 'e' was not checked, because the image is known "
            "only after the deployment. [image-pinned]"
        )
    ]


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
    right = gpu_template("vllm serve m -tp 8")
    assert judge_manifest(deployment(right)) == []
    (finding,) = judge_manifest(deployment(changed(right, changes)))
    assert finding.rule == rule


NAMES = st.sampled_from(
    ["name", "image", "env", "value", "valueFrom", "secretKeyRef", "configMapKeyRef", "args",
     "command", "volumeMounts", "mountPath", "volumes", "emptyDir", "medium", "hostPath", "path",
     "resources", "limits", "nvidia.com/gpu"]
)  # fmt: skip
TEXTS = st.sampled_from(
    [*VARIABLES, LATE, "/dev/shm", "Memory", TOKEN, "vllm serve m -tp 2 --nnodes 0", "a:b@c", ""]  # noqa: S108
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=2), inner),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    [POD, "spec", "spec.volumes", "spec.initContainers", "spec.hostIPC", MOUNT]
    + [f"{POD}.{f}" for f in ("image", "env", "command", "args", "volumeMounts", "name")]
)


@pytest.mark.property
@law
@given(JSON, JSON, st.dictionaries(FIELDS, JSON, min_size=1, max_size=1))
def test_no_rule_raises_whatever_a_template_is(entry: object, worker: object, damage: Args) -> None:
    for command in ("vllm serve m -tp 8 --nnodes 2", "python -m sglang.launch_server --tp 8"):
        right = gpu_template(command)
        damaged = changed(right, damage)
        for first, second in ((entry, worker), (damaged, right), (right, damaged), (right, entry)):
            said(run_checks_of, first, second)
        judge_manifest(deployment(damaged))


def run_checks_of(facts: ServingFacts) -> Any:
    """Judge by every rule, as one check."""
    return iter(run_checks(facts))
