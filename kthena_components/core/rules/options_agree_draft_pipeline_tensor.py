"""Rules of options that require others, and of a draft model's parallel sizes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kthena_components.core.engines.option_table import rows_of
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.remedies import either, set_option, without
from kthena_components.core.rules.support.engine_pods import Start, each_start, starts
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.images import Version
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

RULE = "options-agree"


class _Pair(NamedTuple):
    """Two options of an engine."""

    option: str
    other: str
    first: Version
    """The first release that rejects one without the other, or both together."""


_REQUIRED = {
    "vllm": (
        _Pair("--enable-auto-tool-choice", "--tool-call-parser", (0, 6)),
        _Pair("--enable-log-outputs", "--enable-log-requests", (0, 11)),
        _Pair("--lora-modules", "--enable-lora", (0, 9)),
        _Pair("--numa-bind-nodes", "--numa-bind", (0, 20)),
        _Pair("--numa-bind-cpus", "--numa-bind", (0, 20)),
    ),
    "sglang": (),
}
_EXCLUDED = {
    "vllm": (),
    "sglang": (_Pair("--enable-hierarchical-cache", "--disable-radix-cache", (0, 5, 1)),),
}
_LORA_SIZES = (0, 4, 10, 2)
"""The first SGLang that asks for the sizes of adapters that it loads later."""
_NO_COLON = (0, 5, 5, 1)
"""The first SGLang that keeps the colon in a model's name for adapters."""
_OVERLAP = (0, 5, 7)
"""The first SGLang that checks what two batches overlap."""
_OFFLOAD = (0, 18)
"""The first vLLM that compares the layers of a group with those of it that it offloads."""
_DRAFT = "--speculative-config"
_OF_DRAFT = ("method", "model")
_TOKENS = {"num_speculative_tokens", "num_speculative_tokens_per_batch_size"}
_LOOK_UP, _LOOK_UP_SINCE = ("prompt_lookup_min", "prompt_lookup_max"), (0, 8, 2)
"""Keys of a draft by n-grams, and the first vLLM that compares them."""
_RANKS, _RANKS_MORE, _RANKS_LISTED = (8, 16, 32, 64, 128, 256), (0, 8), (0, 11, 1)
"""Ranks that LoRA adapters may have, the first vLLM that allows 320 and 512, too, and the first
whose option lists them."""
_SERVERS = (0, 9, 1)
"""The first vLLM that starts no API servers in headless mode."""


def options_agree(facts: ServingFacts) -> Iterator[Finding]:
    """An engine has the options that its other options require, and none that these exclude.

    vLLM: --enable-auto-tool-choice requires --tool-call-parser; --lora-modules requires
    --enable-lora, since 0.9; --enable-log-outputs requires --enable-log-requests, since 0.11;
    --numa-bind-nodes and --numa-bind-cpus require --numa-bind, since 0.20. --max-cpu-loras is at
    least --max-loras, and --offload-num-in-group at most --offload-group-size, since 0.18. A
    headless engine has no --api-server-count above 1, since 0.9.1. --speculative-config requires
    num_speculative_tokens, unless the config of a draft model has n_predict, or its block size; it
    is 1 or more, and so are prompt_lookup_min and prompt_lookup_max, in this order. --max-lora-rank
    is one of some sizes; since 0.11.1 engine-option-known has them.

    SGLang: --enable-hierarchical-cache excludes --disable-radix-cache, since 0.5.1. --enable-lora
    requires --lora-paths, or --max-lora-rank and --lora-target-modules, since 0.4.10.post2.
    --served-model-name contains no colon, since 0.5.5.post1. --enable-two-batch-overlap requires
    --moe-a2a-backend or attention data parallelism, since 0.5.7.

    Pass: --enable-auto-tool-choice --tool-call-parser hermes; --max-loras 4 --max-cpu-loras 4.
    Fail: --enable-auto-tool-choice alone; --lora-modules a=/adapters/a without --enable-lora;
        --enable-lora --max-loras 4 --max-cpu-loras 2; --speculative-config.method ngram alone;
        prompt_lookup_min 6 and prompt_lookup_max 4; --enable-lora --max-lora-rank 48;
        --speculative-config.method mtp with Llama 3, which has no layers for it.
    Level: mandatory; advisory if the image states no release, for num_speculative_tokens with a
        model that drafts, and for models without layers that draft.
    Source: vllm/entrypoints/openai/cli_args.py validate_parsed_serve_args (0.33:
        entrypoints/common), openai/models/serving.py init_static_loras, cli/serve.py run_headless,
        config/lora.py, config/parallel.py, config/offload.py,
        config/speculative.py _verify_args and hf_config_override (0.8.5 to 0.33);
        sglang/srt/server_args.py (0.5.23: arg_groups/kv_cache_hook.py, lora_hook.py and
        validation_hook.py).
    """
    for start in starts(facts, *_REQUIRED):
        engine = start.command.engine or ""
        for pair in _REQUIRED[engine]:
            yield from _required(start, pair)
        for pair in _EXCLUDED[engine]:
            yield from _excluded(start, pair)
        yield from _vllm(start) if engine == "vllm" else _sglang(start)


