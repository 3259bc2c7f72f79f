"""Reads a LeaderWorkerSet or a DisaggregatedSet back to the arguments of a serving.

A group of a LeaderWorkerSet becomes a ServingGroup of one engine. Source of the defaults:
kubernetes-sigs/lws v0.9.0 api/leaderworkerset/v1 and pkg/webhooks/leaderworkerset_webhook.go.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.plan.read_back import (
    SERVE,
    described_template,
    filled_map,
    namespaced,
    serving_and_role,
    split_name,
    stated,
    without_env,
)
from kthena_components.core.spec.rules.rollout import scale_budget
from kthena_components.core.values.read import count, group_kind, mapping, sequence
from kthena_components.systems.emitter import Converter, Pair
from kthena_components.systems.lws.view import DISAGGREGATED_SET, LEADER, LEADER_WORKER_SET, WORKER
from kthena_components.systems.system import Body

ALIASES = tuple({"name": same, "value": f"$({name})"} for name, same in naming.LWS_ENV.items())
"""Kthena's variables. The pod webhook puts its own first, so that later ones can refer to them."""
_SETS, _ROLES = naming.LWS_LABELS, "disaggregatedset.x-k8s.io/"
EXCLUSIVE = f"{_SETS}exclusive-topology"
SUBGROUP_EXCLUSIVE = f"{_SETS}subgroup-exclusive-topology"
_DEFAULT_SCHEDULER = "default-scheduler"
_LATE = "RecreateGroupAfterStart"
_LABELS = {naming.LWS_NAME: naming.NAME, f"{_ROLES}name": naming.NAME, f"{_ROLES}role": naming.ROLE}


def filled(body: Body) -> dict[str, Any]:
    """Fill in what the CRD and the webhook set, in every role of a DisaggregatedSet."""
    metadata = namespaced(body.get("metadata"))
    spec = dict(mapping(body.get("spec")))
    if group_kind(body) == DISAGGREGATED_SET:
        spec["roles"] = [_filled_role(role) for role in sequence(spec.get("roles"))]
    else:
        spec = _filled_set(spec)
    return {**body, "metadata": metadata, "spec": spec}


def _filled_role(role: object) -> dict[str, Any]:
    """Fill in a role; those of older versions have the fields of the spec themselves."""
    fields = mapping(role)
    nested = "leaderWorkerTemplate" not in fields
    own = {key: fields[key] for key in ("name", "metadata") if key in fields}
    spec = fields.get("spec") if nested else {k: v for k, v in fields.items() if k not in own}
    rest = {k: v for k, v in fields.items() if k != "spec"} if nested else own
    return {**rest, "spec": _filled_set(mapping(spec))}


