"""What decides how much memory vLLM uses when it starts, and the batch that it runs then.

Source: vllm/engine/arg_utils.py get_batch_defaults and _set_default_args of each release.

The memory of a layer with experts: vllm/model_executor/layers/fused_moe of 0.11.0, 0.13.0, 0.14.1,
0.15.0, 0.18.0, 0.19.0, 0.20.2, 0.22.0, 0.24.0, 0.26.0, 0.28.0 and 0.31.0: workspace_shapes of each
kernel, _allocate_buffers in modular_kernel.py, and the lists of kernels in `oracle`, of which the
first that supports the GPU and the format runs. FlashInfer's kernel allocates its workspace itself:
getWorkspaceDeviceBufferSizes in csrc/fused_moe/cutlass_backend.

vLLM runs the encoder once with the largest image that its processor allows, or with as many as a
batch holds, and keeps the pixels of all and what it returns while the language model runs (GiB):
profile_run in vllm/v1/worker/gpu_model_runner.py, vllm/multimodal/encoder_budget.py. It needs the
most in a layer's attention, where queries and keys are in memory before and after they are rotated,
or in its feed-forward part, with the inner width before and after its function: qwen2_5_vl.py and
qwen3_vl.py in vllm/model_executor/models. A tower from transformers has gate, up and product there,
and no other rank has a part of it: gemma4_mm.py.
"""

from enum import Enum, auto

from kthena_components.core.memory.sharding import masked_numbers
from kthena_components.core.memory.sizes import GIB, Split
from kthena_components.core.models import ModelShape
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version

