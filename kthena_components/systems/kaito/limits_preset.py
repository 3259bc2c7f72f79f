"""What a preset does not support: KAITO writes its pods, and decides how it is split.

Source: kaito-project/kaito v0.11.0 pkg/workspace/inference/preset_inferences.go, pkg/model and
pkg/workspace/estimator.
"""

from collections.abc import Iterator

from kthena_components.core.facts.context import Context, gather
from kthena_components.core.findings import Finding, count_of, join_path, nearest
from kthena_components.core.objects.object import read_object
from kthena_components.core.plan.limits import Limit, SetField, loss, only_if, wrong_option
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import either, elsewhere, remove
from kthena_components.core.rules.engine_options_and_config_file import OPTIONS
from kthena_components.core.spec.enums import EngineKind, Launcher
from kthena_components.core.spec.serving_spec import EngineSpec, ParallelismSpec, ResourcesSpec
from kthena_components.core.values.display import display
from kthena_components.core.values.unknown import Unknown, is_unresolved
from kthena_components.systems.kaito.estimator import (
    SHORT_NAMES,
    Deployment,
    Sized,
    TooSmall,
    find_preset,
    is_preset,
    size_of,
)
from kthena_components.systems.kaito.facts import shown
from kthena_components.systems.kaito.inference_config import (
    CONFIG,
    MAX_LEN,
    PORT,
    WRITTEN_FOR,
    flags_of,
    mistakes_in,
    rejected_length,
)
from kthena_components.systems.kaito.objects import write_config, write_set
from kthena_components.systems.kaito.options import node_of_plan, options_of
from kthena_components.systems.kaito.view import read_view

IMAGE = "mcr.microsoft.com/aks/kaito/kaito-base:0.4.2"
"""Image of all presets of KAITO 0.11.0, with vLLM 0.22.1. The registry may be another one.

Source: presets/workspace/models/supported_models.yaml; charts/kaito/workspace/values.yaml.
"""
_TAG = IMAGE.rpartition("/")[2]
TOKEN_KEY = "HF_TOKEN"  # noqa: S105 - the name of a key
_GPU = "nvidia.com/gpu"
_MOST_NODES = 3
"""pkg/workspace/controllers/workspace_controller.go MaxAllowedNodeCount; none since 0.12."""
_SCHEDULER = "default-scheduler"


def has_preset(plan: ServingPlan) -> bool:
    """Return whether KAITO writes the pods."""
    return options_of(plan).preset is not None


def _is_written(one: SetField) -> bool:
    """Return whether KAITO writes the pods of an engine."""
    return has_preset(one.plan) and not one.several and one.role.engine is not None


