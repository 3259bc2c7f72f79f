"""Requirements on a cluster: of a stack, or of all backends when no stack is named. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kthena_components.compiler.compile import Compiled
from kthena_components.compiler.stack_secrets import secrets_of
from kthena_components.core.findings import SpecError
from kthena_components.core.plan.manifest import WRITE, Resource
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.plan.stack_file import StackSpec
from kthena_components.core.topology.spec import build_topology
from kthena_components.core.values.dataclass import dataclass
from kthena_components.systems import EMITTERS, extras, resources_of
from kthena_components.systems.volcano.emit_cluster import emit_hyper_nodes

Body = Mapping[str, Any]
Kind = tuple[str, str]
"""apiVersion and kind."""

STATEFUL_SET, SERVICE, SECRET = ("apps/v1", "StatefulSet"), ("v1", "Service"), ("v1", "Secret")
POD_GROUP = ("scheduling.volcano.sh/v1beta1", "PodGroup")
QUEUE = ("scheduling.volcano.sh/v1beta1", "Queue")
HYPER_NODE = ("topology.volcano.sh/v1alpha1", "HyperNode")
MODEL_SERVING = ("workload.serving.volcano.sh/v1alpha1", "ModelServing")
READ = ("get", "list", "watch")
VERBS = (*READ, "create", "patch", "delete")
"""Verbs of Pulumi's provider. It lists and watches objects while it waits for them."""
DEFAULT = "default"


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource. An empty namespace means the whole cluster."""

    namespace: str
    group: str
    resource: str
    verb: str


@dataclass(frozen=True, slots=True, order=True)
class SecretKey:
    """A Secret that pods use, or one key of it."""

    namespace: str
    name: str
    key: str
    """Empty: all keys."""

    def __str__(self) -> str:
        """Write it with its namespace."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What a stack needs from a cluster."""

    stack: str | None = None
    backends: frozenset[str] = frozenset(EMITTERS)
    namespaces: tuple[str, ...] = (DEFAULT,)
    kinds: frozenset[tuple[str, Kind]] = frozenset()
    """Kinds to apply, each with its namespace; empty if cluster-scoped."""
    queues: tuple[str, ...] = (DEFAULT,)
    """Queues that must exist."""
    secrets: tuple[SecretKey, ...] = ()
    """Secrets that must exist."""
    hyper_nodes: tuple[Body, ...] = ()
    """HyperNodes that the stack creates."""
    plans: tuple[ServingPlan, ...] = ()

    @property
    def topology(self) -> bool:
        """Whether any serving requests a network topology."""
        return any(plan.group_topology or plan.role_topology for plan in self.plans)

    @property
    def volcano(self) -> bool:
        """Whether anything uses Volcano."""
        return not self.stack or any(plan.gang for plan in self.plans) or bool(self.hyper_nodes)

    @property
    def rights(self) -> list[Right]:
        """All rights that an update and a destroy need."""
        plural = {(made.api_version, made.kind): made.plural for made in _every_resource()}
        found = {
            Right(namespace, kind[0].rpartition("/")[0], plural[kind], verb)
            for namespace, kind in self.kinds
            for verb in VERBS
        }
        reads = {Right(n, "", "pods", verb) for n in self.namespaces for verb in READ}
        return sorted(found | (reads if "native" in self.backends else set()))


def _every_resource() -> tuple[Resource, ...]:
    return resources_of(beside=extras())


def requirements_of_backends(namespace: str, backends: Iterable[str] = EMITTERS) -> Requirements:
    """Return the requirements of some backends, without a stack."""
    chosen = tuple(backends)
    kinds = {
        (namespace, (made.api_version, made.kind))
        for made in resources_of(chosen)
        if made.verbs == WRITE
    }
    return Requirements(namespaces=(namespace,), kinds=frozenset(kinds), backends=frozenset(chosen))


def requirements_of_stack(
    stack: str, spec: StackSpec, servings: Iterable[Compiled]
) -> Requirements:
    """Return what the servings of a stack need and the stack does not create itself."""
    compiled = list(servings)
    plans = tuple(one.plan for one in compiled)
    made = {(secret.namespace, secret.name) for secret in spec.secrets}
    taken = {key for plan in plans for key in _secrets(plan)}
    queues = {plan.queue or DEFAULT for plan in plans if plan.gang}
    return Requirements(
        stack=stack,
        backends=frozenset(plan.backend for plan in plans),
        namespaces=tuple(
            sorted({p.namespace for p in plans} | {s.namespace for s in spec.secrets})
        ),
        kinds=frozenset(_kinds(spec, compiled)),
        queues=tuple(sorted(queues - {queue.name for queue in spec.queues})),
        secrets=tuple(sorted(key for key in taken if (key.namespace, key.name) not in made)),
        hyper_nodes=_hyper_nodes(spec),
        plans=plans,
    )


def _kinds(spec: StackSpec, compiled: Iterable[Compiled]) -> Iterator[tuple[str, Kind]]:
    """List the kinds of objects, with their namespaces, that a stack creates."""
    for one in compiled:
        for manifest in one.manifests:
            yield one.plan.namespace, (str(manifest.body["apiVersion"]), manifest.kind)
    for secret in spec.secrets:
        yield secret.namespace, SECRET
    if spec.queues:
        yield "", QUEUE
    if spec.topology:
        yield "", HYPER_NODE


def _hyper_nodes(spec: StackSpec) -> tuple[Body, ...]:
    try:
        return emit_hyper_nodes(build_topology(spec.topology)) if spec.topology else ()
    except SpecError:  # the stack's own check reports it
        return ()


def _secrets(plan: ServingPlan) -> Iterator[SecretKey]:
    for role in plan.roles:
        for name, key in secrets_of(role):
            yield SecretKey(plan.namespace, name, key)


# The least permissions in a cluster that an inventory needs: lists of the whole cluster. Pure.


def _listed(api_version: str, kind: str, plural: str, *, wide: bool = False) -> Resource:
    return Resource(api_version=api_version, kind=kind, plural=plural, verbs=("list",), wide=wide)


INVENTORY: tuple[Resource, ...] = (
    _listed("v1", "Node", "nodes", wide=True),
    _listed("v1", "Pod", "pods"),
    _listed("v1", "ResourceQuota", "resourcequotas"),
    _listed("v1", "LimitRange", "limitranges"),
    _listed("v1", "PersistentVolume", "persistentvolumes", wide=True),
    _listed("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    _listed("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", wide=True),
    _listed("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", wide=True),
    _listed("scheduling.volcano.sh/v1beta1", "Queue", "queues", wide=True),
    _listed("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups"),
    _listed("kueue.x-k8s.io/v1beta1", "Topology", "topologies", wide=True),
    _listed("resource.k8s.io/v1", "ResourceSlice", "resourceslices", wide=True),
    _listed("resource.k8s.io/v1", "ResourceClaim", "resourceclaims"),
)
"""What `inventory` lists in the whole cluster. Kinds that a cluster does not serve are left out."""
