"""Reads KAITO's objects for their rules."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.context import Context
from kthena_components.core.objects.object import Object, copies_in
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import count, inside, mapping, text, unknown_in
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown

GROUP = "kaito.sh"
WORKSPACE, INFERENCE_SET, SEVERAL_ROLES = "Workspace", "InferenceSet", "MultiRoleInference"
RUNTIME, LOCAL = f"{GROUP}/runtime", f"{GROUP}/use-local-weights"
"""Annotations of KAITO (api/v1beta1/labels.go)."""
VLLM, TRANSFORMERS = "vllm", "transformers"
_SELECTOR = "spec.labelSelector"
CONFIG_KEY = "inference_config.yaml"
"""The key that KAITO reads of a ConfigMap for inference."""
GPU_PRODUCT, GPU_COUNT = "nvidia.com/gpu.product", "nvidia.com/gpu.count"
"""Labels of GPU feature discovery, from which KAITO reads the GPUs of existing nodes."""
MOST_ADAPTERS = 10
OWN_LABELS = frozenset(
    {
        "kaito.sh/ragengine",
        "kaito.sh/ragenginenamespace",
        "kaito.sh/workspace",
        "kaito.sh/workspacenamespace",
        "karpenter.kaito.sh/inferenceset",
        "karpenter.kaito.sh/inferenceset-namespace",
        "karpenter.kaito.sh/workspace-name",
        "karpenter.kaito.sh/workspace-namespace",
    }
)
"""Labels that KAITO gives its own nodes (api/v1beta1/labels.go reservedSelectorLabelKeys)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model that KAITO deploys, and the nodes that it requests."""

    holder: object
    """The map with resource and inference, as written; a role has no template."""
    resource: Mapping[str, Any]
    resource_path: str
    inference: Mapping[str, Any]
    inference_path: str
    instance: MaybeText | None
    count: MaybeInt | None
    nodes: MaybeInt
    """Nodes of one Workspace, if KAITO reads their number from resource.count."""
    copies: MaybeInt
    """Number of Workspaces created for it, each on its own nodes."""
    preset: MaybeText | None
    """Name of the model; None if there is a template instead."""
    preset_path: str
    secret: MaybeText | None
    config: MaybeText | None
    config_path: str
    config_text: MaybeText | None
    """Content of the ConfigMap that config names; None if it names none."""
    annotations: Mapping[str, Any]
    selector: object
    """The labelSelector of its nodes, as written."""
    selector_path: str
    tuned: bool = False

    @property
    def instance_path(self) -> str:
        """Path of the instance type."""
        return f"{self.resource_path}.instanceType"

    @property
    def labels(self) -> Mapping[str, Any]:
        """Labels of its nodes."""
        return mapping(mapping(self.selector).get("matchLabels"))

    @property
    def node_path(self) -> str:
        """Path of what states its nodes' GPUs: the instance type, or labels of existing nodes."""
        stated = self.instance or GPU_PRODUCT not in self.labels
        return self.instance_path if stated else f"{self.selector_path}.matchLabels"

    @property
    def template(self) -> Any:
        """The pod template instead of a preset; None without one."""
        found = None if self.tuned else inside(inside(self.holder, "inference"), "template")
        return found if isinstance(found, Mapping) or unknown_in(found) is not None else None

    @property
    def template_path(self) -> str:
        """Path of a pod template, even if there is none."""
        return f"{self.inference_path}.template"

    @property
    def runtime(self) -> MaybeText:
        """The runtime of the model."""
        stated = text(self.annotations.get(RUNTIME))
        if isinstance(stated, Unknown):
            return stated
        return TRANSFORMERS if stated == TRANSFORMERS else VLLM


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An object of KAITO."""

    object: Object
    models: tuple[Model, ...]

    @property
    def kind(self) -> str:
        """Its kind."""
        return self.object.kind


def read_view(found: Object) -> View:
    """Read what the rules need; never raises."""
    return View(object=found, models=tuple(_models(found)))


def _models(found: Object) -> Iterator[Model]:
    """List the models in an object: of a Workspace, of a set's template, or of each role."""
    body, spec, context = found.body, found.spec, found.context
    annotations = mapping(found.metadata.get("annotations"))
    if found.kind == WORKSPACE:
        nodes = _nodes(mapping(body.get("resource")).get("count"))
        for key in ("inference", "tuning"):
            if body.get(key) is not None:
                yield _model(body, "", annotations, context, key=key, nodes=nodes)
    elif found.kind == INFERENCE_SET:
        template, copies = inside(body.get("spec"), "template"), copies_in(spec.get("replicas"), 1)
        if (metadata := mapping(template).get("metadata")) is not None:
            annotations = mapping(mapping(metadata).get("annotations"))
        model = _model(template, "spec.template.", annotations, context, copies=copies)
        yield replace(model, selector=spec.get("labelSelector"), selector_path=_SELECTOR)
    elif found.kind == SEVERAL_ROLES:
        roles = spec.get("roles")
        for index, role in enumerate(roles if isinstance(roles, list | tuple) else ()):
            path = f"spec.roles[{index}]"
            model = _role(mapping(spec.get("model")), mapping(role), path, context)
            yield replace(model, selector=spec.get("labelSelector"))


