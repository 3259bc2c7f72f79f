"""Queues, namespaces, Secrets and rights, as doctor tells them."""

from dataclasses import replace
from typing import Any

import pytest

from kthena_components.cluster.access import allows
from kthena_components.cluster.doctor import diagnose
from kthena_components.cluster.requirements import Right, SecretKey
from kthena_components.cluster.snapshot import Status
from tests.cluster.doctored import HIDDEN, said, stack, with_rights
from tests.cluster.objects import healthy, queue


def test_queues_must_be_there_and_open() -> None:
    asked = stack(queue="llm")
    assert said("queue", healthy(queues=[queue("llm")]), asked) == [(Status.OK, "llm is open")]
    ((mark, text),) = said("queue", healthy(queues=[queue("lmm")]), asked)
    assert (mark, "llm does not exist. Write 'lmm'" in text) == (Status.FAIL, True)
    ((mark, text),) = said("queue", healthy(queues=[queue("llm", "Closed")]), asked)
    assert (mark, "llm is Closed" in text) == (Status.FAIL, True)
    assert said("queue", healthy(queues=HIDDEN), asked)[0][0] is Status.UNKNOWN
    made = stack(queue="llm", spec={"queues": [{"name": "llm"}]})
    assert said("queue", healthy(queues=[]), made) == []


def test_a_missing_namespace_is_told_with_the_command_that_makes_it() -> None:
    asked = stack()
    seen = replace(with_rights(healthy(), asked), namespaces={"serving": False})
    lines = [line for line in diagnose(seen, asked) if line.subject == "namespace"]
    assert [(line.mark, "`kubectl create namespace serving`" in line.text) for line in lines] == [
        (Status.FAIL, True)
    ]


@pytest.mark.parametrize(
    ("keys", "mark", "text"),
    [
        (frozenset({"token"}), Status.OK, "serving/hf has the key 'token'"),
        (frozenset({"tokens"}), Status.FAIL, "has no key 'token', and pods that use it do not"),
        (None, Status.FAIL, "kubectl create secret generic hf -n serving --from-file=token=FILE"),
        (HIDDEN, Status.UNKNOWN, "unknown, you may not read it"),
    ],
)
def test_secrets_must_have_their_keys(keys: Any, mark: Status, text: str) -> None:
    role = {**_ROLE, "hugging_face_token": {"name": "hf", "key": "token"}}
    asked = stack(roles=[role])
    assert asked.secrets == (SecretKey("serving", "hf", "token"),)
    ((seen, told),) = said("secret", healthy(secrets={("serving", "hf"): keys}), asked)
    assert (seen, text in told) == (mark, True)


_ROLE: dict[str, Any] = {
    "name": "serve", "resources": {"gpus_per_pod": 8},
    "engine": {"kind": "vllm", "image": "i:1", "model": "m", "parallelism": {"tensor": 8}},
}  # fmt: skip


def test_a_secret_of_the_stack_need_not_be_there() -> None:
    role = {**_ROLE, "hugging_face_token": {"name": "hf", "key": "token"}}
    secret = {"name": "hf", "namespace": "serving", "data": {"token": "hf_token"}}
    assert stack(roles=[role], spec={"secrets": [secret]}).secrets == ()


def test_rights_that_are_missing_are_listed_by_resource() -> None:
    asked = stack()
    lines = diagnose(with_rights(healthy(), asked, "podgroups"), asked)
    ((mark, text),) = [(line.mark, line.text) for line in lines if line.subject == "rights"]
    assert mark is Status.FAIL
    assert "you may not create, delete, get, list, patch, watch podgroups in serving" in text
    lines = diagnose(replace(with_rights(healthy(), asked), rights={}), asked)
    assert [line.mark for line in lines if line.subject == "rights"] == [Status.UNKNOWN]


@pytest.mark.parametrize(
    ("rule", "granted"),
    [
        ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, True),
        ({"verbs": ["create"], "apiGroups": ["apps"], "resources": ["statefulsets"]}, True),
        ({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["statefulsets"]}, False),
        ({"verbs": ["create"], "apiGroups": [""], "resources": ["statefulsets"]}, False),
        ({"verbs": ["create"], "apiGroups": ["apps"], "resources": ["deployments"]}, False),
        ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["a"]}, False),
        ({}, False),
    ],
)
def test_rules_are_read_as_kubernetes_does(rule: dict[str, Any], granted: bool) -> None:
    assert allows([rule], Right("default", "apps", "statefulsets", "create")) is granted


def test_a_stack_asks_only_for_what_it_applies() -> None:
    kinds = {kind[1] for _, kind in stack(backend="kthena").kinds}
    assert kinds == {"ModelServing", "PodDisruptionBudget"}
    assert {right.resource for right in stack().rights} == {
        "poddisruptionbudgets", "podgroups", "pods", "services", "statefulsets",
    }  # fmt: skip
