"""What Kthena, or the plan's version of it, does not support: an error, never dropped.

Source: Kthena tags v0.1.0 to v1.0.0, pkg/apis/workload/v1alpha1 and webhook/validator.go.
"""

from collections.abc import Callable, Iterator

from kthena_components.core import naming
from kthena_components.core.facts.context import GPU, MODEL_CONFIG
from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.objects.object import VOLCANO
from kthena_components.core.plan.limits import UPDATE, Limit, SetField, loss
from kthena_components.core.plan.lws_variables import unset_lws_names
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.plan.templates import gpu_annotations
from kthena_components.core.remedies import either, elsewhere, remove
from kthena_components.core.spec.enums import KthenaVersion, RolloutType
from kthena_components.systems.kthena.options import refuse_plugins
from kthena_components.systems.kubernetes.backends import ENGINES_WITH_METRICS, WITHOUT_VOLCANO

_SINCE = tuple(KthenaVersion)
_MOST_ROLES, _LONGEST_ROLE_NAME = 4, 12
"""The CRD's maxItems and maxLength."""


def since(plan: ServingPlan, version: KthenaVersion) -> bool:
    """Return whether the plan's Kthena is at least of this version."""
    return _SINCE.index(plan.kthena_version) >= _SINCE.index(version)


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report variables, plugins and annotations that do not fit the plan's Kthena."""
    yield from refuse_lws_names(plan, "Kthena")
    yield from refuse_plugins(plan)
    for path in () if since(plan, KthenaVersion.V0_4) else annotated(plan):
        seen = _needs("a template with annotations (earlier controllers crash)", KthenaVersion.V0_4)
        yield loss(path, seen.format(plan.kthena_version), _or_later(KthenaVersion.V0_4))
    crashes = plan.group_topology is not None and plan.min_role_replicas is None
    if crashes and not since(plan, KthenaVersion.V0_2):
        yield loss(
            "gang_policy",
            "is missing while network_topology is given, and Kthena 0.1 crashes on that",
            f"give gang_policy.min_role_replicas, or write kthena_version: '{KthenaVersion.V0_2}'",
        )


def refuse_lws_names(plan: ServingPlan, title: str) -> Iterator[Finding]:
    """Report templates that need LeaderWorkerSet's variables: the controller appends its own.

    A variable of the template comes before them, so it cannot refer to them.
    """
    found = dict.fromkeys(
        (f"{role.path}.{'overlay' if role.engine else f'{field}.{path}'}", name, ".env[" in path)
        for role in plan.roles
        for field, template in (("entry_template", role.entry), ("worker_template", role.worker))
        for path, name in unset_lws_names(template or {})
    )
    for path, name, in_env in found:
        same = naming.LWS_ENV[name]
        late = ", but after the variables of the template" if in_env else ""
        instead = f"use {same} in the command" if in_env else f"write {same}"
        yield loss(
            path,
            f"refers to {name}, which only LeaderWorkerSet sets; {title} sets {same}{late}",
            elsewhere(instead),
        )


def annotated(plan: ServingPlan) -> Iterator[str]:
    """Return the fields that put annotations into pod templates: controllers before 0.4 crash."""
    for role in plan.roles:
        shaped = role.engine is not None and role.engine.hf_config is not None
        if shaped:
            yield f"{role.path}.engine.hf_config"
        unlabelled = bool(gpu_annotations(role.stated))
        if unlabelled:
            yield f"{role.path}.resources.gpu_label"
        own = {*([MODEL_CONFIG] if shaped else []), *([GPU] if unlabelled else [])}
        for field, template in (("entry_template", role.entry), ("worker_template", role.worker)):
            stated = ((template or {}).get("metadata") or {}).get("annotations") or {}
            if stated.keys() - own:
                yield f"{role.path}.{'overlay' if role.engine else field}.metadata.annotations"
                break


def limits_of_roles(kind: str) -> tuple[Limit, Limit]:
    """Return how many roles, and how long names of roles, the CRD of a kind allows.

    ModelInfer, from which ModelServing was made, has the same limits.
    """
    return (
        Limit(
            "roles",
            lambda one: (
                f"has {count_of(len(one.value), 'role')} "
                f"({', '.join(role.name for role in one.value)}), "
                f"and a {kind} has at most {_MOST_ROLES}"
            ),
            when=lambda one: len(one.value) > _MOST_ROLES,
            remedy=elsewhere("split the serving"),
        ),
        Limit(
            "roles[].name",
            lambda one: (
                f"is '{one.value}', {len(one.value)} characters, and a {kind} allows "
                f"{_LONGEST_ROLE_NAME}"
            ),
            when=lambda one: len(one.value) > _LONGEST_ROLE_NAME,
            remedy=lambda one: f"shorten it by {len(one.value) - _LONGEST_ROLE_NAME}",
        ),
    )


