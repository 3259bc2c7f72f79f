"""What to write in place of an option that a release no longer has, or only another engine has.

Sources: the help texts, deprecation notes and `new_flag` of the releases that had both
(vllm/engine/arg_utils.py; sglang/srt/server_args.py), and vllm/config/parallel.py EPLBConfig.
"""

from collections.abc import Mapping

from kthena_components.core.engines.options import Dialect
from kthena_components.core.values.regex import regex

_OPTION = regex(r"--[a-z0-9_-]+")
_SPECULATIVE = (
    "disable-by-batch-size",
    "draft-tensor-parallel-size",
    "max-model-len",
    "model",
    "model-quantization",
)
_CONTEXT = "--enable-prefill-cp"
_PREFILL_GRAPHS = "--cuda-graph-backend-prefill"
_MOE_KERNELS = (
    "flashinfer-cutedsl",
    "flashinfer-cutlass",
    "flashinfer-mxfp4",
    "flashinfer-trtllm",
    "triton-kernel",
)
SUCCESSORS: Mapping[str, Mapping[str, str]] = {
    "vLLM": {
        "--chat-template-text-format": "write --chat-template-content-format",
        "--cuda-graph-sizes": "write --cudagraph-capture-sizes",
        "--disable-log-requests": (
            "remove it: requests are logged only with --enable-log-requests"
        ),
        "--disable-mm-preprocessor-cache": "write --mm-processor-cache-gb 0",
        "--enable-multimodal-encoder-data-parallel": "write --mm-encoder-tp-mode data",
        "--enable-reasoning": "remove it: --reasoning-parser is enough",
        "--eplb-log-balancedness": "write --eplb-config.log_balancedness true",
        "--eplb-step-interval": "write --eplb-config.step_interval",
        "--eplb-window-size": "write --eplb-config.window_size",
        "--guided-decoding-backend": "write --structured-outputs-config.backend",
        "--guided-decoding-disable-additional-properties": (
            "write --structured-outputs-config.disable_additional_properties"
        ),
        "--guided-decoding-disable-any-whitespace": (
            "write --structured-outputs-config.disable_any_whitespace"
        ),
        "--max-context-len-to-capture": "write --max-seq-len-to-capture",
        "--ngram-prompt-lookup-max": "write --speculative-config",
        "--ngram-prompt-lookup-min": "write --speculative-config",
        "--num-redundant-experts": "write --eplb-config.num_redundant_experts",
        "--num-speculative-tokens": "write --speculative-config",
        "--override-pooler-config": "write --pooler-config",
        "--rope-scaling": "write rope_parameters in --hf-overrides",
        "--rope-theta": "write rope_parameters in --hf-overrides",
        **dict.fromkeys(
            (f"--speculative-{name}" for name in _SPECULATIVE), "write --speculative-config"
        ),
        "--task": "write --runner, and --convert for another use of the model",
        "--worker-use-ray": "write --distributed-executor-backend ray",
    },
    "SGLang": {
        "--cuda-graph-bs": "write --cuda-graph-bs-decode",
        "--cuda-graph-max-bs": "write --cuda-graph-max-bs-decode",
        "--disable-piecewise-cuda-graph": f"write {_PREFILL_GRAPHS} disabled",
        "--dsa-prefill-cp-mode": "write --cp-strategy",
        "--enable-breakable-cuda-graph": f"write {_PREFILL_GRAPHS} breakable",
        "--enable-deepep-moe": "write --moe-a2a-backend deepep",
        "--enable-dsa-prefill-context-parallel": f"write {_CONTEXT}",
        "--enable-ep-moe": "write --ep-size with the value of --tp-size",
        "--enable-gdn-replayssm-spec": "write --enable-linear-replayssm-spec",
        "--enable-nsa-prefill-context-parallel": f"write {_CONTEXT}",
        "--enable-prefill-context-parallel": f"write {_CONTEXT}",
        "--enforce-piecewise-cuda-graph": f"write {_PREFILL_GRAPHS} tc_piecewise",
        "--mamba-scheduler-strategy": "write --mamba-radix-cache-strategy",
        "--nsa-decode-backend": "write --dsa-decode-backend",
        "--nsa-prefill-backend": "write --dsa-prefill-backend",
        "--nsa-prefill-cp-mode": "write --cp-strategy",
        "--piecewise-cuda-graph-max-tokens": "write --cuda-graph-max-bs-prefill",
        "--piecewise-cuda-graph-tokens": "write --cuda-graph-bs-prefill",
        "--prefill-cp-mode": "write --cp-strategy",
        "--speculative-dflash-draft-window-size": "write --speculative-draft-window-size",
        "--stream-output": "write --incremental-streaming-output",
        **{
            f"--enable-{kernel}-moe": f"write --moe-runner-backend {kernel.replace('-', '_')}"
            for kernel in _MOE_KERNELS
        },
    },
}
"""By engine and removed option. The first option in a text is one that the release must have."""


EQUIVALENTS: Mapping[str, Mapping[str, str]] = {
    "vLLM": {
        "--disable-cuda-graph": "write --enforce-eager",
        "--disable-radix-cache": "write --no-enable-prefix-caching",
        "--enable-metrics": "remove it: vLLM serves metrics at /metrics in any case",
        "--max-running-requests": "write --max-num-seqs",
    },
    "SGLang": {
        "--enable-prefix-caching": "remove it: SGLang reuses prefixes in any case",
        "--enforce-eager": "write --disable-cuda-graph",
        "--max-num-seqs": "write --max-running-requests",
        "--no-enable-prefix-caching": "write --disable-radix-cache",
    },
    "TensorRT-LLM": {
        "--max-model-len": "write --max_seq_len",
        "--max-num-batched-tokens": "write --max_num_tokens",
        "--max-num-seqs": "write --max_batch_size",
    },
}
"""By engine and another engine's option. The first option in a text must be one of the release."""


def successor(flag: str, dialect: Dialect) -> str | None:
    """Return what to write for a removed option; None if the release has nothing in its place."""
    return _stated(SUCCESSORS, flag, dialect)


def equivalent(flag: str, dialect: Dialect) -> str | None:
    """Return what to write for another engine's option; None if there is nothing in its place."""
    return _stated(EQUIVALENTS, flag, dialect)


def _stated(table: Mapping[str, Mapping[str, str]], flag: str, dialect: Dialect) -> str | None:
    remedy = table.get(dialect.engine, {}).get(flag)
    named = _OPTION.search(remedy) if remedy else None
    known = named is None or named[0] in dialect.options
    return remedy if known else None
