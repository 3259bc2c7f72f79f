"""Rules of a draft model: its parallel sizes beside those of the model."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import either, set_option
from kthena_components.core.rules.support.engine_startup import Start, each_start, starts
from kthena_components.core.values.regex import regex

_SINCE, _BEFORE = (0, 8), (0, 30)
"""The releases of vLLM that give a draft the pipeline of its model."""
_DSPARK, _DSPARK_SINCE, _DSPARK_REFUSES = "dspark", (0, 25), (0, 27)
"""A method, the first vLLM with it, and the first that does not refuse its pipeline itself."""
_DSPARK_WITHOUT = regex(r"deepseek-?v4", re.IGNORECASE)
"""Models whose module for it supports none."""
_WITH_PIPELINE = frozenset({"nemotron_h_mtp", "glm4_moe_lite_mtp", "glm_ocr_mtp", "mtp"})
"""Methods whose modules support a pipeline, and the one whose module depends on the model."""
_WITHOUT = regex(
    r"deepseek-?(?:v3|r1)|glm-4\.[56](?!.*flash)|qwen3-(?:next|5)|qwen3\.5|mimo|ernie-4\.5|longcat",
    re.IGNORECASE,
)
"""Models whose modules for MTP support none."""


def draft_pipeline(facts: ServingFacts) -> Iterator[Finding]:
    """A model that drafts its own tokens (MTP, DSpark) has no pipeline in vLLM up to 0.29.

    These releases give the module that drafts the pipeline of its model, which it does not support.

    Pass: method mtp with tensor 16; with pipeline 2 since vLLM 0.30.
    Fail: --speculative-config.method deepseek_mtp with pipeline 2 and vLLM 0.20.2.
    Level: mandatory; advisory if the image states no release.
    Source: vllm/config/speculative.py create_draft_parallel_config and vllm/config/model.py
    verify_with_parallel_config; vllm/model_executor/models/registry.py;
    vllm/v1/worker/gpu/spec_decode/dspark/utils.py and vllm/models/deepseek_v4, whose class
    DSparkDeepseekV4ForCausalLM has no SupportsPP.
    """
    for start in starts(facts, "vllm"):
        stages, config = start.command.pipeline, start.option("--speculative-config")
        level = start.since(_SINCE, _BEFORE)
        if level is None or not isinstance(config, Mapping):
            continue
        method, draft = config.get("method"), config.get("model")
        if draft is None and method is None:
            method = "mtp"
        if not isinstance(stages, int) or stages <= 1 or not isinstance(method, str):
            continue
        if method == _DSPARK:
            level = _dspark(start)
        elif not method.endswith("mtp") or not _is_without(start, method):
            continue
        if level is None:
            continue
        seen = (
            f"drafts tokens with {method} and has {stages} pipeline stages, and {start.product} "
            "gives the module that drafts as many stages, which it does not support"
        )
        remedy = either(
            set_option("--pipeline-parallel-size", 1),
            "draft no tokens",
            "use vLLM 0.30 or later",
        )
        yield from start.refused(seen, remedy, level)


def _is_without(start: Start, method: str) -> bool:
    """Return whether the module of a method supports no pipeline."""
    model = start.command.model
    if method != "mtp":
        return method not in _WITH_PIPELINE
    return isinstance(model, str) and _WITHOUT.search(model) is not None


def _dspark(start: Start) -> Level | None:
    """Return the level of DSpark with a pipeline."""
    model = start.command.model
    named = isinstance(model, str) and _DSPARK_WITHOUT.search(model) is not None
    return start.since(_DSPARK_SINCE, _BEFORE if named else _DSPARK_REFUSES)


_NO_MODEL = ("ngram", "[ngram]", "ngram_gpu", "suffix", "custom_class", "extract_hidden_states")
"""Methods that draft without a model, for which vLLM does not look at the size."""


@each_start("vllm")
def draft_tensor(start: Start) -> Iterable[Finding]:
    """A draft model has tensor size 1, or that of its target model.

    vLLM refuses to start otherwise.

    Pass: --speculative-config with draft_tensor_parallel_size 1 or 8, and --tensor-parallel-size 8.
    Fail: draft_tensor_parallel_size 4, and --tensor-parallel-size 8.
    Level: mandatory.
    Source: vllm/config/speculative.py __post_init__ and _verify_and_get_draft_tp.
    """
    config, tensor = start.option("--speculative-config"), start.command.tensor
    if not isinstance(config, Mapping) or not isinstance(tensor, int):
        return
    size = config.get("draft_tensor_parallel_size")
    if type(size) is not int or size in {1, tensor} or _drafts_without_model(config):
        return
    allowed = "1" if tensor == 1 else f"1 or {tensor}"
    seen = (
        f"gives its draft model tensor {size}, but vLLM accepts only {allowed} with tensor {tensor}"
    )
    yield from start.refused(
        seen, f"write draft_tensor_parallel_size {tensor}, or leave it out of --speculative-config"
    )


def _drafts_without_model(config: Mapping[str, Any]) -> bool:
    """Return whether vLLM makes no draft model, whose size it would look at.

    A model with dots and without a slash is a class of the user's.
    """
    method, model = config.get("method"), config.get("model")
    if method in _NO_MODEL or model in _NO_MODEL:
        return True
    return method is None and isinstance(model, str) and "." in model and "/" not in model
