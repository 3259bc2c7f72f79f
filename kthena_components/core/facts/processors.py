"""Tells whether an engine runs on CPUs, where its ranks use NUMA nodes instead of GPUs.

vLLM and SGLang place one rank of a tensor group on each NUMA node. Source: vllm
docs/getting_started/installation/cpu.md and vllm/v1/worker/cpu_worker.py; sglang
docs/platforms/cpu_server.md.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.devices import DeviceFacts
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import MaybeBool, Unknown, is_unresolved

_IMAGE = re.compile(r"(?:^|[/:_.-])(?:cpu|xeon)(?:[/:_.-]|$)", re.IGNORECASE)
"""Images for CPUs: vllm/vllm-openai-cpu, vllm-cpu-release-repo, lmsysorg/sglang:v0.5.2-xeon."""
_VARIABLE = re.compile(r"(?:VLLM|SGLANG)_CPU_[A-Z_]+|SGLANG_USE_CPU_ENGINE")
"""Variables that only the engines' workers on CPUs read."""
_TARGET = "VLLM_TARGET_DEVICE"
_DEVICE = "--device"
_LATE = Unknown("the image is not known yet, and may be one for CPUs")


def on_cpus(
    container: Mapping[str, Any], devices: Iterable[DeviceFacts], command: CommandFacts | None
) -> MaybeBool:
    """Return whether the engine in a container runs on CPUs.

    Args:
        container: The container.
        devices: Its accelerators: with any, it does not.
        command: Its command line.
    """
    if any(devices) or command is None or command.engine is None:
        return False
    listed = [mapping(item) for item in sequence(container.get("env"))]
    named = {str(item.get("name")): item.get("value") for item in listed}
    image, device = container.get("image"), command.options.get(_DEVICE)
    stated = device == "cpu" or str(named.get(_TARGET)).lower() == "cpu"
    if stated or any(map(_VARIABLE.fullmatch, named)):
        return True
    if is_unresolved(image):
        return _LATE
    return isinstance(image, str) and _IMAGE.search(image) is not None
