"""The rule ray-cluster-size-equals-group."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.rules.support.messages import each_engine, title
from kthena_components.core.values.read import require_known


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
