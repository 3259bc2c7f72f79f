"""Compiles the args of a component to the data that it registers and reports. Without Pulumi.

The first component loads this, and not the import of a component: the compiler, its models and the
rules take longer to load than everything else.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kthena_components.checker.waivers import FIELD
from kthena_components.compiler.compile import (
    Compiled,
    compile_group,
    compile_role,
    compile_serving,
)
from kthena_components.core.findings import Finding, today
from kthena_components.core.naming import group_name
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.plan.report import gpu_count, shape
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.values.dataclass import dataclass
from kthena_components.systems import find_emitter

Args = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One component."""

    name: str = ""
    """Prefix of every object's name."""
    manifests: tuple[Manifest, ...]
    findings: tuple[Finding, ...] = ()
    """Findings that stop nothing."""
    inputs: Mapping[str, Any]
    """The data about it for policies and users: counts, waivers, no template."""
    outputs: Mapping[str, Any]
    group: int | None = None
    """The first of its groups."""
    role: str | None = None
    """The first of its roles."""


def describe_serving(args: Args) -> Described:
    """Compile a ModelServing."""
    compiled = compile_serving(args, today=today())
    plan = compiled.plan
    expose = plan.expose
    url = f"http://{plan.name}.{plan.namespace}.svc:{expose.port}" if expose else None
    return _described(compiled, name=plan.name, endpoint=url, addresses=_addresses(compiled.plan))


def describe_group(args: Args) -> Described:
    """Compile a standalone ServingGroup."""
    compiled = compile_group(args, today=today())
    return _described(compiled, name=group_name(compiled.plan.name, compiled.plan.first_group))


def describe_role(args: Args) -> Described:
    """Compile a standalone Role."""
    compiled = compile_role(args, today=today())
    role = compiled.plan.roles[0].name
    return _described(compiled, name=role, addresses=_addresses(compiled.plan))


def describe_topology(args: Args) -> Described:
    """Compile the network of a cluster."""
    from kthena_components.systems.volcano.emit_cluster import compile_topology  # noqa: PLC0415 - few programs have one

    compiled = compile_topology(args)
    counts = [entry.tier for entry in compiled.plan.hyper_nodes]
    tiers = [
        {"tier": tier, "name": name, "hyper_nodes": counts.count(tier)}
        for tier, name in compiled.plan.tiers.items()
    ]
    return Described(
        manifests=compiled.manifests,
        findings=compiled.findings,
        inputs={"tiers": tiers},
        outputs={"names": [manifest.name for manifest in compiled.manifests], "tiers": tiers},
    )


def describe_queue(args: Args) -> Described:
    """Compile a Queue."""
    from kthena_components.systems.volcano.emit_cluster import compile_queue  # noqa: PLC0415 - few programs have one

    manifest = compile_queue(args)
    named = {"name": manifest.name}
    return Described(name=manifest.name, manifests=(manifest,), inputs=named, outputs=named)


DESCRIBED: Mapping[str, Callable[[Args], Described]] = {
    "ModelServing": describe_serving,
    "ServingGroup": describe_group,
    "Role": describe_role,
    "HyperNodeTopology": describe_topology,
    "Queue": describe_queue,
}
"""By the kind of the component."""


def _described(compiled: Compiled, **more: Any) -> Described:
    """Return what a component registers: its manifests, inputs and outputs."""
    plan, rows = compiled.plan, shape(compiled.plan)
    waivers = {FIELD: dict(compiled.waivers)} if compiled.waivers else {}
    return Described(
        name=plan.name,
        manifests=compiled.manifests,
        findings=compiled.findings,
        group=plan.first_group,
        role=plan.roles[0].name,
        inputs={
            "name": plan.name,
            "namespace": plan.namespace,
            "backend": plan.backend,
            "replicas": plan.groups,
            "shape": rows,
            **waivers,
        },
        outputs={
            "namespace": plan.namespace,
            "pod_count": plan.pods,
            "gpu_count": gpu_count(rows),
            "shape": rows,
            **more,
        },
    )


def _addresses(plan: ServingPlan) -> list[str]:
    emitter = find_emitter(plan.backend)
    return emitter.addresses(plan) if emitter else []
