"""Rules about whole engines: in their gang, and on the nodes of a serving."""

import math
from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.facts import one_of_sizes
from kthena_components.core.facts.serving import EngineFacts, GangFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.sharding import Sharding, fits, is_whole, model_shape
from kthena_components.core.models import ModelShape
from kthena_components.core.remedies import Remedy, write
from kthena_components.core.rules.support.engine_pods import needs_gang
from kthena_components.core.rules.support.fixes import is_of_component
from kthena_components.core.rules.support.messages import cannot_check, title
from kthena_components.core.rules.support.nearest_sizes import nearest_sizes
from kthena_components.core.values.unknown import MaybeInt, Unknown, product, total

_FIELDS = ("minMember", "minAvailable")
"""The fields of a PodGroup and of a Volcano Job."""


def gang_covers_engine(facts: ServingFacts) -> Iterator[Finding]:
    """The gang covers whole engines: all pods of each role's minimum.

    A gang smaller than an engine starts engines that never work and block their GPUs. A queue of
    Kueue also admits the pods of an object together, and a PodGroup of the coscheduling plugin
    (label scheduling.x-k8s.io/pod-group) is a gang, too. A PodGroup of Volcano that the user writes
    waits at least for the pods of each engine whose pods name it. Pods without GPUs and without a
    command line of a known engine, such as web servers, need no gang.

    Pass: minMember 4 for 2 engines of 2 pods each.
    Fail: minMember 3 for 2 engines of 2 pods each; minMember 1 in a PodGroup that a StatefulSet
    with --nnodes 2 names.
    Level: mandatory; advisory if nothing schedules the pods as a gang.
    Source: Kthena v1.0.0 pkg/model-serving-controller/podgroupmanager/manager.go
    calculateRequirements: minMember = Σ (1 + workers) × minimum.
    """
    if facts.gang is None:
        yield from _without_gang(facts)
        return
    wanted = _least_pods(facts)
    member = facts.gang.min_member
    unknown = next((value for value in (wanted, member) if isinstance(value, Unknown)), None)
    if unknown is not None:
        yield Finding(
            path=facts.gang.path,
            seen=f"was not checked, because {unknown.because}",
            level=Level.UNKNOWN,
        )
    elif member != wanted:
        yield Finding(
            path=facts.gang.path,
            seen=f"the gang needs {count_of(member, 'pod')} to start, "
            f"but its engines have {wanted} that must start together",
            remedy=_members(facts.gang, wanted),
        )


def _without_gang(facts: ServingFacts) -> Iterator[Finding]:
    """Advise a gang for each engine of several pods, unless Volcano schedules them."""
    if facts.gang_expected is True:
        return
    for engine in filter(needs_gang, facts.engines):
        if isinstance(facts.gang_expected, Unknown):
            yield from cannot_check(engine, facts.gang_expected, path=engine.path)
            continue
        yield Finding(
            path=engine.path,
            seen=f"{title(engine)} has {count_of(engine.pods, 'pod')} that must start together, "
            "and nothing schedules them as a gang",
            remedy=f"let Volcano schedule the pods: {_as_gang(facts, engine)}",
            level=Level.ADVISORY,
        )


def _as_gang(facts: ServingFacts, engine: EngineFacts) -> str:
    """Say how Volcano places the pods of an engine together."""
    if is_of_component(engine):
        return "write scheduler: volcano"
    count = engine.siblings.count if engine.siblings is not None else 0
    if not facts.gang_by_annotation or not isinstance(engine.pods, int):
        return "write schedulerName: volcano"
    if count >= engine.pods:
        least = f'the annotation {naming.GANG_MINIMUM}: "{count}" in the metadata of this object'
        at_once = "podManagementPolicy: Parallel, " if engine.order is not None else ""
        return f"write {at_once}schedulerName: volcano in the pod template, and {least}"
    return (
        f"create a PodGroup with minMember {engine.pods}, and write schedulerName: volcano and the "
        f"annotation {naming.POD_GROUP} with the name of the PodGroup in the pod templates of all "
        "objects of the engine"
    )


