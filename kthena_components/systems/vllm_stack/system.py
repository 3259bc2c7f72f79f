"""Releases of vllm-stack and llm-d-modelservice, as Argo CD, Flux and Pulumi write them.

So is the VLLMRuntime of the same project's operator.
"""

from kthena_components.systems.system import PRODUCTION, Kind, System, as_it_is
from kthena_components.systems.vllm_stack import runtime
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

_MADE = "production-stack's operator makes a Deployment of it"

SYSTEM = System(
    name="vllm_stack",
    title="releases of vllm-stack",
    kinds=(
        *(
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
        Kind(
            group=runtime.GROUP,
            name=runtime.RUNTIME,
            view=as_it_is,
            facts=runtime.facts,
            copies="deploymentConfig.replicas",
            not_whole="production-stack's operator completes its pods",
            without={
                "pods": _MADE,
                "templates": _MADE,
                "restarts": "a Deployment of the operator restarts its pods",
                PRODUCTION: "the operator adds probes and requests",
            },
        ),
    ),
)
