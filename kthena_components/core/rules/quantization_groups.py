"""The rule quantization-groups."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.memory.sharding import Part, Sharding, fits, shardings
from kthena_components.core.remedies import plain
from kthena_components.core.rules.support.engine_startup import Start
from kthena_components.core.rules.support.nearest_sizes import nearest_sizes

GROUPS = "quantization-groups"


def quantization_groups(facts: ServingFacts) -> Iterator[Finding]:
    """Each rank has whole groups of the inputs that share a scale in weights of AWQ or GPTQ.

    Tensor parallelism splits the inputs of a layer's two last products: the inner width of its
    feed-forward part, and all attention heads. The rule does not check experts, whose kernels pad.

    Pass: an inner width of 13824 over tensor 4, 3456 for each, in groups of 128.
    Fail: an inner width of 13824 over tensor 8, 1728 for each, in groups of 128.
    Level: mandatory.
    Source: vllm/model_executor/layers/quantization/auto_awq.py and its kernels in
    vllm/model_executor/kernels/linear/mixed_precision; sglang/srt/layers/quantization/awq.py.
    """
    for sharding in shardings(facts):
        entry = sharding.engine.entry
        if entry.one_process is not False or entry.on_cpus is not False:
            continue
        if sharding.command.engine not in {"vllm", "sglang"}:
            continue
        cut = [part for part in _parts(sharding) if _is_cut(sharding, part)]
        if cut:
            pieces = ", ".join(f"{p.what} {p.size} ÷ {p.ranks} = {p.piece}" for p in cut)
            seen = (
                f"gives its ranks parts of groups of {sharding.shape.group} inputs that share a "
                f"scale, but each rank needs whole groups: {pieces}"
            )
            start = Start(sharding.engine, sharding.command)
            # The GPUs change with it, so there is no fix.
            yield from start.refused(seen, plain(nearest_sizes(sharding, _whole)))


def _parts(sharding: Sharding) -> list[Part]:
    """Return the widths of inputs that the ranks share."""
    shape = sharding.shape
    parts = [part for part in sharding.feed_forward if not part.expert]
    if shape.hidden is not None:
        width = shape.heads * (shape.head_dim or shape.hidden // shape.heads)
        parts.append(Part("attention output", width, sharding.attention))
    return parts


def _is_cut(sharding: Sharding, part: Part) -> bool:
    group = sharding.shape.group
    several = isinstance(part.ranks, int) and part.ranks > 1
    return group is not None and several and not part.rest and part.piece % group != 0


def _whole(sharding: Sharding) -> bool:
    """Return whether an engine of another size has whole groups."""
    return fits(sharding) and not any(_is_cut(sharding, part) for part in _parts(sharding))