def _needs(what: str, version: KthenaVersion) -> str:
    return f"{what} needs Kthena {version} or later, and kthena_version is {{}}"


def _or_later(version: KthenaVersion) -> str:
    return either(remove(), f"write kthena_version: '{version}'")


def _added(
    version: KthenaVersion,
    field: str,
    what: str,
    when: Callable[[SetField], object] = lambda _: True,
) -> Limit:
    """Return the limit of a field, or of a value of it, that a version added."""
    return Limit(
        field,
        lambda one: _needs(what, version).format(one.plan.kthena_version),
        takes=f"{what} since Kthena {version}",
        when=lambda one: when(one) and not since(one.plan, version),
        remedy=_or_later(version),
    )


def _partition_of_all(one: SetField) -> str:
    return (
        f"is {one.value} of {count_of(one.plan.groups, 'group')}, and Kthena "
        f"{one.plan.kthena_version} requires that at least one group is updated"
    )


def _smaller_partition(one: SetField) -> str:
    instead = f"write at most {one.plan.groups - 1}" if one.plan.groups else remove()
    return f"{instead}, or write kthena_version: '{KthenaVersion.V0_4}'"


LIMITS = (
    WITHOUT_VOLCANO,
    ENGINES_WITH_METRICS,
    Limit(
        f"{UPDATE}.max_surge",
        "is {}, but Kthena has no surge: versions that accept the field ignore it",
        remedy=remove("remove it; max_unavailable is the only budget"),
    ),
    *limits_of_roles("ModelServing"),
    Limit(
        "roles[].name",
        "is '{}', and Kthena requires a role name that starts with a letter",
        when=lambda one: (
            since(one.plan, KthenaVersion.V0_3) and not naming.DNS_1035.fullmatch(one.value)
        ),
        remedy=lambda one: f"write, for example, '{f'r{one.value}'[:12].rstrip('-')}'",
    ),
    _added(KthenaVersion.V1_0, "queue", "a queue"),
    _added(KthenaVersion.V1_0, "roles[].max_unavailable", "a budget per role"),
    _added(
        KthenaVersion.V0_4,
        "rollout_strategy.type",
        "RoleRollingUpdate",
        lambda one: one.value is RolloutType.ROLE,
    ),
    _added(
        KthenaVersion.V0_4,
        f"{UPDATE}.partition",
        "a partition in percent",
        lambda one: isinstance(one.value, str),
    ),
    _added(KthenaVersion.V0_3, "backend_options.plugins", "a plugin", lambda one: bool(one.value)),
    _added(
        KthenaVersion.V0_2,
        "scheduler_name",
        "another scheduler than Volcano",
        lambda one: one.value != VOLCANO,
    ),
    _added(KthenaVersion.V0_2, "network_topology.role_policy", "a topology per role"),
    _added(KthenaVersion.V0_2, "network_topology.group_policy.highest_tier_name", "a tier by name"),
    _added(KthenaVersion.V0_2, "backend_options.autoscaling", "autoscaling"),
    _added(
        KthenaVersion.V0_2,
        "backend_options.model_route.parent_refs",
        "a gateway of a route",
        lambda one: bool(one.value),
    ),
    _added(
        KthenaVersion.V0_2,
        f"{UPDATE}.max_unavailable",
        "a max_unavailable other than 1",
        lambda one: one.value != 1,
    ),
    Limit(
        f"{UPDATE}.partition",
        _partition_of_all,
        takes="all groups since Kthena 0.4",
        when=lambda one: (
            isinstance(one.value, int)
            and one.value >= one.plan.groups
            and not since(one.plan, KthenaVersion.V0_4)
        ),
        remedy=_smaller_partition,
    ),
)


def names(plan: ServingPlan) -> Iterator[NameFacts]:
    """Return the names that Kthena will generate: its webhook checks the counts, not the indices.

    Source: Kthena v1.0.0 webhook/validator.go validGeneratedNameLength.
    """
    for role in plan.roles:
        name = f"{plan.name}-{plan.groups}-{role.name}-{role.replicas}-{role.worker_replicas}"
        yield NameFacts(path=f"{role.path}.name", name=name, limit=naming.DNS_LABEL, what="pod")
