"""Reads the variables with which vLLM's processes form copies of one engine."""

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.engines.variables import stated_variable
from kthena_components.core.values.unknown import MaybeInt, Unknown

SIZE, RANK, ADDRESS = "VLLM_DP_SIZE", "VLLM_DP_RANK", "VLLM_DP_MASTER_IP"
_SINCE = (0, 8, 0)
"""The first vLLM with these variables."""
_OWN = "127.0.0.1"
_LONGEST = 6


def copies_of_processes(reading: Reading) -> bool:
    """Add the copies that variables state; return whether each process is one of several.

    Without --data-parallel-size above 1, vLLM takes the size, its rank and the address of rank 0
    from VLLM_DP_SIZE, VLLM_DP_RANK and VLLM_DP_MASTER_IP. They are added as the options that mean
    the same (vllm/config/parallel.py, __post_init__, of 0.8.0 to 0.33.0).
    """
    release = reading.dialect.release
    early = release is not None and release.version < _SINCE
    by_flag = reading.values.get("data", 1) != 1 or reading.values.get("data_local") == 0
    size = _count(reading.scope, SIZE)
    if early or by_flag or reading.hidden is not None or size in {None, 0, 1}:
        return False
    rank = _count(reading.scope, RANK)
    reading.values["data"], reading.values["data_rank"] = size, 0 if rank is None else rank
    reading.where["data"] = f"{SIZE}={size}" if isinstance(size, int) else SIZE
    address = stated_variable(reading.scope, ADDRESS) or _OWN
    reading.options["--data-parallel-rank"] = reading.values["data_rank"]
    reading.options["--data-parallel-address"] = address
    return not isinstance(size, Unknown)


def _count(scope: Scope, name: str) -> MaybeInt | None:
    """Return a variable's number; None if it is not stated, or not a number."""
    text = stated_variable(scope, name)
    if isinstance(text, Unknown):
        return text
    return int(text) if text and text.isdecimal() and len(text) <= _LONGEST else None
