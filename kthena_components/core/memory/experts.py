"""The memory of a layer with experts while vLLM runs its largest batch.

Source: vllm/model_executor/layers/fused_moe of 0.11.0, 0.13.0, 0.14.1, 0.15.0, 0.18.0, 0.19.0,
0.20.2, 0.22.0, 0.24.0, 0.26.0, 0.28.0 and 0.31.0: workspace_shapes of each kernel,
_allocate_buffers in modular_kernel.py, and the lists of kernels in `oracle`, of which the first
that supports the GPU and the format runs. FlashInfer's kernel allocates its workspace itself:
getWorkspaceDeviceBufferSizes in csrc/fused_moe/cutlass_backend.
"""

from enum import Enum, auto

from kthena_components.core.memory.batch import StartUp, batch_of

_CHOSEN = 8
"""Experts for each token in most models, where the table of models has no number."""
_ALIGNED = 128
"""Rows to which DeepGEMM fills up the batch of each expert."""
_PIECES = (((0, 12), 32768), ((0, 18), 16384))
"""Tokens that experts run on at once before a release: VLLM_FUSED_MOE_CHUNK_SIZE in vllm/envs.py of
0.10.1, 0.11.0, 0.13.0 and 0.15.0. 0.18.0 has none: they run on all at once."""
_HOPPER = ("NVIDIA H", "NVIDIA GH")
_SERVER = ("NVIDIA B", "NVIDIA GB200", "NVIDIA GB300")
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
    whole = _gathered(start, tokens)
    gathered = whole * hidden if whole > tokens else 0
    rows, kernel = _rows(start, tokens), _kernel(start)
    quantised = rows * hidden // 2 if kernel is _Kernel.DEEP_GEMM else 0
    return gathered + quantised + max(rows * _width(start, hidden), sparse)


def staying_numbers(start: StartUp) -> int:
    """Count the numbers of the workspaces that stay while the sampler runs; 0 if none do."""
    kernel, hidden = _kernel(start), start.shape.hidden
    deep_gemm = kernel is _Kernel.DEEP_GEMM and not start.before(_DEEP_GEMM_STAYS)
    if hidden is None or not (deep_gemm or kernel is _Kernel.STAYS):
        return 0
    _, tokens = batch_of(start)
    return _rows(start, tokens) * _width(start, hidden)


def graph_numbers(start: StartUp, tokens: int) -> int:
    """Count the numbers of a layer with experts for the largest batch of a CUDA graph."""
    inner, hidden = _inner(start), start.shape.hidden or 0
    return tokens * _chosen(start) * (max(2 * inner, hidden) + inner) if inner else 0


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
    wider = max(hidden, inner)
    if kernel is _Kernel.DEEP_GEMM:
        return 2 * hidden
    if kernel is _Kernel.FLASHINFER_BLOCKS:
        return wider + 2 * inner + wider // 2
    return max(2 * inner, hidden) + (inner if kernel is _Kernel.OTHER else wider)


def _inner(start: StartUp) -> int:
    ranks = 1 if start.whole_experts else start.split.tensor
    return (start.shape.expert_ffn or 0) // ranks


def _kernel(start: StartUp) -> _Kernel:
    """Return the kernel of the format and the GPU: nothing is known of a GPU without a name."""
    shape = start.shape
    if shape.expert_ffn is None or not start.gpu.startswith(("NVIDIA", "AMD")):
        return _Kernel.OTHER
    if shape.streams > 1:
        return _of_marlin(start, "mxfp4", (*_HOPPER, *_WORKSTATION))
    if shape.dtype in _MARLIN:
        newer = {"int4": (*_HOPPER, *_WORKSTATION), "nvfp4": _HOPPER, "mxfp4": _WORKSTATION}
        return _of_marlin(start, shape.dtype, newer[shape.dtype])
    if shape.dtype == "fp8" and shape.fp8_block is not None and start.gpu.startswith(_HOPPER):
        return _blocks_on_hopper(start)
    blocks = shape.fp8_block is not None and start.gpu.startswith(_SERVER)
    if shape.dtype not in {"bf16", "fp8"} or start.before(_MODULAR) or blocks:
        return _Kernel.OTHER
    return _of_bf16(start) if shape.dtype == "bf16" else _Kernel.STAYS


def _of_marlin(start: StartUp, dtype: str, newer: tuple[str, ...]) -> _Kernel:
    """Return Marlin from its first release on, on GPUs before Hopper and those given."""
    newest = (*_HOPPER, *_SERVER, *_WORKSTATION, "AMD")
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
        (*_HOPPER, *_SERVER, *_WORKSTATION)
    ):
        return _Kernel.STAYS
    hopper = start.gpu.startswith(_HOPPER)
    return _Kernel.STAYS if hopper and not start.before(_BF16_TRITON) else _Kernel.FLASHINFER
