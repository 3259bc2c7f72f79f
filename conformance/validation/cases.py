"""One case of the differential validation: an object, and both verdicts."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from conformance.kthena import (
    random_autoscaling,
    random_model_boosters,
    random_model_servings,
    random_routing,
)
from conformance.lws import random_leader_worker_sets
from conformance.validation import random_damage
from conformance.validation.deliberate_differences import KAITO, SANDBOX, Differences
from conformance.volcano import invalid_objects, random_objects
from kthena_components.checker.crd_schema import SCHEMA_RULE, SCHEMA_RULES
from kthena_components.checker.manifest import check_manifest
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.core.findings import Finding, Level, rule_name
from kthena_components.core.objects.object import (
    HYPER_NODE,
    MODEL_SERVER,
    MODEL_SERVING,
    POD_GROUP,
    QUEUE,
    GroupKind,
)
from kthena_components.systems import INDEX, find_kind
from kthena_components.systems.kthena.view import MODEL_BOOSTER, MODEL_ROUTE, POLICY
from kthena_components.systems.lws.view import DISAGGREGATED_SET, LEADER_WORKER_SET
from tests.support.admission import own_findings

Body = dict[str, Any]
_REFUSALS = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY)
_NOT_DECODED = "the server rejected our request for an unknown reason"
"""A webhook cannot read the object, so the API server rejects it."""
_CRASHED = "denied the request: panic"
"""A webhook of LWS divides by a subGroupSize of 0, so the API server rejects the object."""
_CLOSED = "failed calling webhook"
"""KAITO's webhook crashes on the object and closes the connection, so the API server rejects it."""
_POINTLESS = 1e21
VERSIONS = {"volcano": "1.14.1", "lws": "0.9"}
"""What runs here, where it is not the newest that the rules know."""
_RIGHT = 0.24
"""Share of objects that stay valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of object, with its generator and its validators."""

    name: str
    path: str
    number: int
    """Number of tries at scale 1."""
    draw: Callable[[random.Random], Body]
    changes: tuple[Callable[[random.Random, Body], None], ...]
    anywhere: tuple[Callable[[random.Random, Body], None], ...]
    """Random changes that target no rule."""
    of: GroupKind
    """API group and kind, to find its rules."""
    parts: tuple[str, Callable[[Body], Iterator[Body]]] | None = None
    """Objects that a controller creates for it without checks at admission, and their path."""
    differences: Differences = SANDBOX

    @property
    def rules(self) -> frozenset[str]:
        """List its admission rules. For a ModelServing, Volcano checks the topologies."""
        known = find_kind(self.of)
        schema = SCHEMA_RULES.get(INDEX[self.of], SCHEMA_RULE)
        named = frozenset({schema, *map(rule_name, known.rules if known else ())})
        return named if self.of != MODEL_SERVING else frozenset(filter(_is_kthenas, named))

    @property
    def least(self) -> int:
        """Number of tries that is enough for every rule."""
        return self.number // 5

    def body(self, seed: int, number: int) -> Body:
        """Generate one object: valid, or with one to three errors."""
        draw = random.Random(f"{self.name}-{seed}-{number}")  # noqa: S311 - no secret
        body = self.draw(draw)
        if draw.random() < _RIGHT:
            return body
        aimed = draw.randrange(4)
        if aimed:
            draw.choice(self.changes)(draw, body)
        for _ in range(draw.choice((0, 0, 0, 1, 2)) if aimed else draw.choice((1, 1, 2, 3))):
            draw.choice(self.anywhere)(draw, body)
        return body


def _is_kthenas(rule: str) -> bool:
    return rule.startswith("kthena-")


