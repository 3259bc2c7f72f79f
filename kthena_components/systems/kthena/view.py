"""Reads a ModelServing, and what its partition holds back; never raises.

A value that is not known yet is read as Unknown, one of the wrong type as None: schema.py reports
it, and the rules between fields skip it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, count_of
from kthena_components.core.objects.object import MODEL_SERVER, MODEL_SERVING, Object, read_object
from kthena_components.core.schema.versions import KTHENA_VERSIONS, age, has_since, known_version
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import is_budget, scaled
from kthena_components.core.values.read import (
    count,
    mapping,
    object_name,
    sequence,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown, all_known

BY_GROUP, BY_ROLE = "ServingGroupRollingUpdate", "RoleRollingUpdate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One role of a ModelServing."""

    path: str
    fields: Mapping[str, Any]
    name: MaybeText | None
    replicas: MaybeInt | None
    workers: MaybeInt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A ModelServing, and the Kthena version that will read it."""

    object: Object
    asked: str
    """The version as the caller wrote it; `version` is the one by which it is checked."""
    version: str
    name: MaybeText | None
    spec: Mapping[str, Any]
    template: Mapping[str, Any]
    strategy: Mapping[str, Any]
    rollout: MaybeText | None
    replicas: MaybeInt | None
    roles: tuple[Role, ...]

    @property
    def body(self) -> Mapping[str, Any]:
        """The object as it would be applied, for Volcano's rules over topologies."""
        return self.object.body

    def since(self, version: str) -> bool:
        """Return whether Kthena has this version or a newer one."""
        return age(self.version) >= age(version)


def read_serving(found: Object) -> Serving:
    """Read a ModelServing; its context states the version of Kthena."""
    spec, asked = found.spec, found.context.versions.get("kthena", KTHENA_VERSIONS[-1])
    template, strategy = mapping(spec.get("template")), mapping(spec.get("rolloutStrategy"))
    return Serving(
        object=found,
        asked=asked,
        version=known_version(asked) or KTHENA_VERSIONS[-1],
        name=object_name(found.metadata),
        spec=spec,
        template=template,
        strategy=strategy,
        rollout=text(strategy.get("type"), BY_GROUP),
        replicas=count(spec.get("replicas"), 1),
        roles=tuple(
            _role(f"spec.template.roles[{index}]", mapping(role))
            for index, role in enumerate(sequence(template.get("roles")))
        ),
    )


def _role(path: str, fields: Mapping[str, Any]) -> Role:
    return Role(
        path=path,
        fields=fields,
        name=text(fields.get("name")),
        replicas=count(fields.get("replicas"), 1),
        workers=count(fields.get("workerReplicas")),
    )


def templates(view: Serving) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """List the pod templates of all roles, with their paths."""
    for role in view.roles:
        for field in ("entryTemplate", "workerTemplate"):
            yield f"{role.path}.{field}", mapping(role.fields.get(field))


# What a partition of a ModelServing holds back: its first groups, and the roles that they keep.


PARTITION_SCALING = "kthena-partition-scaling"
PARTITION_RESTORES = "kthena-partition-restores"
REVISION = "modelserving.volcano.sh/revision"
"""Label of a ControllerRevision with the revision whose roles it stores."""
_ALL = 100


def restored_roles(
    after: Mapping[str, Any], live: Mapping[str, Any], stored: Iterable[Mapping[str, Any]]
) -> Iterator[Finding]:
    """Report roles whose held groups get back the number that Kthena stored for them.

    Kthena stores the roles of a revision when it creates groups. If a role is scaled later, the
    groups follow; once a partition holds groups back, they get the stored number again. A group
    whose numbers differ from the spec is never ready, so the ModelServing does not get Available.

    Args:
        after: The ModelServing after the update.
        live: The ModelServing in the cluster, with its status.
        stored: The ControllerRevisions of the ModelServing.

    Source: Kthena v1.0.0 pkg/model-serving-controller/controller/model_serving_controller.go
    syncRoleReplicas, checkServingGroupReady.
    """
    before, new = (read_serving(read_object(body)) for body in (live, after))
    held = held_between(before, new)
    numbers = _stored(mapping(live.get("status")).get("currentRevision"), stored)
    if new.rollout != BY_GROUP or not isinstance(held, int) or held == 0:
        return
    for role in new.roles:
        number = numbers.get(role.name)
        if isinstance(number, int) and isinstance(role.replicas, int) and number != role.replicas:
            grows = number > role.replicas
            yield Finding(
                path=f"{role.path}.replicas",
                seen=f"is {role.replicas}, but Kthena stored {number} when it created groups, and "
                f"gives the {count_of(held, 'group')} that the partition holds back {number} again"
                + ("; the ModelServing then does not become Available" if grows else ""),
                remedy="remove the partition in this update, which updates all groups, or first "
                f"write replicas: {number} in an update without a partition",
                rule=PARTITION_RESTORES,
            )


