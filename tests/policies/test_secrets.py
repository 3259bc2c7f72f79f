"""What the engine marks as secret is checked like all else, and is never shown."""

from collections.abc import Iterator
from typing import Any

import pytest
from pulumi_policy import ResourceValidationArgs
from pulumi_policy.deserialize import deserialize_properties
from pulumi_policy.proxy import unknown_checking_proxy

from kthena_components.core.values.display import SECRET
from tests.policies.broken import native
from tests.policies.objects import (
    COMPONENT,
    DEPLOYMENT,
    GPU,
    UNKNOWN,
    Args,
    advice,
    container,
    group_refusals,
    in_stack,
    policy,
    refusals,
    resource,
    secret,
    vllm,
    workload,
)
from tests.policies.process import Pack, started

PIECES = ("pearl", "quartz", "raven", "sable")
"""Of each secret in these tests one stands wherever a finding could quote it."""
ENGINE = "spec.template.spec.containers[0]"


def shown(lines: str) -> list[str]:
    """Give lines, none of which holds a piece of a secret."""
    assert not [piece for piece in PIECES if piece in lines]
    return lines.splitlines()


def serving(*args: Any, **fields: Any) -> Args:
    return container(command=["vllm", "serve", "Qwen/Qwen3-32B", *args], **fields)


def variable(name: str, value: Any) -> Args:
    return {"name": name, "value": value}


def no_integer(option: str) -> str:
    """Give the refusal of a secret in place of a number."""
    seen = f"engine 'chat': {option} takes an integer, not '[secret]'"
    return f"{ENGINE}.command: {seen}. Write a number. [engine-option-known]"


WRONG: dict[str, tuple[Args, str]] = {
    "a variable that becomes a size": (
        serving("-tp", "$(T)", env=[variable("T", secret("pearl quartz"))]),
        no_integer("--tensor-parallel-size"),
    ),
    "a size": (serving("-tp", secret("pearl")), no_integer("--tensor-parallel-size")),
    "a URL": (
        serving("-tp", "8", "--max-model-len", secret("https://pearl:quartz@raven/sable")),
        no_integer("--max-model-len"),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_secret_value_is_refused_without_being_shown(case: str) -> None:
    engine, expected = WRONG[case]
    assert shown(refusals(DEPLOYMENT, workload(engine))) == [expected]


def test_a_number_that_follows_from_a_secret_is_not_shown() -> None:
    assert refusals(DEPLOYMENT, workload(serving("-tp", secret("17")))).splitlines()[0] == (
        f"{ENGINE}.command: breaks this rule with a value that is secret and so not shown: "
        "[secret]. Compare it with the rule: The ranks of an engine, TP × PP × DP, equal its pods "
        "× GPUs per pod. [world-size-equals-gpus]"
    )


def test_a_whole_command_line_that_is_secret_is_checked_and_not_shown() -> None:
    line = "vllm serve pearl -tp quartz --quarz raven --max-model-len sable"
    engine = container(command=["sh", "-c", secret(line)])
    (found,) = shown(refusals(DEPLOYMENT, workload(engine)))
    assert SECRET in found
    assert found.endswith("[engine-option-known]")


def collapsed(*args: Any) -> Args:
    """Mark all containers for one secret in one of them, as the Kubernetes provider does."""
    engine = serving(*args, env=[variable("T", "pearl"), variable("quartz", "raven")])
    body = workload()
    body["spec"]["template"]["spec"]["containers"] = secret([engine])
    return body


def test_options_are_named_where_all_containers_are_secret_for_one_value() -> None:
    lines = shown(refusals(DEPLOYMENT, collapsed("-tp", "$(T)")))
    assert lines == [no_integer("--tensor-parallel-size")]


def test_keys_of_a_secret_map_are_secret() -> None:
    engine = vllm("-tp", "8", resources=secret({"limits": {GPU: "8"}, "pearl": {"quartz": 1}}))
    lines = shown(refusals(DEPLOYMENT, workload(engine)) + advice(DEPLOYMENT, workload(engine)))
    assert all(SECRET in line for line in lines)


def test_what_does_not_depend_on_a_secret_is_said_in_full() -> None:
    engine = serving("-tp", "16", env=[variable("KEY", secret("pearl"))])
    open_engine = serving("-tp", "16", env=[variable("KEY", "pearl")])
    assert refusals(DEPLOYMENT, workload(engine)) == refusals(DEPLOYMENT, workload(open_engine))
    assert "starts tensor 16" in refusals(DEPLOYMENT, workload(engine))


def test_a_right_serving_with_secrets_is_not_spoken_of() -> None:
    engine = serving("-tp", secret("8"), env=[variable("KEY", secret("pearl"))])
    assert refusals(DEPLOYMENT, workload(engine)) == advice(DEPLOYMENT, workload(engine)) == ""


def test_a_secret_that_a_preview_does_not_know_is_not_known() -> None:
    late = advice(DEPLOYMENT, workload(serving("-tp", secret(UNKNOWN))))
    assert late == advice(DEPLOYMENT, workload(serving("-tp", UNKNOWN)))
    assert "known only after the deployment" in late


def test_a_secret_waiver_waives_and_is_not_shown() -> None:
    body = workload(serving("-tp", "16"))
    key = "waive.kthena-components/world-size-equals-gpus"
    body["metadata"]["annotations"] = {key: secret("9999-12-31 pearl quartz")}
    assert refusals(DEPLOYMENT, body) == ""
    (line,) = shown(advice(DEPLOYMENT, body))
    assert line.endswith("[world-size-equals-gpus]")
    body["metadata"]["annotations"] = {key: "9999-12-31 more nodes come"}
    body["spec"]["replicas"] = secret(1)
    assert "Waived until 9999-12-31: more nodes come." in advice(DEPLOYMENT, body)


def test_an_object_that_others_refer_to_keeps_its_secrets() -> None:
    parts = native()
    engine = parts["workers"]["spec"]["template"]["spec"]["containers"][0]
    engine["resources"] = {"limits": {GPU: 4}, "requests": {GPU: 4}}
    plain = group_refusals([in_stack(body) for body in parts.values()])
    spec = parts["workers"]["spec"]["template"]["spec"]
    spec["containers"] = secret(spec["containers"])
    sealed = group_refusals([in_stack(body) for body in parts.values()])
    rules = [message.rpartition(" ")[2] for _, message in plain]
    assert [message.rpartition(" ")[2] for _, message in sealed] == rules
    assert [owner for owner, _ in sealed] == [owner for owner, _ in plain]
    assert all(SECRET in message for _, message in sealed)


def test_a_key_that_a_secret_does_not_have_is_said_without_those_it_has() -> None:
    taken = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        **workload(serving("-tp", "8", env=[taken])),
    }
    held = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hf"},
        "data": secret({"pearl-token": "cXVhcnR6"}),
    }
    ((_, message),) = group_refusals([in_stack(body), in_stack(held)])
    (line,) = shown(message)
    assert line == (
        f"{ENGINE}.env[0].valueFrom.secretKeyRef.key: is 'token', but the Secret 'hf' "
        "has no such key, and the container does not start without it. Compare it with the "
        "rule: A Secret has every key that pods use. [secret-key-exists]"
    )


