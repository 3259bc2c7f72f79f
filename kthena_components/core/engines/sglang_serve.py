"""Reads what `sglang serve` itself reads: which of SGLang's two servers it starts."""

from collections.abc import Sequence

from kthena_components.core.values.regex import regex

_MODEL_TYPE = "--model-type"
_OF_DIFFUSION = regex(
    r"--(num-gpus|sp-degree|ulysses-degree|ring-degree|enable-cfg-parallel|pipeline-class-name"
    r"|(dit|vae|text-encoder|image-encoder|hsdp)-[a-z0-9-]+)"
)
"""Options of the server for images and videos that the one for language models does not have.

Source: sglang/multimodal_gen/runtime/server_args.py.
"""


def serves_diffusion(words: Sequence[str]) -> bool:
    """Return whether the arguments start the server for images and videos.

    Without --model-type, the files of the model decide, which are not here; the options tell then.
    Source: sglang/cli/serve.py; sglang/cli/utils.py get_is_diffusion_model.
    """
    stated, rest = _model_type(words)
    if stated in {"diffusion", "llm"}:
        return stated == "diffusion"
    names = (word.partition("=")[0].replace("_", "-") for word in rest)
    return any(_OF_DIFFUSION.fullmatch(name) for name in names)


def without_model_type(words: Sequence[str]) -> Sequence[str]:
    """Return the arguments that the server gets: --model-type is not among them."""
    return _model_type(words)[1]


def _model_type(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the last value of --model-type, empty without one, and the other words."""
    stated, rest, at = "", [], 0
    while at < len(words):
        option, has_value, value = words[at].partition("=")
        if option == _MODEL_TYPE:
            stated = value if has_value else "".join(words[at + 1 : at + 2])
            at += 1 if has_value else 2
        else:
            rest.append(words[at])
            at += 1
    return stated, rest
