"""The components: args in, resources and outputs out.

Nothing is decided here. Everything is compiled before the component itself is registered, so a
refusal leaves no resource behind.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pulumi

from kthena_components.backends.base import Manifest
from kthena_components.backends.compiler import Compiled, compile_group, compile_role, compile_serving
from kthena_components.backends.hypernode import emit_hyper_nodes
from kthena_components.backends.volcano import emit_queue
from kthena_components.core.findings import Finding, Level, SpecError, render_findings
from kthena_components.core.naming import entry_address, group_name
from kthena_components.core.plan import ServingPlan
from kthena_components.core.report import gpu_count, shape
from kthena_components.core.spec import QueueSpec
from kthena_components.core.spec_parse import parse_spec
from kthena_components.core.topology import TopologyPlan, build_topology, check_topology
from kthena_components.core.topology_spec import HyperNodeTopologySpec
from kthena_components.resources._apply import ROLE, SERVING_GROUP, Scope, apply
from kthena_components.resources._late import Late, hide, without_tokens
from kthena_components.resources.args import (
    HyperNodeTopologyArgs,
    ModelServingArgs,
    QueueArgs,
    ServingGroupArgs,
    StandaloneRoleArgs,
)

T = TypeVar("T")
MODEL_SERVING = "kthena:index:ModelServing"
TOPOLOGY = "kthena:index:HyperNodeTopology"
QUEUE = "kthena:index:Queue"


class RefusedError(pulumi.RunError, pulumi.InputPropertiesError):
    """Args that cannot be deployed, with every reason at once; nothing was registered.

    Pulumi prints a RunError without a traceback. As an InputPropertiesError it also tells a
    program in another language which properties are wrong.
    """

    def __init__(self, findings: Sequence[Finding], subject: str) -> None:
        """Keep the findings; the text lists one a line, below a line that counts them."""
        self.findings = tuple(findings)
        super().__init__(
            without_tokens(render_findings(findings, f"{subject} is refused")),
            [{"property_path": f.path, "reason": without_tokens(str(f))} for f in findings],
        )


class ModelServing(pulumi.ComponentResource):
    """A served model: several ServingGroups with the same roles, on the backend of choice."""

    name: pulumi.Output[str]
    """Name of the serving, and of its front Service."""
    namespace: pulumi.Output[str]
    """Kubernetes namespace."""
    endpoint: pulumi.Output[str | None]
    """URL of the front Service inside the cluster, null without `expose`. What uses it is made
    when the serving is ready."""
    pod_count: pulumi.Output[int]
    """Pods of all groups."""
    gpu_count: pulumi.Output[int]
    """GPUs of all groups, as the pods request them."""
    shape: pulumi.Output[Sequence[Mapping[str, Any]]]
    """One row for each role: engines, pods, GPUs and parallelism."""

    def __init__(
        self, name: str, args: ModelServingArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        compiled, late = _compile("ModelServing", name, args, compile_serving)
        plan, rows = compiled.plan, shape(compiled.plan)
        super().__init__(MODEL_SERVING, name, _summary(plan, rows), opts)
        scope = Scope(root=self, name=name, serving=plan.name, timeouts=_timeouts(opts))
        resources = apply(scope, compiled.manifests, late)
        ready = [r.urn for m, r in zip(compiled.manifests, resources.values(), strict=True)]
        _tell(self, compiled.findings)
        _publish(self, {**_outputs(plan, rows), "endpoint": _endpoint(plan)})
