"""How KAITO's objects that anybody wrote are read for their rules."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.findings import Finding
from kthena_components.core.hardware import Instance, find_instance
from kthena_components.core.memory import cache_per_token
from kthena_components.core.models import ModelShape
from kthena_components.core.values.display import display
from kthena_components.core.values.read import count, first_unknown, mapping, text
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown
from kthena_components.systems.kaito.estimator import (
    CONTEXT,
    Deployment,
    TooSmall,
    derive,
    minimum_gpus,
)
from kthena_components.systems.kaito.presets import find_preset

GROUP = "kaito.sh"
WORKSPACE, INFERENCE_SET, SEVERAL_ROLES = "Workspace", "InferenceSet", "MultiRoleInference"
RUNTIME, LOCAL = f"{GROUP}/runtime", f"{GROUP}/use-local-weights"
"""Annotations of KAITO (api/v1beta1/labels.go)."""
VLLM, TRANSFORMERS = "vllm", "transformers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model that KAITO deploys, and the nodes that it asks for."""

    resource: Mapping[str, Any]
    resource_path: str
    inference: Mapping[str, Any]
    inference_path: str
    instance: MaybeText | None
    count: MaybeInt | None
    preset: MaybeText | None
    """Name of the model; None where a template takes its place."""
    preset_path: str
    secret: MaybeText | None
    config: MaybeText | None
    config_path: str
    annotations: Mapping[str, Any]
    tuned: bool = False

    @property
    def instance_path(self) -> str:
        """Where the instance type stands."""
        return f"{self.resource_path}.instanceType"

    @property
    def runtime(self) -> MaybeText:
        """What runs the model."""
        stated = text(self.annotations.get(RUNTIME))
        if isinstance(stated, Unknown):
            return stated
        return TRANSFORMERS if stated == TRANSFORMERS else VLLM


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An object of KAITO."""

    kind: str
    body: Mapping[str, Any]
    spec: Mapping[str, Any]
    models: tuple[Model, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A model whose size is known, on an instance type that is known."""

    model: Model
    instance: Instance
    shape: ModelShape
    files: float
    """GiB of its weight files."""
    each: int
    """Bytes of a token in the KV cache of the whole model."""
    tokens: MaybeInt
    """Longest request that the ConfigMap states, or KAITO's own."""

    @property
    def gpus(self) -> int | TooSmall:
        """The GPUs that KAITO counts, or the fewest where the longest request is not known."""
        tokens = self.tokens if isinstance(self.tokens, int) else 0
        return minimum_gpus(self.instance, self.files, self.each, tokens)

    @property
    def deployment(self) -> Deployment | None:
        """What KAITO makes of it; None when nothing fits."""
        gpus = self.gpus
        return None if isinstance(gpus, TooSmall) else derive(self.instance, gpus, self.files)


def read_view(manifest: object) -> View:
    """Read what the rules need from whatever a manifest contains."""
    body = mapping(manifest)
    kind, spec = str(body.get("kind", "")), mapping(body.get("spec"))
    return View(kind=kind, body=body, spec=spec, models=tuple(_models(kind, body, spec)))


def _models(kind: str, body: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[Model]:
    annotations = mapping(mapping(body.get("metadata")).get("annotations"))
    if kind == WORKSPACE:
        for key in ("inference", "tuning"):
            if body.get(key) is not None:
                yield _model(body, "", key, annotations)
    elif kind == INFERENCE_SET:
        template = mapping(spec.get("template"))
        if template.get("metadata") is not None:
            annotations = mapping(mapping(template.get("metadata")).get("annotations"))
        yield _model(template, "spec.template.", "inference", annotations)
    elif kind == SEVERAL_ROLES:
        roles = spec.get("roles")
        for index, role in enumerate(roles if isinstance(roles, list | tuple) else ()):
            yield _role(mapping(spec.get("model")), mapping(role), f"spec.roles[{index}]")


def _model(holder: Mapping[str, Any], at: str, key: str, annotations: Mapping[str, Any]) -> Model:
    resource, inference = mapping(holder.get("resource")), mapping(holder.get(key))
    preset = mapping(inference.get("preset"))
    return Model(
        resource=resource,
        resource_path=f"{at}resource",
        inference=inference,
        inference_path=f"{at}{key}",
        instance=text(resource.get("instanceType")),
        count=count(resource.get("count")),
        preset=text(preset.get("name")),
        preset_path=f"{at}{key}.preset.name",
        secret=text(mapping(preset.get("presetOptions")).get("modelAccessSecret")),
        config=text(inference.get("config")),
        config_path=f"{at}{key}.config",
        annotations=annotations,
        tuned=key == "tuning",
    )


def _role(model: Mapping[str, Any], role: Mapping[str, Any], path: str) -> Model:
    return Model(
        resource=role,
        resource_path=path,
        inference={},
        inference_path="spec.model",
        instance=text(role.get("instanceType")),
        count=None,
        preset=text(model.get("name")),
        preset_path="spec.model.name",
        secret=text(model.get("modelAccessSecret")),
        config=text(role.get("runtimeConfig")),
        config_path=f"{path}.runtimeConfig",
        annotations={},
    )


def size_of(model: Model) -> Sized | Unknown | None:
    """Find what KAITO's estimate is made of; None where another rule says what is missing."""
    gap = first_unknown(model.instance, model.preset)
    if gap is not None:
        return gap
    if not isinstance(model.preset, str) or model.tuned:
        return None
    if not isinstance(model.instance, str) or not model.instance:
        return Unknown("no instance type says what GPUs the nodes have")
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
    """Read the longest request. The ConfigMap that may state it is an object of its own."""
    if not model.config:
        return CONTEXT
    if isinstance(model.config, Unknown):
        return model.config
    return Unknown(
        f"the ConfigMap {display(model.config)} may state max-model-len, and is not at hand"
    )


def refused(path: str, seen: str, remedy: str, rule: str) -> Finding:
    """Say what KAITO does not take."""
    return Finding(path=path, seen=seen, remedy=remedy, rule=rule)
