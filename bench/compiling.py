"""What pure compilation costs: from plain args to judged manifests, without Pulumi."""

import statistics
import time
from itertools import repeat

from bench.workload import servings
from kthena_components.backends.compiler import compile_serving


def measure_compile(backend: str, count: int, repeats: int) -> float:
    """Give the median microseconds of processor time for one of many servings."""
    described = servings(backend, count)
    compile_serving(described[0])
    return statistics.median(_once(described) for _ in repeat(None, repeats))


def _once(described: list[dict[str, object]]) -> float:
    began = time.process_time()
    for args in described:
        compile_serving(args)
    return (time.process_time() - began) / len(described) * 1e6
