"""Writes a Workspace for a serving of one engine, and an InferenceSet for any other number.

An engine is a preset, whose pods KAITO writes, or a pod template. Source: kaito-project/kaito
v0.11.0 pkg/workspace and pkg/inferenceset.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.context import Context, gather
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, NameFacts, ServingFacts
from kthena_components.core.facts.workload import is_serving
from kthena_components.core.findings import Finding, count_of, join_path
from kthena_components.core.hardware import stated_gpu
from kthena_components.core.objects.object import Object, read_object
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.plan.limits import UPDATE, Limit, SetField, above_zero, loss
from kthena_components.core.plan.manifest import (
    BUDGETS,
    CONFIG_MAPS,
    REPLICAS,
    SERVICES,
    SKIP_AWAIT,
    Manifest,
    Resource,
)
from kthena_components.core.plan.serving_plan import (
    RolePlan,
    ScrapeTargets,
    ServingPlan,
    Unit,
    only_with_pods,
)
from kthena_components.core.remedies import elsewhere
from kthena_components.core.spec.enums import RolloutType
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.emitter import FOR_ALL, IDLE_WORKERS, Emitter
from kthena_components.systems.kaito.convert import CONVERTER
from kthena_components.systems.kaito.estimator import Deployment, Sized, find_preset, size_of
from kthena_components.systems.kaito.facts import (
    Start,
    command_of,
    engine_of,
    facts,
    node_labels,
    start_of,
)
from kthena_components.systems.kaito.limits_preset import LIMITS as OF_PRESETS
from kthena_components.systems.kaito.limits_preset import has_preset, refuse_preset
from kthena_components.systems.kaito.objects import (
    API_VERSION,
    NO_BENCHMARK,
    engines_of,
    entry_selector,
    is_workspace,
    pods_label,
    set_name,
    write_config,
    write_front,
    write_set,
)
from kthena_components.systems.kaito.options import (
    KaitoOptions,
    node_labels_of,
    node_of_plan,
    options_of,
    refuse_options,
)
from kthena_components.systems.kaito.view import (
    GROUP,
    INFERENCE_SET,
    WORKSPACE,
    Model,
    View,
    read_view,
)
from kthena_components.systems.kubernetes.backends import (
    ENGINES_WITH_METRICS,
    no_spread,
    refuse_hosts,
)

# What Workspaces and InferenceSets do not support: an error, never dropped.
#
# Source: kaito-project/kaito v0.11.0 api/v1beta1, pkg/workspace and pkg/inferenceset.


_SUFFIX = "-00000"
"""A dash and the characters that an InferenceSet adds to the names of its Workspaces."""
_HEADLESS = "-headless"


def _preset_instead(one: SetField) -> str:
    preset = f": {one.role.engine.model}" if one.role.engine else " and an engine"
    return elsewhere(f"write backend_options.preset{preset}, for pods that KAITO writes")


_NO_UPDATE = "but KAITO 0.11 has no rolling update of Workspaces"
"""KAITO 0.11 does not apply a changed template to running Workspaces."""
LIMITS = (
    ENGINES_WITH_METRICS,
    Limit(
        "gang_policy.min_role_replicas",
        lambda one: (
            f"requests {count_of(one.plan.min_member, 'pod')} together, but KAITO's pods are "
            "scheduled one by one"
        ),
        takes="at most 1 pod",
        when=lambda one: one.plan.min_member > 1,
        remedy=elsewhere("remove gang_policy"),
    ),
    no_spread("KAITO"),
    *(
        Limit(
            f"network_topology.{policy}", "is given, but KAITO selects nodes only by their labels"
        )
        for policy in ("group_policy", "role_policy")
    ),
    Limit(
        "recovery_policy",
        "is {}, but the pods of a Workspace are a StatefulSet, which recreates only the pod that "
        "failed",
    ),
    Limit(
        "restart_grace_period_seconds",
        "is {}, but a StatefulSet recreates a pod at once",
        when=above_zero,
    ),
    Limit(
        "rollout_strategy.type",
        f"is {{}}, {_NO_UPDATE}",
        takes="no `RoleRollingUpdate`",
        when=lambda one: one.value is RolloutType.ROLE,
    ),
    Limit(UPDATE, f"is given, {_NO_UPDATE}"),
    Limit("roles[].max_unavailable", f"is {{}}, {_NO_UPDATE}"),
    Limit(
        "roles",
        lambda one: (
            f"has {count_of(len(one.value), 'role')}, but an InferenceSet has engines of one role"
        ),
        when=lambda one: one.several,
        remedy=elsewhere("write one serving for each role"),
    ),
    Limit(
        "roles[].worker_replicas",
        "is {}, but all pods of a Workspace have one template, and no address of the first",
        takes="what KAITO decides",
        when=lambda one: one.value and not one.several and not has_preset(one.plan),
        remedy=_preset_instead,
    ),
    Limit(
        "roles[].resources.claims",
        "is given, but KAITO's pods request nvidia.com/gpu",
        when=lambda one: one.value,
    ),
    *OF_PRESETS,
)


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report options, templates and presets that KAITO does not support."""
    yield from refuse_options(plan)
    if len(plan.roles) > 1:
        return
    if has_preset(plan):
        yield from refuse_preset(plan, plan.roles[0])
    else:
        yield from _refuse_template(plan, plan.roles[0])