ENGINE_V1, _SMALL, _LARGE, _LARGEST = (0, 8), (256, 2048), (1024, 8192), (1024, 16384)
"""The first release that runs the V1 engine by default; concurrent sequences and tokens of a batch,
by class of GPU."""
_BY_NAME, _BY_NAME_UNTIL, _MANY_UNTIL = ("H100", "H200"), (0, 8, 5), (0, 8, 4)
"""GPUs with the larger defaults in the first releases of V1, the first release that goes by memory,
and the first one with fewer sequences on other GPUs."""
_LARGE_GPU, _LARGEST_GPU, _A100_SMALL, _LARGEST_SINCE = 70, 160, (0, 9), (0, 28)
"""GiB from which a GPU has the larger defaults, and the first releases with an exception for A100,
and with a class for the largest GPUs."""
UNIFIED = "GB10"
"""A GPU that shares its memory with the host. NVML does not report it, so its defaults are the
smaller ones: get_batch_defaults in vllm/engine/arg_utils.py takes 0 after any error."""
_LONGEST_WHOLE, _CHUNK, _CHUNK_UNTIL = 32768, 512, (0, 7)
"""Length up to which V0 does not split a prompt, and the tokens of a part in its older releases.
Its run has no sampler then, as no prompt ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUp:
    """What decides how much memory vLLM uses beside weights and cache."""

    shape: ModelShape
    split: Split
    gpu: str
    """Name of the GPU."""
    memory_gib: float
    """Its memory."""
    version: Version | None
    """The release. None: the newest."""
    length: int | None = None
    """Tokens of the longest request."""
    sequences: int | None = None
    """Concurrent sequences as stated."""
    tokens: int | None = None
    """Tokens of a batch as stated."""
    workspace: float = 0.0
    """GiB that are reserved for prefills of sparse attention."""
    encoder_ranks: int = 0
    """Ranks that share the encoder of images; 0 if it does not run."""
    films: bool = False
    """Whether it runs for films."""
    pieces: bool = True
    decodes: bool = True
    captured: int | None = None
    listed: tuple[int, ...] = ()
    """Whether CUDA graphs of what is between attention are captured, and those of whole decodes;
    the tokens of the largest one, and of each, if stated."""
    attention: float = 0.0
    """GiB of attention in the first graph of whole decodes."""
    gathers: bool = False
    """Whether experts run on the tokens of all data-parallel copies."""
    staged: float = 0.0
    """GiB that files of the checkpoint keep at most."""
    whole_experts: bool = False
    """Whether each rank has whole experts, rather than a part of each."""
    drafts: int = 0
    """Tokens of a draft that are verified at once."""
    on: frozenset[str] = frozenset()
    off: frozenset[str] = frozenset()
    """Variables of vLLM that its container sets to 1, and to 0."""

    @property
    def eager(self) -> bool:
        """Whether no CUDA graphs are captured."""
        return not (self.pieces or self.decodes)

    @property
    def copies(self) -> int:
        """Data-parallel copies that share experts, with groups of all their ranks.

        Source: initialize_model_parallel in vllm/distributed/parallel_state.py.
        """
        ranks = self.split.experts or self.split.tensor
        return ranks // self.split.tensor if self.shape.experts else 1

    def before(self, version: Version) -> bool:
        """Return whether the release is older; an unknown one is the newest."""
        return self.version is not None and self.version < version


def batch_of(start: StartUp) -> tuple[int, int]:
    """Return the concurrent sequences and the tokens of a batch, stated or by default."""
    sequences, tokens = _defaults(start)
    tokens = start.tokens or tokens
    return min(start.sequences or sequences, tokens), tokens


def _defaults(start: StartUp) -> tuple[int, int]:
    """Return the default sequences and batch tokens of vLLM, by its release and the GPU.

    Source: vllm/engine/arg_utils.py _set_default_args of the releases in the constants.
    """
    if start.before(ENGINE_V1):
        if splits_prompts(start):
            return _SMALL[0], _CHUNK if start.before(_CHUNK_UNTIL) else _SMALL[1]
        return _SMALL[0], max(start.length or 0, _SMALL[1])
    if start.before(_BY_NAME_UNTIL):
        sequences, tokens = _LARGE if any(name in start.gpu for name in _BY_NAME) else _SMALL
        return _LARGE[0] if start.before(_MANY_UNTIL) else sequences, tokens
    if start.memory_gib >= _LARGEST_GPU and not start.before(_LARGEST_SINCE):
        return _LARGEST
    small = "A100" in start.gpu and not start.before(_A100_SMALL)
    small = small or UNIFIED in start.gpu
    return _LARGE if start.memory_gib >= _LARGE_GPU and not small else _SMALL


def splits_prompts(start: StartUp) -> bool:
    """Return whether V0 splits prompts by default."""
    return start.before(ENGINE_V1) and (start.length or 0) > _LONGEST_WHOLE


_CHOSEN, _ALIGNED = 8, 128
"""Experts for each token in most models, where the table of models has no number, and rows to which
DeepGEMM fills up the batch of each expert."""
_PIECES = (((0, 12), 32768), ((0, 18), 16384))
"""Tokens that experts run on at once before a release: VLLM_FUSED_MOE_CHUNK_SIZE in vllm/envs.py of
0.10.1, 0.11.0, 0.13.0 and 0.15.0. 0.18.0 has none: they run on all at once."""
HOPPER = ("NVIDIA H", "NVIDIA GH")
SERVER = ("NVIDIA B", "NVIDIA GB200", "NVIDIA GB300")
_WORKSTATION = ("NVIDIA RTX PRO", "NVIDIA GeForce RTX 50", "NVIDIA GB10")
"""GPUs of Blackwell by the starts of their names."""
_DEEP_GEMM, _MODULAR, _LISTED = (0, 11), (0, 14), (0, 15)
"""The first releases with DeepGEMM by default on Hopper (VLLM_USE_DEEP_GEMM in vllm/envs.py), whose
other kernels have workspaces that stay, and which prefer FlashInfer's kernel to DeepGEMM."""
_DEEP_GEMM_STAYS, _RANKS = (0, 13), 8
"""The first release that was read where DeepGEMM's workspaces stay, and the ranks from which it no
longer uses DeepGEMM without expert parallelism."""
_TRITON_FP8 = (0, 18)
"""The first release that prefers Triton's kernel on Hopper, without expert parallelism."""
_BF16_FLASHINFER, _BF16_TRITON = (0, 20), (0, 24)
"""The first release that prefers FlashInfer's kernel for 16 bits from Hopper on, and the first that
was read which does not on Hopper."""
_GELU_FLASHINFER = (0, 24)
"""The first release whose FlashInfer kernel takes experts with GELU, as Gemma 4 has. Before it,
vLLM's CUTLASS runs them in NVFP4 on Blackwell, if ranks share each expert: 0.20.2 to 0.23.0."""
_MARLIN = {"int4": (0, 24), "nvfp4": (0, 15), "mxfp4": (0, 18)}
"""The first releases whose Marlin has workspaces that stay, by the format of the weights."""


