"""Checks that an engine's image knows the architecture of its GPU and of its model, and dtypes."""

from collections.abc import Iterator

from kthena_components.core.engines.options import TITLES
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.models.known_models import find_model, short_name
from kthena_components.core.remedies import set_option
from kthena_components.core.rules.support.engine_pods import Start, all_starts
from kthena_components.core.rules.support.messages import title
from kthena_components.core.values.display import display
from kthena_components.core.values.images import shown_image
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

Capability = tuple[int, int]
_BELOW_8: dict[str, Capability] = {
    "NVIDIA T4": (7, 5),
    "NVIDIA V100 16GB": (7, 0),
    "NVIDIA V100 32GB": (7, 0),
}
"""The compute capability of the GPUs below 8.0, by their names in the table of GPUs.

Source: NVIDIA's list of CUDA GPU compute capabilities.
"""


def old_gpu(pod: PodFacts) -> tuple[str, Capability] | None:
    """Return the name and the capability of the one kind of GPU of a pod, if it is below 8.0."""
    gpu = pod.gpu
    if not pod.asks_for_gpus or not pod.has_cuda:
        return None
    name = gpu.name.partition(" of ")[0] if isinstance(gpu, GpuFacts) and gpu.alone else ""
    return (name, _BELOW_8[name]) if name in _BELOW_8 else None


def shown(capability: Capability) -> str:
    """Write a capability as NVIDIA does: 7.5."""
    return ".".join(map(str, capability))


_TURING: Capability = (7, 5)
_AMPERE: Capability = (8, 0)
_VLLM_WITHOUT_VOLTA = (0, 20)
"""The first release whose Dockerfile has no 7.0 in torch_cuda_arch_list: it builds with CUDA 13."""
_SGLANG_SINCE = (0, 4, 6)
_FOR_CUDA_12 = "cu12"
"""Part of the tags of images that are built with an older CUDA."""


def architecture_on_gpu(facts: ServingFacts) -> Iterator[Finding]:
    """The image of an engine has kernels for the compute capability of its GPUs.

    Checked if the placement of its pods names one kind of GPU. vLLM's own images since 0.20.0 are
    built for 7.5 and more, which excludes the V100. SGLang stops on GPUs below 7.5. TensorRT-LLM is
    neither developed nor tested on GPUs before Ampere (8.0).

    Pass: vllm/vllm-openai:v0.20.0 on a T4; v0.11.0 on a V100; lmsysorg/sglang on a T4.
    Fail: vllm/vllm-openai:v0.20.0 on a V100; lmsysorg/sglang:v0.5.2 on a V100.
    Level: mandatory; advisory for TensorRT-LLM, and if the image states no release.
    Source: vLLM docker/Dockerfile torch_cuda_arch_list of 0.6.6 to 0.33.0, 7.0 up to 0.19.1;
    sglang/srt/model_executor/model_runner.py load_model of 0.4.6 to 0.5.2, and
    model_runner_components/load_model_utils.py of 0.5.23; NVIDIA/TensorRT-LLM
    docs/source/legacy/reference/support-matrix.md.
    """
    reported: set[Finding] = set()
    for start in all_starts(facts, "vllm", "sglang", "trtllm"):
        for finding in _check_image(start):
            if finding not in reported:
                reported.add(finding)
                yield finding


def _check_image(start: Start) -> Iterator[Finding]:
    """Refuse a GPU whose compute capability is below what the engine's image is built for."""
    found = old_gpu(start.pod)
    least = None if found is None else _least_capability(start)
    if found is None or least is None:
        return
    (name, capability), (needed, why, level) = found, least
    if capability < needed:
        seen = f"is on {name}, whose compute capability is {shown(capability)}, but {why}"
        yield from start.refused(seen, _remedy(start, needed), level)


def _least_capability(start: Start) -> tuple[Capability, str, Level] | None:
    """Return the capability that an engine needs, why, and the level; None if it takes any."""
    if start.command.engine == "trtllm":
        why = "NVIDIA neither develops nor tests TensorRT-LLM on GPUs before Ampere (8.0)"
        return _AMPERE, why, Level.ADVISORY
    if start.command.engine == "sglang":
        level = start.since(_SGLANG_SINCE)
        return None if level is None else (_TURING, "SGLang requires 7.5 and stops", level)
    image, level = start.pod.image, start.since(_VLLM_WITHOUT_VOLTA)
    if image is None or level is None or not image.is_own("vllm"):
        return None
    if _FOR_CUDA_12 in (image.tag or ""):
        return None
    return _TURING, f"the image of {start.product} has kernels for 7.5 and more", level


