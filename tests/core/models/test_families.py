"""The families of today: their models, and copies of them by others and in other formats."""

from kthena_components.core.models import ModelShape, find_model
from tests.support.for_each import for_each

FAMILIES = {
    "Qwen3": [
        *("Qwen/Qwen3-0.6B", "Qwen/Qwen3-4B-Instruct-2507", "Qwen/Qwen3-8B-Base", "Qwen/Qwen3-14B"),
        *("Qwen/Qwen3-32B", "Qwen/Qwen3-30B-A3B-Thinking-2507", "Qwen/Qwen3-235B-A22B-FP8"),
        *("Qwen/Qwen3-Coder-480B-A35B-Instruct", "Qwen/Qwen3-32B-AWQ", "unsloth/Qwen3-32B"),
        *("RedHatAI/Qwen3-8B-FP8-dynamic", "nvidia/Qwen3-14B-FP4", "nvidia/Qwen3-30B-A3B-NVFP4"),
        *("QuixiAI/Qwen3-30B-A3B-AWQ", "RedHatAI/Qwen3-32B-quantized.w4a16", "Qwen/QwQ-32B"),
    ],
    "Qwen3-Next": [
        *("Qwen/Qwen3-Next-80B-A3B-Instruct", "Qwen/Qwen3-Next-80B-A3B-Thinking-FP8"),
        *("Qwen/Qwen3-Coder-Next", "RedHatAI/Qwen3-Next-80B-A3B-Instruct-FP8"),
    ],
    "Qwen3-VL": [
        *("Qwen/Qwen3-VL-8B-Instruct", "Qwen/Qwen3-VL-30B-A3B-Thinking-FP8"),
        *("Qwen/Qwen3-VL-235B-A22B-Instruct", "unsloth/Qwen3-VL-4B-Thinking-FP8"),
    ],
    "Qwen3.5": [
        *("Qwen/Qwen3.5-0.8B", "Qwen/Qwen3.5-9B", "Qwen/Qwen3.5-397B-A17B", "Qwen/Qwen3.6-35B-A3B"),
        *("nvidia/Qwen3.5-397B-A17B-NVFP4", "amd/Qwen3.5-397B-A17B-MXFP4", "Qwen/Qwen3.8-27B"),
    ],
    "Llama 4": [
        *("meta-llama/Llama-4-Scout-17B-16E", "meta-llama/Llama-4-Maverick-17B-128E-Instruct"),
        *("nvidia/Llama-4-Maverick-17B-128E-Instruct-NVFP4",),
        *("RedHatAI/Llama-4-Scout-17B-16E-Instruct-quantized.w4a16",),
    ],
    "Llama 3": [
        *("unsloth/Llama-3.3-70B-Instruct", "RedHatAI/Llama-3.3-70B-Instruct-quantized.w8a8"),
        *("nvidia/Llama-3.1-405B-Instruct-FP4", "amd/Llama-3.3-70B-Instruct-FP8-KV"),
        *("hugging-quants/Meta-Llama-3.1-405B-Instruct-AWQ-INT4", "meta-llama/Llama-3.2-3B"),
    ],
    "GLM": [
        *("zai-org/GLM-4.5", "zai-org/GLM-4.5-Air-FP8", "zai-org/GLM-4.5-Base", "zai-org/GLM-4.5V"),
        *("zai-org/GLM-4.6", "zai-org/GLM-4.7", "zai-org/GLM-4.7-Flash", "zai-org/GLM-5"),
        *("zai-org/GLM-5.1-FP8", "zai-org/GLM-5.2", "zai-org/GLM-5.3", "nvidia/GLM-5.2-NVFP4"),
        *("RedHatAI/GLM-4.6-NVFP4", "QuantTrio/GLM-4.6-AWQ", "amd/GLM-5.1-MXFP4"),
    ],
    "Kimi": [
        *("moonshotai/Kimi-K2-Instruct", "moonshotai/Kimi-K2-Instruct-0905", "moonshotai/Kimi-K3"),
        *("moonshotai/Kimi-K2-Thinking", "moonshotai/Kimi-K2.5", "nvidia/Kimi-K2.6-NVFP4"),
        *("RedHatAI/Kimi-K3-NVFP4", "amd/Kimi-K2.5-MXFP4"),
    ],
    "DeepSeek": [
        *("deepseek-ai/DeepSeek-V3.1", "deepseek-ai/DeepSeek-V3.1-Terminus"),
        *("deepseek-ai/DeepSeek-V3.2", "deepseek-ai/DeepSeek-V4-Pro", "deepseek-ai/DeepSeek-R1"),
        *("deepseek-ai/DeepSeek-V4-Flash", "nvidia/DeepSeek-R1-0528-FP4", "nvidia/DeepSeek-R1-FP4"),
        *("nvidia/DeepSeek-V3.2-NVFP4", "RedHatAI/DeepSeek-V4-Flash-NVFP4-FP8"),
        *("unsloth/DeepSeek-R1-Distill-Qwen-32B",),
    ],
    "MiniMax": [
        *("MiniMaxAI/MiniMax-M2", "MiniMaxAI/MiniMax-M2.5", "MiniMaxAI/MiniMax-M3"),
        *("nvidia/MiniMax-M2.5-NVFP4", "amd/MiniMax-M3-MXFP4"),
    ],
    "Nemotron 3": [
        *("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8",),
        *("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4",),
        *("nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",),
    ],
    "Mistral": [
        *("mistralai/Mistral-Small-3.1-24B-Instruct-2503",),
        *("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistralai/Mistral-Small-4-119B-2603"),
        *("mistralai/Mistral-Large-3-675B-Instruct-2512", "mistralai/Magistral-Small-2509"),
        *("mistralai/Mistral-Large-3-675B-Instruct-2512-NVFP4",),
        *("RedHatAI/Mistral-Small-3.2-24B-Instruct-2506-FP8", "unsloth/Mixtral-8x7B-v0.1"),
    ],
    "Gemma": [
        *("google/gemma-4-31B-it", "google/gemma-4-26B-A4B-it", "google/gemma-4-12B-it"),
        *("google/gemma-4-E4B-it", "nvidia/Gemma-4-31B-IT-NVFP4", "unsloth/gemma-3-27b-it"),
    ],
    "MiMo": ["XiaomiMiMo/MiMo-V2-Flash", "XiaomiMiMo/MiMo-V2.5-Pro", "XiaomiMiMo/MiMo-7B-RL"],
    "Step": ["stepfun-ai/Step-3.5-Flash", "stepfun-ai/Step-3.7-Flash-FP8"],
    "gpt-oss": [
        *("openai/gpt-oss-20b", "openai/gpt-oss-120b", "unsloth/gpt-oss-120b"),
        *("RedHatAI/gpt-oss-20b", "openai/gpt-oss-safeguard-20b"),
    ],
    "Phi": ["microsoft/phi-4", "unsloth/phi-4", "microsoft/Phi-4-mini-reasoning"],
}
EACH = [(family, name) for family, names in FAMILIES.items() for name in names]