class _Kernel(Enum):
    """What experts run with."""

    DEEP_GEMM = auto()
    """Two workspaces of rows of hidden states, and a quantised copy."""
    STAYS = auto()
    """Triton, CUTLASS or Marlin, with two workspaces of rows at least as wide as hidden states."""
    FLASHINFER = auto()
    """The same width, allocated for one run."""
    FLASHINFER_BLOCKS = auto()
    """FlashInfer with weights in FP8 blocks: gate and up, the result, and a quantised copy."""
    CUTLASS_FP4 = auto()
    """vLLM's CUTLASS with weights in NVFP4: beside its workspaces the rows of hidden states, the
    result in the order of tokens, and its product with the weights of the router."""
    OTHER = auto()
    """Gate and up or the result, and their product, allocated for one run."""


def expert_numbers(start: StartUp, tokens: int, hidden: int, sparse: int) -> int:
    """Count the numbers of 16 bits of a layer with experts.

    With data-parallel copies, each rank gathers the tokens of all copies, unless an option takes
    other transports: AgRsAll2AllManager in vllm/distributed/device_communicators/all2all.py, and
    NaiveAll2AllManager before 0.11. Each copy runs its largest batch at the same time.
    Their workspaces and those of sparse attention lie in the same memory:
    vllm/v1/worker/workspace.py.
    """
    if start.shape.expert_ffn is None:
        return sparse
    hidden = start.shape.expert_state or hidden
    gathered = _gathered(start, tokens) * hidden if _gathered(start, tokens) > tokens else 0
    rows, kernel = _rows(start, tokens), _kernel(start)
    quantised = rows * hidden // 2 if kernel is _Kernel.DEEP_GEMM else 0
    return gathered + quantised + max(rows * _width(start, hidden), sparse)


def staying_numbers(start: StartUp) -> int:
    """Count the numbers of the workspaces that stay while the sampler runs; 0 if none do."""
    kernel, hidden = _kernel(start), start.shape.expert_state
    deep_gemm = kernel is _Kernel.DEEP_GEMM and not start.before(_DEEP_GEMM_STAYS)
    if hidden is None or not (deep_gemm or kernel is _Kernel.STAYS):
        return 0
    _, tokens = batch_of(start)
    return _rows(start, tokens) * _width(start, hidden)


def graph_numbers(start: StartUp, tokens: int) -> int:
    """Count the numbers of a layer with experts for the largest batch of a CUDA graph."""
    inner, hidden = _inner(start), start.shape.expert_state or 0
    first = (start.shape.expert_matrices - 1) * inner
    return tokens * _chosen(start) * (max(first, hidden) + inner) * bool(inner)


def _chosen(start: StartUp) -> int:
    return start.shape.chosen or _CHOSEN


def _gathered(start: StartUp, tokens: int) -> int:
    return tokens * start.copies if start.gathers else tokens


def _rows(start: StartUp, tokens: int) -> int:
    """Count the tokens that experts run on at once, each as often as experts run on it."""
    whole = _gathered(start, tokens)
    piece = next((size for until, size in _PIECES if start.before(until)), whole)
    deep_gemm = _kernel(start) is _Kernel.DEEP_GEMM
    filled = _ALIGNED * (start.shape.experts or 0) if deep_gemm else 0
    return min(whole, piece) * _chosen(start) + filled


def _width(start: StartUp, hidden: int) -> int:
    """Count the numbers of a row."""
    inner, kernel = _inner(start), _kernel(start)
    first, wider = (start.shape.expert_matrices - 1) * inner, max(hidden, inner)
    if kernel is _Kernel.DEEP_GEMM:
        return 2 * hidden
    if kernel is _Kernel.FLASHINFER_BLOCKS:
        return wider + first + wider // 2
    if kernel is _Kernel.CUTLASS_FP4:
        return 3 * hidden + max(first, hidden) + inner
    return max(first, hidden) + (inner if kernel is _Kernel.OTHER else wider)


def _inner(start: StartUp) -> int:
    ranks = 1 if start.whole_experts else start.split.tensor
    return (start.shape.expert_ffn or 0) // ranks