def _remedy(start: Start, needed: Capability) -> str:
    place = f"place the pods on GPUs of {shown(needed)} or more"
    older = ", or use an image of vLLM 0.19.1 or older" if start.command.engine == "vllm" else ""
    return f"{place}{older}"


_ENGINES, _DIGITS = ("vllm", "sglang"), regex(r"[0-9]+")
_OPTION, _TYPE = "--dtype", "bfloat16"


def dtype_on_gpu(facts: ServingFacts) -> Iterator[Finding]:
    """A vLLM engine with --dtype bfloat16 is on GPUs of compute capability 8.0 or more.

    Checked if the placement of its pods names one kind of GPU. Without the option, vLLM chooses
    float16 on older GPUs. SGLang chooses it in any case.

    Pass: --dtype bfloat16 on nodes with an A10; --dtype auto or half on a T4.
    Fail: --dtype bfloat16 on a T4 or a V100.
    Level: mandatory, because vLLM stops at startup.
    Source: vllm/platforms/cuda.py check_if_supports_dtype, before vllm/worker/worker.py
    _check_if_gpu_supports_dtype, of 0.6.0 to 0.33.0.
    """
    reported: set[Finding] = set()
    for start in all_starts(facts, "vllm"):
        for finding in _check_dtype(start):
            if finding not in reported:
                reported.add(finding)
                yield finding


def _check_dtype(start: Start) -> Iterator[Finding]:
    stated, found = start.command.options.get(_OPTION), old_gpu(start.pod)
    if stated != _TYPE or isinstance(stated, Unknown) or found is None:
        return
    name, capability = found
    seen = f"has {_OPTION} {_TYPE} on {name}, whose compute capability is "
    seen += f"{shown(capability)}, and vLLM requires 8.0 for {_TYPE}"
    yield from start.refused(seen, set_option(_OPTION, "half"))


_ROWS = (
    (r"deepseek-v4\b.*", "DeepseekV4ForCausalLM", "0.20.0", "0.5.12"),
    (r"deepseek-v3\.2\b.*", "DeepseekV32ForCausalLM", "0.11.0", "0.5.3"),
    (r"deepseek-(?:v3|r1)(?:-0\d+|\.1.*)?", "DeepseekV3ForCausalLM", "0.6.6", "0.4.1"),
    (r"gemma-4-.*", "Gemma4ForConditionalGeneration", "0.19.0", "0.5.10 0.5.11"),
    (r"gemma-3n-.*", "Gemma3nForConditionalGeneration", "0.9.2", "0.4.8.post1"),
    (r"gemma-3-(?:1b|270m)-.*", "Gemma3ForCausalLM", "0.8.0", "0.4.4.post2"),
    (r"gemma-3-.*", "Gemma3ForConditionalGeneration", "0.8.0", "0.4.4.post2"),
    (r"qwen3\.[56]-.*a\d+b.*", "Qwen3_5MoeForConditionalGeneration", "0.16.0 0.17.0", "0.5.9"),
    (r"qwen3\.[56]-.*", "Qwen3_5ForConditionalGeneration", "0.16.0 0.17.0", "0.5.9"),
    (r"qwen3-(?:coder-)?next-.*", "Qwen3NextForCausalLM", "0.10.2", "0.5.2"),
    (r"qwen3-vl-\d+b-a.*", "Qwen3VLMoeForConditionalGeneration", "0.11.0", "0.5.3"),
    (r"qwen3-vl-\d.*", "Qwen3VLForConditionalGeneration", "0.11.0", "0.5.3"),
    (r"qwen3-(?:coder-)?\d+b-a.*", "Qwen3MoeForCausalLM", "0.8.3 0.8.4", "0.4.4.post4 0.4.5.post2"),
    (r"qwen3-[\d.]+b(?:-.*)?", "Qwen3ForCausalLM", "0.8.3 0.8.4", "0.4.4.post4 0.4.5.post2"),
    (r"qwen2\.5-vl-.*", "Qwen2_5_VLForConditionalGeneration", "0.7.2", "0.4.3.post1"),
    (r"gpt-oss-.*", "GptOssForCausalLM", "0.10.1", "0.5.1"),
    (r"llama-4-.*", "Llama4ForConditionalGeneration", "0.8.3", "0.4.4.post4 0.4.5"),
    (r"glm-5\b.*", "GlmMoeDsaForCausalLM", "0.16.0", "0.5.9"),
    (r"glm-4\.7-flash.*", "Glm4MoeLiteForCausalLM", "0.15.0", "0.5.8"),
    (r"glm-4\.[567](?:-air)?(?:-fp8)?", "Glm4MoeForCausalLM", "0.10.0", "0.4.9.post4 0.4.9.post5"),
)
"""Models by name, the architecture in their config.json, and the releases of vLLM and SGLang.

The first release may load it with Transformers, the second has it; where one is stated, they are
the same. An engine loads an architecture that it does not have with Transformers, if the installed
Transformers has it, so not in releases that are older than the first Transformers with it. Source:
vllm/model_executor/models/registry.py of the wheels of vllm 0.5.0 to 0.33.0, EntryClass in
sglang/srt/models/*.py of sglang 0.4.0 to 0.5.23, transformers/models of transformers 4.40.0 to
5.22.2, and their dates on PyPI.
"""
_FAMILIES = tuple(
    (regex(row[0]), row[1], dict(zip(_ENGINES, row[2:], strict=True))) for row in _ROWS
)
_OTHER_ARCHITECTURE = frozenset(
    {"--hf-overrides", "--hf-config-path", "--model-impl", "--json-model-override-args"}
)
_PLAIN_TAG = regex(
    r"v?[0-9.]+(?:\.?post[0-9]+)?(?:-(?:cu[0-9]+|cuda[0-9.]+|ubuntu[0-9.]+|x86_64|aarch64|arm64"
    r"|amd64|runtime|srt|openai))*"
)
"""The tag of a release without a word that may name a build for one model."""


