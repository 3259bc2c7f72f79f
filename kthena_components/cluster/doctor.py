"""Puts the diagnostics of `doctor` together, and checks HyperNodes and their tiers. Pure."""

import re
from collections.abc import Iterator

from kthena_components.cluster.access import (
    check_backends,
    check_monitoring,
    check_namespaces,
    check_queues,
    check_rights,
    check_secret_keys,
)
from kthena_components.cluster.capacity import cap_of, check_gpus, check_nodes, check_room, gangs
from kthena_components.cluster.objects import accelerators, known, name_of
from kthena_components.cluster.requirements import HYPER_NODE, Requirements
from kthena_components.cluster.snapshot import Diagnostic, Snapshot, Status, serves
from kthena_components.cluster.stack_servings import ReadStack
from kthena_components.cluster.systems import (
    check_controllers,
    check_kthena,
    check_kubernetes,
    check_scheduler_config,
    check_volcano,
)
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.objects.object import allocatable
from kthena_components.core.spec.enums import TopologyMode
from kthena_components.core.spec.serving_spec import TopologySpec
from kthena_components.core.topology.domains import Domain
from kthena_components.core.topology.hypernode_tree import check_tree
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.volcano.view import read_hyper_nodes

SUBJECT = "HyperNodes"
_PLACE = re.compile(r"(?:hyper_nodes|manifests)\[([0-9]+)\]")
_MARKS = {Level.MANDATORY: Status.FAIL, Level.ADVISORY: Status.WARN}
_SHOWN = 3