def _nodes(stated: object) -> MaybeInt:
    """Read resource.count; below 1 counts as 1 (nodesestimator/estimator.go EstimateNodeCount)."""
    number = copies_in(stated, 1)
    return number if isinstance(number, Unknown) else max(number, 1)


def _model(
    holder: object,
    at: str,
    annotations: Mapping[str, Any],
    context: Context,
    *,
    key: str = "inference",
    nodes: MaybeInt = 1,
    copies: MaybeInt = 1,
) -> Model:
    """Return the model of a Workspace or an InferenceSet."""
    resource, inference = (mapping(mapping(holder).get(field)) for field in ("resource", key))
    preset, config = mapping(inference.get("preset")), text(inference.get("config"))
    tuned = key == "tuning"
    return Model(
        holder=holder,
        resource=resource,
        resource_path=f"{at}resource",
        inference=inference,
        inference_path=f"{at}{key}",
        instance=text(resource.get("instanceType")),
        count=count(resource.get("count")),
        nodes=nodes,
        copies=copies,
        preset=text(preset.get("name")),
        preset_path=f"{at}{key}.preset.name",
        secret=text(mapping(preset.get("presetOptions")).get("modelAccessSecret")),
        config=config,
        config_path=f"{at}{key}.config",
        config_text=None if tuned else inference_config(config, context),
        annotations=annotations,
        selector=resource.get("labelSelector"),
        selector_path=f"{at}resource.labelSelector",
        tuned=tuned,
    )


def _role(model: Mapping[str, Any], role: Mapping[str, Any], path: str, context: Context) -> Model:
    """Return the model of one role of a MultiRoleInference."""
    config = text(role.get("runtimeConfig"))
    return Model(
        holder={},
        resource=role,
        resource_path=path,
        inference={},
        inference_path="spec.model",
        instance=text(role.get("instanceType")),
        count=None,
        nodes=1,
        copies=copies_in(role.get("replicas"), 1),
        preset=text(model.get("name")),
        preset_path="spec.model.name",
        secret=text(model.get("modelAccessSecret")),
        config=config,
        config_path=f"{path}.runtimeConfig",
        config_text=inference_config(config, context),
        annotations={},
        selector=None,
        selector_path=_SELECTOR,
    )


def inference_config(name: MaybeText | None, context: Context) -> MaybeText | None:
    """Return the text of the ConfigMap named by `inference.config` or a role's runtimeConfig.

    KAITO reads the key inference_config.yaml of that ConfigMap, in the object's namespace; vLLM's
    flags are below `vllm` there and override the preset's.

    Returns:
        None if no ConfigMap is named, and Unknown with the reason if it cannot be read.
        `core.engines.files.read_yaml` parses the text.
    """
    if name is None or name == "" or isinstance(name, Unknown):
        return name or None
    found = context.find({"name": name})
    return found if isinstance(found, Unknown) else found.text(CONFIG_KEY)


def each_model(view: View) -> Iterator[tuple[Model]]:
    """Return the models, as parts of a rule."""
    yield from ((model,) for model in view.models)