_WRITES_PODS = "KAITO writes the pods of a preset"
_OTHERS = "or remove backend_options.preset"
LIMITS = (
    Limit("queue", takes="not for a preset"),
    *only_if(
        lambda one: has_preset(one.plan) and not one.several,
        Limit(
            "scheduler_name",
            "is {}, but the pods of a preset have no schedulerName",
            takes=f"only `{_SCHEDULER}` for a preset",
            when=lambda one: one.value != _SCHEDULER,
            remedy=f"write scheduler_name: {_SCHEDULER}, {_OTHERS}",
        ),
        Limit(
            "roles[].entry_template",
            f"is given, but {_WRITES_PODS}",
            when=lambda one: one.role.engine is None,
            remedy=f"write an engine instead, {_OTHERS}",
        ),
    ),
    *only_if(
        _is_written,
        Limit(
            "roles[].engine.kind",
            "is {}, but KAITO runs presets with vLLM",
            when=lambda one: one.value is not EngineKind.VLLM,
            remedy=f"write vllm, {_OTHERS}",
        ),
        Limit(
            "roles[].engine.image",
            lambda one: (
                f"is {_shown(one.value)}, but KAITO 0.11 runs presets with its own image, {_TAG}"
            ),
            when=lambda one: is_unresolved(one.value) or one.value.rpartition("/")[2] != _TAG,
            remedy=f"write {IMAGE}",
        ),
        Limit(
            "roles[].engine.port",
            f"is {{}}, but KAITO's pods and Services use {PORT}",
            when=lambda one: one.value != PORT,
            remedy=f"write {PORT}",
        ),
        Limit(
            "roles[].engine.launcher",
            "is native, but KAITO connects the pods of an engine with Ray",
            when=lambda one: one.value is Launcher.NATIVE and one.role.worker_replicas,
            remedy="write ray, or remove it",
        ),
        Limit(
            "roles[].engine.hf_config",
            "is given, but KAITO reads the model's config from Hugging Face",
            remedy=remove(),
        ),
        Limit(
            "roles[].engine.kv_transfer",
            "is given, but the pods of a preset have no variables of their own",
            remedy=either(remove(), "remove backend_options.preset"),
        ),
        Limit(
            "roles[].engine.parallelism.expert",
            "is true, but inference_config.yaml has no switches such as --enable-expert-parallel",
            when=lambda one: one.value,
        ),
        Limit("priority_class", f"is {{}}, but {_WRITES_PODS}", takes="no preset"),
        Limit(
            "roles[].overlay",
            f"is given, but {_WRITES_PODS}",
            when=lambda one: one.value,
            remedy=either(remove(), "backend_options.preset"),
        ),
        Limit(
            "roles[].resources.gpu",
            "is {}, but backend_options.instance_type names the nodes of KAITO",
            takes="not for a preset",
        ),
        Limit(
            "roles[].resources.gpu_resource",
            f"is {{}}, but KAITO's pods request {_GPU}",
            when=lambda one: one.value != _GPU,
            remedy=elsewhere(f"write {_GPU}"),
        ),
        *(
            Limit(f"roles[].{field}", f"is given, but {_WRITES_PODS}")
            for field in ("cache", "network", "startup_seconds", "drain_seconds")
        ),
        *(
            Limit(
                f"roles[].resources.{field}",
                "is {}, but KAITO's pods request only GPUs",
                remedy="remove it: a pod has its node for itself",
            )
            for field in ("cpu", "memory", "ephemeral_storage", "shm")
        ),
        Limit(
            "roles[].hugging_face_token.key",
            lambda one: (
                f"is {display(one.value)}, but KAITO reads the key {TOKEN_KEY} of the Secret"
            ),
            when=lambda one: one.value != TOKEN_KEY,
            remedy=f"write {TOKEN_KEY}, and rename the key",
        ),
    ),
)


def _shown(value: str) -> str:
    return "not known yet" if is_unresolved(value) else display(value)


def refuse_preset(plan: ServingPlan, role: RolePlan) -> Iterator[Finding]:
    """Report a preset that does not fit, its flags, and a split that KAITO would not choose."""
    if role.engine is None:
        return
    yield from _refuse_args(plan, role.engine, join_path(role.path, "engine.extra_args"))
    named = list(_refuse_name(plan, role.engine))
    yield from named
    if not named and not flags_of(role.engine.extra_args).wrong:
        yield from _refuse_split(plan, role)


def _refuse_name(plan: ServingPlan, engine: EngineSpec) -> Iterator[Finding]:
    """Check that the preset is a model which KAITO knows, and the engine's model."""
    name, model = options_of(plan).preset or "", engine.model
    if not is_preset(name):
        near = nearest(name, SHORT_NAMES)
        yield wrong_option(
            "preset",
            f"is {display(name)}, which is neither organisation/name nor a short name of KAITO",
            f"write '{near}'" if near else "write the model's name on Hugging Face",
        )
    elif SHORT_NAMES.get(name.casefold(), name).casefold() != model.casefold():
        whole = SHORT_NAMES.get(name.casefold(), name)
        yield wrong_option(
            "preset",
            f"is {display(name)}, but the engine's model is {_shown(model)}",
            f"write engine.model: {whole}, or another preset",
        )


