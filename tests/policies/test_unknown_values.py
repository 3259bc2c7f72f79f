"""What a preview does not know yet: never a refusal, and never nothing."""

import pytest
from pulumi_policy import proxy

from kthena_components.core.rules.registry import MODEL_RULES
from kthena_components.policies import secret_marks_and_stack_gpu as marks
from tests.policies.objects import (
    DEPLOYMENT,
    GPU,
    MODEL_SERVING,
    STATEFUL_SET,
    UNKNOWN,
    Args,
    advice,
    container,
    model_serving,
    pod,
    refusals,
    secret,
    seen_by_policy,
    silent,
    vllm,
    workload,
)

FLAG = "--tensor-parallel-size"
VLLM_BY_DIGEST = f"vllm/vllm-openai@sha256:{'0' * 64}"
WHOLE = "spec.template.spec.containers"
ARGS = f"{WHOLE}[0].args"


def not_checked(path: str, because: str, name: str = "chat") -> str:
    return f"{path}: engine '{name}' was not checked, because {because}. [world-size-equals-gpus]"


SIZES = {"name": "sizes", "key": "tp"}
ABSENT = "ConfigMap 'sizes' is not among the objects that are checked"
UNREAD: dict[str, tuple[Args, str, str]] = {
    "all-arguments": (container(args=UNKNOWN), ARGS, "<output> may contain any flag"),
    "one-argument": (vllm(UNKNOWN), ARGS, "<output> may contain any flag"),
    "a-size": (
        vllm(FLAG, UNKNOWN),
        ARGS,
        "its value is a Pulumi Output, which is known only after the deployment",
    ),
    "a-script": (
        container(command=["sh", "-c", UNKNOWN]),
        WHOLE,
        "the command line of container 'main' is not known yet",
    ),
    "a-command": (
        container(command=UNKNOWN, image="engine:1"),
        WHOLE,
        "the command line of container 'main' is not known yet",
    ),
    "an-image-that-decides": (
        vllm(FLAG, "8", image=UNKNOWN),
        WHOLE,
        "the image of container 'main' decides what starts, and is not known yet",
    ),
    "a-variable": (
        vllm(FLAG, "$(TP)", env=[{"name": "TP", "value": UNKNOWN}]),
        ARGS,
        "the value of TP is not in the manifest",
    ),
    "a-config-map": (
        vllm(FLAG, "$(TP)", env=[{"name": "TP", "valueFrom": {"configMapKeyRef": SIZES}}]),
        ARGS,
        f"the value of TP is not in the manifest: {ABSENT}",
    ),
    "all-variables": (
        vllm(FLAG, "$(TP)", env=UNKNOWN),
        ARGS,
        "TP may come from env, which is not known yet",
    ),
    "variables-of-a-config-map": (
        vllm(FLAG, "$(TP)", envFrom=[{"configMapRef": {"name": "sizes"}}]),
        ARGS,
        f"TP may come from envFrom, where {ABSENT}",
    ),
    "gpus": (vllm(FLAG, "8", gpus=UNKNOWN), ARGS, f"the amount of {GPU} is not known yet"),
    "limits": (
        vllm(FLAG, "8", resources={"limits": UNKNOWN}),
        ARGS,
        "the resources of container 'main' are not known yet",
    ),
    "resources": (
        vllm(FLAG, "8", resources=UNKNOWN),
        ARGS,
        "the resources of container 'main' are not known yet",
    ),
}


@pytest.mark.parametrize("case", UNREAD)
def test_an_engine_that_cannot_be_read_gives_a_line_of_advice_for_each_rule(case: str) -> None:
    unread, path, because = UNREAD[case]
    assert refusals(DEPLOYMENT, workload(unread)) == ""
    first, *others = advice(DEPLOYMENT, workload(unread)).splitlines()
    assert first == not_checked(path, because)
    said = first.removesuffix("[world-size-equals-gpus]")
    # Variables that nobody can see may hold a token as well: another reason, and another line.
    about_size = {line for line in others if "[hf-token-from-secret]" not in line}
    assert about_size <= {f"{said}[{rule}]" for rule in MODEL_RULES}


@pytest.mark.parametrize("case", UNREAD)
def test_a_custom_resource_says_the_same_in_its_own_coordinates(case: str) -> None:
    unread, path, because = UNREAD[case]
    serving = model_serving({"spec": pod(unread)["spec"]})
    at = path.replace("spec.template", "spec.template.roles[0].entryTemplate")
    assert refusals(MODEL_SERVING, serving) == ""
    assert not_checked(at, because, "decode") in advice(MODEL_SERVING, serving).splitlines()


@pytest.mark.parametrize(
    "spec",
    [
        UNKNOWN,
        {"template": UNKNOWN},
        {"template": {"spec": UNKNOWN}},
        {"template": {"spec": {"containers": UNKNOWN}}},
        {"template": {"spec": {"containers": [UNKNOWN]}}},
    ],
    ids=["spec", "template", "pod", "list", "item"],
)
def test_a_workload_whose_containers_are_hidden_may_serve_a_model(spec: object) -> None:
    props = {"metadata": {"name": "chat"}, "spec": spec}
    assert refusals(DEPLOYMENT, props) == ""
    assert advice(DEPLOYMENT, props) == not_checked(WHOLE, "the containers are not known yet")


