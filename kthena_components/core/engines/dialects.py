"""The options that a release of an engine accepts, and what each of them sets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from kthena_components.core.engines.argv import words_of
from kthena_components.core.engines.option_table import Row, load, release_for, rows_of
from kthena_components.core.engines.options import (
    TITLES,
    Dialect,
    Option,
    Release,
    Use,
    build_dialect,
    understand,
)
from kthena_components.core.engines.values import REFUSED, Refused, read_value


def _size(field: str, least: int = 1, *, counted: bool = True) -> Use:
    return Use(field, least=least, counted=counted)


def _counted(field: str) -> Use:
    return Use(field, counted=True)


VLLM_USES: Mapping[str, Use] = {
    "--tensor-parallel-size": _size("tensor"),
    "--pipeline-parallel-size": _size("pipeline"),
    "--prefill-context-parallel-size": _size("prefill_context"),
    "--decode-context-parallel-size": _size("decode_context", counted=False),
    "--data-parallel-size": _size("data"),
    "--data-parallel-size-local": _size("data_local", 0),
    "--data-parallel-rank": _size("data_rank", 0),
    "--data-parallel-start-rank": _size("data_start_rank", 0),
    "--data-parallel-rpc-port": _size("data_rpc_port"),
    "--data-parallel-address": _counted("data_address"),
    "--data-parallel-backend": _counted("data_backend"),
    "--data-parallel-hybrid-lb": _counted("hybrid"),
    "--data-parallel-external-lb": _counted("external"),
    "--data-parallel-multi-port-external-lb": _counted("many_ports"),
    "--enable-expert-parallel": _counted("expert"),
    "--nnodes": _size("nnodes"),
    "--node-rank": _size("node_rank", 0),
    "--master-addr": _counted("master_address"),
    "--master-port": _size("master_port"),
    "--distributed-executor-backend": _counted("executor"),
    "--headless": _counted("headless"),
    "--model": _counted("model"),
    "--port": _size("port"),
    "--max-model-len": Use("max_model_len", least=1),
    "--gpu-memory-utilization": Use("memory_fraction"),
    "--quantization": Use("quantization"),
    "--kv-cache-dtype": Use("kv_cache_dtype"),
    "--kv-cache-memory-bytes": Use("kv_cache_bytes", least=1),
    "--cpu-offload-gb": Use("cpu_offload_gib"),
    "--offload-group-size": Use("offload_group"),
    "--hf-overrides": Use("architectures", key="architectures", item=list),
    "--kv-transfer-config": Use("kv_role", key="kv_role"),
    "--speculative-config": Use("speculative_tokens", key="num_speculative_tokens", item=int),
    "--config": Use("config"),
}
SGLANG_USES: Mapping[str, Use] = {
    "--tensor-parallel-size": _size("tensor"),
    "--pipeline-parallel-size": _size("pipeline"),
    "--data-parallel-size": _size("data"),
    "--expert-parallel-size": _size("expert"),
    "--attention-data-parallel-size": _size("attention_data", counted=False),
    "--attn-dp-size": _size("attention_data", counted=False),
    "--attn-cp-size": _size("attention_context", counted=False),
    "--attention-context-parallel-size": _size("attention_context", counted=False),
    "--ep-num-redundant-experts": _size("redundant_experts", 0, counted=False),
    "--moe-a2a-backend": Use("exchange"),
    "--decode-context-parallel-size": _size("decode_context", counted=False),
    "--dcp-size": _size("decode_context", counted=False),
    "--enable-dp-attention": _counted("dp_attention"),
    "--nnodes": _size("nnodes"),
    "--node-rank": _size("node_rank", 0),
    "--dist-init-addr": _counted("init_address"),
    "--use-ray": _counted("use_ray"),
    "--model-path": _counted("model"),
    "--host": _counted("host"),
    "--port": _size("port"),
    "--context-length": Use("max_model_len", least=1),
    "--mem-fraction-static": Use("memory_fraction"),
    "--quantization": Use("quantization"),
    "--kv-cache-dtype": Use("kv_cache_dtype"),
    "--cpu-offload-gb": Use("cpu_offload_gib"),
    "--offload-group-size": Use("offload_group"),
    "--json-model-override-args": Use("architectures", key="architectures", item=list),
    "--config": Use("config"),
}
TRTLLM_USES: Mapping[str, Use] = {
    "--tp_size": _size("tensor"),
    "--pp_size": _size("pipeline"),
    "--cp_size": _size("prefill_context", counted=False),
    "--ep_size": _size("expert", -1),
    "--host": _counted("host"),
    "--port": _size("port"),
    "--gpus_per_node": _size("gpus_per_node", counted=False),
    "--max_seq_len": Use("max_model_len", least=1),
    "--kv_cache_dtype": Use("kv_cache_dtype"),
    "--kv_cache_free_gpu_memory_fraction": Use("memory_fraction"),
    "--extra_llm_api_options": Use("config"),
}
_USES = {"vllm": VLLM_USES, "sglang": SGLANG_USES, "trtllm": TRTLLM_USES}
_REFUSED = {
    "vllm": {
        **dict.fromkeys(("--tp", "--tp-size"), "--tensor-parallel-size"),
        **dict.fromkeys(("--pp", "--pp-size"), "--pipeline-parallel-size"),
        **dict.fromkeys(("--dp", "--dp-size"), "--data-parallel-size"),
        **dict.fromkeys(("--ep", "--ep-size"), "--enable-expert-parallel"),
        "--dcp": "--decode-context-parallel-size",
        "--pcp": "--prefill-context-parallel-size",
        "--model-path": "--model",
        "--context-length": "--max-model-len",
        "--mem-fraction-static": "--gpu-memory-utilization",
    },
    "sglang": {
        "-tp": "--tp-size",
        "-pp": "--pp-size",
        "-dp": "--dp-size",
        "-ep": "--ep-size",
        "--enable-expert-parallel": "--ep-size",
        "--max-model-len": "--context-length",
        "--gpu-memory-utilization": "--mem-fraction-static",
    },
    "trtllm": {f"--{kind}": f"--{kind}_size" for kind in ("tp", "pp", "cp", "ep")},
}
"""Frequent wrong spellings, including the other engine's, and the right option."""
MODEL_IN_FRONT = (0, 11, 1)
"""The first release in which `vllm serve --model B` means `vllm serve B`: it moves the first."""
DOTTED_SINCE = (0, 9, 0)
"""vLLM's first release that reads `--a.b v` as a key (vllm/utils.py `FlexibleArgumentParser`)."""
LEVEL_SINCE = (0, 12, 0)
"""vLLM's first release that rewrites -O3 to --optimization-level 3."""
_LEVEL = "-O"
_LEVELS = ("0", "1", "2", "3")
"""What -O takes since then (vllm/config/vllm.py OptimizationLevel). Before, it takes JSON, too."""
SIZED_JSON_SINCE = (0, 20, 0)
"""vLLM's first release that reads 80g in JSON as a number (vllm/engine/arg_utils.py)."""
PAIRS_SINCE, PAIRS_UNTIL = (0, 8, 5), (0, 10, 0)
"""vLLM's releases that accept image=2 for JSON: from the first, before the second."""
_UNREAD = frozenset({"text", "any-json"})
"""Types that take any word: a release with such a row may read, and reject, the word later."""
_OWN_TYPES = {"--lora-modules": "lora"}
"""Options that the engine converts when it stores them: the table shows no type."""
_MODEL = (Option("--model", use=Use("model", counted=True)), ("--model",), ())
_KSERVE = (
    (Option("--model-id", use=Use("model")), ("--model-id",), ()),
    (Option("--model-dir", use=Use("model")), ("--model-dir",), ()),
    (Option("--model-name"), ("--model-name",), ()),
)
_OWN = [
    "--active-prefill-tokens-threshold",
    "--active-prefill-tokens-threshold-frac",
    "--aic-attention-dp-size",
    "--aic-backend",
    "--aic-model-path",
    "--aic-moe-ep-size",
    "--aic-moe-tp-size",
    "--aic-mtp-seed",
    "--aic-tp-size",
    "--backend",
    "--dyn-chat-processor",
    "--dyn-default-thinking-mode",
    "--dyn-enable-structural-tag",
    "--dyn-endpoint-types",
    "--endpoint",
    "--endpoint-types",
    "--dyn-reasoning-parser",
    "--dyn-structural-tag-schema",
    "--dyn-structural-tag-scope",
    "--dyn-tool-call-parser",
    "--enable-feature",
    "--enable-rl",
    "--kv-events",
    "--model-revision",
    "--workers",
]
"""Options of Dynamo and huggingfaceserver that resemble one of the engine.

Source: ai-dynamo/dynamo components/src/dynamo/common/configuration, backend_args.py of each engine;
kserve python/huggingfaceserver __main__.py, python/kserve model_server.py.
"""
_KAITO = ((Option("--kaito-config-file", use=Use("kaito_config")), ("--kaito-config-file",), ()),)

