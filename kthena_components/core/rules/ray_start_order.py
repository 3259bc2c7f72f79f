"""Checks that `ray start` does not keep a script from starting the engine."""

from collections.abc import Iterator

from kthena_components.core.engines.facts import Blocked
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding
from kthena_components.core.rules.support.messages import each_engine, title
from kthena_components.core.values.unknown import known

_HOW = {
    Blocked.BLOCK: (
        "`ray start --block`, which runs until Ray stops",
        "remove --block from that `ray start`",
    ),
    Blocked.EXEC: (
        "`exec ray start`, which takes the place of its script",
        "remove exec and --block from that `ray start`",
    ),
}


@each_engine
def ray_start_order(engine: EngineFacts) -> Iterator[Finding]:
    """A script that starts Ray and then an engine gets to the engine.

    `ray start --block` runs until Ray stops. Without --block, Ray runs in the background, and the
    script goes on. `exec ray start` takes the place of the script's shell, with --block or without.
    A `ray start --address` behind a test is taken for the workers' own part of the script.

    Pass: `ray start --head --port=6379` and then vllm serve; the same with `--block &`.
    Fail: `ray start --head --port=6379 --block` and then vllm serve; the same behind `exec`.
    Level: mandatory.
    Source: ray python/ray/scripts/scripts.py (start, --block); POSIX.1-2024, exec.
    """
    command = engine.entry.command
    how = known(None if command is None else command.ray_blocks, engine.entry.command_path)
    if how is not None:
        started, remedy = _HOW[how]
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} is started after {started}, so it never starts",
            remedy=remedy,
        )
