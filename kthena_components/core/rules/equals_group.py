"""Rules of counts in command lines: --nnodes and the pods that Ray waits for equal the engine."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.remedies import either, set_option
from kthena_components.core.rules.support.fixes import give_pods
from kthena_components.core.rules.support.messages import each_engine, title
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import Unknown, known


@each_engine
def nnodes_equals_group(engine: EngineFacts) -> Iterator[Finding]:
    """--nnodes of a native launch equals the pods of the engine.

    With a larger number the engine waits forever; with a smaller one some pods join no engine, or a
    second one.

    Pass: --nnodes 2 for an entry and 1 worker; --nnodes $(LWS_GROUP_SIZE).
    Fail: --nnodes 4 for an entry and 1 worker.

    Source: vllm/config/parallel.py nnodes; sglang/srt/server_args.py nnodes.
    """
    command, pods = engine.entry.command, engine.pods
    nodes = command.nnodes if command else None
    if command is None or nodes is None or isinstance(pods, Unknown):
        return
    if known(nodes) != pods:
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has {count_of(pods, 'pod')}, but is started with "
            f"--nnodes {nodes}",
            remedy=_remedy(engine, command, pods),
        )


def _remedy(engine: EngineFacts, command: CommandFacts, pods: int) -> str:
    """Count the pods, or give the engine other pods where its ranks fit only these."""
    nodes, ranks, gpus = command.nnodes, command.per_rank_world, engine.entry.gpus
    if isinstance(nodes, int) and isinstance(ranks, int):
        fits = isinstance(gpus, int) and ranks == nodes * gpus
        if fits or (ranks % pods and not ranks % nodes):
            return give_pods(engine, nodes)
    return either(set_option("--nnodes", pods), "the variable with the size of the group")


@each_engine
def ray_cluster_size_equals_group(engine: EngineFacts) -> Iterator[Finding]:
    """The Ray leader waits for exactly the pods of its engine.

    With a larger number it waits forever; with a smaller one vLLM starts before all pods are ready.

    Pass: --ray_cluster_size=2 for an entry and 1 worker.
    Fail: --ray_cluster_size=3 for an entry and 1 worker.
    Level: mandatory.
    Source: vllm examples/online_serving/multi-node-serving.sh.
    """
    command = engine.entry.command
    size = command.ray_cluster_size if command else None
    if size is None:
        return
    require_known("", size, engine.pods)
    if size != engine.pods:
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has {count_of(engine.pods, 'pod')}, "
            f"but its Ray leader waits for {size} (ray_cluster_size)",
            remedy=f"write --ray_cluster_size={engine.pods}, or $(GROUP_SIZE)",
        )
