"""Which entry pods have metrics and at which port, and the panels for them.

vLLM and SGLang serve metrics at `/metrics` of their HTTP port, which needs no API key. Source: vLLM
0.6.0 to 0.33.0 vllm/entrypoints; SGLang 0.4.6 to 0.5.23 sglang/srt/entrypoints and
sglang/srt/utils.

tests/systems/prometheus/engine_metrics.json has the metrics of the releases that are read; each
query finds something in each of them. `$own` stands for the labels of the serving. A counter or a
gauge of SGLang and vLLM has further labels, such as a rank, so everything is summed by role and
group.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kthena_components.core.engines.options import TITLES
from kthena_components.core.facts.listening import DEFAULT_PORTS
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.findings import Finding, Level, join_path
from kthena_components.core.plan.build import SGLANG_METRICS
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import either, remove, set_option, without
from kthena_components.core.rules.support.fixes import placed
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown

_RULE = "monitoring-metrics"
_DISABLED = "--disable-log-stats"
_TLS = ("--ssl-keyfile", "--ssl-certfile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """The metrics of one role's entry pods."""

    role: RolePlan
    engine: str
    """vllm or sglang."""
    port: int


def scrapes(plan: ServingPlan) -> tuple[Scrape, ...]:
    """Return the roles with metrics, of a plan that `refuse_metrics` accepts."""
    return tuple(
        Scrape(role=role, engine=str(pod.command.engine), port=port)
        for role, pod in _pods(plan)
        if pod.command and pod.command.engine in PANELS and isinstance(port := _port(pod), int)
    )


def refuse_metrics(plan: ServingPlan) -> Iterator[Finding]:
    """Report engines whose metrics Prometheus would not get, and roles without any."""
    known = [(role, pod) for role, pod in _pods(plan) if _engine(pod)]
    for role, pod in known:
        yield from _refuse_flags(pod)
        yield from _refuse_port(role, pod)
    for role, pod in _pods(plan):
        if not _engine(pod):
            yield _without_metrics(role, pod, alone=not known)


def _pods(plan: ServingPlan) -> Iterator[tuple[RolePlan, PodFacts]]:
    for role, engine in zip(plan.roles, facts_from_plan(plan).engines, strict=True):
        yield role, engine.entry


def _engine(pod: PodFacts) -> str:
    """Return the title of an engine with metrics; empty if the pod starts none."""
    engine = str(pod.command.engine) if pod.command else ""
    return TITLES[engine] if engine in PANELS else ""


def _port(pod: PodFacts) -> object:
    command = pod.command
    stated = command.options.get("--port") if command else None
    return DEFAULT_PORTS.get(str(command.engine)) if command and stated is None else stated


def _refuse_flags(pod: PodFacts) -> Iterator[Finding]:
    """Refuse options with which an engine has no metrics, or not over plain HTTP."""
    options = pod.command.options if pod.command else {}
    if _engine(pod) == "SGLang" and SGLANG_METRICS not in options:
        seen = f"starts SGLang without {SGLANG_METRICS}, so it has no metrics"
        yield _refusal(pod.command_path, seen, set_option(SGLANG_METRICS, True))
    if _engine(pod) == "vLLM" and options.get(_DISABLED) is True:
        seen = f"starts vLLM with {_DISABLED}, so its metrics stay empty"
        yield _refusal(pod.flags_path or pod.command_path, seen, without(_DISABLED))
    stated = next((flag for flag in _TLS if flag in options), None)
    if stated:
        seen = f"has {stated}, but the PodMonitor reads the metrics over plain HTTP"
        remedy = either(without(stated), "write a PodMonitor of your own")
        yield _refusal(pod.flags_path or pod.command_path, seen, remedy)


def _refuse_port(role: RolePlan, pod: PodFacts) -> Iterator[Finding]:
    """Check that the port of the metrics is known, and declared by a container."""
    port = _port(pod)
    if not isinstance(port, int):
        why = port.because if isinstance(port, Unknown) else f"it is {display(port)}"
        seen = f"has a --port that is not known: {why}, so nothing says where the metrics are"
        yield _refusal(pod.command_path, seen, "write the number")
    elif port not in _declared(role):
        seen = f"listens on {port}, which no container declares, so Prometheus does not find it"
        path = join_path(role.path, "overlay" if role.engine else "entry_template")
        yield _refusal(path, seen, f"add ports: [{{containerPort: {port}}}] to the container")


def _declared(role: RolePlan) -> set[object]:
    """Return the ports of all containers: Prometheus finds a pod by any of them."""
    spec = mapping(role.entry.get("spec"))
    containers = (*sequence(spec.get("containers")), *sequence(spec.get("initContainers")))
    return {
        mapping(port).get("containerPort")
        for container in containers
        for port in sequence(mapping(container).get("ports"))
    }


def _without_metrics(role: RolePlan, pod: PodFacts, *, alone: bool) -> Finding:
    """Report a role without an engine that has metrics; an error if no other role has one."""
    why = f" that can be read: {pod.gap.because}" if pod.gap else ""
    return Finding(
        path=role.path,
        seen=f"role '{role.name}' starts neither vLLM nor SGLang{why}, so its pods are not scraped",
        remedy=remove("remove monitoring", at="monitoring") if alone else "",
        rule=_RULE,
        level=Level.MANDATORY if alone else Level.ADVISORY,
    )


def _refusal(path: str, seen: str, remedy: str) -> Finding:
    way = either(remedy, remove("remove monitoring", at="monitoring"))
    return placed(Finding(path=path, seen=seen, remedy=way, rule=_RULE))


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


def _highest_share(title: str, *metrics: str) -> Panel:
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
        _highest_share("KV cache used", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
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
        _highest_share("KV cache used", "sglang:token_usage"),
        _rate("Prompt tokens per second", "sglang:prompt_tokens_total"),
        _rate("Generated tokens per second", "sglang:generation_tokens_total"),
        _highest_share("Prefix cache hits", "sglang:cache_hit_rate"),
        _times("Time to first token", "sglang:time_to_first_token_seconds"),
        _times("Time between tokens", "sglang:inter_token_latency_seconds"),
        _times("Time of a request", "sglang:e2e_request_latency_seconds"),
    ),
}
"""By engine."""
