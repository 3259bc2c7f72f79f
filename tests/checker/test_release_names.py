"""Names with the release that Helm named itself: another release may be shorter."""

from collections.abc import Mapping
from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from kthena_components.core.naming import HELM_RELEASE
from tests.support.specs import changed, template

_PODS = {"selector": {"matchLabels": {"app": "a"}}, "template": template()}
_KINDS: list[tuple[str, str, Mapping[str, Any], int]] = [
    ("v1", "Service", {"ports": [{"port": 80}]}, 63),
    ("batch/v1", "CronJob", {"schedule": "@daily", "jobTemplate": {"spec": _PODS}}, 52),
    ("apps/v1", "StatefulSet", {**_PODS, "serviceName": "a"}, 52),
    ("ray.io/v1", "RayCluster", {"headGroupSpec": {"template": template()}}, 53),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet",
     {"leaderWorkerTemplate": {"size": 1, "workerTemplate": template()}}, 52),
]  # fmt: skip
"""The API version, kind and spec of an object, and the most characters of its name."""


def _too_long(body: Mapping[str, Any], name: str) -> list[str]:
    named = changed(body, {"metadata.name": name})
    rules = {"object-name", "name-fits", "ray-name", "lws-shape"}
    found = check_manifest(named)
    return [f.rule for f in found if f.level is Level.MANDATORY and f.rule in rules]


@pytest.mark.parametrize(("version", "kind", "spec", "most"), _KINDS)
def test_a_name_is_too_long_only_with_each_release(
    version: str, kind: str, spec: Mapping[str, Any], most: int
) -> None:
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    assert _too_long(body, "a" * (most + 1)) != []
    rest = "-" + "a" * (most - 2)
    assert _too_long(body, "r" + rest) == []
    assert _too_long(body, HELM_RELEASE + rest) == []
    assert _too_long(body, f"{HELM_RELEASE}{rest}a") != []
