"""Checks whether nodes have enough GPUs: in total, and for one group inside its HyperNodes. Pure.

A node counts if it accepts the pods. Affinity between pods is not checked.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from kthena_components.cluster.objects import (
    Body,
    accelerators,
    known,
    labels_of,
    name_of,
    namespace_of,
    requested,
    takes_pods,
)
from kthena_components.cluster.requirements import Requirements
from kthena_components.cluster.snapshot import Diagnostic, Snapshot, Status
from kthena_components.core import naming
from kthena_components.core.findings import count_of
from kthena_components.core.objects.object import allocatable
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.plan.templates import requests_of
from kthena_components.core.spec.enums import TopologyMode
from kthena_components.core.spec.serving_spec import TopologySpec
from kthena_components.core.templates import Template
from kthena_components.core.topology.domains import Domain
from kthena_components.core.topology.node_fit import (
    Amounts,
    least_of,
    obstacles,
    slots,
    tolerating_devices,
    untolerated,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown


def check_gpus(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Count accelerators: total, used by pods, free."""
    subject = "GPUs"
    if isinstance(seen.nodes, Unknown):
        yield Diagnostic(
            Status.UNKNOWN, subject, f"cannot be counted, because {seen.nodes.because}"
        )
        return
    holding = [node for node in seen.nodes if accelerators(allocatable(node))]
    if not holding:
        text = f"none of {count_of(len(seen.nodes), 'node')} offers any. Install a device plugin"
        asked = any(accelerators(gang.least) for plan in need.plans for gang in gangs(plan))
        yield Diagnostic(Status.FAIL if asked else Status.WARN, subject, text)
        return
    total = sum(accelerators(allocatable(node)) for node in holding)
    text = f"{total} on {count_of(len(holding), 'node')} ({_kinds(holding)})"
    if isinstance(seen.pods, Unknown):
        yield Diagnostic(
            Status.OK, subject, f"{text}; how many are free is not known: {seen.pods.because}"
        )
        return
    free = sum(max(0, accelerators(left)) for left in free_on(seen, seen.pods).values())
    away = sum(not takes_pods(node) for node in holding)
    off = f"; {count_of(away, 'node')} not ready or cordoned" if away else ""
    yield Diagnostic(Status.OK if free else Status.WARN, subject, f"{text}, {free} free{off}")


def _kinds(nodes: Sequence[Body]) -> str:
    """List how many nodes have how many of what: `16 × 8 nvidia.com/gpu`."""
    counts: dict[str, int] = {}
    for node in nodes:
        for resource, amount in sorted(allocatable(node).items()):
            if is_accelerator(resource) and amount:
                each = f"{int(amount)} {resource}"
                counts[each] = counts.get(each, 0) + 1
    return ", ".join(f"{number} × {each}" for each, number in sorted(counts.items()))


