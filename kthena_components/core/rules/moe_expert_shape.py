"""The rule moe-expert-shape."""

import math
from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory.sharding import (
    Sharding,
    divisors,
    shardings,
)
from kthena_components.core.remedies import either, set_option
from kthena_components.core.values.unknown import Unknown

EXPERTS = "moe-expert-shape"


def moe_expert_shape(facts: ServingFacts) -> Iterator[Finding]:
    """Expert parallelism has experts to distribute, and in SGLang equally many per rank.

    vLLM rejects a dense model; other engines gain nothing. vLLM accepts an uneven distribution.

    Pass: 256 experts and 32 redundant ones over 48 ranks.
    Fail: 256 experts over 48 ranks of SGLang; a dense model with --enable-expert-parallel.
    Level: mandatory; advisory for a dense model outside vLLM.
    Source: vllm/config/model.py _verify_with_expert_parallelism;
        sglang/srt/eplb/expert_location.py.
    """
    for sharding in shardings(facts):
        command, experts = sharding.command, sharding.shape.experts
        if isinstance(command.expert, Unknown):
            if not experts or command.engine == "sglang":
                yield from sharding.unjudged(EXPERTS, command.expert.because)
        elif command.expert is False or (command.expert == 1 and command.expert is not True):
            continue
        elif experts is None:
            because = f"the table of models has no experts of {sharding.shape.name}"
            yield from sharding.unjudged(EXPERTS, because)
        elif experts == 0:
            hard = isinstance(command.expert, bool)
            seen = "enables expert parallelism, but its model is dense: it has no experts"
            level = Level.MANDATORY if hard else Level.ADVISORY
            yield sharding.finding(EXPERTS, seen, "disable expert parallelism", level)
        elif command.engine == "sglang":
            yield from _uneven_experts(sharding, experts)


def _uneven_experts(sharding: Sharding, experts: int) -> Iterator[Finding]:
    ranks, more = sharding.command.expert_size, sharding.command.redundant_experts
    unknown = next((value for value in (ranks, more) if isinstance(value, Unknown)), None)
    if unknown is not None:
        yield from sharding.unjudged(EXPERTS, unknown.because)
    elif isinstance(ranks, int) and isinstance(more, int) and (experts + more) % ranks:
        total, tensor = experts + more, sharding.command.tensor
        spread = count_of(experts, "expert")
        spread += f" and {count_of(more, 'redundant one')}" if more else ""
        known = tensor if isinstance(tensor, int) else total
        sizes = [n for n in divisors(math.gcd(total, known)) if n > 1]
        below, above = [n for n in sizes if n < ranks][-1:], [n for n in sizes if n > ranks][:1]
        fewer = " or ".join(map(str, below + above))
        copies, flag = more + ranks - total % ranks, "--ep-num-redundant-experts"
        more_copies = set_option(flag, copies, f"set {flag} to {copies}")
        yield sharding.finding(
            EXPERTS,
            f"spreads {spread} over {ranks} ranks, which leaves a remainder of {total % ranks}",
            either(f"spread them over {fewer} ranks" if fewer else "", more_copies),
        )