def check_network(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Check the tree by core/topology/hypernode_tree.py, then which nodes are in it."""
    if not need.volcano or not serves(seen, HYPER_NODE):
        return
    domains = seen.domains(need.hyper_nodes)
    if isinstance(seen.hyper_nodes, Unknown):
        yield Diagnostic(
            Status.UNKNOWN, SUBJECT, f"not checked, because {seen.hyper_nodes.because}"
        )
        return
    bodies = seen.all_hyper_nodes(need.hyper_nodes)
    if not bodies:
        mark = Status.FAIL if need.topology else Status.WARN
        text = "there are none, so a hard network topology has no effect. Describe the racks in "
        yield Diagnostic(
            mark, SUBJECT, f"{text}topology of the stack, or enable Volcano's discovery"
        )
        return
    lines = list(_tree(seen, need))
    yield from lines
    if isinstance(domains, Unknown):
        yield Diagnostic(Status.UNKNOWN, SUBJECT, f"their nodes are unknown: {domains.because}")
        return
    empty = [domain.name for domain in domains if not domain.nodes]
    if empty:
        text = f"{_some(empty)} contain{'s' if len(empty) == 1 else ''} no node of this cluster. "
        yield Diagnostic(
            Status.WARN, SUBJECT, f"{text}Compare their selectors with `kubectl get nodes`"
        )
    yield from _outside(seen, domains)
    if not any(line.mark is Status.FAIL for line in lines):
        yield Diagnostic(Status.OK, SUBJECT, _tiers(domains))


def _tree(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Check the HyperNodes as a tree, and report members that are not read."""
    bodies = seen.all_hyper_nodes(need.hyper_nodes)
    read = read_hyper_nodes(bodies)
    names = [entry.name for entry in read.hyper_nodes]
    for finding in check_tree(read.hyper_nodes):
        yield _line(finding, names)
    for finding in read.problems:
        # places.py reads what the reader leaves out, such as matchExpressions.
        if finding.level is not Level.UNKNOWN:
            yield _line(finding, [name_of(body) for body in bodies])


def _line(finding: Finding, names: list[str]) -> Diagnostic:
    found = _PLACE.match(finding.path)
    name = names[int(found[1])] if found else "HyperNodes"
    remedy = f". {finding.remedy[:1].upper()}{finding.remedy[1:]}" if finding.remedy else ""
    text = f"{name}: {finding.seen}{remedy} [{finding.rule}]"
    return Diagnostic(_MARKS.get(finding.level, Status.UNKNOWN), SUBJECT, text)


def _outside(seen: Snapshot, domains: list[Domain]) -> Iterator[Diagnostic]:
    """Report nodes with GPUs that are in no HyperNode: a hard topology never uses them."""
    inside = frozenset[str]().union(*(domain.nodes for domain in domains))
    gpus = [name_of(node) for node in known(seen.nodes) if accelerators(allocatable(node))]
    out = sorted(set(gpus) - inside)
    if out:
        text = f"{len(out)} of {count_of(len(gpus), 'node')} with GPUs, {_some(out)}, "
        text += f"{'is' if len(out) == 1 else 'are'} in none, and no hard topology uses them. "
        yield Diagnostic(Status.WARN, SUBJECT, f"{text}Add them to the HyperNode of their rack")


def _tiers(domains: list[Domain]) -> str:
    counts = []
    for tier in sorted({domain.tier for domain in domains}):
        sizes = [len(domain.nodes) for domain in domains if domain.tier == tier]
        least, most = min(sizes), max(sizes)
        each = count_of(most, "node") if least == most else f"{least} to {count_of(most, 'node')}"
        counts.append(f"{len(sizes)} of tier {tier} with {each}{' each' if len(sizes) > 1 else ''}")
    return ", ".join(counts)


def check_tiers(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Report topologies whose tier has no effect or does not exist."""
    domains = seen.domains(need.hyper_nodes)
    if isinstance(domains, Unknown) or not domains:
        return
    for plan in need.plans:
        for gang in gangs(plan) if plan.gang else ():
            topology = gang.topology
            if topology is not None and topology.mode is TopologyMode.HARD:
                said = _tier(topology, domains)
                if said:
                    yield Diagnostic(Status.FAIL, "topology", f"{gang.title} {said}")


def _tier(topology: TopologySpec, domains: list[Domain]) -> str | None:
    """Say why a tier is not reached or not known; None if it is."""
    cap = cap_of(domains, topology)
    lowest, top = domains[0].tier, domains[-1].tier
    if cap is None:
        named = sorted({domain.tier_name for domain in domains if domain.tier_name})
        return (
            f"names tier '{topology.highest_tier_name}', which no HyperNode has, so the constraint "
            f"is dropped. Known: {', '.join(named) or 'none'}"
        )
    if cap > top:
        return (
            f"allows tier {cap}, but the highest is {top}, so the constraint has no effect. "
            f"Write at most {top}"
        )
    if cap < lowest:
        return (
            f"allows tier {cap}, but the lowest is {lowest}, so it is never placed. "
            f"Write at least {lowest}"
        )
    return None


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def check_stack_file(stack: ReadStack | None) -> list[Diagnostic]:
    """Report findings that make an update of a stack fail in any cluster."""
    if stack is None:
        return []
    found = [Diagnostic(Status.FAIL, "stack", str(refusal)) for refusal in stack.refusals[:_SHOWN]]
    more = len(stack.refusals) - _SHOWN
    if more > 0:
        text = f"{more} more: run `pulumi preview --stack {stack.need.stack}`"
        found.append(Diagnostic(Status.FAIL, "stack", text))
    if stack.is_empty:
        text = (
            f"{stack.file} lists no servings, so only the cluster is checked. If a program of your "
            "own makes them, `pulumi preview` checks them"
        )
        found.append(Diagnostic(Status.WARN, "stack", text))
    elif stack.renders:
        text = "its output is render, so an update writes files and does not touch this cluster"
        found.append(Diagnostic(Status.WARN, "stack", text))
    return found


def diagnose(seen: Snapshot, need: Requirements) -> list[Diagnostic]:
    """Run all checks of a cluster, in the order in which one fixes their findings."""
    return [
        *check_kubernetes(seen, need),
        *check_volcano(seen, need),
        *check_kthena(seen, need),
        *check_backends(seen, need),
        *check_monitoring(seen, need),
        *check_controllers(seen, need),
        *check_scheduler_config(seen, need),
        *check_queues(seen, need),
        *check_network(seen, need),
        *check_tiers(seen, need),
        *check_gpus(seen, need),
        *check_nodes(seen, need),
        *check_room(seen, need),
        *check_namespaces(seen, need),
        *check_secret_keys(seen, need),
        *check_rights(seen, need),
    ]
