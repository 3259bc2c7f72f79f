"""Writes the commands of any engine, and reports what cannot be written."""

from kthena_components.core.engines import sglang_launch, vllm_launch
from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.dialects import dialect_of
from kthena_components.core.engines.kv_transfer import FLAGS
from kthena_components.core.engines.launch import Commands, Launch, Refusal
from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.engines.releases import TITLES
from kthena_components.core.engines.table import release_for


def unsupported(launch: Launch) -> list[Refusal]:
    """Report what of a launch cannot be written. Empty: `write_commands` accepts it."""
    if launch.kind == "vllm":
        return vllm_launch.unsupported_vllm(launch)
    if launch.kind == "sglang":
        return sglang_launch.unsupported_sglang(launch)
    seen = f"is '{launch.kind}', for which no commands can be written"
    return [Refusal("kind", seen, "write 'vllm' or 'sglang', or use a template", "engine-launch")]


def write_commands(launch: Launch) -> Commands:
    """Write an engine's commands. Pure: the same launch gives the same words.

    Raises:
        ValueError: `unsupported` reports the launch. Callers must check that first.
    """
    refusals = unsupported(launch)
    if refusals:
        raise ValueError("; ".join(f"{refusal.field} {refusal.seen}" for refusal in refusals))
    return (
        vllm_launch.write_vllm(launch)
        if launch.kind == "vllm"
        else sglang_launch.write_sglang(launch)
    )


def counted_flags(launch: Launch) -> list[str]:
    """Return the flags in a user's arguments that the package sets itself.

    This includes abbreviations, other spellings and ambiguous flags, each once and as written.
    Sizes, ranks, executor, model and port are always set, and the flags of the transfer of the KV
    cache and of the drain if the launch has them.
    """
    if launch.kind not in TITLES:
        return []
    dialect = dialect_of(release_for(launch.kind, None))
    reading = Reading(dialect, Scope({})).read(launch.extra_args)
    counted = [flag for flag, option in reading.flags if option.counted]
    own = set(FLAGS[launch.kind]) if launch.transfer else set()
    own |= {vllm_launch.DRAIN} if vllm_launch.writes_drain(launch) else set()
    return list(dict.fromkeys([*counted, *(name for name in reading.options if name in own)]))
