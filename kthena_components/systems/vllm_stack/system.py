"""Releases of vllm-stack and llm-d-modelservice, as Argo CD, Flux and Pulumi write them."""

from kthena_components.systems.system import Kind, System
from kthena_components.systems.vllm_stack.facts import facts
from kthena_components.systems.vllm_stack.rules import (
    vllm_stack_ignored,
    vllm_stack_ray,
)
from kthena_components.systems.vllm_stack.view import (
    APPLICATION,
    HELM_RELEASE,
    RELEASE,
    read_releases,
)

SYSTEM = System(
    name="vllm_stack",
    title="releases of vllm-stack",
    kinds=tuple(
        Kind(
            group=group,
            name=name,
            view=read_releases,
            facts=facts,
            rules=(vllm_stack_ray, vllm_stack_ignored),
            without={
                "pods": "Helm creates them from the chart's values",
                "templates": "the chart contains them, and a release its values",
                "restarts": "the objects that Helm creates show what an update changes",
            },
        )
        for group, name in (APPLICATION, RELEASE, HELM_RELEASE)
    ),
)
