"""`backend_options` of the kaito backend: what only KAITO has.

Source: kaito-project/kaito v0.11.0 api/v1beta1 and presets/workspace/inference/vllm.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from kthena_components.core.findings import Finding, count_of, nearest
from kthena_components.core.hardware import Instance, find_instance, known_instances
from kthena_components.core.plan.limits import wrong_option
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.spec.fields import Label, LabelKey, LabelValue, Shown, Spec, Word
from kthena_components.core.spec.serving_spec import ResourcesSpec
from kthena_components.core.values.display import display
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kaito.estimator import last_with_instance, node_of
from kthena_components.systems.kaito.view import GPU_COUNT, GPU_PRODUCT, MOST_ADAPTERS, OWN_LABELS

_NVIDIA = "NVIDIA"
Share = Annotated[float, Field(ge=0, le=1, strict=False)]


class AdapterSpec(Spec):
    """A LoRA adapter in an image."""

    image: Shown
    """Image with the adapter in its folder /data."""
    pull_secrets: list[Shown] = Field(default_factory=list)
    """Secrets to pull the image. Default: none."""


class KaitoOptions(Spec):
    """Fields of Workspaces and InferenceSets that no other backend has."""

    preset: Word | None = None
    """KAITO's name of the model: its id on Hugging Face, or a short name. KAITO then writes the
    pods. Default: none, and the pods are those of the serving.
    """
    instance_type: Word | None = None
    """Instance type of the nodes that KAITO creates. Default: none, and the nodes exist."""
    label_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels of the nodes. Default: the label of the serving's name, with an instance type."""
    adapters: dict[Label, AdapterSpec] = Field(default_factory=dict)
    """LoRA adapters of a preset, by name. Default: none."""
    kv_cache_cpu_memory_utilization: Share | None = None
    """Share of a node's free memory to which the KV cache is extended, 0 to 1. Default: KAITO's
    own, 0.5.
    """
    benchmark: bool = True
    """Whether a preset is ready only after KAITO's benchmark."""
    inference_set: bool = False
    """Whether a single engine is an InferenceSet, too, as any other number is."""


def options_of(plan: ServingPlan) -> KaitoOptions:
    """Return the options of a plan."""
    return plan.options if isinstance(plan.options, KaitoOptions) else KaitoOptions()


def node_labels_of(plan: ServingPlan) -> dict[str, str]:
    """Return the labels by which KAITO selects nodes.

    For a preset on existing nodes, this includes the number of GPUs of a node.
    """
    options = options_of(plan)
    if options.instance_type is not None:
        return dict(options.label_selector) or {"apps": plan.name}
    counted = {} if options.preset is None else {GPU_COUNT: str(resources_of(plan).gpus_per_pod)}
    return {**counted, **options.label_selector}


def resources_of(plan: ServingPlan) -> ResourcesSpec:
    """Return what each pod of the only role requests."""
    return plan.roles[0].stated.resources or ResourcesSpec()


def node_of_plan(plan: ServingPlan) -> Instance | Unknown:
    """Find the GPUs of a node."""
    return node_of(options_of(plan).instance_type, node_labels_of(plan))


def refuse_options(plan: ServingPlan) -> Iterator[Finding]:
    """Report options that KAITO rejects or ignores."""
    options = options_of(plan)
    yield from _refuse_nodes(plan, options)
    reserved = sorted(OWN_LABELS.intersection(options.label_selector))
    if reserved:
        yield wrong_option(
            f"label_selector.{reserved[0]}",
            "is a label that KAITO gives its own nodes, and ignores here",
            "write a label of your own",
        )
    if options.preset is None:
        yield from _refuse_preset_options(options)
    if len(options.adapters) > MOST_ADAPTERS:
        yield wrong_option(
            "adapters",
            f"has {len(options.adapters)} adapters, and KAITO accepts at most {MOST_ADAPTERS}",
            f"remove {len(options.adapters) - MOST_ADAPTERS}",
        )


def _refuse_nodes(plan: ServingPlan, options: KaitoOptions) -> Iterator[Finding]:
    """Check that the nodes are stated, either by their type or by their labels."""
    if options.instance_type is not None:
        yield from _refuse_instance(options, options.instance_type)
    elif not options.label_selector:
        yield wrong_option(
            "",
            "states no nodes",
            "write instance_type, for nodes that KAITO creates, or label_selector, for existing "
            "ones",
        )
    elif options.preset is not None:
        yield from _refuse_labels(plan, options)


def _refuse_instance(options: KaitoOptions, name: str) -> Iterator[Finding]:
    """Check that KAITO knows the instance type, and that it has NVIDIA GPUs for a preset."""
    instance = find_instance(name)
    if isinstance(instance, Unknown):
        near = nearest(name, [known.name for known in known_instances()])
        last = last_with_instance(name)
        knows = f"knows only up to {last}" if last else "does not know"
        yield wrong_option(
            "instance_type",
            f"is {display(name)}, which KAITO {knows}",
            write(near) if near else "write one of the instance types in pkg/sku of KAITO",
        )
    elif options.preset is not None and not instance.gpu.startswith(_NVIDIA):
        yield wrong_option(
            "instance_type",
            f"is {display(name)} with {count_of(instance.gpus, instance.gpu)}, but the "
            "pods of a preset request nvidia.com/gpu",
            "choose an instance type with NVIDIA GPUs",
        )


def _refuse_labels(plan: ServingPlan, options: KaitoOptions) -> Iterator[Finding]:
    """Reject existing nodes whose GPUs are not stated: KAITO counts nodes by them."""
    stated, at = options.label_selector.get(GPU_COUNT), f"label_selector.{GPU_COUNT}"
    gpus, node = resources_of(plan).gpus_per_pod, node_of_plan(plan)
    if stated is not None and stated != str(gpus):
        yield wrong_option(
            at,
            f"is {display(stated)}, but resources.gpus_per_pod is {gpus}, and each pod uses all "
            "GPUs of its node",
            either(remove(), "change one of them"),
        )
    elif isinstance(node, Unknown):
        gap = f"is {display(options.label_selector.get(GPU_PRODUCT))}: {node.because}"
        seen = gap if GPU_PRODUCT in options.label_selector else "is not stated"
        yield wrong_option(
            f"label_selector.{GPU_PRODUCT}",
            f"{seen}; KAITO counts the nodes of a preset by the GPUs of existing nodes",
            "write the product of the nodes' GPUs, such as NVIDIA-H100-80GB-HBM3",
        )


def _refuse_preset_options(options: KaitoOptions) -> Iterator[Finding]:
    given = {
        "adapters": bool(options.adapters),
        "kv_cache_cpu_memory_utilization": options.kv_cache_cpu_memory_utilization is not None,
        "benchmark": not options.benchmark,
    }
    for field in (name for name, stated in given.items() if stated):
        yield wrong_option(field, "is given without a preset", "write preset, or remove it")
