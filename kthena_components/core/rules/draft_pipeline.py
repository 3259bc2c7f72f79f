"""The rule draft-pipeline."""

import re
from collections.abc import Iterator, Mapping

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.remedies import either, set_option
from kthena_components.core.rules.support.engine_startup import Start, starts
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