def _refuse_args(plan: ServingPlan, engine: EngineSpec, at: str) -> Iterator[Finding]:
    """Check the flags, which become the ConfigMap: by the same functions as in kaito-config."""
    flags = flags_of(engine.extra_args)
    for seen in flags.wrong:
        yield loss(at, seen, elsewhere(remove()))
    for mistake in () if flags.wrong else mistakes_in(engine.extra_args, WRITTEN_FOR):
        if not mistake.always:  # engine-option-known reports the others
            seen = f"does not fit the vLLM of KAITO {WRITTEN_FOR}: {mistake.seen}"
            yield Finding(path=at, seen=seen, remedy=mistake.remedy, rule=OPTIONS)
    shape = find_preset(options_of(plan).preset or "")
    most = None if isinstance(shape, Unknown) else shape.context
    rejected = rejected_length(flags.known.get(MAX_LEN, ""), most)
    if rejected is not None:
        yield Finding(path=at, seen=rejected.seen, remedy=rejected.remedy, rule=CONFIG)


def _refuse_split(plan: ServingPlan, role: RolePlan) -> Iterator[Finding]:
    """Reject nodes and parallelism that KAITO would not choose."""
    at, node = "backend_options.preset", node_of_plan(plan)
    sized = _sized(plan, role)
    if isinstance(node, Unknown) or sized is None:  # reported with the options
        return
    if isinstance(sized, Unknown):
        seen = f"is {display(options_of(plan).preset)}, and KAITO's nodes cannot be calculated: "
        seen += sized.because
        yield loss(at, seen, elsewhere("choose a model of the table"))
        return
    gpus = sized.gpus
    if isinstance(gpus, TooSmall):
        seen = f"needs {gpus.needed:.1f} GiB of each GPU before any weights are loaded, but vLLM "
        seen += f"may use {gpus.available:.1f} GiB on {node.name}"
        yield loss(at, seen, "choose GPUs with more memory, or a shorter --max-model-len")
    elif sized.deployment is not None:
        yield from _refuse_other(plan, role, sized, sized.deployment)


def _sized(plan: ServingPlan, role: RolePlan) -> Sized | Unknown | None:
    """Read what will be written, as KAITO does."""
    config = write_config(plan, role)
    context = Context(config_maps=gather([config] if config else []))
    (model,) = read_view(read_object(write_set(plan, role), context=context)).models
    return size_of(model)


def _refuse_other(
    plan: ServingPlan, role: RolePlan, sized: Sized, made: Deployment
) -> Iterator[Finding]:
    """Refuse sizes that differ from those with which KAITO starts a preset."""
    sizes = role.engine.parallelism if role.engine else ParallelismSpec()
    node, share = sized.instance, options_of(plan).kv_cache_cpu_memory_utilization
    resources = role.stated.resources or ResourcesSpec()
    counted = (
        f"KAITO counts {count_of(made.gpus, 'GPU')} of {node.memory_gib:g} GiB for the "
        f"{sized.files:g} GiB of {sized.shape.name} and requests of {sized.tokens} tokens"
    )
    if made.nodes > _MOST_NODES:
        yield loss(
            "backend_options.preset",
            f"needs {count_of(made.nodes, 'node')} of {node.name}: {counted}, and KAITO "
            "0.11 starts at most "
            f"{_MOST_NODES} nodes",
            "choose nodes with more GPU memory, or a shorter --max-model-len",
        )
        return
    own = Deployment(
        gpus=made.gpus,
        nodes=role.pods,
        tensor=sizes.tensor,
        pipeline=sizes.pipeline,
        data=sizes.data,
    )
    if own != made or resources.gpus_per_pod != node.gpus:
        yield loss(
            join_path(role.path, "engine.parallelism"),
            f"is {_whole(own, resources.gpus_per_pod)}, but KAITO starts "
            f"{_whole(made, node.gpus)}: {counted}, and uses all GPUs of its nodes",
            f"write tensor: {made.tensor}, pipeline: {made.pipeline}, data: {made.data}, "
            f"worker_replicas: {made.nodes - 1} and gpus_per_pod: {node.gpus}, or choose other "
            "nodes",
        )
    elif own.data * own.pipeline > 1 and share is not None:
        yield wrong_option(
            "kv_cache_cpu_memory_utilization",
            f"is {share}, but KAITO ignores it for {shown(made)}",
            remove(),
        )


def _whole(split: Deployment, gpus: int) -> str:
    return f"{shown(split)} on {count_of(split.nodes, 'pod')} of {count_of(gpus, 'GPU')}"
