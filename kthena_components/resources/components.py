"""The components: args in, resources and outputs out.

Nothing is decided here. Everything is compiled before the component is registered, so an error
leaves no resource behind.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import pulumi

from kthena_components.compiler.compile import (
    Compiled,
    compile_group,
    compile_role,
    compile_serving,
)
from kthena_components.core.findings import Finding, SpecError, render_findings
from kthena_components.core.naming import entry_address, group_name
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.plan.report import gpu_count, shape
from kthena_components.core.topology.plan import TopologyPlan
from kthena_components.judge.waivers import FIELD
from kthena_components.resources._apply import ROLE, SERVING_GROUP, Scope, apply, awaited
from kthena_components.resources._log import report, today
from kthena_components.resources._model import read_hf_configs
from kthena_components.resources._outputs import Outputs, to_tokens, without_tokens
from kthena_components.resources._sealed import shown_of_args
from kthena_components.resources.args import ModelServingArgs, ServingGroupArgs
from kthena_components.resources.cluster_args import HyperNodeTopologyArgs, QueueArgs
from kthena_components.resources.role_args import StandaloneRoleArgs
from kthena_components.systems.volcano.emit_hyper_nodes import compile_topology

MODEL_SERVING = "kthena:index:ModelServing"
TOPOLOGY = "kthena:index:HyperNodeTopology"
QUEUE = "kthena:index:Queue"

T = TypeVar("T")
Rows = Sequence[Mapping[str, Any]]


class RefusedError(pulumi.RunError, pulumi.InputPropertiesError):
    """Args that cannot be deployed, with all reasons at once; nothing was registered.

    Pulumi prints a RunError without a traceback. As an InputPropertiesError it also reports the
    wrong properties to programs in other languages.
    """

    def __init__(self, findings: Sequence[Finding], subject: str) -> None:
        """Keep the findings; the text lists one per line, below a line that counts them."""
        self.findings = tuple(findings)
        message = without_tokens(render_findings(findings, f"{subject} is refused"))
        reasons = [(finding.path, without_tokens(str(finding))) for finding in findings]
        super().__init__(message, [{"property_path": p, "reason": r} for p, r in reasons])


class ModelServing(pulumi.ComponentResource):
    """A served model: several ServingGroups with the same roles, on the chosen backend."""

    name: pulumi.Output[str]
    """Name of the serving and of its front Service."""
    namespace: pulumi.Output[str]
    """Kubernetes namespace."""
    endpoint: pulumi.Output[str | None]
    """URL of the front Service inside the cluster; null without `expose`. Resources that use it are
    created when the engines are ready.
    """
    pod_count: pulumi.Output[int]
    """Pods of all groups."""
    gpu_count: pulumi.Output[int]
    """GPUs that the pods of all groups request."""
    shape: pulumi.Output[Rows]
    """One row for each role: engines, pods, GPUs and parallelism."""

    def __init__(
        self, name: str, args: ModelServingArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Register the component and all its resources, or raise RefusedError before that."""
        compiled, late, notes = _compile(
            "ModelServing", name, args, _on_this_day(compile_serving), {"name": name}
        )
        plan, rows = compiled.plan, shape(compiled.plan)
        super().__init__(MODEL_SERVING, name, _summary(compiled, rows), opts)
        scope = Scope(root=self, name=name, serving=plan.name, timeouts=_timeouts(opts))
        resources = apply(scope, compiled.manifests, late)
        report(self, notes)
        url = _url(plan)
        _publish(self, {**_counts(plan, rows), "name": plan.name, "endpoint": url})
        ready = awaited(compiled.manifests, resources)
        self.endpoint = _given(pulumi.Output.all(*ready), url)


