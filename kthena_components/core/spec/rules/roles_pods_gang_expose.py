"""Rules between fields of a spec, independent of the backend.

Each function is one rule and yields its findings; SERVING_RULES is the list. Each backend's package
checks what the backend cannot express.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from kthena_components.core.findings import Finding, count_of, suggest, suggest_name
from kthena_components.core.remedies import at_most, either, remove, write
from kthena_components.core.spec.enums import TopologyMode
from kthena_components.core.spec.rules.engine_overlay_and_flags import ROLE_RULES
from kthena_components.core.spec.rules.rollout import ROLLOUT_RULES, role_budget
from kthena_components.core.spec.rules.startup_window_resource_claims_cache_grace_period import (
    startup_window,
)
from kthena_components.core.spec.rules.template_scheduler_labels_image import (
    reserved_object_labels,
    template_scheduler,
    volcano_scheduler,
)
from kthena_components.core.spec.serving_spec import (
    ModelServingSpec,
    NetworkTopologySpec,
    RoleSpec,
    TopologySpec,
)

_MOST_PODS = 150_000


def check_spec(
    spec: ModelServingSpec, *, alone: bool = False, role_path: str | None = None
) -> list[Finding]:
    """Check a spec by every rule.

    Args:
        spec: The serving, or the serving that contains a standalone group or role.
        alone: Whether it is a standalone group or role, which has no rollout.
        role_path: Path of a standalone role, instead of `roles[i]`.
    """
    findings = [finding for rule in SERVING_RULES for finding in rule(spec)]
    if role_path is not None:
        findings = [f.at(lambda path: path.removeprefix("roles[0].")) for f in findings]
    for index, role in enumerate(spec.roles):
        prefix = f"roles[{index}]" if role_path is None else role_path
        found = [finding for rule in ROLE_RULES for finding in rule(role)]
        found += template_scheduler(role, spec.scheduler_name)
        found += [] if alone else role_budget(spec, role)
        findings.extend(finding.under(prefix) for finding in found)
    return findings


def role_names_unique(spec: ModelServingSpec) -> Iterator[Finding]:
    """Role names are unique: names of pods and Services are derived from them.

    Pass: 2 roles, prefill and decode.
    Fail: 2 roles named server.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/servinggroup_types.go, the CEL rule of
    ServingGroup.Roles; this package: core/naming.py.
    """
    for name, count in Counter(role.name for role in spec.roles).items():
        if count > 1:
            at = [i for i, role in enumerate(spec.roles) if role.name == name]
            yield Finding(
                path=f"roles[{at[1]}].name",
                rule="role-names-unique",
                seen=f"{count_of(count, 'role')} have the name '{name}' "
                f"({', '.join(f'roles[{i}]' for i in at)}), and role names must be unique",
                remedy="rename all but one",
            )


def gang_minimum(spec: ModelServingSpec) -> Iterator[Finding]:
    """A gang minimum names an existing role and is at most that role's replicas.

    Pass: min_role_replicas server 2, role server with 2 replicas.
    Fail: server 3 of 2 replicas; a minimum for serve, where the role is server.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go validateGangPolicy.
    """
    replicas = {role.name: role.replicas for role in spec.roles}
    stated = spec.gang_policy.min_role_replicas if spec.gang_policy else {}
    for name, minimum in stated.items():
        path = f"gang_policy.min_role_replicas.{name}"
        if name not in replicas:
            yield Finding(
                path=path,
                seen=f"there is no role '{name}'",
                remedy=suggest_name(name, replicas, stated),
                rule="gang-minimum",
            )
        elif minimum > replicas[name]:
            yield Finding(
                path=path,
                rule="gang-minimum",
                seen=f"is {minimum}, but role '{name}' has {count_of(replicas[name], 'replica')}, "
                "so the group could never start",
                remedy=f"write at most {replicas[name]}",
            )


def topology_cap_stated(spec: ModelServingSpec) -> Iterator[Finding]:
    """A topology has exactly one cap, and a hard topology is satisfiable.

    Volcano drops a hard constraint without a cap, and never places one with cap 0.

    Pass: mode hard, highest_tier_allowed 1.
    Fail: mode hard alone; highest_tier_allowed 0; a tier and a name of a tier.
    Level: mandatory.
    Source: Volcano v1.14 pkg/webhooks/admission/podgroups/validate/validate_podgroup.go and
    pkg/scheduler/api/job_info.go IsHardTopologyMode.
    """
    topology = spec.network_topology or NetworkTopologySpec()
    for field in ("group_policy", "role_policy"):
        policy: TopologySpec | None = getattr(topology, field)
        if policy is None:
            continue
        tier, name = policy.highest_tier_allowed, policy.highest_tier_name
        path, hard = f"network_topology.{field}", policy.mode is TopologyMode.HARD
        if tier is not None and name is not None:
            seen = f"both highest_tier_allowed ({tier}) and highest_tier_name ('{name}') are given"
            seen, remedy = f"{seen}, and Volcano accepts only one of them", "remove one of them"
        elif hard and tier is None and name is None:
            seen = "mode is hard but no tier is given, so Volcano would drop the whole constraint"
            remedy = write(
                1,
                "give highest_tier_allowed, for example 1 for the closest tier",
                at=f"{path}.highest_tier_allowed",
            )
        elif hard and tier == 0:
            path = f"{path}.highest_tier_allowed"
            seen = "is 0, below the closest tier, so Volcano would never place the group"
            remedy = write(1, "write 1 for the closest tier")
        else:
            continue
        yield Finding(path=path, seen=seen, remedy=remedy, rule="topology-cap-stated")


def expose_role(spec: ModelServingSpec) -> Iterator[Finding]:
    """The front Service selects one role, so requests never go to prefill or decode at random.

    Pass: expose without a role, 1 role; expose.role decode, roles prefill and decode.
    Fail: expose without a role, 2 roles; expose.role serve, role server.
    Level: mandatory.
    Source: this package: a Service sends requests to any pod that its selector matches.
    """
    if spec.expose is None:
        return
    names = [role.name for role in spec.roles]
    if spec.expose.role is None and len(names) > 1:
        yield Finding(
            path="expose.role",
            rule="expose-role",
            seen=f"is missing, and there are {count_of(len(names), 'role')} ({', '.join(names)}) "
            "to send requests to",
            remedy="name the role whose entry pods answer",
        )
    elif spec.expose.role is not None and spec.expose.role not in names:
        yield Finding(
            path="expose.role",
            seen=f"there is no role '{spec.expose.role}'",
            remedy=suggest(spec.expose.role, names),
            rule="expose-role",
        )


def expose_port(spec: ModelServingSpec) -> Iterator[Finding]:
    """The front Service targets the port on which the engine listens.

    The engine of a template of one's own listens on the port in its command line; vLLM without one
    on 8000, SGLang on 30000.

    Pass: expose.target_port 8080, engine.port 8080; no target_port.
    Fail: expose.target_port 8000, engine.port 8080; no target_port, and a template with vllm serve.
    Level: mandatory.
    Source: this package: the engine's port is written into its command line; core/plan/facts.py.
    """
    stated = spec.expose.target_port if spec.expose else None
    role = exposed_role(spec)
    if stated is not None and role and role.engine and role.engine.port != stated:
        yield Finding(
            path="expose.target_port",
            rule="expose-port",
            seen=f"is {stated}, but the engine of role '{role.name}' listens on {role.engine.port}",
            remedy=either(remove(), f"write {role.engine.port}"),
        )


def exposed_role(spec: ModelServingSpec) -> RoleSpec | None:
    """Find the role that the front Service selects."""
    name = spec.expose.role if spec.expose else None
    named = [role for role in spec.roles if name in {None, role.name}]
    return named[0] if len(named) == 1 else None


def pods_within_cluster(spec: ModelServingSpec) -> Iterator[Finding]:
    """A serving has at most as many pods as Kubernetes supports in a cluster, 150000.

    A slip in a count would otherwise be planned pod by pod, for hours.

    Pass: 75000 groups of 2 pods.
    Fail: 75001 groups of 2 pods; worker_replicas 150000.
    Level: mandatory.
    Source: the documentation of Kubernetes, Considerations for large clusters.
    """
    for index, role in enumerate(spec.roles):
        engine, groups = role.worker_replicas + 1, max(spec.replicas, 1)
        if engine > _MOST_PODS:
            seen = f"is {role.worker_replicas}, besides the entry"
            most = _MOST_PODS // (max(role.replicas, 1) * groups)
            yield _too_many(f"roles[{index}].worker_replicas", seen, max(most - 1, 0))
        elif role.replicas * engine > _MOST_PODS:
            seen = f"is {role.replicas}, and each engine has {count_of(engine, 'pod')}"
            most = _MOST_PODS // (engine * groups) or _MOST_PODS // engine
            yield _too_many(f"roles[{index}].replicas", seen, most)
    group = sum(role.replicas * (role.worker_replicas + 1) for role in spec.roles)
    if group <= _MOST_PODS < group * spec.replicas:
        seen = f"is {spec.replicas}, and each group has {count_of(group, 'pod')}"
        yield _too_many("replicas", seen, _MOST_PODS // group)


def _too_many(path: str, seen: str, most: int) -> Finding:
    limit = f"Kubernetes supports at most {_MOST_PODS} pods in a cluster"
    return Finding(
        path=path, seen=f"{seen}, but {limit}", remedy=at_most(most), rule="pods-within-cluster"
    )


SERVING_RULES: tuple[Callable[[ModelServingSpec], Iterator[Finding]], ...] = (
    role_names_unique,
    pods_within_cluster,
    gang_minimum,
    topology_cap_stated,
    volcano_scheduler,
    *ROLLOUT_RULES,
    expose_role,
    expose_port,
    reserved_object_labels,
    startup_window,
)