SIZES = (
    *("heads", "kv_heads", "layers", "hidden", "ffn", "experts", "expert_ffn", "vocab"),
    *("head_dim", "latent", "full_cache", "dense_layers"),
)


def found(name: str) -> ModelShape:
    shape = find_model(name)
    assert isinstance(shape, ModelShape), name
    return shape


def sizes(shape: ModelShape) -> dict[str, object]:
    return {field: getattr(shape, field) for field in SIZES}


@for_each(("family", "name"), EACH)
def test_a_model_of_a_family_of_today_is_found_with_its_sizes(family: str, name: str) -> None:
    shape = found(name)
    assert all((shape.layers, shape.heads, shape.hidden))
    assert shape.kv_heads or shape.latent
    assert shape.expert_ffn if shape.experts else shape.ffn
    assert "/" in shape.source
    assert (shape.weights_gib is None) == (shape.weights_source is None), family


COPY = "casperhansen/llama-3.3-70b-instruct-awq"


def test_a_short_name_is_that_of_the_model_not_of_its_copies() -> None:
    assert found("Qwen3-8B-FP8") is found("Qwen/Qwen3-8B-FP8") is not found("nvidia/Qwen3-8B-FP8")
    assert found("Llama-3.3-70B-Instruct").gated
    assert not found("unsloth/Llama-3.3-70B-Instruct").gated


def test_a_copy_in_another_format_keeps_sizes_and_not_weights() -> None:
    original, copy = found("meta-llama/Llama-3.3-70B-Instruct"), found(COPY)
    assert sizes(copy) == sizes(original)
    assert (copy.dtype, copy.weights_gib, original.weights_gib) == ("int4", 37.07, 131.42)
    assert copy.source.startswith("named in public repositories: casperhansen/")
    assert copy.source.endswith(f"; the shape of {original.name}: {original.source}")


def test_a_copy_in_the_same_format_has_the_weights_of_its_original() -> None:
    original, copy = found("Qwen/Qwen3-32B-FP8"), found("unsloth/Qwen3-32B-FP8")
    assert copy.weights_gib == original.weights_gib
    assert copy.fp8_block == original.fp8_block == 128


def test_a_copy_without_a_context_has_none() -> None:
    assert found("Qwen/Qwen3-8B-Base").context is None
    assert sizes(found("Qwen/Qwen3-8B-Base")) == sizes(found("Qwen/Qwen3-8B"))