def _members(gang: GangFacts, wanted: MaybeInt) -> str:
    """Write the number of pods, if a field states it."""
    field = gang.path.rpartition(".")[2]
    if field in _FIELDS:
        return write(wanted, f"write {field} {wanted}")
    return f"write minMember {wanted}"


def _least_pods(facts: ServingFacts) -> MaybeInt:
    """Return the pods of each role's minimum. The instances of a role may differ."""
    roles: dict[str, list[EngineFacts]] = {}
    for engine in facts.engines:
        roles.setdefault(engine.name, []).append(engine)
    minima = facts.gang.minima if facts.gang else {}
    return total([_of_role(engines, minima.get(name)) for name, engines in roles.items()])


def _of_role(engines: list[EngineFacts], minimum: MaybeInt | None) -> MaybeInt:
    """Return the pods of a role that start together; without a minimum, all of them."""
    every = total([product(engine.pods, engine.replicas) for engine in engines])
    sizes = {engine.pods for engine in engines}
    if minimum is None or minimum == total([engine.replicas for engine in engines]):
        return every
    if len(sizes) > 1:
        return Unknown("the instances of a role have different numbers of pods")
    return product(sizes.pop(), minimum)


def nodes_whole(facts: ServingFacts) -> Iterator[Finding]:
    """Tensor groups fill pods evenly: TP divides the GPUs of a pod, or they divide TP.

    Otherwise one tensor group uses parts of two pods, and SGLang fails to start if (TP × PP) is not
    a multiple of its nodes.

    Pass: tensor 16 on 2 pods of 8 GPUs; tensor 4 on pods of 8.
    Fail: tensor 6 on pods of 8 GPUs: the second group has 2 ranks in one pod and 4 in the next.
    Level: mandatory.
    Source: sglang/srt/server_args.py; vllm/executor/ray_utils.py warns about split nodes.
    """
    for engine in facts.engines:
        command, gpus, pods = engine.entry.command, engine.entry.gpus, engine.pods
        if command is None or not isinstance(pods, int) or pods < 2:  # noqa: PLR2004 - one pod is always whole
            continue
        tensor = command.tensor
        if not isinstance(gpus, int) or not isinstance(tensor, int) or gpus == 0:
            continue
        if not is_whole(tensor, gpus, pods):
            nearest = one_of_sizes(command, "tensor", _nearest_whole(tensor, gpus))
            yield Finding(
                path=engine.entry.command_path,
                seen=f"{title(engine)} has tensor {tensor} on pods of "
                f"{count_of(gpus, 'GPU')}, so one tensor "
                "group would fill a part of a pod, and a pod would hold parts of two groups",
                remedy=_whole_sizes(engine, command, (gpus, pods)) or nearest,
            )


def _whole_sizes(engine: EngineFacts, command: CommandFacts, held: tuple[int, int]) -> Remedy | str:
    """Suggest sizes that fit the model as well; nothing if its shape is not known."""
    shape = model_shape(command, engine.entry.shape)
    if not isinstance(shape, ModelShape):
        return ""

    def fits_both(other: Sharding) -> bool:
        tensor = other.command.tensor
        return isinstance(tensor, int) and is_whole(tensor, *held) and fits(other, blocks=True)

    return nearest_sizes(Sharding(engine, command, shape), fits_both)


def _nearest_whole(tensor: int, gpus: int) -> tuple[int, int]:
    """Return the valid sizes just below and above an invalid one: multiples or divisors."""
    if tensor > gpus:
        return tensor // gpus * gpus, (tensor // gpus + 1) * gpus
    small = [n for n in range(1, math.isqrt(gpus) + 1) if gpus % n == 0]
    divisors = [*small, *(gpus // n for n in small)]
    return max(n for n in divisors if n < tensor), min(n for n in divisors if n > tensor)
