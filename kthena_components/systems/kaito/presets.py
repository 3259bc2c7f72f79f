"""KAITO's names of models: Hugging Face ids, and short names from earlier versions.

Source: kaito-project/kaito pkg/utils/plugin/plugin.go IsValidPreset.
"""

from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.values.unknown import Unknown

SHORT_NAMES = {
    **{
        f"phi-{name}-instruct": f"microsoft/Phi-{name}-instruct"
        for name in (
            "3-mini-4k", "3-mini-128k", "3-medium-4k", "3-medium-128k", "3.5-mini", "4-mini",
        )
    },
    **{
        f"ministral-3-{size}-instruct": f"mistralai/Ministral-3-{size}-Instruct-2512"
        for size in ("3b", "8b", "14b")
    },
    **{f"gemma-3-{size}-instruct": f"google/gemma-3-{size}-it" for size in ("4b", "27b")},
    **{f"gpt-oss-{size}": f"openai/gpt-oss-{size}" for size in ("20b", "120b")},
    **{
        f"qwen2.5-coder-{size}-instruct": f"Qwen/Qwen2.5-Coder-{size}-Instruct"
        for size in ("7b", "32b")
    },
    **{
        f"deepseek-{name}": f"deepseek-ai/DeepSeek-{name}"
        for name in ("r1-0528", "v3-0324", "r1-distill-llama-8b", "r1-distill-qwen-14b")
    },
    "phi-4": "microsoft/phi-4",
    "llama-3.1-8b-instruct": "meta-llama/Llama-3.1-8B-Instruct",
    "llama-3.3-70b-instruct": "meta-llama/Llama-3.3-70B-Instruct",
    "mistral-7b": "mistralai/Mistral-7B-v0.3",
    "mistral-7b-instruct": "mistralai/Mistral-7B-Instruct-v0.3",
    "mistral-large-3-675b-instruct": "mistralai/Mistral-Large-3-675B-Instruct-2512",
}  # fmt: skip
"""Short names of KAITO v0.12, which accepts no others."""
_BY_TRANSFORMERS = frozenset(
    {
        "phi-4", "phi-3-mini-4k-instruct", "phi-3-mini-128k-instruct", "phi-3-medium-4k-instruct",
        "phi-3-medium-128k-instruct", "phi-3.5-mini-instruct", "mistral-7b-v0.3",
        "mistral-7b-instruct-v0.3", "mistral-large-3-675b-instruct", "gemma-3-4b-it",
        "gemma-3-27b-it", "qwen2.5-coder-7b-instruct", "qwen2.5-coder-32b-instruct",
        "llama-3.1-8b-instruct", "llama-3.3-70b-instruct", "gpt-oss-20b", "gpt-oss-120b",
        "deepseek-r1-distill-llama-8b", "deepseek-r1-distill-qwen-14b", "deepseek-r1-0528",
        "deepseek-v3-0324",
    }
)  # fmt: skip
"""Models with a command of the transformers runtime, by the last part of their name.

Source: kaito-project/kaito v0.12.0 presets/workspace/generator/generator.go NewGenerator;
presets/workspace/models/transformer_runtime_inference_parameters.go.
"""


def is_preset(name: str) -> bool:
    """Return whether KAITO accepts a name: a known short one, or `organisation/name`."""
    organisation, _, rest = name.partition("/")
    return name.casefold() in SHORT_NAMES or (organisation != "" and rest != "")


def has_transformers(name: str) -> bool:
    """Tell whether the transformers runtime has a command for the model that a name stands for."""
    whole = SHORT_NAMES.get(name.casefold(), name)
    return whole.rpartition("/")[2].casefold() in _BY_TRANSFORMERS


def find_preset(name: str) -> ModelShape | Unknown:
    """Find the shape of the model with a preset's name."""
    return find_model(SHORT_NAMES.get(name.casefold(), name))
