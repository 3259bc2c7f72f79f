"""The rule ray-engine-kwargs."""

from collections.abc import Iterator
from functools import cache

from kthena_components.core.engines.option_table import load, rows_of
from kthena_components.core.findings import Finding, Level, suggest
from kthena_components.core.remedies import plain
from kthena_components.core.values.display import display
from kthena_components.systems.ray.serve_config import CONFIG
from kthena_components.systems.ray.view import RayView

_WITHOUT_OPTION = frozenset({"enable_mm_processor_stats", "mamba_config", "model_weights"})
"""Arguments of vLLM's engine that no option of its command line sets."""


def ray_engine_kwargs(view: RayView) -> Iterator[Finding]:
    """Each of the engine_kwargs of a model of Ray Serve is an argument of vLLM's engine or server.

    Their names are those of the options of `vllm serve`, with underscores. Ray Serve refuses other
    names when it starts the model. The image of a cluster states no release of vLLM.

    Pass: engine_kwargs {tensor_parallel_size: 8, max_num_seqs: 64}.
    Fail: engine_kwargs {tensor_parallel: 8}; {swap_space: 4}, which only vLLM up to 0.17 has.
    Level: mandatory if no release has it; advisory if the newest has not.
    Source: ray-project/ray python/ray/llm/_internal/serve, VLLMEngineConfig.from_llm_config; the
    options of vLLM's releases (docs/engines.md), whose names its EngineArgs and FrontendArgs have.
    """
    for one in view.served if isinstance(view.served, tuple) else ():
        for key in one.keys:
            if key in _names() or key in _WITHOUT_OPTION:
                if key not in _WITHOUT_OPTION and (span := _gone(key)):
                    seen = f"vLLM has it up to {span}, and the release in the image may be newer"
                    remedy = "remove it if the image has a newer vLLM"
                    yield _finding(one.name, key, seen, remedy, Level.ADVISORY)
                continue
            seen = "no release of vLLM has such an argument, so the model does not start"
            yield _finding(one.name, key, seen, plain(suggest(key, _names())), Level.MANDATORY)


def _finding(model: str, key: str, seen: str, remedy: str, level: Level) -> Finding:
    shown = f"states {display(key)} in engine_kwargs of {display(model)}, but {seen}"
    return Finding(path=f"spec.{CONFIG}", seen=shown, remedy=remedy, level=level)


@cache
def _names() -> frozenset[str]:
    """Return the names of all options of all releases, as arguments of Python."""
    rows = load("vllm").rows
    long = (name for row in rows for name in row.names if name.startswith("--"))
    return frozenset(name.removeprefix("--").replace("-", "_") for name in long)


def _gone(key: str) -> str:
    """Return the last release with an option; empty if the newest has it."""
    table, rows = load("vllm"), rows_of("vllm", f"--{key.replace('_', '-')}")
    last = max((row.until for row in rows), default=len(table.texts) - 1)
    return "" if last == len(table.texts) - 1 else table.texts[last]