def _is_stated(start: Start, option: str) -> bool:
    """Return whether an option is set, and not switched off."""
    value = start.option(option)
    return value is not None and value is not False and not isinstance(value, Unknown)


def _is_missing(start: Start, option: str) -> bool:
    """Return whether an option is definitely not set."""
    value = start.option(option)
    return (value is None or value is False) and not start.hidden


def _required(start: Start, pair: _Pair) -> Iterator[Finding]:
    level = start.since(pair.first)
    if level and _is_stated(start, pair.option) and _is_missing(start, pair.other):
        seen = f"has {pair.option} without {pair.other}, and {start.product} requires it"
        yield from start.refused(
            seen, either(_added(start, pair.other), without(pair.option)), level
        )


def _added(start: Start, option: str) -> str:
    """Add an option; one with a value is the user's choice."""
    rows = rows_of(start.command.engine or "", option)
    return set_option(option, True) if all(row.arity == "0" for row in rows) else f"add {option}"


def _excluded(start: Start, pair: _Pair) -> Iterator[Finding]:
    level = start.since(pair.first)
    if level and _is_stated(start, pair.option) and _is_stated(start, pair.other):
        seen = f"has {pair.option} and {pair.other}, and {start.product} supports one of them"
        yield from start.refused(seen, without(pair.other), level)


def _held_adapters(start: Start) -> Iterator[Finding]:
    """Refuse fewer LoRA adapters in host memory than one batch may use; the default is one."""
    level, held = start.since((0, 6)), start.number("--max-cpu-loras")
    used = start.number("--max-loras")
    if level is None or held is None or not _is_stated(start, "--enable-lora"):
        return
    used = 1 if used is None and not start.hidden else used
    if used is not None and held < used:
        seen = f"holds {held} LoRA adapters (--max-cpu-loras) for {used} in a batch"
        yield from start.refused(seen, set_option("--max-cpu-loras", used, then=" or more"), level)


def _adapter_rank(start: Start) -> Iterator[Finding]:
    level, rank = start.since((0, 6), _RANKS_LISTED), start.number("--max-lora-rank")
    allowed = (*_RANKS, 320, 512) if start.since(_RANKS_MORE) else _RANKS
    if level and rank is not None and rank not in allowed and _is_stated(start, "--enable-lora"):
        seen = f"has --max-lora-rank {rank}, and {start.product} takes {listing(map(str, allowed))}"
        above = next((each for each in allowed if each > rank), allowed[-1])
        yield from start.refused(seen, set_option("--max-lora-rank", above), level)


def _vllm(start: Start) -> Iterator[Finding]:
    """Report options of vLLM that contradict each other."""
    yield from _held_adapters(start)
    yield from _adapter_rank(start)
    level, group = start.since(_OFFLOAD), start.number("--offload-group-size")
    offloaded = start.number("--offload-num-in-group")
    if level and group is not None and offloaded is not None and 0 < group < offloaded:
        seen = (
            f"offloads {count_of(offloaded, 'layer')} (--offload-num-in-group) of each "
            f"group of {group}"
        )
        yield from start.refused(
            seen, set_option("--offload-num-in-group", group, then=" or less"), level
        )
    level, servers = start.since(_SERVERS), start.number("--api-server-count")
    if level and start.command.headless is True and servers is not None and servers > 1:
        seen = f"has {servers} API servers (--api-server-count), and serves nothing (--headless)"
        yield from start.refused(
            seen,
            either(without("--api-server-count"), without("--headless", text="--headless")),
            level,
        )
    yield from _draft_tokens(start)
    yield from _no_layers(start)
    yield from _draft_numbers(start)


