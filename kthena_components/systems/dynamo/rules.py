"""Checks NVIDIA Dynamo's graphs and components.

The first rules check how the operator starts an engine on several pods. The mandatory rules cover
what the API server or the operator's webhook rejects.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.findings import (
    Finding,
    advise,
    count_of,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.rules.support.admission import (
    at_least,
    joined,
    one_of,
    subdomain,
    unique,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    text,
    unknown_in,
    whole,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, known
from kthena_components.systems.dynamo.misplaced_fields import (
    enough_nodes,
    misplaced_amounts,
    misplaced_nodes,
)
from kthena_components.systems.dynamo.view import (
    ENABLE_GROVE,
    EXECUTOR,
    LEAST_NODES,
    MAIN,
    Component,
    Graph,
    template_of,
)
from kthena_components.systems.grove.rules.scaling_groups_names_gang import NAME_SUM

_LAUNCH, _NAMES = "dynamo-launch", "dynamo-name-length"
_LEADER = len("-ldr")
_SIZES = ("--tensor-parallel-size", "--pipeline-parallel-size")
_DIGITS = 9


def dynamo_launch(graph: Graph) -> Iterator[Finding]:
    """The operator can read vLLM's sizes, so that it connects the pods of a component.

    It searches args for --tensor-parallel-size and --pipeline-parallel-size with a separate number,
    and connects the pods if these sizes need more GPUs than a pod has. It reads neither short
    flags, nor flags with an equals sign, nor command: then each pod starts the whole engine.

    Pass: args with --tensor-parallel-size 16 on 2 nodes of 8 GPUs.
    Fail: args with -tp 16, or --tensor-parallel-size=16, on 2 nodes of 8 GPUs.
    Level: advisory, because releases of the operator differ.
    Source: ai-dynamo/dynamo deploy/operator/internal/dynamo/backend_vllm.go, getWorldSize.
    """
    for item in graph.components:
        nodes, template = item.nodes, template_of(item)
        if nodes in {None, 1}:
            continue
        pod = read_pod(template, item.path, context=graph.object.context)
        command = pod.command
        if command is None or command.engine != "vllm" or command.nnodes is not None:
            continue
        if command.executor not in {None, "mp"}:
            continue
        yield from _launched(item, command, pod.gpus, _args(template, pod.container))


@part_of_rule
def _launched(
    item: Component, command: CommandFacts, stated: MaybeInt, words: list[str]
) -> Iterator[Finding]:
    """Report sizes in a form that the operator does not read: each pod starts a whole engine."""
    at = f"{item.path}.multinode"
    nodes, copy = known(item.nodes, at), known(command.per_rank_world, at)
    gpus = known(stated, at)
    read = _read(words, _SIZES[0]) * _read(words, _SIZES[1])
    if 0 < gpus < copy and read <= gpus:
        seen = (
            f"is {count_of(nodes, 'node')} for {count_of(copy, 'rank')}, but the "
            f"operator reads {read} of them "
        )
        seen += "from args, and would start the whole engine in each pod"
        remedy = f"write {_SIZES[0]} and its number as two items of args"
        yield advise(at, seen, remedy, _LAUNCH)


def _args(template: object, container: str | None) -> list[str]:
    """Return the words of args, split at blanks as the operator does."""
    spec = mapping(mapping(template).get("spec"))
    for entry in map(mapping, sequence(spec.get("containers"))):
        if entry.get("name", MAIN) == container:
            return [
                w
                for arg in sequence(entry.get("args"))
                if isinstance(arg, str)
                for w in arg.split()
            ]
    return []


def _read(words: list[str], flag: str) -> int:
    """Read a size as the operator does: 1 if it finds no number after the flag."""
    for word, following in pairwise(words):
        if word == flag and following.isdecimal() and len(following) <= _DIGITS:
            return int(following)
    return 1


def dynamo_name_length(graph: Graph) -> Iterator[Finding]:
    """With Grove, the names of a graph and its components are short enough for pod names.

    Together they have at most 45 characters. A component on several nodes counts twice, plus -ldr:
    the names of its scaling group and its leader contain it.

    Pass: graph vllm-disagg (11) and decode on 2 nodes (6 + 10): 27 characters.
    Fail: graph deepseek-r1-disaggregated (25) and prefill-worker on 2 nodes (14 + 18): 57.
    Level: advisory, because newer operators shorten the graph's name.
    Source: ai-dynamo/dynamo deploy/operator/internal/webhook/validation/dynamographdeployment.go.
    """
    if graph.is_single or graph.without_grove:
        return
    off = graph.annotations.get(ENABLE_GROVE)
    for item in graph.components:
        at = item.path if item.alpha else f"{item.path}.name"
        if gap := first_unknown(graph.name, item.name, item.nodes, off):
            yield not_checked(at, gap)
        elif isinstance(graph.name, str) and isinstance(item.name, str):
            several = isinstance(item.nodes, int) and item.nodes > 1
            twice = len(item.name) + _LEADER if several else 0
            total = len(graph.name) + len(item.name) + twice
            if total > NAME_SUM:
                parts = f"{len(graph.name)} (graph) + {len(item.name)} (component)"
                parts += f" + {twice} (its leader)" if several else ""
                seen = (
                    f"gives names of {parts} = {total} characters, but at most {NAME_SUM} are "
                    "allowed"
                )
                remedy = f"shorten them by {count_of(total - NAME_SUM, 'character')}"
                yield advise(at, seen, remedy, _NAMES)


_SHAPE = "dynamo-shape"
_MOST = 25
_WORKERS = ("worker", "prefill", "decode")
_ANNOTATIONS = {
    "nvidia.com/grove-update-strategy": ("RollingRecreate", "OnDelete"),
    "nvidia.com/dynamo-kube-discovery-mode": ("pod", "container"),
}


def dynamo_shape(graph: Graph) -> Iterator[Finding]:
    """A graph has 1 to 25 components with unique names, and valid counts and values.

    multinode.nodeCount is 2 or more, and has no other name or place; replicas are 0 or more. In
    v1alpha1, GPUs are resources.limits.gpu, and other devices are below custom. An endpoint picker
    (epp) has 1 pod, and a graph has at most one. Annotations have values that the operator
    supports.

    Pass: 3 components, one with nodeCount 2; the annotation for vLLM's executor with mp.
    Fail: nodeCount 1; numberOfNodes 2, as it was named at first; 2 components named decode; the
    annotation for vLLM's executor with mpi; resources.limits with nvidia.com/gpu in v1alpha1.
    Level: mandatory.
    Source: ai-dynamo/dynamo deploy/operator/internal/webhook/validation/dynamographdeployment.go,
    shared.go; deploy/operator/api/v1beta1.
    """
    yield from subdomain("metadata.name", graph.name)
    if gap := unknown_in(graph.listed):
        yield not_checked(graph.at, gap)
    elif graph.spec and not 1 <= len(graph.components) <= _MOST:
        seen = f"has {len(graph.components)} components, but must have 1 to {_MOST}"
        yield refuse(graph.at, seen, "split the graph" if graph.components else "add one")
    named = [(f"{item.path}.name", item.name) for item in graph.components if not item.alpha]
    yield from unique(named, _SHAPE, "components")
    for item in graph.components:
        fields, multinode = item.fields, item.fields.get("multinode")
        yield from at_least(f"{item.path}.replicas", fields.get("replicas"), 0)
        if gap := unknown_in(multinode):
            yield not_checked(f"{item.path}.multinode", gap)
        nodes, at = mapping(multinode).get("nodeCount"), f"{item.path}.multinode.nodeCount"
        yield from misplaced_nodes(item)
        yield from misplaced_amounts(item)
        number = whole(nodes)
        if isinstance(number, int) and number < LEAST_NODES:
            seen = f"is {display(number)}, but must be at least {LEAST_NODES}, and 1 node is the "
            yield refuse(at, f"{seen}default", enough_nodes(item, graph.object.context))
        elif not isinstance(nodes, Unknown):
            yield from at_least(at, nodes, LEAST_NODES, _SHAPE)
        yield from _executor(f"{item.path}.annotations", mapping(fields.get("annotations")))
    yield from _executor("metadata.annotations", graph.annotations)
    for key, allowed in _ANNOTATIONS.items():
        value = graph.annotations.get(key)
        yield from one_of(f"metadata.annotations.{key}", value, allowed)
    yield from _pickers(graph)


def _executor(at: str, annotations: Mapping[str, Any]) -> Iterator[Finding]:
    value = annotations.get(EXECUTOR)
    lower = value.lower() if isinstance(value, str) and not unknown_in(value) else value
    yield from one_of(f"{at}.{EXECUTOR}", lower, ("mp", "ray"))


def _pickers(graph: Graph) -> Iterator[Finding]:
    """Check endpoint pickers: one in a graph, with one replica on one node."""
    pickers = [item for item in graph.components if item.kind == "epp"]
    for item in pickers:
        replicas = whole(item.fields.get("replicas"))
        if item.fields.get("multinode") is not None and isinstance(item.nodes, int):
            seen = f"is {count_of(item.nodes, 'node')}, but an endpoint picker runs on 1"
            yield refuse(f"{item.path}.multinode", seen, remove())
        if isinstance(replicas, int) and replicas >= 0 and replicas != 1:
            seen = f"is {display(replicas)}, but there is 1 endpoint picker"
            yield refuse(f"{item.path}.replicas", seen, write(1))
    if len(pickers) > 1:
        seen = f"is 1 of {len(pickers)} endpoint pickers, and a graph has at most one"
        yield refuse(pickers[1].path, seen, "remove all but one")


def dynamo_placement(graph: Graph) -> Iterator[Finding]:
    """Fields that need Grove are only set with Grove, and topology domains are complete.

    priorityClassName and minAvailable need Grove, which an annotation disables and a
    DynamoComponentDeployment never uses. minAvailable is at most replicas. A component's
    topologyConstraint needs one in the graph, and at least one packDomain is set.

    Pass: minAvailable 1 of 2 replicas, and no annotation enable-grove.
    Fail: minAvailable 1 with enable-grove "false"; a component's packDomain rack and none in spec.
    Level: mandatory.
    Source: ai-dynamo/dynamo deploy/operator/internal/webhook/validation/dynamographdeployment.go,
    shared_v1beta1.go.
    """
    single = graph.is_single
    if gap := unknown_in(graph.annotations.get(ENABLE_GROVE)):
        yield not_checked(f"metadata.annotations.{ENABLE_GROVE}", gap)
    outside = single or graph.without_grove
    why = "which a DynamoComponentDeployment never uses"
    why = why if single else f'but {ENABLE_GROVE} is "false"'
    remedy = remove() if single else either(remove(), f"the annotation {ENABLE_GROVE}")
    asked = [] if single else [("spec.priorityClassName", graph.spec.get("priorityClassName"))]
    asked += [(f"{c.path}.minAvailable", c.fields.get("minAvailable")) for c in graph.components]
    for at, value in asked:
        if outside and value not in (None, "") and unknown_in(value) is None:
            seen = f"is {display(value)}, which needs Grove, {why}"
            yield refuse(at, seen, remedy)
    for item in graph.components:
        yield from _minimum(item)
    if not single:
        yield from _domains(graph)


def _minimum(item: Component) -> Iterator[Finding]:
    given, at = item.fields.get("minAvailable"), f"{item.path}.minAvailable"
    yield from at_least(at, given, 1)
    minimum, replicas = whole(given), whole(item.fields.get("replicas", 1))
    if isinstance(minimum, int) and isinstance(replicas, int) and minimum > replicas > 0:
        seen = f"is {display(minimum)}, but replicas is {display(replicas)}"
        yield refuse(at, seen, f"write {display(replicas)} or less")


@part_of_rule
def _domains(graph: Graph) -> Iterator[Finding]:
    """Check topologyConstraint of a graph against its components: each needs a domain."""
    own, at = graph.spec.get("topologyConstraint"), "spec.topologyConstraint"
    parts = [(c.path, c.fields.get("topologyConstraint")) for c in graph.components]
    require_known(at, graph.listed, own, *(part for _, part in parts))
    stated = [(path, mapping(part)) for path, part in parts if part is not None]
    if stated and own is None:
        seen = f"is not given, but {count_of(len(stated), 'component')} has one"
        yield refuse(at, seen, "write one with the widest domain")
    elif own is not None and not stated and mapping(own).get("packDomain") in (None, ""):
        seen = f"states no packDomain, and neither do the {len(parts)} components"
        yield refuse(at, seen, "write packDomain, for example rack")
    for path, part in stated:
        if part.get("packDomain") in (None, ""):
            seen = "states 0 domains, but a component's constraint needs one"
            where = f"{path}.topologyConstraint.packDomain"
            yield refuse(where, seen, "write, for example, rack")


def dynamo_restart(graph: Graph) -> Iterator[Finding]:
    """The order of a restart lists every component once, and is not given for a parallel restart.

    Pass: order [prefill, decode] in a graph of these 2 components.
    Fail: order [decode] in a graph of 2 components; an order with type Parallel.
    Level: mandatory.
    Source: ai-dynamo/dynamo deploy/operator/internal/webhook/validation/dynamographdeployment.go,
    validateRestartStrategy.
    """
    strategy = mapping(mapping(graph.spec.get("restart")).get("strategy"))
    given, at = strategy.get("order"), "spec.restart.strategy.order"
    names = [item.name for item in graph.components]
    if given is None:
        return
    require_known(at, graph.listed, given, strategy.get("type"), *sequence(given), *names)
    if str(text(strategy.get("type"), "")).lower() == "parallel" and sequence(given):
        seen = f"has {len(sequence(given))} entries, but the restart is parallel"
        yield refuse(at, seen, either(remove(), "write type: Sequential"))
        return
    known = sorted(name for name in names if isinstance(name, str))
    order = [name if isinstance(name, str) else display(name) for name in sequence(given)]
    if order and (len(order) != len(set(order)) or set(order) != set(known)):
        seen = f"is {joined(order)}, and the graph has {len(known)}: {joined(known)}"
        yield refuse(at, seen, "name each of them once")


def dynamo_gpu_memory(graph: Graph) -> Iterator[Finding]:
    """The GPU memory service requires a worker whose main container has a GPU.

    Pass: gpuMemoryService in a worker with 1 GPU.
    Fail: gpuMemoryService in a worker with 0 GPUs; gpuMemoryService in a frontend.
    Level: mandatory.
    Source: ai-dynamo/dynamo deploy/operator/internal/webhook/validation/shared.go,
    validateGPUMemoryService.
    """
    for item in graph.components:
        holder, at = item.fields, f"{item.path}.gpuMemoryService"
        if not item.alpha:
            holder = mapping(item.fields.get("experimental"))
            at = f"{item.path}.experimental.gpuMemoryService"
        given = holder.get("gpuMemoryService")
        off = item.alpha and mapping(given).get("enabled") in (None, False)
        if given is None or (off and unknown_in(given) is None):
            continue
        gpus = read_pod(template_of(item), item.path, context=graph.object.context).gpus
        if gap := first_unknown(given, mapping(given).get("enabled"), item.kind, gpus):
            yield not_checked(at, gap)
        elif item.kind not in _WORKERS:
            seen = f"is given, but the component is {display(item.kind)} and not one of "
            yield refuse(at, f"{seen}{', '.join(_WORKERS)}", remove())
        elif gpus == 0:
            seen = "is given, but the main container has a limit of 0 GPUs"
            yield refuse(at, seen, "write a limit of 1 GPU or more")