def test_what_a_config_map_holds_as_a_secret_is_checked_and_not_shown() -> None:
    reference = {"valueFrom": {"configMapKeyRef": {"name": "engine", "key": "tp"}}}
    engine = serving("-tp", "$(TP)", env=[{"name": "TP", **reference}])
    body = {"apiVersion": "apps/v1", "kind": "Deployment", **workload(engine)}
    for value, rule in (("pearl quartz", "engine-option-known"), ("16", "world-size-equals-gpus")):
        held = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "engine"},
            "data": {"tp": secret(value)},
        }
        ((_, message),) = group_refusals([in_stack(body), in_stack(held)])
        (line,) = shown(message)
        assert SECRET in line
        assert line.endswith(f"[{rule}]")
        assert "tensor 16" not in line


def test_a_component_shows_no_secret_row() -> None:
    row = {"role": secret("pearl"), "engines": 1, "pods": 1, "gpus_per_pod": 8, "tensor": 16}
    props = {"name": "chat", "shape": [{**row, "pipeline": 1, "data": 1}]}
    (line,) = shown(refusals(COMPONENT, props))
    assert line.startswith("shape[0]: engine '[secret]' starts tensor 16 × pipeline 1 = 16 ranks")


def reported(name: str, args: ResourceValidationArgs) -> list[str]:
    """Give what a policy reports about a resource."""
    found: list[str] = []
    policy(name).validate(args, lambda message, _: found.append(message))
    return found


def by_another_sdk(props: Args) -> Any:
    """Give properties as a release of the SDK would that does not read them by our function."""
    return unknown_checking_proxy(deserialize_properties(props))


def test_nothing_is_shown_where_the_sdk_does_not_tell_what_is_secret() -> None:
    args = resource(DEPLOYMENT, {})
    args.props = by_another_sdk(workload(serving("-tp", secret("pearl"), "--quarz", "raven")))
    refused, advised = reported("serving-rules", args), reported("serving-advice", args)
    assert len(shown("\n".join(refused))) == 2
    assert all(line.endswith("[engine-option-known]") for line in refused)
    assert advised[0].startswith("all values are hidden, because pulumi-policy 1.")
    assert advised[0].endswith(
        "does not show which ones are secret. Use release 1.21. [policy-config]"
    )
    assert not [line for line in reported("serving-advice", args) if "policy-config" in line]


def test_no_object_of_a_stack_is_shown_where_the_sdk_does_not_tell_what_is_secret() -> None:
    parts = native()
    engine = parts["workers"]["spec"]["template"]["spec"]["containers"][0]
    engine["resources"] = {"limits": {GPU: 4}, "requests": {GPU: 4}}
    objects = [in_stack(body) for body in parts.values()]
    plain = group_refusals(objects)
    for body, each in zip(parts.values(), objects, strict=True):
        each.props = by_another_sdk(body)
    sealed = group_refusals(objects)
    assert [owner for owner, _ in sealed] == [owner for owner, _ in plain]
    assert not [line for _, line in sealed if SECRET not in line]


@pytest.fixture(scope="module")
def pack() -> Iterator[Pack]:
    with started() as running:
        yield running


@pytest.mark.parametrize("case", WRONG)
def test_nothing_is_shown_on_the_wire(pack: Pack, case: str) -> None:
    engine, expected = WRONG[case]
    body = {"apiVersion": "apps/v1", "kind": "Deployment", **workload(engine)}
    pack.configure({})
    assert pack.analyze(DEPLOYMENT, body) == [f"mandatory serving-rules : {expected}"]
    lines = pack.analyze_stack({"urn:a": (DEPLOYMENT, body), "urn:b": (DEPLOYMENT, body)})
    shown("\n".join(lines))
    assert lines
