"""Keys that pods take from Secrets: variables, volumes, whole Secrets and logins."""
# ruff: noqa: E501 - a message stands whole on its line, to be searched for

from typing import Any

import pytest

from kthena_components.checker.cluster_rules import compare_objects
from tests.checker.cluster_samples import SECRET
from tests.support.specs import Args, changed
from tests.systems.volcano.samples import LATE, lines

LOGIN: Args = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "login", "namespace": "serving"},
    "type": "kubernetes.io/dockerconfigjson",
    "data": {".dockerconfigjson": "e30="},
}
POD: Args = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "serving"},
    "spec": {"containers": [{"name": "c"}]},
}
RULE = "[secret-key-exists]"
FILES = {"secretName": "hf", "items": [{"key": "config", "path": "config"}]}
PULLED = "so images are pulled without it. Write type kubernetes.io/dockerconfigjson and the key .dockerconfigjson there."


def said(pod: dict[str, Any], login: dict[str, Any] | None = None) -> list[str]:
    objects = [changed(POD, pod), SECRET, changed(LOGIN, login or {})]
    found = lines(compare_objects(objects, ["pod", "secret", "login"], complete=False))
    return [line for line in found if "[object-values]" not in line]


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        (
            {"spec.volumes": [{"name": "v"}, {"name": "hf", "secret": FILES}]},
            f"M pod.spec.volumes[1].secret.items[0].key: is 'config', but the Secret 'hf' has no such key, and the pod does not start without it. Known: token. {RULE}",
        ),
        (
            {
                "spec.volumes": [
                    {"name": "hf", "projected": {"sources": [{"secret": {**FILES, "name": "hf"}}]}}
                ]
            },
            f"M pod.spec.volumes[0].projected.sources[0].secret.items[0].key: is 'config', but the Secret 'hf' has no such key, and the pod does not start without it. Known: token. {RULE}",
        ),
        (
            {"spec.imagePullSecrets": [{"name": "hf"}]},
            f"A pod.spec.imagePullSecrets[0].name: is 'hf', a Secret of type 'Opaque' which is not a login, {PULLED} {RULE}",
        ),
        (
            {"spec.volumes": [{"name": "hf", "secret": {**FILES, "secretName": LATE}}]},
            f"U pod.spec.volumes[0].secret.items[0].key: not checked, because the value is known only after the deployment. {RULE}",
        ),
    ],
    ids=["volume", "projected", "login", "late"],
)
def test_what_is_missing_is_told(pod: dict[str, Any], wanted: str) -> None:
    assert said(pod) == [wanted]


@pytest.mark.parametrize(
    "pod",
    [
        {"spec.volumes": [{"name": "hf", "secret": {**FILES, "optional": True}}]},
        {"spec.volumes": [{"name": "hf", "secret": {"secretName": "hf"}}]},
        {"spec.volumes": [{"name": "hf", "secret": {**FILES, "secretName": "elsewhere"}}]},
        {"spec.imagePullSecrets": [{"name": "login"}, {"name": "elsewhere"}]},
        {"spec.containers[0].envFrom": [{"secretRef": {"name": "hf"}}]},
        {
            "spec.containers[0].envFrom": [
                {"secretRef": {"name": "elsewhere"}},
                {"configMapRef": {"name": "x"}},
            ]
        },
    ],
    ids=["optional", "whole volume", "elsewhere", "login", "variables", "others"],
)
def test_nothing_is_said_of_what_is_there(pod: dict[str, Any]) -> None:
    assert said(pod) == []


def test_a_login_and_variables_without_their_keys_are_told() -> None:
    empty: dict[str, Any] = {"data": {}}
    assert said({"spec.imagePullSecrets": [{"name": "login"}]}, empty) == [
        f"A pod.spec.imagePullSecrets[0].name: is 'login', a Secret of type 'kubernetes.io/dockerconfigjson' without the key .dockerconfigjson, {PULLED} {RULE}"
    ]
    assert said({"spec.containers[0].envFrom": [{"secretRef": {"name": "login"}}]}, empty) == [
        f"A pod.spec.containers[0].envFrom[0].secretRef.name: is 'login', a Secret without any key, so the container gets no variable from it. Give the Secret its keys, or name another one. {RULE}"
    ]
