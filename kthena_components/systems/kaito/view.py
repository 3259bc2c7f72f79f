"""Reads KAITO's objects for their rules."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.engines.files import read_yaml
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.findings import Finding
from kthena_components.core.hardware import Instance, find_instance
from kthena_components.core.memory import cache_per_token
from kthena_components.core.models import ModelShape
from kthena_components.core.objects.object import Object, copies_in
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    count,
    first_unknown,
    inside,
    mapping,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown
from kthena_components.systems.kaito.estimator import (
    CONTEXT,
    Deployment,
    TooSmall,
    derive,
    minimum_gpus,
    stated_tokens,
)
from kthena_components.systems.kaito.presets import find_preset

GROUP = "kaito.sh"
WORKSPACE, INFERENCE_SET, SEVERAL_ROLES = "Workspace", "InferenceSet", "MultiRoleInference"
RUNTIME, LOCAL = f"{GROUP}/runtime", f"{GROUP}/use-local-weights"
"""Annotations of KAITO (api/v1beta1/labels.go)."""
VLLM, TRANSFORMERS = "vllm", "transformers"
CONFIG_KEY = "inference_config.yaml"
"""The key that KAITO reads of a ConfigMap for inference."""
NO_INSTANCE = Unknown("no instance type states the GPUs of the nodes")


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
    tuned: bool = False

    @property
    def instance_path(self) -> str:
        """Path of the instance type."""
        return f"{self.resource_path}.instanceType"

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A model of known size, on a known instance type."""

    model: Model
    instance: Instance
    shape: ModelShape
    files: float
    """GiB of its weight files."""
    each: int
    """Bytes of a token in the KV cache of the whole model."""
    tokens: MaybeInt
    """Longest request: as the ConfigMap states, or KAITO's default."""

    @property
    def gpus(self) -> int | TooSmall:
        """The GPUs that KAITO calculates; the minimum if the longest request is unknown."""
        tokens = self.tokens if isinstance(self.tokens, int) else 0
        return minimum_gpus(self.instance, self.files, self.each, tokens)

    @property
    def deployment(self) -> Deployment | None:
        """What KAITO deploys for it; None if nothing fits."""
        gpus = self.gpus
        return None if isinstance(gpus, TooSmall) else derive(self.instance, gpus, self.files)


def read_view(found: Object) -> View:
    """Read what the rules need; never raises."""
    return View(object=found, models=tuple(_models(found)))


def _models(found: Object) -> Iterator[Model]:
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
        yield _model(template, "spec.template.", annotations, context, copies=copies)
    elif found.kind == SEVERAL_ROLES:
        roles = spec.get("roles")
        for index, role in enumerate(roles if isinstance(roles, list | tuple) else ()):
            path = f"spec.roles[{index}]"
            yield _role(mapping(spec.get("model")), mapping(role), path, context)


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
        tuned=tuned,
    )


def _role(model: Mapping[str, Any], role: Mapping[str, Any], path: str, context: Context) -> Model:
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
    )


def inference_config(name: MaybeText | None, context: Context) -> MaybeText | None:
    """Return the text of the ConfigMap named by `inference.config` or a role's runtimeConfig.

    KAITO reads the key inference_config.yaml of that ConfigMap, in the object's namespace; vLLM's
    flags are below `vllm` there and override the preset's.

    Args:
        name: Name of the ConfigMap.
        context: The object's context.

    Returns:
        None if no ConfigMap is named, and Unknown with the reason if it cannot be read.
        `core.engines.files.read_yaml` parses the text.
    """
    if name is None or name == "" or isinstance(name, Unknown):
        return name or None
    found = context.find({"name": name})
    return found if isinstance(found, Unknown) else found.text(CONFIG_KEY)


def size_of(model: Model) -> Sized | Unknown | None:
    """Find the inputs of KAITO's estimate; None if another rule reports what is missing."""
    gap = first_unknown(model.instance, model.preset)
    if gap is not None:
        return gap
    if not isinstance(model.preset, str) or model.tuned:
        return None
    if not isinstance(model.instance, str) or not model.instance:
        return NO_INSTANCE
    instance, shape = find_instance(model.instance), find_preset(model.preset)
    if isinstance(instance, Unknown) or isinstance(shape, Unknown):
        return None if isinstance(instance, Unknown) else first_unknown(shape)
    return _sized(model, instance, shape)


def _sized(model: Model, instance: Instance, shape: ModelShape) -> Sized | Unknown:
    files, each = shape.files_gib or shape.weights_gib, cache_per_token(shape)
    if files is None or each is None:
        return Unknown(f"the table of models has no size of {shape.name}")
    tokens = _tokens(model)
    return Sized(model=model, instance=instance, shape=shape, files=files, each=each, tokens=tokens)


def _tokens(model: Model) -> MaybeInt:
    """Read the longest request for which KAITO calculates nodes, if its ConfigMap is readable."""
    stated, shown = model.config_text, display(model.config)
    if stated is None:
        return CONTEXT
    if isinstance(model.config, Unknown):
        return model.config
    if stated == inference_config(model.config, NO_CONTEXT):
        return Unknown(f"the ConfigMap {shown} may state max-model-len, and is not available")
    if isinstance(stated, Unknown):
        return stated
    found = read_yaml(stated)
    flags = found if isinstance(found, Unknown) else found.get("vllm")
    if flags is not None and not isinstance(flags, Mapping):
        because = flags.because if isinstance(flags, Unknown) else "vllm is not a map in it"
        return Unknown(f"key '{CONFIG_KEY}' of the ConfigMap {shown} cannot be read: {because}")
    return stated_tokens(stated) or CONTEXT


def where(model: Model) -> str:
    """Return the path of an unknown input of a size."""
    known = isinstance(model.instance, str) and model.instance
    return model.preset_path if known else model.instance_path


def refused(path: str, seen: str, remedy: str, rule: str) -> Finding:
    """Report what KAITO rejects."""
    return Finding(path=path, seen=seen, remedy=remedy, rule=rule)
