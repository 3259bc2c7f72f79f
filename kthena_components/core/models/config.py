"""The shape of a model, and how it is read from config.json, as Hugging Face writes it.

A reader never raises: the result is a shape, or Unknown with a reason.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.models.config_fields import (
    FULL_HEADS,
    FULL_WIDTH,
    LAYER_KEYS,
    LENGTHS,
    MAMBA_KEYS,
    ROTATED_KEYS,
    STATE_KEYS,
    Stored,
    first_size,
    fp8_block,
    has_dense_layers,
    layers_of,
    layers_without_experts,
    longest_request,
    rotated_numbers,
    scale_group,
    size_of,
    state_bytes,
    stored_tokens,
    weights_format,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown

_TOP = ("_name_or_path", "dtype", "model_type", "torch_dtype")
_INNER = {
    "quantization_config": (
        *("bits", "config_groups", "format", "group_size", "quant_algo", "quant_method"),
        "weight_block_size",
    ),
    "vision_config": (
        *("hidden_size", "num_hidden_layers", "vt_hidden_size", "vt_num_hidden_layers"),
        "vt_num_attention_heads",
    ),
}
"""Maps of which only some keys are read."""
_KEPT = (
    "head_dim", "hidden_size", "index_head_dim", "index_n_heads", "indexer_types",
    "intermediate_size", "kv_lora_rank", "moe_intermediate_size", "num_attention_heads",
    "num_hidden_layers", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "rope_parameters",
    "rope_scaling", "v_head_dim", "vocab_size", *STATE_KEYS, *MAMBA_KEYS,
    *ROTATED_KEYS,
)  # fmt: skip
_KV_HEADS = ("num_key_value_heads", "num_attention_groups")
"""Keys for the number of KV heads; the second one is Step's."""
_EXPERTS = ("num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")
_CHOSEN = ("num_experts_per_tok", "experts_per_token", "top_k_experts", "num_experts_per_token")
_NARROWED, _BLOCK_LAYERS = ("routed_expert_hidden_size", "moe_latent_size"), "attn_res_block_size"
_FUNCTION, _UNGATED = "mlp_hidden_act", "relu2"
"""Keys of Kimi-K3, and of Nemotron-H for such a width and its function, which needs no gate."""
_DENSE = ("dense_intermediate_size", "intermediate_size_mlp")
"""Width of the dense layers if intermediate_size is an expert's: MiniMax-M3, Llama 4."""
_ENCODER_LAYERS = ("num_hidden_layers", "vt_num_hidden_layers")
_ENCODER_WIDTH, _ENCODER_HEADS = ("hidden_size", "vt_hidden_size"), "vt_num_attention_heads"
"""Keys of an encoder; the second ones are Kimi's."""
_LARGE_IMAGES = {
    "qwen3_5": (16_777_216, 16),
    "qwen3_vl": (16_777_216, 16),
    "qwen2_5_vl": (12_845_056, 14),
    "mistral3": (1540**2, 14),
}
"""Pixels of the largest image of these types of models, in the family's preprocessor_config.json or
in the default of its VisionEncoderArgs, and the edge of a patch."""
_UNROTATED = ("inkling", "kimi_linear", "kimi_k3")
"""The types of models without rotations: vllm/models/inkling and kimi_k3 of 0.33.0, and
model_executor/models/kimi_linear.py of 0.26.0."""
_ASKED, _SQUARE = "gemma3", {"image_patches": 64**2, "image_edge": 14, "image_tokens": 16**2}
"""The type of models whose encoder SGLang runs with --enable-multimodal only, and its images."""
_MASKED = "mistral3"
"""The type of models whose encoder attends with a mask of all patches."""
_FILM_WIDTH, _FILM, _FILM_TOKENS = 1152, 32 * 70 * 3**2, 32 * (70 + 8)
"""Hidden size of the tower of Gemma 4 from 26 B on, patches and tokens of its longest film: 32
images of 70 tokens of 9 patches each, and 8 tokens around each. Source:
vllm/model_executor/models/gemma4_mm.py get_mm_max_tokens_per_item."""
_USUAL_WIDTH, _RATIOS = 1152, (0, 4, 128)
"""Hidden size of most encoders of Qwen3-VL and Qwen3.5 to 3.8; and tokens that one latent of
compressed attention stands for, where 0 keeps a window only."""
_SOURCE = "config.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """One model's sizes. None means that a size is not given, unless stated otherwise."""

    name: str
    """Hugging Face id, such as `Qwen/Qwen3-32B`, or the source of the shape."""
    heads: int
    """Attention heads."""
    kv_heads: int | None
    """KV heads. None: not checked, as in latent attention, where every rank has the whole cache."""
    layers: int
    """Hidden layers."""
    hidden: int | None = None
    """Hidden size."""
    streams: int = 1
    """Hidden states that each token has at once: `hc_mult` of DeepSeek-V4 and GLM-5.3-Flash."""
    ffn: int | None = None
    """Inner width of the dense feed-forward layers. None: not given, or no layer is dense."""
    experts: int | None = None
    """Routed experts of a layer; 0 in a dense model."""
    expert_ffn: int | None = None
    """Inner width of one expert."""
    expert_hidden: int | None = None
    """Width of the state that routed experts get, where a projection narrows it: Kimi-K3, Nemotron
    3 Super and Ultra. None: the hidden size."""
    expert_matrices: int = 3
    """Matrices of an expert: gate, up and down; 2 in Nemotron-H, whose experts have no gate."""
    block_layers: int | None = None
    """Layers of a block whose state each token keeps for the layers after it: attn_res_block_size
    of Kimi-K3. None: no state of another layer is kept."""
    chosen: int | None = None
    """Experts that run on each token. None: not given."""
    fp8_block: int | None = None
    """Edge of the square blocks that share an FP8 scale. None: weights are not in such blocks."""
    group: int | None = None
    """Inputs that share a scale in weights of AWQ or GPTQ. None: not such weights, or not given."""
    vocab: int | None = None
    """Vocabulary size."""
    head_dim: int | None = None
    """Width of one head."""
    latent: int | None = None
    """Numbers that a layer of latent attention stores per token: kv_lora_rank + qk_rope_head_dim.
    None: another attention."""
    query_latent: int | None = None
    """Numbers of the compressed query of latent attention: q_lora_rank. None: not compressed, or
    not given."""
    key_dim: int | None = None
    """Width of a head's keys without positions in latent attention: qk_nope_head_dim. None: as
    `head_dim`."""
    value_dim: int | None = None
    """Width of a head's values in latent attention: v_head_dim. None: as `head_dim`."""
    index_heads: int | None = None
    """Heads of the indexer of sparse attention: index_n_heads. None: no indexer, or not given."""
    index_dim: int | None = None
    """Width of such a head: index_head_dim."""
    index_layers: int | None = None
    """Layers with an indexer of their own, if others use its choice. None: all of them."""
    quarter_layers: int | None = None
    """Layers of compressed attention that keep a latent for each 4 tokens; the others keep one for
    each 128. None: another attention, or not given."""
    window_layers: int = 0
    """Layers of compressed attention that keep a window only."""
    full_cache: bool = True
    """Whether every layer stores every token. False if some layers have a sliding window or a state
    of fixed size.
    """
    full_layers: int | None = None
    """Layers that store every token, if not all do. None: not given."""
    full_kv_heads: int | None = None
    """KV heads of these layers. None: as many as the others have."""
    full_head_dim: int | None = None
    """Width of these heads. None: the width of the others."""
    state_layers: int = 0
    """Layers with a state of fixed size for each request, as far as they are given."""
    state_bytes: int | None = None
    """Bytes of these states of one request on all ranks. None: not given."""
    dense_layers: int = 0
    """Layers without experts in a model with experts."""
    draft_layers: int = 0
    """Additional layers that only draft tokens; the size of the weights includes them."""
    rotates: bool = True
    """Whether attention rotates queries and keys by position. False: Inkling, whose heads add
    logits of distances, and the latent attention of Kimi-Linear and Kimi-K3."""
    rotated: int | None = None
    """Numbers of a position in the tables of rotations. None: as many as a head has."""
    image_masked: bool = False
    """Whether its encoder attends with a mask of all patches of a batch: Mistral's."""
    vision_layers: int | None = None
    """`num_hidden_layers` of the vision encoder. None: not given, as where it is called `depth`."""
    vision_hidden: int | None = None
    """Hidden size of the vision encoder. None: no encoder, or not given, or SGLang starts the model
    without it.
    """
    vision_asked: bool = False
    """Whether SGLang runs its encoder with an option only, since 0.4.6: Gemma 3."""
    vision_heads: int | None = None
    """Heads of Kimi's encoder, which ranks may not share evenly. None: not given."""
    image_patches: int | None = None
    """Patches of the largest image that its processor allows, or of a film if it has more. None:
    not given.
    """
    image_edge: int = 16
    """Pixels of a patch's edge. 14: an encoder without results of its inner layers."""
    image_tokens: int | None = None
    """Tokens that they become. None: each four patches become one. Except Gemma 3's, encoders with
    other numbers are those of transformers, which each rank of vLLM has as a whole."""
    film_tokens: int | None = None
    """Tokens of two pictures of a film, if its longest film fills a request: Nemotron's Omni."""
    context: int | None = None
    """Maximum tokens per request that the model supports."""
    dtype: str | None = None
    """Format of most weights: bf16, fp8, mxfp8, int8, nvfp4, mxfp4 or int4. None: not given."""
    weights_gib: float | None = None
    """GiB of all weights on GPUs."""
    files_gib: float | None = None
    """GiB of the repository's weight files, if different."""
    gated: bool = False
    """Whether the Hugging Face repository is gated."""
    source: str
    """Source of the shape."""
    weights_source: str | None = None
    """Source of the size of the weights."""

    @property
    def compresses(self) -> bool:
        """Whether its attention is compressed: DeepSeek-V4, which has streams and no latents."""
        return self.streams > 1 and self.latent is None

    @property
    def expert_state(self) -> int | None:
        """Width of the state that routed experts get."""
        return self.expert_hidden or self.hidden

    @property
    def blocks(self) -> int:
        """Blocks of layers whose states each token keeps."""
        return -(-self.layers // self.block_layers) if self.block_layers else 0

    @property
    def encoder_layers(self) -> int:
        """Layers of the vision encoder, as far as known. 27: Qwen3_5VisionConfig in vllm 0.19.1."""
        return self.vision_layers or (27 if self.vision_hidden == _USUAL_WIDTH else 0)

    @property
    def latent_layers(self) -> int:
        """Layers of latent attention, if it has any: the others have states of fixed size."""
        return self.layers - self.state_layers


def shape_from_config(config: Mapping[str, Any]) -> ModelShape | Unknown:
    """Read the shape of the language model that a config.json describes.

    A multimodal model has these sizes in `text_config`, and its encoder's in `vision_config`.
    Layers that only draft tokens are left out: files may lack their weights.
    """
    text = mapping(config.get("text_config")) or config
    heads, layers = size_of(text.get("num_attention_heads")), layers_of(text)
    if heads is None or layers is None:
        missing = "num_hidden_layers" if heads else "num_attention_heads"
        return Unknown(f"its {_SOURCE} states no {missing}")
    experts, latent = first_size(text, _EXPERTS) or 0, _latent(text)
    ffn, expert_ffn = _widths(text, layers, experts)
    name, tokens = config.get("_name_or_path"), stored_tokens(text, layers)
    return ModelShape(
        name=name if isinstance(name, str) and name else _SOURCE,
        heads=heads,
        kv_heads=_kv_heads(text, heads),
        layers=layers,
        hidden=size_of(text.get("hidden_size")),
        streams=size_of(text.get("hc_mult")) or 1,
        ffn=ffn,
        experts=experts,
        expert_ffn=expert_ffn,
        fp8_block=fp8_block(config) or fp8_block(text),
        group=scale_group(config) or scale_group(text),
        vocab=size_of(text.get("vocab_size")),
        head_dim=size_of(text.get("head_dim")),
        latent=latent,
        **(_of_latents(text) if latent is not None else {}),
        index_heads=_of_indexer(text, "index_n_heads"),
        index_dim=_of_indexer(text, "index_head_dim"),
        **_counted(text, layers, tokens),
        full_cache=tokens.every_layer,
        full_layers=tokens.full,
        state_layers=tokens.states,
        dense_layers=layers_without_experts(text, layers) if experts else 0,
        **_encoder(config),
        context=longest_request(text),
        dtype=weights_format(config, text),
        rotates=not str(config.get("model_type")).startswith(_UNROTATED),
        rotated=rotated_numbers(text),
        source=_SOURCE,
    )


def shape_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a config.json that `shape_from_config` reads, with sorted keys."""
    keys = {*_TOP, *_KEPT, *_KV_HEADS, *_EXPERTS, *_CHOSEN, *_DENSE, *LENGTHS, *LAYER_KEYS}
    keys |= {*_NARROWED, _BLOCK_LAYERS, _FUNCTION}
    found = {key: config[key] for key in keys if config.get(key) is not None}
    for name, inner in _INNER.items():
        stated = mapping(config.get(name))
        found[name] = {key: stated[key] for key in inner if key in stated}
    found["text_config"] = shape_keys(text) if (text := mapping(config.get("text_config"))) else {}
    return {key: found[key] for key in sorted(found) if found[key] != {}}


def _kv_heads(text: Mapping[str, Any], heads: int) -> int | None:
    """Count the KV heads; as many as query heads if not stated.

    A list with one count per layer is unsupported, as are the blocks of Nemotron's pruned models.
    """
    if size_of(text.get("kv_lora_rank")) is not None or sequence(text.get("block_configs")):
        return None
    stated = next((text[key] for key in _KV_HEADS if text.get(key) is not None), None)
    return heads if stated is None else size_of(stated)


def _latent(text: Mapping[str, Any]) -> int | None:
    """Count the numbers per token of a latent attention layer; both parts must be stated."""
    rank, rope = size_of(text.get("kv_lora_rank")), size_of(text.get("qk_rope_head_dim"))
    return None if rank is None or rope is None else rank + rope


def _of_indexer(text: Mapping[str, Any], key: str) -> int | None:
    """Return a size of the indexer of sparse attention."""
    return None if _latent(text) is None else size_of(text.get(key))


def _of_latents(text: Mapping[str, Any]) -> dict[str, Any]:
    """Return the compressed query, and the widths of a head's keys and values."""
    keys = {"query_latent": "q_lora_rank", "key_dim": "qk_nope_head_dim", "value_dim": "v_head_dim"}
    return {field: size_of(text.get(key)) for field, key in keys.items()}


def _counted(text: Mapping[str, Any], layers: int, tokens: Stored) -> dict[str, Any]:
    """Read what the parameters of config.json state about experts, states, heads and layers.

    `*_layers` count the layers with sparse or compressed attention.
    """
    types, ratios = sequence(text.get("indexer_types")), sequence(text.get("compress_ratios"))
    found: dict[str, Any] = {"chosen": first_size(text, _CHOSEN)}
    found["expert_hidden"] = first_size(text, _NARROWED)
    found["block_layers"] = size_of(text.get(_BLOCK_LAYERS))
    if text.get(_FUNCTION) == _UNGATED:
        found["expert_matrices"] = 2
    found["state_bytes"] = state_bytes(text, tokens.states)
    if tokens.full:
        found["full_kv_heads"] = size_of(text.get(FULL_HEADS))
        found["full_head_dim"] = size_of(text.get(FULL_WIDTH))
    if _latent(text) is not None and "shared" in types:
        found["index_layers"] = types.count("full")
    ratios = ratios[:layers]  # The others are of layers that draft.
    if len(ratios) == layers and all(each in _RATIOS for each in ratios):
        found["window_layers"], found["quarter_layers"], _ = map(ratios.count, _RATIOS)
    return found


def _vision(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the sizes of the encoder; none of Llama 4, which SGLang starts without it."""
    return {} if config.get("model_type") == "llama4" else mapping(config.get("vision_config"))


def _encoder(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sizes of the encoder, and whether SGLang runs it unasked."""
    vision = _vision(config)
    return {
        "vision_layers": first_size(vision, _ENCODER_LAYERS),
        "vision_hidden": first_size(vision, _ENCODER_WIDTH),
        "vision_heads": size_of(vision.get(_ENCODER_HEADS)),
        "vision_asked": bool(vision) and config.get("model_type") == _ASKED,
        **_images(config),
    }


def _images(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patches of the largest image that an encoder takes, and their edge."""
    if _has_films(config):
        return {"image_patches": _FILM, "image_tokens": _FILM_TOKENS}
    kind = str(config.get("model_type"))
    if kind == _ASKED and _vision(config):
        return dict(_SQUARE)
    sizes = (size for name, size in _LARGE_IMAGES.items() if kind.startswith(name))
    pixels, edge = next(sizes, (0, 0)) if _vision(config) else (0, 0)
    masked = kind.startswith(_MASKED)
    found = {"image_patches": pixels // max(edge, 1) ** 2, "image_edge": edge}
    return {**found, "image_masked": masked} if pixels else {}


def _has_films(config: Mapping[str, Any]) -> bool:
    """Return whether a model is a Gemma 4 with the usual tower: a film is its largest input."""
    wide = first_size(_vision(config), _ENCODER_WIDTH) == _FILM_WIDTH
    return config.get("model_type") == "gemma4" and wide


def _widths(text: Mapping[str, Any], layers: int, experts: int) -> tuple[int | None, int | None]:
    """Return the inner widths of the dense layers and of an expert.

    Without its own width, an expert has the common one: Mixtral, gpt-oss and MiniMax-M2, which have
    no dense layers, and the families of `_DENSE`. Several widths, as in ERNIE, are unsupported.
    """
    wide, narrow = (
        size_of(text.get(key)) for key in ("intermediate_size", "moe_intermediate_size")
    )
    if not experts:
        return wide, None
    own = narrow is not None or bool(sequence(text.get("moe_intermediate_size")))
    dense = first_size(text, _DENSE) or (wide if own else None)
    return dense if has_dense_layers(text, layers) else None, narrow if own else wide