def check_nodes(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Report roles whose pods no large enough node accepts."""
    roles = ((plan, role) for plan in need.plans if plan.groups for role in plan.roles)
    found = (
        _check_pods(
            f"{plan.namespace}/{plan.name}: no node accepts a pod of {role.name}", pod, seen
        )
        for plan, role in roles
        for pod in _templates(role)
    )
    yield from dict.fromkeys(line for line in found if line)


def _check_pods(title: str, template: Template, seen: Snapshot) -> Diagnostic | None:
    """Report a template that every large enough node refuses, with the reasons counted."""
    spec, requests = mapping(template.get("spec")), requests_of(template)
    large = [node for node in known(seen.nodes) if slots(allocatable(node), requests)]
    why = [list(obstacles(spec, node)) for node in large]
    if not all(why) or not large:
        return None
    counted = Counter(obstacle for each in why for obstacle in each).most_common()
    reasons = ", ".join(f"{number} {obstacle}" for obstacle, number in counted)
    text = f"{title}: of {count_of(len(large), 'node')} large enough, {reasons}"
    keys = sorted({str(t.get("key")) for node in large for t in untolerated(spec, node)})
    listed = ", ".join(f"{{key: {key}, operator: Exists}}" for key in keys)
    added = f"{listed} into the role's `overlay.spec.tolerations`"
    tolerant = tolerating_devices(spec, requests)
    if not all(any(obstacles(tolerant, node)) for node in large):
        plugin = "The API server's plugin ExtendedResourceToleration would add the toleration"
        return Diagnostic(Status.WARN, "nodes", f"{text}. {plugin}; without it write {added}")
    selector = "Compare its nodeSelector and affinity with `kubectl get nodes --show-labels`"
    return Diagnostic(Status.FAIL, "nodes", f"{text}. {f'Write {added}' if keys else selector}")


def free_on(seen: Snapshot, pods: Sequence[Body]) -> dict[str, dict[str, Decimal]]:
    """Return the free resources of each node that accepts pods."""
    held = requested(pods)
    return {
        name_of(node): {
            resource: amount - held.get(name_of(node), {}).get(resource, Decimal(0))
            for resource, amount in allocatable(node).items()
        }
        for node in known(seen.nodes)
        if takes_pods(node)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Pods that start together in one HyperNode."""

    title: str
    pods: int
    least: Amounts
    """The smallest request of any of them."""
    topology: TopologySpec | None
    copies: int
    specs: tuple[Body, ...]
    """One for each kind of pod, with the tolerations that the API server may add."""

    def may_use(self, node: Body) -> bool:
        """Return whether a node accepts one of its pods."""
        return any(not any(obstacles(spec, node)) for spec in self.specs)


def gangs(plan: ServingPlan) -> Iterator[Gang]:
    """Return what must be placed together: each group, and each engine with its own topology."""
    everything = [pod for role in plan.roles if role.gang_replicas for pod in _templates(role)]
    yield Gang(
        title=f"{plan.namespace}/{plan.name}: a group", pods=plan.min_member,
        least=least_of([*map(requests_of, everything)]), topology=plan.group_topology,
        copies=plan.groups, specs=_tolerant(everything),
    )  # fmt: skip
    for role in plan.roles if plan.role_topology else ():
        pods = _templates(role)
        yield Gang(
            title=f"{plan.namespace}/{plan.name}: an engine of {role.name}", pods=role.pods,
            least=least_of([*map(requests_of, pods)]), topology=plan.role_topology,
            copies=plan.groups * role.gang_replicas, specs=_tolerant(pods),
        )  # fmt: skip


def _templates(role: RolePlan) -> list[Template]:
    return [role.entry, *([role.worker] if role.worker and role.worker_replicas else [])]


def _tolerant(templates: Sequence[Template]) -> tuple[Body, ...]:
    return tuple(
        tolerating_devices(mapping(template.get("spec")), requests_of(template))
        for template in templates
    )


def check_room(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Report for each gang of a stack whether it can ever be placed, and whether it can be now."""
    for plan in need.plans:
        for gang in gangs(plan) if plan.gang and plan.groups else ():
            # check_nodes reports pods that no node accepts.
            if not known(seen.nodes) or any(map(gang.may_use, known(seen.nodes))):
                yield _check_gang(seen, need, plan, gang)
    yield from _check_sum(seen, need)


def _check_sum(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Report when the servings of a stack do not fit into the cluster together."""
    if isinstance(seen.nodes, Unknown):
        return
    asked = sum(_gpus_of(plan) for plan in need.plans)
    total = sum(accelerators(allocatable(node)) for node in seen.nodes)
    if 0 < total < asked:  # check_gpus reports a cluster without any
        many = len(need.plans) > 1
        who = "all servings together request" if many else "the serving requests"
        text = (
            f"{who} {count_of(asked, 'GPU')}, and the nodes have only {total}, so some pods never "
            "start. Add nodes, or request fewer"
        )
        yield Diagnostic(Status.FAIL, "room", text)
        return
    if len(need.plans) == 1 or isinstance(seen.pods, Unknown):
        return
    others = [pod for pod in seen.pods if not any(_is_of(pod, plan) for plan in need.plans)]
    free = sum(max(0, accelerators(left)) for left in free_on(seen, others).values())
    text = (
        f"all servings together request {count_of(asked, 'GPU')}, and {free} are not used by others"
    )
    if asked > free:
        yield Diagnostic(Status.WARN, "room", f"{text}. Pods without room wait until GPUs are free")
    else:
        yield Diagnostic(Status.OK, "room", text)


def _gpus_of(plan: ServingPlan) -> int:
    return plan.groups * sum(role.replicas * accelerators(role.requests) for role in plan.roles)


def _check_gang(seen: Snapshot, need: Requirements, plan: ServingPlan, gang: Gang) -> Diagnostic:
    """Say whether a gang fits into the empty cluster, and whether all its copies fit now."""
    domains = _usable(seen, need, gang.topology)
    if isinstance(domains, Unknown):
        return Diagnostic(
            Status.UNKNOWN, "room", f"{gang.title}: not checked, because {domains.because}"
        )
    may_use = {name_of(node) for node in known(seen.nodes) if gang.may_use(node)}
    empty = {name_of(n): allocatable(n) for n in known(seen.nodes) if name_of(n) in may_use}
    largest = max(domains, key=lambda domain: _slots_in(domain, empty, gang.least))
    most = _slots_in(largest, empty, gang.least)
    some = f", which {len(may_use)} of {count_of(len(seen.labels), 'node')} accept"
    asks = f"{gang.title} is {_asks(gang)}{some if len(may_use) < len(seen.labels) else ''}"
    tier = max(domain.tier for domain in domains)
    if most < gang.pods:
        place = f"largest HyperNode of tier {tier}, {largest.name}," if largest.name else "cluster"
        text = f"{asks}, but the {place} has room for {most} when it is empty, so it never starts"
        return Diagnostic(Status.FAIL, "room", f"{text}. {_remedy(largest)}")
    if isinstance(seen.pods, Unknown):
        text = (
            f"{asks} and fits into an empty cluster; whether it fits now is unknown: "
            f"{seen.pods.because}"
        )
        return Diagnostic(Status.OK, "room", text)
    others = [pod for pod in seen.pods if not _is_of(pod, plan)]
    free = {name: left for name, left in free_on(seen, others).items() if name in may_use}
    # HyperNodes of one tier share no node, and those of lower tiers are inside of them.
    now = sum(_slots_in(d, free, gang.least) // gang.pods for d in domains if d.tier == tier)
    where = f"HyperNodes of tier {tier} have" if largest.name else "the cluster has"
    text = f"{asks}; {where} room for {now} now, and the stack needs {gang.copies}"
    if now < gang.copies:
        return Diagnostic(
            Status.WARN, "room", f"{text}. Pods without room wait until GPUs are free"
        )
    return Diagnostic(Status.OK, "room", text)


def _remedy(largest: Domain) -> str:
    higher = ", or allow a higher tier" if largest.name else ", or add nodes"
    return f"Give it fewer pods or GPUs{higher}"


def _is_of(pod: Body, plan: ServingPlan) -> bool:
    named = labels_of(pod).get(naming.NAME) == plan.name
    return named and namespace_of(pod) == plan.namespace


def _usable(
    seen: Snapshot, need: Requirements, topology: TopologySpec | None
) -> Sequence[Domain] | Unknown:
    """List the HyperNodes that a gang may use; without a constraint, the whole cluster is one."""
    if isinstance(seen.nodes, Unknown):
        return seen.nodes
    whole = Domain(name="", tier=0, tier_name=None, nodes=frozenset(seen.labels))
    if topology is None or topology.mode is not TopologyMode.HARD:
        return [whole]
    domains = seen.domains(need.hyper_nodes)
    if isinstance(domains, Unknown):
        return domains
    cap, top = cap_of(domains, topology), max((domain.tier for domain in domains), default=0)
    if cap is None or cap > top:
        return [whole]  # check_tiers reports that the constraint has no effect
    within = [domain for domain in domains if domain.tier <= cap]
    return within or Unknown(f"no HyperNode has a tier of at most {cap}")


def cap_of(domains: Sequence[Domain], topology: TopologySpec) -> int | None:
    """Return the highest tier that a topology allows; None when no HyperNode has its name."""
    if topology.highest_tier_name is None:
        return topology.highest_tier_allowed
    named = (d.tier for d in domains if d.tier_name == topology.highest_tier_name)
    return max(named, default=None)


def _slots_in(domain: Domain, room: Mapping[str, Amounts], least: Amounts) -> int:
    return sum(slots(room[node], least) for node in domain.nodes if node in room)


def _asks(gang: Gang) -> str:
    gpus = [f"{int(n)} {name}" for name, n in sorted(gang.least.items()) if is_accelerator(name)]
    return f"{count_of(gang.pods, 'pod')} of {' and '.join(gpus) or 'no GPU'}"
