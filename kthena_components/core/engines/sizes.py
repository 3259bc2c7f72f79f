"""Remedies that change the sizes of an engine, by the options of that engine."""

from collections.abc import Mapping, Sequence

from kthena_components.core.engines.dialects import SGLANG_USES, TRTLLM_USES, VLLM_USES
from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.remedies import Remedy, either, set_option

OPTIONS_BY_FIELD: Mapping[str, Mapping[str, str]] = {
    engine: {use.field: option for option, use in reversed([*uses.items()]) if not use.key}
    for engine, uses in (("vllm", VLLM_USES), ("sglang", SGLANG_USES), ("trtllm", TRTLLM_USES))
}
"""The option of each engine that sets a field of CommandFacts: the first of several."""


def set_size(command: CommandFacts, field: str, number: int, text: str = "") -> Remedy:
    """Set a size of an engine, such as `tensor`: by the option of this engine."""
    option = OPTIONS_BY_FIELD.get(command.engine or "", {}).get(field)
    said = text or f"set {field} to {number}"
    return Remedy(said) if option is None else set_option(option, number, said)


def one_of_sizes(
    command: CommandFacts, field: str, numbers: Sequence[int], verb: str = ""
) -> Remedy:
    """Set a size of an engine to one of some numbers: `set tensor to 4 or 8`."""
    sizes = [
        set_size(command, field, n, f"{verb or f'set {field} to'} {n}" if not i else f"{n}")
        for i, n in enumerate(numbers)
    ]
    return either(*sizes, word=" or ")
