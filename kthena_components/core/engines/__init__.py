"""Engine command lines: reads those of any container, writes those of the package.

Pure text and numbers. core/rules compares the numbers with the GPUs of pods.
"""

from kthena_components.core.engines.command import (
    derived_entrypoint,
    merge,
    read_command,
    unread_script,
)
from kthena_components.core.engines.facts import CommandFacts, Problem
from kthena_components.core.engines.files import Files, Mount
from kthena_components.core.engines.launch import Commands, Launch, Refusal, Transfer
from kthena_components.core.engines.placeholders import Hidden
from kthena_components.core.engines.programs import image_entrypoint
from kthena_components.core.engines.vllm import SERVE
from kthena_components.core.engines.vllm_launch import DRAIN
from kthena_components.core.engines.writer import (
    counted_flags,
    default_launcher,
    stated_release,
    unsupported,
    write_commands,
)

__all__ = [
    "DRAIN",
    "SERVE",
    "CommandFacts",
    "Commands",
    "Files",
    "Hidden",
    "Launch",
    "Mount",
    "Problem",
    "Refusal",
    "Transfer",
    "counted_flags",
    "default_launcher",
    "derived_entrypoint",
    "image_entrypoint",
    "merge",
    "read_command",
    "stated_release",
    "unread_script",
    "unsupported",
    "write_commands",
]
