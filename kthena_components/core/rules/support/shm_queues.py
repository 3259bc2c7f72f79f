"""The queues that vLLM's processes have in /dev/shm, by release."""

from kthena_components.core.findings import Level
from kthena_components.core.rules.support.engine_startup import Start
from kthena_components.core.values.images import Version

MIB = 2**20
USUAL = 64 * MIB
"""What a container gets without a volume (containerd pkg/cri/server/helpers_linux.go)."""
REFUSES = (0, 27)
"""The first vLLM that compares /dev/shm with its queues when it starts."""
_QUEUES: tuple[tuple[Version, int], ...] = (((0, 12), 240 * MIB), ((0, 11), 160 * MIB))
"""The largest queue between the processes of an engine, without some bytes of its own, by the first
vLLM that has it."""


def largest_queue(start: Start) -> tuple[int, Level | None]:
    """Return the largest queue of a release, and the level of less room for it."""
    command = start.command
    if command.engine != "vllm" or command.executor not in (None, "mp") or command.ray_role:
        return 0, None
    for first, size in _QUEUES:
        level = start.since(first)
        if level is not None:
            return size, level
    return 0, None
