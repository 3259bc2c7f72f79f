"""Options of Kthena's router that do not fit, and in which words that is refused."""

from typing import Any

import pytest

from tests.support.specs import ENGINE_NATIVE, PAIR, PREFILL_DECODE, REMOVED, SGLANG, Args, changed
from tests.systems.kthena.test_limits_production import TEMPLATE, said


def route(**fields: Any) -> dict[str, Any]:
    return {"model_server": {}, "model_route": fields}


def _sglang(role: str) -> Args:
    engine = {**SGLANG["roles"][0]["engine"], "kv_transfer": {"role": role, "connector": "nixl"}}
    return {**SGLANG["roles"][0], "name": role, "engine": engine}


SGLANG_PAIR: Args = {**SGLANG, "roles": [_sglang("prefill"), _sglang("decode")]}

ROUTED: dict[str, tuple[Args, dict[str, Any], str]] = {
    "route-to-no-server": (
        ENGINE_NATIVE,
        {"model_route": {}},
        (
            "backend_options.model_route.rules[0].target_models[0].model_server_name: is "
            "missing, and "
            "the serving has no ModelServer. Write it, or add model_server: {}. [backend-options]"
        ),
    ),
    "port-of-nobody": (
        ENGINE_NATIVE,
        {"model_server": {"workload_port": {"port": 8000}}},
        (
            "backend_options.model_server.workload_port.port: is 8000, but vLLM listens on 8080 in "
            "the entry pods of role 'decode'. Write 8080. [backend-options]"
        ),
    ),
    "no-weight": (
        ENGINE_NATIVE,
        route(rules=[{"target_models": [{"weight": 0}]}]),
        (
            "backend_options.model_route.rules[0].target_models: has no target with a weight "
            "above 0. "
            "Give one a weight from 1 to 100. [backend-options]"
        ),
    ),
    "two-ways-to-match": (
        ENGINE_NATIVE,
        route(rules=[{"model_match": {"uri": {"exact": "/", "prefix": "/"}}}]),
        (
            "backend_options.model_route.rules[0].model_match.uri: has exact and prefix. Write "
            "exactly "
            "one of them. [backend-options]"
        ),
    ),
    "no-way-to-match": (
        ENGINE_NATIVE,
        route(rules=[{"model_match": {"headers": {"tenant": {}}}}]),
        (
            "backend_options.model_route.rules[0].model_match.headers.tenant: has none of exact, "
            "prefix and regex. Write exactly one of them. [backend-options]"
        ),
    ),
    "regex": (
        ENGINE_NATIVE,
        route(rules=[{"model_match": {"uri": {"regex": "("}}}]),
        (
            "backend_options.model_route.rules[0].model_match.uri.regex: is '(', but must be a "
            "regular "
            "expression in Go's syntax (a '(' is not closed). Write such a value. [value]"
        ),
    ),
    "no-limit": (
        ENGINE_NATIVE,
        route(rate_limit={"unit": "day"}),
        (
            "backend_options.model_route.rate_limit: limits neither input nor output tokens. "
            "Write a "
            "number of tokens, or remove it. [backend-options]"
        ),
    ),
    "field-of-a-limit": (
        ENGINE_NATIVE,
        route(rate_limit={"input_tokens_per_unit": 1, "globl": {}}),
        (
            "backend_options.model_route.rate_limit.globl: there is no field 'globl' here. Write "
            "'global'. [unknown-field]"
        ),
    ),
    "unknown-model": (
        TEMPLATE,
        {
            "model_server": {"inference_engine": "vLLM", "workload_port": {"port": 8000}},
            "model_route": {},
        },
        (
            "backend_options.model_route.model_name: is missing, and its default is the name under "
            "which the engines serve their model, if they have one in common. Write the name of "
            "the model in requests: with --served-model-name, that name. [backend-options]"
        ),
    ),
    "role": (
        PREFILL_DECODE,
        {"model_server": {"role": "decod"}},
        (
            "backend_options.model_server.role: is 'decod', but the roles are prefill, decode. "
            "Write "
            "'decode'. [backend-options]"
        ),
    ),
    "role-and-pair": (
        PREFILL_DECODE,
        {"model_server": {"role": "decode", "pd_group": {}}},
        (
            "backend_options.model_server.role: is given together with pd_group, which names two "
            "roles. Remove one of them. [backend-options]"
        ),
    ),
    "pair-of-one": (
        PREFILL_DECODE,
        {"model_server": {"pd_group": {"prefill": "decode"}}},
        (
            "backend_options.model_server.pd_group.decode: is 'decode', like prefill, but a "
            "pair has "
            "two roles. Write another role. [backend-options]"
        ),
    ),
    "undecided-role": (
        changed(PREFILL_DECODE, {"roles[2]": {**PREFILL_DECODE["roles"][1], "name": "other"}}),
        {"model_server": {}},
        (
            "backend_options.model_server.role: is missing, and the roles are prefill, decode, "
            "other. "
            "Write the role whose engines serve, or pd_group. [backend-options]"
        ),
    ),
    "connector-without-pair": (
        ENGINE_NATIVE,
        {"model_server": {"kv_connector": {}}},
        (
            "backend_options.model_server.kv_connector: is given, but the serving has no pair of "
            "prefill and decode. Write pd_group, or remove it. [backend-options]"
        ),
    ),
    "http-for-nixl": (
        changed(PAIR, {"expose": REMOVED}),
        {"model_server": {"pd_group": {}, "kv_connector": {"type": "http"}}},
        (
            "backend_options.model_server.kv_connector.type: is 'http', but the engines transfer "
            "with nixl, and the router then sends them no kv_transfer_params. Write 'nixl', or "
            "remove kv_connector. [backend-options]"
        ),
    ),
    "connector-of-sglang": (
        SGLANG_PAIR,
        {"model_server": {"kv_connector": {"type": "mooncake"}}},
        (
            "backend_options.model_server.kv_connector.type: is 'mooncake', but the engines are "
            "SGLang, and the router then sends them no bootstrap_room. Remove kv_connector. "
            "[backend-options]"
        ),
    ),
}


@pytest.mark.parametrize("name", ROUTED)
def test_what_cannot_be_routed_is_refused(name: str) -> None:
    args, options, words = ROUTED[name]
    assert said(args, options) == words
