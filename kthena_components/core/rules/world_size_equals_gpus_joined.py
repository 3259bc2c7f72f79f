"""Checks the ranks of a pod that joins an engine of another object: world-size-equals-gpus."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.remedies import either, set_option
from kthena_components.core.rules.data_parallel_layout import product
from kthena_components.core.rules.support.fixes import give_gpus
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.unknown import Unknown, all_known

_NOT_RAY = frozenset({None, "mp", "uni"})


def joined_share(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    """Check the copies that a headless pod of vLLM starts, each of them whole.

    --data-parallel-size-local counts them, or else --data-parallel-size. With --nnodes a copy spans
    pods, and the whole engine is counted where it is. Source:
    vllm/engine/arg_utils.py, create_engine_config; vllm/entrypoints/cli/serve.py, run_headless.
    """
    entry = engine.entry
    if command.engine != "vllm" or command.headless is not True or entry.claimed:
        return
    if command.nnodes not in {None, 1}:
        return
    if not {command.executor, command.data_backend} <= _NOT_RAY:
        return
    copies = command.data if command.data_local is None else command.data_local
    sizes = all_known(command.tensor, command.pipeline, command.prefill_context, copies, entry.gpus)
    if isinstance(sizes, Unknown):
        return  # The other object has the same sizes, and says that they are unknown.
    tensor, pipeline, context, copies, gpus = sizes
    copy = tensor * pipeline * context
    if gpus == 0 or not copy or copy * copies == gpus:
        return
    fewer = "" if gpus % copy else set_option("--data-parallel-size-local", gpus // copy)
    yield Finding(
        path=entry.command_path,
        seen=f"{title(engine)} joins an engine of another object, and each of its pods starts "
        f"{product(tensor, pipeline, copies, context)}, but has {count_of(gpus, 'GPU')}",
        remedy=either(
            fewer,
            give_gpus(engine, copy * copies, f"give each pod {count_of(copy * copies, 'GPU')}"),
        ),
    )
