"""Checks that `ray start` does not keep a script from starting the engine."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.rules.support.messages import title


def ray_start_order(facts: ServingFacts) -> Iterator[Finding]:
    """A script that starts Ray and then an engine gets to the engine.

    `ray start --block` runs until Ray stops. Without --block, Ray runs in the background, and the
    script goes on.

    Pass: `ray start --head --port=6379` and then vllm serve; the same with `--block &`.
    Fail: `ray start --head --port=6379 --block` and then vllm serve.
    Level: mandatory.
    Source: ray python/ray/scripts/scripts.py (start, --block).
    """
    for engine in facts.engines:
        command = engine.entry.command
        if command is not None and command.ray_blocks:
            yield Finding(
                path=engine.entry.command_path,
                seen=f"{title(engine)} is started after `ray start --block`, which runs until Ray "
                "stops, so it never starts",
                remedy="remove --block from that `ray start`",
            )
