"""Checks that Dynamo's operator reads an engine's sizes as its command states them."""

from collections.abc import Iterator
from itertools import pairwise

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.findings import Finding, Level, not_checked, part_of_rule
from kthena_components.core.rules.support.admission import refuse
from kthena_components.core.values.read import first_unknown, mapping, sequence
from kthena_components.core.values.unknown import MaybeInt, known
from kthena_components.systems.dynamo.template import MAIN, template_of
from kthena_components.systems.dynamo.view import ENABLE_GROVE, Component, Graph
from kthena_components.systems.grove.rules.scaling_groups import NAME_SUM

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
    at = f"{item.path}.multinode"
    nodes, copy = known(item.nodes, at), known(command.per_rank_world, at)
    gpus = known(stated, at)
    read = _read(words, _SIZES[0]) * _read(words, _SIZES[1])
    if 0 < gpus < copy and read <= gpus:
        seen = f"is {nodes} nodes for {copy} ranks, but the operator reads {read} of them "
        seen += "from args, and would start the whole engine in each pod"
        remedy = f"write {_SIZES[0]} and its number as 2 words of args"
        yield from refuse(at, seen, remedy, _LAUNCH, Level.ADVISORY)


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
                remedy = f"shorten them by {total - NAME_SUM} characters"
                yield from refuse(at, seen, remedy, _NAMES, Level.ADVISORY)
