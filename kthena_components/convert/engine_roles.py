"""Describes engines whose controller completes their pods, each as a role with an engine. Pure.

The package's own launcher takes the place of what the controller adds. The sizes, the model and the
options are those that the checks read from the object (`Kind.facts`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.convert.engine_pods import EnginePod, engine_pod
from kthena_components.core.engines import CommandFacts, Transfer
from kthena_components.core.engines.kv_transfer import FLAGS
from kthena_components.core.engines.writer import Words, words_for
from kthena_components.core.facts.listening import DEFAULT_PORTS
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.objects.object import PodSet
from kthena_components.core.plan.read_back import stated
from kthena_components.core.spec.enums import EngineKind, Launcher
from kthena_components.core.spec.serving_spec import DRAIN_SECONDS
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import MaybeInt, Unknown

_DRAIN = "--shutdown-timeout"
"""vLLM's option for which a role has an argument."""
_SIZES = ("tensor", "pipeline", "data")
_GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """An argument that the user has to give, because the object does not state it."""

    argument: str
    """Path in the role: `engine.image`."""
    because: str
    """Why it is missing, as a clause."""
    value: str = ""
    """A proposal for its value, as YAML. Empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRole:
    """An engine, and the pods that it is described by."""

    name: str
    engine: EngineFacts
    lead: EnginePod
    pods: int
    """Number of pods of the engine. A head without GPUs does not count."""
    replicas: int
    """Number of such engines in one group of the object."""
    peers: tuple[EnginePod, ...] = ()
    """The other pods of the engine, one for each template."""
    folded: str = ""
    """Path of a head without GPUs, whose work the first pod does."""
    transfer: Transfer | None = None
    """How the engine shares its KV cache, if an argument can express it."""

    @property
    def command(self) -> CommandFacts:
        """The command line of the engine."""
        return self.engine.entry.command or CommandFacts()


def lead_of(engine: EngineFacts, sets: Sequence[PodSet]) -> tuple[EnginePod, str] | None:
    """Return the pod that an engine is described by, and the path of a head without GPUs, or "".

    If the head has no GPUs, a worker is returned: the ranks run there. None: the object shows no
    pods of the engine.
    """
    entry = _at(engine.entry.gpus_path, sets)
    if entry is None:
        return None
    lead = engine_pod(entry, engine.entry.container)
    worker, behind = engine.worker, worker_of(engine, sets)
    if worker is None or behind is None or engine.entry.gpus != 0 or worker.gpus == 0:
        return replace(lead, is_whole=not _shares(engine, lead)), ""
    return engine_pod(behind, worker.container or _holder(behind)), entry.owner.at(entry.path)


def worker_of(engine: EngineFacts, sets: Sequence[PodSet]) -> PodSet | None:
    """Return the workers of an engine, if they have another template than the entry."""
    return None if engine.worker is None else _at(engine.worker.gpus_path, sets)


def starts_same(pod: EnginePod, role: EngineRole) -> bool:
    """Return whether a pod starts the engine of a role, with another rank."""
    facts = read_pod({"spec": pod.set.spec}, "", context=pod.set.owner.context)
    one, other = facts.command, role.command
    if one is None or one.engine is None or one.engine != other.engine:
        return False
    same = all(getattr(one, name) == getattr(other, name) for name in ("model", *_SIZES))
    kind = str(one.engine)
    return same and words_for(kind, one.options) == words_for(kind, other.options)


def _shares(engine: EngineFacts, lead: EnginePod) -> bool:
    """Return whether an engine uses only some of the GPUs of its pod."""
    whole = read_pod({"spec": lead.set.spec}, "", context=lead.set.owner.context).all_gpus
    own = engine.entry.gpus
    return isinstance(own, int) and isinstance(whole, int) and 0 < own < whole


def _at(path: str, sets: Sequence[PodSet]) -> PodSet | None:
    """Return the pods whose path contains the given path; the longest such path wins."""
    fits = [each for each in sets if is_below(path, each)]
    return max(fits, key=lambda each: len(each.path), default=None)


def is_below(path: str, pods: PodSet) -> bool:
    """Return whether a path equals the path of some pods, or is below it."""
    at = pods.owner.at(pods.path)
    return path == at or path.startswith((f"{at}.", f"{at}["))


def _holder(pods: PodSet) -> str | None:
    """Return the name of the container with the GPUs."""
    for container in pods.spec.get("containers") or ():
        limits = mapping(mapping(mapping(container).get("resources")).get("limits"))
        if any(map(is_accelerator, map(str, limits))):
            return str(mapping(container).get("name"))
    return None


def arguments_of(role: EngineRole, extra: Mapping[str, Any]) -> tuple[dict[str, Any], list[Gap]]:
    """Return the arguments of a role, and the arguments that the object does not state.

    Args:
        extra: Its arguments from fields that only this kind of object has.
    """
    gaps = list[Gap]()
    command = role.command
    kind = str(command.engine)
    said = {_DRAIN, *(FLAGS[kind] if role.transfer else ())}
    options = {name: value for name, value in command.options.items() if name not in said}
    words = words_for(kind, options)
    gaps += _unread(command, words)
    engine = stated(
        kind=command.engine,
        image=_text(role.lead.container.get("image"), "engine.image", gaps),
        model=_text(command.model, "engine.model", gaps),
        launcher=_launcher(role, gaps),
        parallelism=_parallelism(command, gaps),
        port=_port(command, gaps),
        extra_args=words.words or None,
        kv_transfer=_transfer(role.transfer),
    )
    overlay = role.lead.rest(role.peers if role.pods > 1 else None)
    made = stated(
        name=role.name,
        replicas=role.replicas,
        worker_replicas=role.pods - 1,
        engine=engine,
        resources={**_gpus(role, gaps), **role.lead.amounts},
        drain_seconds=_drain(command),
        overlay=overlay or None,
    )
    return {**made, **extra}, gaps


def _transfer(made: Transfer | None) -> dict[str, Any] | None:
    return stated(role=made.role, connector=made.connector, port=made.port) if made else None


def _unread(command: CommandFacts, words: Words) -> Iterator[Gap]:
    """Report options whose values are not known, or that no release has, to be stated."""
    if command.hidden is not None:
        yield Gap(argument="engine.extra_args", because=command.hidden.because)
    elif words.unknown or words.foreign:
        lacks = f"no known {command.engine} has the option {' or '.join(words.foreign)}"
        because = f"the value of {' and '.join(words.unknown)} is not known here"
        known = [*words.words, *(word for name in words.unknown for word in (name, "VALUE"))]
        yield Gap(
            argument="engine.extra_args",
            because=lacks if words.foreign else because,
            value=json.dumps(known),
        )


def _text(value: object, argument: str, gaps: list[Gap]) -> str | None:
    if isinstance(value, str) and value:
        return value
    because = value.because if isinstance(value, Unknown) else "the object does not name it"
    gaps.append(Gap(argument=argument, because=because))
    return None


def _parallelism(command: CommandFacts, gaps: list[Gap]) -> dict[str, Any]:
    """Read the parallel sizes; an unknown one becomes a gap that the user must fill."""
    made: dict[str, Any] = {}
    for name in _SIZES:
        value = getattr(command, name)
        if isinstance(value, Unknown):
            gaps.append(Gap(argument=f"engine.parallelism.{name}", because=value.because))
        elif value != 1 or name == "tensor":
            made[name] = value
    if isinstance(command.expert, Unknown):
        gaps.append(Gap(argument="engine.parallelism.expert", because=command.expert.because))
    elif command.expert:
        made["expert"] = True
    return made


def _launcher(role: EngineRole, gaps: list[Gap]) -> str | None:
    """Return how several pods of vLLM are joined; the other engines have one way."""
    command = role.command
    if role.pods == 1 or command.engine != EngineKind.VLLM:
        return None
    if isinstance(command.executor, Unknown) and command.ray_role is None:
        gaps.append(Gap(argument="engine.launcher", because=command.executor.because))
        return None
    by_ray = command.executor == "ray" or command.ray_role is not None
    return str(Launcher.RAY if by_ray else Launcher.NATIVE)


def _port(command: CommandFacts, gaps: list[Gap]) -> int | None:
    port = command.options.get("--port", DEFAULT_PORTS.get(str(command.engine)))
    if isinstance(port, int):
        return port
    because = port.because if isinstance(port, Unknown) else "--port is not a number"
    gaps.append(Gap(argument="engine.port", because=because))
    return None


def _drain(command: CommandFacts) -> object:
    seconds = command.options.get(_DRAIN)
    return None if seconds == DRAIN_SECONDS else seconds


def _gpus(role: EngineRole, gaps: list[Gap]) -> dict[str, Any]:
    """Read the GPUs of a pod, their resource and their claims."""
    pod = role.engine.worker if role.folded and role.engine.worker else role.engine.entry
    if isinstance(pod.gpus, Unknown):
        gaps.append(Gap(argument="resources.gpus_per_pod", because=pod.gpus.because))
        return stated(claims=role.lead.claims or None)
    named = {d.resource for d in pod.devices if pod.container in {None, d.container} and d.count}
    own = (key for kind in ("limits", "requests") for key in role.lead.resources(kind))
    name = next((name for name in (*own, *sorted(named)) if is_accelerator(str(name))), _GPU)
    claims = _claims(role, pod)
    return stated(
        gpus_per_pod=pod.gpus, gpu_resource=None if name == _GPU else name, claims=claims or None
    )


def _claims(role: EngineRole, pod: PodFacts) -> list[dict[str, Any]]:
    """Return the claims of a pod. What has no accelerators is not for GPUs."""
    having = {device.claim.partition("/")[0] for device in pod.devices}
    other = {"gpus": False}
    return [{**one, **({} if one["name"] in having else other)} for one in role.lead.claims]


def refused_role(role: EngineRole) -> Iterator[Finding]:
    """Report an engine that no role with an `engine` can express."""
    command, engine = role.command, role.engine
    for problem in command.problems:
        if problem.hard:
            yield _refused(engine.entry.command_path, problem.text)
    if command.engine not in {*EngineKind}:
        seen = f"starts {command.engine}, for which the package writes no command line"
        hidden = command.hidden.because if command.hidden else "its command starts another program"
        yield _refused(engine.path, seen if command.engine else f"shows no engine: {hidden}")
        return
    own = engine.worker
    several = own is not None and not role.folded and role.pods > 1
    if several and own and _differ(own.gpus, engine.entry.gpus):
        seen = f"has pods of {engine.entry.gpus} and of {count_of(own.gpus, 'GPU')} in one engine"
        yield _refused(engine.path, seen)
    if role.lead.shares_claims:
        seen = "has a resource claim that pods share, or single requests of one"
        yield _refused(engine.path, seen)
    named = {d.resource for d in engine.entry.devices if is_accelerator(d.resource)}
    if len(named) > 1:
        yield _refused(engine.path, f"asks for several accelerators: {', '.join(sorted(named))}")


def _differ(one: MaybeInt, other: MaybeInt) -> bool:
    """Return whether two counts differ. Of two unknown ones, the user states the number."""
    return one != other and not (isinstance(one, Unknown) and isinstance(other, Unknown))


def _refused(path: str, seen: str) -> Finding:
    remedy = "write the role of a ModelServing by hand"
    return Finding(path=path, seen=seen, remedy=remedy, rule="convertible")
