"""The panels of a dashboard for each engine, with its own metrics.

tests/systems/prometheus/engine_metrics.json has the metrics of the releases that are read; each
query finds something in each of them. `$own` stands for the labels of the serving. A counter or a
gauge of SGLang and vLLM has further labels, such as a rank, so everything is summed by role and
group.
"""

from collections.abc import Mapping
from typing import NamedTuple

_RATE = "$__rate_interval"
_BY = "by (role, group)"
_LEGEND = "{{role}} {{group}}"


class Query(NamedTuple):
    """One query, and the legend of its lines."""

    expr: str
    legend: str = _LEGEND


class Panel(NamedTuple):
    """One panel of time series."""

    title: str
    unit: str
    """A unit of Grafana: short, s, percentunit, or cps."""
    queries: tuple[Query, ...]


def _sum(title: str, metric: str) -> Panel:
    return Panel(title, "short", (Query(f"sum {_BY} ({metric}{{$own}})"),))


def _rate(title: str, metric: str) -> Panel:
    return Panel(title, "cps", (Query(f"sum {_BY} (rate({metric}{{$own}}[{_RATE}]))"),))


def _most(title: str, *metrics: str) -> Panel:
    """Show the highest share of any engine. Of several names, a release has one."""
    series = " or ".join(f"{metric}{{$own}}" for metric in metrics)
    return Panel(title, "percentunit", (Query(f"max {_BY} ({series})"),))


def _times(title: str, *metrics: str) -> Panel:
    """Show the median and the 95th percentile. Of several names, a release has one."""
    rates = " or ".join(f"rate({metric}_bucket{{$own}}[{_RATE}])" for metric in metrics)
    queries = (
        Query(f"histogram_quantile({q}, sum by (role, group, le) ({rates}))", f"{_LEGEND} p{n}")
        for q, n in (("0.5", 50), ("0.95", 95))
    )
    return Panel(title, "s", tuple(queries))


PANELS: Mapping[str, tuple[Panel, ...]] = {
    "vllm": (
        _sum("Requests running", "vllm:num_requests_running"),
        _sum("Requests waiting", "vllm:num_requests_waiting"),
        _most("KV cache used", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        _rate("Prompt tokens per second", "vllm:prompt_tokens_total"),
        _rate("Generated tokens per second", "vllm:generation_tokens_total"),
        _rate("Preemptions per second", "vllm:num_preemptions_total"),
        _times("Time to first token", "vllm:time_to_first_token_seconds"),
        _times(
            "Time between tokens",
            "vllm:inter_token_latency_seconds",
            "vllm:time_per_output_token_seconds",
        ),
        _times("Time of a request", "vllm:e2e_request_latency_seconds"),
    ),
    "sglang": (
        _sum("Requests running", "sglang:num_running_reqs"),
        _sum("Requests waiting", "sglang:num_queue_reqs"),
        _most("KV cache used", "sglang:token_usage"),
        _rate("Prompt tokens per second", "sglang:prompt_tokens_total"),
        _rate("Generated tokens per second", "sglang:generation_tokens_total"),
        _most("Prefix cache hits", "sglang:cache_hit_rate"),
        _times("Time to first token", "sglang:time_to_first_token_seconds"),
        _times("Time between tokens", "sglang:inter_token_latency_seconds"),
        _times("Time of a request", "sglang:e2e_request_latency_seconds"),
    ),
}
"""By engine."""
