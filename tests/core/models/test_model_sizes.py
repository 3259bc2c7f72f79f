"""The table of models against itself: weights follow from widths, copies share a shape."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kthena_components.core.memory import GIB
from kthena_components.core.models import ModelShape, all_names, find_model, known_models
from tests.support.for_each import for_each

BITS = {
    "bf16": (16.0, 16.0),
    "fp8": (8.0, 8.25),
    "int8": (8.0, 8.25),
    "mxfp8": (8.25, 8.25),
    "mxfp4": (4.25, 4.25),
    "nvfp4": (4.5, 4.5),
    "int4": (4.1, 4.5),
}
"""Bits of a quantised weight with its share of the scales, the least and the most."""
WIDEST = 262_144
"""Tokens of the largest vocabulary that a row leaves out."""
EXACT = 0.03
LARGE = 10.0
"""GiB of a model of whose weights the embeddings are a small part."""
LOOSE = {
    "Qwen3-Next": (0.04, "linear attention, a shared expert"),
    "Step-3.7": (0.04, "a shared expert"),
    "Llama-4": (0.06, "one expert, of 17 or 129, is shared by all tokens"),
    "Qwen3.5": (0.18, "linear attention, a tower that sees, a shared expert"),
    "Qwen3.6": (0.17, "as Qwen3.5"),
    "Qwen3.8": (0.17, "as Qwen3.5"),
    "GLM-5": (0.05, "a shared expert"),
    "GLM-4.7-Flash": (0.04, "a shared expert of 65"),
    "Muse-Glimmer-30B-NVFP4": (0.36, "gates and a tower that sees, which stay in 16 bits"),
    "Muse-Glimmer": (0.14, "gated attention, a tower that sees"),
    "Ministral-3": (0.07, "a tower that sees"),
    "Gemma-4-26B-A4B-NVFP4": (0.07, "a tower that sees, which stays in 16 bits"),
    "Qwen3-VL": (0.1, "a tower that sees"),
    "Qwen2.5-VL-7B-Instruct-AWQ": (0.2, "a tower that sees, which stays in 16 bits"),
    "Qwen2.5-VL": (0.09, "a tower that sees"),
    "InternVL3_5": (0.05, "a tower that sees"),
    "GLM-4.6V-Flash": (0.11, "a tower that sees"),
    "Qwen2-VL": (0.26, "a tower that sees"),
    "Qwen2-Audio": (0.09, "a tower that hears"),
    "InternVL3-78B": (0.2, "a tower that sees, which stays in 16 bits"),
    "InternVL2_5-78B": (0.2, "as InternVL3-78B"),
    "llava": (0.05, "a tower that sees"),
    "DeepSeek-V2-Lite": (0.05, "two shared experts"),
    "Qwen2-57B-A14B": (0.13, "a shared expert as wide as eight others"),
    "PaddleOCR-VL": (1.1, "a tower that sees, as large as the language model"),
    "HunyuanOCR": (0.7, "as PaddleOCR-VL"),
    "GLM-OCR": (1.0, "a tower that sees, and a layer that drafts"),
    "DeepSeek-OCR": (0.21, "two towers that see"),
    "Unlimited-OCR": (0.2, "as DeepSeek-OCR"),
    "Glyph": (0.11, "a tower that sees"),
    "MiniCPM-V-4.6": (0.46, "a tower that sees"),
    "ERNIE-4.5-VL": (0.42, "experts for images, and a tower that sees"),
    "Intern-S2-Preview": (0.04, "as Qwen3.5"),
    "Phi-4-multimodal": (0.26, "towers and adapters for images and audio"),
    "Laguna-XS": (0.14, "as Laguna-S"),
    "Laguna-S": (0.1, "a shared expert, attention that stays in 16 bits"),
    "Inkling": (0.12, "two shared experts, towers and heads that draft in 16 bits"),
}
"""Rows whose weights hold something that the shape does not tell: how much at most, and what."""
OTHER = (
    *("NVIDIA-Nemotron", "Nemotron-3-Nano-Omni", "DeepSeek-V4", "gemma-4-E4B", "Kimi-K3"),
    *("opt-", "gpt2", "distilgpt2"),
)
"""Rows of another kind: layers or experts of two matrices, of fewer bits or with a narrower state,
embeddings for each layer.
"""
PLAIN = (
    *("nvidia/Gemma-4-31B", "nvidia/Qwen3.6-27B"),
    *(f"{of}/Qwen3.8-27B" for of in ("nvidia", "Inferact", "RedHatAI", "unsloth")),
)
"""Dense models whose attention is not quantised, or to more bits."""


def short(shape: ModelShape) -> str:
    return shape.name.rpartition("/")[2]


def dense_layers(shape: ModelShape) -> int:
    """Count feed-forward layers: all beside their experts where none of the layers lacks them."""
    return shape.dense_layers if shape.experts and shape.dense_layers else shape.layers


def feed_forward(shape: ModelShape) -> int:
    hidden = shape.hidden or 0
    sparse = shape.layers - shape.dense_layers + (shape.draft_layers if shape.experts else 0)
    experts = sparse * (shape.experts or 0) * (shape.expert_ffn or 0)
    return 3 * hidden * (dense_layers(shape) * (shape.ffn or 0) + experts)


def attention(shape: ModelShape) -> int:
    hidden = shape.hidden or 0
    width = shape.head_dim or (128 if shape.latent else hidden // shape.heads)
    projections = 2 * hidden * width * (shape.heads + (shape.kv_heads or 0))
    keys, heads = shape.index_dim or 0, shape.index_heads or 0
    indexer = (shape.query_latent or 0) * heads * keys + hidden * (keys + heads)
    return shape.layers * (projections + indexer)


def allowance(shape: ModelShape) -> float:
    return next((by for start, (by, _) in LOOSE.items() if short(shape).startswith(start)), EXACT)


def bounds(shape: ModelShape, slack: float) -> tuple[float, float]:
    """Give the GiB that a model's weights take at least and at most.

    At least: all layers are quantised, and the output layer is the table of embeddings. At most:
    attention is left as it was in a model with experts, and the output layer is one of its own.
    """
    least, most = BITS[shape.dtype or ""]
    table = (shape.vocab or 0) * (shape.hidden or 0)
    large = (shape.vocab or WIDEST) * (shape.hidden or 0)
    low = (feed_forward(shape) + attention(shape)) * least + table * 16
    heads = 16.0 if shape.experts or shape.name.startswith(PLAIN) else most
    high = feed_forward(shape) * most + attention(shape) * heads + 2 * large * 16
    return low / 8 / GIB * (1 - slack), high / 8 / GIB * (1 + slack)


def sized() -> Iterator[ModelShape]:
    for shape in known_models():
        wide = shape.expert_ffn if shape.experts else shape.ffn
        if shape.weights_gib and shape.hidden and wide:
            yield shape


def fits(shape: ModelShape, slack: float | None = None) -> bool:
    low, high = bounds(shape, allowance(shape) if slack is None else slack)
    return shape.weights_gib is not None and low <= shape.weights_gib <= high


SIZED = tuple(shape for shape in sized() if not short(shape).startswith(OTHER))
EACH = [pytest.param(shape, id=shape.name) for shape in SIZED]


@for_each("shape", EACH)
def test_a_models_weights_follow_from_its_layers_and_widths(shape: ModelShape) -> None:
    assert fits(shape), (*bounds(shape, allowance(shape)), shape.weights_gib)


@pytest.mark.parametrize("start", [*LOOSE, *OTHER])
def test_an_exception_is_needed(start: str) -> None:
    rows = [shape for shape in sized() if short(shape).startswith(start)]
    assert any(not fits(shape, EXACT) for shape in rows)


MORE = {
    "Llama-4": "a shared expert",
    "GLM-4": "a shared expert",
    "Hy3": "a shared expert",
    "MiniMax-M3": "a shared expert",
    "Muse-Glimmer": "gated attention, a tower that sees",
    "Step-3": "a shared expert",
    "Qwen3-Next": "linear attention, a shared expert",
    "Qwen3-Coder-Next": "as Qwen3-Next",
    "Qwen3.5": "linear attention, a tower that sees, layers that draft",
    "Qwen3.6": "as Qwen3.5",
    "Qwen3-VL": "a tower that sees",
    "Qwen2.5-VL": "a tower that sees",
    "Qwen2-VL": "a tower that sees",
    "Qwen2-Audio": "a tower that hears",
    "llava": "a tower that sees",
    "Ministral-3-8B": "a tower that sees",
    "Ministral-3-14B": "a tower that sees",
    "Mistral-Small-3.": "a tower that sees",
    "Magistral-Small-2509": "as Mistral-Small-3.",
    "gemma-": "a tower that sees, heads of two widths",
    "Intern-S1": "a tower that sees",
    "InternVL3_5": "a tower that sees",
    "Laguna-": "a shared expert, more heads in layers with windows",
    "medgemma": "a tower that sees",
    "translategemma": "a tower that sees",
    "LFM2.5-": "convolutions in place of most attention",
    "PaddleOCR-VL": "a tower that sees",
    "HunyuanOCR": "a tower that sees",
    "GLM-OCR": "a tower that sees, a layer that drafts",
    "DeepSeek-OCR": "two towers that see, shared experts",
    "Unlimited-OCR": "as DeepSeek-OCR",
    "Glyph": "a tower that sees",
    "MiniCPM-V-4.6": "a tower that sees",
    "ERNIE-4.5-21B": "two shared experts",
    "Qwen2-57B-A14B": "a shared expert as wide as eight others",
    "ERNIE-4.5-VL": "experts for images, and a tower that sees",
    "Intern-S2": "as Qwen3.5",
    "Phi-4-multimodal": "towers and adapters for images and audio",
    "Trinity": "a shared expert, dense layers whose width is not given",
    "Hunyuan-A13B": "a shared expert",
    "Inkling": "two shared experts, towers and heads that draft",
}
"""Families in 16 bits whose weights are more than attention, layers and embeddings."""


def plain() -> Iterator[ModelShape]:
    for shape in SIZED:
        if shape.dtype == "bf16" and shape.vocab and shape.latent is None:
            yield shape


def surplus(shape: ModelShape) -> float:
    """Give the share of the weights that the parameters do not explain, with either output."""
    routers = shape.layers * (shape.experts or 0) * (shape.hidden or 0)
    counted = feed_forward(shape) + attention(shape) + routers
    stated = (shape.weights_gib or 0) * GIB / 2
    tables = ((shape.vocab or 0) * (shape.hidden or 0) * count for count in (1, 2))
    return min(abs(counted + table - stated) for table in tables) / stated


PLAIN_ROWS = [
    pytest.param(shape, id=shape.name)
    for shape in plain()
    if not short(shape).startswith(tuple(MORE))
]


@for_each("shape", PLAIN_ROWS)
def test_the_weights_of_a_plain_model_are_its_parameters(shape: ModelShape) -> None:
    assert surplus(shape) < 0.004


@pytest.mark.parametrize("family", MORE)
def test_a_family_with_more_than_that_needs_to_be_named(family: str) -> None:
    rows = [shape for shape in plain() if short(shape).startswith(family)]
    assert any(surplus(shape) >= 0.004 for shape in rows)


@pytest.mark.parametrize("field", ["layers", "hidden", "ffn", "experts", "expert_ffn"])
def test_a_wrong_digit_would_show(field: str) -> None:
    """Nine of ten larger rows in 16 bits see a size a fifth off; copies have the sizes of those."""
    stated = [s for s in SIZED if s.dtype == "bf16" and getattr(s, field)]
    stated = [s for s in stated if s.weights_gib and s.weights_gib > LARGE]
    if field == "ffn":
        stated = [shape for shape in stated if not shape.experts]
    wrong = [
        replace(shape, **{field: round(getattr(shape, field) * by)})
        for shape in stated
        for by in (0.8, 1.2)
    ]
    caught = [shape for shape in wrong if not fits(shape)]
    assert len(caught) >= 0.9 * len(wrong), [shape.name for shape in wrong if fits(shape)]


def test_an_expert_of_two_matrices_is_counted_so() -> None:
    shape = find_model("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    assert isinstance(shape, ModelShape)
    sizes = (shape.layers - shape.dense_layers, shape.experts, shape.hidden, shape.expert_ffn)
    assert sizes == (23, 128, 2688, 1856)
    experts = 2 * 23 * 128 * 2688 * 1856 * 2 / GIB
    assert shape.weights_gib == pytest.approx(58.82)
    assert 0.9 < experts / 58.82 < 1


ENDS = (
    *("-FP8-dynamic", "-FP8-block", "-NVFP4-FP8", "-NVFP4-v2", "-FP4-v2", "-NVFP4A16", "-NVFP4"),
    *("-FP8", "-FP4", "-MXFP4", "-MXFP8", "-AWQ", "-GPTQ-Int4", "-Int4", "-BF16"),
    *("-quantized.w4a16", "-quantized.w8a8", "-qat-w4a16-ct"),
)
SAME = (
    *("heads", "kv_heads", "layers", "hidden", "ffn", "experts", "expert_ffn", "vocab"),
    *("head_dim", "latent", "full_cache", "dense_layers"),
)


def copies() -> Iterator[tuple[str, ModelShape, ModelShape]]:
    """Give each name of a copy in another form, its row, and the row of what was copied."""
    for name in all_names():
        last = name.rpartition("/")[2]
        end = next((end for end in ENDS if last.casefold().endswith(end.casefold())), "")
        copy, original = find_model(name), find_model(last[: len(last) - len(end)])
        if end and isinstance(copy, ModelShape) and isinstance(original, ModelShape):
            yield name, copy, original


COPIES = [pytest.param(copy, original, id=name) for name, copy, original in copies()]


@for_each(("copy", "original"), COPIES)
def test_a_copy_has_the_shape_of_what_it_was_made_of(
    copy: ModelShape, original: ModelShape
) -> None:
    padded = "padded" in copy.source
    same = [field for field in SAME if field != "ffn" or not padded]
    assert {f: getattr(copy, f) for f in same} == {f: getattr(original, f) for f in same}
    if padded:
        assert (copy.ffn or 0) > (original.ffn or 0)
        assert (copy.ffn or 0) % (copy.group or 1) == 0
    if copy.weights_gib and original.dtype == "bf16" and original.weights_gib:
        assert copy.weights_gib <= original.weights_gib


FORMS = {"NVFP4-FP8": None, "NVFP4": "nvfp4", "MXFP4": "mxfp4", "MXFP8": "mxfp8", "AWQ": "int4"}
FORMS |= {"GPTQ-Int4": "int4", "w4a16": "int4", "w8a8": "int8", "FP8": "fp8", "BF16": "bf16"}


@for_each("name", all_names())
def test_a_form_in_a_name_is_the_form_of_the_row(name: str) -> None:
    shape = find_model(name)
    assert isinstance(shape, ModelShape)
    form = next((f for f in FORMS if f.casefold() in name.casefold()), None)
    if form is not None and FORMS[form] is not None:
        assert shape.dtype == FORMS[form]
    lower = name.casefold()
    if lower.endswith("-fp8-block") and form != "NVFP4-FP8":
        assert shape.fp8_block == 128
    if lower.endswith("-fp8-dynamic") or shape.dtype not in ("fp8", None):
        assert shape.fp8_block is None


def test_the_families_of_today_are_in_the_table() -> None:
    assert len(tuple(known_models())) >= 120
    assert len(COPIES) >= 100
    assert len(SIZED) >= 120
