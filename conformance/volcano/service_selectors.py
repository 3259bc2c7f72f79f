"""Selectors of Services against the labels that Kthena's controller gives the pods."""

import random
from collections.abc import Mapping
from typing import Any

from conformance.support.cluster import NAMESPACE, Scene
from conformance.volcano.gangs import manifests, of
from conformance.volcano.misleading_gangs import rules_of
from kthena_components.core import naming

_RULE = "selector-of-serving"
_TRIES = 60
_VALUES: Mapping[str, tuple[str, ...]] = {
    naming.ROLE: ("prefill", "decode", "prefil", "chat"),
    naming.ROLE_ID: ("prefill-0", "prefill-1", "decode-0", "prefill", "decode-x"),
    naming.GROUP_NAME: ("chat-0", "chat", "chat-0-prefill"),
    naming.ENTRY: ("true", "false", "True"),
    "tier": ("front", "back"),
    "modelserving.volcano.sh/entyr": ("true",),
}


def by_services(scene: Scene, backend: str) -> None:
    """Of random selectors, the rule reports those that find no pod of the ModelServing."""
    if backend != "kthena":
        return
    bodies = manifests(_serving())
    scene.make(bodies)
    scene.until("all pods are there", lambda: len(scene.pods(of("chat"))) == 2 * 2 + 1)
    draw = random.Random(26)  # noqa: S311 - not for secrets
    for _ in range(_TRIES):
        keys = draw.sample(sorted(_VALUES), draw.randint(1, 3))
        labels = {naming.NAME: "chat"} | {key: draw.choice(_VALUES[key]) for key in keys}
        chosen = ",".join(f"{key}={value}" for key, value in labels.items())
        found = [pod["metadata"]["name"] for pod in scene.pods(chosen)]
        reported = _RULE in rules_of([*bodies, _service(labels)])
        # The rule takes any number of a group or of an engine: Kthena's ordinals may grow.
        higher = not found and bool(scene.pods(_without_numbers(labels)))
        seen = f"{labels} finds {found}, reported: {reported}"
        holds = reported != bool(found) or (higher and not reported)
        scene.check("the rule reports what finds no pod", holds=holds, seen=seen)
        scene.part.count("selectors")


def _serving() -> dict[str, Any]:
    back = {"metadata": {"labels": {"tier": "back"}}, **_template()}
    front = {"metadata": {"labels": {"tier": "front"}}, **_template()}
    roles = [
        {"name": "prefill", "replicas": 2, "worker_replicas": 1, "entry_template": front,
         "worker_template": back},
        {"name": "decode", "entry_template": _template()},
    ]  # fmt: skip
    return {"name": "chat", "namespace": NAMESPACE, "backend": "kthena", "roles": roles}


def _template() -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "serve", "image": "example/serve:1"}]}}


def _service(labels: Mapping[str, str]) -> dict[str, Any]:
    metadata = {"name": "front", "namespace": NAMESPACE}
    spec = {"selector": labels, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _without_numbers(labels: Mapping[str, str]) -> str:
    """Return the selector without labels that end with a number."""
    return ",".join(f"{k}={v}" for k, v in labels.items() if not v.rpartition("-")[2].isdecimal())
