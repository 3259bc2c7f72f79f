"""Reads a Workspace or an InferenceSet back to the arguments of a serving.

A ConfigMap that `inference.config` names is part of it. Source of the defaults:
kaito-project/kaito v0.11.0 config/crd/bases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.engines.files import read_yaml
from kthena_components.core.findings import Finding, SpecError
from kthena_components.core.objects.object import read_object
from kthena_components.core.plan.read_back import (
    described_template,
    filled_map,
    namespaced,
    serving_and_role,
    stated,
    with_split_name,
    without_env,
)
from kthena_components.core.values.display import text_of
from kthena_components.core.values.read import (
    group_kind,
    mapping,
    name_of,
    namespace_or_default,
    sequence,
)
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.emitter import Converter, Pair
from kthena_components.systems.kaito.estimator import CONTEXT, SHORT_NAMES, Sized, node_of, size_of
from kthena_components.systems.kaito.facts import share_of
from kthena_components.systems.kaito.inference_config import MAX_LEN, PORT, RELEASE
from kthena_components.systems.kaito.limits_preset import IMAGE, TOKEN_KEY
from kthena_components.systems.kaito.objects import (
    NO_BENCHMARK,
    SET_LABEL,
    VARIABLES,
    WORKSPACE_LABEL,
)
from kthena_components.systems.kaito.options import KaitoOptions
from kthena_components.systems.kaito.view import (
    CONFIG_KEY,
    GROUP,
    INFERENCE_SET,
    WORKSPACE,
    Model,
    read_view,
)
from kthena_components.systems.system import Body

_KINDS = ((GROUP, WORKSPACE), (GROUP, INFERENCE_SET))
_SCHEDULER, _CONFIG_MAP = "default-scheduler", ("", "ConfigMap")
_LABELS = {WORKSPACE_LABEL: naming.NAME, SET_LABEL: naming.NAME}
_SHARE = "kv_cache_cpu_memory_utilization"
_OLD_INSTANCE = "Standard_NC24ads_A100_v4"
"""Default of Workspaces in v1alpha1."""


_TUNES = Finding(
    path="tuning",
    seen="is given, but a Workspace that tunes a model serves none",
    remedy="remove the Workspace from the file",
    rule="convertible",
)


def merged(body: Body, others: Sequence[Body]) -> tuple[Body, tuple[int, ...]]:
    """Replace the name in `inference.config` by the ConfigMap's content, and say which it is."""
    name = _inference(body).get("config")
    if name is None:
        return body, ()
    for index, other in enumerate(others):
        if group_kind(other) == _CONFIG_MAP and name_of(other) == name and _same_space(body, other):
            return _with_inference(body, {**_inference(body), "config": _parsed(other)}), (index,)
    # Its content is not known, so it is lost.
    return _with_inference(body, {**_inference(body), "config": {"name": name}}), ()


def _same_space(*bodies: Body) -> bool:
    # Compared as strings: a file may contain anything there.
    spaces = {str(namespace_or_default(body)) for body in bodies}
    return len(spaces) == 1


def _parsed(config_map: Body) -> dict[str, Any]:
    """Return what a ConfigMap says, with the values of vLLM's flags as KAITO writes them."""
    data = dict(mapping(config_map.get("data")))
    content = read_yaml(data[CONFIG_KEY]) if isinstance(data.get(CONFIG_KEY), str) else None
    if isinstance(content, Mapping):
        flags = content.get("vllm")
        written = flags
        if isinstance(flags, Mapping):
            written = {key: text_of(value) for key, value in flags.items()}
        data[CONFIG_KEY] = {**content, "vllm": written}
    metadata = mapping(config_map.get("metadata"))
    kept = {key: metadata.get(key) for key in ("labels", "annotations")}
    rest = {key: value for key, value in config_map.items() if key in {"binaryData", "immutable"}}
    return {"metadata": kept, "data": data, **rest}


def filled(body: Body) -> dict[str, Any]:
    """Fill in the defaults of the CRD, and the default scheduler of a pod template."""
    metadata = namespaced(body.get("metadata"))
    result = _with_inference({**body, "metadata": metadata}, _filled_inference(_inference(body)))
    if group_kind(body)[1] == INFERENCE_SET:
        result["spec"] = filled_map(result.get("spec"), {"replicas": 1})
        return result
    old = str(body.get("apiVersion")).endswith("/v1alpha1")
    usual = {"count": 1, **({"instanceType": _OLD_INSTANCE} if old else {})}
    return {**result, "resource": filled_map(body.get("resource"), usual)}


def _filled_inference(inference: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in KAITO's defaults, which a user's arguments may leave out."""
    result = dict(inference)
    preset, template = result.get("preset"), result.get("template")
    if isinstance(preset, Mapping):
        result["preset"] = filled_map(preset, {"accessMode": "public"})
    if isinstance(template, Mapping):
        spec = filled_map(template.get("spec"), {"schedulerName": _SCHEDULER})
        result["template"] = {**template, "spec": spec}
    return result


def _holder(body: Body) -> Mapping[str, Any]:
    """Return the map with `inference`."""
    several = group_kind(body)[1] == INFERENCE_SET
    return mapping(mapping(body.get("spec")).get("template")) if several else body


def _inference(body: Body) -> Mapping[str, Any]:
    return mapping(_holder(body).get("inference"))


def _with_inference(body: Body, inference: Mapping[str, Any]) -> dict[str, Any]:
    if group_kind(body)[1] != INFERENCE_SET:
        return {**body, "inference": dict(inference)}
    template = {**_holder(body), "inference": dict(inference)}
    return {**body, "spec": {**mapping(body.get("spec")), "template": template}}


def arguments(body: Body) -> dict[str, Any]:
    """Return the arguments of an object with its defaults; KAITO chooses a preset's parallelism.

    Raises:
        SpecError: It tunes a model, and serves none.
    """
    if body.get("tuning") is not None:
        raise SpecError([_TUNES], f"{WORKSPACE} {name_of(body)}")
    metadata, inference = mapping(body.get("metadata")), _inference(body)
    preset = mapping(inference.get("preset")).get("name")
    name, role = serving_and_role(metadata)
    template = mapping(inference.get("template"))
    described = _template_role(template) if preset is None else preset_role(body, _inference(body))
    spec, marks = mapping(template.get("spec")), mapping(template.get("metadata"))
    several = mapping(body.get("spec")).get("replicas", 1) != 1
    return stated(
        name=name,
        namespace=metadata.get("namespace"),
        replicas=mapping(body.get("spec")).get("replicas", 1),
        scheduler_name=spec.get("schedulerName") or _SCHEDULER,
        queue=mapping(marks.get("annotations")).get(naming.QUEUE_NAME),
        roles=[{"name": role, **described}],
        backend_options=_options(body, preset),
        # A preset is described as an engine, and several engines would get a budget.
        pod_disruption_budget=False if preset is not None and several else None,
    )


def _template_role(template: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a template as entry_template, without what the package adds itself."""
    scheduler = mapping(template.get("spec")).get("schedulerName")
    described = described_template(template, scheduler)
    if described is None:
        return {}
    annotations = dict(mapping(mapping(described.get("metadata")).get("annotations")))
    annotations.pop(naming.QUEUE_NAME, None)
    metadata = {**mapping(described.get("metadata")), "annotations": annotations}
    kept = {key: value for key, value in metadata.items() if value}
    rest = {key: value for key, value in described.items() if key != "metadata"}
    whole = {**({"metadata": kept} if kept else {}), **rest}
    return {"entry_template": without_env(whole, VARIABLES)}


def _options(body: Body, preset: object) -> dict[str, Any]:
    """Read the backend options that lead to this object; None where they are the default."""
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    resource = mapping(_holder(body).get("resource"))
    several = group_kind(body)[1] == INFERENCE_SET
    selector = mapping(spec.get("labelSelector") if several else resource.get("labelSelector"))
    silent = mapping(metadata.get("annotations")).get(NO_BENCHMARK) == "true"
    sources = (mapping(each).get("source") for each in sequence(_inference(body).get("adapters")))
    adapters = {str(mapping(one).get("name")): _adapter(mapping(one)) for one in sources}
    return stated(
        preset=preset,
        instance_type=resource.get("instanceType") or None,
        label_selector=dict(mapping(selector.get("matchLabels"))) or None,
        adapters=adapters or None,
        kv_cache_cpu_memory_utilization=content_of(_inference(body)).get(_SHARE),
        benchmark=False if silent else None,
        inference_set=True if several and spec.get("replicas", 1) == 1 else None,
    )


def _same_name(body: Body, args: dict[str, Any], _shared: bool) -> dict[str, Any]:
    """Split an object's name into the serving's and the role's, which the backend joins."""
    return with_split_name(body, args)


def _adapter(source: Mapping[str, Any]) -> dict[str, Any]:
    return stated(image=source.get("image"), pull_secrets=source.get("imagePullSecrets") or None)


def _label(pair: Pair) -> Pair | None:
    key, value = pair
    if pair == (naming.POD_INDEX, "0"):
        return naming.ENTRY, "true"
    same = _LABELS.get(key)
    return None if same is None else (same, value)


# Describes the engine of a preset, whose pods KAITO writes.
#
# Source: kaito-project/kaito v0.11.0 pkg/model/interface.go and presets/workspace/inference/vllm.


_LONGEST = 10


def content_of(inference: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of inference_config.yaml, from the ConfigMap that stands in `config`."""
    config = mapping(inference.get("config"))
    return mapping(mapping(config.get("data")).get(CONFIG_KEY))


def preset_role(body: Body, inference: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the role of a preset, with the nodes and the parallelism that KAITO will choose.

    Args:
        inference: Its `inference`, with the ConfigMap in the place of its name.
    """
    preset = mapping(inference.get("preset"))
    name, secret = preset.get("name"), mapping(preset.get("presetOptions")).get("modelAccessSecret")
    flags = mapping(content_of(inference).get("vllm"))
    engine: dict[str, Any] = stated(
        kind="vllm",
        image=IMAGE,
        model=SHORT_NAMES.get(name.casefold(), name) if isinstance(name, str) else name,
        port=PORT,
        extra_args=[f"--{key}={value}" for key, value in flags.items()] or None,
    )
    role = stated(
        engine=engine, hugging_face_token={"name": secret, "key": TOKEN_KEY} if secret else None
    )
    (model,) = read_view(read_object(body)).models
    length = str(flags.get(MAX_LEN, ""))
    known = length.isdecimal() and len(length) < _LONGEST
    return role | _sizes(model, engine, int(length) if known else CONTEXT)


def _sizes(model: Model, engine: dict[str, Any], tokens: int) -> dict[str, Any]:
    """Compute the sizes and nodes that KAITO would choose; empty if they are not known."""
    sized = size_of(replace(model, config=None, config_text=None))
    made = replace(sized, tokens=tokens).deployment if isinstance(sized, Sized) else None
    if made is None or not isinstance(sized, Sized):
        return {}
    sizes = {"tensor": made.tensor, "pipeline": made.pipeline, "data": made.data}
    engine["parallelism"] = {key: size for key, size in sizes.items() if size != 1}
    gpus = {"gpus_per_pod": sized.instance.gpus}
    return {"engine": engine, "worker_replicas": made.nodes - 1, "resources": gpus}


def elsewhere(args: dict[str, Any]) -> dict[str, Any]:
    """Describe the engine of a preset for pods that KAITO does not write.

    Its image only starts KAITO's own program. KAITO gives vLLM less memory than vLLM takes itself.
    """
    options = mapping(args.get("backend_options"))
    if options.get("preset") is None:
        return args
    node = node_of(options.get("instance_type"), mapping(options.get("label_selector")))
    words = [] if isinstance(node, Unknown) else [f"--gpu-memory-utilization={share_of(node)}"]
    roles = []
    for role in args["roles"]:
        given = sequence(role["engine"].get("extra_args"))
        stated_already = {str(word).partition("=")[0] for word in given}
        own = [word for word in words if word.partition("=")[0] not in stated_already]
        engine = {**role["engine"], "image": RELEASE, "extra_args": [*own, *given]}
        roles.append({**role, "engine": engine})
    return {**args, "roles": roles}


CONVERTER = Converter(
    kinds=_KINDS,
    filled=filled,
    merged=merged,
    beside=(_CONFIG_MAP,),
    arguments=arguments,
    same_name=_same_name,
    elsewhere=elsewhere,
    only_here=tuple(name for name in KaitoOptions.model_fields if name != "inference_set"),
    labels=(f"{GROUP}/", f"inferenceset.{GROUP}/", naming.POD_INDEX),
    label=_label,
)