def architecture_in_release(facts: ServingFacts) -> Iterator[Finding]:
    """The release of an engine has the architecture of its model.

    The architecture is the one in the model's config.json. An engine without it stops at startup,
    unless it can load the model with Transformers: vLLM since 0.7 and SGLang since 0.4.7, if their
    Transformers has it. Releases that were published before the first Transformers with it cannot.
    Not checked: options that change the architecture, and a container that installs Transformers.

    Pass: google/gemma-4-31B-it with vllm/vllm-openai:v0.19.0.
    Fail: google/gemma-4-31B-it with vllm/vllm-openai:v0.6.2; deepseek-ai/DeepSeek-V3.2 with
    lmsysorg/sglang:v0.5.2.
    Level: mandatory; advisory for an image that is not the engine's own.
    Source: vllm/model_executor/models/registry.py _raise_for_unsupported and resolve_model_cls;
    sglang/srt/models/registry.py _raise_for_unsupported, sglang/srt/model_loader/utils.py
    resolve_transformers_arch.
    """
    findings = (found for start in all_starts(facts, *_ENGINES) for found in _too_old(start))
    yield from dict.fromkeys(findings)


def _too_old(start: Start) -> Iterator[Finding]:
    """Refuse a model that is younger than the image of its engine."""
    image, own, engine = start.pod.image, start.pod.own, str(start.command.engine)
    if image is None or own is None or image.adds_transformers or image.may_replace(engine):
        return
    release, model = (
        image.release_of(engine) or image.probable_release_of(engine),
        start.command.model,
    )
    if release is None or not isinstance(model, str):
        return
    if start.hidden or not _OTHER_ARCHITECTURE.isdisjoint(start.command.options):
        return
    shape = find_model(model)
    name = "" if isinstance(shape, Unknown) else short_name(shape.name)
    found = next((each for each in _FAMILIES if each[0].fullmatch(name)), None)
    if found is None:
        return
    loads, *others = found[2][engine].split()
    if release >= tuple(map(int, _DIGITS.findall(loads))):
        return
    is_sure = image.is_own(engine) and _PLAIN_TAG.fullmatch(image.tag or "") is not None
    product, since = TITLES[engine], others[0] if others else loads
    yield Finding(
        path=own.image_path,
        seen=f"{title(start.engine)} loads {display(model)}, whose architecture {found[1]} "
        f"is supported since {product} {since}, but '{shown_image(str(own.image))}' is older, and "
        "Transformers did not have it then",
        remedy=f"use an image of {product} {since} or newer, or another model",
        level=Level.MANDATORY if is_sure else Level.ADVISORY,
    )