class ServingGroup(pulumi.ComponentResource):
    """A standalone ServingGroup: a gang of roles on StatefulSets under Volcano."""

    name: pulumi.Output[str]
    """Name of the group and of its PodGroup."""
    namespace: pulumi.Output[str]
    """Kubernetes namespace."""
    pod_count: pulumi.Output[int]
    """Pods of the group."""
    gpu_count: pulumi.Output[int]
    """GPUs that the pods of the group request."""
    shape: pulumi.Output[Rows]
    """One row for each role: engines, pods, GPUs and parallelism."""

    def __init__(
        self, name: str, args: ServingGroupArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Register the component and all its resources, or raise RefusedError before that."""
        compiled, late, notes = _compile(
            "ServingGroup", name, args, _on_this_day(compile_group), {"name": name}
        )
        plan, rows = compiled.plan, shape(compiled.plan)
        super().__init__(SERVING_GROUP, name, _summary(compiled, rows), opts)
        scope = Scope(root=self, name=name, serving=plan.name, timeouts=_timeouts(opts))
        scope.made[plan.first_group, None] = self
        apply(scope, compiled.manifests, late)
        report(self, notes)
        group = group_name(plan.name, plan.first_group)
        _publish(self, {**_counts(plan, rows), "name": group})


class Role(pulumi.ComponentResource):
    """A standalone role of a serving: its engines' StatefulSets and Services."""

    name: pulumi.Output[str]
    """Name of the role."""
    namespace: pulumi.Output[str]
    """Kubernetes namespace."""
    addresses: pulumi.Output[Sequence[str]]
    """The value of ENTRY_ADDRESS in each engine: host names without a port."""
    pod_count: pulumi.Output[int]
    """Pods of the role."""
    gpu_count: pulumi.Output[int]
    """GPUs that the pods of the role request."""
    shape: pulumi.Output[Rows]
    """One row: engines, pods, GPUs and parallelism."""

    def __init__(
        self, name: str, args: StandaloneRoleArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Register the component and all its resources, or raise RefusedError before that."""
        compiled, late, notes = _compile(
            "Role", name, args, _on_this_day(compile_role), {"name": name}
        )
        plan, rows = compiled.plan, shape(compiled.plan)
        super().__init__(ROLE, name, _summary(compiled, rows), opts)
        scope = Scope(root=self, name=name, serving=plan.name, timeouts=_timeouts(opts))
        role = plan.roles[0].name
        scope.made[plan.first_group, role] = self
        apply(scope, compiled.manifests, late)
        report(self, notes)
        _publish(self, {**_counts(plan, rows), "name": role, "addresses": _addresses(plan)})


class HyperNodeTopology(pulumi.ComponentResource):
    """The network of a cluster, as HyperNodes that Volcano uses to place groups."""

    names: pulumi.Output[Sequence[str]]
    """Names of the HyperNodes, every child before its parent."""
    tiers: pulumi.Output[Rows]
    """One row for each tier, the closest first: tier, name and number of HyperNodes."""

    def __init__(
        self, name: str, args: HyperNodeTopologyArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Register the component and all its resources, or raise RefusedError before that."""
        topology, late, notes = _compile("HyperNodeTopology", name, args, compile_topology, {})
        tiers = _tiers(topology.plan)
        super().__init__(TOPOLOGY, name, {"tiers": tiers}, opts)
        scope = Scope(root=self, name=name, timeouts=_timeouts(opts))
        apply(scope, topology.manifests, late)
        report(self, notes)
        names = [manifest.name for manifest in topology.manifests]
        _publish(self, {"names": names, "tiers": tiers})


class Queue(pulumi.ComponentResource):
    """A Volcano Queue: a share of the cluster that servings are scheduled from."""

    name: pulumi.Output[str]
    """Name of the Queue, unknown in a preview until it is created."""

    def __init__(
        self, name: str, args: QueueArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Register the component and its Queue, or raise RefusedError before that."""
        manifest, late, _ = _compile("Queue", name, args, _compile_queue, {"name": name})
        super().__init__(QUEUE, name, {"name": manifest.name}, opts)
        scope = Scope(root=self, name=name, serving=manifest.name, timeouts=_timeouts(opts))
        made = apply(scope, [manifest], late)[manifest.key]
        self.name = _given(made.id, manifest.name)
        self.register_outputs({"name": manifest.name})


def _compile_queue(args: Mapping[str, Any]) -> Manifest:
    # Most programs create no Queue, and its rules take time to load.
    from kthena_components.systems.volcano.emit_queues import compile_queue  # noqa: PLC0415

    return compile_queue(args)


def _compile(
    kind: str, name: str, args: object, compiler: Callable[[Mapping[str, Any]], T],
    defaults: Mapping[str, Any],
) -> tuple[T, Outputs, Sequence[Finding]]:  # fmt: skip
    """Compile args and return the messages; or raise RefusedError with all reasons."""

    def made(stated: object) -> tuple[T, Outputs, Sequence[Finding]]:
        plain, late = to_tokens(stated)
        compiled = compiler({**defaults, **read_hf_configs(plain)})
        return compiled, late, getattr(compiled, "findings", ())

    def judge(stated: object) -> Sequence[Finding]:
        try:
            return made(stated)[-1]
        except SpecError as error:
            return error.findings

    try:
        compiled, late, found = made(args)
    except SpecError as error:
        told = shown_of_args(error.findings, judge, args)
        raise RefusedError(told, f"{kind} '{name}'") from None
    return compiled, late, shown_of_args(found, judge, args)


def _on_this_day(compiler: Callable[..., Compiled]) -> Callable[[Mapping[str, Any]], Compiled]:
    return partial(compiler, today=today())


def _summary(compiled: Compiled, rows: Rows) -> dict[str, Any]:
    """Return the data about a component for policies and users: counts, waivers, no template."""
    plan = compiled.plan
    waivers = {FIELD: dict(compiled.waivers)} if compiled.waivers else {}
    return {
        "name": plan.name,
        "namespace": plan.namespace,
        "backend": plan.backend,
        "replicas": plan.groups,
        "shape": rows,
        **waivers,
    }


def _counts(plan: ServingPlan, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "namespace": plan.namespace,
        "pod_count": plan.pods,
        "gpu_count": gpu_count(rows),
        "shape": rows,
    }


def _url(plan: ServingPlan) -> str | None:
    expose = plan.expose
    return f"http://{plan.name}.{plan.namespace}.svc:{expose.port}" if expose else None


def _addresses(plan: ServingPlan) -> list[str]:
    role, group = plan.roles[0], plan.first_group
    return [
        entry_address(plan.name, group, role.name, instance, plan.namespace)
        for instance in range(role.replicas)
    ]


def _tiers(plan: TopologyPlan) -> list[dict[str, Any]]:
    counts = [entry.tier for entry in plan.hyper_nodes]
    return [
        {"tier": tier, "name": name, "hyper_nodes": counts.count(tier)}
        for tier, name in plan.tiers.items()
    ]


def _timeouts(opts: pulumi.ResourceOptions | None) -> pulumi.CustomTimeouts | None:
    return opts.custom_timeouts if opts else None


def _publish(component: pulumi.ComponentResource, outputs: Mapping[str, Any]) -> None:
    """Set a component's outputs, all of them known, and register them."""
    at_once = pulumi.Output.all()
    for key, value in outputs.items():
        setattr(component, key, _given(at_once, value))
    component.register_outputs(outputs)


def _given(there: pulumi.Output[Any], value: T) -> pulumi.Output[T]:
    """Create an Output of a known value; its users wait until `there` resolves."""
    return there.apply(lambda _: value)
