"""TensorRT-LLM: its flags, and the reader of its command lines. trtllm_launch.py writes them.

Flags: tensorrt_llm/commands/serve.py, parsed by Click: no abbreviations, and underscores in nearly
all of them. The project publishes no source on the Python Package Index, so there is no table by
release: the names are those of tests/unittest/api_stability/references/trtllm_serve_cli.yaml of
2026.
"""

from collections.abc import Sequence

from kthena_components.core.engines.arguments import Reading
from kthena_components.core.engines.config_files import add_file, config_of
from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.engines.files import engine_options
from kthena_components.core.engines.options import Dialect, Option, Use, build_dialect
from kthena_components.core.engines.placeholders import Scope


def _size(
    name: str, field: str, *others: str, counted: bool = False
) -> tuple[Option, tuple[str, ...], tuple[str, ...]]:
    use = Use(field, least=1, counted=counted)
    return Option(name, type="int", use=use), (name, *others), ()


def _text(name: str, field: str, *others: str) -> tuple[Option, tuple[str, ...], tuple[str, ...]]:
    return Option(name, use=Use(field)), (name, *others), ()


def _fraction(name: str, *others: str) -> tuple[Option, tuple[str, ...], tuple[str, ...]]:
    return Option(name, type="float", use=Use("memory_fraction")), (name, *others), ()


_SWITCHES = """
    --allow_request_chat_template --enable_attention_dp --enable_chunked_prefill
    --enable_visual_gen --fail_fast_on_attention_window_too_large --grpc --no-telemetry
    --telemetry --trust_remote_code
"""
_VALUED = """
    --agent_percentage --agent_types --backend --chat_template --cluster_size --custom_module_dirs
    --custom_tokenizer --disagg_cluster_uri --generation-config --hf_revision
    --kv_cache_dtype --log_level --max_batch_size --max_beam_width --max_num_tokens
    --media_io_kwargs --metadata_server_config_file --middleware --moe_cluster_parallel_size
    --num_input_processor_workers --num_media_load_workers --num_postprocess_workers
    --num_serve_frontends --otlp_traces_endpoint --post_processor_hook --reasoning_parser
    --report_addr --revision --served_model_name --server_role --set --tokenizer --tool_parser
    --video_pruning_rate --visual_gen_args
"""
DIALECT = build_dialect(
    "TensorRT-LLM",
    [
        _size("--tensor_parallel_size", "tensor", "--tp_size", counted=True),
        _size("--pipeline_parallel_size", "pipeline", "--pp_size", counted=True),
        _size("--context_parallel_size", "prefill_context", "--cp_size"),
        _size("--moe_expert_parallel_size", "expert", "--ep_size", counted=True),
        _size("--port", "port", counted=True),
        (Option("--host", use=Use("host", counted=True)), ("--host",), ()),
        _size("--gpus_per_node", "gpus_per_node"),
        _size("--max_seq_len", "max_model_len"),
        _fraction("--free_gpu_memory_fraction", "--kv_cache_free_gpu_memory_fraction"),
        _text("--config", "config", "--extra_llm_api_options"),
        *((Option(name), (name,), ()) for name in _VALUED.split()),
        *((Option(name, "0"), (name,), ()) for name in _SWITCHES.split()),
    ],
    refused={"--tp": "--tp_size", "--pp": "--pp_size", "--cp": "--cp_size", "--ep": "--ep_size"},
    abbreviates=False,
)

DYNAMO_DIALECT = build_dialect(
    "dynamo.trtllm",
    [
        _size("--tensor-parallel-size", "tensor"),
        _size("--pipeline-parallel-size", "pipeline"),
        _size("--expert-parallel-size", "expert"),
        _size("--gpus-per-node", "gpus_per_node"),
        _size("--max-seq-len", "max_model_len"),
        _fraction("--free-gpu-memory-fraction"),
        _text("--model-path", "model", "--model"),
        _text("--extra-engine-args", "config", "--override-engine-args"),
    ],
)
"""Dynamo starts the engine with argparse and hyphens (dynamo components/src/dynamo/trtllm)."""

_FIELDS = {
    "tensor_parallel_size": "--tensor_parallel_size",
    "pipeline_parallel_size": "--pipeline_parallel_size",
    "context_parallel_size": "--context_parallel_size",
    "moe_expert_parallel_size": "--moe_expert_parallel_size",
    "gpus_per_node": "--gpus_per_node",
    "max_seq_len": "--max_seq_len",
    "kv_cache_config.free_gpu_memory_fraction": "--free_gpu_memory_fraction",
}
"""Fields of a config file, and the equivalent flags."""
_DYNAMO_FIELDS = {
    "tensor_parallel_size": "--tensor-parallel-size",
    "pipeline_parallel_size": "--pipeline-parallel-size",
    "moe_expert_parallel_size": "--expert-parallel-size",
    "gpus_per_node": "--gpus-per-node",
    "max_seq_len": "--max-seq-len",
    "kv_cache_config.free_gpu_memory_fraction": "--free-gpu-memory-fraction",
}


def read_trtllm(words: Sequence[str], scope: Scope, *, dialect: Dialect = DIALECT) -> CommandFacts:
    """Read the arguments of `trtllm-serve`, or of Dynamo's `dynamo.trtllm`.

    A config file overrides the command line here, unlike in vLLM and SGLang, so everything is
    unknown without it (tensorrt_llm/llmapi/llm_args.py `update_llm_args_with_extra_dict`).
    """
    reading = Reading(dialect, scope).read(words)
    reading.take_model(positional=dialect is DIALECT)
    config = config_of(reading, wins=True)
    if config is not None:
        names = _DYNAMO_FIELDS if dialect is DYNAMO_DIALECT else _FIELDS
        add_file(reading, list(engine_options(config, names)), wins=True)
    return reading.facts("trtllm")