_SETS = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/serving/leaderworkersets"
_SCHEDULING = "/apis/scheduling.volcano.sh/v1beta1"
_ROUTING = "/apis/networking.serving.volcano.sh/v1alpha1/namespaces/serving"
KINDS: tuple[Kind, ...] = (
    Kind(
        name="ModelServing",
        path="/apis/workload.serving.volcano.sh/v1alpha1/namespaces/serving/modelservings",
        number=20_000,
        draw=random_model_servings.serving,
        changes=random_model_servings.CHANGES,
        anywhere=(random_damage.damage, random_damage.damage_pod),
        of=MODEL_SERVING,
    ),
    Kind(
        name="ModelBooster",
        path="/apis/workload.serving.volcano.sh/v1alpha1/namespaces/serving/modelboosters",
        number=5_000,
        draw=random_model_boosters.model_booster,
        changes=random_model_boosters.BOOSTER_CHANGES,
        anywhere=(random_damage.damage,),
        of=MODEL_BOOSTER,
    ),
    Kind(
        name="AutoscalingPolicy",
        path="/apis/workload.serving.volcano.sh/v1alpha1/namespaces/serving/autoscalingpolicies",
        number=5_000,
        draw=random_autoscaling.autoscaling_policy,
        changes=random_autoscaling.POLICY_CHANGES,
        anywhere=(random_damage.damage,),
        of=POLICY,
    ),
    Kind(
        name="ModelServer",
        path=f"{_ROUTING}/modelservers",
        number=2_000,
        draw=random_routing.model_server,
        changes=random_routing.SERVER_CHANGES,
        anywhere=(random_damage.damage,),
        of=MODEL_SERVER,
    ),
    Kind(
        name="ModelRoute",
        path=f"{_ROUTING}/modelroutes",
        number=3_000,
        draw=random_routing.model_route,
        changes=random_routing.ROUTE_CHANGES,
        anywhere=(random_damage.damage,),
        of=MODEL_ROUTE,
    ),
    Kind(
        name="PodGroup",
        path=f"{_SCHEDULING}/namespaces/serving/podgroups",
        number=5_000,
        draw=random_objects.pod_group,
        changes=invalid_objects.GROUP_CHANGES,
        anywhere=(random_damage.damage,),
        of=POD_GROUP,
    ),
    Kind(
        name="Queue",
        path=f"{_SCHEDULING}/queues",
        number=5_000,
        draw=random_objects.queue,
        changes=invalid_objects.QUEUE_CHANGES,
        anywhere=(random_damage.damage,),
        of=QUEUE,
    ),
    Kind(
        name="HyperNode",
        path="/apis/topology.volcano.sh/v1alpha1/hypernodes",
        number=5_000,
        draw=random_objects.hyper_node,
        changes=invalid_objects.HYPER_NODE_CHANGES,
        anywhere=(random_damage.damage,),
        of=HYPER_NODE,
    ),
    Kind(
        name="LeaderWorkerSet",
        path=_SETS,
        number=5_000,
        draw=random_leader_worker_sets.leader_worker_set,
        changes=random_leader_worker_sets.SET_CHANGES,
        anywhere=(random_damage.damage, random_leader_worker_sets.damage_template),
        of=LEADER_WORKER_SET,
    ),
    Kind(
        name="DisaggregatedSet",
        path="/apis/disaggregatedset.x-k8s.io/v1/namespaces/serving/disaggregatedsets",
        number=3_000,
        draw=random_leader_worker_sets.disaggregated_set,
        changes=random_leader_worker_sets.DISAGGREGATED_CHANGES,
        anywhere=(random_damage.damage, random_leader_worker_sets.damage_template),
        of=DISAGGREGATED_SET,
        parts=(_SETS, random_leader_worker_sets.made_sets),
    ),
)


def ours(kind: Kind, body: Body) -> list[Finding]:
    """Return our mandatory findings."""
    found = own_findings(body, volcano=VERSIONS["volcano"], lws=VERSIONS["lws"])
    return [f for f in found if f.rule in kind.rules and f.level is Level.MANDATORY]


def wrong_pods(kind: Kind, body: Body) -> bool:
    """Return whether the rules of pods reject an object that contains pod templates.

    A webhook of LWS fills in fields that are missing, but only if it changes something else.
    """
    known = find_kind(kind.of)
    if known is None or not known.templates or kind.of == MODEL_SERVING:
        return False
    return any(f.rule == "pod-schema" and f.level is Level.MANDATORY for f in check_manifest(body))


def theirs(api: Cluster, kind: Kind, body: Body) -> str | None:
    """Return why the cluster rejects an object, or None if it accepts it.

    Raises:
        ClusterError: The answer is not a verdict, for example because a webhook did not answer.
    """
    # As kubectl asks: a field that no schema declares is rejected, not dropped.
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    try:
        api.ask("POST", kind.path, as_sent(body), query)
        path, made = kind.parts or ("", lambda _: iter(()))
        for part in made(body):
            api.ask("POST", path, as_sent(part), query)
    except ClusterError as error:
        said = str(error)
        if error.status in _REFUSALS or _NOT_DECODED in said or _CRASHED in said:
            return said
        if kind.differences is KAITO and _CLOSED in said and said.endswith(": EOF"):
            return said
        raise
    return None


def as_sent(value: Any) -> Any:
    """Write whole numbers without a decimal point, as programs in Go do."""
    match value:
        case dict():
            return {key: as_sent(item) for key, item in value.items()}
        case list():
            return [as_sent(item) for item in value]
        case float() if value.is_integer() and abs(value) < _POINTLESS:
            return int(value)
    return value
