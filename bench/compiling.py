"""Measures the compilation alone: from plain args to checked manifests, without Pulumi."""

import statistics
import time
from typing import Any

from bench.workload import servings
from kthena_components.compiler.compile import compile_serving


def measure_compile(backend: str, count: int, repeats: int) -> float:
    """Return the median microseconds of processor time for one of many servings.

    It compiles each serving only once, because of caches.
    """
    first, *described = servings(backend, count * repeats + 1)
    compile_serving(first)
    return statistics.median(_once(described[turn::repeats]) for turn in range(repeats))


def _once(described: list[dict[str, Any]]) -> float:
    began = time.process_time()
    for args in described:
        compile_serving(args)
    return (time.process_time() - began) / len(described) * 1e6
