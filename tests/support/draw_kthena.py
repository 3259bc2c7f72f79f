"""Options of the kthena backend, drawn for a serving: autoscaling, the router, plugins."""

from typing import Any

from hypothesis import strategies as st

from tests.support.specs import Args

_OLDEST, _NEWEST = "0.1", "1.0"
_BEHAVIORS: st.SearchStrategy[Args] = st.sampled_from(
    [
        {"scale_down": {"instances": 1, "period": "1m"}},
        {"scale_up": {"panic_policy": {"period": "5s", "percent": 200}}},
        {"scale_up": {"stable_policy": {"select_policy": "And", "stabilization_window": "0s"}}},
    ]
)
_PROMETHEUS = {"server_url": "http://prometheus.monitoring:9090", "query": "sum(waiting)"}


@st.composite
def kthena_options(draw: st.DrawFn, args: Args, version: str) -> Args:
    """Draw options that fit a serving. One without an autoscaler of Kthena may get another."""
    options: Args = {}
    if version not in {"0.1", "0.2"} and draw(st.booleans()):
        plugin = {"name": "demo-pod-tweaks", "config": {"runtimeClassName": "nvidia"}}
        options["plugins"] = [plugin]
    started = version == _NEWEST or args["replicas"] > 0
    if version != _OLDEST and started and draw(st.booleans()):
        options["autoscaling"] = draw(_scaling(args, version))
    else:
        args["autoscaled"] = draw(st.booleans())
    if draw(st.booleans()):
        options["model_server"] = draw(_servers(args))
    if draw(st.booleans()):
        options["model_route"] = draw(_routes(version, own="model_server" in options))
    return options


@st.composite
def _scaling(draw: st.DrawFn, args: Args, version: str) -> Args:
    """Draw bounds around what the serving has: its numbers are valid, and near ones may not be."""
    source = draw(_sources(version))
    scaling: Args = {
        "metrics": [{"name": "waiting", "target_value": draw(st.sampled_from(["5", "500m"]))}],
        "metric_sources": {"waiting": source},
    }
    if draw(st.booleans()):
        scaling["behavior"] = draw(_BEHAVIORS)
    scalable = [role for role in args["roles"] if role.get("replicas", 1)]
    by_role = draw(st.booleans())
    if scalable and by_role:
        most = draw(st.integers(1, min(len(scalable), 2)))
        roles = {role["name"]: _around(role.get("replicas", 1)) for role in scalable[:most]}
        scaling["roles"] = roles
        if version == _NEWEST and most > 1:
            both = dict(zip(("numerator_role", "denominator_role"), roles, strict=True))
            scaling["ratio_constraint"] = {**both, "min_ratio": "0", "max_ratio": "100"}
    elif args["replicas"]:
        scaling |= _around(args["replicas"])
    else:
        scaling |= {"min_replicas": 0, "max_replicas": 1}
        scaling["metric_sources"] = {"waiting": {"prometheus": _PROMETHEUS}}
    return scaling


def _around(replicas: int) -> Args:
    return {"min_replicas": replicas, "max_replicas": replicas + 1}


def _sources(version: str) -> st.SearchStrategy[Args]:
    pods: list[Args] = [
        {"pod": {"port": 8000}},
        {"pod": {"port": 8000, "name": "vllm:num_requests_waiting"}},
        {"pod": {"port": 8000, "label_selector": {"match_labels": {"team": "chat"}}}},
    ]
    return st.sampled_from([*pods, *([{"prometheus": _PROMETHEUS}] if version == _NEWEST else [])])


@st.composite
def _servers(draw: st.DrawFn, args: Args) -> Args:
    ports = {role["name"]: 8080 if "engine" in role else 8000 for role in args["roles"]}
    server: Args = {"inference_engine": "vLLM"}
    pair = {ports.get("prefill"), ports.get("decode")}
    if len(pair) == 1 and pair != {None} and draw(st.booleans()):
        server["pd_group"] = {"prefill": "prefill", "decode": "decode"}
        if draw(st.booleans()):  # otherwise it follows from the engines; no other type fits
            server["kv_connector"] = {"type": "nixl"}
        server["workload_port"] = {"port": ports["decode"]}
    else:
        server["role"] = draw(st.sampled_from(list(ports)))
        server["workload_port"] = {"port": ports[server["role"]]}
    if draw(st.booleans()):
        server["traffic_policy"] = {"timeout": "2m", "retry": {"attempts": 3}}
    return server


@st.composite
def _routes(draw: st.DrawFn, version: str, *, own: bool) -> Args:
    target: dict[str, Any] = {} if own else {"model_server_name": "llama"}
    match = {"headers": {"tenant": {"exact": "a"}}, "uri": {"regex": "^/v1/"}}
    other = {"model_server_name": "canary", "weight": draw(st.integers(0, 100))}
    rules = [{"target_models": [target]}, {"model_match": match, "target_models": [target, other]}]
    route: Args = {"model_name": "chat", "rules": draw(st.sampled_from([rules, rules[:1]]))}
    if draw(st.booleans()):
        route["lora_adapters"] = ["sql"]
        route["rate_limit"] = {"output_tokens_per_unit": 1000, "unit": "minute"}
    if version != _OLDEST and draw(st.booleans()):
        route["parent_refs"] = [{"name": "inference"}]
    return route