def _draft_numbers(start: Start) -> Iterator[Finding]:
    """Report a number of drafted tokens, or of tokens to look up, that vLLM does not take."""
    config, level = start.option(_DRAFT), start.since(_SINCE)
    if level is None or not isinstance(config, Mapping):
        return
    looks_up = "ngram" in str(config.get("method") or config.get("model"))
    for key in ("num_speculative_tokens", *(_LOOK_UP if looks_up else ())):
        number = config.get(key)
        if type(number) is int and number < 1:
            seen = f"has {key} {number} in {_DRAFT}, and vLLM takes 1 or more"
            yield from start.refused(seen, f"write {key} 1 or more", level)
            return
    least, most = (config.get(key) for key in _LOOK_UP)
    level = start.since(_LOOK_UP_SINCE)
    if level and looks_up and type(least) is int and type(most) is int and least > most:
        seen = f"looks up at least {least} tokens (prompt_lookup_min) and at most {most}"
        remedy = f"write prompt_lookup_min {most} or less in {_DRAFT}"
        yield from start.refused(seen, remedy, level)


def _draft_tokens(start: Start) -> Iterator[Finding]:
    """Report a draft without a number of tokens. Suffix decoding has a default."""
    config, level = start.option(_DRAFT), start.since(_SINCE)
    if level is None or not isinstance(config, Mapping) or _TOKENS & config.keys():
        return
    method, model = (None if config.get(key) == "" else config.get(key) for key in _OF_DRAFT)
    if method == "suffix" or any(isinstance(value, Unknown) for value in (method, model)):
        return
    if isinstance(method, str) and model is None and method.endswith(("mtp", "dspark")):
        drafts = f"drafts with {method}"
    elif _drafts_without_model(config):
        drafts = f"drafts with {method or model}"
    elif isinstance(model, str) and method in {None, "eagle", "eagle3", "draft_model"}:
        drafts, level = f"drafts with {display(model)}", Level.ADVISORY
    else:
        return
    yield from start.refused(
        f"{drafts} without num_speculative_tokens in {_DRAFT}, which has no default for it",
        "add num_speculative_tokens to it, such as 3",
        level,
    )


_NO_LAYERS = regex(
    r"(?:^|[/_-])(?:(?:meta-)?llama-?[234]|distill-(?:llama|qwen)|qwen2(?:\.5)?-|qwen3-[0-9.]+b|"
    r"gemma-[23]-|gpt-oss|phi-[34]|mixtral|mistral-7b)",
    re.IGNORECASE,
)
"""Families of models without layers that draft tokens, for which no release has a module."""


def _no_layers(start: Start) -> Iterator[Finding]:
    """Report a model that cannot draft its own tokens: newer releases load it twice instead."""
    config, model, level = start.option(_DRAFT), start.command.model, start.since(_SINCE)
    if level is None or not isinstance(config, Mapping) or not isinstance(model, str):
        return
    method = config.get("method")
    own = isinstance(method, str) and method.endswith("mtp") and config.get("model") is None
    if own and _NO_LAYERS.search(model):
        seen = f"drafts with {method}, and {display(model)} has no layers for it (MTP)"
        remedy = f"write another method in {_DRAFT}, such as ngram, or eagle3 with its model"
        yield from start.refused(seen, remedy, Level.ADVISORY)


def _sglang(start: Start) -> Iterator[Finding]:
    """Check SGLang's options for adapters, served names, and overlapped batches."""
    level, sizes = start.since(_LORA_SIZES), ("--max-lora-rank", "--lora-target-modules")
    unsized = any(_is_missing(start, size) for size in sizes)
    unsized = unsized and _is_missing(start, "--lora-paths")
    if level and unsized and _is_stated(start, "--enable-lora"):
        seen = f"has --enable-lora, and {start.product} cannot tell the sizes of adapters"
        remedy = f"add {sizes[0]} and {sizes[1]}, or --lora-paths"
        yield from start.refused(seen, remedy, level)
    level, name = start.since(_NO_COLON), start.option("--served-model-name")
    if level and isinstance(name, str) and ":" in name and "://" not in name:
        seen = f"has --served-model-name {name}, and {start.product} reads an adapter's name after "
        remedy = set_option("--served-model-name", name.replace(":", "-"))
        yield from start.refused(f"{seen}the colon", remedy, level)
    level, exchange = start.since(_OVERLAP), start.option("--moe-a2a-backend")
    alone = start.command.attention_data == 1 and (exchange is None or exchange == "none")
    if level and alone and _is_stated(start, "--enable-two-batch-overlap") and not start.hidden:
        seen = "overlaps two batches (--enable-two-batch-overlap) and exchanges nothing"
        remedy = either("add --moe-a2a-backend", without("--enable-two-batch-overlap"))
        yield from start.refused(seen, remedy, level)


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

    These releases split the draft model over the stages of the model, which it does not support.

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
            "splits the draft model over the same stages, which it does not support"
        )
        remedy = either(
            set_option("--pipeline-parallel-size", 1), "draft no tokens", "use vLLM 0.30 or later"
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
    """A draft model has tensor size 1, or the tensor size of its target model.

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
