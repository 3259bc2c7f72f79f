"""The rule context-within-model: the longest request does not exceed the model's maximum."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, Level
from kthena_components.core.memory.sharding import model_shape
from kthena_components.core.models import ModelShape
from kthena_components.core.remedies import either, set_option
from kthena_components.core.rules.support.engine_startup import (
    ALWAYS,
    Start,
    each_start,
    sglang_for_amd,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import known

CONTEXT = "context-within-model"
_SGLANG_REFUSES = (0, 5, 1)
"""The first SGLang that rejects a longer context; older ones warn."""
_OTHER_CONTEXT = {
    "vllm": ("--hf-overrides", "--hf-config-path", "--rope-scaling", "--rope-theta"),
    "sglang": ("--json-model-override-args", "--model-config-parser"),
}
"""Options that override a model's config.json."""
_ALLOW = {
    "vllm": "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
    "sglang": "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
}
_CONFIG_OF = regex(r"config\.json of (\S+?)(?:,|;| on | as |$)")
_CATALOG = "kaito-project/kaito, presets/workspace/models/model_catalog.yaml"
"""Its modelTokenLimit is the maximum of the config.json of each model that it names."""
_CLASS_OF = regex(r"transformers [0-9.]+, models/\S+")


@each_start(*_OTHER_CONTEXT)
def context_within_model(start: Start) -> Iterator[Finding]:
    """The longest request does not exceed the model's maximum.

    The maximum comes from the model's config.json, including its scaling. Not checked: models that
    are not in the table of models, models whose config the command line overrides, and engines with
    the variable VLLM_ALLOW_LONG_MAX_MODEL_LEN or SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN, which
    SGLang's own images for AMD set.

    Pass: --max-model-len 131072 for Llama-3.1-8B.
    Fail: --max-model-len 131073 for it; --context-length 65536 for Qwen3-8B in SGLang 0.5.1 and
    later.
    Level: mandatory if the maximum is from the config.json of this very model, or of its sister and
    KAITO's catalog says the same of it; otherwise, or if the image states no release of SGLang,
    advisory.
    Source: vllm/config/model.py _get_and_verify_max_len; sglang/srt/configs/model_config.py;
    kaito-project/kaito presets/workspace/models/model_catalog.yaml.
    """
    command, longest = start.command, start.command.max_model_len
    if not isinstance(longest, int) or _changed(start) or start.hidden:
        return
    if sglang_for_amd(start.engine.entry):
        return
    shape = model_shape(command, start.engine.entry.shape)
    allowed = command.long_context_allowed
    if not isinstance(shape, ModelShape) or shape.context is None or allowed is True:
        return
    if longest > shape.context:
        known(allowed)
        yield from _too_long(start, longest, shape, shape.context)


def _changed(start: Start) -> bool:
    names = _OTHER_CONTEXT[start.command.engine or ""]
    return any(start.option(name) is not None for name in names)


def _too_long(start: Start, longest: int, shape: ModelShape, context: int) -> Iterator[Finding]:
    engine = start.command.engine or ""
    level = ALWAYS if engine == "vllm" else start.since(_SGLANG_REFUSES)
    if level is None:
        return
    if not _is_own_config(start, shape):
        level = Level.ADVISORY
    option = "--max-model-len" if engine == "vllm" else "--context-length"
    model = start.command.model
    name = model if isinstance(model, str) else shape.name
    seen = f"has {option} {longest}, and {name} was made for {context}"
    remedy = either(
        set_option(option, context, then=" or less"),
        f"set {_ALLOW[engine]}=1 and check the answers",
    )
    yield from start.refused(seen, remedy, level)


def _renamed(model: str) -> str:
    """Return the name of a model, whose repository may have had another one."""
    return model.casefold().replace("/meta-llama-", "/llama-")


def _is_own_config(start: Start, shape: ModelShape) -> bool:
    """Return whether the maximum is from the config.json, or class, of this very model."""
    if shape.source == "config.json":
        return True
    if "context" in shape.source:
        return False
    found = _CONFIG_OF.match(shape.source)
    model = start.command.model
    names = {shape.name.casefold(), model.casefold() if isinstance(model, str) else ""}
    own = found is not None and found[1].casefold() in names
    if found is not None and _CATALOG in shape.source:
        # The config.json is a sister's, and the catalog states the same of the first of the row.
        stated = model if isinstance(model, str) else shape.name
        own = own or _renamed(stated) == _renamed(shape.name)
    return own or (_CLASS_OF.match(shape.source) is not None and f"of {shape.name}" in shape.source)