def _stored(revision: object, stored: Iterable[Mapping[str, Any]]) -> dict[object, object]:
    """Return the stored number of replicas of each role; empty if the revision is not stored."""
    for body in stored:
        if mapping(mapping(body.get("metadata")).get("labels")).get(REVISION) == revision:
            roles = map(mapping, sequence(mapping(body.get("data")).get("data")))
            return {role.get("name"): role.get("replicas", 1) for role in roles}
    return {}


def held_groups(view: Serving) -> MaybeInt:
    """Count the first groups that a partition holds back."""
    return held_between(view, view) if view.rollout == BY_GROUP else 0


def held_between(old: Serving, new: Serving) -> MaybeInt:
    """Count the groups that exist already and keep their roles; percentages round up."""
    stated = mapping(new.strategy.get("rollingUpdateConfiguration")).get("partition")
    if gap := unknown_in(stated):
        return gap
    if not is_budget(stated, _ALL):
        return 0
    groups = all_known(old.replicas or 0, new.replicas or 0)
    if isinstance(groups, Unknown):
        return groups
    return min(scaled(stated, groups[1], 0, up=True) or 0, *groups)


# Reads the objects of Kthena's router: ModelServers and ModelRoutes. It never raises.
#
# Source: volcano-sh/kthena v1.0.0 pkg/apis/networking/v1alpha1.