def _filled_set(stated_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in LWS's defaults, with percentages of a rollout as numbers of groups."""
    spec = filled_map(stated_spec, {"replicas": 1, "startupPolicy": "LeaderCreated"})
    spec["networkConfig"] = filled_map(spec.get("networkConfig"), {"subdomainPolicy": "Shared"})
    rollout = filled_map(spec.get("rolloutStrategy"), {"type": "RollingUpdate"})
    rolling = filled_map(
        rollout.get("rollingUpdateConfiguration"),
        {"maxUnavailable": 1, "maxSurge": 0, "partition": 0},
    )
    groups = count(spec["replicas"])
    for key, up in (("maxUnavailable", False), ("maxSurge", True)):
        rolling[key] = _as_count(rolling[key], groups if isinstance(groups, int) else 0, up=up)
    spec["rolloutStrategy"] = {**rollout, "rollingUpdateConfiguration": rolling}
    spec["leaderWorkerTemplate"] = _filled_template(mapping(spec.get("leaderWorkerTemplate")))
    return spec


def _as_count(budget: object, groups: int, *, up: bool) -> object:
    """Convert a percentage as LeaderWorkerSet does; at least one group is updated at a time."""
    if not isinstance(budget, str):
        return budget
    scaled = scale_budget(budget, groups, up=up)
    return budget if scaled is None else scaled if up else max(scaled, 1)


def _filled_template(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in both templates: a leader without its own template gets the workers'."""
    restart = fields.get("restartPolicy") or "RecreateGroupOnPodRestart"
    template = filled_map(fields, {"size": 1})
    template["restartPolicy"] = "None" if restart == "Default" else restart
    leader = fields.get(LEADER) or fields.get(WORKER)
    for field, pods in ((LEADER, leader), (WORKER, fields.get(WORKER))):
        if pods is not None:
            spec = filled_map(mapping(pods).get("spec"), {"schedulerName": _DEFAULT_SCHEDULER})
            template[field] = {**mapping(pods), "spec": spec}
    if template.get("subGroupPolicy"):
        usual = {"subGroupPolicyType": "LeaderWorker"}
        template["subGroupPolicy"] = filled_map(template["subGroupPolicy"], usual)
    return template


def arguments(body: Body) -> dict[str, Any]:
    """Return the arguments of a LeaderWorkerSet or DisaggregatedSet, with its defaults."""
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    if group_kind(body) == DISAGGREGATED_SET:
        parts = [mapping(role) for role in sequence(spec.get("roles"))]
        name, roles = metadata.get("name"), [role.get("name") for role in parts]
    else:
        parts = [{"metadata": metadata, "spec": spec}]
        name, role = serving_and_role(metadata)
        roles = [role]
    specs = [mapping(part.get("spec")) for part in parts]
    marks = [mapping(mapping(part.get("metadata")).get("annotations")) for part in parts]
    first, templates = specs[0] if specs else {}, [_template_of(each) for each in specs]
    several = group_kind(body) == DISAGGREGATED_SET
    scheduler = _scheduler(templates[0]) if templates else None
    restart = templates[0].get("restartPolicy") if templates else None
    return stated(
        name=name,
        namespace=metadata.get("namespace"),
        replicas=1 if several else first.get("replicas"),
        scheduler_name=scheduler,
        queue=marks[0].get(naming.QUEUE_NAME) if marks else None,
        rollout_strategy=_rollout(specs, several=several),
        recovery_policy="None" if restart == "None" else "RoleRecreate",
        roles=[
            _role(role, each, scheduler, several=several)
            for role, each in zip(roles, specs, strict=True)
        ],
        backend_options=_options(roles, specs, marks) or None,
    )


def _same_name(body: Body, args: dict[str, Any], shared: bool) -> dict[str, Any]:
    """Let a set keep its name.

    It is split into the names of a serving and a role, as the backend joins them. Where that gives
    another one, or another set would be the same serving, it is stated.
    """
    metadata = mapping(body.get("metadata"))
    name, labels = metadata.get("name"), mapping(metadata.get("labels"))
    if group_kind(body) == DISAGGREGATED_SET or args.get("name") != name:
        return args
    ours = labels.get(naming.NAME), labels.get(naming.ROLE)
    if all(isinstance(label, str) for label in ours):
        return _renamed(args, str(ours[0]), str(ours[1]), {"set_name": name})
    split = None if shared else split_name(name)
    if split is None:
        return _renamed(args, str(name), SERVE, {"set_name": name})
    return _renamed(args, *split, {})


def _renamed(args: dict[str, Any], serving: str, role: str, own: dict[str, Any]) -> dict[str, Any]:
    options = {**mapping(args.get("backend_options")), **own}
    if SERVE in mapping(options.get("subgroups")):
        options["subgroups"] = {role: options["subgroups"][SERVE]}
    roles = [{**args["roles"][0], "name": role}]
    result = {**args, "name": serving, "roles": roles}
    return {**result, "backend_options": options} if options else result


def _template_of(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(spec.get("leaderWorkerTemplate"))


def _scheduler(template: Mapping[str, Any]) -> object:
    return mapping(mapping(template.get(LEADER)).get("spec")).get("schedulerName")


def _role(
    name: object, spec: Mapping[str, Any], scheduler: object, *, several: bool
) -> dict[str, Any]:
    """Return the arguments of one role."""
    template = _template_of(spec)
    size = template.get("size")
    workers = size - 1 if isinstance(size, int) and size > 0 else size
    entry, worker = (_described(template.get(field), scheduler) for field in (LEADER, WORKER))
    return stated(
        name=name,
        replicas=spec.get("replicas") if several else None,
        worker_replicas=workers,
        entry_template=entry,
        worker_template=worker if workers or worker != entry else None,
    )


def _described(template: object, scheduler: object) -> Any:
    described = described_template(template, scheduler)
    return described if described is None else without_env(described, ALIASES)


def _rollout(specs: list[Mapping[str, Any]], *, several: bool) -> dict[str, Any] | None:
    """Describe the budget in ServingGroups; None for the default, one engine at a time."""
    stated_budgets = [_rolling(spec) for spec in specs]
    budgets = {
        _in_groups(rolling, spec.get("replicas") if several else 1)
        for rolling, spec in zip(stated_budgets, specs, strict=True)
    }
    if len(budgets) != 1 or set(stated_budgets) == {(1, 0, 0)}:
        return None
    found = budgets.pop()
    if found is None:
        return None
    down, up, partition = found
    rolling = stated(max_unavailable=down, max_surge=up or None, partition=partition or None)
    return {"rolling_update_configuration": rolling}


def _rolling(spec: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return maxUnavailable, maxSurge and partition, in engines."""
    rolling = mapping(mapping(spec.get("rolloutStrategy")).get("rollingUpdateConfiguration"))
    found = (rolling.get(key) for key in ("maxUnavailable", "maxSurge", "partition"))
    return tuple(value if isinstance(value, int) else str(value) for value in found)


def _in_groups(budget: tuple[Any, ...], replicas: object) -> tuple[int, ...] | None:
    """Convert a budget to groups of some engines each; None if it is not whole groups."""
    number = count(replicas)
    each = number if isinstance(number, int) and number else 1
    groups = [divmod(n, each) if isinstance(n, int) else (0, 1) for n in budget]
    return None if any(rest for _, rest in groups) else tuple(whole for whole, _ in groups)


def _options(
    roles: list[Any], specs: list[Mapping[str, Any]], marks: list[Mapping[str, Any]]
) -> dict[str, Any]:
    """Describe what only LeaderWorkerSets have, as far as it is not the default."""
    first = specs[0] if specs else {}
    subgroups = {
        str(role): stated(
            size=policy.get("subGroupSize"),
            type=policy.get("subGroupPolicyType"),
            exclusive_topology=mark.get(SUBGROUP_EXCLUSIVE),
        )
        for role, spec, mark in zip(roles, specs, marks, strict=True)
        if (policy := mapping(_template_of(spec).get("subGroupPolicy")))
    }
    network = mapping(first.get("networkConfig")).get("subdomainPolicy")
    startup = first.get("startupPolicy")
    return stated(
        exclusive_topology=marks[0].get(EXCLUSIVE) if marks else None,
        subgroups=subgroups or None,
        startup_policy=startup if startup != "LeaderCreated" else None,
        recreate_after_start=_template_of(first).get("restartPolicy") == _LATE or None,
        subdomain_policy=network if network != "Shared" else None,
    )


def _label(pair: Pair) -> Pair | None:
    key, value = pair
    if pair == (f"{_SETS}worker-index", "0"):
        return naming.ENTRY, "true"
    same = _LABELS.get(key)
    return None if same is None else (same, value)


CONVERTER = Converter(
    kinds=(LEADER_WORKER_SET, DISAGGREGATED_SET),
    filled=filled,
    arguments=arguments,
    same_name=_same_name,
    labels=(_SETS, _ROLES),
    label=_label,
)
