"""The components: args in, resources and outputs out.

Nothing is decided here. _described.py compiles everything before the component is registered, so an
error leaves no resource behind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakKeyDictionary

import pulumi

from kthena_components.core import naming
from kthena_components.core.findings import Finding, SpecError, count_of, render_findings
from kthena_components.core.values.dataclass import dataclass
from kthena_components.resources._apply import ROLE, SERVING_GROUP, Scope, apply, awaited
from kthena_components.resources._call import refuse_call, refuse_options
from kthena_components.resources._cluster_objects import claim, running
from kthena_components.resources._model import read_hf_configs
from kthena_components.resources._outputs import (
    Outputs,
    report,
    shown_of_args,
    to_tokens,
    without_objects,
    without_tokens,
)
from kthena_components.resources.args import (
    HyperNodeTopologyArgs,
    ModelServingArgs,
    QueueArgs,
    ServingGroupArgs,
)
from kthena_components.resources.role_args import StandaloneRoleArgs

if TYPE_CHECKING:
    from kthena_components.resources._compiled import Described

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
        self.findings, self.subject = tuple(findings), subject
        message = without_tokens(render_findings(findings, f"{subject} is refused"))
        reasons = [(finding.path, without_tokens(str(finding))) for finding in findings]
        super().__init__(message, [{"property_path": p, "reason": r} for p, r in reasons])


class _Component(pulumi.ComponentResource):
    """A component that refuses arguments which its `__init__` does not take, as wrong args.

    Not a wrapper of `__init__`: Pulumi takes the line of the program from the calls of `__init__`.
    """

    def __new__(cls, *stated: object, **named: object) -> Self:
        """Check the call, except in a subclass that has its own `__init__`."""
        if cls.__init__.__module__ == __name__:
            kind = cls.__name__
            found = list(refuse_call(cls.__init__, kind, stated, named))
            if found:
                name = stated[0] if stated else named.get("name")
                raise RefusedError(found, f"{kind} '{name}'" if isinstance(name, str) else kind)
        return super().__new__(cls)


class ModelServing(_Component):
    """A served model: several ServingGroups with the same roles, on the chosen backend."""

    name: pulumi.Output[str]
    """Name of the serving and of its front Service."""
    namespace: pulumi.Output[str]
    """Kubernetes namespace."""
    endpoint: pulumi.Output[str | None]
    """URL of the front Service inside the cluster; null without `expose`. Resources that use it are
    created when the engines are ready.
    """
    addresses: pulumi.Output[Sequence[str]]
    """The value of ENTRY_ADDRESS in each engine, with backend native or a LeaderWorkerSet: host
    names without a port, group by group, in each group role by role. Empty where the controller
    chooses names or ordinals: with the other backends, several roles in LWS, or `autoscaled`.
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
        made, late, notes = _describe("ModelServing", name, args, {"name": name}, opts)
        super().__init__(naming.MODEL_SERVING, name, made.inputs, opts)
        scope = Scope(root=self, name=name, serving=made.name, timeouts=_timeouts(opts))
        resources = apply(scope, made.manifests, late)
        report(self, notes)
        _publish(self, made.outputs)
        ready = awaited(made.manifests, resources)
        self.endpoint = _resolved_after(pulumi.Output.all(*ready), made.outputs["endpoint"])


class ServingGroup(_Component):
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
        made, late, notes = _describe("ServingGroup", name, args, {"name": name}, opts)
        super().__init__(SERVING_GROUP, name, made.inputs, opts)
        scope = Scope(root=self, name=name, serving=made.name, timeouts=_timeouts(opts))
        scope.made[made.group, None] = self
        apply(scope, made.manifests, late)
        report(self, notes)
        _publish(self, made.outputs)


class Role(_Component):
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
        made, late, notes = _describe("Role", name, args, {"name": name}, opts)
        super().__init__(ROLE, name, made.inputs, opts)
        scope = Scope(root=self, name=name, serving=made.name, timeouts=_timeouts(opts))
        scope.made[made.group, made.role] = self
        apply(scope, made.manifests, late)
        report(self, notes)
        _publish(self, made.outputs)


