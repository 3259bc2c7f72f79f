"""Estimates how much GPU memory an engine needs at least. The rules are in core/rules."""

from kthena_components.core.memory.sizes import (
    GIB,
    CacheType,
    Split,
    cache_per_token,
    cache_per_token_on_gpu,
    cache_type,
    fullest_weights,
    overhead,
    weights_on_gpu,
)

__all__ = [
    "GIB",
    "CacheType",
    "Split",
    "cache_per_token",
    "cache_per_token_on_gpu",
    "cache_type",
    "fullest_weights",
    "overhead",
    "weights_on_gpu",
]