def _kernel(start: StartUp) -> _Kernel:
    """Return the kernel of the format and the GPU: nothing is known of a GPU without a name."""
    shape = start.shape
    if shape.expert_ffn is None or not start.gpu.startswith(("NVIDIA", "AMD")):
        return _Kernel.OTHER
    if shape.compresses:
        return _of_marlin(start, "mxfp4", (*HOPPER, *_WORKSTATION))
    if shape.dtype in _MARLIN:
        newer = {"int4": (*HOPPER, *_WORKSTATION), "nvfp4": HOPPER, "mxfp4": _WORKSTATION}
        marlin = _of_marlin(start, shape.dtype, newer[shape.dtype])
        return _Kernel.CUTLASS_FP4 if _is_gelu_in_cutlass(start) else marlin
    if shape.dtype == "fp8" and shape.fp8_block is not None and start.gpu.startswith(HOPPER):
        return _blocks_on_hopper(start)
    blocks = shape.fp8_block is not None and start.gpu.startswith(SERVER)
    if shape.dtype not in {"bf16", "fp8"} or start.before(_MODULAR) or blocks:
        return _Kernel.OTHER
    return _of_bf16(start) if shape.dtype == "bf16" else _Kernel.STAYS


def _is_gelu_in_cutlass(start: StartUp) -> bool:
    """Return whether vLLM's CUTLASS runs experts in NVFP4, since no other kernel has GELU."""
    shape = start.shape
    gelu = shape.image_tokens is not None and start.before(_GELU_FLASHINFER)
    shared = shape.dtype == "nvfp4" and not start.whole_experts and not shape.film_tokens
    return gelu and shared and start.gpu.startswith((*SERVER, *_WORKSTATION))


def _of_marlin(start: StartUp, dtype: str, newer: tuple[str, ...]) -> _Kernel:
    """Return Marlin from its first release on, on GPUs before Hopper and those given."""
    newest = (*HOPPER, *SERVER, *_WORKSTATION, "AMD")
    runs = start.gpu.startswith(newer) or not start.gpu.startswith(newest)
    return _Kernel.STAYS if runs and not start.before(_MARLIN[dtype]) else _Kernel.OTHER


def _blocks_on_hopper(start: StartUp) -> _Kernel:
    """Return the kernel of weights in FP8 blocks."""
    few = start.whole_experts or start.split.tensor < _RANKS or start.before(_DEEP_GEMM_STAYS)
    if start.before(_LISTED) and few:
        return _Kernel.OTHER if start.before(_DEEP_GEMM) else _Kernel.DEEP_GEMM
    if start.before(_LISTED):
        return _Kernel.OTHER if start.before(_MODULAR) else _Kernel.STAYS
    triton = not start.before(_TRITON_FP8) and not start.whole_experts
    return _Kernel.STAYS if triton else _Kernel.FLASHINFER_BLOCKS


def _of_bf16(start: StartUp) -> _Kernel:
    """Return the kernel of weights in 16 bits."""
    if start.before(_BF16_FLASHINFER) or not start.gpu.startswith(
        (*HOPPER, *SERVER, *_WORKSTATION)
    ):
        return _Kernel.STAYS
    hopper = start.gpu.startswith(HOPPER)
    return _Kernel.STAYS if hopper and not start.before(_BF16_TRITON) else _Kernel.FLASHINFER