class HyperNodeTopology(_Component):
    """The network of a cluster, as HyperNodes that Volcano uses to place groups."""

    names: pulumi.Output[Sequence[str]]
    """Names of the HyperNodes, every child before its parent."""
    tiers: pulumi.Output[Rows]
    """One row for each tier, the closest first: tier, name and number of HyperNodes."""

    def __init__(
        self, name: str, args: HyperNodeTopologyArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Register the component and all its resources, or raise RefusedError before that."""
        made, late, notes = _describe("HyperNodeTopology", name, args, {}, opts)
        super().__init__(TOPOLOGY, name, made.inputs, opts)
        scope = Scope(root=self, name=name, timeouts=_timeouts(opts))
        apply(scope, made.manifests, late)
        report(self, notes)
        _publish(self, made.outputs)


class Queue(_Component):
    """A Volcano Queue: a share of the cluster that servings are scheduled from."""

    name: pulumi.Output[str]
    """Name of the Queue, unknown in a preview until it is created."""

    def __init__(
        self, name: str, args: QueueArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Register the component and its Queue, or raise RefusedError before that."""
        made, late, _ = _describe("Queue", name, args, {"name": name}, opts)
        super().__init__(QUEUE, name, made.inputs, opts)
        scope = Scope(root=self, name=name, serving=made.name, timeouts=_timeouts(opts))
        (queue,) = apply(scope, made.manifests, late).values()
        self.name = _resolved_after(queue.id, made.name)
        self.register_outputs(dict(made.outputs))


def _describe(
    kind: str,
    name: str,
    args: object,
    defaults: Mapping[str, Any],
    opts: pulumi.ResourceOptions | None,
) -> "tuple[Described, Outputs, Sequence[Finding]]":
    """Compile args and return the messages; or raise RefusedError with all reasons."""
    # A program may only name a component, and this import takes longer than all others together.
    from kthena_components.resources._compiled import DESCRIBED  # noqa: PLC0415

    def made(stated: object) -> "tuple[Described, Outputs]":
        plain, late = to_tokens(stated)
        return DESCRIBED[kind]({**defaults, **read_hf_configs(plain)}), late

    def check(stated: object) -> Sequence[Finding]:
        try:
            return made(stated)[0].findings
        except SpecError as error:
            return error.findings

    try:
        args = without_objects(args)
        described, late = made(args)
    except SpecError as error:
        findings = shown_of_args(error.findings, check, args)
        raise RefusedError(findings, f"{kind} '{name}'") from None
    refused = [*refuse_options(opts, described.manifests)]
    if refused:
        raise RefusedError(refused, f"{kind} '{name}'")
    twice = claim(f"{kind} '{name}'", described.manifests, opts)
    if twice is not None:
        raise RefusedError([twice], f"{kind} '{name}'")
    if "shape" in described.inputs:
        show_later(described.inputs["shape"])
    # The namespace may be an Output.
    inputs, outputs = late.restore(described.inputs), late.restore(described.outputs)
    restored = replace(described, inputs=inputs, outputs=outputs)
    return restored, late, shown_of_args(described.findings, check, args)


def _timeouts(opts: pulumi.ResourceOptions | None) -> pulumi.CustomTimeouts | None:
    return opts.custom_timeouts if opts else None


def _publish(component: pulumi.ComponentResource, outputs: Mapping[str, Any]) -> None:
    """Set a component's outputs, and register them."""
    at_once = pulumi.Output.all()
    for key, value in outputs.items():
        setattr(component, key, _resolved_after(at_once, value))
    component.register_outputs(outputs)


def _resolved_after(there: pulumi.Output[Any], value: T) -> pulumi.Output[T]:
    """Create an Output of a known value; its users wait until `there` resolves."""
    return there.apply(lambda _: value)


# Shows the sizes of a program's servings as one table, in `pulumi preview` and `pulumi up`.
#
# Pulumi awaits Outputs after the program has ended, so an Output of the first component knows the
# components of all. In other languages, components are constructed one by one and have a table
# each.


_Rows = Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class _Sizes:
    """The components of a program."""

    waiting: list[_Rows] = field(default_factory=list)
    """Components that no table has shown yet, each with its rows."""
    servings: int = 0
    pods: int = 0
    gpus: int = 0

    def show(self, _: object) -> None:
        """Log a table of what waits, below the totals of the whole program."""
        # An import of the components alone loads no compiler, and this is part of it.
        from kthena_components.core.plan.report import gpu_count, render_rows  # noqa: PLC0415

        rows = [row for each in self.waiting for row in each]
        if not rows:
            return
        so_far = " so far" if self.servings else ""
        self.servings += len(self.waiting)
        self.pods += sum(row["pods"] for row in rows)
        self.gpus += gpu_count(rows)
        self.waiting.clear()
        counts = ((self.servings, "serving"), (self.pods, "pod"), (self.gpus, "GPU"))
        totals = ", ".join(count_of(number, word) for number, word in counts)
        pulumi.log.info(f"{totals}{so_far}:\n{render_rows(rows)}")


_programs: WeakKeyDictionary[object, _Sizes] = WeakKeyDictionary()


def show_later(rows: _Rows) -> None:
    """Show the sizes of a component together with those of the program's other components.

    Args:
        rows: Its sizes, one row for each role.
    """
    sizes = _programs.setdefault(running(), _Sizes())
    sizes.waiting.append(rows)
    if len(sizes.waiting) == 1:
        pulumi.Output.from_input(None).apply(sizes.show)