@pytest.mark.parametrize(
    "roles",
    [
        UNKNOWN,
        [UNKNOWN],
        [{"name": "decode", "workerReplicas": 0, "entryTemplate": UNKNOWN}],
        [{"name": "decode", "workerReplicas": 0, "entryTemplate": {"spec": UNKNOWN}}],
    ],
    ids=["roles", "role", "template", "pod"],
)
def test_a_custom_resource_whose_pods_are_hidden_says_so(roles: object) -> None:
    props = {"metadata": {"name": "chat"}, "spec": {"replicas": 1, "template": {"roles": roles}}}
    assert refusals(MODEL_SERVING, props) == ""
    assert "not checked, because" in advice(MODEL_SERVING, props)


def test_an_unknown_number_of_workers_says_so() -> None:
    wrong = model_serving({"spec": pod(vllm(FLAG, "16", "--nnodes", "2"))["spec"]})
    wrong["spec"]["template"]["roles"][0]["workerReplicas"] = UNKNOWN
    assert refusals(MODEL_SERVING, wrong) == ""
    at = "spec.template.roles[0].entryTemplate.spec.containers[0].args"
    line = not_checked(at, "workerReplicas is not known yet", "decode")
    assert line in advice(MODEL_SERVING, wrong).splitlines()


def test_what_is_known_is_checked_beside_what_is_not() -> None:
    unread = vllm(FLAG, "4", name="prefill", gpus=UNKNOWN)
    wrong = workload(
        unread, vllm(FLAG, "16", "--port", "8001", name="decode", image=VLLM_BY_DIGEST)
    )
    assert refusals(DEPLOYMENT, wrong).startswith(
        f"{WHOLE}[1].args: engine 'chat' starts tensor 16"
    )
    assert advice(DEPLOYMENT, wrong) == not_checked(ARGS, f"the amount of {GPU} is not known yet")


def test_an_unknown_image_does_not_matter_behind_a_command() -> None:
    command = ["vllm", "serve", "Qwen/Qwen3-32B", FLAG, "16"]
    wrong = workload(container(command=command, image=UNKNOWN))
    assert "starts tensor 16 × pipeline 1 = 16 ranks" in refusals(DEPLOYMENT, wrong)
    right = workload(container(command=[*command, FLAG, "8"], image=UNKNOWN))
    assert refusals(DEPLOYMENT, right) == ""
    assert advice(DEPLOYMENT, right) == (
        f"{WHOLE}[0].command: engine 'chat': --tensor-parallel-size is given different values "
        "(16, 8); the last one counts. Keep one. [engine-option-known]\n"
        f"{WHOLE}[0].image: engine 'chat' was not checked, because the image is known only after "
        "the deployment. [image-pinned]"
    )


def test_an_unknown_role_or_container_is_not_repeated() -> None:
    engine = vllm(FLAG, "16", name=UNKNOWN, resources={"requests": {GPU: 8}})
    wrong = model_serving({"spec": {"containers": [engine]}})
    wrong["spec"]["template"]["roles"][0]["name"] = UNKNOWN
    assert "engine '<output>', container '?' states" in refusals(MODEL_SERVING, wrong)
    assert UNKNOWN not in refusals(MODEL_SERVING, wrong) + advice(MODEL_SERVING, wrong)


def test_an_unknown_name_is_not_repeated() -> None:
    wrong = workload(vllm(FLAG, "16"), name=UNKNOWN)
    assert "engine 'StatefulSet' starts tensor 16" in refusals(STATEFUL_SET, wrong)
    assert UNKNOWN not in refusals(STATEFUL_SET, wrong) + advice(STATEFUL_SET, wrong)


@pytest.mark.parametrize(
    "app",
    [
        container(gpus=None, image=UNKNOWN),
        container(gpus=None, image=UNKNOWN, args=[UNKNOWN]),
        container(gpus=None, image="nginx:1.29", env=UNKNOWN),
        container(image="nginx:1.29", resources={"limits": {"memory": UNKNOWN}}),
        container(image="nginx:1.29", resources=UNKNOWN),
    ],
    ids=["image", "arguments", "env", "memory", "resources"],
)
def test_an_app_without_gpus_is_not_spoken_of_whatever_is_unknown(app: Args) -> None:
    assert silent(DEPLOYMENT, workload(app))


def test_whole_numbers_are_integers_again() -> None:
    """The engine sends each number as a double, and the schemas of CRDs ask for integers."""
    sent = proxy.unknown_checking_proxy({"a": 8.0, "b": [2.0, 0.5, True], "c": 1e300, "d": 2.0**53})

    found = marks.plain(sent)

    assert found == {"a": 8, "b": [2, 0.5, True], "c": 1e300, "d": 2**53}
    kinds = [type(value) for value in (found["a"], *found["b"], found["c"], found["d"])]
    assert kinds == [int, int, float, bool, float, int]


def test_another_policy_of_the_pack_reads_properties_as_the_sdk_gives_them() -> None:
    props = {"metadata": {"name": "chat"}, "replicas": 2, "data": [{"a": True}]}
    seen = seen_by_policy({**props, "clusterIP": UNKNOWN, "token": secret("abc")})
    given = proxy.unknown_checking_proxy({**props, "clusterIP": UNKNOWN, "token": "abc"})
    assert set(seen) == set(given)
    assert len(seen) == len(given)
    assert seen["metadata"]["name"] == given["metadata"]["name"]
    assert seen["data"][0]["a"] is given["data"][0]["a"]
    assert (seen.get("replicas"), seen.get("absent")) == (2, None)
    for each in (seen, given):
        with pytest.raises(proxy.UnknownValueError) as caught:
            each["clusterIP"]
        assert ".clusterIP" in caught.value.message
    assert type(marks.read_props(seen)["replicas"]) is int
    assert type(marks.read_field(seen, "replicas")) is int
    seen["replicas"] = 3
    assert seen["replicas"] == 3
    assert "abc" not in f"{seen['token']!r} {seen['token']!s}"
