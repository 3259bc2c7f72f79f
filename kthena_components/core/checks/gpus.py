"""Whether the ranks that an engine starts are the GPUs that its pods get."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts import EngineFacts, PodFacts, ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.known import MaybeInt, Unknown


def world_size_equals_gpus(facts: ServingFacts) -> Iterator[Finding]:
    """The ranks of an engine, TP × PP × DP, equal its pods × GPUs per pod.

    Fewer leave GPUs idle; more wait for ever for devices that do not exist. Context parallel
    counts as well; SGLang's attention DP does not, it lives inside TP.

    Source: vllm/config/parallel.py (world_size), sglang/srt/server_args.py, vllm ray_utils.
    """
    for engine in facts.engines:
        yield from _world(engine)


def _world(engine: EngineFacts) -> Iterator[Finding]:
    command = engine.entry.command
    if command is None or command.engine is None:
        if engine.entry.gpus != 0:
            yield _unjudged(engine, "no engine command line was found in the entry pod")
        return
    for problem in command.problems:
        if problem.hard:
            yield Finding(
                path=engine.entry.command_path,
                seen=f"{_title(engine)}: {problem.text}",
                remedy=problem.remedy or f"correct {problem.flag}",
                rule="world-size-equals-gpus",
            )
    ranks, held = ranks_of(engine, command), gpus_of(engine)
    unknown = next((value for value in (ranks, held) if isinstance(value, Unknown)), None)
    if unknown is not None:
        yield _unjudged(engine, unknown.because)
    elif isinstance(ranks, int) and isinstance(held, int) and ranks != held:
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{_title(engine)} starts {_product(command)} = {ranks} ranks, "
            f"but its {_pods(engine)} hold {held} GPUs",
            remedy=_remedy(engine, command, held),
            rule="world-size-equals-gpus",
        )


def ranks_of(engine: EngineFacts, command: CommandFacts) -> MaybeInt:
    """Count the ranks that all pods of an engine start together."""
    per_rank, pods = command.per_rank_world, engine.pods
    if isinstance(command.data_mode, Unknown):
        return command.data_mode
    if command.data_mode == "internal":
        return command.world
    here = command.data_local if command.data_mode == "hybrid" else 1
    for value in (per_rank, pods, here):
        if isinstance(value, Unknown):
            return value
    if not (isinstance(per_rank, int) and isinstance(pods, int) and isinstance(here, int)):
        return Unknown("--data-parallel-size-local is not stated")
    return per_rank * here * pods


def gpus_of(engine: EngineFacts) -> MaybeInt:
    """Count the GPUs that all pods of an engine hold together."""
    pods, entry = engine.pods, engine.entry.gpus
    if isinstance(pods, Unknown) or isinstance(entry, Unknown):
        return pods if isinstance(pods, Unknown) else entry
    worker = engine.worker.gpus if engine.worker else entry
    if isinstance(worker, Unknown) and pods > 1:
        return worker
    return entry + (pods - 1) * worker if isinstance(worker, int) else entry


def nodes_whole(facts: ServingFacts) -> Iterator[Finding]:
    """No tensor group straddles pods unevenly: TP divides the GPUs of a pod, or they divide TP.

    Otherwise ranks of one tensor group sit on parts of two pods, and SGLang refuses to start
    when (TP × PP) is no multiple of its nodes.

    Source: sglang/srt/server_args.py; vllm/executor/ray_utils.py warns about split nodes.
    """
    for engine in facts.engines:
        command, gpus, pods = engine.entry.command, engine.entry.gpus, engine.pods
        if command is None or not isinstance(pods, int) or pods < 2:  # noqa: PLR2004 - one pod is always whole
            continue
        tensor = command.tensor
        if not isinstance(gpus, int) or not isinstance(tensor, int) or gpus == 0:
            continue
        if tensor % gpus and gpus % tensor:
            fits = [n for n in range(1, max(tensor, gpus) + 1) if n % gpus == 0 or gpus % n == 0]
            yield Finding(
                path=engine.entry.command_path,
                seen=f"{_title(engine)} has tensor {tensor} on pods of {gpus} GPUs, so one tensor "
                "group would fill a part of a pod, and a pod would hold parts of two groups",
                remedy=f"set tensor to {_listed(fits)}",
                rule="nodes-whole",
            )


def leader_worker_same_gpus(facts: ServingFacts) -> Iterator[Finding]:
    """Entry and workers of one engine hold the same GPUs: ranks are dealt out evenly.

    Source: vllm/config/parallel.py, local world size = world size / nodes.
    """
    for engine in facts.engines:
        if engine.worker is None or engine.pods == 1:
            continue
        entry, worker = engine.entry.gpus, engine.worker.gpus
        if isinstance(entry, int) and isinstance(worker, int) and entry != worker:
            yield Finding(
                path=engine.worker.gpus_path,
                seen=f"{_title(engine)} gives its entry pod {entry} GPUs and each worker {worker}, "
                "and an engine deals its ranks out evenly",
                remedy=f"write {entry} in both, or {worker} in both",
                rule="leader-worker-same-gpus",
            )


def gpu_requests_equal_limits(facts: ServingFacts) -> Iterator[Finding]:
    """GPU requests equal GPU limits: Kubernetes allows nothing else for extended resources.

    A request without a limit is refused too. A limit without a request is legal in a Pod, where
    the API server copies it, but counts as nothing inside a custom resource.

    Source: kubernetes pkg/apis/core/validation ValidateContainerResourceRequirements.
    """
    for engine in facts.engines:
        for pod in (engine.entry, engine.worker):
            yield from _unequal(engine, pod)


def _unequal(engine: EngineFacts, pod: PodFacts | None) -> Iterator[Finding]:
    for device in pod.devices if pod else ():
        limit, request = device.limit, device.request
        if isinstance(limit, Unknown) or isinstance(request, Unknown) or limit == request:
            continue
        shown = " and ".join(
            f"{'no' if n is None else n} {word}"
            for n, word in ((request, "request"), (limit, "limit"))
        )
        yield Finding(
            path=device.path,
            seen=f"{_title(engine)}, container '{device.container}' states {device.resource} with "
            f"{shown}, and Kubernetes wants both equal",
            remedy=f"write {limit if limit is not None else request} in both",
            rule="gpu-requests-equal-limits",
        )


def _title(engine: EngineFacts) -> str:
    return f"engine '{engine.name}'"


def _pods(engine: EngineFacts) -> str:
    pods, entry = engine.pods, engine.entry.gpus
    worker = engine.worker.gpus if engine.worker else entry
    if pods == 1:
        return f"1 pod of {entry} GPUs"
    if worker != entry:
        return f"{pods} pods (entry {entry}, workers {worker} GPUs)"
    return f"{pods} pods × {entry} GPUs"


def _product(command: CommandFacts) -> str:
    parts = [("tensor", command.tensor), ("pipeline", command.pipeline)]
    parts += [
        (word, value)
        for word, value in (("data", command.data), ("context", command.prefill_context))
        if value != 1
    ]
    return " × ".join(f"{word} {value}" for word, value in parts)


def _remedy(engine: EngineFacts, command: CommandFacts, held: int) -> str:
    """Say the smallest changes that make both sides equal; only those that are whole numbers."""
    ways: list[str] = []
    ranks = ranks_of(engine, command)
    if not isinstance(ranks, int):
        return "change the parallelism or the GPUs"
    for word, value in (("pipeline", command.pipeline), ("tensor", command.tensor)):
        rest = ranks // value if isinstance(value, int) and value else 0
        if rest and held % rest == 0 and held // rest:
            ways.append(f"set {word} to {held // rest}")
    gpus, pods = engine.entry.gpus, engine.pods
    if isinstance(gpus, int) and gpus and ranks % gpus == 0:
        ways.append(f"give the engine {_count(ranks // gpus, 'pod')}")
    if (
        isinstance(pods, int)
        and ranks % pods == 0
        and not (isinstance(gpus, int) and ranks == pods * gpus)
    ):
        ways.append(f"give each pod {_count(ranks // pods, 'GPU')}")
    return ", or ".join(ways) or "change the parallelism or the GPUs"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _listed(numbers: list[int]) -> str:
    words = [str(number) for number in numbers]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _unjudged(engine: EngineFacts, because: str) -> Finding:
    return Finding(
        path=engine.entry.command_path,
        seen=f"{_title(engine)} was not checked, because {because}",
        rule="world-size-equals-gpus",
        level=Level.UNKNOWN,
    )