_Entry = tuple[Option, tuple[str, ...], tuple[str, ...]]


@lru_cache(maxsize=64)
def dialect_of(release: Release, *, server: bool = False) -> Dialect:
    """Return what a release accepts when its own program starts it.

    Args:
        server: Whether it is vLLM's API server, which has --model in every release. `vllm serve` of
            0.9.0 has not.
    """
    engine, version = release.engine, release.version
    more = (_MODEL,) if server else ()
    moved = engine == "vllm" and not server and version >= MODEL_IN_FRONT
    return build_dialect(
        TITLES[engine],
        (*more, *_entries(release)),
        refused=_REFUSED[engine],
        underscores=engine == "vllm",
        abbreviates=engine != "trtllm",
        dotted=engine == "vllm" and version >= DOTTED_SINCE,
        firsts=frozenset({"model"} if moved else ()),
        complete=True,
        table=engine,
        release=release,
    )


@lru_cache(maxsize=4)
def dialect_inside(engine: str, program: str = "") -> Dialect:
    """Return what a program accepts that adds the engine's options to its own.

    The program does not state the engine's release, so the newest is assumed, and options of other
    releases are not reported. An option that the engine lacks may be the program's: KAITO's,
    Dynamo's, or KServe's huggingfaceserver's.
    """
    release = release_for(engine, None)
    own = ((Option(name, arity="?"), (name,), ()) for name in _OWN)
    more = (*_KAITO, *(_KSERVE if program == "huggingfaceserver" else ()))
    return build_dialect(
        program or TITLES[engine],
        (*own, *_entries(release), *(more if engine == "vllm" else ())),
        refused={} if program else _REFUSED[engine],
        underscores=engine == "vllm",
        dotted=engine == "vllm",
        table=engine,
    )