_PATCH, _STILL = 3 * 2, 3
"""Numbers of a patch for each pixel: colours, and images of a film; and without films."""
_OF_A_PICTURE, _TOGETHER_SINCE, _OF_MEMORY, _OF_A_PATCH = 630, (0, 22), 0.1, 4 * 10240 * 8
"""Patches of a picture of a film of Gemma 4, the first release read whose tower takes several at
once (_process_video_input in gemma4_mm.py of 0.20.2 and 0.22.0), up to which share of the GPU's
memory, and the bytes of a patch that it counts (_encoder_chunk)."""
PATCHES, _PAIRS, _PROJECTED = 4, 64, 13
"""Patches that become one token. Of a film of Nemotron's Omni, pairs of pictures at once, and the
widths of a patch while they are projected: a token has 16, as it is, with ReLU, and squared, beside
what the encoder returned (extract_feature and mlp1 in nano_nemotron_vl.py of 0.20.2 to 0.33.0)."""
_STATES = 3  # widths of a patch: its state, the norm, and its position, kept for all layers
_ATTENTION = (((0, 12), 3, 18), ((0, 15), 4, 6))
"""Widths of a patch in attention before a release: those of each rank (state, norm, position,
result) and those that ranks share. Before 0.12 queries and keys were rotated in 32 bits."""
_CONTIGUOUS = (4, 8)
"""The same since 0.15, which copies queries and keys before it rotates them (vllm#32687)."""
_GATHERING, _GATHERED_UNTIL = (9, 3), (0, 12)
"""The same while ranks gather queries, keys and values: all_gather_interleave before 0.12."""
_INNER, _WIDTHS, _GATED = 4, 2, 3
"""Inner width of a feed-forward layer for the hidden size, how many of them are in memory at once,
and with a gate."""
_BYTES = 2  # of a number in 16 bits


def encoder_peak(
    shape: ModelShape, tokens: int, ranks: int, release: Version | None, memory_gib: float
) -> float:
    """Return the peak of the encoder, whose layers ranks share; 0 without a largest image."""
    patches = _images(shape, tokens) * (shape.image_patches or 0)
    numbers: float = patches * (shape.vision_hidden or 0)
    if shape.image_masked:
        numbers = masked_numbers(shape, patches, ranks, release)
    elif shape.vision_asked:  # siglip.py of 0.14.1, 0.19.1, 0.33.0: no positions are kept
        numbers *= _STATES - 1 + _WIDTHS * _INNER / ranks
    elif shape.image_tokens is None:
        numbers *= max(_STATES + _WIDTHS * _INNER / ranks, _in_attention(ranks, release))
    else:
        at_once, widths = _pictures(release, memory_gib) * _OF_A_PICTURE, _STATES + _GATED * _INNER
        if shape.film_tokens:
            at_once, widths = _PAIRS * PATCHES * shape.film_tokens, _PROJECTED
        pairs = patches // 2 if shape.film_tokens else patches
        numbers = min(pairs, at_once) * widths * (shape.vision_hidden or 0)
    return (patches * _pixels(shape) + numbers) * _BYTES / GIB


def _pictures(release: Version | None, memory_gib: float) -> int:
    """Count the pictures of a film that a tower from transformers takes at once."""
    if release is not None and release < _TOGETHER_SINCE:
        return 1
    return max(int(memory_gib * _OF_MEMORY * GIB / (_OF_A_PICTURE * _OF_A_PATCH)), 1)


def _pixels(shape: ModelShape) -> int:
    """Count the numbers of a patch as the encoder gets it."""
    return (_STILL if shape.image_tokens or shape.image_masked else _PATCH) * shape.image_edge**2


def _in_attention(ranks: int, release: Version | None) -> float:
    """Return the widths of a patch that are in memory at once in a layer's attention."""
    whole, shared = _CONTIGUOUS
    if release is not None:
        sizes = ((each, part) for until, each, part in _ATTENTION if release < until)
        whole, shared = next(sizes, _CONTIGUOUS)
    most = whole + shared / ranks
    if ranks == 1 or release is None or release >= _GATHERED_UNTIL:
        return most
    return max(most, _GATHERING[0] + _GATHERING[1] / ranks)


def images_of(shape: ModelShape, tokens: int) -> tuple[int, int]:
    """Return the images of a run, and the numbers of pixels of each."""
    return _images(shape, tokens), (shape.image_patches or 0) * _pixels(shape)


def kept_images(shape: ModelShape, tokens: int) -> float:
    """Return the pixels and what the encoder returns: both stay while the language model runs."""
    number, pixels = images_of(shape, tokens)
    return number * (pixels + _tokens_of(shape) * (shape.hidden or 0)) * _BYTES / GIB


def _images(shape: ModelShape, tokens: int) -> int:
    """Count the images of a run."""
    if shape.image_patches is None or shape.vision_hidden is None:
        return 0
    return max(tokens // _tokens_of(shape), 1)


def _tokens_of(shape: ModelShape) -> int:
    """Count the tokens of the largest image."""
    return shape.image_tokens or (shape.image_patches or 0) // PATCHES
