"""Tells which options of the engines take a number."""

from functools import lru_cache

from kthena_components.core.engines.dialects import dialect_of
from kthena_components.core.engines.options import understand
from kthena_components.core.engines.table import release_for

_ENGINES = ("vllm", "sglang", "trtllm")
_TYPES = frozenset({"float", "int", "si-size", "size", "size-auto"})


@lru_cache(maxsize=1024)
def takes_number(flag: str) -> bool:
    """Return whether an option takes a number in each engine's newest release that has it.

    Args:
        flag: The option as written, without a value: `--max-model-len`.
    """
    dialects = (dialect_of(release_for(engine, None)) for engine in _ENGINES)
    found = [understand(flag, dialect).option for dialect in dialects]
    types = [option.type.removesuffix("?") for option in found if option is not None]
    return bool(types) and _TYPES.issuperset(types)