def _refuse_template(plan: ServingPlan, role: RolePlan) -> Iterator[Finding]:
    """Reject pods that `inference.template` cannot start."""
    yield from refuse_hosts(plan, "KAITO", "write localhost")
    at = join_path(role.path, "overlay" if role.engine else "entry_template")
    if (role.entry.get("spec") or {}).get("affinity") is not None:
        yield loss(
            join_path(at, "spec.affinity"),
            "is given, but KAITO replaces it by the labels of the nodes",
            "write the labels into backend_options.label_selector",
        )
    node, gpus = node_of_plan(plan), read_pod(role.entry, at).all_gpus
    if not isinstance(node, Unknown) and isinstance(gpus, int) and gpus > node.gpus:
        yield loss(
            join_path(role.path, "resources.gpus_per_pod") if role.engine else at,
            f"is {count_of(gpus, 'GPU')} in a pod, but a node of {node.name} has {node.gpus}",
            "choose a larger instance type, or fewer GPUs",
        )


def names(plan: ServingPlan) -> Iterator[NameFacts]:
    """Return the longest name of each kind that KAITO generates."""
    for role in plan.roles:
        at = join_path(role.path, "name")
        workspace = set_name(plan, role) + ("" if is_workspace(plan) else _SUFFIX)
        made = [
            ("StatefulSet", workspace, naming.STATEFUL_SET_NAME),
            ("Service", f"{workspace}{_HEADLESS}", naming.DNS_LABEL),
        ]
        for what, name, limit in made:
            yield NameFacts(path=at, name=name, limit=limit, what=what)


_SIZES = (naming.GROUP_SIZE, naming.LWS_GROUP_SIZE)
_BENCHMARK = f'metadata.annotations["{NO_BENCHMARK}"]'
_REPLACED = {
    WORKSPACE: (
        "resource",
        "inference.preset",
        "inference.template",
        "inference.adapters",
        _BENCHMARK,
    ),
    INFERENCE_SET: ("spec.template", "spec.labelSelector", _BENCHMARK),
}
"""Fields that KAITO 0.11 rejects a change of, or does not apply to running pods."""


