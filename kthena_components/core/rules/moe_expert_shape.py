"""The rule moe-expert-shape."""

import math
from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.sharding import (
    Sharding,
    divisors,
    each_sharding,
    fits,
)
from kthena_components.core.remedies import either, set_option
from kthena_components.core.values.unknown import Unknown, known_sizes

EXPERTS = "moe-expert-shape"


@each_sharding
def moe_expert_shape(sharding: Sharding) -> Iterator[Finding]:
    """Expert parallelism has experts to distribute, and in SGLang equally many per rank.

    vLLM rejects a dense model; other engines gain nothing. vLLM accepts an uneven distribution.

    Pass: 256 experts and 32 redundant ones over 48 ranks.
    Fail: 256 experts over 48 ranks of SGLang; a dense model with --enable-expert-parallel.
    Level: mandatory; advisory for a dense model outside vLLM.
    Source: vllm/config/model.py _verify_with_expert_parallelism;
        sglang/srt/eplb/expert_location.py.
    """
    command, experts = sharding.command, sharding.shape.experts
    if isinstance(command.expert, Unknown):
        if not experts or command.engine == "sglang":
            yield from sharding.cannot_check(command.expert.because)
    elif command.expert is False or (command.expert == 1 and command.expert is not True):
        return
    elif experts is None:
        because = f"the table of models has no experts of {sharding.shape.name}"
        yield from sharding.cannot_check(because)
    elif experts == 0:
        hard = isinstance(command.expert, bool)
        seen = "enables expert parallelism, but its model is dense: it has no experts"
        level = Level.MANDATORY if hard else Level.ADVISORY
        yield sharding.finding(seen, "disable expert parallelism", level)
    elif command.engine == "sglang":
        yield from _uneven_experts(sharding, experts)


def _uneven_experts(sharding: Sharding, experts: int) -> Iterator[Finding]:
    command = sharding.command
    ranks, more = known_sizes(command.expert_size, command.redundant_experts)
    if (experts + more) % ranks:
        total, tensor = experts + more, command.tensor
        spread = count_of(experts, "expert")
        spread += f" and {count_of(more, 'redundant one')}" if more else ""
        width = tensor if isinstance(tensor, int) else total
        sizes = [n for n in divisors(math.gcd(total, width)) if n > 1]
        sizes = [n for n in sizes if _fits(sharding, n)] or sizes
        below, above = [n for n in sizes if n < ranks][-1:], [n for n in sizes if n > ranks][:1]
        fewer = " or ".join(map(str, below + above))
        copies, flag = more + ranks - total % ranks, "--ep-num-redundant-experts"
        more_copies = set_option(flag, copies, f"set {flag} to {copies}")
        yield sharding.finding(
            f"spreads {spread} over {ranks} ranks, which leaves a remainder of {total % ranks}",
            either(f"spread them over {fewer} ranks" if fewer else "", more_copies),
        )


def _fits(sharding: Sharding, ranks: int) -> bool:
    """Return whether the experts can be spread over other ranks, by the rules about shapes."""
    command = replace(sharding.command, expert=ranks)
    return fits(replace(sharding, command=command), blocks=True)
