"""What doctor says of a cluster that is made up, for a stack that is made up."""

from dataclasses import replace
from typing import Any

from kthena_components.cluster.doctor import diagnose
from kthena_components.cluster.requirements import (
    Requirements,
    requirements_of_backends,
    requirements_of_stack,
)
from kthena_components.cluster.snapshot import Snapshot, Status
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.plan.stack_file import StackSpec
from kthena_components.core.values.unknown import Unknown

GENERAL = requirements_of_backends("default")
HIDDEN = Unknown("you may not read it")


def stack(**changes: Any) -> Requirements:
    """A serving of two groups, each of two pods with 8 GPUs, inside one rack."""
    serving: dict[str, Any] = {
        "name": "chat", "namespace": "serving", "replicas": 2,
        "roles": [{
            "name": "serve", "worker_replicas": 1,
            "engine": {"kind": "vllm", "image": "vllm/vllm-openai:v0.33.0", "launcher": "native",
                       "model": "m", "parallelism": {"tensor": 8, "pipeline": 2}},
            "resources": {"gpus_per_pod": 8},
        }],
        "network_topology": {"group_policy": {"mode": "hard", "highest_tier_allowed": 1}},
    }  # fmt: skip
    if overlay := changes.pop("overlay", None):
        serving["roles"][0]["overlay"] = overlay
    spec = StackSpec.model_validate({"servings": [], **changes.pop("spec", {})})
    return requirements_of_stack("prod", spec, [compile_serving({**serving, **changes})])


def with_rights(seen: Snapshot, need: Requirements, *refused: str) -> Snapshot:
    """Grant everything but some resources, and make every namespace."""
    rights = {right: right.resource not in refused for right in need.rights}
    return replace(seen, rights=rights, namespaces=dict.fromkeys(need.namespaces, True))


def said(subject: str, seen: Snapshot, need: Requirements = GENERAL) -> list[tuple[Status, str]]:
    lines = diagnose(with_rights(seen, need), need)
    return [(line.mark, line.text) for line in lines if line.subject == subject]
