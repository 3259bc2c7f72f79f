"""What decides how much memory vLLM uses when it starts, and the batch that it runs then.

Source: vllm/engine/arg_utils.py get_batch_defaults and _set_default_args of each release.
"""

from kthena_components.core.memory.sizes import Split
from kthena_components.core.models import ModelShape
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version

ENGINE_V1 = (0, 8)
"""The first release that runs the V1 engine by default."""
_SMALL, _LARGE, _LARGEST = (256, 2048), (1024, 8192), (1024, 16384)
"""Concurrent sequences and tokens of a batch, by class of GPU."""
_BY_NAME, _BY_NAME_UNTIL, _MANY_UNTIL = ("H100", "H200"), (0, 8, 5), (0, 8, 4)
"""GPUs with the larger defaults in the first releases of V1, the first release that goes by memory,
and the first one with fewer sequences on other GPUs."""
_LARGE_GPU, _LARGEST_GPU = 70, 160
"""GiB from which a GPU has the larger defaults."""
_A100_SMALL, _LARGEST_SINCE = (0, 9), (0, 28)
"""The first releases with an exception for A100, and with a class for the largest GPUs."""
UNIFIED = "GB10"
"""A GPU that shares its memory with the host. NVML does not report that memory, so its defaults are
the smaller ones: get_batch_defaults in vllm/engine/arg_utils.py takes 0 after any error."""
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
    eager: bool = False
    """Whether no CUDA graphs are captured."""
    gathers: bool = False
    """Whether experts run on the tokens of all data-parallel copies."""
    staged: float = 0.0
    """GiB that files of the checkpoint keep at most."""
    whole_experts: bool = False
    """Whether each rank has whole experts, rather than a part of each."""

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
    if start.before(ENGINE_V1):
        if is_split(start):
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


def is_split(start: StartUp) -> bool:
    """Return whether V0 splits prompts by default."""
    return start.before(ENGINE_V1) and (start.length or 0) > _LONGEST_WHOLE
