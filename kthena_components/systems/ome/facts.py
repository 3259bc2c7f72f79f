"""The facts of OME's runtimes and InferenceServices."""

from collections.abc import Mapping
from dataclasses import replace

from kthena_components.core.facts.pod import DeviceFacts, PodFacts, read_pod
from kthena_components.core.facts.relocation import relocated
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import admitted_together, fill_requests
from kthena_components.core.values.read import name_of, sequence
from kthena_components.core.values.unknown import Unknown, is_unresolved
from kthena_components.systems.ome.view import PARALLELISM, Component, Components, Node

_GROUP_SIZE = "LWS_GROUP_SIZE"
_CONTAINERS, _INITS = "spec.containers", "spec.initContainers"
_ELSEWHERE = Unknown("a runtime says what its pods get")


def facts(view: Components) -> ServingFacts:
    """Return the facts of all components that state how their engine starts."""
    found = view.object
    engines = (_engine(view, part) for part in view.parts if _is_stated(view, part))
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=tuple(engines),
        # A runtime makes no pods; who places them, an InferenceService says.
        gang_expected=not view.partial or admitted_together(found.metadata),
    )


def _is_stated(view: Components, part: Component) -> bool:
    runner = part.entry.runner
    return not view.partial or "command" in runner or "resources" in runner


def _engine(view: Components, part: Component) -> EngineFacts:
    pods, parallelism = part.pods, part.parallelism
    env = {_GROUP_SIZE: str(pods)} if isinstance(pods, int) else {}
    if isinstance(parallelism, int) and view.accelerated is None:
        env[PARALLELISM] = str(parallelism)
    worker = part.worker
    return EngineFacts(
        path=view.object.at(part.path),
        name=f"{name_of(view.object.body)}-{part.name}",
        pods=pods,
        replicas=part.replicas,
        entry=_pod(view, part.entry, env),
        worker=None if worker is None or pods == 1 else _pod(view, worker, env),
    )


def _pod(view: Components, node: Node, env: Mapping[str, str]) -> PodFacts:
    found, fields = view.object, node.fields
    runner, others = node.runners, node.others
    shift = len(runner)

    def place(path: str) -> str:
        if path.startswith(_CONTAINERS):
            index, bracket, rest = path.removeprefix(f"{_CONTAINERS}[").partition("]")
            if not bracket:
                return found.at(f"{node.path}.runner" if runner else f"{node.path}.containers")
            number = int(index) - shift
            inner = "runner" if number < 0 else f"containers[{number}]"
            return found.at(f"{node.path}.{inner}{rest}")
        return found.at(f"{node.path}.{path.removeprefix('spec.')}")

    spec = {
        "containers": others if is_unresolved(others) else [*runner, *sequence(others)],
        "initContainers": fields.get("initContainers"),
        "volumes": fields.get("volumes"),
        "hostIPC": fields.get("hostIPC"),
    }
    pod = fill_requests(relocated(read_pod({"spec": spec}, "", env, context=found.context), place))
    return _completed(view, pod, found.at(f"{node.path}.runner.resources"))


def _completed(view: Components, pod: PodFacts, at: str) -> PodFacts:
    """Return a pod with unknown GPUs if another object decides them."""
    gap = view.accelerated
    if gap is None and view.partial and not pod.asks_for_gpus:
        gap = _ELSEWHERE
    if gap is None:
        return pod
    device = DeviceFacts(
        path=at, container=pod.container or "", resource="GPUs", limit=gap, request=gap
    )
    return replace(pod, devices=(device,))