def emit(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write the set, the ConfigMap of a preset, and the front Service of an exposed serving."""
    (role,) = plan.roles
    config, front = write_config(plan, role), write_front(plan, role)
    before = [] if config is None else [Manifest(body=config)]
    made = Manifest(
        body=write_set(plan, role),
        role=role.name,
        after=tuple(one.key for one in before),
        looked_up=tuple(one.key for one in before),
        ignore=(REPLICAS,) if plan.autoscaled else (),
        replace_on=_REPLACED[WORKSPACE if is_workspace(plan) else INFERENCE_SET],
        delete_first=True,
        timeout_seconds=plan.ready_timeout_seconds,
    )
    if front is None:
        return (*before, made)
    front["metadata"]["annotations"] = dict(SKIP_AWAIT)
    return (*before, made, Manifest(body=front))


def _planned(plan: ServingPlan) -> list[ServingFacts]:
    """Return the facts of a plan without groups and gangs; those of a preset from its sizes.

    A template that neither starts an engine nor requests GPUs is not an engine of a Workspace.
    """
    (role,) = plan.roles
    if options_of(plan).preset is None:
        (engine,) = facts_from_plan(plan, _SIZES).engines
        labels = node_labels(node_labels_of(plan), options_of(plan).instance_type)
        gpu = engine.entry.gpu or stated_gpu({"nodeSelector": labels})
        engine = replace(engine, worker=None, entry=replace(engine.entry, gpu=gpu))
    else:
        engine = _preset_engine(plan, role)
    serves = options_of(plan).preset is not None or is_serving(engine.entry)
    engines = (replace(engine, name=role.name, replicas=engines_of(plan)),) if serves else ()
    return [ServingFacts(path="", name=plan.name, engines=engines)]


def _preset_engine(plan: ServingPlan, role: RolePlan) -> EngineFacts:
    """Return the engine that the plan states. Refusals come first, so everything is known."""
    node, shape = node_of_plan(plan), find_preset(options_of(plan).preset or "")
    if isinstance(node, Unknown) or isinstance(shape, Unknown) or role.engine is None:
        message = f"the preset of {plan.name} was not checked"
        raise TypeError(message)
    sizes = role.engine.parallelism
    split = Deployment(
        gpus=0, nodes=role.pods, tensor=sizes.tensor, pipeline=sizes.pipeline, data=sizes.data
    )
    command = command_of(shape, node, split, words=role.engine.extra_args)
    return _plain(engine_of(role.path, node, shape, command, role.pods))


def _read_back(bodies: Sequence[Mapping[str, Any]]) -> list[ServingFacts]:
    context, kinds = (
        Context(config_maps=gather(bodies)),
        {(GROUP, WORKSPACE), (GROUP, INFERENCE_SET)},
    )
    found = (read_object(body, context=context) for body in bodies)
    return [_facts(one) for one in found if one.group_kind in kinds]


def _facts(found: Object) -> ServingFacts:
    """Read the engines of templates, and those that KAITO will start for presets."""
    view = read_view(found)
    labels = mapping(found.metadata.get("labels"))
    role, name = (str(labels.get(label)) for label in (naming.ROLE, naming.NAME))
    engines = [*facts(view).engines, *_preset_engines(view)]
    copies = view.models[0].copies if view.models else 1
    named = tuple(replace(engine, name=role, replicas=copies) for engine in engines)
    return ServingFacts(path="", name=name, engines=named)


def _preset_engines(view: View) -> list[EngineFacts]:
    started = (_start(model) for model in view.models if model.template is None)
    return [_plain(start.facts.engines[0]) for start in started if isinstance(start, Start)]


def _start(model: Model) -> Start | Unknown | None:
    sized = size_of(model)
    deployment = sized.deployment if isinstance(sized, Sized) else None
    return start_of(sized, deployment) if isinstance(sized, Sized) and deployment else None


def _plain(engine: EngineFacts) -> EngineFacts:
    """Forget whether a flag is in the command line or in the ConfigMap."""
    command = engine.entry.command
    if command is None:
        return engine
    options = {k: v for k, v in command.options.items() if k != "--kaito-config-file"}
    return replace(
        engine, entry=replace(engine.entry, command=replace(command, options=options, where={}))
    )


def _pods(plan: ServingPlan) -> Mapping[str, str]:
    """Return the label that KAITO gives to the pods, also to those of a preset."""
    (role,) = plan.roles
    return {pods_label(plan): set_name(plan, role)}


# What each argument becomes in the kaito backend, for docs/backends.md.


WRITTEN = {
    "replicas": "the number of Workspaces, times `roles[].replicas`",
    "roles[].replicas": "the same product",
    "roles[].worker_replicas": "`resource.count`, minus 1",
    "gang_policy": "nothing",
    "queue": "annotation `scheduling.volcano.sh/queue-name` of a pod template",
    "priority_class": "`priorityClassName` of the pods",
    "scheduler_name": "`schedulerName` of a pod template",
    "rollout_strategy.type": "nothing",
    "autoscaled": "an InferenceSet, whose `spec.replicas` `up` leaves as it is",
    "ready_timeout_seconds": "how long `up` waits for the set",
    **FOR_ALL,
}
PROVEN = (
    "Verdicts of the webhook of KAITO 0.11 on random objects. Nodes, pods, GPUs and parallelism "
    "equal what the package calculates; pods are not started."
)


# How Prometheus finds the pods of a serving on KAITO: a unit is a Workspace, an engine.
#
# Each Workspace has a StatefulSet of its name. Those of an InferenceSet have five random
# characters at the end. Source: kaito-project/kaito v0.11.0 pkg/workspace/manifests/manifests.go
# and pkg/inferenceset/inferenceset_controller.go.


def targets(plan: ServingPlan) -> ScrapeTargets:
    """Return the pods of the only role."""
    (role,) = plan.roles
    name = set_name(plan, role) + ("" if is_workspace(plan) else "-[a-z0-9]{5}")
    unit = Unit(
        roles=(role.name,),
        pods=f"({name})-[0-9]+",
        size=role.pods,
        number=None if plan.autoscaled else engines_of(plan),
    )
    entries = {role.name: entry_selector(plan, role)}
    return ScrapeTargets(entries=entries, units=only_with_pods([unit]))


EMITTER = Emitter(
    pods=_pods,
    emit=emit,
    limits=LIMITS,
    refuse=refuse,
    names=names,
    resources=(
        Resource(api_version=API_VERSION, kind=WORKSPACE, plural="workspaces"),
        Resource(api_version=API_VERSION, kind=INFERENCE_SET, plural="inferencesets"),
        CONFIG_MAPS,
        SERVICES,
        BUDGETS,
    ),
    read_back=_read_back,
    targets=targets,
    install="Install KAITO 0.11 or later with its CRDs",
    sizes=_SIZES,
    controller_env=None,
    options=KaitoOptions,
    planned=_planned,
    stays_from=None,
    drops=(IDLE_WORKERS,),
    written=WRITTEN,
    proven=PROVEN,
    converter=CONVERTER,
)