MODEL_ROUTE = (MODEL_SERVER[0], "ModelRoute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A ModelServer: the pods of one model, for the router."""

    object: Object
    labels: Any
    """matchLabels, as stated."""
    pair: Any
    """pdGroup, as stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRule:
    """One rule of a ModelRoute."""

    path: str
    fields: Mapping[str, Any]
    targets: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A ModelRoute: names of models, and the ModelServers that serve them."""

    object: Object
    rules: tuple[RouteRule, ...]


def read_server(found: Object) -> Server:
    """Read a ModelServer."""
    selector = mapping(found.spec.get("workloadSelector"))
    return Server(object=found, labels=selector.get("matchLabels"), pair=selector.get("pdGroup"))


def read_route(found: Object) -> Route:
    """Read a ModelRoute."""
    return Route(
        object=found,
        rules=tuple(
            RouteRule(
                path=f"spec.rules[{index}]",
                fields=mapping(rule),
                targets=tuple(map(mapping, sequence(mapping(rule).get("targetModels")))),
            )
            for index, rule in enumerate(sequence(found.spec.get("rules")))
        ),
    )


# Reads a ModelBooster: its backends, and the workers of each.
#
# Source: volcano-sh/kthena pkg/apis/workload/v1alpha1/model_booster_types.go.


MODEL_BOOSTER = (MODEL_SERVING[0], "ModelBooster")
SKIPS_INSTALL = "KTHENA_SKIP_ENGINE_DEPENDENCY_INSTALL"
"""Without this variable, pods of a pair run `pip install` at each start, in a line for bash that
breaks the JSON of --kv-transfer-config."""
TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
"""Values that switch it on (strconv.ParseBool)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One worker of a backend."""

    path: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One backend of a ModelBooster."""

    path: str
    fields: Mapping[str, Any]
    kind: object
    workers: tuple[Worker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Booster:
    """A ModelBooster."""

    object: Object
    backends: tuple[Backend, ...]


def read_booster(found: Object) -> Booster:
    """Read a ModelBooster, whatever its fields contain."""
    return Booster(object=found, backends=tuple(_backends(found.spec)))


def _backends(spec: Mapping[str, Any]) -> Iterator[Backend]:
    """Read the backends; the first versions had a list of them."""
    if spec.get("backend") is not None:
        yield _backend("spec.backend", mapping(spec.get("backend")))
    for index, item in enumerate(sequence(spec.get("backends"))):
        yield _backend(f"spec.backends[{index}]", mapping(item))


def _backend(path: str, fields: Mapping[str, Any]) -> Backend:
    """Read a backend of a ModelBooster with its workers."""
    workers = enumerate(sequence(fields.get("workers")))
    return Backend(
        path=path,
        fields=fields,
        kind=fields.get("type"),
        workers=tuple(
            Worker(path=f"{path}.workers[{index}]", fields=mapping(item)) for index, item in workers
        ),
    )


# Reads AutoscalingPolicies, and the AutoscalingPolicyBindings that Kthena had before 1.0.
#
# Both never raise. Source: volcano-sh/kthena v1.0.0 and v0.4.0 pkg/apis/workload/v1alpha1.


POLICY, BINDING = (
    (MODEL_SERVING[0], kind) for kind in ("AutoscalingPolicy", "AutoscalingPolicyBinding")
)
ONE, SEVERAL, ROLES = "homogeneousTarget", "heterogeneousTarget", "disaggregatedTarget"
_FIRST = {"scalingConfiguration": ONE, "optimizerConfiguration": SEVERAL}
"""Names that Kthena 0.1 had for two of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """What is scaled together: a whole ModelServing, or a role of one."""

    path: str
    """Path of minReplicas and maxReplicas, in the object."""
    fields: Mapping[str, Any]
    sources: Mapping[str, Any]
    """Where its metrics are read, by name of the metric."""
    ref: Mapping[str, Any]
    ref_path: str
    role: MaybeText | None = ""
    """Empty: the whole ModelServing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """An AutoscalingPolicy or an AutoscalingPolicyBinding."""

    object: Object
    has_targets: bool
    """Whether objects of this kind name targets in this release of Kthena."""
    metric_name: str
    """The field with the name of a metric."""
    targets: tuple[str, ...]
    """The fields of the spec that name targets and are there."""
    units: tuple[Scaled, ...]

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its spec."""
        return self.object.spec


def read_policy(found: Object) -> Policy:
    """Read an object of either kind; its context states the version of Kthena."""
    joined = has_since(found.context.versions, "kthena", "1.0")
    binding = found.group_kind == BINDING
    known = (ONE, SEVERAL, *(_FIRST if binding else (ROLES,)))
    targets = tuple(key for key in known if found.spec.get(key) is not None)
    has_targets = binding or joined
    return Policy(
        object=found,
        has_targets=has_targets,
        metric_name="name" if joined else "metricName",
        targets=targets,
        units=tuple(unit for key in targets for unit in _units(found, key)) if has_targets else (),
    )


def _units(found: Object, key: str) -> Iterator[Scaled]:
    """List what a policy scales, from the field of its form: one, several, or roles."""
    fields, path, shape = mapping(found.spec.get(key)), f"spec.{key}", _FIRST.get(key, key)
    if shape == ONE:
        yield _whole(path, fields)
    elif shape == SEVERAL:
        for index, param in enumerate(sequence(fields.get("params"))):
            yield _whole(f"{path}.params[{index}]", mapping(param))
    else:
        for name, role in _without_null(fields.get("roles")).items():
            yield Scaled(
                path=f"{path}.roles.{name}",
                fields=mapping(role),
                sources=_without_null(mapping(role).get("metricSources")),
                ref=mapping(fields.get("targetRef")),
                ref_path=f"{path}.targetRef",
                role=name if isinstance(name, str) else None,
            )


def _without_null(values: object) -> dict[Any, Any]:
    """Return the entries of a map without null, which the API server drops."""
    return {key: value for key, value in mapping(values).items() if value is not None}


def _whole(path: str, fields: Mapping[str, Any]) -> Scaled:
    """Read a target. Before 1.0 it may name a role in `subTargets`."""
    target = mapping(fields.get("target"))
    return Scaled(
        path=path,
        fields=fields,
        sources=_without_null(target.get("metricSources")),
        ref=mapping(target.get("targetRef")),
        ref_path=f"{path}.target.targetRef",
        role=text(mapping(target.get("subTargets")).get("name"), ""),
    )