def option_elsewhere(flag: str, dialect: Dialect) -> Option | None:
    """Return an option that other releases have, with its values in the newest of these releases.

    It tells which words are values of a flag that the release itself rejects.
    """
    if not dialect.table:
        return None
    spelling = flag.replace("_", "-") if dialect.underscores else flag
    rows = rows_of(dialect.table, spelling)
    if not rows:
        return None
    row, release = max(rows, key=lambda row: row.until), dialect.release
    option = _option(row, release or release_for(dialect.table, None))
    kind = "text" if option.type == REFUSED else option.type
    return replace(option, off=spelling in row.off, type=kind)


def taken_elsewhere(option: Option, words: Sequence[str], dialect: Dialect) -> bool:
    """Return whether the release is uncertain, and another one takes the words as values."""
    release = dialect.release
    if release is None or release.sure:
        return False
    for row in rows_of(release.engine, option.name):
        other = _option(row, release)
        if words and option.arity != "0" and other.type.removesuffix("?") in _UNREAD:
            continue
        fewest, most = words_of(other)
        read = (read_value(other, word, word, in_shell=True) for word in words)
        if fewest <= len(words) <= most and not any(isinstance(value, Refused) for value in read):
            return True
    return False


def _entries(release: Release) -> Iterator[_Entry]:
    """List a release's options with their spellings; `-O` is split off with its own values."""
    for row in load(release.engine).at(release.version):
        option, spellings = _option(row, release), _spellings(row, release)
        if _LEVEL in spellings and release.version >= LEVEL_SINCE:
            yield replace(option, choices=_LEVELS), (_LEVEL,), ()
            spellings = tuple(name for name in spellings if name != _LEVEL)
        elif _LEVEL in spellings and "object" in option.type:
            # `-O 3` is rewritten to an object before the parser reads it.
            yield replace(option, type="json"), (_LEVEL,), ()
            spellings = tuple(name for name in spellings if name != _LEVEL)
        yield option, spellings, row.off


def _option(row: Row, release: Release) -> Option:
    uses = _USES[release.engine]
    use = next((uses[name] for name in row.names if name in uses), None)
    return Option(row.name, row.arity, _type(row, use, release), row.choices, use)


def _type(row: Row, use: Use | None, release: Release) -> str:
    """Return how an option's words are read, where the table's type is ambiguous."""
    kind, mark = row.type.removesuffix("?"), row.type[len(row.type.removesuffix("?")) :]
    if kind == "text" and use and use.key:
        return "any-json"  # Some releases accept any string and read it as JSON later.
    if release.engine == "sglang":
        return "si-size" if kind == "size" else row.type
    if kind in {"json", "object"} and release.version >= SIZED_JSON_SINCE:
        return f"sized-{kind}{mark}"
    if kind in {"json", "object"} and PAIRS_SINCE <= release.version < PAIRS_UNTIL:
        return f"pairs-or-{kind}{mark}"
    return _OWN_TYPES.get(row.name, row.type)


def _spellings(row: Row, release: Release) -> tuple[str, ...]:
    rewritten = release.engine == "vllm" and release.version >= LEVEL_SINCE
    return (*row.names, _LEVEL) if rewritten and row.name == "--optimization-level" else row.names


# Tells which options of the engines take a number.


_ENGINES = ("vllm", "sglang", "trtllm")
_TYPES = frozenset({"float", "int", "si-size", "size", "size-auto"})


@lru_cache(maxsize=1024)
def takes_number(flag: str) -> bool:
    """Return whether an option takes a number in each engine's newest release that has it.

    Args:
        flag: The option as written, without a value: `--max-model-len`.
    """
    dialects = (dialect_of(release_for(engine, None)) for engine in _ENGINES)
    found = [understand(flag, dialect).option for dialect in dialects]
    types = [option.type.removesuffix("?") for option in found if option is not None]
    return bool(types) and _TYPES.issuperset(types)
