"""Checks that the pods of an engine start together."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import EngineFacts, GangFacts, ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.remedies import either, set_option, write
from kthena_components.core.rules.support.messages import unjudged
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import MaybeInt, Unknown


def ray_cluster_size_equals_group(facts: ServingFacts) -> Iterator[Finding]:
    """The Ray leader waits for exactly the pods of its engine.

    With a larger number it waits forever; with a smaller one vLLM starts before all pods are ready.

    Pass: --ray_cluster_size=2 for an entry and 1 worker.
    Fail: --ray_cluster_size=3 for an entry and 1 worker.
    Level: mandatory.
    Source: vllm examples/online_serving/multi-node-serving.sh.
    """
    for engine in facts.engines:
        command = engine.entry.command
        size = command.ray_cluster_size if command else None
        if size is None:
            continue
        if unknown := first_unknown(size, engine.pods):
            yield from unjudged(engine, unknown, "ray-cluster-size-equals-group")
        elif size != engine.pods:
            yield Finding(
                path=engine.entry.command_path,
                seen=f"engine '{engine.name}' has {count_of(engine.pods, 'pod')}, "
                f"but its Ray leader waits for {size} (ray_cluster_size)",
                remedy=f"write --ray_cluster_size={engine.pods}, or $(GROUP_SIZE)",
                rule="ray-cluster-size-equals-group",
            )


def nnodes_equals_group(facts: ServingFacts) -> Iterator[Finding]:
    """--nnodes of a native launch equals the pods of the engine.

    With a larger number the engine waits forever; with a smaller one some pods join no engine, or a
    second one.

    Pass: --nnodes 2 for an entry and 1 worker; --nnodes $(LWS_GROUP_SIZE).
    Fail: --nnodes 4 for an entry and 1 worker.

    Source: vllm/config/parallel.py nnodes; sglang/srt/server_args.py nnodes.
    """
    for engine in facts.engines:
        command, pods = engine.entry.command, engine.pods
        nodes = command.nnodes if command else None
        if nodes is None or isinstance(pods, Unknown):
            continue
        if isinstance(nodes, Unknown):
            yield from unjudged(engine, nodes, "nnodes-equals-group")
        elif nodes != pods:
            yield Finding(
                path=engine.entry.command_path,
                seen=f"engine '{engine.name}' has {count_of(pods, 'pod')}, but is started with "
                f"--nnodes {nodes}",
                remedy=either(
                    set_option("--nnodes", pods), "the variable with the size of the group"
                ),
                rule="nnodes-equals-group",
            )


def gang_covers_engine(facts: ServingFacts) -> Iterator[Finding]:
    """The gang covers whole engines: all pods of each role's minimum.

    A gang smaller than an engine starts engines that never work and block their GPUs. A queue of
    Kueue also admits the pods of an object together.

    Pass: minMember 4 for 2 engines of 2 pods each.
    Fail: minMember 3 for 2 engines of 2 pods each.
    Level: mandatory; advisory if nothing schedules the pods as a gang.
    Source: Kthena v1.0.0 pkg/model-serving-controller/podgroupmanager/manager.go
    calculateRequirements: minMember = Σ (1 + workers) × minimum.
    """
    multi = [e for e in facts.engines if isinstance(e.pods, int) and e.pods > 1]
    if facts.gang is None:
        for engine in () if facts.gang_expected is True else multi:
            if isinstance(facts.gang_expected, Unknown):
                yield from unjudged(engine, facts.gang_expected, "gang-covers-engine", engine.path)
                continue
            yield Finding(
                path=engine.path,
                seen=f"engine '{engine.name}' has {engine.pods} pods that must start together, "
                "and nothing schedules them as a gang",
                remedy="let Volcano schedule the pods (scheduler volcano)",
                rule="gang-covers-engine",
                level=Level.ADVISORY,
            )
        return
    wanted = _wanted(facts.engines, facts)
    member = facts.gang.min_member
    unknown = next((value for value in (wanted, member) if isinstance(value, Unknown)), None)
    if unknown is not None:
        yield Finding(
            path=facts.gang.path,
            seen=f"was not checked, because {unknown.because}",
            rule="gang-covers-engine",
            level=Level.UNKNOWN,
        )
    elif member != wanted:
        yield Finding(
            path=facts.gang.path,
            seen=f"the gang needs {count_of(member, 'pod')} to start, "
            f"but its engines have {wanted} that must start together",
            remedy=_members(facts.gang, wanted),
            rule="gang-covers-engine",
        )


def _members(gang: GangFacts, wanted: MaybeInt) -> str:
    """Write the number of pods, if a field states it."""
    said = f"write minMember {wanted}"
    return write(wanted, said) if gang.path.endswith("minMember") else said


def _wanted(engines: tuple[EngineFacts, ...], facts: ServingFacts) -> int | Unknown:
    total = 0
    for engine in engines:
        pods = engine.pods
        minimum = (facts.gang.minima if facts.gang else {}).get(engine.name, engine.replicas)
        if isinstance(pods, Unknown):
            return pods
        if isinstance(minimum, Unknown):
            return minimum
        total += pods * minimum
    return total
