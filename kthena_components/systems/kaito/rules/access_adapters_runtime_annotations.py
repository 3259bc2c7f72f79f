"""Checks access tokens and adapters of KAITO's models."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import (
    Finding,
    advise,
    each_of,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kaito.estimator import find_preset, has_transformers
from kthena_components.systems.kaito.view import (
    GROUP,
    INFERENCE_SET,
    LOCAL,
    MOST_ADAPTERS,
    RUNTIME,
    SEVERAL_ROLES,
    TRANSFORMERS,
    Model,
    View,
    each_model,
)

_ADAPTERS, _RUNTIME = "kaito-adapters", "kaito-runtime"
_ANNOTATIONS, _IMAGE_FAMILY = "kaito-annotations", f"{GROUP}/node-image-family"
_VALUES = {
    f"{GROUP}/performance-mode": ("balanced", "interactivity", "throughput"),
    _IMAGE_FAMILY: ("azurelinux", "ubuntu"),
    LOCAL: ("false", "true"),
}
"""What KAITO accepts; the last one only since 0.12, which has it."""


def kaito_access_secret(view: View) -> Iterator[Finding]:
    """A gated model has a secret with the token for it.

    modelAccessSecret names the secret, and its key is HF_TOKEN. Without it, the pods cannot
    download the weights from Hugging Face. Weights that are already on the nodes need none. KAITO
    itself requires a secret only for a model outside its catalogue that Hugging Face does not
    describe to anonymous users.

    Pass: llama-3.1-8b-instruct with modelAccessSecret hf-token.
    Fail: llama-3.1-8b-instruct without one.
    Level: advisory. KAITO's webhook accepts it, and a mirror may have the weights.
    Source: Hugging Face, Gated models; kaito-project/kaito v0.12.0
    presets/workspace/generator/generator.go fetchURL, api/v1beta1/workspace_validation.go.
    """
    for model in view.models[:1] if view.kind == SEVERAL_ROLES else view.models:
        shape = find_preset(model.preset) if isinstance(model.preset, str) else None
        if shape is None or isinstance(shape, Unknown) or not shape.gated or model.tuned:
            continue
        several = view.kind == SEVERAL_ROLES
        inner = "modelAccessSecret" if several else "preset.presetOptions.modelAccessSecret"
        at, local = f"{model.inference_path}.{inner}", text(model.annotations.get(LOCAL))
        if gap := first_unknown(model.secret, local):
            yield not_checked(at, gap)
        elif not model.secret and local != "true":
            seen = f"is not stated, but {display(model.preset)} is gated and needs a token"
            yield advise(at, seen, "write the name of a Secret with the key HF_TOKEN")


@each_of(each_model)
def kaito_adapters(model: Model) -> Iterator[Finding]:
    """There are at most 10 adapters with unique names, each with a strength from 0 to 1.

    vLLM does not support strengths: they belong to the transformers runtime.

    Pass: 2 adapters named a and b.
    Fail: 11 adapters; a strength of "1.5"; two adapters of one name.
    Level: mandatory.
    Source: kaito-project/kaito api/v1beta1/workspace_validation.go; pkg/model/interface.go
    Validate.
    """
    listed, at = model.inference.get("adapters"), f"{model.inference_path}.adapters"
    require_known(at, listed)
    adapters = listed if isinstance(listed, list | tuple) else ()
    if len(adapters) > MOST_ADAPTERS:
        seen = f"are {len(adapters)}, and KAITO accepts at most {MOST_ADAPTERS}"
        yield refuse(at, seen, f"remove {len(adapters) - MOST_ADAPTERS}", _ADAPTERS)
    names: set[str] = set()
    for index, adapter in enumerate(adapters[: MOST_ADAPTERS + 1]):
        yield from _adapter(mapping(adapter), f"{at}[{index}]", names)
        yield from _strength(mapping(adapter).get("strength"), f"{at}[{index}].strength", model)


@part_of_rule
def _adapter(adapter: Mapping[str, Any], at: str, names: set[str]) -> Iterator[Finding]:
    """Check that an adapter has a name, and that no other adapter has it."""
    source = adapter.get("source")
    name = text(mapping(source).get("name"))
    require_known(f"{at}.source", source, name)
    if not name:
        yield refuse(f"{at}.source", "has no name", "write source.name", _ADAPTERS)
    elif name in names:
        seen = f"is {display(name)}, the name of another adapter"
        yield refuse(f"{at}.source.name", seen, "write another name", _ADAPTERS)
    else:
        names.add(str(name))


@part_of_rule
def _strength(value: object, path: str, model: Model) -> Iterator[Finding]:
    """Check the strength of an adapter: the text of a number from 0 to 1, not read by vLLM."""
    runtime = model.runtime
    require_known(path, value)
    if value is None:
        return
    if not isinstance(value, str) or not 0 <= _number(value) <= 1:
        seen = f"is {display(value)}, but must be the text of a number from 0 to 1"
        yield refuse(path, seen, 'write, for example, "1.0"', _ADAPTERS)
    elif model.preset and isinstance(runtime, str) and runtime != TRANSFORMERS:
        seen = f"is {display(value)}, but vLLM does not support strengths of adapters"
        yield refuse(path, seen, "leave it out, or choose the transformers runtime", _ADAPTERS)


def kaito_runtime(view: View) -> Iterator[Finding]:
    """The transformers runtime is used only with presets that have a command for it.

    phi-4-mini-instruct, the ministral-3 presets and mistral-large-3-675b-instruct have none, nor do
    models that are named as on Hugging Face and are not in the catalogue.

    Pass: phi-4 with kaito.sh/runtime transformers.
    Fail: phi-4-mini-instruct with kaito.sh/runtime transformers.
    Level: mandatory. KAITO's webhook rejects it.
    Source: kaito-project/kaito v0.12.0 pkg/model/interface.go Validate;
    presets/workspace/models/transformer_runtime_inference_parameters.go.
    """
    for model in view.models if view.kind != SEVERAL_ROLES else ():
        path, name, runtime = model.preset_path, model.preset, model.runtime
        if model.tuned or not name:
            continue
        if gap := first_unknown(name, runtime):
            yield not_checked(path, gap)
        elif runtime == TRANSFORMERS and isinstance(name, str) and not has_transformers(name):
            seen = f"is {display(name)}, and the transformers runtime has no command for it"
            yield refuse(path, seen, f"remove the annotation {RUNTIME}: vLLM runs it", _RUNTIME)


def kaito_annotations(view: View) -> Iterator[Finding]:
    """Annotations that KAITO reads have one of its values.

    For an InferenceSet these are the annotations of its template, which its Workspaces get.

    Pass: kaito.sh/performance-mode throughput; kaito.sh/node-image-family ubuntu.
    Fail: kaito.sh/performance-mode fast; kaito.sh/node-image-family windows.
    Level: mandatory. KAITO's webhook rejects the Workspace.
    Source: kaito-project/kaito v0.11.0 and v0.12.0 api/v1beta1/workspace_validation.go
    validateAnnotations, validateNodeImageFamilyAnnotation.
    """
    at, holder = "metadata", view.object.metadata
    if view.kind == INFERENCE_SET:
        at, stated = "spec.template.metadata", mapping(view.object.spec.get("template"))
        holder = mapping(stated.get("metadata"))
        yield from _metadata(stated.get("metadata"), at)
    stated = mapping(holder.get("annotations")) if view.kind != SEVERAL_ROLES else {}
    for key, values in _VALUES.items():
        value, path = stated.get(key), f'{at}.annotations["{key}"]'
        if gap := unknown_in(value):
            yield not_checked(path, gap)
        elif isinstance(value, str) and _plain(key, value) not in values:
            *others, last = values
            seen = f"is {display(value)}, but must be {', '.join(others)} or {last}"
            yield refuse(path, seen, either(write(values[0]), remove()), _ANNOTATIONS)


def _metadata(stated: object, at: str) -> Iterator[Finding]:
    """Check what the CRD leaves open, and the webhook cannot decode."""
    if stated is None or unknown_in(stated) is not None:
        return
    if not isinstance(stated, Mapping):
        seen = f"is {display(stated)}, but must be a map"
        yield refuse(at, seen, "write labels and annotations", _ANNOTATIONS)
        return
    for key in ("labels", "annotations"):
        fields = stated.get(key)
        if fields is None or unknown_in(fields) is not None:
            continue
        if not isinstance(fields, Mapping):
            seen = f"is {display(fields)}, but must be a map"
            yield refuse(f"{at}.{key}", seen, "write strings by name", _ANNOTATIONS)
        elif any(
            not isinstance(value, str) and value is not None and unknown_in(value) is None
            for value in fields.values()
        ):
            seen = "has a value that is not a string"
            yield refuse(f"{at}.{key}", seen, "write it in quotes", _ANNOTATIONS)


def _plain(key: str, value: str) -> str:
    return value.strip().lower() if key == _IMAGE_FAMILY else value


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan
