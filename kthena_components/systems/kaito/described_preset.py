"""Describes the engine of a preset, whose pods KAITO writes.

Source: kaito-project/kaito v0.11.0 pkg/model/interface.go and presets/workspace/inference/vllm.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.objects.object import read_object
from kthena_components.core.plan.read_back import stated
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.contract import Body
from kthena_components.systems.kaito.config import PORT, RELEASE
from kthena_components.systems.kaito.estimator import CONTEXT
from kthena_components.systems.kaito.limits_preset import IMAGE, TOKEN_KEY
from kthena_components.systems.kaito.presets import SHORT_NAMES
from kthena_components.systems.kaito.sized import Sized, node_of, size_of
from kthena_components.systems.kaito.start import share_of
from kthena_components.systems.kaito.view import CONFIG_KEY, Model, read_view
from kthena_components.systems.kaito.webhook_config import MAX_LEN

_LONGEST = 10


def content_of(inference: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of inference_config.yaml, where the ConfigMap stands for its name."""
    config = mapping(inference.get("config"))
    return mapping(mapping(config.get("data")).get(CONFIG_KEY))


def preset_role(body: Body, inference: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the role of a preset, with the nodes and the parallelism that KAITO will choose.

    Args:
        body: The object.
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
