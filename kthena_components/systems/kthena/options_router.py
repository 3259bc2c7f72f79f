"""`backend_options.model_server` and `.model_route` of the kthena backend: Kthena's router.

The field names are those of the CRDs.
Source: Kthena v1.0.0 pkg/apis/networking/v1alpha1 and pkg/kthena-router.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from kthena_components.core.spec.fields import Label, Port, Shown, Spec, Text, Word
from kthena_components.core.values.quantity import read_duration
from kthena_components.core.values.regex import trouble_in_go

_WORD = Field(strict=False)


def _duration(value: str) -> str:
    if (read_duration(value) or -1) <= 0:
        raise ValueError("a duration, such as 500ms or 2m")
    return value


def _regex(value: str) -> str:
    if trouble := trouble_in_go(value):
        raise ValueError(f"a regular expression in Go's syntax ({trouble})")
    return value


Period = Annotated[str, AfterValidator(_duration)]


class InferenceEngine(StrEnum):
    """The engine whose protocol and metrics the router uses."""

    VLLM = "vLLM"
    SGLANG = "SGLang"


class Protocol(StrEnum):
    """How the router talks to the pods."""

    HTTP = "http"
    HTTPS = "https"


class Connector(StrEnum):
    """How the KV cache gets from a prefill pod to a decode pod."""

    HTTP = "http"
    LMCACHE = "lmcache"
    NIXL = "nixl"
    MOONCAKE = "mooncake"


class Unit(StrEnum):
    """Unit of time of a rate limit."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"


class WorkloadPortSpec(Spec):
    """Where the entry pods listen."""

    port: Port | None = None
    """Default: the port of the engine."""
    protocol: Annotated[Protocol, _WORD] = Protocol.HTTP


class RetrySpec(Spec):
    """How often a request is tried again."""

    attempts: Annotated[int, Field(ge=0, le=2**31 - 1)]
    retry_interval: Period | None = None
    """Default 100ms."""


class TrafficPolicySpec(Spec):
    """Limits of requests to the pods."""

    timeout: Period | None = None
    """Default: none."""
    retry: RetrySpec | None = None


class ConnectorSpec(Spec):
    """How the KV cache gets from a prefill pod to a decode pod."""

    type: Annotated[Connector, _WORD] = Connector.HTTP


class PairSpec(Spec):
    """The roles of a serving with separate prefill and decode."""

    prefill: Word = "prefill"
    decode: Word = "decode"


class ModelServerSpec(Spec):
    """A ModelServer, which tells Kthena's router the pods of the serving."""

    role: Word | None = None
    """Role whose entry pods serve. Default: the only role, or the pair of prefill and decode."""
    pd_group: PairSpec | None = None
    """Default: the roles prefill and decode, if the serving has exactly these."""
    model: Shown | None = None
    """Name of the model that the engine knows; the router writes it into requests. Default: the
    first of its --served-model-name, or else its model.
    """
    inference_engine: Annotated[InferenceEngine, _WORD] | None = None
    """Default: the engine that the role starts."""
    workload_port: WorkloadPortSpec = Field(default_factory=WorkloadPortSpec)
    traffic_policy: TrafficPolicySpec | None = None
    kv_connector: ConnectorSpec | None = None
    """Default: the connector of the engines' --kv-transfer-config, such as nixl. Without one, the
    router's own: http for vLLM, and SGLang's for SGLang.
    """


class StringMatchSpec(Spec):
    """A string, exactly one of three ways."""

    exact: str | None = None
    prefix: str | None = None
    regex: Annotated[str, AfterValidator(_regex)] | None = None


class BodyMatchSpec(Spec):
    """What the body of a request has."""

    model: Shown | None = None


class ModelMatchSpec(Spec):
    """The requests of a rule. All conditions must hold. Default: all requests."""

    headers: dict[Text, StringMatchSpec] = Field(default_factory=dict)
    uri: StringMatchSpec | None = None
    body: BodyMatchSpec | None = None


class TargetModelSpec(Spec):
    """A ModelServer that gets a share of the requests."""

    model_server_name: Label | None = None
    """Default: the ModelServer of this serving."""
    weight: Annotated[int, Field(ge=0, le=100)] = 100


class RuleSpec(Spec):
    """A rule of a ModelRoute. The first rule that matches counts."""

    name: Shown | None = None
    model_match: ModelMatchSpec | None = None
    target_models: Annotated[list[TargetModelSpec], Field(max_length=16)] = Field(
        default_factory=lambda: [TargetModelSpec()]
    )
    """Default: the ModelServer of this serving."""


class RedisSpec(Spec):
    """A Redis server."""

    address: Shown
    """Host and port: redis.serving:6379."""


class GlobalSpec(Spec):
    """Counters that all routers share."""

    redis: RedisSpec


class RateLimitSpec(Spec):
    """Tokens per unit of time. Default: no limit."""

    input_tokens_per_unit: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    output_tokens_per_unit: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    unit: Annotated[Unit, _WORD] = Unit.SECOND
    global_: GlobalSpec | None = Field(default=None, alias="global")
    """Default: each router counts by itself."""


class ParentSpec(Spec):
    """A Gateway to which a route belongs."""

    name: Shown
    namespace: Label | None = None
    section_name: Shown | None = None
    port: Port | None = None


class ModelRouteSpec(Spec):
    """A ModelRoute, which tells Kthena's router the names of models in requests."""

    model_name: Shown | None = None
    """`model` in requests. Default: the name that the engine serves. A change replaces the
    ModelRoute.
    """
    lora_adapters: Annotated[list[Shown], Field(max_length=10)] = Field(default_factory=list)
    """Names of LoRA adapters of the engine, as `model` in requests. Default: none."""
    rules: Annotated[list[RuleSpec], Field(min_length=1, max_length=16)] = Field(
        default_factory=lambda: [RuleSpec(name="default")]
    )
    """Default: one rule, all requests to this serving."""
    rate_limit: RateLimitSpec | None = None
    parent_refs: list[ParentSpec] = Field(default_factory=list)
    """Default: all Gateways of the namespace. Needs Kthena 0.2."""
